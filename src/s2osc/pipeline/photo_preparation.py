"""Photos as f and g take them where both start from a pretrained network."""

import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
import torch

from s2osc.errors import ModelError, SettingsError
from s2osc.nets.backbones import EFFICIENTNETS, Backbone, load_backbone
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.features import compute_photo_items
from s2osc.nets.networks import NetworkSettings, as_tensor, count_channels
from s2osc.nets.photo_items import photo_items
from s2osc.nets.start import start_network
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model_description import BackboneEntry

T = TypeVar("T")
N_VIEWS = 2
N_MEASURED = 32
"""Images by which the cost is measured: about a second."""
OTHER_SECONDS = 0.006
"""Of each item, in all steps that train nothing: two thirds of it neighbours and the groups."""


def pretrained_start(method: S2OSCMethod) -> NetworkSettings:
    """What f and g start from, which is the same: they take the same maps."""
    f, g = method.teacher.network, method.student.network
    if not f.is_pretrained or (f.pretrained, f.first_stage) != (g.pretrained, g.first_stage):
        raise SettingsError(
            f"f starts from stage {f.first_stage} of {f.pretrained}, g from stage {g.first_stage} "
            f"of {g.pretrained}; give both the same"
        )
    return f


def load_start(
    method: S2OSCMethod, device: str, *, source: tuple[int, int] | None = None
) -> Backbone:
    """The pretrained network that gives maps of the stage that f and g start from."""
    start = pretrained_start(method)
    return load_backbone(start.pretrained, device, source=source, first_stage=start.first_stage)


def describe_photos(images: np.ndarray, method: S2OSCMethod, device: str) -> BackboneEntry:
    """How images of this shape, (n, H, W[, 3]) uint8, are prepared for a method."""
    height, width = images.shape[1:3]
    backbone = load_start(method, device, source=(height, width))
    channels = count_channels(images.shape[1:])
    return BackboneEntry(
        name=backbone.name,
        version=backbone.version,
        side=backbone.side,
        n_views=N_VIEWS,
        flip=method.augmentation.flips(channels),
        height=height,
        width=width,
        channels=channels,
        first_stage=backbone.first_stage,
    )


def prepare_photos(images: np.ndarray, entry: BackboneEntry, device: str) -> np.ndarray:
    """Images prepared as a model says, which may come from a stranger: it chooses nothing else."""
    if entry.name not in EFFICIENTNETS:
        raise ModelError(f"the model was made with the backbone {entry.name!r:.100}, not with ours")
    backbone = load_backbone(entry.name, device, side=entry.side, first_stage=entry.first_stage)
    check_version(backbone, entry)
    return compute_photo_items(images, backbone, n_views=entry.n_views, flip=entry.flip)


def check_version(backbone: Backbone, entry: BackboneEntry) -> None:
    """Refuse other weights than those a model was made with."""
    if backbone.version != entry.version:
        raise ModelError(
            f"the model was made with weights {entry.version} of the backbone {entry.name}, but "
            f"those installed are {backbone.version}; install the earlier ones, or classify anew"
        )


class Cost(NamedTuple):
    """Seconds of one view of one image, on this machine and now."""

    prepared: float  # through the whole pretrained network
    trained: float  # forward and back through the stages that are trained
    answered: float  # forward through them

    def in_words(self) -> str:
        """The two that matter.

        >>> Cost(prepared=0.0062, trained=0.0051, answered=0.0014).in_words()
        '6.2 ms to prepare a view of an image, 5.1 ms to train on it once'
        """
        return (
            f"{1e3 * self.prepared:.1f} ms to prepare a view of an image, "
            f"{1e3 * self.trained:.1f} ms to train on it once"
        )

    def seconds(self, method: S2OSCMethod, n_labelled: int, n_pool: int) -> float:
        """What a whole run of so many items will take, roughly."""
        n_held_back = round(method.seeds.share * n_labelled)
        n_views, n = 1 + N_VIEWS, n_labelled + n_pool
        f, g = method.teacher.training, method.student.training
        g_steps = method.student.rounds * g.n_steps(n_pool + n_held_back)
        trained = f.n_steps(n_labelled - n_held_back) * f.batch_size
        trained += g_steps * (g.batch_size + method.student.labelled_batch)
        answered = n_views * 2 * n + g_steps * g.batch_size  # by f and g, and pseudo-labels
        return (
            n * n_views * self.prepared
            + trained * self.trained
            + answered * self.answered
            + n * OTHER_SECONDS
        )


def measure_cost(method: S2OSCMethod, backbone: Backbone) -> Cost:
    """Try each kind of work on a few black images."""
    images = np.zeros((N_MEASURED, backbone.side, backbone.side, 3), np.uint8)
    prepared, stacked = _timed(lambda: backbone(images))
    items = photo_items(stacked[:, None], N_FEATURES)
    network = start_network(pretrained_start(method), items, n_outputs=2).to(backbone.device)
    maps = as_tensor(items, backbone.device)

    def answer() -> torch.Tensor:
        with torch.inference_mode():
            return network(maps)

    trained, _ = _timed(lambda: network(maps).sum().backward())
    answered, _ = _timed(answer)
    return Cost(prepared=prepared, trained=trained, answered=answered)


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    """Seconds of an image, without those of the first time, and what was made."""
    work()
    started = time.perf_counter()
    made = work()
    return (time.perf_counter() - started) / N_MEASURED, made
