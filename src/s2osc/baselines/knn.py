"""KNN: s = || z(x) - z_(k) ||, the distance to the k-th nearest training item, with z = e / ||e||.

Yiyou Sun, Yifei Ming, Xiaojin Zhu and Yixuan Li, "Out-of-distribution detection with deep nearest
neighbors", ICML 2022.

What differs: the published k = 50 is for 50,000 training items; the default here is the same share
of the training items, and at least 5.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from s2osc.arrays import in_chunks
from s2osc.baselines.post_hoc import PostHoc, check_known_recall, training_outputs, with_threshold
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.settings import require_least
from s2osc.types import Labelled

MOST_DISTANCES = 2**22
"""Distances in memory at a time: 16 MB."""


@dataclass(frozen=True)
class KNN(ByRecipe):
    """An item is unknown where its k-th nearest training item is far."""

    k: int | None = None  # None: one per thousand training items, at least 5
    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)
        require_least("k", self.k, 1)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        bank = Bank.of(training_outputs(closed).embeddings)
        k = choose_k(len(bank.units)) if self.k is None else self.k
        return with_threshold(
            closed, lambda outputs: bank.distance(outputs.embeddings, k), self.known_recall
        )


def choose_k(n_items: int) -> int:
    """One neighbour per thousand items, at least 5.

    >>> choose_k(50_000), choose_k(600)
    (50, 5)
    """
    return max(5, n_items // 1_000)


def unit_tensor(embeddings: np.ndarray) -> Tensor:
    """Rows of unit length, float32; zeros stay zeros."""
    rows = torch.tensor(embeddings, dtype=torch.float32)
    return rows / torch.linalg.vector_norm(rows, dim=1, keepdim=True).clamp_min(1e-12)


@dataclass(frozen=True, eq=False)
class Bank:
    """The training items at unit length."""

    units: Tensor  # (m, d)

    @classmethod
    def of(cls, embeddings: np.ndarray) -> "Bank":
        return cls(unit_tensor(embeddings))

    def distance(self, embeddings: np.ndarray, k: int) -> np.ndarray:
        """From each row at unit length to its k-th nearest in the bank (or its last).

        >>> bank = Bank.of(np.array([[2.0, 0.0], [0.0, 3.0]]))
        >>> bank.distance(np.array([[5.0, 0.0]]), k=1).tolist()
        [0.0]
        >>> bank.distance(np.array([[5.0, 0.0]]), k=2).round(4).tolist()
        [1.4142]
        """
        k = min(k, len(self.units))
        size = max(1, MOST_DISTANCES // len(self.units))
        return in_chunks(
            lambda rows: self._distance(unit_tensor(rows), k).numpy(), embeddings, size=size
        )

    def _distance(self, queries: Tensor, k: int) -> Tensor:
        nearest = (queries @ self.units.T).topk(k, dim=1).indices[:, -1]
        # From the cosine, rounding would turn a distance of 0 into about 0.0005.
        return torch.linalg.vector_norm(queries - self.units[nearest], dim=1)
