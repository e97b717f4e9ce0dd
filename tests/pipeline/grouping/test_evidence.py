"""The tree of some items, its cuts, and what speaks for each number of groups."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from s2osc.pipeline.grouping.evidence import (
    MEASURES,
    MOST_GROUPS,
    class_spread,
    find_parts,
    measure_numbers,
    silhouettes,
    top_of_tree,
)
from samples import make_blobs

BLOBS, CLASSES = make_blobs(60, 4, distance=9.0)


def random():
    return np.random.default_rng(0)


def measures(items):
    found = measure_numbers(items, find_parts(items, MOST_GROUPS, random()), 8.0, random())
    return dict(zip(MEASURES, found.T, strict=True))


def test_the_cuts_of_the_tree_are_those_of_the_hierarchy():
    merges = linkage(BLOBS, "ward")
    tree, leaves = top_of_tree(merges, 9)
    for n in range(1, 10):
        own = np.array(tree.cut(n))[leaves]
        assert adjusted_rand_score(own, fcluster(merges, n, "maxclust")) == 1


def test_blobs_are_the_first_parts():
    parts = find_parts(BLOBS, MOST_GROUPS, random())
    assert adjusted_rand_score(parts.groups(4), CLASSES) == 1
    assert sum(parts.tree.sizes) == len(BLOBS)


def test_items_that_are_the_same_are_never_parted():
    twins = np.repeat(np.eye(3, 8, dtype=np.float32), 20, axis=0)
    parts = find_parts(twins, MOST_GROUPS, random())
    assert parts.tree.n_leaves <= 3
    assert find_parts(np.ones((9, 2)), MOST_GROUPS, random()).tree.n_leaves == 1


def test_every_number_is_measured_and_one_group_has_no_silhouette():
    found = measures(BLOBS)
    assert all(
        len(column) == MOST_GROUPS and np.isfinite(column).all() for column in found.values()
    )
    assert found["silhouette along the links"][0] == 0
    assert found["one group"].tolist() == [1] + [0] * (MOST_GROUPS - 1)


def test_what_speaks_for_the_right_number_is_highest_there():
    found = measures(BLOBS)
    assert found["silhouette along the links"].argmax() + 1 == 4
    assert found["agreement of halves"][3] > 0.99 > found["agreement of halves"][4:].max()
    assert found["narrower than known classes"][0] == 0 < found["narrower than known classes"][8]


def test_items_are_measured_that_have_one_part():
    assert measures(np.ones((40, 3)))["silhouette along the links"].tolist() == [0]


@pytest.mark.parametrize("n", [2, 5])
def test_silhouettes_are_those_of_scikit_learn(n):
    rows = BLOBS[::5].astype(np.float64)
    groups = np.append(find_parts(rows, n, random()).groups(n)[1:], n)  # the last item alone
    groups = np.unique(groups, return_inverse=True)[1]
    distances = np.linalg.norm(rows[:, None] - rows, axis=2)
    np.testing.assert_allclose(silhouettes(distances, groups), silhouette_samples(rows, groups))


def test_the_spread_of_classes_is_the_mean_squared_distance_to_their_centres():
    rows = np.array([[0.0], [2.0], [10.0], [16.0]])
    assert class_spread(rows, np.array([0, 0, 1, 1])) == (1 + 9) / 2
