"""What several baselines share.

    the classifier f      ``TeacherRecipe``, ``hold_out``, ``train_closed``, ``augment_like_f``: one
                          network and one training for every deep method
    the threshold         ``threshold_at``, ``predict_by_threshold``: unknown is what scores above
    without a network     ``as_rows``, ``fit_components``, ``fit_regression``, ``RowRecogniser``

f is trained on nine tenths of the labelled items. The last tenth sets the threshold: training items
score too low, and with a threshold from them most of a pool would be called unknown.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from s2osc.arrays import in_chunks
from s2osc.errors import DataError, SettingsError
from s2osc.lazy import lazily
from s2osc.nets.augmentation.augment import AugmentSettings, Views
from s2osc.nets.networks import Network, as_tensor, one_vector
from s2osc.pipeline.presets import HEADS, PLAIN
from s2osc.pipeline.run_facts import RunFacts
from s2osc.pipeline.teacher import Teacher, TeacherSettings, train_teacher
from s2osc.seeding import derive, rng
from s2osc.settings import require_share
from s2osc.types import UNKNOWN, Labelled, Predictions, Recogniser

if TYPE_CHECKING:
    from sklearn.linear_model import LogisticRegression

decomposition = lazily("sklearn.decomposition")
linear_model = lazily("sklearn.linear_model")

MOST_FITTED = 10_000
"""Principal components are fitted on at most this many items."""
Fitted = TypeVar("Fitted", bound=Recogniser)
LEAST_VARIANCE = 1e-6
"""Components with less than this share of the first one's variance are rounding errors."""


# --- the classifier f ------------------------------------------------------------------------


@dataclass(frozen=True)
class TeacherRecipe:
    """How f is built and trained, and the share of the labelled items held out of its training."""

    teacher: TeacherSettings = PLAIN.teacher
    augmentation: AugmentSettings = AugmentSettings()
    held_out: float = 0.1

    def __post_init__(self) -> None:
        require_share("recipe.held_out", self.held_out)

    def for_run(self, run: RunFacts) -> "TeacherRecipe":
        return replace(
            self,
            teacher=run.teacher or self.teacher,
            augmentation=replace(self.augmentation, flip=run.flip),
        )


IMAGES = TeacherRecipe()
VECTORS = TeacherRecipe(HEADS.teacher)


@dataclass(frozen=True)
class Baseline:
    """The settings that all baselines have. f is built and trained as the run says."""

    known_recall: float = 0.95  # share of the held-out known items that the threshold calls known
    recipe: TeacherRecipe = IMAGES

    def __post_init__(self) -> None:
        if not 0 < self.known_recall <= 1:
            raise SettingsError(
                f"{type(self).__name__}.known_recall is {self.known_recall}; give the share of "
                "known items to be called known, above 0 and at most 1"
            )

    def for_run(self, run: RunFacts) -> Self:
        return replace(self, recipe=self.recipe.for_run(run))


class KnownParts(NamedTuple):
    """The labelled items to train on, and those held out for the threshold."""

    training: Labelled
    held_out: Labelled


class Closed(NamedTuple):
    """The closed-set classifier f, its training items and the held-out ones."""

    teacher: Teacher
    training: Labelled
    held_out: Labelled


def hold_out(known: Labelled, share: float, *, seed: int) -> KnownParts:
    """Hold out a share of each class: at least one item, and never all."""
    random, is_training = rng(seed, "held out"), np.ones(len(known), bool)
    for c in range(known.n_classes):
        rows = random.permutation(np.flatnonzero(known.labels == c))
        if len(rows) < 2:
            raise DataError(
                f"class {c} has {len(rows)} labelled item; give at least two, "
                "one to learn from and one for the threshold"
            )
        is_training[rows[: min(max(1, round(share * len(rows))), len(rows) - 1)]] = False
    return KnownParts(
        Labelled(known.inputs[is_training], known.labels[is_training]),
        Labelled(known.inputs[~is_training], known.labels[~is_training]),
    )


def check_several_classes(known: Labelled) -> None:
    """Refuse a single known class, for methods that learn to tell classes apart."""
    if known.n_classes < 2:
        raise DataError(
            "there is one known class, and this method learns to tell classes apart; give two at "
            "least, or use one-class-svm, senc-mas or eulac"
        )


def train_closed(
    known: Labelled, recipe: TeacherRecipe, *, seed: int, device: str, allow_one_class: bool = False
) -> Closed:
    """Train f on all but the held-out items: every deep method starts from it."""
    if not allow_one_class:
        check_several_classes(known)
    parts = hold_out(known, recipe.held_out, seed=seed)
    teacher, _ = train_teacher(
        parts.training, recipe.teacher, recipe.augmentation, seed=seed, device=device
    )
    return Closed(teacher, *parts)


def augment_like_f(
    network: Network, recipe: TeacherRecipe, *, seed: int, purpose: str
) -> Callable[[np.ndarray], Tensor]:
    """Turns items into a batch on the network's device, augmented as f's batches are."""
    generator = torch.Generator(network.device).manual_seed(derive(seed, purpose))
    views = Views(network, "weak", recipe.augmentation, generator)
    return lambda items: views.partly(as_tensor(items, network.device), recipe.teacher.augment)


# --- the threshold ---------------------------------------------------------------------------


def threshold_at(held_out_scores: np.ndarray, known_recall: float) -> float:
    """The score that this share of the held-out known items does not exceed.

    >>> threshold_at(np.arange(1.0, 101.0), 0.95)
    95.0
    """
    check_scores(held_out_scores, "held-out labelled item")
    return float(np.quantile(held_out_scores, known_recall, method="inverted_cdf"))


def check_scores(scores: np.ndarray, what: str) -> None:
    """Refuse NaN scores: they are neither above nor below a threshold."""
    if (wrong := np.flatnonzero(np.isnan(scores))).size:
        raise DataError(
            f"{what} {wrong[0]} has no score (of {len(wrong)} such); look for NaN in the items"
        )


def predict_by_threshold(
    scores: np.ndarray, probabilities: np.ndarray, threshold: float, known_scores: np.ndarray
) -> Predictions:
    """Unknown above the threshold, else the most probable known class.

    The confidence in a known class is its probability among the known classes; the confidence in
    "unknown" is the share of held-out known items that score lower.

    >>> predictions = predict_by_threshold(
    ...     np.array([0.0, 7.0]), np.array([[0.6, 0.4], [0.1, 0.9]]), 6.0, np.arange(9.0)
    ... )
    >>> predictions.labels.tolist(), predictions.confidence.tolist(), predictions.nearest.tolist()
    ([0, -1], [0.6, 0.7], [0, 1])
    """
    check_scores(scores, "item")
    return label_items(
        scores > threshold,
        scores,
        nearest=probabilities.argmax(1),
        p_known=probabilities.max(1, initial=0),
        p_unknown=share_below(scores, known_scores),
    )


def label_items(
    is_unknown: np.ndarray,
    scores: np.ndarray,
    *,
    nearest: np.ndarray,
    p_known: np.ndarray,
    p_unknown: np.ndarray,
) -> Predictions:
    """Unknown where ``is_unknown``, else the nearest known class, each with its probability."""
    return Predictions(
        labels=np.where(is_unknown, UNKNOWN, nearest),
        unknown_score=scores,
        confidence=np.where(is_unknown, p_unknown, p_known),
        nearest=nearest,
    )


def at_recall(recogniser: Fitted, held_out: Labelled, known_recall: float) -> Fitted:
    """The recogniser with the threshold that calls this share of the held-out items known."""
    scores = recogniser.predict(held_out.inputs).unknown_score
    threshold = threshold_at(scores, known_recall)
    return replace(recogniser, threshold=threshold)  # type: ignore[type-var]


def share_below(scores: np.ndarray, known_scores: np.ndarray) -> np.ndarray:
    """The share of known items that score lower, the item itself counted among them.

    One minus this is the conformal p-value of "known".

    >>> share_below(np.array([0.0, 2.5, 9.0]), np.array([1.0, 2.0, 3.0])).tolist()
    [0.0, 0.5, 0.75]
    """
    return np.searchsorted(np.sort(known_scores), scores, side="left") / (len(known_scores) + 1)


# --- without a network -----------------------------------------------------------------------


def as_rows(inputs: np.ndarray) -> np.ndarray:
    """(n, D) float32: pixels from 0 to 1, vectors, or the mean of stacked views."""
    rows = one_vector(inputs)
    rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:]))).astype(np.float32)
    return rows / np.float32(255) if inputs.dtype == np.uint8 else rows


@dataclass(frozen=True, eq=False)
class Components:
    """The leading principal components of the labelled items."""

    centre: np.ndarray  # (D,)
    axes: np.ndarray  # (D, k), orthogonal; of unit length, or divided by the deviation along each

    @property
    def n_components(self) -> int:
        return self.axes.shape[1]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """(n, k) float32, summed in float64, so that results do not depend on the batch."""

        def project(part: np.ndarray) -> np.ndarray:
            return (as_rows(part).astype(np.float64) - self.centre) @ self.axes

        return in_chunks(project, inputs, self.n_components).astype(np.float32)


def fit_components(inputs: np.ndarray, n_components: int, *, whiten: bool, seed: int) -> Components:
    """The leading components: at least one, at most ``n_components``."""
    chosen = rng(seed, "principal components").permutation(len(inputs))[:MOST_FITTED]
    sample = as_rows(inputs[chosen]).astype(np.float64)
    if not np.ptp(sample, axis=0).any():
        raise DataError(f"all {len(inputs)} labelled items are the same; give items that differ")
    n_components = min(n_components, sample.shape[1], len(sample))
    state = derive(seed, "principal components") % 2**31
    pca = decomposition.PCA(n_components, random_state=state).fit(sample)
    variances = pca.explained_variance_
    n_real = int((variances > LEAST_VARIANCE * variances[0]).sum())
    axes = pca.components_[:n_real].T.astype(np.float64)
    if whiten:
        axes = axes / np.sqrt(variances[:n_real])
    return Components(pca.mean_.astype(np.float64), axes)


class RowModel(Protocol):
    """Scores of items, fitted to rows that are made of them without batches of a network."""

    @property
    def n_classes(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """(n, 1 + C): the score of each item, then its probability of each known class."""
        ...

    def features(self, inputs: np.ndarray) -> np.ndarray:
        """(n, n_features): the space in which the model separates items."""
        ...


Model = TypeVar("Model", bound=RowModel)


@dataclass(frozen=True, eq=False)
class RowRecogniser(Generic[Model]):
    """A model, and the threshold above which an item is unknown."""

    model: Model
    threshold: float
    known_scores: np.ndarray  # of the held-out items

    def predict(self, inputs: np.ndarray) -> Predictions:
        """Unknown where the score is above the threshold, else the most probable class."""
        found = in_chunks(self.model, inputs, 1 + self.model.n_classes)
        return predict_by_threshold(found[:, 0], found[:, 1:], self.threshold, self.known_scores)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return in_chunks(self.model.features, inputs, self.model.n_features).astype(np.float32)


def with_row_threshold(
    model: Model, held_out: Labelled, known_recall: float, *, threshold: float | None = None
) -> RowRecogniser[Model]:
    """The recogniser with a threshold of its own, or that of held-out known items."""
    scores = in_chunks(model, held_out.inputs, 1 + model.n_classes)[:, 0]
    if threshold is None:
        threshold = threshold_at(scores, known_recall)
    return RowRecogniser(model, threshold, scores)


@dataclass(frozen=True, eq=False)
class ClassRegression:
    """A logistic regression of the known classes on standardised features."""

    centre: np.ndarray  # (d,)
    deviation: np.ndarray  # (d,)
    regression: "LogisticRegression"

    @property
    def n_classes(self) -> int:
        return len(self.regression.classes_)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """(n, C): the probability of each known class."""
        return self.regression.predict_proba((rows - self.centre) / self.deviation)


def fit_regression(rows: np.ndarray, labels: np.ndarray) -> ClassRegression:
    """Standardise the rows and fit the regression to their labels."""
    if labels.max() == 0:
        raise DataError("the labelled items are of one class; give at least two known classes")
    centre, deviation = rows.mean(0), rows.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    regression = linear_model.LogisticRegression(max_iter=2_000)
    return ClassRegression(centre, deviation, regression.fit((rows - centre) / deviation, labels))
