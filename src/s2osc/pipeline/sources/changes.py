"""What another source does to items: small changes, and which of them a pool shows.

A change is applied to labelled items so that they look as if they came from the source of the pool.
Every change is small enough that a person would still name the class.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from s2osc.data.corruptions import (
    add_noise,
    add_typing_errors,
    blur_images,
    change_brightness,
    change_contrast,
    compress_as_jpeg,
    lower_case,
    sharpen_images,
    shift_pixels,
)
from s2osc.nets.photo_items import features_of, with_features
from s2osc.pipeline.scaling import MANY_COLUMNS, OF_A_GAUSSIAN, UNSCALED, Scaling
from s2osc.pipeline.sources.traces import FAINT
from s2osc.seeding import rng

MOST_OFFSET = 0.5
"""Of a column's deviation: an offset beyond it is no small change."""
NOISE_SHARES = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4)
"""Of a column's deviation."""
USUAL = 1.5
"""Spreads from the median, beyond which a value counts no more: Huber's choice, which loses hardly
anything where a column is Gaussian."""


class Kind(NamedTuple):
    """A kind of change of images or texts, in different strengths."""

    apply: Callable[[np.ndarray, float, int], np.ndarray]  # items, a strength and a seed
    strengths: Sequence[float]  # that are tried
    words: str


FACTORS = (0.8, 0.85, 0.9, 0.95, 1.05, 1.1, 1.15, 1.2)
IMAGE_KINDS = {
    "noise": Kind(
        lambda x, s, seed: add_noise(x, s, seed=seed),
        (2, 4, 6, 8, 10, 12, 16, 20),
        "noise of about {:g} of 255",
    ),
    "brightness": Kind(
        lambda x, s, _: change_brightness(x, s), FACTORS, "brightness times about {:g}"
    ),
    "contrast": Kind(lambda x, s, _: change_contrast(x, s), FACTORS, "contrast times about {:g}"),
    "blur": Kind(
        lambda x, s, _: blur_images(x, s), (0.3, 0.4, 0.5, 0.6, 0.8, 1.0), "blur of about {:g} px"
    ),
    "sharpening": Kind(
        lambda x, s, _: sharpen_images(x, s), (0.25, 0.5, 1.0), "sharpening by about {:g}"
    ),
    "compression": Kind(
        lambda x, s, _: compress_as_jpeg(x, int(s)), (20, 30, 40, 60, 80), "JPEG of quality {:g}"
    ),
    "rows": Kind(
        lambda x, s, _: shift_pixels(x, down=int(s)), (-2, -1, 1, 2), "a shift of {:g} px down"
    ),
    "columns": Kind(
        lambda x, s, _: shift_pixels(x, right=int(s)), (-2, -1, 1, 2), "a shift of {:g} px right"
    ),
}
TEXT_KINDS = {
    "typing errors": Kind(
        lambda x, s, seed: add_typing_errors(x, s, seed=seed),
        (0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
        "typing errors in about {:.0%} of the longer words",
    ),
    "capitals": Kind(lambda x, _strength, _seed: lower_case(x), (1.0,), "no capitals"),
}


@dataclass(frozen=True)
class KindChange:
    """One kind of change of images or texts, with its strength."""

    kind: str
    strength: float

    @property
    def _how(self) -> Kind:
        return (IMAGE_KINDS | TEXT_KINDS)[self.kind]

    def apply(self, items: np.ndarray, *, seed: int) -> np.ndarray:
        return self._how.apply(items, self.strength, seed)

    def in_words(self) -> str:
        """The change as a person would name it.

        >>> KindChange("noise", 12).in_words()
        'noise of about 12 of 255'
        >>> KindChange("typing errors", 0.2).in_words()
        'typing errors in about 20% of the longer words'
        """
        return self._how.words.format(self.strength)


@dataclass(frozen=True, eq=False)
class ColumnChange:
    """An offset of every column, and noise of a share of its deviation."""

    offset: np.ndarray  # (D,) in spreads
    noise: float
    deviations: np.ndarray  # (D,) of the columns, in spreads
    scaling: Scaling = UNSCALED  # by which vectors were scaled

    def apply(self, vectors: np.ndarray, *, seed: int) -> np.ndarray:
        """Of scaled vectors (n, D), stacked views of them, or the features of photos."""
        columns = features_of(vectors)
        moved = self.scaling.in_spreads(columns) + self.offset
        if self.noise:
            noise = rng(seed, "source noise").standard_normal(columns.shape, dtype=np.float32)
            moved += self.noise * self.deviations * noise
        return with_features(vectors, self.scaling.from_spreads(moved))

    def in_words(self) -> str:
        """The change as a person would name it.

        >>> ColumnChange(np.array([0.3, 0.0]), 0.2, np.ones(2)).in_words()
        "columns moved by up to 0.3 of their deviation, noise of about 20% of a column's deviation"
        """
        parts = []
        moved = np.abs(self.offset) / np.maximum(self.deviations, 1e-12)
        if moved.max(initial=0.0) >= 0.005:
            parts.append(f"columns moved by up to {moved.max():.2g} of their deviation")
        if self.noise:
            parts.append(f"noise of about {100 * self.noise:.0f}% of a column's deviation")
        return ", ".join(parts)


Change = KindChange | ColumnChange


def image_changes() -> list[KindChange]:
    """Every change of images that is tried."""
    return _of_all_strengths(IMAGE_KINDS)


def text_changes() -> list[KindChange]:
    """Every change of texts that is tried."""
    return _of_all_strengths(TEXT_KINDS)


def changes_that_add(*, is_text: bool) -> list[KindChange]:
    """Those that add something that all classes have about as much of."""
    kinds = (
        {"typing errors": TEXT_KINDS["typing errors"]}
        if is_text
        else {"noise": IMAGE_KINDS["noise"]}
    )
    return _of_all_strengths(kinds)


def _of_all_strengths(kinds: Mapping[str, Kind]) -> list[KindChange]:
    return [KindChange(kind, s) for kind, how in kinds.items() for s in how.strengths]


def column_offset(
    pool: np.ndarray,
    labelled: np.ndarray,
    pool_classes: np.ndarray,
    classes: np.ndarray,
    deviations: np.ndarray,
) -> np.ndarray:
    """(D,) how far the columns of the pool lie above those of labelled items of the same class.

    Differences of locations within predicted classes, each weighted by how well it is known: where
    a class hardly varies in a column, it tells the offset of that column best. What a column has
    beyond the same share of its deviation as the others, the median over the columns, counts as
    ``beyond_chance`` says.

    >>> items = np.arange(100.0)[:, None] % 5
    >>> zeros = np.zeros(100, int)
    >>> column_offset(items + 1.0, items, zeros, zeros, np.ones(1)).round(2).tolist()
    [1.0]
    """
    total, precision = np.zeros(pool.shape[1]), np.zeros(pool.shape[1])
    least = np.maximum(FAINT * deviations, 1e-6) ** 2
    for c in np.intersect1d(pool_classes, classes):
        here, there = pool[pool_classes == c], labelled[classes == c]
        if min(len(here), len(there)) < 2:
            continue
        (at_here, of_here), (at_there, of_there) = locations(here), locations(there)
        both = np.concatenate([of_here, of_there])
        variance = np.maximum((both**2).sum(axis=0) / (len(both) - 2 or 1), least)
        weight = len(here) * len(there) / (len(here) + len(there)) / variance
        total, precision = total + weight * (at_here - at_there), precision + weight
    if not precision.any():
        return total
    difference, error = total / precision, 1 / precision
    common = common_share(difference, deviations)
    apart = difference - common * deviations
    return np.asarray(common * deviations + beyond_chance(apart, error))


def beyond_chance(apart: np.ndarray, error: np.ndarray) -> np.ndarray:
    """(D,) differences with what chance explains taken off, given the squares of their errors.

    A column counts by itself, less the share of its square that chance explains. Of many, only one
    that lies farther off than any of so many does by chance; the others count as much as they vary
    beyond chance all together (empirical Bayes), so that the errors of a thousand columns do not
    add up to an offset of their own.

    >>> beyond_chance(np.array([2.0, -2.0, 0.5]), np.ones(3)).tolist()
    [1.5, -1.5, 0.0]
    >>> beyond_chance(np.append(np.tile([1.0, -1.0], 100), 9.0), np.ones(201))[[0, 1, 200]].round(2)
    array([ 0.  , -0.  ,  8.89])
    """
    ratio = apart**2 / np.maximum(error, 1e-12)
    by_itself = ratio > 2 * np.log(max(len(ratio), 2))  # the largest of so many squares of chance
    if len(ratio) < MANY_COLUMNS:
        by_itself[:] = True
    further = max(0.0, float(ratio[~by_itself].mean()) - 1) if not by_itself.all() else 0.0
    share = np.where(by_itself, 1 - 1 / np.maximum(ratio, 1.0), further / (1 + further))
    return np.asarray(apart * share)


def common_share(apart: np.ndarray, deviations: np.ndarray) -> float:
    """The median over columns of how far they lie apart, in deviations.

    >>> common_share(np.array([0.1, 0.2, 9.0, 5.0]), np.array([1.0, 1.0, 3.0, 0.0]))
    0.2
    """
    varies = deviations > 0
    return float(np.median(apart[varies] / deviations[varies])) if varies.any() else 0.0


def locations(items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(D,) where the columns of items (n, D) lie, whatever their tails, and (n, D) what is left.

    The median, moved by the mean distance from it, far values counting no more than usual ones (one
    step of Huber's estimate).

    >>> locations(np.array([[0.0], [1.0], [2.0], [3.0], [1e9]]))[0].round(2).tolist()
    [2.04]
    """
    median = np.median(items, axis=0)
    usual = USUAL * OF_A_GAUSSIAN * np.median(np.abs(items - median), axis=0)
    near = np.clip(items - median, -usual, usual)
    return median + near.mean(axis=0), near - near.mean(axis=0)
