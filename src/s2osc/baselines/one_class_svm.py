"""One-class SVM: a region around each known class; items outside all regions are unknown.

For the items x_i of one class, with an RBF kernel k(x, y) = <phi(x), phi(y)>,

    min over w, xi, rho of  |w|^2 / 2 + 1 / (nu n) sum_i xi_i - rho
    where  <w, phi(x_i)> >= rho - xi_i,  xi_i >= 0

gives g(x) = <w, phi(x)> - rho, positive inside. At most a share nu of the training items lies
outside. The machines are scikit-learn's.

``per class``: one machine g_c per known class. Their scales differ, so each is divided by the
standard deviation of its values over held-out items of its class, z_c = g_c / std(g_c). The label
is argmax_c z_c, the score -max_c z_c. ``overall``: one machine for all labelled items, and a
logistic regression for the known class.

Reference: B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, "Estimating
the Support of a High-Dimensional Distribution", Neural Computation 13(7), 2001.

What differs: held-out known items set the threshold, as for all methods, instead of g(x) < 0.
Machines are trained on 50 principal components (or the embedding of f) of at most 1,000 items per
class, because their cost is quadratic. ``whiten`` is off: on digits and garments it costs machines
per class half of their accuracy on held-out known items.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import svm

from s2osc.arrays import in_chunks
from s2osc.baselines.shared import (
    IMAGES,
    ByRecipe,
    ClassRegression,
    KnownParts,
    TeacherRecipe,
    fit_components,
    fit_regression,
    hold_out,
    predict_by_threshold,
    threshold_at,
    train_closed,
)
from s2osc.progress import track
from s2osc.seeding import rng
from s2osc.settings import require_choice, require_least, require_share
from s2osc.types import Labelled, Predictions

Space = Literal["pca", "f"]
Variant = Literal["per class", "overall"]


def fit_region(rows: np.ndarray, nu: float) -> Any:
    """One machine: a region with all but a share ``nu`` of the rows."""
    # "scale" divides by the variance of the rows, which may be zero.
    gamma = "scale" if rows.var() > 0 else 1.0
    machine = svm.OneClassSVM(kernel="rbf", gamma=gamma, nu=nu)
    # Without it, scikit-learn draws from the global random state.
    machine.random_state = 0
    return machine.fit(rows)


def spread(region: Any, held_out: np.ndarray, training: np.ndarray) -> float:
    """std(g) over the held-out rows of a class; over its training rows if those are too few."""
    for rows in (held_out, training):
        if len(rows) > 1:
            deviation = float(region.decision_function(rows).std())
            if deviation > 0:
                return deviation
    return 1.0


def take_at_most(labels: np.ndarray, most: int, *, seed: int) -> np.ndarray:
    """Row numbers of at most ``most`` random items per class."""
    random = rng(seed, "items of machines")
    classes = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    return np.sort(np.concatenate([random.permutation(rows)[:most] for rows in classes]))


class SvmSpace(NamedTuple):
    """Turns items into the rows that the machines take."""

    transform: Callable[[np.ndarray], np.ndarray]  # inputs -> (n, d)
    n_columns: int


@dataclass(frozen=True)
class OneClassSVM(ByRecipe):
    """A region around each known class, or around all; items outside are unknown."""

    variant: Variant = "per class"
    space: Space = "pca"  # principal components of the inputs, or the embedding of f
    whiten: bool = False  # scale every component to unit variance
    nu: float = 0.05  # share of the training items that may lie outside
    most_items: int = 1_000  # of each class
    n_components: int = 50
    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        require_choice("OneClassSVM.variant", self.variant, Variant)
        require_choice("OneClassSVM.space", self.space, Space)
        require_share("OneClassSVM.nu", self.nu)
        require_share("OneClassSVM.known_recall", self.known_recall)
        require_least("OneClassSVM.most_items", self.most_items, 1)
        require_least("OneClassSVM.n_components", self.n_components, 1)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "Regions":
        """Fit the machines to the labelled items; the pool is not used."""
        parts, space = self._choose_space(known, seed, device)
        chosen = take_at_most(parts.training.labels, self.most_items, seed=seed)
        training = Labelled(
            space.transform(parts.training.inputs[chosen]), parts.training.labels[chosen]
        )
        held_out = Labelled(space.transform(parts.held_out.inputs), parts.held_out.labels)
        regression = None
        if self.variant == "overall":
            machines = (fit_region(training.inputs, self.nu),)
            spreads = np.array([spread(machines[0], held_out.inputs, training.inputs)])
            regression = fit_regression(training.inputs, training.labels)
        else:
            machines, spreads = self._fit_per_class(training, held_out)
        regions = Regions(space, machines, spreads, regression, 0.0, known_scores=np.zeros(0))
        known_scores = -regions.inside(held_out.inputs).max(1)
        threshold = threshold_at(known_scores, self.known_recall)
        return replace(regions, threshold=threshold, known_scores=known_scores)

    def _choose_space(self, known: Labelled, seed: int, device: str) -> tuple[KnownParts, SvmSpace]:
        if self.space == "f":
            teacher, training, held_out = train_closed(known, self.recipe, seed=seed, device=device)
            return KnownParts(training, held_out), SvmSpace(
                lambda inputs: teacher.outputs(inputs).embeddings, teacher.centres.shape[1]
            )
        parts = hold_out(known, self.recipe.held_out, seed=seed)
        components = fit_components(
            parts.training.inputs, self.n_components, whiten=self.whiten, seed=seed
        )
        return parts, SvmSpace(components, components.n_components)

    def _fit_per_class(
        self, training: Labelled, held_out: Labelled
    ) -> tuple[tuple[Any, ...], np.ndarray]:
        machines, spreads = [], []
        n_classes = training.n_classes
        for c in track(range(n_classes), "one region per class", total=n_classes):
            rows = training.inputs[training.labels == c]
            machines.append(fit_region(rows, self.nu))
            spreads.append(spread(machines[c], held_out.inputs[held_out.labels == c], rows))
        return tuple(machines), np.array(spreads)


@dataclass(frozen=True, eq=False)
class Regions:
    """Fitted machines, their space, and the threshold."""

    space: SvmSpace
    machines: tuple[Any, ...]  # scikit-learn's: one per class, or one for all
    spreads: np.ndarray  # (machines,) the standard deviation of each machine's values
    regression: ClassRegression | None  # of the known classes, with one machine for all
    threshold: float
    known_scores: np.ndarray  # of the held-out items

    def inside(self, rows: np.ndarray) -> np.ndarray:
        """z: (n, machines) how far inside each region a row lies, in deviations."""
        values = [machine.decision_function(rows) for machine in self.machines]
        return np.column_stack(values) / self.spreads

    def scores_and_probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """(n, 1 + C): -max_c z_c, then the probability of each known class."""
        regression = self.regression
        n_classes = len(self.machines) if regression is None else regression.n_classes

        def of(part: np.ndarray) -> np.ndarray:
            rows = self.space.transform(part)
            z = self.inside(rows)
            p = softmax(z, axis=1) if regression is None else regression.probabilities(rows)
            return np.column_stack([-z.max(1), p])

        return in_chunks(of, inputs, 1 + n_classes)

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the item is outside all regions, else the class it is deepest inside."""
        found = self.scores_and_probabilities(inputs)
        return predict_by_threshold(found[:, 0], found[:, 1:], self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The rows that the machines take."""
        transform, n_columns = self.space
        return in_chunks(transform, inputs, n_columns).astype(np.float32)
