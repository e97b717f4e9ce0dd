"""Labelled items as if from the source of the pool: which changes they were given, what is left.

``matching`` finds the changes; the steps after it read what came of them here.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.filter.signs import MeasuredInputs
from s2osc.pipeline.scaling import UNSCALED, Scaling
from s2osc.pipeline.sources.changes import Change
from s2osc.pipeline.sources.comparison import Comparison, share_of_sure
from s2osc.pipeline.sources.traces import TEXT
from s2osc.types import Labelled

FEWEST_THERE = 0.5
"""Of the surely known items of a predicted class: where fewer are left in every class, and unless
most of the pool is unknown, it is not unknown items that took their place."""
MANY_COMPARED = 200
"""Surely known labelled items, from which on a source that matters shows in the comparison."""


class RawItems(NamedTuple):
    """Photos or texts that items are features of: a source changes these, not their features."""

    pool: np.ndarray  # (n, H, W[, 3]) uint8, or (n,) text
    labelled: np.ndarray
    embed: Callable[[np.ndarray], np.ndarray]  # some of them in, their features out


class EmbeddedItems(NamedTuple):
    """Photos or texts, and the features of the labelled ones."""

    raw: RawItems
    features: np.ndarray  # as they come
    scaling: Scaling  # in which they are compared

    def changed_by(self, change: Change, *, seed: int) -> "EmbeddedItems":
        """With the change on the labelled ones."""
        labelled = change.apply(self.raw.labelled, seed=seed)
        raw = self.raw._replace(labelled=labelled)
        return self._replace(raw=raw, features=raw.embed(labelled))


class Matched(NamedTuple):
    """Labelled items as if from the source of the pool."""

    training: Labelled
    pooled: Pool
    inputs: MeasuredInputs | None = None  # None: nothing was held back, so nothing is compared
    changes: tuple[Change, ...] = ()  # of the labelled items, in their order
    first: Comparison | None = None  # before any change
    last: Comparison | None = None  # after all
    is_suspected: bool = False  # the changes would explain what stands out, but are not shown
    embedded: EmbeddedItems | None = None  # None: items are compared as they are
    of_raw: tuple[Change, ...] = ()  # changes that raw labelled items were given before
    scaling: Scaling = UNSCALED  # of vectors

    @property
    def is_changed(self) -> bool:
        """Whether labelled items were given changes that the pool shows."""
        return bool(self.of_raw) or (bool(self.changes) and not self.is_suspected)

    def after(self, by_raw: "Matched") -> "Matched":
        """With the changes that raw items were given before, and the comparison that shows them.

        What they leave is found in the features, which all steps see.
        """
        if not by_raw.changes:
            return self
        return self._replace(of_raw=by_raw.changes, first=by_raw.first)

    @property
    def are_images(self) -> bool:
        """Whether a source changes pixels."""
        return self._compared_type == np.uint8

    @property
    def are_columns(self) -> bool:
        """Whether a source changes numbers, not pixels or texts."""
        return not (self.are_images or self._compared_type.kind in TEXT)

    @property
    def _compared_type(self) -> np.dtype:
        embedded = self.embedded
        return (self.training.inputs if embedded is None else embedded.raw.labelled).dtype

    @property
    def features(self) -> Labelled:
        """Labelled photos or texts with their changes, as features that are not scaled."""
        assert self.embedded is not None
        return Labelled(self.embedded.features, self.training.labels)

    def originals(self, rows: np.ndarray) -> np.ndarray:
        """Items by their sorted rows, those of the pool and held-back ones first; raw, if any.

        They are what a source leaves its traces in.
        """
        if self.embedded is not None:
            parts = self.embedded.raw.pool, self.embedded.raw.labelled
        else:
            parts = self.pooled.inputs, self.training.inputs
        n = len(parts[0])
        return np.concatenate([parts[0][rows[rows < n]], parts[1][rows[rows >= n] - n]])

    @property
    def sure_share(self) -> float:
        """Surely known items of the pool, relative to labelled ones, where fewest are missing."""
        assert self.inputs is not None
        assert self.last is not None
        _, names, is_spy, is_judge = self.inputs.free
        is_no_pool = is_spy | self.pooled.is_beyond_even(len(names))
        return share_of_sure(self.last.is_sure, names, is_no_pool, is_judge)

    @property
    def may_be_apart(self) -> bool:
        """Whether a change of the labelled items is looked for.

        The sources differ, or may, and most sure items are missing in every predicted class.
        """
        if self.last is None or not self.last.may_differ:
            return False
        return self.last.differ or self.sure_share < FEWEST_THERE

    @property
    def is_apart(self) -> bool:
        """Whether the sources differ, changed or not.

        If no change explains anything, only the comparison itself says so: sure items are missing
        in every predicted class, too, where several unknown classes make up most of the pool.
        """
        is_clear = self.last is not None and self.last.differ
        return is_clear or (bool(self.changes or self.of_raw) and self.may_be_apart)

    @property
    def is_suspicious(self) -> bool:
        """Whether the sources may differ, but not clearly enough to say so.

        Where few items could be compared, any sources may.
        """
        found = self.last
        if self.changes or found is None:
            return False
        return found.may_differ or found.n_compared < MANY_COMPARED

    @property
    def unexplained(self) -> float:
        """The share of the pool that seems to be known and that its source makes strange.

        It counts where the sources differ and most sure items are missing in every predicted
        class: unless most of the pool is unknown, that is what the source does. A source that is
        only suspected counts for what its change explains, and for no more; and what photos or
        texts with their change leave counts only if the features say that the sources differ.
        """
        if self.is_suspected or not (self.changes or self.is_apart):
            return 0.0
        if self.sure_share >= FEWEST_THERE:
            return 0.0
        assert self.inputs is not None
        _, names, is_spy, is_judge = self.inputs.free
        n_pool, n_judges = (
            np.bincount(names[side], minlength=names.max() + 1)
            for side in (~is_spy & ~is_judge, is_judge)
        )
        return (1 - self.sure_share) * share_in_proportion(n_pool, n_judges)


def share_in_proportion(n_pool: np.ndarray, n_judges: np.ndarray) -> float:
    """The share of the pool that is in proportion to the labelled items of each predicted class.

    Unknown items have few of the predicted classes, and make those larger than the middle one.

    >>> share_in_proportion(np.array([50, 50, 200]), np.array([10, 10, 10]))
    0.5
    """
    there = n_judges > 0
    if not there.any():
        return 1.0
    ratio = float(np.median(n_pool[there] / n_judges[there]))
    return float(np.minimum(n_pool, ratio * n_judges).sum() / max(n_pool.sum(), 1))
