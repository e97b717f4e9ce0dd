"""One command in this process, watched: did it work, was it refused properly, or neither?"""

import contextlib
import faulthandler
import io
import os
import signal
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from s2osc.cli.main import main

PATIENCE = 30.0
"""Seconds after which a command hangs. None here needs more than a few, on a free machine."""


@dataclass(frozen=True)
class Outcome:
    kind: str  # worked, refused, crashed, hung or lost
    detail: str = ""

    @property
    def is_fine(self) -> bool:
        return self.kind in ("worked", "refused")


def outcome_of(words: Sequence[str], sandbox: Path, precious: Sequence[str] = ()) -> Outcome:
    """Run a command in a folder. Files below ``precious`` must stay unless it works."""
    before = contents(sandbox, precious)
    errors, is_late = io.StringIO(), []

    def late(*_: object) -> None:
        is_late.append(True)
        raise TimeoutError

    # Code of a library may hang where no signal is looked at; then the whole process ends.
    faulthandler.dump_traceback_later(2 * PATIENCE, exit=True)
    former = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE, 1)
    try:
        with contextlib.chdir(sandbox), warnings.catch_warnings():
            warnings.simplefilter("default")
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                code = main(words)
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    said = errors.getvalue()
    if is_late:
        return Outcome("hung", f"more than {PATIENCE:.0f} s: {said}")
    if code == 0:
        return Outcome("worked")
    if code != 2 or not said.startswith("s2osc: ") or said.count("\n") != 1:
        return Outcome("crashed", f"exit code {code}: {said}{newest_log()}")
    lost = sorted(
        name for name, content in before.items() if contents_of(sandbox / name) != content
    )
    if lost:
        return Outcome("lost", f"{', '.join(lost)} changed, though it was refused: {said}")
    return Outcome("refused", said)


def contents(sandbox: Path, names: Sequence[str]) -> dict[str, bytes | None]:
    """Every file below some names of a folder."""
    found = {}
    for name in names:
        for path in (sandbox / name).rglob("*") if (sandbox / name).is_dir() else (sandbox / name,):
            if not path.is_dir():
                found[path.relative_to(sandbox).as_posix()] = contents_of(path)
    return found


def contents_of(path: Path) -> bytes | None:
    """The bytes of a plain file, None for what is none or is not there."""
    with contextlib.suppress(OSError):
        if path.is_file():
            return path.read_bytes()
    return None


def newest_log() -> str:
    """The traceback that a crash left."""
    logs = sorted(Path(os.environ["XDG_STATE_HOME"]).rglob("*.log"), key=os.path.getmtime)
    return "\n" + logs[-1].read_text(encoding="utf-8") if logs else ""
