"""Whether the pool mixes the known classes as the labelled items do."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest, chi2

from s2osc.pipeline.audit.label_shift import (
    LEVEL,
    N_RESAMPLED,
    SUSPICION,
    Names,
    are_ordinary,
    compare_mix,
    items_per_judge,
    judges_in_mix_of_pool,
)
from s2osc.pipeline.audit.unknown_test import anything_unknown, anything_unknown_in_any_mix


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


def test_a_mix_that_is_likely_but_not_clear_counts_and_is_not_told():
    mix = compare_mix(np.array([75, 55, 20, 48]), np.array([15, 9, 12, 7]), np.ones(4))
    assert LEVEL < mix.p_value < SUSPICION
    assert not mix.is_shifted
    assert mix.weights[2] < 0.8 * mix.weights[[0, 1, 3]].min()


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


# --- names that are not always right ---------------------------------------------------------

SHARES = np.array([10, 5, 2, 1, 1]) / 19


def named(labels, random, right=0.8):
    """The name of each item: its class, or any class."""
    return np.where(random.random(len(labels)) < right, labels, random.integers(0, 5, len(labels)))


def shifted(seed, n_pool=500, n_judges=200):
    """The classes of a pool, which are unequal, then of judges, and the names of all items."""
    random = np.random.default_rng(seed)
    classes = np.append(random.choice(5, n_pool, p=SHARES), np.arange(n_judges) % 5)
    return classes, named(classes, random), np.where(np.arange(len(classes)) < n_pool, -1, classes)


def test_the_mix_of_classes_is_told_from_names_of_which_some_are_wrong():
    ratios, by_counts = [], []
    for seed in range(40):
        _, given, labels = shifted(seed)
        names = Names.of(given, labels)
        ratios.append(items_per_judge(names))
        by_counts.append(names.n_pool / names.n_judges)
    true = SHARES * 500 / 40
    found, plain = np.mean(ratios, axis=0), np.mean(by_counts, axis=0)
    assert np.abs(np.log(found / true)).max() < 0.2
    assert np.abs(np.log(plain / true)).max() > 0.3  # wrong names hide how rare a class is


def test_only_some_of_the_items_tell_the_same_mix():
    _, given, labels = shifted(0, n_pool=20_000, n_judges=5_000)
    names = Names.of(given, labels)
    some = Names.of(given, labels, np.random.default_rng(1).random(25_000) < 0.3)
    np.testing.assert_allclose(
        items_per_judge(some, names.n_of_class), items_per_judge(names), rtol=0.15, atol=0.1
    )


def test_items_that_are_neither_of_the_pool_nor_judges_do_not_count():
    given, labels = np.array([0, 1, 1, 0, 1]), np.array([-1, -1, -2, 0, 1])
    names = Names.of(given, labels)
    assert names.n_pool.tolist() == [1, 1]
    assert names.of_judges.tolist() == names.labels.tolist() == [0, 1]


def test_a_class_without_judges_has_the_middle_number():
    names = Names(np.array([20, 0, 60]), np.array([0, 0, 2, 2]), np.array([0, 0, 2, 2]))
    np.testing.assert_allclose(items_per_judge(names), [10, 20, 30], rtol=0.01)


def test_right_names_leave_no_judge_out_whatever_the_mix():
    labels = np.arange(200) % 5
    names = Names(np.array([250, 125, 50, 25, 50]), labels, labels)
    found = list(judges_in_mix_of_pool(names, np.random.default_rng(0)))
    assert len(found) == N_RESAMPLED
    assert np.all(found)


def test_where_the_mix_is_the_same_nobody_asks_for_another():
    random, classes = np.random.default_rng(0), np.arange(700) % 5
    names = Names.of(named(classes, random), np.where(np.arange(700) < 500, -1, classes))
    assert list(judges_in_mix_of_pool(names, random)) == []


def test_the_judges_of_a_name_that_stay_mix_the_classes_as_the_pool_does():
    stay, every, pool = np.zeros((3, 5, 5))
    for seed in range(60):
        classes, given, labels = shifted(seed)
        names = Names.of(given, labels)
        for stays in judges_in_mix_of_pool(names, np.random.default_rng(seed)):
            np.add.at(stay, (names.of_judges[stays], names.labels[stays]), 1)
        np.add.at(every, (names.of_judges, names.labels), 1)
        np.add.at(pool, (given[labels < 0], classes[labels < 0]), 1)
    apart = [
        np.abs(found / found.sum(axis=1, keepdims=True) - pool / pool.sum(axis=1, keepdims=True))
        for found in (stay, every)
    ]
    assert apart[0].max() < 0.15
    assert apart[1].max() > 0.3


def test_another_mix_is_no_discovery_where_names_are_not_always_right():
    plain, in_any_mix = [], []
    for seed in range(30):
        classes, given, labels = shifted(seed)
        # Who is misnamed is stranger.
        noise = np.random.default_rng(1_000 + seed).normal(size=len(given))
        score = (2.0 * (classes != given) + noise)[:, None]
        plain.append(anything_unknown(score, given, labels >= 0))
        in_any_mix.append(anything_unknown_in_any_mix(score, given, labels))
    assert np.mean(np.array(plain) <= 0.05) > 0.3
    assert np.mean(np.array(in_any_mix) <= 0.05) < 0.15


def test_an_unknown_class_is_found_in_another_mix():
    _, given, labels = shifted(0)
    score = np.random.default_rng(0).normal(size=len(given) + 60)
    score[-60:] += 4
    given, labels = np.append(given, np.full(60, 1)), np.append(labels, np.full(60, -1))
    assert anything_unknown_in_any_mix(score[:, None], given, labels) < 0.01


def test_most_judges_of_each_name_are_ordinary():
    random = np.random.default_rng(0)
    names, is_judge = np.arange(600) % 3, np.arange(600) >= 300
    scores = random.random(600) + names  # each name has a scale of its own
    scores[:100] += 10  # unknown
    ordinary = are_ordinary(scores, names, is_judge)
    assert not ordinary[:100].any()
    for name in range(3):
        assert ordinary[is_judge & (names == name)].mean() == pytest.approx(2 / 3, abs=0.01)
