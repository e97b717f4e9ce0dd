"""A file of answers, as a spreadsheet leaves it -> the label of each item."""

import csv
import re
from pathlib import Path
from typing import NamedTuple

from s2osc.errors import DataError
from s2osc.text import clean_name, from_csv_cell

QUERIES = "queries.csv"


class Said(NamedTuple):
    """What a file of answers says."""

    labels: dict[str, str]  # of items and groups; "" where there is none
    window: str  # the window it is about; "" where the file does not tell
    mark: str = ""  # of that window's answer; "" likewise


def read_answers(path: Path) -> Said:
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
    told_by: dict[str, set[str]] = {"window": set(), "mark": set()}
    for number, cells in enumerate(rows, start=2):
        told = dict(zip(columns, cells, strict=False))
        item = from_csv_cell(told.get("item", ""))
        label = clean_name(from_csv_cell(told.get("label", "").strip()))
        if not item:
            if label:
                raise DataError(f"row {number} of {path} has the label {label!r} but no item")
            continue
        for name, found in told_by.items():
            found.update({_whole(told.get(name, "").strip())} - {""})
        before = labels.get(item, "")
        if before and label and before != label:
            raise DataError(
                f"{path} labels item {item!r} both {before!r} and {label!r}; give it one label"
            )
        labels[item] = before or label
    for found in told_by.values():
        if len(found) > 1:
            raise DataError(
                f"{path} answers several windows ({', '.join(sorted(found))}); give a file for each"
            )
    return Said(labels, *("".join(found) for found in told_by.values()))


def _whole(cell: str) -> str:
    """A number as it was written before a table of floats held it.

    >>> _whole("1.0"), _whole("12"), _whole("1.5")
    ('1', '12', '1.5')
    """
    return re.sub(r"^(\d+)\.0+$", r"\1", cell)


def _read_cells(path: Path) -> tuple[list[str], list[list[str]]]:
    """The first row, and all others."""
    if not path.is_file():
        raise DataError(f"there is no file {path}; give a window's {QUERIES}")
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = lines.readline()
            lines.seek(0)
            header, *rows = csv.reader(lines, delimiter=max(",;\t", key=first.count))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text; save it as CSV in UTF-8") from error
    except (OSError, ValueError, csv.Error) as error:
        reason = "it is empty" if isinstance(error, ValueError) else error
        raise DataError(f"{path} cannot be read as a CSV file ({reason}); save it again") from error
    return header, rows
