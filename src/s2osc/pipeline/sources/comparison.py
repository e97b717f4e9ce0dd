"""Do labelled items and pool come from the same source: camera, instrument, writer?

Another source moves the signs of *all* items, an unknown class only those of its own. So pool and
calibration items are compared where both are surely known: where most families of signs agree that
an item is as ordinary as the most ordinary third of the spies of its predicted class. Items are
chosen by the same rule from both, so that within a predicted class they are exchangeable as long as
the sources are the same; then every order of them is as likely as any other, and the test is exact.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.filter.signs import Signs
from s2osc.pipeline.sources.traces import NOISE, Traces
from s2osc.seeding import rng

stats = lazily("scipy.stats")

SURE_SHARE = 1 / 3
FEWEST_OF_CLASS = 5
LEVEL = 0.01
SUSPICION = 0.1  # up to which a difference that would explain a discovery is considered
N_PERMUTED, AT_ONCE = 1_998, 111
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
    p_added: float = 1.0  # of "no source has added anything", by all items; a part of the p-value

    @property
    def is_possible(self) -> bool:
        """Whether there is enough that is surely known in the pool."""
        return self.n_sure >= FEWEST_SURE and self.n_compared >= FEWEST_COMPARED

    @property
    def differ(self) -> bool:
        return self.is_possible and bool(self.p_value <= LEVEL)

    @property
    def adds(self) -> bool:
        """Whether the source has added something to the items of the pool."""
        return self.differ and self.p_added <= LEVEL

    @property
    def may_differ(self) -> bool:
        return self.is_possible and bool(self.p_value <= SUSPICION)


def sure_items(signs: Signs, names: np.ndarray, is_spy: np.ndarray) -> np.ndarray:
    """(n,) whether an item is surely known; ``names`` are the known classes f gives the items.

    The place of an item among the spies, median over the families of signs: one family that another
    source has moved as a whole does not matter.
    """
    places = np.stack([_place(column, names, is_spy) for column in signs.columns.T], axis=1)
    place = np.median(signs.by_family(places), axis=1)
    is_sure = np.zeros(len(place), bool)
    for name in np.unique(names):
        spies = place[_references(names, is_spy, name)]
        if len(spies):
            is_sure |= (names == name) & (place <= np.quantile(spies, SURE_SHARE))
    return is_sure


def surest_items(
    signs: Signs, names: np.ndarray, is_spy: np.ndarray, is_judge: np.ndarray
) -> np.ndarray:
    """(n,) the surest third of each side, for a source that made nearly all of the pool strange.

    Pool and labelled items are each measured by their own.
    """
    ranks = np.stack([stats.rankdata(column) for column in signs.columns.T], axis=1)
    strangeness, is_surest = signs.by_family(ranks).mean(axis=1), np.zeros(len(names), bool)
    for side in (~is_spy & ~is_judge, is_judge):
        for name in np.unique(names[side]):
            own = side & (names == name)
            is_surest |= own & (strangeness <= np.quantile(strangeness[own], SURE_SHARE))
    return is_surest


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
    signs: Signs,
    names: np.ndarray,
    is_spy: np.ndarray,
    is_judge: np.ndarray,
    traces: Traces | None = None,
    is_sure: np.ndarray | None = None,
    *,
    left_out: np.ndarray | None = None,
    seed: int,
) -> Comparison:
    """Test "pool and judges come from the same source" on the surely known items.

    Items that are neither spies nor judges are of the pool. Compared are the signs and, where they
    were measured, the traces of the source, within predicted classes. Items that are ``left_out``
    count as not sure.
    """
    is_sure = sure_items(signs, names, is_spy) if is_sure is None else is_sure
    if left_out is not None:
        is_sure = is_sure & ~left_out
    is_held_back = is_spy | is_judge
    columns, groups = signs.columns, [np.arange(signs.columns.shape[1])]
    if traces is not None:
        of_traces = columns.shape[1] + np.arange(len(traces.names))
        is_noise = np.array([name.startswith(NOISE) for name in traces.names])
        groups += [of_traces, of_traces[is_noise]]
        columns = np.column_stack([columns, traces.columns])
    strata = sure_strata(is_sure, names, is_spy, is_held_back)
    n_sure = sum(int((~is_held_back[rows]).sum()) for rows in strata)
    n_compared = sum(int(is_held_back[rows].sum()) for rows in strata)
    if n_sure < FEWEST_SURE or n_compared < FEWEST_COMPARED:
        nothing = np.zeros(signs.columns.shape[1])
        return Comparison(1.0, is_sure, nothing, nothing + 0.5, n_sure, n_compared)
    sums = RankSums.of([columns[rows] for rows in strata])
    of_pool = [~is_held_back[rows] for rows in strata]
    return Comparison(
        sums.p_value(of_pool, groups, rng(seed, "sources")),
        is_sure,
        sums.deviations(of_pool)[: signs.columns.shape[1]],
        _auroc(signs, strata, is_held_back),
        n_sure,
        n_compared,
    )


def more_than_a_class(added: np.ndarray, labels: np.ndarray) -> float:
    """The p-value of "the pool has no more noise than a further class may have".

    ``added`` (n,) is what a source adds, ``labels`` are -1 for the pool. The unit is the class: all
    of the pool may be of one that is not known, which differs from the known ones as they do from
    each other. So this needs no item that is surely known, which noise leaves none of: a t test of
    one mean more, with the error of the pool's own mean.
    """
    classes = [added[labels == c] for c in np.unique(labels[labels >= 0])]
    means = np.array([items.mean() for items in classes if len(items) >= FEWEST_OF_CLASS])
    pool = added[labels < 0]
    if len(means) < 2 or len(pool) < FEWEST_SURE:
        return 1.0
    apart = pool.mean() - means.mean()
    error = means.var(ddof=1) * (1 + 1 / len(means)) + pool.var(ddof=1) / len(pool)
    return float(stats.t.sf(apart / np.sqrt(max(error, 1e-12)), len(means) - 1))


def sure_strata(
    is_sure: np.ndarray, names: np.ndarray, is_spy: np.ndarray, is_held_back: np.ndarray
) -> list[np.ndarray]:
    """The rows of the surely known items of each predicted class that has some on both sides."""
    strata = []
    for name in np.unique(names[is_sure]):
        rows = np.flatnonzero(is_sure & (names == name) & ~is_spy)
        if 0 < is_held_back[rows].sum() < len(rows):
            strata.append(rows)
    return strata


class RankSums(NamedTuple):
    """Ranks within strata, whose sums over one side tell whether two sides differ."""

    ranks: list[np.ndarray]  # of each stratum (n, m), of mean 0

    @classmethod
    def of(cls, strata: Sequence[np.ndarray]) -> "RankSums":
        return cls([_centred_ranks(columns) for columns in strata])

    def scale(self, sides: Sequence[np.ndarray]) -> np.ndarray:
        """(m,) the deviation of the rank sum of one side, where the sides do not differ."""
        variance = sum(
            (rank**2).sum(axis=0) * p.mean() * (1 - p.mean()) * len(p) / max(len(p) - 1, 1)
            for rank, p in zip(self.ranks, sides, strict=True)
        )
        return np.sqrt(np.maximum(variance, 1e-12))

    def deviations(self, sides: Sequence[np.ndarray]) -> np.ndarray:
        """(m,) how far the rank sum of one side lies above what chance gives, in deviations."""
        total = sum(rank[side].sum(axis=0) for rank, side in zip(self.ranks, sides, strict=True))
        return np.asarray(total / self.scale(sides))

    def p_value(
        self,
        sides: Sequence[np.ndarray],
        groups: Sequence[np.ndarray],
        random: np.random.Generator,
    ) -> float:
        """Of "the sides do not differ", by permutations within the strata.

        The largest deviation sees what moves one column far; the sum of squares over each of the
        ``groups`` of columns sees what moves many a little. The smallest of their p-values counts,
        compared with how small the smallest is by chance, which needs no further correction.
        """
        scale, found = self.scale(sides), self.deviations(sides)[None]
        drawn = [_sizes(found, groups) - 1e-9]
        for _ in range(N_PERMUTED // AT_ONCE):
            totals = np.zeros((AT_ONCE, len(scale)))
            for rank, side in zip(self.ranks, sides, strict=True):
                totals += random.permuted(np.tile(side * 1.0, (AT_ONCE, 1)), axis=1) @ rank
            drawn.append(_sizes(totals / scale, groups))
        sizes = np.concatenate(drawn)
        smallest = stats.rankdata(-sizes, method="max", axis=0).min(
            axis=1
        )  # as large, in each statistic
        return float(np.mean(smallest <= smallest[0]))


def _sizes(deviations: np.ndarray, groups: Sequence[np.ndarray]) -> np.ndarray:
    """(n, 1 + groups) the largest deviation, and the sum of squares over each group of columns."""
    sums = [(deviations[:, group] ** 2).sum(axis=1) for group in groups]
    return np.stack([np.abs(deviations).max(axis=1), *sums], axis=1)


def share_of_sure(
    is_sure: np.ndarray, names: np.ndarray, is_spy: np.ndarray, is_judge: np.ndarray
) -> float:
    """How many surely known items the pool has, relative to the judges, where it lacks fewest.

    Unknown items have some predicted classes, and lower the share of sure items in those. Another
    source lowers it in all. So the class that lacks fewest says what the source alone does, at most
    1; and 0 where no class has enough items to tell.
    """
    shares, is_pool = [], ~is_spy & ~is_judge
    for name in np.unique(names):
        of_pool, of_judges = (is_sure[side & (names == name)] for side in (is_pool, is_judge))
        if min(of_pool.size, of_judges.size) >= FEWEST_OF_CLASS and of_judges.any():
            shares.append(float(of_pool.mean() / of_judges.mean()))
    return min(max(shares, default=0.0), 1.0)


def _centred_ranks(columns: np.ndarray) -> np.ndarray:
    """Ranks within a stratum, of mean 0; large strata do not outweigh small ones by their size."""
    ranks = stats.rankdata(columns, axis=0)
    return (ranks - ranks.mean(axis=0)) / (len(columns) + 1)


def _auroc(signs: Signs, strata: list[np.ndarray], is_held_back: np.ndarray) -> np.ndarray:
    """(m,) how often a sure pool item has a higher sign than a sure held-back one of its class."""
    above, pairs = np.zeros(signs.columns.shape[1]), 0.0
    for rows in strata:
        is_pool = ~is_held_back[rows]
        n_pool, n_held = is_pool.sum(), (~is_pool).sum()
        ranks = stats.rankdata(signs.columns[rows], axis=0)[is_pool].sum(axis=0)
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
