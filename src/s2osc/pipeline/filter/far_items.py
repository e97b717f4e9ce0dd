"""How far all items lie from labelled ones, where every labelled item judges.

Pool and labelled items are dealt into parts. Those of a part are measured from the labelled items
of all others; so a known item of the pool and a labelled one of the same part are exchangeable.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.filter.neighbours import mahalanobis_distance, nearest_labelled
from s2osc.seeding import rng

N_PARTS = 10
USUAL, STRANGE = 0.5, 0.95
"""Shares of all items by which the distances of each kind are brought to one scale."""


class FarItems(NamedTuple):
    """How far items lie from labelled ones, and the class that most of the nearest have."""

    score: np.ndarray  # (n,)
    names: np.ndarray  # (n,)


def measure_far_items(spaces: Sequence[np.ndarray], labels: np.ndarray, *, seed: int) -> FarItems:
    """The mean distance from the nearest labelled items and from the centres of classes.

    ``spaces`` are the items as points; ``labels`` are -1 for the pool. Each distance is counted
    from its median over all items, in units of how far the strange ones lie beyond that.
    """
    is_labelled, n_classes = labels >= 0, int(labels.max()) + 1
    random, part_of = rng(seed, "far items"), np.empty(len(labels), int)
    for side in (is_labelled, ~is_labelled):
        part_of[side] = random.permutation(int(side.sum())) % N_PARTS
    distances, votes = [], np.zeros((len(labels), n_classes))
    for points in spaces:
        from_items, from_centres = np.empty(len(labels)), np.empty(len(labels))
        for part in range(N_PARTS):
            rows = np.flatnonzero(part_of == part)
            teaching = np.flatnonzero(is_labelled & (part_of != part))
            together = points[np.append(rows, teaching)]
            places, of_class = np.arange(len(rows), len(together)), labels[teaching]
            nearest = nearest_labelled(
                together,
                places,
                of_class,
                n_classes,
                n_scored=len(rows),
                seed=seed,
                what="far items",
            )
            from_items[rows] = nearest.distance
            from_centres[rows] = mahalanobis_distance(together, places, of_class)[: len(rows)]
            votes[rows, nearest.votes] += 1
        distances += [from_items, from_centres]
    return FarItems(np.mean([on_one_scale(each) for each in distances], axis=0), votes.argmax(1))


def on_one_scale(distances: np.ndarray) -> np.ndarray:
    """Distances from their median, in units of how far the strange ones lie beyond it.

    >>> on_one_scale(np.arange(101.0))[[50, 95, 100]].round(2).tolist()
    [0.0, 1.0, 1.11]
    """
    usual, strange = np.quantile(distances, [USUAL, STRANGE])
    return (distances - usual) / max(float(strange - usual), 1e-12)
