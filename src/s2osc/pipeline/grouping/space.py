"""The space of unknown items: their inputs, without what varies within classes."""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import chunks, unit_rows
from s2osc.lazy import lazily
from s2osc.pipeline.filter.neighbours import CELLS, gradient_histograms
from s2osc.seeding import derive, rng

extmath = lazily("sklearn.utils.extmath")

N_AXES = 50
N_FITTED = 2_000  # items the axes are found with, known and unknown each
IMAGE_SIDE = 32  # larger images are averaged down for the grouping
LONG = 64  # features from which on a vector is compared by its direction
MANY_AXES = 32  # the same after the reduction to principal axes
BESIDE_NUMBERS = 0.1
"""How much a column of two values, such as one of a word, counts beside columns of numbers: it
parts the items of a class as no number does, and the words of a class would be its groups."""
SHRINKAGE = 0.3
"""Of the spread within classes towards a round one: a few classes do not show all of it."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Items in the space: along its axes as they are, and scaled by the spread in known classes."""

    reduced: np.ndarray  # (n, a)
    scaled: np.ndarray  # (n, a)

    def __len__(self) -> int:
        return len(self.scaled)

    def of(self, rows: np.ndarray) -> "Placed":
        """Some of the items."""
        return Placed(self.reduced[rows], self.scaled[rows])


@dataclass(frozen=True, eq=False)
class GroupingSpace:
    """Principal axes of the inputs, scaled by the spread within known classes.

    Images are compared by their gradients, which depend on shape more than on brightness, and long
    vectors by their direction. What varies inside known classes does not separate items. f's
    embedding is not looked at: it was fitted to the known classes, so that nothing learnt from them
    about groups would hold for others.
    """

    input_mean: np.ndarray  # (D,)
    input_scale: np.ndarray  # (D,)
    input_axes: np.ndarray  # (D, a)
    whitening: np.ndarray  # (a, a)

    def transform(self, inputs: np.ndarray) -> np.ndarray:
        """(n, a) float32: the features that are grouped."""
        return self.place(inputs).scaled

    def place(self, inputs: np.ndarray) -> Placed:
        """The same, and what it was before known classes scaled it."""
        return scaled_by(self.whitening, self.reduce(inputs))

    def reduce(self, inputs: np.ndarray) -> np.ndarray:
        """(n, a) float32: the same before the known classes scale it."""
        parts = [self.project(input_features(inputs[rows])) for rows in chunks(len(inputs) or 1)]
        return np.concatenate(parts)

    def project(self, features: np.ndarray) -> np.ndarray:
        """The same of features of the inputs."""
        placed = standardised(features, self.input_mean, self.input_scale) @ self.input_axes
        reduced = unit_rows(placed) if len(self.input_mean) >= LONG else placed
        return np.asarray(reduced, np.float32)


def fit_space(
    known: np.ndarray, labels: np.ndarray, unknown: np.ndarray, *, seed: int
) -> GroupingSpace:
    """The space fitted to labelled known items and to unknown items."""
    random = rng(seed, "grouping space")
    k = random.permutation(len(labels))[:N_FITTED]
    u = random.permutation(len(unknown))[:N_FITTED]
    raw = np.concatenate([input_features(known[k]), input_features(unknown[u])])
    mean, scale = raw.mean(0), np.ones(raw.shape[1], np.float32)
    if known.ndim == 2:
        # Columns of a table have units of their own; a constant column stays as it is.
        spread = raw.std(0)
        scale = np.where(spread > 1e-6 * np.abs(raw).max(0), spread, 1)
        scale = (scale / _weights(raw)).astype(np.float32)
    axes = _principal_axes(standardised(raw, mean, scale), seed)
    space = GroupingSpace(mean, scale, axes, np.eye(axes.shape[1], dtype=np.float32))
    whitening = within_class_whitening(space.project(raw[: len(k)]), labels[k])
    return GroupingSpace(mean, scale, axes, whitening)


def input_features(inputs: np.ndarray) -> np.ndarray:
    """Vectors as they are; images as histograms of gradient directions."""
    if inputs.ndim == 2:
        return inputs.astype(np.float32)
    return np.concatenate(gradient_histograms(shrink(inputs), CELLS), axis=1)


def standardised(rows: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Standardised rows; long vectors at unit length, since only their direction matters.

    >>> standardised(np.array([[3.0, 4.0]]), np.zeros(2), np.ones(2)).tolist()
    [[3.0, 4.0]]
    """
    placed = (rows - mean) / scale
    if rows.shape[1] < LONG:
        return placed
    return unit_rows(placed)


def shrink(images: np.ndarray) -> np.ndarray:
    """Images averaged over blocks to at most 32 x 32."""
    n, height, width = images.shape[:3]
    down, across = -(-height // IMAGE_SIDE), -(-width // IMAGE_SIDE)
    n_down, n_across = height // down, width // across
    cropped = images[:, : n_down * down, : n_across * across]
    blocks = cropped.reshape(n, n_down, down, n_across, across, *images.shape[3:])
    return blocks.mean((2, 4), dtype=np.float32)


def within_class_whitening(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(a, a): what makes the spread within classes round, with some shrinkage.

    Of one class alone, nothing can be said about what all classes share: the space stays as it is.
    """
    if len(np.unique(labels)) < 2:
        return np.eye(rows.shape[1], dtype=np.float32)
    numbers = np.unique(labels, return_inverse=True)[1]
    centres = np.stack([rows[numbers == c].mean(0) for c in range(numbers.max() + 1)])
    inside = rows - centres[numbers]
    values, axes = np.linalg.eigh(inside.T @ inside / len(rows))
    spread = (1 - SHRINKAGE) * np.maximum(values, 0) + SHRINKAGE * max(values.mean(), 1e-12)
    return (axes / np.sqrt(spread)).astype(np.float32)


def whitened(rows: np.ndarray, whitening: np.ndarray) -> np.ndarray:
    """Rows whose spread within classes is about 1 along each axis; of many axes, by direction."""
    scaled = rows @ whitening
    if len(whitening) < MANY_AXES:
        return np.asarray(scaled, np.float32)
    return (unit_rows(scaled) * np.sqrt(len(whitening))).astype(np.float32)


def scaled_by(whitening: np.ndarray, reduced: np.ndarray) -> Placed:
    """Items as they are, and scaled."""
    return Placed(reduced, whitened(reduced, whitening))


def _weights(rows: np.ndarray) -> np.ndarray:
    """(D,) how much each column counts.

    >>> _weights(np.array([[0.5, 0, 1], [0.7, 1, 1], [0.9, 1, 1]])).tolist()
    [1.0, 0.1, 1.0]
    >>> _weights(np.array([[0, 1], [1, 0], [1, 1]])).tolist()
    [1.0, 1.0]
    """
    least, most = rows.min(0), rows.max(0)
    has_two = ((rows == least) | (rows == most)).all(0) & (least < most)
    has_more = ~has_two & (least < most)
    return np.where(has_two & has_more.any(), BESIDE_NUMBERS, 1.0)


def _principal_axes(rows: np.ndarray, seed: int) -> np.ndarray:
    n_axes = min(N_AXES, *rows.shape)
    start = derive(seed, "principal axes")
    _, _, axes = extmath.randomized_svd(rows - rows.mean(0), n_axes, random_state=start)
    return np.asarray(axes.T, np.float32)
