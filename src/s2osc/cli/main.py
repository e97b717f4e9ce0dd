"""The command line: turns words into objects and errors into one line; decides nothing.

torch and everything that imports it load inside the commands, so that ``--help`` is quick.
"""

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from s2osc.cli.bench import add_bench
from s2osc.cli.data import add_data
from s2osc.cli.pool import add_demo_and_settings, add_pool_commands
from s2osc.cli.stream import add_stream
from s2osc.errors import S2OSCError, S2OSCWarning
from s2osc.version import __version__

EXIT_ERROR, EXIT_INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 2 for anything the user can mend, or 130 after Ctrl-C."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A class may be called what the terminal cannot show; that must not end a run.
        sys.stdout.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            options = build_parser().parse_args(arguments)
            options.command(options)
        sys.stdout.flush()  # a pipe that was closed shows here, not when Python ends
    except S2OSCError as error:
        # A library's own message, or a file's name, may have several lines.
        print("s2osc:", *str(error).splitlines(), file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("s2osc: interrupted; no half-written results are left", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _show_warning(others: Any, message: Any, category: type[Warning], *where: Any) -> None:
    """Our own as one line, without the place in the code; those of libraries as they come."""
    if issubclass(category, S2OSCWarning):
        print("s2osc:", *str(message).splitlines(), file=sys.stderr)
    else:
        others(message, category, *where)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2osc",
        description="Open set classification: for every item of a pool a known class, or unknown "
        "and which new group.",
    )
    parser.add_argument("--version", action="version", version=f"s2osc {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    add_pool_commands(commands)
    add_stream(commands)
    add_demo_and_settings(commands)
    add_data(commands)
    add_bench(commands)
    return parser
