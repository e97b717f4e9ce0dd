"""Choose the items a person should look at first."""

from typing import NamedTuple

import numpy as np

from s2osc.report.kinds import count_groups
from s2osc.report.layout import PoolMap
from s2osc.types import Answer

GALLERY_ITEMS = 24
MANY_GROUPS = 8  # from here on each group shows fewer items


class Galleries(NamedTuple):
    """Places in the pool, first to be looked at first."""

    distinct: np.ndarray
    closest: np.ndarray
    typical: list[np.ndarray]  # of each group

    @property
    def items(self) -> np.ndarray:
        """All of them, each once, rising."""
        return np.unique(np.concatenate([self.distinct, self.closest, *self.typical]))


def choose_galleries(answer: Answer, pool_map: PoolMap, may_show: np.ndarray) -> Galleries:
    """The galleries of an answer, out of the items that can be shown, (n,) bool."""
    return Galleries(
        most_distinct(answer, may_show), least_sure(answer, may_show), typical(answer, pool_map)
    )


def most_distinct(answer: Answer, may_show: np.ndarray) -> np.ndarray:
    """The items farthest from every known class, among those called unknown or filtered."""
    candidates = np.flatnonzero((answer.is_unknown | answer.filtered) & may_show)
    order = np.argsort(-answer.distinctness[candidates], kind="stable")
    return candidates[order][:GALLERY_ITEMS]


def least_sure(answer: Answer, may_show: np.ndarray) -> np.ndarray:
    """The items whose label is the closest call."""
    candidates = np.flatnonzero(may_show)
    order = np.argsort(answer.confidence[candidates], kind="stable")
    return candidates[order][:GALLERY_ITEMS]


def typical(answer: Answer, pool_map: PoolMap) -> list[np.ndarray]:
    """For each group, the items of the map nearest to its centre in the embedding."""
    n_groups = count_groups(answer)
    n_items = GALLERY_ITEMS // 2 if n_groups < MANY_GROUPS else GALLERY_ITEMS // 4
    group_of_place = answer.groups[pool_map.items]
    chosen = []
    for group in range(n_groups):
        places = np.flatnonzero(group_of_place == group)
        vectors = pool_map.components[places].astype(np.float64)
        # The mean of an empty group is undefined; it has no typical items either.
        centre = vectors.mean(axis=0) if len(places) else 0.0
        distance = np.linalg.norm(vectors - centre, axis=1)
        nearest = places[np.argsort(distance, kind="stable")][:n_items]
        chosen.append(pool_map.items[nearest])
    return chosen
