"""CPE: a growing set of prototypes per class; items far from all prototypes are unknown.

The network embeds an item as z = e(x). A prototype is a vector q with a class and a weight. During
training, each item joins the nearest prototype of its class, which moves to the mean of all items
that joined it, or founds a new one where none is within 2 r. After each epoch, prototypes with one
item are dropped, and the weights of the others are halved. With q_y the prototype an item joined
and q* the nearest of all, the loss of an item is

    L = DCE + CE + lambda [PW(z, q_y) + PW(z, q*)]
    DCE = -log exp(-gamma ||z - q_y||^2) / sum_q exp(-gamma ||z - q||^2),          gamma = 0.2
    CE = the cross-entropy of the softmax head
    PW(z, q) = log(1 + exp(b - u (tau - ||z - q||^2))),         tau = 10, b = 5, u = +1 or -1

where u = +1 if item and prototype have the same class. No gradient flows to the prototypes. The
label is the class c of the nearest prototype, at distance d, or unknown where

    (d - mu_c) / sd_c > kappa,

with mu_c and sd_c the mean and deviation, over the training items of class c, of the distance to
the nearest prototype of their class.

Zhuoyi Wang, Zelun Kong, Swarup Chandra, Hemeng Tao and Latifur Khan, "Robust High Dimensional
Stream Classification with Novel Class Detection", ICDE 2019, after the authors' public code.

What differs: the network and the budget are those all methods share, and each step takes a batch.
The authors' code has r = 5 for any network. Here r is measured, because the embedding's scale
changes during training: it is the median distance of an item to its class mean over the last epoch,
and lengths in the losses are scaled so that r is 5. The first epoch uses CE alone. After training,
each prototype is set to the mean of its nearest training items in evaluation mode, since batch
normalisation differs from training mode. The authors' code takes u = +1 for q* of any class
(``literal``).
"""

import logging
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.special import expit, softmax
from torch import Tensor
from torch.nn import functional as F

from s2osc.arrays import squared_distances
from s2osc.baselines.shared import (
    Baseline,
    at_recall,
    augment_like_f,
    hold_out,
    label_items,
)
from s2osc.errors import SettingsError
from s2osc.nets.losses import cross_entropy
from s2osc.nets.networks import Network, item_shape
from s2osc.nets.training import in_batches, outputs, shuffled, train
from s2osc.seeding import rng, torch_seed
from s2osc.settings import require_choice, require_least, require_positive
from s2osc.types import Labelled, Predictions

log = logging.getLogger(__name__)
Rule = Literal["own", "recall"]
RADIUS, GAMMA, TAU, MARGIN = 5.0, 0.2, 10.0, 5.0  # r, gamma, tau, b
SOFT_UNTIL = 10.0  # log(1 + exp v) is v from here on
LEAST_DEVIATION = 0.01  # of the radius: a class whose items lie on one point still has a scale


class Prototypes(NamedTuple):
    """The prototypes of all classes."""

    vectors: Tensor  # (m, d)
    labels: Tensor  # (m,) int64
    weights: Tensor  # (m,) how many items have joined, halved after each epoch


def no_prototypes(n_features: int, device: str = "cpu") -> Prototypes:
    return Prototypes(
        torch.zeros(0, n_features, device=device),
        torch.zeros(0, dtype=torch.int64, device=device),
        torch.zeros(0, device=device),
    )


def squares_to(z: Tensor, vectors: Tensor) -> Tensor:
    """(n, m): ||z - q||^2.

    >>> squares_to(torch.zeros(1, 2), torch.tensor([[0.0, 0.0], [3.0, 4.0]])).tolist()
    [[0.0, 25.0]]
    """
    squares = (z**2).sum(1, keepdim=True) + (vectors**2).sum(1)
    return (squares - 2 * z @ vectors.T).clamp_min(0)


def distance_cross_entropy(squares: Tensor, joined: Tensor) -> Tensor:
    """DCE per item, from its squared distances to all prototypes and the one it joined.

    >>> squares = torch.tensor([[0.0, 25.0], [0.0, 25.0]])
    >>> [round(v, 6) for v in distance_cross_entropy(squares, torch.tensor([0, 1])).tolist()]
    [0.006715, 5.006715]
    """
    return F.cross_entropy(-GAMMA * squares, joined, reduction="none")


def pairwise_loss(squares: Tensor, is_same: Tensor) -> Tensor:
    """PW per item: squared distances below tau - b to its own class, above tau + b to others.

    >>> pairwise_loss(torch.tensor([25.0]), torch.tensor([True])).tolist()
    [20.0]
    """
    u = torch.where(is_same, 1.0, -1.0)
    return F.softplus(MARGIN - u * (TAU - squares), threshold=SOFT_UNTIL)


def assign(
    prototypes: Prototypes, z: Tensor, labels: Tensor, reach: float
) -> tuple[Prototypes, Tensor]:
    """Each item joins the nearest prototype of its class, or founds one if none is in reach.

    Returns the updated prototypes, and (n,) the prototype that each item joined.
    """
    joined = torch.full_like(labels, -1)
    while True:
        left = torch.nonzero(joined < 0)[:, 0]
        if len(prototypes.labels) and len(left):
            squares = _to_own_class(prototypes, z[left], labels[left])
            nearest, which = squares.min(1)
            joined[left] = torch.where(nearest < reach**2, which, -1)
            left = torch.nonzero(joined < 0)[:, 0]
        if not len(left):
            return _move(prototypes, z, joined), joined
        founders = torch.stack([left[labels[left] == c][0] for c in labels[left].unique()])
        joined[founders] = len(prototypes.labels) + torch.arange(
            len(founders), device=founders.device
        )
        prototypes = Prototypes(
            torch.cat([prototypes.vectors, z[founders]]),
            torch.cat([prototypes.labels, labels[founders]]),
            torch.cat([prototypes.weights, prototypes.weights.new_zeros(len(founders))]),
        )


def _to_own_class(prototypes: Prototypes, z: Tensor, labels: Tensor) -> Tensor:
    """(n, m): squared distances, infinite to the prototypes of other classes."""
    squares = squares_to(z, prototypes.vectors)
    return squares.masked_fill(labels[:, None] != prototypes.labels, torch.inf)


def _move(prototypes: Prototypes, z: Tensor, joined: Tensor) -> Prototypes:
    """Move each prototype to the mean of all items that have joined it."""
    old = prototypes.weights[:, None] * prototypes.vectors
    counts = torch.bincount(joined, minlength=len(prototypes.weights))
    weights = prototypes.weights + counts
    return prototypes._replace(
        vectors=old.index_add(0, joined, z) / weights[:, None], weights=weights
    )


def prune(prototypes: Prototypes) -> Prototypes:
    """Drop prototypes of weight 1 and halve the weights of the others, after each epoch."""
    stays = prototypes.weights > 1
    return Prototypes(
        prototypes.vectors[stays], prototypes.labels[stays], (prototypes.weights[stays] / 2).ceil()
    )


def settle(prototypes: Prototypes, z: Tensor, labels: Tensor) -> Prototypes:
    """Set each prototype to the mean of its nearest items, and its weight to their number.

    Prototypes with fewer than two items are dropped, unless their class has no other.
    """
    found, joined = assign(prototypes, z, labels, torch.inf)
    fresh = found._replace(weights=torch.zeros_like(found.weights))
    counts = torch.bincount(joined, minlength=len(found.weights))
    largest = torch.stack(
        [torch.where(found.labels == c, counts, -1).argmax() for c in found.labels.unique()]
    )
    stays = counts > 1
    stays[largest] = True
    moved = _move(fresh, z, joined)
    return Prototypes(moved.vectors[stays], moved.labels[stays], moved.weights[stays])


def class_radius(z: Tensor, labels: Tensor) -> float:
    """The median distance of an item to the mean of its class.

    >>> class_radius(torch.tensor([[0.0], [2.0], [7.0], [9.0]]), torch.tensor([0, 0, 1, 1]))
    1.0
    """
    distances = [(z[labels == c] - z[labels == c].mean(0)).norm(dim=1) for c in labels.unique()]
    return max(float(torch.cat(distances).median()), 1e-6)


@dataclass(frozen=True)
class CPE(Baseline):
    """A CNN prototype ensemble."""

    radius: float | None = None  # r; None: measured, as the median distance to the class mean
    pairwise_weight: float = 0.001  # lambda
    literal: bool = False  # PW attracts items to the nearest prototype of any class
    rule: Rule = "own"  # "recall": the threshold comes from held-out known items
    kappa: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive("CPE.radius", self.radius)
        require_least("CPE.pairwise_weight", self.pairwise_weight, 0)
        require_choice("CPE.rule", self.rule, Rule)
        if not np.isfinite(self.kappa):
            raise SettingsError(f"CPE.kappa is {self.kappa}; give a number")

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "PrototypeRecogniser":
        """Train network and prototypes on the labelled items; the pool is not used."""
        training, held_out = hold_out(known, self.recipe.held_out, seed=seed)
        recogniser = train_prototypes(training, self, seed=seed, device=device)
        return _with_threshold(recogniser, held_out, self)


def extend_prototypes(
    model: "PrototypeRecogniser", known: Labelled, method: CPE, *, seed: int, device: str = "cpu"
) -> "PrototypeRecogniser":
    """Train the model further on these items; new classes take the next numbers.

    Training continues from the model's network, prototypes and radius, with a wider head. ``known``
    has items of every class, old ones included.
    """
    training, held_out = hold_out(known, method.recipe.held_out, seed=seed)
    extended = train_prototypes(training, method, seed=seed, device=device, start=model)
    return _with_threshold(extended, held_out, method)


def _with_threshold(
    recogniser: "PrototypeRecogniser", held_out: Labelled, method: CPE
) -> "PrototypeRecogniser":
    if method.rule == "own":
        return recogniser
    return at_recall(recogniser, held_out, method.known_recall)


class _Growth:
    """Prototypes and radius during training, and the loss."""

    def __init__(
        self, network: Network, method: CPE, device: str, start: "PrototypeRecogniser | None" = None
    ) -> None:
        self.network, self.method = network, method
        self.radius = method.radius if start is None else start.radius
        self.prototypes = (
            no_prototypes(network.head.in_features, device)
            if start is None
            else Prototypes(
                torch.from_numpy(start.vectors).to(device),
                torch.from_numpy(start.labels).to(device),
                torch.from_numpy(start.weights).to(device),
            )
        )
        self.epoch: list[tuple[Tensor, Tensor]] = []  # z and labels of each batch

    def loss(self, z: Tensor, labels: Tensor) -> Tensor:
        """The mean loss of a batch, after its items have joined prototypes."""
        ce = cross_entropy(self.network.head(z), labels)
        self.epoch.append((z.detach(), labels))
        if self.radius is None:
            return ce.mean()
        self.prototypes, joined = assign(self.prototypes, z.detach(), labels, 2 * self.radius)
        squares = squares_to(z, self.prototypes.vectors) * (RADIUS / self.radius) ** 2
        own = squares.gather(1, joined[:, None])[:, 0]
        nearest, which = squares.min(1)
        is_same = (self.prototypes.labels[which] == labels) | self.method.literal
        pw = pairwise_loss(own, torch.ones_like(is_same)) + pairwise_loss(nearest, is_same)
        dce = distance_cross_entropy(squares, joined)
        return (dce + ce + self.method.pairwise_weight * pw).mean()

    def end_epoch(self) -> None:
        """Prune the prototypes and measure r."""
        self.prototypes = prune(self.prototypes)
        if self.method.radius is None:
            z, labels = (torch.cat(part) for part in zip(*self.epoch, strict=True))
            self.radius = class_radius(z, labels)
            log.info("the radius of CPE is %.3f", self.radius)
        self.epoch.clear()


def _network(training: Labelled, method: CPE, start: "PrototypeRecogniser | None") -> Network:
    """A new network, or that of a model with more outputs."""
    settings = method.recipe.teacher.network
    network = Network(settings, item_shape(training.inputs), training.n_classes)
    if start is None:
        network.fit_normalisation(training.inputs)
        return network
    old = start.network.state_dict()
    new = network.state_dict()
    for name, tensor in old.items():
        if name.startswith("head."):
            new[name][: len(tensor)] = tensor
        else:
            new[name] = tensor
    network.load_state_dict(new)
    return network


def train_prototypes(
    training: Labelled,
    method: CPE,
    *,
    seed: int,
    device: str,
    start: "PrototypeRecogniser | None" = None,
) -> "PrototypeRecogniser":
    """Minimise L, settle the prototypes, and measure each class's distances to them.

    With ``start``, training continues from its network and prototypes.
    """
    with torch_seed(seed, "CPE"):
        network = _network(training, method, start).to(device)
    labels = torch.from_numpy(training.labels.astype(np.int64)).to(device)
    view = augment_like_f(network, method.recipe, seed=seed, purpose="CPE views")
    growth = _Growth(network, method, device, start)
    settings = method.recipe.teacher.training
    n_steps = settings.n_steps(len(training))
    # At least two epochs: the first only measures r.
    epoch = min(max(1, len(training) // settings.batch_size), max(1, n_steps // 2))
    n_done = 0

    def loss_of(rows: np.ndarray) -> Tensor:
        nonlocal n_done
        if n_done and n_done % epoch == 0:
            growth.end_epoch()
        n_done += 1
        return growth.loss(network.embed(view(training.inputs[rows])), labels[rows])

    train(
        network,
        shuffled(len(training), settings.batch_size, rng(seed, "CPE batches")),
        loss_of,
        settings,
        n_steps=n_steps,
        what="training CPE's network",
    )
    if growth.radius is None:
        growth.end_epoch()
    assert growth.radius is not None
    embeddings = outputs(network, training.inputs, what="placing prototypes").embeddings
    placed = settle(growth.prototypes, torch.from_numpy(embeddings).to(device), labels)
    vectors, classes, weights = (part.cpu().numpy() for part in placed)
    own = _own_distances(embeddings, training.labels, vectors, classes)
    by_class = [own[training.labels == c] for c in range(training.n_classes)]
    least = LEAST_DEVIATION * growth.radius
    return PrototypeRecogniser(
        network=network,
        vectors=vectors,
        labels=classes,
        weights=weights,
        radius=growth.radius,
        mean=np.array([distances.mean() for distances in by_class]),
        deviation=np.array([max(distances.std(), least) for distances in by_class]),
        threshold=method.kappa,
    )


def _own_distances(
    embeddings: np.ndarray, labels: np.ndarray, vectors: np.ndarray, classes: np.ndarray
) -> np.ndarray:
    """(n,): the distance of each item to the nearest prototype of its own class."""
    own = np.empty(len(labels))
    for c in np.unique(labels):
        rows = labels == c
        own[rows] = squared_distances(embeddings[rows], vectors[classes == c]).min(1)
    return np.sqrt(own)


@dataclass(frozen=True, eq=False)
class PrototypeRecogniser:
    """A trained network, its prototypes, and each class's distances to them."""

    network: Network
    vectors: np.ndarray  # (m, d) the prototypes
    labels: np.ndarray  # (m,) their classes
    weights: np.ndarray  # (m,) the training items of each
    radius: float  # r, in the units of the embedding
    mean: np.ndarray  # (C,) mu
    deviation: np.ndarray  # (C,) sd
    threshold: float  # on (d - mu) / sd

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """(n, d): z, in which the prototypes lie."""
        return outputs(self.network, inputs, what="embedding items").embeddings

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The class of the nearest prototype, or unknown where that is too far.

        The confidence is logistic in the distance to the threshold, in deviations; for a known
        class, times its probability under DCE.
        """
        nearest = np.empty(len(inputs), np.int64)
        score, share = np.empty(len(inputs)), np.empty(len(inputs))
        for rows, _, embeddings in in_batches(self.network, inputs, "CPE predicts"):
            distances = np.sqrt(squared_distances(embeddings.cpu().numpy(), self.vectors))
            nearest[rows] = c = self.labels[distances.argmin(1)]
            score[rows] = (distances.min(1) - self.mean[c]) / self.deviation[c]
            p = softmax(-GAMMA * (distances * RADIUS / self.radius) ** 2, axis=1)
            share[rows] = (p * (self.labels == c[:, None])).sum(1)
        p_unknown = expit(score - self.threshold)
        return label_items(
            score > self.threshold,
            score,
            nearest=nearest,
            p_known=(1 - p_unknown) * share,
            p_unknown=p_unknown,
        )
