"""Isolation Forest: items that a few random splits isolate from the labelled items are unknown.

Each of t trees splits psi labelled items at random: a random feature, a random value within its
range, until each leaf has one item or the tree is ceil(log2 psi) deep. With h(x) the depth of the
leaf of x plus c(items in that leaf), and c(n) the mean depth of a tree of n items,

    c(n) = 2 (ln(n - 1) + 0.5772156649) - 2 (n - 1) / n,    c(2) = 1,    c(1) = 0
    score(x) = 2 ^ (- mean over trees of h(x) / c(psi))

which is close to 1 for isolated items and below 0.5 for ordinary ones. The trees are
scikit-learn's.

Reference: F. T. Liu, K. M. Ting, Z.-H. Zhou, "Isolation Forest", ICDM 2008.

What differs: the forest does not classify, so a logistic regression on principal components gives
the known class; in the embedding of f, f does. The published rule (unknown above 0.5) is an option;
by default, held-out known items set the threshold. Features that are constant over the labelled
items, such as the border of centred digits, are left out.
"""

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn import ensemble

from s2osc.baselines.shared import (
    Baseline,
    ClassRegression,
    Components,
    RowRecogniser,
    as_rows,
    fit_components,
    fit_regression,
    hold_out,
    train_closed,
    with_row_threshold,
)
from s2osc.pipeline.teacher import Teacher
from s2osc.seeding import derive
from s2osc.settings import require_choice, require_least
from s2osc.types import Labelled


class ForestInputs(NamedTuple):
    """n items as the forest needs them."""

    rows: np.ndarray  # (n, d) that the trees split
    probabilities: np.ndarray  # (n, C) of the known classes
    features: np.ndarray  # (n, k) for grouping


@dataclass(frozen=True, eq=False)
class RawSpace:
    """Pixels or vectors, and their principal components."""

    components: Components
    regression: ClassRegression
    varies: np.ndarray | None  # (D,) bool: the features to split; None: the components are split

    @property
    def n_features(self) -> int:
        return self.components.n_components

    def __call__(self, inputs: np.ndarray) -> ForestInputs:
        rows = as_rows(inputs)
        components = self.components(rows)
        return ForestInputs(
            rows=components if self.varies is None else rows[:, self.varies],
            probabilities=self.regression.probabilities(components),
            features=components,
        )


@dataclass(frozen=True, eq=False)
class EmbeddingSpace:
    """The embedding of f."""

    teacher: Teacher

    @property
    def n_features(self) -> int:
        return self.teacher.centres.shape[1]

    def __call__(self, inputs: np.ndarray) -> ForestInputs:
        outputs = self.teacher.outputs(inputs)
        p = softmax(outputs.logits, axis=1)
        return ForestInputs(outputs.embeddings, p, features=outputs.embeddings)


@dataclass(frozen=True, eq=False)
class Forest:
    """Fitted trees, and the space in which they split."""

    space: RawSpace | EmbeddingSpace
    trees: Any  # scikit-learn's
    n_classes: int

    @property
    def n_features(self) -> int:
        return self.space.n_features

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        items = self.space(inputs)
        # scikit-learn's score has the opposite sign.
        return np.column_stack([-self.trees.score_samples(items.rows), items.probabilities])

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """Principal components, or the embedding of f."""
        return self.space(inputs).features


Space = Literal["inputs", "pca", "f"]
Rule = Literal["known recall", "auto"]


@dataclass(frozen=True)
class IsolationForest(Baseline):
    """Random trees on the labelled items; an item that is isolated early is unknown."""

    space: Space = "inputs"  # pixels or vectors, their principal components, or the embedding of f
    n_trees: int = 100
    n_items: int = 256  # psi, per tree
    n_components: int = 50
    rule: Rule = "known recall"  # "auto": unknown above a score of 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("IsolationForest.space", self.space, Space)
        require_choice("IsolationForest.rule", self.rule, Rule)
        require_least("IsolationForest.n_trees", self.n_trees, 1)
        require_least("IsolationForest.n_items", self.n_items, 2)
        require_least("IsolationForest.n_components", self.n_components, 1)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> RowRecogniser[Forest]:
        """Fit the trees to the labelled items; the pool is not used."""
        space: RawSpace | EmbeddingSpace
        if self.space == "f":
            teacher, training, held_out = train_closed(known, self.recipe, seed=seed, device=device)
            space = EmbeddingSpace(teacher)
        else:
            training, held_out = hold_out(known, self.recipe.held_out, seed=seed)
            space = self._raw_space(training, seed)
        trees = ensemble.IsolationForest(
            n_estimators=self.n_trees,
            max_samples=min(self.n_items, len(training)),
            random_state=derive(seed, "isolation forest") % 2**31,
        ).fit(space(training.inputs).rows)
        forest = Forest(space, trees, known.n_classes)
        threshold = 0.5 if self.rule == "auto" else None
        return with_row_threshold(forest, held_out, self.known_recall, threshold=threshold)

    def _raw_space(self, training: Labelled, seed: int) -> RawSpace:
        inputs = training.inputs
        components = fit_components(inputs, self.n_components, whiten=False, seed=seed)
        regression = fit_regression(components(inputs), training.labels)
        varies = None if self.space == "pca" else np.ptp(as_rows(inputs), 0) > 0
        return RawSpace(components, regression, varies)
