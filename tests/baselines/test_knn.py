"""The distance to the k-th nearest training item."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from s2osc.baselines import knn
from s2osc.baselines.knn import KNN, Bank, choose_k
from s2osc.errors import SettingsError


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)


def test_a_training_item_is_its_own_nearest_neighbour(points):
    np.testing.assert_array_equal(Bank.of(points).distance(points, k=1), 0)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_distance_is_that_of_a_plain_search_among_directions(points, k):
    bank, queries = points[:40], points[40:]
    plain = NearestNeighbors(n_neighbors=k).fit(bank / np.linalg.norm(bank, axis=1, keepdims=True))
    expected, _ = plain.kneighbors(queries / np.linalg.norm(queries, axis=1, keepdims=True))
    np.testing.assert_allclose(Bank.of(bank).distance(queries, k), expected[:, -1], atol=1e-6)


def test_only_the_direction_of_an_item_counts(points):
    bank = Bank.of(points[:40])
    near = bank.distance(points[40:], k=2)
    np.testing.assert_allclose(bank.distance(100 * points[40:], k=2), near, atol=1e-6)


def test_queries_in_chunks_give_the_same(points, monkeypatch):
    bank = Bank.of(points[:40])
    whole = bank.distance(points[40:], k=2)
    monkeypatch.setattr(knn, "MOST_DISTANCES", 120)
    np.testing.assert_allclose(bank.distance(points[40:], k=2), whole, atol=1e-6)


def test_a_bank_of_fewer_items_gives_the_distance_to_the_farthest():
    bank = Bank.of(np.eye(2, dtype=np.float32))
    np.testing.assert_allclose(bank.distance(np.array([[1.0, 0.0]]), k=5), np.sqrt([2]), rtol=1e-6)


def test_an_item_without_a_direction_is_at_distance_one(points):
    assert Bank.of(points).distance(np.zeros((1, 6)), k=3) == pytest.approx(1)


def test_few_training_items_have_five_neighbours_and_many_one_in_a_thousand():
    assert [choose_k(n) for n in (10, 5_999, 6_000, 50_000)] == [5, 5, 6, 50]


@pytest.mark.parametrize("k", [0, -1])
def test_no_neighbours_are_refused(k):
    with pytest.raises(SettingsError, match="k is"):
        KNN(k=k)
