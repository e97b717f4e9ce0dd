"""Frequent directions keep the second moments of the rows, within the promised bound."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.baselines.frequent_directions import merge, shrink, sketch
from s2osc.errors import SettingsError


def assert_within_bound(rows: np.ndarray, sketched: np.ndarray, n_directions: int) -> None:
    """0 <= A'A - B'B <= |A|^2 / l, up to rounding."""
    errors = np.linalg.eigvalsh(rows.T @ rows - sketched.T @ sketched)
    mass = (rows**2).sum()
    assert errors.min() >= -1e-9 * mass
    assert errors.max() <= mass / n_directions + 1e-9 * mass


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 500),
    d=st.integers(1, 20),
    n_directions=st.integers(2, 30),
)
def test_the_error_stays_within_the_bound(seed, n, d, n_directions):
    random = np.random.default_rng(seed)
    rows = random.normal(size=(n, d)) * random.exponential(size=d) + random.normal(size=d)
    sketched = sketch(rows, n_directions)
    assert len(sketched) < n_directions
    assert_within_bound(rows, sketched, n_directions)


def test_a_sketch_that_has_to_forget_does():
    rows = np.random.default_rng(0).normal(size=(500, 20))
    sketched = sketch(rows, 10)
    assert sketched.shape == (9, 20)
    assert_within_bound(rows, sketched, 10)
    assert (sketched**2).sum() < 0.9 * (rows**2).sum()


def test_rows_of_low_rank_are_kept_exactly():
    random = np.random.default_rng(0)
    rows = random.normal(size=(500, 4)) @ random.normal(size=(4, 20))
    sketched = sketch(rows, 5)
    assert len(sketched) == 4
    np.testing.assert_allclose(sketched.T @ sketched, rows.T @ rows, rtol=1e-8, atol=1e-8)


def test_merged_sketches_keep_the_bound_of_all_rows():
    random = np.random.default_rng(0)
    first, second = random.normal(size=(300, 20)), 2 * random.normal(size=(200, 20)) + 1
    both = np.vstack([first, second])
    assert_within_bound(both, merge(sketch(first, 10), sketch(second, 10), 10), 10)
    assert_within_bound(both, merge(sketch(first, 10), second, 10), 10)


def test_shrinking_takes_the_square_of_the_last_value_kept_from_all():
    squares = (shrink(np.diag([3.0, 2.0, 1.0, 1.0]), 3) ** 2).round(9)
    assert squares.tolist() == [[8, 0, 0, 0], [0, 3, 0, 0]]


def test_rows_of_a_sketch_are_orthogonal_and_fall_in_length():
    sketched = sketch(np.random.default_rng(0).normal(size=(100, 12)), 8)
    products = sketched @ sketched.T
    np.testing.assert_allclose(products, np.diag(np.diag(products)), atol=1e-9)
    assert (np.diff(np.diag(products)) <= 0).all()


def test_no_rows_and_rows_of_zeros_leave_an_empty_sketch():
    assert sketch(np.empty((0, 3)), 4).shape == (0, 3)
    assert sketch(np.zeros((9, 3)), 4).shape == (0, 3)


def test_rows_are_left_as_they_were():
    rows = np.random.default_rng(0).normal(size=(50, 5))
    before = rows.copy()
    sketch(rows, 3)
    np.testing.assert_array_equal(rows, before)


def test_a_sketch_of_one_direction_is_refused():
    with pytest.raises(SettingsError, match="1 directions keeps nothing"):
        sketch(np.ones((3, 3)), 1)
