"""Data sets -> what a method gets and what it is judged by: the paper's protocols."""

from dataclasses import dataclass

import numpy as np

from s2osc.data.datasets import Dataset
from s2osc.errors import DataError, SettingsError
from s2osc.seeding import rng
from s2osc.types import UNKNOWN, Labelled, Split

FEWEST_SHIFTED = 2
"""Known classes: one that is absent, one that is more frequent."""


@dataclass(frozen=True)
class Protocol:
    """Which classes are known, and how many items of each go where."""

    known_classes: tuple[int, ...] | None = None  # None: n_known of them, at random
    unknown_classes: tuple[int, ...] | None = None  # None: n_unknown of the others, at random
    n_known: int | None = None  # at random; None: half of the classes
    n_unknown: int = 1
    pool_share: float = 0.33  # of each known class's items
    sizes: tuple[int, int, int] | None = None  # training, pool of a known class; unknown in all
    unknown_shares: tuple[float, ...] = ()  # of the pool, one per partition, over and over
    shifted: bool = False  # one known class is absent from the pool, one five times as frequent
    held_out: int = 0  # of each class, a tenth of it at most, that no method gets in training
    shrink: bool = False  # classes with fewer items than ``sizes`` ask for are split in proportion

    def __post_init__(self) -> None:
        both = set(self.known_classes or ()) & set(self.unknown_classes or ())
        if both:
            raise SettingsError(f"class {min(both)} is to be known and unknown; give it one part")
        if not all(0 <= share < 1 for share in self.unknown_shares):
            raise SettingsError(f"unknown_shares are {self.unknown_shares}; give shares below 1")

    def draw_unknown_share(self, seed: int) -> float | None:
        """The share of unknown items in the pool of this partition; None: all there are."""
        if not self.unknown_shares:
            return None
        return self.unknown_shares[seed % len(self.unknown_shares)]

    def draw_classes(self, n_classes: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Known and unknown classes of one partition; partition and items depend on the seed."""
        order = [int(c) for c in rng(seed, "classes").permutation(n_classes)]
        may_be_known = [c for c in order if c not in (self.unknown_classes or ())]
        known = self.known_classes or tuple(sorted(may_be_known[: self.n_known or n_classes // 2]))
        others = [c for c in order if c not in known]
        unknown = self.unknown_classes or tuple(sorted(others[: self.n_unknown]))
        if not self.unknown_classes and len(unknown) < self.n_unknown:
            raise SettingsError(
                f"{len(known)} of {n_classes} classes are known, which leaves {len(unknown)}; "
                f"{self.n_unknown} are to be unknown"
            )
        return known, unknown


SINGLE_UNKNOWN = Protocol()
"""The paper's: 50 % of the classes known, one unknown, 33 % of the known data in the pool."""

RELEASED_SPLIT = Protocol((0, 1, 2, 3, 4), (5,), sizes=(4_000, 2_000, 6_000))
"""The released code's: classes 0-4 known, 5 unknown; 4,000 / 2,000 of each and 6,000."""


def split_dataset(dataset: Dataset, protocol: Protocol, seed: int) -> Split:
    """Draw one partition of a data set. The pool comes in random order."""
    dataset.require_numbers()
    known_classes, unknown_classes = protocol.draw_classes(len(dataset.classes), seed)
    random = rng(seed, "items")
    training, pool, unknown, held_out = [], [], [], []
    for c in known_classes:
        rows, apart = set_apart(dataset, c, protocol, random)
        n_training, n_pool = divide_class(len(rows), protocol, f"class {c} of {dataset.name}")
        training.append(rows[:n_training])
        pool.append(rows[n_training : n_training + n_pool])
        held_out.append(apart)
    if protocol.shifted:
        if len(pool) < FEWEST_SHIFTED:
            raise SettingsError(
                f"{len(pool)} class is known; a shift takes {FEWEST_SHIFTED} at least"
            )
        pool = shift_classes(pool)
    for c in unknown_classes:
        rows, apart = set_apart(dataset, c, protocol, random)
        if protocol.sizes:
            n_unknown = protocol.sizes[2] // len(unknown_classes)
            if len(rows) < n_unknown and not protocol.shrink:
                raise DataError(
                    f"class {c} of {dataset.name} has {len(rows)} items; the protocol takes "
                    f"{n_unknown} as unknown"
                )
            rows = rows[:n_unknown]
        unknown.append(rows)
        held_out.append(apart)
    share = protocol.draw_unknown_share(seed)
    if share is not None:
        unknown = thin_out(unknown, share, sum(map(len, pool)))
    training_rows = np.concatenate(training)
    pool_rows = random.permutation(np.concatenate([*pool, *unknown]))
    held_out_rows = np.concatenate(held_out)
    label_of = np.full(len(dataset.classes), UNKNOWN)
    label_of[list(known_classes)] = np.arange(len(known_classes))
    return Split(
        known=Labelled(dataset.inputs[training_rows], label_of[dataset.labels[training_rows]]),
        pool=dataset.inputs[pool_rows],
        truth=label_of[dataset.labels[pool_rows]],
        truth_classes=dataset.labels[pool_rows],
        known_classes=known_classes,
        unknown_classes=() if share == 0 else unknown_classes,
        held_out=dataset.inputs[held_out_rows],
        held_out_truth=label_of[dataset.labels[held_out_rows]],
        held_out_classes=dataset.labels[held_out_rows],
    )


def set_apart(
    dataset: Dataset, c: int, protocol: Protocol, random: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The rows of one class in random order: those to use, and those to hold out."""
    rows = random.permutation(np.flatnonzero(dataset.labels == c))
    n = len(rows) - min(protocol.held_out, len(rows) // 10)
    return rows[:n], rows[n:]


def divide_class(n_items: int, protocol: Protocol, what: str) -> tuple[int, int]:
    """How many items of a known class are labelled, and how many go to the pool.

    >>> divide_class(100, Protocol(), "a"), divide_class(100, Protocol(sizes=(20, 10, 5)), "a")
    ((67, 33), (20, 10))
    >>> divide_class(60, Protocol(sizes=(600, 300, 900), shrink=True), "a")
    (40, 20)
    """
    if not protocol.sizes:
        n_pool = round(protocol.pool_share * n_items)
        return n_items - n_pool, n_pool
    n_training, n_pool, _ = protocol.sizes
    wanted = n_training + n_pool
    if n_items < wanted and protocol.shrink:
        n_pool = n_items * n_pool // wanted
        return n_items - n_pool, n_pool
    if n_items < wanted:
        raise DataError(f"{what} has {n_items} items; the protocol takes {wanted}")
    return n_training, n_pool


def shift_classes(pool: list[np.ndarray]) -> list[np.ndarray]:
    """Without the first class, and with a fifth of all but the second.

    >>> [len(rows) for rows in shift_classes([np.arange(10)] * 4)]
    [0, 10, 2, 2]
    """
    fifths = [rows[: len(rows) // 5] for rows in pool[2:]]
    return [pool[0][:0], pool[1], *fifths]


def thin_out(unknown: list[np.ndarray], share: float, n_known: int) -> list[np.ndarray]:
    """So many of each unknown class, alike, that they are this share of the pool.

    >>> [len(rows) for rows in thin_out([np.arange(50), np.arange(50)], 0.2, 80)]
    [10, 10]
    """
    wanted = round(share / (1 - share) * n_known)
    each = [wanted // len(unknown) + (i < wanted % len(unknown)) for i in range(len(unknown))]
    for rows, n in zip(unknown, each, strict=True):
        if len(rows) < n:
            raise DataError(
                f"an unknown share of {share} takes {n} items of a class that has {len(rows)}; "
                "give a smaller share or more unknown classes"
            )
    return [rows[:n] for rows, n in zip(unknown, each, strict=True)]
