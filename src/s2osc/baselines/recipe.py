"""What the deep methods share: one backbone, one training, one budget, one way to a threshold.

f is trained on nine tenths of the labelled items. The last tenth, which it never saw, sets the
threshold: scores of training items are too good, and a threshold from them would call most of a
pool unknown.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from s2osc.errors import DataError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.networks import one_vector
from s2osc.pipeline.presets import HEADS, PLAIN
from s2osc.pipeline.run_facts import RunFacts
from s2osc.pipeline.teacher import Teacher, TeacherSettings, train_teacher
from s2osc.seeding import rng
from s2osc.settings import require_share
from s2osc.types import UNKNOWN, Labelled, Predictions


@dataclass(frozen=True)
class Recipe:
    """How f is built and trained, and which share of the labelled items it never sees."""

    teacher: TeacherSettings = PLAIN.teacher
    augmentation: AugmentSettings = AugmentSettings()
    held_out: float = 0.1

    def __post_init__(self) -> None:
        require_share("recipe.held_out", self.held_out)

    def for_run(self, run: RunFacts) -> "Recipe":
        return replace(
            self,
            teacher=run.teacher or self.teacher,
            augmentation=replace(self.augmentation, flip=run.flip),
        )


class ByRecipe:
    """A method with a field ``recipe``: f is built and trained as the run says."""

    recipe: Recipe

    def for_run(self, run: RunFacts) -> Self:
        return replace(self, recipe=self.recipe.for_run(run))  # type: ignore[type-var]


IMAGES = Recipe()
VECTORS = Recipe(HEADS.teacher)


class Parts(NamedTuple):
    """The labelled items to learn from, and those kept apart for the threshold."""

    training: Labelled
    held_out: Labelled


class Closed(NamedTuple):
    """f, the items it has learnt and those it has not."""

    teacher: Teacher
    training: Labelled
    held_out: Labelled


def hold_out(known: Labelled, share: float, *, seed: int) -> Parts:
    """A share of each class apart: at least one item of it, and never all."""
    random, stays = rng(seed, "held out"), np.ones(len(known), bool)
    for c in range(known.n_classes):
        rows = random.permutation(np.flatnonzero(known.labels == c))
        if len(rows) < 2:
            raise DataError(
                f"class {c} has {len(rows)} labelled item; give at least two, "
                "one to learn from and one for the threshold"
            )
        stays[rows[: min(max(1, round(share * len(rows))), len(rows) - 1)]] = False
    return Parts(
        Labelled(known.inputs[stays], known.labels[stays]),
        Labelled(known.inputs[~stays], known.labels[~stays]),
    )


def check_several(known: Labelled) -> None:
    """Refuse one known class, where a method learns by telling classes apart."""
    if known.n_classes < 2:
        raise DataError(
            "there is one known class, and this method learns to tell classes apart; give two at "
            "least, or use one-class-svm, senc-mas or eulac"
        )


def train_closed(
    known: Labelled, recipe: Recipe, *, seed: int, device: str, one_will_do: bool = False
) -> Closed:
    """f, trained on all but the items held out: every deep method starts from this one."""
    if not one_will_do:
        check_several(known)
    parts = hold_out(known, recipe.held_out, seed=seed)
    teacher = train_teacher(
        parts.training, recipe.teacher, recipe.augmentation, seed=seed, device=device
    )
    return Closed(teacher, *parts)


def threshold_at(held_out_scores: np.ndarray, known_recall: float) -> float:
    """The score that this share of the held-out known items does not exceed; above is unknown.

    >>> threshold_at(np.arange(1.0, 101.0), 0.95)
    95.0
    """
    check_scores(held_out_scores, "held-out labelled item")
    return float(np.quantile(held_out_scores, known_recall, method="inverted_cdf"))


def check_scores(scores: np.ndarray, what: str) -> None:
    """Refuse scores that are no numbers: nothing is above or below them."""
    if (wrong := np.flatnonzero(np.isnan(scores))).size:
        raise DataError(
            f"{what} {wrong[0]} has no score (of {len(wrong)} such); look for NaN in the items"
        )


def as_rows(inputs: np.ndarray) -> np.ndarray:
    """(n, D) float32 for methods without a network: pixels from 0 to 1, or vectors.

    Of stacked views, their mean.
    """
    rows = one_vector(inputs)
    rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:]))).astype(np.float32)
    return rows / np.float32(255) if inputs.dtype == np.uint8 else rows


def decide(
    scores: np.ndarray, probabilities: np.ndarray, threshold: float, known_scores: np.ndarray
) -> Predictions:
    """Unknown above the threshold, else the likeliest known class, and how far to believe either.

    A known class is believed by its probability among the known classes. Unknown is believed by the
    share of held-out known items that look less unknown, the item itself counted among them: that
    takes no unknown item to say.

    >>> said = decide(np.array([0.0, 7.0]), np.array([[0.6, 0.4], [0.1, 0.9]]), 6.0, np.arange(9.0))
    >>> said.labels.tolist(), said.confidence.tolist(), said.nearest.tolist()
    ([0, -1], [0.6, 0.7], [0, 1])
    """
    check_scores(scores, "item")
    is_unknown = scores > threshold
    n_below = np.searchsorted(np.sort(known_scores), scores, side="left")
    return Predictions(
        labels=np.where(is_unknown, UNKNOWN, probabilities.argmax(1)),
        unknown_score=scores,
        confidence=np.where(
            is_unknown, n_below / (len(known_scores) + 1), probabilities.max(1, initial=0)
        ),
        nearest=probabilities.argmax(1),
    )
