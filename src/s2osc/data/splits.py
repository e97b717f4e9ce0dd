"""Data sets -> what a method sees and what it is judged by: the paper's protocols."""

from dataclasses import dataclass

import numpy as np

from s2osc.data.datasets import Dataset
from s2osc.errors import DataError
from s2osc.seeding import rng
from s2osc.types import UNKNOWN, Labelled, Split


@dataclass(frozen=True)
class Protocol:
    """Which classes are known, and how many items of each go where."""

    known_classes: tuple[int, ...] | None = None  # None: half of the classes, at random
    unknown_classes: tuple[int, ...] | None = None  # None: n_unknown of the others, at random
    n_unknown: int = 1
    pool_share: float = 0.33  # of each known class's items
    sizes: tuple[int, int, int] | None = None  # training, pool of a known class; unknown in all

    def draw_classes(self, n_classes: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Known and unknown classes of one partition; partition and items depend on the seed."""
        order = [int(c) for c in rng(seed, "classes").permutation(n_classes)]
        may_be_known = [c for c in order if c not in (self.unknown_classes or ())]
        known = self.known_classes or tuple(sorted(may_be_known[: n_classes // 2]))
        others = [c for c in order if c not in known]
        return known, self.unknown_classes or tuple(sorted(others[: self.n_unknown]))


SINGLE_UNKNOWN = Protocol()
"""The paper's: 50 % of the classes known, one unknown, 33 % of the known data in the pool."""

RELEASED_SPLIT = Protocol((0, 1, 2, 3, 4), (5,), sizes=(4_000, 2_000, 6_000))
"""The released code's: classes 0-4 known, 5 unknown; 4,000 / 2,000 of each and 6,000."""


def split_dataset(dataset: Dataset, protocol: Protocol, seed: int) -> Split:
    """Draw one partition of a data set. The pool comes in random order."""
    known_classes, unknown_classes = protocol.draw_classes(len(dataset.classes), seed)
    random = rng(seed, "items")
    training, pool = [], []
    for c in known_classes:
        rows = random.permutation(np.flatnonzero(dataset.labels == c))
        n_pool = round(protocol.pool_share * len(rows))
        n_training = len(rows) - n_pool
        if protocol.sizes:
            n_training, n_pool, _ = protocol.sizes
        if len(rows) < n_training + n_pool:
            raise DataError(
                f"class {c} of {dataset.name} has {len(rows)} items; the protocol takes "
                f"{n_training + n_pool}"
            )
        training.append(rows[:n_training])
        pool.append(rows[n_training : n_training + n_pool])
    for c in unknown_classes:
        rows = random.permutation(np.flatnonzero(dataset.labels == c))
        pool.append(rows[: protocol.sizes[2] // len(unknown_classes)] if protocol.sizes else rows)
    training_rows = np.concatenate(training)
    pool_rows = random.permutation(np.concatenate(pool))
    label_of = np.full(len(dataset.classes), UNKNOWN)
    label_of[list(known_classes)] = np.arange(len(known_classes))
    return Split(
        known=Labelled(dataset.inputs[training_rows], label_of[dataset.labels[training_rows]]),
        pool=dataset.inputs[pool_rows],
        truth=label_of[dataset.labels[pool_rows]],
        truth_classes=dataset.labels[pool_rows],
        known_classes=known_classes,
        unknown_classes=unknown_classes,
    )
