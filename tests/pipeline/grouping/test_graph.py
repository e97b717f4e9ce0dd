"""A graph of neighbours, and what it takes to cut it."""

import numpy as np
import pytest

from s2osc.pipeline.grouping.graph import (
    best_cut,
    cut_at,
    cuts,
    cuts_by_rank,
    links,
    nearest_others,
)
from samples import make_blobs


def test_nearest_others_are_the_nearest_and_never_the_item_itself():
    rows = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert np.sort(nearest_others(rows, 2)).tolist() == [[1, 2], [0, 2], [0, 1], [1, 2]]


def test_neighbours_of_copies_are_found_among_the_items():
    rows = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert nearest_others(rows, 1, rows + 2.2)[:, 0].tolist() == [2, 2, 3, 2]


def test_there_are_no_more_neighbours_than_others():
    assert nearest_others(np.eye(3), 10).shape == (3, 2)


def test_large_values_do_not_drown_small_differences():
    rows = np.array([[0.0], [0.1], [0.3]], np.float32) + np.float32(10_000)
    assert nearest_others(rows, 1)[:, 0].tolist() == [1, 0, 1]


def test_links_are_counted_from_both_ends():
    nearest = np.array([[1], [0], [3], [0]])
    assert links(nearest, np.array([0, 0, 1, 1])).tolist() == [[4, 1], [1, 2]]


def test_the_normalised_cut_by_hand():
    # One link of five in the first group, and of three in the second, leads to the other.
    nearest = np.array([[1], [0], [3], [0]])
    found = cuts(nearest, np.array([0, 0, 1, 1]))
    assert found == pytest.approx(np.array([[0, 1 / 5 + 1 / 3], [1 / 5 + 1 / 3, 0]]))


def test_a_third_group_does_not_enter_the_cut_between_two():
    nearest = np.array([[1], [0], [3], [0], [5], [0]])
    groups = np.array([0, 0, 1, 1, 2, 2])
    assert cuts(nearest, groups)[0, 1] == pytest.approx(1 / 5 + 1 / 3)


def test_several_sets_of_rows_are_cut_as_each_by_itself():
    sets = np.random.default_rng(0).normal(size=(4, 12, 3)).astype(np.float32)
    nearest = nearest_others(sets, 3)
    sides = np.repeat([0, 1], [5, 7])
    for each, rows, cut in zip(nearest, sets, cut_at(nearest, 5), strict=True):
        assert (each == nearest_others(rows, 3)).all()
        assert cut == cuts(each, sides)[0, 1]


def test_cuts_along_a_ranking_are_those_between_its_two_sides():
    random = np.random.default_rng(0)
    nearest = nearest_others(random.normal(size=(30, 2)), 3)
    rank = random.permutation(30)
    found = cuts_by_rank(nearest, rank)
    for place in range(1, 30):
        assert found[place] == cuts(nearest, (rank >= place).astype(int))[0, 1]


def test_the_best_cut_parts_two_blobs():
    vectors, labels = make_blobs(60, 2, distance=12.0)
    found = best_cut(vectors, np.random.default_rng(0))
    assert found.value == 0
    assert len(np.unique(np.stack([found.sides, labels]), axis=1).T) == 2


def test_both_sides_of_a_cut_have_a_tenth():
    cloud = np.random.default_rng(0).normal(size=(100, 5))
    found = best_cut(cloud, np.random.default_rng(0))
    assert 10 <= found.sides.sum() <= 90
    assert 0.05 < found.value < 1
