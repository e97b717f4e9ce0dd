"""One-class support vector machines: the region of a class, and the methods made of regions."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.baselines.one_class_svm import OneClassSVM, fit_region, spread, take_at_most
from s2osc.baselines.shared import VECTORS, hold_out
from s2osc.errors import SettingsError
from s2osc.metrics import auroc
from s2osc.testing import KNOWN, POOL, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
METHODS = {
    "per class": OneClassSVM(recipe=RECIPE),
    "per class, whitened": OneClassSVM(whiten=True, recipe=RECIPE),
    "overall": OneClassSVM(variant="overall", recipe=RECIPE),
}


def test_nu_bounds_the_share_of_items_outside_and_of_support_vectors():
    rows = np.random.default_rng(0).normal(size=(1_000, 2))
    region = fit_region(rows, 0.1)
    assert 0.08 <= np.mean(region.decision_function(rows) < 0) <= 0.12
    assert len(region.support_) / 1_000 >= 0.1 - 1 / 1_000


def test_around_one_point_the_region_falls_off_with_distance():
    region = fit_region(np.zeros((20, 2)), 0.5)
    away = np.array([[0.0, 0.0], [0.5, 0.0], [0.0, 1.0], [2.0, 0.0]])
    g = region.decision_function(away)
    assert g[0] == pytest.approx(0, abs=1e-6)
    kernel = np.exp(-(away**2).sum(1))
    total = region.dual_coef_.sum()
    np.testing.assert_allclose(g, total * (kernel - 1), atol=1e-6)


def test_the_spread_is_that_of_held_out_rows_where_there_are_enough():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    region = fit_region(rows[:40], 0.05)
    assert spread(region, rows[40:], rows[:40]) == region.decision_function(rows[40:]).std()
    assert spread(region, rows[40:41], rows[:40]) == region.decision_function(rows[:40]).std()
    assert spread(region, np.zeros((2, 2)), rows[:1]) == 1


def test_values_of_machines_are_told_in_their_own_deviations():
    regions = fitted(METHODS["per class"])
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    rows = regions.features(held_out.inputs)
    for c, z in enumerate(regions.model.inside(rows).T):
        assert z[held_out.labels == c].std() == pytest.approx(1)


def test_the_label_is_that_of_the_innermost_region():
    regions = fitted(METHODS["per class"])
    predictions, z = regions.predict(POOL), regions.model.inside(regions.features(POOL))
    named = predictions.labels != UNKNOWN
    np.testing.assert_array_equal(predictions.labels[named], z.argmax(1)[named])
    np.testing.assert_allclose(predictions.unknown_score, -z.max(1))


def test_components_are_whitened_where_that_is_asked_for():
    training = hold_out(KNOWN, RECIPE.held_out, seed=0).training.inputs
    white = fitted(METHODS["per class, whitened"]).features(training)
    np.testing.assert_allclose(white.std(0, ddof=1), 1, atol=1e-4)
    plain = fitted(METHODS["per class"]).features(training)
    assert plain[:, 0].std() > 2 * plain[:, -1].std()
    # A rotation: distances between items stay as they were.
    np.testing.assert_allclose(
        np.linalg.norm(plain[1:] - plain[0], axis=1),
        np.linalg.norm(training[1:] - training[0], axis=1),
        rtol=1e-4,
    )


def test_one_machine_for_all_leaves_the_names_to_a_classifier():
    regions = fitted(METHODS["overall"])
    assert len(regions.model.machines) == 1
    assert regions.model.regression.n_classes == 3


def test_no_more_items_of_a_class_are_taken_than_allowed():
    labels = np.repeat([0, 1, 2], [10, 3, 50])
    rows = take_at_most(labels, 5, seed=0)
    assert np.bincount(labels[rows]).tolist() == [5, 3, 5]
    assert len(set(rows)) == len(rows)
    assert not np.array_equal(rows, take_at_most(labels, 5, seed=1))


def test_machines_see_no_more_items_than_allowed():
    regions = OneClassSVM(most_items=5).fit(KNOWN, POOL, seed=0)
    assert all(machine.shape_fit_[0] == 5 for machine in regions.model.machines)


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
@pytest.mark.parametrize("variant", ["per class", "overall"])
def test_images_are_recognised(variant, colour):
    split = open_set(*make_images(100, colour=colour))
    method = OneClassSVM(variant=variant, n_components=10)
    regions = method.fit(split.known, split.pool, seed=0)
    predictions = regions.predict(split.pool)
    assert auroc(split.truth, predictions.unknown_score) > 0.95
    assert np.mean(predictions.labels == split.truth) > 0.8
    assert regions.features(split.pool).shape == (len(split.pool), 10)
    assert len(regions.predict(split.pool[:0]).labels) == len(regions.features(split.pool[:0])) == 0


def test_stacked_views_are_recognised():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows + 1, rows - 1], axis=1)

    known = Labelled(stack(KNOWN.inputs), KNOWN.labels)
    stacked = METHODS["per class"].fit(known, stack(POOL), seed=0).predict(stack(POOL))
    plain = fitted(METHODS["per class"]).predict(POOL)
    np.testing.assert_allclose(stacked.unknown_score, plain.unknown_score, atol=1e-2)


@pytest.mark.parametrize(
    "settings",
    [
        {"variant": "both"},
        {"space": "inputs"},
        {"nu": 0.0},
        {"known_recall": 0.0},
        {"most_items": 0},
        {"n_components": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"OneClassSVM.{next(iter(settings))} is "):
        OneClassSVM(**settings)
