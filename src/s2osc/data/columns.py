"""Tables of numbers, dates and words as vectors: which columns are used, and how.

    numbers, dates    a column each; what is missing is filled with the median
    words             a column of zeros and ones for each word that is not rare

Columns that name their row (numbers that occur once, ids, times in order) tell nothing about its
class and are left out, unless a user asks for them. What was chosen is a ``TableEncoder``, a plain
value: the transformers of scikit-learn that it works with are made from it, and no pickle is read.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from s2osc.codec import fields_from_plain
from s2osc.errors import DataError
from s2osc.lazy import lazily
from s2osc.text import listed, plural, shortened
from s2osc.types import LARGEST_INPUT, check_inputs

impute = lazily("sklearn.impute")
preprocessing = lazily("sklearn.preprocessing")

FEWEST_ROWS = 20
"""Numbers of fewer rows may differ by chance."""
FEWEST_ITEMS = 3
"""Items that share a word before it gets a column: two may share one by chance."""
MOST_WORDS = 100
"""Columns for the words of one column: those of most items."""
COVERED = 0.5
"""Of the items, by words with a column of their own; where fewer are, the words name their rows."""
LONGEST_WORD = 1_000  # characters, of those read from a saved model
MOST_COLUMNS = 1_000_000
MANY_WORDS = 3.0
"""In a cell, on average: from there on they are sentences."""
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
OTHER_DATE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([ T].*)?")
UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
SHOWN_COLUMNS = 12
LONGEST_CELL = 60  # characters
SECONDS_OF_A_DAY = 86_400
KINDS = {"number": "biufM", "word": "O"}


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of one length, by name.

    Numbers and dates have numpy's types, missing ones being NaN and NaT; words are objects, missing
    ones being "".
    """

    columns: Mapping[str, np.ndarray]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def keep(self, rows: Sequence[int] | np.ndarray) -> "Table":
        return Table({name: values[rows] for name, values in self.columns.items()})

    def in_words(self) -> list[str]:
        """Each row in words, its first columns only.

        >>> Table({"width": np.array([2.0]), "colour": np.array(["red"], object)}).in_words()
        ['width 2, colour red']
        """
        shown = list(self.columns.items())[:SHOWN_COLUMNS]
        cells = [[f"{name} {_shown(value)}" for value in values] for name, values in shown]
        return [", ".join(row) for row in zip(*cells, strict=True)]

    def as_vectors(self, what: str) -> np.ndarray:
        """All columns side by side, (n, D) float32; words and missing values are refused."""
        for name, values in self.columns.items():
            if values.dtype == object:
                raise DataError(f"{what} has words in the column `{name}`; give numbers alone")
        return check_inputs(_side_by_side(self.columns.values()), what)


@dataclass(frozen=True)
class Columns:
    """Which columns of a table were used, for summaries."""

    used: tuple[str, ...]
    left_out: dict[str, str]  # with the reason


@dataclass(frozen=True)
class NumberColumn:
    """A column of numbers or dates."""

    name: str
    fill: float  # in place of what is missing


@dataclass(frozen=True)
class WordColumn:
    """A column of words, of which each that is listed has a column of zeros and ones."""

    name: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class TableEncoder:
    """Which columns of a table become which columns of vectors."""

    numbers: tuple[NumberColumn, ...]
    words: tuple[WordColumn, ...]
    left_out: dict[str, str] = field(default_factory=dict)  # columns, and why

    @property
    def names(self) -> list[str]:
        """The columns used."""
        return [number.name for number in self.numbers] + [word.name for word in self.words]

    @property
    def n_features(self) -> int:
        return len(self.numbers) + sum(len(column.words) for column in self.words)

    def encode(self, table: Table, what: str) -> np.ndarray:
        """Vectors (n, n_features) float32; words without a column are zeros in all of them."""
        self.check(table, what)
        parts = []
        if self.numbers:
            numbers = _side_by_side(table.columns[column.name] for column in self.numbers)
            parts.append(self._imputer.transform(numbers))
        if self.words:
            words = [as_words(table.columns[column.name]) for column in self.words]
            parts.append(self._one_hot.transform(np.stack(words, axis=1)))
        return check_inputs(np.concatenate(parts, axis=1), what)

    def check(self, table: Table, what: str) -> None:
        """Refuse a table that lacks a column, or has one of another kind."""
        missing = [name for name in self.names if name not in table.columns]
        if missing:
            raise DataError(
                f"{what} lacks columns that are used: {listed(missing)}; found: "
                f"{listed(list(table.columns))}"
            )
        for kind, columns in (("number", self.numbers), ("word", self.words)):
            for column in columns:
                values = table.columns[column.name]
                if values.dtype.kind not in KINDS[kind] and not _is_missing(values).all():
                    raise DataError(
                        f"{what} holds other values than {kind}s in the column `{column.name}`; "
                        f"give {kind}s as in the labelled items"
                    )

    def count_missing(self, *tables: Table) -> dict[str, int]:
        """Missing values of each column used that has any."""
        found = {
            name: sum(int(_is_missing(table.columns[name]).sum()) for table in tables)
            for name in self.names
        }
        return {name: n for name, n in found.items() if n}

    @cached_property
    def _imputer(self) -> Any:
        # Fitted to one row, which is its own median.
        fills = [[column.fill for column in self.numbers]]
        return impute.SimpleImputer(strategy="median").fit(np.array(fills))

    @cached_property
    def _one_hot(self) -> Any:
        categories = [np.array(column.words, object) for column in self.words]
        encoder = preprocessing.OneHotEncoder(
            categories=categories, handle_unknown="ignore", sparse_output=False, dtype=np.float32
        )
        # All it could learn is given; scikit-learn wants to see a row all the same.
        return encoder.fit(np.array([[words[0] for words in categories]], object))

    @classmethod
    def from_json(cls, entry: Any, what: str = "the table") -> "TableEncoder":
        """The encoder in a file, which may be a stranger's; a ``ValueError`` where it is none."""
        found = fields_from_plain(cls, entry, what)
        for column in found.words:
            if not column.words or list(column.words) != sorted(set(column.words)):
                raise ValueError(f"{what}: the words of {column.name!r:.100} are not in order")
            if max(map(len, column.words)) > LONGEST_WORD:
                raise ValueError(f"{what}: {column.name!r:.100} holds a word of great length")
        for number in found.numbers:
            if abs(number.fill) > LARGEST_INPUT:
                raise ValueError(f"{what}: {number.name!r:.100} is filled with {number.fill:g}")
        if not 0 < found.n_features <= MOST_COLUMNS or len(set(found.names)) < len(found.names):
            raise ValueError(f"{what} has no columns, very many, or one of them twice")
        return found


def _shown(value: Any) -> str:
    """A value for people; what is missing is a dash."""
    if isinstance(value, str):
        return shortened(value, LONGEST_CELL) or "–"
    if isinstance(value, np.datetime64):
        return "–" if np.isnat(value) else str(value).removesuffix("T00:00:00")
    return "–" if np.isnan(value) else f"{value:.5g}"


# --- which columns ---------------------------------------------------------------------------


def choose_columns(*tables: Table, keep: Sequence[str] = ()) -> TableEncoder:
    """The encoder of labelled items and pool, whose columns are those of the first.

    The columns ``keep`` are used in any case.
    """
    names = list(tables[0].columns)
    for name in keep:
        if name not in names:
            raise DataError(
                f"the column {name!r} that is to be kept is not there; found: {listed(names)}"
            )
    numbers: list[NumberColumn] = []
    words: list[WordColumn] = []
    left_out: dict[str, str] = {}
    for name in names:
        parts = [table.columns[name] for table in tables]
        there = [values for values in parts if not _is_missing(values).all()]
        if len({_kind(values) for values in there}) > 1:
            kinds = [f"{_kind(values)} (such as {_example(values)})" for values in there]
            raise DataError(
                f"the column `{name}` holds {kinds[0]} in one file and {kinds[1]} in the other; "
                "give the same in both"
            )
        if any(values.dtype == object for values in there):
            parts = [as_words(values) for values in parts]
        if name not in keep and (why := why_left_out(parts)):
            left_out[name] = why
        elif parts[0].dtype == object:
            found = np.concatenate(parts)
            # Of a column that is wanted in any case, rare words if there are no others.
            used = frequent_words(found) or dict.fromkeys(sorted(set(found))[:MOST_WORDS])
            words.append(WordColumn(name, tuple(sorted(used))))
        else:
            numbers.append(NumberColumn(name, _median(parts)))
    if not numbers and not words:
        reasons = [f"`{name}` ({why})" for name, why in left_out.items()]
        raise DataError(
            f"no column can be used: {listed(reasons)}; give others, or bring one back with "
            "--keep-column (keep_columns in Python)"
        )
    return TableEncoder(tuple(numbers), tuple(words), left_out)


def notes_on_columns(encoder: TableEncoder, *tables: Table) -> list[str]:
    """What a user should know about columns that are left out, or filled."""
    notes = []
    if encoder.left_out:
        reasons = [f"`{name}` ({why})" for name, why in encoder.left_out.items()]
        first = next(iter(encoder.left_out))
        notes.append(
            f"not used: {listed(reasons)}; --keep-column {shlex.quote(first)}, or keep_columns in "
            "Python, brings it back"
        )
    if missing := encoder.count_missing(*tables):
        n_rows = sum(len(table) for table in tables)
        filled = [f"`{name}` ({n:,} of {n_rows:,})" for name, n in missing.items()]
        notes.append(
            f"missing values are filled, numbers with the median of their column, words with a "
            f"word of their own: {listed(filled)}"
        )
    return notes


def why_left_out(parts: Sequence[np.ndarray]) -> str:
    """Why a column, in one or two tables, tells nothing about classes; "" where it may.

    >>> why_left_out([np.arange(100), np.arange(50)])
    'whole numbers that occur once each, as those of an identifier'
    >>> why_left_out([np.arange(100) % 90])
    ''
    """
    empty = [bool(_is_missing(part).all()) for part in parts]
    if any(empty):
        return "it is empty" if all(empty) else "it is empty in one of the files"
    values = np.concatenate(parts)
    if values.dtype == object:
        return _why_no_words(values)
    if len(values) < FEWEST_ROWS or _is_missing(values).any():
        return ""
    is_date = values.dtype.kind == "M"
    are_whole = not is_date and bool((values == np.floor(values)).all())
    if are_whole and all(len(np.unique(part)) == len(part) for part in parts):
        return "whole numbers that occur once each, as those of an identifier"
    # Times of a day or a second may be those of several rows.
    if all(_is_in_order(part, strictly=not is_date) for part in parts):
        return "times in order" if is_date else "it rises or falls from row to row, as times do"
    return ""


def _why_no_words(values: np.ndarray) -> str:
    there = [value for value in values.tolist() if value]
    if all(UUID.fullmatch(value) for value in there):
        return "identifiers"
    n_covered = sum(frequent_words(values).values())
    if n_covered >= COVERED * len(values) or len(values) < FEWEST_ROWS:
        return ""
    if sum(len(value.split()) for value in there) >= MANY_WORDS * len(there):
        return "sentences, which --text-column reads; in Python, give the column alone as X"
    if all(NUMBER.fullmatch(value) for value in there):
        return "numbers that are written as text; write them as numbers"
    if all(OTHER_DATE.fullmatch(value) for value in there):
        return "dates in a form that is not read; write them like 2024-12-31"
    return f"{plural(len(set(there)), 'word')}, most of which hardly any items share"


def frequent_words(values: np.ndarray) -> dict[str, int]:
    """The words of a column that several items share, at most 100, and how many have each.

    >>> frequent_words(np.array(["red", "blue", "red", "red", ""], object))
    {'red': 3}
    """
    counts = Counter(values.tolist()).most_common(MOST_WORDS)
    return {word: n for word, n in counts if n >= FEWEST_ITEMS}


def _is_in_order(values: np.ndarray, *, strictly: bool) -> bool:
    """Whether values rise throughout, or fall."""
    before, after = values[:-1], values[1:]
    if strictly:
        return bool((before < after).all() or (before > after).all())
    return bool((before <= after).all() or (before >= after).all())


def _median(parts: Sequence[np.ndarray]) -> float:
    values = _side_by_side([np.concatenate(parts)])
    return float(np.nan_to_num(np.nanmedian(values))) if np.isfinite(values).any() else 0.0


def as_words(values: np.ndarray) -> np.ndarray:
    """Words; a column without any value may have come as one of numbers.

    >>> as_words(np.array([np.nan])).tolist(), as_words(np.array(["red"], object)).tolist()
    ([''], ['red'])
    """
    return values if values.dtype == object else np.full(len(values), "", object)


def _kind(values: np.ndarray) -> str:
    return {"O": "words", "M": "dates"}.get(values.dtype.kind, "numbers")


def _example(values: np.ndarray) -> str:
    """The first value that tells a column's kind: of words, one that is no number."""
    there = values[~_is_missing(values)].tolist()
    if values.dtype.kind == "M":
        return _shown(values[~_is_missing(values)][0])
    odd = [v for v in there if isinstance(v, str) and not NUMBER.fullmatch(v)]
    return repr((odd or there)[0])[:LONGEST_CELL]


def _is_missing(values: np.ndarray) -> np.ndarray:
    if values.dtype == object:
        return values == ""
    return np.isnan(values) if values.dtype.kind in "fM" else np.zeros(len(values), bool)


def _side_by_side(columns: Iterable[np.ndarray]) -> np.ndarray:
    """Columns as (n, D) float64, dates in days."""
    return np.stack([as_numbers(values) for values in columns], axis=1)


def as_numbers(values: np.ndarray) -> np.ndarray:
    """Numbers, and dates in days; a column without any value may have come as one of words."""
    if values.dtype == object:
        return np.full(len(values), np.nan)
    if values.dtype.kind != "M":
        return values.astype(np.float64)
    seconds = values.astype("datetime64[s]")
    days = seconds.astype(np.int64) / SECONDS_OF_A_DAY
    return np.where(np.isnat(seconds), np.nan, days)
