"""The space in which unknown items are compared."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from s2osc.pipeline.grouping.clusters import ClusterSettings, group_unknown
from s2osc.pipeline.grouping.space import fit_space, input_features, shrink, standardised
from samples import make_blobs, make_images


@pytest.mark.parametrize("colour", [False, True])
def test_images_have_a_space_that_parts_their_classes(colour):
    images, labels = make_images(60, 4, colour=colour)
    known = labels < 2
    features = fit_space(images[known], labels[known], images[~known], seed=0).transform(images)
    assert features.shape == (len(images), 50)
    assert features.dtype == np.float32
    centres = [features[labels == c].mean(0) for c in (2, 3)]
    assert np.linalg.norm(centres[0] - centres[1]) > 0.5


def test_the_units_of_a_table_do_not_matter():
    vectors, labels = make_blobs(60, 3)
    known = labels < 2
    units = np.array([1, 1000, 1, 1, 0.01, 1, 1, 1], np.float32)

    def distances(rows):
        features = fit_space(rows[known], labels[known], rows[~known], seed=0).transform(rows)
        return np.linalg.norm(features - features[:1], axis=1)

    np.testing.assert_allclose(distances(vectors), distances(vectors * units), rtol=1e-2)


def test_what_varies_within_known_classes_weighs_less():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 100)
    vectors = random.normal(size=(300, 8)).astype(np.float32)
    vectors[:, 1] = vectors[:, 0] + 0.1 * vectors[:, 1]  # one direction varies most
    features = fit_space(vectors[:200], labels[:200], vectors[200:], seed=0).transform(vectors)
    before, after = (np.linalg.eigvalsh(np.cov(rows.T)) for rows in (vectors, features))
    assert after[-1] / after[1] < 0.8 * before[-1] / before[1]


@pytest.mark.usefixtures("just_as_users_get_it")
@pytest.mark.parametrize("seed", [0, 1])
def test_words_that_say_nothing_make_no_groups_beside_numbers(seed):
    random = np.random.default_rng(seed)
    centres = 5 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1]])
    labels = np.repeat(np.arange(6), 80)
    numbers = centres[labels] + random.normal(size=(480, 3))
    words = [np.eye(2)[random.integers(0, 2, 480)] for _ in range(2)]
    rows, known = np.hstack([numbers, *words]).astype(np.float32), labels < 3
    space = fit_space(rows[known], labels[known], rows[~known], seed=0)
    unknown, of_known = space.place(rows[~known]), space.place(rows[known])
    found = group_unknown(unknown, of_known, labels[known], ClusterSettings(), seed=0)
    assert found.n_groups == 3
    assert adjusted_rand_score(labels[~known], found.assign(unknown.scaled)) >= 0.9


@pytest.mark.parametrize("n_unknown", [0, 1])
def test_a_space_without_unknown_items_can_be_fitted(n_unknown):
    vectors, labels = make_blobs(20, 2)
    space = fit_space(vectors, labels, vectors[:n_unknown], seed=0)
    assert space.transform(vectors[:n_unknown]).shape == (n_unknown, 8)
    assert np.isfinite(space.transform(vectors)).all()


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
    placed = standardised(long, mean, scale)
    np.testing.assert_allclose(np.linalg.norm(placed, axis=1), 1)
    np.testing.assert_allclose(standardised(mean + 3 * (long - mean), mean, scale), placed)
    np.testing.assert_allclose(standardised(short, mean[:63], scale[:63]), (short - 0.5) / 2)
    assert np.isfinite(standardised(mean[None], mean, scale)).all()
