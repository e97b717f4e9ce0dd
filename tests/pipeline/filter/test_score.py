"""One score out of several signs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

from s2osc.pipeline.filter import score as fusion
from s2osc.pipeline.filter.score import (
    learn_score,
    ranks,
    squash,
    unknown_probability,
)

N_POOL, N_SEEDS = 600, 200
IS_SEED = np.arange(N_POOL + N_SEEDS) >= N_POOL
WEIGHTS = np.ones(N_POOL + N_SEEDS)


def draw_signs(n_unknown=0, shift=2.0, n_signs=3, seed=0):
    """Signs of pool and seeds; the first items of the pool are unknown."""
    signs = np.random.default_rng(seed).normal(size=(N_POOL + N_SEEDS, n_signs))
    signs[:n_unknown] += shift
    return signs


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Three models instead of ten: the promises are the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fusion, "N_FOLDS", 3)
        patch.setattr(fusion, "N_REPEATS", 1)
        yield


@pytest.fixture(scope="module")
def learnt():
    signs = draw_signs(200)
    return signs, learn_score(signs, IS_SEED, WEIGHTS, seed=0)


def test_a_learnt_score_ranks_unknown_items_as_well_as_the_best_one(learnt):
    signs, score = learnt
    is_unknown = np.arange(N_POOL) < 200
    best = roc_auc_score(is_unknown, signs[:N_POOL].sum(1))
    assert roc_auc_score(is_unknown, score[:N_POOL]) > best - 0.02


def test_a_sign_of_noise_does_little_harm(learnt):
    signs, score = learnt
    noise = np.random.default_rng(9).normal(size=(len(signs), 3))
    with_noise = learn_score(np.column_stack([signs, noise]), IS_SEED, WEIGHTS, seed=0)
    is_unknown = np.arange(N_POOL) < 200
    assert roc_auc_score(is_unknown, with_noise[:N_POOL]) > (
        roc_auc_score(is_unknown, score[:N_POOL]) - 0.02
    )


@pytest.mark.parametrize(("row", "sign"), [(3, 0), (700, 1)])
def test_a_sign_that_rises_never_lowers_the_score(learnt, row, sign):
    signs, score = learnt
    raised = signs.copy()
    raised[row, sign] += 1.5
    assert learn_score(raised, IS_SEED, WEIGHTS, seed=0)[row] >= score[row] - 1e-9


def test_who_is_stranger_in_every_way_scores_higher(learnt):
    # Items are scored by different models, so this holds for clear differences.
    signs, score = learnt
    order = np.argsort(signs.min(1))
    strange, usual = order[-20:], np.argsort(signs.max(1))[:20]
    assert score[strange].min() > score[usual].max()


def test_signs_that_are_noise_tell_seeds_from_the_pool_no_better_than_chance():
    # A model that had seen what it scores would tell them apart.
    score = learn_score(draw_signs(n_signs=6), IS_SEED, WEIGHTS, seed=0)
    assert roc_auc_score(~IS_SEED, score) == pytest.approx(0.5, abs=0.08)


def test_the_same_seed_gives_the_same_score(learnt):
    signs, score = learnt
    np.testing.assert_array_equal(learn_score(signs, IS_SEED, WEIGHTS, seed=0), score)
    assert not np.array_equal(learn_score(signs, IS_SEED, WEIGHTS, seed=1), score)


def test_only_the_order_of_a_sign_matters_and_the_size_of_all_weights_does_not(learnt):
    signs, score = learnt
    again = learn_score(np.exp(signs), IS_SEED, 4 * WEIGHTS, seed=0)
    np.testing.assert_allclose(again, score, rtol=1e-6)


def test_seeds_of_a_class_that_is_rare_in_the_pool_count_less():
    # Half of the seeds are of a class that is strange, but absent from the pool.
    signs = draw_signs(150)
    signs[N_POOL : N_POOL + N_SEEDS // 2] += 2.0
    weights = WEIGHTS.copy()
    weights[N_POOL : N_POOL + N_SEEDS // 2] = 0.01
    is_unknown = np.arange(N_POOL) < 150
    plain, weighted = (learn_score(signs, IS_SEED, w, seed=0)[:N_POOL] for w in (WEIGHTS, weights))
    assert roc_auc_score(is_unknown, weighted) > roc_auc_score(is_unknown, plain) + 0.02
    assert roc_auc_score(is_unknown, weighted) > 0.9


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
