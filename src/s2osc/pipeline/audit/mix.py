"""How the pool mixes the known classes, against the labelled items (label shift).

Counted are the surely known items (``audit.sources``) that f gives each class: unknown items are
hardly among them, and they are chosen by the same rule in the pool and among the held-back items. A
class that is twice as frequent in the pool has twice as many of them there. The counts have an
error of their own; another mix is used only where it goes beyond that error, and no further.
"""

from typing import NamedTuple

import numpy as np

from s2osc.lazy import lazily

stats = lazily("scipy.stats")

LEVEL = 0.01


class Mix(NamedTuple):
    """Class shares in the pool over those among the labelled items."""

    p_value: float  # of "the pool mixes the known classes as the labelled items do"
    weights: np.ndarray  # (C,) all 1, unless the mix differs

    @property
    def is_shifted(self) -> bool:
        return bool(np.ptp(self.weights) > 0)


def compare_mix(n_pool: np.ndarray, n_held_back: np.ndarray, class_weights: np.ndarray) -> Mix:
    """From the numbers of surely known items of each class, in the pool and among the held-back.

    ``class_weights`` are labelled over held-back items. The log ratios of the counts are compared
    by their variances; beyond chance, each is drawn towards their mean by the share of its variance
    that counting explains (DerSimonian and Laird).

    >>> ones = np.ones(2)
    >>> compare_mix(np.array([100, 110]), np.array([50, 50]), ones).weights.tolist()
    [1.0, 1.0]
    >>> compare_mix(np.array([100, 900]), np.array([50, 50]), ones).weights.round(1).tolist()
    [0.3, 2.5]
    """
    n_classes = len(n_pool)
    if n_classes < 2 or not n_pool.any() or not n_held_back.any():
        return Mix(1.0, np.ones(n_classes))
    pool, held = n_pool + 0.5, n_held_back + 0.5
    ratio, variance = np.log(pool / (held * class_weights)), 1 / pool + 1 / held
    precision = 1 / variance
    mean = precision @ ratio / precision.sum()
    excess = float(precision @ (ratio - mean) ** 2)
    p_value = float(stats.chi2.sf(excess, n_classes - 1))
    if p_value > LEVEL:
        return Mix(p_value, np.ones(n_classes))
    scale = precision.sum() - precision @ precision / precision.sum()
    between = max(0.0, (excess - (n_classes - 1)) / scale)
    drawn = (ratio - mean) * between / (between + variance)
    return Mix(p_value, np.exp(drawn - np.median(drawn) if n_classes > 2 else drawn))
