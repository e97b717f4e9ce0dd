"""Whether small colour images go through a pretrained network is what held-back items say."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.pipeline.pixels_or_features import (
    ENOUGH_NAMED,
    N_FOLDS,
    compare_pixels_with_features,
    folds_of,
    name_in_folds,
)
from s2osc.pipeline.presets import HEADS
from s2osc.settings import change
from s2osc.types import Labelled

FEW_STEPS = change(HEADS, {"teacher.training.min_steps": 30, "teacher.training.epochs": 1})


def draw(n_of_class: int, *, tells: float) -> Labelled:
    """Vectors of three classes, which lie so far apart."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), n_of_class)
    inputs = tells * np.eye(3, 8)[labels] + random.normal(size=(len(labels), 8))
    return Labelled(inputs.astype(np.float32), labels)


def compared(pixels: Labelled, features: Labelled):
    return compare_pixels_with_features(
        pixels, features, FEW_STEPS, FEW_STEPS, seed=0, device="cpu"
    )


@pytest.mark.parametrize("features_tell", [True, False])
def test_what_names_more_held_back_items_right_is_preferred(features_tell):
    better, worse = draw(80, tells=3.0), draw(80, tells=0.5)
    found = compared(worse, better) if features_tell else compared(better, worse)
    assert found.prefer_features == features_tell
    assert max(found.pixels, found.features) > 0.8
    assert min(found.pixels, found.features) < 0.7
    assert found.n == 60


def test_where_both_are_as_right_pixels_stay():
    same = draw(40, tells=2.0)
    found = compared(same, same)
    assert found.pixels == found.features
    assert not found.prefer_features


def test_where_features_name_all_right_nothing_else_is_trained():
    found = compared(draw(40, tells=0.5), draw(40, tells=20.0))
    assert found.features == 1
    assert found.pixels is None
    assert found.prefer_features


def test_few_items_are_named_in_two_folds():
    few = draw(20, tells=2.0)
    assert compared(few, few).n == 30 < ENOUGH_NAMED


def test_no_item_is_named_by_an_f_that_learnt_it():
    items = draw(20, tells=6.0)
    # The labels of the first fold are wrong, so an f that had learnt them would name them so.
    folds = folds_of(items.labels, np.random.default_rng(0))
    wrong = replace(items, labels=np.where(folds == 0, (items.labels + 1) % 3, items.labels))
    named = name_in_folds(wrong, folds, 1, FEW_STEPS, seed=0, device="cpu")
    assert np.mean(named == items.labels[folds == 0]) > 0.9


@pytest.mark.parametrize("n_rare", [1, 2])
def test_classes_of_one_or_two_items_are_learnt_from_in_every_fold(n_rare):
    items = draw(30, tells=6.0)
    rows = np.flatnonzero((items.labels < 2) | (np.cumsum(items.labels == 2) <= n_rare))
    rare = Labelled(items.inputs[rows], items.labels[rows])
    folds = folds_of(rare.labels, np.random.default_rng(0))
    assert all((rare.labels[folds != fold] == 2).any() for fold in range(N_FOLDS))
    assert 0 <= compared(rare, rare).features <= 1
