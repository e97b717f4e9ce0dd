"""Traces that a source leaves in its items: noise, sharpness, brightness, position.

They differ between cameras, instruments and writers and say little about classes, and they are
measured on the items themselves: no network has a part in them. Compared are items of one predicted
class alone (``comparison``), so what a trace says about classes cancels out.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from s2osc.arrays import chunks, principal_axes
from s2osc.nets.networks import one_vector
from s2osc.pipeline.filter.neighbours import principal_components
from s2osc.seeding import derive, rng

NOISE = "noise"
"""How the traces of noise are named, in images and vectors; a place may follow."""
COLUMN = "column "
"""How the traces that are columns of vectors are named, before their number."""
MISTYPED = "mistyped words"
PIXELS_AT_ONCE = 4_000_000
"""Of images whose traces are measured together, to bound the memory."""
BLOCK = 8
"""Pixels of a side of the blocks that JPEG compresses by themselves."""
BRIGHT, LIT = 0.9, 0.3
"""Of the span of an image: pixels above are bright, or lit at all."""
SATURATED, HALF = 250, 128
"""Values from which on a byte is as good as full, and half full."""
ENDS = (0.05, 0.95)
"""Shares of the content of an image, from above or from the left: where it begins and ends."""
TEXT = "UO"
"""Kinds of arrays that hold texts."""
LONG_WORD = re.compile(r"\w{4,}")
"""Words that are long enough to get a typing error."""
LONGEST_WORD = 30
"""Letters of a word that is looked at for typing errors: what is longer is none."""
MOST_COLUMNS = 40
"""Vectors with more columns are compared by so many principal components."""
TYPICAL_NOISE, FAINT = 0.1, 0.01
"""Of a column's deviation: noise as a source may add it, and differences that mean nothing, such as
those of rounding."""
TIED = 0.05
"""Of a column's deviation: values that are nearer to each other count as about the same."""
MOST_DIRECTIONS = 64
FEWEST_OF_DIRECTION = 2
"""Reference items for each direction: of fewer, some would have hardly any variance by chance."""


class Traces(NamedTuple):
    """The traces of n items, by name."""

    columns: np.ndarray  # (n, m)
    names: tuple[str, ...]

    def mean_of_kinds(self, values: np.ndarray) -> np.ndarray:
        """The mean of ``values`` (m,) over each kind: all columns of vectors are of one."""
        kinds = np.array([COLUMN if name.startswith(COLUMN) else name for name in self.names])
        return np.array([values[kinds == kind].mean() for kind in dict.fromkeys(kinds)])


def measure_traces(
    inputs: np.ndarray, classes: np.ndarray, is_reference: np.ndarray, *, seed: int
) -> Traces:
    """The traces of all items; ``classes`` are predicted ones, reference items are labelled."""
    if inputs.dtype == np.uint8:
        return image_traces(inputs)
    if inputs.dtype.kind in TEXT:
        return text_traces(inputs)
    vectors = one_vector(inputs)
    if vectors.shape[1] > MOST_COLUMNS:
        columns = principal_components(vectors, MOST_COLUMNS, seed=seed)
    else:
        columns = without_ties(vectors, is_reference, seed=seed)
    energy = noise_of_vectors(vectors, classes, is_reference, seed=seed)
    names = (*(f"{COLUMN}{number}" for number in range(columns.shape[1])), NOISE)
    return Traces(np.column_stack([columns, energy]), names)


def added_by_source(items: np.ndarray) -> np.ndarray | None:
    """(n,) what a source adds, and all classes have about as much of; None of vectors.

    Noise of images, in their colours if they have any, and mistyped words of texts.
    """
    if items.dtype.kind in TEXT:
        traces = text_traces(items)
        return traces.columns[:, traces.names.index(MISTYPED)]
    if items.dtype != np.uint8 or min(items.shape[1:3]) < 3:
        return None
    parts = []
    for rows in _image_chunks(items):
        pixels = items[rows].astype(np.float32)
        parts.append(sum(map(_smoother_half, _curvatures(pixels))))
    return np.log1p(np.concatenate(parts))


# --- images ----------------------------------------------------------------------------------


def image_traces(images: np.ndarray) -> Traces:
    """Of images (n, H, W) or (n, H, W, 3), uint8."""
    parts = [_image_traces(images[rows]) for rows in _image_chunks(images)]
    return Traces(np.concatenate([part.columns for part in parts]), parts[0].names)


def _image_chunks(images: np.ndarray) -> list[slice]:
    at_once = max(1, PIXELS_AT_ONCE // max(1, int(np.prod(images.shape[1:]))))
    return chunks(max(len(images), 1), at_once)


def _image_traces(images: np.ndarray) -> Traces:
    pixels = images.astype(np.float32)
    grey = pixels.mean(axis=3) if pixels.ndim == 4 else pixels
    found = _of_values(grey.reshape(len(grey), -1)) | _of_position(grey)
    if min(grey.shape[1:]) >= 3:
        found |= _of_texture(grey)
        if pixels.ndim == 4:
            found |= _of_colours(pixels)
    return Traces(np.stack(list(found.values()), axis=1).astype(np.float64), tuple(found))


def _of_values(pixels: np.ndarray) -> dict[str, np.ndarray]:
    """Brightness and contrast of images (n, pixels)."""
    low, high = pixels.min(axis=1), pixels.max(axis=1)
    above = pixels - low[:, None]
    span = np.maximum(high - low, 1)[:, None]
    lit = np.maximum((above > LIT * span).sum(axis=1), 1)
    half = np.maximum((pixels >= HALF).sum(axis=1), 1)
    return {
        "mean": pixels.mean(axis=1),
        "contrast": pixels.std(axis=1),
        "darkest pixel": low,
        "brightest pixel": high,
        "bright share": (above > BRIGHT * span).sum(axis=1) / lit,
        "saturated share": (pixels >= SATURATED).sum(axis=1) / half,
    }


def _of_position(grey: np.ndarray) -> dict[str, np.ndarray]:
    """Where in an image the content lies: what differs from the border."""
    border = np.concatenate([grey[:, 0], grey[:, -1], grey[:, :, 0], grey[:, :, -1]], axis=1)
    content = np.abs(grey - np.median(border, axis=1)[:, None, None]) + 1e-6
    found = {}
    for name, profile in (("row", content.sum(axis=2)), ("column", content.sum(axis=1))):
        below = np.cumsum(profile, axis=1) / profile.sum(axis=1, keepdims=True)
        found[name] = (1 - below).sum(axis=1)  # the mean
        for end in ENDS:
            found[f"{name}, {end:.0%}"] = _crossing(below, end)
    return found


def _crossing(below: np.ndarray, level: float) -> np.ndarray:
    """(n,) where rising rows (n, m) come to a level, between two places in proportion.

    >>> _crossing(np.array([[0.2, 0.6, 1.0]]), 0.4).round(2).tolist()
    [0.5]
    """
    at = np.argmax(below >= level, axis=1)
    rows = np.arange(len(below))
    before = np.where(at > 0, below[rows, at - 1], 0.0)
    return np.asarray(at - 1 + (level - before) / np.maximum(below[rows, at] - before, 1e-12))


def _of_texture(grey: np.ndarray) -> dict[str, np.ndarray]:
    """Noise, sharpness and the edges of blocks."""
    across, down = (np.abs(np.diff(grey, axis=axis)) for axis in (2, 1))
    steps = across.mean(axis=(1, 2)) + down.mean(axis=(1, 2))
    wide = np.abs(grey[:, :, 2:] - grey[:, :, :-2]).mean(axis=(1, 2))
    wide = wide + np.abs(grey[:, 2:] - grey[:, :-2]).mean(axis=(1, 2))
    curvature = _curvature(grey)
    found = {
        NOISE: _smoother_half(curvature),
        "sharpness": np.log((steps + 1e-3) / (wide + 1e-3)),
        "fine detail": np.log((np.sqrt((curvature**2).mean(axis=(1, 2))) + 1e-3) / (steps + 1e-3)),
    }
    edges = [np.arange(BLOCK - 1, side - 1, BLOCK) for side in (grey.shape[2], grey.shape[1])]
    if all(map(len, edges)):
        at_edges = across[:, :, edges[0]].mean(axis=(1, 2)) + down[:, edges[1]].mean(axis=(1, 2))
        found["edges of blocks"] = np.log((at_edges + 0.1) / (steps + 0.1))
    return found


def _of_colours(pixels: np.ndarray) -> dict[str, np.ndarray]:
    """Of what the channels of images (n, H, W, 3) differ in, where things have hardly any detail.

    Noise is its own in each channel; compression leaves less of colours than of brightness.
    """
    red, blue = _curvatures(pixels)
    return {
        f"{NOISE} in colours": _smoother_half(red) + _smoother_half(blue),
        "detail of colours": red.mean(axis=(1, 2)) + blue.mean(axis=(1, 2)),
    }


def _curvatures(pixels: np.ndarray) -> list[np.ndarray]:
    """Of red and of blue, each without green, or of grey."""
    if pixels.ndim == 3:
        return [_curvature(pixels)]
    return [_curvature(pixels[..., channel] - pixels[..., 1]) for channel in (0, 2)]


def _curvature(grey: np.ndarray) -> np.ndarray:
    """(n, H - 2, W - 2) how far each pixel is from the mean of its four neighbours, times four."""
    middle = grey[:, 1:-1, 1:-1]
    sides = grey[:, :-2, 1:-1] + grey[:, 2:, 1:-1] + grey[:, 1:-1, :-2] + grey[:, 1:-1, 2:]
    return np.abs(4 * middle - sides)


def _smoother_half(curvature: np.ndarray) -> np.ndarray:
    """(n,) the mean over the smoother half of each image, in which there are no edges."""
    flat = curvature.reshape(len(curvature), -1)
    half = max(1, flat.shape[1] // 2)
    return np.partition(flat, half - 1, axis=1)[:, :half].mean(axis=1)


# --- texts -----------------------------------------------------------------------------------


def text_traces(texts: np.ndarray) -> Traces:
    """Of texts (n,): how long they are, what they are written with, and how rare their words are.

    A word with a typing error is found in hardly any other text, but one that is like it is.

    >>> found = text_traces(np.array(["Sort a list", "sort the list", "srot an atom"]))
    >>> found.columns[:, found.names.index("rare words")].tolist()
    [0.0, 0.0, 1.0]
    >>> found.columns[:, found.names.index("mistyped words")].tolist()
    [0.0, 0.0, 0.5]
    """
    words = [LONG_WORD.findall(str(text).lower()) for text in texts]
    n_texts = Counter(word for each in words for word in set(each))
    mistyped = _mistyped(n_texts)
    log_n = dict(zip(n_texts, np.log([*n_texts.values()]), strict=True))
    columns = {
        "length": [np.log1p(len(str(text))) for text in texts],
        "capitals": [_share(str(text), str.isupper) for text in texts],
        "punctuation": [_share(str(text), lambda c: not c.isalnum()) for text in texts],
        "word length": [_mean(map(len, each)) for each in words],
        "rare words": [_mean(n_texts[word] == 1 for word in each) for each in words],
        MISTYPED: [_mean(word in mistyped for word in each) for each in words],
        "frequency of words": [
            float(np.mean([log_n[word] for word in each])) if each else 0.0 for each in words
        ],
    }
    return Traces(np.array(list(columns.values())).T.astype(np.float64), tuple(columns))


def _mistyped(n_texts: Mapping[str, int]) -> set[str]:
    """Words of one text that differ from another word in one letter, not the first or the last.

    It was left out, came twice, is another one or has moved: then both words are the same once an
    inner letter is taken out of one of them, or out of both.
    """
    forms = {word: _without_one_letter(word) for word in n_texts if len(word) <= LONGEST_WORD}
    n_words = Counter(chain.from_iterable(forms.values()))
    return {
        word
        for word, own in forms.items()
        if n_texts[word] == 1 and any(n_words[form] > 1 for form in own)
    }


def _without_one_letter(word: str) -> set[str]:
    """The word, and what is left of it without one of its inner letters.

    >>> sorted(_without_one_letter("sort"))
    ['sort', 'sot', 'srt']
    """
    return {word, *(word[:at] + word[at + 1 :] for at in range(1, len(word) - 1))}


def _share(text: str, is_such: Callable[[str], bool]) -> float:
    return _mean(map(is_such, text))


def _mean(counts: Iterable[int]) -> float:
    """Of whole numbers; numpy takes ten times as long to begin as a short text takes to count."""
    found = list(counts)
    return sum(found) / len(found) if found else 0.0


# --- vectors ---------------------------------------------------------------------------------


def without_ties(vectors: np.ndarray, is_reference: np.ndarray, *, seed: int) -> np.ndarray:
    """The vectors with a little noise on every column, the same share of its deviation.

    Many items may have the very same value, the least or the greatest of a scale. They are compared
    by ranks, so an offset that is nearly right, or rounding, would set all of them apart.
    """
    deviations = vectors[is_reference].std(axis=0, dtype=np.float64)
    noise = rng(seed, "ties").standard_normal(vectors.shape)
    return np.asarray(vectors + TIED * deviations * noise)


def noise_of_vectors(
    vectors: np.ndarray, classes: np.ndarray, is_reference: np.ndarray, *, seed: int
) -> np.ndarray:
    """(n,) the log of how much likelier each vector is with noise on all columns than without.

    Noise is the same share of every column's deviation, and adds as much variance in all
    directions. So it shows where the reference items hardly vary around the means of their
    predicted classes: the square of a vector in a direction of variance v counts
    1 / v - 1 / (v + noise), as the ratio of the likelihoods of two Gaussians says.
    """
    deviations = vectors[is_reference].std(axis=0, dtype=np.float64)
    rate = np.divide(1, deviations, out=np.zeros(len(deviations)), where=deviations > 0)
    centred = (vectors - vectors[is_reference].mean(axis=0)).astype(np.float32)
    for c in np.unique(classes):
        own = is_reference & (classes == c)
        if own.any():
            centred[classes == c] = vectors[classes == c] - vectors[own].mean(axis=0)
    centred *= rate.astype(np.float32)
    reference = centred[is_reference].astype(np.float64)
    n, n_columns = reference.shape
    n_axes = max(1, min(MOST_DIRECTIONS, n_columns, n // FEWEST_OF_DIRECTION))
    axes, lengths = principal_axes(reference, n_axes, seed=derive(seed, "traces") % 2**31)
    along = (centred @ axes.T) ** 2
    shown = along @ _shown_by_noise(lengths**2 / n)
    if n_columns > n_axes:
        left = float((reference**2).sum() - (lengths**2).sum()) / n / (n_columns - n_axes)
        rest = (centred**2).sum(axis=1) - along.sum(axis=1)
        shown = shown + np.maximum(rest, 0) * _shown_by_noise(np.array(max(left, 0.0)))
    return np.asarray(np.log(shown + 1e-9))


def _shown_by_noise(variances: np.ndarray) -> np.ndarray:
    """What squares count in directions in which classes have these variances."""
    without = variances + FAINT**2
    return np.asarray(1 / without - 1 / (without + TYPICAL_NOISE**2))
