"""Isolation Forest: the forest, what it looks at, and what the four plain methods share."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn import ensemble

from s2osc.baselines.isolation_forest import IsolationForest
from s2osc.baselines.shared import (
    VECTORS,
    fit_components,
    fit_regression,
    hold_out,
    predict_by_threshold,
)
from s2osc.errors import DataError, SettingsError
from s2osc.metrics import auroc
from s2osc.testing import KNOWN, POOL, TRUTH, fitted
from s2osc.types import UNKNOWN, Labelled
from samples import LEARNT, make_images, open_set

# A threshold from a tenth of 120 items is a matter of luck.
RECIPE = replace(VECTORS, teacher=LEARNT.teacher, held_out=0.3)
METHODS = {space: IsolationForest(space=space, recipe=RECIPE) for space in ("inputs", "pca", "f")}
RIGHT_ANSWERS = (
    "check_most_answers_are_right",
    "check_the_score_rises_with_unknownness",
    "check_the_order_of_the_pool_decides_no_label_alone",
)


def mean_depth(n: int) -> float:
    """c(n), the mean depth of n points."""
    if n <= 2:
        return float(n == 2)
    return 2 * (np.log(n - 1) + 0.5772156649) - 2 * (n - 1) / n


@pytest.mark.parametrize(("n", "depth"), [(2, 1.0), (3, 1.2074)])
def test_of_a_few_points_that_no_cut_parts_the_depth_is_the_mean_one(n, depth):
    assert mean_depth(n) == pytest.approx(depth, abs=1e-4)
    # Equal points stay together: depth 0 and c(n) for those in the leaf, so h / c(n) is 1.
    trees = ensemble.IsolationForest(max_samples=n, random_state=0).fit(np.zeros((n, 1)))
    assert -trees.score_samples(np.zeros((1, 1)))[0] == pytest.approx(0.5)
    # Three points in a row: the middle one is always parted last, at depth 2, the others at
    # depth 1 or 2; two are parted at depth 1.
    points = np.arange(n, dtype=float)[:, None]
    trees = ensemble.IsolationForest(max_samples=n, random_state=0).fit(points)
    mean = 1.0 if n == 2 else 2.0
    assert -trees.score_samples(points[1:2])[0] == pytest.approx(2 ** (-mean / depth), abs=1e-3)


def test_a_point_that_every_first_cut_sets_apart_has_the_score_of_depth_one():
    points = np.array([0.0] * 255 + [100.0])[:, None]
    assert mean_depth(256) == pytest.approx(10.2448, abs=1e-4)
    trees = ensemble.IsolationForest(max_samples=256, random_state=0).fit(points)
    score = -trees.score_samples(np.array([[100.0]]))[0]
    assert score == pytest.approx(2 ** (-1 / mean_depth(256)), abs=1e-6)
    assert score == pytest.approx(0.935, abs=1e-3)


def test_the_score_is_that_of_the_trees_with_its_sign_turned():
    forest = fitted(METHODS["inputs"])
    scores = forest.predict(POOL).unknown_score
    # Every feature of the blobs varies, so the trees see the vectors as they are.
    np.testing.assert_allclose(scores, 0.5 - forest.model.trees.decision_function(POOL), atol=1e-12)
    assert scores[TRUTH == UNKNOWN].mean() > scores[TRUTH != UNKNOWN].mean()


def test_the_rule_of_the_publication_calls_unknown_what_scores_above_a_half():
    predictions = replace(METHODS["inputs"], rule="auto").fit(KNOWN, POOL, seed=0).predict(POOL)
    np.testing.assert_array_equal(predictions.labels == UNKNOWN, predictions.unknown_score > 0.5)


def test_the_threshold_lets_the_asked_share_of_held_out_items_pass():
    forest = replace(METHODS["inputs"], known_recall=0.5).fit(KNOWN, POOL, seed=0)
    held_out = hold_out(KNOWN, RECIPE.held_out, seed=0).held_out
    assert np.mean(forest.predict(held_out.inputs).labels != UNKNOWN) == 0.5


def test_features_that_never_vary_are_not_cut():
    padded = [np.pad(rows, ((0, 0), (0, 40))) for rows in (KNOWN.inputs, POOL)]
    plain, wide = (
        fitted(METHODS["inputs"]),
        METHODS["inputs"].fit(Labelled(padded[0], KNOWN.labels), padded[1], seed=0),
    )
    assert wide.model.trees.n_features_in_ == 8
    np.testing.assert_allclose(
        wide.predict(padded[1]).unknown_score, plain.predict(POOL).unknown_score
    )


@pytest.mark.parametrize(
    ("space", "colour"),
    [
        pytest.param("inputs", False, id="inputs-grey"),
        pytest.param("pca", True, id="pca-colour"),
        # Each half of them stands in one of those above.
        pytest.param("inputs", True, id="inputs-colour", marks=pytest.mark.slow),
        pytest.param("pca", False, id="pca-grey", marks=pytest.mark.slow),
    ],
)
def test_images_are_recognised(space, colour):
    split = open_set(*make_images(100, colour=colour))
    forest = IsolationForest(space=space).fit(split.known, split.pool, seed=0)
    predictions = forest.predict(split.pool)
    assert auroc(split.truth, predictions.unknown_score) > 0.95
    named = (predictions.labels != UNKNOWN) & (split.truth != UNKNOWN)
    np.testing.assert_array_equal(predictions.labels[named], split.truth[named])
    assert forest.features(split.pool).shape == (len(split.pool), 50)
    assert forest.features(split.pool).dtype == np.float32
    assert len(forest.predict(split.pool[:0]).labels) == len(forest.features(split.pool[:0])) == 0


def test_stacked_views_are_seen_as_their_mean():
    def stack(rows: np.ndarray) -> np.ndarray:
        return np.stack([rows + 1, rows - 1], axis=1)

    stacked = METHODS["inputs"].fit(
        Labelled(stack(KNOWN.inputs), KNOWN.labels), stack(POOL), seed=0
    )
    plain = fitted(METHODS["inputs"]).predict(POOL).unknown_score
    np.testing.assert_allclose(stacked.predict(stack(POOL)).unknown_score, plain, atol=0.02)


def test_f_names_the_items_where_the_forest_stands_on_it():
    forest = fitted(METHODS["f"])
    predictions, p = forest.predict(POOL), forest.model.space.teacher.probabilities(POOL)
    named = predictions.labels != UNKNOWN
    np.testing.assert_array_equal(predictions.labels[named], p.argmax(1)[named])
    np.testing.assert_allclose(predictions.confidence[named], p.max(1)[named], atol=1e-6)
    assert forest.features(POOL).shape == (len(POOL), 16)


def test_an_unknown_item_is_believed_by_the_known_items_it_outdoes():
    scores, p = np.array([-1.0, 0.5, 9.0]), np.array([[0.6, 0.4], [0.2, 0.8], [0.9, 0.1]])
    predictions = predict_by_threshold(scores, p, 0.4, np.array([0.0, 1.0, 0.0, 0.0]))
    assert predictions.labels.tolist() == [0, UNKNOWN, UNKNOWN]
    assert predictions.confidence.tolist() == [0.6, 3 / 5, 4 / 5]


def test_a_score_at_the_threshold_is_known():
    assert predict_by_threshold(
        np.array([2.0]), np.array([[1.0]]), 2.0, np.zeros(3)
    ).labels.tolist() == [0]


def test_principal_components_are_those_of_largest_variance():
    rows = np.random.default_rng(0).normal(size=(400, 3)) * [1, 10, 3] + 7
    principal = fit_components(rows, 2, whiten=False, seed=0)
    np.testing.assert_allclose(np.abs(principal.axes), [[0, 0], [1, 0], [0, 1]], atol=0.05)
    np.testing.assert_allclose(principal(rows).mean(0), 0, atol=1e-5)
    white = fit_components(rows, 3, whiten=True, seed=0)(rows)
    np.testing.assert_allclose(np.cov(white.T), np.eye(3), atol=1e-5)


def test_directions_without_variance_are_no_components():
    rows = np.random.default_rng(0).normal(size=(50, 2)) @ np.ones((2, 5))
    assert fit_components(rows, 5, whiten=True, seed=0).n_components == 1


def test_items_that_are_all_the_same_are_refused():
    with pytest.raises(DataError, match="all 4 labelled items are the same"):
        fit_components(np.ones((4, 3)), 2, whiten=False, seed=0)


def test_names_need_two_classes():
    with pytest.raises(DataError, match="one class"):
        fit_regression(np.zeros((4, 3)), np.zeros(4, int))


@pytest.mark.parametrize(
    "settings",
    [
        {"space": "pixels"},
        {"rule": "mean"},
        {"known_recall": 1.1},
        {"n_trees": 0},
        {"n_items": 1},
        {"n_components": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(settings):
    with pytest.raises(SettingsError, match=f"IsolationForest.{next(iter(settings))} is "):
        IsolationForest(**settings)
