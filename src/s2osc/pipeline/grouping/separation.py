"""How far groups are apart: k-means, silhouettes, and the number of groups that both speak for."""

import numpy as np

from s2osc.lazy import lazily

hierarchy = lazily("scipy.cluster.hierarchy")

MOST_STEPS = 30  # of k-means, which from the cut of a tree has hardly far to go


def k_means(places: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """k-means that starts from groups; they stay as they are where one of them would vanish.

    >>> k_means(np.array([[0.0], [1.0], [2.0], [9.0]]), np.array([0, 0, 1, 1])).tolist()
    [0, 0, 0, 1]
    """
    number = groups.max() + 1
    for _ in range(MOST_STEPS):
        member = np.eye(number)[groups]
        centres = member.T @ places / member.sum(0)[:, None]
        nearest = ((centres**2).sum(1) - 2 * places @ centres.T).argmin(1)
        if (nearest == groups).all() or len(np.unique(nearest)) < number:
            break
        groups = nearest
    return groups


def number_by_silhouette(rows: np.ndarray, most: int) -> int:
    """The number from two on whose groups by k-means are farthest apart; one, if ``most`` is one.

    k-means starts from Ward's method, so that it needs no random starts.

    >>> number_by_silhouette(np.array([[0.0], [1.0], [20.0], [21.0], [50.0], [51.0]]), most=5)
    3
    """
    if most < 2:
        return 1
    rows = rows.astype(np.float64)
    distances, merges = distances_of(rows), hierarchy.linkage(rows, "ward")
    best, farthest = 1, -np.inf
    for number in range(2, most + 1):
        tree = hierarchy.fcluster(merges, number, "maxclust")
        groups = k_means(rows, np.unique(tree, return_inverse=True)[1])
        apart = float(silhouettes(distances, groups).mean())
        if apart > farthest:
            best, farthest = number, apart
    return best


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


def distances_of(rows: np.ndarray) -> np.ndarray:
    """(n, n) between all rows."""
    rows = rows - rows.mean(0)
    squares = (rows**2).sum(1)
    found = np.sqrt(np.maximum(squares[:, None] + squares - 2 * rows @ rows.T, 0))
    np.fill_diagonal(found, 0)
    return np.asarray(found)
