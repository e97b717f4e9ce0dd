"""ViM, virtual-logit matching: s = alpha ||R'(e - u)|| - log sum_c exp(l_c).

    u      -W^+ b, the least-squares solution of W u + b = 0
    R      all but the D leading eigenvectors of the mean of (e - u)(e - u)' over training items
    alpha  mean of max_c l_c over mean of ||R'(e - u)||, both over training items

The residual scaled by alpha is the logit of a virtual class, whose softmax probability rises with
s.

Haoqi Wang, Zhizhong Li, Litong Feng and Wayne Zhang, "ViM: out-of-distribution with virtual-logit
matching", CVPR 2022.

What differs: D is half of the dimensions by default; the published 1000 and 512 are for wider
embeddings.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import in_chunks
from s2osc.baselines.post_hoc import (
    PostHoc,
    check_known_recall,
    energy,
    training_outputs,
    with_threshold,
)
from s2osc.baselines.shared import IMAGES, ByRecipe, TeacherRecipe, train_closed
from s2osc.errors import SettingsError
from s2osc.nets.training import Outputs
from s2osc.settings import require_least
from s2osc.types import Labelled

LEAST_RESIDUAL = 1e-4


@dataclass(frozen=True)
class ViM(ByRecipe):
    """An item is unknown where its embedding lies off the principal space of the training items."""

    n_principal: int | None = None  # D; None: half of the embedding's dimensions
    known_recall: float = 0.95
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        check_known_recall(self.known_recall)
        require_least("n_principal", self.n_principal, 1)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        head = closed.teacher.network.head
        weight, bias = (values.detach().cpu().numpy() for values in (head.weight, head.bias))
        virtual = fit_virtual(training_outputs(closed), weight, bias, self.n_principal)
        return with_threshold(closed, virtual.score, self.known_recall)


@dataclass(frozen=True, eq=False)
class VirtualLogit:
    """The residual space of the training items, and the scale of the virtual logit."""

    origin: np.ndarray  # (d,) u
    basis: np.ndarray  # (d, d - D) R
    alpha: float

    def residual(self, embeddings: np.ndarray) -> np.ndarray:
        """||R'(e - u)||."""
        return in_chunks(
            lambda rows: np.linalg.norm((rows - self.origin) @ self.basis, axis=1), embeddings
        )

    def score(self, outputs: Outputs) -> np.ndarray:
        return self.alpha * self.residual(outputs.embeddings) + energy(outputs.logits)


def zero_logits(weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """u, the point of zero logits.

    >>> zero_logits(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, -4.0])).round(4).tolist()
    [-1.0, 1.0]
    """
    return -np.linalg.pinv(weight.astype(np.float64)) @ bias


def residual_basis(centred: np.ndarray, n_principal: int) -> np.ndarray:
    """All but the leading eigenvectors of the second moments."""
    # eigh sorts eigenvalues in ascending order: the leading ones come last.
    _, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    return vectors[:, : vectors.shape[1] - n_principal]


def fit_virtual(
    outputs: Outputs, weight: np.ndarray, bias: np.ndarray, n_principal: int | None = None
) -> VirtualLogit:
    """u, R and alpha from f's outputs for its training items and its last layer."""
    n_dimensions = outputs.embeddings.shape[1]
    n_principal = n_dimensions // 2 if n_principal is None else n_principal
    if n_principal >= n_dimensions:
        raise SettingsError(
            f"n_principal is {n_principal}, but the embedding has {n_dimensions} dimensions; "
            "give fewer, so that a residual is left"
        )
    origin = zero_logits(weight, bias)
    centred = outputs.embeddings - origin
    virtual = VirtualLogit(origin, residual_basis(centred, n_principal), alpha=1.0)
    residual = virtual.residual(outputs.embeddings).mean()
    # The residual of training items may be zero: alpha must not amplify rounding errors.
    least = LEAST_RESIDUAL * np.linalg.norm(centred, axis=1).mean()
    alpha = float(outputs.logits.max(1).mean() / max(residual, least))
    return VirtualLogit(origin, virtual.basis, alpha)
