import numpy as np
import pytest

from s2osc.pipeline.audit.cross_conformal import (
    Judged,
    NamedItems,
    at_places,
    join_folds,
    places_among,
    places_within,
)
from s2osc.pipeline.audit.threshold import Evidence


def fold(score, seed_score, odds=None, known=None):
    m = len(seed_score)
    evidence = Evidence(
        score=score,
        nearest=np.zeros(len(score), int),
        nearest_confidence=np.ones(len(score)),
        seed_score=seed_score,
        seed_label=np.zeros(m, int),
        seed_nearest=np.zeros(m, int),
        seed_weight=np.ones(m),
        p_value=0.0,
    )
    return Judged(
        evidence=evidence,
        odds=np.append(score, seed_score) if odds is None else odds,
        known=np.tile([0.8, 0.2], (len(score), 1)) if known is None else known,
        held_back=NamedItems(np.full(m, 0.9), np.ones(m, bool), np.ones(m)),
    )


@pytest.fixture
def two_folds():
    random = np.random.default_rng(0)
    score = random.normal(size=200)
    return fold(score, random.normal(size=20)), fold(score, random.normal(size=30))


def test_one_fold_is_itself(two_folds):
    assert join_folds(two_folds[:1]) is two_folds[0]


def test_the_calibration_items_of_all_folds_judge(two_folds):
    joined = join_folds(two_folds)
    assert len(joined.evidence.seed_score) == len(joined.evidence.seed_weight) == 50
    assert len(joined.odds) == 200 + 50
    assert len(joined.held_back.is_right) == 50


def test_the_scale_of_a_fold_does_not_matter(two_folds):
    one, other = two_folds
    stretched = fold(np.exp(3 * other.evidence.score), np.exp(3 * other.evidence.seed_score))
    plain, again = join_folds([one, other]), join_folds([one, stretched])
    np.testing.assert_array_equal(plain.evidence.score, again.evidence.score)
    np.testing.assert_array_equal(plain.evidence.seed_score, again.evidence.seed_score)
    np.testing.assert_array_equal(plain.odds, again.odds)


def test_folds_that_agree_leave_the_ranking_of_the_pool_as_it_is(two_folds):
    joined = join_folds(two_folds)
    np.testing.assert_allclose(joined.evidence.score, two_folds[0].evidence.score)


def test_a_calibration_item_stands_where_it_stood_in_its_own_fold(two_folds):
    one, other = two_folds
    joined = join_folds(two_folds).evidence
    for n_before, each in ((0, one), (20, other)):
        m = len(each.evidence.seed_score)
        was = places_among(each.evidence.score, each.evidence.seed_score)
        now = places_among(joined.score, joined.seed_score[n_before : n_before + m])
        np.testing.assert_allclose(now, was, atol=1 / 200)


def test_as_much_of_the_pool_is_above_a_place_as_in_each_fold():
    """Means of places vary less; else few items of the pool would be as ordinary as seeds."""
    random = np.random.default_rng(1)
    folds = [fold(random.normal(size=500), random.normal(size=100)) for _ in range(5)]
    evidence = join_folds(folds).evidence
    for share in (0.1, 0.5, 0.9):
        threshold = np.quantile(evidence.score, share)
        assert np.mean(evidence.seed_score < threshold) == pytest.approx(share, abs=0.06)


def test_the_known_class_is_that_of_most_folds():
    known = np.array([[0.9, 0.1], [0.4, 0.6]])
    folds = [fold(np.arange(2.0), np.arange(3.0), known=k) for k in (known, known, known[::-1])]
    assert join_folds(folds).evidence.nearest.tolist() == [0, 0]


def test_an_item_that_is_surely_unknown_in_one_fold_has_the_class_of_the_others():
    sure = np.array([[0.0, 0.0], [0.9, 0.1]])
    other = np.array([[0.1, 0.2], [0.8, 0.2]])
    joined = join_folds([fold(np.arange(2.0), np.arange(3.0), known=k) for k in (sure, other)])
    assert np.isfinite(joined.known).all()
    assert joined.evidence.nearest.tolist() == [1, 0]


def test_places_and_scores_are_inverse():
    scores = np.random.default_rng(2).normal(size=50)
    np.testing.assert_allclose(at_places(scores, places_within(scores)), scores)
