"""Splits of a tree of items, and which of them part classes."""

import numpy as np

from s2osc.pipeline.grouping.splits import (
    MEASURES,
    class_spread,
    find_splits,
    learn_splits,
    simulated_classes,
)
from samples import make_blobs

BLOBS, CLASSES = make_blobs(60, 4, distance=9.0)


def random():
    return np.random.default_rng(0)


def test_the_leaves_of_a_tree_are_numbered_and_its_splits_measured():
    found = find_splits(BLOBS, 8.0, random())
    assert set(found.leaves) - {-1} == set(range(found.n_leaves))
    for split in found.splits:
        assert split.measures.shape == (len(MEASURES),)
        assert np.isfinite(split.measures).all()


def test_what_is_learnt_from_known_classes_tells_blobs_from_parts_of_one():
    model = learn_splits(BLOBS, CLASSES, random())
    others, classes = make_blobs(60, 3, distance=9.0, seed=5)
    found = find_splits(others, class_spread(BLOBS, CLASSES), random())
    chances = model.probability(found.splits)
    parts = [
        {np.bincount(classes[rows]).argmax() for rows in split.parts} for split in found.splits
    ]
    apart = np.array([len(set.union(p)) > 1 for p in parts])
    assert apart.sum() == 2
    assert chances[apart].min() > 0.5 > chances[~apart].max()
    assert model.tree(found).likely_number() == 3


def test_simulated_classes_stand_in_where_labels_allow_no_episode():
    model = learn_splits(BLOBS[:10], CLASSES[:10], random())
    assert model.n_episodes == 0
    rows, labels = simulated_classes(random())
    assert len(rows) == len(labels)


def test_the_spread_of_classes_is_the_mean_squared_distance_to_their_centres():
    rows = np.array([[0.0], [2.0], [10.0], [16.0]])
    assert class_spread(rows, np.array([0, 0, 1, 1])) == (1 + 9) / 2
