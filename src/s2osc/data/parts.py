"""Pools that are read in parts: files that together may be larger than memory.

    Parquet     a file, a folder, a glob, or an address such as s3://bucket/pool/*.parquet
    .npy        an array of vectors or images, mapped into memory
    images      a folder
    WebDataset  .tar files: one, a folder of them, a glob, an address

Every part is a run of rows of one file; it is read in batches, answered and written by itself. Rows
are numbered through all files, in the order of their names.
"""

import hashlib
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from s2osc.arrays import chunks
from s2osc.data.columns import Table
from s2osc.data.images import find_images, is_hidden, is_image_name
from s2osc.data.inputs import Source
from s2osc.data.parquet_damage import DamageCheck
from s2osc.data.tables import as_inputs, table_contents, with_usual_names
from s2osc.errors import DataError
from s2osc.files import check_regular, guarded, reason
from s2osc.text import clean_items, listed

Form = Literal["parquet", "npy", "images", "tar"]
SUFFIXES: dict[str, Form] = {".parquet": "parquet", ".npy": "npy", ".tar": "tar"}
ROWS_OF_PART: dict[Form, int] = {
    "parquet": 131_072,
    "npy": 131_072,
    "images": 4_096,
    "tar": 4_096,
}
"""Rows that are answered and written together, about: what a stopped run does again, at most."""
BATCH_ROWS: dict[Form, int] = {"parquet": 4_096, "npy": 4_096, "images": 512, "tar": 512}
"""Rows in memory at once: 2 MB of vectors of 128 numbers, 77 MB of photos of 224 pixels. What f and
g make of so many vectors stays in the cache of a core, which four times as many overflow."""
ADVICE = "give files that can be read, or take this one away; parts that are done stay"


class Part(NamedTuple):
    """A run of rows."""

    number: int
    file: int  # which file
    first: int  # its first row, in the pool
    n: int
    pieces: tuple[int, ...]  # row groups of a Parquet file; else its first row in the file


class Member(NamedTuple):
    """An image in a .tar file."""

    name: str
    start: int  # byte of its content
    size: int


@dataclass(frozen=True)
class PartedPool:
    """A pool as parts, of which none is in memory."""

    address: str
    form: Form
    files: tuple[str, ...]  # paths or addresses, sorted
    stamps: tuple[str, ...]  # of each file, to know it again; none of images
    parts: tuple[Part, ...]
    text_column: str | None = None
    members: tuple[tuple[Member, ...], ...] = ()  # of each .tar file
    batch_rows: int = 4_096

    @property
    def n(self) -> int:
        return sum(part.n for part in self.parts)

    def mark(self, part: Part | None = None) -> str:
        """A digest of the file of a part, or of all files, as they are now."""
        stamps = self.stamps if part is None else self.stamps[part.file : part.file + 1]
        return hashlib.sha256("\n".join(stamps).encode()).hexdigest()[:8]

    def first_batch(self) -> Source:
        """The first rows, which tell what kind of items these are."""
        return next(self.batches(self.parts[0]))

    def batches(self, part: Part, rows: np.ndarray | None = None) -> Iterator[Source]:
        """The rows of a part, some at a time; ``rows`` of the pool, sorted: those of it alone.

        Of images nothing else is read then.
        """
        if self.form in ("images", "tar"):
            wanted = np.arange(part.first, part.first + part.n) if rows is None else rows
            return (self._image_batches if self.form == "images" else self._tar_batches)(
                part, wanted
            )
        batches = (self._parquet_batches if self.form == "parquet" else self._array_batches)(part)
        return batches if rows is None else _kept(batches, part.first, rows)

    def whole(self) -> Source:
        """All rows as one source, of a pool that fits into memory."""
        sources = [source for part in self.parts for source in self.batches(part)]
        return join_sources(sources, self.address)

    def _parquet_batches(self, part: Part) -> Iterator[Source]:
        name, first = self.files[part.file], part.first
        with guarded(Path(name), ADVICE), opened(name) as file:
            parquet = pyarrow.parquet.ParquetFile(file, page_checksum_verification=True)
            check = DamageCheck(parquet, part.pieces)
            for batch in parquet.iter_batches(self.batch_rows, row_groups=list(part.pieces)):
                check.see(batch)
                table = with_usual_names(pa.Table.from_batches([batch]))
                found = table_contents(table, Path(name), self.text_column, first=first)
                first += len(found.names)
                yield Source(
                    Path(name), *found, text_column=self.text_column or "text", is_batch=True
                )

    def _array_batches(self, part: Part) -> Iterator[Source]:
        path = Path(self.files[part.file])
        with guarded(path, ADVICE):
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            for start in range(part.pieces[0], part.pieces[0] + part.n, self.batch_rows):
                end = min(start + self.batch_rows, part.pieces[0] + part.n)
                names = [str(part.first + row - part.pieces[0]) for row in range(start, end)]
                values = as_inputs(np.array(array[start:end]), str(path))
                yield Source(path, names, values, is_batch=True)

    def _image_batches(self, part: Part, rows: np.ndarray) -> Iterator[Source]:
        folder = Path(self.address)
        for batch in chunks(len(rows), self.batch_rows):
            files = [Path(self.files[row]) for row in rows[batch]]
            names = clean_items(file.relative_to(folder).as_posix() for file in files)
            yield Source(folder, names, files, is_batch=True)

    def _tar_batches(self, part: Part, rows: np.ndarray) -> Iterator[Source]:
        name, members = self.files[part.file], self.members[part.file]
        places = rows - part.first + part.pieces[0]
        with guarded(Path(name), ADVICE), opened(name) as file:
            for batch in chunks(len(places), self.batch_rows):
                chosen = [members[place] for place in places[batch]]
                content = [_read_member(file, member) for member in chosen]
                names = clean_items(f"{Path(name).name}/{member.name}" for member in chosen)
                yield Source(Path(name), names, content, is_batch=True)


def _kept(batches: Iterator[Source], first: int, rows: np.ndarray) -> Iterator[Source]:
    """Of batches that begin with a row of the pool, the rows that are wanted, sorted."""
    for source in batches:
        low, high = np.searchsorted(rows, [first, first + len(source.names)])
        if low < high:
            yield source.keep(rows[low:high] - first)
        first += len(source.names)


def join_sources(sources: Sequence[Source], address: str) -> Source:
    """Batches of one pool as one source."""
    names = [name for source in sources for name in source.names]
    contents: list[Any] = [source.content for source in sources]
    content: Any
    if isinstance(contents[0], np.ndarray):
        content = np.concatenate(contents)
    elif isinstance(contents[0], Table):
        columns = contents[0].columns
        content = Table({n: np.concatenate([c.columns[n] for c in contents]) for n in columns})
    else:
        content = [item for each in contents for item in each]
    labels = None
    if any(source.labels for source in sources):
        labels = [label for s in sources for label in s.labels or [""] * len(s.names)]
    return replace(
        sources[0],
        path=Path(address),
        names=names,
        content=content,
        labels=labels,
        is_batch=False,
    )


def is_parted(address: Path | str) -> bool:
    """Whether a pool has a form that is always read in parts.

    >>> is_parted("s3://bucket/pool"), is_parted("pool/*.parquet"), is_parted("pool.csv")
    (True, True, False)
    """
    text = str(address)
    if "://" in text or text.endswith(".tar"):
        return True
    if os.path.isdir(text):
        return bool(_files_in(text)) and not find_images(Path(text))
    return has_magic(text) and not os.path.exists(text)


def open_parts(
    address: Path | str, text_column: str | None = None, *, batch_rows: int | None = None
) -> PartedPool:
    """Find the files of a pool and their rows. No row is read."""
    text = str(address)
    files = _find_files(text)
    suffixes = {Path(name).suffix.lower() for name in files}
    form: Form = "images"
    if suffixes <= set(SUFFIXES):
        if len(suffixes) > 1:
            raise DataError(
                f"{text} holds files of several kinds ({listed(sorted(suffixes))}); give one kind"
            )
        form = SUFFIXES[suffixes.pop()]
    members: tuple[tuple[Member, ...], ...] = ()
    if form == "parquet":
        parts = _parts_of_parquet(files)
    elif form == "tar":
        members = tuple(_members(name) for name in files)
        parts = _runs([len(found) for found in members], ROWS_OF_PART[form])
    elif form == "npy":
        parts = _runs([_n_rows(Path(name)) for name in files], ROWS_OF_PART[form])
    else:
        parts = _runs_of_files(len(files), ROWS_OF_PART[form])
    if not parts:
        raise DataError(f"{text} is empty; it holds no items")
    return PartedPool(
        address=text,
        form=form,
        files=tuple(files),
        stamps=tuple(_stamp(name) for name in files) if form != "images" else (),
        parts=tuple(parts),
        text_column=text_column,
        members=members,
        batch_rows=batch_rows or BATCH_ROWS[form],
    )


def count_rows(path: Path) -> int:
    """Rows of a Parquet or .npy file, or images of a folder, from headers alone; 0 of others.

    Also 0 of a file whose header is damaged: whoever reads it says what is wrong.
    """
    if os.path.isdir(path):
        return len(find_images(path))
    if not os.path.isfile(path):
        return 0
    with suppress(Exception):
        if path.suffix.lower() == ".npy":
            return _n_rows(path)
        if path.suffix.lower() == ".parquet":
            with opened(str(path)) as file:
                return int(pyarrow.parquet.ParquetFile(file).metadata.num_rows)
    return 0


# --- finding files ---------------------------------------------------------------------------


def _find_files(address: str) -> list[str]:
    """The files of a pool, sorted by name: of one address, folder or glob."""
    if "://" in address:
        return _find_remote(address)
    if os.path.isdir(address):
        return _files_in(address) or [str(file) for file in find_images(Path(address))]
    if has_magic(address) and not os.path.exists(address):
        found = sorted(name for name in glob(address, recursive=True) if os.path.isfile(name))
        if not found:
            raise DataError(f"no file is named like {address}; check the pattern")
        return found
    check_regular(Path(address))
    if Path(address).suffix.lower() not in SUFFIXES:
        raise DataError(f"{address} is not read in parts; give .parquet, .npy or .tar files")
    return [address]


def _files_in(folder: str) -> list[str]:
    """The Parquet or .tar files below a folder, sorted; none: it holds others."""
    found = [
        os.path.join(place, name)
        for place, _, names in os.walk(folder)
        for name in names
        if Path(name).suffix.lower() in (".parquet", ".tar") and not is_hidden(name)
    ]
    return sorted(found)


def _find_remote(address: str) -> list[str]:
    """Files at an address that a driver of fsspec knows."""
    from fsspec.core import url_to_fs  # noqa: PLC0415  (few pools lie elsewhere)

    try:
        system, path = url_to_fs(address)
        if has_magic(path):
            found = system.glob(path)
        elif system.isdir(path):
            found = [name for name in system.find(path) if Path(name).suffix in SUFFIXES]
        else:
            found = [path] if system.exists(path) else []
        names = sorted(system.unstrip_protocol(name) for name in found)
    except Exception as error:  # any: every driver has errors of its own
        raise DataError(
            f"{address} cannot be reached ({reason(error)}); check the address, and that its "
            "driver is installed and may read there"
        ) from error
    if not names:
        raise DataError(f"there is no file at {address}; give .parquet or .tar files")
    return names


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file here or elsewhere, to read from."""
    if "://" in name:
        import fsspec  # noqa: PLC0415

        with fsspec.open(name, "rb") as file:
            yield file
    else:
        with open(name, "rb") as file:
            yield file


def _stamp(name: str) -> str:
    """What tells a file from a later one of the same name: its size, and when it was changed."""
    if "://" in name:
        from fsspec.core import url_to_fs  # noqa: PLC0415

        system, path = url_to_fs(name)
        about = system.info(path)
        return f"{about.get('size')} {about.get('mtime') or about.get('LastModified')}"
    found = os.stat(name)
    return f"{found.st_size} {found.st_mtime_ns}"


# --- rows of files ---------------------------------------------------------------------------


def _parts_of_parquet(files: Sequence[str]) -> list[Part]:
    """Row groups that make up a part each; all files must have the same columns."""
    parts: list[Part] = []
    first, wanted = 0, None
    for number, name in enumerate(files):
        with guarded(Path(name), ADVICE), opened(name) as file:
            parquet = pyarrow.parquet.ParquetFile(file)
            about, columns = parquet.metadata, parquet.schema_arrow
            sizes = [about.row_group(i).num_rows for i in range(about.num_row_groups)]
        found = {field.name: field.type for field in columns}
        wanted = found if wanted is None else wanted
        if found != wanted:
            _refuse_columns(name, found, files[0], wanted)
        group: list[int] = []
        n = 0
        for i, size in enumerate(sizes):
            group.append(i)
            n += size
            if n and (n >= ROWS_OF_PART["parquet"] or i == len(sizes) - 1):
                parts.append(Part(len(parts), number, first, n, tuple(group)))
                first, group, n = first + n, [], 0
    return parts


def _refuse_columns(
    name: str, found: dict[str, pa.DataType], first: str, wanted: dict[str, pa.DataType]
) -> None:
    differ = sorted(
        each for each in {*found, *wanted} if str(found.get(each)) != str(wanted.get(each))
    )
    each = differ[0]
    is_there = {
        True: f"`{each}` of type {found.get(each)}",
        False: f"no column `{each}`",
    }[each in found]
    should = f"has it as {wanted[each]}" if each in wanted else "has none"
    raise DataError(
        f"{name} has {is_there}, where {first} {should}; give the same columns in all files"
    )


def _runs(sizes: Sequence[int], n_rows: int) -> list[Part]:
    """Parts of about so many rows, of files of these sizes."""
    parts: list[Part] = []
    first = 0
    for file, size in enumerate(sizes):
        for start in range(0, size, n_rows):
            n = min(n_rows, size - start)
            parts.append(Part(len(parts), file, first, n, (start,)))
            first += n
    return parts


def _runs_of_files(n_files: int, n_rows: int) -> list[Part]:
    return [
        Part(number, 0, first, min(n_rows, n_files - first), (first,))
        for number, first in enumerate(range(0, n_files, n_rows))
    ]


def _n_rows(path: Path) -> int:
    check_regular(path)
    with guarded(path, "save a plain array by np.save"):
        return len(np.load(path, mmap_mode="r", allow_pickle=False))


def _members(name: str) -> tuple[Member, ...]:
    """The images of a .tar file, by their places in it."""
    with guarded(Path(name), ADVICE), opened(name) as file, tarfile.open(fileobj=file) as archive:
        return tuple(
            Member(member.name, member.offset_data, member.size)
            for member in archive
            if member.isreg() and is_image_name(Path(member.name).name)
        )


def _read_member(file: IO[bytes], member: Member) -> bytes:
    file.seek(member.start)
    content = file.read(member.size)
    if len(content) < member.size:
        raise ValueError(f"it ends within {member.name}")
    return content
