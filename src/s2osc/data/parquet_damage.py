"""Damage of Parquet files whose pages have no checksums: numbers that are not those written.

Two things tell of it. The footer says of every column and row group from where to where its numbers
reach: other numbers than these contradict it. And where a block of a file is lost, zeros or one
number again and again stand in its place, from within one vector to within another.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet

LONG_RUN = 64
"""Equal numbers in a row that are no chance: so many of eight bytes are half a kilobyte, the
smallest block of a disk."""
ROWS_OF_RUN, MOST_RUNS = 32, 8
"""One run of equal numbers, long or short, in so many vectors, and at most so many in a batch.
Vectors that hold more of them, such as counts, may well hold long ones."""
FIRST = 4_096
"""Numbers of a batch that mostly tell whether there are more."""


class Reach(NamedTuple):
    """From where to where numbers reach, NaN left out."""

    low: float
    high: float

    def joined(self, other: "Reach") -> "Reach":
        return Reach(np.fmin(self.low, other.low), np.fmax(self.high, other.high))

    def in_words(self) -> str:
        """As a part of a sentence.

        >>> Reach(-1.5, 3.0).in_words(), NOWHERE.in_words()
        ('-1.5 to 3', 'no number')
        """
        return "no number" if self == NOWHERE else f"{self.low:.6g} to {self.high:.6g}"


NOWHERE = Reach(np.inf, -np.inf)


class NumberColumn(NamedTuple):
    """A column of numbers, or of lists of them."""

    place: int  # in a batch
    leaf: int  # in the file
    name: str


class DamageCheck:
    """Sees the batches of some row groups of a file, in their order, as they are read."""

    def __init__(self, parquet: pyarrow.parquet.ParquetFile, groups: Sequence[int]) -> None:
        self.about, self.columns = parquet.metadata, number_columns(parquet.schema_arrow)
        self.groups = [each for each in groups if self.about.row_group(each).num_rows]
        self.n_checked = 0  # rows of the first of these groups
        self.found = [NOWHERE] * len(self.columns)

    def see(self, batch: pa.RecordBatch) -> None:
        """Raise ValueError if a row group that ends with the batch, or the batch, is damaged."""
        start = 0
        while start < len(batch):
            group = self.about.row_group(self.groups[0])
            rows = batch.slice(start, group.num_rows - self.n_checked)
            for i, column in enumerate(self.columns):
                numbers = numbers_of(rows.column(column.place))
                self._check_runs(numbers, len(rows), column)
                self.found[i] = self.found[i].joined(reach_of(numbers))
            start += len(rows)
            self.n_checked += len(rows)
            if self.n_checked == group.num_rows:
                self._end_group(group)

    def _end_group(self, group: pyarrow.parquet.RowGroupMetaData) -> None:
        for column, found in zip(self.columns, self.found, strict=True):
            written = reach_in_footer(group.column(column.leaf))
            if written is not None and found != written:
                raise ValueError(
                    f"row group {self.groups[0]} is damaged: `{column.name}` holds "
                    f"{found.in_words()}, but {written.in_words()} was written"
                )
        self.groups, self.n_checked = self.groups[1:], 0
        self.found = [NOWHERE] * len(self.columns)

    def _check_runs(self, numbers: np.ndarray, n_rows: int, column: NumberColumn) -> None:
        width, rest = divmod(len(numbers), n_rows)
        run = lost_run(numbers, width) if numbers.dtype.kind == "f" and not rest else None
        if run is not None:
            first = self.n_checked + run.start // width
            raise ValueError(
                f"row group {self.groups[0]} is damaged: from its row {first} on, `{column.name}` "
                f"holds {numbers[run.start]:g} {run.stop - run.start} times in a row"
            )


def number_columns(schema: pa.Schema) -> list[NumberColumn]:
    """The columns that can be checked, and their places among the leaves of the file."""
    found, leaf = [], 0
    for place, field in enumerate(schema):
        inner = field.type.value_type if is_list(field.type) else field.type
        if inner in (pa.float32(), pa.float64()) or pa.types.is_integer(inner):
            found.append(NumberColumn(place, leaf, field.name))
        leaf += sum(1 for _ in leaves_of(field.type))
    return found


def is_list(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(type_)
        or pa.types.is_large_list(type_)
        or pa.types.is_fixed_size_list(type_)
    )


def leaves_of(type_: pa.DataType) -> Iterator[pa.DataType]:
    """The types of the plain columns that a column is written as.

    >>> nested = pa.struct({"a": pa.list_(pa.float32()), "b": pa.string()})
    >>> [str(leaf) for leaf in leaves_of(nested)]
    ['float', 'string']
    """
    if not pa.types.is_nested(type_):
        yield type_
        return
    for number in range(type_.num_fields):
        yield from leaves_of(type_.field(number).type)


def numbers_of(column: pa.Array) -> np.ndarray:
    """All numbers of a column, those of lists one after another; what is missing is left out."""
    values = column.flatten() if is_list(column.type) else column
    return np.from_dlpack(values.drop_null())


def reach_of(numbers: np.ndarray) -> Reach:
    """From the least number to the largest."""
    if not len(numbers):
        return NOWHERE
    low, high = numbers.min(), numbers.max()
    if np.isnan(low):  # then some are NaN, which a footer does not count
        low, high = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
    return NOWHERE.joined(Reach(float(low), float(high)))


def reach_in_footer(column: pyarrow.parquet.ColumnChunkMetaData) -> Reach | None:
    """What the footer says of a column in a row group; None: nothing."""
    about = column.statistics
    if about is None or not about.has_min_max or np.isnan([about.min, about.max]).any():
        return None
    return Reach(float(about.min), float(about.max))


def are_repeated(numbers: np.ndarray) -> np.ndarray:
    """(n - 1,) whether each number but the last is followed by an equal one."""
    return np.asarray(numbers[1:] == numbers[:-1])


def n_runs(is_same: np.ndarray) -> int:
    """How many runs of equal numbers there are, without one at the very beginning."""
    return int(np.count_nonzero(is_same[1:] & ~is_same[:-1]))


def lost_run(numbers: np.ndarray, width: int) -> slice | None:
    """Where one number stands in the place of a lost block; ``width`` numbers are a vector.

    A block begins within one vector and ends within another. What is missing of an item as it was
    measured is all of it, or the same part of each.

    >>> numbers = np.arange(12_800.0)
    >>> numbers[130:270] = 0
    >>> lost_run(numbers, 100), lost_run(numbers, 10)
    (slice(130, 270, None), None)
    """
    if width < 2:
        return None
    most = min(MOST_RUNS, len(numbers) // width // ROWS_OF_RUN)
    if n_runs(are_repeated(numbers[:FIRST])) > most:
        return None
    is_same = are_repeated(numbers)
    if np.count_nonzero(is_same) < LONG_RUN - 1 or n_runs(is_same) > most:
        return None
    edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
    for start, last in edges.reshape(-1, 2).tolist():
        end = last + 1
        is_torn = start % width and end % width and start // width < end // width
        if is_torn and end - start >= LONG_RUN:
            return slice(start, end)
    return None
