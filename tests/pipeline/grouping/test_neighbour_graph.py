"""A graph of neighbours, and the slowest walks on it."""

import numpy as np

from s2osc.pipeline.grouping.neighbour_graph import closeness, nearest_others, slowest_modes
from samples import make_blobs


def test_nearest_others_are_the_nearest_and_never_the_item_itself():
    rows = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert np.sort(nearest_others(rows, 2)).tolist() == [[1, 2], [0, 2], [0, 1], [1, 2]]


def test_there_are_no_more_neighbours_than_others():
    assert nearest_others(np.eye(3), 10).shape == (3, 2)


def test_large_values_do_not_drown_small_differences():
    rows = np.array([[0.0], [0.1], [0.3]], np.float32) + np.float32(10_000)
    assert nearest_others(rows, 1)[:, 0].tolist() == [1, 0, 1]


def test_a_neighbour_in_another_group_is_not_close_however_small_the_own_one_is():
    rows, labels = make_blobs(40, 2, distance=12.0)
    rows, labels = rows[31:], labels[31:]  # 9 of one, 40 of the other
    nearest = nearest_others(rows, 20)
    close = closeness(rows, nearest)
    is_own = labels[nearest] == labels[:, None]
    assert close[~is_own].max() < 0.05 < np.median(close[is_own])


def test_closeness_does_not_depend_on_the_unit():
    rows, _ = make_blobs(40, 2, distance=12.0)
    nearest = nearest_others(rows, 20)
    np.testing.assert_allclose(
        closeness(rows, nearest), closeness(1_000 * rows, nearest), rtol=1e-3
    )


def test_the_slowest_mode_after_the_steady_one_parts_two_blobs():
    rows, labels = make_blobs(40, 2, distance=12.0)
    nearest = nearest_others(rows, 5)
    close = closeness(rows, nearest)
    values, modes = slowest_modes(nearest, close, 3, np.random.default_rng(0))
    assert values[0] > 0.999
    assert (np.diff(values) <= 0).all()
    assert len(set(np.sign(modes[labels == 0, 1]))) == 1
    assert set(np.sign(modes[labels == 0, 1])) != set(np.sign(modes[labels == 1, 1]))
