"""Is anything unknown: the tests keep their level and find what they say they would find."""

import numpy as np
import pytest
from scipy.stats import binomtest, hypergeom

from s2osc.pipeline.audit import unknown_test
from s2osc.pipeline.audit.unknown_test import (
    FEW_DRAWN,
    anything_unknown,
    draw_parts,
    few_judges,
    findable_share,
    most_agree,
    top_sizes,
    unknown_at_far_end,
)

pytestmark = pytest.mark.usefixtures("as_users_get_it")

many_or_few_pools = pytest.mark.parametrize(
    "n_pools", [60, pytest.param(400, marks=pytest.mark.slow)]
)
few_or_many_times = pytest.mark.parametrize(
    "n_times", [5, pytest.param(20, marks=pytest.mark.slow)]
)


def random(seed=0):
    return np.random.default_rng(seed)


def mixture(pi, shift, *, n_pool=3_000, n_seeds=1_000, seed=0):
    """Scores of a pool with a share ``pi`` of unknown items, and of seeds."""
    draw, n_unknown = random(seed), round(pi * n_pool)
    pool = draw.normal(size=n_pool)
    pool[:n_unknown] += shift
    return pool, draw.normal(size=n_seeds)


def p_value(pool, judges, pool_named=None, judge_named=None):
    """The test by one score; without names, f gives all items the same."""
    if pool_named is None:
        pool_named, judge_named = np.zeros(len(pool), int), np.zeros(len(judges), int)
    return anything_unknown(
        np.concatenate([pool, judges])[:, None],
        np.concatenate([pool_named, judge_named]),
        np.arange(len(pool) + len(judges)) >= len(pool),
    )


@pytest.mark.parametrize("shift", [3.0, 6.0])
def test_a_pool_with_unknown_items_is_told_from_the_seeds(shift):
    pool, seeds = mixture(0.1, shift, n_pool=1_000, n_seeds=300)
    assert p_value(pool, seeds) < 1e-4


def test_a_pool_that_is_all_unknown_is_told_from_the_seeds():
    assert p_value(np.full(50, 2.0), np.full(30, 1.0)) < 1e-4


@pytest.mark.parametrize(
    ("size", "m"), [(1, 1), (5, 5), (30, 29), (300, 2), (80, 20), (20_000, FEW_DRAWN), (900, 600)]
)
def test_parts_are_drawn_side_by_side_as_one_after_the_other(size, m):
    drawn, one_by_one = draw_parts(size, m, 30, random()), random()
    for part in drawn:
        expected = one_by_one.choice(size, m, replace=False, shuffle=False)
        np.testing.assert_array_equal(part, expected)


def test_scores_that_are_all_the_same_say_nothing():
    assert p_value(np.ones(500), np.ones(200)) > 0.05


@pytest.mark.parametrize(("n_pool", "n_seeds"), [(2, 1), (2, 2), (5, 1), (3, 40)])
def test_a_few_items_can_be_tested(n_pool, n_seeds):
    p = p_value(np.arange(n_pool) + 100.0, np.arange(n_seeds))
    assert 0 < p <= 1


@pytest.mark.parametrize("n_pools", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_a_shift_of_classes_is_no_unknown_class_where_each_name_is_tested_by_itself(n_pools):
    p = []
    for seed in range(n_pools):
        draw = random(seed)
        named, seed_named = (draw.random(400) < 0.9).astype(int), np.repeat([0, 1], 60)
        pool, seeds = draw.normal(size=400) + 2 * named, draw.normal(size=120) + 2 * seed_named
        p.append(p_value(pool, seeds, named, seed_named))
        if seed == 0:
            assert p_value(pool, seeds) < 0.01  # without names it is taken for one
    assert np.mean(np.array(p) <= 0.05) <= 0.075


def test_an_unknown_class_that_hides_behind_one_name_is_found_by_it():
    pool, seeds = mixture(0.2, 4.0, n_pool=600, n_seeds=200)
    pool_named, seed_named = np.zeros(600, int), np.arange(200) % 2
    pool_named[300:] = 1
    assert p_value(pool, seeds, pool_named, seed_named) < 1e-4


def test_a_few_seeds_of_a_name_that_lie_below_most_of_its_items_are_enough():
    items, seeds = np.r_[np.arange(54.0), 100 + np.arange(98.0)], np.linspace(0.5, 53, 10)
    rest = random(0)
    pool, seeds = np.r_[items, rest.normal(size=91)], np.r_[seeds, rest.normal(size=57)]
    pool_named = np.repeat([3, 0, 1, 2], [152, 31, 30, 30])
    seed_named = np.repeat([3, 0, 1, 2], [10, 19, 19, 19])
    assert p_value(pool, seeds, pool_named, seed_named) < 0.025


@few_or_many_times
def test_an_unknown_class_that_is_spread_over_all_names_is_found_in_their_tops_together(n_times):
    alone, together = [], []
    for seed in range(n_times):
        draw = random(seed)
        named, seed_named = np.repeat(np.arange(5), [100, 20, 20, 20, 28]), np.arange(225) % 5
        pool, seeds = draw.normal(size=188), draw.normal(size=225)
        pool[draw.permutation(188)[:28]] += 3
        together.append(p_value(pool, seeds, named, seed_named))
        by_name = [p_value(pool[named == c], seeds[seed_named == c]) for c in range(5)]
        alone.append(min(1.0, 5 * min(by_name)))
    assert np.mean(np.array(together) < 0.01) > 0.8 > np.mean(np.array(alone) < 0.01)


def test_names_no_seed_has_cannot_be_tested():
    pool, seeds = mixture(0.2, 4.0, n_pool=600, n_seeds=200)
    assert p_value(pool, seeds, np.ones(600, int), np.zeros(200, int)) == 1.0


@many_or_few_pools
@pytest.mark.parametrize("n_names", [1, 4])
def test_the_test_by_names_keeps_its_level_whatever_the_mix(n_names, n_pools, monkeypatch):
    monkeypatch.setattr(unknown_test, "N_DRAWN", 400)
    p = []
    for seed in range(n_pools):
        draw = random(seed)
        named, seed_named = draw.integers(0, n_names, 120) ** 2, draw.integers(0, n_names, 40) ** 2
        # Whoever is called by a name has scores of its own, in the pool as among the seeds.
        pool, seeds = draw.normal(size=120) + named, draw.normal(size=40) + seed_named
        p.append(p_value(pool, seeds, named, seed_named))
    n_wrong = int((np.array(p) <= 0.05).sum())
    assert binomtest(n_wrong, n_pools, 0.05, alternative="greater").pvalue > 0.01
    assert n_wrong > n_pools / 60  # nor is the test blind


@few_or_many_times
def test_the_test_by_names_finds_a_clear_unknown_class(n_times):
    found = []
    for seed in range(n_times):
        draw = random(seed)
        pool, seeds = draw.normal(size=500), draw.normal(size=225)
        pool[:25] += 5
        found.append(p_value(pool, seeds, np.arange(500) % 5, np.arange(225) % 5))
    assert np.mean(np.array(found) <= 0.01) > 0.8


@pytest.mark.parametrize(
    ("n_pool", "n_seeds"), [(2, 1), (1, 1), (2, 30), (40, 1)], ids=lambda n: f"{n}"
)
def test_a_few_items_can_be_tested_by_names(n_pool, n_seeds):
    pool, seeds = mixture(0.5, 9.0, n_pool=n_pool, n_seeds=n_seeds)
    p = p_value(pool, seeds, np.arange(n_pool) % 2, np.arange(n_seeds) % 3)
    assert 0 < p <= 1


# Several scores and folds


def test_a_class_that_one_of_several_scores_finds_is_found():
    draw, names = random(1), np.arange(1_200) % 4
    scores, is_judge = draw.normal(size=(1_200, 6)), np.arange(1_200) >= 600
    scores[:40, 2] += 6
    assert anything_unknown(scores.mean(axis=1)[:, None], names, is_judge) > 1e-4
    assert anything_unknown(scores, names, is_judge) < 1e-4


def test_scores_that_say_the_same_cost_nothing():
    draw, names = random(3), np.zeros(600, int)
    score, is_judge = draw.normal(size=600), np.arange(600) >= 400
    score[:15] += 3
    one, same = (anything_unknown(np.tile(score[:, None], n), names, is_judge) for n in (1, 8))
    assert 1e-3 < one < 0.2
    assert same == pytest.approx(one, rel=0.5)


@many_or_few_pools
def test_several_scores_keep_the_level(n_pools):
    p = []
    for seed in range(n_pools):
        draw = random(seed)
        scores = np.round(draw.normal(size=(160, 4)) + draw.normal(size=(160, 1)), 1)  # with ties
        p.append(anything_unknown(scores, draw.integers(0, 3, 160), np.arange(160) >= 110))
    n_wrong = int((np.array(p) <= 0.05).sum())
    assert binomtest(n_wrong, n_pools, 0.05, alternative="greater").pvalue > 0.01
    assert n_wrong > n_pools / 60  # nor is the test blind


def test_of_three_folds_two_must_agree():
    assert most_agree([0.5, 0.002, 0.004]) == pytest.approx(0.006)
    assert most_agree([0.01]) == 0.01
    assert most_agree([0.9, 0.8, 0.0]) == 1.0


@pytest.mark.parametrize("dependence", ["alike", "independent", "opposed"])
def test_folds_that_agree_keep_the_level_however_they_depend(dependence):
    draw = random(0)
    first = draw.random(20_000)
    others = {
        "alike": (first, first),
        "independent": (draw.random(20_000), draw.random(20_000)),
        "opposed": ((first + 1 / 3) % 1, (first + 2 / 3) % 1),
    }[dependence]
    p = np.array([most_agree(each) for each in zip(first, *others, strict=True)])
    assert np.mean(p <= 0.05) <= 0.053


# Another source


def test_at_the_far_end_so_many_known_items_may_lie_as_are_tolerated():
    draw, p = random(0), []
    for _ in range(50):
        pool, seeds = draw.normal(size=400), draw.normal(size=100)
        pool[:40] += 2.5  # known, but of another source
        p.append(unknown_at_far_end(pool, seeds, 0.1))
    assert np.mean(np.array(p) <= 0.01) <= 0.04


def test_a_large_class_beyond_the_far_end_is_found_in_spite_of_the_tolerance():
    draw = random(0)
    pool, seeds = draw.normal(size=400), draw.normal(size=100)
    pool[:160] += 5
    assert unknown_at_far_end(pool, seeds, 0.1) < 1e-4
    assert unknown_at_far_end(pool, seeds, 0.5) == 1.0


@pytest.mark.parametrize(("n_pool", "n_seeds"), [(1, 1), (2, 1), (1, 9)])
def test_a_few_items_have_a_far_end(n_pool, n_seeds):
    assert 0 < unknown_at_far_end(np.arange(n_pool) + 9.0, np.arange(n_seeds) * 1.0, 0.1) <= 1


# What would have been found


@pytest.mark.parametrize(("n_pool", "n_judges"), [(40, 30), (500, 60), (5_000, 1_333)])
def test_the_findable_share_is_the_smallest_top_that_the_test_rejects(n_pool, n_judges):
    level, sizes = 0.01 / unknown_test.N_TESTS, top_sizes(n_pool + n_judges)
    n = round(findable_share(n_pool, n_judges, 0.01) * n_pool)
    before = sizes[list(sizes).index(n) - 1]
    assert hypergeom.pmf(0, n_pool + n_judges, n_judges, n) <= level
    assert hypergeom.pmf(0, n_pool + n_judges, n_judges, before) > level


@pytest.mark.parametrize("n_times", [4, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("n_pool", "n_judges"), [(500, 67), (500, 1_000)])
def test_a_class_of_the_findable_share_that_stands_apart_is_found(n_pool, n_judges, n_times):
    n, n_found = round(findable_share(n_pool, n_judges, 0.01) * n_pool), 0
    for seed in range(n_times):
        draw = random(seed)
        scores = draw.normal(size=(n_pool + n_judges, 5)) + draw.normal(size=(n_pool + n_judges, 1))
        scores[:n] += 20
        names = draw.integers(0, 5, len(scores))
        p = anything_unknown(scores, names, np.arange(len(scores)) >= n_pool)
        n_found += min(1.0, 2 * most_agree([p] * 3)) <= 0.01
    assert n_found >= n_times - 1


def test_more_judges_find_smaller_classes_and_none_finds_any():
    shares = [findable_share(2_000, n, 0.01) for n in (1, 10, 100, 1_000)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.99
    assert findable_share(10, 0, 0.01) == 1.0
    assert findable_share(100_000, 2_000, 0.01) < 0.008


@pytest.mark.parametrize(("size", "n_judges"), [(30, 8), (30, 29), (5, 1)])
def test_the_chance_of_few_judges_is_that_of_scipy(size, n_judges):
    found, in_top = np.arange(n_judges + 1), np.arange(size + 1)[:, None]
    expected = hypergeom.pmf(found, size, n_judges, in_top)
    np.testing.assert_allclose(few_judges(found, size, n_judges, in_top), expected, atol=1e-12)


@pytest.mark.parametrize("apart", [0.0, 0.2, 1.0])
def test_chances_too_small_to_count_change_no_p_value(apart, monkeypatch):
    draw = random(3)
    names, is_judge = draw.integers(0, 4, 1_500), draw.random(1_500) < 0.4
    scores = draw.normal(size=(1_500, 2)) + apart * ~is_judge[:, None]
    p = anything_unknown(scores, names, is_judge)
    monkeypatch.setattr(unknown_test, "NEGLIGIBLE", 0.0)
    assert anything_unknown(scores, names, is_judge) == pytest.approx(p, rel=1e-12)
