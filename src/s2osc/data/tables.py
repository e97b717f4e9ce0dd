"""Arrays and tables in files -> names, labels, and vectors, images, texts or columns.

    .npy, .npz                   ─► the arrays `x`, `y`, `classes` ─┐
    CSV, Parquet, JSON lines     ─► columns ────────────────────────┴► Contents

What cannot be used is refused with one line.
"""

import csv
import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

from s2osc.data.arrow import numbers_in
from s2osc.data.columns import Table
from s2osc.data.parquet_damage import DamageCheck
from s2osc.errors import DataError
from s2osc.files import check_regular, guarded, parse_json, reason
from s2osc.text import clean_items, clean_name, clean_text, from_csv_cell, listed
from s2osc.types import IMAGE_NDIMS, LARGEST_INPUT, check_inputs

KINDS = "buifUSM"  # numbers, text and dates: nothing that would be run or unpickled
ZIP_METHODS = (
    zipfile.ZIP_STORED,
    zipfile.ZIP_DEFLATED,
)  # as np.savez and np.savez_compressed write
ZIP_BEGINNINGS = (b"PK\x03\x04", b"PK\x05\x06")
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
ARRAY_ADVICE = "save plain arrays, without Python objects, by np.save or np.savez"
ARRAY_SUFFIXES = (".npy", ".npz")
JSON_SUFFIXES = (".jsonl", ".ndjson")
TABLE_SUFFIXES = (".csv", ".tsv", ".parquet", *JSON_SUFFIXES)
TEXT = "text"
OTHER_LABELS = ("class", "classes", "target", "y", "labels", "category", "species")
"""What columns of classes are called in the tables of others."""
ROW_NUMBERS = ("__index_level_", "Unnamed: ")
"""How the names of columns begin in which pandas writes row numbers, if they have a name."""
NAMED_COLUMNS = ("path", "label", "item", "id")
TABLE_ADVICE = (
    "give `path` for image files, `text` for texts, one column of lists of numbers, or columns of "
    "numbers and words, beside `label`, `item` and `id`"
)
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
"""How dates begin that JSON and columns of words hold; a CSV reader knows them already."""
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
MOSTLY = 0.9
"""Of the cells of a column, by numbers, from which on others among them are mistakes."""
NO_TIME = np.iinfo(np.int64).min
"""What numpy holds where a time is missing."""
LARGEST_FILE = 2**31 - 2
"""Bytes that Arrow reads at once, to see the types of columns in all rows."""


class Contents(NamedTuple):
    """What one file holds."""

    names: list[str]  # `path`, `item` or `id` column, or row number from 0
    content: list[Path] | np.ndarray | Table  # paths, images, (n, D) float32, (n,) texts, columns
    labels: list[str] | None  # "" where an item has none
    found: str  # columns or arrays, for messages


def read_arrays(path: Path) -> Contents:
    """The items, and labels where there are any, of a .npy or .npz file."""
    arrays = load_arrays(path, ("x", "y", "classes"))
    inputs = as_inputs(arrays["x"], str(path))
    names = [str(row) for row in range(len(inputs))]
    if "y" not in arrays:
        return Contents(names, inputs, None, "an array `x` only")
    y = arrays["y"]
    if y.shape != (len(inputs),):
        raise DataError(
            f"{path} holds {len(inputs)} items in `x` and labels of shape {y.shape} in `y`; "
            "give exactly one label per item"
        )
    with guarded(path, ARRAY_ADVICE):
        labels = _class_names(y, arrays.get("classes"), path)
    return Contents(names, inputs, labels, "the arrays `x` and `y`")


def read_table(path: Path, text_column: str | None = None) -> Contents:
    """The items, and labels where there are any, of a manifest or a table.

    Items are texts where there is a column `text`, or the one that is asked for.
    """
    check_regular(path)
    reader = {".parquet": _read_parquet} | dict.fromkeys(JSON_SUFFIXES, _read_json_lines)
    suffix = path.suffix.lower()
    table = reader[suffix](path) if suffix in reader else _read_csv(path, text_column or TEXT)
    return table_contents(table, path, text_column, is_csv=suffix not in reader)


def table_contents(
    table: pa.Table,
    path: Path,
    text_column: str | None = None,
    *,
    is_csv: bool = False,
    first: int = 0,
) -> Contents:
    """The same of a table that was read from ``path``; rows are numbered from ``first``."""
    columns = table.column_names
    found = f"the columns {listed(columns)}{_label_hint(columns)}"
    if len(set(columns)) < len(columns):
        twice = [name for name, count in Counter(columns).items() if count > 1]
        raise DataError(f"{path} has several columns called {listed(twice)}; rename them")
    if text_column and text_column not in columns:
        raise DataError(
            f"{path} has no column `{text_column}`; found: {listed(columns)}; give one of "
            "them with --text-column"
        )
    if table.num_rows == 0:
        return Contents([], [], None, found)
    cells: dict[str, list[Any]] = {}
    for name in (name for name in NAMED_COLUMNS if name in columns and name != text_column):
        with guarded(path, f"give the column `{name}` as text"):
            values = table[name].to_pylist()
            cells[name] = [from_csv_cell(cell or "") for cell in values] if is_csv else values
    ids = cells.get("path") or cells.get("item") or cells.get("id")
    names = [str(row) for row in range(first, first + table.num_rows)]
    if ids is not None:
        names = clean_items(_text(cell) for cell in ids)
    content: list[Path] | np.ndarray | Table
    if "path" in cells:
        content = [path.parent / _text(cell) for cell in cells["path"]]
    else:
        with guarded(path, TABLE_ADVICE):
            content = _content_of(path, table, text_column)
    labels = [clean_name(_text(cell)) for cell in cells.get("label", ())]
    return Contents(names, content, labels if any(labels) else None, found)


def _label_hint(columns: Sequence[str]) -> str:
    """What to do where labels have one of their other names.

    >>> _label_hint(["width", "Class"])
    ' (rename `Class` to `label` if it holds the classes)'
    """
    other = next((name for name in columns if name.casefold() in OTHER_LABELS), None)
    if other is None or "label" in columns:
        return ""
    return f" (rename `{other}` to `label` if it holds the classes)"


def _class_names(y: np.ndarray, classes: np.ndarray | None, path: Path) -> list[str]:
    if classes is None:
        return [clean_name(_text(value)) for value in y.tolist()]
    names = [clean_name(_text(value)) for value in np.ravel(classes).tolist()]
    if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= len(names):
        raise DataError(
            f"{path}: `y` must hold whole numbers from 0 to {len(names) - 1}, which index `classes`"
        )
    if len(set(names)) < len(names):
        twice = [name for name, count in Counter(names).items() if count > 1]
        raise DataError(f"{path}: `classes` holds {listed(twice)} more than once; rename them")
    return [names[number] for number in y.tolist()]


def _text(value: object) -> str:
    """A cell as text: "" where it is missing, no fraction where a number is whole.

    >>> [_text(value) for value in ("03", 3, 3.0, b"cat", None, float("nan"))]
    ['03', '3', '3', 'cat', '', '']
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    text = value.decode(errors="surrogateescape") if isinstance(value, bytes) else str(value)
    return text.strip()


def as_inputs(array: np.ndarray, what: str) -> np.ndarray:
    """An array as uint8 images or float32 vectors, or one line on why it is neither."""
    if array.size == 0:
        raise DataError(f"{what} is empty; it holds an array of shape {array.shape}")
    if array.ndim == 4 and array.shape[3] == 1:
        array = array[..., 0]
    is_wide = array.dtype.kind in "ui" and array.dtype != np.uint8
    if array.ndim in IMAGE_NDIMS and is_wide and array.min() >= 0 and array.max() <= 255:
        array = array.astype(np.uint8)
    return check_inputs(array, what)


def _read_parquet(path: Path) -> pa.Table:
    # As a file of Python's: Arrow opens no name that is not UTF-8.
    with (
        guarded(path, "write it as a Parquet file again"),
        path.open("rb") as file,
        pyarrow.parquet.ParquetFile(file, page_checksum_verification=True) as parquet,
    ):
        about = parquet.metadata
        groups = (about.row_group(number) for number in range(about.num_row_groups))
        check_memory(max(4 * about.num_rows, sum(group.total_byte_size for group in groups)))
        table, check = parquet.read(), DamageCheck(parquet, range(about.num_row_groups))
        for batch in table.to_batches():
            check.see(batch)
        return with_usual_names(table)


def with_usual_names(table: pa.Table) -> pa.Table:
    """The table with the names that have a meaning as they are usually written."""
    return table.rename_columns([_column_name(name) for name in table.column_names])


def _read_csv(path: Path, text_column: str) -> pa.Table:
    """Columns with a meaning as they are written; others as the types that all of their rows have.

    A manifest is all as it is written.
    """
    with (
        guarded(path, "save it as CSV in UTF-8 text"),
        path.open(encoding="utf-8-sig", newline="") as lines,
    ):
        first = lines.readline()
        delimiter = max(",;\t", key=first.count)
        cells = next(csv.reader([first], delimiter=delimiter), [])
    has_header = not _are_numbers(cells) or cells == [str(i) for i in range(len(cells))]
    columns = [_column_name(cell) if has_header else str(i) for i, cell in enumerate(cells)]
    as_written = columns if "path" in columns else (*NAMED_COLUMNS, text_column)
    types = {name: pa.string() for name in columns if name in as_written}
    advice = f"found the columns {listed(columns)}; {TABLE_ADVICE}"
    size = path.stat().st_size
    with guarded(path, advice), path.open("rb") as file:
        if size > LARGEST_FILE:
            raise ValueError(f"it has {size:,} bytes, and CSV of at most {LARGEST_FILE:,} is read")
        return pyarrow.csv.read_csv(
            file,
            pyarrow.csv.ReadOptions(
                column_names=columns, skip_rows=int(has_header), block_size=size + 1
            ),
            pyarrow.csv.ParseOptions(
                delimiter=delimiter, newlines_in_values=text_column in columns
            ),
            pyarrow.csv.ConvertOptions(
                column_types=types, include_columns=[name for name in columns if name]
            ),
        )


def _read_json_lines(path: Path) -> pa.Table:
    """An object in each line; a key that a line lacks is missing there."""
    rows: list[dict[str, Any]] = []
    number = 0
    with guarded(path, "give one JSON object in each line, in UTF-8"):
        with path.open(encoding="utf-8-sig") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    try:
                        rows.append(parse_json(line))
                    except ValueError as error:
                        raise ValueError(f"line {number}: {reason(error)}") from error
        names = dict.fromkeys(name for row in rows for name in row)
        if not names:
            return pa.table({})
        columns = [_json_column([row.get(name) for row in rows]) for name in names]
        return pa.table(columns, [_column_name(name) for name in names])


def _json_column(values: list[Any]) -> pa.Array:
    """Values of one type as they are; of several, as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or len(kinds) <= 1:
        return pa.array(values)
    return pa.array([None if value is None else str(value) for value in values])


def _column_name(name: str) -> str:
    """A column's name; the names with a meaning are known in any case.

    >>> _column_name(" Label"), _column_name("Width")
    ('label', 'Width')
    """
    name = clean_text(name)
    return name.lower() if name.lower() in (*NAMED_COLUMNS, TEXT) else name


def _are_numbers(cells: Sequence[str]) -> bool:
    try:
        return [float(cell) for cell in cells] != []
    except ValueError:
        return False


def _content_of(path: Path, table: pa.Table, text_column: str | None) -> np.ndarray | Table:
    """The texts, the one column of lists, or all columns."""
    name = text_column or TEXT
    if name in table.column_names and (text_column or _is_words(table.schema.field(name).type)):
        return _texts_of(table[name])
    columns = [
        name
        for name in table.column_names
        if name and name not in NAMED_COLUMNS and not name.startswith(ROW_NUMBERS)
    ]
    lists = [name for name in columns if _is_list(table.schema.field(name).type)]
    if len(lists) == 1:
        what = f"the column `{lists[0]}` of {path}"
        return as_inputs(_vectors_of_lists(table[lists[0]], what), str(path))
    if not columns:
        raise DataError(f"{path} has the columns {listed(table.column_names)}; {TABLE_ADVICE}")
    return Table({name: column_values(table[name], name, path) for name in columns})


def _texts_of(column: pa.ChunkedArray) -> np.ndarray:
    """Texts as they are; missing ones are empty."""
    texts = np.empty(len(column), object)
    texts[:] = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    return texts


def column_values(column: pa.ChunkedArray, name: str, where: object) -> np.ndarray:
    """Numbers, dates or words of the column of a table, which lies at ``where``."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column_values(column.cast(kind.value_type), name, where)
    if pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        column = column.cast(pa.float64())
    if pa.types.is_duration(kind):
        column = column.cast(pa.duration("s"), safe=False).cast(pa.int64())
    if pa.types.is_null(kind):
        return np.full(len(column), np.nan)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        seconds = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
        return numbers_in(seconds.fill_null(NO_TIME)).view("datetime64[s]")
    if _is_number(column.type):
        values = numbers_in(column)
        largest = np.nanmax(np.abs(values.astype(np.float64)), initial=0)
        if np.isinf(largest):
            raise DataError(
                f"the column `{name}` of {where} holds {largest} in row "
                f"{np.flatnonzero(np.isinf(values))[0]}; leave cells empty where there is no number"
            )
        if largest > LARGEST_INPUT:
            raise DataError(
                f"the column `{name}` of {where} holds {largest:g}, beyond {LARGEST_INPUT:g}; "
                "bring it to a scale near 1, or leave it out"
            )
        return values
    if not _is_words(kind):
        raise DataError(f"the column `{name}` of {where} is of type {kind}; {TABLE_ADVICE}")
    words = np.empty(len(column), object)
    words[:] = [clean_text(_text(cell)) for cell in column.to_pylist()]
    _check_words(words, name, where)
    return words if (dates := _dates_in(words)) is None else dates


def _dates_in(words: np.ndarray) -> np.ndarray | None:
    """Words that are dates or times as ISO 8601 writes them, "" being none; None of other words.

    >>> _dates_in(np.array(["2024-02-29", "2024-03-01T12:00+01:00", ""], object)).astype(str)
    array(['2024-02-29T00:00:00', '2024-03-01T11:00:00', 'NaT'], dtype='<U38')
    >>> _dates_in(np.array(["2024-02-30"], object)), _dates_in(np.array([""], object))
    (None, None)
    """
    if not any(words) or not all(ISO_DATE.match(word) for word in words if word):
        return None
    try:
        times = [datetime.fromisoformat(word) if word else None for word in words]
    except ValueError:
        return None
    in_utc = [t.astimezone(UTC).replace(tzinfo=None) if t and t.tzinfo else t for t in times]
    return np.array(in_utc, "datetime64[s]")


def _check_words(words: np.ndarray, name: str, where: object) -> None:
    """Refuse a column of numbers, some of which are no numbers."""
    there = [(row, word) for row, word in enumerate(words.tolist()) if word]
    others = [(row, word) for row, word in there if not _are_numbers([word])]
    are_commas = all(NUMBER.fullmatch(word) for _, word in others)
    if others and (len(others) <= (1 - MOSTLY) * len(there) or are_commas):
        row, word = others[0]
        raise DataError(
            f"the column `{name}` of {where} holds numbers, but {word!r:.50} in row {row}; write "
            "numbers with a point, and leave cells empty where there is none"
        )


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


def _is_words(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_words(kind.value_type)
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return is_text or pa.types.is_binary(kind) or pa.types.is_time(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


# --- arrays, measured by their headers before memory is taken for them -----------------------


def load_arrays(
    path: Path, names: Sequence[str], advice: str = ARRAY_ADVICE
) -> dict[str, np.ndarray]:
    """Those of the named arrays that a .npz file holds; the one array of a .npy file is the first.

    The first must be there.
    """
    check_regular(path)
    with guarded(path, advice), path.open("rb") as file:
        is_archive = file.read(4) in ZIP_BEGINNINGS
        file.seek(0)
        if not is_archive:
            return {names[0]: _read_array(file, path.stat().st_size)}
        with zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            if names[0] not in members:
                raise DataError(
                    f"{path} has no array `{names[0]}`; found: {listed(list(members))}; {advice}"
                )
            return {name: _read_member(archive, members[name]) for name in names if name in members}


def check_memory(n_bytes: int) -> None:
    """Refuse what would not fit into this machine's memory, before any of it is taken."""
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # where the system does not report it
        return
    if n_bytes > memory:
        raise ValueError(f"it announces {n_bytes:,} bytes, and this machine has {memory:,}")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    if info.compress_type not in ZIP_METHODS:
        raise ValueError(f"{info.filename} is compressed by a method that np.savez does not use")
    check_memory(info.file_size)
    with archive.open(info) as file:
        return _read_array(file, info.file_size)


def _read_array(file: IO[bytes], n_bytes: int) -> np.ndarray:
    """One array from a file of so many bytes."""
    read_header = HEADER_READERS.get(np.lib.format.read_magic(file))
    if read_header is None:
        raise ValueError("its header is of a version for arrays of several fields")
    shape, _, dtype = read_header(file)
    if dtype.kind not in KINDS or not dtype.itemsize:
        raise ValueError(f"it holds values of type {dtype}, which are neither numbers nor text")
    if any(length < 0 for length in shape):
        raise ValueError(f"its header gives the shape {shape}")
    announced, there = math.prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if announced > there:
        raise ValueError(
            f"its header announces {announced:,} bytes of values, and it has {there:,}"
        )
    check_memory(announced)
    file.seek(0)
    return np.lib.format.read_array(file, allow_pickle=False)
