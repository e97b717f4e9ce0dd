"""Columns of Arrow tables without pandas.

pyarrow imports pandas, if that is installed, before it looks at any array or list: a seventh of all
that a prediction of one item imports. From buffers it makes the same columns at once.
"""

import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute


def number_column(values: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Numbers or truth values (n,); null where ``missing``.

    >>> number_column(np.array([1, 2]), np.array([False, True])).to_pylist()
    [1, None]
    """
    there = None if missing is None else _bits(~missing)
    kind = pa.from_numpy_dtype(values.dtype)
    held = _bits(values) if values.dtype == bool else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [there, held])


def text_column(texts: Iterable[str | None]) -> pa.Array:
    """Texts; null where there is none.

    >>> text_column(["a", None, "bc"]).to_pylist()
    ['a', None, 'bc']
    """
    encoded = [None if text is None else text.encode() for text in texts]
    cells = [cell or b"" for cell in encoded]
    ends = np.cumsum([0, *map(len, cells)])
    wide = ends[-1] > np.iinfo(np.int32).max
    there = _bits(np.array([cell is not None for cell in encoded], bool))
    offsets = pa.py_buffer(ends.astype(np.int64 if wide else np.int32))
    kind = pa.large_string() if wide else pa.string()
    return pa.Array.from_buffers(kind, len(cells), [there, offsets, pa.py_buffer(b"".join(cells))])


def numbers_in(column: pa.Array | pa.ChunkedArray) -> np.ndarray:
    """The numbers of a column; NaN where one is missing.

    >>> numbers_in(pa.array([1, 2])).tolist(), numbers_in(pa.array([1, None])).tolist()
    ([1, 2], [1.0, nan])
    """
    if column.null_count:
        column = pyarrow.compute.fill_null(column.cast(pa.float64(), safe=False), math.nan)
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return np.from_dlpack(whole).copy()


def _bits(values: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))
