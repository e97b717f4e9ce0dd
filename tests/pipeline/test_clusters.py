"""Groups of unknown items, and how many there are."""

import numpy as np
import pytest

from s2osc.errors import SettingsError
from s2osc.pipeline.clusters import ClusterSettings, Grouping, choose_n_groups, group_unknown
from samples import make_blobs


def blobs(*sizes, distance=12.0):
    """Blobs of the sizes given, one after the other."""
    vectors, labels = make_blobs(max(sizes), len(sizes), distance=distance)
    rows = np.concatenate([np.flatnonzero(labels == c)[:size] for c, size in enumerate(sizes)])
    return vectors[rows], labels[rows]


def test_an_item_belongs_to_the_nearest_centre():
    grouping = Grouping(np.array([[0.0, 0.0], [10.0, 0.0]]))
    rows = np.array([[1.0, 5.0], [6.0, -3.0], [4.9, 0.0]])
    assert grouping.assign(rows).tolist() == [0, 1, 0]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_well_separated_groups_are_counted_right(n):
    assert choose_n_groups(blobs(*[40] * n)[0], ClusterSettings(), 0) == n


def test_one_cloud_is_one_group():
    cloud = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    assert choose_n_groups(cloud, ClusterSettings(), 0) == 1


def test_a_threshold_of_minus_one_always_divides():
    cloud = np.random.default_rng(0).normal(size=(200, 8)).astype(np.float32)
    assert choose_n_groups(cloud, ClusterSettings(one_group_below=-1.0), 0) > 1


def test_groups_are_the_blobs_the_largest_first():
    vectors, labels = blobs(20, 60, 40)
    groups = group_unknown(vectors, ClusterSettings(), seed=0).assign(vectors)
    np.testing.assert_array_equal(groups, np.array([2, 0, 1])[labels])


def test_a_number_of_groups_that_is_given_is_kept():
    vectors, _ = blobs(30, 30)
    grouping = group_unknown(vectors, ClusterSettings(n_groups=4), seed=0)
    assert len(grouping.centres) == 4
    assert set(grouping.assign(vectors)) == {0, 1, 2, 3}


def test_there_are_never_more_groups_than_distinct_items():
    twins = np.repeat(np.eye(3, dtype=np.float32), 2, axis=0)
    assert len(group_unknown(twins, ClusterSettings(n_groups=9), seed=0).centres) == 3


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_items_can_be_grouped(n):
    rows = np.eye(4, dtype=np.float32)[:n]
    grouping = group_unknown(rows, ClusterSettings(), seed=0)
    assert 1 <= len(grouping.centres) <= n


def test_items_that_are_all_the_same_are_one_group():
    same = np.ones((50, 4), np.float32)
    grouping = group_unknown(same, ClusterSettings(), seed=0)
    assert len(grouping.centres) == 1
    assert set(grouping.assign(same)) == {0}


def test_no_unknown_items_make_no_groups():
    grouping = group_unknown(np.empty((0, 4), np.float32), ClusterSettings(), seed=0)
    assert grouping.centres.shape == (0, 4)


def test_an_unknown_item_that_comes_after_a_pool_without_any_can_be_assigned():
    grouping = group_unknown(np.empty((0, 4), np.float32), ClusterSettings(), seed=0)
    assert grouping.assign(np.ones((2, 4), np.float32)).shape == (2,)


def test_the_same_seed_gives_the_same_groups():
    cloud = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    settings = ClusterSettings(n_groups=5)
    first, again, other = (group_unknown(cloud, settings, seed=s).centres for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n_groups", [0, -2])
def test_a_number_of_groups_below_one_is_refused(n_groups):
    with pytest.raises(SettingsError, match=f"is {n_groups}; give a number from 1"):
        ClusterSettings(n_groups=n_groups)
