"""Groups of unknown items, and how many there are."""

import numpy as np
import pytest

from s2osc.errors import SettingsError
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.grouping.item_selection import N_FITTED
from s2osc.pipeline.grouping.space import Placed
from samples import make_blobs

AUTO = ClusterSettings()
counts_groups = pytest.mark.usefixtures("just_as_users_get_it")


def blobs(*sizes, distance=12.0):
    """Blobs of the sizes given, one after the other."""
    vectors, labels = make_blobs(max(sizes), len(sizes), distance=distance)
    rows = np.concatenate([np.flatnonzero(labels == c)[:size] for c, size in enumerate(sizes)])
    return vectors[rows], labels[rows]


def cloud(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)


def known_blobs(n=60, n_classes=4, shift=-30.0):
    """Known classes far from every unknown blob."""
    vectors, labels = make_blobs(n, n_classes, distance=12.0, seed=1)
    return vectors + np.float32(shift), labels


def grouped(unknown, settings=AUTO, seed=0):
    return grouped_beside(*known_blobs(), unknown, settings, seed=seed)


def grouped_beside(known, labels, unknown, settings=AUTO, seed=0):
    """Where known classes do not scale the space."""
    unknown, known = (Placed(rows, rows) for rows in (unknown, known))
    return group_unknown(unknown, known, labels, settings, seed=seed)


def test_an_item_joins_the_group_of_its_nearest_items():
    items = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]], np.float32)
    tree = GroupTree(((-1, -2),), (0.9,), (2, 2))
    grouping = Grouping(items, np.array([0, 0, 1, 1]), tree, (0, 1), np.ones(2), np.inf, 0)
    rows = np.array([[1.0, 0.0], [8.0, 0.5], [10.0, 0.0]], np.float32)
    assert grouping.assign(rows).tolist() == [0, 1, 1]
    assert grouping.regrouped((0, 0)).assign(rows).tolist() == [0, 0, 0]


@counts_groups
@pytest.mark.parametrize("n", [pytest.param(2, marks=pytest.mark.slow), 5])
def test_well_separated_groups_are_counted_right(n):
    grouping = grouped(blobs(*[80] * n)[0])
    assert grouping.n_groups == n
    assert grouping.tree.distribution()[n - 1] > 0.7


@counts_groups
@pytest.mark.parametrize("n", [60, pytest.param(200, marks=pytest.mark.slow), 800])
def test_one_cloud_is_one_group(n):
    assert grouped(cloud(n)).n_groups == 1


@counts_groups
@pytest.mark.usefixtures("just_as_users_get_it")
def test_known_classes_of_two_parts_make_such_a_class_likely():
    parts, _ = blobs(100, 100, distance=5)
    shifts = np.array([[40], [80], [120], [160]], np.float32)
    twofold = np.concatenate([parts - shift for shift in shifts])
    labels = np.repeat(range(4), len(parts))
    assert grouped(parts).tree.distribution()[0] < 0.05
    assert grouped_beside(twofold, labels, parts).tree.distribution()[0] > 0.3


@counts_groups
def test_a_few_wrong_answers_do_not_bridge_two_groups():
    vectors, labels = blobs(150, 150)
    known, classes = known_blobs()
    mixed = np.concatenate([vectors, known[::20]])
    grouping = grouped_beside(known, classes, mixed)
    assert grouping.n_groups == 2
    np.testing.assert_array_equal(
        grouping.assign(mixed)[:300] == grouping.assign(mixed)[0], labels == 0
    )


def test_groups_are_the_blobs_the_largest_first():
    vectors, labels = blobs(40, 120, 80)
    groups = grouped(vectors).assign(vectors)
    np.testing.assert_array_equal(groups, np.array([2, 0, 1])[labels])


def test_items_beyond_those_fitted_follow_their_neighbours():
    vectors, labels = blobs(1_300, 1_250)
    grouping = grouped(vectors)
    assert len(grouping.items) <= N_FITTED
    groups = grouping.assign(vectors)
    assert np.mean((groups == groups[0]) == (labels == 0)) > 0.99


def test_items_far_from_everything_are_scattered():
    vectors, _ = blobs(80, 80)
    rubbish = np.random.default_rng(0).uniform(-400, 400, (12, 8)).astype(np.float32)
    grouping = grouped(np.concatenate([vectors, rubbish]))
    assert grouping.n_groups == 2
    assert (grouping.assign(rubbish) == 2).mean() > 0.8
    assert (grouping.assign(vectors) < 2).mean() > 0.98


def test_nothing_is_scattered_where_known_items_are_all_the_same():
    vectors, _ = blobs(80, 80)
    known = np.repeat(np.full((2, 8), -30, np.float32), 40, axis=0)
    grouping = grouped_beside(known, np.repeat([0, 1], 40), vectors)
    assert set(grouping.assign(vectors)) == set(range(grouping.n_groups))


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_a_number_of_groups_that_is_given_is_kept(n):
    vectors, _ = blobs(60, 60)
    grouping = grouped(vectors, ClusterSettings(n_groups=n))
    assert grouping.n_groups == n
    assert set(grouping.assign(vectors)) >= set(range(n))


def test_there_are_never_more_groups_than_distinct_items():
    twins = np.repeat(np.eye(3, 8, dtype=np.float32), 2, axis=0)
    assert grouped(twins, ClusterSettings(n_groups=9)).n_groups <= 3


@pytest.mark.parametrize("n", [1, 2, 3, 29])
def test_a_few_items_are_one_group(n):
    grouping = grouped(cloud(n))
    assert grouping.n_groups == 1
    assert grouping.assign(cloud(n)).tolist() == [0] * n


def test_a_few_items_can_still_be_parted_on_request():
    few = np.concatenate([cloud(9), cloud(9) + 20])
    grouping = grouped(few)
    assert grouping.n_groups == 1
    parted = grouping.regrouped(grouping.tree.split(grouping.groups, 0))
    assert parted.assign(few).tolist() in ([0] * 9 + [1] * 9, [1] * 9 + [0] * 9)


@pytest.mark.parametrize("n_groups", [None, 4])
def test_items_that_are_all_the_same_are_one_group(n_groups):
    same = np.ones((50, 8), np.float32)
    grouping = grouped(same, ClusterSettings(n_groups=n_groups))
    assert grouping.n_groups == 1
    assert set(grouping.assign(same)) == {0}


def test_many_twins_of_a_few_items_can_be_grouped():
    twins = np.repeat(cloud(40), 5, axis=0)
    assert grouped(twins, ClusterSettings(n_groups=5)).n_groups == 5
    assert grouped(twins).n_groups >= 1


def test_no_unknown_items_make_no_groups():
    grouping = grouped(np.empty((0, 8), np.float32))
    assert grouping.n_groups == 0
    assert grouping.items.shape == (0, 8)


def test_an_unknown_item_that_comes_after_a_pool_without_any_can_be_assigned():
    grouping = grouped(np.empty((0, 8), np.float32))
    assert grouping.assign(np.ones((2, 8), np.float32)).tolist() == [0, 0]


@counts_groups
def test_known_classes_of_a_few_items_leave_the_default_weights():
    few, labels = known_blobs(5, 2)
    grouping = grouped_beside(few, labels, blobs(100, 100)[0])
    assert grouping.n_groups == 2
    assert grouping.n_episodes == 0
    assert grouped(blobs(100, 100)[0]).n_episodes == 18


def test_the_same_seed_gives_the_same_groups():
    first, again = (grouped(cloud(), ClusterSettings(n_groups=5)) for _ in range(2))
    np.testing.assert_array_equal(first.items, again.items)
    np.testing.assert_array_equal(first.leaves, again.leaves)
    assert first.tree == again.tree


@pytest.mark.parametrize("n_groups", [0, -2])
def test_a_number_of_groups_below_one_is_refused(n_groups):
    with pytest.raises(SettingsError, match=f"is {n_groups}; give a number from 1"):
        ClusterSettings(n_groups=n_groups)


def test_what_speaks_for_each_number_is_told():
    unknown, _ = blobs(60, 40, 30)
    evidence = grouped(unknown).evidence
    assert len(evidence) > 4
    assert [each.borders for each in evidence[:3]] == [0, 1, 2]
    assert [each.next_border for each in evidence[:2]] == [True, True]
    assert evidence[2].silhouette == max(each.silhouette for each in evidence)
    assert evidence[2].smallest == pytest.approx(30 / 130, abs=0.01)


def test_of_a_few_items_nothing_speaks_for_any_number():
    assert grouped(blobs(8, 6)[0]).evidence == ()
