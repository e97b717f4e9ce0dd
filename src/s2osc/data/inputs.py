"""A user's folders, manifests, tables and arrays -> arrays.

    folder of images, manifest (path, label)    ─► files ─► headers ─┐
    .npy, .npz, Parquet or CSV of vectors       ─► array ────────────┴► one shape ─► Items

What cannot be used is refused with one line; an image that cannot be read is skipped and named.
"""

import csv
import math
import os
import re
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

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
from s2osc.errors import DataError, S2OSCWarning
from s2osc.types import IMAGE_NDIMS, check_inputs

MAX_MEGAPIXELS = 50.0
RESERVED_CLASSES = ("", "unknown")
ARRAY_SUFFIXES = (".npy", ".npz")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
TEXT_COLUMNS = ("path", "label", "item", "id")
TABLE_ADVICE = (
    "give `path` for image files, one column of lists of numbers, "
    "or columns of numbers with no text but `label`, `item` and `id`"
)
UNREADABLE = (
    *(OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError),
    *(csv.Error, zipfile.BadZipFile, zlib.error, pa.ArrowException),
)


@dataclass(frozen=True)
class Skipped:
    """An item that was left out, and why."""

    name: str
    reason: str


@dataclass(frozen=True)
class Items:
    """What was read from one source."""

    names: list[str]  # path relative to the source, `item` or `id` column, or row number from 0
    inputs: np.ndarray  # (n, H, W[, 3]) uint8 or (n, D) float32
    labels: list[str] | None = None  # class, or truth where the pool gives it ("" = none)
    skipped: list[Skipped] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class Source:
    """What a source names, before any pixel is read."""

    path: Path
    names: list[str]
    content: list[Path] | np.ndarray
    labels: list[str] | None = None
    skipped: list[Skipped] = field(default_factory=list)
    found: str = "images"  # columns or arrays, for messages

    @property
    def n_features(self) -> int:
        """The width of vectors; images have none."""
        if isinstance(self.content, np.ndarray) and self.content.ndim == 2:
            return int(self.content.shape[1])
        return 0

    @property
    def kind(self) -> Literal["images", "vectors"]:
        return "vectors" if self.n_features else "images"

    def keep(self, rows: Sequence[int]) -> "Source":
        """The items in these rows."""
        names = [self.names[row] for row in rows]
        labels = self.labels and [self.labels[row] for row in rows]
        if isinstance(self.content, np.ndarray):
            return replace(self, names=names, labels=labels, content=self.content[rows])
        content = [self.content[row] for row in rows]
        return replace(self, names=names, labels=labels, content=content)


def read_known_and_pool(
    known: Path, pool: Path, *, side: int | None = None, max_megapixels: float = MAX_MEGAPIXELS
) -> tuple[Items, Items, InputShape]:
    """Labelled items and a pool, brought to one shape that is chosen over both."""
    known_source, pool_source = _open_known(Path(known)), _open(Path(pool))
    if known_source.kind != pool_source.kind:
        raise DataError(
            f"the pool holds {pool_source.kind}, the known items hold {known_source.kind}; "
            "give both as images or both as vectors"
        )
    if known_source.kind == "vectors":
        shape = _shape_of_vectors(known_source, pool_source)
        return _load(known_source, shape), _load(pool_source, shape), shape
    classes = Counter(known_source.labels)
    known_source, known_headers = _measure(known_source, max_megapixels)
    pool_source, pool_headers = _measure(pool_source, max_megapixels)
    shape = choose_shape(known_headers + pool_headers, side)
    known_items = _load(known_source, shape)
    _check_classes(known_source.path, classes, known_items.labels)
    return known_items, _load(pool_source, shape), shape


def read_items(source: Path, *, like: InputShape, max_megapixels: float = MAX_MEGAPIXELS) -> Items:
    """Items for a trained model, brought to the shape it was trained on."""
    opened = _open(Path(source))
    if opened.kind != like.kind:
        raise DataError(
            f"{source} holds {opened.kind}, the model was trained on {like.kind}; give those"
        )
    if opened.n_features != like.n_features:
        raise DataError(
            f"{source} has {opened.n_features} columns, the model was trained on "
            f"{like.n_features}; give vectors made in the same way"
        )
    if opened.kind == "images":
        opened, _ = _measure(opened, max_megapixels)
    return _load(opened, like)


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


def _measure(source: Source, max_megapixels: float) -> tuple[Source, list[Header]]:
    """The size of every image, and the source without those that have none."""
    if isinstance(source.content, np.ndarray):
        n_images, height, width = source.content.shape[:3]
        return source, [Header(width, height, source.content.ndim == 4)] * n_images
    headers, reasons = read_headers(source.content, source.path.name, max_megapixels=max_megapixels)
    return _skip(source, reasons), headers


def _load(source: Source, shape: InputShape) -> Items:
    inputs = source.content
    if shape.kind == "images":
        inputs, reasons = read_pixels(source.content, shape, source.path.name)
        source = _skip(source, reasons)
    assert isinstance(inputs, np.ndarray)
    return Items(source.names, inputs, source.labels, source.skipped)


def _skip(source: Source, reasons: Sequence[str]) -> Source:
    """The source without the images that have a reason; more than half of them are an error."""
    if not any(reasons):
        return source
    named = zip(source.names, reasons, strict=True)
    skipped = source.skipped + [Skipped(name, reason) for name, reason in named if reason]
    n_images = len(source.names) + len(source.skipped)
    if 2 * len(skipped) > n_images:
        raise DataError(
            f"{len(skipped)} of the {n_images} images of {source.path} cannot be read "
            f"(first: {skipped[0].name}, {skipped[0].reason}); mend or remove them"
        )
    readable = [row for row, reason in enumerate(reasons) if not reason]
    return replace(source.keep(readable), skipped=skipped)


def _shape_of_vectors(known: Source, pool: Source) -> InputShape:
    if known.n_features != pool.n_features:
        raise DataError(
            f"the pool has {pool.n_features} columns, the known items {known.n_features}; "
            "give vectors made in the same way"
        )
    note = f"{len(known.names) + len(pool.names):,} vectors of {known.n_features:,} columns"
    return InputShape("vectors", n_features=known.n_features, note=note)


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


def _open_known(path: Path) -> Source:
    if path.is_dir():
        return _open_class_folders(path)
    source = _open(path)
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
    children = sorted(child for child in path.iterdir() if not is_hidden(child.name))
    by_class = {child.name: find_images(child) for child in children if child.is_dir()}
    if not by_class:
        raise DataError(f"{path} holds no folders; give one folder of images per class")
    outside = [c.name for c in children if is_image_name(c.name) and c.name not in by_class]
    if outside:
        warnings.warn(
            f"{path}: images outside the class folders are left out ({len(outside)}, "
            f"first: {outside[0]})",
            S2OSCWarning,
            stacklevel=4,
        )
    files = [file for found in by_class.values() for file in found]
    labels = [name for name, found in by_class.items() for _ in found]
    _check_classes(path, {name: len(found) for name, found in by_class.items()}, labels)
    return Source(path, [_name(file, path) for file in files], files, labels)


def _open(path: Path) -> Source:
    if not path.exists():
        raise DataError(f"there is no file or folder {path}")
    suffix = path.suffix.lower()
    if path.is_dir():
        files = find_images(path)
        source = Source(path, [_name(file, path) for file in files], files)
    elif suffix in IMAGE_SUFFIXES:
        source = Source(path, [path.name], [path])
    elif suffix in ARRAY_SUFFIXES:
        source = _open_arrays(path)
    elif suffix in TABLE_SUFFIXES:
        source = _open_table(path, _read_parquet(path) if suffix == ".parquet" else _read_csv(path))
    else:
        raise DataError(
            f"{path} is not read; give a folder of images, or a .csv, .parquet, .npy or .npz file"
        )
    if not source.names:
        raise DataError(f"{path} is empty; it holds no {'images' if path.is_dir() else 'items'}")
    return source


def _name(file: Path, folder: Path) -> str:
    # A file name may hold bytes that are no text; every table and page written later needs text.
    return os.fsencode(file.relative_to(folder).as_posix()).decode(errors="replace")


@contextmanager
def _reading(path: Path, kind: str, advice: str) -> Iterator[None]:
    """Turn whatever a damaged or foreign file makes a reader raise into one line."""
    try:
        yield
    except DataError:
        raise
    except UNREADABLE as error:
        problem = (str(error) or type(error).__name__).splitlines()[0]
        raise DataError(f"{path} cannot be read as {kind} ({problem}); {advice}") from error


def _open_arrays(path: Path) -> Source:
    arrays = _read_arrays(path)
    inputs = _as_inputs(arrays["x"], str(path))
    names = [str(row) for row in range(len(inputs))]
    if "y" not in arrays:
        return Source(path, names, inputs, found="an array `x` only")
    y = arrays["y"]
    if y.shape != (len(inputs),):
        raise DataError(
            f"{path} holds {len(inputs)} items in `x` and labels of shape {y.shape} in `y`; "
            "give exactly one label per item"
        )
    return Source(path, names, inputs, _names_of_classes(y, arrays.get("classes"), path))


def _read_arrays(path: Path) -> dict[str, np.ndarray]:
    advice = "save plain arrays, without Python objects, by np.save or np.savez"
    with _reading(path, "a .npy or .npz file", advice), path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"x": loaded}
        if "x" not in loaded.files:
            raise DataError(f"{path} has no array `x`; found: {_listed(loaded.files)}")
        arrays = {name: loaded[name] for name in ("x", "y", "classes") if name in loaded.files}
        if not all(isinstance(array, np.ndarray) for array in arrays.values()):
            raise ValueError("a member of the archive is no array")
        return arrays


def _names_of_classes(y: np.ndarray, classes: np.ndarray | None, path: Path) -> list[str]:
    if classes is None:
        return [_text(value) for value in y.tolist()]
    names = [_text(value) for value in np.ravel(classes).tolist()]
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= len(names):
        raise DataError(
            f"{path}: `y` must hold whole numbers from 0 to {len(names) - 1}, which index `classes`"
        )
    return [names[number] for number in y.tolist()]


def _text(value: object) -> str:
    """A label as text: "" where it is missing, no fraction where a number is whole.

    >>> [_text(value) for value in ("03", 3, 3.0, b"cat", None, float("nan"))]
    ['03', '3', '3', 'cat', '', '']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bytes):
        return value.decode(errors="replace").strip()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _as_inputs(array: np.ndarray, what: str) -> np.ndarray:
    """An array as uint8 images or float32 vectors, or one line on why it is neither."""
    if array.dtype.kind not in "buif":
        raise DataError(f"{what} holds values of type {array.dtype}; give numbers")
    if array.size == 0:
        raise DataError(f"{what} is empty; it holds an array of shape {array.shape}")
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    is_wide = array.dtype.kind in "ui" and array.dtype != np.uint8
    if array.ndim in IMAGE_NDIMS and is_wide and array.min() >= 0 and array.max() <= 255:
        array = array.astype(np.uint8)
    # NaN and numbers too large for float32 are reported in one line, not also warned about.
    with np.errstate(over="ignore", invalid="ignore"):
        return check_inputs(array, what)


def _open_table(path: Path, table: pa.Table) -> Source:
    columns = table.column_names
    if len(set(columns)) < len(columns):
        twice = [name for name, count in Counter(columns).items() if count > 1]
        raise DataError(f"{path} has several columns called {_listed(twice)}; rename them")
    if table.num_rows == 0:
        return Source(path, [], [])
    text = {
        name: [_text(value) for value in table[name].to_pylist()]
        for name in TEXT_COLUMNS
        if name in columns
    }
    if "path" in text:
        names = text["path"]
        content: list[Path] | np.ndarray = [path.parent / name for name in names]
    else:
        names = text.get("item") or text.get("id") or [str(row) for row in range(table.num_rows)]
        content = _as_inputs(_vectors_of(path, table), str(path))
    labels = text["label"] if any(text.get("label", [])) else None
    return Source(path, names, content, labels, found=f"the columns {_listed(columns)}")


def _read_parquet(path: Path) -> pa.Table:
    with (
        _reading(path, "a Parquet file", "write it again"),
        pyarrow.parquet.ParquetFile(path) as file,
    ):
        table = file.read()
    return table.rename_columns([_column_name(name) for name in table.column_names])


def _read_csv(path: Path) -> pa.Table:
    """A manifest as it is written; of vectors, the text columns as written, others as numbers."""
    with (
        _reading(path, "a CSV file", "save it as UTF-8 text"),
        path.open(encoding="utf-8-sig", newline="") as lines,
    ):
        first = lines.readline()
        delimiter = max(",;\t", key=first.count)
        cells = next(csv.reader([first], delimiter=delimiter), [])
    has_header = not _are_numbers(cells) or cells == [str(i) for i in range(len(cells))]
    columns = [_column_name(cell) if has_header else str(i) for i, cell in enumerate(cells)]
    others = pa.string() if "path" in columns else pa.float32()
    types = {name: pa.string() if name in TEXT_COLUMNS else others for name in columns}
    with _reading(path, "a CSV file", f"found the columns {_listed(columns)}; {TABLE_ADVICE}"):
        return pyarrow.csv.read_csv(
            path,
            pyarrow.csv.ReadOptions(column_names=columns, skip_rows=int(has_header)),
            pyarrow.csv.ParseOptions(delimiter=delimiter),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=[name for name in columns if name]
            ),
        )


def _column_name(name: str) -> str:
    """A column's name; the names with a meaning are known in any case.

    >>> _column_name(" Label"), _column_name("Width")
    ('label', 'Width')
    """
    name = name.strip()
    return name.lower() if name.lower() in TEXT_COLUMNS else name


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        return [float(cell) for cell in cells] != []
    except ValueError:
        return False


def _vectors_of(path: Path, table: pa.Table) -> np.ndarray:
    """The one column of lists, or all columns of numbers side by side."""
    # pandas writes row numbers as a column without a name, or with one of these.
    columns = [
        name
        for name in table.column_names
        if name
        and name not in TEXT_COLUMNS
        and not name.startswith(("__index_level_", "Unnamed: "))
    ]
    lists = [name for name in columns if _is_list(table.schema.field(name).type)]
    if len(lists) == 1:
        return _vectors_of_lists(table[lists[0]], f"the column `{lists[0]}` of {path}")
    if not columns or not all(_is_number(table.schema.field(name).type) for name in columns):
        raise DataError(f"{path} has the columns {_listed(table.column_names)}; {TABLE_ADVICE}")
    vectors = np.empty((table.num_rows, len(columns)), dtype=np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        for index, name in enumerate(columns):
            vectors[:, index] = table[name].to_numpy()
    return vectors


def _vectors_of_lists(column: pa.ChunkedArray, what: str) -> np.ndarray:
    lengths = pyarrow.compute.min_max(pyarrow.compute.list_value_length(column)).as_py()
    if column.null_count or lengths["min"] != lengths["max"]:
        raise DataError(f"{what} holds vectors of different lengths, or none in some rows")
    flat = np.concatenate(
        [chunk.flatten().to_numpy(zero_copy_only=False) for chunk in column.chunks]
    )
    return flat.reshape(len(column), lengths["max"])


def _is_list(kind: pa.DataType) -> bool:
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return (is_list or pa.types.is_fixed_size_list(kind)) and _is_number(kind.value_type)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _listed(names: Sequence[str], most: int = 8) -> str:
    """Names for a message, not too many of them.

    >>> _listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
