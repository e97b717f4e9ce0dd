"""One unknown score from several signs, and what it says about each item.

The pool is a mixture of known and unknown items, and the seeds are known, so the odds of "pool"
rise with those of "unknown". P(unknown) of an item comes from a model fitted without it
(cross-fitting), so that seeds and known items of the pool stay exchangeable.
"""

import numpy as np
from scipy.special import expit

from s2osc.lazy import lazily
from s2osc.pipeline.filter.signs import Signs, is_of_inputs, sum_of_signs
from s2osc.seeding import derive

stats = lazily("scipy.stats")
isotonic = lazily("sklearn.isotonic")
model_selection = lazily("sklearn.model_selection")

N_FOLDS = 5
TIES = 1e-3
"""What a second score counts that only parts equal values of the first."""


def ranks(values: np.ndarray) -> np.ndarray:
    """Values as ranks from 0 to 1, equal ones alike.

    >>> ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist()
    [0.625, 0.25, 0.625, 1.0]
    """
    return stats.rankdata(values) / len(values)


def scores_of_signs(
    signs: Signs, names: np.ndarray, is_reference: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Scores (n,) of how distinct every item is: by both of the following, and by either alone.

    The sum of all families, which no single one misleads; and the neighbours among the inputs,
    which f has no part in: f looks at what tells known classes apart, and that may hide a new one.
    Ranks are added, and break ties. Nothing is learnt from the pool.
    """
    by_all = ranks(sum_of_signs(signs, names, is_reference))
    near = np.array([is_of_inputs(name) for name in signs.names])
    if not near.any():
        return (by_all,)
    by_near = np.mean([ranks(column) for column in signs.take(near).columns.T], axis=0)
    return by_all + by_near, by_near + TIES * by_all, by_all


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
        fitted = isotonic.IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
        fitted.fit(score[rest], is_pool[rest], sample_weight=importance[rest])
        q[part] = fitted.predict(score[part])
    ratio = (1 - q) / np.maximum(q, 1e-6)
    return np.clip(1 - (1 - share) * ratio, 0.0, 1.0)


def squash(score: np.ndarray | float) -> np.ndarray:
    """A score mapped to 0 .. 1 in the same order.

    >>> squash(np.array([-1.0, 0.0, 1.0])).round(2).tolist()
    [0.27, 0.5, 0.73]
    """
    return expit(score)
