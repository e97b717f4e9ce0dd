"""SENC-MaS: matrix sketches of all known items and of each class.

Every item is scaled to unit length, x^. The similarity of an item to the n items behind a sketch B
(frequent directions) is

    sim(x; B, n) = |B x^|^2 / n,   about the mean squared cosine between x and the n items,

or, as an option, |V x^|^2, the share of x within the directions V of the sketch. An item is unknown
where its similarity to the global sketch of all known items is below a threshold; else it gets the
class whose local sketch is most similar. In a stream, newly labelled items are merged into the
sketches, and each new class gets a local sketch (``extend_sketches``).

Frequent directions: a sketch B of the rows A has fewer than l rows. Rows are added up to 2 l; then,
with the singular value decomposition U S V', B = sqrt(max(S^2 - delta, 0)) V' where delta is the
l-th largest S^2. For any rows in any order

    0 <= A'A - B'B <= |A|_F^2 / l

and a sketch of two stacked sketches is a sketch of both with the same bound.

References: X. Mu, F. Zhu, J. Du, E.-P. Lim, Z.-H. Zhou, "Streaming Classification with Emerging New
Class by Class Matrix Sketching", AAAI 2017; E. Liberty, "Simple and Deterministic Matrix
Sketching", KDD 2013.

What differs: the two kinds of sketches, the inner products, a threshold from the data and the
updates are published; the exact similarity, threshold and sizes are our reading. The threshold
comes from held-out known items: the score that 95 % of them do not exceed, or one deviation above
their mean. Pixels are never negative, so the mean image dominates the similarity; ``center``
subtracts the mean of the training items.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from s2osc.arrays import in_chunks, unit_rows
from s2osc.baselines.shared import (
    Baseline,
    as_rows,
    hold_out,
    predict_by_threshold,
    threshold_at,
)
from s2osc.errors import DataError, SettingsError
from s2osc.progress import track
from s2osc.settings import require_choice, require_least
from s2osc.types import Labelled, Predictions

Similarity = Literal["mean square", "energy"]
Rule = Literal["known recall", "mean - std"]


class Sketch(NamedTuple):
    """A few rows with about the second moments of many items."""

    rows: np.ndarray  # (fewer than l, D) orthogonal
    n_items: int

    @property
    def directions(self) -> np.ndarray:
        """V: the rows at unit length."""
        return unit_rows(self.rows)

    def merged_with(self, rows: np.ndarray, n_directions: int) -> "Sketch":
        """The sketch of these items and more."""
        return Sketch(merge(self.rows, rows, n_directions), self.n_items + len(rows))


def empty_sketch(n_features: int) -> Sketch:
    """A sketch of no items yet."""
    return Sketch(np.empty((0, n_features)), 0)


def similarity(rows: np.ndarray, to: Sketch, kind: Similarity) -> np.ndarray:
    """The similarity of unit rows to the items behind a sketch, from 0 to 1.

    Squared, because the sign of a sketch's rows is arbitrary.
    """
    if kind == "energy":
        return ((rows @ to.directions.T) ** 2).sum(1)
    return ((rows @ to.rows.T) ** 2).sum(1) / to.n_items


@dataclass(frozen=True)
class SENCMaS(Baseline):
    """A global sketch for known against unknown, and a local sketch per known class.

    Of the recipe, only the share of items held out is used.
    """

    n_directions: int = 50  # l, of every sketch
    center: bool = False  # subtract the mean of the training items
    similarity: Similarity = "mean square"
    rule: Rule = "known recall"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least("SENCMaS.n_directions", self.n_directions, 2)
        require_choice("SENCMaS.similarity", self.similarity, Similarity)
        require_choice("SENCMaS.rule", self.rule, Rule)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "Sketches":
        """Sketch the labelled items; the pool is not used."""
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
    """The sketches, and the threshold."""

    method: SENCMaS
    mean: np.ndarray  # (D,) subtracted from each row; zeros unless the method centres
    whole: Sketch
    local: tuple[Sketch, ...]  # one per class
    held_out: np.ndarray  # (m, D) unit rows of held-out known items
    threshold: float
    known_scores: np.ndarray  # (m,) scores of the held-out rows

    @property
    def n_classes(self) -> int:
        return len(self.local)

    def similarities(self, rows: np.ndarray) -> np.ndarray:
        """(n, 1 + C): the similarity of unit rows to all known items, then to each class."""
        sketches, kind = (self.whole, *self.local), self.method.similarity
        return np.column_stack([similarity(rows, to, kind) for to in sketches])

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the similarity to all known items is low, else the most similar class."""
        found = in_chunks(
            lambda part: self.similarities(unit_rows(as_rows(part) - self.mean)),
            inputs,
            1 + self.n_classes,
        )
        probabilities = class_shares(found[:, 1:])
        return predict_by_threshold(-found[:, 0], probabilities, self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """Unit rows within the directions of the global sketch."""
        directions = self.whole.directions
        return in_chunks(
            lambda part: unit_rows(as_rows(part) - self.mean) @ directions.T,
            inputs,
            len(directions),
        ).astype(np.float32)


def class_shares(similarities: np.ndarray) -> np.ndarray:
    """Each class's share of an item's similarities; equal shares where all are zero.

    >>> class_shares(np.array([[0.75, 0.25], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [0.5, 0.5]]
    """
    total = similarities.sum(1, keepdims=True)
    equal = np.full_like(similarities, 1 / similarities.shape[1])
    return np.divide(similarities, total, out=equal, where=total > 0)


def extend_sketches(
    model: Sketches, inputs: np.ndarray, labels: np.ndarray, *, seed: int = 0
) -> Sketches:
    """The model with newly labelled items in its sketches, and a new threshold.

    New classes take the next numbers. A share of each class is held out, as in ``fit``, unless the
    class has a single item. The mean stays that of the first items.
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
    """(n,) bool: the held-out items, of classes with more than one."""
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
    """The sketches with the threshold from the held-out rows."""
    scores = -similarity(held_out, whole, method.similarity)
    if method.rule == "mean - std":
        threshold = float(scores.mean() + scores.std())
    else:
        threshold = threshold_at(scores, method.known_recall)
    return Sketches(method, mean, whole, local, held_out, threshold, scores)


# --- frequent directions -------------------------------------------------------------------


def sketch(rows: np.ndarray, n_directions: int) -> np.ndarray:
    """B: fewer than ``n_directions`` (l) orthogonal rows, the longest first, float64.

    >>> np.abs(sketch(np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 1.0]]), 3)).round(6).tolist()
    [[5.0, 0.0], [0.0, 1.0]]
    """
    if n_directions < 2:
        raise SettingsError(
            f"a sketch of {n_directions} directions keeps nothing; give a number from 2"
        )
    sketched, start = np.empty((0, rows.shape[1])), 0
    while start < len(rows):
        end = start + 2 * n_directions - len(sketched)
        sketched, start = shrink_rows(np.vstack([sketched, rows[start:end]]), n_directions), end
    return sketched


def merge(first: np.ndarray, second: np.ndarray, n_directions: int) -> np.ndarray:
    """A sketch of the rows behind both; either side may be a sketch or rows."""
    return sketch(np.vstack([first, second]), n_directions)


def shrink_rows(rows: np.ndarray, n_directions: int) -> np.ndarray:
    """Subtract the l-th largest squared singular value from all; drop rows that become zero.

    >>> (shrink_rows(np.diag([3.0, 2.0, 1.0]), 2) ** 2).round(6).tolist()
    [[5.0, 0.0, 0.0]]
    """
    _, values, directions = np.linalg.svd(rows, full_matrices=False)
    squares = values**2
    if len(squares) >= n_directions:
        squares = np.maximum(squares - squares[n_directions - 1], 0)
    # Beyond the rank of the rows there are only rounding errors.
    is_left = squares > np.finfo(np.float64).eps * squares.max(initial=0) * len(squares)
    return np.sqrt(squares[is_left])[:, None] * directions[is_left]
