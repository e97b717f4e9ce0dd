"""What each operating point would bring, for a slider: counted once, from what was measured."""

from dataclasses import dataclass

import numpy as np

from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.threshold import Evidence, share_of_unknown

N_POINTS = 200
LARGEST_RATE = 0.5
"""Nobody wants more than half of the known items called unknown."""
NEARLY = 1e-9
"""Of two equal rates, one may have gone through a file."""


@dataclass(frozen=True)
class OperatingPoints:
    """For shares of known items that may be called unknown, rising."""

    rates: tuple[float, ...]
    unknown: tuple[int, ...]  # items called unknown
    false_alarms: tuple[float, ...]  # known items among them, as expected
    found: tuple[float, ...]  # the share of the unknown items that is among them, as expected


def is_called_unknown(p_known: np.ndarray, rate: float) -> np.ndarray:
    """(n,) whether items with these p-values are unknown at an operating point."""
    return p_known <= rate * (1 + NEARLY)


def operating_points(evidence: Evidence) -> OperatingPoints:
    """The points of a slider, evenly on a scale of logarithms, as finely as the seeds allow."""
    n, seeds, weights = len(evidence.score), evidence.seed_score, evidence.seed_weight
    smallest = statistics.smallest_promise(weights)
    # P-values are steps, one for each seed: between two of them nothing changes.
    steps = np.unique(np.append(statistics.p_known(seeds, seeds, weights), smallest))
    wanted = np.geomspace(smallest, max(LARGEST_RATE, smallest), N_POINTS)
    rates = steps[np.unique(np.searchsorted(steps, wanted * (1 + NEARLY), side="right") - 1)]
    p_known = np.sort(statistics.p_known(evidence.score, seeds, weights))
    called = np.searchsorted(p_known, rates * (1 + NEARLY), side="right")
    # The p-value of a known item is up to a rate with just that probability.
    share = share_of_unknown(evidence).estimate
    alarms = np.minimum(rates * n * (1 - share), called)
    found = np.clip((called - alarms) / max(n * share, 1.0), 0, 1)
    return OperatingPoints(
        rates=tuple(rates.tolist()),
        unknown=tuple(called.tolist()),
        false_alarms=tuple(np.round(alarms, 1).tolist()),
        found=tuple(np.round(found, 3).tolist()),
    )
