"""Changes of source: what is changed, by how much, and what is left as it was."""

import numpy as np
import pytest

from s2osc.data.corruptions import (
    IMAGE_SOURCES,
    TITLE_SOURCES,
    VECTOR_SOURCES,
    add_column_noise,
    add_noise,
    add_typing_errors,
    blur_images,
    change_brightness,
    change_contrast,
    change_units,
    compress_as_jpeg,
    offset_columns,
    shift_pixels,
)

GREY = np.full((20, 30, 30), 128, np.uint8)
COLOUR = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)
VECTORS = np.random.default_rng(1).normal([0, 50], [1, 200], (5_000, 2)).astype(np.float32)
TITLES = np.array(["How to sort an array in Haskell?", "", "a b", "SELECT DISTINCT values twice"])
ITEMS = {
    **dict.fromkeys(IMAGE_SOURCES, COLOUR),
    **dict.fromkeys(VECTOR_SOURCES, VECTORS),
    **dict.fromkeys(TITLE_SOURCES, TITLES),
}
SOURCES = IMAGE_SOURCES | VECTOR_SOURCES | TITLE_SOURCES


@pytest.mark.parametrize("name", SOURCES)
def test_a_change_gives_as_many_items_of_the_same_form_and_leaves_its_input_alone(name):
    items = ITEMS[name]
    before = items.copy()
    changed = SOURCES[name](items, 3)
    np.testing.assert_array_equal(items, before)
    assert changed.shape == items.shape
    assert changed.dtype.kind == items.dtype.kind
    assert (changed != items).any()
    np.testing.assert_array_equal(changed, SOURCES[name](items, 3))


@pytest.mark.parametrize("name", IMAGE_SOURCES)
def test_no_images_stay_no_images(name):
    assert IMAGE_SOURCES[name](COLOUR[:0], 0).shape == COLOUR[:0].shape


@pytest.mark.parametrize("deviation", [4, 8, 12])
def test_noise_has_the_deviation_asked_for_and_another_seed_gives_other_noise(deviation):
    noisy = add_noise(GREY, deviation, seed=0)
    assert noisy.dtype == np.uint8
    assert noisy.std() == pytest.approx(deviation, rel=0.03)
    assert noisy.mean() == pytest.approx(128, abs=0.5)
    assert (noisy != add_noise(GREY, deviation, seed=1)).mean() > 0.5


def test_noise_does_not_wrap_around_at_black_and_white():
    black_and_white = np.stack([np.zeros((9, 9), np.uint8), np.full((9, 9), 255, np.uint8)])
    noisy = add_noise(black_and_white, 12, seed=0)
    assert noisy[0].max() < 80
    assert noisy[1].min() > 175


def test_brightness_multiplies_and_ends_at_white():
    row = np.array([[[0, 10, 100, 240]]], np.uint8)
    assert change_brightness(row, 1.1).tolist() == [[[0, 11, 110, 255]]]
    assert change_brightness(row, 0.9).tolist() == [[[0, 9, 90, 216]]]


def test_contrast_keeps_the_mean_of_each_image_for_itself():
    images = np.array([[[100, 120]], [[0, 40]]], np.uint8)
    assert change_contrast(images, 1.1).tolist() == [[[99, 121]], [[0, 42]]]
    assert change_contrast(images, 0.5).tolist() == [[[105, 115]], [[10, 30]]]


def test_blur_spreads_a_point_by_the_gaussian_of_half_a_pixel_and_mixes_no_colours():
    point = np.zeros((1, 7, 7, 3), np.uint8)
    point[0, 3, 3, 1] = 255
    weights = np.exp(-0.5 * (np.arange(-2, 3) / 0.5) ** 2)
    weights /= weights.sum()
    expected = np.rint(255 * np.outer(weights, weights))
    blurred = blur_images(point, 0.5)
    np.testing.assert_array_equal(blurred[0, 1:6, 1:6, 1], expected)
    assert not blurred[..., 0].any()
    assert not blurred[..., 2].any()
    np.testing.assert_array_equal(blur_images(GREY, 0.5), GREY)


def test_jpeg_keeps_flat_images_and_changes_fine_ones_more_at_a_lower_quality():
    np.testing.assert_array_equal(compress_as_jpeg(GREY, 40), GREY)
    fine = COLOUR[..., 0].astype(int)
    at_40, at_95 = (
        np.abs(compress_as_jpeg(COLOUR[..., 0], quality) - fine).mean() for quality in (40, 95)
    )
    assert at_40 > 3 * at_95 > 0
    assert compress_as_jpeg(COLOUR, 40).shape == COLOUR.shape


def test_a_shift_moves_every_image_alike_and_repeats_the_border():
    images = np.arange(9, dtype=np.uint8).reshape(1, 3, 3)
    assert shift_pixels(images, down=1).tolist() == [[[0, 1, 2], [0, 1, 2], [3, 4, 5]]]
    assert shift_pixels(images, right=-1).tolist() == [[[1, 2, 2], [4, 5, 5], [7, 8, 8]]]
    np.testing.assert_array_equal(shift_pixels(COLOUR, right=1)[:, :, 1:], COLOUR[:, :, :-1])


@pytest.mark.parametrize("share", [0.1, 0.2])
def test_noise_on_columns_is_a_share_of_the_deviation_of_each(share):
    noise = add_column_noise(VECTORS, share, seed=0) - VECTORS
    assert noise.dtype == np.float32
    np.testing.assert_allclose(noise.std(0), share * VECTORS.std(0), rtol=0.05)
    np.testing.assert_allclose(noise.mean(0) / VECTORS.std(0), 0, atol=0.01)
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.05


def test_a_constant_column_gets_no_noise_and_no_offset():
    constant = np.full((10, 1), 7, np.float32)
    np.testing.assert_array_equal(add_column_noise(constant, 0.2, seed=0), constant)
    np.testing.assert_array_equal(offset_columns(constant, 0.1), constant)


def test_an_offset_raises_each_column_by_a_share_of_its_deviation():
    offset = offset_columns(VECTORS, 0.1) - VECTORS
    np.testing.assert_allclose(offset, np.tile(0.1 * VECTORS.std(0), (5_000, 1)), rtol=1e-2)


def test_wild_units_span_seven_powers_of_ten_and_keep_the_order_within_a_column():
    vectors = np.tile(np.arange(1, 5, dtype=np.float32)[:, None], 8)
    wild = change_units(vectors)
    np.testing.assert_allclose(wild[0], 10.0 ** np.arange(-3, 5), rtol=1e-6)
    np.testing.assert_allclose(wild / wild[0], vectors, rtol=1e-6)


def test_typing_errors_come_at_the_share_asked_for_and_keep_first_letters():
    titles = np.array(["reading several columns from tables"] * 400)
    before = [title.split() for title in titles]
    after = [title.split() for title in add_typing_errors(titles, 0.2, seed=0)]
    words = [pair for rows in zip(before, after, strict=True) for pair in zip(*rows, strict=True)]
    changed = [(old, new) for old, new in words if old != new]
    # An error that leaves the word as it was, such as two equal letters swapped, is not counted.
    assert 0.17 < len(changed) / len(words) < 0.23
    assert all(old[0] == new[0] and old[-1] == new[-1] for old, new in changed)
    assert {len(new) - len(old) for old, new in changed} == {-1, 0, 1}


def test_short_words_are_never_mistyped_and_no_share_changes_nothing():
    assert add_typing_errors(np.array(["a to the 1 in"]), 1.0, seed=0).tolist() == ["a to the 1 in"]
    np.testing.assert_array_equal(add_typing_errors(TITLES, 0.0, seed=0), TITLES)
