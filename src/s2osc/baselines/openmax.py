"""OpenMax: logits reduced by how extreme an item is for each class, and a logit for unknown.

    d_c      distance from l(x) to mu_c, the mean logits of correctly classified items of class c
    W_c      a Weibull distribution fitted to the largest of these distances in class c
    omega_c  (A + 1 - i) / A where c has the i-th largest logit, 0 beyond the A-th
    l'_c   = l_c (1 - omega_c W_c(d_c)),    l'_unknown = sum_c (l_c - l'_c)
    P      = softmax(l'_1, ..., l'_C, l'_unknown),    s = log P_unknown / (1 - P_unknown)

Abhijit Bendale and Terrance Boult, "Towards open set deep networks", CVPR 2016.

What differs: the score is the log-odds of P_unknown, which orders items alike without rounding to
1. As in the authors' library, the distances of a tail are shifted to start at 1 before the fit. In
small classes the tail is at most a tenth, or ordinary items would look extreme. A is 3 instead of
10, for few classes. By default, held-out known items set the threshold; ``rule="own"`` is the
published rule: unknown has the largest P, or no P reaches ``least_probability``.
"""

from dataclasses import dataclass
from math import ceil
from typing import Literal, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax

from s2osc.baselines.post_hoc import (
    PostHoc,
    score_items,
    training_outputs,
    with_threshold,
)
from s2osc.baselines.shared import (
    Baseline,
    label_items,
    train_closed,
)
from s2osc.settings import require_choice, require_least, require_range
from s2osc.types import Labelled, Predictions, Recogniser

LEAST_SHAPE, MOST_SHAPE = 1e-2, 1e3
TAIL_SHARE = 0.1  # of a class, at most
EUCLIDEAN_UNIT = 200.0  # the published weight of the Euclidean distance beside the cosine's

Distance = Literal["euclidean", "both"]


@dataclass(frozen=True)
class OpenMax(Baseline):
    """An item is unknown where its logits are extreme for its top classes."""

    n_tail: int = 20  # largest distances in each class
    n_ranks: int = 3  # A: how many of the largest logits are reduced
    distance: Distance = "euclidean"  # "both": Euclidean / 200 + cosine
    rule: Literal["recall", "own"] = "recall"
    least_probability: float = 0.9  # of the predicted class, with rule="own"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least("n_tail", self.n_tail, 1)
        require_least("n_ranks", self.n_ranks, 1)
        require_choice("distance", self.distance, ("euclidean", "both"))
        require_choice("rule", self.rule, ("recall", "own"))
        require_range("least_probability", self.least_probability, 0, 1)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recogniser:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        logits = training_outputs(closed).logits
        tails = fit_tails(logits, closed.training.labels, self.n_tail, self.distance)
        recogniser = with_threshold(
            closed,
            lambda outputs: unknown_log_odds(
                revise(outputs.logits, tails(outputs.logits), self.n_ranks)
            ),
            self.known_recall,
        )
        if self.rule == "recall":
            return recogniser
        return PublishedRule(recogniser, tails, self.n_ranks, self.least_probability)


class Weibull(NamedTuple):
    """The distribution function 1 - exp(-(x / scale)^shape)."""

    shape: float
    scale: float

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """The share below each value.

        >>> Weibull(2.0, 3.0)(np.array([-1.0, 0.0, 3.0])).round(4).tolist()
        [0.0, 0.0, 0.6321]
        """
        powers = self.shape * np.log(np.maximum(values, 1e-300) / self.scale)
        return -np.expm1(-np.exp(np.minimum(powers, 50.0)))


def fit_weibull(values: np.ndarray) -> Weibull:
    """Maximum likelihood fit to positive values; nearly a step where all are equal."""
    logs = np.log(values / values.max())

    def slope(shape: float) -> float:
        powers = np.exp(shape * logs)
        return float((powers * logs).sum() / powers.sum() - 1 / shape - logs.mean())

    is_inside = slope(MOST_SHAPE) > 0
    shape = brentq(slope, LEAST_SHAPE, MOST_SHAPE) if is_inside else MOST_SHAPE
    scale = values.max() * np.exp(shape * logs).mean() ** (1 / shape)
    return Weibull(float(shape), float(scale))


def distances(logits: np.ndarray, means: np.ndarray, kind: Distance = "euclidean") -> np.ndarray:
    """(n, C) from each row to each class mean.

    >>> item, means = np.array([[3.0, 0.0]]), np.array([[0.0, 4.0], [1.0, 0.0]])
    >>> distances(item, means).tolist(), distances(item, means, "both").round(4).tolist()
    ([[5.0, 2.0]], [[1.025, 0.01]])
    """
    euclidean = np.linalg.norm(logits[:, None] - means, axis=2)
    if kind == "euclidean":
        return euclidean
    lengths = np.linalg.norm(logits, axis=1)[:, None] * np.linalg.norm(means, axis=1)
    return euclidean / EUCLIDEAN_UNIT + 1 - logits @ means.T / np.maximum(lengths, 1e-12)


@dataclass(frozen=True, eq=False)
class ClassTails:
    """The Weibull fits to the largest distances of each class."""

    means: np.ndarray  # (C, C)
    starts: np.ndarray  # (C,) the smallest distance in each tail
    fitted: tuple[Weibull, ...]
    kind: Distance

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """W_c(d_c): (n, C), how extreme each row is for each class."""
        shifted = distances(logits.astype(np.float64), self.means, self.kind) - self.starts + 1
        columns = [weibull(shifted[:, c]) for c, weibull in enumerate(self.fitted)]
        return np.stack(columns, axis=1)


def fit_tails(logits: np.ndarray, labels: np.ndarray, n_tail: int, kind: Distance) -> ClassTails:
    """Class means over correctly classified items, and the tails of the distances to them."""
    logits, is_right = logits.astype(np.float64), logits.argmax(1) == labels
    means, starts, fitted = [], [], []
    for c in range(labels.max() + 1):
        of_class = labels == c
        # If no item of a class is classified correctly, all are used.
        rows = logits[of_class & is_right] if is_right[of_class].any() else logits[of_class]
        means.append(rows.mean(0))
        ascending = np.sort(distances(rows, means[-1][None], kind)[:, 0])
        tail = ascending[-min(n_tail, ceil(TAIL_SHARE * len(rows))) :]
        starts.append(tail[0])
        fitted.append(fit_weibull(tail - tail[0] + 1))
    return ClassTails(np.stack(means), np.array(starts), tuple(fitted), kind)


def revise(logits: np.ndarray, extremeness: np.ndarray, n_ranks: int) -> np.ndarray:
    """(n, C + 1): l', and the logit of the unknown class last.

    >>> revise(np.array([[4.0, 2.0]]), np.array([[0.5, 1.0]]), n_ranks=2).tolist()
    [[2.0, 1.0, 3.0]]
    """
    logits = logits.astype(np.float64)
    n_ranks = min(n_ranks, logits.shape[1])
    rank = np.argsort(np.argsort(-logits, axis=1, kind="stable"), axis=1)
    omega = np.maximum(n_ranks - rank, 0) / n_ranks
    revised = logits * (1 - omega * extremeness)
    return np.column_stack([revised, (logits - revised).sum(1)])


def unknown_log_odds(revised: np.ndarray) -> np.ndarray:
    """log P_unknown / (1 - P_unknown)."""
    return revised[:, -1] - logsumexp(revised[:, :-1], axis=1)


@dataclass(frozen=True, eq=False)
class PublishedRule:
    """The published rule, by the probabilities of all classes and unknown."""

    post_hoc: PostHoc
    tails: ClassTails
    n_ranks: int
    least_probability: float

    def predict(self, inputs: np.ndarray) -> Predictions:
        logits, scores = score_items(self.post_hoc.network, self.post_hoc.score, inputs)
        p = softmax(revise(logits, self.tails(logits), self.n_ranks), axis=1)
        p_best = p[:, :-1].max(1)
        is_unknown = (p[:, -1] > p_best) | (p_best < self.least_probability)
        nearest = p[:, :-1].argmax(1)
        return label_items(
            is_unknown, scores, nearest=nearest, p_known=p_best, p_unknown=1 - p_best
        )

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.post_hoc.features(inputs)
