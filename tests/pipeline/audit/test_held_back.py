"""Which labelled items are held back, and how many."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.pipeline.audit.held_back import (
    SeedSettings,
    further_folds,
    hide_in_pool,
    hold_back,
    n_held_back,
    share_roles,
)
from s2osc.types import Labelled

label_arrays = st.lists(st.integers(0, 3), min_size=0, max_size=80).map(
    lambda labels: np.array([0, 0, 1, 1, 2, 2, 3, 3, *labels])
)
shares = st.floats(0.01, 0.5)


def held(labels, share, seed=0):
    return hold_back(labels, SeedSettings(share), np.random.default_rng(seed))


@pytest.mark.parametrize(
    ("class_sizes", "expected"),
    [
        ((1_000, 1_000), (150, 150)),  # the share
        ((9_000, 1_000), (300, 150)),  # at most 300
        ((90, 90), (30, 30)),  # 60 in all, of each class up to a third
        ((45, 90, 900), (15, 20, 135)),
        ((5, 4, 3, 2), (1, 1, 1, 0)),
    ],
)
def test_the_number_of_seeds_is_the_share_or_what_is_enough(class_sizes, expected):
    assert n_held_back(np.array(class_sizes), SeedSettings(0.15)).tolist() == list(expected)


def test_the_most_of_a_class_can_be_changed():
    assert n_held_back(np.array([1_000, 50]), SeedSettings(0.2, per_class=40)).tolist() == [40, 16]


@given(label_arrays)
def test_without_a_share_nothing_is_held_back(labels):
    assert held(labels, 0.0).tolist() == []


@given(label_arrays, shares, st.integers(0, 99))
def test_every_class_keeps_at_least_half_of_its_items(labels, share, seed):
    rows = held(labels, share, seed)
    assert (np.diff(rows) > 0).all()
    training = np.delete(labels, rows)
    assert (2 * np.bincount(training, minlength=4) >= np.bincount(labels)).all()
    np.testing.assert_array_equal(
        np.bincount(labels[rows], minlength=4),
        n_held_back(np.bincount(labels), SeedSettings(share)),
    )


def test_seeds_are_drawn_at_random_and_the_same_for_the_same_seed():
    labels = np.repeat([0, 1], 50)
    first, again, other = (held(labels, 0.2, seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    often = np.bincount(np.concatenate([held(labels, 0.2, s) for s in range(300)]), minlength=100)
    # 16 of 50 each time: 96 times in 300, give or take four deviations
    assert often.min() > 63
    assert often.max() < 129


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"share": -0.1}, "seeds.share is -0.1; give a share from 0 to 0.5"),
        ({"share": 0.6}, "seeds.share is 0.6"),
        ({"share": float("nan")}, "seeds.share is nan"),
        ({"per_class": 0}, "seeds.per_class is 0; give a number from 1"),
    ],
)
def test_seeds_that_cannot_be_planted_are_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        SeedSettings(**wrong)


@given(label_arrays, st.integers(0, 99))
def test_half_of_each_class_judges_or_one_more(labels, seed):
    is_spy = share_roles(labels, np.random.default_rng(seed))
    n_spies, n_judges = np.bincount(labels[is_spy], minlength=4), np.bincount(labels[~is_spy])
    assert (n_judges - n_spies >= 0).all()
    assert (n_judges - n_spies <= 1).all()


def test_held_back_items_follow_the_pool_with_those_that_judge_first():
    inputs, labels = np.arange(80.0)[:, None], np.repeat([0, 1], 40)
    training, pooled = hide_in_pool(
        Labelled(inputs, labels), np.full((5, 1), -1.0), SeedSettings(share=0.25), seed=3
    )
    assert len(training) + len(pooled.held_back_labels) == 80
    assert pooled.of_pool(pooled.inputs).tolist() == [[-1.0]] * 5
    held = pooled.of_held_back(pooled.inputs)[:, 0].astype(int)
    np.testing.assert_array_equal(labels[held], pooled.held_back_labels)
    assert pooled.n_unlabelled == 5 + len(pooled.calibration_labels)
    assert pooled.is_spy.sum() == len(pooled.spy_labels) == len(pooled.of_spies(pooled.inputs))
    assert not set(held) & set(training.inputs[:, 0].astype(int))


def test_weights_are_labelled_items_over_held_back_ones_where_a_class_is_capped():
    labels = np.repeat([0, 1], [400, 100])
    known = Labelled(np.zeros((500, 1)), labels)
    _, pooled = hide_in_pool(known, np.zeros((5, 1)), SeedSettings(share=0.2, per_class=20), seed=0)
    n_held = np.bincount(pooled.held_back_labels)
    weights = np.array([400, 100]) / n_held
    np.testing.assert_allclose(pooled.class_weights, weights / weights.min())


def folds_of(labels, settings, seed=0, n_pool=100):
    """The first fold and the others, as pairs of training items and pool."""
    known = Labelled(np.arange(len(labels), dtype=float)[:, None], labels)
    first = hide_in_pool(known, np.full((n_pool, 1), -1.0), settings, seed=seed)
    return [first, *further_folds(known, first[1], settings, seed=seed)]


def test_in_folds_other_items_judge_and_none_twice():
    labels = np.repeat([0, 1, 2], [40, 60, 50])
    folds = folds_of(labels, SeedSettings(share=0.15, judges=100))
    judging = [set(pooled.of_calibration(pooled.inputs)[:, 0]) for _, pooled in folds]
    assert len(folds) > 2
    assert len(set.union(*judging)) == sum(map(len, judging))
    for training, pooled in folds:
        held_back = pooled.of_held_back(pooled.inputs)[:, 0].astype(int)
        np.testing.assert_array_equal(labels[held_back], pooled.held_back_labels)
        everyone = [*training.inputs[:, 0], *held_back]
        assert sorted(everyone) == list(range(len(labels)))
        counts = np.bincount(pooled.calibration_labels)
        np.testing.assert_array_equal(counts, np.bincount(folds[0][1].calibration_labels))


def test_the_spies_of_a_fold_judged_in_the_one_before():
    _, *others = folds = folds_of(np.repeat([0, 1], 60), SeedSettings(share=0.15, judges=100))
    for (_, before), (_, pooled) in zip(folds, others, strict=False):
        judged = before.of_calibration(before.inputs)
        np.testing.assert_array_equal(
            np.sort(pooled.of_spies(pooled.inputs), axis=0), np.sort(judged, axis=0)
        )


def test_enough_calibration_items_need_no_folds():
    labels = np.repeat([0, 1], 700)
    assert len(folds_of(labels, SeedSettings(share=0.15, judges=100))) == 1
    assert len(folds_of(labels[::20], SeedSettings(share=0.15))) == 1
    assert len(folds_of(labels[::20], SeedSettings(share=0.15, judges=100))) > 1


def test_a_small_pool_has_no_folds():
    labels = np.repeat([0, 1], 50)
    assert len(folds_of(labels, SeedSettings(share=0.15, judges=100), n_pool=99)) == 1
