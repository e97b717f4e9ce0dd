"""Tiny data of easy classes, and the method shrunk to learn them in a fraction of a second."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from s2osc.app.run_record import RunRecord
from s2osc.app.summary import LabelCounts, Summary
from s2osc.data.datasets import Dataset
from s2osc.nets.networks import NetworkSettings
from s2osc.pipeline.audit.record import (
    Audit,
    ClassAudit,
    GroupsAudit,
    OperatingPoint,
    PurityAudit,
    PurityPoint,
    UnknownTest,
)
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.pipeline.group_tree import GroupTree
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


def make_audit(names: Sequence[str] = ("cat", "dog"), **changes: Any) -> Audit:
    """What the seeds might say about a pool, with known figures throughout."""
    rate, accuracy = Estimate(0.04, 0.02, 0.06), Estimate(0.9, 0.85, 0.95)
    audit = Audit(
        nothing_unknown=False,
        threshold=0.8,
        sure_known_below=None,
        rule="seeds",
        aim="balance",
        wanted_false_alarm=0.05,
        smallest_false_alarm=1 / 1501,
        n_seeds=1500,
        test=UnknownTest(p_value=1e-12, level=0.01),
        unknown_share=Estimate(0.4, 0.318, 0.45),
        unknown_recall=Estimate(0.8, 0.7, 0.85),
        false_alarm=rate,
        known_accuracy=accuracy,
        is_shifted=False,
        classes=tuple(
            ClassAudit(name, n_seeds=500, weight=1.0, false_alarm=rate, known_accuracy=accuracy)
            for name in names
        ),
        curve=tuple(
            OperatingPoint(
                rate, Estimate(recall, recall - 0.1, recall + 0.1), 1 - rate, round(100 * rate)
            )
            for rate, recall in ((0.01, 0.5), (0.02, 0.7), (0.1, 0.9))
        ),
        purity=PurityAudit(300, 0.93, (PurityPoint(10, 1.0, 0.8), PurityPoint(1000, 0.75, 0.6))),
        groups=GroupsAudit(
            GroupTree(((1, -1), (-2, -3)), (0.93, 0.2), (12, 6, 6)), (0, 1, 1), (1.0,) * 3, 24
        ),
    )
    return replace(audit, **changes)


def make_summary(**changes: Any) -> Summary:
    """The summary of a small run."""
    run = RunRecord(
        title="cats",
        n_known=9,
        n_skipped=0,
        notes=(),
        k=30,
        steps={},
        preset="heads",
        settings={"student.tau": 0.85},
        shape="vectors",
        backbone=None,
        seed=0,
        device="cpu",
        versions={"s2osc": "1"},
        seconds={"answer": 1.5},
    )
    summary = Summary(
        run=run,
        n_pool=5,
        audit=make_audit(("a", "b")),
        counts=LabelCounts(known={"a": 3, "b": 1}, unknown=1, groups={"0": 1}, unsure=0),
    )
    return replace(summary, **changes)


def shrink(method: S2OSCMethod, *, n_steps: int = 25, k: int | None = 15) -> S2OSCMethod:
    """The same method with tiny networks, few steps and a small K, or the K of the seeds."""
    training = replace(method.teacher.training, epochs=1, batch_size=32, min_steps=n_steps)
    return replace(
        method,
        teacher=replace(method.teacher, network=TINY_NETWORK, training=training),
        student=replace(method.student, network=TINY_NETWORK, training=training, labelled_batch=32),
        filtering=replace(method.filtering, k=k),
    )


def several(method: S2OSCMethod) -> S2OSCMethod:
    """The same method, in the variant for several unknown classes."""
    return replace(method, student=replace(method.student, unknown="many"))


SEEDS = DecisionSettings(rule="seeds")
N_POOL, N_SEEDS = 1_000, 300


def make_evidence(pi=0.3, shift=4.0, *, n_seeds=N_SEEDS, p_value=1e-9, seed=0):
    """Scores of two known classes, and of unknown items, which come first in the pool."""
    random = np.random.default_rng(seed)
    score = random.normal(size=N_POOL)
    score[: round(pi * N_POOL)] += shift
    seed_label = np.arange(n_seeds) % 2
    # Every tenth seed is taken for the other class.
    seed_nearest = np.where(np.arange(n_seeds) % 10 == 0, 1 - seed_label, seed_label)
    return Evidence(
        score=score,
        nearest=np.arange(N_POOL) % 2,
        nearest_confidence=np.full(N_POOL, 0.9),
        seed_score=random.normal(size=n_seeds),
        seed_label=seed_label,
        seed_nearest=seed_nearest,
        seed_weight=np.ones(n_seeds),
        p_value=p_value,
    )


TINY, SEEDED = shrink(PLAIN), shrink(FAST, k=None)
LEARNT = shrink(PLAIN, n_steps=40)  # with an f that also learns images
MANY, SEEDED_MANY = several(TINY), several(SEEDED)
