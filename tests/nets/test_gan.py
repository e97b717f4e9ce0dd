"""The equations of the GAN against answers worked out by hand, and what its networks promise."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import SettingsError
from s2osc.nets.gan import (
    Autoencoder,
    GanSettings,
    between,
    build_critic,
    critic_loss,
    generator_loss,
    gradient_penalty,
    to_spheres,
    train_gan,
)
from samples import make_blobs, make_images

TINY_GAN = GanSettings(
    width=8, hidden=32, n_groups=4, group_size=8, epochs=1, min_steps=60, batch_size=32
)
SHAPES = [(8, 8), (9, 9), (28, 28), (28, 28, 3), (32, 32, 3), (8, 13), (5,)]


def a_batch(shape, n=3):
    if len(shape) == 1:
        return torch.randn(n, *shape)
    return torch.rand(n, 3 if len(shape) == 3 else 1, *shape[:2])


# The spheres


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3))
def test_every_group_of_a_code_has_length_1(seed, size):
    codes = size * torch.randn(5, 12, generator=torch.Generator().manual_seed(seed))
    lengths = to_spheres(codes, n_groups=3).reshape(5, 3, 4).norm(dim=2)
    np.testing.assert_allclose(lengths, 1, atol=1e-6)


def test_the_way_to_the_spheres_keeps_every_direction():
    on_spheres = to_spheres(torch.tensor([[3.0, 4.0, 0.0, -2.0]]), n_groups=2)
    np.testing.assert_allclose(on_spheres, [[0.6, 0.8, 0.0, -1.0]], atol=1e-7)


# The losses


def test_the_penalty_of_a_linear_critic_is_that_of_its_slope():
    a = torch.tensor([[3.0, 4.0], [0.0, 0.0]])  # an "image" of 2 x 2: ||a|| = 5 over all of it

    def critic(items):
        return (items * a).sum((1, 2))

    assert gradient_penalty(critic, torch.randn(6, 2, 2), weight=10.0).item() == 10 * (5 - 1) ** 2


def test_the_penalty_teaches_the_critic_its_slope():
    slope = torch.tensor([2.0, 0.0], requires_grad=True)
    gradient_penalty(lambda items: items @ slope, torch.randn(4, 2), weight=10.0).backward()
    # d/da 10 (||a|| - 1)^2 = 20 (||a|| - 1) a / ||a||
    np.testing.assert_allclose(slope.grad, [20.0, 0.0], atol=1e-5)


def test_the_critic_is_to_rate_items_above_what_is_generated():
    assert critic_loss(torch.tensor([3.0, 5.0]), torch.tensor([1.0])).item() == 1.0 - 4.0


def test_the_generator_is_to_reconstruct_and_to_please_the_critic():
    items, reconstructions = torch.zeros(2, 2), torch.tensor([[1.0, 0.0], [0.0, -2.0]])
    loss = generator_loss(items, reconstructions, torch.tensor([10.0, 30.0]), critic_weight=0.1)
    assert loss.item() == pytest.approx(3 / 4 - 0.1 * 20)


def test_points_between_lie_on_the_line_of_their_pair():
    items, generated = torch.zeros(50, 1, 2, 2), torch.ones(50, 1, 2, 2)
    points = between(items, generated, torch.Generator().manual_seed(0)).flatten(1)
    assert (points == points[:, :1]).all(), "one share for all pixels of an item"
    assert points[:, 0].min() < 0.2
    assert points[:, 0].max() > 0.8
    assert len(points[:, 0].unique()) == 50


# The networks


@pytest.mark.parametrize("shape", SHAPES)
def test_codes_are_unit_groups_and_are_decoded_to_the_shape_of_the_items(shape):
    coder, items = Autoencoder(TINY_GAN, shape), a_batch(shape)
    codes = coder.encode(items)
    assert codes.shape == (3, coder.n_code)
    lengths = codes.reshape(3, TINY_GAN.n_groups, -1).norm(dim=2)
    np.testing.assert_allclose(lengths.detach(), 1, atol=1e-6)
    assert coder.decode(codes).shape == items.shape


@pytest.mark.parametrize("shape", SHAPES)
def test_the_critic_gives_one_number_per_item_whatever_its_company(shape):
    critic, items = build_critic(TINY_GAN, shape), a_batch(shape)
    together, alone = critic(items), critic(items[:1])
    assert together.shape == (3, 1)
    np.testing.assert_allclose(together[:1].detach(), alone.detach(), atol=1e-5)


def test_noise_lies_on_the_spheres():
    coder = Autoencoder(TINY_GAN, (8, 8))
    noise = coder.noise(7, torch.Generator().manual_seed(0))
    assert noise.shape == (7, coder.n_code)
    np.testing.assert_allclose(noise.reshape(7, 4, -1).norm(dim=2), 1, atol=1e-6)


def test_pixels_run_from_0_to_1_within_and_are_restored():
    coder, pixels = Autoencoder(TINY_GAN, (8, 8)), torch.tensor([[[[0, 51, 255]]]]).byte()
    np.testing.assert_allclose(coder.normalise(pixels).flatten(), [0, 0.2, 1])
    np.testing.assert_allclose(coder.restore(coder.normalise(pixels)).flatten(), [0, 51, 255])


def test_vectors_are_standardised_within_and_restored():
    coder = Autoencoder(TINY_GAN, (2,))
    vectors = np.array([[1.0, 7.0], [5.0, 7.0]], np.float32)
    coder.fit_normalisation(vectors)
    normalised = coder.normalise(torch.from_numpy(vectors))
    np.testing.assert_allclose(normalised, [[-1, 0], [1, 0]])  # the second feature is constant
    np.testing.assert_allclose(coder.restore(normalised), vectors)


# The training


def reconstruction_error(coder, inputs):
    items = torch.from_numpy(inputs if inputs.ndim == 2 else inputs[:, None])
    with torch.no_grad():
        normalised = coder.normalise(items)
        return (coder.decode(coder.encode(normalised)) - normalised).abs().mean().item()


@pytest.mark.parametrize(
    ("inputs", "error_of_the_mean"),
    [(make_images(40)[0], 0.31), (make_blobs(40)[0], 0.79)],
    ids=["images", "vectors"],
)
def test_what_is_decoded_comes_close_to_the_items(inputs, error_of_the_mean):
    coder = train_gan(inputs, TINY_GAN, seed=0, device="cpu", what="training")
    assert reconstruction_error(coder, inputs) < 0.5 * error_of_the_mean


def test_the_same_seed_trains_the_same_gan_and_another_seed_another():
    inputs = make_images(10)[0]
    quick = GanSettings(width=8, n_groups=4, epochs=1, min_steps=0, batch_size=16)
    first, again, other = (
        torch.cat([p.flatten() for p in trained.parameters()])
        for seed in (0, 0, 1)
        for trained in [train_gan(inputs, quick, seed=seed, device="cpu", what="training")]
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_a_loss_that_is_no_number_is_named():
    inputs = np.full((8, 3), np.nan, np.float32)
    with pytest.raises(SettingsError, match=r"trying it: the loss is nan; .* gan.learning_rate"):
        train_gan(inputs, TINY_GAN, seed=0, device="cpu", what="trying it")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("width", 7),
        ("hidden", 0),
        ("n_groups", 0),
        ("group_size", 1),
        ("epochs", 0),
        ("min_steps", -1),
        ("batch_size", 1),
        ("learning_rate", 0.0),
        ("critic_weight", -0.1),
        ("penalty", float("nan")),
    ],
)
def test_settings_that_cannot_be_used_are_refused(name, value):
    with pytest.raises(SettingsError, match=f"gan.{name} is {value}; give a number"):
        GanSettings(**{name: value})
