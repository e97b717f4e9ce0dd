"""Vectors on one scale, so that no answer depends on the units of a column.

Every column is counted in spreads from its median, and heavy tails are tamed. Many columns of
comparable spread are an embedding: they keep their proportions, and so items keep their direction.
This happens once, where items enter the method: networks, neighbours, filter and groups see scaled
vectors alone.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.arrays import chunks
from s2osc.nets.photo_items import features_of, with_features
from s2osc.types import Labelled

N_FITTED = 20_000  # items the scale is found with, labelled and of the pool each
OF_A_GAUSSIAN = 1.4826  # deviation over the median distance from the median
ROUNDING = 1e-6  # relative to the values: float32 holds no smaller differences
LINEAR = 5.0  # spreads; a Gaussian column has one value in two million beyond
MANY_COLUMNS, COMPARABLE = 100, 10.0
"""From so many columns on, whose spreads differ by at most this factor (without the 5 % smallest
and largest), vectors are an embedding. A table has fewer columns, or units that differ by more."""
CHUNK = 1_024


@dataclass(frozen=True, eq=False)
class Scaling:
    """Median, spread and weight of every column; empty where items stay as they are."""

    centre: np.ndarray  # (D,) float64
    spread: np.ndarray  # (D,) float64; 0: the column is constant, and says nothing
    weight: np.ndarray  # (D,) float64: the spread after scaling, 1 unless it is an embedding

    def transform(self, inputs: np.ndarray) -> np.ndarray:
        """Vectors (n, D), or stacked views of them, as float32; images unchanged.

        Of photos, the features.
        """
        if not len(self.centre):
            return inputs
        rate = np.divide(1, self.spread, out=np.zeros(len(self.spread)), where=self.spread > 0)
        vectors = features_of(inputs)
        scaled = np.empty(vectors.shape, np.float32)
        for rows in chunks(len(vectors), CHUNK):
            scaled[rows] = tame((vectors[rows] - self.centre) * rate) * self.weight
        return with_features(inputs, scaled)

    def transform_items(self, items: Labelled) -> Labelled:
        return Labelled(self.transform(items.inputs), items.labels)

    def in_spreads(self, scaled: np.ndarray) -> np.ndarray:
        """Scaled vectors in spreads of each column, their tails as they were, float64.

        What an instrument adds to a column is the same for small values and for large ones.
        """
        wide = scaled.astype(np.float64)
        return untame(wide / self.weight) if len(self.weight) else wide

    def from_spreads(self, vectors: np.ndarray) -> np.ndarray:
        """The inverse of ``in_spreads``, float32."""
        scaled = tame(vectors) * self.weight if len(self.weight) else vectors
        return scaled.astype(np.float32)

    def completed(self, inputs: np.ndarray) -> "Scaling":
        """With the scale of ``inputs`` where a column was constant so far."""
        if not len(self.centre) or self.spread.all() or not len(inputs):
            return self
        new = fit_scaling(inputs)
        was_constant = self.spread == 0
        # A column that stays constant keeps its value: others than that may follow.
        is_new = was_constant & (new.spread > 0)
        return Scaling(
            np.where(is_new, new.centre, self.centre),
            np.where(is_new, new.spread, self.spread),
            np.where(is_new, new.weight, self.weight),
        )


UNSCALED = Scaling(np.empty(0), np.empty(0), np.empty(0))


def fit_scaling(*parts: np.ndarray) -> Scaling:
    """The scale of labelled items and pool together; images stay as they are.

    The spread is the median distance of those items that do not lie at the median, as a deviation.
    So it is that of a Gaussian column, it ignores how far the farthest items lie, and a column of
    mostly zeros or of zeros and ones is scaled by what else it holds, however rare that is. It is
    the larger one of labelled items and pool: zeros that another source moves a little, or gives a
    little noise, would make a small spread of nothing but that. For the same reason a column in
    which one of the two does not vary has the standard deviation of all, which far values raise.

    >>> fit_scaling(np.array([[0.0], [0.0], [0.0], [2.0]]), np.full((4, 1), 0.1)).spread.tolist()
    [2.9652]
    """
    if parts[0].dtype == np.uint8:
        return UNSCALED
    samples = [_rows_of_vectors(part[:: -(-len(part) // N_FITTED) or 1]) for part in parts]
    together = np.concatenate(samples).T.astype(np.float64)
    centre = np.array([_lower_median(column) for column in together])
    spreads = np.array([_spreads(sample) for sample in samples if len(sample)])
    spread, is_constant = spreads.max(axis=0), ~spreads.all(axis=0)
    spread[is_constant] = np.maximum(spread, _deviations(together))[is_constant]
    return Scaling(centre, spread, _weights(spread))


def _weights(spread: np.ndarray) -> np.ndarray:
    """Of columns: their spreads over the median one in an embedding, 1 in a table."""
    weights, varies = np.ones(len(spread)), spread > 0
    if varies.sum() < MANY_COLUMNS:
        return weights
    low, middle, high = np.quantile(spread[varies], (0.05, 0.5, 0.95))
    if high > COMPARABLE * low:
        return weights
    # Beyond the factor a column is no part of the embedding, and none outweighs all others.
    weights[varies] = np.clip(spread[varies] / middle, 1 / COMPARABLE, COMPARABLE)
    return weights


def _rows_of_vectors(inputs: np.ndarray) -> np.ndarray:
    """Vectors, stacked views of them, or features of photos, one in each row."""
    vectors = features_of(inputs)
    return vectors.reshape(-1, vectors.shape[-1])


def _spreads(vectors: np.ndarray) -> np.ndarray:
    """(D,) the spread of each column."""
    return np.array([_spread(column) for column in vectors.T.astype(np.float64)])


def _deviations(columns: np.ndarray) -> np.ndarray:
    """(D,) the standard deviation of each column (D, n); 0 where rounding alone makes it."""
    deviations = columns.std(axis=1)
    largest = np.abs(columns).max(axis=1)
    return np.asarray(np.where(deviations > ROUNDING * largest, deviations, 0.0))


def _spread(column: np.ndarray) -> float:
    centre = _lower_median(column)
    distance = np.abs(column - centre)
    differs = distance > ROUNDING * np.maximum(np.abs(column), abs(centre))
    return OF_A_GAUSSIAN * _lower_median(distance[differs]) if differs.any() else 0.0


def _lower_median(values: np.ndarray) -> float:
    """A value that occurs, also of an even number: zeros and ones have no median of a half."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def tame(scaled: np.ndarray) -> np.ndarray:
    """Linear up to 5 spreads, logarithmic beyond, and smooth where the two meet.

    >>> tame(np.array([-3.0, 5.0, 105.0, 1e15])).round(1).tolist()
    [-3.0, 5.0, 9.6, 39.5]
    """
    beyond = np.maximum(np.abs(scaled) - LINEAR, 0)
    return np.clip(scaled, -LINEAR, LINEAR) + np.sign(scaled) * np.log1p(beyond)


def untame(tamed: np.ndarray) -> np.ndarray:
    """The values that ``tame`` made these of.

    >>> untame(tame(np.array([-3.0, 5.0, 105.0]))).round(6).tolist()
    [-3.0, 5.0, 105.0]
    """
    beyond = np.maximum(np.abs(tamed) - LINEAR, 0)
    return np.clip(tamed, -LINEAR, LINEAR) + np.sign(tamed) * np.expm1(beyond)
