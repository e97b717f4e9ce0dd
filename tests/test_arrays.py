"""Rows of numbers: chunks, unit length, principal components."""

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_info, threadpool_limits

from s2osc.arrays import (
    chunks,
    in_chunks,
    in_one_thread,
    leading_components,
    nearest_rows,
    principal_axes,
    unit_rows,
)


@pytest.mark.parametrize("n_rows", [0, 1, 4, 5, 9])
def test_chunks_cover_every_row_once(n_rows):
    rows, sizes = np.arange(2 * n_rows).reshape(n_rows, 2), []

    def sums(part):
        sizes.append(len(part))
        return part.sum(1)

    np.testing.assert_array_equal(in_chunks(sums, rows, size=4), rows.sum(1))
    assert max(sizes, default=0) <= 4
    assert sum(sizes) == n_rows
    np.testing.assert_array_equal(in_chunks(lambda part: part, rows, 2, size=4), rows)


def test_nothing_has_no_chunks():
    assert chunks(0) == []


def test_unit_rows_keep_their_direction_and_zeros_stay_zeros():
    rows = np.random.default_rng(0).normal(size=(5, 3)) * 40
    rows[2] = 0
    unit = unit_rows(rows)
    lengths = np.linalg.norm(rows, axis=1)
    np.testing.assert_allclose(unit * lengths[:, None], rows)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), [1, 1, 0, 1, 1])


def test_principal_components_keep_distances_and_lead_with_the_widest():
    rows = np.random.default_rng(0).normal(size=(60, 3)) * [1, 10, 3] + 7
    components = leading_components(rows, 30)
    assert components.shape == (60, 3)
    np.testing.assert_allclose(
        np.linalg.norm(components[0] - components[1:], axis=1),
        np.linalg.norm(rows[0] - rows[1:], axis=1),
    )
    deviations = components.std(0)
    assert (deviations[:-1] > deviations[1:]).all()


@pytest.mark.parametrize("rows", [np.zeros((0, 4)), np.ones((1, 4)), np.ones((9, 4))], ids=len)
def test_rows_that_do_not_differ_have_components_of_zero(rows):
    np.testing.assert_array_equal(leading_components(rows, 30), np.zeros((len(rows), 2)))


def test_one_feature_makes_two_components_of_which_one_is_zero():
    components = leading_components(np.arange(5.0)[:, None], 30)
    np.testing.assert_allclose(np.abs(components), [[2, 0], [1, 0], [0, 0], [1, 0], [2, 0]])


def test_linear_algebra_in_one_thread_has_its_threads_again_afterwards():
    def threads(*, of="blas"):
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == of}

    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        assert in_one_thread(threads)(of="blas") == {1}
        assert threads() == {2}


def test_leading_components_of_rows_far_from_zero_are_those_of_the_same_near_it():
    rows = np.random.default_rng(0).normal(size=(60, 3)) * [3, 2, 1]
    np.testing.assert_allclose(
        leading_components(rows + 1e6, 3), leading_components(rows, 3), atol=1e-6
    )


@pytest.mark.parametrize("k", [1, 5, 40])
def test_the_nearest_rows_are_those_that_scikit_learn_finds(k):
    random = np.random.default_rng(0)
    rows, among = (random.normal(3, 1, (n, 6)).astype(np.float32) for n in (30, 40))
    rows[0] = among[7]
    search = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(among)
    away, places = nearest_rows(rows, among, k)
    np.testing.assert_array_equal(places, search.kneighbors(rows, return_distance=False))
    np.testing.assert_allclose(away, search.kneighbors(rows)[0], atol=1e-6)
    assert [part.shape for part in nearest_rows(rows[:0], among, k)] == [(0, k), (0, k)]


@pytest.mark.parametrize("shape", [(60, 8), (6, 8), (40, 900)])
def test_principal_axes_are_those_of_the_singular_value_decomposition(shape):
    scales = 0.7 ** np.arange(shape[1])
    rows = np.random.default_rng(0).normal(size=shape) * scales
    _, lengths, axes = np.linalg.svd(rows, full_matrices=False)
    found, long = principal_axes(rows, 3, seed=0)
    np.testing.assert_allclose(long, lengths[:3], rtol=1e-6)
    np.testing.assert_allclose(np.abs((found * axes[:3]).sum(1)), 1, rtol=1e-6)
