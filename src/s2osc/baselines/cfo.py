"""CFO: train an open-set classifier with generated counterfactuals as unknown items.

Three stages on the labelled items. With l_k(x) the K logits of a classifier, the unknown ("open")
class has the fixed logit 0:

    P(k | x) = exp l_k / (1 + sum_i exp l_i),      P(open | x) = 1 / (1 + sum_i exp l_i)

1. An autoencoder G(E(x)) with a critic, whose codes lie on unit spheres (``s2osc.nets.gan``), and
   C_K, K independent sigmoids: mean over items of sum_k log(1 + exp(-t_k l_k)), t_k = +1 for the
   item's class and -1 for every other.
2. Counterfactuals G(z*): near known items x, but open according to C_K,

       z* = argmin_z  w ||z - E(x)||^2 + log(1 + sum_k exp l_k(G(z)))

   found by gradient steps from E(x), each projected back to the spheres. The second term is
   -log P(open | G(z)).
3. C_{K+1}, the network of C_K with its K logits and the zero, fine-tuned at a tenth of the learning
   rate: cross-entropy of known items with their class + of counterfactuals with the open class.

The label is the argmax of the K + 1 probabilities, the score P(open) - max_k P(k): an item is
unknown where the score is above 0. With ``rule="recall"``, held-out known items set the threshold.

Lawrence Neal, Matthew Olson, Xiaoli Fern, Weng-Keen Wong and Fuxin Li, "Open Set Learning with
Counterfactual Images", ECCV 2018, and the authors' public code.

What differs: networks and budget are small, and the classifier is the network all methods share.
C_K starts from f and is trained with its own loss, because the logits of f are defined only up to a
constant. The GAN is the paper's Wasserstein form; its critic also sees decoded noise, because the
search leaves the codes of items. Unlike in the authors' code, norms are over all numbers of a code
or an image, the search runs in evaluation mode, and codes are projected to the spheres of training.
In stage 3 both batches go through the network together, for the sake of batch normalisation.
"""

import logging
import warnings
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor
from torch.nn import functional as F

from s2osc.arrays import chunks
from s2osc.baselines.shared import (
    Baseline,
    TeacherRecipe,
    at_recall,
    augment_like_f,
    label_items,
    train_closed,
)
from s2osc.errors import S2OSCWarning
from s2osc.nets.gan import Autoencoder, GanSettings, to_spheres, train_gan
from s2osc.nets.losses import cross_entropy
from s2osc.nets.networks import Network, as_tensor, is_stacked
from s2osc.nets.training import outputs, shuffled, train
from s2osc.pipeline.run_facts import RunFacts
from s2osc.progress import track
from s2osc.seeding import rng
from s2osc.settings import require_choice, require_least, require_positive
from s2osc.types import Labelled, Predictions

log = logging.getLogger(__name__)
SEARCH_BATCH = 100
MAX_EXAMPLES = 64
SLOWER = 10.0  # stage 3 fine-tunes C_K

Logits = Callable[[Tensor], Tensor]
Rule = Literal["own", "recall"]


# The equations


def with_open(logits: Tensor) -> Tensor:
    """The K logits and the fixed 0 of the open class, which comes last.

    >>> with_open(torch.tensor([[2.0, -1.0]]))
    tensor([[ 2., -1.,  0.]])
    """
    return F.pad(logits, (0, 1))


def open_loss(logits: Tensor) -> Tensor:
    """-log P(open) = log(1 + sum_k exp l_k), per item."""
    return with_open(logits).logsumexp(1)


def sigmoid_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """sum_k log(1 + exp(-t_k l_k)) per item: K classifiers, each of one class against the rest."""
    signs = 2 * F.one_hot(labels, logits.shape[1]) - 1
    return F.softplus(-signs * logits).sum(1)


def search_step(
    codes: Tensor, start: Tensor, logits_of: Logits, *, step: float, distance_weight: float
) -> Tensor:
    """One gradient step on w ||z - z_0||^2 - log P(open | G(z)), before the projection."""
    codes = codes.detach().requires_grad_()
    loss = distance_weight * ((codes - start) ** 2).sum(1) + open_loss(logits_of(codes))
    (gradient,) = torch.autograd.grad(loss.sum(), codes)
    return codes.detach() - step * gradient


# The settings


@dataclass(frozen=True)
class SearchSettings:
    """The search for counterfactuals."""

    n_items: int = 600  # at most one from each labelled item
    n_steps: int = 30
    step: float = 0.1
    distance_weight: float = 1.0  # w

    def __post_init__(self) -> None:
        require_least("counterfactuals.n_items", self.n_items, 1)
        require_least("counterfactuals.n_steps", self.n_steps, 1)
        require_positive("counterfactuals.step", self.step)
        require_least("counterfactuals.distance_weight", self.distance_weight, 0)


@dataclass(frozen=True)
class CFO(Baseline):
    """Open set classification with counterfactuals."""

    gan: GanSettings = GanSettings()
    counterfactuals: SearchSettings = SearchSettings()
    open_epochs: int = 3  # of stage 3
    rule: Rule = "own"  # "recall": the threshold comes from held-out known items

    def __post_init__(self) -> None:
        super().__post_init__()
        require_least("CFO.open_epochs", self.open_epochs, 1)
        require_choice("CFO.rule", self.rule, Rule)

    def for_run(self, run: RunFacts) -> Self:
        method = super().for_run(run)
        if not run.is_trial:
            return method
        return replace(
            method,
            gan=replace(method.gan, epochs=1, min_steps=5),
            counterfactuals=replace(method.counterfactuals, n_items=20, n_steps=3),
        )

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> "CounterfactualRecogniser":
        """All three stages on the labelled items; the pool is not used."""
        closed = train_closed(known, self.recipe, seed=seed, device=device)
        training, items = closed.training, first_views(closed.training.inputs)
        coder = train_gan(items, self.gan, seed=seed, device=device, what="training the GAN")
        network = deepcopy(closed.teacher.network)
        train_sigmoids(network, training, self.recipe, seed=seed)
        found = find_counterfactuals(network, coder, items, self.counterfactuals, seed=seed)
        train_open(network, training, found.counterfactuals, self, seed=seed)
        recogniser = CounterfactualRecogniser(
            network, found.search, found.counterfactuals, found.examples
        )
        if self.rule == "own":
            return recogniser
        return at_recall(recogniser, closed.held_out, self.known_recall)


# The stages


def first_views(inputs: np.ndarray) -> np.ndarray:
    """The first of stacked views; other inputs unchanged."""
    return inputs[:, 0] if is_stacked(inputs) else inputs


def train_sigmoids(network: Network, known: Labelled, recipe: TeacherRecipe, *, seed: int) -> None:
    """Stage 1: turn f into C_K, in half as many steps as f was trained."""
    settings = recipe.teacher.training
    labels = torch.from_numpy(known.labels.astype(np.int64)).to(network.device)
    view = augment_like_f(network, recipe, seed=seed, purpose="C_K views")

    def loss_of(rows: np.ndarray) -> Tensor:
        return sigmoid_loss(network(view(known.inputs[rows])), labels[rows]).mean()

    batches = shuffled(len(known), settings.batch_size, rng(seed, "C_K batches"))
    n_steps = max(1, settings.n_steps(len(known)) // 2)
    train(network, batches, loss_of, settings, n_steps=n_steps, what="training K sigmoids")


def train_open(
    network: Network, known: Labelled, counterfactuals: np.ndarray, method: CFO, *, seed: int
) -> None:
    """Stage 3: turn C_K into C_{K+1}, on known items and counterfactuals in equal numbers."""
    settings = method.recipe.teacher.training
    labels = torch.from_numpy(known.labels.astype(np.int64)).to(network.device)
    view = augment_like_f(network, method.recipe, seed=seed, purpose="C_K+1 views")

    def loss_of(rows: tuple[np.ndarray, np.ndarray]) -> Tensor:
        of_known, of_open = rows
        batch = torch.cat([view(known.inputs[of_known]), view(counterfactuals[of_open])])
        on_known, on_open = network(batch).split([len(of_known), len(of_open)])
        closed = cross_entropy(with_open(on_known), labels[of_known])
        return closed.mean() + open_loss(on_open).mean()

    batch_size = settings.batch_size
    # Batches are twice as large as those of f, so half of its least steps cost as much.
    slower = replace(
        settings,
        epochs=method.open_epochs,
        min_steps=settings.min_steps // 2,
        learning_rate=settings.learning_rate / SLOWER,
    )
    batches = zip(
        shuffled(len(known), batch_size, rng(seed, "C_K+1 batches")),
        shuffled(len(counterfactuals), batch_size, rng(seed, "counterfactual batches")),
        strict=True,
    )
    n_steps = slower.n_steps(len(known))
    train(network, batches, loss_of, slower, n_steps=n_steps, what="training K + 1 classes")


class SearchEffect(NamedTuple):
    """Mean P(open) under C_K of the reconstructions, and of the counterfactuals found."""

    before: float
    after: float


class Examples(NamedTuple):
    """At most 64 items, their reconstructions and their counterfactuals."""

    originals: np.ndarray
    reconstructions: np.ndarray
    counterfactuals: np.ndarray


class Counterfactuals(NamedTuple):
    """The result of stage 2."""

    search: SearchEffect
    counterfactuals: np.ndarray  # (n, ...) like the items
    examples: Examples


def find_counterfactuals(
    network: Network, coder: Autoencoder, inputs: np.ndarray, settings: SearchSettings, *, seed: int
) -> Counterfactuals:
    """Stage 2: search from randomly drawn items, at most one counterfactual each."""
    chosen = inputs[rng(seed, "counterfactuals").permutation(len(inputs))[: settings.n_items]]
    reconstructions, counterfactuals = np.empty_like(chosen), np.empty_like(chosen)
    batches = chunks(len(chosen), SEARCH_BATCH)
    for rows in track(batches, "searching for counterfactuals", total=len(batches)):
        with torch.no_grad():
            codes = coder.encode(coder.normalise(as_tensor(chosen[rows], network.device)))
        reconstructions[rows] = as_items(coder, codes, chosen)
        moved = search_codes(codes, coder, network, settings)
        counterfactuals[rows] = as_items(coder, moved, chosen)
    before, after = (
        float(open_set_probabilities(network, made)[:, -1].mean())
        for made in (reconstructions, counterfactuals)
    )
    log.info("mean P(open) was %.3f before the search and is %.3f after it", before, after)
    if after <= before:
        warnings.warn(
            f"mean P(open) was {before:.3f} before the search for counterfactuals and is "
            f"{after:.3f} after it: they are no open items; raise counterfactuals.n_steps",
            S2OSCWarning,
            stacklevel=2,
        )
    few = slice(MAX_EXAMPLES)
    examples = Examples(chosen[few], reconstructions[few], counterfactuals[few])
    return Counterfactuals(SearchEffect(before, after), counterfactuals, examples)


def search_codes(
    start: Tensor, coder: Autoencoder, network: Network, settings: SearchSettings
) -> Tensor:
    """z* from z_0: gradient steps on the search loss, each projected to the spheres."""
    codes = start

    def logits_of(codes: Tensor) -> Tensor:
        return network(coder.restore(coder.decode(codes)))

    for _ in range(settings.n_steps):
        stepped = search_step(
            codes, start, logits_of, step=settings.step, distance_weight=settings.distance_weight
        )
        codes = to_spheres(stepped, coder.n_groups)
    return codes


def as_items(coder: Autoencoder, codes: Tensor, like: np.ndarray) -> np.ndarray:
    """G(z) as inputs: uint8 images in the axes of ``like``, or float32 vectors."""
    with torch.no_grad():
        made = coder.restore(coder.decode(codes)).cpu()
    if like.dtype != np.uint8:
        return made.numpy()
    pixels = made.round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    return pixels.reshape(len(pixels), *like.shape[1:])


# The recogniser


def open_set_probabilities(network: Network, inputs: np.ndarray) -> np.ndarray:
    """(n, K + 1): P of the K classes, and of the open one last."""
    logits = outputs(network, inputs, what="CFO predicts").logits
    return softmax(np.pad(logits, ((0, 0), (0, 1))), axis=1)


@dataclass(frozen=True, eq=False)
class CounterfactualRecogniser:
    """C_{K+1}, and the counterfactuals it was trained with."""

    network: Network
    search: SearchEffect
    counterfactuals: np.ndarray  # (n, ...) like the items
    examples: Examples
    threshold: float = 0.0  # of P(open) - max_k P(k); at 0 the label is the argmax

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The most probable known class, or unknown where the score is above the threshold."""
        p = open_set_probabilities(self.network, inputs)
        known, unknown = p[:, :-1], p[:, -1]
        score = unknown - known.max(1)
        return label_items(
            score > self.threshold,
            score,
            nearest=known.argmax(1),
            p_known=known.max(1),
            p_unknown=unknown,
        )

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """The layer before the K logits."""
        return outputs(self.network, inputs, what="embedding items").embeddings
