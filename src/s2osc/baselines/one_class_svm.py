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
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import svm

from s2osc.baselines.shared import (
    Baseline,
    ClassRegression,
    RowRecogniser,
    fit_components,
    fit_regression,
    hold_out,
    train_closed,
    with_row_threshold,
)
from s2osc.progress import track
from s2osc.seeding import rng
from s2osc.settings import require_choice, require_least, require_share
from s2osc.types import Labelled

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


@dataclass(frozen=True, eq=False)
class Regions:
    """Fitted machines, and their space."""

    space: SvmSpace
    machines: tuple[Any, ...]  # scikit-learn's: one per class, or one for all
    spreads: np.ndarray  # (machines,) the standard deviation of each machine's values
    regression: ClassRegression | None  # of the known classes, with one machine for all

    @property
    def n_classes(self) -> int:
        return len(self.machines) if self.regression is None else self.regression.n_classes

    @property
    def n_features(self) -> int:
        return self.space.n_columns

    def inside(self, rows: np.ndarray) -> np.ndarray:
        """z: (n, machines) how far inside each region a row lies, in deviations."""
        values = [machine.decision_function(rows) for machine in self.machines]
        return np.column_stack(values) / self.spreads

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """-max_c z_c, then the probability of each known class."""
        rows = self.space.transform(inputs)
        z = self.inside(rows)
        p = softmax(z, axis=1) if self.regression is None else self.regression.probabilities(rows)
        return np.column_stack([-z.max(1), p])

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The rows that the machines take."""
        return self.space.transform(inputs)


@dataclass(frozen=True)
class OneClassSVM(Baseline):
    """A region around each known class, or around all; items outside are unknown."""

    variant: Variant = "per class"
    space: Space = "pca"  # principal components of the inputs, or the embedding of f
    whiten: bool = False  # scale every component to unit variance
    nu: float = 0.05  # share of the training items that may lie outside
    most_items: int = 1_000  # of each class
    n_components: int = 50

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("OneClassSVM.variant", self.variant, Variant)
        require_choice("OneClassSVM.space", self.space, Space)
        require_share("OneClassSVM.nu", self.nu)
        require_least("OneClassSVM.most_items", self.most_items, 1)
        require_least("OneClassSVM.n_components", self.n_components, 1)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> RowRecogniser[Regions]:
        """Fit the machines to the labelled items; the pool is not used."""
        if self.space == "f":
            teacher, training, held_out = train_closed(known, self.recipe, seed=seed, device=device)
            n_columns = teacher.centres.shape[1]
            space = SvmSpace(lambda inputs: teacher.outputs(inputs).embeddings, n_columns)
        else:
            training, held_out = hold_out(known, self.recipe.held_out, seed=seed)
            components = fit_components(
                training.inputs, self.n_components, whiten=self.whiten, seed=seed
            )
            space = SvmSpace(components, components.n_components)
        chosen = take_at_most(training.labels, self.most_items, seed=seed)
        rows, labels = space.transform(training.inputs[chosen]), training.labels[chosen]
        held_out_rows = space.transform(held_out.inputs)
        machines, spreads, regression = [], [], None
        if self.variant == "overall":
            machines.append(fit_region(rows, self.nu))
            spreads.append(spread(machines[0], held_out_rows, rows))
            regression = fit_regression(rows, labels)
        else:
            n_classes = known.n_classes
            for c in track(range(n_classes), "one region per class", total=n_classes):
                machines.append(fit_region(rows[labels == c], self.nu))
                own = held_out_rows[held_out.labels == c]
                spreads.append(spread(machines[c], own, rows[labels == c]))
        regions = Regions(space, tuple(machines), np.array(spreads), regression)
        return with_row_threshold(regions, held_out, self.known_recall)
