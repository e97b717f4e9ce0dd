"""Small changes that another source may make."""

import numpy as np
import pytest

from s2osc.data.corruptions import add_noise, add_typing_errors
from s2osc.pipeline.sources.best_change import find_added
from s2osc.pipeline.sources.changes import (
    IMAGE_KINDS,
    ColumnChange,
    KindChange,
    beyond_chance,
    column_offset,
    image_changes,
)


def random(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("shape", [(6, 20, 24), (6, 20, 24, 3)])
def test_every_change_of_images_keeps_shape_and_type_and_leaves_its_input(shape):
    images = random().integers(0, 256, shape).astype(np.uint8)
    before = images.copy()
    kinds = set()
    for change in image_changes():
        after = change.apply(images, seed=0)
        assert (after.shape, after.dtype) == (images.shape, np.uint8)
        assert not np.array_equal(after, images)
        assert np.abs(after.astype(float) - images).mean() < 100
        assert f"{change.strength:g}" in change.in_words()
        kinds.add(change.kind)
    np.testing.assert_array_equal(images, before)
    assert kinds == set(IMAGE_KINDS)


def test_the_same_seed_gives_the_same_noise():
    images = random().integers(0, 256, (4, 8, 8)).astype(np.uint8)
    change = KindChange("noise", 8)
    np.testing.assert_array_equal(change.apply(images, seed=3), change.apply(images, seed=3))
    assert not np.array_equal(change.apply(images, seed=3), change.apply(images, seed=4))


def test_a_change_of_columns_adds_its_offset_and_noise_of_the_deviation():
    vectors = np.zeros((20_000, 2), np.float32)
    change = ColumnChange(np.array([0.5, 0.0]), 0.2, np.array([1.0, 3.0]))
    after = change.apply(vectors, seed=0)
    np.testing.assert_allclose(after.mean(axis=0), [0.5, 0.0], atol=0.02)
    np.testing.assert_allclose(after.std(axis=0), [0.2, 0.6], rtol=0.02)
    views = change.apply(np.zeros((5, 3, 2), np.float32), seed=0)
    assert views.shape == (5, 3, 2)
    assert views.dtype == np.float32


def test_a_class_that_hardly_varies_tells_the_offset_best():
    draw = random()
    classes = np.repeat([0, 1], 100)
    spread = np.where(classes == 0, 1.0, 0.01)[:, None]
    pool, labelled = (spread * draw.normal(size=(200, 1)) for _ in range(2))
    found = column_offset(pool + 0.1, labelled, classes, classes, np.ones(1))
    np.testing.assert_allclose(found, 0.1, atol=0.005)  # by the other class alone: 0.14


def test_an_offset_is_found_within_classes_whatever_their_mix():
    draw = random()
    classes = np.repeat([0, 1], 2_000)
    pool_classes = np.repeat([0, 1], [3_600, 400])
    labelled = 6.0 * classes[:, None] + draw.normal(size=(4_000, 3))
    pool = 6.0 * pool_classes[:, None] + draw.normal(size=(4_000, 3)) + [0.4, 0.0, -0.2]
    offset = column_offset(pool, labelled, pool_classes, classes, np.ones(3))
    np.testing.assert_allclose(offset, [0.4, 0.0, -0.2], atol=0.1)


def test_the_errors_of_many_columns_do_not_add_up_to_an_offset():
    draw, columns = random(), 1_000
    chance = 0.1 * draw.standard_normal(columns)
    left = beyond_chance(chance, np.full(columns, 0.01))
    assert (left**2).sum() < 0.05 * (chance**2).sum()
    apart = 0.3 * draw.standard_normal(columns) + chance
    kept = beyond_chance(apart, np.full(columns, 0.01))
    np.testing.assert_allclose(kept, 0.9 * apart, atol=0.1)


def test_a_column_that_was_moved_by_itself_counts_by_itself():
    chance = 0.1 * random().standard_normal(1_000)
    chance[7] = 2.0
    left = beyond_chance(chance, np.full(1_000, 0.01))
    assert left[7] > 1.9
    assert (np.abs(np.delete(left, 7)) > 0.1).mean() < 0.005


def test_without_a_class_in_common_or_enough_items_there_is_no_offset():
    ones = np.ones((3, 2))
    assert not column_offset(ones, 2 * ones, np.zeros(3, int), np.ones(3, int), ones[0]).any()
    assert not column_offset(ones[:1], 2 * ones, np.zeros(1, int), np.zeros(3, int), ones[0]).any()


def test_noise_and_typing_errors_get_the_strength_that_all_items_show():
    images = random().integers(60, 200, (200, 1, 1, 3)).astype(np.uint8)
    images = np.repeat(np.repeat(images, 12, axis=1), 12, axis=2)
    noisy = add_noise(images[:100], 8, seed=1)
    assert find_added(noisy, images[100:], seed=0) == KindChange("noise", 8)
    letters = random().integers(ord("a"), ord("z") + 1, (300, 8))
    words = ["".join(map(chr, word)) for word in letters]
    texts = np.array([" ".join(each) for each in random().choice(words, (400, 5))])
    mistyped = add_typing_errors(texts[:200], 0.2, seed=1)
    assert find_added(mistyped, texts[200:], seed=0).strength in (0.15, 0.2)
