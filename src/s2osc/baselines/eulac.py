"""EULAC: the risk on the pool, unknown class included, estimated without a label in the pool.

The pool is a mixture, P_pool = theta P_known + (1 - theta) P_unknown, theta being its known share.
So the risk of a classifier with C + 1 outputs, the last for unknown, is

    R = theta E_known[l(x, y)] + R_u,    R_u = E_pool[l(x, C')] - theta E_known[l(x, C')]

R_u stands for (1 - theta) E_unknown[l(x, C')] and cannot be negative, but a network that fits its
items too well makes its estimate so. Hence what is minimised is

    R + lambda max(0, -R_u)^t

where lambda = t = 1 is R with R_u cut off at zero. l is the softmax cross-entropy (the generalised
estimator) or the sum over outputs of the logistic loss, one against the rest (EULAC):
l(x, y) = psi(f_y) + sum_{k != y} psi(-f_k), psi(z) = log(1 + exp(-z)). The label is the largest
output, the score f_C' - max_k f_k.

References: Y.-J. Zhang, P. Zhao, L. Ma, Z.-H. Zhou, "An Unbiased Risk Estimator for Learning with
Augmented Classes", NeurIPS 2020; S. Shu, S. He, H. Wang, H. Wei, T. Xiang, L. Feng, "A Generalized
Unbiased Risk Estimator for Learning with Augmented Classes", AAAI 2023.

What differs: theta comes from best bin estimation instead of kernel mean embedding. A logistic
regression tells held-out known items from the pool by the embedding of f, which has learnt from
neither; each item is scored by a regression that has not seen it. The network and its training are
those of f, with as many pool items as labelled ones in each step. The threshold that lets 95 % of
the held-out known items pass is an option.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
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

from s2osc.baselines.mixture import best_bin_estimate
from s2osc.baselines.recipe import IMAGES, ByRecipe, Recipe, threshold_at, train_closed
from s2osc.errors import DataError, SettingsError
from s2osc.nets.augmentation.views import Views
from s2osc.nets.losses import cross_entropy
from s2osc.nets.networks import Network, as_tensor, item_shape
from s2osc.nets.training import outputs, shuffled, train
from s2osc.seeding import derive, rng, torch_seed
from s2osc.settings import require_choice, require_least, require_share
from s2osc.types import UNKNOWN, Labelled, Predictions

Loss = Literal["softmax", "one-vs-rest"]
Rule = Literal["argmax", "recall"]

LEAST_KNOWN, MOST_KNOWN = 0.05, 0.99
N_FOLDS = 5
STRENGTH = 0.01
"""Inverse penalty of the regression: the held-out items are few, the embedding is wide."""


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
            f"{len(held_out)} held-out known items and {len(pool)} pool items cannot tell the "
            "known share of the pool; give at least two of each"
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
class EULAC(ByRecipe):
    """One network of C + 1 outputs that minimises an unbiased estimate of its risk on the pool."""

    loss: Loss = "softmax"
    penalty: float = 1.0  # lambda
    exponent: int = 1  # t
    rule: Rule = "argmax"  # "recall": the threshold that keeps known_recall of held-out known items
    known_recall: float = 0.95
    recipe: Recipe = IMAGES

    def __post_init__(self) -> None:
        require_choice("EULAC.loss", self.loss, Loss)
        require_choice("EULAC.rule", self.rule, Rule)
        require_share("EULAC.known_recall", self.known_recall)
        require_least("EULAC.penalty", self.penalty, 0)
        if self.exponent not in (1, 2, 3):
            raise SettingsError(f"EULAC.exponent is {self.exponent}; give 1, 2 or 3")

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "PoolClassifier":
        """Find the known share of the pool by f, then train the network."""
        teacher, training, held_out = train_closed(
            known, self.recipe, seed=seed, device=device, one_will_do=True
        )
        known_share = estimate_known_share(
            teacher.outputs(held_out.inputs).embeddings, teacher.outputs(pool).embeddings, seed=seed
        )
        network = self._train(training, pool, known_share, seed=seed, device=device)
        classifier = PoolClassifier(network, self.loss, known_share, threshold=0.0)
        if self.rule == "argmax":
            return classifier
        scores = classifier.predict(held_out.inputs).unknown_score
        return replace(classifier, threshold=threshold_at(scores, self.known_recall))

    def _train(
        self, known: Labelled, pool: np.ndarray, known_share: float, *, seed: int, device: str
    ) -> Network:
        settings = self.recipe.teacher
        with torch_seed(seed, "EULAC"):
            network = Network(settings.network, item_shape(known.inputs), known.n_classes + 1)
        network.fit_normalisation(known.inputs)
        network.to(device)
        labels = torch.from_numpy(known.labels.astype(np.int64)).to(device)
        generator = torch.Generator(device).manual_seed(derive(seed, "EULAC views"))
        views = Views(network, "weak", self.recipe.augmentation, generator)

        def view(items: np.ndarray) -> Tensor:
            """As f's batches; the pool's alike, or the network would tell them apart by it."""
            batch = as_tensor(items, device)
            n_viewed = round(settings.augment * len(batch))
            plain = views.plain(batch[n_viewed:])
            return torch.cat([views(batch[:n_viewed]), plain]) if n_viewed else plain

        def loss_of(rows: tuple[np.ndarray, np.ndarray]) -> Tensor:
            from_known, from_pool = rows
            # One pass over all: batch normalisation must not tell labelled items from the pool.
            logits = network(torch.cat([view(known.inputs[from_known]), view(pool[from_pool])]))
            on_known, on_pool = logits.split([len(from_known), len(from_pool)])
            risk = estimate_risk(on_known, labels[from_known], on_pool, known_share, self.loss)
            return penalise(risk, self.penalty, self.exponent)

        train(
            network,
            pairs(len(known), len(pool), settings.training.batch_size, rng(seed, "EULAC batches")),
            loss_of,
            settings.training,
            n_steps=settings.training.n_steps(len(known) + len(pool)),
            what="training EULAC",
        )
        return network


def pairs(
    n_known: int, n_pool: int, batch_size: int, random: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of labelled rows, each with one of pool rows, without end."""
    return zip(
        shuffled(n_known, batch_size, random), shuffled(n_pool, batch_size, random), strict=False
    )


@dataclass(frozen=True, eq=False)
class PoolClassifier:
    """A trained network of C + 1 outputs, and where unknown begins."""

    network: Network
    loss: Loss
    known_share: float  # theta, as estimated
    threshold: float  # of the score

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The largest output, where the threshold is 0."""
        return decide(
            outputs(self.network, inputs, what="EULAC answers").logits, self.threshold, self.loss
        )

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The layer before the outputs."""
        return outputs(self.network, inputs, what="features").embeddings


def decide(logits: np.ndarray, threshold: float, loss: Loss) -> Predictions:
    """Unknown where f_C' - max_k f_k is above the threshold, else the largest known output.

    >>> decide(np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0]]), 0.0, "softmax").labels.tolist()
    [0, -1]
    """
    known = logits[:, :-1]
    score = logits[:, -1] - known.max(1)
    is_unknown = score > threshold
    p = softmax(logits, axis=1) if loss == "softmax" else expit(logits)
    return Predictions(
        labels=np.where(is_unknown, UNKNOWN, known.argmax(1)),
        unknown_score=score,
        confidence=np.where(is_unknown, p[:, -1], p[:, :-1].max(1)),
        nearest=known.argmax(1),
    )
