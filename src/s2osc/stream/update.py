"""Algorithm 1: f is fine-tuned on newly labelled items and the memory, its head widened.

    L = - sum_{x in answers + M} y log f^t(x) - sum_{x in M} q log f^t(x),    q = f^(t-1)(x)

The paper's constraint, that the loss on the memory may not rise, is relaxed into the second sum;
whether it holds is measured after every update, on the memory and on seeds that f never learns.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import Literal

import numpy as np
import torch
from scipy.special import logsumexp
from torch import nn

from s2osc.errors import SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings, Views
from s2osc.nets.losses import cross_entropy, distil_previous
from s2osc.nets.networks import Network, as_tensor
from s2osc.nets.training import TrainSettings, outputs, train
from s2osc.pipeline.teacher import Teacher, class_centres
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_choice, require_range
from s2osc.stream.memory import Memory, joined
from s2osc.types import Labelled


@dataclass(frozen=True)
class UpdateSettings:
    """How f is fine-tuned."""

    training: TrainSettings = TrainSettings(
        epochs=6, batch_size=128, learning_rate=0.02, weight_decay=5e-4, min_steps=150
    )
    distillation: float = 1.0  # weight of the second sum; the paper's is 1
    augment: float = 0.5  # share of each batch that is weakly augmented
    batches: Literal["classes", "halves"] = "classes"
    """Every class equally often, or half of each batch new and half of it memory."""

    def __post_init__(self) -> None:
        if self.distillation < 0:
            raise SettingsError(f"update.distillation is {self.distillation}; give a weight from 0")
        require_range("update.augment", self.augment, 0, 1)
        require_choice("update.batches", self.batches, ("classes", "halves"))


@dataclass(frozen=True)
class Losses:
    """The mean cross-entropy before and after an update, on the same items."""

    before: float
    after: float
    holds: bool = field(init=False)  # the constraint of the paper's update: the loss may not rise

    def __post_init__(self) -> None:
        object.__setattr__(self, "holds", self.after <= self.before)


@dataclass(frozen=True)
class Account:
    """What an update did."""

    n_labels: int
    n_new_classes: int
    memory: Losses  # of the exemplars, as in the paper
    seeds: Losses | None  # of items f never learns from; None: there were none


def widen(network: Network, n_classes: int, *, seed: int) -> Network:
    """A copy whose head has ``n_classes`` outputs: the old ones as they are, then new ones."""
    wider = deepcopy(network)
    n_old = network.head.out_features
    if n_classes == n_old:
        return wider
    with torch_seed(seed, "wider head"):
        head = nn.Linear(network.head.in_features, n_classes).to(network.head.weight.device)
    with torch.no_grad():
        head.weight[:n_old] = network.head.weight
        head.bias[:n_old] = network.head.bias
    wider.head = head
    return wider


def balanced(
    labels: np.ndarray, batch_size: int, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Batches of row numbers without end in which every class is as frequent as any other.

    >>> labels = np.array([0] * 90 + [1] * 10)
    >>> np.bincount(labels[next(balanced(labels, 20, np.random.default_rng(0)))]).tolist()
    [10, 10]
    """
    classes = cycle([_endless(np.flatnonzero(labels == c), random) for c in np.unique(labels)])
    while True:
        yield np.array([next(next(classes)) for _ in range(batch_size)])


def halves(
    n_memory: int, n_new: int, batch_size: int, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Batches of row numbers without end, half of them new; rows of the memory are the first.

    >>> batch = next(halves(90, 10, 20, np.random.default_rng(0)))
    >>> int(np.sum(batch < 90)), int(np.sum(batch >= 90))
    (10, 10)
    """
    of_memory = _endless(np.arange(n_memory), random)
    of_new = _endless(n_memory + np.arange(n_new), random)
    n_old = batch_size // 2
    while True:
        rows = [*islice(of_memory, n_old), *islice(of_new, batch_size - n_old)]
        # Mixed, since the first rows of a batch are those that are augmented.
        yield random.permutation(rows)


def _endless(rows: np.ndarray, random: np.random.Generator) -> Iterator[int]:
    """Rows without end, each pass in a new order."""
    while True:
        yield from random.permutation(rows)


def update_teacher(
    teacher: Teacher,
    memory: Memory,
    answers: Labelled,
    settings: UpdateSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> tuple[Teacher, Account]:
    """f^t from f^(t-1), and what became of its loss on the memory."""
    items = joined(memory.exemplars, answers)
    n_memory = len(memory.exemplars)
    previous = outputs(teacher.network, memory.exemplars.inputs, what="f recalls its memory").logits
    network = widen(teacher.network, items.n_classes, seed=seed).to(device)
    labels = torch.from_numpy(items.labels.astype(np.int64)).to(device)
    q = torch.from_numpy(previous).to(device)
    generator = torch.Generator(device).manual_seed(derive(seed, "update views"))
    views = Views(network, "weak", augmentation, generator)
    random = rng(seed, "update batches")
    size = settings.training.batch_size
    batches = (
        balanced(items.labels, size, random)
        if settings.batches == "classes"
        else halves(n_memory, len(answers), size, random)
    )

    def loss_of(rows: np.ndarray) -> torch.Tensor:
        batch = as_tensor(items.inputs[rows], device)
        # Batches are in random order: the items that are augmented are a random share.
        logits = network(views.partly(batch, settings.augment))
        loss = cross_entropy(logits, labels[rows]).mean()
        old = torch.from_numpy(np.flatnonzero(rows < n_memory)).to(device)
        if settings.distillation and len(old):
            recalled = q[torch.from_numpy(rows[rows < n_memory]).to(device)]
            loss = loss + settings.distillation * distil_previous(logits[old], recalled).mean()
        return loss

    train(
        network,
        batches,
        loss_of,
        settings.training,
        n_steps=settings.training.n_steps(len(items)),
        what="updating f",
    )
    after = outputs(network, items.inputs, what="finding class centres")
    account = Account(
        n_labels=len(answers),
        n_new_classes=items.n_classes - teacher.n_classes,
        memory=Losses(
            mean_loss(previous, memory.exemplars.labels),
            mean_loss(after.logits[:n_memory], memory.exemplars.labels),
        ),
        seeds=compare_on_seeds(teacher.network, network, memory.seeds),
    )
    return Teacher(network, class_centres(after.embeddings, items.labels)), account


def mean_loss(logits: np.ndarray, labels: np.ndarray) -> float:
    """The mean cross-entropy of rows of logits.

    >>> round(mean_loss(np.zeros((2, 4)), np.array([0, 3])), 4)
    1.3863
    """
    return float(np.mean(logsumexp(logits, axis=1) - logits[np.arange(len(labels)), labels]))


def compare_on_seeds(before: Network, after: Network, seeds: Labelled) -> Losses | None:
    if not len(seeds):
        return None
    old, new = (outputs(net, seeds.inputs, what="f meets the seeds") for net in (before, after))
    return Losses(mean_loss(old.logits, seeds.labels), mean_loss(new.logits, seeds.labels))
