"""Eq. 2 and the partition it makes: D_in, D_out, U."""

import warnings
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.pipeline.audit.statistics import Purity
from s2osc.pipeline.filter.distinctness import (
    FilterSettings,
    Units,
    affordable_k,
    distinctness,
    partition_pool,
    pure_k,
    sample_balanced,
    sample_known,
    units,
)
from s2osc.pipeline.teacher import TeacherOutputs, distance_to_centres, entropy

STANDARDISED = FilterSettings(scale="standardised")

label_arrays = st.lists(st.integers(0, 3), min_size=4, max_size=40).map(
    lambda labels: np.array([0, 1, 2, 3, *labels])
)


def random(seed=0):
    return np.random.default_rng(seed)


def outputs_of(entropies, distances):
    """What f sees, for tests that need no more of it."""
    nothing = np.zeros((len(entropies), 2))
    return TeacherOutputs(nothing, np.array(entropies), np.array(distances), nothing)


# w


def test_w_of_three_points_by_hand():
    logits = np.array([[0.0, 0.0], [900.0, 0.0], [log(3), 0.0]])
    embeddings = np.array([[1.0, 0.0], [3.0, 4.0], [0.0, 2.0]])
    centres = np.array([[0.0, 0.0], [3.0, 3.0]])
    distance = distance_to_centres(embeddings, centres)
    teacher_outputs = TeacherOutputs(logits, entropy(logits), distance, embeddings)
    settings = FilterSettings(distance_weight=2.0)
    w = distinctness(teacher_outputs, units(teacher_outputs, settings), settings)
    # u = log 2, 0, H(3/4, 1/4); d = 1, 1, 4 (squared); lambda = 2
    h = -0.75 * log(0.75) - 0.25 * log(0.25)
    np.testing.assert_allclose(w, [log(2) + 2, 2, h + 8])


def test_without_distance_w_is_the_entropy():
    teacher_outputs = outputs_of([0.3, 0.6], [100.0, 1.0])
    settings = FilterSettings(distance_weight=0.0)
    np.testing.assert_allclose(
        distinctness(teacher_outputs, units(teacher_outputs, settings), settings), [0.3, 0.6]
    )


def test_entropy_and_distance_are_added_as_they_are_as_in_the_paper():
    teacher_outputs = outputs_of([0.0, 0.6], [100.0, 1.0])
    assert units(teacher_outputs, FilterSettings()) == Units(1.0, 1.0)


def test_standardised_terms_are_counted_in_deviations_over_the_pool():
    teacher_outputs = outputs_of([0.1, 0.5], [0.0, 200.0])
    unit = units(teacher_outputs, STANDARDISED)
    assert unit == pytest.approx((0.2, 100.0))
    np.testing.assert_allclose(distinctness(teacher_outputs, unit, STANDARDISED), [0.5, 4.5])


def test_standardised_w_does_not_depend_on_the_scale_of_the_embedding():
    u, d = random(0).uniform(size=20), random(1).uniform(size=20)
    small, large = (outputs_of(u, times * d) for times in (1.0, 1e4))
    np.testing.assert_allclose(
        distinctness(small, units(small, STANDARDISED), STANDARDISED),
        distinctness(large, units(large, STANDARDISED), STANDARDISED),
    )


def test_a_constant_term_does_not_divide_by_zero():
    teacher_outputs = outputs_of(np.zeros(3), [1.0, 2.0, 6.0])
    unit = units(teacher_outputs, STANDARDISED)
    assert unit.entropy == 1.0
    assert np.isfinite(distinctness(teacher_outputs, unit, STANDARDISED)).all()


# D_out and U


@given(arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 5).map(float)), st.data())
def test_every_pool_item_lands_in_exactly_one_part(weights, data):
    k = data.draw(st.integers(0, len(weights)))
    parts = partition_pool(weights, k)
    assert len(parts.unknown) == k
    both = np.concatenate(parts)
    np.testing.assert_array_equal(np.sort(both), np.arange(len(weights)))
    for part in parts:
        assert (np.diff(part) > 0).all()


@given(arrays(np.float64, st.integers(2, 60), elements=st.integers(0, 5).map(float)), st.data())
def test_the_k_largest_are_unknown_and_of_equal_ones_the_first(weights, data):
    k = data.draw(st.integers(1, len(weights) - 1))
    by_hand = sorted(range(len(weights)), key=lambda row: (-weights[row], row))[:k]
    assert partition_pool(weights, k).unknown.tolist() == sorted(by_hand)


# K


@pytest.mark.parametrize(("n_pool", "class_size"), [(1_000, 300), (301, 5_000)])
def test_a_k_that_fits_is_taken_as_it_is(n_pool, class_size):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert affordable_k(FilterSettings(k=300), n_pool, np.array([class_size, 2])) == 300


@pytest.mark.parametrize(
    ("n_pool", "class_sizes", "k"),
    [(100, (500, 500), 25), (10_000, (40, 60), 60), (300, (900, 900), 75)],
)
def test_a_k_larger_than_pool_or_class_is_reduced_with_a_warning(n_pool, class_sizes, k):
    with pytest.warns(S2OSCWarning, match=rf"K = 300 is too large.* {n_pool} items.*K = {k} is"):
        assert affordable_k(FilterSettings(k=300), n_pool, np.array(class_sizes)) == k


@pytest.mark.parametrize(
    ("n_pool", "class_sizes", "k"),
    [(16_000, (4_000, 4_000), 300), (400, (900, 900), 100), (16_000, (80, 20), 80), (2, (9, 9), 1)],
)
def test_a_k_that_was_not_asked_for_is_the_papers_or_what_fits_in_silence(n_pool, class_sizes, k):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert affordable_k(FilterSettings(), n_pool, np.array(class_sizes)) == k


@given(st.integers(2, 500), st.integers(1, 200), st.none() | st.integers(1, 900))
def test_k_always_leaves_something_undecided(n_pool, class_size, k):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", S2OSCWarning)
        found = affordable_k(FilterSettings(k=k), n_pool, np.array([class_size, 1]))
    assert 1 <= found < n_pool
    assert found <= max(1, class_size)


@pytest.mark.parametrize(
    ("low", "n_most", "k"),
    [
        ([0.0, 0.5, 0.8, 0.75, 0.6, 0.3], 300, 4),  # the last that holds
        ([0.9] * 100, 30, 30),  # no more than allowed
        ([0.9] * 100, 300, 100),
        ([0.1] * 50 + [0.5] + [0.2] * 50, 300, 51),  # none holds: the purest
        ([0.5] + [0.2] * 50, 300, 10),  # ... but not too few to learn from
        ([0.5, 0.2], 300, 2),
        ([0.0] * 40, 300, 10),
    ],
)
def test_k_is_the_largest_that_is_pure_enough(low, n_most, k):
    low = np.array(low)
    assert pure_k(Purity(low, low), n_most, FilterSettings()) == k


def test_the_purity_asked_for_decides():
    low = np.linspace(1, 0, 101)
    found = [pure_k(Purity(low, low), 300, FilterSettings(purity=p)) for p in (0.505, 0.905)]
    assert found == [50, 10]


# D_in


@given(label_arrays, st.integers(1, 8), st.integers(0, 99))
def test_d_in_holds_k_of_each_class_or_all_of_a_smaller_one(labels, k, seed):
    rows = sample_known(labels, k, random(seed))
    assert len(set(rows.tolist())) == len(rows)
    expected = np.minimum(np.bincount(labels), k)
    np.testing.assert_array_equal(np.bincount(labels[rows]), expected)


@given(label_arrays, st.integers(1, 60), st.integers(0, 99))
def test_the_balanced_d_in_holds_k_items_in_all_spread_evenly(labels, k, seed):
    rows = sample_balanced(labels, k, random(seed))
    assert len(set(rows.tolist())) == len(rows) == min(k, len(labels))
    sizes, drawn = np.bincount(labels), np.bincount(labels[rows], minlength=4)
    # A class is behind the largest share by more than one only where it has no more to give.
    behind = drawn < drawn.max() - 1
    np.testing.assert_array_equal(drawn[behind], sizes[behind])


@pytest.mark.parametrize("sample", [sample_known, sample_balanced])
def test_d_in_is_drawn_at_random(sample):
    labels = np.repeat([0, 1], 100)
    draws = [sample(labels, 10, random(seed)).tolist() for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    often = np.bincount(
        np.concatenate([sample(labels, 10, random(seed)) for seed in range(300)]), minlength=200
    )
    assert often.min() > 0


# Settings


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"k": 0}, "K is 0; give a number from 1"),
        ({"distance_weight": -1.0}, "lambda"),
        ({"distance_weight": float("nan")}, "lambda"),
        ({"scale": "log"}, "'standardised' or 'paper'"),
        ({"by": "size"}, "the filter is 'size'; give 'seeds' or 'paper'"),
        ({"purity": 0.0}, "filtering.purity is 0.0; give a share between 0 and 1"),
        ({"purity": float("nan")}, "filtering.purity is nan"),
    ],
)
def test_a_filter_that_cannot_be_used_is_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        FilterSettings(**wrong)
