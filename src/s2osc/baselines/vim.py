"""ViM, virtual-logit matching: s = alpha ||R'(e - u)|| - log sum_c exp(l_c).

    u      -W^+ b, the point whose logits W u + b are all zero (as near as can be)
    R      eigenvectors of the mean of (e - u)(e - u)' over training items, without the D leading
    alpha  mean of max_c l_c over mean of ||R'(e - u)||, both over training items

The residual scaled by alpha is the logit of one more, virtual, class; its softmax probability
rises with s.

Haoqi Wang, Zhizhong Li, Litong Feng and Wayne Zhang, "ViM: out-of-distribution with virtual-logit
matching", CVPR 2022.

D is half of the dimensions by default: the published 1000 and 512 are for wider embeddings.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import in_chunks
from s2osc.baselines.energy import energy
from s2osc.baselines.post_hoc import (
    PostHoc,
    check_known_recall,
    training_outputs,
    with_threshold,
)
from s2osc.baselines.recipe import IMAGES, ByRecipe, Recipe, train_closed
from s2osc.errors import SettingsError
from s2osc.nets.training import Outputs
from s2osc.settings import require_least
from s2osc.types import Labelled

LEAST_RESIDUAL = 1e-4


@dataclass(frozen=True)
class ViM(ByRecipe):
    """An item is unknown where its embedding leaves the space of the training items."""

    n_principal: int | None = None  # D; None: half of the embedding's dimensions
    known_recall: float = 0.95
    recipe: Recipe = IMAGES

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
class Virtual:
    """The residual space of the training items, and the scale that makes a logit of it."""

    origin: np.ndarray  # (d,) u
    basis: np.ndarray  # (d, d - D) R
    alpha: float

    def residual(self, embeddings: np.ndarray) -> np.ndarray:
        """||R'(e - u)||."""
        return in_chunks(
            lambda rows: np.linalg.norm((rows - self.origin) @ self.basis, axis=1), embeddings
        )

    def score(self, seen: Outputs) -> np.ndarray:
        return self.alpha * self.residual(seen.embeddings) + energy(seen.logits)


def zero_logits(weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    """u, where the logits are zero.

    >>> zero_logits(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, -4.0])).round(4).tolist()
    [-1.0, 1.0]
    """
    return -np.linalg.pinv(weight.astype(np.float64)) @ bias


def residual_basis(centred: np.ndarray, n_principal: int) -> np.ndarray:
    """Eigenvectors of the second moments (no mean is taken off), all but the leading ones."""
    # In ascending order of eigenvalues: the leading ones come last.
    _, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    return vectors[:, : vectors.shape[1] - n_principal]


def fit_virtual(
    seen: Outputs, weight: np.ndarray, bias: np.ndarray, n_principal: int | None = None
) -> Virtual:
    """u, R and alpha from what f says about its training items and its last layer."""
    n_dimensions = seen.embeddings.shape[1]
    n_principal = n_dimensions // 2 if n_principal is None else n_principal
    if n_principal >= n_dimensions:
        raise SettingsError(
            f"n_principal is {n_principal}, but the embedding has {n_dimensions} dimensions; "
            "give fewer, so that a residual is left"
        )
    origin = zero_logits(weight, bias)
    centred = seen.embeddings - origin
    virtual = Virtual(origin, residual_basis(centred, n_principal), alpha=1.0)
    residual = virtual.residual(seen.embeddings).mean()
    # Training items may fill no more than the leading dimensions; alpha must not blow up rounding.
    least = LEAST_RESIDUAL * np.linalg.norm(centred, axis=1).mean()
    alpha = float(seen.logits.max(1).mean() / max(residual, least))
    return Virtual(origin, virtual.basis, alpha)
