"""The upper stages as matrix products are those of the network, and can be trained."""

import pytest
import torch

from s2osc.errors import SettingsError
from s2osc.nets.efficientnet import ConvNorm, EfficientNetLite
from s2osc.nets.upper_stages import Depthwise, UpperStages, count_parameters, upper_sizes


def random_network(name: str = "efficientnet-lite0") -> EfficientNetLite:
    """Random weights, with statistics of normalisation that are not those of new layers."""
    torch.manual_seed(0)
    network = EfficientNetLite(name).eval()
    for module in network.modules():
        if isinstance(module, ConvNorm):
            torch.nn.init.uniform_(module.norm.running_var, 0.5, 2.0)
            torch.nn.init.normal_(module.norm.running_mean, std=0.1)
            torch.nn.init.normal_(module.norm.bias, std=0.1)
    network.fold()
    return network


@pytest.mark.parametrize(
    ("name", "first_stage", "n_lower"),
    [("efficientnet-lite0", 5, 8), ("efficientnet-lite0", 4, 5), ("efficientnet-lite2", 5, 11)],
)
def test_features_are_those_of_the_network_itself(name, first_stage, n_lower):
    network = random_network(name)
    with torch.no_grad():
        maps = network.blocks[:n_lower](network.stem(torch.randn(3, 3, 64, 64)))
        expected = network.head(network.blocks[n_lower:](maps)).mean((2, 3))
        upper = UpperStages(name, first_stage, maps[0].numel())
        upper.start_from(network)
        found = upper(maps.flatten(1))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kernel", "stride", "side"), [(3, 1, 4), (5, 1, 3), (5, 2, 6), (3, 2, 5)])
def test_a_depthwise_layer_and_its_gradients_are_those_of_a_convolution(kernel, stride, side):
    torch.manual_seed(0)
    theirs = ConvNorm(6, 6, kernel, stride, groups=6, is_active=True).eval()
    theirs.fold()
    ours = Depthwise(6, kernel, stride, side)
    ours.start_from(theirs)
    images = torch.randn(2, 6, side, side)
    expected = theirs(images)
    found = ours(images.flatten(2).permute(1, 2, 0)).permute(2, 0, 1)
    torch.testing.assert_close(found, expected.flatten(2))
    expected.square().sum().backward()
    found.square().sum().backward()
    torch.testing.assert_close(ours.weight.grad, theirs.conv.weight.grad.flatten(1))


@pytest.mark.parametrize("first_stage", [4, 5, 7])
def test_parameters_are_counted_without_building(first_stage):
    sizes = upper_sizes("efficientnet-lite0", first_stage)
    upper = UpperStages("efficientnet-lite0", first_stage, 4 * sizes[0].n_in)
    n_built = sum(parameter.numel() for parameter in upper.parameters())
    assert count_parameters(sizes) == n_built


def test_lower_blocks_lie_deeper():
    depths = UpperStages("efficientnet-lite0", 6, 4 * 112).depths()
    assert depths["head.weight"] == 0
    assert depths["blocks.4.expand.weight"] == 1
    assert depths["blocks.0.expand.weight"] == 5


@pytest.mark.parametrize("n_inputs", [80 * 3, 80 * 17**2, 81, 0])
def test_maps_that_are_not_square_or_too_large_are_refused(n_inputs):
    with pytest.raises(SettingsError, match="80 channels of at most 16 x 16 places"):
        UpperStages("efficientnet-lite0", 5, n_inputs)


@pytest.mark.parametrize("first_stage", [2, 8])
def test_a_stage_that_cannot_be_trained_is_refused(first_stage):
    with pytest.raises(SettingsError, match=f"first_stage is {first_stage}; give .* from 3 to 7"):
        upper_sizes("efficientnet-lite0", first_stage)
