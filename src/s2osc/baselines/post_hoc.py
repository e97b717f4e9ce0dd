"""Post-hoc scores on the classifier f: MSP, MaxLogit, Energy, KNN, Mahalanobis and ViM.

f is trained on the known classes as usual. A score s(x), computed from f's logits l(x) and
embedding e(x), rises with unknownness. The threshold is a quantile of s over held-out known items;
below it, an item gets the class of its largest logit. The methods differ in s alone.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from s2osc.arrays import in_chunks
from s2osc.baselines.shared import (
    Baseline,
    Closed,
    predict_by_threshold,
    threshold_at,
    train_closed,
)
from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.nets.training import Outputs, in_batches, outputs
from s2osc.pipeline.teacher import class_centres, distance_to_centres
from s2osc.settings import require_least, require_positive
from s2osc.types import Labelled, Predictions

Score = Callable[[Outputs], np.ndarray]
"""(n,) from logits and embeddings: higher is more unknown. Each item is scored on its own."""
MOST_DISTANCES = 2**22
"""Distances in memory at a time: 16 MB."""
LEAST_VARIANCE = 1e-12
LEAST_RESIDUAL = 1e-4


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


# --- scores of the logits --------------------------------------------------------------------


@dataclass(frozen=True)
class MSP(Baseline):
    """MSP, the maximum softmax probability: s = 1 - max_c p_c, with p = softmax(l).

    Dan Hendrycks and Kevin Gimpel, "A baseline for detecting misclassified and out-of-distribution
    examples in neural networks", ICLR 2017.
    """

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
class MaxLogit(Baseline):
    """MaxLogit, the maximum logit score (MLS): s = -max_c l_c.

    Sagar Vaze, Kai Han, Andrea Vedaldi and Andrew Zisserman, "Open-set recognition: a good
    closed-set classifier is all you need?", ICLR 2022.

    What differs: published with long training (600 epochs, RandAugment); here f is the classifier
    that all methods share. It is trained without label smoothing, which distorts the logits.
    """

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
class Energy(Baseline):
    """Energy: s = -T log sum_c exp(l_c / T).

    Weitang Liu, Xiaoyun Wang, John Owens and Yixuan Li, "Energy-based out-of-distribution
    detection", NeurIPS 2020.

    What differs: the score alone; the published fine-tuning needs unknown items.
    """

    temperature: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
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


# --- scores of the embedding -----------------------------------------------------------------


@dataclass(frozen=True)
class KNN(Baseline):
    """KNN: s = || z(x) - z_(k) ||, the distance to the k-th nearest training item; z = e / ||e||.

    Yiyou Sun, Yifei Ming, Xiaojin Zhu and Yixuan Li, "Out-of-distribution detection with deep
    nearest neighbors", ICML 2022.

    What differs: the published k = 50 is for 50,000 training items; the default here is the same
    share of the training items, and at least 5.
    """

    k: int | None = None  # None: one per thousand training items, at least 5

    def __post_init__(self) -> None:
        super().__post_init__()
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


@dataclass(frozen=True)
class Mahalanobis(Baseline):
    """Mahalanobis: s = min_c sqrt((e - mu_c)' S^-1 (e - mu_c)), classes as Gaussians.

    mu_c is the mean embedding of class c over the training items, S their covariance around these
    means, shared by all classes.

    Kimin Lee, Kibok Lee, Honglak Lee and Jinwoo Shin, "A simple unified framework for detecting
    out-of-distribution samples and adversarial attacks", NeurIPS 2018.

    What differs: the published method combines many layers by a regression on unknown items and
    perturbs inputs; here, without unknown items, it is the last layer alone. A ridge (a small
    share of the mean variance) replaces the pseudo-inverse, because some units have no variance.
    """

    ridge: float = 1e-3  # share of the mean variance added to every direction

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("ridge", self.ridge)

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> PostHoc:
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        embeddings = training_outputs(closed).embeddings
        classes = fit_gaussians(embeddings, closed.training.labels, self.ridge)
        return with_threshold(
            closed, lambda outputs: classes.distance(outputs.embeddings), self.known_recall
        )


@dataclass(frozen=True, eq=False)
class Gaussians:
    """Class means in the space where the shared covariance is the identity.

    In float64: directions of little variance are scaled up so far that float32 is too coarse.
    """

    origin: np.ndarray  # (d,) the mean of all items
    whitening: np.ndarray  # (d, d)
    means: np.ndarray  # (C, d), whitened

    def distance(self, embeddings: np.ndarray) -> np.ndarray:
        """The distance to the nearest class mean."""
        return in_chunks(
            lambda rows: np.sqrt(
                distance_to_centres((rows - self.origin) @ self.whitening, self.means)
            ),
            embeddings,
        )


def fit_gaussians(embeddings: np.ndarray, labels: np.ndarray, ridge: float) -> Gaussians:
    """Means, and a matrix A with A A' = S^-1.

    >>> corners = np.array([[-1.0, 0.0], [1.0, 0.0], [0.0, -2.0], [0.0, 2.0]])
    >>> one_class = fit_gaussians(corners, np.zeros(4, int), ridge=1e-9)
    >>> one_class.distance(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])).round(4).tolist()
    [0.0, 1.4142, 0.7071]
    """
    rows = embeddings.astype(np.float64)
    means, origin = class_centres(rows, labels), rows.mean(0)
    centred = rows - means[labels]
    covariance = centred.T @ centred / len(rows)
    variance = max(np.trace(covariance) / len(covariance), LEAST_VARIANCE)
    covariance[np.diag_indices_from(covariance)] += ridge * variance
    whitening = np.linalg.inv(np.linalg.cholesky(covariance)).T
    return Gaussians(origin, whitening, means=(means - origin) @ whitening)


@dataclass(frozen=True)
class ViM(Baseline):
    """ViM, virtual-logit matching: s = alpha ||R'(e - u)|| - log sum_c exp(l_c).

        u      -W^+ b, the least-squares solution of W u + b = 0
        R      all but the D leading eigenvectors of the mean of (e - u)(e - u)' over training items
        alpha  mean of max_c l_c over mean of ||R'(e - u)||, both over training items

    The residual scaled by alpha is the logit of a virtual class, whose softmax probability rises
    with s.

    Haoqi Wang, Zhizhong Li, Litong Feng and Wayne Zhang, "ViM: out-of-distribution with
    virtual-logit matching", CVPR 2022.

    What differs: D is half of the dimensions by default; the published 1000 and 512 are for wider
    embeddings.
    """

    n_principal: int | None = None  # D; None: half of the embedding's dimensions

    def __post_init__(self) -> None:
        super().__post_init__()
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
