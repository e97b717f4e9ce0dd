"""Mahalanobis: s = min_c sqrt((e - mu_c)' S^-1 (e - mu_c)), classes as Gaussians.

mu_c is the mean embedding of class c over the training items, S their covariance around these
means, shared by all classes.

Kimin Lee, Kibok Lee, Honglak Lee and Jinwoo Shin, "A simple unified framework for detecting
out-of-distribution samples and adversarial attacks", NeurIPS 2018.

What differs: the published method combines many layers by a regression on unknown items and
perturbs inputs; here, without unknown items, it is the last layer alone. A ridge (a small share of
the mean variance) replaces the pseudo-inverse, because some units have no variance.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import in_chunks
from s2osc.baselines.post_hoc import PostHoc, check_known_recall, training_outputs, with_threshold
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.pipeline.teacher import class_centres, distance_to_centres
from s2osc.settings import require_positive
from s2osc.types import Labelled

LEAST_VARIANCE = 1e-12


@dataclass(frozen=True)
class Mahalanobis(ByRecipe):
    """An item is unknown where it is far from every class in Mahalanobis distance."""

    ridge: float = 1e-3  # share of the mean variance added to every direction
    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)
        require_positive("ridge", self.ridge)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        embeddings = training_outputs(closed).embeddings
        classes = fit_gaussians(embeddings, closed.training.labels, self.ridge)
        return with_threshold(
            closed, lambda outputs: classes.distance(outputs.embeddings), self.known_recall
        )


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Class means in the space where the shared covariance is the identity.

    In float64: directions of little variance are scaled up so far that float32 is too coarse.
    """

    origin: np.ndarray  # (d,) the mean of all items
    whitening: np.ndarray  # (d, d)
    means: np.ndarray  # (C, d), whitened

    def distance(self, embeddings: np.ndarray) -> np.ndarray:
        """The distance to the nearest class mean."""
        return in_chunks(
            lambda rows: np.sqrt(
                distance_to_centres((rows - self.origin) @ self.whitening, self.means)
            ),
            embeddings,
        )


def fit_gaussians(embeddings: np.ndarray, labels: np.ndarray, ridge: float) -> Gaussians:
    """Means, and a matrix A with A A' = S^-1.

    >>> corners = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -2.0], [0.0, 2.0]])
    >>> one_class = fit_gaussians(corners, np.zeros(4, int), ridge=1e-9)
    >>> one_class.distance(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(4).tolist()
    [0.0, 1.4142, 0.7071]
    """
    rows = embeddings.astype(np.float64)
    means, origin = class_centres(rows, labels), rows.mean(0)
    centred = rows - means[labels]
    covariance = centred.T @ centred / len(rows)
    variance = max(np.trace(covariance) / len(covariance), LEAST_VARIANCE)
    covariance[np.diag_indices_from(covariance)] += ridge * variance
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
    return Gaussians(origin, whitening, means=(means - origin) @ whitening)
