"""How few known items there are among the neighbours of an item.

An unknown class is a region with items of the pool but no known ones. Known neighbours are counted

- in the embedding of f, among the seeds only, since f was trained on the other known items;
- in the inputs themselves (pixels; vectors at unit length), among all labelled items;
- for images, in histograms of gradient directions, coarse and fine, which depend on shape more than
  on brightness.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

from s2osc.arrays import chunks, unit_rows
from s2osc.nets.networks import one_vector
from s2osc.progress import track
from s2osc.seeding import derive, rng

N_COMPONENTS = {"embedding": 30, "pixels": 40, "gradients": 60, "unit vectors": 128}
MOST_NEIGHBOURS, FEW_NEIGHBOURS = 100, 30
MOST_REFERENCES = 20_000
"""Neighbours are searched among at most so many items, to bound the cost."""
FIT_ON = 10_000
CELLS, DIRECTIONS = (4, 7), 8
CHUNK = 4_096
SHIFT_QUANTILE, SHIFT_FACTOR = 0.2, 2.0


@dataclass(frozen=True)
class References:
    """The items among which neighbours are counted: pool and seeds, then other labelled items."""

    n_pool: int
    labels: np.ndarray  # (n,) -1 for the pool, the known class of seeds and labelled items
    n_scored: int  # pool and seeds: the rows that get a score

    @property
    def is_known(self) -> np.ndarray:
        return self.labels >= 0


class Neighbours(NamedTuple):
    """The nearest items of each scored one in one space, nearest first; never the item itself."""

    rows: np.ndarray  # (n_scored, k) int32


def principal_components(points: np.ndarray, n: int, *, seed: int) -> np.ndarray:
    """The leading components, fitted on a sample; float32, for quick distances."""
    sample = points[rng(seed, "components").permutation(len(points))[:FIT_ON]]
    n = min(n, sample.shape[1], max(1, len(sample) - 1))
    # Flat images have no gradients: nothing varies, and there are no leading components.
    if n == points.shape[1] or not np.ptp(sample, axis=0).any():
        return points[:, :n].astype(np.float32)
    state = derive(seed, "components") % 2**31
    fitted = PCA(n, svd_solver="randomized", random_state=state).fit(sample.astype(np.float32))
    parts = chunks(max(len(points), 1), CHUNK)
    components = [fitted.transform(points[rows].astype(np.float32)) for rows in parts]
    return np.concatenate(components).astype(np.float32)


def gradient_histograms(images: np.ndarray, n_cells: int) -> np.ndarray:
    """(n, cells x cells x 8): how strong gradients of each direction are in each part of an image.

    Square roots of shares, so that no single edge dominates the distance.
    """
    parts = chunks(max(len(images), 1), CHUNK)
    return np.concatenate([_gradient_histograms(images[rows], n_cells) for rows in parts])


def _gradient_histograms(images: np.ndarray, n_cells: int) -> np.ndarray:
    grey = images.astype(np.float32)
    grey = grey.mean(axis=3) if grey.ndim == 4 else grey
    n, height, width = grey.shape
    if min(height, width) < 2:  # a line of pixels has no directions
        return np.zeros((n, 1), np.float32)
    down, right = np.gradient(grey, axis=(1, 2))
    strength = np.hypot(right, down)
    direction = (np.arctan2(down, right) / (2 * np.pi) + 0.5) * DIRECTIONS
    first = np.floor(direction).astype(int) % DIRECTIONS
    part = direction - np.floor(direction)
    rows, columns = (np.linspace(0, side, n_cells + 1).astype(int)[:-1] for side in (height, width))
    rows, columns = np.unique(rows), np.unique(columns)
    cells = []
    for number in range(DIRECTIONS):
        is_next = (first + 1) % DIRECTIONS == number
        share = strength * ((first == number) * (1 - part) + is_next * part)
        cells.append(np.add.reduceat(np.add.reduceat(share, rows, axis=1), columns, axis=2))
    flat = np.stack(cells, axis=-1).reshape(n, len(rows) * len(columns) * DIRECTIONS)
    return np.sqrt(flat / (flat.sum(axis=1, keepdims=True) + 1e-6))


def input_spaces(inputs: np.ndarray, *, seed: int) -> list[np.ndarray]:
    """The inputs as points: pixels and gradients of images, the direction of vectors."""
    if inputs.dtype == np.uint8:
        pixels = inputs.reshape(len(inputs), -1)
        gradients = [gradient_histograms(inputs, n_cells) for n_cells in CELLS]
        return [
            principal_components(pixels, N_COMPONENTS["pixels"], seed=seed),
            *(principal_components(g, N_COMPONENTS["gradients"], seed=seed) for g in gradients),
        ]
    vectors = one_vector(inputs)
    unit = unit_rows(vectors - vectors.mean(axis=0))
    return [principal_components(unit, N_COMPONENTS["unit vectors"], seed=seed)]


def find_neighbours(points: np.ndarray, n_scored: int, *, seed: int, what: str) -> Neighbours:
    """The nearest of a sample of all ``points``, for each of the first ``n_scored``."""
    sample = np.sort(rng(seed, "references").permutation(len(points))[:MOST_REFERENCES])
    k = min(MOST_NEIGHBOURS, max(1, len(sample) // 10), len(sample) - 1)
    search = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(points[sample])
    found = np.empty((n_scored, k), np.int32)
    parts = chunks(n_scored, CHUNK)
    for part in track(parts, what, total=len(parts)):
        rows = np.arange(n_scored)[part]
        near = sample[search.kneighbors(points[rows], return_distance=False)]
        drop = near == rows[:, None]
        # An item not in the sample, or after k identical ones, drops the farthest neighbour.
        drop[~drop.any(axis=1), -1] = True
        found[rows] = near[~drop].reshape(len(rows), k)
    return Neighbours(found)


def lack_of_known(neighbours: Neighbours, weight_of_item: np.ndarray, k: int) -> np.ndarray:
    """1 - (known among the k nearest) / (known expected): 1 where there is no known item.

    ``weight_of_item`` is 0 for the pool. It does not matter whether the item itself is a seed:
    seeds and known items of the pool must stay exchangeable.

    >>> near = Neighbours(np.array([[1, 2], [0, 2], [0, 1]]))
    >>> lack_of_known(near, np.array([0.0, 0.0, 1.0]), 2).round(2).tolist()
    [-0.5, -0.5, 1.0]
    """
    k = min(k, neighbours.rows.shape[1])
    found = weight_of_item[neighbours.rows[:, :k]].sum(axis=1)
    return 1 - found / (k * max(weight_of_item.mean(), 1e-12))


def class_weights(neighbours: Neighbours, references: References, n_classes: int) -> np.ndarray:
    """How many items of the pool each labelled item of a class stands for, relative to others.

    The ratio of pool items to labelled items of its class is taken around every seed. An unknown
    class nearby raises it around some of the seeds, a class more frequent in the pool around all of
    them; a low quantile over the seeds separates the two. If no class differs from the median by a
    factor of two, all weigh the same.
    """
    seeds = np.arange(references.n_pool, references.n_scored)
    near = references.labels[neighbours.rows[seeds]]
    own = references.labels[seeds]
    of_pool = (near < 0).sum(axis=1)
    of_class = (near == own[:, None]).sum(axis=1)
    ratio = of_pool / np.maximum(of_class, 1)
    found = np.array(
        [
            np.quantile(ratio[own == c], SHIFT_QUANTILE) if (own == c).any() else np.nan
            for c in range(n_classes)
        ]
    )
    found = np.where(np.isnan(found), np.nanmedian(found), found)
    # Half an item: a class without any in the pool still weighs a little.
    relative = (found + 0.5 / neighbours.rows.shape[1]) / max(np.median(found), 1e-3)
    if relative.max() < SHIFT_FACTOR and relative.min() > 1 / SHIFT_FACTOR:
        return np.ones(n_classes)
    return relative
