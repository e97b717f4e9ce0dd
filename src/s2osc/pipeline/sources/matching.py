"""Bring labelled items to the source of the pool, before anything is learnt from them.

Pool and labelled items are compared where both are surely known, by the inputs alone: most labelled
items judge, for f has no part in it. If they differ, the change is looked for that makes labelled
items look most like those of the pool (``changes``), and labelled items are changed by it: those
that f learns from, spies and calibration items alike. Then all steps are those of a pool from the
same source. What the change leaves over is compared again, with f's signs, by the filter.
"""

from dataclasses import replace

import numpy as np

from s2osc.arrays import in_one_thread
from s2osc.nets.networks import one_vector
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.filter.signs import measure_inputs
from s2osc.pipeline.scaling import UNSCALED, Scaling, fit_scaling
from s2osc.pipeline.sources.best_change import find_added, find_change, sample_sure_items
from s2osc.pipeline.sources.changes import (
    MOST_OFFSET,
    NOISE_SHARES,
    Change,
    ColumnChange,
    common_share,
    locations,
)
from s2osc.pipeline.sources.comparison import (
    FEWEST_COMPARED,
    FEWEST_SURE,
    Comparison,
    compare_sources,
    more_than_a_class,
    sure_items,
    surest_items,
)
from s2osc.pipeline.sources.matched import FEWEST_THERE, EmbeddedItems, Matched, RawItems
from s2osc.pipeline.sources.traces import (
    MOST_COLUMNS,
    Traces,
    added_by_source,
    image_traces,
    measure_traces,
)
from s2osc.seeding import rng
from s2osc.types import Labelled

MOST_STEPS = 3
"""Changes that are put on each other: a camera may be noisier and darker."""
BETTER = 0.7
"""Of the misfit: what a change may leave at most, to be worth it."""
HARDLY_ANY = 0.1
"""Of the surely known items: if no class has more, not even a pool that is mostly unknown explains
it, and an offset of all columns is tried first."""
HEAVY = 3.0
"""Spreads that the deviation of a column has at least if its tails are heavy; a Gaussian one has
one."""
CLEARLY_MORE = 0.25
"""Of the sure items: what a change must bring back to help, if the traces alone do not say so."""
MOST_OF_SIDE = 300
"""Items of pool and labelled ones whose noise is compared as a whole, to bound the cost: means are
known far better than how far classes lie apart."""


def match_raw(known: Labelled, pool: np.ndarray, raw: RawItems, *, seed: int) -> Matched:
    """Labelled features as if of photos or texts from the source of the pool.

    Compared are all labelled items, before any is held back: f has no part in it.
    """
    scaling, none = fit_scaling(known.inputs, pool), np.empty(0, int)
    everyone = Pool(scaling.transform(pool), len(pool), none, none, np.ones(known.n_classes))
    embedded = EmbeddedItems(raw, known.inputs, scaling)
    found = match_sources(scaling.transform_items(known), everyone, embedded, seed=seed)
    return found._replace(training=found.features if found.changes else known)


def match_sources(
    training: Labelled,
    pooled: Pool,
    embedded: EmbeddedItems | None = None,
    *,
    scaling: Scaling = UNSCALED,
    seed: int,
) -> Matched:
    """Compare the sources; while they differ, change the labelled items by what helps most.

    Vectors were scaled by ``scaling``.
    """
    found = compare_inputs(training, pooled, embedded, scaling=scaling, seed=seed)
    assert found.last is not None
    assert found.inputs is not None
    if found.last.is_possible:
        matched = _changed_while_apart(found, seed=seed)
        return matched if matched.changes else _moved(found, seed=seed) or found
    if pooled.n < FEWEST_SURE or found.inputs.free.is_judge.sum() < FEWEST_COMPARED:
        return found
    return _explained(found, seed=seed) or found


def _changed_while_apart(found: Matched, *, seed: int) -> Matched:
    """Labelled items with what sets the sources apart.

    Where the comparison alone does not say that they are, only what makes more items sure counts.
    """
    while found.may_be_apart and len(found.changes) < MOST_STEPS:
        assert found.last is not None
        further = with_change(found, seed=seed, better=BETTER if found.last.differ else 0.0)
        if further is None:
            break
        found = further
    return found


def match_as_told(found: Matched, by_outputs: Comparison, *, seed: int) -> Matched | None:
    """Labelled items with a change that the inputs do not quite show, and the signs of f do.

    ``by_outputs`` is the comparison by all signs. None where the sources do not differ by it, where
    labelled items were changed before, or where no change helps.
    """
    is_told = by_outputs.differ and found.last is not None and found.last.may_differ
    if not is_told or found.changes or found.of_raw:
        return None
    further = with_change(found, seed=seed)
    if further is None:
        return None
    return _changed_while_apart(further, seed=seed)._replace(first=by_outputs)


def has_many_columns(found: Matched) -> bool:
    """Whether items are vectors that are compared by principal components alone."""
    return found.are_columns and one_vector(found.training.inputs).shape[1] > MOST_COLUMNS


def _moved(found: Matched, *, seed: int) -> Matched | None:
    """Where little is surely known: the match by another source, if that is the reason.

    Then clearly more items are sure with it, and most of those of some class. In many columns an
    offset moves items far, though in none of them the few sure items show it; and what a source
    does to photos or texts moves their features so far that it hardly touched the few sure ones.
    """
    if found.sure_share >= FEWEST_THERE:
        return None
    again: Matched | None
    if found.embedded is not None:
        again = with_change(found, seed=seed, better=0.0)
    elif has_many_columns(found):
        again = moved_as_a_whole(found, seed=seed)
    else:
        return None
    if again is None or again.sure_share < max(FEWEST_THERE, found.sure_share + CLEARLY_MORE):
        return None
    return _changed_while_apart(again, seed=seed)._replace(first=_by_surest(found, seed=seed))


def _explained(found: Matched, *, seed: int) -> Matched | None:
    """The match of a pool in which hardly anything is surely known, if its source is the reason.

    Then labelled items that are changed as the pool suggests make the others sure, too. If they do
    not, nothing in the pool may be known: None.
    """
    assert found.inputs is not None
    further = with_change(found, seed=seed)
    if further is None:
        return None
    change = further.changes[0]
    is_offset = isinstance(change, ColumnChange) and not change.noise
    if is_offset and further.sure_share < FEWEST_THERE:
        # An offset moves items, and more can be seen from there; noise just covers all of them.
        further = with_change(further, seed=seed) or further
    further = _changed_while_apart(further, seed=seed)
    if further.sure_share < FEWEST_THERE:
        return None
    return further._replace(first=_by_surest(found, seed=seed))


def _by_surest(found: Matched, *, seed: int) -> Comparison:
    """The comparison of the surest items of each side, where hardly any are sure by all."""
    assert found.inputs is not None
    signs, names, is_spy, is_judge = found.inputs.free
    return _compared(found, surest_items(signs, names, is_spy, is_judge), seed=seed)


def with_change(
    found: Matched, *, seed: int, better: float = BETTER, moved: Matched | None = None
) -> Matched | None:
    """The labelled items with one further change, compared again; None where none helps.

    A change helps that leaves at most ``better`` of the misfit of surely known items, or one that
    makes more items sure. Where few are sure, they may be those that the source has hardly touched;
    then the surest items of the pool suggest a change, too. Of photos and texts, whose traces vary,
    both always do, and of two changes that help, that one counts with which more items are sure.
    Columns that lie apart as a whole come first where hardly any are or where columns are many, as
    do noise and typing errors that all items tell; ``moved`` is the match with these columns moved,
    if it is known already.
    """
    assert found.inputs is not None
    assert found.last is not None
    if found.last.adds:
        rows = _sample_of_sides(found, seed=seed)
        is_pool = found.inputs.labels[rows] < 0
        again = changed_by(
            found,
            find_added(*(found.originals(rows[side]) for side in (is_pool, ~is_pool)), seed=seed),
            seed=seed,
        )
        if again.sure_share >= found.sure_share - CLEARLY_MORE:
            return again
    if has_many_columns(found) or (found.sure_share < HARDLY_ANY and found.are_columns):
        again = moved or moved_as_a_whole(found, seed=seed)
        if again.sure_share >= found.sure_share + CLEARLY_MORE or settles(again, found):
            return again
    suggesting = [found.last.is_sure] if found.last.is_possible else []
    if found.sure_share < FEWEST_THERE or found.embedded is not None:
        signs, names, is_spy, is_judge = found.inputs.free
        suggesting.append(surest_items(signs, names, is_spy, is_judge))
    helping: list[Matched] = []
    for is_sure in suggesting:
        change, misfit = find_change(
            found.originals, found.inputs.free, is_sure, found.scaling, seed=seed
        )
        again = changed_by(found, change, seed=seed)
        if isinstance(change, ColumnChange):
            again = with_more_noise(found, again, seed=seed)
        if misfit < better or again.sure_share >= found.sure_share + CLEARLY_MORE:
            helping.append(again)
            if found.embedded is None:  # the more noise on columns, the more items are sure
                break
    return max(helping, key=lambda again: again.sure_share, default=None)


def with_more_noise(found: Matched, again: Matched, *, seed: int) -> Matched:
    """The match with more noise on the columns, as long as that leaves clearly less misfit.

    The items of the pool that are sure are those that got little of its noise, so they show too
    little of it. Labelled items with the noise of the pool are chosen by the same rule, and then
    those that are sure are alike on both sides.
    """
    change, left = again.changes[-1], misfit_left(again, seed=seed)
    assert isinstance(change, ColumnChange)
    for noise in NOISE_SHARES:
        if noise > change.noise:
            noisier = changed_by(found, replace(change, noise=noise), seed=seed)
            left_by_it = misfit_left(noisier, seed=seed)
            if left_by_it >= BETTER * left:
                break
            again, left = noisier, left_by_it
    return again


def misfit_left(found: Matched, *, seed: int) -> float:
    """How far the traces of sure labelled items are from those of the pool's sure items."""
    assert found.inputs is not None
    assert found.last is not None
    if not found.last.is_possible:
        return float("inf")
    sure = sample_sure_items(found.originals, found.inputs.free, found.last.is_sure, seed=seed)
    return sure.misfit(sure.judges, seed=seed)


def settles(again: Matched, found: Matched) -> bool:
    """Whether sources that differ do so no more, with no fewer items that are sure."""
    assert again.last is not None
    assert found.last is not None
    is_settled = found.last.differ and not again.last.differ
    return is_settled and again.sure_share >= found.sure_share


def changed_by(found: Matched, change: Change, *, seed: int) -> Matched:
    embedded = found.embedded
    if embedded is None:
        training, pooled = changed(found.training, found.pooled, change, seed=seed)
    else:
        embedded, pooled = embedded.changed_by(change, seed=seed), found.pooled
        training = embedded.scaling.transform_items(found._replace(embedded=embedded).features)
    again = compare_inputs(training, pooled, embedded, scaling=found.scaling, seed=seed)
    return again._replace(changes=(*found.changes, change), first=found.first, of_raw=found.of_raw)


@in_one_thread
def compare_inputs(
    training: Labelled,
    pooled: Pool,
    embedded: EmbeddedItems | None = None,
    *,
    scaling: Scaling = UNSCALED,
    seed: int,
) -> Matched:
    """The sources compared by signs and traces of the inputs."""
    inputs = measure_inputs(pooled, training, seed=seed)
    found = Matched(training, pooled, inputs, embedded=embedded, scaling=scaling)
    last = _compared(found, seed=seed)
    return found._replace(first=last, last=last)


def _compared(found: Matched, is_sure: np.ndarray | None = None, *, seed: int) -> Comparison:
    """One of two comparisons, that of f's signs being the other, so the p-value is doubled.

    What a source adds to images and texts is compared by itself, too, among all items.
    """
    assert found.inputs is not None
    signs, names, is_spy, is_judge = found.inputs.free
    if is_sure is None:
        is_sure = sure_items(signs, names, is_spy)
    rows = np.arange(len(names))
    if found.are_images:
        traces = _traces_of_rows(found, rows[is_sure & ~is_spy], len(rows))
    else:
        traces = measure_traces(found.originals(rows), names, is_spy, seed=seed)
    left_out = found.pooled.is_beyond_even(len(names))
    last = compare_sources(
        signs, names, is_spy, is_judge, traces, is_sure, left_out=left_out, seed=seed
    )
    sample = _sample_of_sides(found, seed=seed)
    added = added_by_source(found.originals(sample)) if len(sample) else None
    p_added = 1.0 if added is None else more_than_a_class(added, found.inputs.labels[sample])
    p_added = min(1.0, 2 * p_added)
    return last._replace(p_value=min(1.0, 2 * last.p_value, p_added), p_added=p_added)


def _sample_of_sides(found: Matched, *, seed: int) -> np.ndarray:
    """The sorted rows of items of pool and labelled ones that are compared as a whole.

    Training items that were chosen, not drawn, are no sample of their class, and left out.
    """
    assert found.inputs is not None
    labels, pooled = found.inputs.labels, found.pooled
    left_out = pooled.is_beyond_even(len(labels))
    if not pooled.training_is_random:
        left_out |= np.arange(len(labels)) >= len(pooled.inputs)
    random = rng(seed, "sides")
    sides = (labels < 0) & ~left_out, (labels >= 0) & ~left_out
    rows = [random.permutation(np.flatnonzero(side))[:MOST_OF_SIDE] for side in sides]
    return np.sort(np.concatenate(rows))


def _traces_of_rows(found: Matched, rows: np.ndarray, n: int) -> Traces:
    """The traces of some of n images, the only ones that are compared."""
    measured = image_traces(found.originals(rows))
    columns = np.zeros((n, measured.columns.shape[1]))
    columns[rows] = measured.columns
    return measured._replace(columns=columns)


def changed(
    training: Labelled, pooled: Pool, change: Change, *, seed: int
) -> tuple[Labelled, Pool]:
    """All labelled items with the change, also those that are held back; the pool as it is."""
    labelled = np.concatenate([pooled.of_held_back(pooled.inputs), training.inputs])
    labelled = change.apply(labelled, seed=seed)
    n_held_back = len(pooled.held_back_labels)
    inputs = np.concatenate([pooled.of_pool(pooled.inputs), labelled[:n_held_back]])
    return Labelled(labelled[n_held_back:], training.labels), pooled._replace(inputs=inputs)


def moved_as_a_whole(found: Matched, *, seed: int) -> Matched:
    """With all columns moved: by one share of their deviation, or those with heavy tails by theirs.

    Of the two, that one counts with which more items are sure.
    """
    moved = (changed_by(found, change, seed=seed) for change in offsets_of_all(found))
    return max(moved, key=lambda again: again.sure_share)


def offsets_of_all(found: Matched) -> tuple[ColumnChange, ColumnChange]:
    """All columns moved by the same share of their deviation, and those with heavy tails by theirs.

    Classes are not looked at, and unknown items move single columns as far as a source does; the
    median over the columns is hardly swayed by them. It is too rough for columns whose deviation is
    many spreads, if the source did not move them by as large a share as the others.
    """
    pooled, scaling = found.pooled, found.scaling
    pool = scaling.in_spreads(one_vector(pooled.of_pool(pooled.inputs)))
    held_back, training = (
        scaling.in_spreads(one_vector(items))
        for items in (pooled.of_held_back(pooled.inputs), found.training.inputs)
    )
    labelled = np.concatenate([held_back, training])
    deviations = labelled.std(axis=0)
    own = locations(pool)[0] - locations(labelled)[0]
    common = common_share(own, deviations) * deviations
    most = MOST_OFFSET * deviations
    alike, heavy_by_theirs = (
        ColumnChange(np.clip(offset, -most, most), 0.0, deviations, scaling)
        for offset in (common, np.where(deviations > HEAVY, own, common))
    )
    return alike, heavy_by_theirs
