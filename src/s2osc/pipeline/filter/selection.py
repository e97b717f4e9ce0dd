"""D_out and U: how many of the most distinct items are taken, and how pure they are."""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.audit.record import PurityAudit, PurityPoint
from s2osc.pipeline.audit.threshold import Evidence, share_of_unknown
from s2osc.pipeline.filter.distinctness import (
    PAPER_K,
    FilterSettings,
    Partition,
    affordable_k,
    partition_pool,
    pure_k,
)
from s2osc.pipeline.filter.screening import Filtered
from s2osc.pipeline.filter.unknown_probability import unknown_probability
from s2osc.types import Labelled

PURITY_POINTS = 40
"""Points of the curve of purity against K that is shown."""


class Selection(NamedTuple):
    """D_out and U among pool and seeds, and what the seeds estimate about them."""

    k: int
    parts: Partition
    purity: PurityAudit | None = None  # None: no seeds
    unknown_probability: np.ndarray | None = None  # (n + m,)


def select_distinct(
    filtered: Filtered, pooled: Pool, training: Labelled, settings: FilterSettings, *, seed: int
) -> Selection:
    """D_out of K items: as many as asked for, or the most that are pure by the spies."""
    score, sizes = filtered.score, np.bincount(training.labels)
    if filtered.p_value is None or not len(pooled.spy_labels):
        k = affordable_k(settings, pooled.n, sizes)
        return Selection(k, partition_pool(score, k))
    by_spies = filtered.evidence(
        score, softmax(filtered.outputs.logits, axis=1), pooled, by="spies"
    )
    share = share_of_unknown(by_spies)
    purity = purity_of_ranking(by_spies, share.estimate)
    if settings.k is None:
        k = pure_k(purity, min(PAPER_K, max(1, pooled.n // 4)), settings)
    else:
        k = affordable_k(settings, pooled.n, sizes)
    return Selection(
        k=k,
        parts=partition_pool(np.where(pooled.is_spy, -np.inf, score), k),
        purity=audit_purity(purity, k),
        unknown_probability=unknown_probability(
            score, pooled.is_spy, filtered.teaching_weights(pooled), share.low, seed=seed
        ),
    )


def select_nothing(filtered: Filtered, pooled: Pool) -> Selection:
    """No D_out, for a pool in which nothing is unknown."""
    purity = statistics.purity_of_top(
        pool=pooled.of_pool(filtered.score),
        seeds=pooled.of_calibration(filtered.score),
        weights=np.ones(len(pooled.calibration_labels)),
        share=0.0,
    )
    parts = Partition(unknown=np.empty(0, int), undecided=np.arange(pooled.n))
    return Selection(0, parts, purity=audit_purity(purity, 0))


def purity_of_ranking(evidence: Evidence, share: float) -> statistics.Purity:
    """The estimated purity of the most distinct items, where a share of the pool is unknown."""
    return statistics.purity_of_top(
        pool=evidence.score, seeds=evidence.seed_score, weights=evidence.seed_weight, share=share
    )


def audit_purity(purity: statistics.Purity, k: int) -> PurityAudit:
    """Purity against K at a few dozen places, and at the K chosen."""
    places = np.unique(np.geomspace(1, len(purity.low), PURITY_POINTS).astype(int))
    return PurityAudit(
        k=k,
        estimate=float(purity.estimate[k - 1]) if k else None,
        curve=tuple(
            PurityPoint(int(n), float(purity.estimate[n - 1]), float(purity.low[n - 1]))
            for n in places
        ),
    )
