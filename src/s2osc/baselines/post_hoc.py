"""Post-hoc scores on the classifier f: MSP, MaxLogit, Energy, KNN, Mahalanobis, ViM and OpenMax.

f is trained on the known classes as usual. A score s(x), computed from f's logits l(x) and
embedding e(x), rises with unknownness. The threshold is a quantile of s over held-out known items;
below it, an item gets the class of its largest logit. The methods differ in s alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.baselines.shared import Closed, predict_by_threshold, threshold_at
from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.nets.training import Outputs, in_batches, outputs
from s2osc.types import Predictions

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
