"""DTC: deep transfer clustering of the pool into the known classes and B new ones.

The head of f becomes a linear projection to K = C + B axes, initialised with the principal axes of
the embeddings, and K centres mu. The first C centres start at the means of the known classes, the
others at the centres of semi-supervised k-means. With z = W e(x) + b,

    q_ik = (1 + ||z_i - mu_k||^2)^-1 / sum_k' (1 + ||z_i - mu_k'||^2)^-1
    p_ik = (q_ik^2 / f_k) / sum_k' (q_ik'^2 / f_k'),       f_k = sum of q_ik over the whole pool
    L = mean over labelled items of -log q_iy
      + mean over the pool of KL(p_i || q_i) + w(t) mean (q_ik - q'_ik)^2

where q and q' are of two weak views of an item. The targets p are computed from the whole pool
before the first step and a few times later; no gradient flows through them. f, the projection and
the centres are trained. w(t) rises as w exp(-5 (1 - t / T)^2) until T. The label is the class of
the largest q_ik, unknown where k > C; the score is the sum of q_ik over k > C.

Semi-supervised k-means: labelled items stay in their class, unlabelled items go to the nearest
centre, and every centre moves to the mean of its items. New centres start at unlabelled items drawn
by k-means++. The best of several starts has the least sum of squared distances.

Kai Han, Andrea Vedaldi and Andrew Zisserman, "Learning to Discover Novel Visual Categories via
Deep Transfer Clustering", ICCV 2019 (their PI variant). Semi-supervised k-means: Sagar Vaze, Kai
Han, Andrea Vedaldi and Andrew Zisserman, "Generalized Category Discovery", CVPR 2022; k-means++:
David Arthur and Sergei Vassilvitskii, SODA 2007.

What differs: the published DTC clusters a pool of new classes only. Centres of the known classes
and the loss on labelled items extend it to a pool with both. The network and the number of steps
are those all methods share, so warm-up, ramp and target updates are shares of the steps, in about
the proportions of the original's 110 epochs; targets are updated 8 times instead of 20. The
learning rate is lower than the original's 0.1 and 0.05, whose divergence is averaged over clusters.
"""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, cast

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.metrics import silhouette_score
from sklearn.preprocessing import normalize
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.arrays import squared_distances
from s2osc.baselines.shared import (
    Baseline,
    at_recall,
    label_items,
    train_closed,
)
from s2osc.errors import DataError
from s2osc.nets.augmentation.augment import Views
from s2osc.nets.networks import Network, as_tensor
from s2osc.nets.training import outputs, shuffled, train
from s2osc.pipeline.run_facts import RunFacts
from s2osc.progress import track
from s2osc.seeding import derive, rng
from s2osc.settings import require_choice, require_least, require_positive, require_share
from s2osc.types import UNKNOWN, Labelled, Predictions

Rule = Literal["own", "recall"]


def log_student_t(z: Tensor, centres: Tensor) -> Tensor:
    """(n, K): log q, the soft assignment of each item to each centre.

    >>> centres = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 3**0.5]])
    >>> [round(q, 4) for q in log_student_t(torch.zeros(1, 2), centres).exp()[0].tolist()]
    [0.5714, 0.2857, 0.1429]
    """
    squares = (z**2).sum(1, keepdim=True) + (centres**2).sum(1) - 2 * z @ centres.T
    return (-torch.log1p(squares.clamp_min(0))).log_softmax(1)


def target_distribution(q: np.ndarray) -> np.ndarray:
    """p: q squared, divided by the size of each cluster, and normalised.

    >>> target_distribution(np.array([[0.8, 0.2], [0.6, 0.4]])).round(5).tolist()
    [[0.87273, 0.12727], [0.49091, 0.50909]]
    """
    weighted = q**2 / np.maximum(q.sum(0), np.finfo(q.dtype).tiny)
    return weighted / weighted.sum(1, keepdims=True)


def ramp(t: float, length: float) -> float:
    """exp(-5 (1 - t / length)^2) up to ``length``, then 1.

    >>> [round(ramp(t, 5), 4) for t in range(6)]
    [0.0067, 0.0408, 0.1653, 0.4493, 0.8187, 1.0]
    """
    return float(np.exp(-5 * (1 - min(t / length, 1)) ** 2))


def principal_projection(rows: np.ndarray, n_axes: int) -> tuple[np.ndarray, np.ndarray]:
    """W (n_axes, d) and b (n_axes,) that project rows to their leading principal components.

    Axes beyond the dimension of the rows are zero.
    """
    mean = rows.mean(0, dtype=np.float64)
    centred = rows - mean
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes.T[::-1][:n_axes]
    weight = np.zeros((n_axes, rows.shape[1]))
    weight[: len(axes)] = axes
    return weight, -weight @ mean


class ClusterHead(nn.Linear):
    """log q from an embedding: a projection and the cluster centres."""

    def __init__(self, weight: np.ndarray, bias: np.ndarray, centres: np.ndarray) -> None:
        # On "meta", no random weights are drawn.
        super().__init__(weight.shape[1], len(weight), device="meta")
        self.weight, self.bias, self.centres = (
            nn.Parameter(torch.from_numpy(values.astype(np.float32)))
            for values in (weight, bias, centres)
        )

    def project(self, embeddings: Tensor) -> Tensor:
        """z, in the space of the centres."""
        return super().forward(embeddings)

    def forward(self, embeddings: Tensor) -> Tensor:
        return log_student_t(self.project(embeddings), self.centres)


@dataclass(frozen=True)
class DTC(Baseline):
    """Deep transfer clustering of known and new classes at once."""

    n_unknown: int | None = 1  # B, the number of unknown classes; None: estimated
    warm_up: float = 0.1  # share of the steps without consistency loss
    n_updates: int = 8  # of the targets, after the warm-up
    consistency: float = 10.0  # w
    ramp_up: float = 0.25  # share of the steps after the warm-up in which w(t) rises
    learning_rate: float = 0.02
    rule: Rule = "own"  # "recall": the threshold comes from held-out known items

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least("DTC.n_unknown", self.n_unknown, 1)
        require_least("DTC.n_updates", self.n_updates, 1)
        require_least("DTC.consistency", self.consistency, 0)
        require_positive("DTC.learning_rate", self.learning_rate)
        require_choice("DTC.rule", self.rule, Rule)
        require_share("DTC.warm_up", self.warm_up)
        require_share("DTC.ramp_up", self.ramp_up)

    def for_run(self, run: RunFacts) -> Self:
        """The number of unknown classes is given, as in the paper, where it is one number."""
        n_unknown = None if run.n_unknown is None else max(run.n_unknown, 1)
        return replace(super().for_run(run), n_unknown=n_unknown)

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "ClusterRecogniser":
        """Train f, initialise the clusters in its embedding, and train them on the pool."""
        if len(pool) < 2:
            raise DataError(f"the pool has {len(pool)} items; DTC clusters it: give at least two")
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        network = deepcopy(closed.teacher.network)
        network.head = initial_head(network, closed.training, pool, self.n_unknown, seed=seed)
        network.to(device)
        train_clusters(network, closed.training, pool, self, seed=seed, device=device)
        recogniser = ClusterRecogniser(network, known.n_classes)
        if self.rule == "own":
            return recogniser
        return at_recall(recogniser, closed.held_out, self.known_recall)


def initial_head(
    network: Network, training: Labelled, pool: np.ndarray, n_unknown: int | None, *, seed: int
) -> ClusterHead:
    """Principal axes of f's embeddings, and the centres of k-means in them."""
    labelled = outputs(network, training.inputs, what="embedding known items").embeddings
    unlabelled = outputs(network, pool, what="embedding the pool").embeddings
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


def update_steps(n_steps: int, warm_up: int, n_updates: int) -> set[int]:
    """The steps before which the targets are computed: the first, then evenly after the warm-up.

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
    """L of one batch, from log q of labelled items and of two views of pool items."""
    supervised = F.nll_loss(log_q_labelled, labels)
    clustering = F.kl_div(log_q, targets, reduction="batchmean")
    return supervised + clustering + weight * F.mse_loss(log_q.exp(), log_q_again.exp())


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

    def loss_of(rows: tuple[np.ndarray, np.ndarray]) -> Tensor:
        nonlocal n_done, targets
        from_known, from_pool = rows
        if n_done in updates:
            targets = _targets(network, pool).to(device)
        main, n_main = n_done - warm_up, n_steps - warm_up
        weight = method.consistency * ramp(main, method.ramp_up * n_main) if main >= 0 else 0.0
        n_done += 1
        items = as_tensor(pool[from_pool], device)
        labelled = views.weak(as_tensor(training.inputs[from_known], device))
        # One forward pass, so that batch normalisation treats labelled and pool items alike.
        log_q = network(torch.cat([labelled, views.weak(items), views.weak(items)]))
        on_known, on_pool, again = log_q.split([len(labelled), len(items), len(items)])
        return cluster_loss(
            on_known, on_pool, again, labels[from_known], targets[from_pool], weight
        )

    half = max(2, settings.batch_size // 2)
    train(
        network,
        zip(
            shuffled(len(training), half, rng(seed, "DTC labelled batches")),
            shuffled(len(pool), half, rng(seed, "DTC pool batches")),
            strict=True,
        ),
        loss_of,
        replace(settings, learning_rate=method.learning_rate),
        n_steps=n_steps,
        what="training DTC's clusters",
    )


def _targets(network: Network, pool: np.ndarray) -> Tensor:
    """p of every pool item, with the network in evaluation mode."""
    q = np.exp(outputs(network, pool, what="computing targets").logits.astype(np.float64))
    network.train()
    return torch.from_numpy(target_distribution(q).astype(np.float32))


@dataclass(frozen=True, eq=False)
class ClusterRecogniser:
    """A network whose head assigns items to clusters."""

    network: Network  # its head is a ClusterHead
    n_known: int  # C; the clusters after those are unknown classes
    threshold: float | None = None  # of the score; None: the largest q decides

    @property
    def n_unknown(self) -> int:
        return self.network.head.out_features - self.n_known

    def shares(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + B) float64: q."""
        return np.exp(outputs(self.network, inputs, what="DTC predicts").logits.astype(np.float64))

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + B): z, in which the centres lie."""
        head = cast(ClusterHead, self.network.head)
        embeddings = outputs(self.network, inputs, what="embedding items").embeddings
        weight, bias = (part.detach().cpu().numpy() for part in (head.weight, head.bias))
        return embeddings @ weight.T + bias

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The class of the largest q, or unknown; the confidence is its q."""
        return self._predict(self.shares(inputs))

    def _predict(self, q: np.ndarray) -> Predictions:
        unknown = q[:, self.n_known :].sum(1)
        if self.threshold is None:
            is_unknown = q.argmax(1) >= self.n_known
        else:
            is_unknown = unknown > self.threshold
        known = q[:, : self.n_known]
        return label_items(
            is_unknown,
            unknown,
            nearest=known.argmax(1),
            p_known=known.max(1),
            p_unknown=unknown,
        )

    def groups(self, inputs: np.ndarray) -> np.ndarray:
        """(n,) int: the cluster of each unknown item, from 0; -1 for known items."""
        q = self.shares(inputs)
        is_unknown = self._predict(q).labels == UNKNOWN
        return np.where(is_unknown, q[:, self.n_known :].argmax(1), -1)


# --- semi-supervised k-means ---------------------------------------------------------------


N_STARTS = 10
MAX_ITERATIONS = 100
MAX_NEW = 10
N_AXES = 20  # principal axes in which new classes are counted
N_COUNTED = 10_000  # unlabelled items in which new classes are counted, and as many labelled ones
N_SILHOUETTE = 2_000  # items of the silhouette, whose cost is quadratic


class Clusters(NamedTuple):
    """The centres, and the nearest centre of each unlabelled item."""

    centres: np.ndarray  # (C + B, d): the C labelled classes first
    nearest: np.ndarray  # (m,)
    inertia: float  # sum of squared distances of all items to their centre


def semi_supervised_kmeans(
    labelled: np.ndarray,
    labels: np.ndarray,
    unlabelled: np.ndarray,
    n_new: int,
    *,
    seed: int,
    n_starts: int = N_STARTS,
) -> Clusters:
    """Cluster the unlabelled items around C labelled classes and ``n_new`` others.

    >>> rows = np.array([[0.0], [1.0], [9.0], [10.0]])
    >>> semi_supervised_kmeans(rows[:2], np.array([0, 0]), rows, 1, seed=0).nearest.tolist()
    [0, 0, 1, 1]
    """
    random = rng(seed, "semi-supervised k-means")
    n_classes = int(labels.max()) + 1
    means = np.stack([labelled[labels == c].mean(0) for c in range(n_classes)])
    runs = []
    for _ in range(n_starts if n_new else 1):
        start = np.concatenate([means, draw_centres(unlabelled, means, n_new, random)])
        runs.append(_iterate(start, labelled, labels, unlabelled))
    return min(runs, key=lambda run: run.inertia)


def draw_centres(
    rows: np.ndarray, centres: np.ndarray, n_new: int, random: np.random.Generator
) -> np.ndarray:
    """(n_new, d): rows drawn in proportion to their squared distance to the nearest centre."""
    drawn: list[np.ndarray] = []
    squares = squared_distances(rows, centres).min(1)
    for _ in range(n_new):
        total = squares.sum()
        chances = squares / total if total > 0 else None
        drawn.append(rows[random.choice(len(rows), p=chances)])
        squares = np.minimum(squares, squared_distances(rows, drawn[-1][None])[:, 0])
    return np.reshape(drawn, (n_new, rows.shape[1]))


def _iterate(
    centres: np.ndarray, labelled: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray
) -> Clusters:
    """Lloyd's iterations until no unlabelled item changes its centre."""
    rows, n_clusters = np.concatenate([labelled, unlabelled]), len(centres)
    nearest = squared_distances(unlabelled, centres).argmin(1)
    for _ in range(MAX_ITERATIONS):
        members = np.concatenate([labels, nearest])
        counts = np.bincount(members, minlength=n_clusters)
        sums = np.zeros((n_clusters, rows.shape[1]))
        np.add.at(sums, members, rows)
        # A centre that lost all its items stays where it is.
        centres = np.where(counts[:, None] > 0, sums / np.maximum(counts, 1)[:, None], centres)
        before, nearest = nearest, squared_distances(unlabelled, centres).argmin(1)
        if np.array_equal(before, nearest):
            break
    members = np.concatenate([labels, nearest])
    return Clusters(centres, nearest, float(((rows - centres[members]) ** 2).sum()))


def estimate_n_new(
    labelled: np.ndarray, labels: np.ndarray, unlabelled: np.ndarray, *, seed: int
) -> int:
    """The number of new classes among the unlabelled items, at least one.

    It maximises the mean silhouette of the unlabelled items. The labelled classes count as
    clusters, so one new class is possible. Items are scaled to unit length, since lengths vary
    within classes.
    """
    labelled, labels = _sample_labelled(labelled, labels, seed=seed)
    chosen = rng(seed, "counted").permutation(len(unlabelled))[:N_COUNTED]
    everything = normalize(np.concatenate([labelled, unlabelled[chosen]]).astype(np.float64))
    axes = PCA(min(N_AXES, *everything.shape), random_state=derive(seed, "axes"))
    projected = axes.fit_transform(everything)
    labelled, unlabelled = projected[: len(labelled)], projected[len(labelled) :]
    sample = rng(seed, "silhouette").permutation(len(unlabelled))[:N_SILHOUETTE]
    silhouettes = []
    for n_new in track(range(1, MAX_NEW + 1), "counting new classes", total=MAX_NEW):
        found = semi_supervised_kmeans(labelled, labels, unlabelled, n_new, seed=seed)
        silhouettes.append(mean_silhouette(unlabelled[sample], found.nearest[sample]))
    return 1 + int(np.argmax(silhouettes))


def _sample_labelled(
    labelled: np.ndarray, labels: np.ndarray, *, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """At most about ``N_COUNTED`` labelled items, balanced over the classes."""
    n_each = -(-N_COUNTED // (int(labels.max()) + 1))
    order = rng(seed, "counted, labelled").permutation(len(labels))
    chosen = [order[labels[order] == c][:n_each] for c in range(int(labels.max()) + 1)]
    rows = np.sort(np.concatenate(chosen))
    return labelled[rows], labels[rows]


def mean_silhouette(rows: np.ndarray, groups: np.ndarray) -> float:
    """The mean of (b - a) / max(a, b) over the rows; -1 for a single group.

    a is the mean distance of a row to its own group, b that to the nearest other group.

    >>> mean_silhouette(np.array([[0.0], [0.0], [1.0], [1.0]]), np.array([0, 0, 1, 1]))
    1.0
    """
    if not 1 < len(np.unique(groups)) < len(rows):
        return -1.0
    return float(silhouette_score(rows, groups))
