"""Arrays of one run -> what a record carries for its figures: points in the plane, small images."""

import base64
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
from PIL import Image

from s2osc.arrays import leading_components, tsne
from s2osc.codec import JsonObject
from s2osc.errors import DataError
from s2osc.seeding import rng
from s2osc.types import IMAGE_NDIMS, UNKNOWN, Answer, Predictions, Split

GRID = 1000
"""Points lie on whole numbers from 0 to this: finer than any print, and short in a record."""
N_COMPONENTS = 50
FEWEST_FOR_TSNE = 20  # below it, neighbourhoods are too small to mean anything
LARGEST_SIDE = 64  # pixels of a stored image


def pictures_of(
    kinds: Sequence[str], split: Split, fitted: Any, predictions: Predictions, *, seed: int
) -> JsonObject:
    """Those of the wanted pictures that a run can give; ``predictions`` are for the pool.

    A gallery needs a method that filters, counterfactuals one that makes some, both images.
    """
    pictures: JsonObject = {}
    if "embedding" in kinds:
        features = fitted.features(split.pool)
        pictures["embedding"] = embedding_of(features, split.truth, predictions.labels, seed=seed)
    if "gallery" in kinds and isinstance(predictions, Answer) and split.pool.dtype == np.uint8:
        pictures["gallery"] = gallery_of(split.pool, predictions.filtered, split.truth, seed=seed)
    examples = getattr(fitted, "examples", None)
    if "counterfactuals" in kinds and examples and examples.originals.dtype == np.uint8:
        pictures["counterfactuals"] = counterfactuals_of(*examples)
    return pictures


def embedding_of(
    features: np.ndarray, truth: np.ndarray, labels: np.ndarray, *, n: int = 800, seed: int
) -> dict[str, list[int]]:
    """Where at most ``n`` items drawn at random lie in the plane, what they are and were called.

    Which items are drawn depends on the seed and on how many there are, so that all methods
    show the same items of one pool.
    """
    items = np.sort(rng(seed, "embedding").permutation(len(features))[:n])
    points = _on_grid(_in_plane(features[items], seed=seed))
    return {
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "truth": truth[items].astype(int).tolist(),
        "label": labels[items].astype(int).tolist(),
    }


def gallery_of(
    pool: np.ndarray, filtered: np.ndarray, truth: np.ndarray, *, n: int = 20, seed: int
) -> JsonObject:
    """Random items taken as distinct unknowns, beside random unknown ones that were not.

    ``filtered`` is true for every item taken. Of each image drawn, ``..._true`` says whether it is
    unknown in truth.
    """
    _check_images(pool, "the gallery's pool")
    is_unknown = truth == UNKNOWN
    gallery: JsonObject = {}
    for name, is_candidate in (("filtered", filtered), ("unselected", is_unknown & ~filtered)):
        drawn = rng(seed, f"gallery {name}").permutation(np.flatnonzero(is_candidate))[:n]
        gallery[name] = [_png(image) for image in pool[drawn]]
        gallery[f"{name}_true"] = is_unknown[drawn].tolist()
    return gallery


def counterfactuals_of(
    originals: np.ndarray, reconstructions: np.ndarray, counterfactuals: np.ndarray, *, n: int = 10
) -> dict[str, list[str]]:
    """The first images, what a generator makes of them, and the same moved off all known classes.

    Each is uint8 from 0 to 255, or float from 0 to 1 as generators give them.
    """
    kinds = {
        "original": originals,
        "reconstruction": reconstructions,
        "counterfactual": counterfactuals,
    }
    if len({images.shape for images in kinds.values()}) > 1:
        shapes = ", ".join(f"{kind} {images.shape}" for kind, images in kinds.items())
        raise DataError(f"the images differ in shape ({shapes}); give one of each kind per item")
    return {
        kind: [_png(image) for image in _as_bytes(images[:n], kind)]
        for kind, images in kinds.items()
    }


def picture_of(png: str) -> np.ndarray:
    """The pixels of a stored image: (H, W) or (H, W, 3) uint8."""
    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        return np.asarray(picture)


def _in_plane(features: np.ndarray, *, seed: int) -> np.ndarray:
    """t-SNE of the first principal components; those themselves where items are few."""
    components = leading_components(features, N_COMPONENTS)
    if len(features) < FEWEST_FOR_TSNE or not components.any():
        return components[:, :2]
    return tsne(components, seed=seed)


def _on_grid(points: np.ndarray) -> np.ndarray:
    """Whole numbers from 0 to GRID along the longer side; both axes share one scale."""
    if not len(points):
        return points.astype(int)
    moved = points - points.min(axis=0)
    return np.rint(moved * GRID / (moved.max() or 1.0)).astype(int)


def _as_bytes(images: np.ndarray, what: str) -> np.ndarray:
    if np.issubdtype(images.dtype, np.floating):
        if len(images) and not (images.min() >= 0 and images.max() <= 1):
            raise DataError(
                f"{what} holds values from {images.min():.3g} to {images.max():.3g}; "
                "give float images from 0 to 1, or uint8"
            )
        images = np.rint(images * 255).astype(np.uint8)
    _check_images(images, what)
    return images


def _check_images(images: np.ndarray, what: str) -> None:
    is_colour = images.ndim == max(IMAGE_NDIMS)
    if images.ndim not in IMAGE_NDIMS or (is_colour and images.shape[-1] != 3):
        raise DataError(f"{what} has shape {images.shape}; give images, N x H x W or N x H x W x 3")
    if images.dtype != np.uint8:
        raise DataError(f"{what} holds images of type {images.dtype}; give uint8 from 0 to 255")


def _png(image: np.ndarray) -> str:
    """A PNG in base64, no larger than it needs to be."""
    picture = Image.fromarray(image)
    picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()
