"""What seeds say: intervals, thresholds, the test and the unknown share against known answers."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, hypergeom

from s2osc.pipeline.audit.statistics import (
    Tails,
    bootstrap,
    bound_on_known,
    chance_of_at_most,
    conformal_threshold,
    effective_number,
    estimated_f_out,
    exact_interval,
    likely_share,
    operating_point,
    p_known,
    purity_of_top,
    smallest_promise,
    smallest_promise_for_pool,
    tails,
    threshold_for_pool,
    true_unknowns,
    unknown_share,
    weighted_interval,
)

tied_scores = st.integers(1, 30).flatmap(
    lambda n: arrays(np.float64, n, elements=st.integers(0, 6).map(float))
)


def random(seed=0):
    return np.random.default_rng(seed)


def mixture(pi, shift, *, n_pool=3_000, n_seeds=1_000, seed=0):
    """Scores of a pool with a share ``pi`` of unknown items, and of seeds."""
    draw, n_unknown = random(seed), round(pi * n_pool)
    pool = draw.normal(size=n_pool)
    pool[:n_unknown] += shift
    return pool, draw.normal(size=n_seeds)


# The limit in one pool


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n_seeds", "n_pool"), [(60, 300), (200, 100)])
def test_the_limit_is_exceeded_in_at_most_one_pool_of_twenty(n_seeds, n_pool, weighted):
    draw, n_exceeded, n = random(), 0, 400
    for _ in range(n):
        seeds, pool = draw.normal(size=n_seeds), draw.normal(size=n_pool)
        weights = draw.uniform(0.5, 2, n_seeds) if weighted else np.ones(n_seeds)
        n_exceeded += np.mean(pool > threshold_for_pool(seeds, weights, 0.1, n_pool)) > 0.1
    assert 0 < n_exceeded <= 0.05 * n + 2 * np.sqrt(0.05 * 0.95 * n)


def test_in_one_pool_the_threshold_is_higher_than_on_average():
    seeds, weights = random().normal(size=300), np.ones(300)
    in_pool = threshold_for_pool(seeds, weights, 0.05, 1_000)
    assert in_pool in seeds
    assert in_pool > conformal_threshold(seeds, weights, 0.05)


@pytest.mark.parametrize("weights", [np.ones(40), random().uniform(0.5, 2, 40)])
def test_what_no_seed_can_promise_for_a_pool_is_left_to_the_largest(weights):
    seeds, smallest = random().normal(size=40), smallest_promise_for_pool(weights, 1_000)
    assert smallest > smallest_promise(weights)
    assert threshold_for_pool(seeds, weights, smallest * 0.5, 1_000) == seeds.max()
    assert threshold_for_pool(seeds, weights, smallest * 3, 1_000) < seeds.max()


# The p-value of an item


@given(tied_scores, st.integers(0, 2**32 - 1))
def test_the_p_value_of_a_known_item_is_uniform_or_larger(scores, seed):
    """Whichever of the scores is that of the item, the others being the seeds."""
    scores = np.append(scores, random(seed).integers(0, 6))
    n, others = len(scores), ~np.eye(len(scores), dtype=bool)
    p = [p_known(scores[[i]], scores[others[i]], np.ones(n - 1))[0] for i in range(n)]
    assert 0 < min(p) <= max(p) <= 1
    for level in np.arange(1, n + 1) / n:
        assert np.mean(np.array(p) <= level + 1e-12) <= level + 1e-9
    if len(np.unique(scores)) == n:
        assert sorted(p) == pytest.approx(np.arange(1, n + 1) / n)


@given(tied_scores, tied_scores, st.integers(0, 2**32 - 1), st.floats(0.001, 0.999))
def test_items_above_a_threshold_at_a_seed_have_p_values_up_to_the_operating_point(
    pool, seeds, seed, rate
):
    weights = random(seed).uniform(0.1, 5, len(seeds))
    threshold = conformal_threshold(seeds, weights, rate)
    p, at = p_known(pool, seeds, weights), operating_point(seeds, weights, threshold)
    np.testing.assert_array_equal(p <= at, pool > threshold)
    assert smallest_promise(weights) <= at + 1e-12


@given(tied_scores, st.floats(0.05, 0.999))
def test_with_equal_weights_the_operating_point_is_within_the_limit(seeds, rate):
    weights = np.ones(len(seeds))
    threshold = conformal_threshold(seeds, weights, rate)
    limit = max(rate, smallest_promise(weights))
    assert operating_point(seeds, weights, threshold) <= limit + 1e-12


def test_the_stranger_an_item_the_smaller_its_p_value():
    pool, seeds = mixture(0.3, 3.0)
    p = p_known(np.sort(pool), seeds, random(1).uniform(0.5, 2, len(seeds)))
    assert (np.diff(p) <= 0).all()


def test_no_p_value_reaches_the_operating_point_of_an_infinite_threshold():
    assert operating_point(np.arange(5.0), np.ones(5), np.inf) == 0


def test_a_threshold_between_neighbouring_numbers_separates_them():
    upper = np.nextafter(1.0, 2.0)
    for low, high in ((1.0, upper), (upper, np.nextafter(upper, 2.0))):
        between = tails(np.array([high]), np.array([low]), np.ones(1)).thresholds[1]
        assert low <= between < high


# Exact intervals


@pytest.mark.parametrize(
    ("hits", "n"), [(0, 1), (0, 50), (5, 100), (50, 100), (99, 100), (100, 100), (3, 700)]
)
def test_for_a_huge_pool_the_interval_is_that_of_clopper_and_pearson(hits, n):
    known = binomtest(hits, n).proportion_ci(confidence_level=0.95, method="exact")
    found = exact_interval(hits, n, 10**8)
    assert found == pytest.approx((hits / n, known.low, known.high), abs=2e-6 * n)


def chance(hits, n, n_pool, in_whole):
    """How probable so many hits among the seeds are, if the whole has ``in_whole``."""
    return Fraction(
        comb(in_whole, hits) * comb(n + n_pool - in_whole, n - hits), comb(n + n_pool, n)
    )


def slow_interval(hits, n, n_pool):
    accepted = []
    for in_pool in range(n_pool + 1):
        whole = hits + in_pool
        as_many = sum(chance(x, n, n_pool, whole) for x in range(hits, n + 1))
        as_few = sum(chance(x, n, n_pool, whole) for x in range(hits + 1))
        if min(as_many, as_few) > Fraction(25, 1000):
            accepted.append(in_pool)
    return hits / n, accepted[0] / n_pool, accepted[-1] / n_pool


@pytest.mark.parametrize(("n", "n_pool"), [(1, 1), (1, 9), (5, 3), (8, 12), (12, 30)])
def test_for_a_small_pool_the_interval_is_what_counting_says(n, n_pool):
    for hits in range(n + 1):
        assert exact_interval(hits, n, n_pool) == pytest.approx(slow_interval(hits, n, n_pool))


@pytest.mark.parametrize(("n", "n_pool"), [(4, 6), (8, 12), (20, 15), (10, 60)])
def test_the_interval_holds_the_rate_of_the_pool_in_19_of_20_random_parts(n, n_pool):
    intervals = [exact_interval(hits, n, n_pool) for hits in range(n + 1)]
    for whole in range(n + n_pool + 1):
        covered = Fraction(0)
        for hits in range(max(0, whole - n_pool), min(n, whole) + 1):
            _, low, high = intervals[hits]
            if low - 1e-9 <= (whole - hits) / n_pool <= high + 1e-9:
                covered += chance(hits, n, n_pool, whole)
        assert covered >= Fraction(95, 100)


@pytest.mark.parametrize(
    ("whole", "marked", "drawn"),
    [
        (10, 4, 3),
        (10, 8, 7),
        (10, 10, 4),
        (10, 0, 4),
        (60, 1, 60),
        (5_400, 700, 400),
        (10**8, 40, 900),
    ],
)
def test_the_chance_of_at_most_so_many_is_that_of_scipy(whole, marked, drawn):
    found = np.arange(-1, min(marked, drawn, 300) + 1)
    ours = [chance_of_at_most(int(m), whole, marked=marked, drawn=drawn) for m in found]
    np.testing.assert_allclose(
        ours, hypergeom.cdf(found, whole, marked, drawn), rtol=1e-9, atol=1e-12
    )


def test_without_seeds_or_known_items_there_is_no_interval():
    assert exact_interval(0, 0, 100) is None
    assert exact_interval(1, 4, 0) is None
    assert weighted_interval(np.array([True, False]), np.array([3.0, 1.0]), 0) is None


def test_more_seeds_make_the_interval_narrower():
    widths = [high - low for _, low, high in (exact_interval(n // 10, n, 10**5) for n in (20, 500))]
    assert widths[1] < widths[0] / 3


def test_weighted_seeds_count_by_their_weight():
    hits, weights = np.array([True, False, False, False]), np.array([3.0, 1.0, 1.0, 1.0])
    found = weighted_interval(hits, weights, 1_000)
    assert found.estimate == 0.5
    assert 0 < found.low < 0.5 < found.high < 1


def test_a_weighted_interval_ends_at_rates_that_so_many_items_can_have():
    hits = np.arange(300) > 0
    weights = np.where(hits, 1.0, 0.5)
    of_many, of_few = (weighted_interval(hits, weights, n) for n in (10**6, 200))
    assert of_many.high < 1
    assert of_few.high == 1  # the next rate below would be 199 of 200
    assert (200 * of_few.low) % 1 == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(("rate", "end"), [(False, "low"), (True, "high")])
def test_a_weighted_interval_reaches_to_its_end_where_all_seeds_agree(rate, end):
    found = weighted_interval(np.full(4, rate), np.array([3.0, 1.0, 1.0, 1.0]), 1_000)
    assert getattr(found, end) == found.estimate == float(rate)


# Thresholds


@pytest.mark.parametrize("n", [1, 2, 5, 19, 20, 21, 60])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.25, 0.5, 0.9])
def test_a_further_item_exceeds_the_threshold_as_rarely_as_promised(n, rate):
    # Whichever of n + 1 exchangeable items is the further one, each is as probable.
    scores = random().permutation(n + 1).astype(float)
    alarms = sum(
        scores[i] > conformal_threshold(np.delete(scores, i), np.ones(n), rate)
        for i in range(n + 1)
    )
    assert alarms == max(1, int(Fraction(str(rate)) * (n + 1)))
    if rate >= smallest_promise(np.ones(n)):
        assert alarms / (n + 1) <= rate


@given(tied_scores, st.sampled_from([0.1, 0.2, 0.5]))
def test_ties_make_no_alarm_more_probable(scores, rate):
    n = len(scores) - 1
    if n < 1 or rate < smallest_promise(np.ones(n)):
        return
    alarms = sum(
        scores[i] > conformal_threshold(np.delete(scores, i), np.ones(n), rate)
        for i in range(n + 1)
    )
    assert alarms / (n + 1) <= rate


@given(tied_scores, st.sampled_from([0.05, 0.3]), st.integers(0, 99))
def test_the_seeds_above_the_threshold_are_within_the_limit_also_with_weights(scores, rate, seed):
    weights = random(seed).uniform(0.2, 5.0, len(scores))
    threshold = conformal_threshold(scores, weights, rate)
    assert weights[scores > threshold].sum() <= rate * (weights.sum() + weights.max())


def test_too_few_seeds_give_the_largest_of_them():
    assert conformal_threshold(np.array([1.0, 7.0, 3.0]), np.ones(3), 0.05) == 7.0


@pytest.mark.parametrize("n", [1, 19, 99])
def test_the_smallest_promise_of_n_seeds_is_one_in_n_and_one(n):
    assert smallest_promise(np.ones(n)) == pytest.approx(1 / (n + 1))


def test_seeds_of_unequal_weight_can_promise_less():
    assert smallest_promise(np.array([5.0, 1.0, 1.0])) == pytest.approx(5 / 12)


# Tails


def test_tails_with_ties_by_hand():
    curve = tails(np.array([5.0, 3.0, 3.0, 1.0]), np.array([3.0, 1.0]), np.ones(2))
    assert curve.thresholds.tolist() == [5.0, 4.0, 2.0, -np.inf]
    assert curve.pool.tolist() == [0.0, 0.25, 0.75, 1.0]
    assert curve.seeds.tolist() == [0.0, 0.0, 0.5, 1.0]


@given(tied_scores, tied_scores, st.integers(0, 99))
def test_tails_are_the_shares_above_each_threshold(pool, seeds, seed):
    weights = random(seed).uniform(0.5, 2.0, len(seeds))
    curve = tails(pool, seeds, weights)
    assert (np.diff(curve.thresholds) < 0).all()
    for threshold, of_pool, of_seeds in zip(*curve, strict=True):
        assert of_pool == pytest.approx(np.mean(pool > threshold))
        assert of_seeds == pytest.approx(weights @ (seeds > threshold) / weights.sum())


# The unknown share


@pytest.mark.parametrize(("shift", "error"), [(1.5, 0.08), (2.0, 0.04), (4.0, 0.02)])
def test_the_likely_share_is_nearer_to_the_truth_than_the_low_estimate(shift, error):
    likely, low = [], []
    for seed in range(20):
        curve = tails(*mixture(0.4, shift, n_pool=2_000, n_seeds=300, seed=seed), np.ones(300))
        likely.append(likely_share(curve, 2_000, 300))
        low.append(unknown_share(curve, 2_000, 300).estimate)
    assert np.mean(likely) == pytest.approx(0.4, abs=error)
    assert abs(np.mean(likely) - 0.4) < abs(np.mean(low) - 0.4)


def test_the_bound_holds_known_items_alone_where_the_unknown_stand_apart():
    pool, seeds = np.r_[np.zeros(60), np.full(40, 9.0)], np.zeros(50)
    bound = bound_on_known(tails(pool, seeds, np.ones(50)), 100, 50)
    assert bound.ratio[bound.tightest] == pytest.approx(0.6)


@pytest.mark.parametrize("pi", [0.05, 0.2, 0.5, 0.9])
def test_the_share_of_unknown_items_that_stand_apart_is_found(pi):
    found = [
        unknown_share(tails(*mixture(pi, 6.0, seed=seed), np.ones(1_000)), 3_000, 1_000)
        for seed in range(40)
    ]
    values, lows, highs = np.array(found).T
    assert np.median(values) == pytest.approx(pi, abs=0.02)
    assert np.mean((lows <= pi) & (pi <= highs)) >= 0.9
    assert (lows <= values).all()
    assert (values <= highs).all()


@pytest.mark.parametrize("pi", [0.2, 0.5])
def test_unknown_items_that_hide_among_the_known_are_not_counted_twice(pi):
    found = [
        unknown_share(tails(*mixture(pi, 1.5, seed=seed), np.ones(1_000)), 3_000, 1_000)
        for seed in range(40)
    ]
    values, lows, _ = np.array(found).T
    assert np.median(values) < pi
    assert np.mean(lows <= pi) >= 0.95


def test_a_pool_without_unknown_items_has_a_share_of_about_nought():
    found = [
        unknown_share(tails(*mixture(0.0, 0.0, seed=seed), np.ones(1_000)), 3_000, 1_000)
        for seed in range(40)
    ]
    values, lows, _ = np.array(found).T
    assert np.median(values) < 0.01
    assert np.mean(lows < 0.01) >= 0.9


def test_true_unknowns_and_f_out_by_hand():
    # pi = 1/2; at the second threshold all of them and a tenth of the known lie above
    curve = Tails(np.array([2.0, 1.0]), np.array([0.3, 0.55]), np.array([0.0, 0.1]))
    np.testing.assert_allclose(true_unknowns(curve, 0.5), [0.3, 0.5])
    # 9 seeds, and one more than lie above counts: alarms .1 and .19
    expected = [2 * 0.25 / 0.8, 2 * 0.455 / 1.05]
    np.testing.assert_allclose(estimated_f_out(curve, 0.5, 9), expected)


def test_where_more_is_found_than_the_share_allows_the_share_gives_way():
    curve = Tails(np.array([1.0]), np.array([0.4]), np.array([0.0]))
    found = 0.4 - 0.8 / 1001
    np.testing.assert_allclose(estimated_f_out(curve, 0.2, 1000), [2 * found / (0.4 + found)])


def test_the_estimated_f_out_is_the_true_one_on_average():
    pi, errors = 0.3, []
    for seed in range(20):
        pool, seeds = mixture(pi, 2.5, seed=seed)
        is_unknown = np.arange(len(pool)) < pi * len(pool)
        curve = tails(pool, seeds, np.ones(len(seeds)))
        found = estimated_f_out(curve, pi, len(seeds))
        for place in np.searchsorted(-curve.thresholds, [-2.5, -1.5, -1.0]):
            called = pool > curve.thresholds[place]
            hits = (called & is_unknown).sum()
            errors.append(found[place] - 2 * hits / (called.sum() + is_unknown.sum()))
    assert np.mean(np.reshape(errors, (20, 3)), axis=0) == pytest.approx([0, 0, 0], abs=0.01)
    assert np.abs(errors).max() < 0.06


# Purity


def test_the_purity_of_the_top_is_near_the_true_one_and_its_bound_below_it():
    pi, sizes = 0.3, np.array([100, 300, 900, 1_500, 3_000])
    errors, bounds = [], []
    for seed in range(20):
        pool, seeds = mixture(pi, 2.5, seed=seed)
        purity = purity_of_top(pool, seeds, np.ones(len(seeds)), pi)
        assert len(purity.estimate) == len(purity.low) == len(pool) + len(seeds)
        order = np.argsort(-np.concatenate([pool, seeds]))
        for size in sizes:
            top = order[:size]
            top = top[top < len(pool)]
            true = np.mean(top < pi * len(pool))
            errors.append(purity.estimate[size - 1] - true)
            bounds.append(purity.low[size - 1] <= true)
    assert np.abs(errors).max() < 0.1
    assert abs(np.mean(errors)) < 0.01
    assert np.mean(bounds) >= 0.94


def test_the_bound_of_the_purity_allows_for_one_seed_more():
    purity = purity_of_top(np.arange(100.0), np.full(10, -1.0), np.ones(10), 0.5)
    # no seed so far; one would stand for 0.5 * 100 / 10 = 5 items
    np.testing.assert_allclose(purity.estimate[:100], 1.0)
    np.testing.assert_allclose(purity.low[[4, 9, 99]], [0.0, 0.5, 0.95])


# Resampling


def test_resampled_tails_vary_about_the_tails_themselves():
    pool, seeds = mixture(0.3, 3.0, n_pool=500, n_seeds=200)
    drawn = bootstrap(pool, seeds, np.ones(200), n=300, random=random())
    assert len(drawn) == 300
    for threshold in (0.0, 1.0, 2.0):
        place = int(np.argmin(np.abs(drawn[0].thresholds - threshold)))
        at = drawn[0].thresholds[place]
        for name, scores in (("pool", pool), ("seeds", seeds)):
            values = np.array([getattr(curve, name)[place] for curve in drawn])
            share = np.mean(scores > at)
            assert values.mean() == pytest.approx(share, abs=0.01)
            deviation = np.sqrt(share * (1 - share) / len(scores))
            assert values.std() == pytest.approx(deviation, rel=0.25)


# Weights


def test_equal_weights_of_any_size_change_nothing():
    pool, seeds = mixture(0.2, 3.0, n_pool=400, n_seeds=150)
    one, other = np.ones(150), np.full(150, 3.7)
    assert effective_number(other) == pytest.approx(150)
    assert smallest_promise(other) == pytest.approx(smallest_promise(one))
    for rate in (0.02, 0.05, 0.2):
        assert conformal_threshold(seeds, other, rate) == conformal_threshold(seeds, one, rate)
    for mine, theirs in zip(tails(pool, seeds, other), tails(pool, seeds, one), strict=True):
        np.testing.assert_allclose(mine, theirs)
    for mine, theirs in zip(
        purity_of_top(pool, seeds, other, 0.2), purity_of_top(pool, seeds, one, 0.2), strict=True
    ):
        np.testing.assert_allclose(mine, theirs)
    hits = seeds > 1
    assert weighted_interval(hits, other, 400) == weighted_interval(hits, one, 400)
    assert weighted_interval(hits, one, 400) == exact_interval(int(hits.sum()), 150, 400)


def shifted_classes(seed):
    """Two known classes, one with higher scores, and it is nine tenths of the pool."""
    draw = random(seed)
    labels, seed_labels = (draw.random(2_000) < 0.9).astype(int), np.repeat([0, 1], 300)
    return (
        draw.normal(size=2_000) + 2 * labels,
        draw.normal(size=600) + 2 * seed_labels,
        np.array([0.2, 1.8])[seed_labels],
    )


def test_weights_mend_the_false_alarms_of_a_class_that_is_frequent_in_the_pool():
    plain, mended = [], []
    for seed in range(30):
        pool, seeds, weights = shifted_classes(seed)
        plain.append(np.mean(pool > conformal_threshold(seeds, np.ones(600), 0.1)))
        mended.append(np.mean(pool > conformal_threshold(seeds, weights, 0.1)))
    assert np.mean(plain) > 0.15
    assert np.mean(mended) == pytest.approx(0.1, abs=0.01)


def test_weights_mend_the_share():
    pool, seeds, weights = shifted_classes(0)
    n = effective_number(weights)
    assert unknown_share(tails(pool, seeds, np.ones(600)), 2_000, 600).estimate > 0.2
    assert unknown_share(tails(pool, seeds, weights), 2_000, n).estimate < 0.05


def test_the_high_end_of_the_unknown_share_holds_what_looks_like_known_items():
    curve = tails(*mixture(0.3, 6.0, seed=0), np.ones(1_000))
    few, many = (unknown_share(curve, 3_000, 1_000, hidden=hidden) for hidden in (0.2, 0.6))
    assert (few.estimate, few.low) == (many.estimate, many.low)
    assert few.high < many.high == pytest.approx(2 * few.high, rel=0.01)
    assert unknown_share(curve, 3_000, 1_000, hidden=1.0).high == 1
