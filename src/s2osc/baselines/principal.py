"""What methods without a network share: principal components, and a classifier of known items."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from s2osc.arrays import in_chunks
from s2osc.baselines.recipe import as_rows
from s2osc.errors import DataError
from s2osc.seeding import derive, rng

FIT_ON = 10_000
"""Principal components are found from so many items at most."""
LEAST_VARIANCE = 1e-6
"""A component with less than this share of the first one's variance is rounding, not data."""


@dataclass(frozen=True, eq=False)
class Principal:
    """The leading principal components of the labelled items."""

    centre: np.ndarray  # (D,)
    axes: np.ndarray  # (D, k), orthogonal; of unit length, or divided by the deviation along each

    @property
    def n_components(self) -> int:
        return self.axes.shape[1]

    def __call__(self, inputs: np.ndarray) -> np.ndarray:
        """(n, k) float32. The sums are float64: how items are batched must not show in a cut."""

        def of(part: np.ndarray) -> np.ndarray:
            return (as_rows(part).astype(np.float64) - self.centre) @ self.axes

        return in_chunks(of, inputs, self.n_components).astype(np.float32)


def find_principal(inputs: np.ndarray, n_components: int, *, whiten: bool, seed: int) -> Principal:
    """The leading components of at least one and at most ``n_components`` dimensions."""
    chosen = rng(seed, "principal components").permutation(len(inputs))[:FIT_ON]
    sample = as_rows(inputs[chosen]).astype(np.float64)
    if not np.ptp(sample, axis=0).any():
        raise DataError(f"all {len(inputs)} labelled items are the same; give items that differ")
    n_components = min(n_components, sample.shape[1], len(sample))
    state = derive(seed, "principal components") % 2**31
    found = PCA(n_components, random_state=state).fit(sample)
    n_real = int((found.explained_variance_ > LEAST_VARIANCE * found.explained_variance_[0]).sum())
    axes = found.components_[:n_real].T.astype(np.float64)
    if whiten:
        axes = axes / np.sqrt(found.explained_variance_[:n_real])
    return Principal(found.mean_.astype(np.float64), axes)


@dataclass(frozen=True, eq=False)
class Namer:
    """Which known class a row belongs to: logistic regression on standardised features."""

    centre: np.ndarray  # (d,)
    deviation: np.ndarray  # (d,)
    regression: LogisticRegression

    @property
    def n_classes(self) -> int:
        return len(self.regression.classes_)

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """(n, C): the probability of each known class."""
        return self.regression.predict_proba((rows - self.centre) / self.deviation)


def learn_names(rows: np.ndarray, labels: np.ndarray) -> Namer:
    """Fit the classifier that names known items."""
    if labels.max() == 0:
        raise DataError("the labelled items are of one class; give at least two known classes")
    centre, deviation = rows.mean(0), rows.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    regression = LogisticRegression(max_iter=2_000)
    return Namer(centre, deviation, regression.fit((rows - centre) / deviation, labels))
