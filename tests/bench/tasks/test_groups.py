"""Other ways to group, which stand beside ours."""

import numpy as np

from s2osc.bench.tasks.groups import by_known_classes, by_silhouette, kmeans
from samples import make_blobs

ROWS, CLASSES = make_blobs(40, 5, distance=12.0)
UNKNOWN_ROWS = CLASSES >= 2


def n_of(groups):
    return len(np.unique(groups))


def test_k_means_is_told_the_number_and_silhouette_finds_it():
    rows = ROWS[UNKNOWN_ROWS]
    assert n_of(kmeans(rows, 3, seed=0)) == 3
    assert n_of(by_silhouette(rows, seed=0)) == 3


def test_gcds_way_keeps_known_classes_whole():
    known = ROWS[~UNKNOWN_ROWS], CLASSES[~UNKNOWN_ROWS]
    groups = by_known_classes(ROWS[UNKNOWN_ROWS], *known, seed=0)
    assert groups.min() == 0
    assert n_of(groups) >= 1
    assert len(groups) == UNKNOWN_ROWS.sum()
