"""Some items in every number of groups, and what speaks for each number.

Items are linked to their neighbours; the slowest modes of a walk along these links are coordinates
in which what hangs together lies together, whatever its shape. Ward's method makes a tree of them,
and k-means mends its cuts, in the modes that tell so many groups apart: n - 1 modes for n groups.
These groups are measured: how far they are apart, how much slower their modes are than the next,
how wide they are beside known classes. Beside them stands the number that the silhouette of k-means
finds without any modes, in the space as it is and as known classes scale it. Which of these
measures find the right number is another matter (``number.py``).
"""

from dataclasses import dataclass, replace

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.classes import UsualClass, slowness_odds
from s2osc.pipeline.grouping.hierarchy import merges_around, top_of_tree
from s2osc.pipeline.grouping.neighbour_graph import slowest_coordinates
from s2osc.pipeline.grouping.separation import (
    distances_of,
    k_means,
    number_by_silhouette,
    silhouettes,
)
from s2osc.pipeline.grouping.space import Placed

hierarchy = lazily("scipy.cluster.hierarchy")

MOST_GROUPS = 15
N_NEIGHBOURS = 40
LEAST_SHARE = 0.005
"""Added to the share of the smallest group, whose logarithm is taken."""
SURE = (-1.0, 2.0)  # log odds beyond those of a class: past these, a mode could not be surer
BY_SILHOUETTE = ("near the number by silhouette", "near the number by silhouette, scaled")
MEASURES = {
    "silhouette in the modes": 1,
    "modes slower than a class": 1,
    "next mode slower than a class": -1,
    "one group": 0,
    "number": 0,
    "logarithm of the number": 0,
    "narrower than known classes": -1,
    "share of the smallest group": 1,
    **dict.fromkeys(BY_SILHOUETTE, 1),
}
"""What is measured, and whether more of it speaks for a number (1), against it (-1) or either."""
PRIOR = frozenset({"one group", "number", "logarithm of the number"})
"""Measures that do not look at the items."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The leaf of each item, and the tree of the leaves without probabilities."""

    tree: GroupTree
    leaves: np.ndarray  # (n,)
    places: np.ndarray  # (n, m) the slowest modes, the slowest first
    slowness: np.ndarray  # (m,) how much of each mode is left after a step

    def groups(self, number: int) -> np.ndarray:
        """(n,) the group of each item, where there are so many groups."""
        groups = np.array(self.tree.cut(number))[self.leaves]
        return k_means(self.modes(number), groups) if number > 1 else groups

    def modes(self, number: int) -> np.ndarray:
        """(n, number - 1): the places that tell so many groups apart."""
        return self.places[:, : max(number - 1, 1)]

    def slower_than(self, usual: UsualClass, most: int) -> np.ndarray:
        """(most,) how much slower each mode is than those in a class, in log odds.

        If the first n modes told n + 1 classes apart, the last of them would cross classes of so
        many items; it is compared with a walk in a known class that reaches as far.
        """
        n_items = len(self.places)
        reach = max(neighbours_of(n_items), 1) / n_items
        own = slowness_odds(np.pad(self.slowness, (0, max(most - len(self.slowness), 0)))[:most])
        usually = [usual.walk_at(reach * n) for n in range(1, most + 1)]
        return np.clip(own - usually, *SURE)

    def around(self, number: int) -> "Parts":
        """The same with another tree, in which so many groups are a cut."""
        if number == 1:
            return self
        merges = merges_around(self.places, self.groups(number))
        tree, leaves = top_of_tree(merges, self.tree.n_leaves)
        return replace(self, tree=tree, leaves=leaves)


def find_parts(items: np.ndarray, n_leaves: int, random: np.random.Generator) -> Parts:
    """Items in at most so many leaves; items that are the same share one."""
    n = len(items)
    if n < 2 or not np.ptp(items, axis=0).any():
        return Parts(GroupTree((), (), (n,)), np.zeros(n, int), items, np.zeros(0))
    k = neighbours_of(n)
    places, slowness = slowest_coordinates(items, k, random) if k > 1 else _principal(items)
    merges = hierarchy.linkage(places, "ward")
    # Copies of an item have places that differ by rounding.
    is_split = merges[:, 2] > 1e-9 * merges[-1, 2]
    n_leaves = min(n_leaves, len(np.unique(items, axis=0)), int(is_split.sum()) + 1)
    tree, leaves = top_of_tree(merges, n_leaves)
    return Parts(tree, leaves, places, slowness)


def neighbours_of(n_items: int) -> int:
    """How many neighbours an item has among so many."""
    return min(N_NEIGHBOURS, n_items // 5)


def measure_numbers(placed: Placed, parts: Parts, usual: UsualClass) -> np.ndarray:
    """(number, len(MEASURES)): what speaks for one group, two groups, and so on.

    ``parts`` are those of the scaled items.
    """
    items, most = placed.scaled, min(parts.tree.n_leaves, MOST_GROUPS)
    slower = parts.slower_than(usual, most)
    by_silhouette = [number_by_silhouette(rows, most) for rows in (placed.reduced, placed.scaled)]
    rows = []
    for number in range(1, most + 1):
        groups = parts.groups(number)
        centres = _centres(items, groups)
        spread = float(((items - centres[groups]) ** 2).sum(1).mean())
        rows.append(
            [
                silhouettes(distances_of(parts.modes(number)), groups).mean(),
                slower[: number - 1].sum(),
                slower[number - 1],
                float(number == 1),
                number,
                np.log(number),
                max(-np.log(spread / max(usual.spread, 1e-12) + 1e-6), 0.0),
                np.log(np.bincount(groups).min() / len(items) + LEAST_SHARE),
                *(-abs(np.log(number / best)) for best in by_silhouette),
            ]
        )
    return np.array(rows)


def _centres(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.stack([rows[groups == group].mean(0) for group in range(groups.max() + 1)])


def _principal(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A few items along principal axes, the widest first; none of them is slower than others."""
    u, s, _ = np.linalg.svd(rows - rows.mean(0), full_matrices=False)
    return np.asarray(u * s), np.zeros(len(s))
