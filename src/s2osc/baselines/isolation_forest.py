"""Isolation Forest: what few random cuts set apart from the labelled items is unknown.

Each of t trees takes psi labelled items and cuts them at random: a feature at random, a place
between its smallest and its largest value at random, until a point is alone or the tree is
ceil(log2 psi) deep. With h(x) the number of cuts to the leaf of x plus c(items in that leaf), and
c(n) the mean depth of n points,

    c(n) = 2 (ln(n - 1) + 0.5772156649) - 2 (n - 1) / n,    c(2) = 1,    c(1) = 0
    score(x) = 2 ^ (- mean over trees of h(x) / c(psi))

which nears 1 where x stands apart and stays below a half where it does not. The trees are
scikit-learn's.

Reference: F. T. Liu, K. M. Ting, Z.-H. Zhou, "Isolation Forest", ICDM 2008.

What differs: the forest says known or unknown and no more, so a logistic regression on the leading
principal components names the known items; where the forest stands on the embedding of f, f does.
The published rule (unknown above a half) is an option; by default the threshold lets 95 % of the
labelled items held out of training pass. Features without variance in the labelled items, such as
the border of centred digits, are left out: no cut goes through them.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from scipy.special import softmax
from sklearn import ensemble

from s2osc.arrays import in_chunks
from s2osc.baselines.principal import Namer, Principal, find_principal, learn_names
from s2osc.baselines.recipe import (
    IMAGES,
    ByRecipe,
    Parts,
    Recipe,
    as_rows,
    decide,
    hold_out,
    threshold_at,
    train_closed,
)
from s2osc.pipeline.teacher import Teacher
from s2osc.seeding import derive
from s2osc.settings import require_choice, require_least, require_share
from s2osc.types import Labelled, Predictions


class Seen(NamedTuple):
    """What there is to know about n items."""

    rows: np.ndarray  # (n, d) what the forest cuts
    probabilities: np.ndarray  # (n, C) of the known classes
    features: np.ndarray  # (n, k) where items are grouped


class Eyes(Protocol):
    """How items are looked at."""

    @property
    def n_features(self) -> int: ...

    def look(self, inputs: np.ndarray) -> Seen: ...


@dataclass(frozen=True, eq=False)
class PlainEyes:
    """Items as pixels or vectors, with their principal components."""

    principal: Principal
    namer: Namer
    varies: np.ndarray | None  # (D,) bool: the features that are cut; None: the components are

    @property
    def n_features(self) -> int:
        return self.principal.n_components

    def look(self, inputs: np.ndarray) -> Seen:
        rows = as_rows(inputs)
        components = self.principal(rows)
        return Seen(
            components if self.varies is None else rows[:, self.varies],
            self.namer.probabilities(components),
            components,
        )


@dataclass(frozen=True, eq=False)
class NetworkEyes:
    """Items as f sees them."""

    teacher: Teacher

    @property
    def n_features(self) -> int:
        return self.teacher.centres.shape[1]

    def look(self, inputs: np.ndarray) -> Seen:
        sight = self.teacher.outputs(inputs)
        return Seen(sight.embeddings, softmax(sight.logits, axis=1), sight.embeddings)


Space = Literal["inputs", "pca", "f"]
Rule = Literal["known recall", "auto"]


@dataclass(frozen=True)
class IsolationForest(ByRecipe):
    """Trees that cut the labelled items apart; unknown is what is soon alone."""

    space: Space = "inputs"  # pixels or vectors, their principal components, or the embedding of f
    n_trees: int = 100
    n_items: int = 256  # psi, of each tree
    n_components: int = 50
    rule: Rule = "known recall"  # "auto": unknown above a score of a half
    known_recall: float = 0.95
    recipe: Recipe = IMAGES

    def __post_init__(self) -> None:
        require_choice("IsolationForest.space", self.space, Space)
        require_choice("IsolationForest.rule", self.rule, Rule)
        require_share("IsolationForest.known_recall", self.known_recall)
        require_least("IsolationForest.n_trees", self.n_trees, 1)
        require_least("IsolationForest.n_items", self.n_items, 2)
        require_least("IsolationForest.n_components", self.n_components, 1)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> "Forest":
        """Grow the trees on labelled items alone; the pool is not looked at."""
        eyes: Eyes
        if self.space == "f":
            closed = train_closed(known, self.recipe, seed=seed, device=device)
            parts, eyes = Parts(closed.training, closed.held_out), NetworkEyes(closed.teacher)
        else:
            parts = hold_out(known, self.recipe.held_out, seed=seed)
            eyes = self._open_eyes(parts.training, seed)
        trees = ensemble.IsolationForest(
            n_estimators=self.n_trees,
            max_samples=min(self.n_items, len(parts.training)),
            random_state=derive(seed, "isolation forest") % 2**31,
        ).fit(eyes.look(parts.training.inputs).rows)
        forest = Forest(eyes, trees, known.n_classes, threshold=0.5, known_scores=np.zeros(0))
        known_scores = forest.look(parts.held_out.inputs)[:, 0]
        if self.rule == "auto":
            return replace(forest, known_scores=known_scores)
        threshold = threshold_at(known_scores, self.known_recall)
        return replace(forest, threshold=threshold, known_scores=known_scores)

    def _open_eyes(self, training: Labelled, seed: int) -> PlainEyes:
        inputs = training.inputs
        principal = find_principal(inputs, self.n_components, whiten=False, seed=seed)
        namer = learn_names(principal(inputs), training.labels)
        varies = None if self.space == "pca" else np.ptp(as_rows(inputs), 0) > 0
        return PlainEyes(principal, namer, varies)


@dataclass(frozen=True, eq=False)
class Forest:
    """Fitted trees, how they look at items, and where unknown begins."""

    eyes: Eyes
    trees: Any  # scikit-learn's
    n_classes: int
    threshold: float
    known_scores: np.ndarray  # of the items held out

    def look(self, inputs: np.ndarray) -> np.ndarray:
        """(n, 1 + C): the score, then the probability of each known class."""

        def of(part: np.ndarray) -> np.ndarray:
            seen = self.eyes.look(part)
            # scikit-learn gives the score with its sign turned.
            return np.column_stack([-self.trees.score_samples(seen.rows), seen.probabilities])

        return in_chunks(of, inputs, 1 + self.n_classes)

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the score is above the threshold, else the likeliest class."""
        seen = self.look(inputs)
        return decide(seen[:, 0], seen[:, 1:], self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """Principal components of the items, or their embedding by f."""
        look, n_columns = self.eyes.look, self.eyes.n_features
        values = in_chunks(lambda part: look(part).features, inputs, n_columns)
        return values.astype(np.float32)
