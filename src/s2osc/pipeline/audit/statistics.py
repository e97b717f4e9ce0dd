"""What the seeds say about an answer: exact intervals, the unknown share, thresholds.

Plain functions of scores. ``pool`` and ``seeds`` are unknown scores of the pool's items and of the
seeds; an item is called unknown where its score is *above* a threshold. ``weights`` say how many
known items of the pool each seed stands for, relative to the others: all 1, unless the classes are
mixed otherwise in the pool than among the labelled items (``label_shift``).

Everything rests on one assumption: a seed's score is exchangeable with that of a known item of
the pool. For seeds of equal weight the intervals are exact then, whatever the scores are.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv  # the quantile of a beta distribution

from s2osc.lazy import lazily

optimize = lazily("scipy.optimize")

CONFIDENCE = 0.95
FEWEST_BELOW = 0.3
"""The unknown share is estimated at thresholds with at least this share of the seeds below."""


class Estimate(NamedTuple):
    """A number with its 95 % interval."""

    estimate: float
    low: float
    high: float


class Tails(NamedTuple):
    """For each threshold, falling: which share of pool and seeds lies above it."""

    thresholds: np.ndarray
    pool: np.ndarray
    seeds: np.ndarray

    def place(self, threshold: float) -> int:
        """The last threshold that is not below this one."""
        return max(0, int(np.searchsorted(-self.thresholds, -threshold, side="right")) - 1)


def tails(pool: np.ndarray, seeds: np.ndarray, weights: np.ndarray) -> Tails:
    """The shares above every threshold that separates two different scores.

    >>> tails(np.array([3.0, 1.0]), np.array([2.0]), np.ones(1)).pool.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    scores = np.concatenate([pool, seeds])
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    is_last = np.append(falling[1:] != falling[:-1], True)
    of_pool = np.concatenate([np.full(len(pool), 1 / len(pool)), np.zeros(len(seeds))])
    of_seeds = np.concatenate([np.zeros(len(pool)), weights / weights.sum()])
    # Rounding may carry a sum of shares past 1.
    above = [
        np.append(0.0, np.minimum(np.cumsum(share[order])[is_last], 1.0))
        for share in (of_pool, of_seeds)
    ]
    distinct = falling[is_last]
    # Half-way between two scores, so that no rounding on the way to a file moves an item across.
    upper, lower = distinct[:-1], distinct[1:]
    middle = (upper + lower) / 2
    between = np.where(middle < upper, middle, lower)  # rounding may carry it to the upper one
    return Tails(np.concatenate([distinct[:1], between, [-np.inf]]), *above)


def effective_number(weights: np.ndarray) -> float:
    """How many seeds of equal weight the weighted ones are worth: (sum w)^2 / sum w^2.

    >>> effective_number(np.ones(5)), effective_number(np.array([1.0, 0.0]))
    (5.0, 1.0)
    """
    return float(weights.sum() ** 2 / (weights**2).sum())


def conformal_threshold(seeds: np.ndarray, weights: np.ndarray, false_alarm: float) -> float:
    """The lowest threshold above which a known item falls with at most this probability.

    With n seeds of equal weight: the m-th largest of them, m = floor(false_alarm (n + 1)), which a
    further exchangeable item exceeds with probability m / (n + 1) at most. With m = 0 there are
    too few seeds for this rate, and the largest seed comes nearest.

    >>> conformal_threshold(np.arange(19.0), np.ones(19), 0.05)
    18.0
    >>> conformal_threshold(np.arange(19.0), np.ones(19), 0.1)
    17.0
    """
    order = np.argsort(-seeds, kind="stable")
    heavy = np.cumsum(weights[order])
    # The further item weighs as much as the heaviest seed: the cautious choice.
    allowed = false_alarm * (weights.sum() + weights.max())
    m = int(np.searchsorted(heavy, allowed * (1 + 1e-12), side="right"))
    return float(seeds[order[max(m, 1) - 1]])


def threshold_for_pool(
    seeds: np.ndarray, weights: np.ndarray, false_alarm: float, n_pool: int
) -> float:
    """The same for the ``n_pool`` known items of this pool, with a confidence of 95 %.

    The lowest seed above which at most the share ``false_alarm`` of them lies with that confidence.
    Where no seed is high enough, the largest comes nearest.

    >>> threshold_for_pool(np.arange(200.0), np.ones(200), 0.05, 1_000)
    195.0
    """
    order, n = np.argsort(-seeds, kind="stable"), len(seeds)
    if np.ptp(weights) == 0:
        allowed = int(false_alarm * n_pool + 1e-9)
        n_above = first_that_holds(
            lambda m: _more_in_pool(m, n, allowed, n_pool) > 1 - CONFIDENCE, n
        )
    else:
        heavy = np.append(0.0, np.cumsum(weights[order])[:-1]) / weights.sum()
        n_above = int(np.sum(_upper_bound(heavy, weights, n_pool) <= false_alarm))
    return float(seeds[order[max(n_above, 1) - 1]])


def smallest_promise_for_pool(weights: np.ndarray, n_pool: int) -> float:
    """The smallest false-alarm rate these seeds can guarantee in this pool, at 95 %.

    >>> round(smallest_promise_for_pool(np.ones(58), 10_000), 3)
    0.05
    """
    if np.ptp(weights) > 0:
        return float(_upper_bound(np.zeros(1), weights, n_pool)[0])
    n = len(weights)
    least = first_that_holds(lambda j: _more_in_pool(0, n, j, n_pool) <= 1 - CONFIDENCE, n_pool)
    return least / n_pool


def _more_in_pool(m: int, n: int, allowed: int, n_pool: int) -> float:
    """The probability that more known items of the pool than allowed lie above a seed.

    It has m of the n seeds above it. That is so where the first m + allowed + 1 items of pool and
    seeds together have at most m seeds among them, which is a hypergeometric number.
    """
    return chance_of_at_most(m, n + n_pool, marked=n, drawn=min(m + allowed + 1, n + n_pool))


def chance_of_at_most(found: int, whole: int, *, marked: int, drawn: int) -> float:
    """The chance of at most so many marked items among those drawn from a whole (hypergeometric).

    As scipy's ``hypergeom.cdf``, whose module takes a quarter of the time in which an answer is
    decided anew to import. Each number is as likely as the one below it, times a ratio.

    >>> round(chance_of_at_most(1, 5, marked=2, drawn=2), 3)
    0.9
    """
    least, most = max(0, drawn - (whole - marked)), min(marked, drawn)
    number = np.arange(least, most, dtype=np.float64)
    ratio = (marked - number) / (number + 1) * (drawn - number)
    ratio /= whole - marked - drawn + number + 1
    logs = np.append(0.0, np.cumsum(np.log(ratio)))
    masses = np.exp(logs - logs.max())
    return float(masses[: max(found - least + 1, 0)].sum() / masses.sum())


def _upper_bound(rates: np.ndarray, weights: np.ndarray, n_pool: int) -> np.ndarray:
    """The upper 95 % bound of Clopper and Pearson by the effective number of the seeds."""
    n = effective_number(weights)
    n = n * n_pool / (n + n_pool)  # the pool varies too
    hits = np.minimum(rates, 1.0) * n
    return np.asarray(betaincinv(hits + 1, np.maximum(n - hits, 1e-9), CONFIDENCE))


def p_known(scores: np.ndarray, seeds: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(n,) the conformal p-value of "this item is known" for each of ``scores``.

    The share of known items that are at least as strange, the item itself among them. It is uniform
    over known items, or larger where scores are equal: at most a share a of them has a p-value of a
    or less. The item weighs as much as the heaviest seed, the cautious choice.

    >>> p_known(np.array([9.0, 3.0, 0.5]), np.array([1.0, 2.0, 3.0]), np.ones(3)).tolist()
    [0.25, 0.5, 1.0]
    """
    falling, p_values = p_values_of(seeds, weights)
    return p_values[np.searchsorted(-falling, -scores, side="right")]


def operating_point(seeds: np.ndarray, weights: np.ndarray, threshold: float) -> float:
    """The p-value up to which items are above a threshold; 0 where the threshold is infinite.

    A threshold at a seed, or just above one, is where the p-value changes. An item is then above it
    exactly where its ``p_known`` is at most the operating point.

    >>> operating_point(np.array([1.0, 2.0, 3.0]), np.ones(3), 2.0)
    0.5
    """
    if np.isposinf(threshold):
        return 0.0
    falling, p_values = p_values_of(seeds, weights)
    return float(p_values[np.searchsorted(-falling, -threshold, side="left")])


def p_values_of(seeds: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The seeds' scores, falling, and the p-value of an item below 0, 1, 2, ... of them."""
    order = np.argsort(-seeds, kind="stable")
    as_strange = np.append(0.0, np.cumsum(weights[order])) + weights.max()
    return seeds[order], as_strange / as_strange[-1]


def smallest_promise(weights: np.ndarray) -> float:
    """The smallest false-alarm rate these seeds can guarantee: 1 / (n + 1) for equal weights."""
    return float(weights.max() / (weights.sum() + weights.max()))


@lru_cache(maxsize=10_000)  # classes and operating points often have the same numbers
def exact_interval(hits: int, n: int, n_pool: int) -> Estimate | None:
    """A rate among the ``n_pool`` known items of the pool, from ``hits`` among ``n`` seeds.

    None without seeds or without known items in the pool.

    Seeds and known items of the pool are exchangeable, so the seeds are a random part of both. The
    interval holds every number of hits in the pool that the hits among the seeds do not reject
    (hypergeometric; 2.5 % on each side). For a large pool it is that of Clopper and Pearson.

    >>> [round(x, 3) for x in exact_interval(5, 100, 10**6)]
    [0.05, 0.016, 0.113]
    """
    if n == 0 or n_pool <= 0:
        return None
    side = (1 - CONFIDENCE) / 2
    whole = n + n_pool

    def too_rare_above(in_pool: int) -> bool:  # so many hits among the seeds, with few in the pool
        below = chance_of_at_most(hits - 1, whole, marked=hits + in_pool, drawn=n)
        return 1 - below <= side

    def too_rare_below(in_pool: int) -> bool:
        return chance_of_at_most(hits, whole, marked=hits + in_pool, drawn=n) <= side

    low = first_that_holds(lambda j: not too_rare_above(j), n_pool)
    high = first_that_holds(too_rare_below, n_pool + 1) - 1
    return Estimate(hits / n, low / n_pool, min(high, n_pool) / n_pool)


def first_that_holds(holds: Callable[[int], bool], end: int) -> int:
    """The smallest number in 0 .. end at which a monotone condition holds."""
    low, high = 0, end
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return low


def clopper_pearson(hits: int, n: int) -> Estimate:
    """A probability from ``hits`` in ``n`` independent trials, with its exact 95 % interval.

    >>> [round(x, 3) for x in clopper_pearson(5, 100)]
    [0.05, 0.016, 0.113]
    """
    side = (1 - CONFIDENCE) / 2
    low = float(betaincinv(hits, n - hits + 1, side)) if hits else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - side)) if hits < n else 1.0
    return Estimate(hits / n, low, high)


def drawn_interval(hits: int, n: int, n_pool: int) -> Estimate | None:
    """A rate in a pool, from ``hits`` among ``n`` of its items that were drawn at random.

    Exact, and without any assumption. None where nothing was drawn.

    >>> [round(x, 3) for x in drawn_interval(5, 100, 10**6)]
    [0.05, 0.016, 0.113]
    >>> drawn_interval(1, 4, 4)
    Estimate(estimate=0.25, low=0.25, high=0.25)
    """
    if n == 0:
        return None
    others = exact_interval(hits, n, n_pool - n)  # None: all were drawn
    low, high = (others.low, others.high) if others else (0.0, 0.0)
    n_others = n_pool - n
    return Estimate(hits / n, (hits + low * n_others) / n_pool, (hits + high * n_others) / n_pool)


def weighted_interval(hits: np.ndarray, weights: np.ndarray, n_pool: int) -> Estimate | None:
    """The same for seeds of different weight, by their effective number.

    The rate among so many items is that of whole ones, so the ends are rounded outwards to these.
    """
    if len(hits) == 0 or n_pool <= 0 or np.ptp(weights) == 0:
        return exact_interval(int(hits.sum()), len(hits), n_pool)
    rate = float(weights @ hits / weights.sum())
    n = effective_number(weights)
    # The pool varies too, not only the seeds.
    n = n * n_pool / (n + n_pool)
    side = (1 - CONFIDENCE) / 2
    low = float(betaincinv(rate * n, n - rate * n + 1, side)) if rate > 0 else 0.0
    high = float(betaincinv(rate * n + 1, n - rate * n, 1 - side)) if rate < 1 else 1.0
    return Estimate(rate, floor(low * n_pool) / n_pool, ceil(high * n_pool) / n_pool)


def in_order(pool: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """The row numbers of pool and seeds, highest score first.

    Equal scores are in random order, so that neither pool nor seeds come first.
    """
    scores = np.concatenate([pool, seeds])
    return np.lexsort((np.random.default_rng(0).random(len(scores)), -scores))


STRICT = 0.002
"""Probability that the low end of the unknown share leaves to each threshold."""
HIDDEN = 0.2
"""Share of the unknown items that may look like known ones at least, for the high end."""


class Bound(NamedTuple):
    """1 - pi <= ratio, at every threshold with enough seeds below it."""

    ratio: np.ndarray  # (1 - pool above) / (1 - seeds above)
    error: np.ndarray  # its relative error
    tightest: int  # the threshold whose ratio, two deviations added, is smallest


def bound_on_known(
    curve: Tails, n_pool: int, n_seeds: float, fewest_below: float = FEWEST_BELOW
) -> Bound:
    """An upper bound of the known share: 1 - pi <= (1 - pool above) / (1 - seeds above).

    The pool is given; its number of known items above a threshold varies, given that of the seeds.
    The bound is tightest where no unknown item lies below.
    """
    enough = 1 - curve.seeds >= fewest_below
    pool, seeds = curve.pool[enough], curve.seeds[enough]
    ratio = (1 - pool) / (1 - seeds)
    above = (seeds * n_seeds + 0.5) / (n_seeds + 1)  # no seed above is no proof of no known item
    n_known = np.maximum(ratio * n_pool, 1)
    # Relative, hence a factor: the ratio of two counts is skewed where few seeds lie below.
    error = np.sqrt(above / (1 - above) * (1 / n_seeds + 1 / n_known))
    return Bound(ratio, error, int(np.argmin(ratio * np.exp(2 * error))))


def guessed_share(accuracy: float, n_classes: int) -> float:
    """The share of items whose class is merely guessed, where so many are named right.

    Known classes that are not told from each other are not told from unknown ones, either.

    >>> guessed_share(1.0, 5), guessed_share(0.6, 5), guessed_share(0.2, 5), guessed_share(1.0, 1)
    (0.0, 0.5, 1.0, 0.0)
    """
    if n_classes < 2:
        return 0.0
    return min(1.0, (1 - accuracy) * n_classes / (n_classes - 1))


def unknown_share(
    curve: Tails,
    n_pool: int,
    n_seeds: float,
    fewest_below: float = FEWEST_BELOW,
    hidden: float = HIDDEN,
) -> Estimate:
    """pi, the share of the pool that is unknown, estimated low; a rough range.

    The smallest of many noisy ratios is biased downwards, so two deviations are added for the
    estimate. The low end takes an exact upper bound of the known items above each threshold, strict
    enough for all thresholds at once. The high end is four deviations less at the tightest place,
    and supposes that up to the share ``hidden`` of the unknown items look like known ones, which
    nothing in the pool can tell.
    """
    ratio, error, tightest = bound_on_known(curve, n_pool, n_seeds, fewest_below)
    value = max(0.0, 1 - float(ratio[tightest] * np.exp(2 * error[tightest])))
    enough = 1 - curve.seeds >= fewest_below
    n = 1 / (1 / n_seeds + 1 / np.maximum(ratio * n_pool, 1))  # the pool varies too
    above = curve.seeds[enough] * n
    most_above = betaincinv(above + 1, np.maximum(n - above, 1e-9), 1 - STRICT)
    at_most_known = (1 - curve.pool[enough]) / np.maximum(1 - most_above, 1e-9)
    item = 1 / n_pool
    low = max(0.0, 1 - float(np.min(at_most_known)) - item)
    high = (1 - float(ratio[tightest] * np.exp(-4 * error[tightest]))) / max(
        1 - hidden, item
    ) + item
    return Estimate(max(value, low), low, float(np.clip(high, max(value, low), 1.0)))


def likely_share(
    curve: Tails, n_pool: int, n_seeds: float, fewest_below: float = FEWEST_BELOW
) -> float:
    """pi with half a deviation added, since the smallest of many ratios is biased downwards.

    The denominator of a recall, which a low estimate would make too good.
    """
    ratio, error, tightest = bound_on_known(curve, n_pool, n_seeds, fewest_below)
    return max(0.0, 1 - float(ratio[tightest] * np.exp(error[tightest] / 2)))


def true_unknowns(curve: Tails, share: float) -> np.ndarray:
    """The share of the pool that is unknown *and* above each threshold: p(t) - s(t) (1 - pi)."""
    return np.clip(curve.pool - curve.seeds * (1 - share), 0.0, share)


def estimated_f_out(curve: Tails, share: float, n_seeds: float) -> np.ndarray:
    """2 TP / (called unknown + unknown) at each threshold, without a label of the pool.

    One seed is added above each threshold, since the best threshold tends to lie just above a seed.
    Where more unknown items lie above than the share allows, they replace the share, which is a low
    estimate.
    """
    alarms = (curve.seeds * n_seeds + 1) / (n_seeds + 1)
    found = np.maximum(curve.pool - alarms * (1 - share), 0.0)
    return 2 * found / np.maximum(curve.pool + np.maximum(share, found), 1e-12)


class Purity(NamedTuple):
    """Estimated purity of the 1, 2, 3 ... most distinct items, and a lower bound of it."""

    estimate: np.ndarray
    low: np.ndarray


def purity_of_top(pool: np.ndarray, seeds: np.ndarray, weights: np.ndarray, share: float) -> Purity:
    """The estimated purity of the n most distinct items, for every n.

    Each seed among them stands for (1 - pi) N / n_seeds known items of the pool; the lower bound
    adds two deviations and one seed.
    """
    order = in_order(pool, seeds)
    heavy = np.append(np.zeros(len(pool)), weights)[order]
    stands_for = (1 - share) * len(pool) / weights.sum()
    n_pool = np.maximum(np.cumsum(order < len(pool)), 1)
    found = np.cumsum(heavy)
    cautious = found + weights.mean() + 2 * np.sqrt(np.cumsum(heavy**2))
    low = np.clip(1 - cautious * stands_for / n_pool, 0, 1)
    return Purity(np.clip(1 - found * stands_for / n_pool, 0, 1), low)


def bootstrap(
    pool: np.ndarray, seeds: np.ndarray, weights: np.ndarray, *, n: int, random: np.random.Generator
) -> list[Tails]:
    """The tails of ``n`` resampled pools and sets of seeds, over one grid of thresholds."""
    grid = np.unique(np.quantile(np.concatenate([pool, seeds]), np.linspace(0, 1, 201)))
    in_pool = np.bincount(np.searchsorted(grid, pool), minlength=len(grid) + 1)
    in_seeds = np.bincount(np.searchsorted(grid, seeds), weights, minlength=len(grid) + 1)
    n_seeds = len(seeds)
    drawn = []
    for _ in range(n):
        a = random.multinomial(len(pool), in_pool / in_pool.sum())
        b = random.multinomial(n_seeds, in_seeds / in_seeds.sum())
        above = [1 - np.cumsum(x)[: len(grid)] / x.sum() for x in (a, b)]
        drawn.append(Tails(grid[::-1], above[0][::-1], above[1][::-1]))
    return drawn


def rising_curve(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Isotonic regression: the places and heights of the curve through x that never falls.

    It is as near to y as such a curve can be, in weighted squares; straight between its places.

    >>> rising_curve(np.array([1.0, 2, 3, 4, 4]), np.array([0.0, 1, 0, 1, 1]), np.ones(5))
    (array([1., 2., 3., 4.]), array([0. , 0.5, 0.5, 1. ]))
    """
    counts = weights > 0
    places, of_place = np.unique(x[counts], return_inverse=True)
    weights = weights[counts]
    total = np.bincount(of_place, weights)
    means = np.bincount(of_place, weights * y[counts]) / total
    heights = optimize.isotonic_regression(means, weights=total).x
    # Of a level stretch, its ends are enough.
    is_end = np.ones(len(heights), bool)
    is_end[1:-1] = (heights[1:-1] != heights[:-2]) | (heights[1:-1] != heights[2:])
    return places[is_end], heights[is_end]
