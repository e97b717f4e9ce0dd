"""What one class looks like by itself: how wide known classes are, and how slow a walk in one is.

A walk from neighbour to neighbour is slow where it has to cross from one class into another. Inside
a class it is slow as well, on some data more than on others: a digit that is written in two ways, a
table with few columns. Known classes tell how slow, so that only what is slower counts as a border.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.pipeline.grouping.neighbour_graph import closeness, nearest_others, slowest_modes

REACHES = (0.05, 0.1, 0.2, 0.4, 0.8)
"""Shares of a class that are neighbours of an item. A walk with a longer reach is faster; a class
of a pool with 800 items has a reach of .05, one of fifteen small classes of .8."""
FEWEST = 16  # items of a class, below which its walk is chance
MOST_ITEMS, MOST_CLASSES = 150, 8  # whose walks are tried, which costs time
USUAL_WALK = (2.17, 1.83, 1.22, 0.50, -0.48)
"""Of known classes in the mean of the pools of ``benchmarks/number_of_groups.py``, which stand in
where no known class has items enough."""


@dataclass(frozen=True, eq=False)
class UsualClass:
    """A class like the known ones."""

    spread: float  # the mean squared distance of an item to the centre of its class
    walk: np.ndarray  # (len(REACHES),) log odds of the slowest mode within a class

    def walk_at(self, reach: float) -> float:
        """The log odds of what is left of the slowest mode in a class after a step."""
        return float(np.interp(np.log(reach), np.log(REACHES), self.walk))


def usual_class(
    rows: np.ndarray, labels: np.ndarray, walks: dict[int, np.ndarray] | None = None
) -> UsualClass:
    """The mean of classes; ``walks`` are those of some classes (``walks_within``)."""
    found = [walk for c, walk in (walks or {}).items() if (labels == c).any()]
    return UsualClass(
        spread=class_spread(rows, labels),
        walk=np.mean(found, axis=0) if found else np.array(USUAL_WALK),
    )


def walks_within(
    rows: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> dict[int, np.ndarray]:
    """Of each class that is large enough, the log odds of its slowest mode with each reach."""
    found: dict[int, np.ndarray] = {}
    for c in np.unique(labels):
        own = random.permutation(rows[labels == c])[:MOST_ITEMS]
        if len(own) >= FEWEST and len(found) < MOST_CLASSES and np.ptp(own, axis=0).any():
            found[int(c)] = np.array([_slowest(own, reach, random) for reach in REACHES])
    return found


def _slowest(rows: np.ndarray, reach: float, random: np.random.Generator) -> float:
    nearest = nearest_others(rows, max(2, round(reach * len(rows))))
    slowness, _ = slowest_modes(nearest, closeness(rows, nearest), 2, random)
    return float(slowness_odds(slowness[1:])[0])


def slowness_odds(share: np.ndarray) -> np.ndarray:
    """Of what is left after a step, kept from infinity.

    >>> slowness_odds(np.array([0.5, 1.0])).round(1).tolist()
    [0.0, 6.9]
    """
    inside = np.clip(share, 0.01, 0.999)
    return np.asarray(np.log(inside / (1 - inside)))


def class_spread(rows: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance of an item to the centre of its class, in the mean of classes."""
    parts = [rows[labels == c] for c in np.unique(labels)]
    spreads = [((part - part.mean(0)) ** 2).sum(1).mean() for part in parts if len(part) > 1]
    return float(np.mean(spreads)) if spreads else 1.0
