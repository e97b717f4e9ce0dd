"""EULAC: minimise an unbiased estimate of the risk on the pool, without labels in the pool.

The pool is a mixture, P_pool = theta P_known + (1 - theta) P_unknown, with theta its known share.
The risk of a classifier with C + 1 outputs, the last for unknown, is therefore

    R = theta E_known[l(x, y)] + R_u,    R_u = E_pool[l(x, C')] - theta E_known[l(x, C')]

R_u equals (1 - theta) E_unknown[l(x, C')], which is never negative. Its estimate becomes negative
when the network overfits, so the loss is

    R + lambda max(0, -R_u)^t

With lambda = t = 1 this clips R_u at zero. l is the softmax cross-entropy (the generalised
estimator) or the one-vs-rest logistic loss (EULAC),
l(x, y) = psi(f_y) + sum_{k != y} psi(-f_k), psi(z) = log(1 + exp(-z)). The label is the largest
output, the score f_C' - max_k f_k.

theta is estimated by best bin estimation. With q_p(c) and q_u(c) the shares of positive and of
unlabelled items that score at least c,

    c* = argmin_c  q_u(c) / q_p(c) + (1 + gamma) / q_p(c) (r_u + r_p)
    r = sqrt(log(1 / delta) / 2 n)
    theta = q_u(c*) / q_p(c*)

Every bin gives an upper bound of the share; the best bin is pure and has enough items. The scores
must come from a model trained on neither set, or theta is underestimated.

References: Y.-J. Zhang, P. Zhao, L. Ma, Z.-H. Zhou, "An Unbiased Risk Estimator for Learning with
Augmented Classes", NeurIPS 2020; S. Shu, S. He, H. Wang, H. Wei, T. Xiang, L. Feng, "A Generalized
Unbiased Risk Estimator for Learning with Augmented Classes", AAAI 2023; S. Garg, Y. Wu, A. Smola,
S. Balakrishnan, Z. Lipton, "Mixture Proportion Estimation and PU Learning: A Modern Approach",
NeurIPS 2021 (log(1 / delta) as in the authors' code).

What differs: theta comes from best bin estimation instead of kernel mean embedding. A
cross-validated logistic regression separates held-out known items from the pool in the embedding of
f, which was trained on neither. The network and its training are those of f, with as many pool
items as labelled items per step. ``rule="recall"`` takes the threshold from held-out known items.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn import functional as F

from s2osc.baselines.shared import (
    Baseline,
    at_recall,
    augment_like_f,
    label_items,
    train_closed,
)
from s2osc.errors import DataError, SettingsError
from s2osc.nets.losses import cross_entropy
from s2osc.nets.networks import Network, item_shape
from s2osc.nets.training import outputs, shuffled, train
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_choice, require_least
from s2osc.types import Labelled, Predictions

Loss = Literal["softmax", "one-vs-rest"]
Rule = Literal["argmax", "recall"]

LEAST_KNOWN, MOST_KNOWN = 0.05, 0.99
N_FOLDS = 5
STRENGTH = 0.01
"""C of the regression: strong regularisation, for few items in many dimensions."""


def one_vs_rest(logits: Tensor, labels: Tensor) -> Tensor:
    """psi(f_y) + sum_{k != y} psi(-f_k) per item, with the logistic psi."""
    is_label = F.one_hot(labels, logits.shape[1]).to(logits.dtype)
    return F.binary_cross_entropy_with_logits(logits, is_label, reduction="none").sum(1)


LOSSES = {"softmax": cross_entropy, "one-vs-rest": one_vs_rest}


class Risk(NamedTuple):
    """The two parts of R."""

    known: Tensor  # theta E_known[l(x, y)]
    unknown: Tensor  # R_u


def estimate_risk(
    logits: Tensor, labels: Tensor, pool_logits: Tensor, known_share: float, loss: Loss
) -> Risk:
    """theta E_known[l(x, y)] and E_pool[l(x, C')] - theta E_known[l(x, C')]."""
    loss_of, last = LOSSES[loss], logits.shape[1] - 1

    def as_unknown(of: Tensor) -> Tensor:
        return loss_of(of, torch.full((len(of),), last, device=of.device)).mean()

    return Risk(
        known=known_share * loss_of(logits, labels).mean(),
        unknown=as_unknown(pool_logits) - known_share * as_unknown(logits),
    )


def penalise(risk: Risk, penalty: float, exponent: int) -> Tensor:
    """R + lambda max(0, -R_u)^t."""
    return risk.known + risk.unknown + penalty * F.relu(-risk.unknown) ** exponent


def estimate_known_share(held_out: np.ndarray, pool: np.ndarray, *, seed: int) -> float:
    """theta, from embeddings of held-out known items and of the pool."""
    n_folds = min(N_FOLDS, len(held_out), len(pool))
    if n_folds < 2:
        raise DataError(
            f"{len(held_out)} held-out known items and {len(pool)} pool items are too few to "
            "estimate the known share of the pool; give at least two of each"
        )
    is_known = np.repeat([1, 0], [len(held_out), len(pool)])
    regression = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=1_000)
    folds = StratifiedKFold(
        n_folds, shuffle=True, random_state=derive(seed, "folds of the pool") % 2**31
    )
    scores = cross_val_predict(
        make_pipeline(StandardScaler(), regression),
        np.concatenate([held_out, pool]).astype(np.float64),
        is_known,
        cv=folds,
        method="decision_function",
    )
    share = best_bin_estimate(scores[is_known == 1], scores[is_known == 0])
    return float(np.clip(share, LEAST_KNOWN, MOST_KNOWN))


@dataclass(frozen=True)
class EULAC(Baseline):
    """One network of C + 1 outputs that minimises an unbiased estimate of its risk on the pool."""

    loss: Loss = "softmax"
    penalty: float = 1.0  # lambda
    exponent: int = 1  # t
    rule: Rule = "argmax"  # "recall": the threshold comes from held-out known items

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("EULAC.loss", self.loss, Loss)
        require_choice("EULAC.rule", self.rule, Rule)
        require_least("EULAC.penalty", self.penalty, 0)
        if self.exponent not in (1, 2, 3):
            raise SettingsError(f"EULAC.exponent is {self.exponent}; give 1, 2 or 3")

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "PoolClassifier":
        """Estimate the known share of the pool with f, then train the network."""
        teacher, training, held_out = train_closed(
            known, self.recipe, seed=seed, device=device, allow_one_class=True
        )
        known_share = estimate_known_share(
            teacher.outputs(held_out.inputs).embeddings, teacher.outputs(pool).embeddings, seed=seed
        )
        network = self._train(training, pool, known_share, seed=seed, device=device)
        classifier = PoolClassifier(network, self.loss, known_share, threshold=0.0)
        if self.rule == "argmax":
            return classifier
        return at_recall(classifier, held_out, self.known_recall)

    def _train(
        self, known: Labelled, pool: np.ndarray, known_share: float, *, seed: int, device: str
    ) -> Network:
        settings = self.recipe.teacher
        with torch_seed(seed, "EULAC"):
            network = Network(settings.network, item_shape(known.inputs), known.n_classes + 1)
        network.fit_normalisation(known.inputs)
        network.to(device)
        labels = torch.from_numpy(known.labels.astype(np.int64)).to(device)
        view = augment_like_f(network, self.recipe, seed=seed, purpose="EULAC views")

        def loss_of(rows: tuple[np.ndarray, np.ndarray]) -> Tensor:
            from_known, from_pool = rows
            # One forward pass, so that batch normalisation treats both alike.
            logits = network(torch.cat([view(known.inputs[from_known]), view(pool[from_pool])]))
            on_known, on_pool = logits.split([len(from_known), len(from_pool)])
            risk = estimate_risk(on_known, labels[from_known], on_pool, known_share, self.loss)
            return penalise(risk, self.penalty, self.exponent)

        random, batch_size = rng(seed, "EULAC batches"), settings.training.batch_size
        train(
            network,
            zip(
                shuffled(len(known), batch_size, random),
                shuffled(len(pool), batch_size, random),
                strict=True,
            ),
            loss_of,
            settings.training,
            n_steps=settings.training.n_steps(len(known) + len(pool)),
            what="training EULAC",
        )
        return network


@dataclass(frozen=True, eq=False)
class PoolClassifier:
    """A trained network of C + 1 outputs, and its threshold."""

    network: Network
    loss: Loss
    known_share: float  # theta, as estimated
    threshold: float  # of the score

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The largest output, where the threshold is 0."""
        logits = outputs(self.network, inputs, what="EULAC predicts").logits
        return predict_from_logits(logits, self.threshold, self.loss)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The layer before the outputs."""
        return outputs(self.network, inputs, what="features").embeddings


def predict_from_logits(logits: np.ndarray, threshold: float, loss: Loss) -> Predictions:
    """Unknown where f_C' - max_k f_k is above the threshold, else the largest known output.

    >>> logits = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]])
    >>> predict_from_logits(logits, 0.0, "softmax").labels.tolist()
    [0, -1]
    """
    known = logits[:, :-1]
    score = logits[:, -1] - known.max(1)
    p = softmax(logits, axis=1) if loss == "softmax" else expit(logits)
    return label_items(
        score > threshold,
        score,
        nearest=known.argmax(1),
        p_known=p[:, :-1].max(1),
        p_unknown=p[:, -1],
    )


# --- the known share of the pool -----------------------------------------------------------


def best_bin_estimate(
    positives: np.ndarray, unlabelled: np.ndarray, *, gamma: float = 0.01, delta: float = 0.1
) -> float:
    """The share of positive items among the unlabelled ones. Positive items score high.

    >>> best_bin_estimate(np.array([0.8, 0.9]), np.array([0.8, 0.9, 0.1, 0.1]))
    0.5
    """
    n_p, n_u = len(positives), len(unlabelled)
    if not (n_p and n_u):
        raise DataError(f"there are {n_p} positive and {n_u} unlabelled scores; give some of each")
    # Cuts at positive scores too: a pool far below the positives has an empty bin only there.
    cuts = np.unique(np.concatenate([positives, unlabelled]))
    cuts = cuts[cuts <= positives.max()]
    q_p, q_u = share_from(positives, cuts), share_from(unlabelled, cuts)
    radius = sum(np.sqrt(np.log(1 / delta) / (2 * n)) for n in (n_p, n_u))
    best = int(np.argmin((q_u + (1 + gamma) * radius) / q_p))
    return min(1.0, float(q_u[best] / q_p[best]))


def share_from(scores: np.ndarray, cuts: np.ndarray) -> np.ndarray:
    """q(c): the share of the scores that is at least c, for each cut.

    >>> share_from(np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 5.0])).tolist()
    [1.0, 0.75, 0.0]
    """
    return 1 - np.searchsorted(np.sort(scores), cuts) / len(scores)
