import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.report.layout import draw_map, fit_to_page, sample_items


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=200), st.integers(9, 50), st.integers(0, 99)
)
def test_a_sample_holds_every_kind_and_no_item_twice(kinds, at_most, seed):
    chosen = sample_items(np.array(kinds), at_most, seed=seed)
    assert len(chosen) == min(at_most, len(kinds))
    assert (np.diff(chosen) > 0).all()
    assert {kinds[item] for item in chosen} == set(kinds)


def test_items_of_one_cluster_are_neighbours_on_the_map():
    random = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 40)
    embeddings = random.normal(size=(120, 64)) + 12 * np.eye(3, 64)[kinds]
    drawn = draw_map(embeddings.astype(np.float32), kinds, seed=0)
    gaps = np.linalg.norm(drawn.points[:, None] - drawn.points, axis=2) + 9 * np.eye(120)
    assert (kinds[gaps.argmin(axis=1)] == kinds).mean() > 0.98


@pytest.mark.parametrize("n", [1, 2, 10, 50])
@pytest.mark.parametrize("dimensions", [1, 2, 40])
def test_identical_items_share_a_point(n, dimensions):
    drawn = draw_map(np.ones((n, dimensions), np.float32), np.zeros(n, int), seed=0)
    assert (drawn.points == 0).all()
    assert drawn.method.startswith("one point")


@pytest.mark.parametrize("n", [2, 3, 19, 20, 40])
@pytest.mark.parametrize("dimensions", [1, 2, 40])
def test_small_and_thin_pools_are_placed_within_the_page(n, dimensions):
    embeddings = np.random.default_rng(0).normal(size=(n, dimensions)).astype(np.float32)
    points = draw_map(embeddings, np.zeros(n, int), seed=0).points
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()
    assert points.min() == 0
    assert points.max() == pytest.approx(1)


def test_many_copies_of_few_items_are_placed():
    embeddings = np.repeat(np.eye(3, 5, dtype=np.float32), 30, axis=0)
    points = draw_map(embeddings, np.zeros(90, int), seed=0).points
    assert np.isfinite(points).all()


def test_the_widest_direction_lies_level():
    line = np.linspace(0, 1, 50)
    points = fit_to_page(np.stack([0.1 * line, line], axis=1))
    assert np.ptp(points[:, 0]) == pytest.approx(1)
    assert np.ptp(points[:, 1]) == pytest.approx(0, abs=1e-9)


def test_global_random_state_is_left_as_found():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    draw_map(np.random.default_rng(0).normal(size=(30, 4)), np.zeros(30, int), seed=0)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
