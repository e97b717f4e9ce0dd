"""K-means in which some items have a class already, and how many classes the others add.

    centres 1 .. C: the means of the labelled classes; C + 1 .. C + B: drawn from the unlabelled
    items in proportion to their squared distance to the nearest centre so far (k-means++)
    repeat: unlabelled items go to the nearest centre, labelled ones stay in their class;
            every centre moves to the mean of its items
    of several starts, the one with the least sum of squared distances

Sagar Vaze, Kai Han, Andrea Vedaldi and Andrew Zisserman, "Generalized Category Discovery",
CVPR 2022; the k-means++ start is David Arthur's and Sergei Vassilvitskii's, SODA 2007.
"""

from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import normalize

from s2osc.progress import track
from s2osc.seeding import derive, rng

N_STARTS = 10
MAX_ITERATIONS = 100
MAX_NEW = 10
N_AXES = 20  # principal axes in which new classes are counted
N_COUNTED = 10_000  # unlabelled items in which new classes are counted, and as many labelled ones
N_JUDGED = 2_000  # items the silhouette is taken of: its cost grows with their square


class Clusters(NamedTuple):
    """Where the centres are, and which is nearest to each unlabelled item."""

    centres: np.ndarray  # (C + B, d): the C labelled classes first
    nearest: np.ndarray  # (m,)
    inertia: float  # sum of squared distances of all items to their centre


def semi_supervised_kmeans(
    labelled: np.ndarray,
    labels: np.ndarray,
    unlabelled: np.ndarray,
    n_new: int,
    *,
    seed: int,
    n_starts: int = N_STARTS,
) -> Clusters:
    """Cluster the unlabelled items around C labelled classes and ``n_new`` others.

    >>> rows = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> semi_supervised_kmeans(rows[:2], np.array([0, 0]), rows, 1, seed=0).nearest.tolist()
    [0, 0, 1, 1]
    """
    random = rng(seed, "semi-supervised k-means")
    n_classes = int(labels.max()) + 1
    means = np.stack([labelled[labels == c].mean(0) for c in range(n_classes)])
    runs = []
    for _ in range(n_starts if n_new else 1):
        start = np.concatenate([means, draw_centres(unlabelled, means, n_new, random)])
        runs.append(_iterate(start, labelled, labels, unlabelled))
    return min(runs, key=lambda run: run.inertia)


def draw_centres(
    rows: np.ndarray, centres: np.ndarray, n_new: int, random: np.random.Generator
) -> np.ndarray:
    """(n_new, d): rows drawn in proportion to their squared distance to the nearest centre."""
    drawn: list[np.ndarray] = []
    squares = _squares(rows, centres).min(1)
    for _ in range(n_new):
        total = squares.sum()
        chances = squares / total if total > 0 else None
        drawn.append(rows[random.choice(len(rows), p=chances)])
        squares = np.minimum(squares, _squares(rows, drawn[-1][None])[:, 0])
    return np.reshape(drawn, (n_new, rows.shape[1]))


def _iterate(
    centres: np.ndarray, labelled: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray
) -> Clusters:
    """Move the centres until no unlabelled item changes its own."""
    rows, n_clusters = np.concatenate([labelled, unlabelled]), len(centres)
    nearest = _squares(unlabelled, centres).argmin(1)
    for _ in range(MAX_ITERATIONS):
        members = np.concatenate([labels, nearest])
        counts = np.bincount(members, minlength=n_clusters)
        sums = np.zeros((n_clusters, rows.shape[1]))
        np.add.at(sums, members, rows)
        # A centre that lost all its items stays where it is.
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        before, nearest = nearest, _squares(unlabelled, centres).argmin(1)
        if np.array_equal(before, nearest):
            break
    members = np.concatenate([labels, nearest])
    return Clusters(centres, nearest, float(((rows - centres[members]) ** 2).sum()))


def _squares(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    rows, centres = rows.astype(np.float64), centres.astype(np.float64)
    squares = (rows**2).sum(1, keepdims=True) + (centres**2).sum(1) - 2 * rows @ centres.T
    return np.maximum(squares, 0)


def estimate_n_new(
    labelled: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray, *, seed: int
) -> int:
    """How many classes the unlabelled items add to the labelled ones, at least one.

    The number whose clusters give the unlabelled items the largest mean silhouette. The labelled
    classes are clusters too, so that one new class is an answer as any other. Items are compared by
    direction: their lengths differ within a class too, and would pass for classes.
    """
    labelled, labels = _some(labelled, labels, seed=seed)
    chosen = rng(seed, "counted").permutation(len(unlabelled))[:N_COUNTED]
    everything = normalize(np.concatenate([labelled, unlabelled[chosen]]).astype(np.float64))
    axes = PCA(min(N_AXES, *everything.shape), random_state=derive(seed, "axes"))
    placed = axes.fit_transform(everything)
    labelled, unlabelled = placed[: len(labelled)], placed[len(labelled) :]
    judged = rng(seed, "silhouette").permutation(len(unlabelled))[:N_JUDGED]
    silhouettes = []
    for n_new in track(range(1, MAX_NEW + 1), "counting new classes", total=MAX_NEW):
        found = semi_supervised_kmeans(labelled, labels, unlabelled, n_new, seed=seed)
        silhouettes.append(mean_silhouette(unlabelled[judged], found.nearest[judged]))
    return 1 + int(np.argmax(silhouettes))


def _some(labelled: np.ndarray, labels: np.ndarray, *, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labelled items, as many of each class at most as make ``N_COUNTED`` in all."""
    n_each = -(-N_COUNTED // (int(labels.max()) + 1))
    order = rng(seed, "counted, labelled").permutation(len(labels))
    kept = [order[labels[order] == c][:n_each] for c in range(int(labels.max()) + 1)]
    rows = np.sort(np.concatenate(kept))
    return labelled[rows], labels[rows]


def mean_silhouette(rows: np.ndarray, groups: np.ndarray) -> float:
    """The mean of (b - a) / max(a, b) over the rows, or -1 where there are no groups to compare.

    a is the mean distance of a row to its own group, b that to the nearest other group.

    >>> mean_silhouette(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    if not 1 < len(np.unique(groups)) < len(rows):
        return -1.0
    return float(silhouette_score(rows, groups))
