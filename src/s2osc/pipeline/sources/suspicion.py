"""Another source that is only suspected: what looks unknown must stand out from it, too.

Where pool and labelled items may come from different sources, but not clearly enough to say so,
labelled items are given the changes that may be the reason. What does not stand out from them is no
discovery, be it in a pool, in the window of a stream or in a sample of a large pool.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from s2osc.nets.networks import one_vector
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.sources.changes import ColumnChange
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.sources.matching import (
    changed_by,
    compare_inputs,
    has_many_columns,
    moved_as_a_whole,
    with_change,
)
from s2osc.seeding import rng
from s2osc.types import Labelled

T = TypeVar("T")
ENOUGH_TO_ASK = 5_000
"""Items that tell whether what stands out does so from labelled items with a change, too; the time
that neighbours take grows with the square of it."""
STRONG_NOISE = (0.2, 0.1)
"""Of a column's deviation: the strongest that still counts as a small change, and a weaker one."""


def unless_explained(
    found: T, suspected: Iterable[Matched], explained_by: Callable[[Matched], T | None]
) -> T:
    """What was found, or what is found by the first suspected change that explains it.

    ``explained_by`` gives what is found by labelled items with the change, if it is nothing; None:
    something stands out from these, too.
    """
    for match in suspected:
        again = explained_by(match)
        if again is not None:
            return again
    return found


def suspected_sources(matched: Matched, *, seed: int) -> Iterator[Matched]:
    """The matches if the sources differed, where they may: by each change that may be the reason.

    What looks unknown is no discovery if it does not stand out from labelled items that were
    changed so: by the change that fits best, by an offset of many columns, and by the strongest
    noise on columns that the comparison does not rule out. That is the largest p-value over a
    confidence set of what is not known (Berger and Boos).
    """
    if matched.is_suspicious:
        yield from changed_on_suspicion(matched, seed=seed)


def changed_on_suspicion(matched: Matched, *, seed: int) -> Iterator[Matched]:
    """The same, whatever the comparison says."""
    # What moves every column a little shows in none of the few that are compared.
    moved = moved_as_a_whole(matched, seed=seed) if has_many_columns(matched) else None
    best = with_change(matched, seed=seed, better=1.0, moved=moved)
    if best is not None:
        yield best._replace(is_suspected=True)
    if not matched.are_columns:
        return
    if moved is not None and moved is not best:
        yield moved._replace(is_suspected=True)
    scaling = matched.scaling
    deviations = scaling.in_spreads(one_vector(matched.training.inputs)).std(axis=0)
    for noise in STRONG_NOISE:
        change = ColumnChange(np.zeros_like(deviations), noise, deviations, scaling)
        noisy = changed_by(matched, change, seed=seed)
        if noisy.last is not None and not noisy.last.differ:
            yield noisy._replace(is_suspected=True)
            return


def thinned(matched: Matched, *, seed: int) -> Matched | None:
    """The match of a sample of pool and training items; None where there are not too many.

    Also None of a pool that is a sample with more of the strange.
    """
    training, pooled = matched.training, matched.pooled
    share = ENOUGH_TO_ASK / (len(pooled.inputs) + len(training))
    if share >= 1 or pooled.is_extra is not None:
        return None
    random = rng(seed, "thinned")
    of_pool, of_training = (
        np.sort(random.permutation(n)[: round(share * n)]) for n in (pooled.n, len(training))
    )
    inputs = np.concatenate([pooled.inputs[of_pool], pooled.of_held_back(pooled.inputs)])
    return compare_inputs(
        Labelled(training.inputs[of_training], training.labels[of_training]),
        pooled._replace(inputs=inputs, n=len(of_pool)),
        scaling=matched.scaling,
        seed=seed,
    )


def suspected_of_raw(
    by_raw: Matched, hide: Callable[[Matched], tuple[Labelled, Pool]], *, seed: int
) -> Iterator[Matched]:
    """The same where photos or texts may be changed: matches of their features.

    ``hide`` makes training items, and a pool with held-back ones, of labelled items with a change.
    """
    for suspected in suspected_sources(by_raw, seed=seed):
        yield match_of_suspected(suspected, *hide(suspected), seed=seed)


def match_of_suspected(
    suspected: Matched, training: Labelled, pooled: Pool, *, seed: int
) -> Matched:
    """The match of features of photos or texts with a suspected change."""
    again = compare_inputs(training, pooled, seed=seed)
    return again._replace(changes=suspected.changes, first=suspected.first, is_suspected=True)
