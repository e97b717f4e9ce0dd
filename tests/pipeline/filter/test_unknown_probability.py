"""What a score says about each item."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm

from s2osc.pipeline.filter.unknown_probability import ranks, squash, unknown_probability

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
