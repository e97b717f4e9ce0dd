"""The frame of the post-hoc scores, those on logits alone, and the contract of all seven."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import logsumexp, softmax
from sklearn.covariance import EmpiricalCovariance
from sklearn.neighbors import NearestNeighbors

from s2osc.baselines import post_hoc
from s2osc.baselines.openmax import OpenMax
from s2osc.baselines.post_hoc import (
    KNN,
    MSP,
    Bank,
    Energy,
    Mahalanobis,
    MaxLogit,
    ViM,
    choose_k,
    energy,
    fit_gaussians,
    fit_virtual,
    negative_max,
    one_minus_max,
    residual_basis,
    zero_logits,
)
from s2osc.baselines.shared import TeacherRecipe, share_below, train_closed
from s2osc.errors import SettingsError
from s2osc.metrics import auroc
from s2osc.nets.network_cache import networks_cached_in
from s2osc.nets.training import SCORING_BATCH, Outputs
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_blobs, make_images, open_set

# On fewer held-out items the threshold is a matter of luck.
RECIPE = TeacherRecipe(
    replace(LEARNT.teacher, network=replace(LEARNT.teacher.network, hidden=(32,))), held_out=0.3
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
@pytest.mark.parametrize(
    "colour",
    [pytest.param(False, id="grey", marks=pytest.mark.slow), pytest.param(True, id="colour")],
)
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


# KNN


@pytest.fixture
def points():
    return np.random.default_rng(0).normal(size=(60, 6)).astype(np.float32)


def test_a_training_item_is_its_own_nearest_neighbour(points):
    np.testing.assert_array_equal(Bank.of(points).distance(points, k=1), 0)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_the_distance_is_that_of_a_plain_search_among_directions(points, k):
    bank, queries = points[:40], points[40:]
    plain = NearestNeighbors(n_neighbors=k).fit(bank / np.linalg.norm(bank, axis=1, keepdims=True))
    expected, _ = plain.kneighbors(queries / np.linalg.norm(queries, axis=1, keepdims=True))
    np.testing.assert_allclose(Bank.of(bank).distance(queries, k), expected[:, -1], atol=1e-6)


def test_only_the_direction_of_an_item_counts(points):
    bank = Bank.of(points[:40])
    near = bank.distance(points[40:], k=2)
    np.testing.assert_allclose(bank.distance(100 * points[40:], k=2), near, atol=1e-6)


def test_queries_in_chunks_give_the_same(points, monkeypatch):
    bank = Bank.of(points[:40])
    whole = bank.distance(points[40:], k=2)
    monkeypatch.setattr(post_hoc, "MOST_DISTANCES", 120)
    np.testing.assert_allclose(bank.distance(points[40:], k=2), whole, atol=1e-6)


def test_a_bank_of_fewer_items_gives_the_distance_to_the_farthest():
    bank = Bank.of(np.eye(2, dtype=np.float32))
    np.testing.assert_allclose(bank.distance(np.array([[1.0, 0.0]]), k=5), np.sqrt([2]), rtol=1e-6)


def test_an_item_without_a_direction_is_at_distance_one(points):
    assert Bank.of(points).distance(np.zeros((1, 6)), k=3) == pytest.approx(1)


def test_few_training_items_have_five_neighbours_and_many_one_in_a_thousand():
    assert [choose_k(n) for n in (10, 5_999, 6_000, 50_000)] == [5, 5, 6, 50]


@pytest.mark.parametrize("k", [0, -1])
def test_no_neighbours_are_refused(k):
    with pytest.raises(SettingsError, match="k is"):
        KNN(k=k)


# Mahalanobis


RIDGE = 1e-9


@pytest.fixture
def classes():
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    shape = random.normal(size=(5, 5))
    return random.normal(size=(90, 5)) @ shape + 4 * np.eye(5)[labels], labels


def test_the_distance_is_that_of_a_plain_loop_over_classes(classes):
    points, labels = classes
    means = np.stack([points[labels == c].mean(0) for c in range(3)])
    shared = EmpiricalCovariance(assume_centered=True).fit(points - means[labels])
    queries = np.random.default_rng(1).normal(scale=4, size=(20, 5))
    expected = np.min([shared.mahalanobis(queries - mean) for mean in means], axis=0)
    distance = fit_gaussians(points, labels, RIDGE).distance(queries)
    np.testing.assert_allclose(distance**2, expected, rtol=1e-6)


def test_the_class_means_are_at_distance_zero(classes):
    points, labels = classes
    means = np.stack([points[labels == c].mean(0) for c in range(3)])
    np.testing.assert_allclose(fit_gaussians(points, labels, RIDGE).distance(means), 0, atol=1e-6)


def test_the_spread_is_taken_around_the_mean_of_each_class():
    points = np.array([[-1.0], [1.0], [99.0], [101.0]])
    classes = fit_gaussians(points, np.array([0, 0, 1, 1]), RIDGE)
    np.testing.assert_allclose(classes.distance(np.array([[3.0], [96.0]])), [3, 4], rtol=1e-6)


def test_the_distance_does_not_depend_on_the_units_of_a_direction(classes):
    points, labels = classes
    scale = np.array([1, 10, 100, 0.1, 1])
    plain = fit_gaussians(points, labels, RIDGE).distance(points)
    scaled = fit_gaussians(points * scale, labels, 1e-12).distance(points * scale)
    np.testing.assert_allclose(scaled, plain, rtol=1e-4)


def test_the_ridge_is_a_share_of_the_mean_variance():
    points = np.array([[-1.0, 0.0], [1.0, 0.0]])  # variances 1 and 0, 0.5 in the mean
    one_class = fit_gaussians(points, np.zeros(2, int), ridge=0.5)
    expected = [np.sqrt(1 / 1.25), np.sqrt(1 / 0.25)]
    np.testing.assert_allclose(one_class.distance(np.eye(2)), expected)


def test_items_without_any_spread_have_finite_distances():
    classes = fit_gaussians(np.eye(2, dtype=np.float32), np.arange(2), ridge=1e-3)
    distance = classes.distance(np.array([[1, 0], [1, 1]], np.float32))
    assert np.isfinite(distance).all()
    assert distance[0] < distance[1]


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan")])
def test_a_ridge_that_is_not_positive_is_refused(ridge):
    with pytest.raises(SettingsError, match="ridge is"):
        Mahalanobis(ridge=ridge)


# ViM


@pytest.fixture
def head():
    random = np.random.default_rng(0)
    return random.normal(size=(3, 6)), random.normal(size=3)


def outputs_of(embeddings, head):
    weight, bias = head
    return Outputs(embeddings @ weight.T + bias, embeddings)


def spread(head, n=200):
    """Embeddings around u that vary ever less from one axis to the next."""
    scales = np.array([8.0, 6.0, 4.0, 0.3, 0.2, 0.1])
    random = np.random.default_rng(1)
    return zero_logits(*head) + scales * random.normal(size=(n, 6))


def test_the_origin_has_no_logits(head):
    weight, bias = head
    np.testing.assert_allclose(weight @ zero_logits(weight, bias) + bias, 0, atol=1e-12)


def test_the_residual_is_what_lies_outside_the_leading_directions():
    centred = np.diag([5.0, 1.0, 3.0, 2.0])
    basis = residual_basis(centred, n_principal=2)
    assert basis.shape == (4, 2)
    np.testing.assert_allclose(np.linalg.norm(np.eye(4) @ basis, axis=1), [0, 1, 0, 1], atol=1e-12)


def test_no_mean_is_taken_off_before_the_directions_are_found():
    centred = np.array([[10.0, 1.0], [10.0, -1.0]])
    np.testing.assert_allclose(np.abs(residual_basis(centred, 1)), [[0], [1]], atol=1e-12)


def test_an_item_in_the_leading_space_scores_its_energy(head):
    training = outputs_of(spread(head), head)
    virtual = fit_virtual(training, *head, n_principal=3)
    _, vectors = np.linalg.eigh(
        (training.embeddings - virtual.origin).T @ (training.embeddings - virtual.origin)
    )
    inside = outputs_of(virtual.origin + 5 * vectors[:, -3:].T, head)
    np.testing.assert_allclose(virtual.residual(inside.embeddings), 0, atol=1e-9)
    np.testing.assert_allclose(virtual.score(inside), -logsumexp(inside.logits, axis=1), atol=1e-8)


def test_alpha_makes_the_virtual_logit_as_large_as_the_largest(head):
    training = outputs_of(spread(head), head)
    virtual = fit_virtual(training, *head, n_principal=3)
    mean_virtual = (virtual.alpha * virtual.residual(training.embeddings)).mean()
    np.testing.assert_allclose(mean_virtual, training.logits.max(1).mean())


def test_an_item_off_the_leading_space_scores_higher(head):
    virtual = fit_virtual(outputs_of(spread(head), head), *head, n_principal=3)
    step = 3 * virtual.basis[:, 0]
    along, off = virtual.residual(np.stack([virtual.origin, virtual.origin + step]))
    assert (along, off) == pytest.approx((0, 3))


def test_half_of_the_dimensions_are_leading_by_default(head):
    assert fit_virtual(outputs_of(spread(head), head), *head).basis.shape == (6, 3)


def test_training_items_without_a_residual_give_a_finite_scale(head):
    embeddings = zero_logits(*head) + np.outer(np.linspace(1, 9, 50), np.eye(6)[0])
    virtual = fit_virtual(outputs_of(embeddings, head), *head, n_principal=3)
    assert np.isfinite(virtual.alpha)
    assert np.abs(virtual.score(outputs_of(embeddings, head))).max() < 100


def test_more_leading_directions_than_there_are_is_refused():
    with pytest.raises(SettingsError, match="16 dimensions"):
        ViM(n_principal=16, recipe=TeacherRecipe(LEARNT.teacher)).fit(KNOWN, POOL, seed=0)
    with pytest.raises(SettingsError, match="n_principal is 0"):
        ViM(n_principal=0)
