"""SENC-MaS: small sketches of all known items and of each class; unknown is what neither meets.

Every item is brought to unit length, x^. A sketch B of n items (frequent directions) answers how
well an item meets them,

    sim(x; B, n) = |B x^|^2 / n,   about the mean squared cosine between x and the n items,

or, as an option, |V x^|^2, the share of x within the directions V of the sketch. The global sketch
of all known items tells known from unknown: unknown where sim is below a threshold. The local
sketch of each class names the known: the class with the largest sim. A stream merges newly labelled
items into the sketches, and adds a local sketch for each new class (``extend``).

Reference: X. Mu, F. Zhu, J. Du, E.-P. Lim, Z.-H. Zhou, "Streaming Classification with Emerging New
Class by Class Matrix Sketching", AAAI 2017.

What differs: of the published method, the two kinds of sketches, the inner products, a threshold
drawn from the data and the updates are certain; the exact similarity, threshold and sizes are our
reading. The threshold lets 95 % of the labelled items held out of the sketches pass, or is the mean
minus one deviation of their similarities. Pixels are never negative, so that the mean image
outweighs all else in sim; ``center`` takes the mean of the training items away first.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from s2osc.arrays import in_chunks, unit_rows
from s2osc.baselines.frequent_directions import merge
from s2osc.baselines.recipe import (
    IMAGES,
    ByRecipe,
    Recipe,
    as_rows,
    decide,
    hold_out,
    threshold_at,
)
from s2osc.errors import DataError, SettingsError
from s2osc.progress import track
from s2osc.settings import require_choice, require_least, require_share
from s2osc.types import Labelled, Predictions

Similarity = Literal["mean square", "energy"]
Rule = Literal["known recall", "mean - std"]


class Sketch(NamedTuple):
    """A few rows that stand for many items."""

    rows: np.ndarray  # (fewer than l, D) orthogonal
    n_items: int

    @property
    def directions(self) -> np.ndarray:
        """V: the rows at unit length."""
        return unit_rows(self.rows)

    def merged_with(self, rows: np.ndarray, n_directions: int) -> "Sketch":
        """A sketch of these items and of more."""
        return Sketch(merge(self.rows, rows, n_directions), self.n_items + len(rows))


def empty_sketch(n_features: int) -> Sketch:
    """A sketch of no items yet."""
    return Sketch(np.empty((0, n_features)), 0)


def similarity(rows: np.ndarray, to: Sketch, kind: Similarity) -> np.ndarray:
    """How well unit rows meet the items behind a sketch, from 0 to 1.

    Squares, because the rows of a sketch may point either way along their direction.
    """
    if kind == "energy":
        return ((rows @ to.directions.T) ** 2).sum(1)
    return ((rows @ to.rows.T) ** 2).sum(1) / to.n_items


@dataclass(frozen=True)
class SENCMaS(ByRecipe):
    """A global sketch that tells known from unknown, and local ones that name the known."""

    n_directions: int = 50  # l, of every sketch
    center: bool = False  # whether the mean of the training items is taken away first
    similarity: Similarity = "mean square"
    rule: Rule = "known recall"
    known_recall: float = 0.95
    recipe: Recipe = IMAGES  # only its share of items held out

    def __post_init__(self) -> None:
        require_least("SENCMaS.n_directions", self.n_directions, 2)
        require_choice("SENCMaS.similarity", self.similarity, Similarity)
        require_choice("SENCMaS.rule", self.rule, Rule)
        require_share("SENCMaS.known_recall", self.known_recall)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "Sketches":
        """Sketch the labelled items; the pool is not looked at."""
        training, held_out = hold_out(known, self.recipe.held_out, seed=seed)
        rows = as_rows(training.inputs)
        mean = rows.mean(0) if self.center else np.zeros(rows.shape[1], np.float32)
        rows = unit_rows(rows - mean)
        nothing, n_classes = empty_sketch(rows.shape[1]), known.n_classes
        whole, *local = (
            nothing.merged_with(rows[chosen], self.n_directions)
            for chosen in track(
                [slice(None), *(training.labels == c for c in range(n_classes))],
                "sketching all items, and each class",
                total=1 + n_classes,
            )
        )
        if not len(whole.rows):
            raise DataError("the labelled items are all zero, or all the same; give others")
        if self.similarity == "energy" and len(whole.rows) == rows.shape[1]:
            raise SettingsError(
                f"SENCMaS.n_directions is {self.n_directions}, which leaves no direction of the "
                f"{rows.shape[1]} features out; give fewer, or similarity='mean square'"
            )
        return _with_threshold(
            self, mean, whole, tuple(local), unit_rows(as_rows(held_out.inputs) - mean)
        )


@dataclass(frozen=True, eq=False)
class Sketches:
    """The sketches, and where unknown begins."""

    method: SENCMaS
    mean: np.ndarray  # (D,) taken from each row; zeros unless the method centres
    whole: Sketch
    local: tuple[Sketch, ...]  # one per class
    held_out: np.ndarray  # (m, D) unit rows that no sketch has seen
    threshold: float
    known_scores: np.ndarray  # (m,) of the rows held out

    @property
    def n_classes(self) -> int:
        return len(self.local)

    def look(self, rows: np.ndarray) -> np.ndarray:
        """(n, 1 + C): the similarity of unit rows to all known items, then to each class."""
        sketches, kind = (self.whole, *self.local), self.method.similarity
        return np.column_stack([similarity(rows, to, kind) for to in sketches])

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the known items are not met, else the class that is met best."""
        seen = in_chunks(
            lambda part: self.look(unit_rows(as_rows(part) - self.mean)),
            inputs,
            1 + self.n_classes,
        )
        return decide(-seen[:, 0], shares(seen[:, 1:]), self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """Unit rows within the directions of the global sketch."""
        directions = self.whole.directions
        return in_chunks(
            lambda part: unit_rows(as_rows(part) - self.mean) @ directions.T,
            inputs,
            len(directions),
        ).astype(np.float32)


def shares(similarities: np.ndarray) -> np.ndarray:
    """Each class's share of an item's similarities; equal shares where it meets none.

    >>> shares(np.array([[0.75, 0.25], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = similarities.sum(1, keepdims=True)
    equal = np.full_like(similarities, 1 / similarities.shape[1])
    return np.divide(similarities, total, out=equal, where=total > 0)


def extend(model: Sketches, inputs: np.ndarray, labels: np.ndarray, *, seed: int = 0) -> Sketches:
    """The model with newly labelled items in its sketches, and a threshold to match.

    New classes take the next numbers. Of each class a share is held out, as in ``fit``, but not of
    a class with a single item: that goes into its sketch. The mean stays that of the first items,
    because the sketches are of rows less that mean.
    """
    n_classes = max(model.n_classes, int(labels.max(initial=-1)) + 1)
    if set(range(n_classes)) != {*range(model.n_classes), *labels.tolist()}:
        raise DataError(
            f"the new labels are {np.unique(labels).tolist()} beside {model.n_classes} classes; "
            f"give known classes, and number new ones from {model.n_classes} on without gaps"
        )
    if not len(labels):
        return model
    n_directions = model.method.n_directions
    rows = unit_rows(as_rows(inputs) - model.mean)
    is_held_out = _held_out(labels, model.method.recipe.held_out, seed)
    taken, taken_labels = rows[~is_held_out], labels[~is_held_out]
    nothing = empty_sketch(rows.shape[1])
    local = [*model.local, *[nothing] * (n_classes - model.n_classes)]
    return _with_threshold(
        model.method,
        model.mean,
        model.whole.merged_with(taken, n_directions),
        tuple(
            old.merged_with(taken[taken_labels == c], n_directions) for c, old in enumerate(local)
        ),
        np.vstack([model.held_out, rows[is_held_out]]),
    )


def _held_out(labels: np.ndarray, share: float, seed: int) -> np.ndarray:
    """(n,) bool: the items kept apart, of the classes with more than one."""
    _, which, counts = np.unique(labels, return_inverse=True, return_counts=True)
    several = np.flatnonzero(counts[which] > 1)
    is_held_out = np.zeros(len(labels), bool)
    if len(several):
        _, renumbered = np.unique(labels[several], return_inverse=True)
        is_held_out[hold_out(Labelled(several, renumbered), share, seed=seed).held_out.inputs] = (
            True
        )
    return is_held_out


def _with_threshold(
    method: SENCMaS,
    mean: np.ndarray,
    whole: Sketch,
    local: tuple[Sketch, ...],
    held_out: np.ndarray,
) -> Sketches:
    """The sketches with the threshold that the rows held out ask for."""
    scores = -similarity(held_out, whole, method.similarity)
    if method.rule == "mean - std":
        threshold = float(scores.mean() + scores.std())
    else:
        threshold = threshold_at(scores, method.known_recall)
    return Sketches(method, mean, whole, local, held_out, threshold, scores)
