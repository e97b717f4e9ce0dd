"""The nouns that pass between modules, and the contract every method keeps.

Tensors live inside networks; every seam between modules is a numpy array. Inputs are images,
``(n, H, W)`` or ``(n, H, W, 3)`` uint8, or vectors, ``(n, D)`` float32.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from s2osc.errors import DataError

UNKNOWN = -1
"""The one label outside the known classes 0 .. C-1."""

UNSURE = -2
"""What an item between sure-known and sure-unknown is called, where that was asked for."""

IMAGE_NDIMS = (3, 4)
NUMBERS = "buifO"
"""Kinds of arrays that may hold vectors; objects only where each of them is a number."""
LARGEST_INPUT = 1e15
"""Distances add up squares of differences in float32, which ends at 3e38: of values up to 1e15, a
row of ten million columns still has a finite sum."""


def check_inputs(inputs: np.ndarray, what: str) -> np.ndarray:
    """Return ``inputs`` as images or vectors the networks take, or raise one line on what is wrong.

    >>> check_inputs(np.zeros((2, 3)), "the pool").dtype
    dtype('float32')
    """
    if 0 in inputs.shape[1:]:
        raise DataError(f"{what} holds items of shape {inputs.shape[1:]}; give items of some size")
    if inputs.ndim in IMAGE_NDIMS:
        if inputs.dtype != np.uint8:
            raise DataError(
                f"{what} holds images of type {inputs.dtype}; give uint8 values from 0 to 255"
            )
        if inputs.ndim == 4 and inputs.shape[3] != 3:
            raise DataError(
                f"{what} holds images with {inputs.shape[3]} channels; "
                "give N x H x W or N x H x W x 3"
            )
        return inputs
    if inputs.ndim != 2:
        raise DataError(
            f"{what} has {inputs.ndim} axes; give vectors (N x D) or images (N x H x W [x 3])"
        )
    if inputs.dtype.kind not in NUMBERS:
        raise DataError(f"{what} holds values of type {inputs.dtype}; give numbers")
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused below
        try:
            vectors = np.ascontiguousarray(inputs, dtype=np.float32)
        except (TypeError, ValueError, OverflowError) as error:
            raise DataError(f"{what} cannot be read as numbers: {error}") from error
        # Extremes of rows, without a copy of the whole array; NaN passes through both.
        largest = np.maximum(vectors.max(axis=1), -vectors.min(axis=1))
    if len(vectors) and not largest.max() <= LARGEST_INPUT:
        raise DataError(_describe_value(inputs, ~(largest <= LARGEST_INPUT), what))
    return vectors


def _describe_value(inputs: np.ndarray, broken: np.ndarray, what: str) -> str:
    """One line on the rows with values that cannot be used, and the first such value."""
    row = int(np.argmax(broken))
    values = inputs[row].astype(np.float64)
    column = int(np.argmax(~(np.abs(values) <= LARGEST_INPUT)))
    many = f"in {int(broken.sum())} of {len(inputs)} vectors (first: row {row}, column {column}"
    if not np.isfinite(values[column]):
        return f"{what} holds NaN or infinite values {many}); remove or fill them"
    return (
        f"{what} holds values beyond {LARGEST_INPUT:g} {many}, {values[column]:g}); "
        "bring that column to a scale near 1"
    )


@dataclass(frozen=True)
class Labelled:
    """Inputs of known classes with one label each."""

    inputs: np.ndarray  # (n, ...) images or vectors
    labels: np.ndarray  # (n,) int, 0 .. C-1

    def __post_init__(self) -> None:
        if len(self.inputs) != len(self.labels):
            raise DataError(
                f"{len(self.inputs)} items came with {len(self.labels)} labels; "
                "give exactly one label per item"
            )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        return int(self.labels.max()) + 1


@dataclass(frozen=True)
class Split:
    """What a method may see (``known``, ``pool``), and the truth it is judged by."""

    known: Labelled
    pool: np.ndarray  # (n, ...)
    truth: np.ndarray  # (n,) int: a known class, or UNKNOWN
    truth_classes: np.ndarray  # (n,) int: the class of the data set, also where it is unknown
    known_classes: tuple[int, ...]  # the data set's number of each known class
    unknown_classes: tuple[int, ...]
    held_out: np.ndarray  # (m, ...) items that no method gets before it is judged by them
    held_out_truth: np.ndarray  # (m,)
    held_out_classes: np.ndarray  # (m,)


@dataclass(frozen=True)
class Predictions:
    """The answer of a recogniser for n inputs.

    ``labels`` holds a known class or ``UNKNOWN``. ``unknown_score`` rises with the belief that the
    input is unknown, whatever the sign of the method's own score.
    """

    labels: np.ndarray  # (n,) int
    unknown_score: np.ndarray  # (n,) float
    confidence: np.ndarray  # (n,) float: probability of the label given
    nearest: np.ndarray | None = field(default=None, kw_only=True)
    """(n,) int: the best known class of each item, also of those called unknown."""
    p_known: np.ndarray | None = field(default=None, kw_only=True)
    """(n,) float: the share of known items at least as strange; None: nothing was held back."""


@dataclass(frozen=True)
class Answer(Predictions):
    """Predictions with everything else a user reads about each item: one row of the table each."""

    groups: np.ndarray  # (n,) int: group of an unknown item from 0, -1 where the label is known
    distinctness: np.ndarray  # (n,) float: w, how far the item stands from every known class
    filtered: np.ndarray  # (n,) bool: taken as a distinct unknown before the student was trained

    @property
    def is_unknown(self) -> np.ndarray:
        return self.labels == UNKNOWN

    @property
    def is_unsure(self) -> np.ndarray:
        return self.labels == UNSURE


class Recogniser(Protocol):
    """A fitted method. It only predicts, and gives the features it uses.

    ``features`` is (n, d): the space in which the method separates items. Unknown items are
    grouped in it, and pictures of it are drawn.
    """

    def predict(self, inputs: np.ndarray) -> Predictions: ...

    def features(self, inputs: np.ndarray) -> np.ndarray: ...


class Method(Protocol):
    """A recipe: a frozen dataclass whose fields are its hyper-parameters.

    ``fit`` leaves it unchanged. Inductive methods ignore ``pool``.
    """

    def fit(
        self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu"
    ) -> Recogniser: ...
