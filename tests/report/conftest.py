"""A small pool with an answer, to be varied by each test."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from s2osc.report.page import ReportInputs
from s2osc.types import UNKNOWN, UNSURE, Answer


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


def make_audit(inputs: ReportInputs, **changes: Any) -> dict[str, Any]:
    """What the seeds might say about a pool, with known figures throughout."""
    share = {"estimate": 0.04, "low": 0.02, "high": 0.06}
    accuracy = {"estimate": 0.9, "low": 0.85, "high": 0.95}
    classes = inputs.classes
    audit: dict[str, Any] = {
        "sentence": "About 4 in 100 known items are called unknown (2 to 6).",
        "nothing_unknown": False,
        "test": {"p_value": 1e-9, "level": 0.01, "verdict": "The pool holds unknown items."},
        "seeds": {"number": 1500, "per_class": dict.fromkeys(classes, 500)},
        "wanted_false_alarm": 0.05,
        "aim": "balance",
        "threshold": 0.8,
        "sure_known_below": None,
        "false_alarm": share | {"per_class": dict.fromkeys(classes, share)},
        "known_accuracy": accuracy | {"per_class": dict.fromkeys(classes, accuracy)},
        "unknown_share": {"estimate": 0.4, "low": 0.31, "high": 0.45},
        "unknown_recall": {"estimate": 0.8, "low": 0.7, "high": 0.85},
        "purity": {
            "k": 300,
            "estimate": 0.93,
            "curve": [
                {"k": 10, "purity": 1.0, "low": 0.8},
                {"k": 1000, "purity": 0.75, "low": 0.6},
            ],
        },
        "curve": [
            {"false_alarm": rate, "recall": recall, "low": recall - 0.1, "high": recall + 0.1}
            | {"threshold": 1 - rate, "n_unknown": round(100 * rate)}
            for rate, recall in ((0.01, 0.5), (0.02, 0.7), (0.1, 0.9))
        ],
        "prior_shift": {"found": False, "weights": dict.fromkeys(classes, 1.0)},
        "groups": {"number": 2, "low": 2, "high": 4, "stability": [0.93, 0.81], "tightness": [1]},
    }
    return audit | changes


def with_audit(inputs: ReportInputs, **changes: Any) -> ReportInputs:
    """The same pool, seeded."""
    return replace(
        inputs,
        summary=inputs.summary | {"audit": make_audit(inputs, **changes)},
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
def pool(monkeypatch: pytest.MonkeyPatch) -> Callable[..., ReportInputs]:
    """Pools whose map is drawn roughly: few tests of the page care where its points lie."""
    monkeypatch.setattr("s2osc.report.layout.EARLY_ITERATIONS", 20)
    monkeypatch.setattr("s2osc.report.layout.ITERATIONS", 20)
    return make_inputs
