"""One score out of several signs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from s2osc.pipeline.filter.score import ranks, scores_of_signs, squash, unknown_probability
from s2osc.pipeline.filter.signs import KNOWN_NEIGHBOURS, Signs, sum_of_signs

N_POOL, N_SPIES = 600, 200
IS_SPY = np.arange(N_POOL + N_SPIES) >= N_POOL
NAMES = np.zeros(N_POOL + N_SPIES, int)
BY_INPUTS = f"{KNOWN_NEIGHBOURS}1, 30"


def draw_signs(n_unknown=0, shift=2.0, names=("entropy of f", BY_INPUTS, "distance"), seed=0):
    """Signs of pool and spies, each of its own family; the first items of the pool are unknown."""
    columns = np.random.default_rng(seed).normal(size=(N_POOL + N_SPIES, len(names)))
    columns[:n_unknown] += shift
    return Signs(columns, tuple(names), tuple(names))


def test_all_signs_together_rank_unknown_items_better_than_any_of_them():
    signs, is_unknown = draw_signs(200), np.arange(N_POOL) < 200
    score = scores_of_signs(signs, NAMES, IS_SPY)[0][:N_POOL]
    best = max(roc_auc_score(is_unknown, column[:N_POOL]) for column in signs.columns.T)
    assert roc_auc_score(is_unknown, score) > best + 0.02


def test_neighbours_find_a_class_that_f_cannot_see():
    signs, is_unknown = draw_signs(names=("a", "b", "c", BY_INPUTS)), np.arange(N_POOL) < 200
    signs.columns[:200, 3] += 4.0
    (score, by_near, _), total = (f(signs, NAMES, IS_SPY) for f in (scores_of_signs, sum_of_signs))
    assert roc_auc_score(is_unknown, by_near[:N_POOL]) > 0.98
    found, found_by_sum = (roc_auc_score(is_unknown, v[:N_POOL]) for v in (score, total))
    assert found > found_by_sum + 0.05


@pytest.mark.parametrize("sign", range(3))
def test_a_sign_that_rises_never_lowers_the_score(sign):
    signs = draw_signs(100)
    score = scores_of_signs(signs, NAMES, IS_SPY)[0][3]
    signs.columns[3, sign] += 1.5
    assert scores_of_signs(signs, NAMES, IS_SPY)[0][3] > score


def test_the_score_does_not_know_who_is_of_the_pool():
    signs, order = draw_signs(100), np.arange(N_POOL + N_SPIES)
    order[[5, 590]] = 590, 5
    moved = Signs(signs.columns[order], signs.names, signs.families)
    score, again = (scores_of_signs(each, NAMES, IS_SPY)[0] for each in (signs, moved))
    np.testing.assert_allclose(again, score[order])


def test_without_neighbours_among_the_inputs_the_sum_of_the_signs_is_the_score():
    signs = draw_signs(100, names=("entropy of f", "distance"))
    (score,), total = (f(signs, NAMES, IS_SPY) for f in (scores_of_signs, sum_of_signs))
    np.testing.assert_array_equal(np.argsort(score), np.argsort(total))


# Ranks


@given(arrays(np.float64, st.integers(1, 30), elements=st.integers(0, 5).map(float)))
def test_ranks_keep_the_order_and_lie_between_nought_and_one(values):
    found = ranks(values)
    np.testing.assert_array_equal(
        np.sign(found[:, None] - found), np.sign(values[:, None] - values)
    )
    assert found.min() > 0
    assert found.max() <= 1


# Probabilities


def gaussians(pi, shift, n_pool=20_000, n_seeds=10_000, seed=0):
    random = np.random.default_rng(seed)
    unknown = random.random(n_pool) < pi
    score = np.concatenate(
        [random.normal(size=n_pool) + shift * unknown, random.normal(size=n_seeds)]
    )
    return score, np.arange(len(score)) >= n_pool


def tell_unknown(score, is_seed, pi, weights=None, seed=0):
    weights = np.ones(len(score)) if weights is None else weights
    return unknown_probability(score, is_seed, weights, pi, seed=seed)


@pytest.mark.parametrize(("pi", "shift"), [(0.3, 3.0), (0.1, 2.0), (0.6, 1.0)])
def test_the_probability_of_unknown_is_the_true_one_of_two_gaussians(pi, shift):
    score, is_seed = gaussians(pi, shift)
    p = tell_unknown(score, is_seed, pi)
    known, unknown = (1 - pi) * norm.pdf(score), pi * norm.pdf(score - shift)
    truth = unknown / (known + unknown)
    assert np.abs(p - truth)[~is_seed].mean() < 0.02
    assert p[~is_seed].mean() == pytest.approx(pi, abs=0.03)


def test_the_probability_rises_with_the_score():
    score, is_seed = gaussians(0.3, 2.0, 500, 200)
    p = tell_unknown(score, is_seed, 0.3)
    tenths = p[np.argsort(score)].reshape(10, 70).mean(1)
    # Each item has one of several curves, so neighbours may change places.
    assert (np.diff(tenths) > -0.02).all()
    assert tenths[-1] - tenths[0] > 0.7
    assert p.min() >= 0
    assert p.max() <= 1


def test_a_seed_does_not_pull_its_own_probability_down():
    # Seeds and pool are alike, and no score comes twice.
    gaps = []
    for seed in range(15):
        score, is_seed = gaussians(0.0, 0.0, 400, 200, seed=seed)
        p = tell_unknown(score, is_seed, 0.2)
        gaps.append(p[~is_seed].mean() - p[is_seed].mean())
    assert np.mean(gaps) == pytest.approx(0, abs=0.03)


def test_where_nothing_is_unknown_the_probability_is_about_nought():
    score, is_seed = gaussians(0.0, 0.0)
    assert tell_unknown(score, is_seed, 0.0).mean() < 0.05


def test_seeds_of_little_weight_have_little_to_say():
    score, is_seed = gaussians(0.3, 2.0, 4_000, 2_000)
    right = tell_unknown(score, is_seed, 0.3)[:4_000]
    strange = np.random.default_rng(1).normal(size=2_000) + 2  # of a class the pool has not
    score, is_seed = np.append(score, strange), np.append(is_seed, np.ones(2_000, bool))
    light = np.append(np.ones(6_000), np.full(2_000, 1e-3))
    assert np.abs(tell_unknown(score, is_seed, 0.3, light)[:4_000] - right).mean() < 0.03
    assert np.abs(tell_unknown(score, is_seed, 0.3)[:4_000] - right).mean() > 0.1


@pytest.mark.parametrize(("n_pool", "n_seeds"), [(2, 1), (1, 5), (3, 2)])
def test_a_few_items_have_a_probability(n_pool, n_seeds):
    score, is_seed = gaussians(0.0, 0.0, n_pool, n_seeds)
    p = tell_unknown(score, is_seed, 0.25)
    assert p.min() >= 0
    assert p.max() <= 1


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_squashing_keeps_the_order(a, b):
    if a < b:
        assert 0 <= squash(a) <= squash(b) <= 1
