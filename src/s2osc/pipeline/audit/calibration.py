"""Seeds: labelled known items held back from f's training and dropped, unlabelled, into the pool.

They go through every step as the pool's items do, so their error rates estimate those of the
pool's known items. The one assumption is that both are exchangeable; ``neighbours.class_weights``
corrects for classes that are rarer or more frequent in the pool than among the labelled items.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s2osc.seeding import rng
from s2osc.settings import require_least, require_range
from s2osc.types import Labelled

ENOUGH = 60
"""The least number of seeds, as far as a third of each class allows it."""


@dataclass(frozen=True)
class SeedSettings:
    """How many labelled items of each class are held back; none is the paper's method."""

    share: float = 0.0
    per_class: int = 300  # at most

    def __post_init__(self) -> None:
        require_range("seeds.share", self.share, 0, 0.5)
        require_least("seeds.per_class", self.per_class, 1)


def n_seeds(class_sizes: np.ndarray, settings: SeedSettings) -> np.ndarray:
    """Seeds of each class: a share, at most so many, and of small classes up to a third.

    >>> n_seeds(np.array([4000, 400, 30, 2]), SeedSettings(share=0.15)).tolist()
    [300, 60, 10, 0]
    """
    if not settings.share:
        return np.zeros_like(class_sizes)
    wanted = (settings.share * class_sizes).astype(int)
    enough = -(-ENOUGH // len(class_sizes))
    return np.minimum(settings.per_class, np.maximum(wanted, np.minimum(enough, class_sizes // 3)))


def hold_back(
    labels: np.ndarray, settings: SeedSettings, random: np.random.Generator
) -> np.ndarray:
    """Row numbers of the seeds, sorted: some of each class, drawn at random.

    >>> hold_back(np.zeros(100, int), SeedSettings(share=0.1), np.random.default_rng(0)).size
    33
    """
    n_of_class = n_seeds(np.bincount(labels), settings)
    chosen = [
        random.choice(np.flatnonzero(labels == c), n, replace=False)
        for c, n in enumerate(n_of_class)
    ]
    return np.sort(np.concatenate(chosen)).astype(int)


class Pool(NamedTuple):
    """Pool and seeds, which go through all steps together: the pool first, then the seeds."""

    inputs: np.ndarray
    n: int  # of the pool
    seed_labels: np.ndarray

    @property
    def has_seeds(self) -> bool:
        return len(self.seed_labels) > 0

    @property
    def is_seed(self) -> np.ndarray:
        return np.arange(len(self.inputs)) >= self.n

    def of_pool(self, values: np.ndarray) -> np.ndarray:
        """Of values for pool and seeds, those of the pool."""
        return values[: self.n]

    def of_seeds(self, values: np.ndarray) -> np.ndarray:
        return values[self.n :]


def plant_seeds(
    known: Labelled, pool: np.ndarray, settings: SeedSettings, *, seed: int
) -> tuple[Labelled, Pool]:
    """Hold some labelled items back from training and put them, unlabelled, after the pool."""
    held = hold_back(known.labels, settings, rng(seed, "seeds"))
    if not len(held):
        return known, Pool(pool, len(pool), np.empty(0, int))
    stays = np.ones(len(known), bool)
    stays[held] = False
    training = Labelled(known.inputs[stays], known.labels[stays])
    return training, join_seeds(pool, Labelled(known.inputs[held], known.labels[held]))


def join_seeds(pool: np.ndarray, seeds: Labelled) -> Pool:
    """A pool with seeds after it, unlabelled."""
    return Pool(np.concatenate([pool, seeds.inputs]), len(pool), seeds.labels)
