"""Labels as a table: one row per item, with who says so, and when."""

import io
import json
from typing import Any

import pyarrow as pa

from s2osc.app.answer_tables import TABLE_WRITERS
from s2osc.app.export.items import LabelledPool

COLUMNS = ("item", "label", "group", "confidence", "nearest", "p_known")


def table_file(pool: LabelledPool, suffix: str) -> bytes:
    """The content of a .csv or .parquet file."""
    table = io.BytesIO()
    TABLE_WRITERS[suffix](pa.Table.from_pylist(rows(pool), schema()), table)
    return table.getvalue()


def json_lines(pool: LabelledPool) -> bytes:
    """An object in each line; what is not known is null."""
    return "".join(
        json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows(pool)
    ).encode()


def rows(pool: LabelledPool) -> list[dict[str, Any]]:
    return [
        {name: getattr(item, name) for name in COLUMNS}
        | {"labelled_by": item.by, "labelled_at": item.at or None}
        for item in pool.items
    ]


def schema() -> pa.Schema:
    number, text = pa.float64(), pa.string()
    types = (text, text, pa.int64(), number, text, number)
    columns = list(zip(COLUMNS, types, strict=True))
    return pa.schema([*columns, ("labelled_by", text), ("labelled_at", text)])
