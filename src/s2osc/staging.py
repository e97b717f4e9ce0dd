"""Results appear whole or not at all: written beside their place, then moved into it."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from s2osc.errors import OutputError

FOLDER_CONTENTS = (
    *("predictions.csv", "predictions.parquet", "summary.json"),
    *("report.html", "skipped.csv", "model"),
)
"""What a run may leave in its folder; nothing else there is ever touched."""


def check_target(out: Path, *, force: bool) -> None:
    """Refuse a place that holds results, or that cannot hold any, before any work is done."""
    if out.is_dir():
        held = [name for name in FOLDER_CONTENTS if (out / name).exists()]
        if held and not force:
            raise OutputError(
                f"{out} holds results already ({', '.join(held)}); "
                "give another folder, or --force to replace them"
            )
    elif out.exists():
        raise OutputError(f"{out} is a file; give a folder")


def check_file_target(out: Path, *, force: bool) -> None:
    """The same for a result that is one file."""
    if out.is_dir():
        raise OutputError(f"{out} is a folder; give a file name ending in .csv or .parquet")
    if out.exists() and not force:
        raise OutputError(f"{out} is there already; give another name, or --force to replace it")


@contextmanager
def staged_folder(out: Path) -> Iterator[Path]:
    """A folder to write into; what it holds moves to ``out`` when the block ends well.

    After an error or an interruption nothing is left behind and ``out`` is as it was.
    """
    with _stage_beside(out) as stage:
        yield stage
        if not out.exists():
            stage.rename(out)
            return
        # Results of an earlier run go first: files of two runs must not stand side by side.
        for name in FOLDER_CONTENTS:
            _remove(out / name)
        for path in stage.iterdir():
            path.rename(out / path.name)


@contextmanager
def staged_file(out: Path) -> Iterator[Path]:
    """A path to write to; the file moves to ``out`` when the block ends well."""
    with _stage_beside(out) as stage:
        yield stage / out.name
        (stage / out.name).replace(out)


@contextmanager
def _stage_beside(out: Path) -> Iterator[Path]:
    """A temporary folder on the same disk as ``out``, gone afterwards whatever happens."""
    parent = out.absolute().parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=parent))
        stage.chmod(0o755)
        try:
            yield stage
        finally:
            shutil.rmtree(stage, ignore_errors=True)
    except OSError as error:
        raise OutputError(
            f"cannot write to {out}: {error.strerror or error}; "
            "nothing was kept: make room or give another place"
        ) from error


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        with suppress(FileNotFoundError):
            path.unlink()
