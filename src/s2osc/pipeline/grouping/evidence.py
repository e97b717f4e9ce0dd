"""A tree of some items, cut at every number of groups, and what speaks for each number.

Items are linked to their neighbours; the slowest modes of a walk along these links are coordinates
in which what hangs together lies together, whatever its shape. Ward's method makes a tree of them.
Its cuts are measured: how far groups are apart, whether halves of the items give the same ones, how
wide they are beside known classes. Which of these measures find the right number is another matter
(``number.py``).
"""

from dataclasses import dataclass

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.graph import slowest_coordinates

hierarchy = lazily("scipy.cluster.hierarchy")

MOST_GROUPS = 15
N_NEIGHBOURS = 40
N_HALVINGS = 2
MEASURES = {
    "silhouette along the links": 1,
    "agreement of halves": 1,
    "one group": 0,
    "logarithm of the number": 0,
    "narrower than known classes": -1,
    "share of the smallest group": 1,
}
"""What is measured, and whether more of it speaks for a number (1), against it (-1) or either."""


@dataclass(frozen=True, eq=False)
class Parts:
    """The leaf of each item, and the tree of the leaves without probabilities."""

    tree: GroupTree
    leaves: np.ndarray  # (n,)
    places: np.ndarray  # (n, m) coordinates along the links

    def groups(self, n: int) -> np.ndarray:
        """(n,) the group of each item, where there are n groups."""
        return np.array(self.tree.cut(n))[self.leaves]


def find_parts(items: np.ndarray, n_leaves: int, random: np.random.Generator) -> Parts:
    """Items in at most so many leaves; items that are the same share one."""
    n = len(items)
    if n < 2 or not np.ptp(items, axis=0).any():
        return Parts(GroupTree((), (), (n,)), np.zeros(n, int), items)
    k = min(N_NEIGHBOURS, n // 5)
    places = slowest_coordinates(items, k, random) if k > 1 else items
    merges = hierarchy.linkage(places, "ward")
    # Copies of an item have places that differ by rounding.
    is_split = merges[:, 2] > 1e-9 * merges[-1, 2]
    n_leaves = min(n_leaves, len(np.unique(items, axis=0)), int(is_split.sum()) + 1)
    tree, leaves = top_of_tree(merges, n_leaves)
    return Parts(tree, leaves, places)


def top_of_tree(merges: np.ndarray, n_leaves: int) -> tuple[GroupTree, np.ndarray]:
    """The last splits of a hierarchy of scipy's, the last one first, and the leaf of each item.

    >>> merges = hierarchy.linkage(np.array([[0.0], [1.0], [9.0], [30.0]]), "ward")
    >>> tree, leaves = top_of_tree(merges, 3)
    >>> tree.sides, leaves.tolist()
    (((-1, 1), (-2, -3)), [2, 2, 1, 0])
    """
    n = len(merges) + 1
    first = n - n_leaves  # the merge that the last split undoes
    sides: list[tuple[int, ...]] = []
    leaf_of, n_found = np.zeros(2 * n - 1, int), 0
    for merge in range(n - 2, -1, -1):
        pair = []
        for below in merges[merge, :2].astype(int):
            if merge < first:
                leaf_of[below] = leaf_of[n + merge]
            elif below >= n + first:
                pair.append(2 * n - 2 - below)
            else:
                leaf_of[below] = n_found
                pair.append(~n_found)
                n_found += 1
        if pair:
            sides.append(tuple(int(side) for side in pair))
    leaves = leaf_of[:n]
    sizes = tuple(np.bincount(leaves, minlength=n_leaves).tolist())
    return GroupTree(tuple(sides), (0.0,) * len(sides), sizes), leaves


def measure_numbers(
    items: np.ndarray, parts: Parts, known_spread: float, random: np.random.Generator
) -> np.ndarray:
    """(number, len(MEASURES)): what speaks for one group, two groups, and so on.

    ``known_spread`` is the mean squared distance of known items to the centre of their class.
    """
    distances = _distances(parts.places)
    most = min(parts.tree.n_leaves, MOST_GROUPS)
    halves = [Halves.of(items, most, random) for _ in range(N_HALVINGS)]
    rows = []
    for number in range(1, most + 1):
        groups = parts.groups(number)
        centres = _centres(items, groups)
        spread = float(((items - centres[groups]) ** 2).sum(1).mean())
        rows.append(
            [
                silhouettes(distances, groups).mean(),
                np.mean([each.agreement(items, number) for each in halves]),
                float(number == 1),
                np.log(number),
                max(-np.log(spread / max(known_spread, 1e-12) + 1e-6), 0.0),
                np.log(np.bincount(groups).min() / len(items) + 0.005),
            ]
        )
    return np.array(rows)


@dataclass(frozen=True, eq=False)
class Halves:
    """Two halves of some items, each with a tree of its own."""

    rows: tuple[np.ndarray, np.ndarray]
    parts: tuple[Parts, Parts]

    @classmethod
    def of(cls, items: np.ndarray, most: int, random: np.random.Generator) -> "Halves":
        a, b = np.array_split(random.permutation(len(items)), 2)
        trees = find_parts(items[a], most, random), find_parts(items[b], most, random)
        return cls((a, b), trees)

    def agreement(self, items: np.ndarray, number: int) -> float:
        """Prediction strength: are the groups of a half those of the other's nearest centres?

        Of the worst group the share of pairs that stay together, in the mean of both halves.
        """
        groups = [part.groups(min(number, part.tree.n_leaves)) for part in self.parts]
        found = []
        for here, there in ((0, 1), (1, 0)):
            own, rows = groups[here], items[self.rows[here]]
            centres = _centres(items[self.rows[there]], groups[there])
            nearest = ((centres**2).sum(1) - 2 * rows @ centres.T).argmin(1)
            counts = np.zeros((own.max() + 1, len(centres)))
            np.add.at(counts, (own, nearest), 1)
            pairs, sizes = (counts * (counts - 1)).sum(1), counts.sum(1)
            found.append(float((pairs / np.maximum(sizes * (sizes - 1), 1)).min()))
        return float(np.mean(found))


def silhouettes(distances: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """(n,) how much nearer each item's own group is than the next one; 0 of one group or item."""
    number = groups.max() + 1
    if number == 1:
        return np.zeros(len(groups))
    everyone, member = np.arange(len(groups)), np.eye(number)[groups]
    sizes, sums = member.sum(0), distances @ member
    own = sums[everyone, groups] / np.maximum(sizes[groups] - 1, 1)
    means = sums / sizes
    means[everyone, groups] = np.inf
    other = means.min(1)
    found = (other - own) / np.maximum(np.maximum(own, other), 1e-12)
    return np.where(sizes[groups] > 1, found, 0.0)


def class_spread(rows: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance of an item to the centre of its class, in the mean of classes."""
    parts = [rows[labels == c] for c in np.unique(labels)]
    spreads = [((part - part.mean(0)) ** 2).sum(1).mean() for part in parts if len(part) > 1]
    return float(np.mean(spreads)) if spreads else 1.0


def _centres(rows: np.ndarray, groups: np.ndarray) -> np.ndarray:
    return np.stack([rows[groups == group].mean(0) for group in range(groups.max() + 1)])


def _distances(rows: np.ndarray) -> np.ndarray:
    rows = rows - rows.mean(0)
    squares = (rows**2).sum(1)
    found = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(found, 0)
    return np.asarray(found)
