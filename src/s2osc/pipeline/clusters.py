"""Group the items answered unknown: k-means over their embeddings, and how many groups."""

from dataclasses import dataclass

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from s2osc.errors import SettingsError
from s2osc.seeding import derive, rng

MAX_GROUPS = 10
SILHOUETTE_SAMPLE = 2_000


@dataclass(frozen=True)
class ClusterSettings:
    """How many groups of unknown items there are; ``None`` chooses by silhouette."""

    n_groups: int | None = None
    one_group_below: float = 0.25  # a best silhouette under this means one group

    def __post_init__(self) -> None:
        if self.n_groups is not None and self.n_groups < 1:
            raise SettingsError(f"the number of groups is {self.n_groups}; give a number from 1")


@dataclass(frozen=True, eq=False)
class Grouping:
    """The centres of the groups of unknown items, largest group first."""

    centres: np.ndarray  # (n_groups, d)

    def assign(self, embeddings: np.ndarray) -> np.ndarray:
        """The nearest centre of each row; the one group there is where the fit found none."""
        if len(self.centres) == 0:
            return np.zeros(len(embeddings), int)
        squares = (self.centres**2).sum(1) - 2 * embeddings @ self.centres.T
        return squares.argmin(1)


def fit_kmeans(embeddings: np.ndarray, n_groups: int, seed: int) -> np.ndarray:
    """k-means centres, best of several starts."""
    start = derive(seed, f"k-means {n_groups}") % 2**31
    return KMeans(n_groups, n_init=4, random_state=start).fit(embeddings).cluster_centers_


def choose_n_groups(embeddings: np.ndarray, settings: ClusterSettings, seed: int) -> int:
    """The k of the largest silhouette over a sample, or 1 where even that one is small.

    The silhouette is not defined for one group, hence the threshold.
    """
    random = rng(seed, "silhouette")
    size = min(len(embeddings), SILHOUETTE_SAMPLE)
    sample = embeddings[random.choice(len(embeddings), size, replace=False)]
    distinct = len(np.unique(sample, axis=0))
    best_k, best = 1, settings.one_group_below
    for k in range(2, min(MAX_GROUPS, distinct - 1) + 1):
        labels = Grouping(fit_kmeans(sample, k, seed)).assign(sample)
        value = silhouette_score(sample, labels)
        if value > best:
            best_k, best = k, value
    return best_k


def group_unknown(embeddings: np.ndarray, settings: ClusterSettings, *, seed: int) -> Grouping:
    """Sub-divide the unknown items, at most one group per distinct embedding."""
    if len(embeddings) == 0:
        return Grouping(np.empty((0, embeddings.shape[1]), np.float32))
    n_groups = settings.n_groups or choose_n_groups(embeddings, settings, seed)
    n_groups = min(n_groups, len(np.unique(embeddings, axis=0)))
    grouping = Grouping(fit_kmeans(embeddings, n_groups, seed))
    sizes = np.bincount(grouping.assign(embeddings), minlength=n_groups)
    return Grouping(grouping.centres[np.argsort(-sizes, kind="stable")])
