"""The losses of the paper (Eq. 1, 3, 4) as plain functions of tensors, in the order it prints them.

Eq. 2 is ``pipeline.filter.distinctness``; ``pipeline.student.student_loss`` adds the terms up.

``logits`` are a network's raw outputs, one row per item. The student g has the known classes
0 .. C-1 first and the unknown super-class C' last; in the variant for several unknown classes it
has two outputs, known and unknown.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


def cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """H(y, softmax(logits)) per item: the loss of f (Eq. 1) and the H of g (Eq. 3, 4)."""
    return F.cross_entropy(logits, labels, reduction="none")


def gate_unknown(h: Tensor, logits: Tensor, is_unknown: Tensor, tau: float) -> Tensor:
    """The gate of l_s1 as printed (Eq. 3): an item of D_out counts only where max g(x) >= tau."""
    confident = logits.detach().softmax(1).amax(1) >= tau
    return torch.where(is_unknown & ~confident, torch.zeros_like(h), h)


def _divergence(target_logits: Tensor, log_predicted: Tensor) -> Tensor:
    """KL(p || q) per item; no gradient reaches the target."""
    target = target_logits.detach().log_softmax(1)
    return (target.exp() * (target - log_predicted)).sum(1)


def distil_known(logits: Tensor, teacher_logits: Tensor, temperature: float) -> Tensor:
    """l_s2 and l_u2 (Eq. 3, 4): KL(f || g without C', re-softmaxed), both at temperature T.

    A distribution raised to the power 1/T and normalised is the softmax of the logits over T.
    """
    known = logits[:, :-1]
    return _divergence(teacher_logits / temperature, (known / temperature).log_softmax(1))


def normalised_entropy(teacher_logits: Tensor) -> Tensor:
    """The entropy of f over its largest value, log C: the l of psi, in [0, 1]."""
    log_p = teacher_logits.log_softmax(1)
    entropy = -(log_p.exp() * log_p).sum(1)
    return entropy / torch.log(torch.tensor(float(teacher_logits.shape[1])))


def psi(teacher_logits: Tensor) -> Tensor:
    """psi(x) = [1 - l, l] (supplement): f's probabilities of known and unknown."""
    unknown = normalised_entropy(teacher_logits)
    return torch.stack([1 - unknown, unknown], 1)


def distil_binary(logits: Tensor, psi_of_teacher: Tensor, temperature: float) -> Tensor:
    """KL(psi(x) || g(x)) of the variant for several unknown classes, both at temperature T."""
    log_psi = psi_of_teacher.clamp_min(1e-8).log()
    return _divergence(log_psi / temperature, (logits / temperature).log_softmax(1))


class PseudoLabels(NamedTuple):
    """g's predictions for unlabelled items, as targets."""

    labels: Tensor  # (n,) argmax q
    keep: Tensor  # (n,) 1.0 where max q >= tau, else 0.0


def pseudo_labels(logits: Tensor, tau: float) -> PseudoLabels:
    """q = g(x), its argmax, and the mask 1[max q >= tau] (Eq. 4), without gradient."""
    confidence, labels = logits.detach().softmax(1).max(1)
    return PseudoLabels(labels, (confidence >= tau).to(logits.dtype))


def supervised_loss(h: Tensor, kl: Tensor, *, alpha: float) -> Tensor:
    """L_s = 1 / (2 |X|) sum (l_s1 + alpha l_s2) (Eq. 3)."""
    return 0.5 * (h + alpha * kl).mean()


def unsupervised_loss(h: Tensor, kl: Tensor, keep: Tensor, *, alpha: float) -> Tensor:
    """L_u = 1 / (2 |U|) sum 1[max q >= tau] (l_u1 + alpha l_u2) (Eq. 4).

    The mean is over all unlabelled items, masked ones included.
    """
    return 0.5 * (keep * (h + alpha * kl)).mean()


def unknown_cross_entropy(logits: Tensor, p_unknown: Tensor) -> Tensor:
    """- p log g_C' - (1 - p) log (1 - g_C') per item, with p = P(unknown) estimated from seeds.

    Not in the paper. It does not depend on the known class. In both variants C' is the last output.
    """
    log_p = logits.log_softmax(1)
    return -(p_unknown * log_p[:, -1] + (1 - p_unknown) * log_p[:, :-1].logsumexp(1))


def triplet_loss(embeddings: Tensor, labels: Tensor, margin: float = 1.0) -> Tensor:
    """[m + d(i, p) - d(i, n)]_+ per item, with its farthest positive and nearest negative.

    The loss of the ablation S2OSC-LM. Items without a positive or a negative have no loss.
    """
    if len(embeddings) == 0:
        return embeddings.sum(1)
    distance = torch.cdist(embeddings, embeddings)
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    positive, negative = same & ~itself, ~same
    farthest = distance.masked_fill(~positive, 0.0).amax(1)
    nearest = distance.masked_fill(~negative, float("inf")).amin(1)
    has_triplet = positive.any(1) & negative.any(1)
    return torch.where(has_triplet, F.relu(margin + farthest - nearest), torch.zeros_like(farthest))


def distil_previous(logits: Tensor, previous_logits: Tensor) -> Tensor:
    """- sum_c q_c log f_c per item, q = f^(t-1)(x): the distillation of Algorithm 1 (supplement).

    f^t has the classes of f^(t-1) first, then the new ones. Both are compared as distributions over
    the old classes, so that the new ones are not constrained.
    """
    n_old = previous_logits.shape[1]
    q = previous_logits.detach().softmax(1)
    return -(q * logits[:, :n_old].log_softmax(1)).sum(1)
