"""Is anything in the pool unknown? Tests of "nothing is", and what they would have found.

Seeds are missing where unknown items are: at the top of a ranking by unknown scores.
"""

from math import ceil

import numpy as np
from scipy.special import gammaln
from scipy.stats import hypergeom

from s2osc.pipeline.audit.statistics import in_order

SCANNED = (0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8)
"""Shares of the ranking, from the top, that are tested: a rare class is at the very top, and a few
seeds are evidence only by how low they all rank."""
FEWEST_SCANNED = 5
N_TESTS = 4
N_DRAWN = 4_000
"""Random orders that the smallest p-value over several tops is compared with."""
FAR_ENDS = (0.02, 0.05, 0.1)
"""Shares of the seeds above the thresholds that count where the sources differ."""


def anything_unknown_by_class(
    pool: np.ndarray,
    seeds: np.ndarray,
    pool_named: np.ndarray,
    seed_named: np.ndarray,
) -> float:
    """The p-value of "nothing in the pool is unknown", from seeds missing at the top of a ranking.

    It holds whatever the shares of the known classes in the pool: among the items with one
    predicted class they do not matter, and if all items were known, the seeds would be a random
    part. Above a threshold, the number of seeds is then a sum of hypergeometric numbers, one for
    each predicted class, given how many of its items lie above.
    """
    has_seeds = np.isin(pool_named, seed_named)
    pool, pool_named = pool[has_seeds], pool_named[has_seeds]
    if not len(pool):
        return 1.0
    names, named = np.unique(np.concatenate([pool_named, seed_named]), return_inverse=True)
    order = in_order(pool, seeds)
    whole = len(order)
    sizes = sorted({ceil(share * whole) for share in SCANNED})
    sizes = [size for size in sizes if size >= FEWEST_SCANNED] or [whole // 2 or 1]
    tops = np.stack([np.bincount(named[order[:size]], minlength=len(names)) for size in sizes])
    found = np.cumsum(order >= len(pool))[np.array(sizes) - 1]
    wholes = np.bincount(named, minlength=len(names))
    n_seeds = np.bincount(named[len(pool) :], minlength=len(names))
    return _rare_in_tops(found, tops, wholes, n_seeds)


def _rare_in_tops(
    found: np.ndarray, tops: np.ndarray, wholes: np.ndarray, n_seeds: np.ndarray
) -> float:
    """How likely so few seeds are in any of several tops, one within the other.

    ``tops`` (tops, names) counts the items of each predicted class in each top. How small the
    smallest p-value is by chance comes from random draws of the seeds among the items of each name.
    """
    chances = []  # of at most 0, 1, ... seeds in each top
    for top in tops:
        sums = np.ones(1)
        for whole, n, drawn in zip(wholes, n_seeds, top, strict=True):
            numbers = np.arange(min(drawn, n) + 1)
            sums = np.convolve(sums, hypergeom.pmf(numbers, whole, n, drawn))
        chances.append(np.minimum(np.cumsum(sums), 1.0))
    smallest = min(float(c[n]) for c, n in zip(chances, found, strict=True))
    drawn = _draw_tops(wholes, n_seeds, tops)
    by_chance = np.min([c[n] for c, n in zip(chances, drawn, strict=True)], axis=0)
    n_as_small = int((by_chance <= smallest * (1 + 1e-9)).sum())
    if n_as_small == 0:
        return min(1 / (N_DRAWN + 1), len(tops) * smallest)
    return (1 + n_as_small) / (N_DRAWN + 1)


def _draw_tops(wholes: np.ndarray, n_seeds: np.ndarray, tops: np.ndarray) -> np.ndarray:
    """(tops, draws): how many seeds random orders of all names have in each of the nested tops."""
    random = np.random.default_rng(0)
    shape = (N_DRAWN, len(wholes))
    left, rest = np.broadcast_to(n_seeds, shape).copy(), wholes.copy()
    found, before = np.zeros(shape, int), np.zeros(len(wholes), int)
    numbers = []
    for top in tops:
        step = np.broadcast_to(top - before, shape)
        more = random.hypergeometric(left, rest - left, step)
        found, left, rest, before = found + more, left - more, rest - (top - before), top
        numbers.append(found.sum(axis=1))
    return np.stack(numbers)


def unknown_at_far_end(pool: np.ndarray, seeds: np.ndarray, tolerance: float) -> float:
    """The same where the seeds come from another source and were moved to that of the pool.

    They were moved by their middle, so up to a share ``tolerance`` of the pool may be known and lie
    above the seeds nevertheless: so many items do not count. Only far ends are tested, since the
    middle of the scores differs, too.

    >>> known, seeds = np.arange(100.0), np.arange(0.5, 100, 2)
    >>> unknown_at_far_end(np.append(known, np.full(60, 200.0)), seeds, 0.1) < 0.01
    True
    >>> unknown_at_far_end(np.append(known, np.full(10, 200.0)), seeds, 0.1) > 0.5
    True
    """
    p = [1.0]
    for share in FAR_ENDS:
        threshold = np.quantile(seeds, 1 - share)
        n_seeds = int((seeds > threshold).sum())
        n_pool = int((pool > threshold).sum()) - ceil(tolerance * len(pool))
        if n_pool > 0:
            whole = len(pool) + len(seeds)
            p.append(float(hypergeom.cdf(n_seeds, whole, len(seeds), n_seeds + n_pool)))
    return min(1.0, len(FAR_ENDS) * min(p))


def findable_share(n_pool: int, n_judges: int, level: float) -> float:
    """The share of the pool from which on a class apart from all known ones would be found.

    The smallest number of items at the very top of the ranking, without a judge among them, that
    the test rejects. Its level is shared by two tests, of calibration items and of most labelled
    items, and by several tops of the ranking.

    >>> round(findable_share(5_000, 2_000, 0.01), 4), findable_share(100, 5, 0.01)
    (0.0036, 0.72)
    """
    logs = gammaln(np.arange(n_pool + n_judges + 1) + 1.0)  # log n!
    # log C(N, k) over the pool alone, minus that over pool and judges, for k = 0 ... N
    judged = logs[n_pool] - logs[n_pool::-1] - (logs[-1] - logs[n_judges:][::-1])
    enough = np.flatnonzero(judged <= np.log(level / N_TESTS))
    return float(enough[0] / n_pool) if len(enough) else 1.0
