"""K-means with labelled classes, and the number of classes that the others add."""

import numpy as np
import pytest

from s2osc.baselines.semi_supervised_kmeans import (
    draw_centres,
    estimate_n_new,
    mean_silhouette,
    semi_supervised_kmeans,
)


def blobs(n_classes, n_each=40, seed=0):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n_each)
    return 12 * np.eye(8)[labels] + random.normal(size=(len(labels), 8)), labels


def test_labelled_classes_keep_their_number_and_new_ones_follow():
    rows, labels = blobs(4)
    labelled = (labels < 2) & (np.arange(len(labels)) % 2 == 0)
    found = semi_supervised_kmeans(rows[labelled], labels[labelled], rows, 2, seed=0)
    assert found.centres.shape == (4, 8)
    np.testing.assert_array_equal(found.nearest[labels < 2], labels[labels < 2])
    assert len(set(found.nearest[labels == 2])) == len(set(found.nearest[labels == 3])) == 1
    assert set(found.nearest[labels >= 2]) == {2, 3}


def test_a_labelled_item_pulls_its_own_centre_wherever_it_lies():
    labelled, labels = np.array([[0.0], [10.0], [12.0]]), np.array([0, 0, 1])
    found = semi_supervised_kmeans(labelled, labels, np.array([[11.0]]), 0, seed=0)
    np.testing.assert_allclose(found.centres, [[5.0], [11.5]])
    assert found.nearest.tolist() == [1]
    assert found.inertia == pytest.approx(25 + 25 + 0.25 + 0.25)


def test_the_start_with_the_least_inertia_wins():
    rows, labels = blobs(6, 12)
    known = labels < 2
    runs = [
        semi_supervised_kmeans(rows[known], labels[known], rows, 4, seed=0, n_starts=n).inertia
        for n in (1, 20)
    ]
    assert runs[1] <= runs[0]
    spread = sum(((rows[labels == c] - rows[labels == c].mean(0)) ** 2).sum() for c in range(6))
    both = spread + sum(
        ((rows[labels == c] - rows[labels == c].mean(0)) ** 2).sum() for c in range(2)
    )
    assert runs[1] == pytest.approx(both)


def test_the_input_is_left_as_it_was():
    rows, labels = blobs(3)
    before = rows.copy()
    semi_supervised_kmeans(rows[:40], labels[:40], rows, 2, seed=0)
    np.testing.assert_array_equal(rows, before)


def test_an_item_on_a_centre_is_never_drawn_and_a_far_one_nearly_always():
    rows = np.array([[0.0], [0.1], [10.0]])
    random = np.random.default_rng(0)
    drawn = [draw_centres(rows, np.zeros((1, 1)), 1, random)[0, 0] for _ in range(200)]
    assert 0.0 not in drawn
    assert np.mean(np.array(drawn) == 10) > 0.95


def test_identical_items_can_still_be_drawn():
    rows = np.ones((3, 2))
    drawn = draw_centres(rows, np.ones((1, 2)), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn, np.ones((2, 2)))


def test_three_blobs_of_which_one_is_labelled_add_two():
    rows, labels = blobs(3)
    assert estimate_n_new(rows[labels == 0], np.zeros(40, int), rows, seed=0) == 2


def test_the_silhouette_of_two_points_taken_twice_is_one_and_of_one_group_the_worst():
    rows = np.array([[0.0], [0.0], [1.0], [1.0]])
    assert mean_silhouette(rows, np.array([0, 0, 1, 1])) == 1
    assert mean_silhouette(rows, np.zeros(4, int)) == -1


@pytest.mark.parametrize("n_new", [1, 2, 3])
def test_the_number_of_new_classes_beside_several_known_ones_is_found(n_new):
    rows, labels = blobs(3 + n_new)
    known = (labels < 3) & (np.arange(len(labels)) % 2 == 0)
    assert estimate_n_new(rows[known], labels[known], rows[~known], seed=0) == n_new


def test_one_new_class_is_the_least_answer():
    rows, labels = blobs(2)
    assert estimate_n_new(rows, labels, rows[:3], seed=0) == 1


@pytest.mark.parametrize("n_new", [1, 2, 3])
def test_lengths_of_items_are_no_classes(n_new):
    random = np.random.default_rng(0)
    directions = np.abs(random.normal(size=(5 + n_new, 32))) ** 3
    labels = np.repeat(np.arange(5 + n_new), 120)
    rows = directions[labels] + 0.2 * np.abs(random.normal(size=(len(labels), 32)))
    rows *= random.lognormal(0, 0.8, size=(len(rows), 1))
    is_labelled = (labels < 5) & (random.random(len(labels)) < 0.5)
    found = estimate_n_new(rows[is_labelled], labels[is_labelled], rows[~is_labelled], seed=0)
    assert found == n_new


def test_new_classes_are_counted_in_a_part_of_many_items(monkeypatch):
    sizes = []

    def count(labelled, labels, unlabelled, n_new, *, seed):
        sizes.append((len(labelled), np.unique(labels).tolist(), len(unlabelled)))
        return semi_supervised_kmeans(labelled, labels, unlabelled, n_new, seed=seed, n_starts=1)

    monkeypatch.setattr("s2osc.baselines.semi_supervised_kmeans.N_COUNTED", 40)
    monkeypatch.setattr("s2osc.baselines.semi_supervised_kmeans.semi_supervised_kmeans", count)
    rows = np.random.default_rng(0).normal(size=(300, 4))
    labels = np.repeat([0, 1], [90, 10])
    estimate_n_new(rows[:100], labels, rows[100:], seed=0)
    assert set(map(str, sizes)) == {str((30, [0, 1], 40))}
