"""What an unknown score says about each item: its rank, and P(unknown).

The pool is a mixture of known and unknown items, and held-back items (here: spies) are known, so
the odds of "pool" rise with those of "unknown". P(unknown) of an item comes from a model fitted
without it (cross-fitting), so that held-back items and known items of the pool stay exchangeable.
"""

import numpy as np
from scipy.special import expit

from s2osc.lazy import lazily
from s2osc.pipeline.audit.statistics import rising_curve
from s2osc.seeding import derive

model_selection = lazily("sklearn.model_selection")

N_FOLDS = 5


def ranks(values: np.ndarray) -> np.ndarray:
    """Values as ranks from 0 to 1, equal ones alike.

    >>> ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist()
    [0.625, 0.25, 0.625, 1.0]
    """
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[places] / len(values))


def unknown_probability(
    score: np.ndarray, is_seed: np.ndarray, weights: np.ndarray, share: float, *, seed: int
) -> np.ndarray:
    """P(unknown) of each item: 1 - (1 - pi) p_seeds(score) / p_pool(score), rising with the score.

    The ratio of the two densities comes from isotonic regression of "pool" on the score, fitted
    without the item itself: otherwise a seed would lower its own probability.
    """
    balance = np.where(is_seed, 1 / weights[is_seed].sum(), 1 / weights[~is_seed].sum())
    importance, is_pool = weights * balance, (~is_seed).astype(float)
    q = np.empty(len(score))
    n_folds = min(N_FOLDS, int(is_seed.sum()), int((~is_seed).sum()))
    if n_folds < 2:
        return np.full(len(score), share)
    folds = model_selection.StratifiedKFold(
        n_folds, shuffle=True, random_state=derive(seed, "isotonic") % 2**31
    )
    for rest, part in folds.split(score, is_seed):
        curve = rising_curve(score[rest], is_pool[rest], importance[rest])
        q[part] = np.interp(score[part], *curve)
    ratio = (1 - q) / np.maximum(q, 1e-6)
    return np.clip(1 - (1 - share) * ratio, 0.0, 1.0)


def squash(score: np.ndarray | float) -> np.ndarray:
    """A score mapped to 0 .. 1 in the same order.

    >>> squash(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.27, 0.5, 0.73]
    """
    return expit(score)
