"""Tiny data of easy classes, and the method shrunk to learn them in a fraction of a second."""

from dataclasses import replace

import numpy as np

from s2osc.data.datasets import Dataset
from s2osc.nets.networks import NetworkSettings
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import FAST, PLAIN
from s2osc.types import UNKNOWN, Labelled, Split

N_KNOWN = 3
TINY_NETWORK = NetworkSettings(widths=(8, 16), blocks=(1, 1), first_map=8, hidden=(16, 16))


def make_blobs(
    n_per_class: int = 80, n_classes: int = N_KNOWN + 1, *, distance: float = 8.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian blobs in 8 dimensions, one per class; the larger the distance, the easier."""
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(n_classes), n_per_class)
    # Corners of a simplex: every pair of classes is equally far apart.
    vectors = distance * np.eye(8)[labels] + random.normal(size=(len(labels), 8))
    return vectors.astype(np.float32), labels


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


def open_set(inputs: np.ndarray, labels: np.ndarray, n_known: int = N_KNOWN) -> Split:
    """Every other item of the first classes is labelled; the rest, and all others, are the pool.

    Every ninth item of the pool stands for those nobody has seen.
    """
    is_training = (labels < n_known) & (np.arange(len(labels)) % 2 == 0)
    truth_classes = labels[~is_training]
    new = slice(None, None, 9)
    return Split(
        known=Labelled(inputs[is_training], labels[is_training]),
        pool=inputs[~is_training],
        truth=np.where(truth_classes < n_known, truth_classes, UNKNOWN),
        truth_classes=truth_classes,
        known_classes=tuple(range(n_known)),
        unknown_classes=tuple(range(n_known, labels.max() + 1)),
        held_out=inputs[~is_training][new],
        held_out_truth=np.where(truth_classes < n_known, truth_classes, UNKNOWN)[new],
        held_out_classes=truth_classes[new],
    )


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
