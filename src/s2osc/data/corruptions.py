"""The same items from another source: another camera, another instrument, another typist.

Each change is small enough that a person would still name the class. Images are (n, H, W) or
(n, H, W, 3) uint8, vectors (n, D) or (n, views, D) float32, titles (n,) text. Inputs stay as they
are; what is drawn at random follows the seed.
"""

import io
from collections.abc import Callable
from functools import partial

import numpy as np
from PIL import Image
from scipy.ndimage import gaussian_filter

from s2osc.seeding import rng

WILD_UNITS = (-3.0, 4.0)
"""Powers of ten: the unit of the first column and that of the last."""
SHORTEST_MISTYPED = 4
"""Letters of a word that may get a typing error: the first and the last stay in their places."""


# --- images ----------------------------------------------------------------------------------


def add_noise(images: np.ndarray, deviation: float, *, seed: int) -> np.ndarray:
    """Normal noise on every value, independent of all others; ``deviation`` is of 255."""
    noise = rng(seed, "noise").standard_normal(images.shape, dtype=np.float32)
    return _to_bytes(images + deviation * noise)


def change_brightness(images: np.ndarray, factor: float) -> np.ndarray:
    """Every value times ``factor``.

    >>> change_brightness(np.array([[[0, 100, 250]]], np.uint8), 1.1).tolist()
    [[[0, 110, 255]]]
    """
    return _to_bytes(images * np.float32(factor))


def change_contrast(images: np.ndarray, factor: float) -> np.ndarray:
    """The distance of every value from the mean of its image times ``factor``.

    >>> change_contrast(np.array([[[100, 200]]], np.uint8), 0.9).tolist()
    [[[105, 195]]]
    """
    means = images.mean(axis=tuple(range(1, images.ndim)), keepdims=True)
    return _to_bytes(means + factor * (images - means))


def blur_images(images: np.ndarray, pixels: float) -> np.ndarray:
    """A Gaussian blur with a deviation of so many pixels; the border goes on beyond itself."""
    widths = (0, pixels, pixels, 0)[: images.ndim]
    return _to_bytes(gaussian_filter(images.astype(np.float32), widths, mode="nearest"))


def sharpen_images(images: np.ndarray, amount: float) -> np.ndarray:
    """What a blur of one pixel takes away is added so many times."""
    blurred = gaussian_filter(
        images.astype(np.float32), (0, 1, 1, 0)[: images.ndim], mode="nearest"
    )
    return _to_bytes(images + np.float32(amount) * (images - blurred))


def compress_as_jpeg(images: np.ndarray, quality: int) -> np.ndarray:
    """Each image saved as JPEG and read again."""
    return np.stack([_through_jpeg(image, quality) for image in images]) if len(images) else images


def _through_jpeg(image: np.ndarray, quality: int) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(image).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file))


def shift_pixels(images: np.ndarray, *, down: int = 0, right: int = 0) -> np.ndarray:
    """All images moved alike; the border goes on into the room this leaves.

    >>> shift_pixels(np.array([[[1, 2], [3, 4]]], np.uint8), down=1).tolist()
    [[[1, 2], [1, 2]]]
    """
    height, width = images.shape[1:3]
    rows = np.clip(np.arange(height) - down, 0, height - 1)
    columns = np.clip(np.arange(width) - right, 0, width - 1)
    return images[:, rows][:, :, columns]


def _to_bytes(values: np.ndarray) -> np.ndarray:
    return np.rint(values).clip(0, 255).astype(np.uint8)


# --- vectors ---------------------------------------------------------------------------------


def add_column_noise(vectors: np.ndarray, share: float, *, seed: int) -> np.ndarray:
    """Normal noise on every value, with this share of its column's deviation."""
    noise = rng(seed, "noise").standard_normal(vectors.shape)
    return _to_floats(vectors + share * _deviations(vectors) * noise)


def offset_columns(vectors: np.ndarray, share: float) -> np.ndarray:
    """Every column raised by this share of its deviation.

    >>> offset_columns(np.array([[0, 7], [2, 7]], np.float32), 0.5).tolist()
    [[0.5, 7.0], [2.5, 7.0]]
    """
    return _to_floats(vectors + share * _deviations(vectors))


def change_units(vectors: np.ndarray, powers: tuple[float, float] = WILD_UNITS) -> np.ndarray:
    """The first column times 10 to the first power, the last to the last, evenly between.

    This is no other source: labelled items and pool have the same columns.

    >>> change_units(np.ones((1, 3), np.float32), (0, 2)).tolist()
    [[1.0, 10.0, 100.0]]
    """
    return _to_floats(vectors * 10.0 ** np.linspace(*powers, vectors.shape[-1]))


def _deviations(vectors: np.ndarray) -> np.ndarray:
    return np.asarray(vectors.std(axis=0, dtype=np.float64))


def _to_floats(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)


# --- titles ----------------------------------------------------------------------------------


def lower_case(titles: np.ndarray) -> np.ndarray:
    """Without capitals.

    >>> lower_case(np.array(["How to use LINQ?"])).tolist()
    ['how to use linq?']
    """
    return np.char.lower(titles.astype(str))


def add_typing_errors(titles: np.ndarray, share: float, *, seed: int) -> np.ndarray:
    """One error in this share of the words with four letters or more.

    Two letters change places, one is left out, or one comes twice; never the first or the last.
    """
    random = rng(seed, "typing errors")
    return np.array([_mistype_title(str(title), share, random) for title in titles], dtype=str)


def _mistype_title(title: str, share: float, random: np.random.Generator) -> str:
    words = title.split(" ")
    return " ".join(
        _mistype(word, random)
        if len(word) >= SHORTEST_MISTYPED and random.random() < share
        else word
        for word in words
    )


def _mistype(word: str, random: np.random.Generator) -> str:
    at = int(random.integers(1, len(word) - 2))
    before, first, second, after = word[:at], word[at], word[at + 1], word[at + 2 :]
    ways = (second + first, second, first + first + second)
    return before + ways[random.integers(len(ways))] + after


# --- by name ---------------------------------------------------------------------------------

SourceChange = Callable[[np.ndarray, int], np.ndarray]
"""Items and a seed in, the same items from the other source out."""


def _without_seed(change: Callable[[np.ndarray], np.ndarray]) -> SourceChange:
    return lambda items, _seed: change(items)


def _with_noise(deviation: float) -> SourceChange:
    return lambda images, seed: add_noise(images, deviation, seed=seed)


def _with_column_noise(share: float) -> SourceChange:
    return lambda vectors, seed: add_column_noise(vectors, share, seed=seed)


IMAGE_SOURCES: dict[str, SourceChange] = {
    "noise 4": _with_noise(4),
    "noise 8": _with_noise(8),
    "noise 12": _with_noise(12),
    "brightness +10 %": _without_seed(partial(change_brightness, factor=1.1)),
    "brightness -10 %": _without_seed(partial(change_brightness, factor=0.9)),
    "contrast +10 %": _without_seed(partial(change_contrast, factor=1.1)),
    "contrast -10 %": _without_seed(partial(change_contrast, factor=0.9)),
    "blur 0.5 px": _without_seed(partial(blur_images, pixels=0.5)),
    "JPEG 40": _without_seed(partial(compress_as_jpeg, quality=40)),
    "shift 1 px": _without_seed(partial(shift_pixels, down=1)),
}
VECTOR_SOURCES: dict[str, SourceChange] = {
    "noise 10 %": _with_column_noise(0.1),
    "noise 20 %": _with_column_noise(0.2),
    "offset 0.1": _without_seed(partial(offset_columns, share=0.1)),
}
TITLE_SOURCES: dict[str, SourceChange] = {
    "lower case": _without_seed(lower_case),
    "typing errors": lambda titles, seed: add_typing_errors(titles, 0.2, seed=seed),
}
