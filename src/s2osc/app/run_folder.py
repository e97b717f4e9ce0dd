"""The results of a pool that is read in parts, written while they come.

    OUT/predictions/part-00000.parquet   the answers of one part, whole or not there
    OUT/model/                           the model, as `s2osc predict` takes it
    OUT/summary.json                     when everything is done
    OUT/skipped.csv                      items that could not be read, where there are any
    OUT/run.json                         which run this is: of what, with which settings
    OUT/work/                            what a stopped run goes on from; it goes in the end

A run that finds its own ``run.json`` goes on where it was. Another one is refused. Names in
``work`` hold a mark of the files of the pool: what was made of a file that was mended since is made
again.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from numpy.lib.format import header_data_from_array_1_0, write_array_header_1_0

from s2osc.codec import JsonObject
from s2osc.errors import OutputError
from s2osc.files import (
    as_json,
    check_folder,
    guarded,
    lock,
    made_folders,
    part_of,
    read_json,
    sync_folder,
    write_whole,
    writing,
)

RUN, WORK, PREDICTIONS, LOCK = "run.json", "work", "predictions", ".lock"
MANIFEST = "written.txt"  # in the work folder: the names of our files there, one on each line
SUMMARY, MODEL = "summary.json", "model"
FORMAT = 1
ROWS_OF_GROUP = 32_768
"""Of answers in a Parquet file: what readers take at once, and columns are compressed by."""
Use = Literal["judged", "sample"]
"""What rows of the pool are drawn for: to judge the fit, or to be fitted on."""
GOES_ON = "what is done stays; make room and run the same command again to go on"
ANOTHER = "give another folder, or --force to begin anew"


def fingerprint(facts: JsonObject) -> str:
    """A digest of what a run is of."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, which is held by it."""

    out: Path

    @property
    def work(self) -> Path:
        return self.out / WORK

    @property
    def model(self) -> Path:
        return self.out / MODEL

    def predictions(self, number: int) -> Path:
        return self.out / PREDICTIONS / f"part-{number:05}.parquet"

    def decision(self, mark: str) -> Path:
        return self.work / f"decision-{mark}.json"

    def counts(self, number: int, mark: str) -> Path:
        """What a part came to, written after its answers."""
        return self.work / f"counts-{number:05}-{mark}.json"

    def strata(self, number: int, mark: str) -> Path:
        return self.work / f"strata-{number:05}-{mark}.npy"

    def list_work(self, path: Path) -> Path:
        """Write the name of a file of ours into the manifest, before the file itself."""
        with (self.work / MANIFEST).open("a", encoding="utf-8") as file:
            file.write(f"{path.name}\n")
        return path

    def save_json(self, path: Path, value: JsonObject) -> None:
        write_whole(self.list_work(path), as_json(value))

    def save_strata(self, number: int, mark: str, strata: np.ndarray) -> None:
        with writing(self.out, GOES_ON):
            write_array(self.list_work(self.strata(number, mark)), strata)

    def drawn(self, use: Use, number: int, mark: str, what: str = "rows") -> Path:
        """The ``rows`` of a part that were drawn for a use, or their ``inputs``."""
        return self.work / f"{use}-{number:05}-{mark}-{what}.npy"

    def save_drawn(
        self,
        use: Use,
        number: int,
        mark: str,
        rows: Sequence[np.ndarray],
        inputs: Sequence[np.ndarray],
    ) -> None:
        """Those of each batch, which are not joined in memory: a part of a sample may be large."""
        if not rows:
            return
        with writing(self.out, GOES_ON):
            for what, values in (("inputs", inputs), ("rows", rows)):
                write_array(self.list_work(self.drawn(use, number, mark, what)), *values)

    def read_drawn(self, use: Use, number: int, mark: str) -> tuple[np.ndarray, np.ndarray] | None:
        """Rows of the pool and their inputs; None: no row of the part was drawn."""
        places = [self.drawn(use, number, mark, what) for what in ("rows", "inputs")]
        if not places[0].is_file():
            return None
        with guarded(places[0], "run the same command with --force"):
            rows, inputs = (np.load(place, allow_pickle=False) for place in places)
        return rows, inputs

    def remove_drawn(self, use: Use, number: int, mark: str) -> None:
        """Where the fit is on the disk, what it was made of need not be."""
        for what in ("rows", "inputs"):
            self.drawn(use, number, mark, what).unlink(missing_ok=True)

    def read_strata(self, number: int, mark: str) -> np.ndarray:
        path = self.strata(number, mark)
        with guarded(path, "remove it, and run the same command again"):
            return np.load(path, allow_pickle=False)

    def finish(self) -> None:
        """Remove what only a stopped run needs: the files in the manifest, and no others."""
        manifest = self.work / MANIFEST
        if manifest.is_file():
            for name in manifest.read_text(encoding="utf-8").splitlines():
                path = self.work / Path(name).name
                for ours in (path, part_of(path)):
                    ours.unlink(missing_ok=True)
            manifest.unlink()
        with suppress(OSError):  # it holds files of somebody else, or is not there
            self.work.rmdir()


def write_array(path: Path, *chunks: np.ndarray) -> None:
    """Write chunks of rows as one ``.npy`` file, whole or not at all.

    Not by ``np.save``, which says of a full disk only how many numbers it took.
    """
    header = header_data_from_array_1_0(np.ascontiguousarray(chunks[0]))
    header["shape"] = (sum(map(len, chunks)), *chunks[0].shape[1:])
    part = part_of(path)
    try:
        with part.open("wb") as file:
            write_array_header_1_0(file, header)
            for chunk in chunks:
                file.write(np.ascontiguousarray(chunk).data)
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


@contextmanager
def written_table(path: Path) -> Iterator["TableWriter"]:
    """A Parquet file that gathers table by table, and takes its place at the end."""
    part = part_of(path)
    writer = TableWriter(part)
    try:
        yield writer
        if writer.close():
            os.replace(part, path)
    except BaseException:
        with suppress(Exception):
            writer.close()
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


class TableWriter:
    """Writes tables of the same columns one after another, small ones together."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file: BinaryIO | None = None
        self.writer: Any = None  # made with the first table, which has the columns
        self.waiting: list[pa.Table] = []

    def write(self, table: pa.Table) -> None:
        self.waiting.append(table)
        if sum(map(len, self.waiting)) >= ROWS_OF_GROUP:
            self._write_group()

    def _write_group(self) -> None:
        group, self.waiting = pa.concat_tables(self.waiting), []
        if self.writer is None:
            self.file = self.path.open("wb")  # Arrow opens no name that is not UTF-8
            self.writer = pyarrow.parquet.ParquetWriter(self.file, group.schema)
        self.writer.write_table(group)

    def close(self) -> bool:
        """Put the file on the disk; False where nothing was written."""
        if self.waiting:
            self._write_group()
        if self.file is None:
            return False
        with self.file as file:
            if self.writer is not None:
                self.writer.close()
            file.flush()
            os.fsync(file.fileno())
        self.file = self.writer = None
        return True


@contextmanager
def run_folder(out: Path, facts: JsonObject, *, n_parts: int, force: bool) -> Iterator[RunFolder]:
    """Hold the folder of a run, new or stopped before."""
    check_folder(out)
    busy = f"another process writes to {out}; wait until it is done, or give another folder"
    with made_folders(out), lock(out / LOCK, busy, remove=True):
        folder = RunFolder(out)
        with writing(out, "give another folder"):
            _begin(folder, facts, n_parts, force=force)
        yield folder


def _begin(folder: RunFolder, facts: JsonObject, n_parts: int, *, force: bool) -> None:
    out, mark = folder.out, fingerprint(facts)
    others = sorted(path.name for path in out.iterdir() if path.name != LOCK)
    if (out / RUN).is_file():
        before = read_json(out / RUN, ANOTHER, OutputError)
        is_same, is_done = before.get("fingerprint") == mark, (out / SUMMARY).is_file()
        if is_same and not is_done and not force:
            return
        if not force:
            what = "the results of a run" if is_done else "a stopped run of other data or settings"
            raise OutputError(f"{out} holds {what}; {ANOTHER}")
        _remove(folder, int(before.get("n_parts", 0)))
    elif others:
        raise OutputError(f"{out} holds {others[0]}, which is of no such run; give another folder")
    for place in (folder.work, out / PREDICTIONS):
        place.mkdir(parents=True, exist_ok=True)
    write_whole(
        out / RUN,
        as_json({"format": FORMAT, "fingerprint": mark, "n_parts": n_parts, "facts": facts}),
    )


def _remove(folder: RunFolder, n_parts: int) -> None:
    """Remove the files of an earlier run, by their names."""
    folder.finish()
    for number in range(n_parts):
        folder.predictions(number).unlink(missing_ok=True)
    for name in (
        SUMMARY,
        "skipped.csv",
        RUN,
        f"{MODEL}/model.json",
        f"{MODEL}/weights.safetensors",
    ):
        (folder.out / name).unlink(missing_ok=True)
