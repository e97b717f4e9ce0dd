"""MaxLogit, the maximum logit score (MLS): s = -max_c l_c.

Sagar Vaze, Kai Han, Andrea Vedaldi and Andrew Zisserman, "Open-set recognition: a good closed-set
classifier is all you need?", ICLR 2022.

What differs: published with long training (600 epochs, RandAugment); here f is the classifier that
all methods share. It is trained without label smoothing, which distorts the logits.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.baselines.post_hoc import PostHoc, check_known_recall, with_threshold
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.types import Labelled


@dataclass(frozen=True)
class MaxLogit(ByRecipe):
    """An item is unknown where no class has a large logit."""

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
