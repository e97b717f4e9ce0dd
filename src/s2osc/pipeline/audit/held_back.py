"""Labelled items held back from f's training and put, unlabelled, into the pool: two roles.

- *Spies* teach: they say what known items look like to the score of the unknown, to K, to
  P(unknown) and to the vote.
- *Calibration items* judge. Until everything is decided they are plain items of the pool, whatever
  a step does with those; only then their scores set the threshold, test and audit. A known item of
  the pool and a calibration item are exchangeable by construction, as long as both come from the
  same source (``sources.comparison`` checks that).

Settings and some files call all held-back items *seeds*. *Judges* are whichever labelled items a
test counts: the calibration items, or more where a score has learnt from none of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s2osc.seeding import rng
from s2osc.settings import require_least, require_range
from s2osc.types import Labelled

MOST_FOLDS = 5
"""Each fold costs as much as the first."""
ENOUGH = 60
"""The least number of held-back items, as far as a third of each class allows it."""


@dataclass(frozen=True)
class SeedSettings:
    """How many labelled items of each class are held back; none is the paper's method."""

    share: float = 0.0
    per_class: int = 300  # at most; weights make up for it where it binds
    judges: int = 0  # with fewer calibration items the steps are repeated in folds

    def __post_init__(self) -> None:
        require_range("seeds.share", self.share, 0, 0.5)
        require_least("seeds.judges", self.judges, 0)
        require_least("seeds.per_class", self.per_class, 1)


def n_held_back(class_sizes: np.ndarray, settings: SeedSettings) -> np.ndarray:
    """Held-back items of each class: a share, at most so many, and of small classes up to a third.

    >>> n_held_back(np.array([4000, 400, 30, 2]), SeedSettings(share=0.15)).tolist()
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
    """Row numbers of the held-back items, sorted: some of each class, drawn at random.

    >>> hold_back(np.zeros(100, int), SeedSettings(share=0.1), np.random.default_rng(0)).size
    33
    """
    n_of_class = n_held_back(np.bincount(labels), settings)
    chosen = [
        random.choice(np.flatnonzero(labels == c), n, replace=False)
        for c, n in enumerate(n_of_class)
    ]
    return np.sort(np.concatenate(chosen)).astype(int)


def share_roles(labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) True for a spy, False for a calibration item: half of each class, at random.

    Of an odd number one more judges; a class with a single item has no spy.

    >>> int(share_roles(np.array([0, 0, 1, 1, 1, 2]), np.random.default_rng(0)).sum())
    2
    """
    is_spy = np.zeros(len(labels), bool)
    for c in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == c))
        is_spy[rows[: len(rows) // 2]] = True
    return is_spy


class Pool(NamedTuple):
    """All items that go through the steps together: pool, calibration items, spies."""

    inputs: np.ndarray
    n: int  # of the pool
    calibration_labels: np.ndarray
    spy_labels: np.ndarray
    class_weights: np.ndarray  # (C,) labelled items over held-back ones, relatively
    training_is_random: bool = True  # so that the items f learnt from may judge where f does not
    # Of a sample that has more of the strange than its pool; None: it has not.
    item_weights: np.ndarray | None = None  # (m,) how often items like each held-back one are in it
    is_extra: np.ndarray | None = None  # (n,) items of it beyond an even sample

    @property
    def n_unlabelled(self) -> int:
        """Pool and calibration items, which every step treats alike."""
        return self.n + len(self.calibration_labels)

    @property
    def is_calibrated(self) -> bool:
        return len(self.calibration_labels) > 0

    @property
    def is_spy(self) -> np.ndarray:
        return np.arange(len(self.inputs)) >= self.n_unlabelled

    @property
    def is_held_back(self) -> np.ndarray:
        return np.arange(len(self.inputs)) >= self.n

    @property
    def held_back_labels(self) -> np.ndarray:
        return np.concatenate([self.calibration_labels, self.spy_labels])

    def is_beyond_even(self, n_rows: int) -> np.ndarray:
        """(n_rows,) whether an item is one too many to compare pool and labelled items.

        Rows are those of the pool, then of others.
        """
        found = np.zeros(n_rows, bool)
        if self.is_extra is not None:
            found[: self.n] = self.is_extra
        return found

    def of_pool(self, values: np.ndarray) -> np.ndarray:
        """Of values for all items, those of the pool."""
        return values[: self.n]

    def of_unlabelled(self, values: np.ndarray) -> np.ndarray:
        return values[: self.n_unlabelled]

    def of_calibration(self, values: np.ndarray) -> np.ndarray:
        return values[self.n : self.n_unlabelled]

    def of_spies(self, values: np.ndarray) -> np.ndarray:
        return values[self.n_unlabelled : len(self.inputs)]

    def of_held_back(self, values: np.ndarray) -> np.ndarray:
        return values[self.n : len(self.inputs)]


def hide_in_pool(
    known: Labelled, pool: np.ndarray, settings: SeedSettings, *, seed: int
) -> tuple[Labelled, Pool]:
    """Hold some labelled items back from training and put them, unlabelled, after the pool."""
    held = hold_back(known.labels, settings, rng(seed, "seeds"))
    if not len(held):
        none = np.empty(0, int)
        return known, Pool(pool, len(pool), none, none, np.ones(known.n_classes))
    stays = np.ones(len(known), bool)
    stays[held] = False
    training = Labelled(known.inputs[stays], known.labels[stays])
    n_of_class = np.bincount(known.labels, minlength=known.n_classes)
    n_held = np.bincount(known.labels[held], minlength=known.n_classes)
    weights = n_of_class / np.maximum(n_held, 1)
    return training, join_held_back(
        pool, Labelled(known.inputs[held], known.labels[held]), weights / weights.min(), seed=seed
    )


def further_folds(
    known: Labelled, first: Pool, settings: SeedSettings, *, seed: int
) -> Iterator[tuple[Labelled, Pool]]:
    """The same items in other roles, until enough of them have judged.

    ``first`` is the first fold (``hide_in_pool``). In each other one further items are the
    calibration items, as many of each class, and those of the fold before are the spies. No item
    judges twice. A pool smaller than the judges wanted is too coarse a scale for those of several
    folds: then there are none.
    """
    if first.n < settings.judges:
        return
    held = hold_back(known.labels, settings, rng(seed, "seeds"))
    judges = held[~share_roles(known.labels[held], rng(seed, "roles"))]
    class_sizes = np.bincount(known.labels, minlength=known.n_classes)
    n_judges = np.bincount(known.labels[judges], minlength=known.n_classes)
    random = rng(seed, "folds")
    others = [np.setdiff1d(np.flatnonzero(known.labels == c), judges) for c in range(len(n_judges))]
    waiting = [random.permutation(rows) for rows in others]
    for fold in range(n_folds(class_sizes, n_judges, settings.judges) - 1):
        spies = judges
        judges = np.concatenate(
            [rows[fold * n : (fold + 1) * n] for rows, n in zip(waiting, n_judges, strict=True)]
        )
        stays = np.ones(len(known), bool)
        stays[spies] = stays[judges] = False
        inputs = [first.of_pool(first.inputs), known.inputs[judges], known.inputs[spies]]
        pooled = first._replace(
            inputs=np.concatenate(inputs),
            calibration_labels=known.labels[judges],
            spy_labels=known.labels[spies],
        )
        yield Labelled(known.inputs[stays], known.labels[stays]), pooled


def n_folds(class_sizes: np.ndarray, n_judges: np.ndarray, wanted: int) -> int:
    """How many folds there are until ``wanted`` items have judged, the first one counted.

    ``n_judges`` are those of each class in one fold. A class is never left without an item to learn
    from.

    >>> n_folds(np.array([60, 60]), np.array([15, 15]), 100)
    3
    >>> n_folds(np.array([600]), np.array([45]), 100), n_folds(np.array([600]), np.array([45]), 0)
    (3, 1)
    """
    judging = n_judges > 0
    if not judging.any():
        return 1
    enough = -(-wanted // int(n_judges.sum()))
    most = int(np.min((class_sizes[judging] - 1) // n_judges[judging]))
    return max(1, min(enough, most, MOST_FOLDS))


def join_held_back(
    pool: np.ndarray,
    held_back: Labelled,
    class_weights: np.ndarray | None = None,
    *,
    training_is_random: bool = True,
    item_weights: np.ndarray | None = None,
    is_extra: np.ndarray | None = None,
    seed: int,
) -> Pool:
    """A pool with held-back items after it, unlabelled: first the calibration items, then spies."""
    is_spy = share_roles(held_back.labels, rng(seed, "roles"))
    order = np.argsort(is_spy, kind="stable")
    n_classes = int(held_back.labels.max()) + 1 if len(held_back.labels) else 1
    return Pool(
        inputs=np.concatenate([pool, held_back.inputs[order]]),
        n=len(pool),
        calibration_labels=held_back.labels[~is_spy],
        spy_labels=held_back.labels[is_spy],
        class_weights=np.ones(n_classes) if class_weights is None else class_weights,
        training_is_random=training_is_random,
        item_weights=None if item_weights is None else item_weights[order],
        is_extra=is_extra,
    )
