"""Places for what a job hands on: one file, or one folder of files.

Either is there whole or not at all, and nothing that is there is replaced without ``force``. A
folder is replaced only if it holds what an earlier job wrote there, and nothing else.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from s2osc.errors import OutputError
from s2osc.files import (
    as_json,
    check_folder,
    guarded,
    lock,
    made_folders,
    read_json,
    sync_folder,
    sync_tree,
    write_whole,
    writing,
)

LIST = ".s2osc-export.json"
"""The files of a folder that we wrote: with others in it, it is not replaced."""
MAKE_ROOM = "make room, or give another place"


@contextmanager
def result_file(
    out: Path, *, force: bool, wanted: str = ".csv or .parquet"
) -> Iterator[Callable[[bytes], None]]:
    """Hold the place of a result that is one file; gives the function that writes it.

    The lock lies beside it meanwhile. ``wanted`` is how its name may end.
    """
    if out.is_dir():
        raise OutputError(f"{out} is a folder; give a file name ending in {wanted}")

    def write(content: bytes) -> None:
        refuse_earlier(out, force=force)
        with writing(out, MAKE_ROOM):
            write_whole(out, content)

    with _held(out):
        refuse_earlier(out, force=force)
        yield write


@contextmanager
def result_files(out: Path, *, force: bool) -> Iterator[Path]:
    """A folder to write files into, which becomes ``out`` at the end."""
    if os.path.lexists(out) and not out.is_dir():
        raise OutputError(f"{out} is a file; give a folder")
    stage, before = (out.with_name(f".{out.name}.s2osc-{kind}") for kind in ("part", "old"))
    with _held(out):
        with writing(out, MAKE_ROOM):
            _tidy(out, stage, before)
            refuse_earlier(out, force=force)
            refuse_others(out)
            stage.mkdir()
        try:
            yield stage
            with writing(out, MAKE_ROOM):
                names = sorted(files_below(stage))
                write_whole(stage / LIST, as_json({"files": names}))
                sync_tree(stage)
                refuse_earlier(out, force=force)
                refuse_others(out)
                if out.exists():
                    out.rename(before)
                stage.rename(out)
                sync_folder(out.parent)
        finally:
            _tidy(out, stage, before)


def _tidy(out: Path, stage: Path, before: Path) -> None:
    """Put back what a process left between the two renames, and remove the rest."""
    if before.is_dir() and not out.exists():
        before.rename(out)
    for left in (stage, before):
        shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _held(out: Path) -> Iterator[None]:
    """The lock of a place, in a folder that is made for it."""
    check_folder(out.parent)
    held, busy = out.with_name(f".{out.name}.s2osc-lock"), f"another process writes {out}"
    with (
        made_folders(out.parent),
        lock(held, f"{busy}; wait until it is done, or give another name", remove=True),
    ):
        yield


def refuse_earlier(out: Path, *, force: bool) -> None:
    if os.path.lexists(out) and not force:
        raise OutputError(f"{out} is there already; give another name, or --force to replace it")


def refuse_others(out: Path) -> None:
    """Refuse to replace a folder that holds anything that we did not write."""
    if not out.exists():
        return
    if not (out / LIST).is_file():
        raise OutputError(f"{out} was not written by `s2osc export`; give another folder")
    listed = read_json(out / LIST, "give another folder", OutputError)
    with guarded(out / LIST, "give another folder", OutputError):
        ours = {LIST, *listed["files"]}
    others = sorted(files_below(out) - ours)
    if others:
        raise OutputError(
            f"{out} holds {others[0]}, which s2osc did not write; move it, or give another folder"
        )


def files_below(folder: Path) -> set[str]:
    """Files and links by their path in the folder."""
    return {
        Path(place, name).relative_to(folder).as_posix()
        for place, folders, names in os.walk(folder)
        for name in [*names, *(each for each in folders if Path(place, each).is_symlink())]
    }
