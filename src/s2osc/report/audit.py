"""What the seeds say about the answer, as the words and figures the page opens with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from s2osc.report.intervals import Interval, read_interval, read_number
from s2osc.report.kinds import count_groups
from s2osc.report.operating import OperatingCurve, operating_curve
from s2osc.report.purity import PurityChart, purity_chart
from s2osc.report.scores import ScoreChart, score_chart
from s2osc.report.words import percent, plural
from s2osc.types import Answer


@dataclass(frozen=True)
class Figure:
    """One estimate: a bar with whiskers on a scale from 0 to 100 %, and the same in words."""

    name: str
    meaning: str
    interval: Interval
    wanted: float | None = None  # 0 .. 1: what the user asked for
    is_unknown: bool = False  # about the unknown items, not the known


@dataclass(frozen=True)
class ClassRow:
    """What the seeds of one class say."""

    name: str
    n_seeds: str
    false_alarm: Interval
    accuracy: Interval
    weight: str


@dataclass(frozen=True)
class Audit:
    """Everything the page says about how far the answer can be trusted."""

    sentence: str
    verdict: str
    nothing_unknown: bool
    notes: list[str]
    figures: list[Figure]
    classes: list[ClassRow]
    is_weighted: bool
    scores: ScoreChart | None
    purity: PurityChart | None
    curve: OperatingCurve | None
    stability: list[str]  # of each group; an empty text where it was not measured


def read_audit(
    audit: Mapping[str, Any] | None,
    *,
    answer: Answer,
    seed_scores: np.ndarray | None,
    folder: str,
) -> Audit | None:
    """The audit of a summary, ready to be shown; None for a run without seeds."""
    if not audit:
        return None
    test, shift = audit.get("test") or {}, audit.get("prior_shift") or {}
    nothing_unknown = bool(audit.get("nothing_unknown"))
    # Where nothing is unknown, no item was held against a threshold.
    cuts = {} if nothing_unknown else audit
    return Audit(
        sentence=audit.get("sentence") or "",
        verdict=test.get("verdict") or "",
        nothing_unknown=nothing_unknown,
        notes=notes(audit),
        figures=figures(audit),
        classes=class_rows(audit),
        is_weighted=bool(shift.get("found")),
        scores=score_chart(
            answer.unknown_score,
            seed_scores,
            threshold=read_number(cuts.get("threshold")),
            sure_known_below=read_number(cuts.get("sure_known_below")),
        ),
        purity=purity_chart(audit.get("purity") or {}),
        curve=operating_curve(audit, answer, folder=folder),
        stability=stability(audit, count_groups(answer)),
    )


def figures(audit: Mapping[str, Any]) -> list[Figure]:
    """The four estimates in the order a reader asks for them."""
    wanted = read_number(audit.get("wanted_false_alarm"))
    asked = f"; at most {percent(wanted)} wanted" if wanted is not None else ""
    shown = [
        Figure(
            "False alarms",
            f"known items called unknown{asked}",
            read_interval(audit.get("false_alarm")),
            wanted=wanted,
        ),
        Figure(
            "Accuracy on known classes",
            "known items given their own class",
            read_interval(audit.get("known_accuracy")),
        ),
        Figure(
            "Unknown share",
            "of this pool is of no known class",
            read_interval(audit.get("unknown_share")),
            is_unknown=True,
        ),
        Figure(
            "Recall of unknown items",
            "unknown items called unknown",
            read_interval(audit.get("unknown_recall")),
            is_unknown=True,
        ),
    ]
    return [figure for figure in shown if figure.interval.is_given or not figure.is_unknown]


def class_rows(audit: Mapping[str, Any]) -> list[ClassRow]:
    """One row per class with seeds, those with most false alarms first."""
    alarms = (audit.get("false_alarm") or {}).get("per_class") or {}
    accuracies = (audit.get("known_accuracy") or {}).get("per_class") or {}
    numbers = (audit.get("seeds") or {}).get("per_class") or {}
    weights = (audit.get("prior_shift") or {}).get("weights") or {}
    rows = [
        ClassRow(
            name=name,
            n_seeds=_written(numbers.get(name), ",.0f"),
            false_alarm=read_interval(alarms.get(name)),
            accuracy=read_interval(accuracies.get(name)),
            weight=_written(weights.get(name), ".2g"),
        )
        for name in dict.fromkeys([*numbers, *alarms, *accuracies])
    ]
    return sorted(rows, key=lambda row: -(row.false_alarm.estimate or 0))


def stability(audit: Mapping[str, Any], n_groups: int) -> list[str]:
    """How much of each group comes back when it is sought again.

    >>> stability({"groups": {"stability": [0.934, None]}}, 3)
    ['0.93', '', '']
    """
    found = (audit.get("groups") or {}).get("stability") or []
    texts = [_written(value, ".2f") for value in found[:n_groups]]
    return texts + [""] * (n_groups - len(texts))


def notes(audit: Mapping[str, Any]) -> list[str]:
    """How the figures came about, in a few sentences."""
    said = []
    number = read_number((audit.get("seeds") or {}).get("number"))
    if number is not None:
        said.append(
            f"Measured with {plural(int(number), 'seed')}: labelled known items that were held "
            "back from training and hidden in the pool. Whiskers are 95% intervals."
        )
    p_value = read_number((audit.get("test") or {}).get("p_value"))
    if p_value is not None:
        said.append(
            f"If nothing in the pool were unknown, scores like these would come with probability "
            f"{chance(p_value)}."
        )
    if (audit.get("prior_shift") or {}).get("found"):
        said.append(
            "The pool mixes the known classes otherwise than the labelled items do; "
            "each seed is weighted accordingly."
        )
    return said


def chance(p_value: float) -> str:
    """A p-value in words.

    >>> chance(1e-9), chance(0.2), chance(1.0)
    ('below 0.001', '0.2', '1')
    """
    return "below 0.001" if p_value < 0.001 else f"{p_value:.2g}"


def _written(value: object, form: str) -> str:
    number = read_number(value)
    return "" if number is None else format(number, form)
