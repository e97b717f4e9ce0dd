"""Group the unknown items, and estimate how many groups there are.

Neighbouring items are linked in a graph, which is cut where few links are lost (spectral
clustering). The known classes calibrate this: each of them is one group, so a cut counts only if it
loses far fewer links than the best cut through a known class. For images, slightly rotated copies
must also rarely cross the cut.
"""

from bisect import bisect_right
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

from s2osc.arrays import chunks, unit_rows
from s2osc.errors import SettingsError
from s2osc.pipeline.grouping.graph import (
    best_cut,
    cut_at,
    cuts,
    links,
    n_neighbours,
    nearest_others,
    slowest_modes,
)
from s2osc.pipeline.grouping.rotation import ONE_CLASS, Pictures, RotatedPairs, usual_crossing
from s2osc.seeding import rng
from s2osc.settings import require_least

MAX_GROUPS = 20
N_FITTED = 2_000  # items to find the groups with; all others join their neighbours
CUT_SIZES = (40, 80, 160, 400)  # sample sizes of a cut: cuts are comparable at one size only
USUAL_CUTS = (0.11, 0.085, 0.095, 0.13)  # through one class, where no known class is that large
FEWEST_DRAWS, N_DRAWN = 8, 1_600  # samples of a size, and items in them: small ones vary more
N_VOTES = 5
LEAST_STABILITY = 0.75  # mean Jaccard match in resamples, below which a group is dissolved
FEWEST = 30  # with fewer items, one group: a cut could be chance


@dataclass(frozen=True)
class ClusterSettings:
    """How many groups of unknown items there are; ``None`` estimates.

    Cuts are relative to the mean best cut through a known class. The first cut, which claims more
    than one group, must be clearer than later ones: the more groups there are, the less likely is
    chance, and the higher is the cut allowed.
    """

    n_groups: int | None = None
    first_cut: float = 0.3
    each_more: float = 0.06  # added for each group after the second
    most_cut: float = 0.5
    next_cuts: float = 0.65
    smallest_share: float = 0.02  # of the unknown items, for a group of its own
    n_resamples: int = 10  # of three quarters of the items, for the interval and the stability

    def __post_init__(self) -> None:
        require_least("the number of groups", self.n_groups, 1)
        if self.n_resamples < 1:
            raise SettingsError(f"the resamples are {self.n_resamples}; give a number from 1")


@dataclass(frozen=True, eq=False)
class Grouping:
    """Grouped items that new ones are compared with. Group 0 is the largest."""

    items: np.ndarray  # (r, d) features
    groups: np.ndarray  # (r,) the group of each
    stability: np.ndarray  # (n_groups,) 0 to 1: mean Jaccard match in resamples
    tightness: np.ndarray  # (n_groups,) spread of a known class over that of the group
    n_low: int
    n_high: int

    @property
    def n_groups(self) -> int:
        return len(self.stability)

    def assign(self, features: np.ndarray) -> np.ndarray:
        """(n,) the group of each row's nearest items, or 0 if the fit had no unknown item."""
        if self.n_groups <= 1:
            return np.zeros(len(features), int)
        search = NearestNeighbors(n_neighbors=min(N_VOTES, len(self.items))).fit(self.items)
        return np.concatenate(
            [self._vote(search, features[rows]) for rows in chunks(max(len(features), 1))]
        )

    def _vote(self, search: NearestNeighbors, features: np.ndarray) -> np.ndarray:
        if len(features) == 0:
            return np.zeros(0, int)
        distances, nearest = search.kneighbors(features)
        votes = np.zeros((len(features), self.n_groups))
        rows = np.arange(len(features))[:, None]
        # An identical item decides alone.
        np.add.at(votes, (rows, self.groups[nearest]), 1 / (distances**2 + 1e-12))
        return votes.argmax(1)


@dataclass(frozen=True)
class _CutCalibration:
    """The mean best cut through a known class, by sample size."""

    sizes: tuple[int, ...]  # rising
    cuts: tuple[float, ...]
    crossing: float | None = None  # of rotated copies; None without images

    def pick(self, n: int) -> tuple[int, float]:
        """The largest size that n items allow, and its cut."""
        at = max(bisect_right(self.sizes, n) - 1, 0)
        return self.sizes[at], self.cuts[at]


def group_unknown(
    unknown: np.ndarray,
    known: np.ndarray,
    labels: np.ndarray,
    settings: ClusterSettings,
    *,
    seed: int,
    pictures: tuple[Pictures, Pictures] | None = None,
) -> Grouping:
    """Group the features of the unknown items, calibrated by the known ones.

    ``pictures`` are the unknown and the known items themselves, if they can be rotated.
    """
    if len(unknown) == 0:
        return Grouping(unknown, np.zeros(0, int), np.zeros(0), np.zeros(0), 0, 0)
    random = rng(seed, "groups")
    drawn = random.permutation(len(unknown))[:N_FITTED]
    drawn = drawn[_apart_from_known(unknown[drawn], _draw(known, N_FITTED, random))]
    calibration = _calibrate(known, labels, random)
    copies = None
    if pictures is not None:
        of_known = _draw(np.arange(len(known)), N_FITTED, rng(seed, "turned"))
        crossing = usual_crossing(
            pictures[1].take(of_known), known[of_known], labels[of_known], rng(seed, "crossings")
        )
        calibration, copies = replace(calibration, crossing=crossing), pictures[0].take(drawn)
    items = unknown[drawn]
    groups = _partition(items, copies, calibration, settings, random)
    resampled = []
    for _ in range(settings.n_resamples):
        rows = random.permutation(len(items))[: -(-3 * len(items) // 4)]
        some = copies.take(rows) if copies else None
        resampled.append((rows, _partition(items[rows], some, calibration, settings, random)))
    if settings.n_groups is None:
        groups = _dissolve_unstable(items, groups, resampled)
    n_groups = int(groups.max()) + 1
    low, high = np.quantile([part.max() + 1 for _, part in resampled], [0.025, 0.975])
    draft = Grouping(
        items,
        groups,
        _stability(groups, resampled),
        _tightness(items, groups, known, labels),
        min(int(np.floor(low)), n_groups),
        max(int(np.ceil(high)), n_groups),
    )
    return _largest_first(draft, np.bincount(draft.assign(unknown), minlength=n_groups))


def _draw(rows: np.ndarray, n: int, random: np.random.Generator) -> np.ndarray:
    return rows[random.permutation(len(rows))[:n]]


def _apart_from_known(items: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(n,) whether an item is not surrounded by known ones, which would bridge the groups."""
    everyone = np.ones(len(items), bool)
    if len(known) == 0:
        return everyone
    search = NearestNeighbors(n_neighbors=min(10, len(items))).fit(np.concatenate([items, known]))
    is_known = search.kneighbors(items, return_distance=False) >= len(items)
    is_apart = is_known.mean(1) <= 0.5
    return is_apart if 2 * is_apart.sum() >= len(items) else everyone


def _calibrate(
    known: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> _CutCalibration:
    """Measure the best cut through the known classes; extrapolate to larger sizes."""
    classes = [known[labels == c] for c in np.unique(labels)]
    cuts, scale = [], 1.0
    for size, usual in zip(CUT_SIZES, USUAL_CUTS, strict=True):
        large = [rows for rows in classes if len(rows) >= size]
        if 2 * len(large) > len(classes):
            draws = [_draw(rows, size, random) for rows in large for _ in range(_n_draws(size))]
            measured = float(np.mean([best_cut(rows, random).value for rows in draws]))
            scale = max(measured / usual, 0.01)
        cuts.append(scale * usual)
    return _CutCalibration(CUT_SIZES, tuple(cuts))


def _n_draws(size: int) -> int:
    """More draws of small samples, which vary more and cost less."""
    return max(FEWEST_DRAWS, N_DRAWN // size)


def _cut_between(
    a: np.ndarray, b: np.ndarray, calibration: _CutCalibration, random: np.random.Generator
) -> float:
    """The normalised cut between two groups, in units of the best cut through a known class."""
    size, unit = calibration.pick(2 * min(len(a), len(b)))
    draws = np.stack(
        [
            np.concatenate([_draw(rows, size // 2, random) for rows in (a, b)])
            for _ in range(_n_draws(size))
        ]
    )
    found = cut_at(nearest_others(draws, n_neighbours(size)), min(len(a), size // 2))
    return float(np.mean(found)) / unit


def _partition(
    items: np.ndarray,
    pairs: RotatedPairs | None,
    calibration: _CutCalibration,
    settings: ClusterSettings,
    random: np.random.Generator,
) -> np.ndarray:
    """(n,) a group for each item, with the number of groups asked for, or estimated."""
    n_distinct = len(np.unique(items, axis=0))
    asked = settings.n_groups
    best = np.zeros(len(items), int)
    if asked is None and n_distinct < FEWEST:
        return best
    if asked is not None and (asked == 1 or n_distinct < max(FEWEST, 3 * asked)):
        return fit_kmeans(items, min(asked, n_distinct), random)
    nearest = nearest_others(items, int(np.clip(len(items) // 20, 5, 15)))
    most = min(asked or MAX_GROUPS, n_distinct // 2)
    axes = slowest_modes(nearest, most, random)
    if asked is not None:
        return _divide(axes, asked, random)
    copy_neighbours = (
        None if pairs is None or calibration.crossing is None else pairs.copy_neighbours()
    )
    for n_groups in range(2, most + 1):
        if n_groups > 2 * (best.max() + 1) + 3:
            break  # twice as many pieces as groups, and still no new group
        groups = _divide(axes, n_groups, random)
        groups = _merge(items, nearest, copy_neighbours, groups, calibration, settings, random)
        if groups.max() <= best.max():
            continue
        standard = settings.first_cut + settings.each_more * (int(groups.max()) - 1)
        if _most_apart(items, groups, calibration, random) <= min(standard, settings.most_cut):
            best = groups
    return best


def _most_apart(
    items: np.ndarray, groups: np.ndarray, calibration: _CutCalibration, random: np.random.Generator
) -> float:
    """The cut of the best separated group to its nearest other group."""
    found = np.zeros((groups.max() + 1,) * 2)
    for a, b in combinations(range(len(found)), 2):
        found[a, b] = _cut_between(items[groups == a], items[groups == b], calibration, random)
    return float((found + found.T).max(1).min())


def _divide(axes: np.ndarray, n_groups: int, random: np.random.Generator) -> np.ndarray:
    """(n,) k-means over the directions of the rows in the slowest modes."""
    rows = axes[:, :n_groups]
    return fit_kmeans(unit_rows(rows), n_groups, random)


def fit_kmeans(rows: np.ndarray, n_groups: int, random: np.random.Generator) -> np.ndarray:
    """(n,) the k-means group of each row, best of several starts."""
    means = KMeans(n_groups, n_init=3, random_state=int(random.integers(2**31)))
    return np.unique(means.fit_predict(rows), return_inverse=True)[1]


def _merge(
    items: np.ndarray,
    nearest: np.ndarray,
    copy_neighbours: np.ndarray | None,
    groups: np.ndarray,
    calibration: _CutCalibration,
    settings: ClusterSettings,
    random: np.random.Generator,
) -> np.ndarray:
    """Dissolve tiny groups, then undo weak cuts, weakest first."""
    fewest = max(CUT_SIZES[0] // 2, settings.smallest_share * len(items))
    while groups.max() > 0:
        between, sizes = cuts(nearest, groups), np.bincount(groups)
        crossed = _most_crossed(copy_neighbours, groups, calibration)
        if sizes.min() < fewest:
            small = int(sizes.argmin())
            into = _most_linked(between, small)
        elif crossed is not None:
            small, into = crossed
        else:
            pairs = sorted(combinations(range(len(sizes)), 2), key=lambda pair: -between[pair])
            for small, into in pairs[:3]:
                rows = items[groups == small], items[groups == into]
                if _cut_between(*rows, calibration, random) > settings.next_cuts:
                    break
            else:
                return groups
        groups = _join(groups, small, into)
    return groups


def _most_crossed(
    copy_neighbours: np.ndarray | None, groups: np.ndarray, calibration: _CutCalibration
) -> tuple[int, int] | None:
    """The pair of groups most crossed by rotated copies, if that makes them one class."""
    if copy_neighbours is None or calibration.crossing is None:
        return None
    between = cuts(copy_neighbours, groups)
    a, b = divmod(int(between.argmax()), len(between))
    return (a, b) if between[a, b] > ONE_CLASS * calibration.crossing else None


def _dissolve_unstable(
    items: np.ndarray, groups: np.ndarray, resampled: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Join each unstable group with the group it has most links to.

    Never to fewer groups than a resample has: no resample contains a joined group, so that one
    join would lead to the next.
    """
    fewest = min(part.max() + 1 for _, part in resampled)
    while groups.max() + 1 > fewest:
        stability = _stability(groups, resampled)
        weakest = int(stability.argmin())
        if stability[weakest] >= LEAST_STABILITY:
            break
        linked = links(nearest_others(items, 15), groups)
        groups = _join(groups, weakest, _most_linked(linked, weakest))
    return groups


def _most_linked(linked: np.ndarray, group: int) -> int:
    """The other group with the largest value, which may be 0."""
    others = np.delete(np.arange(len(linked)), group)
    return int(others[linked[group, others].argmax()])


def _join(groups: np.ndarray, small: int, into: int) -> np.ndarray:
    """One group fewer, numbered without a gap."""
    return np.unique(np.where(groups == small, into, groups), return_inverse=True)[1]


def _stability(groups: np.ndarray, resampled: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """The mean over the resamples of each group's best Jaccard match."""
    best = []
    for rows, part in resampled:
        table = np.zeros((groups.max() + 1, part.max() + 1))
        np.add.at(table, (groups[rows], part), 1)
        either = table.sum(1, keepdims=True) + table.sum(0) - table
        best.append((table / either).max(1))
    return np.mean(best, axis=0)


def _tightness(
    items: np.ndarray, groups: np.ndarray, known: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """The mean spread of a known class over that of each group: 1 is as tight as a known class."""
    usual = [_spread(known[labels == c]) for c in np.unique(labels)]
    spreads = np.array([_spread(items[groups == g]) for g in range(groups.max() + 1)])
    return (np.mean(usual) if usual else 1.0) / np.maximum(spreads, 1e-6)


def _spread(rows: np.ndarray) -> float:
    return float(np.linalg.norm(rows - rows.mean(0), axis=1).mean())


def _largest_first(grouping: Grouping, sizes: np.ndarray) -> Grouping:
    """The same groups numbered by size, then by tightness."""
    order = np.lexsort((-grouping.tightness, -sizes))
    return replace(
        grouping,
        groups=np.argsort(order)[grouping.groups],
        stability=grouping.stability[order],
        tightness=grouping.tightness[order],
    )
