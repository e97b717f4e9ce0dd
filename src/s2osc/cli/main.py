"""The command line: words into objects, and whatever fails into one line; decides nothing.

    0    done, also when a reader of the output left early
    1    a failure nobody foresaw; its traceback is in a log
    2    something that the user can mend: words, data, a place to write to
    130  Ctrl-C

torch and everything that imports it load inside the commands, so that ``--help`` is quick.
"""

import argparse
import errno
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from s2osc.cli.bench import add_bench
from s2osc.cli.data import add_data
from s2osc.cli.export import add_export
from s2osc.cli.page import add_page
from s2osc.cli.pool import add_demo_and_settings, add_pool_commands
from s2osc.cli.service import add_serve
from s2osc.cli.stream import add_stream
from s2osc.cli.tune import add_tune
from s2osc.errors import OutputError, ReportError, S2OSCError, S2OSCWarning
from s2osc.version import __version__

EXIT_FAILED, EXIT_ERROR, EXIT_INTERRUPTED = 1, 2, 130
LONGEST_PATH = 60  # characters of a path that is named in a complaint


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; no exception leaves."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout = _Output(stdout)
    if stderr is None:  # closed; what is printed there must not go elsewhere
        sys.stderr = io.StringIO()
    try:
        return _run(words)
    except S2OSCError as error:
        _complain(str(error))
        return EXIT_ERROR
    except ReportError as error:
        _complain(f"{error}; {_log(error, words)}")
        return EXIT_FAILED
    except _NobodyReadsError:
        return 0
    except BaseException as error:
        if _is_interruption(error):
            _complain("interrupted; no half-written results are left")
            return EXIT_INTERRUPTED
        _complain(f"stopped by an unexpected error, {_summary(error)}; {_log(error, words)}")
        return EXIT_FAILED
    finally:
        sys.stdout, sys.stderr = stdout, stderr


def _run(words: Sequence[str]) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            options = build_parser().parse_args(_values_joined(words))
            options.command(options)
    except SystemExit as end:  # argparse has printed help, or what is wrong with the words
        code = end.code
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise OutputError(
            f"the path {_start(error.filename)} is too long for the disk; shorten it"
        ) from error
    else:
        code = 0
    sys.stdout.flush()  # what cannot be printed shows here, not when Python ends
    return code if isinstance(code, int) else 0


def _values_joined(words: Sequence[str]) -> list[str]:
    """The words with values such as -1,0 joined to their option: no option starts with a digit.

    argparse knows single negative numbers alone.

    >>> _values_joined(["decide", "--merge", "-1,0", "--out", "results"])
    ['decide', '--merge=-1,0', '--out', 'results']
    """
    joined: list[str] = []
    for word in words:
        option = joined[-1] if joined else ""
        takes_one = option[:2] == "--" and option != "--" and "=" not in option
        if takes_one and word[:1] == "-" and word[1:2].isdecimal():
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


class _NobodyReadsError(Exception):
    """The reader of a pipe has left."""


class _Output:
    """Standard output. What cannot be printed is one of our errors, wherever it is printed."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        if isinstance(stream, io.TextIOWrapper):
            # A class may be called what the terminal cannot show; that must not end a run.
            stream.reconfigure(errors="replace")

    def write(self, text: str) -> int:
        return self._do("write", text)

    def flush(self) -> None:
        if self._stream is not None:
            self._do("flush")

    def _do(self, name: str, *values: str) -> Any:
        if self._stream is None or self._stream.closed:
            raise OutputError("standard output is closed; what was written to files is whole")
        try:
            return getattr(self._stream, name)(*values)
        except OSError as error:
            _abandon(self._stream)
            if isinstance(error, BrokenPipeError):
                raise _NobodyReadsError from error
            raise OutputError(
                f"cannot print: {error.strerror or error}; what was written to files is whole"
            ) from error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _abandon(stream: Any) -> None:
    """What a stream still holds goes nowhere; else Python would try again when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _complain(text: str) -> None:
    """One line on standard error, if it takes one."""
    try:
        # A library's own message, or a file's name, may have several lines.
        print("s2osc:", *text.splitlines(), file=sys.stderr, flush=True)
    except (OSError, ValueError):
        _abandon(sys.stderr)


def _show_warning(others: Any, message: Any, category: type[Warning], *where: Any) -> None:
    """Our own as one line, without the place in the code; those of libraries as they come."""
    if issubclass(category, S2OSCWarning):
        _complain(str(message))
    else:
        others(message, category, *where)


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: some libraries turn it into one of their own."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _summary(error: BaseException) -> str:
    from s2osc.files import reason

    return f"{type(error).__name__} ({reason(error)})"


def _start(path: Any) -> str:
    """Enough of a path to find it among the words of a command."""
    text = os.fsdecode(path) if path else "of a file"
    return f"{text[:LONGEST_PATH]}..." if len(text) > LONGEST_PATH else text


def _log(error: BaseException, words: Sequence[str]) -> str:
    """Write the traceback to a file; return a clause that says where it is."""
    import shlex
    import time
    import traceback

    import platformdirs

    trace = "".join(traceback.format_exception(error))
    command = shlex.join(["s2osc", *words])
    log = f"{command}\ns2osc {__version__}, Python {sys.version}\n\n{trace}"
    try:
        folder = Path(platformdirs.user_log_path("s2osc", appauthor=False))
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
        path.write_text(log, encoding="utf-8", errors="backslashreplace")
    except (OSError, RuntimeError) as why:
        return (
            f"the traceback could not be saved ({why}), it ends in {trace.splitlines()[-2].strip()}"
        )
    return f"the traceback is in {path}"


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2osc",
        description="Open set classification: for every item of a pool a known class, or unknown "
        "and which new group.",
    )
    parser.add_argument("--version", action="version", version=f"s2osc {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_pool_commands(commands)
    add_page(commands)
    add_serve(commands)
    add_export(commands)
    add_stream(commands)
    add_tune(commands)
    add_demo_and_settings(commands)
    add_data(commands)
    add_bench(commands)
    return parser
