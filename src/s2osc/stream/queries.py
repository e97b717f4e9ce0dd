"""Which items of a window a person is asked about, within a budget.

representative   typical items of each group, any of the groups, diverse ones near the border (ours)
unknown          items called unknown, in random order (the paper's)
random           any item of the window
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np

from s2osc.arrays import unit_rows
from s2osc.errors import SettingsError
from s2osc.seeding import rng
from s2osc.stream.memory import herd
from s2osc.types import UNKNOWN, Predictions

OF_GROUPS = 0.7
"""Share of the budget for members of groups, the rest being for the border. What groups are
too small for is not spent: a window with nothing unknown in it costs a person little."""
N_TYPICAL = 5
"""Of a group, by which a person can name it. Those after them are drawn at random from all groups:
f learns from them and seeds are held back from them, so they must be as what will come. The easy
part of a class would mislead both, and so would a small group of it that is asked as often as the
rest."""
BORDER = 4
"""The most uncertain items, this many times as many as are asked, are where diverse ones are."""


@dataclass(frozen=True)
class QuerySettings:
    """How many items of a window a person is asked about, and which."""

    budget: int = 200
    strategy: str = "representative"

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            names = " or ".join(STRATEGIES)
            raise SettingsError(f"the strategy is {self.strategy!r}; give {names}")
        if self.budget < 0:
            raise SettingsError(f"the budget is {self.budget}; give a number of labels from 0")


class Queries(NamedTuple):
    """Row numbers of a window, the most informative first, and why each is asked about."""

    rows: np.ndarray
    why: list[str]


class Candidates(NamedTuple):
    """What a strategy chooses from."""

    answer: Predictions
    embeddings: np.ndarray  # (n, d)
    groups: np.ndarray  # (n,) -1 where an item is called known
    may_ask: np.ndarray  # (n,) bool
    random: np.random.Generator

    @property
    def called_unknown(self) -> np.ndarray:
        return np.flatnonzero((self.answer.labels == UNKNOWN) & self.may_ask)


def choose_queries(
    asking: QuerySettings,
    answer: Predictions,
    embeddings: np.ndarray,
    *,
    groups: np.ndarray | None = None,
    may_ask: np.ndarray | None = None,
    seed: int,
) -> Queries:
    """The items of a window to ask about; without groups, those called unknown are one."""
    if groups is None:
        groups = np.where(answer.labels == UNKNOWN, 0, -1)
    if may_ask is None:
        may_ask = np.ones(len(answer.labels), bool)
    candidates = Candidates(answer, embeddings, groups, may_ask, rng(seed, "queries"))
    return STRATEGIES[asking.strategy](candidates, asking.budget)


def ask_representatives(candidates: Candidates, budget: int) -> Queries:
    """Typical items of every group, then any of the groups, then the border."""
    n_members = ceil(OF_GROUPS * budget)
    typical = interleave([typical_of(candidates, group) for group in _groups(candidates)])[
        :n_members
    ]
    others = candidates.random.permutation(np.setdiff1d(candidates.called_unknown, typical))
    others = others[: n_members - len(typical)]
    border = near_border(candidates, budget - n_members, leave_out=np.append(typical, others))
    return Queries(
        np.concatenate([typical, others, border]).astype(int),
        [
            *(f"typical of group {group}" for group in candidates.groups[typical]),
            *(f"one of group {group}" for group in candidates.groups[others]),
            *("between known and unknown" for _ in border),
        ],
    )


def ask_unknown(candidates: Candidates, budget: int) -> Queries:
    rows = candidates.random.permutation(candidates.called_unknown)[:budget]
    return Queries(rows, ["called unknown"] * len(rows))


def ask_anything(candidates: Candidates, budget: int) -> Queries:
    rows = candidates.random.permutation(np.flatnonzero(candidates.may_ask))[:budget]
    return Queries(rows, ["drawn at random"] * len(rows))


STRATEGIES: dict[str, Callable[[Candidates, int], Queries]] = {
    "representative": ask_representatives,
    "unknown": ask_unknown,
    "random": ask_anything,
}


def _groups(candidates: Candidates) -> list[int]:
    return np.unique(candidates.groups[candidates.called_unknown]).tolist()


def typical_of(candidates: Candidates, group: int) -> np.ndarray:
    """Rows of a group in the order of herding: any first few have the mean of all."""
    rows = candidates.called_unknown
    rows = rows[candidates.groups[rows] == group]
    return rows[herd(unit_rows(candidates.embeddings[rows]), N_TYPICAL)]


def interleave(lists: list[np.ndarray]) -> np.ndarray:
    """The first of each list, the second of each, and so on.

    >>> interleave([np.array([1, 2, 3]), np.array([7])]).tolist()
    [1, 7, 2, 3]
    """
    longest = max(map(len, lists), default=0)
    return np.array([rows[i] for i in range(longest) for rows in lists if i < len(rows)], int)


def near_border(candidates: Candidates, n: int, *, leave_out: np.ndarray) -> np.ndarray:
    """Items that were nearly called otherwise, as far from each other as can be."""
    doubt = uncertainty(candidates.answer)
    free = candidates.may_ask.copy()
    free[leave_out] = False
    rows = np.flatnonzero(free)
    doubtful = rows[np.argsort(-doubt[rows], kind="stable")[: BORDER * n]]
    return doubtful[spread_out(candidates.embeddings[doubtful], n)]


def uncertainty(answer: Predictions) -> np.ndarray:
    """(n,) 0 and below, the higher the nearer an item's rank is to where known becomes unknown.

    Ranks rather than scores, since every method has a scale of its own.

    >>> from s2osc.types import Predictions
    >>> labels, score = np.array([0, 0, -1, -1]), np.array([0.1, 0.3, 0.4, 0.9])
    >>> uncertainty(Predictions(labels, score, np.ones(4))).tolist()
    [-1.5, -0.5, -0.5, -1.5]
    """
    ranks = np.empty(len(answer.labels))
    ranks[np.argsort(answer.unknown_score, kind="stable")] = np.arange(len(ranks))
    return -np.abs(ranks - (np.sum(answer.labels != UNKNOWN) - 0.5))


def spread_out(features: np.ndarray, n: int) -> np.ndarray:
    """Row numbers of ``n`` items, each the farthest from those chosen before; row 0 is first.

    >>> spread_out(np.array([[0.0], [1.0], [9.0], [5.0]]), 3).tolist()
    [0, 2, 3]
    """
    n = min(n, len(features))
    if n == 0:
        return np.empty(0, int)
    chosen = [0]
    nearest = np.linalg.norm(features - features[0], axis=1)
    while len(chosen) < n:
        nearest[chosen[-1]] = -np.inf
        chosen.append(int(nearest.argmax()))
        away = np.linalg.norm(features - features[chosen[-1]], axis=1)
        nearest = np.minimum(nearest, away)
    return np.array(chosen)
