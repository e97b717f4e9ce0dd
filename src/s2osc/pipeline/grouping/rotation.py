"""Images turned a little: what goes over into another group by that was never of another class.

A class whose items vary along a line, as digits by their slant, looks like two groups where few
items lie in the middle. Turning fills the middle. How often turned copies land across a border is
measured by the known classes again: across the best cut through each of them.
"""

from typing import NamedTuple

import numpy as np
import torch

from s2osc.arrays import chunks
from s2osc.nets.augmentation.image_ops import rotate_by
from s2osc.nets.networks import as_tensor
from s2osc.pipeline.grouping.graph import best_cut, cuts, nearest_others
from s2osc.pipeline.grouping.space import GroupingSpace, shrink
from s2osc.seeding import rng

DEGREES = 15.0
N_NEIGHBOURS = 10
ONE_CLASS = 0.75
"""Two groups are one if turned copies cross the border this often, relative to known classes."""
FEWEST = 40  # items of a known class that it can be measured with
LEAST_CROSSING = 0.05  # below, the known classes fall apart themselves and measure nothing


class Pictures(NamedTuple):
    """Images that can be turned, and the space in which they are compared."""

    images: np.ndarray
    space: GroupingSpace
    seed: int

    def take(self, rows: np.ndarray) -> "Turned":
        """Some of them, beside their copies; both as small as they are compared."""
        images = shrink(self.images[rows]).round().astype(np.uint8)
        return Turned(*map(self.space.by_looks, (images, turn(images, seed=self.seed))))


class Turned(NamedTuple):
    """Where items lie by their looks, and where copies of them do that were turned."""

    items: np.ndarray  # (n, a)
    copies: np.ndarray  # (n, a)

    def take(self, rows: np.ndarray) -> "Turned":
        return Turned(self.items[rows], self.copies[rows])

    def landings(self) -> np.ndarray:
        """(n, k): the items nearest to the copy of each, other than its own."""
        return nearest_others(self.items, N_NEIGHBOURS, self.copies)


def turn(images: np.ndarray, *, seed: int) -> np.ndarray:
    """Each image turned by an angle of its own, up to 15 degrees to either side."""
    degrees = rng(seed, "turned copies").uniform(-DEGREES, DEGREES, len(images))
    turned = np.empty_like(images)
    for rows in chunks(len(images)):
        batch = rotate_by(as_tensor(images[rows]), torch.from_numpy(degrees[rows]))
        turned[rows] = batch.permute(0, 2, 3, 1).numpy().reshape(images[rows].shape)
    return turned


def usual_crossing(
    turned: Turned, known: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> float | None:
    """The mean cut that turned copies make across the best cut through a known class.

    None where every class is too small to tell, or in parts that no turn brings together.
    """
    crossings = []
    for c in np.unique(labels):
        rows = np.flatnonzero(labels == c)
        if len(rows) >= FEWEST:
            sides = best_cut(known[rows], random).sides
            crossings.append(cuts(turned.take(rows).landings(), sides)[0, 1])
    usual = float(np.mean(crossings)) if crossings else 0.0
    return usual if usual >= LEAST_CROSSING else None
