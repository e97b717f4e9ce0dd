"""Slightly rotated images, and groups that they show to be one class."""

import numpy as np
import pytest
import torch

from s2osc.nets.augmentation.image_ops import rotate_by
from s2osc.pipeline.grouping.clusters import ClusterSettings, group_unknown
from s2osc.pipeline.grouping.graph import cuts
from s2osc.pipeline.grouping.rotation import (
    DEGREES,
    Pictures,
    RotatedPairs,
    rotate_randomly,
    usual_crossing,
)
from s2osc.pipeline.grouping.space import fit_space
from samples import make_blobs

SIDE = 24


def strokes(angles, seed=0):
    """Bars through the middle, each at its own angle in degrees, none quite like another."""
    random = np.random.default_rng(seed)
    down, right = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    radians = np.deg2rad(np.asarray(angles))[:, None, None]
    across = right * np.cos(radians) + down * np.sin(radians)
    along = down * np.cos(radians) - right * np.sin(radians)
    width = random.uniform(1.5, 2.5, radians.shape)
    drawn = 255 * np.exp(-((across / width) ** 4)) * (np.abs(along) < random.uniform(7, 10))
    noise = random.normal(0, 12, drawn.shape)
    return np.clip(drawn + noise, 0, 255).astype(np.uint8)


def rings(n, seed=0):
    random = np.random.default_rng(seed)
    down, right = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
    stretch, radius = random.uniform(0.6, 1.4, (n, 1, 1)), random.uniform(5, 8, (n, 1, 1))
    drawn = 255 * np.exp(-(((np.hypot(down, right * stretch) - radius) / 2) ** 2))
    return np.clip(drawn + random.normal(0, 12, drawn.shape), 0, 255).astype(np.uint8)


def slants(n, apart, seed=0):
    """Angles around ``-apart`` and ``apart``, few in between."""
    random = np.random.default_rng(seed)
    return random.choice([-1, 1], n) * apart + random.normal(0, 2, n)


def count_groups(unknown, *, rotating):
    """How many groups there are beside two known classes: rings, and strokes that lie."""
    known = np.concatenate([rings(150, 8), strokes(np.random.default_rng(9).normal(90, 9, 150))])
    labels = np.repeat([0, 1], 150)
    parts = [(part, np.zeros((len(part), 1), np.float32)) for part in (known, unknown)]
    space = fit_space(parts[0], labels, parts[1], seed=0)
    pictures = (Pictures(unknown, space, 0), Pictures(known, space, 0)) if rotating else None
    return group_unknown(
        *(space.transform(*parts[1]), space.transform(*parts[0]), labels),
        ClusterSettings(n_resamples=2),
        seed=0,
        pictures=pictures,
    ).n_groups


def test_slants_of_one_stroke_are_one_group():
    unknown = strokes(slants(300, 9))
    assert count_groups(unknown, rotating=False) == 2
    assert count_groups(unknown, rotating=True) == 1


def test_what_no_rotation_makes_alike_stays_apart():
    assert count_groups(np.concatenate([strokes(slants(150, 0)), rings(150)]), rotating=True) == 2
    assert count_groups(strokes(slants(300, 35)), rotating=True) == 2


@pytest.mark.parametrize("colour", [False, True])
def test_every_image_is_rotated_by_an_angle_of_its_own(colour):
    images = np.repeat(strokes(np.zeros(1)), 60, axis=0)
    images = np.stack([images] * 3, axis=-1) if colour else images
    rotated = rotate_randomly(images, seed=3)
    assert (rotated.shape, rotated.dtype) == (images.shape, images.dtype)
    assert len({each.tobytes() for each in rotated}) > 50
    np.testing.assert_array_equal(rotated, rotate_randomly(images, seed=3))
    assert not np.array_equal(rotated, rotate_randomly(images, seed=4))


def test_no_image_is_rotated_too_far():
    stroke = strokes(np.zeros(1))
    many = rotate_randomly(np.repeat(stroke, 400, axis=0), seed=0)
    batch = torch.from_numpy(stroke[:, None])
    ends = [rotate_by(batch, torch.tensor([end])).numpy()[0, 0] for end in (-DEGREES, DEGREES)]

    def slant(image):
        down, right = np.mgrid[:SIDE, :SIDE] - (SIDE - 1) / 2
        weight = image.astype(float) ** 2
        return float((weight * down * right).sum() / (weight * down**2).sum())

    low, high = sorted(map(slant, ends))
    found = [slant(image) for image in many]
    assert low - 0.02 <= min(found) < 0.8 * low
    assert 0.8 * high < max(found) <= high + 0.02


def test_large_images_are_rotated_as_small_ones():
    small = strokes(slants(60, 9))
    large = small.repeat(2, axis=1).repeat(2, axis=2)
    labels = np.repeat([0, 1], 30)
    taken = []
    for images in (small, large):
        known = images, np.zeros((60, 1), np.float32)
        space = fit_space(known, labels, known, seed=0)
        taken.append(Pictures(images, space, 0).take(np.arange(20)))
    np.testing.assert_allclose(taken[0].items, taken[1].items, atol=1e-4)
    np.testing.assert_allclose(taken[0].copies, taken[1].copies, atol=1e-4)


def test_copies_land_beside_others_than_their_own():
    items = np.arange(6.0)[:, None]
    copy_neighbours = RotatedPairs(items, items + 0.4).copy_neighbours()
    assert copy_neighbours.shape == (6, 5)
    assert all(row not in copy_neighbours[row] for row in range(6))


def test_copies_that_go_over_raise_the_cut():
    # Two halves of a line with a gap between them: copies go as far as they are moved.
    items = np.concatenate([np.linspace(0, 1, 50), np.linspace(2, 3, 50)])[:, None]
    sides = np.repeat([0, 1], 50)

    def crossed(move):
        return cuts(
            RotatedPairs(items, items + move * (1 - 2 * sides[:, None])).copy_neighbours(), sides
        )[0, 1]

    assert crossed(0) == 0
    assert 0 < crossed(1) < crossed(1.5) < 2


def test_known_classes_in_parts_that_lie_apart_say_nothing():
    parts = make_blobs(50, 4, distance=30.0)[0]
    random = np.random.default_rng(0)
    assert usual_crossing(RotatedPairs(parts, parts), parts, np.repeat([0, 1], 100), random) is None


def test_known_classes_that_are_small_say_nothing():
    vectors = np.random.default_rng(0).normal(size=(60, 3))
    rotated, labels = RotatedPairs(vectors, vectors), np.repeat([0, 1], 30)
    assert usual_crossing(rotated, vectors, labels, np.random.default_rng(0)) is None
    measured = usual_crossing(
        rotated, vectors, np.repeat([0, 1], [45, 15]), np.random.default_rng(0)
    )
    assert 0 < measured < 1
