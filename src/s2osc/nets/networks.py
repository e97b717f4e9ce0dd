"""The networks: one residual network for images, one multi-layer perceptron for vectors, and the
upper stages of a pretrained network for photos.

The first two take raw inputs (uint8 images, float vectors), normalise them with the statistics of
the training items, embed them, and end in a linear head. ResNet-18, ResNet-34 and the compact
networks of the ``fast`` preset are the same class with different settings. The last takes the maps
of photos (``photo_items``).
"""

from dataclasses import dataclass
from itertools import pairwise
from math import ceil, log2
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.errors import SettingsError
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.photo_items import features_of, is_photos, maps_of
from s2osc.nets.upper_stages import UpperStages, count_parameters, upper_sizes
from s2osc.settings import require_choice, require_least

MIN_WIDTH = 8
MAX_PARAMETERS = 250_000_000
"""1 GB of weights, and three times that while training; ResNet-34 has 21 million."""
MAX_LAYERS = 1_000
"""Residual blocks or linear layers; the deepest published ResNet has 600 blocks."""
PRETRAINED_RATE = 1 / 3
"""Of the learning rate of the new head: that of the pretrained layer below it."""

Pretrained = Literal["none", "efficientnet-lite0", "efficientnet-lite1", "efficientnet-lite2"]


@dataclass(frozen=True)
class NetworkSettings:
    """The size of a network."""

    widths: tuple[int, ...] = (32, 64, 128)  # images: channels of each stage
    blocks: tuple[int, ...] = (1, 1, 1)  # images: residual blocks in each stage
    first_map: int = 16  # images: the stem strides until no side is larger than this
    hidden: tuple[int, ...] = (256, 128)  # vectors: width of each layer
    pretrained: Pretrained = "none"  # photos: the network whose upper stages are trained on
    first_stage: int = 5  # photos: the lowest stage that is trained, of 7
    grey_map: int | None = None  # grey images: in place of first_map; None: the same

    def __post_init__(self) -> None:
        require_choice("network.pretrained", self.pretrained, Pretrained)
        if self.is_pretrained:
            upper_sizes(self.pretrained, self.first_stage)
        if len(self.widths) != len(self.blocks) or not self.widths:
            raise SettingsError(
                f"a network has {len(self.widths)} widths and {len(self.blocks)} block counts; "
                "give one of each per stage"
            )
        for name in ("widths", "blocks", "hidden"):
            if not getattr(self, name) or min(getattr(self, name)) < 1:
                raise SettingsError(f"network.{name} is {getattr(self, name)}; give numbers from 1")
        if min(self.widths) < MIN_WIDTH:
            raise SettingsError(
                f"network.widths is {self.widths}; give numbers from {MIN_WIDTH}: torch's strided "
                "convolutions of fewer channels corrupt memory on a CPU"
            )
        require_least("network.first_map", self.first_map, 1)
        require_least("network.grey_map", self.grey_map, 1)
        for name, n_layers in (("blocks", sum(self.blocks)), ("hidden", len(self.hidden))):
            if n_layers > MAX_LAYERS:
                raise SettingsError(
                    f"network.{name} makes {n_layers:,} layers; give at most {MAX_LAYERS:,}"
                )
        # The smallest inputs there are: what is too large for them is too large for any.
        for shape in ((1, 1), (1,)):
            self.check_size(shape, n_outputs=1)

    @property
    def is_pretrained(self) -> bool:
        return self.pretrained != "none"

    def stem_stride(self, side: int, n_channels: int) -> int:
        """A power of two that brings ``side`` pixels down to at most ``first_map``.

        >>> [NetworkSettings(first_map=16).stem_stride(side, 3) for side in (8, 28, 32, 64)]
        [1, 2, 2, 4]
        >>> NetworkSettings(first_map=16, grey_map=8).stem_stride(28, 1)
        4
        """
        largest = self.grey_map if n_channels == 1 and self.grey_map else self.first_map
        return max(1, 2 ** ceil(log2(side / largest)))

    def stem_kernel(self, side: int, n_channels: int) -> int:
        """The kernel size of the first convolution, which grows with its stride."""
        return max(3, 2 * self.stem_stride(side, n_channels) - 1)

    def n_parameters(self, input_shape: tuple[int, ...], n_outputs: int) -> int:
        """The weights of a network for inputs of ``input_shape``, without building it.

        >>> NetworkSettings(hidden=(4,)).n_parameters((10,), n_outputs=2)  # 10 x 4, 2 x 4, 4 x 2, 2
        58
        """
        if self.is_pretrained:
            body = count_parameters(upper_sizes(self.pretrained, self.first_stage))
            return body + (N_FEATURES + 1) * n_outputs
        if len(input_shape) == 1:
            layers = pairwise([input_shape[0], *self.hidden])
            body = sum(n_in * n_out + 2 * n_out for n_in, n_out in layers)
            return body + (self.hidden[-1] + 1) * n_outputs
        n_channels = count_channels(input_shape)
        body = self.stem_kernel(max(input_shape[:2]), n_channels) ** 2 * n_channels + 2
        body *= self.widths[0]
        stages = pairwise([self.widths[0], *self.widths])
        for stage, ((n_in, n_out), n_blocks) in enumerate(zip(stages, self.blocks, strict=True)):
            body += 9 * n_in * n_out + (2 * n_blocks - 1) * 9 * n_out**2 + 4 * n_blocks * n_out
            if stage > 0 or n_in != n_out:
                body += n_in * n_out + 2 * n_out
        return body + (self.widths[-1] + 1) * n_outputs

    def check_size(self, input_shape: tuple[int, ...], n_outputs: int) -> None:
        """Refuse a network that is too large to train, before memory is taken for it."""
        n_parameters = self.n_parameters(input_shape, n_outputs)
        if n_parameters > MAX_PARAMETERS:
            names = ("hidden",) if len(input_shape) == 1 else ("widths", "blocks")
            sizes = " and ".join(f"network.{name}={getattr(self, name)}" for name in names)
            raise SettingsError(
                f"{sizes} makes {n_parameters:,} parameters for inputs of shape {input_shape} "
                f"and {n_outputs} outputs; give a network of at most {MAX_PARAMETERS:,}"
            )


class Network(nn.Module):
    """Normalise, embed, classify."""

    mean: Tensor
    scale: Tensor

    def __init__(self, settings: NetworkSettings, input_shape: tuple[int, ...], n_outputs: int):
        """For inputs of ``input_shape``: (H, W), (H, W, 3) or (D,)."""
        super().__init__()
        settings.check_size(tuple(input_shape), n_outputs)
        self.settings, self.input_shape = settings, tuple(input_shape)
        self.body: nn.Module
        stats_shape: tuple[int, ...]
        if settings.is_pretrained:
            if len(input_shape) != 1:
                raise SettingsError(
                    f"network.pretrained is {settings.pretrained!r}, which takes maps of photos, "
                    f"but items have the shape {input_shape}; give another preset"
                )
            self.body = UpperStages(settings.pretrained, settings.first_stage, input_shape[0])
            n_embedding, stats_shape = N_FEATURES, (1,)
        elif len(input_shape) == 1:
            self.body = vector_body(settings, input_shape[0])
            n_embedding, stats_shape = settings.hidden[-1], tuple(input_shape)
        else:
            n_channels = count_channels(input_shape)
            self.body = residual_body(settings, max(input_shape[:2]), n_channels)
            n_embedding, stats_shape = settings.widths[-1], (n_channels, 1, 1)
        self.head = nn.Linear(n_embedding, n_outputs)
        self.register_buffer("mean", torch.zeros(stats_shape))
        self.register_buffer("scale", torch.ones(stats_shape))
        # Convolutions on a CPU are about a third faster in this layout.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def device(self) -> str:
        return str(self.mean.device)

    def embed(self, inputs: Tensor) -> Tensor:
        """e(x), the layer before the head; for stacked views, the mean over views."""
        if inputs.ndim == 3:
            n, n_views, _ = inputs.shape
            return self.embed(inputs.flatten(0, 1)).reshape(n, n_views, -1).mean(1)
        return self.body((inputs.float() - self.mean) / self.scale)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.embed(inputs))

    def rate_factors(self, layer_decay: float) -> list[float]:
        """Of each parameter, its learning rate relative to that of the head.

        Pretrained layers learn more slowly, the lower they lie by ``layer_decay`` a block.
        """
        depths = self.body.depths() if isinstance(self.body, UpperStages) else {}
        of_body = {f"body.{name}": depth for name, depth in depths.items()}
        factors = []
        for name, _ in self.named_parameters():
            pretrained = name in of_body
            factors.append(PRETRAINED_RATE * layer_decay ** of_body[name] if pretrained else 1.0)
        return factors

    def fit_normalisation(self, inputs: np.ndarray) -> None:
        """Store mean and deviation: per channel for images, per feature for vectors."""
        # A few thousand items are enough.
        rows = inputs[:: max(1, len(inputs) // 5_000)]
        rows = rows.reshape(-1, rows.shape[-1]) if is_stacked(rows) else rows
        axes = (0, 1, 2) if inputs.dtype == np.uint8 else (0,)
        mean, deviation = rows.mean(axes, dtype=np.float64), rows.std(axes, dtype=np.float64)
        # A constant feature keeps its scale, and is zero after normalisation.
        deviation = np.where(deviation < 1e-6, 1.0, deviation)
        for buffer, values in ((self.mean, mean), (self.scale, deviation)):
            buffer.copy_(torch.as_tensor(values, dtype=torch.float32).reshape(buffer.shape))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut (the "basic block" of ResNet-18 and -34)."""

    def __init__(self, n_in: int, n_out: int, stride: int):
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)
        self.shortcut = (
            nn.Identity()
            if n_in == n_out and stride == 1
            else nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(y)) + self.shortcut(x))


def residual_body(settings: NetworkSettings, side: int, n_channels: int) -> nn.Sequential:
    """Stem, residual stages, global average."""
    stride, kernel = (of(side, n_channels) for of in (settings.stem_stride, settings.stem_kernel))
    width = settings.widths[0]
    layers: list[nn.Module] = [
        nn.Conv2d(n_channels, width, kernel, stride, kernel // 2, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
    ]
    for stage, (n_out, n_blocks) in enumerate(zip(settings.widths, settings.blocks, strict=True)):
        for block in range(n_blocks):
            layers.append(ResidualBlock(width, n_out, 2 if stage > 0 and block == 0 else 1))
            width = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def vector_body(settings: NetworkSettings, n_features: int) -> nn.Sequential:
    """Linear layers, each normalised and rectified."""
    layers: list[nn.Module] = []
    for width in settings.hidden:
        layers += [
            nn.Linear(n_features, width, bias=False),
            nn.BatchNorm1d(width),
            nn.ReLU(inplace=True),
        ]
        n_features = width
    return nn.Sequential(*layers)


def count_channels(image_shape: tuple[int, ...]) -> int:
    """1 for grey images (H, W), else the last axis of (H, W, C)."""
    return 1 if len(image_shape) == 2 else image_shape[2]


def is_stacked(inputs: np.ndarray) -> bool:
    """Whether each item is a stack of views as vectors, (n, views, D); images are uint8."""
    return inputs.ndim == 3 and inputs.dtype != np.uint8


def one_vector(inputs: np.ndarray) -> np.ndarray:
    """The mean of stacked views, of photos that of their features; other inputs unchanged."""
    vectors = features_of(inputs)
    return vectors.mean(axis=1) if is_stacked(vectors) else vectors


def item_shape(inputs: np.ndarray) -> tuple[int, ...]:
    """The input shape of a network for these items.

    >>> item_shape(np.zeros((5, 28, 28), np.uint8)), item_shape(np.zeros((5, 3, 64), np.float32))
    ((28, 28), (64,))
    """
    items = maps_of(inputs) if is_photos(inputs) else inputs
    return items.shape[2:] if is_stacked(items) else items.shape[1:]


def is_gpu(device: str | torch.device) -> bool:
    """Whether a device has a memory of its own.

    >>> is_gpu("cpu"), is_gpu("cuda:1")
    (False, True)
    """
    return str(device).startswith("cuda")


def as_tensor(inputs: np.ndarray, device: str = "cpu") -> Tensor:
    """A batch as networks take it: uint8 (n, C, H, W) in channels-last order, (n, D), or stacked
    views (n, views, D), of photos those of their maps.
    """
    inputs = maps_of(inputs) if is_photos(inputs) else inputs
    if inputs.ndim == 3 and not is_stacked(inputs):
        inputs = inputs[..., None]
    batch = torch.from_numpy(np.require(inputs, requirements=["C", "W"]))
    if is_gpu(device):  # from memory that is not swapped out, while the device works on
        batch = batch.pin_memory()
    batch = batch.to(device, non_blocking=True)
    return batch.permute(0, 3, 1, 2) if inputs.ndim == 4 else batch
