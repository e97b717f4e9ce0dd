"""MSP, the maximum softmax probability: s = 1 - max_c p_c, with p = softmax(l).

Dan Hendrycks and Kevin Gimpel, "A baseline for detecting misclassified and out-of-distribution
examples in neural networks", ICLR 2017.

s is computed as the sum of the other probabilities: one minus the largest would round to zero for
all confident items.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.baselines.post_hoc import PostHoc, check_known_recall, with_threshold
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.types import Labelled


@dataclass(frozen=True)
class MSP(ByRecipe):
    """An item is unknown where no class is probable."""

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

    >>> one_minus_max(np.log([[0.7, 0.2, 0.1]])).round(4).tolist()
    [0.3]
    """
    logits = logits.astype(np.float64)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds[np.arange(len(odds)), logits.argmax(1)] = 0
    others = odds.sum(1)
    return others / (1 + others)
