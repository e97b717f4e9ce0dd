"""The answer as a table of one row per item, for results and for new items alike."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from s2osc.app.corrections import NO_CORRECTIONS, Corrections
from s2osc.data.arrow import number_column, text_column
from s2osc.data.columns import Table
from s2osc.data.inputs import UNKNOWN_NAME, UNSURE_NAME, Skipped
from s2osc.text import clean_text, csv_cell, shortened
from s2osc.types import Answer

UNNAMED = (UNSURE_NAME, UNKNOWN_NAME)
"""What -2 and -1 are called: read backwards from the names of the known classes."""
PROGRAM, PERSON = "s2osc", "a person"
"""Who labelled an item, where nobody says more."""
LONGEST_TEXT = 1_000
"""Characters of a text that tables and pages show."""


def write_csv(table: pa.Table, target: Any) -> None:
    """Write a table whose texts no spreadsheet takes for formulas."""
    for place, name in enumerate(table.column_names):
        if pa.types.is_string(table.schema.field(name).type):
            cells = [text and csv_cell(text) for text in table[name].to_pylist()]
            table = table.set_column(place, name, text_column(cells))
    pyarrow.csv.write_csv(table, target)


TABLE_WRITERS = {
    ".csv": write_csv,
    ".parquet": pyarrow.parquet.write_table,
}


def table_bytes(
    suffix: str,
    *,
    names: list[str],
    texts: list[str] | None = None,
    answer: Answer,
    nearest_confidence: np.ndarray,
    operating_points: np.ndarray | None,
    classes: Sequence[str],
    corrections: Corrections = NO_CORRECTIONS,
) -> bytes:
    """One row per item, as the content of a .csv or .parquet file.

    Where a person gave corrections, items that joined the labelled ones follow, and two columns
    say who labelled each item, and when.
    """
    table = answer_table(
        names=names,
        texts=texts,
        answer=answer,
        nearest_confidence=nearest_confidence,
        operating_points=operating_points,
        classes=classes,
    )
    if corrections:
        table = with_corrections(table, corrections)
    content = io.BytesIO()
    TABLE_WRITERS[suffix](table, content)
    return content.getvalue()


def answer_table(
    *,
    names: list[str],
    texts: list[str] | None = None,
    answer: Answer,
    nearest_confidence: np.ndarray,
    operating_points: np.ndarray | None,
    classes: Sequence[str],
) -> pa.Table:
    """One row per item.

    An item is unknown where ``p_known`` is at most ``operating_point``, so neither is rounded.
    The operating point differs where known classes have limits of their own.
    """
    nothing = pa.nulls(len(names), pa.float64())
    label_names = np.array([*classes, *UNNAMED], object)
    columns: dict[str, pa.Array] = {
        "item": text_column(names),
        **({"text": text_column(texts)} if texts is not None else {}),
        "label": text_column(label_names[answer.labels]),
        "group": number_column(answer.groups, answer.groups < 0),
        "confidence": number_column(answer.confidence.astype(np.float32)),
        "nearest": text_column(label_names[answer.nearest]),
        "nearest_confidence": number_column(nearest_confidence.astype(np.float32)),
        "p_known": nothing if answer.p_known is None else number_column(answer.p_known),
        "operating_point": nothing if operating_points is None else number_column(operating_points),
        "unknown_score": number_column(answer.unknown_score.astype(np.float32)),
        "distinctness": number_column(answer.distinctness.astype(np.float32)),
        "filtered": number_column(answer.filtered),
    }
    return pa.Table.from_arrays(list(columns.values()), list(columns))


def with_corrections(table: pa.Table, corrections: Corrections) -> pa.Table:
    """A table of answers with the items that a person gave a class, and who labelled each item."""
    by_item, named = corrections.of_items(), corrections.named
    columns: dict[str, list[Any]] = {
        "item": [row.item for row in named],
        "label": [row.label for row in named],
        "confidence": [1.0] * len(named),
        "nearest": [row.label for row in named],
    }
    types = {name: table.schema.field(name).type for name in columns}
    more = pa.table({name: pa.array(cells, types[name]) for name, cells in columns.items()})
    whole = pa.concat_tables([table, more], promote_options="default")
    given = [by_item.get(name) for name in whole["item"].to_pylist()]
    by = [PROGRAM if row is None else row.by or PERSON for row in given]
    at = [None if row is None else row.at or None for row in given]
    return whole.append_column("labelled_by", pa.array(by)).append_column(
        "labelled_at", pa.array(at, pa.string())
    )


def texts_of(items: np.ndarray | Table | None) -> list[str] | None:
    """Texts, each on one line and not too long, or rows of a table in words; None of others."""
    if items is None:
        return None
    if isinstance(items, Table):
        return items.in_words()
    return [clean_text(shortened(text, LONGEST_TEXT)) for text in items]


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    columns = {"item": [s.name for s in skipped], "reason": [s.reason for s in skipped]}
    with path.open("wb") as file:  # Arrow opens no name that is not UTF-8
        write_csv(pa.table(columns), file)


def skipped_note(skipped: Sequence[Skipped], where: str) -> list[str]:
    """One sentence on items that were left out, or none."""
    if not skipped:
        return []
    items = "1 item was" if len(skipped) == 1 else f"{len(skipped):,} items were"
    return [f"{items} skipped (first: {skipped[0].name}, {skipped[0].reason}); {where}"]
