"""Where nobody known lives: spaces, neighbours, and the distance to the nearest labelled items."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from s2osc.pipeline.filter import neighbours
from s2osc.pipeline.filter.neighbours import (
    Neighbours,
    find_neighbours,
    gradient_histograms,
    input_spaces,
    lack_of_known,
    mahalanobis_distance,
    nearest_labelled,
    principal_components,
)
from samples import make_blobs, make_images


def cloud(n=60, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def find(points, n_scored=None, seed=0):
    n_scored = len(points) if n_scored is None else n_scored
    return find_neighbours(points, n_scored, seed=seed, what="").rows


# Gradients


def edge(axis, *, falling=False):
    """An 8 x 8 image, dark in one half and bright in the other."""
    bright = np.arange(8) >= 4
    image = np.where(bright ^ falling, 200, 0).astype(np.uint8)
    return np.broadcast_to(image if axis == 1 else image[:, None], (8, 8))[None]


@pytest.mark.parametrize(
    ("axis", "falling", "direction"),
    [(1, False, 4), (0, False, 6), (1, True, 0), (0, True, 2)],
    ids=["to the right", "down", "to the left", "up"],
)
def test_an_edge_has_one_direction_in_the_cells_it_runs_through(axis, falling, direction):
    cells = gradient_histograms(edge(axis, falling=falling), [4])[0].reshape(4, 4, 8)
    expected = np.zeros((4, 4, 8))
    # The gradient looks one pixel either way, so the edge lies in the two middle cells of four.
    middle = (slice(None), slice(1, 3)) if axis == 1 else (slice(1, 3), slice(None))
    expected[(*middle, direction)] = np.sqrt(1 / 8)
    np.testing.assert_allclose(cells, expected, atol=1e-3)


def test_an_edge_between_two_directions_is_shared_by_both():
    rows, columns = np.mgrid[:8, :8]
    slope = (4 * columns + 4 * np.tan(np.pi / 8) * rows).astype(np.uint8)[None]
    shares = gradient_histograms(slope, [4])[0].reshape(16, 8) ** 2
    by_direction = shares.sum(0)
    assert by_direction[[4, 5]].sum() > 0.9
    assert by_direction[[4, 5]].min() > 0.2


def test_gradients_see_neither_brightness_nor_contrast():
    image = edge(1)
    np.testing.assert_allclose(
        *gradient_histograms(image // 2 + 50, [4]), *gradient_histograms(image, [4]), atol=1e-4
    )


def test_colour_images_are_seen_in_grey():
    grey = make_images(3)[0]
    colour = np.repeat(grey[..., None], 3, axis=3)
    np.testing.assert_allclose(
        *gradient_histograms(colour, [7]), *gradient_histograms(grey, [7]), atol=1e-4
    )


def test_flat_images_have_no_gradients():
    (found,) = gradient_histograms(np.full((2, 8, 8), 9, np.uint8), [4])
    np.testing.assert_array_equal(found, 0)


def test_no_images_have_no_gradients():
    (found,) = gradient_histograms(np.empty((0, 8, 8), np.uint8), [4])
    assert found.shape == (0, 4 * 4 * 8)


@pytest.mark.parametrize("shape", [(1, 9), (9, 1), (2, 2), (3, 5)])
def test_images_of_a_few_pixels_have_finite_histograms(shape):
    images = np.random.default_rng(0).integers(0, 255, (4, *shape)).astype(np.uint8)
    for n_cells in (4, 7):
        (found,) = gradient_histograms(images, [n_cells])
        assert len(found) == 4
        assert np.isfinite(found).all()


def test_images_are_worked_through_in_chunks(monkeypatch):
    images = make_images(5)[0]
    (whole,) = gradient_histograms(images, [4])
    monkeypatch.setattr(neighbours, "CHUNK", 7)
    np.testing.assert_allclose(*gradient_histograms(images, [4]), whole, atol=1e-6)


# Spaces


def test_points_of_few_axes_stay_as_they_are():
    points = cloud(50, 4)
    np.testing.assert_array_equal(principal_components(points, 30, seed=0), points)


def test_the_leading_components_keep_the_distances_that_matter():
    points = np.concatenate([20 * cloud(200, 2), 0.01 * cloud(200, 50, seed=1)], axis=1)
    found = principal_components(points, 2, seed=0)
    assert found.shape == (200, 2)
    assert found.dtype == np.float32
    np.testing.assert_allclose(
        np.linalg.norm(found - found[0], axis=1),
        np.linalg.norm(points - points[0], axis=1),
        atol=0.5,
    )


@pytest.mark.parametrize("made", [make_images(40)[0].reshape(160, -1), cloud(160, 90)])
def test_the_order_of_items_decides_nothing_about_them(made):
    # Many axes vary alike, so that sums in another order turn those that are found.
    order = np.random.default_rng(0).permutation(len(made))
    found, again = (principal_components(points, 40, seed=0) for points in (made, made[order]))
    np.testing.assert_allclose(again, found[order], rtol=1e-6, atol=1e-6 * np.abs(found).max())


def test_images_have_three_spaces_and_vectors_two():
    assert [space.shape[1] for space in input_spaces(make_images(20)[0], seed=0)] == [40, 60, 60]
    assert [space.shape[1] for space in input_spaces(make_blobs(20)[0], seed=0)] == [8, 8]


def test_in_one_space_the_length_of_a_vector_does_not_matter():
    vectors = np.array([[1.0, 0.0], [5.0, 0.0], [0.0, 2.0], [-6.0, -2.0]], np.float32)
    space, _ = input_spaces(vectors, seed=0)  # their mean is the origin
    np.testing.assert_allclose(space[0], space[1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(space, axis=1), 1, rtol=1e-5)


def test_stacked_views_are_compared_by_their_mean():
    views = cloud(90, 6).reshape(30, 3, 6)
    for stacked, mean in zip(
        input_spaces(views, seed=0), input_spaces(views.mean(1), seed=0), strict=True
    ):
        np.testing.assert_array_equal(stacked, mean)


# Neighbours


def test_neighbours_are_the_nearest_others_nearest_first():
    points = cloud(120)
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(find(points), distances.argsort(1)[:, :12])


def test_only_the_first_are_scored_but_all_are_neighbours():
    points = cloud(120)
    found = find(points, n_scored=50)
    np.testing.assert_array_equal(found, find(points)[:50])
    assert found.max() >= 50


@pytest.mark.parametrize("points", [np.ones((60, 2)), np.repeat(cloud(4), 15, axis=0)])
def test_an_item_is_never_its_own_neighbour_not_even_among_twins(points):
    found = find(points.astype(np.float32))
    assert not (found == np.arange(len(points))[:, None]).any()
    for row in found:
        assert len(set(row.tolist())) == len(row)


def test_of_a_large_crowd_a_sample_is_searched(monkeypatch):
    points = cloud(300)
    monkeypatch.setattr(neighbours, "MOST_REFERENCES", 50)
    found = find(points)
    sample = np.unique(found)
    assert found.shape == (300, 5)
    assert len(sample) <= 50
    assert not (found == np.arange(300)[:, None]).any()
    # Among the sample they are the nearest.
    distances = np.linalg.norm(points[:, None] - points[sample], axis=2)
    distances[points[:, None].tolist() == points[sample].tolist()] = np.inf
    distances[np.arange(300)[:, None] == sample] = np.inf
    np.testing.assert_array_equal(found[:, 0], sample[distances.argmin(1)])


def test_chunks_change_nothing(monkeypatch):
    points = cloud(90)
    whole = find(points)
    monkeypatch.setattr(neighbours, "CHUNK", 7)
    np.testing.assert_array_equal(find(points), whole)


@pytest.mark.parametrize("n", [2, 3, 9])
def test_a_few_items_have_one_neighbour_each(n):
    assert find(cloud(n)).shape == (n, 1)


# The lack of known neighbours


def among_all(rows):
    """Neighbours whose distances do not matter."""
    return Neighbours(rows, np.ones(rows.shape), np.arange(len(rows)))


def test_the_lack_of_known_neighbours_by_hand():
    near = among_all(np.array([[1, 2, 3], [2, 3, 0], [3, 1, 0], [2, 1, 0]]))
    known = np.array([0.0, 0.0, 1.0, 1.0])  # half of all: 1.5 of 3 would be usual, 1 of 2
    np.testing.assert_allclose(
        lack_of_known(near, known, 3), [1 - 2 / 1.5, 1 - 2 / 1.5, 1 - 1 / 1.5, 1 - 1 / 1.5]
    )
    np.testing.assert_allclose(lack_of_known(near, known, 2), [0.0, -1.0, 0.0, 0.0])
    np.testing.assert_allclose(lack_of_known(near, known, 99), lack_of_known(near, known, 3))


def test_where_nobody_known_lives_the_lack_is_whole():
    points, labels = make_blobs(60, 2, distance=20)
    near = among_all(find(points))
    lack = lack_of_known(near, (labels == 0).astype(float), 10)
    np.testing.assert_allclose(lack[labels == 1], 1.0)
    assert lack[labels == 0].max() < 0


def test_whether_an_item_is_a_seed_does_not_enter_its_own_score():
    near = among_all(find(cloud(100)))
    known = (np.arange(100) % 4 == 0).astype(float)
    changed = known.copy()
    changed[7] = 1.0
    # What is found around item 7; that one more is known changes all scores by one factor.
    found, again = ((1 - lack_of_known(near, w, 10)[7]) * w.mean() for w in (known, changed))
    assert again == pytest.approx(found)


def test_without_known_items_every_lack_is_whole():
    near = among_all(find(cloud(40)))
    np.testing.assert_array_equal(lack_of_known(near, np.zeros(40), 4), 1.0)


# The nearest labelled items


def nearest(points, rows, labels, n_classes=2):
    points = np.array(points, np.float32)[:, None]
    return nearest_labelled(
        points, np.array(rows), np.array(labels), n_classes, seed=0, what="nearest"
    )


def test_the_distance_is_that_to_the_fifth_nearest_labelled_item_other_than_the_item_itself():
    found = nearest([0, 1, 2, 3, 4, 5, 6, 100], range(7), [0] * 7)
    np.testing.assert_allclose(found.distance, [5, 4, 3, 3, 3, 4, 5, 98])


def test_most_of_the_nearest_labelled_items_name_the_class():
    found = nearest([0, 1, 2, 10, 11, 12, 0.5, 11.5], range(6), [0, 0, 0, 1, 1, 1])
    # An item does not vote for itself: of the others, two in five are of its class.
    np.testing.assert_array_equal(found.votes[6:], [0, 1])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_a_few_labelled_items_are_near_enough(n):
    found = nearest([0, 3, 6, 20], range(n), [1] * n)
    assert np.isfinite(found.distance).all()
    np.testing.assert_array_equal(found.votes, 1)


def test_of_many_labelled_items_a_sample_is_searched(monkeypatch):
    monkeypatch.setattr(neighbours, "MOST_LABELLED", 10)
    found = nearest(np.arange(200), range(100), [0] * 100)
    whole = np.abs(np.arange(200)[:, None] - np.arange(100))
    assert (found.distance >= np.sort(whole, axis=1)[:, 5] - 1).all()
    assert np.isfinite(found.distance).all()


def test_only_those_asked_about_look_for_labelled_items():
    points, rows, labels = cloud(60), np.arange(30, 60), np.arange(30) % 2
    whole = nearest_labelled(points, rows, labels, 2, seed=0, what="")
    few = nearest_labelled(points, rows, labels, 2, n_scored=20, seed=0, what="")
    np.testing.assert_allclose(few.distance, whole.distance[:20])
    np.testing.assert_array_equal(few.votes, whole.votes[:20])


def rounded_twins():
    """Most items have others as near, and some are the same."""
    return np.round(cloud(400, d=2))


def far_from_the_labelled():
    return cloud(400) + np.where(np.arange(400) < 40, 50, 0)[:, None].astype(np.float32)


@pytest.mark.parametrize("made", [lambda: cloud(400), rounded_twins, far_from_the_labelled])
def test_labelled_items_read_off_the_neighbours_are_those_that_a_search_finds(made):
    points, rows = made(), np.arange(100, 250)
    labels = rows % 3
    near = find_neighbours(points, len(points), seed=0, what="")
    searched, read_off = (
        nearest_labelled(points, rows, labels, 3, neighbours=each, seed=0, what="")
        for each in (None, near)
    )
    np.testing.assert_allclose(read_off.distance, searched.distance, atol=1e-6)
    np.testing.assert_array_equal(read_off.votes, searched.votes)


def test_of_a_sample_that_holds_enough_labelled_items_these_are_the_ones(monkeypatch):
    points, rows = cloud(400), np.arange(100, 250)
    monkeypatch.setattr(neighbours, "MOST_REFERENCES", 250)
    near = find_neighbours(points, len(points), seed=0, what="")
    drawn = np.intersect1d(rows, near.searched)
    assert len(drawn) < len(rows)
    searched = nearest_labelled(points, drawn, drawn % 3, 3, seed=0, what="")
    found = nearest_labelled(points, rows, rows % 3, 3, neighbours=near, seed=0, what="")
    np.testing.assert_allclose(found.distance, searched.distance, atol=1e-6)
    np.testing.assert_array_equal(found.votes, searched.votes)


def test_a_sample_that_holds_few_labelled_items_does_not_tell_the_nearest(monkeypatch):
    points, rows = cloud(400), np.arange(100, 250)
    searched = nearest_labelled(points, rows, rows % 3, 3, seed=0, what="")
    monkeypatch.setattr(neighbours, "MOST_REFERENCES", 100)
    near = find_neighbours(points, len(points), seed=0, what="")
    found = nearest_labelled(points, rows, rows % 3, 3, neighbours=near, seed=0, what="")
    np.testing.assert_array_equal(found.distance, searched.distance)


# Centres of classes


def test_five_labelled_items_of_a_class_tell_more_by_their_centre_than_by_their_neighbours():
    draw = np.random.default_rng(0)
    # A class, another, an unknown one, and labelled items of the first two.
    of_item = np.repeat([0, 1, 2, 0, 1], [100, 100, 100, 15, 15])
    points = draw.normal(size=(330, 20)) + 3.5 * np.eye(20)[of_item]
    rows, labels = np.r_[300:305, 315:320], np.repeat([0, 1], 5)
    is_unknown = of_item[:300] == 2
    centre = mahalanobis_distance(points, rows, labels)[:300]
    near = nearest_labelled(points, rows, labels, 2, seed=0, what="").distance[:300]
    assert roc_auc_score(is_unknown, centre) > roc_auc_score(is_unknown, near) + 0.02


def test_the_distance_from_centres_does_not_depend_on_units():
    draw = np.random.default_rng(0)
    points, labels = draw.normal(size=(400, 3)), np.arange(300) % 3
    found = mahalanobis_distance(points, np.arange(300), labels)
    np.testing.assert_allclose(mahalanobis_distance(100 * points, np.arange(300), labels), found)


def test_classes_of_one_item_have_a_centre():
    points = np.arange(12.0).reshape(6, 2)
    distance = mahalanobis_distance(points, np.arange(2), np.arange(2))
    assert distance[:2].tolist() == [0, 0]
    assert (np.diff(distance[1:]) > 0).all()
