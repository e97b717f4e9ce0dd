"""ODIN: temperature scaling of f's softmax, and inputs perturbed towards their predicted class.

    S_i(x; T) = exp(l_i(x) / T) / sum_j exp(l_j(x) / T)            l: the logits of f
    x~        = x - eps sign(- grad_x log S_c(x; T))               c = argmax_i l_i(x)
    conf(x)   = max_i S_i(x~; T)

The perturbation raises conf more for items of known classes; an item is unknown where conf is low.
With T = 1 and eps = 0, conf is the largest softmax probability.

Reference: S. Liang, Y. Li, R. Srikant, "Enhancing the Reliability of Out-of-distribution Image
Detection in Neural Networks", ICLR 2018.

What differs: T and eps were tuned on out-of-distribution items; here they are chosen on held-out
known items, or given. T, from 1 to the published 1,000, calibrates f (C. Guo et al., "On
Calibration of Modern Neural Networks", ICML 2017): at the published T, conf compares the largest
logit with the mean of all, which misses unknown classes that resemble two known ones. eps is the
one of a grid that maximises the mean conf. Its unit is that of pixels from 0 to 1; for vectors, the
deviation of each feature over the training items. The score is T (log(1 / conf) - log C), in the
units of logits: at T = 1000, conf differs from 1 / C by a thousandth, and rounding would destroy
its order. The threshold comes from held-out known items, perturbed like all others.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax
from torch import Tensor

from s2osc.arrays import chunks
from s2osc.baselines.shared import (
    Baseline,
    predict_by_threshold,
    threshold_at,
    train_closed,
)
from s2osc.errors import SettingsError
from s2osc.nets.networks import Network, as_tensor
from s2osc.nets.training import SCORING_BATCH
from s2osc.pipeline.teacher import Teacher
from s2osc.progress import track
from s2osc.types import Labelled, Predictions

BYTE = 255.0
PUBLISHED_TEMPERATURE = 1_000.0


def confidence(logits: np.ndarray, temperature: float) -> np.ndarray:
    """max_i S_i: the largest softened probability, float64.

    >>> confidence(np.array([[3.0, 1.0, 0.0]]), 1000).round(6).tolist()
    [0.333889]
    """
    return softmax(logits.astype(np.float64) / temperature, axis=1).max(1)


def unknownness(logits: np.ndarray, temperature: float) -> np.ndarray:
    """T (log(1 / conf) - log C): falls as conf rises, in the units of logits.

    >>> unknownness(np.array([[3.0, 1.0, 0.0], [1.0, 1.0, 1.0]]), 1000).round(3).tolist()
    [-1.666, 0.0]
    """
    behind = logits.astype(np.float64) - logits.max(1, keepdims=True)
    return temperature * (logsumexp(behind / temperature, axis=1) - np.log(logits.shape[1]))


def perturb(network: Network, batch: Tensor, eps: float, temperature: float) -> Tensor:
    """x~: each item after a step of ``eps`` towards its predicted class, float32.

    The step is in the units of the inputs, before the network normalises them.
    """
    inputs = batch.float().detach().requires_grad_()
    log_odds = _log_odds_of_others(network(inputs) / temperature)
    (gradient,) = torch.autograd.grad(log_odds.sum(), inputs)
    # As published, a gradient of zero counts as positive; torch.sign would give 0.
    sign = torch.where(gradient >= 0, 1.0, -1.0)
    unit = BYTE if batch.dtype == torch.uint8 else network.scale
    return (inputs - eps * unit * sign).detach()


def _log_odds_of_others(softened: Tensor) -> Tensor:
    """log sum_{i != c} exp(l_i / T) - l_c / T, which is log(1 / S_c - 1), of each item.

    Its gradient has the sign of that of -log S_c, which is 0 in float32 where f is very confident.
    """
    likeliest = softened.argmax(1, keepdim=True)
    others = softened.scatter(1, likeliest, -torch.inf)
    return others.logsumexp(1) - softened.gather(1, likeliest)[:, 0]


def perturbed_logits(
    network: Network, inputs: np.ndarray, eps: float, temperature: float
) -> np.ndarray:
    """(n, C) float32: f's logits for the perturbed items."""
    network.eval()
    logits = np.empty((len(inputs), network.head.out_features), np.float32)
    batches = chunks(len(inputs), SCORING_BATCH)
    for rows in track(batches, "perturbing items", total=len(batches)):
        batch = as_tensor(inputs[rows], network.device)
        if eps:
            batch = perturb(network, batch, eps, temperature)
        with torch.inference_mode():
            logits[rows] = network(batch).cpu().numpy()
    return logits


def choose_temperature(logits: np.ndarray, labels: np.ndarray) -> float:
    """The T from 1 to 1,000 that minimises the negative log-likelihood of the labels.

    If f makes no error, T is 1.

    >>> logits, labels = np.tile([4.0, 0.0], (4, 1)), np.array([0, 0, 0, 1])
    >>> round(choose_temperature(logits, labels), 2)  # three of four are right: 4 / log 3
    3.64
    """

    def negative_log_likelihood(log_temperature: float) -> float:
        softened = log_softmax(logits.astype(np.float64) / np.exp(log_temperature), axis=1)
        return -float(softened[np.arange(len(labels)), labels].mean())

    bounds = (0.0, np.log(PUBLISHED_TEMPERATURE))
    best = minimize_scalar(
        negative_log_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-4}
    ).x
    return float(np.exp(min((0.0, best), key=negative_log_likelihood)))


def choose_eps(
    network: Network, known: np.ndarray, grid: tuple[float, ...], temperature: float
) -> float:
    """The eps with the largest mean conf over known items; of equal ones, the smallest."""

    def mean_confidence(eps: float) -> float:
        logits = perturbed_logits(network, known, eps, temperature)
        return float(confidence(logits, temperature).mean())

    return max(sorted(grid), key=mean_confidence)


@dataclass(frozen=True)
class ODIN(Baseline):
    """f's confidence at temperature T, after a perturbation that raises it."""

    temperature: float | None = None  # None: chosen to calibrate f
    eps: float | None = None  # None: chosen from the grid
    grid: tuple[float, ...] = (0.0, 0.0005, 0.0014, 0.0028, 0.005)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature is not None and not 0 < self.temperature < np.inf:
            raise SettingsError(
                f"ODIN.temperature is {self.temperature}; give None or a number above 0"
            )
        if self.eps is not None and not 0 <= self.eps < np.inf:
            raise SettingsError(f"ODIN.eps is {self.eps}; give None or a number from 0")
        if not self.grid or not all(0 <= eps < np.inf for eps in self.grid):
            raise SettingsError(f"ODIN.grid is {self.grid}; give at least one number from 0")

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "PerturbedClassifier":
        """Train f, choose T and eps, set the threshold; the pool is not used."""
        teacher, _, held_out = train_closed(known, self.recipe, seed=seed, device=device)
        temperature, eps = self.temperature, self.eps
        if temperature is None:
            logits = teacher.outputs(held_out.inputs).logits
            temperature = choose_temperature(logits, held_out.labels)
        if eps is None:
            eps = choose_eps(teacher.network, held_out.inputs, self.grid, temperature)
        fitted = PerturbedClassifier(teacher, temperature, eps, 0.0, known_scores=np.zeros(0))
        scores = fitted.score(held_out.inputs)
        return replace(
            fitted, threshold=threshold_at(scores, self.known_recall), known_scores=scores
        )


@dataclass(frozen=True, eq=False)
class PerturbedClassifier:
    """f, T, eps and the threshold."""

    teacher: Teacher
    temperature: float
    eps: float
    threshold: float
    known_scores: np.ndarray  # of the held-out items, perturbed

    def score(self, inputs: np.ndarray) -> np.ndarray:
        """The score of the perturbed items."""
        network = self.teacher.network
        logits = perturbed_logits(network, inputs, self.eps, self.temperature)
        return unknownness(logits, self.temperature)

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the score is above the threshold, else f's class before perturbing."""
        return predict_by_threshold(
            self.score(inputs),
            self.teacher.probabilities(inputs),
            self.threshold,
            self.known_scores,
        )

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The embedding of f."""
        return self.teacher.outputs(inputs).embeddings
