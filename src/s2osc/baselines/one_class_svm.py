"""One-class support vector machines: a known class is the region that holds most of its items.

For the items x_i of one class, with an RBF kernel k(x, y) = <phi(x), phi(y)>,

    min over w, xi, rho of  |w|^2 / 2 + 1 / (nu n) sum_i xi_i - rho
    where  <w, phi(x_i)> >= rho - xi_i,  xi_i >= 0

gives g(x) = <w, phi(x)> - rho: positive inside. At most a share nu of the training items lies
outside. The machines are scikit-learn's.

``per class``: one machine g_c for each known class. Their scales differ, so each is divided by the
deviation of its values over held-out items of its class, z_c = g_c / std(g_c). The label is
argmax_c z_c, and the item is the more unknown the smaller max_c z_c. ``overall``: one machine for
all labelled items together, and a logistic regression that names those it takes for known.

Reference: B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson, "Estimating
the Support of a High-Dimensional Distribution", Neural Computation 13(7), 2001.

What differs: the threshold on the score lets 95 % of the labelled items held out of training pass,
instead of g(x) < 0, so that all methods keep as many known items. Machines see 50 principal
components (or the embedding of f) of at most 1,000 items per class: their cost grows with the
square of the items. ``whiten`` makes the components that vary least count as much as the first;
it is off, since on digits and garments it costs machines per class half of their names of held-out
known items.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import svm

from s2osc.arrays import in_chunks
from s2osc.baselines.principal import Namer, find_principal, learn_names
from s2osc.baselines.recipe import (
    IMAGES,
    ByRecipe,
    Parts,
    Recipe,
    decide,
    hold_out,
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
    """One machine: the region that holds all but a share ``nu`` of the rows."""
    # The kernel's width follows the rows, unless they do not vary at all.
    gamma = "scale" if rows.var() > 0 else 1.0
    machine = svm.OneClassSVM(kernel="rbf", gamma=gamma, nu=nu)
    # Left alone it takes a number from the global random state, for nothing that is used here.
    machine.random_state = 0
    return machine.fit(rows)


def spread(region: Any, held_out: np.ndarray, training: np.ndarray) -> float:
    """std(g) over the held-out rows of a class; over its training rows where those are too few."""
    for rows in (held_out, training):
        if len(rows) > 1:
            deviation = float(region.decision_function(rows).std())
            if deviation > 0:
                return deviation
    return 1.0


def take_at_most(labels: np.ndarray, most: int, *, seed: int) -> np.ndarray:
    """Row numbers of at most so many items of each class, drawn at random."""
    random = rng(seed, "items of machines")
    classes = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    return np.sort(np.concatenate([random.permutation(rows)[:most] for rows in classes]))


class Rows(NamedTuple):
    """Items as the rows that machines see."""

    rows_of: Callable[[np.ndarray], np.ndarray]  # inputs -> (n, d)
    n_columns: int


@dataclass(frozen=True)
class OneClassSVM(ByRecipe):
    """A region around each known class, or around all of them; unknown is what lies outside."""

    variant: Variant = "per class"
    space: Space = "pca"  # principal components of the inputs, or the embedding of f
    whiten: bool = False  # whether every component counts the same, however little it varies
    nu: float = 0.05  # share of the training items that may lie outside
    most_items: int = 1_000  # of each class
    n_components: int = 50
    known_recall: float = 0.95
    recipe: Recipe = IMAGES

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
        """Find the regions from labelled items alone; the pool is not looked at."""
        parts, space = self._choose_space(known, seed, device)
        chosen = take_at_most(parts.training.labels, self.most_items, seed=seed)
        training = Labelled(
            space.rows_of(parts.training.inputs[chosen]), parts.training.labels[chosen]
        )
        held_out = Labelled(space.rows_of(parts.held_out.inputs), parts.held_out.labels)
        namer = None
        if self.variant == "overall":
            machines = (fit_region(training.inputs, self.nu),)
            spreads = np.array([spread(machines[0], held_out.inputs, training.inputs)])
            namer = learn_names(training.inputs, training.labels)
        else:
            machines, spreads = self._fit_per_class(training, held_out)
        regions = Regions(space, machines, spreads, namer, 0.0, known_scores=np.zeros(0))
        known_scores = -regions.inside(held_out.inputs).max(1)
        threshold = threshold_at(known_scores, self.known_recall)
        return replace(regions, threshold=threshold, known_scores=known_scores)

    def _choose_space(self, known: Labelled, seed: int, device: str) -> tuple[Parts, Rows]:
        if self.space == "f":
            teacher, training, held_out = train_closed(known, self.recipe, seed=seed, device=device)
            return Parts(training, held_out), Rows(
                lambda inputs: teacher.outputs(inputs).embeddings, teacher.centres.shape[1]
            )
        parts = hold_out(known, self.recipe.held_out, seed=seed)
        principal = find_principal(
            parts.training.inputs, self.n_components, whiten=self.whiten, seed=seed
        )
        return parts, Rows(principal, principal.n_components)

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
    """Fitted machines, the rows they see, and where unknown begins."""

    space: Rows
    machines: tuple[Any, ...]  # scikit-learn's: one per class, or one for all
    spreads: np.ndarray  # (machines,) the deviation of each machine's values
    namer: Namer | None  # names known items where there is one machine for all
    threshold: float
    known_scores: np.ndarray  # of the items held out

    def inside(self, rows: np.ndarray) -> np.ndarray:
        """z: (n, machines) how far inside each region a row lies, in deviations."""
        values = [machine.decision_function(rows) for machine in self.machines]
        return np.column_stack(values) / self.spreads

    def look(self, inputs: np.ndarray) -> np.ndarray:
        """(n, 1 + C): max_c z_c, then how likely each known class is."""
        n_classes = len(self.machines) if self.namer is None else self.namer.n_classes

        def of(part: np.ndarray) -> np.ndarray:
            rows = self.space.rows_of(part)
            z = self.inside(rows)
            p = softmax(z, axis=1) if self.namer is None else self.namer.probabilities(rows)
            return np.column_stack([z.max(1), p])

        return in_chunks(of, inputs, 1 + n_classes)

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where no region holds the item, else the class whose region holds it best."""
        seen = self.look(inputs)
        return decide(-seen[:, 0], seen[:, 1:], self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The rows that the machines see."""
        rows_of, n_columns = self.space
        return in_chunks(rows_of, inputs, n_columns).astype(np.float32)
