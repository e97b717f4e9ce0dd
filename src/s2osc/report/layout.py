"""Place the items of a pool on a map: neighbours in the embedding are neighbours on the page."""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import leading_components, tsne
from s2osc.progress import track
from s2osc.seeding import rng

MAP_ITEMS = 3000
FEWEST_FOR_TSNE = 20  # below it, neighbourhoods are too small to mean anything
FEWEST_PER_KIND = 20
N_COMPONENTS = 30
EARLY_ITERATIONS, ITERATIONS, REPORT_EVERY = 100, 300, 10


@dataclass(frozen=True)
class PoolMap:
    """Where some items of a pool are drawn."""

    items: np.ndarray  # (m,) int: places in the pool, rising
    points: np.ndarray  # (m, 2) float: the longer side runs from 0 to 1
    components: np.ndarray  # (m, c) float32: the embeddings, in as few dimensions as matter
    method: str  # in words, for the caption


def draw_map(embeddings: np.ndarray, kinds: np.ndarray, *, seed: int) -> PoolMap:
    """Sample the pool, reduce its embeddings to the plane, and scale them to the page."""
    items = sample_items(kinds, MAP_ITEMS, seed=seed)
    components = leading_components(embeddings[items], N_COMPONENTS)
    reduced = components
    if not reduced.any():
        method = "one point, as the embeddings do not differ"
    elif len(items) < FEWEST_FOR_TSNE:
        method = f"two principal components, as t-SNE needs {FEWEST_FOR_TSNE} items"
    else:
        method, reduced = "t-SNE of the embeddings", _tsne(reduced, seed=seed)
    return PoolMap(items, fit_to_page(reduced), components.astype(np.float32, order="C"), method)


def sample_items(kinds: np.ndarray, at_most: int, *, seed: int) -> np.ndarray:
    """Draw items at random, with some of every kind however rare it is.

    >>> kinds = np.array([0] * 99 + [1])
    >>> 99 in sample_items(kinds, 10, seed=0)
    True
    """
    order = rng(seed, "map").permutation(len(kinds))
    assured = min(FEWEST_PER_KIND, max(1, at_most // len(np.unique(kinds))))
    is_assured = np.zeros(len(kinds), dtype=bool)
    for kind in np.unique(kinds):
        is_assured[np.flatnonzero(kinds[order] == kind)[:assured]] = True
    return np.sort(np.concatenate([order[is_assured], order[~is_assured]])[:at_most])


def fit_to_page(points: np.ndarray) -> np.ndarray:
    """Turn the widest direction level, for pages are wider than tall, and scale it to 0 .. 1."""
    plane = points[:, :2] - points[:, :2].mean(axis=0)
    plane = plane @ np.linalg.svd(plane, full_matrices=False)[2].T if len(plane) > 1 else plane
    plane -= plane.min(axis=0)
    return plane / (plane.max() or 1.0)


def _tsne(vectors: np.ndarray, *, seed: int) -> np.ndarray:
    n_reports = (EARLY_ITERATIONS + ITERATIONS) // REPORT_EVERY
    bar = track(range(n_reports), "drawing the map", total=n_reports)

    def advance(*_: object) -> None:
        next(bar, None)

    points = tsne(
        vectors,
        seed=seed,
        early_exaggeration_iter=EARLY_ITERATIONS,
        n_iter=ITERATIONS,
        theta=0.7,  # coarser than usual: the same picture in half the time
        callbacks=advance,
        callbacks_every_iters=REPORT_EVERY,
    )
    for _ in bar:
        pass
    return points
