"""OpenMax: tails, revised logits and its own rule."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, softmax
from scipy.stats import weibull_min

from s2osc.baselines.openmax import (
    ClassTails,
    OpenMax,
    PublishedRule,
    Weibull,
    distances,
    fit_tails,
    fit_weibull,
    revise,
    unknown_log_odds,
)
from s2osc.baselines.shared import TeacherRecipe
from s2osc.errors import SettingsError
from s2osc.testing import KNOWN, POOL, fitted
from s2osc.types import UNKNOWN
from samples import LEARNT

TEACHER = replace(LEARNT.teacher, network=replace(LEARNT.teacher.network, hidden=(32,)))
OWN = OpenMax(rule="own", recipe=TeacherRecipe(TEACHER, held_out=0.3))
LOGITS = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])


def test_the_weibull_fit_is_the_most_likely_one():
    values = weibull_min.rvs(2.5, scale=4.0, size=200, random_state=np.random.default_rng(0))
    shape, _, scale = weibull_min.fit(values, floc=0)
    assert fit_weibull(values) == pytest.approx((shape, scale), rel=1e-3)


def test_the_weibull_function_is_that_of_scipy():
    values = np.linspace(-1, 9, 21)
    expected = weibull_min.cdf(values, 2.5, scale=4.0)
    np.testing.assert_allclose(Weibull(2.5, 4.0)(values), expected, atol=1e-12)


def test_equal_values_give_nearly_a_step():
    np.testing.assert_allclose(fit_weibull(np.ones(3))(np.array([0.9, 1.1])), [0, 1], atol=1e-6)


def test_huge_values_are_certain():
    np.testing.assert_array_equal(Weibull(1000.0, 1.0)(np.array([1e9])), [1])


def test_nothing_extreme_leaves_the_logits_and_an_unknown_logit_of_zero():
    revised = revise(LOGITS, np.zeros_like(LOGITS), n_ranks=3)
    np.testing.assert_allclose(revised[:, :3], LOGITS)
    p_unknown = softmax(revised, axis=1)[:, -1]
    np.testing.assert_allclose(p_unknown, 1 / (1 + np.exp(LOGITS).sum(1)))


def test_what_classes_lose_by_rank_the_unknown_class_gains():
    revised = revise(LOGITS, np.ones_like(LOGITS), n_ranks=3)
    expected = [[0, 2 / 3, 2 / 3], [0.5 / 3, -2 / 3, 0]]
    np.testing.assert_allclose(revised[:, :3], expected, atol=1e-12)
    np.testing.assert_allclose(revised.sum(1), LOGITS.sum(1))


def test_only_the_leading_ranks_lose():
    revised = revise(LOGITS, np.ones_like(LOGITS), n_ranks=1)
    np.testing.assert_allclose(revised, [[0, 1, 2, 3], [0.5, -1, 0, 4]], atol=1e-12)


def test_more_ranks_than_classes_are_as_many_as_classes():
    ones = np.ones_like(LOGITS)
    np.testing.assert_array_equal(revise(LOGITS, ones, 10), revise(LOGITS, ones, 3))


def test_the_score_is_the_log_odds_of_the_unknown_class():
    revised = revise(LOGITS, np.full_like(LOGITS, 0.7), n_ranks=2)
    p = softmax(revised, axis=1)[:, -1]
    np.testing.assert_allclose(unknown_log_odds(revised), np.log(p / (1 - p)))


def test_class_means_are_those_of_items_f_gets_right():
    logits = np.array([[4.0, 0.0], [6.0, 0.0], [0.0, 90.0], [0.0, 5.0]])
    tails = fit_tails(logits, np.array([0, 0, 0, 1]), n_tail=20, kind="euclidean")
    np.testing.assert_allclose(tails.means, [[5, 0], [0, 5]])


def test_a_class_f_never_gets_right_is_met_by_all_its_items():
    logits = np.array([[4.0, 0.0], [6.0, 0.0]])
    tails = fit_tails(logits, np.array([0, 1]), n_tail=20, kind="euclidean")
    np.testing.assert_allclose(tails.means[1], [6, 0])


def test_the_tail_is_the_largest_distances_and_at_most_a_tenth_of_a_class():
    steps = np.arange(1.0, 151)
    logits = np.column_stack([1000 + np.r_[-steps, steps], np.zeros(300)])
    labels = np.zeros(300, int)
    assert fit_tails(logits, labels, n_tail=20, kind="euclidean").starts == pytest.approx([141])
    assert fit_tails(logits, labels, n_tail=99, kind="euclidean").starts == pytest.approx([136])


def test_items_are_extreme_only_from_the_tail_on():
    tails = ClassTails(np.array([[10.0, 0.0]]), np.array([5.0]), (Weibull(3.0, 2.0),), "euclidean")
    extremeness = tails(np.array([[10.0, 0.0], [14.0, 0.0], [16.0, 0.0], [30.0, 0.0]]))[:, 0]
    np.testing.assert_allclose(extremeness, [0, 0, 1 - np.exp(-1), 1], atol=1e-12)


def test_both_distances_are_an_angle_and_a_little_length():
    found = distances(np.array([[3.0, 4.0]]), np.array([[-3.0, -4.0], [6.0, 8.0]]), "both")
    np.testing.assert_allclose(found, [[10 / 200 + 2, 5 / 200]], atol=1e-12)


def test_both_distances_can_be_used_by_the_method():
    method = replace(OWN, distance="both", rule="recall")
    scores = [fitted(m).predict(POOL).unknown_score for m in (method, replace(OWN, rule="recall"))]
    assert np.isfinite(scores).all()
    assert not np.allclose(*scores)


def test_its_own_rule_wants_a_probable_class():
    predictions = fitted(OWN).predict(POOL)
    named = predictions.labels != UNKNOWN
    assert named.any()
    assert (predictions.confidence[named] >= 0.9).all()
    assert (predictions.confidence[~named] > 0.1).all()
    loose = replace(OWN, least_probability=0.5).fit(KNOWN, POOL, seed=0).predict(POOL)
    assert (loose.labels == UNKNOWN).sum() < (~named).sum()


def test_its_own_rule_calls_an_item_unknown_where_that_is_most_probable():
    recogniser = replace(OWN, least_probability=0.0).fit(KNOWN, POOL, seed=0)
    assert isinstance(recogniser, PublishedRule)
    predictions = recogniser.predict(POOL)
    surely = predictions.unknown_score > 0  # P_unknown over one half
    assert surely.any()
    assert (predictions.labels[surely] == UNKNOWN).all()


def test_the_log_odds_of_a_lone_class_are_a_difference():
    np.testing.assert_allclose(unknown_log_odds(np.array([[2.0, 5.0]])), [3.0])
    assert unknown_log_odds(np.array([[800.0, 0.0, 900.0]])) == pytest.approx(
        900 - logsumexp([800, 0])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_tail": 0}, "n_tail is 0"),
        ({"n_ranks": 0}, "n_ranks is 0"),
        ({"distance": "cosine"}, "distance is 'cosine'"),
        ({"rule": "mine"}, "rule is 'mine'"),
        ({"least_probability": 1.5}, "least_probability is 1.5"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(change, message):
    with pytest.raises(SettingsError, match=message):
        replace(OWN, **change)
