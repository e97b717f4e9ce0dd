"""Scores on one trained classifier f: what MSP, MaxLogit, Energy, KNN, Mahalanobis, ViM and
OpenMax share.

f is trained as ever; a score s then says how unknown an item looks from f's logits l(x) and
embedding e(x) alone, higher being more unknown. The threshold is the quantile of s over known
items that f has never seen ("T-95"), and an item below it gets the class of its largest logit. So
the methods differ in s, and in nothing else.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.baselines.recipe import Closed, threshold_at
from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.nets.training import Outputs, in_batches, outputs
from s2osc.types import UNKNOWN, Predictions

Score = Callable[[Outputs], np.ndarray]
"""(n,) from logits and embeddings: higher is more unknown, and every item is judged by itself."""


class Look(NamedTuple):
    """What f and a score say about n items."""

    logits: np.ndarray  # (n, C) float32
    scores: np.ndarray  # (n,) float64


def look(network: Network, score: Score, inputs: np.ndarray) -> Look:
    """Logits and score of each item; embeddings are scored batch by batch and let go."""
    logits = np.empty((len(inputs), network.head.out_features), np.float32)
    scores = np.empty(len(inputs))
    for rows, batch_logits, embeddings in in_batches(network, inputs, "f looks at items"):
        logits[rows] = batch_logits.cpu().numpy()
        scores[rows] = score(Outputs(logits[rows], embeddings.cpu().numpy()))
    return Look(logits, scores)


@dataclass(frozen=True, eq=False)
class PostHoc:
    """f, a score on what it says, and the threshold above which an item is unknown."""

    network: Network
    score: Score
    threshold: float
    held_out_scores: np.ndarray  # (m,) ascending

    def predict(self, inputs: np.ndarray) -> Predictions:
        logits, scores = look(self.network, self.score, inputs)
        is_unknown = scores > self.threshold
        return Predictions(
            labels=np.where(is_unknown, UNKNOWN, logits.argmax(1)),
            unknown_score=scores,
            confidence=np.where(
                is_unknown,
                share_below(scores, self.held_out_scores),
                softmax(logits.astype(np.float64), axis=1).max(1),
            ),
            nearest=logits.argmax(1),
        )

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The embedding of f."""
        return outputs(self.network, inputs, what="embedding items").embeddings


def with_threshold(closed: Closed, score: Score, known_recall: float) -> PostHoc:
    """The recogniser that calls this share of the items f has not seen known."""
    network = closed.teacher.network
    held_out = np.sort(look(network, score, closed.held_out.inputs).scores)
    return PostHoc(network, score, threshold_at(held_out, known_recall), held_out)


def training_outputs(closed: Closed) -> Outputs:
    """What f says about the items it has learnt, to fit a score to."""
    return outputs(closed.teacher.network, closed.training.inputs, what="f looks at its lessons")


def share_below(scores: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """The share of known items (held out, ascending) that score lower, counting the item itself.

    It is one minus the chance that a known item scores so high, and so the belief that an item
    called unknown is unknown.

    >>> share_below(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 0.5, 0.75]
    """
    return np.searchsorted(held_out, scores, side="left") / (len(held_out) + 1)


def check_known_recall(known_recall: float) -> None:
    if not 0 < known_recall <= 1:
        raise SettingsError(
            f"known_recall is {known_recall}; give the share of known items to be called known, "
            "above 0 and at most 1"
        )
