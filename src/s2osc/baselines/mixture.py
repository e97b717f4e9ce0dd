"""Best bin estimation: which share of a pool is known.

With q_p(c) and q_u(c) the shares of positive and of unlabelled items that score at least c,

    c* = argmin_c  q_u(c) / q_p(c) + (1 + gamma) / q_p(c) (r_u + r_p)
    r = sqrt(log(1 / delta) / 2 n)
    alpha = q_u(c*) / q_p(c*)

Any bin bounds the share from above; the best is pure and holds enough items to tell. Scores must
come from a model that learnt from neither set: those of training items are too good, and alpha
comes out too small.

Reference: S. Garg, Y. Wu, A. Smola, S. Balakrishnan, Z. Lipton, "Mixture Proportion Estimation and
PU Learning: A Modern Approach", NeurIPS 2021. log(1 / delta) is that of the authors' code.
"""

import numpy as np

from s2osc.errors import DataError


def best_bin_estimate(
    positives: np.ndarray, unlabelled: np.ndarray, *, gamma: float = 0.01, delta: float = 0.1
) -> float:
    """Share of the unlabelled items that are like the positive ones, which score high.

    >>> best_bin_estimate(np.array([0.8, 0.9]), np.array([0.8, 0.9, 0.1, 0.1]))
    0.5
    """
    n_p, n_u = len(positives), len(unlabelled)
    if not (n_p and n_u):
        raise DataError(
            f"a share was asked of {n_p} positive and {n_u} unlabelled scores; give some of each"
        )
    # Over the unlabelled scores alone, a pool far from the positives would have no empty bin.
    cuts = np.unique(np.concatenate([positives, unlabelled]))
    cuts = cuts[cuts <= positives.max()]
    q_p, q_u = share_from(positives, cuts), share_from(unlabelled, cuts)
    radius = sum(np.sqrt(np.log(1 / delta) / (2 * n)) for n in (n_p, n_u))
    best = int(np.argmin((q_u + (1 + gamma) * radius) / q_p))
    return min(1.0, float(q_u[best] / q_p[best]))


def share_from(scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """q(c): which share of the scores is at least c, for each cut.

    >>> share_from(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 5.0])).tolist()
    [1.0, 0.75, 0.0]
    """
    return 1 - np.searchsorted(np.sort(scores), cuts) / len(scores)
