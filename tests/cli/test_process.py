"""A command as a process: how soon it is there, and how it ends."""

import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import warnings

import pytest
import torch

from files import (
    arguments,
    npy,
    snapshot,
    text,
)
from s2osc.__main__ import Interruption
from s2osc.app import predict as jobs
from s2osc.cli.main import build_parser, main
from s2osc.errors import S2OSCWarning
from s2osc.pipeline import storage


def run_python(*words: str) -> str:
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_help_is_there_in_less_than_a_third_of_a_second():
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = run_python("-m", "s2osc", "--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Time on the processor: other work on the machine does not count.
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if seconds[-1] < 0.3:
            break
    assert printed.startswith("usage: s2osc")
    assert min(seconds) < 0.3


def test_help_loads_no_heavy_library():
    commands = [["--help"], ["classify", "--help"], ["decide", "--help"], ["--version"]]
    script = (
        "import sys; from s2osc.cli.main import main\n"
        f"for words in {commands}:\n"
        "    assert main(words) == 0\n"
        "    print(sorted({'numpy', 'pyarrow', 'rich', 'torch', 'sklearn'} & set(sys.modules)))"
    )
    printed = run_python("-c", script).splitlines()
    assert printed.count("[]") == len(commands)


def test_a_reader_who_leaves_early_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "s2osc", "data", "list"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # as users run it
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_leaves_nothing_behind_and_exits_with_130(finished, tmp_path, quick, monkeypatch):
    begun, errors = os.pipe(), os.pipe()
    child = os.fork()  # everything is imported already
    if child == 0:

        def wait(*_: object) -> None:
            os.write(begun[1], b"writing")
            time.sleep(60)

        # A shell that runs the tests in the background leaves the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        torch.set_num_threads(1)  # threads do not survive a fork
        monkeypatch.setattr(storage, "save_model", wait)
        monkeypatch.setattr(sys, "stderr", os.fdopen(errors[1], "w"))
        code = main(arguments(finished, tmp_path / "deep" / "out", *quick))
        sys.stderr.flush()
        os._exit(code)
    os.close(begun[1])
    os.close(errors[1])
    with os.fdopen(begun[0], "rb", buffering=0) as first, os.fdopen(errors[0]) as printed:
        assert first.read(7) == b"writing"
        assert (tmp_path / "deep").exists()
        os.kill(child, signal.SIGINT)
        _, status = os.waitpid(child, 0)
        assert printed.read() == "s2osc: interrupted; no half-written results are left\n"
    assert os.waitstatus_to_exitcode(status) == 130
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    "step",
    ["classify.open_known_beside", "result_files.write_tables", "result_files.write_measured"],
)
def test_ctrl_c_at_any_step_keeps_earlier_results(finished, tmp_path, quick, monkeypatch, step):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = shutil.copytree(finished / "out", tmp_path / "out", symlinks=True)
    before = snapshot(tmp_path)
    monkeypatch.setattr(f"s2osc.app.{step}", interrupt)
    assert main(arguments(finished, out, *quick, "--force")) == 130
    assert snapshot(tmp_path) == before


def test_ctrl_c_while_predicting_leaves_no_file(finished, tmp_path, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "table_bytes", interrupt)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={finished / 'pool.npz'}"]
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}"]) == 130
    assert snapshot(tmp_path) == {}


@pytest.fixture
def failing(finished, tmp_path, monkeypatch) -> list[str]:
    """Words for a command that fails in a way nobody foresaw. Logs go to ``logs``."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "logs"))
    monkeypatch.setattr(jobs, "read_items", fail)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={npy(tmp_path / 'a.npy', [[1]])}"]
    return ["predict", *words, f"--out={tmp_path / 'a.csv'}"]


def test_a_failure_nobody_foresaw_is_one_line_and_a_log(failing, tmp_path, capsys):
    assert main(failing) == 1
    printed, errors = capsys.readouterr()
    (log,) = (path for path in (tmp_path / "logs").rglob("*") if path.is_file())
    wanted = "s2osc: stopped by an unexpected error, ZeroDivisionError (two); the traceback is in "
    assert (printed, errors) == ("", f"{wanted}{log}\n")
    first, *_, last, end = log.read_text().splitlines()
    assert shlex.split(first) == ["s2osc", *failing]
    assert (last, end) == ("ZeroDivisionError: two", "lines")


def test_where_no_log_can_be_written_the_end_of_the_traceback_is_printed(failing, tmp_path, capsys):
    text(tmp_path / "logs", "a file")
    assert main(failing) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "the traceback could not be saved" in errors
    assert "it ends in" in errors


def test_an_error_that_ctrl_c_caused_is_an_interruption(finished, tmp_path, monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("could not load")  # noqa: B904

    monkeypatch.setattr(jobs, "read_items", interrupted)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={tmp_path}"]
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}"]) == 130
    assert capsys.readouterr().err == "s2osc: interrupted; no half-written results are left\n"


TAKES_NOTHING = [
    (">&-", 2, "standard output is closed; what was written to files is whole"),
    (">/dev/full", 2, "cannot print: No space left on device; what was written to files "),
    (">&- 2>&-", 2, ""),
    (">/dev/full 2>/dev/full", 2, ""),
    ("| true", 0, ""),
]


@pytest.mark.parametrize(
    ("words", "closed", "code", "line"),
    [
        *(("--help", *case) for case in TAKES_NOTHING),
        ("data list", *TAKES_NOTHING[0]),  # imports numpy before it prints
        *(pytest.param("data list", *case, marks=pytest.mark.slow) for case in TAKES_NOTHING[1:]),
        pytest.param("settings", *TAKES_NOTHING[0], marks=pytest.mark.slow),  # imports torch
    ],
)
def test_an_output_that_takes_nothing_is_one_line(words, closed, code, line):
    command = f'set -o pipefail; "{sys.executable}" -m s2osc {words} {closed}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"s2osc: {line}" if line else "")
    assert done.stderr.count("\n") == bool(line)


# Early and twice, and once while torch is imported, which goes on to its end.
@pytest.mark.slow  # in one process it is quick, below
@pytest.mark.parametrize("gaps", [(0.3, 0.02), (0.8,)])
def test_ctrl_c_is_quiet_while_python_imports(finished, tmp_path, gaps):
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('begun', flush=True); from s2osc.__main__ import run; sys.exit(run())"
    )
    words = arguments(finished, tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "begun\n"
        for gap in gaps:
            time.sleep(gap)
            process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        printed,
        errors.replace("s2osc: interrupted; no half-written results are left\n", ""),
    ) == ("", "")
    assert snapshot(tmp_path) == {}


def test_ctrl_c_waits_for_the_end_of_an_import(tmp_path, monkeypatch):
    sends = "os.kill(os.getpid(), signal.SIGINT)"
    text(
        tmp_path / "slow_to_import.py", "import os, signal, time", sends, "time.sleep(.1)", "n = 1"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def wait() -> None:
        __import__("slow_to_import")
        time.sleep(10)

    former = signal.signal(signal.SIGINT, Interruption()), signal.getsignal(signal.SIGALRM)
    try:
        with pytest.raises(KeyboardInterrupt):
            wait()
    finally:
        signal.signal(signal.SIGINT, former[0])
        signal.signal(signal.SIGALRM, former[1])
    assert sys.modules.pop("slow_to_import").n == 1


def test_ctrl_c_that_waits_for_an_import_is_quiet_where_the_command_ends_first(tmp_path):
    """The command is over before the interruption is looked at again, while Python ends."""
    text(tmp_path / "interrupted.py", "import os, signal", "os.kill(os.getpid(), signal.SIGINT)")
    script = (
        "import atexit, signal, sys, time, s2osc.cli.main, s2osc.__main__ as command\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(time.sleep, .1)\n"
        "s2osc.cli.main.main = lambda: __import__('interrupted') and 0\n"
        "sys.exit(command.run())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_warning_of_ours_is_one_line_without_a_place_in_the_code(monkeypatch, capsys):
    def warn(_):
        warnings.warn("no figure:\ntoo few", S2OSCWarning, stacklevel=1)
        warnings.warn("old", FutureWarning, stacklevel=1)

    monkeypatch.setattr("s2osc.cli.bench.list_bench", warn)
    monkeypatch.setattr("s2osc.cli.main.build_parser", build_parser)  # not one that is built
    with pytest.warns(FutureWarning, match="old"):  # those of others come as ever
        assert main(["bench", "list"]) == 0
    assert capsys.readouterr().err == "s2osc: no figure: too few\n"


POLICY, SPINS = "OMP_WAIT_POLICY", "GOMP_SPINCOUNT"


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, "PASSIVE 30000"),
        ({POLICY: "ACTIVE"}, "ACTIVE None"),
        ({SPINS: "7"}, "PASSIVE 7"),
    ],
)
def test_threads_without_work_wait_shortly_unless_somebody_wants_it_otherwise(given, found):
    script = (
        "import os, sys, s2osc.cli.main; from s2osc.__main__ import run\n"
        f"wanted = {POLICY!r}, {SPINS!r}\n"
        "s2osc.cli.main.main = lambda: print(*map(os.environ.get, wanted)) or 0\n"
        "sys.exit(run())"
    )
    others = {name: value for name, value in os.environ.items() if name not in (POLICY, SPINS)}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=others | given,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == f"{found}\n"


LEAVING = """
import atexit, sys, threading, time
import s2osc.cli.main
from s2osc.__main__ import run
atexit.register(print, "registered")
class Library:
    def __del__(self):
        print("taken apart", flush=True)
library = Library()
def work_on():
    time.sleep(0.3)
    print("worked on", flush=True)
{begin}
s2osc.cli.main.main = lambda: print("done") or 3
sys.exit(run())
"""


@pytest.mark.parametrize(
    ("begin", "printed"),
    [
        ("", "done\nregistered\n"),
        ("threading.Thread(target=work_on, daemon=True).start()", "done\nregistered\n"),
        (
            "threading.Thread(target=work_on).start()",
            "done\nworked on\nregistered\ntaken apart\n",
        ),
    ],
)
def test_a_command_that_is_done_ends_without_taking_its_libraries_apart(begin, printed):
    command = [sys.executable, "-c", LEAVING.format(begin=begin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, printed, "")
