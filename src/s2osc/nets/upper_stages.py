"""The upper stages of an EfficientNet-Lite as matrix products, which a CPU can train.

Maps are small up here: 6 x 6 and 3 x 3 for images of 96 pixels. With items last, ``(channels,
positions, items)``, a 1 x 1 convolution is one product of matrices, and a depthwise one a product,
per channel, with the matrix that its kernel makes of all positions. Torch's own depthwise
convolutions take up to ten times as long on the way back. The statistics of normalisation stay
those of the pretraining: they are folded into the weights.
"""

from collections.abc import Sequence
from math import isqrt

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.errors import SettingsError
from s2osc.nets.efficientnet import (
    N_FEATURES,
    STAGES,
    BlockSize,
    ConvNorm,
    EfficientNetLite,
    InvertedBottleneck,
    block_sizes,
    same_padding,
)

LOWEST_STAGE = 3
"""Below it maps are too large for products over all positions."""
LARGEST_MAP = 16
"""Positions a side: those of stage 4 for images of 128 pixels, which is the largest that occurs."""


class Pointwise(nn.Module):
    """A 1 x 1 convolution, with ReLU6 where ``is_active``."""

    def __init__(self, n_in: int, n_out: int, *, is_active: bool):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * (2 / n_in) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(n_out))
        self.is_active = is_active

    def forward(self, maps: Tensor) -> Tensor:
        # No number of items is named, so that a graph made of this takes any.
        made = torch.addmm(self.bias[:, None], self.weight, maps.flatten(1))
        made = made.unflatten(1, (maps.shape[1], -1))
        return F.relu6(made) if self.is_active else made

    def start_from(self, layer: ConvNorm) -> None:
        _copy_folded(self.weight, self.bias, layer)


class Depthwise(nn.Module):
    """A depthwise convolution with ReLU6, by a matrix of positions for each channel."""

    places: Tensor

    def __init__(self, n_channels: int, kernel: int, stride: int, side: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_channels, kernel**2) * (2 / kernel**2) ** 0.5)
        self.bias = nn.Parameter(torch.zeros(n_channels))
        self.shape = (-(-side // stride)) ** 2, side**2
        places = kernel_places(side, kernel, stride).flatten()
        self.register_buffer("places", places, persistent=False)

    def forward(self, maps: Tensor) -> Tensor:
        n_channels = len(self.weight)
        padded = F.pad(self.weight, (0, 1))  # the last place is for what the kernel does not reach
        matrices = padded.index_select(1, self.places).view(n_channels, *self.shape)
        return F.relu6(torch.baddbmm(self.bias[:, None, None], matrices, maps))

    def start_from(self, layer: ConvNorm) -> None:
        _copy_folded(self.weight, self.bias, layer)


class UpperBlock(nn.Module):
    """Expansion, depthwise convolution, projection; with a shortcut where the shapes agree."""

    def __init__(self, size: BlockSize, side: int):
        super().__init__()
        wide = size.n_in * size.expansion
        self.expand = Pointwise(size.n_in, wide, is_active=True)
        self.depthwise = Depthwise(wide, size.kernel, size.stride, side)
        self.project = Pointwise(wide, size.n_out, is_active=False)
        self.has_shortcut = size.has_shortcut

    def forward(self, maps: Tensor) -> Tensor:
        made = self.project(self.depthwise(self.expand(maps)))
        return maps + made if self.has_shortcut else made

    def start_from(self, block: InvertedBottleneck) -> None:
        assert isinstance(block.expand, ConvNorm)
        self.expand.start_from(block.expand)
        self.depthwise.start_from(block.depthwise)
        self.project.start_from(block.project)


class UpperStages(nn.Module):
    """Maps before stage ``first_stage``, ``(n, channels x positions)``, to features ``(n, 1280)``.

    Maps are square. Weights are random until ``start_from``.
    """

    def __init__(self, name: str, first_stage: int, n_inputs: int):
        super().__init__()
        self.first_stage = first_stage
        sizes = upper_sizes(name, first_stage)
        self.n_channels = sizes[0].n_in
        side = isqrt(n_inputs // self.n_channels)
        if side**2 * self.n_channels != n_inputs or not 1 <= side <= LARGEST_MAP:
            raise SettingsError(
                f"the maps before stage {first_stage} of {name} hold {n_inputs} numbers; they "
                f"have {self.n_channels} channels of at most {LARGEST_MAP} x {LARGEST_MAP} places"
            )
        blocks = []
        for size in sizes:
            blocks.append(UpperBlock(size, side))
            side = -(-side // size.stride)
        self.blocks = nn.Sequential(*blocks)
        self.head = Pointwise(sizes[-1].n_out, N_FEATURES, is_active=True)

    def forward(self, maps: Tensor) -> Tensor:
        items_last = maps.unflatten(1, (self.n_channels, -1)).permute(1, 2, 0).contiguous()
        features: Tensor = self.head(self.blocks(items_last))
        return features.mean(1).T

    def start_from(self, network: EfficientNetLite) -> None:
        """Take the weights of the pretrained network's upper stages."""
        upper = list(network.blocks)[-len(self.blocks) :]
        for own, block in zip(self.blocks, upper, strict=True):
            assert isinstance(own, UpperBlock)
            assert isinstance(block, InvertedBottleneck)
            own.start_from(block)
        self.head.start_from(network.head)

    def depths(self) -> dict[str, int]:
        """By the name of a parameter, how many blocks lie between it and the features."""
        return {
            name: len(self.blocks) - int(name.split(".")[1]) if name.startswith("blocks.") else 0
            for name, _ in self.named_parameters()
        }


def upper_sizes(name: str, first_stage: int) -> list[BlockSize]:
    """The blocks of a network from a stage on."""
    if not LOWEST_STAGE <= first_stage <= len(STAGES):
        raise SettingsError(
            f"network.first_stage is {first_stage}; give a whole number from {LOWEST_STAGE} to "
            f"{len(STAGES)}"
        )
    return [size for size in block_sizes(name) if size.stage >= first_stage]


def count_parameters(sizes: Sequence[BlockSize]) -> int:
    """The weights of upper stages, without building them."""
    total = (sizes[-1].n_out + 1) * N_FEATURES
    for size in sizes:
        wide = size.n_in * size.expansion
        total += wide * (size.n_in + 1 + size.kernel**2 + 1) + (wide + 1) * size.n_out
    return total


def kernel_places(side: int, kernel: int, stride: int) -> Tensor:
    """(places after, places before): which weight of the kernel joins them; kernel ** 2: none.

    >>> kernel_places(2, 3, 1)[0].tolist()  # the kernel's middle lies on the first of four places
    [4, 5, 7, 8]
    """
    before = same_padding(side, kernel, stride)[0] if stride > 1 else kernel // 2
    start = torch.arange(-(-side // stride)) * stride - before
    offset = torch.arange(side) - start[:, None]  # (after, before) along one axis
    reached = (offset >= 0) & (offset < kernel)
    rows, columns = offset[:, None, :, None], offset[None, :, None, :]
    both = reached[:, None, :, None] & reached[None, :, None, :]
    places = torch.where(both, rows * kernel + columns, kernel**2)
    return places.reshape(len(start) ** 2, side**2)


@torch.no_grad()
def _copy_folded(weight: Tensor, bias: Tensor, layer: ConvNorm) -> None:
    """The convolution of a layer with its normalisation folded in."""
    assert layer.conv.bias is not None, "fold the network first"
    weight.copy_(layer.conv.weight.reshape(weight.shape))
    bias.copy_(layer.conv.bias)
