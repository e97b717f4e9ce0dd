"""More items far out than a regular tail has: evidence of a class too rare for an exact test.

Among m labelled items, an exact test cannot tell a class of a share s from their own far end unless
(1 - s)^m is small. Here the tail of pool and judges together says how many lie so far out if
distances thin out as they do nearer in. Where far more do, those are one top of the ranking, chosen
without a look at who is a judge; so the chance of so few judges among them is exact, and is that of
one top instead of hundreds.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.audit.unknown_test import FIRST_TOP, chance_of_few_judges

stats = lazily("scipy.stats")

TAIL = 0.02
"""The share of the items whose number is compared with what the tail nearer in suggests: more than
a class that exact tests hardly see has, and few enough to lie in the tail."""
STEP_INWARDS = 5
"""The tail is measured at this share, at so many times as much, and at the square of it: at 2, 10
and 50 % of the items."""
CAUTIOUS = 2.0
"""Deviations by which the tail may be longer than it was measured."""
SURE = 1e-6
"""Chance of so many items far out by a regular tail, from which on it is no regular one."""
LARGE_PART = 0.5
"""Of the items far out, that a regular tail may have at most."""
TRUSTED = 10
"""Times the level: so small must the exact chance be where the tail is no regular one."""


@dataclass(frozen=True)
class LongTail:
    """Items that lie farther out than a regular tail explains, and the judges among them."""

    n_items: int  # of pool and judges
    n_regular: float  # of these, by a regular tail: the most
    n_judges: int
    chance: float  # of so few judges among them, if nothing were unknown; exact
    start: float | None  # they lie above; None: items are decided by other scores than these

    @property
    def p_value(self) -> float:
        """Of "nothing is unknown", if the distances of known items have a regular tail."""
        return max(SURE, self.chance / TRUSTED)

    def levelled(self, scores: np.ndarray, is_judge: np.ndarray) -> np.ndarray:
        """The scores, no higher than that of a judge where the tail is regular.

        >>> found = LongTail(2, 0.5, 0, 0.02, start=7.0)
        >>> found.levelled(np.array([1.0, 6.0, 9.0, 8.0, 5.0]), np.arange(5) == 4).tolist()
        [1.0, 5.0, 9.0, 8.0, 5.0]
        """
        assert self.start is not None
        of_judges = scores[is_judge & (scores <= self.start)]
        highest = of_judges.max(initial=scores.min())
        return np.where(scores > self.start, scores, np.minimum(scores, highest))


class Tail(NamedTuple):
    """How the number of items falls from a score outwards, as a generalised Pareto distribution."""

    n: int  # items from here on
    start: float
    scale: float
    shape: float  # 0: exponential; above, heavier

    def expected(self, scores: np.ndarray) -> np.ndarray:
        """The number of items at least as far out as each of the scores, all beyond the start."""
        beyond = (scores - self.start) / self.scale
        if self.shape < SURE:
            return np.asarray(self.n * np.exp(-beyond))
        return np.asarray(self.n * (1 + self.shape * beyond) ** (-1 / self.shape))


def find_long_tail(scores: np.ndarray, names: np.ndarray, is_judge: np.ndarray) -> LongTail | None:
    """Items that lie too far out, by scores (n,) of pool and judges; None where there are none.

    ``names`` are predicted classes: the chance holds whatever the mix of the classes in the pool.

    >>> random = np.random.default_rng(0)
    >>> known, is_judge = random.normal(size=10_000), np.arange(10_060) < 1_000
    >>> found = find_long_tail(np.append(known, np.full(60, 9.0)), np.zeros(10_060, int), is_judge)
    >>> found.n_judges, 55 <= found.n_items <= 110
    (0, True)
    >>> find_long_tail(known, np.zeros(10_000, int), is_judge[:10_000]) is None
    True
    """
    falling = np.sort(scores)[::-1]
    tail = measure_tail(falling)
    if tail is None:
        return None
    tops = np.arange(FIRST_TOP, tail.n)
    expected = tail.expected(falling[tops - 1])
    too_many = stats.poisson.sf(tops - 1, expected) * len(tops) <= SURE
    found = np.flatnonzero(too_many & (expected <= LARGE_PART * tops))
    if not len(found):
        return None
    n, n_regular = int(tops[found[-1]]), float(expected[found[-1]])
    start = float(falling[n])
    is_far = scores > start
    chance = chance_of_few_judges(is_far, names, is_judge)
    return LongTail(int(is_far.sum()), n_regular, int((is_far & is_judge).sum()), chance, start)


def measure_tail(falling: np.ndarray) -> Tail | None:
    """The tail of falling scores beyond their first share, as what lies nearer in suggests.

    Its shape is that by which the last two of three steps inwards grow (Pickands), and some more:
    an exponential tail at least. None of few or equal scores.
    """
    n = round(TAIL * len(falling))
    if n <= FIRST_TOP:
        return None
    numbers = np.round(n * STEP_INWARDS ** np.arange(3)).astype(int)
    outer, middle, inner = falling[np.minimum(numbers, len(falling)) - 1]
    if not outer > middle > inner:
        return None
    log_step = np.log(STEP_INWARDS)
    error = np.sqrt(1 / numbers[0] + 1 / numbers[1]) / log_step
    shape = np.log((outer - middle) / (middle - inner)) / log_step + CAUTIOUS * error
    if shape < SURE:
        return Tail(n, outer, (outer - middle) / log_step, 0.0)
    scale = (outer - middle) * shape / (1 - STEP_INWARDS**-shape)
    return Tail(n, outer, scale, shape)
