"""A small pool with an answer, to be varied by each test."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from s2osc.report.page import ReportInputs
from s2osc.types import UNKNOWN, UNSURE, Answer
from samples import make_audit


def make_answer(labels: np.ndarray, groups: np.ndarray) -> Answer:
    """An answer whose other columns are drawn at random."""
    n, random = len(labels), np.random.default_rng(1)
    w = random.exponential(size=n) + (labels == UNKNOWN)
    return Answer(
        labels=labels,
        unknown_score=random.random(n),
        confidence=random.uniform(0.3, 1, n),
        groups=groups,
        distinctness=w,
        filtered=(labels == UNKNOWN) & (w > 1.5),
    )


def make_inputs(n: int = 60, n_classes: int = 3, n_groups: int = 2, **changes: Any) -> ReportInputs:
    """A pool of n small images, class after class and then group after group."""
    random = np.random.default_rng(0)
    kinds = np.arange(n) % (n_classes + n_groups)
    is_known = kinds < n_classes
    classes = tuple(f"class {name}" for name in range(n_classes))
    inputs: dict[str, Any] = {
        "title": "A pool",
        "answer": make_answer(
            labels=np.where(is_known, kinds, UNKNOWN),
            groups=np.where(is_known, -1, kinds - n_classes),
        ),
        "classes": classes,
        "names": [f"item-{place:04d}.png" for place in range(n)],
        "embeddings": random.normal(size=(n, 8)).astype(np.float32) + 6 * np.eye(64, 8)[kinds],
        "images": random.integers(0, 255, (n, 6, 6), dtype=np.uint8),
        "summary": {
            "seed": 0,
            "settings": {"teacher": {"epochs": 20}},
            "seconds": {"teacher": 1.5},
        },
        "truth": None,
    }
    return ReportInputs(**(inputs | changes))


def with_audit(inputs: ReportInputs, **changes: Any) -> ReportInputs:
    """The same pool, seeded."""
    return replace(
        inputs,
        audit=make_audit(inputs.classes, **changes),
        seed_scores=np.linspace(0, 0.9, 100),
        folder="results",
    )


def with_unsure(inputs: ReportInputs, n_unsure: int = 6) -> ReportInputs:
    """The same pool, of which the first items were left unsure."""
    is_unsure = np.arange(len(inputs.names)) < n_unsure
    answer = replace(
        inputs.answer,
        labels=np.where(is_unsure, UNSURE, inputs.answer.labels),
        groups=np.where(is_unsure, -1, inputs.answer.groups),
        filtered=inputs.answer.filtered & ~is_unsure,
    )
    return replace(inputs, answer=answer)


@pytest.fixture
def seeded() -> Callable[..., ReportInputs]:
    return with_audit


@pytest.fixture
def unsure() -> Callable[..., ReportInputs]:
    return with_unsure


@pytest.fixture
def pool() -> Callable[..., ReportInputs]:
    return make_inputs
