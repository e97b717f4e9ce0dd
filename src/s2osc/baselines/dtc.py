"""DTC: cluster the pool around the known classes and a given number of new ones.

f, trained on the labelled items, is turned into a clustering: its head becomes a linear projection
to K = C + B axes, started at the principal axes of its embeddings, with K centres mu among them.
The first C centres start at the means of the known classes, the others where semi-supervised
k-means puts them. With z = W e(x) + b,

    q_ik = (1 + ||z_i - mu_k||^2)^-1 / sum_k' (1 + ||z_i - mu_k'||^2)^-1
    p_ik = (q_ik^2 / f_k) / sum_k' (q_ik'^2 / f_k'),       f_k = sum of q_ik over the whole pool
    L = mean over labelled items of -log q_iy
      + mean over the pool of KL(p_i || q_i) + w(t) mean (q_ik - q'_ik)^2

where q and q' are of two weak views of an item. p is computed from the whole pool before the first
step and a few times after that, and is fixed in between; no gradient reaches it. f, the projection
and the centres are trained. w(t) rises as w exp(-5 (1 - t / T)^2) until T, then stays. The answer
is the class of the largest q_ik, unknown where k > C; the score is the sum of q_ik over k > C.

Kai Han, Andrea Vedaldi and Andrew Zisserman, "Learning to Discover Novel Visual Categories via
Deep Transfer Clustering", ICCV 2019 (their PI variant).

What deviates: DTC clusters a pool of new classes alone. Centres tied to the known classes and the
term of the labelled items extend it to a pool that holds both. Steps and backbone are those all
methods share, so warm-up, ramp and updates of the targets are shares of the steps: in about the
proportions of the original's 110 epochs, but for the targets, which come 8 times and not 20. The
rate is lower than the original's 0.1 and 0.05, whose divergence is a mean over clusters, not a sum.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.baselines.recipe import IMAGES, ByRecipe, Recipe, threshold_at, train_closed
from s2osc.baselines.semi_supervised_kmeans import estimate_n_new, semi_supervised_kmeans
from s2osc.errors import DataError
from s2osc.nets.augmentation.views import Views
from s2osc.nets.networks import Network, as_tensor
from s2osc.nets.training import outputs, shuffled, train
from s2osc.pipeline.run_facts import RunFacts
from s2osc.seeding import derive, rng
from s2osc.settings import require_choice, require_least, require_positive, require_share
from s2osc.types import UNKNOWN, Labelled, Predictions

Rule = Literal["own", "recall"]


def log_student_t(z: Tensor, centres: Tensor) -> Tensor:
    """(n, K): log q, the logarithm of how much of an item each centre has.

    >>> centres = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 3**0.5]])
    >>> [round(q, 4) for q in log_student_t(torch.zeros(1, 2), centres).exp()[0].tolist()]
    [0.5714, 0.2857, 0.1429]
    """
    squares = (z**2).sum(1, keepdim=True) + (centres**2).sum(1) - 2 * z @ centres.T
    return (-torch.log1p(squares.clamp_min(0))).log_softmax(1)


def target_distribution(q: np.ndarray) -> np.ndarray:
    """p: q made sharper, and every cluster weighed by its size over all rows.

    >>> target_distribution(np.array([[0.8, 0.2], [0.6, 0.4]])).round(5).tolist()
    [[0.87273, 0.12727], [0.49091, 0.50909]]
    """
    weighed = q**2 / np.maximum(q.sum(0), np.finfo(q.dtype).tiny)
    return weighed / weighed.sum(1, keepdims=True)


def ramp(t: float, length: float) -> float:
    """exp(-5 (1 - t / length)^2) up to ``length``, then 1.

    >>> [round(ramp(t, 5), 4) for t in range(6)]
    [0.0067, 0.0408, 0.1653, 0.4493, 0.8187, 1.0]
    """
    return float(np.exp(-5 * (1 - min(t / length, 1)) ** 2))


def principal_projection(rows: np.ndarray, n_axes: int) -> tuple[np.ndarray, np.ndarray]:
    """(n_axes, d) and (n_axes,): W and b that turn rows into their leading principal components.

    Where there are fewer of those than asked for, the last axes are nought.
    """
    mean = rows.mean(0, dtype=np.float64)
    centred = rows - mean
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes.T[::-1][:n_axes]
    weight = np.zeros((n_axes, rows.shape[1]))
    weight[: len(axes)] = axes
    return weight, -weight @ mean


class ClusterHead(nn.Linear):
    """log q from an embedding: a projection, and centres in it."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray, centres: np.ndarray) -> None:
        # The weights are given: none are drawn.
        super().__init__(weight.shape[1], len(weight), device="meta")
        self.weight, self.bias, self.centres = (
            nn.Parameter(torch.from_numpy(values.astype(np.float32)))
            for values in (weight, bias, centres)
        )

    def project(self, embeddings: Tensor) -> Tensor:
        """z, the space of the centres."""
        return super().forward(embeddings)

    def forward(self, embeddings: Tensor) -> Tensor:
        return log_student_t(self.project(embeddings), self.centres)


@dataclass(frozen=True)
class DTC(ByRecipe):
    """Deep transfer clustering of known and new classes at once."""

    recipe: Recipe = IMAGES
    n_unknown: int | None = 1  # B, the number of unknown classes; None: estimated
    warm_up: float = 0.1  # share of the steps with the first targets, without consistency
    n_updates: int = 8  # of the targets, over the other steps
    consistency: float = 10.0  # w
    ramp_up: float = 0.25  # share of the other steps in which w(t) rises
    learning_rate: float = 0.02
    rule: Rule = "own"  # "recall": the threshold of held-out known items
    known_recall: float = 0.95

    def __post_init__(self) -> None:
        require_least("DTC.n_unknown", self.n_unknown, 1)
        require_least("DTC.n_updates", self.n_updates, 1)
        require_least("DTC.consistency", self.consistency, 0)
        require_positive("DTC.learning_rate", self.learning_rate)
        require_choice("DTC.rule", self.rule, Rule)
        for name in ("warm_up", "ramp_up", "known_recall"):
            require_share(f"DTC.{name}", getattr(self, name))

    def for_run(self, run: RunFacts) -> Self:
        """The number of unknown classes is given, as in the paper, where it is one number."""
        n_unknown = None if run.n_unknown is None else max(run.n_unknown, 1)
        return replace(super().for_run(run), n_unknown=n_unknown)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "ClusterRecogniser":
        """Train f, start the clusters in its embedding, and sharpen them on the pool."""
        if len(pool) < 2:
            raise DataError(f"the pool has {len(pool)} items; DTC clusters it: give at least two")
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        network = deepcopy(closed.teacher.network)
        network.head = start_head(network, closed.training, pool, self.n_unknown, seed=seed)
        network.to(device)
        train_clusters(network, closed.training, pool, self, seed=seed, device=device)
        recogniser = ClusterRecogniser(network, known.n_classes)
        if self.rule == "own":
            return recogniser
        scores = recogniser.predict(closed.held_out.inputs).unknown_score
        return ClusterRecogniser(network, known.n_classes, threshold_at(scores, self.known_recall))


def start_head(
    network: Network, training: Labelled, pool: np.ndarray, n_unknown: int | None, *, seed: int
) -> ClusterHead:
    """Project f's embedding to its principal axes, and find the centres there."""
    labelled = outputs(network, training.inputs, what="DTC looks at known items").embeddings
    unlabelled = outputs(network, pool, what="DTC looks at the pool").embeddings
    if n_unknown is None:
        n_unknown = estimate_n_new(labelled, training.labels, unlabelled, seed=seed)
    weight, bias = principal_projection(
        np.concatenate([labelled, unlabelled]), training.n_classes + n_unknown
    )
    clusters = semi_supervised_kmeans(
        labelled @ weight.T + bias,
        training.labels,
        unlabelled @ weight.T + bias,
        n_unknown,
        seed=seed,
    )
    return ClusterHead(weight, bias, clusters.centres)


class Step(NamedTuple):
    """The items of one step."""

    labelled: np.ndarray  # rows of the training items
    pool: np.ndarray  # rows of the pool


def steps(n_labelled: int, n_pool: int, batch_size: int, *, seed: int) -> Iterator[Step]:
    """Pair half batches of labelled and pool items without end: the latter are seen twice."""
    half = max(2, batch_size // 2)
    labelled = shuffled(n_labelled, half, rng(seed, "DTC labelled batches"))
    unlabelled = shuffled(n_pool, half, rng(seed, "DTC pool batches"))
    for rows, pool_rows in zip(labelled, unlabelled, strict=False):
        yield Step(rows, pool_rows)


def update_steps(n_steps: int, warm_up: int, n_updates: int) -> set[int]:
    """The steps before which the targets are computed: the first, and evenly after the warm-up.

    >>> sorted(update_steps(100, 20, 4))
    [0, 20, 40, 60, 80]
    """
    return {0, *np.linspace(warm_up, n_steps, n_updates, endpoint=False).astype(int).tolist()}


def cluster_loss(
    log_q_labelled: Tensor,
    log_q: Tensor,
    log_q_again: Tensor,
    labels: Tensor,
    targets: Tensor,
    weight: float,
) -> Tensor:
    """L of one step, from log q of labelled items and of two views of pool items."""
    named = F.nll_loss(log_q_labelled, labels)
    sharpened = F.kl_div(log_q, targets, reduction="batchmean")
    return named + sharpened + weight * F.mse_loss(log_q.exp(), log_q_again.exp())


def train_clusters(
    network: Network, training: Labelled, pool: np.ndarray, method: DTC, *, seed: int, device: str
) -> None:
    """Minimise L."""
    settings = method.recipe.teacher.training
    n_steps = settings.n_steps(len(pool))
    warm_up = max(1, round(method.warm_up * n_steps))
    updates = update_steps(n_steps, warm_up, method.n_updates)
    labels = torch.from_numpy(training.labels.astype(np.int64)).to(device)
    targets = torch.zeros(0)
    generator = torch.Generator(device).manual_seed(derive(seed, "DTC views"))
    views = Views(network, "weak", method.recipe.augmentation, generator)
    n_done = 0

    def loss_of(step: Step) -> Tensor:
        nonlocal n_done, targets
        if n_done in updates:
            targets = _targets(network, pool).to(device)
        main, n_main = n_done - warm_up, n_steps - warm_up
        weight = method.consistency * ramp(main, method.ramp_up * n_main) if main >= 0 else 0.0
        n_done += 1
        items = as_tensor(pool[step.pool], device)
        labelled = views.weak(as_tensor(training.inputs[step.labelled], device))
        # One pass over all: batch normalisation must not tell labelled from pool items.
        log_q = network(torch.cat([labelled, views.weak(items), views.weak(items)]))
        known, viewed, again = log_q.split([len(labelled), len(items), len(items)])
        told = labels[step.labelled], targets[step.pool]
        return cluster_loss(known, viewed, again, *told, weight)

    train(
        network,
        steps(len(training), len(pool), settings.batch_size, seed=seed),
        loss_of,
        replace(settings, learning_rate=method.learning_rate),
        n_steps=n_steps,
        what="training DTC's clusters",
    )


def _targets(network: Network, pool: np.ndarray) -> Tensor:
    """p of every pool item, from q as the network sees it outside training."""
    q = np.exp(outputs(network, pool, what="computing targets").logits.astype(np.float64))
    network.train()
    return torch.from_numpy(target_distribution(q).astype(np.float32))


@dataclass(frozen=True, eq=False)
class ClusterRecogniser:
    """A network whose head tells how much of an item each cluster has."""

    network: Network  # its head is a ClusterHead
    n_known: int  # C; the clusters after those are unknown classes
    threshold: float | None = None  # of the share of unknown clusters; None: the largest q decides

    @property
    def n_unknown(self) -> int:
        return self.network.head.out_features - self.n_known

    def shares(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + B) float64: q."""
        return np.exp(outputs(self.network, inputs, what="DTC answers").logits.astype(np.float64))

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + B): z, in which the centres lie."""
        head = cast(ClusterHead, self.network.head)
        embeddings = outputs(self.network, inputs, what="DTC looks at items").embeddings
        weight, bias = (part.detach().cpu().numpy() for part in (head.weight, head.bias))
        return embeddings @ weight.T + bias

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The known class of the largest q, or unknown; the confidence is q of that answer."""
        return self._predict(self.shares(inputs))

    def _predict(self, q: np.ndarray) -> Predictions:
        unknown = q[:, self.n_known :].sum(1)
        if self.threshold is None:
            is_unknown = q.argmax(1) >= self.n_known
        else:
            is_unknown = unknown > self.threshold
        named = q[:, : self.n_known].argmax(1)
        return Predictions(
            labels=np.where(is_unknown, UNKNOWN, named),
            unknown_score=unknown,
            confidence=np.where(is_unknown, unknown, q[np.arange(len(q)), named]),
            nearest=named,
        )

    def groups(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) int: which unknown class an item answered unknown is of, from 0; else -1."""
        q = self.shares(inputs)
        is_unknown = self._predict(q).labels == UNKNOWN
        return np.where(is_unknown, q[:, self.n_known :].argmax(1), -1)
