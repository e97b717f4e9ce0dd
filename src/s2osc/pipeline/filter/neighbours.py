"""How few known items there are among the neighbours of an item.

An unknown class is a region with items of the pool but no known ones. Known neighbours are counted,
and the distance to the nearest labelled items is taken,

- in the embedding of f, where only spies count as known: f was trained on the other labelled items;
- in the inputs themselves (pixels; vectors at unit length), among all labelled items;
- for images, in histograms of gradient directions, coarse and fine, which depend on shape more than
  on brightness.

A few labelled items have no neighbours to speak of, but they have a centre: the distance to that of
the nearest class, in units of the spread within classes, is the steadiest sign then.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from s2osc.arrays import chunks, principal_axes, unit_rows
from s2osc.lazy import lazily
from s2osc.nets.networks import one_vector
from s2osc.progress import track
from s2osc.seeding import derive, rng

shrinkage = lazily("sklearn.covariance")
neighbors = lazily("sklearn.neighbors")

N_COMPONENTS = {"embedding": 30, "pixels": 40, "gradients": 60, "unit vectors": 128}
MOST_NEIGHBOURS, FEW_NEIGHBOURS = 100, 30
MOST_REFERENCES = 20_000
"""Neighbours are searched among at most so many items, to bound the cost."""
FIT_ON = 10_000
CELLS, DIRECTIONS = (4, 7), 8
CHUNK = 4_096
AT_ONCE = 512
"""Images whose gradients are found together: as many as the cache of a processor has room for."""
MOST_LABELLED = 5_000
"""Distances are taken to at most so many labelled items."""
ENOUGH_SEARCHED = 0.5
"""Of these: where neighbours are searched among a sample that holds as many, they are in it."""
N_NEAREST = 5
ALIKE = 1e-6
"""Of the longest vector: distances that differ by less may do so by rounding alone."""
MANY_COLUMNS = 100
"""Vectors with as many columns are compared by their direction alone."""


class Neighbours(NamedTuple):
    """The nearest items of each scored one in one space, nearest first; never the item itself."""

    rows: np.ndarray  # (n_scored, k) int32
    distance: np.ndarray  # (n_scored, k)
    searched: np.ndarray  # the rows of the items they were searched among, in order


def principal_components(points: np.ndarray, n: int, *, seed: int) -> np.ndarray:
    """The leading components, fitted on a sample; float32, for quick distances.

    They are found in float64: sums of float32 would round by the order of the items, by enough to
    decide which of two items is the nearer neighbour of a third.
    """
    sample = points[rng(seed, "components").permutation(len(points))[:FIT_ON]]
    n = min(n, sample.shape[1], max(1, len(sample) - 1))
    # Flat images have no gradients: nothing varies, and there are no leading components.
    if n == points.shape[1] or not np.ptp(sample, axis=0).any():
        return points[:, :n].astype(np.float32)
    centre = sample.mean(axis=0, dtype=np.float64)
    axes, _ = principal_axes(sample - centre, n, seed=derive(seed, "components") % 2**31)
    parts = chunks(max(len(points), 1), CHUNK)
    components = [((points[rows] - centre) @ axes.T).astype(np.float32) for rows in parts]
    return np.concatenate(components)


def gradient_histograms(images: np.ndarray, cells: Sequence[int]) -> list[np.ndarray]:
    """(n, cells x cells x 8) for each of ``cells``: how strong gradients of each direction are in
    each part of an image.

    Square roots of shares, so that no single edge dominates the distance.
    """
    parts = chunks(max(len(images), 1), AT_ONCE)
    found = [_gradient_histograms(images[rows], cells) for rows in parts]
    return [np.concatenate(of_cells) for of_cells in zip(*found, strict=True)]


def _gradient_histograms(images: np.ndarray, cells: Sequence[int]) -> list[np.ndarray]:
    grey = images.astype(np.float32)
    grey = grey.mean(axis=3) if grey.ndim == 4 else grey
    if min(grey.shape[1:]) < 2:  # a line of pixels has no directions
        return [np.zeros((len(grey), 1), np.float32) for _ in cells]
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(right, down)
    direction = (np.arctan2(down, right) / (2 * np.pi) + 0.5) * DIRECTIONS
    before = np.floor(direction)
    to_next = strength * (direction - before)  # a direction between two counts for both
    first = before.astype(int) % DIRECTIONS
    shares = ((first, strength - to_next), ((first + 1) % DIRECTIONS, to_next))
    return [_sum_in_cells(shares, n_cells) for n_cells in cells]


def _sum_in_cells(shares: Sequence[tuple[np.ndarray, np.ndarray]], n_cells: int) -> np.ndarray:
    """Pairs of the direction and the strength of each pixel (n, height, width), as histograms."""
    n, height, width = shares[0][0].shape
    rows, columns = (_cell_of_pixel(side, n_cells) for side in (height, width))
    n_columns = columns[-1] + 1
    n_in_all = (rows[-1] + 1) * n_columns
    cell = n_in_all * np.arange(n)[:, None, None] + n_columns * rows[:, None] + columns
    flat = np.zeros(n * n_in_all * DIRECTIONS)
    for number, share in shares:
        places = (DIRECTIONS * cell + number).ravel()
        flat += np.bincount(places, share.ravel(), minlength=len(flat))
    flat = flat.reshape(n, n_in_all * DIRECTIONS)
    return np.sqrt(flat / (flat.sum(axis=1, keepdims=True) + 1e-6)).astype(np.float32)


def _cell_of_pixel(side: int, n_cells: int) -> np.ndarray:
    """(side,) which of the cells each pixel of a row lies in; a short row has fewer cells.

    >>> _cell_of_pixel(5, 2).tolist(), _cell_of_pixel(2, 4).tolist()
    ([0, 0, 1, 1, 1], [0, 1])
    """
    starts = np.unique(np.linspace(0, side, n_cells + 1).astype(int)[:-1])
    return np.searchsorted(starts, np.arange(side), side="right") - 1


def input_spaces(inputs: np.ndarray, *, seed: int) -> list[np.ndarray]:
    """The inputs as points: pixels and gradients of images, the direction of vectors."""
    if inputs.dtype == np.uint8:
        pixels = inputs.reshape(len(inputs), -1)
        gradients = gradient_histograms(inputs, CELLS)
        return [
            principal_components(pixels, N_COMPONENTS["pixels"], seed=seed),
            *(principal_components(g, N_COMPONENTS["gradients"], seed=seed) for g in gradients),
        ]
    vectors = one_vector(inputs)
    unit = unit_rows(vectors - vectors.mean(axis=0))
    directions = principal_components(unit, N_COMPONENTS["unit vectors"], seed=seed)
    # A table is compared as it is, too; of many columns, an embedding's, the direction matters.
    return [directions] if vectors.shape[1] >= MANY_COLUMNS else [directions, vectors]


def find_neighbours(points: np.ndarray, n_scored: int, *, seed: int, what: str) -> Neighbours:
    """The nearest of a sample of all ``points``, for each of the first ``n_scored``."""
    sample = np.sort(rng(seed, "references").permutation(len(points))[:MOST_REFERENCES])
    k = min(MOST_NEIGHBOURS, max(1, len(sample) // 10), len(sample) - 1)
    search = neighbors.NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(points[sample])
    found, distance = np.empty((n_scored, k), np.int32), np.empty((n_scored, k))
    parts = chunks(n_scored, CHUNK)
    for part in track(parts, what, total=len(parts)):
        rows = np.arange(n_scored)[part]
        away, places = search.kneighbors(points[rows])
        near = sample[places]
        drop = near == rows[:, None]
        # An item not in the sample, or after k identical ones, drops the farthest neighbour.
        drop[~drop.any(axis=1), -1] = True
        found[rows] = near[~drop].reshape(len(rows), k)
        distance[rows] = away[~drop].reshape(len(rows), k)
    return Neighbours(found, distance, sample)


def lack_of_known(neighbours: Neighbours, weight_of_item: np.ndarray, k: int) -> np.ndarray:
    """1 - (known among the k nearest) / (known expected): 1 where there is no known item.

    ``weight_of_item`` is 0 for the unlabelled. It does not matter whether the item itself is
    labelled: labelled items and known items of the pool must stay exchangeable.

    >>> near = Neighbours(np.array([[1, 2], [0, 2], [0, 1]]), np.ones((3, 2)), np.arange(3))
    >>> lack_of_known(near, np.array([0.0, 0.0, 1.0]), 2).round(2).tolist()
    [-0.5, -0.5, 1.0]
    """
    k = min(k, neighbours.rows.shape[1])
    found = weight_of_item[neighbours.rows[:, :k]].sum(axis=1)
    return 1 - found / (k * max(weight_of_item.mean(), 1e-12))


def lack_by_distance(
    points: np.ndarray, neighbours: Neighbours, distance: np.ndarray, known_share: float
) -> np.ndarray:
    """How much farther the nearest known items are than neighbours would be if all were alike.

    ``distance`` is to the N_NEAREST-th known item. If known items were a random part of all items,
    a share ``known_share``, it would be about that to the (N_NEAREST / known_share)-th neighbour.
    The log of their ratio is a finer measure than the number of known neighbours, and does not
    depend on how dense the items lie.
    """
    n_scored, k = neighbours.rows.shape
    place = min(k, max(1, round(N_NEAREST / max(known_share, 1e-12)))) - 1
    usual = np.empty(n_scored)
    for part in chunks(max(n_scored, 1), CHUNK):
        away = points[neighbours.rows[part, place]] - points[:n_scored][part]
        usual[part] = np.linalg.norm(away, axis=1)
    tiny = 1e-6 * max(float(np.median(usual)), 1e-12)
    return np.asarray(np.log((distance[:n_scored] + tiny) / (usual + tiny)))


class Nearest(NamedTuple):
    """How far the nearest labelled items are, and what class most of them have."""

    distance: np.ndarray  # (n,) to the k-th nearest labelled item, other than the item itself
    votes: np.ndarray  # (n,) the most frequent class among the k nearest


def nearest_labelled(
    points: np.ndarray,
    rows: np.ndarray,
    labels: np.ndarray,
    n_classes: int,
    *,
    n_scored: int | None = None,
    neighbours: Neighbours | None = None,
    seed: int,
    what: str,
) -> Nearest:
    """For each of the ``points``, the nearest of those in ``rows``, of the classes ``labels``.

    With ``n_scored``, for the first so many of the points alone. Where their ``neighbours`` are
    given, labelled items are read off these, and searched for where these hold too few.
    """
    if neighbours is not None:
        is_searched = np.isin(rows, neighbours.searched)
        if is_searched.sum() >= ENOUGH_SEARCHED * min(len(rows), MOST_LABELLED):
            rows, labels = rows[is_searched], labels[is_searched]
        else:
            neighbours = None
    drawn = np.sort(rng(seed, "labelled references").permutation(len(rows))[:MOST_LABELLED])
    rows, labels = rows[drawn], labels[drawn]
    k = min(N_NEAREST, max(1, len(rows) - 1))
    search = neighbors.NearestNeighbors(n_neighbors=min(k + 1, len(rows)), algorithm="brute").fit(
        points[rows]
    )
    class_of = np.full(len(points), -1)
    class_of[rows] = labels
    tie = ALIKE * float(np.linalg.norm(points, axis=1).max(initial=0.0))
    n = len(points) if n_scored is None else n_scored
    distance, votes = np.empty(n), np.empty(n, int)
    parts = chunks(n, CHUNK)
    for part in track(parts, what, total=len(parts)):
        here = np.arange(n)[part]
        near, is_left = np.empty((len(here), k), int), np.ones(len(here), bool)
        if neighbours is not None:
            found = labelled_among(neighbours, part, class_of >= 0, k, tie=tie)
            distance[here[found.items]], near[found.items] = found.distance, found.rows
            is_left[found.items] = False
        left = here[is_left]
        if len(left):
            away, places = search.kneighbors(points[left])
            is_self = rows[places] == left[:, None]
            # An item that is no reference itself drops the farthest, so that all have k.
            is_self[~is_self.any(axis=1), -1] = len(rows) > k
            others = np.argsort(is_self, axis=1, kind="stable")[:, :k]
            distance[left] = np.take_along_axis(away, others, axis=1)[:, -1]
            near[is_left] = rows[np.take_along_axis(places, others, axis=1)]
        counts = np.zeros((len(here), n_classes))
        np.add.at(counts, (np.arange(len(here))[:, None], class_of[near]), 1)
        votes[here] = counts.argmax(axis=1)
    return Nearest(distance, votes)


class LabelledAmong(NamedTuple):
    """The nearest labelled items of those that have enough of them among their neighbours."""

    items: np.ndarray  # (m,) which of the part
    distance: np.ndarray  # (m,) to the k-th
    rows: np.ndarray  # (m, k)


def labelled_among(
    neighbours: Neighbours, part: slice, is_labelled: np.ndarray, k: int, *, tie: float
) -> LabelledAmong:
    """The k nearest labelled items, where they and a farther one are among the neighbours.

    Without one that is farther by more than ``tie``, others may be as near.

    >>> near = Neighbours(np.array([[1, 2, 3]]), np.array([[1.0, 2.0, 4.0]]), np.arange(4))
    >>> labelled_among(near, slice(1), np.array([False, True, False, True]), 1, tie=0.1)
    LabelledAmong(items=array([0]), distance=array([1.]), rows=array([[1]]))
    """
    rows, away = neighbours.rows[part], neighbours.distance[part]
    is_there, each = is_labelled[rows], np.arange(len(rows))
    number = is_there.cumsum(axis=1)
    last, further = (number >= k).argmax(axis=1), (number > k).argmax(axis=1)
    is_clear = away[each, further] - away[each, last] > tie  # no further one: never
    items = np.flatnonzero(is_clear)
    is_near = is_there[items] & (number[items] <= k)
    return LabelledAmong(items, away[items, last[items]], rows[items][is_near].reshape(-1, k))


def mahalanobis_distance(points: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) how far each of the ``points`` is from the centre of the nearest class.

    In deviations within classes (Mahalanobis); ``rows`` are of the classes ``labels``. The
    covariance is drawn towards a sphere by the rule of Ledoit and Wolf: few items do not tell it.

    >>> points = np.array([[0.0, 0], [2, 0], [9, 0], [11, 0], [5, 0], [1, 0]])
    >>> mahalanobis_distance(points, np.arange(4), np.array([0, 0, 1, 1])).round(1).tolist()
    [1.0, 1.0, 1.0, 1.0, 4.0, 0.0]
    """
    drawn, points = points[rows].astype(float), points.astype(float)
    classes, of_class = np.unique(labels, return_inverse=True)
    centres = np.stack([drawn[of_class == i].mean(axis=0) for i in range(len(classes))])
    within = drawn - centres[of_class]
    covariance = np.zeros((within.shape[1],) * 2)
    if within.any():
        covariance, _ = shrinkage.ledoit_wolf(within, assume_centered=True)
    # Items of a class that are all alike spread in no direction; then all directions count alike.
    least = 1e-6 * np.trace(covariance) / len(covariance) + 1e-12
    whitening = np.linalg.inv(np.linalg.cholesky(covariance + least * np.eye(len(covariance)))).T
    white, centres = points @ whitening, centres @ whitening
    squares = (white**2).sum(axis=1)[:, None] - 2 * white @ centres.T + (centres**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares.min(axis=1), 0)))
