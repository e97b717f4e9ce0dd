"""The distance to the nearest class, measured by the spread all classes share."""

import numpy as np
import pytest
from sklearn.covariance import EmpiricalCovariance

from s2osc.baselines.mahalanobis import Mahalanobis, fit_gaussians
from s2osc.errors import SettingsError

RIDGE = 1e-9


@pytest.fixture
def classes():
    random = np.random.default_rng(0)
    labels = np.arange(90) % 3
    shape = random.normal(size=(5, 5))
    return random.normal(size=(90, 5)) @ shape + 4 * np.eye(5)[labels], labels


def test_the_distance_is_that_of_a_plain_loop_over_classes(classes):
    points, labels = classes
    means = np.stack([points[labels == c].mean(0) for c in range(3)])
    shared = EmpiricalCovariance(assume_centered=True).fit(points - means[labels])
    queries = np.random.default_rng(1).normal(scale=4, size=(20, 5))
    expected = np.min([shared.mahalanobis(queries - mean) for mean in means], axis=0)
    distance = fit_gaussians(points, labels, RIDGE).distance(queries)
    np.testing.assert_allclose(distance**2, expected, rtol=1e-6)


def test_the_class_means_are_at_distance_zero(classes):
    points, labels = classes
    means = np.stack([points[labels == c].mean(0) for c in range(3)])
    np.testing.assert_allclose(fit_gaussians(points, labels, RIDGE).distance(means), 0, atol=1e-6)


def test_the_spread_is_taken_around_the_mean_of_each_class():
    points = np.array([[-1.0], [1.0], [99.0], [101.0]])
    classes = fit_gaussians(points, np.array([0, 0, 1, 1]), RIDGE)
    np.testing.assert_allclose(classes.distance(np.array([[3.0], [96.0]])), [3, 4], rtol=1e-6)


def test_the_distance_does_not_depend_on_the_units_of_a_direction(classes):
    points, labels = classes
    scale = np.array([1, 10, 100, 0.1, 1])
    plain = fit_gaussians(points, labels, RIDGE).distance(points)
    scaled = fit_gaussians(points * scale, labels, 1e-12).distance(points * scale)
    np.testing.assert_allclose(scaled, plain, rtol=1e-4)


def test_the_ridge_is_a_share_of_the_mean_variance():
    points = np.array([[-1.0, 0.0], [1.0, 0.0]])  # variances 1 and 0, 0.5 in the mean
    one_class = fit_gaussians(points, np.zeros(2, int), ridge=0.5)
    expected = [np.sqrt(1 / 1.25), np.sqrt(1 / 0.25)]
    np.testing.assert_allclose(one_class.distance(np.eye(2)), expected)


def test_items_without_any_spread_have_finite_distances():
    classes = fit_gaussians(np.eye(2, dtype=np.float32), np.arange(2), ridge=1e-3)
    distance = classes.distance(np.array([[1, 0], [1, 1]], np.float32))
    assert np.isfinite(distance).all()
    assert distance[0] < distance[1]


@pytest.mark.parametrize("ridge", [0.0, -1.0, float("nan")])
def test_a_ridge_that_is_not_positive_is_refused(ridge):
    with pytest.raises(SettingsError, match="ridge is"):
        Mahalanobis(ridge=ridge)
