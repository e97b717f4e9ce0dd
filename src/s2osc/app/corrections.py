"""What a person says about items of a pool: a file, and the labels a new fit starts from.

    a class     the item leaves the pool and joins the labelled ones; a new name is a new class
    unknown     the item stays in the pool, among whose groups it belongs, and is called unknown
                whatever its score

Either way it keeps the label that the person gave it. The rest of the pool is sorted anew.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from s2osc.data.answers import label_table, read_labels
from s2osc.data.inputs import UNKNOWN_NAME, UNSURE_NAME, Items
from s2osc.errors import DataError
from s2osc.text import clean_text, from_csv_cell, listed, match_classes, match_ids, plural

COLUMNS = ("item", "label", "by", "at")
LIKE = "a table with the columns item and label, and by and at where that is known"
FEWEST = 2
"""Items of a class, from which on it can be learnt."""


@dataclass(frozen=True)
class Correction:
    """One item, and what a person calls it."""

    item: str
    label: str  # a class, or "unknown"
    by: str = ""  # who, as they call themselves; "" where nobody says
    at: str = ""  # when, likewise

    @property
    def is_unknown(self) -> bool:
        return self.label == UNKNOWN_NAME


@dataclass(frozen=True)
class Corrections:
    """The corrections of one pool, each item once."""

    rows: tuple[Correction, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.rows)

    @property
    def named(self) -> tuple[Correction, ...]:
        """Those that give a class."""
        return tuple(row for row in self.rows if not row.is_unknown)

    def of_items(self) -> dict[str, Correction]:
        return {row.item: row for row in self.rows}

    def is_unknown(self, names: Sequence[str]) -> np.ndarray:
        """(n,) whether a person calls each of these items unknown."""
        unknown = {row.item for row in self.rows if row.is_unknown}
        return np.array([name in unknown for name in names], bool)

    def sizes(self) -> dict[str, int]:
        """Items that were given each class."""
        return dict(Counter(row.label for row in self.named))

    def matched(
        self, names: Iterable[str], where: object, classes: Iterable[str] = ()
    ) -> "Corrections":
        """The same by the names that items and classes had before a spreadsheet changed them."""
        meant = match_classes((row.label for row in self.rows), list(dict.fromkeys(classes)))
        matched = match_ids((row.item for row in self.rows), names)
        for row in self.rows:
            if row.item not in matched:
                raise DataError(
                    f"item {row.item!r} of {where} is not in the pool; give items as "
                    "predictions.csv names them"
                )
        return Corrections(
            tuple(
                replace(row, item=matched[row.item], label=meant.get(row.label, row.label))
                for row in self.rows
            )
        )

    def in_words(self, classes: Iterable[str]) -> str:
        """One sentence on what became of them; ``classes`` are those known before."""
        sizes, n_unknown = self.sizes(), len(self.rows) - len(self.named)
        new = [name for name in sizes if name not in set(classes)]
        parts = []
        if sizes:
            counts = listed([f"{name} {n:,}" for name, n in sizes.items()])
            added = f"; new: {listed(new)}" if new else ""
            parts.append(f"{len(self.named):,} joined the labelled items ({counts}{added})")
        if n_unknown:
            parts.append(f"{n_unknown:,} stayed in the pool and count as unknown")
        return (
            f"a person labelled {plural(len(self.rows), 'item')} of the pool: "
            f"{', '.join(parts)}; they keep these labels, and the rest was sorted anew"
        )


NO_CORRECTIONS = Corrections()


def read_corrections(path: Path) -> Corrections:
    """The labels in a CSV file, as a spreadsheet leaves it; rows without one say nothing."""
    table = read_labels(path, like=LIKE, others=("by", "at"))
    rows = tuple(
        Correction(item, _label(label, item, path), **_who_and_when(table.cells[item]))
        for item, label in table.labels.items()
        if label
    )
    if not rows:
        raise DataError(f"{path} holds no label; write classes, or unknown, into its column label")
    return Corrections(rows)


def _label(label: str, item: str, path: Path) -> str:
    if label.casefold() == UNSURE_NAME:
        raise DataError(
            f"{path} calls item {item!r} {label}; give it a class, or unknown, or leave it out"
        )
    return UNKNOWN_NAME if label.casefold() == UNKNOWN_NAME else label


def _who_and_when(cells: Mapping[str, str]) -> dict[str, str]:
    return {name: clean_text(from_csv_cell(cell)) for name, cell in cells.items()}


def corrections_table(corrections: Corrections) -> bytes:
    """The file that ``read_corrections`` reads."""
    return label_table(COLUMNS, ((row.item, row.label, row.by, row.at) for row in corrections.rows))


@dataclass(frozen=True, eq=False)
class Joined:
    """Labelled items and a pool, after a person's labels moved items from one to the other."""

    known_inputs: np.ndarray
    known_labels: list[str]
    pool: Items
    pool_inputs: np.ndarray


def join_labelled(
    known: Items,
    pool: Items,
    corrections: Corrections,
    *,
    known_inputs: np.ndarray,
    pool_inputs: np.ndarray,
) -> Joined:
    """Move the items that were given a class to the labelled ones.

    Inputs are as the networks get them, one for each item. The names of corrections are the pool's.
    """
    labels = list(known.labels or [])
    if not corrections.named:
        return Joined(known_inputs, labels, pool, pool_inputs)
    check_sizes(corrections, labels)
    row_of = {name: row for row, name in enumerate(pool.names)}
    moved = [row_of[row.item] for row in corrections.named]
    rest = np.setdiff1d(np.arange(len(pool)), moved)
    return Joined(
        known_inputs=np.concatenate([known_inputs, pool_inputs[moved]]),
        known_labels=[*labels, *(row.label for row in corrections.named)],
        pool=pool.keep(rest),
        pool_inputs=pool_inputs[rest],
    )


def check_sizes(corrections: Corrections, labels: Iterable[str]) -> None:
    """Refuse a new class that is too small to be learnt."""
    known = set(labels)
    for name, n in corrections.sizes().items():
        if name not in known and n < FEWEST:
            raise DataError(
                f"the corrections give the new class {name!r} to 1 item; give it to at least "
                f"{FEWEST}, or call that item unknown"
            )
