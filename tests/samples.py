"""Tiny data of easy classes, and the method shrunk to learn them in a fraction of a second."""

from dataclasses import replace

import numpy as np

from s2osc.data.datasets import Dataset
from s2osc.nets.networks import NetworkSettings
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import FAST, PLAIN
from s2osc.testing import N_KNOWN, make_blobs, open_set  # noqa: F401

TINY_NETWORK = NetworkSettings(widths=(8, 16), blocks=(1, 1), first_map=8, hidden=(16, 16))


def make_images(
    n_per_class: int = 40, n_classes: int = N_KNOWN + 1, *, colour: bool = False, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Noisy 8 x 8 images with a bright square in a corner of its own for each of four classes."""
    assert n_classes <= 4
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n_per_class)
    images = random.integers(0, 60, (len(labels), 8, 8, 3) if colour else (len(labels), 8, 8))
    for image, label in zip(images, labels, strict=True):
        top, left = 4 * (label // 2), 4 * (label % 2)
        image[top : top + 4, left : left + 4] += 180
    return images.astype(np.uint8), labels


def make_dataset(n_per_class: int = 30, *, name: str = "tiny") -> Dataset:
    images, labels = make_images(n_per_class)
    return Dataset(name, images, labels, tuple("abcd"), n_train=len(labels), flip=False)


def shrink(method: S2OSCMethod, *, n_steps: int = 40, k: int | None = 15) -> S2OSCMethod:
    """The same method with tiny networks, few steps and a small K, or the K of the seeds."""
    training = replace(method.teacher.training, epochs=1, batch_size=32, min_steps=n_steps)
    return replace(
        method,
        teacher=replace(method.teacher, network=TINY_NETWORK, training=training),
        student=replace(method.student, network=TINY_NETWORK, training=training, labelled_batch=32),
        filtering=replace(method.filtering, k=k),
        clusters=replace(method.clusters, n_resamples=2),
    )


def several(method: S2OSCMethod) -> S2OSCMethod:
    """The same method, in the variant for several unknown classes."""
    return replace(method, student=replace(method.student, unknown="many"))


TINY, SEEDED = shrink(PLAIN), shrink(FAST, k=None)
MANY, SEEDED_MANY = several(TINY), several(SEEDED)
