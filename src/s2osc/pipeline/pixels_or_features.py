"""Small colour images: as pixels, or as features of a pretrained network? Held-back items say.

Which is better depends on what the images show, and on how many are labelled: from scratch, a
network learns house numbers better than one that was trained on photos sees them, and animals
worse. So f is trained both ways on labelled items, and names others. What names known classes best
also finds unknown ones best, most often (Vaze et al., Open-set recognition: a good closed-set
classifier is all you need?, ICLR 2022).
"""

from typing import NamedTuple

import numpy as np

from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.teacher import train_teacher
from s2osc.seeding import rng
from s2osc.types import Labelled

N_FOLDS = 4
MOST_COMPARED = 2_000
"""Labelled items that are used: what the choice may cost. Of ten classes, f learns from 150 each,
where pixels have caught up with features if they ever do."""
ENOUGH_NAMED = 50
"""Held-back items, from which on one fold is enough: where it is close, either choice is right."""


NOTHING_TO_GAIN = 0.99
"""Of held-back items named right through the network, which takes seconds: then f is not trained
from scratch as well, which takes half a minute."""


class Accuracies(NamedTuple):
    """Shares of held-back labelled items that f names right, classes counted alike."""

    features: float
    pixels: float | None  # None: there was nothing to gain
    n: int  # items held back

    @property
    def prefer_features(self) -> bool:
        return self.pixels is None or self.features > self.pixels

    def in_words(self, backbone: str) -> str:
        """What was compared, and what follows.

        >>> Accuracies(0.712, 0.48, 240).in_words("a network")
        'of 240 labelled images f names 71 % right through a network, 48 % by their pixels: taken'
        >>> Accuracies(0.996, None, 240).in_words("a network")
        'of 240 labelled images f names 100 % right through a network: taken'
        """
        chosen = "taken" if self.prefer_features else "left out"
        beside = "" if self.pixels is None else f", {self.pixels:.0%} by their pixels"
        named = f"f names {self.features:.0%} right through {backbone}{beside}: {chosen}"
        return f"of {self.n} labelled images {named}".replace("%", " %")


def draw_labelled(labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Rows of the items that are compared: all, or as many of each class.

    >>> labels = np.repeat([0, 1], [3_000, 20])
    >>> np.bincount(labels[draw_labelled(labels, np.random.default_rng(0))]).tolist()
    [1000, 20]
    """
    classes = np.unique(labels)
    most = max(2, MOST_COMPARED // len(classes))
    drawn = [random.permutation(np.flatnonzero(labels == c))[:most] for c in classes]
    return np.sort(np.concatenate(drawn))


def folds_of(labels: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n,) the fold in which each item is held back: of each class, as many in every fold.

    An item that is alone in its class never is: f would not know the class.

    >>> folds = folds_of(np.repeat([0, 1, 2], [8, 2, 1]), np.random.default_rng(0))
    >>> np.bincount(folds[:8]).tolist(), sorted(folds[8:].tolist())
    ([2, 2, 2, 2], [0, 1, 4])
    """
    folds = np.full(len(labels), N_FOLDS)
    for c in np.unique(labels):
        rows = random.permutation(np.flatnonzero(labels == c))
        if len(rows) > 1:
            folds[rows] = np.arange(len(rows)) % N_FOLDS
    return folds


def name_in_folds(
    items: Labelled, folds: np.ndarray, n_folds: int, method: S2OSCMethod, *, seed: int, device: str
) -> np.ndarray:
    """The class that f gives to each item of the first folds, taught by those of all others."""
    named = np.empty(len(items), int)
    for fold in range(n_folds):
        held = folds == fold
        rest = Labelled(items.inputs[~held], items.labels[~held])
        taught = train_teacher(rest, method.teacher, method.augmentation, seed=seed, device=device)
        named[held] = taught.teacher.outputs(items.inputs[held]).logits.argmax(axis=1)
    return named[folds < n_folds]


def compare_pixels_with_features(
    pixels: Labelled,
    features: Labelled,
    by_pixels: S2OSCMethod,
    by_features: S2OSCMethod,
    *,
    seed: int,
    device: str,
) -> Accuracies:
    """Teach f by the same labelled items in both forms; it names others, which were held back."""
    folds = folds_of(pixels.labels, rng(seed, "pixels or features"))
    n_folds = 1 if (folds == 0).sum() >= ENOUGH_NAMED else 2
    truth = pixels.labels[folds < n_folds]

    def accuracy(items: Labelled, method: S2OSCMethod) -> float:
        named = name_in_folds(items, folds, n_folds, method, seed=seed, device=device)
        return mean_over_classes(named == truth, truth)

    through = accuracy(features, by_features)
    beside = accuracy(pixels, by_pixels) if through < NOTHING_TO_GAIN else None
    return Accuracies(through, beside, len(truth))


def mean_over_classes(is_right: np.ndarray, truth: np.ndarray) -> float:
    """The mean of the shares of the classes.

    >>> mean_over_classes(np.array([True, True, True, False]), np.array([0, 0, 0, 1]))
    0.5
    """
    return float(np.mean([is_right[truth == c].mean() for c in np.unique(truth)]))
