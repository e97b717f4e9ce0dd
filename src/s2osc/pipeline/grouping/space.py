"""The space in which unknown items are compared: features of the inputs and of f."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.extmath import randomized_svd

from s2osc.arrays import chunks, unit_rows
from s2osc.pipeline.filter.neighbours import CELLS, gradient_histograms
from s2osc.seeding import derive, rng

N_AXES = 50  # of the inputs, and as many of f's embedding
N_FITTED = 2_000  # items the axes are found with, known and unknown each
IMAGE_SIDE = 32  # larger images are averaged down for the grouping
LONG = 64  # features from which on a vector is compared by its direction


@dataclass(frozen=True, eq=False)
class GroupingSpace:
    """Where unknown items are compared: principal axes of the inputs and of f's embedding.

    Images are compared by their gradients, which depend on shape more than on brightness, and long
    vectors by their direction. f pulls each known class together, so its embedding is scaled by the
    spread *within* classes: what varies inside a class does not separate items.
    """

    input_mean: np.ndarray  # (D,)
    input_scale: np.ndarray  # (D,)
    input_axes: np.ndarray  # (D, a)
    embedding_mean: np.ndarray  # (d,)
    embedding_axes: np.ndarray  # (d, b)

    def transform(self, inputs: np.ndarray, embeddings: np.ndarray) -> np.ndarray:
        """(n, a + b) float32: the features that are grouped."""
        placed = (embeddings - self.embedding_mean) @ self.embedding_axes
        return np.concatenate([self.transform_inputs(inputs), placed.astype(np.float32)], axis=1)

    def transform_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """(n, a) float32: the features that do not need f."""
        parts = [
            place(input_features(inputs[rows]), self.input_mean, self.input_scale) @ self.input_axes
            for rows in chunks(max(len(inputs), 1))
        ]
        return np.concatenate(parts).astype(np.float32)


def fit_space(
    known: tuple[np.ndarray, np.ndarray],
    labels: np.ndarray,
    unknown: tuple[np.ndarray, np.ndarray],
    *,
    seed: int,
) -> GroupingSpace:
    """The space fitted to (inputs, embeddings) of labelled known items and of unknown items."""
    random = rng(seed, "grouping space")
    k = random.permutation(len(labels))[:N_FITTED]
    u = random.permutation(len(unknown[0]))[:N_FITTED]
    raw = np.concatenate([input_features(known[0][k]), input_features(unknown[0][u])])
    embeddings = np.concatenate([known[1][k], unknown[1][u]])
    input_mean, input_scale = raw.mean(0), np.ones(raw.shape[1], np.float32)
    if known[0].ndim == 2:
        # Columns of a table have units of their own; a constant column stays as it is.
        spread = raw.std(0)
        input_scale = np.where(spread > 1e-6 * np.abs(raw).max(0), spread, 1).astype(np.float32)
    inputs = place(raw, input_mean, input_scale)
    input_axes = _principal_axes(inputs, seed)[1]
    embedding_mean, embedding_axes = _principal_axes(embeddings, seed)
    placed = (embeddings[: len(k)] - embedding_mean) @ embedding_axes
    embedding_axes = embedding_axes @ _within_class_scaling(placed, labels[k])
    return GroupingSpace(
        input_mean,
        input_scale,
        _unit_spread(inputs[len(k) :] if len(u) > 1 else inputs, input_axes),
        embedding_mean,
        _unit_spread(embeddings[len(k) :] if len(u) > 1 else embeddings, embedding_axes),
    )


def input_features(inputs: np.ndarray) -> np.ndarray:
    """Vectors as they are; images as histograms of gradient directions."""
    if inputs.ndim == 2:
        return inputs.astype(np.float32)
    small = shrink(inputs)
    return np.concatenate([gradient_histograms(small, n_cells) for n_cells in CELLS], axis=1)


def place(rows: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Standardised rows; long vectors at unit length, since only their direction matters.

    >>> place(np.array([[3.0, 4.0]]), np.zeros(2), np.ones(2)).tolist()
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


def _principal_axes(rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    mean = rows.mean(0)
    n_axes = min(N_AXES, *rows.shape)
    start = derive(seed, "principal axes")
    _, _, axes = randomized_svd(rows - mean, n_axes, random_state=start)
    return mean, axes.T


def _within_class_scaling(rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(b, b): whitens the spread within classes, with a little shrinkage."""
    inside = rows - np.stack([rows[labels == c].mean(0) for c in labels])
    spread = inside.T @ inside / len(rows)
    size = np.trace(spread) / len(spread)
    values, axes = np.linalg.eigh(spread + (0.1 * size + 1e-12) * np.eye(len(spread)))
    return axes / np.sqrt(values)


def _unit_spread(rows: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """The axes scaled to unit spread: inputs and embedding then weigh the same."""
    placed = (rows - rows.mean(0)) @ axes
    return (axes / max(np.sqrt((placed**2).sum(1).mean()), 1e-12)).astype(np.float32)
