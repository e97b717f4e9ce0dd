"""Whether the pool mixes the known classes as the labelled items do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, chi2

from s2osc.pipeline.audit.mix import LEVEL, compare_mix


def counts(n_classes):
    return arrays(int, n_classes, elements=st.integers(0, 500))


def draw(shares, n_pool, n_held, seed):
    """Counts of a pool with these class shares, where the labelled items have equal ones."""
    random, shares = np.random.default_rng(seed), np.array(shares, float)
    equal = np.full(len(shares), 1 / len(shares))
    return random.multinomial(n_pool, shares / shares.sum()), random.multinomial(n_held, equal)


def test_the_p_value_of_two_classes_is_that_of_their_log_odds():
    n_pool, n_held = np.array([60, 40]), np.array([30, 40])
    log_odds = np.log((60.5 * 40.5) / (40.5 * 30.5))
    variance = 1 / 60.5 + 1 / 40.5 + 1 / 30.5 + 1 / 40.5
    found = compare_mix(n_pool, n_held, np.ones(2))
    assert found.p_value == pytest.approx(chi2.sf(log_odds**2 / variance, 1))


@pytest.mark.parametrize(
    ("n_classes", "n_pool", "n_held"), [(3, 100, 30), (10, 700, 150), (30, 1_000, 300)]
)
def test_the_same_mix_is_hardly_ever_taken_for_another(n_classes, n_pool, n_held):
    ones = np.ones(n_classes)
    found = [compare_mix(*draw(ones, n_pool, n_held, seed), ones) for seed in range(500)]
    n_wrong = sum(mix.is_shifted for mix in found)
    assert binomtest(n_wrong, 500, LEVEL, alternative="greater").pvalue > 0.01
    for mix in found:
        assert mix.is_shifted == (mix.p_value <= LEVEL)


def test_a_class_five_times_as_frequent_is_found_and_weighs_about_as_much():
    found = [compare_mix(*draw([1, 5, 1, 1], 400, 150, seed), np.ones(4)) for seed in range(50)]
    assert sum(mix.is_shifted for mix in found) > 45
    ratio = np.median([mix.weights[1] / np.median(mix.weights[[0, 2, 3]]) for mix in found])
    assert ratio == pytest.approx(5, rel=0.35)


def test_a_class_that_is_absent_from_the_pool_weighs_least():
    mix = compare_mix(np.array([100, 120, 0]), np.array([50, 50, 50]), np.ones(3))
    assert mix.is_shifted
    assert 0 < mix.weights[2] < 0.5 * mix.weights[:2].min()


def test_a_weight_is_drawn_towards_the_others_by_what_counting_explains():
    few, many = (
        compare_mix(times * np.array([9, 30, 10, 11]), times * np.full(4, 10), np.ones(4)).weights
        for times in (1.5, 100)
    )
    assert 1 <= few[1] < many[1]
    assert many[1] == pytest.approx(3, rel=0.1)


def test_classes_of_which_fewer_were_held_back_are_no_shift():
    n_pool, n_held = np.array([900, 100]), np.array([90, 50])
    assert compare_mix(n_pool, n_held, np.ones(2)).is_shifted
    # Of the first class every tenth labelled item was held back, of the second every other one.
    assert not compare_mix(n_pool, n_held, np.array([5.0, 1.0])).is_shifted


def test_which_number_a_class_has_does_not_matter():
    n_pool, n_held, order = np.array([400, 100, 90, 30]), np.full(4, 60), np.array([2, 0, 3, 1])
    mix = compare_mix(n_pool, n_held, np.ones(4))
    again = compare_mix(n_pool[order], n_held[order], np.ones(4))
    assert again.p_value == pytest.approx(mix.p_value)
    np.testing.assert_allclose(again.weights, mix.weights[order])


@pytest.mark.parametrize(
    ("n_pool", "n_held"),
    [([50], [9]), ([0, 0], [5, 5]), ([5, 5], [0, 0]), ([0, 0, 0], [0, 0, 0])],
    ids=["one class", "nothing known in the pool", "nothing held back", "nothing at all"],
)
def test_where_nothing_can_be_compared_no_class_weighs_more(n_pool, n_held):
    mix = compare_mix(np.array(n_pool), np.array(n_held), np.ones(len(n_pool)))
    assert mix.p_value == 1.0
    assert not mix.is_shifted
    np.testing.assert_array_equal(mix.weights, 1.0)


@given(st.data(), st.integers(1, 5))
def test_weights_are_positive_numbers(data, n_classes):
    n_pool, n_held = (data.draw(counts(n_classes)) for _ in range(2))
    class_weights = np.array(data.draw(st.lists(st.floats(1, 50), min_size=5, max_size=5)))
    mix = compare_mix(n_pool, n_held, class_weights[:n_classes])
    assert 0 <= mix.p_value <= 1
    assert np.isfinite(mix.weights).all()
    assert (mix.weights > 0).all()
    assert mix.is_shifted <= (mix.p_value <= LEVEL)
