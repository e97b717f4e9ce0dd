"""Results appear whole or not at all: written to one side, then moved into their place."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock

from s2osc.errors import OutputError

RESULTS = (
    *("predictions.csv", "predictions.parquet", "summary.json", "report.html", "skipped.csv"),
    *("scores.parquet", "seeds.parquet", "report.safetensors"),
    *("model/model.json", "model/weights.safetensors"),
)
"""What a run may leave in its folder; nothing else there is ever touched."""
STAGE, LOCK, OWNED = ".s2osc-", ".lock", ".owned"
"""How temporary folders begin; the lock their process holds, and a sign that it does."""


def check_target(out: Path, *, force: bool) -> None:
    """Refuse a place that holds results, or that cannot hold any, before any work is done."""
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file; give a folder")
    held = [name for name in RESULTS if (out / name).exists()]
    if held and not force:
        raise OutputError(
            f"{out} holds results already ({', '.join(held)}); "
            "give another folder, or --force to replace them"
        )
    _check_may_write(out)


def check_file_target(out: Path, *, force: bool) -> None:
    """The same for a result that is one file."""
    if out.is_dir():
        raise OutputError(f"{out} is a folder; give a file name ending in .csv or .parquet")
    if out.exists() and not force:
        raise OutputError(f"{out} is there already; give another name, or --force to replace it")
    _check_may_write(out.parent)


def _check_may_write(folder: Path) -> None:
    """Refuse a folder that can be neither written to nor made."""
    folder = folder.absolute()
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise OutputError(f"{nearest} is a file, so {folder} cannot be made; give another place")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise OutputError(f"{nearest} may not be written to; give a place where you may write")


@contextmanager
def staged_folder(out: Path) -> Iterator[Path]:
    """A folder to write into; what it holds moves to ``out`` when the block ends well.

    After an error or an interruption nothing is left behind and ``out`` is as it was.
    """
    # A folder that is there may be a disk of its own, and only within one disk can files be moved.
    with _stage_in(out if out.is_dir() else out.parent, out) as stage:
        new = stage / "new"
        new.mkdir()
        yield new
        if out.is_dir():
            # All earlier results go: files of two runs must not stand side by side.
            _exchange(out, new, stage / "old", RESULTS)
        else:
            new.rename(out)


@contextmanager
def staged_update(out: Path) -> Iterator[Path]:
    """The same for a few new files: they take the place of earlier ones, and all others stay."""
    with _stage_in(out, out) as stage:
        new = stage / "new"
        new.mkdir()
        yield new
        names = [path.relative_to(new).as_posix() for path in new.rglob("*") if path.is_file()]
        _exchange(out, new, stage / "old", names)


@contextmanager
def staged_file(out: Path) -> Iterator[Path]:
    """A path to write to; the file moves to ``out`` when the block ends well."""
    with _stage_in(out.parent, out) as stage:
        yield stage / out.name
        (stage / out.name).replace(out)


@contextmanager
def _stage_in(folder: Path, out: Path) -> Iterator[Path]:
    """A temporary folder in ``folder``, for ``out``; gone afterwards whatever happens."""
    folder = folder.absolute()
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        stage = Path(tempfile.mkdtemp(prefix=STAGE, dir=folder))
        lock = _own(stage)
        try:
            yield stage
        finally:
            lock.release()
            shutil.rmtree(stage, ignore_errors=True)
            for path in made:  # those that hold results by now stay
                with suppress(OSError):
                    path.rmdir()
    except OSError as error:
        raise OutputError(
            f"cannot write to {out}: {error.strerror or error}; "
            "nothing was kept: make room or give another place"
        ) from error


def _own(stage: Path) -> FileLock:
    """Hold a lock in a stage for as long as its process lives."""
    lock = FileLock(stage / LOCK, timeout=0)
    with suppress(OSError, NotImplementedError):  # a disk without locks: the stage is never swept
        lock.acquire()
        (stage / OWNED).touch()
    return lock


def _sweep(folder: Path) -> None:
    """Remove stages of processes that were killed.

    The lock of such a process is free. One killed while files were being exchanged may have left
    the only copy of a user's earlier results under ``old``: that stage stays.
    """
    for stage in folder.glob(f"{STAGE}*"):
        with suppress(OSError, NotImplementedError):  # held, or of another user
            if not (stage / OWNED).is_file() or any((stage / "old").glob("**/*")):
                continue
            with FileLock(stage / LOCK, timeout=0):
                (stage / OWNED).unlink()
            shutil.rmtree(stage, ignore_errors=True)


def _exchange(out: Path, new: Path, old: Path, leaving: Sequence[str]) -> None:
    """Move the files that leave out and new ones in, or leave everything as it was."""
    moves = [(out / name, old / name) for name in leaving if (out / name).exists()]
    moves += [(path, out / path.relative_to(new)) for path in new.rglob("*") if path.is_file()]
    done = []
    try:
        for source, target in moves:
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            done.append((source, target))
    except BaseException:
        for source, target in reversed(done):
            target.rename(source)
        raise
