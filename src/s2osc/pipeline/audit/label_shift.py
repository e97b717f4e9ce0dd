"""How the pool mixes the known classes, against the labelled items (label shift).

The class of an item of the pool is not known, only the name it is given. How often items of each
class are given each name is known from judges, labelled items that nothing was learnt from; so the
numbers of names in the pool tell the numbers of classes (BBSE: Lipton et al. 2018; here as the
likely numbers, which are never negative). Two questions need them:

- *The audit* weighs calibration items as the pool mixes their classes. Unknown items have names,
  too, so only ordinary items are counted, of pool and judges by the same rule. The counts have an
  error of their own; another mix is used only where it goes beyond that error, and no further.
- *The test* whether anything is unknown compares pool and judges that are given the same name. If
  names are not always right and the mix differs, the items of one name are of other classes in the
  pool than among the judges. If nothing is unknown, all items count; then judges are left out
  until those of each name mix the classes as the pool does.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from s2osc.lazy import lazily

stats = lazily("scipy.stats")

LEVEL = 0.01
SUSPICION = 0.1
"""Up to which p-value another mix counts, though it is not told: items weigh by it as far as it
goes beyond chance, and judges are left out, since a discovery must hold with it, too."""
N_RESAMPLED = 3
"""Mixes with which it must hold. In a simulation with one wrong name of five and classes of 10:1,
one mix gave 5 wrong discoveries in 60 pools at the level of 1 %, three gave 2."""
ORDINARY = 2 / 3
"""Of the judges of each name: so many are ordinary. Fewer tell less, of more items more would be
unknown."""
N_STEPS = 8
"""Of the way from the mix of the judges to the most likely one. Further steps follow the noise in
what few judges tell (Richardson and Lucy)."""


class Mix(NamedTuple):
    """Class shares in the pool over those among the labelled items."""

    p_value: float  # of "the pool mixes the known classes as the labelled items do"
    weights: np.ndarray  # (C,) all 1, unless the mix may differ

    @property
    def is_shifted(self) -> bool:
        """Whether the mix differs so clearly that it is told."""
        return self.p_value <= LEVEL and bool(np.ptp(self.weights) > 0)


class Names(NamedTuple):
    """The known classes that items of the pool and judges are given."""

    n_pool: np.ndarray  # (C,) how many items of the pool are given each class
    of_judges: np.ndarray  # (m,)
    labels: np.ndarray  # (m,) the classes of the judges

    @classmethod
    def of(
        cls,
        names: np.ndarray,
        labels: np.ndarray,
        taken: np.ndarray | None = None,
        *,
        n_classes: int = 0,
    ) -> "Names":
        """Those of items with ``labels`` (n,), -1 for the pool and -2 for who is neither.

        Of these only those that are ``taken`` (n,); None: all. There are at least ``n_classes``.
        """
        if taken is None:
            taken = np.ones(len(labels), bool)
        n_classes = max(n_classes, int(names.max()) + 1, int(labels.max()) + 1)
        n_pool = np.bincount(names[(labels == -1) & taken], minlength=n_classes)
        judges = (labels >= 0) & taken
        return cls(n_pool, names[judges], labels[judges])

    @property
    def n_judges(self) -> np.ndarray:
        """(C,) how many judges are given each class."""
        return np.bincount(self.of_judges, minlength=len(self.n_pool))

    @property
    def n_of_class(self) -> np.ndarray:
        """(C,) how many judges are of each class."""
        return np.bincount(self.labels, minlength=len(self.n_pool))

    def resampled(self, random: np.random.Generator) -> "Names":
        """As many items of the pool and judges, drawn at random from these."""
        n, rows = self.n_pool.sum(), random.integers(0, len(self.labels), len(self.labels))
        return Names(
            random.multinomial(n, self.n_pool / max(n, 1)), self.of_judges[rows], self.labels[rows]
        )


def items_per_judge(names: Names, n_judges: np.ndarray | None = None) -> np.ndarray:
    """(C,) how many items of the pool there are of each class for one judge of it.

    ``n_judges`` (C,) are all judges of each class, where ``names`` has only some of pool and judges
    by a common rule. A class without judges has the middle number of the others.

    >>> of_judges, labels = np.array([0, 0, 0, 1, 1, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    >>> items_per_judge(Names(np.array([30, 90]), of_judges, labels)).round(1).tolist()
    [10.0, 20.0]
    """
    n_pool, n_judges = names.n_pool, names.n_of_class if n_judges is None else n_judges
    n_classes = len(n_pool)
    given = np.zeros((n_classes, n_classes))
    np.add.at(given, (names.of_judges, names.labels), 1.0)
    there = n_judges > 0
    if not there.any():
        return np.ones(n_classes)
    # A class whose judges are all left out, or given other names, is still given its own at times.
    given[np.diag_indices(n_classes)] += np.where(there, 1e-3, 0.0)
    share = given / np.maximum(n_judges, 1)  # of each class (columns) that is given each name
    of_class = max(n_pool.sum(), 1) * n_judges / n_judges.sum()
    for _ in range(N_STEPS):
        expected = np.maximum(share @ of_class, 1e-12)
        of_class = of_class * (share.T @ (n_pool / expected)) / np.maximum(share.sum(axis=0), 1e-12)
    ratio = of_class / np.maximum(n_judges, 1)
    return np.where(there, ratio, np.median(ratio[there]))


def compare_mix(
    n_pool: np.ndarray,
    n_held_back: np.ndarray,
    class_weights: np.ndarray,
    ratios: np.ndarray | None = None,
) -> Mix:
    """From the numbers of items that are given each class, in the pool and among the held-back.

    ``class_weights`` are labelled over held-back items. The log ratios of the counts are compared
    by their variances; beyond chance, each is drawn towards their mean by the share of its variance
    that counting explains (DerSimonian and Laird). ``ratios`` (C,) are those of classes, where
    names are not always right; None: those of the counts.

    >>> ones = np.ones(2)
    >>> compare_mix(np.array([100, 110]), np.array([50, 50]), ones).weights.tolist()
    [1.0, 1.0]
    >>> compare_mix(np.array([100, 900]), np.array([50, 50]), ones).weights.round(1).tolist()
    [0.3, 2.5]
    """
    n_classes = len(n_pool)
    if n_classes < 2 or not n_pool.any() or not n_held_back.any():
        return Mix(1.0, np.ones(n_classes))
    pool, held = n_pool + 0.5, n_held_back + 0.5
    ratio, variance = np.log(pool / (held * class_weights)), 1 / pool + 1 / held
    precision = 1 / variance
    mean = precision @ ratio / precision.sum()
    excess = float(precision @ (ratio - mean) ** 2)
    p_value = float(stats.chi2.sf(excess, n_classes - 1))
    if p_value > SUSPICION:
        return Mix(p_value, np.ones(n_classes))
    scale = precision.sum() - precision @ precision / precision.sum()
    between = max(0.0, (excess - (n_classes - 1)) / scale)
    if ratios is not None:
        # Not less than half an item, as in the counts.
        ratio = np.log(np.maximum(ratios, 0.5 / held) / class_weights)
        mean = precision @ ratio / precision.sum()
    drawn = (ratio - mean) * between / (between + variance)
    return Mix(p_value, np.exp(drawn - np.median(drawn) if n_classes > 2 else drawn))


def are_ordinary(scores: np.ndarray, names: np.ndarray, is_judge: np.ndarray) -> np.ndarray:
    """(n,) whether an item scores as low as most judges that are given the same class."""
    ordinary = np.zeros(len(scores), bool)
    for name in np.unique(names[is_judge]):
        own = names == name
        ordinary |= own & (scores <= np.quantile(scores[own & is_judge], ORDINARY))
    return ordinary


def judges_in_mix_of_pool(names: Names, random: np.random.Generator) -> Iterator[np.ndarray]:
    """(m,) the judges that mix the classes within each name as a pool does that is all known.

    Several times, each by a mix that resampled items tell: it is known only roughly. Not at all
    where pool and judges may have the same mix.
    """
    if compare_mix(names.n_pool, names.n_judges, np.ones(len(names.n_pool))).p_value > SUSPICION:
        return
    for _ in range(N_RESAMPLED):
        per_judge = items_per_judge(names.resampled(random))[names.labels]
        most = np.zeros(len(names.n_pool))
        np.maximum.at(most, names.of_judges, per_judge)
        yield random.random(len(per_judge)) * most[names.of_judges] <= per_judge
