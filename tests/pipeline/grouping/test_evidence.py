"""Some items in every number of groups, and what speaks for each number."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.classes import UsualClass, usual_class, walks_within
from s2osc.pipeline.grouping.evidence import (
    MEASURES,
    MOST_GROUPS,
    Parts,
    find_parts,
    measure_numbers,
)
from s2osc.pipeline.grouping.space import Placed
from samples import make_blobs

BLOBS, CLASSES = make_blobs(60, 4, distance=9.0)


def random():
    return np.random.default_rng(0)


def measures(items):
    usual = usual_class(BLOBS, CLASSES, walks_within(BLOBS, CLASSES, random()))
    parts = find_parts(items, MOST_GROUPS, random())
    found = measure_numbers(Placed(items, items), parts, usual)
    return dict(zip(MEASURES, found.T, strict=True))


def test_blobs_are_the_first_parts():
    parts = find_parts(BLOBS, MOST_GROUPS, random())
    assert adjusted_rand_score(parts.groups(4), CLASSES) == 1
    assert sum(parts.tree.sizes) == len(BLOBS)


def test_groups_are_mended_where_a_tree_has_split_wrongly():
    corners = np.array([[0.0, 0.0], [0.0, 9.0], [9.0, 0.0]])
    places = np.repeat(corners, 20, axis=0) + random().normal(size=(60, 2))
    wrong = np.repeat([0, 1, 2, 0, 1, 2], [15, 10, 10, 5, 10, 10])
    tree = GroupTree(((1, -1), (-2, -3)), (0.0, 0.0), (20, 20, 20))
    mended = Parts(tree, wrong, places, np.zeros(2)).groups(3)
    assert adjusted_rand_score(mended, np.repeat([0, 1, 2], 20)) == 1


@pytest.mark.parametrize("number", [1, 2, 7])
def test_a_tree_around_a_number_has_its_groups_as_a_cut(number):
    parts = find_parts(BLOBS, MOST_GROUPS, random())
    around = parts.around(number)
    cut = np.array(around.tree.cut(number))[around.leaves]
    assert adjusted_rand_score(cut, parts.groups(number)) == 1
    assert around.tree.n_leaves == parts.tree.n_leaves


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
    assert found["silhouette in the modes"][0] == 0
    assert found["one group"].tolist() == [1] + [0] * (MOST_GROUPS - 1)


def test_what_speaks_for_the_right_number_is_highest_there():
    found = measures(BLOBS)
    assert found["silhouette in the modes"].argmax() + 1 == 4
    assert found["narrower than known classes"][0] == 0 < found["narrower than known classes"][8]


def test_a_number_is_the_farther_from_that_by_silhouette_the_more_it_differs_as_a_factor():
    for name in ("near the number by silhouette", "near the number by silhouette, scaled"):
        found = measures(BLOBS)[name]
        np.testing.assert_allclose(found[[1, 3, 7]], [-np.log(2), 0, -np.log(2)])


def test_modes_between_blobs_are_slower_than_those_in_known_ones():
    found = measures(BLOBS)
    assert found["next mode slower than a class"][:3].min() > 1
    assert found["next mode slower than a class"][3] < 0.5
    gained = np.diff(found["modes slower than a class"])
    np.testing.assert_allclose(gained, found["next mode slower than a class"][:-1])


def test_a_class_that_is_slow_by_itself_is_no_border():
    parts = find_parts(BLOBS, MOST_GROUPS, random())
    quick, slow = (parts.slower_than(UsualClass(8.0, np.full(5, odds)), 4) for odds in (0.0, 9.0))
    assert (quick > slow).all()
    assert slow.max() < 0


def test_items_are_measured_that_have_one_part():
    assert measures(np.ones((40, 3)))["silhouette in the modes"].tolist() == [0]
