"""Post-hoc scores on the classifier f; here MSP, MaxLogit and Energy, which need its logits alone.

f is trained on the known classes as usual. A score s(x), computed from f's logits l(x) and
embedding e(x), rises with unknownness. The threshold is a quantile of s over held-out known items;
below it, an item gets the class of its largest logit. The methods differ in s alone; KNN,
Mahalanobis, ViM and OpenMax have files of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax

from s2osc.baselines.shared import (
    IMAGES,
    ByRecipe,
    Closed,
    TeacherRecipe,
    predict_by_threshold,
    threshold_at,
    train_closed,
)
from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.nets.training import Outputs, in_batches, outputs
from s2osc.settings import require_positive
from s2osc.types import Labelled, Predictions

Score = Callable[[Outputs], np.ndarray]
"""(n,) from logits and embeddings: higher is more unknown. Each item is scored on its own."""


class ScoredLogits(NamedTuple):
    """The logits of n items, and their scores."""

    logits: np.ndarray  # (n, C) float32
    scores: np.ndarray  # (n,) float64


def score_items(network: Network, score: Score, inputs: np.ndarray) -> ScoredLogits:
    """Logits and score of each item. Embeddings are scored batch by batch and not stored."""
    logits = np.empty((len(inputs), network.head.out_features), np.float32)
    scores = np.empty(len(inputs))
    for rows, batch_logits, embeddings in in_batches(network, inputs, "scoring items"):
        logits[rows] = batch_logits.cpu().numpy()
        scores[rows] = score(Outputs(logits[rows], embeddings.cpu().numpy()))
    return ScoredLogits(logits, scores)


@dataclass(frozen=True, eq=False)
class PostHoc:
    """f, a score on its outputs, and the threshold above which an item is unknown."""

    network: Network
    score: Score
    threshold: float
    held_out_scores: np.ndarray  # (m,)

    def predict(self, inputs: np.ndarray) -> Predictions:
        logits, scores = score_items(self.network, self.score, inputs)
        probabilities = softmax(logits.astype(np.float64), axis=1)
        return predict_by_threshold(scores, probabilities, self.threshold, self.held_out_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The embedding of f."""
        return outputs(self.network, inputs, what="embedding items").embeddings


def with_threshold(closed: Closed, score: Score, known_recall: float) -> PostHoc:
    """The recogniser whose threshold calls this share of the held-out known items known."""
    network = closed.teacher.network
    held_out = np.sort(score_items(network, score, closed.held_out.inputs).scores)
    return PostHoc(network, score, threshold_at(held_out, known_recall), held_out)


def training_outputs(closed: Closed) -> Outputs:
    """f's outputs for its training items, to fit a score to."""
    return outputs(closed.teacher.network, closed.training.inputs, what="embedding training items")


def check_known_recall(known_recall: float) -> None:
    if not 0 < known_recall <= 1:
        raise SettingsError(
            f"known_recall is {known_recall}; give the share of known items to be called known, "
            "above 0 and at most 1"
        )


# --- scores of the logits ---------------------------------------------------------------------


@dataclass(frozen=True)
class MSP(ByRecipe):
    """MSP, the maximum softmax probability: s = 1 - max_c p_c, with p = softmax(l).

    Dan Hendrycks and Kevin Gimpel, "A baseline for detecting misclassified and out-of-distribution
    examples in neural networks", ICLR 2017.
    """

    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        return with_threshold(
            closed, lambda outputs: one_minus_max(outputs.logits), self.known_recall
        )


def one_minus_max(logits: np.ndarray) -> np.ndarray:
    """1 - max_c softmax(logits)_c, as the sum of all other probabilities.

    One minus the largest would round to zero for all confident items.

    >>> one_minus_max(np.log([[0.7, 0.2, 0.1]])).round(4).tolist()
    [0.3]
    """
    logits = logits.astype(np.float64)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds[np.arange(len(odds)), logits.argmax(1)] = 0
    others = odds.sum(1)
    return others / (1 + others)


@dataclass(frozen=True)
class MaxLogit(ByRecipe):
    """MaxLogit, the maximum logit score (MLS): s = -max_c l_c.

    Sagar Vaze, Kai Han, Andrea Vedaldi and Andrew Zisserman, "Open-set recognition: a good
    closed-set classifier is all you need?", ICLR 2022.

    What differs: published with long training (600 epochs, RandAugment); here f is the classifier
    that all methods share. It is trained without label smoothing, which distorts the logits.
    """

    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        return with_threshold(
            closed, lambda outputs: negative_max(outputs.logits), self.known_recall
        )


def negative_max(logits: np.ndarray) -> np.ndarray:
    """-max_c l_c.

    >>> negative_max(np.array([[10.0, 9.0], [5.0, 0.0]])).tolist()
    [-10.0, -5.0]
    """
    return -logits.max(1)


@dataclass(frozen=True)
class Energy(ByRecipe):
    """Energy: s = -T log sum_c exp(l_c / T).

    Weitang Liu, Xiaoyun Wang, John Owens and Yixuan Li, "Energy-based out-of-distribution
    detection", NeurIPS 2020.

    What differs: the score alone; the published fine-tuning needs unknown items.
    """

    temperature: float = 1.0
    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)
        require_positive("temperature", self.temperature)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        return with_threshold(
            closed, lambda outputs: energy(outputs.logits, self.temperature), self.known_recall
        )


def energy(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """-T logsumexp(l / T).

    >>> energy(np.array([[1.0, 2.0, 3.0]])).round(4).tolist()
    [-3.4076]
    """
    # torch is several times faster than scipy here.
    scaled = torch.tensor(logits, dtype=torch.float64) / temperature
    return (-temperature * torch.logsumexp(scaled, dim=1)).numpy()
