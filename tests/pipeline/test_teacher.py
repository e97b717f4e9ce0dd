"""f: what it learns, and the u and d it sees in an item."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from s2osc.errors import SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings, Views
from s2osc.nets.training import outputs
from s2osc.pipeline.teacher import class_centres, distance_to_centres, entropy, train_teacher
from s2osc.types import Labelled
from samples import TINY, make_blobs, make_images, open_set

BLOBS, IMAGES = open_set(*make_blobs()), open_set(*make_images())


def train(split=BLOBS, *, seed=0, settings=TINY.teacher, **augmentation):
    return train_teacher(
        split.known, settings, AugmentSettings(**augmentation), seed=seed, device="cpu"
    ).teacher


def weights(teacher):
    return np.concatenate([p.detach().numpy().ravel() for p in teacher.network.parameters()])


@pytest.fixture(scope="module")
def teacher():
    return train()


def test_entropy_by_hand():
    logits = np.array([[0.0, 0.0], [log(3), 0.0], [900.0, 0.0]])
    expected = [log(2), -0.75 * log(0.75) - 0.25 * log(0.25), 0.0]
    np.testing.assert_allclose(entropy(logits), expected, atol=1e-12)


def test_the_distance_is_squared_and_to_the_nearest_centre():
    embeddings = np.array([[0.0, 0.0], [3.0, 4.0], [9.0, 0.0]])
    centres = np.array([[0.0, 0.0], [10.0, 0.0]])
    np.testing.assert_allclose(distance_to_centres(embeddings, centres), [0.0, 25.0, 1.0])


@given(
    arrays(np.float64, (5, 3), elements=st.floats(-50, 50)),
    arrays(np.float64, (4, 3), elements=st.floats(-50, 50)),
)
def test_the_distance_equals_a_slow_search_for_the_nearest_centre(embeddings, centres):
    expected = [min(((e - mu) ** 2).sum() for mu in centres) for e in embeddings]
    np.testing.assert_allclose(distance_to_centres(embeddings, centres), expected, atol=1e-8)


def test_a_centre_is_the_mean_over_all_training_items_of_its_class():
    embeddings = np.array([[0.0, 2.0], [5.0, 5.0], [4.0, 0.0]])
    centres = class_centres(embeddings, np.array([0, 1, 0]))
    np.testing.assert_allclose(centres, [[2.0, 1.0], [5.0, 5.0]])


@pytest.mark.parametrize("split", [BLOBS, IMAGES], ids=["vectors", "images"])
def test_f_learns_the_known_classes(split):
    answers = train(split).outputs(split.pool).logits.argmax(1)
    is_known = split.truth >= 0
    assert np.mean(answers[is_known] == split.truth[is_known]) > 0.95


def test_the_centres_are_those_of_the_trained_network(teacher):
    embeddings = outputs(teacher.network, BLOBS.known.inputs, what="").embeddings
    for c in range(3):
        mean = embeddings[BLOBS.known.labels == c].mean(0)
        np.testing.assert_allclose(teacher.centres[c], mean, atol=1e-5)


def test_what_f_sees_is_logits_entropy_distance_and_embedding_of_one_pass(teacher):
    teacher_outputs = teacher.outputs(BLOBS.pool)
    expected = outputs(teacher.network, BLOBS.pool, what="")
    np.testing.assert_allclose(teacher_outputs.logits, expected.logits, atol=1e-5)
    np.testing.assert_allclose(teacher_outputs.entropy, entropy(expected.logits), atol=1e-5)
    squares = ((expected.embeddings[:, None] - teacher.centres) ** 2).sum(2).min(1)
    np.testing.assert_allclose(teacher_outputs.distance, squares, rtol=1e-3, atol=1e-3)
    np.testing.assert_array_equal(teacher_outputs.embeddings, expected.embeddings)


def test_probabilities_of_f_sum_to_one(teacher):
    p = teacher.probabilities(BLOBS.pool)
    assert p.shape == (len(BLOBS.pool), 3)
    np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)


def test_normalisation_comes_from_the_labelled_items(teacher):
    np.testing.assert_allclose(teacher.network.mean, BLOBS.known.inputs.mean(0), rtol=1e-4)


def test_the_same_seed_gives_the_same_f_and_another_seed_another(teacher):
    np.testing.assert_array_equal(weights(train()), weights(teacher))
    assert not np.allclose(weights(train(seed=1)), weights(teacher))


def test_f_learns_from_augmented_items_only_where_asked():
    plain, augmented = (replace(TINY.teacher, augment=share) for share in (0.0, 1.0))
    little, much = (weights(train(settings=plain, noise=noise)) for noise in (0.1, 2.0))
    np.testing.assert_array_equal(little, much)
    little, much = (weights(train(settings=augmented, noise=noise)) for noise in (0.1, 2.0))
    assert not np.allclose(little, much)


@pytest.mark.parametrize(("share", "n_viewed"), [(0.25, 8), (0.5, 16), (1.0, 32)])
def test_just_the_share_of_each_batch_that_is_asked_for_is_augmented(share, n_viewed, monkeypatch):
    n_augmented = []

    class CountingViews(Views):
        def __call__(self, items):
            n_augmented.append(len(items))
            return super().__call__(items)

    monkeypatch.setattr("s2osc.pipeline.teacher.Views", CountingViews)
    train(settings=replace(TINY.teacher, augment=share))
    assert n_augmented == [n_viewed] * TINY.teacher.training.min_steps


def stack(inputs):
    """Three views of each item: itself, and two that differ a little."""
    noise = np.random.default_rng(0).normal(size=(2, *inputs.shape)).astype(np.float32)
    return np.stack([inputs, inputs + 0.1 * noise[0], inputs + 0.1 * noise[1]], axis=1)


def test_f_learns_from_stacked_views_as_from_augmented_items():
    known = Labelled(stack(BLOBS.known.inputs), BLOBS.known.labels)
    settings = replace(TINY.teacher, augment=0.5)
    teacher, _ = train_teacher(known, settings, AugmentSettings(), seed=0, device="cpu")
    assert teacher.network.input_shape == (8,)
    is_known = BLOBS.truth >= 0
    for pool in (stack(BLOBS.pool), BLOBS.pool):
        answers = teacher.outputs(pool).logits.argmax(1)
        assert np.mean(answers[is_known] == BLOBS.truth[is_known]) > 0.95


def test_without_augmentation_the_first_of_stacked_views_is_learnt_from():
    settings = replace(TINY.teacher, augment=0.0)
    views = stack(BLOBS.known.inputs)
    other = views.copy()
    other[:, 1:] = other[:, :0:-1]  # the same views, the last two the other way round
    first, second = (
        train_teacher(
            Labelled(inputs, BLOBS.known.labels), settings, AugmentSettings(), seed=0, device="cpu"
        ).teacher
        for inputs in (views, other)
    )
    np.testing.assert_allclose(weights(first), weights(second), atol=1e-6)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(SettingsError, match="give a share from 0 to 1"):
        replace(TINY.teacher, augment=share)
