"""Pick the pool items that are clearly unknown, before any student is trained (Eq. 2).

The paper ranks them by w. With labelled items hidden in the pool there are more signs (``signs``),
and an estimate of how pure the top of the ranking is, which determines K.
"""

import warnings
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from s2osc.errors import S2OSCWarning
from s2osc.pipeline.audit.statistics import Purity
from s2osc.pipeline.teacher import TeacherOutputs
from s2osc.settings import require_choice, require_least, require_share

PAPER_K = 300
FEWEST_DISTINCT = 10


@dataclass(frozen=True)
class FilterSettings:
    """How the most distinct items are found, and how many are taken."""

    by: Literal["paper", "seeds"] = "paper"  # rank by w, or by all signs, weighed by the seeds
    k: int | None = None  # K: items in D_out, of each class in D_in; None: what is pure, or fits
    purity: float = 0.7  # of D_out, at least, where seeds choose K
    distance_weight: float = 1.0  # lambda; 0 ranks by entropy alone
    scale: Literal["paper", "standardised"] = "paper"  # u and d raw, or over their deviation

    def __post_init__(self) -> None:
        require_least("K", self.k, 1)
        require_least("filtering.distance_weight (lambda)", self.distance_weight, 0)
        require_choice("the filter", self.by, ("seeds", "paper"))
        require_share("filtering.purity", self.purity)
        require_choice("filtering.scale", self.scale, ("standardised", "paper"))


class Units(NamedTuple):
    """In what units entropy and distance are counted: one of each weighs the same."""

    entropy: float
    distance: float


class Partition(NamedTuple):
    """The pool in two parts: row numbers, sorted."""

    unknown: np.ndarray  # D_out
    undecided: np.ndarray  # U


def units(teacher_outputs: TeacherOutputs, settings: FilterSettings) -> Units:
    """The deviation of entropy and distance over the pool, or 1 and 1 for the paper's formula.

    A squared distance in an embedding may be a hundred times an entropy, which is at most log C:
    added as they are, the sum is the distance. Constant terms (deviation 0) count as they are.
    """
    if settings.scale == "paper":
        return Units(1.0, 1.0)
    return Units(
        float(teacher_outputs.entropy.std()) or 1.0, float(teacher_outputs.distance.std()) or 1.0
    )


def distinctness(
    teacher_outputs: TeacherOutputs, unit: Units, settings: FilterSettings
) -> np.ndarray:
    """w = u + lambda d (Eq. 2), each in its unit.

    >>> zeros = np.zeros((2, 2))
    >>> teacher_outputs = TeacherOutputs(zeros, np.array([0.5, 0.1]), np.array([1.0, 4.0]), zeros)
    >>> distinctness(teacher_outputs, Units(1, 1), FilterSettings(distance_weight=0.5)).tolist()
    [1.0, 2.1]
    """
    return (
        teacher_outputs.entropy / unit.entropy
        + settings.distance_weight * teacher_outputs.distance / unit.distance
    )


def pure_k(purity: Purity, n_most: int, settings: FilterSettings) -> int:
    """The largest D_out whose purity holds by its lower bound, or else the purest.

    >>> falling = np.array([0.0, 0.5, 0.8, 0.75, 0.6, 0.3])
    >>> pure_k(Purity(falling, falling), 300, FilterSettings())
    4
    """
    low = purity.low[: max(1, min(n_most, len(purity.low)))]
    holds = np.flatnonzero(low >= settings.purity)
    if len(holds):
        return int(holds[-1]) + 1
    return max(min(FEWEST_DISTINCT, len(low)), int(low.argmax()) + 1)


def affordable_k(settings: FilterSettings, n_pool: int, class_sizes: np.ndarray) -> int:
    """K as asked for, or as far as pool and classes allow; then a warning says so.

    D_out is never larger than the largest class of D_in, and a K that was not asked for takes at
    most a quarter of the pool: more would call a small pool unknown as a whole.

    >>> affordable_k(FilterSettings(), 16_000, np.array([4_000, 4_000]))
    300
    >>> affordable_k(FilterSettings(), 200, np.array([400, 80]))
    50
    """
    fits = max(1, min(n_pool // 4, int(class_sizes.max())))
    if settings.k is None:
        return min(PAPER_K, fits)
    if settings.k < n_pool and settings.k <= class_sizes.max():
        return settings.k
    warnings.warn(
        f"K = {settings.k} is too large for a pool of {n_pool} items and classes of up to "
        f"{class_sizes.max()}: K = {fits} is used",
        S2OSCWarning,
        stacklevel=2,
    )
    return fits


def partition_pool(weights: np.ndarray, k: int) -> Partition:
    """Split the pool: the k most distinct items are unknown, the rest stay undecided.

    >>> partition_pool(np.array([0.1, 0.9, 0.2, 0.3]), 1)
    Partition(unknown=array([1]), undecided=array([0, 2, 3]))
    """
    by_weight = np.argsort(-weights, kind="stable")
    return Partition(unknown=np.sort(by_weight[:k]), undecided=np.sort(by_weight[k:]))


def sample_known(labels: np.ndarray, k: int, random: np.random.Generator) -> np.ndarray:
    """D_in: k random items of each known class, or all of a smaller one; row numbers, sorted.

    >>> sample_known(np.array([0, 0, 1]), 1, np.random.default_rng(0)).shape
    (2,)
    """
    rows = [np.flatnonzero(labels == c) for c in range(labels.max() + 1)]
    chosen = [random.choice(of_class, min(k, len(of_class)), replace=False) for of_class in rows]
    return np.sort(np.concatenate(chosen))


def sample_balanced(labels: np.ndarray, k: int, random: np.random.Generator) -> np.ndarray:
    """D_in of the variant for several unknown classes: k items in all, spread over the classes.

    >>> len(sample_balanced(np.array([0, 0, 0, 1, 1, 1]), 4, np.random.default_rng(0)))
    4
    """
    order = random.permutation(len(labels))
    # The n-th item of every class comes before the (n+1)-th of any: shares differ by one at most.
    rank_in_class = np.empty(len(labels), int)
    for c in range(labels.max() + 1):
        of_class = order[labels[order] == c]
        rank_in_class[of_class] = np.arange(len(of_class))
    return np.sort(order[np.argsort(rank_in_class[order], kind="stable")[:k]])
