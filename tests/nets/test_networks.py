"""Networks: shapes, normalisation, and the size of the known architectures."""

import os

import numpy as np
import pytest
import torch

from s2osc.errors import SettingsError
from s2osc.nets.networks import (
    Network,
    NetworkSettings,
    ResidualBlock,
    as_tensor,
    is_stacked,
    item_shape,
    one_vector,
)
from samples import TINY_NETWORK, make_images

SHAPES = [(8, 8), (9, 12), (8, 8, 3), (5,)]
RESNET_18 = NetworkSettings(widths=(64, 128, 256, 512), blocks=(2, 2, 2, 2), first_map=64)
RESNET_34 = NetworkSettings(widths=(64, 128, 256, 512), blocks=(3, 4, 6, 3), first_map=64)


def random_inputs(shape, n=6, seed=0):
    random = np.random.default_rng(seed)
    if len(shape) == 1:
        return random.normal(size=(n, *shape)).astype(np.float32)
    return random.integers(0, 256, (n, *shape), dtype=np.uint8)


def n_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


def resnet_size(blocks, n_channels, n_outputs, *, kernel=3):
    """The parameters of a ResNet of basic blocks, counted from its description."""
    total = kernel**2 * n_channels * 64 + 2 * 64
    n_in = 64
    for stage, n_blocks in enumerate(blocks):
        n_out = 64 * 2**stage
        for _ in range(n_blocks):
            total += 9 * n_in * n_out + 9 * n_out * n_out + 4 * n_out
            if n_in != n_out:
                total += n_in * n_out + 2 * n_out
            n_in = n_out
    return total + 512 * n_outputs + n_outputs


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_kind_of_input_gets_one_row_of_logits_and_one_embedding(shape):
    network = Network(TINY_NETWORK, shape, 4)
    batch = as_tensor(random_inputs(shape))
    assert network(batch).shape == (6, 4)
    assert network.embed(batch).shape == (6, 16)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_head_reads_the_embedding_and_nothing_else(shape):
    network = Network(TINY_NETWORK, shape, 4).eval()
    batch = as_tensor(random_inputs(shape))
    by_hand = network.embed(batch) @ network.head.weight.T + network.head.bias
    torch.testing.assert_close(network(batch), by_hand)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_answers_do_not_depend_on_the_batch(shape):
    network = Network(TINY_NETWORK, shape, 4).eval()
    inputs = random_inputs(shape)
    network.fit_normalisation(inputs)
    one_by_one = torch.cat([network(as_tensor(inputs[i : i + 1])) for i in range(6)])
    torch.testing.assert_close(network(as_tensor(inputs)), one_by_one, atol=1e-5, rtol=1e-5)


def test_resnet_18_and_34_have_their_known_sizes():
    # 11,173,962 and 21,282,122: the published nets of 1,000 classes, 11,689,512 and 21,797,672,
    # with a 3 x 3 instead of a 7 x 7 stem and a head for 10 classes.
    with torch.device("meta"):
        small, large = (Network(net, (32, 32, 3), 10) for net in (RESNET_18, RESNET_34))
    assert n_parameters(small) == resnet_size((2, 2, 2, 2), 3, 10) == 11_173_962
    assert n_parameters(large) == resnet_size((3, 4, 6, 3), 3, 10) == 21_282_122
    assert resnet_size((2, 2, 2, 2), 3, 1000, kernel=7) == 11_689_512
    assert resnet_size((3, 4, 6, 3), 3, 1000, kernel=7) == 21_797_672


@pytest.mark.parametrize(
    ("side", "first_map", "stride"),
    [(8, 16, 1), (16, 16, 1), (17, 16, 2), (64, 16, 4), (65, 16, 8)],
)
def test_the_stem_strides_just_far_enough(side, first_map, stride):
    settings = NetworkSettings(first_map=first_map)
    assert settings.stem_stride(side, 3) == stride
    assert side / stride <= first_map


def test_grey_images_may_have_smaller_maps():
    settings = NetworkSettings(grey_map=8)
    assert [settings.stem_stride(28, channels) for channels in (1, 3)] == [4, 2]
    assert [settings.stem_stride(8, channels) for channels in (1, 3)] == [1, 1]
    for shape in ((28, 28), (28, 28, 3)):
        network = Network(settings, shape, 2)
        assert n_parameters(network) == settings.n_parameters(shape, 2)


def test_large_images_reach_the_first_stage_within_the_first_map():
    network = Network(NetworkSettings(widths=(8,), blocks=(1,), first_map=8), (30, 33), 2)
    seen = []
    block = next(layer for layer in network.body if isinstance(layer, ResidualBlock))
    block.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape[2:]))
    network(as_tensor(random_inputs((30, 33))))
    assert max(seen[0]) <= 8


def test_each_later_stage_halves_the_map():
    with torch.device("meta"):
        body = Network(RESNET_18, (32, 32, 3), 2).body
    strides = [layer.conv1.stride[0] for layer in body if isinstance(layer, ResidualBlock)]
    assert strides == [1, 1, 2, 1, 2, 1, 2, 1]


def test_a_residual_block_adds_its_input():
    block = ResidualBlock(3, 3, 1).eval()
    torch.nn.init.zeros_(block.conv2.weight)
    inputs = torch.rand(2, 3, 4, 4)
    torch.testing.assert_close(block(inputs), inputs)


def test_vectors_are_normalised_feature_by_feature():
    inputs = np.array([[1.0, 10.0, 5.0], [3.0, 30.0, 5.0]], np.float32)
    network = Network(TINY_NETWORK, (3,), 2)
    network.fit_normalisation(inputs)
    assert network.mean.tolist() == [2.0, 20.0, 5.0]
    assert network.scale.tolist() == [1.0, 10.0, 1.0]  # a constant feature keeps its scale


def test_images_are_normalised_channel_by_channel():
    images, _ = make_images(5, colour=True)
    network = Network(TINY_NETWORK, images.shape[1:], 2)
    network.fit_normalisation(images)
    by_channel = images.reshape(-1, 3)
    np.testing.assert_allclose(network.mean.flatten(), by_channel.mean(0), rtol=1e-5)
    np.testing.assert_allclose(network.scale.flatten(), by_channel.std(0), rtol=1e-5)


def test_the_first_layer_sees_normalised_inputs():
    inputs = random_inputs((5,), n=50) * 40 + 300
    network = Network(TINY_NETWORK, (5,), 2)
    network.fit_normalisation(inputs)
    seen = []
    network.body[0].register_forward_hook(lambda module, given, output: seen.append(given[0]))
    network(as_tensor(inputs))
    np.testing.assert_allclose(seen[0].mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(seen[0].std(0, correction=0), 1, atol=1e-4)


def test_normalisation_is_kept_with_the_weights():
    network = Network(TINY_NETWORK, (3,), 2)
    assert {"mean", "scale"} <= set(network.state_dict())


def test_grey_and_colour_images_become_channels_first():
    grey, colour = random_inputs((4, 6)), random_inputs((4, 6, 3))
    assert as_tensor(grey).shape == (6, 1, 4, 6)
    assert as_tensor(colour)[2, 1, 3, 5] == colour[2, 3, 5, 1]
    assert as_tensor(colour).dtype == torch.uint8


# Stacked views


def stacked_views(n=6, n_views=3, d=5):
    return np.random.default_rng(0).normal(size=(n, n_views, d)).astype(np.float32)


def test_the_embedding_of_stacked_views_is_the_mean_of_theirs():
    views = stacked_views()
    network = Network(TINY_NETWORK, (5,), 4).eval()
    network.fit_normalisation(views)
    each = [network.embed(as_tensor(np.ascontiguousarray(views[:, v]))) for v in range(3)]
    embedded = network.embed(as_tensor(views))
    torch.testing.assert_close(embedded, torch.stack(each).mean(0))
    torch.testing.assert_close(network(as_tensor(views)), network.head(embedded))


def test_equal_views_are_answered_as_one():
    vectors = random_inputs((5,))
    network = Network(TINY_NETWORK, (5,), 4).eval()
    thrice = np.repeat(vectors[:, None], 3, axis=1)
    torch.testing.assert_close(network(as_tensor(thrice)), network(as_tensor(vectors)))


def test_stacked_views_are_normalised_feature_by_feature_over_all_views():
    views = stacked_views(50) * np.array([1, 10, 100, 1, 1], np.float32) + 7
    network = Network(TINY_NETWORK, (5,), 2)
    network.fit_normalisation(views)
    np.testing.assert_allclose(network.mean, views.reshape(-1, 5).mean(0), rtol=1e-4)
    np.testing.assert_allclose(network.scale, views.reshape(-1, 5).std(0), rtol=1e-4)


def test_stacked_views_are_told_from_grey_images_by_their_type():
    views, grey = stacked_views(), random_inputs((4, 6))
    assert is_stacked(views)
    assert not is_stacked(grey)
    assert not is_stacked(views[:, 0])
    assert not is_stacked(random_inputs((4, 6, 3)))
    assert as_tensor(views).shape == (6, 3, 5)
    assert as_tensor(grey).shape == (6, 1, 4, 6)


@pytest.mark.parametrize(
    ("inputs", "shape"),
    [
        (random_inputs((5,)), (5,)),
        (stacked_views(), (5,)),
        (random_inputs((4, 6)), (4, 6)),
        (random_inputs((4, 6, 3)), (4, 6, 3)),
    ],
    ids=["vectors", "stacked", "grey", "colour"],
)
def test_the_shape_of_an_item_is_that_of_one_view(inputs, shape):
    assert item_shape(inputs) == shape


def test_stacked_views_as_one_vector_are_their_mean():
    views = stacked_views()
    np.testing.assert_allclose(one_vector(views), views.mean(1))
    for other in (random_inputs((5,)), random_inputs((4, 6))):
        assert one_vector(other) is other


def test_a_read_only_array_is_taken_without_a_warning():
    vectors = random_inputs((5,))
    vectors.flags.writeable = False  # a memory-mapped file, or what joblib hands to its workers
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        assert as_tensor(vectors).shape == (6, 5)
    finally:
        torch.set_warn_always(always)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"widths": (4, 8), "blocks": (1,)}, "2 widths and 1 block counts"),
        ({"widths": (), "blocks": ()}, "one of each per stage"),
        ({"widths": (0,), "blocks": (1,)}, r"network.widths is \(0,\)"),
        ({"hidden": ()}, r"network.hidden is \(\)"),
        ({"first_map": 0}, "network.first_map is 0"),
    ],
)
def test_a_network_that_cannot_be_built_is_refused(wrong, words):
    with pytest.raises(SettingsError, match=words):
        NetworkSettings(**wrong)


@pytest.mark.parametrize("shape", [(5,), (8, 8), (70, 33, 3)], ids=str)
@pytest.mark.parametrize(
    "settings",
    [NetworkSettings(), TINY_NETWORK, RESNET_34, NetworkSettings((16, 8), (3, 2), 8, (7,))],
    ids=["default", "tiny", "ResNet-34", "narrowing"],
)
def test_parameters_are_counted_without_building_the_network(settings, shape):
    with torch.device("meta"):
        network = Network(settings, shape, 3)
    assert settings.n_parameters(shape, 3) == n_parameters(network)


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"hidden": (99_999_999,)}, r"hidden=\(99999999,\) makes .* parameters"),
        ({"hidden": (1,) * 10**6}, "network.hidden makes 1,000,000 layers; give at most"),
        ({"widths": (10**6, 64, 64)}, r"widths=\(1000000, 64, 64\) and network.blocks=.* makes"),
        ({"blocks": (10**6, 1, 1)}, "network.blocks makes 1,000,002 layers; give at most"),
    ],
    ids=["wide layer", "many layers", "wide stage", "many blocks"],
)
def test_settings_of_a_network_too_large_for_any_input_are_refused(sizes, words):
    with pytest.raises(SettingsError, match=words):
        NetworkSettings(**sizes)


@pytest.mark.parametrize(
    ("sizes", "shape", "n_outputs"),
    [
        ({"hidden": (10**6,)}, (300,), 2),
        ({}, (28, 28), 10**7),
        ({"first_map": 1}, (4_000, 4_000), 2),  # the stem's kernel grows with its stride
    ],
    ids=["features", "classes", "side"],
)
def test_a_network_too_large_for_its_inputs_is_refused_before_it_is_built(sizes, shape, n_outputs):
    with pytest.raises(SettingsError, match="give a network of at most 250,000,000"):
        Network(NetworkSettings(**sizes), shape, n_outputs)


def test_a_network_of_few_channels_is_refused_or_trains():
    # Some versions of torch write past the end of memory in strided 1 x 1 convolutions of fewer
    # than 8 channels in channels-last order, which ends the whole process: hence another one.
    try:
        network = Network(NetworkSettings(widths=(4, 8), blocks=(1, 1)), (8, 8), 2)
    except SettingsError:
        return
    child = os.fork()  # torch is imported already
    if child == 0:
        torch.set_num_threads(1)  # threads do not survive a fork
        images = torch.zeros(32, 8, 8, 1, dtype=torch.uint8).permute(0, 3, 1, 2)
        try:
            for _ in range(100):
                network(images).sum().backward()
        except BaseException:  # nothing of the test may go on in the child
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
