"""A pretrained network for tests: the layers of EfficientNet-Lite, with random weights."""

from copy import deepcopy
from functools import cache

import numpy as np
import pytest
import torch

from s2osc.nets import backbones
from s2osc.nets.efficientnet import EfficientNetLite
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import TUNED
from s2osc.settings import change

QUICK = {
    f"{role}.training.{name}": value
    for role in ("teacher", "student")
    for name, value in {"epochs": 1, "min_steps": 6, "batch_size": 16}.items()
} | {
    "student.labelled_batch": 16,
    "clusters.n_groups": 1,
    **{f"{role}.network.first_stage": 6 for role in ("teacher", "student")},
}
"""A few small steps of the two highest stages."""


def quick_method() -> S2OSCMethod:
    return change(TUNED, QUICK)


@cache
def _random_network(name: str) -> EfficientNetLite:
    """Random weights, normalised by random images, so that signals neither fade nor explode."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = EfficientNetLite(name).train()
        for module in network.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.momentum = 1.0
        with torch.no_grad():
            network(torch.randn(32, 3, 32, 32))
    return network.eval()


def use_random_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are random, and the same each time, instead of those that are installed."""
    monkeypatch.setattr(backbones, "_published", lambda name: deepcopy(_random_network(name)))
    monkeypatch.setattr(backbones, "SIDE", 32)
    monkeypatch.setattr(backbones, "TRAINED_SIDE", 32)


def pictures(labels: np.ndarray, seed: int, side: int = 24) -> np.ndarray:
    """Noisy images in colour, with a bright part of its own for each of three classes."""
    random, third = np.random.default_rng(seed), side // 3
    images = random.integers(0, 60, (len(labels), side, side, 3), np.uint8)
    for image, label in zip(images, labels, strict=True):
        place = (np.s_[:third], np.s_[-third:], np.s_[third:-third, third:-third])[label]
        image[place] += 180
    return images
