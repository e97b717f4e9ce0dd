"""Slightly rotated images: a rotation that moves an item to another group changes no class.

A class whose items vary along one direction, such as the slant of a digit, forms two groups if few
items lie between. Rotated copies fill that gap. How often they cross the border between two groups
is compared with how often they cross the best cut through each known class.
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
"""Two groups are one if rotated copies cross the border this often, relative to known classes."""
FEWEST = 40  # items; crossings are not measured in smaller known classes
LEAST_CROSSING = 0.05  # below it, the known classes fall apart themselves and are no measure


class Pictures(NamedTuple):
    """Images that can be rotated, and the space in which they are compared."""

    images: np.ndarray
    space: GroupingSpace
    seed: int

    def take(self, rows: np.ndarray) -> "RotatedPairs":
        """Some of the images and their rotated copies, both reduced in size."""
        images = shrink(self.images[rows]).round().astype(np.uint8)
        rotated = rotate_randomly(images, seed=self.seed)
        return RotatedPairs(
            items=self.space.transform_inputs(images), copies=self.space.transform_inputs(rotated)
        )


class RotatedPairs(NamedTuple):
    """Features of some images and of their rotated copies."""

    items: np.ndarray  # (n, a)
    copies: np.ndarray  # (n, a)

    def take(self, rows: np.ndarray) -> "RotatedPairs":
        return RotatedPairs(self.items[rows], self.copies[rows])

    def copy_neighbours(self) -> np.ndarray:
        """(n, k): the items nearest to the copy of each, other than its own."""
        return nearest_others(self.items, N_NEIGHBOURS, self.copies)


def rotate_randomly(images: np.ndarray, *, seed: int) -> np.ndarray:
    """Each image rotated by an angle of its own, up to 15 degrees to either side."""
    degrees = rng(seed, "turned copies").uniform(-DEGREES, DEGREES, len(images))
    rotated = np.empty_like(images)
    for rows in chunks(len(images)):
        batch = rotate_by(as_tensor(images[rows]), torch.from_numpy(degrees[rows]))
        rotated[rows] = batch.permute(0, 2, 3, 1).numpy().reshape(images[rows].shape)
    return rotated


def usual_crossing(
    pairs: RotatedPairs, known: np.ndarray, labels: np.ndarray, random: np.random.Generator
) -> float | None:
    """The mean cut by rotated copies across the best cut through a known class.

    None if every class is too small, or if no rotation connects the parts of a class.
    """
    crossings = []
    for c in np.unique(labels):
        rows = np.flatnonzero(labels == c)
        if len(rows) >= FEWEST:
            sides = best_cut(known[rows], random).sides
            crossings.append(cuts(pairs.take(rows).copy_neighbours(), sides)[0, 1])
    usual = float(np.mean(crossings)) if crossings else 0.0
    return usual if usual >= LEAST_CROSSING else None
