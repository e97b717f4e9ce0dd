"""Groups of unknown items, how many there are, and the space they are compared in."""

import numpy as np
import pytest

from s2osc.errors import SettingsError
from s2osc.pipeline.grouping.clusters import (
    ClusterSettings,
    Grouping,
    _dissolve_unstable,
    group_unknown,
)
from s2osc.pipeline.grouping.space import fit_space, input_features, place, shrink
from samples import make_blobs, make_images

QUICK = ClusterSettings(n_resamples=3)


def blobs(*sizes, distance=12.0):
    """Blobs of the sizes given, one after the other."""
    vectors, labels = make_blobs(max(sizes), len(sizes), distance=distance)
    rows = np.concatenate([np.flatnonzero(labels == c)[:size] for c, size in enumerate(sizes)])
    return vectors[rows], labels[rows]


def cloud(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)


def known_blobs(n=60, shift=-30.0):
    """Two known classes far from every unknown blob."""
    vectors, labels = make_blobs(n, 2, distance=12.0, seed=1)
    return vectors + np.float32(shift), labels


def grouped(unknown, settings=QUICK, seed=0):
    return group_unknown(unknown, *known_blobs(), settings, seed=seed)


def test_an_item_joins_the_group_of_its_nearest_items():
    items = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]], np.float32)
    grouping = Grouping(items, np.array([0, 0, 1, 1]), np.ones(2), np.ones(2), 2, 2)
    rows = np.array([[1.0, 0.0], [8.0, 0.5], [10.0, 0.0]], np.float32)
    assert grouping.assign(rows).tolist() == [0, 1, 1]


@pytest.mark.parametrize("n", [2, 5])
def test_well_separated_groups_are_counted_right(n):
    grouping = grouped(blobs(*[80] * n)[0])
    assert (grouping.n_groups, grouping.n_low, grouping.n_high) == (n, n, n)
    assert (grouping.stability > 0.95).all()


@pytest.mark.parametrize("n", [60, 200, 800])
def test_one_cloud_is_one_group(n):
    grouping = grouped(cloud(n))
    assert grouping.n_groups == 1
    assert grouping.stability.tolist() == pytest.approx([1.0], abs=0.2)


def test_known_classes_of_two_parts_keep_such_a_class_whole():
    # Two parts that touch: a cut that is worth it, unless every known class has one as good.
    parts, _ = blobs(200, 200, distance=3.5)
    twofold = np.concatenate([parts - 40, parts + 40])
    labels = np.repeat([0, 1], len(parts))
    assert grouped(parts).n_groups == 2
    assert group_unknown(parts, twofold, labels, QUICK, seed=0).n_groups == 1


def test_a_few_wrong_answers_do_not_bridge_two_groups():
    vectors, labels = blobs(150, 150)
    known, classes = known_blobs()
    mixed = np.concatenate([vectors, known[::20]])
    grouping = group_unknown(mixed, known, classes, QUICK, seed=0)
    assert grouping.n_groups == 2
    np.testing.assert_array_equal(
        grouping.assign(mixed)[:300] == grouping.assign(mixed)[0], labels == 0
    )


def test_groups_are_the_blobs_the_largest_first():
    vectors, labels = blobs(40, 120, 80)
    groups = grouped(vectors).assign(vectors)
    np.testing.assert_array_equal(groups, np.array([2, 0, 1])[labels])


def test_of_equal_groups_the_tighter_comes_first():
    wide, tight = 3 * cloud(100), cloud(100, seed=1) + 40
    grouping = grouped(np.concatenate([wide, tight]))
    assert grouping.assign(tight).tolist() == [0] * 100
    assert grouping.tightness[0] == pytest.approx(3 * grouping.tightness[1], rel=0.2)


def test_a_group_like_a_known_class_has_tightness_one():
    assert grouped(cloud(400)).tightness.tolist() == pytest.approx([1.0], rel=0.1)


def test_items_beyond_those_fitted_follow_their_neighbours():
    vectors, labels = blobs(1_300, 1_250)
    grouping = grouped(vectors, ClusterSettings(n_resamples=1))
    assert len(grouping.items) == 2_000
    np.testing.assert_array_equal(grouping.assign(vectors), labels)


@pytest.mark.parametrize("n", [1, 2, 4, 9])
def test_a_number_of_groups_that_is_given_is_kept(n):
    vectors, _ = blobs(60, 60)
    grouping = grouped(vectors, ClusterSettings(n_groups=n, n_resamples=2))
    assert (grouping.n_groups, grouping.n_low, grouping.n_high) == (n, n, n)
    assert set(grouping.assign(vectors)) == set(range(n))


def test_groups_that_are_no_groups_are_unstable():
    grouping = grouped(cloud(300), ClusterSettings(n_groups=6))
    assert grouping.stability.mean() < 0.8


def test_there_are_never_more_groups_than_distinct_items():
    twins = np.repeat(np.eye(3, 8, dtype=np.float32), 2, axis=0)
    assert grouped(twins, ClusterSettings(n_groups=9)).n_groups == 3


@pytest.mark.parametrize("n", [1, 2, 3, 29])
def test_a_few_items_are_one_group(n):
    grouping = grouped(cloud(n))
    assert (grouping.n_groups, grouping.n_low, grouping.n_high) == (1, 1, 1)
    assert grouping.assign(cloud(n)).tolist() == [0] * n


@pytest.mark.parametrize("n_groups", [None, 4])
def test_items_that_are_all_the_same_are_one_group(n_groups):
    same = np.ones((50, 8), np.float32)
    grouping = grouped(same, ClusterSettings(n_groups=n_groups))
    assert grouping.n_groups == 1
    assert set(grouping.assign(same)) == {0}


def test_many_twins_of_a_few_items_can_be_grouped():
    twins = np.repeat(cloud(40), 5, axis=0)
    assert grouped(twins, ClusterSettings(n_groups=5)).n_groups == 5
    assert grouped(twins).n_groups >= 1


def test_no_unknown_items_make_no_groups():
    grouping = grouped(np.empty((0, 8), np.float32))
    assert (grouping.n_groups, grouping.n_low, grouping.n_high) == (0, 0, 0)
    assert grouping.items.shape == (0, 8)


def test_an_unknown_item_that_comes_after_a_pool_without_any_can_be_assigned():
    grouping = grouped(np.empty((0, 8), np.float32))
    assert grouping.assign(np.ones((2, 8), np.float32)).tolist() == [0, 0]


def test_known_classes_of_a_few_items_are_enough():
    few, labels = known_blobs(5)
    assert group_unknown(blobs(100, 100)[0], few, labels, QUICK, seed=0).n_groups == 2


def test_the_same_seed_gives_the_same_groups():
    settings = ClusterSettings(n_groups=5, n_resamples=2)
    first, again, other = (grouped(cloud(), settings, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.items, again.items)
    np.testing.assert_array_equal(first.groups, again.groups)
    np.testing.assert_array_equal(first.stability, again.stability)
    assert not np.array_equal(first.stability, other.stability)


@pytest.mark.parametrize("n_groups", [0, -2])
def test_a_number_of_groups_below_one_is_refused(n_groups):
    with pytest.raises(SettingsError, match=f"is {n_groups}; give a number from 1"):
        ClusterSettings(n_groups=n_groups)


def test_no_resamples_are_refused():
    with pytest.raises(SettingsError, match="resamples are 0; give a number from 1"):
        ClusterSettings(n_resamples=0)


@pytest.mark.parametrize("colour", [False, True])
def test_images_have_a_space_that_parts_their_classes(colour):
    images, labels = make_images(60, 4, colour=colour)
    embeddings = np.random.default_rng(0).normal(size=(len(images), 16)).astype(np.float32)
    known = labels < 2
    space = fit_space(
        (images[known], embeddings[known]),
        labels[known],
        (images[~known], embeddings[~known]),
        seed=0,
    )
    features = space.transform(images, embeddings)
    assert features.shape == (len(images), 50 + 16)
    assert features.dtype == np.float32
    centres = [features[labels == c].mean(0) for c in (2, 3)]
    assert np.linalg.norm(centres[0] - centres[1]) > 0.5


def test_the_units_of_a_table_do_not_matter():
    vectors, labels = make_blobs(60, 3)
    known = labels < 2
    embeddings = np.ones((len(vectors), 2), np.float32)
    units = np.array([1, 1000, 1, 1, 0.01, 1, 1, 1], np.float32)

    def distances(rows):
        parts = (rows[known], embeddings[known]), labels[known], (rows[~known], embeddings[~known])
        features = fit_space(*parts, seed=0).transform(rows, embeddings)
        return np.linalg.norm(features - features[:1], axis=1)

    np.testing.assert_allclose(distances(vectors), distances(vectors * units), rtol=1e-2)


def test_what_varies_within_known_classes_weighs_less():
    labels = np.repeat([0, 1, 2], 100)
    embeddings = cloud(300)
    embeddings[:, 0] *= 10
    inputs = np.zeros((300, 2), np.float32)
    known = labels < 2
    parts = (inputs[known], embeddings[known]), labels[known], (inputs[~known], embeddings[~known])
    features = fit_space(*parts, seed=0).transform(inputs, embeddings)[:, 2:]
    spread = np.linalg.eigvalsh(np.cov(features.T))
    assert spread[-1] < 12 * spread[0]  # 100 before


@pytest.mark.parametrize("n_unknown", [0, 1])
def test_a_space_without_unknown_items_can_be_fitted(n_unknown):
    vectors, labels = make_blobs(20, 2)
    unknown = vectors[:n_unknown], vectors[:n_unknown]
    space = fit_space((vectors, vectors), labels, unknown, seed=0)
    assert space.transform(*unknown).shape == (n_unknown, 16)
    assert np.isfinite(space.transform(vectors, vectors)).all()


def test_large_images_are_averaged_down():
    image = np.zeros((1, 64, 96, 3), np.uint8)
    image[0, :2, :3] = 255
    small = shrink(image)
    assert small.shape == (1, 32, 32, 3)
    assert small[0, 0, 0].tolist() == [255.0, 255.0, 255.0]
    assert small[0, 1:].max() == small[0, 0, 1:].max() == 0


def test_a_strip_of_an_image_keeps_its_short_side():
    assert shrink(np.full((2, 1, 100), 255, np.uint8)).shape == (2, 1, 25)


def test_images_are_described_by_shape_not_by_brightness():
    images, labels = make_images(20)
    darker = (images // 2).astype(np.uint8)
    described, again = input_features(images), input_features(darker)
    own = np.linalg.norm(described - again, axis=1)
    other = np.linalg.norm(described[labels == 0][:, None] - described[labels == 1][None], axis=2)
    assert own.max() < other.min()


def test_long_vectors_are_compared_by_direction_and_short_ones_as_they_are():
    random = np.random.default_rng(0)
    long, short = random.normal(size=(5, 64)), random.normal(size=(5, 63))
    mean, scale = np.full(64, 0.5), np.full(64, 2.0)
    placed = place(long, mean, scale)
    np.testing.assert_allclose(np.linalg.norm(placed, axis=1), 1)
    np.testing.assert_allclose(place(mean + 3 * (long - mean), mean, scale), placed)
    np.testing.assert_allclose(place(short, mean[:63], scale[:63]), (short - 0.5) / 2)
    assert np.isfinite(place(mean[None], mean, scale)).all()


def test_a_group_the_samples_do_not_bring_back_is_dissolved_and_no_other():
    """Samples cut the third class in two at another place each, and never see a fourth."""
    rows, classes = blobs(40, 40, 80)
    groups = np.where(np.arange(160) >= 120, 3, classes)
    resampled = []
    for shift in (0, 20):
        part = classes.copy()
        part[80 + shift : 100 + shift] = 1  # goes with another group
        resampled.append((np.arange(160), part))
    assert _dissolve_unstable(rows, groups, resampled).max() + 1 == 3


def test_stable_groups_are_all_kept():
    rows, classes = blobs(40, 40, 40)
    resampled = [(np.arange(120), classes), (np.arange(0, 120, 2), classes[::2])]
    np.testing.assert_array_equal(_dissolve_unstable(rows, classes, resampled), classes)
