"""Tables that a person writes labels into: made for spreadsheets, and read as these leave them."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from s2osc.errors import DataError
from s2osc.files import guarded, read_whole
from s2osc.text import clean_name, clean_text, csv_cell, from_csv_cell

LARGEST_FILE = 2**28


class LabelTable(NamedTuple):
    """The labels in a file, and what other columns of it hold."""

    labels: dict[str, str]  # of each item; "" where there is none
    others: dict[str, set[str]]  # the values of each column asked for, without empty ones
    cells: dict[str, dict[str, str]]  # the same columns of the row that labels an item


def label_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A table to write labels into, as CSV."""
    table = io.StringIO(newline="")
    csv.writer(table).writerow(columns)
    for row in rows:
        cells = [csv_cell(clean_text(cell)) if isinstance(cell, str) else cell for cell in row]
        csv.writer(table).writerow(cells)
    text = table.getvalue()
    # With a mark at the beginning spreadsheets read other letters right; scripts do without it.
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def read_labels(path: Path, *, like: str, others: Sequence[str] = ()) -> LabelTable:
    """The columns `item` and `label` of a CSV file as spreadsheets write it.

    ``like`` names the file that is wanted, ``others`` are columns that may be there.
    """
    header, rows = _read_cells(path, like)
    columns = [cell.strip().casefold() for cell in header]
    for name in ("item", "label"):
        if columns.count(name) != 1:
            raise DataError(
                f"{path} has {'no' if name not in columns else 'more than one'} column `{name}`; "
                f"found: {', '.join(header)}; give `item` and `label`, as in {like}"
            )
    labels: dict[str, str] = {}
    values: dict[str, set[str]] = {name: set() for name in others}
    of_item: dict[str, dict[str, str]] = {}
    for number, written in enumerate(rows, start=2):
        row = dict(zip(columns, written, strict=False))
        item, label = from_csv_cell(row.get("item", "")), _label(row.get("label", ""))
        if not item:
            if label:
                raise DataError(f"row {number} of {path} has the label {label!r} but no item")
            continue
        cells = {name: row.get(name, "").strip() for name in others}
        for name, found in values.items():
            found.update({cells[name]} - {""})
        before = labels.get(item, "")
        if before and label and before != label:
            raise DataError(
                f"{path} labels item {item!r} both {before!r} and {label!r}; give it one label"
            )
        labels[item] = before or label
        if label and not before:
            of_item[item] = cells
    return LabelTable(labels, values, of_item)


def _label(cell: str) -> str:
    return clean_name(from_csv_cell(cell.strip()))


def _read_cells(path: Path, like: str) -> tuple[list[str], list[list[str]]]:
    """The first row, and all others."""
    if not path.exists():
        raise DataError(f"there is no file {path}; give {like}")
    content = read_whole(path, largest=LARGEST_FILE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; give {like}")
    with guarded(path, "save it again as CSV"):
        first = text.splitlines()[0]
        delimiter = max(",;\t", key=first.count)
        header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return header, rows
