"""g, the student: learns the known classes and the unknown one from D_in, D_out and U (Eq. 3, 4).

Two variants share one loop. With ``unknown="one"`` g has the C known classes and C'. With
``unknown="many"`` (the supplement's) g separates known from unknown, and f classifies the known.
f gets no augmented items, so its logits are computed once.
"""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.special import logsumexp, softmax
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.errors import SettingsError
from s2osc.nets import losses
from s2osc.nets.augmentation.augment import AugmentSettings, Views
from s2osc.nets.data_parallel import trainer
from s2osc.nets.networks import Network, NetworkSettings, as_tensor
from s2osc.nets.start import start_network
from s2osc.nets.training import Outputs, TrainSettings, outputs, shuffled, train
from s2osc.pipeline.filter.distinctness import Partition, sample_balanced, sample_known
from s2osc.pipeline.teacher import Teacher
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_least, require_positive
from s2osc.types import Labelled

TRIPLET_MARGIN = 0.5
CHOICES = {
    "unknown": ("one", "many"),
    "augmentation": ("weak", "strong"),
    "hard_loss": ("cross-entropy", "triplet"),
    "start": ("scratch", "teacher"),
    "known_items": ("k", "all"),
}


@dataclass(frozen=True)
class StudentSettings:
    """The network of g, how it is trained, and the paper's choices with their alternatives."""

    network: NetworkSettings
    training: TrainSettings  # an epoch is a pass over U; batch_size items of U in each step
    unknown: Literal["one", "many"] = "one"
    labelled_batch: int = 64  # items of D_in and D_out in each step
    alpha: float = 0.3  # weight of the teacher's signal; 0 is FixMatch on C + 1 classes
    lambda_u: float = 0.2  # weight of L_u; 0 is the ablation S2OSC-U
    tau: float = 0.85  # confidence from which a pseudo-label is used
    temperature: float = 3.0  # T, on both sides of every KL
    gate_unknown: bool = False  # True: the gate of l_s1 as printed
    augment_labelled: bool = True  # False: g(x_l) as printed
    augmentation: Literal["weak", "strong"] = "weak"  # "strong" is S2OSC-S
    hard_loss: Literal["cross-entropy", "triplet"] = "cross-entropy"  # "triplet" is S2OSC-LM
    start: Literal["scratch", "teacher"] = "scratch"  # "teacher" is S2OSC-FN
    vote: bool = False  # f and g name the known together; False: g alone, as in the paper
    known_items: Literal["k", "all"] = "k"  # of each class in D_in; "all": D_out is 1/4 of a batch
    seed_weight: float = 0.0  # of the loss on P(unknown) by the seeds, on U; 0 is the paper
    rounds: int = 1  # 2: D_out and U are taken again from what the first g ranks, for a fresh g

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise SettingsError(
                    f"student.{name} is {getattr(self, name)!r}; give one of {', '.join(choices)}"
                )
        require_least("student.labelled_batch", self.labelled_batch, 2)
        require_least("student.rounds", self.rounds, 1)
        for name in ("alpha", "lambda_u", "tau", "seed_weight"):
            require_least(f"student.{name}", getattr(self, name), 0)
        require_positive("student.temperature", self.temperature)


class Lesson(NamedTuple):
    """Everything g learns from. Rows of ``teacher_logits`` follow those of ``inputs``."""

    inputs: np.ndarray  # (n, ...) of D_in, then D_out
    labels: np.ndarray  # (n,) class of g
    teacher_logits: np.ndarray  # (n, C) logits of f
    pool: np.ndarray  # (m, ...)
    undecided: np.ndarray  # rows of ``pool`` that are unlabelled
    pool_teacher_logits: np.ndarray  # (m, C) logits of f
    n_known: int  # of D_in
    pool_unknown: np.ndarray | None = None  # (m,) P(unknown) of each item, where there are seeds


class StudentBatch(NamedTuple):
    """The items of one step, with the logits of f."""

    labelled: Tensor
    labels: Tensor
    labelled_teacher_logits: Tensor
    unlabelled: Tensor
    unlabelled_teacher_logits: Tensor
    unlabelled_unknown: Tensor | None = None  # P(unknown) by the seeds


@dataclass(frozen=True, eq=False)
class Student:
    """A trained g. f helps it to name the known: always where g is binary, else by vote."""

    network: Network
    unknown: Literal["one", "many"]
    vote: bool
    vote_weight: float = 1.0  # how much g counts beside f where both vote

    def outputs(self, inputs: np.ndarray) -> Outputs:
        return outputs(self.network, inputs, what="g answers")

    def probabilities(self, logits: np.ndarray, teacher_logits: np.ndarray) -> np.ndarray:
        """(n, C + 1): each known class, then unknown, from the logits of g and f."""
        p = softmax(logits, axis=1)
        if self.unknown == "many":
            named = softmax(teacher_logits, axis=1)
        elif self.vote:
            # The class with the largest log f + log g; what normalises either cancels out.
            named = softmax(self.vote_weight * logits[:, :-1] + teacher_logits, axis=1)
        else:
            return p
        # Where g is sure of "unknown", 1 - P(unknown) would round to 0, and with it every class.
        is_known = p[:, :-1].sum(axis=1, keepdims=True)
        return np.concatenate([is_known * named, p[:, -1:]], axis=1)

    def log_odds(self, logits: np.ndarray) -> np.ndarray:
        """log P(unknown) / P(known), which does not saturate as probabilities do."""
        return logits[:, -1] - logsumexp(logits[:, :-1], axis=1)

    def predicts_unknown(self, logits: np.ndarray) -> np.ndarray:
        """Where g's answer is C': the largest of its outputs, whichever variant."""
        return logits.argmax(1) == logits.shape[1] - 1


VOTE_WEIGHTS = (1.0, 0.5, 0.0)


def weigh_vote(
    student: Student, logits: np.ndarray, teacher_logits: np.ndarray, labels: np.ndarray
) -> Student:
    """g with the vote weight that classifies most seeds correctly; of equal ones the largest.

    g also learns the unknown class, and on hard known classes it may be worse than f. ``labels``
    are those of the items.
    """
    weighted = [replace(student, vote_weight=vote_weight) for vote_weight in VOTE_WEIGHTS]
    right = [
        np.mean(s.probabilities(logits, teacher_logits)[:, :-1].argmax(1) == labels)
        for s in weighted
    ]
    return weighted[int(np.argmax(right))]


def prepare_lesson(
    known: Labelled,
    known_teacher_logits: np.ndarray,
    pool: np.ndarray,
    pool_teacher_logits: np.ndarray,
    parts: Partition,
    k: int,
    settings: StudentSettings,
    *,
    seed: int,
    pool_unknown: np.ndarray | None = None,
) -> Lesson:
    """Draw D_in, label D_out as C', and add the logits of f."""
    is_binary = settings.unknown == "many"
    if settings.known_items == "all":
        rows = np.arange(len(known))
    else:
        sample = sample_balanced if is_binary else sample_known
        rows = sample(known.labels, k, rng(seed, "D_in"))
    label_of_unknown = 1 if is_binary else known.n_classes
    known_labels = np.zeros(len(rows), np.int64) if is_binary else known.labels[rows]
    return Lesson(
        inputs=np.concatenate([known.inputs[rows], pool[parts.unknown]]),
        labels=np.concatenate([known_labels, np.full(len(parts.unknown), label_of_unknown)]),
        teacher_logits=np.concatenate(
            [known_teacher_logits[rows], pool_teacher_logits[parts.unknown]]
        ),
        pool=pool,
        undecided=parts.undecided,
        pool_teacher_logits=pool_teacher_logits,
        n_known=len(rows),
        pool_unknown=pool_unknown if settings.seed_weight else None,
    )


def labelled_rows(
    lesson: Lesson, settings: StudentSettings, random: np.random.Generator
) -> Iterator[np.ndarray]:
    """Batches of D_in and D_out without end: shuffled together, or a quarter of each from D_out."""
    n_unknown = len(lesson.inputs) - lesson.n_known
    if settings.known_items == "k":
        yield from shuffled(len(lesson.inputs), settings.labelled_batch, random)
    of_unknown = max(1, settings.labelled_batch // 4)
    known = shuffled(lesson.n_known, settings.labelled_batch - of_unknown, random)
    unknown = shuffled(n_unknown, of_unknown, random)
    for rows, more in zip(known, unknown, strict=False):
        yield np.concatenate([rows, lesson.n_known + more])


def student_batches(
    lesson: Lesson, settings: StudentSettings, *, seed: int, device: str
) -> Iterator[StudentBatch]:
    """Pair batches of labelled and unlabelled items without end.

    In the binary variant the labelled items are among the unlabelled too, as the supplement says.
    """
    n_labelled, n_undecided = len(lesson.inputs), len(lesson.undecided)
    joined = n_labelled if settings.unknown == "many" else 0
    labels = torch.from_numpy(lesson.labels).to(device)
    teacher_logits = torch.from_numpy(lesson.teacher_logits).to(device)
    pool_teacher_logits = torch.from_numpy(lesson.pool_teacher_logits).to(device)
    pool_unknown = None
    if lesson.pool_unknown is not None:
        unknown = np.append(lesson.pool_unknown, (lesson.labels == lesson.labels.max()))
        pool_unknown = torch.from_numpy(unknown.astype(np.float32)).to(device)
    labelled_batches = labelled_rows(lesson, settings, rng(seed, "labelled batches"))
    pool_batches = shuffled(
        n_undecided + joined, settings.training.batch_size, rng(seed, "unlabelled batches")
    )
    for rows, drawn in zip(labelled_batches, pool_batches, strict=False):
        again = drawn[drawn >= n_undecided] - n_undecided
        from_pool = lesson.undecided[drawn[drawn < n_undecided]]
        unlabelled = lesson.pool[from_pool]
        unlabelled_teacher_logits = pool_teacher_logits[from_pool]
        if len(again):
            unlabelled = np.concatenate([unlabelled, lesson.inputs[again]])
            unlabelled_teacher_logits = torch.cat(
                [unlabelled_teacher_logits, teacher_logits[again]]
            )
        yield StudentBatch(
            as_tensor(lesson.inputs[rows], device),
            labels[rows],
            teacher_logits[rows],
            as_tensor(unlabelled, device),
            unlabelled_teacher_logits,
            None
            if pool_unknown is None
            else pool_unknown[np.append(from_pool, len(lesson.pool) + again)],
        )


def predict_pseudo_labels(network: Network, items: Tensor, tau: float) -> losses.PseudoLabels:
    """Pseudo-labels from the current g on the plain items."""
    network.eval()
    with torch.no_grad():
        pseudo = losses.pseudo_labels(network(items), tau)
    network.train()
    return pseudo


def student_loss(
    network: Network, step: StudentBatch, settings: StudentSettings, views: Views
) -> Tensor:
    """L = L_s + lambda_u L_u on one step, plus the loss on P(unknown) by the seeds."""
    plain = (views.weak if settings.augment_labelled else views.plain)(step.labelled)
    # The supplement prints H of g(x) but KL of g(Phi(x)); Eq. 3 prints g(x) in both.
    two_views = settings.unknown == "many" and not settings.augment_labelled
    viewed = views.weak(step.labelled) if two_views else plain[:0]
    uses_pool = settings.lambda_u > 0 or step.unlabelled_unknown is not None
    unlabelled = views(step.unlabelled) if uses_pool else plain[:0]
    if settings.lambda_u:
        pseudo = predict_pseudo_labels(network, views.plain(step.unlabelled), settings.tau)

    # One pass over all: batch normalisation must not tell labelled from unlabelled items.
    embeddings = network.embed(torch.cat([plain, viewed, unlabelled]))
    logits = network.head(embeddings)
    sizes = [len(plain), len(viewed), len(unlabelled)]
    e_plain, _, e_unlabelled = embeddings.split(sizes)
    g_plain, g_viewed, g_unlabelled = logits.split(sizes)

    h = hard_loss(network, g_plain, e_plain, step.labels, settings)
    if settings.gate_unknown:
        h = losses.gate_unknown(h, g_plain, step.labels == logits.shape[1] - 1, settings.tau)
    kl = soft_loss(g_viewed if two_views else g_plain, step.labelled_teacher_logits, settings)
    loss = losses.supervised_loss(h, kl, alpha=settings.alpha)
    if step.unlabelled_unknown is not None:
        by_seeds = losses.unknown_cross_entropy(g_unlabelled, step.unlabelled_unknown)
        loss = loss + settings.seed_weight * by_seeds.mean()
    if not settings.lambda_u:
        return loss

    h = torch.zeros_like(pseudo.keep)
    is_sure = pseudo.keep.bool()
    h[is_sure] = hard_loss(
        network, g_unlabelled[is_sure], e_unlabelled[is_sure], pseudo.labels[is_sure], settings
    )
    kl = soft_loss(g_unlabelled, step.unlabelled_teacher_logits, settings)
    unsupervised = losses.unsupervised_loss(h, kl, pseudo.keep, alpha=settings.alpha)
    return loss + settings.lambda_u * unsupervised


def hard_loss(
    network: Network, logits: Tensor, embeddings: Tensor, labels: Tensor, settings: StudentSettings
) -> Tensor:
    """H per item. In S2OSC-LM a triplet loss shapes the embedding, and the head reads it off.

    Triplets are compared at unit length: free to shrink, the embedding would end in one point.
    """
    if settings.hard_loss == "cross-entropy":
        return losses.cross_entropy(logits, labels)
    read_off = losses.cross_entropy(network.head(embeddings.detach()), labels)
    return losses.triplet_loss(F.normalize(embeddings), labels, TRIPLET_MARGIN) + read_off


def soft_loss(logits: Tensor, teacher_logits: Tensor, settings: StudentSettings) -> Tensor:
    """The teacher's signal per item: on the known classes, or on known against unknown."""
    if settings.unknown == "one":
        return losses.distil_known(logits, teacher_logits, settings.temperature)
    return losses.distil_binary(logits, losses.psi(teacher_logits), settings.temperature)


def start_student(teacher: Teacher, lesson: Lesson, settings: StudentSettings) -> Network:
    """A fresh g, or (S2OSC-FN) a copy of f with a row for the unknown class added to its head."""
    n_outputs = 2 if settings.unknown == "many" else teacher.n_classes + 1
    if settings.start == "scratch":
        return start_network(settings.network, lesson.inputs, n_outputs)
    network = deepcopy(teacher.network)
    known_head, network.head = network.head, nn.Linear(network.head.in_features, n_outputs)
    if settings.unknown == "one":
        with torch.no_grad():
            network.head.weight[:-1] = known_head.weight
            network.head.bias[:-1] = known_head.bias
    return network


def train_student(
    teacher: Teacher,
    lesson: Lesson,
    settings: StudentSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> Student:
    """A fresh g, or one that starts from f, trained on the lesson."""
    with torch_seed(seed, "student"):
        network = start_student(teacher, lesson, settings).to(device)
    trainer()(fit_g, network, lesson, settings, augmentation, seed=seed, device=device)
    return Student(network, settings.unknown, settings.vote)


def fit_g(
    network: Network,
    lesson: Lesson,
    settings: StudentSettings,
    augmentation: AugmentSettings,
    *,
    seed: int,
    device: str,
) -> None:
    """Minimise L = L_s + lambda_u L_u."""
    generator = torch.Generator(device).manual_seed(derive(seed, "student views"))
    views = Views(network, settings.augmentation, augmentation, generator)

    def loss_of(step: StudentBatch) -> Tensor:
        views.learn(step.labelled, step.labels)
        return student_loss(network, step, settings, views)

    train(
        network,
        student_batches(lesson, settings, seed=seed, device=device),
        loss_of,
        settings.training,
        n_steps=settings.training.n_steps(len(lesson.undecided)),
        what="training g, the student",
    )
