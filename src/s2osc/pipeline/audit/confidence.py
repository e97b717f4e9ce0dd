"""How sure an answer is: the probability that it is right, learnt from the held-back items.

An answer is a known class, right where the item is known *and* of that class, or "unknown". Two
curves give both parts:

    named      the softmax of the known classes -> how often a known item is of the class named
    unknown    an unknown score -> P(unknown), from the densities of pool and calibration items

Softmax values rank answers well, but say "surely" too often. Networks never learnt the classes of
held-back items, which we know: how often the class named is right at which value can be counted.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import expit, log_expit, logit

from s2osc.codec import fields_from_plain
from s2osc.lazy import lazily
from s2osc.pipeline.audit.record import Reliability, ReliabilityBin
from s2osc.pipeline.audit.statistics import clopper_pearson, rising_curve
from s2osc.seeding import rng

optimize = lazily("scipy.optimize")
stats = lazily("scipy.stats")

FEWEST_WRONG = 20
"""With fewer wrong (or right) names among the calibration items, one number is learnt of them, a
temperature; a free curve would follow single items."""
N_FOLDS, N_BINS, N_RESAMPLED, N_KNOTS = 10, 10, 20, 100
SUREST = 1e-7  # a softmax nearer to 0 or 1 is as good as that
LEAST = float(np.finfo(np.float32).tiny)  # P(known) that can still be divided by
HOTTEST = 1e3


@dataclass(frozen=True)
class Curve:
    """A rising curve through a few points, straight between them and level outside."""

    places: tuple[float, ...]
    values: tuple[float, ...]  # from 0 to 1

    def __call__(self, scores: np.ndarray) -> np.ndarray:
        """The height of the curve at each score.

        >>> Curve((0.0, 2.0), (0.5, 1.0))(np.array([-1.0, 1.0, 9.0])).tolist()
        [0.5, 0.75, 1.0]
        """
        return np.interp(scores, self.places, self.values)

    @classmethod
    def from_json(cls, record: Any, what: str) -> Self:
        found = fields_from_plain(cls, record, what)
        rises = all(np.all(np.diff(axis) >= 0) for axis in (found.places, found.values))
        if not found.places or len(found.places) != len(found.values) or not rises:
            raise ValueError(f"{what} is not a curve that rises")
        if not 0 <= found.values[0] <= found.values[-1] <= 1:
            raise ValueError(f"{what} holds values that are not from 0 to 1")
        return found


@dataclass(frozen=True)
class Confidence:
    """What a model knows about how sure its answers are."""

    named: Curve  # over the log-odds of the softmax of the class named
    unknown: Curve | None = None  # over the log-odds of g; None: nothing is called unknown

    def of_names(self, softmax: np.ndarray) -> np.ndarray:
        """(n,) the probability that the class named is right, given that the item is known."""
        return self.named(log_odds(softmax))

    def of_answers(
        self, is_unknown: np.ndarray, softmax: np.ndarray, score: np.ndarray
    ) -> np.ndarray:
        """(n,) the probability that each answer is right."""
        p = np.zeros(len(score)) if self.unknown is None else self.unknown(score)
        return answer_confidence(is_unknown, p, self.of_names(softmax))


def answer_confidence(is_unknown: np.ndarray, p: np.ndarray, named: np.ndarray) -> np.ndarray:
    """The probability that an answer is right; ``p`` is P(unknown).

    >>> answer_confidence(np.array([True, False]), np.array([0.8, 0.1]), np.array([0.9, 0.9]))
    array([0.8 , 0.81])
    """
    return np.where(is_unknown, p, (1 - p) * named)


def known_confidence(known: np.ndarray) -> np.ndarray:
    """The softmax of the best known class, given that an item is known; (n, C) of all of them.

    >>> known_confidence(np.array([[0.3, 0.1]])).round(2).tolist()
    [0.75]
    """
    return known.max(1) / np.maximum(known.sum(1), LEAST)


def log_odds(probability: np.ndarray) -> np.ndarray:
    return logit(np.clip(np.asarray(probability, float), SUREST, 1 - SUREST))


# --- the class that is named -----------------------------------------------------------------


def fit_names(softmax: np.ndarray, is_right: np.ndarray, weights: np.ndarray) -> Curve:
    """How often the class named is right, as a curve over the log-odds of its softmax.

    Isotonic regression or, where few names are wrong or few right, temperature scaling. Either way
    n right items count as (n + 1/2) / (n + 1) each instead of 1, after Platt and Jeffreys: no
    number of items without an error shows that there are none.
    """
    n_right, n_wrong = int(is_right.sum()), int((~is_right).sum())
    target = np.where(is_right, (n_right + 0.5) / (n_right + 1), 0.5 / (n_wrong + 1))
    places = log_odds(softmax)
    if min(n_right, n_wrong) < FEWEST_WRONG:
        return _by_temperature(fit_temperature(places, target, weights))
    return _curve(*rising_curve(places, target, weights))


def fit_temperature(odds: np.ndarray, target: np.ndarray, weights: np.ndarray) -> float:
    """T of the least cross-entropy between the targets and the sigmoid of odds / T.

    >>> odds = np.repeat([2.0, -2.0], 1_000)
    >>> round(fit_temperature(odds, expit(odds / 4), np.ones(2_000)), 2)
    4.0
    """

    def loss(log_temperature: float) -> float:
        scaled = odds / np.exp(log_temperature)
        cross = target * log_expit(scaled) + (1 - target) * log_expit(-scaled)
        return -float(weights @ cross)

    furthest = np.log(HOTTEST)
    return float(
        np.exp(optimize.minimize_scalar(loss, bounds=(-furthest, furthest), method="bounded").x)
    )


def _by_temperature(temperature: float) -> Curve:
    end = float(logit(1 - SUREST))
    places = np.linspace(-end, end, N_KNOTS + 1)
    return _curve(places, expit(places / temperature))


def _curve(places: np.ndarray, values: np.ndarray) -> Curve:
    return Curve(tuple(float(x) for x in places), tuple(float(y) for y in values))


# --- unknown ---------------------------------------------------------------------------------


def fit_unknown(
    pool: np.ndarray, seeds: np.ndarray, weights: np.ndarray, share: float, *, seed: int
) -> Curve:
    """P(unknown) = 1 - (1 - pi) p_seeds(score) / p_pool(score) as a rising curve over the score.

    The ratio of the densities comes from isotonic regression of "pool" on the score. It is the mean
    over resampled pools and seeds: one step of a single regression lies exactly at the highest
    seed, as if nothing known could lie a hair above it. Half a seed at the top of each keeps the
    probability below 1 where no seed is.
    """
    scores = np.concatenate([pool, seeds])
    grids = [np.quantile(each, np.linspace(0, 1, N_KNOTS + 1)) for each in (pool, seeds)]
    places = np.unique(np.concatenate(grids))
    random, top = rng(seed, "confidence"), float(scores.max())
    total = np.zeros(len(places))
    for _ in range(N_RESAMPLED):
        in_pool = random.multinomial(len(pool), np.full(len(pool), 1 / len(pool)))
        in_seeds = random.multinomial(len(seeds), np.full(len(seeds), 1 / len(seeds)))
        of_seeds = np.append(in_seeds * weights, weights.mean() / 2)
        importance = np.concatenate([in_pool / in_pool.sum(), of_seeds / of_seeds.sum()])
        is_pool = np.repeat([1.0, 0.0], [len(pool), len(seeds) + 1])
        total += np.interp(places, *rising_curve(np.append(scores, top), is_pool, importance))
    q = total / N_RESAMPLED
    return _curve(places, np.clip(1 - (1 - share) * (1 - q) / np.maximum(q, 1e-6), 0.0, 1.0))


# --- is it so? -------------------------------------------------------------------------------


def cross_fitted(
    softmax: np.ndarray, is_right: np.ndarray, weights: np.ndarray, *, seed: int
) -> np.ndarray:
    """(m,) the confidence of each calibration item by a curve that was fitted without it."""
    fold_of = rng(seed, "confidence folds").permutation(len(softmax)) % N_FOLDS
    stated = np.empty(len(softmax))
    for fold in np.unique(fold_of):
        part, rest = fold_of == fold, fold_of != fold
        curve = fit_names(softmax[rest], is_right[rest], weights[rest])
        stated[part] = curve(log_odds(softmax[part]))
    return stated


def reliability(stated: np.ndarray, is_right: np.ndarray) -> Reliability:
    """Stated confidence against how often it was right, in bins of equally many items."""
    order = np.argsort(stated, kind="stable")
    bins, by_chance = [], 0.0
    for rows in np.array_split(order, min(N_BINS, len(order))):
        n, hits, mean = len(rows), int(is_right[rows].sum()), float(stated[rows].mean())
        bins.append(ReliabilityBin(stated=mean, n=n, right=clopper_pearson(hits, n)))
        by_chance += mean_deviation(n, mean) * n / len(order)
    return Reliability(
        n_items=len(order),
        error=calibration_error(stated, is_right),
        error_by_chance=by_chance,
        bins=tuple(bins),
    )


def calibration_error(stated: np.ndarray, is_right: np.ndarray) -> float:
    """The expected calibration error: |stated - right|, averaged over bins of equally many items.

    >>> calibration_error(np.array([0.5, 0.5, 1.0, 1.0]), np.array([True, False, True, True]))
    0.25
    """
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(N_BINS, len(order)))
    apart = [len(rows) * abs(stated[rows].mean() - is_right[rows].mean()) for rows in parts]
    return float(np.sum(apart) / len(order))


def mean_deviation(n: int, p: float) -> float:
    """E |X / n - p| of a binomial X: what chance alone does to a rate among n items.

    >>> mean_deviation(1, 0.5), mean_deviation(2, 0.5)
    (0.5, 0.25)
    """
    hits = np.arange(n + 1)
    return float(stats.binom.pmf(hits, n, p) @ np.abs(hits / n - p))
