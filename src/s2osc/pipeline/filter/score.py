"""One unknown score from several signs, learnt by classifying seeds against the pool.

The pool is a mixture of known and unknown items, and the seeds are known, so the odds of "pool"
rise with those of "unknown". Every item is scored by a model fitted without it (cross-fitting):
seeds and known items of the pool stay exchangeable, and the seeds' scores can set thresholds.
"""

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from s2osc.lazy import lazily
from s2osc.seeding import derive

stats = lazily("scipy.stats")
ensemble = lazily("sklearn.ensemble")
isotonic = lazily("sklearn.isotonic")
model_selection = lazily("sklearn.model_selection")

FEWEST_SPIES = 75
"""With fewer spies the score is not learnt: it is the sum of the signs."""
N_FOLDS, N_REPEATS = 5, 2
N_LEVELS = 255
"""The most that boosted trees tell apart in a column. Ranks rounded to as many need no quantiles,
which take scikit-learn ten times as long as the trees where items are weighted."""


def ranks(values: np.ndarray) -> np.ndarray:
    """Values as ranks from 0 to 1, equal ones alike.

    >>> ranks(np.array([5.0, 1.0, 5.0, 9.0])).tolist()
    [0.625, 0.25, 0.625, 1.0]
    """
    return stats.rankdata(values) / len(values)


def learn_score(
    signs: np.ndarray, is_seed: np.ndarray, weights: np.ndarray, *, seed: int
) -> np.ndarray:
    """Log-odds of "pool" for each row of ``signs`` (n, m), none of which may lower it.

    Boosted trees on the ranks of the signs, monotone in each. ``weights`` are those of the rows;
    pool and seeds weigh the same in total.
    """
    columns = np.stack([ranks(sign) for sign in signs.T], axis=1)
    levels = np.ceil(N_LEVELS * columns)
    balance = np.where(is_seed, 1 / weights[is_seed].sum(), 1 / weights[~is_seed].sum())
    importance = weights * balance * len(is_seed) / 2
    score = np.zeros(len(levels))
    for repeat in range(N_REPEATS):
        state = derive(seed, f"fusion {repeat}") % 2**31
        folds = model_selection.StratifiedKFold(N_FOLDS, shuffle=True, random_state=state)
        for rest, part in folds.split(levels, is_seed):
            trees = ensemble.HistGradientBoostingClassifier(
                max_iter=60,
                learning_rate=0.08,
                max_leaf_nodes=8,
                min_samples_leaf=40,
                monotonic_cst=[1] * levels.shape[1],
                random_state=state,
            )
            # Trees this small take several threads four times as long as one.
            with threadpool_limits(1, user_api="openmp"):
                trees.fit(levels[rest], ~is_seed[rest], sample_weight=importance[rest])
                score[part] += trees.decision_function(levels[part]) / N_REPEATS
    # Trees give many items the same value; the mean rank breaks the ties.
    return score + 1e-4 * columns.mean(axis=1)


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
