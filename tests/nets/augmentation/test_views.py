"""Which view a network's batch gets: weak or strong, of images or of vectors."""

import numpy as np
import pytest
import torch

from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.augmentation.views import Views
from s2osc.nets.networks import Network, as_tensor, item_shape
from samples import TINY_NETWORK, make_blobs, make_images

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
