"""EfficientNet-Lite (Tan and Le 2019, without squeeze-and-excitation) as a feature extractor.

The layers are those of TensorFlow's release, so that its ImageNet weights fit, without the
classifier. Lite1 and Lite2 are Lite0 with more blocks and, in Lite2, wider ones.
"""

import re
from collections.abc import Mapping
from math import ceil
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

N_FEATURES = 1280
STEM_WIDTH = 32
NORM_EPS, NORM_MOMENTUM = 1e-3, 0.01  # TensorFlow's, which the weights were trained with
STAGES = (  # kernel, stride, expansion, width, blocks
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
SCALES = {  # of widths, and of the number of blocks
    "efficientnet-lite0": (1.0, 1.0),
    "efficientnet-lite1": (1.0, 1.1),
    "efficientnet-lite2": (1.1, 1.2),
}
OUTER_NAMES = {
    "_conv_stem": "stem.conv",
    "_bn0": "stem.norm",
    "_conv_head": "head.conv",
    "_bn1": "head.norm",
}
BLOCK_NAMES = {
    "_expand_conv": "expand.conv",
    "_bn0": "expand.norm",
    "_depthwise_conv": "depthwise.conv",
    "_bn1": "depthwise.norm",
    "_project_conv": "project.conv",
    "_bn2": "project.norm",
}


class BlockSize(NamedTuple):
    """One block of a network."""

    stage: int  # from 1
    n_in: int
    n_out: int
    kernel: int
    stride: int
    expansion: int

    @property
    def has_shortcut(self) -> bool:
        return self.stride == 1 and self.n_in == self.n_out


def block_sizes(name: str) -> list[BlockSize]:
    """The blocks of a network by its name, from the first to the last.

    >>> [len(block_sizes(name)) for name in SCALES], block_sizes("efficientnet-lite2")[-1].n_out
    ([16, 21, 21], 352)
    """
    width_scale, depth_scale = SCALES[name]
    sizes, n_in = [], STEM_WIDTH
    for stage, (kernel, first_stride, expansion, width, n_blocks) in enumerate(STAGES, start=1):
        n_out = _scaled_width(width, width_scale)
        # The first stage and the last have the same blocks in all of them.
        n_scaled = n_blocks if stage in (1, len(STAGES)) else ceil(depth_scale * n_blocks)
        for block in range(n_scaled):
            stride = first_stride if block == 0 else 1
            sizes.append(BlockSize(stage, n_in, n_out, kernel, stride, expansion))
            n_in = n_out
    return sizes


def _scaled_width(width: int, scale: float) -> int:
    """A multiple of 8 near the scaled width, and no more than a tenth below it."""
    scaled = width * scale
    rounded = max(8, int(scaled + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * scaled else rounded


class ConvNorm(nn.Module):
    """A convolution and its batch normalisation, with ReLU6 where ``is_active``."""

    def __init__(
        self,
        n_in: int,
        n_out: int,
        kernel: int,
        stride: int = 1,
        *,
        groups: int = 1,
        is_active: bool,
    ):
        super().__init__()
        # With stride 1 TensorFlow pads both sides alike; otherwise see ``forward``.
        padding = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(n_in, n_out, kernel, stride, padding, groups=groups, bias=False)
        self.norm: nn.Module = nn.BatchNorm2d(n_out, NORM_EPS, NORM_MOMENTUM)
        self.is_active = is_active

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.conv.kernel_size[0], self.conv.stride[0]
        if stride > 1:
            rows, columns = (same_padding(size, kernel, stride) for size in x.shape[2:])
            x = F.pad(x, (*columns, *rows))
        x = self.norm(self.conv(x))
        return F.relu6(x, inplace=not torch.is_grad_enabled()) if self.is_active else x

    def fold(self) -> None:
        """Fuse the normalisation into the convolution, which is faster."""
        if isinstance(self.norm, nn.BatchNorm2d):
            self.conv = fuse_conv_bn_eval(self.conv, self.norm)
            self.norm = nn.Identity()


class InvertedBottleneck(nn.Module):
    """Expansion, depthwise convolution, projection; with a shortcut where the shapes agree."""

    def __init__(self, size: BlockSize):
        super().__init__()
        wide = size.n_in * size.expansion
        expands = size.expansion > 1
        self.expand = ConvNorm(size.n_in, wide, 1, is_active=True) if expands else nn.Identity()
        self.depthwise = ConvNorm(wide, wide, size.kernel, size.stride, groups=wide, is_active=True)
        self.project = ConvNorm(wide, size.n_out, 1, is_active=False)
        self.has_shortcut = size.has_shortcut

    def forward(self, x: Tensor) -> Tensor:
        y = self.project(self.depthwise(self.expand(x)))
        return x + y if self.has_shortcut else y


class EfficientNetLite(nn.Module):
    """Normalised images ``(n, 3, H, W)`` to pooled features ``(n, 1280)``."""

    def __init__(self, name: str) -> None:
        super().__init__()
        sizes = block_sizes(name)
        self.stem = ConvNorm(3, STEM_WIDTH, 3, 2, is_active=True)
        self.blocks = nn.Sequential(*(InvertedBottleneck(size) for size in sizes))
        self.head = ConvNorm(sizes[-1].n_out, N_FEATURES, 1, is_active=True)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(images))).mean((2, 3))

    def fold(self) -> None:
        """Fuse all normalisations, for evaluation; features change by rounding only."""
        for module in self.modules():
            if isinstance(module, ConvNorm):
                module.fold()


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, as in TensorFlow's "SAME" padding: an odd one comes last.

    >>> same_padding(96, 3, 2), same_padding(96, 5, 2), same_padding(97, 3, 2)
    ((0, 1), (1, 2), (1, 1))
    """
    n_steps = -(-size // stride)
    total = max((n_steps - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def load_efficientnet_lite(name: str, path: Path) -> EfficientNetLite:
    """The network with the published weights, in evaluation mode."""
    weights = torch.load(path, map_location="cpu", weights_only=True)
    network = EfficientNetLite(name).eval()
    network.load_state_dict(rename_weights(weights))
    return network


def rename_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Published weights under our names, without the classifier.

    >>> list(rename_weights({"_blocks.3._bn1.bias": torch.zeros(1), "_fc.bias": torch.zeros(1)}))
    ['blocks.3.depthwise.norm.bias']
    """
    renamed = {}
    for name, tensor in weights.items():
        block, layer, parameter = _split_name(name)
        if layer != "_fc":
            names = BLOCK_NAMES if block else OUTER_NAMES
            renamed[f"{block}{names.get(layer, layer)}.{parameter}"] = tensor
    return renamed


def _split_name(name: str) -> tuple[str, str, str]:
    """``_blocks.3._bn1.bias`` as block, layer and parameter."""
    found = re.fullmatch(r"(?:_(blocks\.\d+\.))?(\w+)\.(\w+)", name)
    return (found[1] or "", found[2], found[3]) if found else ("", name, "")
