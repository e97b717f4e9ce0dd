"""M, the memory of a stream: a few labelled items of each class, within a budget.

Exemplars are chosen by herding (iCaRL) and stand in order of importance, so that a memory shrinks
by leaving out the last of each class. Beside them lie the seeds: labelled items that f never
learns from, drawn at random, by which every window's answer and every update is measured.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from s2osc.arrays import unit_rows
from s2osc.pipeline.scaling import Scaling
from s2osc.settings import require_choice, require_least, require_range
from s2osc.types import Labelled


@dataclass(frozen=True)
class MemorySettings:
    """How many items are remembered, and how they are chosen."""

    size: int = 2_000  # exemplars and seeds of all classes together
    seeds: float = 0.3  # the share of them that f never learns from
    selection: Literal["herding", "random"] = "herding"

    def __post_init__(self) -> None:
        require_least("memory.size", self.size, 4)
        require_range("memory.seeds", self.seeds, 0, 0.5)
        require_choice("memory.selection", self.selection, ("herding", "random"))

    def shares(self, n_classes: int) -> tuple[int, int]:
        """Exemplars and seeds of each class: equal shares, at least one exemplar.

        >>> MemorySettings().shares(5), MemorySettings().shares(10)
        ((280, 120), (140, 60))
        """
        each = self.size // n_classes
        n_seeds = int(self.seeds * each)
        return max(1, each - n_seeds), n_seeds


@dataclass(frozen=True, eq=False)
class Memory:
    """Labelled items that stay. Of each class the first exemplar is the most important."""

    exemplars: Labelled
    seeds: Labelled

    @property
    def n_classes(self) -> int:
        return self.exemplars.n_classes

    def __len__(self) -> int:
        return len(self.exemplars) + len(self.seeds)

    def scaled(self, scaling: Scaling) -> "Memory":
        """The items as networks see them."""
        return Memory(scaling.transform_items(self.exemplars), scaling.transform_items(self.seeds))


def herd(features: np.ndarray, n: int) -> np.ndarray:
    """Row numbers of ``n`` items whose running mean stays closest to the mean of all (iCaRL).

    p_k = argmin_x || mu - (phi(x) + phi(p_1) + ... + phi(p_k-1)) / k ||

    >>> herd(np.array([[0.0], [1.0], [2.0], [5.0]]), 4).tolist()
    [2, 1, 3, 0]
    """
    features = features.astype(np.float64)
    mean, total = features.mean(0), np.zeros(features.shape[1])
    squares = (features**2).sum(1)
    open_, chosen = np.ones(len(features), bool), []
    for k in range(1, min(n, len(features)) + 1):
        # || mu - (phi + total) / k ||^2 without what is the same for every item
        wanted = k * mean - total
        cost = squares - 2 * features @ wanted
        cost[~open_] = np.inf
        best = int(cost.argmin())
        chosen.append(best)
        open_[best] = False
        total += features[best]
    return np.array(chosen, int)


def choose_exemplars(
    features: np.ndarray, n: int, settings: MemorySettings, random: np.random.Generator
) -> np.ndarray:
    """Row numbers of ``n`` exemplars of one class, the most important first."""
    if settings.selection == "random":
        return random.permutation(len(features))[:n]
    return herd(unit_rows(features), n)


def first_of_each(items: Labelled, n: int) -> Labelled:
    """The first ``n`` items of each class, in their order: how a memory shrinks."""
    rows = np.concatenate([np.flatnonzero(items.labels == c)[:n] for c in np.unique(items.labels)])
    return Labelled(items.inputs[rows], items.labels[rows])


def remember(
    old: Memory | None,
    training: Labelled,
    features: np.ndarray,
    seeds: Labelled,
    settings: MemorySettings,
    random: np.random.Generator,
) -> Memory:
    """The memory after ``training`` was learnt and ``seeds`` were held back.

    ``features`` are those of ``training`` in f as it is now. Exemplars that are there already keep
    their order and stand before new ones of the same class: a class that is full stays as it is.
    """
    n_classes = max(training.n_classes, old.n_classes if old else 0)
    n_exemplars, n_seeds = settings.shares(n_classes)
    parts = [first_of_each(old.exemplars, n_exemplars)] if old else []
    room = np.full(n_classes, n_exemplars)
    for part in parts:
        room -= np.bincount(part.labels, minlength=n_classes)
    new = []
    for c in range(n_classes):
        rows = np.flatnonzero(training.labels == c)
        if len(rows) and room[c] > 0:
            new.append(rows[choose_exemplars(features[rows], room[c], settings, random)])
    if new:
        chosen = np.concatenate(new)
        parts.append(Labelled(training.inputs[chosen], training.labels[chosen]))
    return Memory(joined(*parts), _refreshed(old, seeds, n_seeds, random))


def _refreshed(
    old: Memory | None, seeds: Labelled, n_seeds: int, random: np.random.Generator
) -> Labelled:
    """At most ``n_seeds`` of each class, of old and new ones drawn alike, so that both count."""
    together = joined(old.seeds, seeds) if old else seeds
    if not len(together) or not n_seeds:
        return Labelled(together.inputs[:0], together.labels[:0])
    order = random.permutation(len(together))
    return first_of_each(Labelled(together.inputs[order], together.labels[order]), n_seeds)


def joined(*parts: Labelled) -> Labelled:
    """The items of all parts, one after the other."""
    return Labelled(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
