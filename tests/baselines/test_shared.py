"""What deep baselines share: the items held out, one f, and a threshold from items it never saw."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from s2osc.baselines.shared import (
    IMAGES,
    VECTORS,
    TeacherRecipe,
    as_rows,
    hold_out,
    predict_by_threshold,
    threshold_at,
    train_closed,
)
from s2osc.errors import DataError, SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.pipeline.presets import HEADS, PLAIN
from s2osc.pipeline.teacher import train_teacher
from s2osc.types import Labelled
from samples import LEARNT, make_blobs

RECIPE = TeacherRecipe(
    replace(LEARNT.teacher, training=replace(LEARNT.teacher.training, min_steps=6))
)


def numbered(sizes) -> Labelled:
    """Items that carry their own number, with classes in mixed order."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    return Labelled(np.arange(len(labels), dtype=np.float32)[:, None], labels)


@given(
    st.lists(st.integers(2, 40), min_size=1, max_size=5), st.floats(0.01, 0.99), st.integers(0, 99)
)
def test_a_share_of_each_class_is_held_out_and_no_item_is_lost_or_on_both_sides(sizes, share, seed):
    known = numbered(sizes)
    training, held_out = hold_out(known, share, seed=seed)
    both = np.concatenate([training.inputs, held_out.inputs])[:, 0].astype(int)
    assert sorted(both.tolist()) == list(range(len(known)))
    assert known.labels[both].tolist() == [*training.labels, *held_out.labels]
    for c, size in enumerate(sizes):
        n = int(np.sum(held_out.labels == c))
        assert n == min(max(1, round(share * size)), size - 1)
        assert np.sum(training.labels == c) == size - n


def test_what_is_held_out_follows_the_seed_and_stays_in_order():
    known = numbered([30, 30])
    first, again, other = (hold_out(known, 0.2, seed=seed).held_out.inputs for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert set(first[:, 0]) != set(other[:, 0])
    assert (np.diff(first[:, 0]) > 0).all()


def test_one_known_class_is_refused_unless_it_will_do():
    known = numbered([20])
    with pytest.raises(DataError, match="one known class, and this method learns to tell"):
        train_closed(known, RECIPE, seed=0, device="cpu")
    assert train_closed(known, RECIPE, seed=0, device="cpu", allow_one_class=True).teacher


def test_scores_that_are_no_numbers_are_refused():
    with pytest.raises(DataError, match=r"held-out labelled item 1 has no score \(of 2 such\)"):
        threshold_at(np.array([0.0, np.nan, np.nan]), 0.95)
    with pytest.raises(DataError, match=r"item 0 has no score .*; look for NaN"):
        predict_by_threshold(np.array([np.nan]), np.ones((1, 2)) / 2, 1.0, np.arange(3.0))


def test_a_class_of_one_item_is_refused():
    with pytest.raises(DataError, match="class 1 has 1 labelled item; give at least two"):
        hold_out(numbered([5, 1]), 0.1, seed=0)


@pytest.mark.parametrize("share", [0, 1, -0.1, 1.5])
def test_a_share_that_leaves_nothing_is_refused(share):
    with pytest.raises(SettingsError, match=r"recipe\.held_out is .*; give a share between 0 and"):
        TeacherRecipe(held_out=share)


def test_f_is_the_teacher_of_the_items_that_are_not_held_out():
    known = Labelled(*make_blobs(20))
    closed = train_closed(known, RECIPE, seed=3, device="cpu")
    parts = hold_out(known, RECIPE.held_out, seed=3)
    np.testing.assert_array_equal(closed.training.inputs, parts.training.inputs)
    np.testing.assert_array_equal(closed.held_out.labels, parts.held_out.labels)
    assert len(closed.held_out) == 4 * 2
    expected, _ = train_teacher(
        parts.training, RECIPE.teacher, AugmentSettings(), seed=3, device="cpu"
    )
    for mine, its in zip(
        closed.teacher.network.state_dict().values(),
        expected.network.state_dict().values(),
        strict=True,
    ):
        torch.testing.assert_close(mine, its, rtol=0, atol=0)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60), st.floats(0.01, 1))
def test_at_least_the_share_asked_for_is_at_or_below_the_threshold_and_no_item_too_many(
    scores, recall
):
    scores = np.array(scores)
    threshold = threshold_at(scores, recall)
    assert threshold in scores
    assert np.sum(scores <= threshold) >= recall * len(scores) - 1e-9
    assert np.sum(scores < threshold) < recall * len(scores) + 1e-9


def test_rows_are_pixels_from_0_to_1_or_vectors_as_they_are():
    grey = np.full((2, 2, 3), 255, np.uint8)
    grey[0, 0, 1] = 51
    np.testing.assert_allclose(as_rows(grey)[0], [1, 0.2, 1, 1, 1, 1])
    assert as_rows(np.zeros((3, 2, 2, 3), np.uint8)).shape == (3, 12)
    vectors = np.array([[300.0, -2.0]], np.float32)
    np.testing.assert_array_equal(as_rows(vectors), vectors)
    views = np.array([[[1.0, 2.0], [3.0, 6.0]]], np.float32)
    np.testing.assert_array_equal(as_rows(views), [[2, 4]])
    assert as_rows(grey).dtype == as_rows(vectors).dtype == np.float32
    assert as_rows(vectors[:0]).shape == (0, 2)


def test_images_and_vectors_have_the_f_of_our_presets():
    assert IMAGES.teacher == PLAIN.teacher
    assert VECTORS.teacher == HEADS.teacher
    assert IMAGES.held_out == VECTORS.held_out == 0.1
