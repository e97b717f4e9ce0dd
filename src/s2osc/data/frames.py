"""What users of Python give in place of arrays: strings, and data frames of pandas or polars."""

from typing import Any

import numpy as np
import pyarrow as pa

from s2osc.data.columns import Table
from s2osc.data.tables import ROW_NUMBERS, column_values
from s2osc.errors import DataError
from s2osc.files import reason


def texts_in(X: Any, *, may_be_empty: bool = False) -> np.ndarray | None:
    """(n,) texts, where X is a list, an array or a series of strings; None for anything else.

    A missing text (None, NaN) is empty. Where nothing but the items tells that they are texts, they
    may not all be empty.

    >>> texts_in(["a text", None]).tolist(), texts_in([1, 2]), texts_in([["a"]])
    (['a text', ''], None, None)
    >>> texts_in([None]), texts_in([None], may_be_empty=True).tolist()
    (None, [''])
    """
    if isinstance(X, str):
        raise DataError("X is one string; give a list of texts, such as [text]")
    cells = np.asarray(X, dtype=object) if isinstance(X, list | tuple) else np.asarray(X)
    if cells.ndim != 1 or cells.dtype.kind not in "UOT":
        return None
    texts = np.empty(len(cells), object)
    texts[:] = ["" if _is_missing(cell) else cell for cell in cells.tolist()]
    is_text = [isinstance(cell, str) for cell in texts]
    if not any(is_text) or not (may_be_empty or any(texts)):
        return None
    if not all(is_text):
        other = texts[is_text.index(False)]
        raise DataError(f"X mixes texts with {other!r:.50}; give strings throughout")
    return texts


def _is_missing(cell: Any) -> bool:
    return cell is None or (not isinstance(cell, str) and str(cell) in ("<NA>", "nan"))


def table_in(X: Any) -> Table | None:
    """The columns of a data frame whose columns have names; None for anything else."""
    names = list(getattr(X, "columns", ()))
    if not names or not hasattr(X, "__arrow_c_stream__"):
        return None
    if not all(isinstance(name, str) for name in names):
        return None
    try:
        table = pa.table(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(
            f"X cannot be read as a table ({reason(error)}); give columns of numbers or of words"
        ) from error
    used = [name for name in names if not name.startswith(ROW_NUMBERS)]
    return Table({name: column_values(table[name], name, "X") for name in used})
