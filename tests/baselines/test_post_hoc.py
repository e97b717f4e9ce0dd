"""The frame of the post-hoc scores, those on logits alone, and the contract of all seven."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax

from s2osc.baselines.knn import KNN
from s2osc.baselines.mahalanobis import Mahalanobis
from s2osc.baselines.openmax import OpenMax
from s2osc.baselines.post_hoc import MSP, Energy, MaxLogit, energy, negative_max, one_minus_max
from s2osc.baselines.shared import TeacherRecipe, share_below, train_closed
from s2osc.baselines.vim import ViM
from s2osc.errors import SettingsError
from s2osc.metrics import auroc
from s2osc.nets.network_cache import networks_cached_in
from s2osc.nets.training import SCORING_BATCH
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import TINY, make_blobs, make_images, open_set

# On fewer held-out items the threshold is a matter of luck.
RECIPE = TeacherRecipe(
    replace(TINY.teacher, network=replace(TINY.teacher.network, hidden=(32,))), held_out=0.3
)
METHODS = [
    method(recipe=RECIPE) for method in (MSP, MaxLogit, Energy, KNN, Mahalanobis, ViM, OpenMax)
]
LOGITS = arrays(np.float32, (4, 3), elements=st.floats(-50, 50, width=32))


def name_of(method):
    return type(method).__name__


all_methods = pytest.mark.parametrize("method", METHODS, ids=name_of)


@pytest.fixture(scope="module")
def kept_networks(tmp_path_factory):
    return tmp_path_factory.mktemp("networks")


@pytest.fixture
def trained_once(kept_networks):
    """All methods look at the same f."""
    with networks_cached_in(kept_networks):
        yield


@all_methods
@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
@pytest.mark.usefixtures("trained_once")
def test_images_are_recognised(method, colour):
    split = open_set(*make_images(20, colour=colour))
    recogniser = method.fit(split.known, split.pool, seed=0)
    predictions = recogniser.predict(split.pool)
    is_named = (predictions.labels != UNKNOWN) & (split.truth != UNKNOWN)
    assert is_named.sum() > 15
    assert np.mean(predictions.labels[is_named] == split.truth[is_named]) > 0.9
    assert recogniser.features(split.pool).shape == (len(split.pool), 16)


@all_methods
@pytest.mark.usefixtures("trained_once")
def test_stacked_views_are_recognised(method):
    noise = np.random.default_rng(0).normal(scale=0.1, size=(3, *KNOWN.inputs.shape))
    views = np.stack([KNOWN.inputs + part for part in noise], axis=1).astype(np.float32)
    stacked_pool = np.repeat(POOL[:, None], 3, axis=1)
    recogniser = method.fit(Labelled(views, KNOWN.labels), stacked_pool, seed=0)
    predictions = recogniser.predict(stacked_pool)
    assert np.mean(predictions.labels == TRUTH) > 0.8
    assert auroc(TRUTH, predictions.unknown_score) > 0.9


@all_methods
def test_the_pool_changes_nothing(method):
    first = fitted(method).predict(POOL)
    again = method.fit(KNOWN, POOL[:0], seed=0).predict(POOL)
    np.testing.assert_array_equal(first.unknown_score, again.unknown_score)


@all_methods
def test_the_class_of_a_known_item_is_that_of_its_largest_logit(method):
    predictions = fitted(method).predict(POOL)
    logits = train_closed(KNOWN, RECIPE, seed=0, device="cpu").teacher.outputs(POOL).logits
    named = predictions.labels != UNKNOWN
    np.testing.assert_array_equal(predictions.labels[named], logits.argmax(1)[named])
    best = softmax(logits, axis=1).max(1)
    np.testing.assert_allclose(predictions.confidence[named], best[named], rtol=1e-5)


@all_methods
def test_a_lower_known_recall_calls_more_items_unknown(method):
    strict = replace(method, known_recall=0.5).fit(KNOWN, POOL, seed=0).predict(POOL).labels
    assert (strict == UNKNOWN).sum() > (fitted(method).predict(POOL).labels == UNKNOWN).sum()


@pytest.mark.parametrize("known_recall", [0.25, 0.5, 1.0])
def test_the_asked_share_of_held_out_items_is_called_known(known_recall):
    method = replace(METHODS[2], known_recall=known_recall)
    held_out = train_closed(KNOWN, RECIPE, seed=0, device="cpu").held_out
    assert len(held_out) == 36
    labels = method.fit(KNOWN, POOL, seed=0).predict(held_out.inputs).labels
    assert np.mean(labels != UNKNOWN) == known_recall


def test_an_unknown_item_is_believed_by_the_share_of_known_items_that_score_lower():
    recogniser = replace(METHODS[2], known_recall=0.5).fit(KNOWN, POOL, seed=0)
    held_out = train_closed(KNOWN, RECIPE, seed=0, device="cpu").held_out
    predictions = recogniser.predict(held_out.inputs)
    by_score = np.argsort(predictions.unknown_score)
    np.testing.assert_allclose(predictions.confidence[by_score][18:], np.arange(18, 36) / 37)


def test_a_pool_of_several_batches_is_scored_as_a_whole():
    vectors, _ = make_blobs(SCORING_BATCH // 2 + 10)
    predictions = fitted(METHODS[2]).predict(vectors)
    last = fitted(METHODS[2]).predict(vectors[-10:])
    np.testing.assert_allclose(predictions.unknown_score[-10:], last.unknown_score, rtol=1e-4)


def test_known_items_that_score_the_same_do_not_count_as_lower():
    assert share_below(np.array([2.0, 2.1]), np.array([1.0, 2.0, 2.0])).tolist() == [0.25, 0.75]


@pytest.mark.parametrize("known_recall", [0.0, -1.0, 1.1, float("nan")])
@all_methods
def test_a_recall_that_is_no_share_is_refused(method, known_recall):
    with pytest.raises(SettingsError, match="known_recall is"):
        replace(method, known_recall=known_recall)


@given(LOGITS)
def test_doubt_is_one_minus_the_largest_probability(logits):
    expected = 1 - softmax(logits.astype(np.float64), axis=1).max(1)
    np.testing.assert_allclose(one_minus_max(logits), expected, atol=1e-12)


def test_items_f_is_sure_of_are_not_tied():
    surer, sure = one_minus_max(np.array([[60.0, 0.0], [50.0, 0.0]], np.float32))
    assert 0 < surer < sure


def test_doubt_of_equal_logits_is_that_of_a_guess():
    np.testing.assert_allclose(one_minus_max(np.zeros((1, 4))), [0.75])


def test_the_largest_logit_and_the_largest_probability_order_items_differently():
    logits = np.array([[10.0, 9.0], [5.0, 0.0]])
    assert np.diff(negative_max(logits)) > 0 > np.diff(one_minus_max(logits))


@given(LOGITS, st.floats(0.5, 20))
def test_energy_is_the_negative_log_of_summed_exponentials(logits, temperature):
    expected = -temperature * logsumexp(logits.astype(np.float64) / temperature, axis=1)
    np.testing.assert_allclose(energy(logits, temperature), expected, rtol=1e-9, atol=1e-9)


def test_energy_of_one_two_three():
    np.testing.assert_allclose(energy(np.array([[1.0, 2.0, 3.0]])), [-3.4076], atol=5e-5)


def test_energy_of_huge_logits_is_finite():
    np.testing.assert_allclose(energy(np.array([[1e4, 0.0], [-1e4, -1e4]]))[0], -1e4)


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_a_temperature_that_is_not_positive_is_refused(temperature):
    with pytest.raises(SettingsError, match="temperature is"):
        Energy(temperature=temperature)
