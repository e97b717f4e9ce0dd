"""What a record carries for its figures, made from arrays that are known."""

import base64
import json
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from s2osc.bench.figures.pictures import (
    GRID,
    LARGEST_SIDE,
    counterfactuals_of,
    embedding_of,
    gallery_of,
    picture_of,
    pictures_of,
)
from s2osc.errors import DataError
from s2osc.types import UNKNOWN, Answer, Predictions
from samples import make_blobs, make_images, open_set


@pytest.fixture(scope="module")
def blobs():
    vectors, labels = make_blobs(n_per_class=30)
    return vectors, np.where(labels == 3, UNKNOWN, labels)


def numbered_images(n, *, shape=(6, 6)):
    """Images of one shade each: the number of the image."""
    return np.broadcast_to(np.arange(n, dtype=np.uint8)[(...,) + (None,) * len(shape)], (n, *shape))


def shades(pictures):
    return [int(picture_of(picture).flat[0]) for picture in pictures]


def test_an_embedding_lies_on_the_grid_and_is_plain_json(blobs):
    vectors, truth = blobs
    embedding = embedding_of(vectors, truth, truth, seed=0)
    assert json.loads(json.dumps(embedding)) == embedding
    assert {len(column) for column in embedding.values()} == {len(truth)}
    places = embedding["x"] + embedding["y"]
    assert min(places) == 0
    assert max(places) == GRID


def test_items_of_a_class_lie_together(blobs):
    vectors, truth = blobs
    embedding = embedding_of(vectors, truth, truth, seed=0)
    points = np.column_stack([embedding["x"], embedding["y"]])
    classes = np.array(embedding["truth"])
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert np.mean(classes[distances.argmin(axis=1)] == classes) > 0.95


def test_truth_and_answers_follow_their_items(blobs):
    vectors, truth = blobs
    numbers = np.arange(len(truth))
    embedding = embedding_of(vectors, numbers, 2 * numbers, n=40, seed=0)
    assert embedding["truth"] == sorted(embedding["truth"])
    assert len(set(embedding["truth"])) == 40
    assert embedding["label"] == [2 * number for number in embedding["truth"]]


def test_all_methods_show_the_same_items_of_a_pool(blobs):
    vectors, truth = blobs
    numbers = np.arange(len(truth))
    one = embedding_of(vectors, numbers, truth, n=10, seed=3)
    other = embedding_of(-vectors[:, :2], numbers, truth, n=10, seed=3)
    assert one["truth"] == other["truth"]
    assert one["truth"] != embedding_of(vectors, numbers, truth, n=10, seed=4)["truth"]


def test_the_same_seed_gives_the_same_embedding(blobs):
    vectors, truth = blobs
    first, second = (embedding_of(vectors, truth, truth, n=30, seed=1) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("features", [np.zeros((30, 4)), np.ones((1, 3)), np.ones((0, 3))])
def test_items_that_do_not_differ_are_one_point(features):
    truth = np.zeros(len(features), int)
    embedding = embedding_of(features, truth, truth, seed=0)
    assert embedding["x"] == embedding["y"] == [0] * len(features)


def test_few_items_of_one_feature_lie_on_a_line():
    embedding = embedding_of(np.array([[0.0], [1.0], [4.0]]), np.zeros(3), np.zeros(3), seed=0)
    assert sorted(embedding["x"]) == [0, 250, 1000]
    assert embedding["y"] == [0, 0, 0]


def test_a_gallery_shows_what_was_taken_beside_unknown_items_that_were_not():
    images = numbered_images(8)
    truth = np.array([0, 0, 0, 0, -1, -1, -1, -1])
    filtered = np.array([1, 0, 0, 0, 1, 1, 0, 0], bool)
    gallery = gallery_of(images, filtered, truth, seed=0)
    taken = dict(zip(shades(gallery["filtered"]), gallery["filtered_true"], strict=True))
    assert taken == {0: False, 4: True, 5: True}
    assert sorted(shades(gallery["unselected"])) == [6, 7]
    assert gallery["unselected_true"] == [True, True]
    assert json.loads(json.dumps(gallery)) == gallery


def test_a_gallery_draws_at_most_n_of_each_kind_at_random():
    images, truth = numbered_images(100), np.full(100, UNKNOWN)
    filtered = np.arange(100) < 50
    drawn = [shades(gallery_of(images, filtered, truth, n=5, seed=s)["filtered"]) for s in (0, 1)]
    assert [len(set(shown)) for shown in drawn] == [5, 5]
    assert drawn[0] != drawn[1]
    assert max(max(shown) for shown in drawn) < 50


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3)])
def test_small_images_are_stored_pixel_by_pixel(shape):
    images = np.random.default_rng(0).integers(0, 256, (3, *shape)).astype(np.uint8)
    stored = counterfactuals_of(images, images, 255 - images)
    for place, image in enumerate(images):
        np.testing.assert_array_equal(picture_of(stored["original"][place]), image)
        np.testing.assert_array_equal(picture_of(stored["counterfactual"][place]), 255 - image)
    assert base64.b64decode(stored["original"][0]).startswith(b"\x89PNG")


def test_large_images_are_reduced_in_proportion():
    images = np.zeros((1, 100, 200), np.uint8)
    (picture,) = counterfactuals_of(images, images, images)["original"]
    assert picture_of(picture).shape == (LARGEST_SIDE // 2, LARGEST_SIDE)


def test_float_images_of_a_generator_are_brought_to_bytes():
    images = np.array([0.0, 0.5, 1.0])[:, None, None] * np.ones((3, 4, 4))
    assert shades(counterfactuals_of(images, images, images)["reconstruction"]) == [0, 128, 255]


def test_only_the_first_counterfactuals_are_stored():
    images = numbered_images(30)
    assert shades(counterfactuals_of(images, images, images, n=4)["original"]) == [0, 1, 2, 3]


def test_images_out_of_range_or_shape_are_refused():
    grey = np.zeros((2, 4, 4), np.uint8)
    with pytest.raises(DataError, match="values from -1 to 1; give float images from 0 to 1"):
        counterfactuals_of(np.linspace(-1, 1, 32).reshape(2, 4, 4), *[np.zeros((2, 4, 4))] * 2)
    with pytest.raises(DataError, match="differ in shape"):
        counterfactuals_of(grey, grey, grey[:1])
    with pytest.raises(DataError, match="has shape \\(2, 4\\); give images"):
        gallery_of(np.zeros((2, 4)), np.ones(2, bool), np.zeros(2), seed=0)
    with pytest.raises(DataError, match="type int64; give uint8"):
        gallery_of(np.zeros((2, 4, 4), int), np.ones(2, bool), np.zeros(2), seed=0)


class Examples(NamedTuple):
    originals: np.ndarray
    reconstructions: np.ndarray
    counterfactuals: np.ndarray


@pytest.fixture(scope="module")
def run():
    """A split of images, a fitted method that makes counterfactuals, an answer that filters."""
    split = open_set(*make_images(n_per_class=10))
    n = len(split.pool)
    fitted = SimpleNamespace(
        features=lambda inputs: inputs.reshape(len(inputs), -1),
        examples=Examples(*[split.pool[:2]] * 3),
    )
    answer = Answer(split.truth, *np.zeros((2, n)), *np.zeros((2, n), int), split.truth == UNKNOWN)
    return split, fitted, answer


def test_a_run_gives_the_pictures_asked_for(run):
    pictures = pictures_of(("embedding", "gallery", "counterfactuals"), *run, seed=0)
    assert pictures["embedding"]["truth"] == run[0].truth.tolist()
    assert pictures["embedding"]["label"] == run[2].labels.tolist()
    assert all(pictures["gallery"]["filtered_true"])
    assert len(pictures["counterfactuals"]["original"]) == 2
    assert pictures_of((), *run, seed=0) == {}


def test_a_run_without_filter_generator_or_images_gives_fewer(run):
    split, fitted, answer = run
    plain = SimpleNamespace(features=fitted.features)
    labels_only = Predictions(answer.labels, answer.unknown_score, answer.confidence)
    kinds = ("gallery", "counterfactuals")
    assert pictures_of(kinds, split, plain, labels_only, seed=0) == {}
    vectors = open_set(*make_blobs(n_per_class=10))
    assert pictures_of(kinds, vectors, plain, answer, seed=0) == {}
