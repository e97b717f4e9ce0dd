"""A file of answers, as a spreadsheet leaves it -> the label of each item."""

import csv
import io
import re
from pathlib import Path
from typing import NamedTuple

from s2osc.errors import DataError
from s2osc.files import guarded, read_whole
from s2osc.text import clean_name, from_csv_cell

QUERIES = "queries.csv"
LARGEST_FILE = 2**28


class Answers(NamedTuple):
    """The labels in a file, and the window that they are about."""

    labels: dict[str, str]  # of items and groups; "" where there is none
    window: str  # the window it is about; "" where the file has no such column
    mark: str = ""  # of that window's answer; "" likewise


def read_answers(path: Path) -> Answers:
    """The columns `item` and `label` of a CSV file as spreadsheets write it; others are free."""
    header, rows = _read_cells(path)
    columns = [cell.strip().casefold() for cell in header]
    for name in ("item", "label"):
        if columns.count(name) != 1:
            raise DataError(
                f"{path} has {'no' if name not in columns else 'more than one'} column `{name}`; "
                f"found: {', '.join(header)}; give `item` and `label`, as in a window's {QUERIES}"
            )
    labels: dict[str, str] = {}
    about: dict[str, set[str]] = {"window": set(), "mark": set()}
    for number, cells in enumerate(rows, start=2):
        row = dict(zip(columns, cells, strict=False))
        item, label = from_csv_cell(row.get("item", "")), _label(row.get("label", ""))
        if not item:
            if label:
                raise DataError(f"row {number} of {path} has the label {label!r} but no item")
            continue
        for name, found in about.items():
            found.update({_whole(row.get(name, "").strip())} - {""})
        before = labels.get(item, "")
        if before and label and before != label:
            raise DataError(
                f"{path} labels item {item!r} both {before!r} and {label!r}; give it one label"
            )
        labels[item] = before or label
    for found in about.values():
        if len(found) > 1:
            raise DataError(
                f"{path} answers several windows ({', '.join(sorted(found))}); give a file for each"
            )
    return Answers(labels, *("".join(found) for found in about.values()))


def _label(cell: str) -> str:
    return clean_name(from_csv_cell(cell.strip()))


def _whole(cell: str) -> str:
    """A number as it was written before a table of floats held it.

    >>> _whole("1.0"), _whole("12"), _whole("1.5")
    ('1', '12', '1.5')
    """
    return re.sub(r"^(\d+)\.0+$", r"\1", cell)


def _read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The first row, and all others."""
    if not path.exists():
        raise DataError(f"there is no file {path}; give a window's {QUERIES}")
    content = read_whole(path, largest=LARGEST_FILE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from error
    if not text.strip():
        raise DataError(f"{path} is empty; give a window's {QUERIES}")
    with guarded(path, "save it again as CSV"):
        first = text.splitlines()[0]
        delimiter = max(",;\t", key=first.count)
        header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    return header, rows
