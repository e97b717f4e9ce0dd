"""Views of images and vectors, and every image operation against PIL."""

import math

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from s2osc.errors import SettingsError
from s2osc.nets.augmentation import image_ops
from s2osc.nets.augmentation.augment import (
    AugmentSettings,
    Views,
    draw_shifts,
    released_images,
    shift_and_flip,
    strong_vectors,
    weak_images,
    weak_vectors,
    weak_view,
)
from s2osc.nets.networks import Network, as_tensor, item_shape
from samples import TINY_NETWORK, make_blobs, make_images

FORMATS = [torch.contiguous_format, torch.channels_last]
SHAPES = [(6, 3, 32, 32), (6, 1, 28, 28), (6, 3, 17, 40)]


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def random_images(shape, memory_format=torch.contiguous_format):
    images = torch.randint(0, 256, shape, generator=seeded(5), dtype=torch.uint8)
    return images.to(memory_format=memory_format)


def weak_mirrored(images, generator):
    return weak_images(images, generator, flip=True)


WEAK_VIEWS = [weak_mirrored, released_images]


def numpy_shift_and_flip(image, dy, dx, flipped):
    """One image (C, H, W), by padding and cropping."""
    _, height, width = image.shape
    mirrored = image[:, :, ::-1] if flipped else image
    padded = np.pad(mirrored, ((0, 0), (height - 1,) * 2, (width - 1,) * 2), mode="reflect")
    top, left = height - 1 - dy, width - 1 - dx
    return padded[:, top : top + height, left : left + width]


@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_shifted_and_flipped_images_equal_padded_and_cropped_ones(shape, memory_format):
    images = random_images((40, *shape[1:]), memory_format)
    draws = draw_shifts(40, *shape[2:], seeded(), flip=True)
    moved = shift_and_flip(images, *draws)
    for image, result, dy, dx, flipped in zip(images, moved, *draws, strict=True):
        expected = numpy_shift_and_flip(image.numpy(), int(dy), int(dx), bool(flipped))
        np.testing.assert_array_equal(result.numpy(), expected)


def test_images_smaller_than_eight_pixels_are_flipped_but_not_shifted():
    images = random_images((20, 3, 1, 5))
    dy, dx, flipped = draw_shifts(20, 1, 5, seeded(), flip=True)
    assert not dy.any()
    assert not dx.any()
    moved = shift_and_flip(images, dy, dx, flipped)
    assert torch.equal(moved[flipped], images[flipped].flip(3))
    assert torch.equal(moved[~flipped], images[~flipped])


@pytest.mark.parametrize(("side", "reach"), [(28, 3), (32, 4), (7, 0)])
def test_shifts_reach_an_eighth_of_the_side_rounded_down_both_ways(side, reach):
    dy, dx, _ = draw_shifts(2000, side, side, seeded(), flip=True)
    for shift in (dy, dx):
        assert set(shift.tolist()) == set(range(-reach, reach + 1))
    if reach:
        assert abs(np.corrcoef(dy.numpy(), dx.numpy())[0, 1]) < 0.1


def test_an_impulse_moves_at_most_four_pixels():
    images = torch.zeros((500, 3, 32, 32), dtype=torch.uint8)
    images[:, :, 16, 12] = 255
    moved = weak_images(images, seeded(), flip=False)
    _, _, y, x = moved.nonzero(as_tuple=True)
    assert len(y) == 500 * 3
    assert (y - 16).abs().max() == 4
    assert (x - 12).abs().max() == 4


def test_half_of_the_images_are_flipped_only_where_asked():
    _, _, flipped = draw_shifts(4000, 32, 32, seeded(), flip=True)
    assert 0.47 < flipped.float().mean() < 0.53
    _, _, flipped = draw_shifts(4000, 32, 32, seeded(), flip=False)
    assert not flipped.any()


def test_the_released_view_flips_every_image_and_turns_it_by_at_most_ten_degrees():
    height, width, radius = 65, 65, 30
    images = torch.zeros((300, 1, height, width), dtype=torch.uint8)
    images[:, :, 31:34, 32 + radius - 1 : 32 + radius + 2] = 255
    views = released_images(images, seeded())
    _, _, y, x = views.nonzero(as_tuple=True)
    assert (x < width // 2).all()
    degrees = torch.rad2deg(torch.atan2((y - 32).double(), (32 - x).double()))
    one_pixel = math.degrees(2 / radius)
    assert 9 < degrees.abs().max() < 10 + one_pixel
    assert degrees.min() < 0 < degrees.max()


@pytest.mark.parametrize("view", WEAK_VIEWS)
@pytest.mark.parametrize("memory_format", FORMATS)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_view_keeps_type_shape_and_memory_format_and_leaves_its_images_alone(
    view, shape, memory_format
):
    images = random_images(shape, memory_format)
    before = images.clone()
    viewed = view(images, seeded())
    assert viewed.dtype == torch.uint8
    assert viewed.shape == images.shape
    assert viewed.is_contiguous(memory_format=memory_format)
    assert viewed.data_ptr() != images.data_ptr()
    assert torch.equal(images, before)


@pytest.mark.parametrize("view", WEAK_VIEWS)
def test_the_generator_alone_decides_and_every_item_gets_its_own_draw(view):
    images = random_images((1, 3, 32, 32)).expand(30, -1, -1, -1).contiguous()
    state = torch.random.get_rng_state()
    views = view(images, seeded(1))
    assert torch.equal(views, view(images, seeded(1)))
    assert not torch.equal(views, view(images, seeded(2)))
    assert len(views.flatten(1).unique(dim=0)) > 15
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("view", WEAK_VIEWS)
def test_an_empty_batch_has_an_empty_view(view):
    assert view(random_images((0, 3, 8, 8)), seeded()).shape == (0, 3, 8, 8)


def test_the_view_of_the_settings_flips_colour_images_only_unless_told():
    colour, grey = random_images((20, 3, 7, 7)), random_images((20, 1, 7, 7))
    assert not torch.equal(weak_view(colour, seeded(), AugmentSettings()), colour)
    assert torch.equal(weak_view(grey, seeded(), AugmentSettings()), grey)
    assert not torch.equal(weak_view(grey, seeded(), AugmentSettings(flip=True)), grey)
    assert torch.equal(weak_view(colour, seeded(), AugmentSettings(flip=False)), colour)
    released = weak_view(grey, seeded(), AugmentSettings(weak="released"))
    assert torch.equal(released, released_images(grey, seeded()))


@pytest.mark.parametrize(
    "wrong", [{"flip": "auto"}, {"noise": -0.1}, {"noise": math.nan}, {"weak": "strong"}]
)
def test_settings_that_cannot_be_used_are_refused(wrong):
    (name,) = wrong
    with pytest.raises(SettingsError, match=rf"augmentation\.{name} is .*; give "):
        AugmentSettings(**wrong)


SCALE = torch.tensor([1.0, 10.0, 0.0, 2.0])
MEAN = torch.tensor([5.0, -3.0, 1.0, 100.0])


def test_weak_vectors_keep_their_mean_and_get_noise_in_proportion_to_each_feature():
    vectors = torch.full((20_000, 4), 7.0)
    noisy = weak_vectors(vectors, seeded(), noise=0.1, scale=SCALE)
    assert noisy.dtype == torch.float32
    torch.testing.assert_close(noisy.mean(0), vectors[0], atol=0.03, rtol=0)
    torch.testing.assert_close(noisy.std(0), 0.1 * SCALE, atol=0.0, rtol=0.03)
    assert torch.equal(vectors, torch.full((20_000, 4), 7.0))


def test_strong_vectors_get_three_times_the_noise_and_the_mean_in_a_fifth_of_the_features():
    vectors = torch.full((20_000, 4), 7.0)
    strong = strong_vectors(vectors, seeded(), noise=0.1, scale=SCALE, mean=MEAN)
    is_masked = strong == MEAN
    torch.testing.assert_close(is_masked.float().mean(0), torch.full((4,), 0.2), atol=0.02, rtol=0)
    for feature in range(4):
        kept = strong[~is_masked[:, feature], feature]
        torch.testing.assert_close(kept.mean(), torch.tensor(7.0), atol=0.1, rtol=0)
        torch.testing.assert_close(kept.std(), 0.3 * SCALE[feature], atol=0.0, rtol=0.03)
    assert torch.equal(vectors, torch.full((20_000, 4), 7.0))


def test_views_of_vectors_repeat_with_the_seed_and_differ_between_items():
    vectors = torch.zeros(10, 4)
    for view in (
        lambda seed: weak_vectors(vectors, seeded(seed), noise=0.1, scale=SCALE),
        lambda seed: strong_vectors(vectors, seeded(seed), noise=0.1, scale=SCALE, mean=MEAN),
    ):
        assert torch.equal(view(1), view(1))
        assert not torch.equal(view(1), view(2))
        assert len(view(1).unique(dim=0)) == 10


# --- image operations against PIL ------------------------------------------------------------


def enhanced(enhancement):
    return lambda image, level: enhancement(image).enhance(0.1 + 1.9 * level)


def blended(change):
    return lambda image, level: Image.blend(image, change(image), level)


def affine(matrix_of):
    def transform(image, level):
        matrix = matrix_of(2 * level - 1, *image.size)
        return image.transform(image.size, Image.Transform.AFFINE, matrix)

    return transform


PIL_OPS = {
    "autocontrast": blended(ImageOps.autocontrast),
    "blur": blended(lambda image: image.filter(ImageFilter.BLUR)),
    "brightness": enhanced(ImageEnhance.Brightness),
    "color": enhanced(ImageEnhance.Color),
    "contrast": enhanced(ImageEnhance.Contrast),
    "equalize": blended(ImageOps.equalize),
    "invert": blended(ImageOps.invert),
    "posterize": lambda image, level: ImageOps.posterize(image, 1 + int(level * 7.999)),
    "rotate": lambda image, level: image.rotate((2 * level - 1) * 45),
    "sharpness": enhanced(ImageEnhance.Sharpness),
    "shear_x": affine(lambda s, width, height: (1, 0.3 * s, 0, 0, 1, 0)),
    "shear_y": affine(lambda s, width, height: (1, 0, 0, 0.3 * s, 1, 0)),
    "smooth": blended(lambda image: image.filter(ImageFilter.SMOOTH)),
    "solarize": lambda image, level: ImageOps.solarize(image, int(level * 255.999)),
    "translate_x": affine(lambda s, width, height: (1, 0, 0.3 * s * width, 0, 1, 0)),
    "translate_y": affine(lambda s, width, height: (1, 0, 0, 0, 1, 0.3 * s * height)),
}
LEVELS = torch.tensor([0.0, 0.03, 0.21, 0.37, 0.5, 0.64, 0.71, 0.88, 0.97, 1.0])


def textured_images(channels, height, width):
    """Waves over different ranges of grey: unlike noise, they have contrast to stretch."""
    places = torch.linspace(0, 1, height)[:, None] + torch.linspace(0, 1, width)
    waves = torch.stack([(3 * (k + 1) * places).sin() for k in range(len(LEVELS) * channels)])
    spread = torch.linspace(10, 100, len(waves))[:, None, None]
    noise = torch.randn(waves.shape, generator=seeded(3))
    values = (120 + spread * waves + 8 * noise).clamp(0, 255)
    return values.view(len(LEVELS), channels, height, width).to(torch.uint8)


def as_pil(image):
    array = image.permute(1, 2, 0).numpy()
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else np.ascontiguousarray(array))


def from_pil(images):
    arrays = [np.atleast_3d(np.asarray(image)) for image in images]
    return torch.from_numpy(np.stack(arrays)).permute(0, 3, 1, 2)


def difference(images, expected):
    return (images.int() - expected.int()).abs().max()


@pytest.mark.parametrize("images_of", [random_images, lambda s: textured_images(*s[1:])])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PIL_OPS)
def test_an_operation_does_what_pil_does(name, shape, images_of):
    images = images_of((len(LEVELS), *shape[1:]))
    result = getattr(image_ops, name)(images, LEVELS)
    expected = from_pil(
        PIL_OPS[name](as_pil(image), float(level))
        for image, level in zip(images, LEVELS, strict=True)
    )
    # Blends truncate, so that a last bit of a product may decide over one grey level.
    assert difference(result, expected) <= 1
    assert (result != expected).float().mean() < 0.001


# Odd sides: an even crop of an even side puts centres between two pixels, where PIL's running sum
# for "nearest" takes either one.
@pytest.mark.parametrize("shape", [(6, 3, 31, 45), (6, 1, 27, 27)])
@pytest.mark.parametrize("number", range(6))
def test_rescale_does_what_pil_does_with_each_filter(number, shape):
    methods = [
        Image.Resampling.LANCZOS,
        Image.Resampling.BICUBIC,
        Image.Resampling.BILINEAR,
        Image.Resampling.BOX,
        Image.Resampling.HAMMING,
        Image.Resampling.NEAREST,
    ]
    images = random_images((len(LEVELS), *shape[1:]))
    result = image_ops.rescale(images, LEVELS, torch.full_like(LEVELS, (number + 0.5) / 6))

    def rescaled(image, level):
        (width, height), cut = image.size, 0.25 * level
        crop = (cut * width, cut * height, (1 - cut) * width, (1 - cut) * height)
        return image.crop(crop).resize(image.size, methods[number])

    expected = from_pil(
        rescaled(as_pil(image), float(level)) for image, level in zip(images, LEVELS, strict=True)
    )
    assert difference(result, expected) <= 1


def test_autocontrast_and_equalize_leave_a_flat_image_alone():
    images = torch.full((1, 3, 8, 8), 90, dtype=torch.uint8)
    for operation in (image_ops.autocontrast, image_ops.equalize):
        assert torch.equal(operation(images, torch.ones(1)), images)


def test_colour_leaves_grey_images_alone():
    images = random_images((10, 1, 8, 8))
    assert torch.equal(image_ops.color(images, LEVELS), images)


def test_cutout_covers_at_most_half_the_side_and_less_at_the_border():
    images = torch.zeros((500, 3, 32, 32), dtype=torch.uint8)
    row, column = torch.rand(2, 500, generator=seeded())
    covered = image_ops.cutout(images, torch.ones(500), row, column)
    areas = (covered[:, 0] == image_ops.GREY).sum(dim=(1, 2))
    assert areas.max() == 256
    assert areas.min() >= 64
    assert areas.float().mean() < 250
    assert not image_ops.cutout(images, torch.zeros(500), row, column).any()


def test_cutout_is_a_square_around_its_centre():
    images = torch.zeros((1, 1, 32, 32), dtype=torch.uint8)
    row, column = torch.tensor([0.5]), torch.tensor([0.1])
    covered = image_ops.cutout(images, torch.ones(1), row, column)[0, 0] != 0
    expected = torch.zeros(32, 32, dtype=torch.bool)
    expected[8:24, 0:11] = True
    assert torch.equal(covered, expected)


@pytest.mark.parametrize("side", [1, 2, 4])
@pytest.mark.parametrize("name", PIL_OPS)
def test_operations_take_tiny_images(name, side):
    images = random_images((len(LEVELS), 3, side, side))
    assert getattr(image_ops, name)(images, LEVELS).shape == images.shape


# --- which view a batch gets ------------------------------------------------------------------

VECTORS, IMAGES = make_blobs(20)[0], make_images(20)[0]
KINDS = pytest.mark.parametrize("inputs", [VECTORS, IMAGES], ids=["vectors", "images"])
STRENGTHS = pytest.mark.parametrize("strength", ["weak", "strong"])


def make_views(inputs, strength="weak", seed=0, **settings):
    torch.manual_seed(0)
    network = Network(TINY_NETWORK, item_shape(inputs), 4)
    network.fit_normalisation(inputs)
    generator = torch.Generator().manual_seed(seed)
    return Views(network, strength, AugmentSettings(**settings), generator)


@KINDS
@STRENGTHS
def test_a_view_looks_like_its_batch_and_leaves_it_alone(inputs, strength):
    batch = as_tensor(inputs)
    before = batch.clone()
    view = make_views(inputs, strength)(batch)
    assert (view.shape, view.dtype) == (batch.shape, batch.dtype)
    assert torch.equal(batch, before)
    assert not torch.equal(view, batch)


@KINDS
@STRENGTHS
def test_the_generator_alone_decides_the_views(inputs, strength):
    batch = as_tensor(inputs)
    view = make_views(inputs, strength, seed=1)(batch)
    torch.manual_seed(99)
    assert torch.equal(view, make_views(inputs, strength, seed=1)(batch))
    assert not torch.equal(view, make_views(inputs, strength, seed=2)(batch))


@KINDS
def test_weak_views_are_weak_also_where_the_strength_is_strong(inputs):
    batch = as_tensor(inputs)
    weak = make_views(inputs, "weak").weak(batch)
    assert torch.equal(make_views(inputs, "strong").weak(batch), weak)
    assert torch.equal(make_views(inputs, "weak")(batch), weak)


def test_the_noise_of_vectors_follows_the_scale_of_each_feature():
    inputs = np.random.default_rng(0).normal(size=(4_000, 3)).astype(np.float32) * [1, 10, 100]
    batch = as_tensor(inputs.astype(np.float32))
    added = make_views(batch.numpy(), noise=0.1)(batch) - batch
    np.testing.assert_allclose(added.std(0), [0.1, 1.0, 10.0], rtol=0.1)


def test_without_noise_a_weak_view_of_vectors_is_the_batch():
    batch = as_tensor(VECTORS)
    assert torch.equal(make_views(VECTORS, noise=0.0)(batch), batch)


def test_a_strong_view_of_vectors_hides_features_behind_their_mean():
    views = make_views(VECTORS, "strong")
    hidden = views(as_tensor(VECTORS)) == views.network.mean
    assert 0.1 < hidden.float().mean() < 0.3


def test_a_weak_view_of_images_is_a_small_shift():
    # Eight pixels allow a shift of one: each view is one of nine shifted images.
    image = as_tensor(IMAGES[:1])
    padded = torch.nn.functional.pad(image.float(), (1, 1, 1, 1), mode="reflect").byte()
    shifts = [padded[..., y : y + 8, x : x + 8] for y in range(3) for x in range(3)]
    views = make_views(IMAGES)(image.expand(200, 1, 8, 8))
    found = [[torch.equal(view[None], shift) for shift in shifts].index(True) for view in views]
    assert set(found) == set(range(9))


def test_a_strong_view_of_images_cuts_out_a_grey_square():
    views = make_views(IMAGES, "strong")(as_tensor(IMAGES))
    share_of_grey = (views == 127).float().mean((1, 2, 3))
    assert share_of_grey.min() > 0.04


STACKED = np.arange(3, dtype=np.float32)[:, None] + np.zeros((400, 3, 8), np.float32)
"""Items whose first view is all 0, the second all 1, the third all 2."""


@KINDS
def test_plain_items_are_as_they_are(inputs):
    batch = as_tensor(inputs)
    assert make_views(inputs).plain(batch) is batch


def test_of_stacked_views_the_plain_one_is_the_first():
    plain = make_views(STACKED).plain(as_tensor(STACKED))
    assert torch.equal(plain, torch.zeros(400, 8))


@STRENGTHS
def test_a_view_of_stacked_views_is_one_of_them_at_random(strength):
    views = make_views(STACKED, strength)
    for view in (views.weak(as_tensor(STACKED)), views(as_tensor(STACKED))):
        assert view.shape == (400, 8)
        assert torch.equal(view, view[:, :1].expand(400, 8))
        often = np.bincount(view[:, 0].int())
        assert len(often) == 3
        assert often.min() > 90  # of 133


def test_the_generator_alone_decides_among_stacked_views():
    batch = as_tensor(STACKED)
    first, again, other = (make_views(STACKED, seed=seed).weak(batch) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_only_strong_views_of_images_learn():
    assert make_views(IMAGES, "strong").ctaugment is not None
    assert make_views(IMAGES, "weak").ctaugment is None
    views = make_views(VECTORS, "strong")
    assert views.ctaugment is None
    state = views.generator.get_state()
    views.learn(as_tensor(VECTORS), torch.zeros(len(VECTORS), dtype=torch.int64))
    assert torch.equal(views.generator.get_state(), state)


def test_what_the_network_no_longer_recognises_is_drawn_less_often():
    views = make_views(IMAGES, "strong")
    before = views.ctaugment.rates.clone()
    views.learn(as_tensor(IMAGES), torch.zeros(len(IMAGES), dtype=torch.int64))
    after = views.ctaugment.rates
    assert (after <= before).all()
    assert (after < before).any()


def test_learning_leaves_the_network_as_it_was():
    views = make_views(IMAGES, "strong")
    views.network.train()
    before = {name: tensor.clone() for name, tensor in views.network.state_dict().items()}
    views.learn(as_tensor(IMAGES), torch.zeros(len(IMAGES), dtype=torch.int64))
    assert views.network.training
    for name, tensor in views.network.state_dict().items():
        assert torch.equal(tensor, before[name]), name
