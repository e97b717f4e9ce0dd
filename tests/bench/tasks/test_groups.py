"""Other ways to group, which stand beside ours."""

from types import SimpleNamespace

import numpy as np

from s2osc.bench.tasks.groups import by_known_classes, by_silhouette, compare_groups, kmeans
from s2osc.types import Labelled, Split
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


def test_where_nothing_was_found_no_way_has_groups():
    known = CLASSES < 2
    split = Split(
        known=Labelled(ROWS[known], CLASSES[known]),
        pool=ROWS,
        truth=np.where(known, CLASSES, -1),
        truth_classes=CLASSES,
        known_classes=(0, 1),
        unknown_classes=(2, 3, 4),
        held_out=ROWS[:0],
        held_out_truth=CLASSES[:0],
        held_out_classes=CLASSES[:0],
    )
    answer = SimpleNamespace(labels=np.zeros(len(ROWS), int))
    figures = compare_groups(split, SimpleNamespace(model=None, answer=answer), seed=0)
    assert figures["n_groups"] == figures["silhouette_n_groups"] == 0
    assert figures["within_one"] == figures["gcd_within_one"] == 0
    assert figures["told_nmi"] == figures["told_nmi_found"] == 0
