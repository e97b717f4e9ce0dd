"""Best bin estimation of the known share of a pool."""

import numpy as np
import pytest

from s2osc.baselines.mixture import best_bin_estimate
from s2osc.errors import DataError

POSITIVES = np.linspace(0.8, 1, 1_002)[1:-1]


def test_a_pool_with_sixty_percent_positives_is_told():
    pool = np.concatenate([np.linspace(0.8, 1, 602)[1:-1], np.zeros(400)])
    assert best_bin_estimate(POSITIVES, pool) == pytest.approx(0.6, abs=0.02)


def test_a_pool_like_the_positives_is_all_positive():
    assert best_bin_estimate(POSITIVES, POSITIVES) == 1


@pytest.mark.parametrize("pool", [np.zeros(500), np.linspace(0, 0.7, 500)], ids=["one", "many"])
def test_a_pool_below_all_positives_holds_none(pool):
    assert best_bin_estimate(POSITIVES, pool) == pytest.approx(0, abs=1e-9)


def test_a_pool_above_all_positives_is_not_more_than_all_positive():
    assert best_bin_estimate(POSITIVES, POSITIVES + 1) == 1


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_overlapping_scores_give_about_the_share(share):
    random = np.random.default_rng(0)
    positives, n_known = random.normal(3, 1, 3_000), int(share * 4_000)
    pool = np.concatenate([random.normal(3, 1, n_known), random.normal(0, 1, 4_000 - n_known)])
    assert best_bin_estimate(positives, pool) == pytest.approx(share, abs=0.05)


def test_the_scale_of_the_scores_does_not_matter():
    random = np.random.default_rng(0)
    positives, pool = random.normal(2, 1, 500), random.normal(0, 2, 500)
    share = best_bin_estimate(positives, pool)
    assert best_bin_estimate(np.exp(positives), np.exp(pool)) == pytest.approx(share)


def test_bins_of_few_positives_are_not_trusted():
    # Above 0.95 there are 2 of 200 positives and no pool item at all, which is luck.
    positives = np.concatenate([np.full(198, 0.9), np.full(2, 0.99)])
    pool = np.concatenate([np.full(100, 0.9), np.full(100, 0.1)])
    assert best_bin_estimate(positives, pool) == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("n_p", "n_u"), [(0, 5), (5, 0)])
def test_no_scores_are_refused(n_p, n_u):
    with pytest.raises(DataError, match=f"{n_p} positive and {n_u} unlabelled"):
        best_bin_estimate(np.ones(n_p), np.ones(n_u))
