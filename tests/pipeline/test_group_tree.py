"""Groups within groups: how many, which leaf in which, and other groups on request."""

import numpy as np
import pytest

from s2osc.errors import DataError, SettingsError
from s2osc.pipeline.group_tree import GroupTree

#            0 (.9)
#      1 (.8)      2 (.3)
#    l0    l1    l2      3 (.6)
#                       l3    l4
# The splits are made in this order.
TREE = GroupTree(((1, 2), (-1, -2), (-3, 3), (-4, -5)), (0.9, 0.8, 0.3, 0.6), (9, 8, 7, 6, 5))


def test_the_distribution_of_the_number_follows_from_the_splits_one_after_the_other():
    chances = TREE.distribution()
    assert chances.sum() == pytest.approx(1)
    assert chances[0] == pytest.approx(0.1)
    assert chances[1] == pytest.approx(0.9 * 0.2)
    assert chances[4] == pytest.approx(0.9 * 0.8 * 0.3 * 0.6)


def test_chances_that_are_given_are_those_of_the_tree():
    wanted = np.array([0.1, 0.2, 0.4, 0.3])  # of five groups nothing is known: never
    given = TREE.with_chances(wanted)
    np.testing.assert_allclose(given.distribution(), [*wanted, 0], atol=1e-3)
    assert given.sides == TREE.sides


def test_the_likely_number_is_the_median():
    assert TREE.with_chances(np.array([0.4, 0.2, 0.4])).likely_number() == 2
    assert TREE.with_chances(np.array([1.0])).likely_number() == 1


def test_a_cut_takes_the_first_splits_and_numbers_the_largest_first():
    assert TREE.cut(1) == (0,) * 5
    assert TREE.cut(2) == (1, 1, 0, 0, 0)
    assert TREE.cut(3) == (1, 2, 0, 0, 0)
    assert sorted(TREE.cut(5)) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n", [0, 6])
def test_more_groups_than_leaves_are_refused(n):
    with pytest.raises(DataError, match=f"{n} groups were asked for; .* from 1 to 5"):
        TREE.cut(n)


def test_merging_undoes_a_split():
    assert TREE.merge(TREE.cut(3), (1, 2)) == (1, 1, 0, 0, 0)
    assert TREE.split(TREE.cut(2), 1) == (1, 2, 0, 0, 0)


def test_a_leaf_cannot_be_split_and_a_group_that_is_not_there_not_merged():
    with pytest.raises(DataError, match="group 1 has no parts"):
        TREE.split(TREE.cut(3), 1)
    with pytest.raises(DataError, match="there is no group 7; give numbers from 0 to 2"):
        TREE.merge(TREE.cut(3), (0, 7))
    with pytest.raises(DataError, match="1 group is to be merged"):
        TREE.merge(TREE.cut(3), (0, 0))


def test_one_thing_is_changed_at_a_time():
    groups = TREE.cut(2)
    assert TREE.regroup(groups, 3) == TREE.cut(3)
    assert TREE.regroup(groups, split=0) == TREE.split(groups, 0)
    assert TREE.regroup(groups, merge=(0, 1)) == (0,) * 5
    with pytest.raises(SettingsError, match="give a number of groups, or"):
        TREE.regroup(groups, 2, split=0)


def test_a_group_is_as_sure_as_the_numbers_with_which_it_is_there():
    tree = TREE.with_chances(np.array([0.1, 0.2, 0.4, 0.3]))
    # Leaves 2 to 4 are together with two groups and three; leaf 0 is alone from three groups on.
    assert tree.certainty((1, 2, 0, 0, 0)) == pytest.approx((0.6, 0.7, 0.7), abs=1e-3)
    assert tree.certainty((0, 1, 0, 1, 1)) == (0, 0)


@pytest.mark.parametrize(
    "parts",
    [
        (((0, -1),), (0.5,), (1, 1)),
        (((-1, -1),), (0.5,), (1, 1)),
        (((-1, -2),), (1.5,), (1, 1)),
        (((-1, -2),), (0.5,), (1,)),
    ],
)
def test_what_is_no_tree_is_refused(parts):
    with pytest.raises(ValueError, match="do not make a tree"):
        GroupTree(*parts)
