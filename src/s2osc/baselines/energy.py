"""Energy: s = -T log sum_c exp(l_c / T).

Weitang Liu, Xiaoyun Wang, John Owens and Yixuan Li, "Energy-based out-of-distribution detection",
NeurIPS 2020.

What differs: the score alone; the published fine-tuning needs unknown items.
"""

from dataclasses import dataclass

import numpy as np
import torch

from s2osc.baselines.post_hoc import PostHoc, check_known_recall, with_threshold
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.settings import require_positive
from s2osc.types import Labelled


@dataclass(frozen=True)
class Energy(ByRecipe):
    """An item is unknown where the log-sum-exp of its logits is small."""

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
