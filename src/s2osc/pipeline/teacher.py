"""f, the teacher: a plain classifier of the known classes (Eq. 1), and its outputs."""

from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import log_softmax, softmax

from s2osc.nets.augmentation.augment import AugmentSettings, Views
from s2osc.nets.data_parallel import trainer
from s2osc.nets.losses import cross_entropy
from s2osc.nets.network_cache import train_once
from s2osc.nets.networks import Network, NetworkSettings, as_tensor
from s2osc.nets.start import start_network
from s2osc.nets.training import Outputs, TrainSettings, outputs, shuffled, train
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_range
from s2osc.types import Labelled


@dataclass(frozen=True)
class TeacherSettings:
    """The network of f and how it is trained."""

    network: NetworkSettings
    training: TrainSettings
    augment: float = 0.0  # share of each batch that is weakly augmented; the paper's is none

    def __post_init__(self) -> None:
        require_range("teacher.augment", self.augment, 0, 1)


class TeacherOutputs(NamedTuple):
    """Outputs of f for n items, from one forward pass."""

    logits: np.ndarray  # (n, C) float32
    entropy: np.ndarray  # (n,) u of Eq. 2
    distance: np.ndarray  # (n,) d of Eq. 2
    embeddings: np.ndarray  # (n, d) e(x)

    def first(self, n: int) -> "TeacherOutputs":
        """Those of the first n items."""
        return TeacherOutputs(*(each[:n] for each in self))

    def followed_by(self, others: "TeacherOutputs") -> "TeacherOutputs":
        """Those of these items, then those of others."""
        return TeacherOutputs(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


def entropy(logits: np.ndarray) -> np.ndarray:
    """u = - sum_c f_c log f_c, of the probabilities softmax(logits) (Eq. 2).

    >>> entropy(np.array([[0.0, 0.0], [50.0, 0.0]])).round(4).tolist()
    [0.6931, 0.0]
    """
    log_p = log_softmax(logits, axis=1)
    return -(np.exp(log_p) * log_p).sum(1)


def class_centres(embeddings: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """mu_c, the mean embedding of each known class over its training items (Eq. 2).

    >>> class_centres(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1])).tolist()
    [[1.0], [5.0]]
    """
    return np.stack([embeddings[labels == c].mean(0) for c in range(labels.max() + 1)])


def distance_to_centres(embeddings: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """d = min_c ||e - mu_c||^2 (Eq. 2).

    >>> distance_to_centres(np.array([[1.0, 0.0], [3.0, 4.0]]), np.zeros((1, 2))).tolist()
    [1.0, 25.0]
    """
    squares = (embeddings**2).sum(1, keepdims=True) + (centres**2).sum(1)
    return np.maximum(squares - 2 * embeddings @ centres.T, 0).min(1)


@dataclass(frozen=True, eq=False)
class Teacher:
    """A trained f with the centres of its classes."""

    network: Network
    centres: np.ndarray  # (C, d)

    @property
    def n_classes(self) -> int:
        return len(self.centres)

    def outputs(self, inputs: np.ndarray) -> TeacherOutputs:
        """Logits, entropy, distance and embedding of each item."""
        return self.measure(outputs(self.network, inputs, what="f answers"))

    def measure(self, found: Outputs) -> TeacherOutputs:
        """The same of items that went through the network before."""
        distance = distance_to_centres(found.embeddings, self.centres)
        return TeacherOutputs(found.logits, entropy(found.logits), distance, found.embeddings)

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """f(x): (n, C) probabilities of the known classes."""
        return softmax(self.outputs(inputs).logits, axis=1)


class Taught(NamedTuple):
    """A teacher, and its outputs for the items it was trained on, which took the same pass."""

    teacher: Teacher
    outputs: TeacherOutputs


def train_teacher(
    known: Labelled,
    settings: TeacherSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> Taught:
    """Minimise the cross-entropy over the labelled items (Eq. 1), then find the class centres."""
    with torch_seed(seed, "teacher"):
        network = start_network(settings.network, known.inputs, known.n_classes)
    network.to(device)
    train_once(
        network,
        lambda: trainer()(fit_f, network, known, settings, augmentation, seed=seed, device=device),
        items=(known.inputs, known.labels),
        facts=[asdict(settings), asdict(augmentation), seed],
    )
    found = outputs(network, known.inputs, what="finding class centres")
    teacher = Teacher(network, class_centres(found.embeddings, known.labels))
    return Taught(teacher, teacher.measure(found))


def fit_f(
    network: Network,
    known: Labelled,
    settings: TeacherSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> None:
    """Minimise the cross-entropy over the labelled items (Eq. 1)."""
    labels = torch.from_numpy(known.labels.astype(np.int64)).to(device)
    generator = torch.Generator(device).manual_seed(derive(seed, "teacher views"))
    views = Views(network, "weak", augmentation, generator)

    def loss_of(rows: np.ndarray) -> torch.Tensor:
        batch = views.partly(as_tensor(known.inputs[rows], device), settings.augment)
        return cross_entropy(network(batch), labels[rows]).mean()

    train(
        network,
        shuffled(len(known), settings.training.batch_size, rng(seed, "teacher batches")),
        loss_of,
        settings.training,
        n_steps=settings.training.n_steps(len(known)),
        what="training f, the teacher",
    )
