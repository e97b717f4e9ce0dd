"""A user's folders, manifests, tables and arrays -> arrays.

    folder of images, manifest (path, label)    ─► files ─► headers ─┐
    .npy, .npz, a column of lists               ─► array ────────────┼► one shape ─► Items
    CSV, Parquet, JSON lines                    ─► texts or columns ─┘

What cannot be used is refused with one line; an image that cannot be read, or a text that is empty,
is skipped and named.
"""

import os
import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np

from s2osc.data.columns import Table
from s2osc.data.images import (
    IMAGE_SUFFIXES,
    Header,
    InputShape,
    choose_shape,
    find_images,
    is_hidden,
    is_image_name,
    read_headers,
    read_pixels,
)
from s2osc.data.tables import ARRAY_SUFFIXES, TABLE_SUFFIXES, TEXT, read_arrays, read_table
from s2osc.errors import DataError, S2OSCWarning, SettingsError
from s2osc.files import check_regular
from s2osc.text import check_name, clean_items, clean_text, listed

MAX_MEGAPIXELS = 50.0
UNKNOWN_NAME, UNSURE_NAME = "unknown", "unsure"
RESERVED_CLASSES = ("", UNKNOWN_NAME, UNSURE_NAME)


@dataclass(frozen=True)
class Skipped:
    """An item that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Items:
    """What was read from one source."""

    names: list[str]  # path relative to the source, `item` or `id` column, or row number from 0
    inputs: np.ndarray | Table  # (n, H, W[, 3]) uint8, (n, D) float32, (n,) texts, or columns
    labels: list[str] | None = None  # class, or truth where the pool gives it ("" = none)
    skipped: list[Skipped] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)

    def keep(self, rows: Sequence[int] | np.ndarray) -> "Items":
        """The items in these rows; what was skipped stays so."""
        inputs = self.inputs.keep(rows) if isinstance(self.inputs, Table) else self.inputs[rows]
        labels = self.labels and [self.labels[row] for row in rows]
        return replace(self, names=[self.names[row] for row in rows], inputs=inputs, labels=labels)


@dataclass(frozen=True)
class Source:
    """What a source names, before any pixel is read."""

    path: Path
    names: list[str]
    content: Sequence[Path | bytes] | np.ndarray | Table  # images as files, or as these hold them
    labels: list[str] | None = None
    found: str = "images"  # columns or arrays, for messages
    text_column: str = ""  # where a table has texts
    skipped: list[Skipped] = field(default_factory=list)
    is_batch: bool = False  # one of many: it may be that none of its items can be read

    @property
    def n_features(self) -> int:
        """The width of vectors; images have none."""
        if isinstance(self.content, np.ndarray) and self.content.ndim == 2:
            return int(self.content.shape[1])
        return 0

    @property
    def kind(self) -> Literal["images", "vectors", "texts", "tables"]:
        if isinstance(self.content, Table):
            return "tables"
        if isinstance(self.content, np.ndarray) and self.content.ndim == 1:
            return "texts"
        return "vectors" if self.n_features else "images"

    def keep(self, rows: Sequence[int] | np.ndarray) -> "Source":
        """The items in these rows."""
        names = [self.names[row] for row in rows]
        labels = self.labels and [self.labels[row] for row in rows]
        if isinstance(self.content, Table):
            return replace(self, names=names, labels=labels, content=self.content.keep(rows))
        if isinstance(self.content, np.ndarray):
            return replace(self, names=names, labels=labels, content=self.content[rows])
        content = [self.content[row] for row in rows]
        return replace(self, names=names, labels=labels, content=content)


@dataclass(frozen=True)
class OpenSources:
    """Labelled items and a pool whose sizes are known, before any pixel is read."""

    known: Source
    pool: Source
    headers: list[Header]  # of the images of both; none for vectors
    n_of_class: Mapping[str, int]  # labelled items, also those that cannot be read

    def shape(self, side: int | None = None, **largest: int) -> InputShape:
        """One shape for the items of both; ``side`` and ``largest`` as in ``choose_shape``."""
        if self.known.kind == "vectors":
            _check_widths(self.known, self.pool)
        elif self.known.kind == "tables":
            _check_columns(self.known, self.pool)
        return _shape_of([self.known, self.pool], self.headers, side, **largest)

    @property
    def n_items(self) -> int:
        """Labelled items and those of the pool, also those that cannot be read."""
        return sum(self.n_of_class.values()) + len(self.pool.names)

    @property
    def sources(self) -> tuple[Source, ...]:
        return self.known, self.pool

    def read(self, shape: InputShape) -> tuple[Items, Items]:
        """All items in that shape."""
        known = OpenKnown(self.known, self.headers, self.n_of_class).read(shape)
        return known, read_source(self.pool, shape)


@dataclass(frozen=True)
class OpenKnown:
    """Labelled items alone, as ``OpenSources``."""

    known: Source
    headers: list[Header]
    n_of_class: Mapping[str, int]

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.known,)

    def shape(self, side: int | None = None, **largest: int) -> InputShape:
        return _shape_of([self.known], self.headers, side, **largest)

    def read(self, shape: InputShape) -> Items:
        known = read_source(self.known, shape)
        _check_classes(self.known.path, self.n_of_class, known.labels)
        return known


def open_known_and_pool(
    known: Path,
    pool: Path,
    *,
    max_megapixels: float = MAX_MEGAPIXELS,
    text_column: str | None = None,
) -> OpenSources:
    """Find labelled items and a pool, and measure them where they are images."""
    return open_known_beside(
        Path(known),
        open_items(Path(pool), text_column),
        max_megapixels=max_megapixels,
        text_column=text_column,
    )


def open_known_beside(
    known: Path,
    pool_source: Source,
    *,
    max_megapixels: float = MAX_MEGAPIXELS,
    text_column: str | None = None,
) -> OpenSources:
    """The same with a pool that was found already."""
    known_source = _open_known(known, text_column)
    if {known_source.kind, pool_source.kind} == {"vectors", "tables"}:
        known_source, pool_source = _as_vectors(known_source), _as_vectors(pool_source)
    if known_source.kind != pool_source.kind:
        raise DataError(
            f"the pool holds {pool_source.kind}, the known items hold {known_source.kind}; "
            "give the same in both"
        )
    classes = Counter(known_source.labels)
    known_source, known_headers = measure_items(known_source, max_megapixels)
    pool_source, pool_headers = measure_items(pool_source, max_megapixels)
    return OpenSources(known_source, pool_source, known_headers + pool_headers, classes)


def open_known(
    known: Path, *, max_megapixels: float = MAX_MEGAPIXELS, text_column: str | None = None
) -> OpenKnown:
    """Find labelled items, and measure them where they are images."""
    source = _open_known(Path(known), text_column)
    classes = Counter(source.labels)
    source, headers = measure_items(source, max_megapixels)
    return OpenKnown(source, headers, classes)


def read_items(source: Path, *, like: InputShape, max_megapixels: float = MAX_MEGAPIXELS) -> Items:
    """Items for a trained model, brought to the shape it was trained on."""
    opened = open_items(Path(source), like.text_column if like.kind == "texts" else None)
    return items_like(opened, like, max_megapixels=max_megapixels)


def items_like(
    opened: Source, like: InputShape, *, max_megapixels: float = MAX_MEGAPIXELS
) -> Items:
    """The items of a source, brought to a shape."""
    source = opened.path
    if (opened.kind, like.kind) == ("tables", "vectors"):
        opened = _as_vectors(opened)
    if opened.kind != like.kind:
        raise DataError(
            f"{source} holds {opened.kind}, the model was trained on {like.kind}; give those"
        )
    if opened.n_features != like.n_features:
        raise DataError(
            f"{source} has {opened.n_features} columns, the model was trained on "
            f"{like.n_features}; give vectors made in the same way"
        )
    opened, _ = measure_items(opened, max_megapixels)
    return read_source(opened, like)


def _as_vectors(source: Source) -> Source:
    """A table of numbers alone as vectors, for items that have no names of columns."""
    if isinstance(source.content, Table):
        return replace(source, content=source.content.as_vectors(str(source.path)))
    return source


def encode_labels(labels: Sequence[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Numbers 0 .. C-1 for class names, and the names in that order; numbers sort as numbers.

    >>> encode_labels(["10", "9", "cat", "9"])
    (array([1, 0, 2, 0]), ('9', '10', 'cat'))
    """
    classes = tuple(sorted(set(labels), key=_class_order))
    number = {name: index for index, name in enumerate(classes)}
    return np.array([number[label] for label in labels], dtype=np.int64), classes


def _class_order(name: str) -> tuple[bool, float, str]:
    is_number = re.fullmatch(r"[+-]?\d+(\.\d+)?", name) is not None
    return not is_number, float(name) if is_number else 0.0, name


def measure_items(source: Source, max_megapixels: float) -> tuple[Source, list[Header]]:
    """The size of every image, and the source without those that have none, or no words."""
    if not 0 < max_megapixels < inf:
        raise SettingsError(f"--max-megapixels is {max_megapixels:g}; give a number above 0")
    if source.kind == "texts":
        assert isinstance(source.content, np.ndarray)
        reasons = ["" if text.strip() else "its text is empty" for text in source.content]
        return _skip(source, reasons), []
    if source.kind != "images":
        return source, []
    assert not isinstance(source.content, Table)
    if isinstance(source.content, np.ndarray):
        n_images, height, width = source.content.shape[:3]
        return source, [Header(width, height, source.content.ndim == 4)] * n_images
    headers, reasons = read_headers(source.content, source.path.name, max_megapixels=max_megapixels)
    return _skip(source, reasons), headers


def read_source(source: Source, shape: InputShape) -> Items:
    """The items of a source in a shape; those that cannot be read are skipped."""
    inputs = source.content
    if shape.kind == "images":
        assert not isinstance(inputs, Table)
        inputs, reasons = read_pixels(inputs, shape, source.path.name)
        source = _skip(source, reasons)
    assert isinstance(inputs, np.ndarray | Table)
    return Items(source.names, inputs, source.labels, source.skipped)


def _skip(source: Source, reasons: Sequence[str]) -> Source:
    """The source without the items that have a reason; more than half of them are an error."""
    if not any(reasons):
        return source
    named = zip(source.names, reasons, strict=True)
    skipped = source.skipped + [Skipped(name, reason) for name, reason in named if reason]
    n_images = len(source.names) + len(source.skipped)
    if 2 * len(skipped) > n_images and not source.is_batch:
        raise DataError(
            f"{len(skipped)} of the {n_images} {source.kind} of {source.path} cannot be read "
            f"(first: {skipped[0].name}, {skipped[0].reason}); mend or remove them"
        )
    readable = [row for row, reason in enumerate(reasons) if not reason]
    return replace(source.keep(readable), skipped=skipped)


def _check_widths(known: Source, pool: Source) -> None:
    if known.n_features != pool.n_features:
        raise DataError(
            f"the pool has {pool.n_features} columns, the known items {known.n_features}; "
            "give vectors made in the same way"
        )


def _check_columns(known: Source, pool: Source) -> None:
    """Refuse a pool without the columns of the labelled items; name those it has beside them."""
    assert isinstance(known.content, Table)
    assert isinstance(pool.content, Table)
    wanted, there = known.content.columns, pool.content.columns
    missing = [name for name in wanted if name not in there]
    if missing:
        raise DataError(
            f"the pool lacks columns of the known items: {listed(missing)}; found: "
            f"{listed(list(there))}; give the same columns in both"
        )
    more = [name for name in there if name not in wanted]
    if more:
        warnings.warn(
            f"{pool.path}: columns that the known items lack are not used: {listed(more)}",
            S2OSCWarning,
            stacklevel=4,
        )


def _shape_of(
    sources: Sequence[Source], headers: Sequence[Header], side: int | None, **largest: int
) -> InputShape:
    if sources[0].kind == "images":
        return choose_shape(headers, side, **largest)
    n_items, n_features = sum(len(s.names) for s in sources), sources[0].n_features
    if sources[0].kind == "texts":
        column = sources[0].text_column
        return InputShape("texts", text_column=column, note=f"{n_items:,} texts")
    if sources[0].kind == "tables":
        return InputShape("tables", note=f"a table of {n_items:,} rows")
    note = f"{n_items:,} vectors of {n_features:,} columns"
    return InputShape("vectors", n_features=n_features, note=note)


def _check_classes(path: Path, found: Mapping[str, int], labels: Sequence[str] | None) -> None:
    """Refuse classes that cannot be learnt: ``found`` counts the items, ``labels`` those read."""
    counts = Counter(labels)
    for name in sorted(found, key=_class_order):
        if name.casefold() in RESERVED_CLASSES:
            raise DataError(f'{path} has a class called "{name}"; that name is reserved, rename it')
        if counts[name] < 2:
            n_lost = found[name] - counts[name]
            items = "1 item" if counts[name] == 1 else "no items"
            more = f" and {n_lost} that cannot be read" if n_lost else ""
            raise DataError(
                f'the class "{name}" of {path} has {items}{more}; give at least two, or remove it'
            )
    if len(found) < 2:
        raise DataError(
            f'{path} holds only the class "{min(found)}"; give at least two known classes'
        )


def _open_known(path: Path, text_column: str | None) -> Source:
    if os.path.isdir(path):
        return _open_class_folders(path)
    source = open_items(path, text_column)
    if source.labels is None:
        raise DataError(
            f"{path} holds no labels; found {source.found}; give a folder per class, a table with "
            "a `label` column, or a .npz file with `x` and `y`"
        )
    labelled = [row for row, label in enumerate(source.labels) if label]
    n_left_out = len(source.labels) - len(labelled)
    if n_left_out and path.suffix.lower() in TABLE_SUFFIXES:
        warnings.warn(
            f"{path}: {n_left_out} of {len(source.labels)} rows have no label and are left out of "
            "the known items",
            S2OSCWarning,
            stacklevel=3,
        )
        source = source.keep(labelled)
    _check_classes(path, Counter(source.labels), source.labels)
    return source


def _open_class_folders(path: Path) -> Source:
    try:
        children = sorted(child for child in path.iterdir() if not is_hidden(child.name))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}; allow reading it") from error
    by_class: dict[str, list[Path]] = {}
    for child in (child for child in children if child.is_dir()):
        name = check_name(child.name, f"the name of a class folder in {path}")
        if name in by_class:
            raise DataError(f'{path} holds two folders for the class "{name}"; join or rename them')
        by_class[name] = find_images(child)
    if not by_class:
        raise DataError(f"{path} holds no folders; give one folder of images per class")
    outside = [c.name for c in children if is_image_name(c.name) and not c.is_dir()]
    if outside:
        warnings.warn(
            f"{path}: images outside the class folders are left out ({len(outside)}, "
            f"first: {clean_text(outside[0])})",
            S2OSCWarning,
            stacklevel=4,
        )
    files = [file for found in by_class.values() for file in found]
    labels = [name for name, found in by_class.items() for _ in found]
    _check_classes(path, {name: len(found) for name, found in by_class.items()}, labels)
    return Source(path, _relative_names(files, path), files, labels)


def open_items(path: Path, text_column: str | None = None) -> Source:
    """What a file or folder names, whether or not it has labels."""
    if not os.path.exists(path):
        raise DataError(f"there is no file or folder {path}")
    suffix = path.suffix.lower()
    if is_folder := os.path.isdir(path):
        files = find_images(path)
        source = Source(path, _relative_names(files, path), files)
    elif suffix in IMAGE_SUFFIXES:
        check_regular(path)
        source = Source(path, clean_items([path.name]), [path])
    elif suffix in ARRAY_SUFFIXES:
        source = Source(path, *read_arrays(path))
    elif suffix in TABLE_SUFFIXES:
        found = read_table(path, text_column)
        source = Source(path, *found, text_column=text_column or TEXT)
    else:
        raise DataError(
            f"{path} is not read; give a folder of images, or a .csv, .parquet, .jsonl, .npy or "
            ".npz file"
        )
    if not source.names:
        raise DataError(f"{path} is empty; it holds no {'images' if is_folder else 'items'}")
    return source


def _relative_names(files: Sequence[Path], folder: Path) -> list[str]:
    return clean_items(file.relative_to(folder).as_posix() for file in files)
