"""What each operating point would bring, for a slider: counted once, from what was measured."""

from dataclasses import dataclass

import numpy as np

from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.decision import Evidence, share_of_unknown

N_POINTS = 200
LARGEST_RATE = 0.5
"""Nobody wants more than half of the known items called unknown."""


@dataclass(frozen=True)
class OperatingPoints:
    """For shares of known items that may be called unknown, rising."""

    rates: tuple[float, ...]
    unknown: tuple[int, ...]  # items called unknown
    false_alarms: tuple[float, ...]  # known items among them, as expected
    found: tuple[float, ...]  # the share of the unknown items that is among them, as expected


def operating_points(evidence: Evidence) -> OperatingPoints:
    """The points of a slider: as finely as the seeds allow, and evenly on a scale of logarithms."""
    n, weights = len(evidence.score), evidence.seed_weight
    smallest = statistics.smallest_promise(weights)
    rates = np.geomspace(min(smallest, LARGEST_RATE), LARGEST_RATE, N_POINTS)
    p_known = np.sort(statistics.p_known(evidence.score, evidence.seed_score, weights))
    p_seeds = statistics.p_known(evidence.seed_score, evidence.seed_score, weights)
    order = np.argsort(p_seeds)
    heavy = np.append(0.0, np.cumsum(weights[order])) / weights.sum()
    called = np.searchsorted(p_known, rates * (1 + 1e-9), side="right")
    alarm_rate = heavy[np.searchsorted(p_seeds[order], rates * (1 + 1e-9), side="right")]
    share = share_of_unknown(evidence).estimate
    alarms = np.minimum(alarm_rate * n * (1 - share), called)
    found = (
        np.clip((called - alarms) / max(n * share, 1e-9), 0, 1) if share else np.zeros(len(rates))
    )
    return OperatingPoints(
        rates=tuple(np.round(rates, 6).tolist()),
        unknown=tuple(called.tolist()),
        false_alarms=tuple(np.round(alarms, 1).tolist()),
        found=tuple(np.round(found, 3).tolist()),
    )
