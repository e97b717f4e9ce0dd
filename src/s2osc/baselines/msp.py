"""MSP, the maximum softmax probability: s = 1 - max_c p_c, with p = softmax(l).

Dan Hendrycks and Kevin Gimpel, "A baseline for detecting misclassified and out-of-distribution
examples in neural networks", ICLR 2017.

The order of the items is that of the published -max_c p_c. The small numbers are kept: written as
one minus a probability, all items f is sure of would score exactly zero.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.baselines.post_hoc import PostHoc, check_known_recall, with_threshold
from s2osc.baselines.recipe import IMAGES, ByRecipe, Recipe, train_closed
from s2osc.types import Labelled


@dataclass(frozen=True)
class MSP(ByRecipe):
    """An item is unknown where no class is probable."""

    known_recall: float = 0.95
    recipe: Recipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        return with_threshold(closed, lambda seen: doubt(seen.logits), self.known_recall)


def doubt(logits: np.ndarray) -> np.ndarray:
    """1 - max_c softmax(logits)_c, as the sum of all other probabilities.

    >>> doubt(np.log([[0.7, 0.2, 0.1]])).round(4).tolist()
    [0.3]
    """
    logits = logits.astype(np.float64)
    odds = np.exp(logits - logits.max(1, keepdims=True))
    odds[np.arange(len(odds)), logits.argmax(1)] = 0
    others = odds.sum(1)
    return others / (1 + others)
