"""What a kill -9 leaves, at every call of a command that changes the disk.

Python's audit hook sees each call before it is made, so new calls are covered without a list.
``images_of`` copies the folder at each of them: the disk is what another process would find, had
this one been killed there. ``killed_at`` does kill a process, at the n-th of them.
"""

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

CHANGES = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_on_change: Callable[[], None] | None = None


def _hook(event: str, values: tuple[Any, ...]) -> None:
    if _on_change is None:
        return
    if event in CHANGES or (event == "open" and _writes(*values)):
        _on_change()


def _writes(path: Any, mode: Any, flags: int) -> bool:
    return bool(flags & WRITING) and not str(path).startswith("/dev/")


@contextlib.contextmanager
def at_each_change(act: Callable[[], None]) -> Iterator[None]:
    """Call ``act`` before every change that this process makes to the disk."""
    global _on_change
    if not getattr(sys, "_fuzz_hook", False):  # a hook cannot be taken back
        sys.addaudithook(_hook)
        sys._fuzz_hook = True  # type: ignore[attr-defined]

    def once() -> None:
        global _on_change  # noqa: PLW0603
        _on_change = None  # what ``act`` itself does is no change of the command
        try:
            act()
        finally:
            _on_change = once

    former = os.fsync

    def fsync(number: Any) -> None:
        if _on_change is not None:  # there is no audit event for it
            _on_change()
        former(number)

    os.fsync, _on_change = fsync, once
    try:
        yield
    finally:
        os.fsync, _on_change = former, None


def images_of(run: Callable[[], None], folder: Path, images: Path) -> list[Path]:
    """Copies of ``folder`` as it was before each change, without those that are alike."""
    found: list[Path] = []
    states = set()

    def copy() -> None:
        state = state_of(folder)
        if state not in states:
            states.add(state)
            found.append(shutil.copytree(folder, images / str(len(found)), symlinks=True))

    with at_each_change(copy):
        run()
    return found


def state_of(folder: Path) -> tuple[tuple[str, bytes | str | None], ...]:
    """Everything below a folder: the bytes of files, where links lead, None for folders."""

    def content(path: Path) -> bytes | str | None:
        if path.is_symlink():
            return os.readlink(path)
        return path.read_bytes() if path.is_file() else None

    paths = sorted(folder.rglob("*"))
    return tuple((str(path.relative_to(folder)), content(path)) for path in paths)


def killed_at(number: int, run: Callable[[], None]) -> bool:
    """Run in a process of its own, killed at its n-th change; whether it got that far."""
    child = os.fork()
    if child == 0:
        left = number

        def count() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        with contextlib.suppress(BaseException), at_each_change(count):
            run()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
