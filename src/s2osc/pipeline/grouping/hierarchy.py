"""Trees of some items: Ward's method, freely or around groups that are given."""

from itertools import combinations

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.group_tree import GroupTree

hierarchy = lazily("scipy.cluster.hierarchy")


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


def merges_around(places: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Ward's method, written as scipy does, where items of a group join before groups do.

    >>> rows = np.array([[0.0], [1.0], [3.0], [30.0]])
    >>> merges_around(rows, np.array([0, 1, 1, 0]))[:, :2].astype(int).tolist()
    [[1, 2], [0, 3], [5, 4]]
    """
    merges: list[tuple[int, int, float, int]] = []
    members = [np.flatnonzero(groups == group) for group in range(groups.max() + 1)]
    number_of = {(group, i): int(row) for group, m in enumerate(members) for i, row in enumerate(m)}
    within = [
        (float(height), group, len(rows) + i, (int(a), int(b)), int(size))
        for group, rows in enumerate(members)
        if len(rows) > 1
        for i, (a, b, height, size) in enumerate(hierarchy.linkage(places[rows], "ward"))
    ]
    for height, group, i, (a, b), size in sorted(within):
        number_of[group, i] = len(places) + len(merges)
        merges.append((number_of[group, a], number_of[group, b], height, size))
    tops = {
        number_of[group, 2 * len(rows) - 2]: (len(rows), places[rows].mean(0))
        for group, rows in enumerate(members)
    }
    while len(tops) > 1:
        cost, a, b = min((_cost(tops[a], tops[b]), a, b) for a, b in combinations(tops, 2))
        (n_a, centre_a), (n_b, centre_b) = tops.pop(a), tops.pop(b)
        n = n_a + n_b
        tops[len(places) + len(merges)] = n, (n_a * centre_a + n_b * centre_b) / n
        merges.append((a, b, cost, n))
    return np.array(merges)


def _cost(one: tuple[int, np.ndarray], other: tuple[int, np.ndarray]) -> float:
    """How much farther items are from their centre, where two groups are one."""
    (n, centre), (m, other_centre) = one, other
    return float(n * m / (n + m) * ((centre - other_centre) ** 2).sum())
