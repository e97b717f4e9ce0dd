"""Do labelled items and pool come from the same source: camera, instrument, writer?

Another source moves the signs of *all* items, an unknown class only those of its own. So pool and
calibration items are compared where both are surely known: where most families of signs agree that
an item is as ordinary as the most ordinary third of the spies of its predicted class. Items are
chosen by the same rule from both, so that within a predicted class they are exchangeable as long as
the sources are the same; then every order of them is as likely as any other, and the test is exact.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from s2osc.pipeline.filter.signs import Signs
from s2osc.seeding import rng

SURE_SHARE = 1 / 3
FEWEST_OF_CLASS = 5
LEVEL = 0.01
N_PERMUTED = 499
FEWEST_SURE, FEWEST_COMPARED = 10, 5  # surely known items of pool and judges, to compare at all
CLEAR_MOVE = 2.0  # deviations, from which on a sign is moved back
USELESS = 0.8  # AUROC of source against source, from which on a sign is dropped
STEADY = 15  # items of a class that weigh as much as all classes together


class Comparison(NamedTuple):
    """Pool and calibration items compared where both are surely known."""

    p_value: float
    is_sure: np.ndarray  # (n,) pool, calibration items, spies
    deviations: np.ndarray  # (m,) of each sign: how far the pool lies above the others
    auroc: np.ndarray  # (m,) the same as a probability
    n_sure: int  # of the pool
    n_compared: int  # of the calibration items

    @property
    def is_possible(self) -> bool:
        """Whether there is enough that is surely known in the pool."""
        return self.n_sure >= FEWEST_SURE and self.n_compared >= FEWEST_COMPARED

    @property
    def differ(self) -> bool:
        return self.is_possible and bool(self.p_value <= LEVEL)


def sure_items(signs: Signs, names: np.ndarray, is_spy: np.ndarray) -> np.ndarray:
    """(n,) whether an item is surely known; ``names`` are the known classes f gives the items.

    The place of an item among the spies, median over the families of signs: one family that another
    source has moved as a whole does not matter.
    """
    places = np.stack([_place(column, names, is_spy) for column in signs.columns.T], axis=1)
    place = np.median(signs.by_family(places), axis=1)
    is_sure = np.zeros(len(place), bool)
    for name in np.unique(names):
        of_name = names == name
        spies = place[_references(names, is_spy, name)]
        if len(spies):
            is_sure |= of_name & (place <= np.quantile(spies, SURE_SHARE))
    return is_sure


def _place(values: np.ndarray, names: np.ndarray, is_spy: np.ndarray) -> np.ndarray:
    """(n,) 0 to 1: where each value stands among the spies of the same predicted class."""
    place = np.full(len(values), 0.5)
    for name in np.unique(names):
        of_name = names == name
        spies = np.sort(values[_references(names, is_spy, name)])
        if len(spies):
            below = [np.searchsorted(spies, values[of_name], side) for side in ("left", "right")]
            place[of_name] = (below[0] + below[1]) / 2 / len(spies)
    return place


def _references(names: np.ndarray, is_spy: np.ndarray, name: int) -> np.ndarray:
    """The spies of a predicted class, or all spies if it has too few."""
    own = is_spy & (names == name)
    return own if own.sum() >= FEWEST_OF_CLASS else is_spy


def compare_sources(
    signs: Signs, names: np.ndarray, is_spy: np.ndarray, is_judge: np.ndarray, *, seed: int
) -> Comparison:
    """Test "pool and judges come from the same source" on the surely known items.

    Items that are neither spies nor judges are of the pool. The statistic is the largest deviation
    over the signs of the rank sum within predicted classes, compared with its values under
    permutations within those classes.
    """
    is_sure, is_held_back = sure_items(signs, names, is_spy), is_spy | is_judge
    strata = []
    for name in np.unique(names[is_sure]):
        rows = np.flatnonzero(is_sure & (names == name) & ~is_spy)
        if 0 < is_held_back[rows].sum() < len(rows):
            strata.append(rows)
    n_signs = signs.columns.shape[1]
    n_sure = sum(int((~is_held_back[rows]).sum()) for rows in strata)
    n_compared = sum(int(is_held_back[rows].sum()) for rows in strata)
    if n_sure < FEWEST_SURE or n_compared < FEWEST_COMPARED:
        nothing = np.zeros(n_signs)
        return Comparison(1.0, is_sure, nothing, nothing + 0.5, n_sure, n_compared)
    ranks = [_centred_ranks(signs.columns[rows]) for rows in strata]
    of_pool = [~is_held_back[rows] for rows in strata]
    variance = sum(
        (rank**2).sum(axis=0) * p.mean() * (1 - p.mean()) * len(p) / max(len(p) - 1, 1)
        for rank, p in zip(ranks, of_pool, strict=True)
    )
    scale = np.sqrt(np.maximum(variance, 1e-12))
    random = rng(seed, "sources")

    def deviations(sides: list[np.ndarray]) -> np.ndarray:
        total = sum(rank[side].sum(axis=0) for rank, side in zip(ranks, sides, strict=True))
        return np.asarray(total / scale)

    found = deviations(of_pool)
    largest = np.abs(found).max() - 1e-9
    n_as_large = sum(
        bool(np.abs(deviations([random.permutation(side) for side in of_pool])).max() >= largest)
        for _ in range(N_PERMUTED)
    )
    p_value = (1 + n_as_large) / (1 + N_PERMUTED)
    return Comparison(
        p_value, is_sure, found, _auroc(signs, strata, is_held_back), n_sure, n_compared
    )


def _centred_ranks(columns: np.ndarray) -> np.ndarray:
    """Ranks within a stratum, of mean 0; large strata do not outweigh small ones by their size."""
    ranks = rankdata(columns, axis=0)
    return (ranks - ranks.mean(axis=0)) / (len(columns) + 1)


def _auroc(signs: Signs, strata: list[np.ndarray], is_held_back: np.ndarray) -> np.ndarray:
    """(m,) how often a sure pool item has a higher sign than a sure held-back one of its class."""
    above, pairs = np.zeros(signs.columns.shape[1]), 0.0
    for rows in strata:
        is_pool = ~is_held_back[rows]
        n_pool, n_held = is_pool.sum(), (~is_pool).sum()
        ranks = rankdata(signs.columns[rows], axis=0)[is_pool].sum(axis=0)
        weight = 1 / len(rows)
        above += weight * (ranks - n_pool * (n_pool + 1) / 2)
        pairs += weight * n_pool * n_held
    return above / pairs


def bring_to_pool(
    signs: Signs, names: np.ndarray, is_held_back: np.ndarray, found: Comparison
) -> Signs:
    """The signs with the held-back items moved to the source of the pool.

    A sign that tells the sources apart almost always is dropped, unless all do; one that clearly
    moved is moved back.
    """
    useful = np.abs(found.auroc - 0.5) <= USELESS - 0.5
    if not useful.any():
        useful = np.abs(found.auroc - 0.5) == np.abs(found.auroc - 0.5).min()
    columns = signs.columns.copy()
    for j in np.flatnonzero(useful & (np.abs(found.deviations) > CLEAR_MOVE)):
        columns[:, j] = move_held_back(columns[:, j], names, is_held_back, found.is_sure)
    return Signs(columns, signs.names, signs.families).take(useful)


def move_held_back(
    values: np.ndarray, names: np.ndarray, is_held_back: np.ndarray, is_sure: np.ndarray
) -> np.ndarray:
    """The values with those of held-back items moved by what the surely known items differ.

    The difference of medians within a predicted class, drawn towards that of the middle class where
    the class has few sure items.
    """
    moved = values.copy()
    moves = {}
    for name in np.unique(names):
        of_pool, of_held = (
            values[is_sure & (names == name) & (is_held_back == side)] for side in (False, True)
        )
        if min(len(of_pool), len(of_held)) >= 3:
            move = float(np.median(of_pool) - np.median(of_held))
            moves[name] = move, min(len(of_pool), len(of_held))
    if not moves:
        return moved
    common = float(np.median([move for move, _ in moves.values()]))
    for name in np.unique(names):
        move, n = moves.get(name, (common, 0))
        weight = n / (n + STEADY)
        moved[is_held_back & (names == name)] += weight * move + (1 - weight) * common
    return moved
