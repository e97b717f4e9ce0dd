"""How far items lie from labelled ones, every labelled item measured from the others."""

import numpy as np

from s2osc.pipeline.filter.far_items import measure_far_items
from s2osc.pipeline.filter.neighbours import input_spaces


def random(seed=0):
    return np.random.default_rng(seed)


def vectors(n_pool, n_labelled, n_far=0, *, seed=0):
    """Points of two classes, the last of the pool far from both, and all labels."""
    n = n_pool + n_labelled
    classes = np.arange(n) % 2
    points = random(seed).normal(size=(n, 6)) + 6 * classes[:, None]
    points[n_pool - n_far : n_pool, 0] += 30
    labels = np.where(np.arange(n) < n_pool, -1, classes)
    return points.astype(np.float32), labels


def test_what_lies_far_from_all_labelled_items_comes_first():
    points, labels = vectors(900, 100, n_far=9)
    far = measure_far_items(input_spaces(points, seed=0), labels, seed=0)
    assert set(np.argsort(-far.score)[:9]) == set(range(891, 900))


def test_items_get_the_class_of_those_they_lie_near():
    points, labels = vectors(400, 100)
    far = measure_far_items(input_spaces(points, seed=0), labels, seed=0)
    np.testing.assert_array_equal(far.names, np.arange(500) % 2)


def test_labelled_items_lie_as_far_out_as_known_ones_of_the_pool():
    ranks = []
    for seed in range(20):
        points, labels = vectors(900, 100, seed=seed)
        far = measure_far_items(input_spaces(points, seed=0), labels, seed=seed)
        ranks.append(np.argsort(np.argsort(far.score))[labels >= 0].mean())
    assert abs(np.mean(ranks) - 499.5) < 15  # three deviations of a mean of 2,000 ranks are 19


def test_a_class_of_one_labelled_item_gives_numbers():
    points, labels = vectors(300, 60)
    labels[-1] = 2
    far = measure_far_items(input_spaces(points, seed=0), labels, seed=0)
    assert np.isfinite(far.score).all()
