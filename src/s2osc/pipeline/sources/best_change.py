"""Which change makes labelled items look most like those of the pool, where both are surely known.

Every small change is tried on a sample of labelled items, and the traces of a source in them are
compared with those of the pool within predicted classes.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from s2osc.arrays import in_one_thread
from s2osc.nets.networks import one_vector
from s2osc.pipeline.filter.signs import InputSigns
from s2osc.pipeline.scaling import UNSCALED, Scaling
from s2osc.pipeline.sources.changes import (
    MOST_OFFSET,
    NOISE_SHARES,
    Change,
    ColumnChange,
    changes_that_add,
    column_offset,
    common_share,
    image_changes,
    text_changes,
)
from s2osc.pipeline.sources.comparison import RankSums, sure_strata
from s2osc.pipeline.sources.traces import TEXT, added_by_source, image_traces, measure_traces
from s2osc.seeding import rng

MOST_COMPARED = 600
"""Surely known items of each side by which changes are chosen, to bound the cost."""

Originals = Callable[[np.ndarray], np.ndarray]
"""Sorted rows in, the items as their source gave them out."""


class SureItems(NamedTuple):
    """Surely known items of pool and judges, a sample of each, and reference items."""

    pool: np.ndarray
    pool_classes: np.ndarray
    judges: np.ndarray
    judge_classes: np.ndarray
    references: np.ndarray
    reference_classes: np.ndarray
    unchanged: np.ndarray | None = None  # traces of pool and references; None: they depend on all

    def misfit(self, judges: np.ndarray, *, seed: int) -> float:
        """How far the traces of the pool are from those of ``judges``: the squares of each kind.

        Noise is one trace beside many columns; by their sum, noise that hides every difference of
        columns would fit best.
        """
        classes = np.concatenate([self.pool_classes, self.judge_classes, self.reference_classes])
        inputs = np.concatenate([self.pool, judges, self.references])
        is_reference = np.arange(len(inputs)) >= len(self.pool) + len(judges)
        if self.unchanged is None:
            traces = measure_traces(inputs, classes, is_reference, seed=seed)
        else:
            of_pool, of_references = np.split(self.unchanged, [len(self.pool)])
            found = image_traces(judges)
            traces = found._replace(columns=np.concatenate([of_pool, found.columns, of_references]))
        is_judge = ~is_reference & (np.arange(len(inputs)) >= len(self.pool))
        strata = sure_strata(~is_reference, classes, is_reference, is_judge | is_reference)
        sums = RankSums.of([traces.columns[rows] for rows in strata])
        deviations = sums.deviations([~is_judge[rows] for rows in strata])
        return float(traces.mean_of_kinds(deviations**2).sum())


def sample_sure_items(
    originals: Originals, free: InputSigns, is_sure: np.ndarray, *, seed: int
) -> SureItems:
    """A sample of the sure items of each side, and of those that teach."""
    _, names, is_spy, is_judge = free
    random = rng(seed, "sure items")

    def sample(rows: np.ndarray) -> np.ndarray:
        return np.sort(random.permutation(np.flatnonzero(rows))[:MOST_COMPARED])

    sides = [sample(rows) for rows in (is_sure & ~is_spy & ~is_judge, is_sure & is_judge, is_spy)]
    pool, judges, references = map(originals, sides)
    unchanged = None
    if pool.dtype == np.uint8:
        unchanged = image_traces(np.concatenate([pool, references])).columns
    of_pool, of_judges, of_references = (names[rows] for rows in sides)
    return SureItems(pool, of_pool, judges, of_judges, references, of_references, unchanged)


@in_one_thread
def find_change(
    originals: Originals,
    free: InputSigns,
    is_sure: np.ndarray,
    scaling: Scaling = UNSCALED,
    *,
    seed: int,
) -> tuple[Change, float]:
    """The change of labelled items that brings them closest to the pool.

    Also what it leaves of the misfit. ``originals`` gives items by their rows, those of ``free``;
    vectors were scaled by ``scaling``.
    """
    sure = sample_sure_items(originals, free, is_sure, seed=seed)
    candidates: Iterable[Change]
    if sure.pool.dtype == np.uint8:
        candidates = image_changes()
    elif sure.pool.dtype.kind in TEXT:
        candidates = text_changes()
    else:
        candidates = column_changes(sure, scaling)
    misfits = [
        (sure.misfit(change.apply(sure.judges, seed=seed), seed=seed), change)
        for change in candidates
    ]
    least, best = min(misfits, key=lambda pair: pair[0] + by_chance(pair[1]))
    return best, least / max(sure.misfit(sure.judges, seed=seed), 1e-12)


def by_chance(change: Change) -> float:
    """What fitting an offset of columns takes off the misfit, though other items would not gain it.

    Where the sources are the same, the squares of the deviations of D columns have a mean of one.
    Each column with an offset of its own loses its square among the items that were fitted, and has
    two among others (Mallows' C_p); one share for all columns counts as one of them.
    """
    if not isinstance(change, ColumnChange) or not change.offset.any():
        return 0.0
    common = common_share(change.offset, change.deviations) * change.deviations
    return 2 / len(common) if np.allclose(change.offset, common) else 2.0


def find_added(pool: np.ndarray, labelled: np.ndarray, *, seed: int) -> Change:
    """The noise on images, or the typing errors in texts, with which both have as much of it."""

    def apart(change: Change) -> float:
        added = added_by_source(np.concatenate([pool, change.apply(labelled, seed=seed)]))
        assert added is not None
        return float(abs(added[: len(pool)].mean() - added[len(pool) :].mean()))

    return min(changes_that_add(is_text=pool.dtype.kind in TEXT), key=apart)


def column_changes(sure: SureItems, scaling: Scaling) -> list[Change]:
    """Offsets of the columns, by one share and by their own, with noise and without."""
    labelled, pool, references = (
        scaling.in_spreads(one_vector(items)) for items in (sure.judges, sure.pool, sure.references)
    )
    deviations = np.concatenate([labelled, references]).std(axis=0)
    own = column_offset(pool, labelled, sure.pool_classes, sure.judge_classes, deviations)
    own = np.clip(own, -MOST_OFFSET * deviations, MOST_OFFSET * deviations)
    common = common_share(own, deviations) * deviations
    return [
        ColumnChange(offset, noise, deviations, scaling)
        for offset in (np.zeros_like(own), common, own)
        for noise in (0.0, *NOISE_SHARES)
    ]
