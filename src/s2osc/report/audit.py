"""The audit as the texts and figures of the page."""

from dataclasses import dataclass

import numpy as np

from s2osc.pipeline.audit.record import Audit, CheckedAudit, GroupsAudit
from s2osc.pipeline.audit.wording import limit, sentence, verdict
from s2osc.report.curves import OperatingCurve, PurityChart, operating_curve, purity_chart
from s2osc.report.distributions import ScoreChart, score_chart
from s2osc.report.kinds import count_groups
from s2osc.report.reliability import ReliabilityChart, reliability_chart
from s2osc.report.words import IntervalText
from s2osc.text import plural
from s2osc.text import rounded_percent as percent
from s2osc.types import Answer


@dataclass(frozen=True)
class Figure:
    """One estimate: a bar with whiskers on a scale from 0 to 100 %, and the same in words."""

    name: str
    meaning: str
    interval: IntervalText
    wanted: float | None = None  # 0 .. 1: what the user asked for
    is_unknown: bool = False  # about the unknown items, not the known


@dataclass(frozen=True)
class ClassRow:
    """The figures of one class."""

    name: str
    n_seeds: str
    false_alarm: IntervalText
    accuracy: IntervalText
    weight: str


@dataclass(frozen=True)
class AuditView:
    """The audit as the page shows it."""

    sentence: str
    verdict: str
    nothing_unknown: bool
    notes: list[str]
    figures: list[Figure]
    checked: list[Figure]  # what a person measured; empty where nobody has
    classes: list[ClassRow]
    is_weighted: bool
    scores: ScoreChart | None
    purity: PurityChart | None
    curve: OperatingCurve | None
    reliability: ReliabilityChart | None
    certainty: list[str]  # of each group, to be a class; an empty text where none is known


def show_audit(
    audit: Audit, *, answer: Answer, seed_scores: np.ndarray | None, folder: str
) -> AuditView:
    """Put an audit into the form the page shows."""
    return AuditView(
        sentence=sentence(audit),
        verdict=verdict(audit.test),
        nothing_unknown=audit.nothing_unknown,
        notes=notes(audit),
        figures=figures(audit),
        checked=checked_figures(audit.checked) if audit.checked else [],
        classes=class_rows(audit),
        is_weighted=audit.is_shifted,
        scores=score_chart(
            answer.unknown_score,
            seed_scores,
            threshold=audit.threshold,
            sure_known_below=audit.sure_known_below,
        ),
        purity=purity_chart(audit.purity) if audit.purity else None,
        curve=operating_curve(audit, answer, folder=folder),
        reliability=reliability_chart(audit.reliability) if audit.reliability else None,
        certainty=certainty(audit.groups, count_groups(answer)),
    )


def figures(audit: Audit) -> list[Figure]:
    """The four estimates in the order a reader asks for them; recall where it was estimated."""
    wanted = audit.wanted_false_alarm
    shown = [
        Figure(
            "False alarms",
            f"known items called unknown; at most {percent(wanted)} wanted",
            IntervalText(audit.false_alarm),
            wanted=wanted,
        ),
        Figure(
            "Accuracy on known classes",
            "known items given their own class",
            IntervalText(audit.known_accuracy),
        ),
        Figure(
            "Unknown share",
            "of this pool is estimated to be of no known class; a rough range",
            IntervalText(audit.unknown_share),
            is_unknown=True,
        ),
    ]
    if audit.unknown_recall:
        shown.append(
            Figure(
                "Recall of unknown items",
                "unknown items called unknown; a rough range",
                IntervalText(audit.unknown_recall),
                is_unknown=True,
            )
        )
    return shown


def checked_figures(checked: CheckedAudit) -> list[Figure]:
    """What a person measured; rates of which no item tells are left out."""
    shown = [
        Figure("Right answers", "of all items", IntervalText(checked.accuracy)),
        Figure("False alarms", "known items called unknown", IntervalText(checked.false_alarm)),
        Figure(
            "Accuracy on known classes",
            "known items given their own class",
            IntervalText(checked.known_accuracy),
        ),
        Figure(
            "Unknown share",
            "of this pool is of no known class",
            IntervalText(checked.unknown_share),
            is_unknown=True,
        ),
        Figure(
            "Recall of unknown items",
            "unknown items called unknown",
            IntervalText(checked.unknown_recall),
            is_unknown=True,
        ),
    ]
    return [figure for figure in shown if figure.interval.figure]


def class_rows(audit: Audit) -> list[ClassRow]:
    """One row per class with seeds, those with most false alarms first."""
    rows = [
        ClassRow(
            name=each.name,
            n_seeds=f"{each.n_seeds:,}",
            false_alarm=IntervalText(each.false_alarm),
            accuracy=IntervalText(each.known_accuracy),
            weight=f"{each.weight:.2g}",
        )
        for each in audit.classes
    ]
    return sorted(rows, key=lambda row: -row.false_alarm.bar)


def certainty(groups: GroupsAudit | None, n_groups: int) -> list[str]:
    """Of each group the probability that it is a class; "" where there is no figure."""
    found = groups.certainty if groups else ()
    texts = [f"{value:.2f}" for value in found[:n_groups]]
    return texts + [""] * (n_groups - len(texts))


def notes(audit: Audit) -> list[str]:
    """How the figures were measured, in a few sentences."""
    found = [
        f"Measured with {plural(audit.n_seeds, 'labelled item')} of known classes that were held "
        "back from training and hidden in the pool. Whiskers are 95% intervals, but rough ranges "
        "for the unknown share and the recall.",
        f"If nothing in the pool were unknown, scores like these would come with probability "
        f"{chance(audit.test.exact_p_value)}.",
    ]
    if stated := limit(audit):
        found.append(stated)
    if audit.operating_point:
        found.append(
            "An item is called unknown where its p_known, the share of known items that are at "
            f"least as strange, is at most {audit.operating_point:.3g}."
        )
    if audit.sources_remain_apart:
        found.append(
            "The pool comes from another source than the labelled items, so these cannot tell how "
            "often its known items are called unknown or given the wrong class."
        )
    elif audit.false_alarm is None:
        found.append("Too few items of the pool are known to estimate rates among them.")
    if audit.is_shifted:
        found.append(
            "The pool mixes the known classes otherwise than the labelled items do; "
            "each held-back item is weighted accordingly."
        )
    return found


def chance(p_value: float) -> str:
    """A p-value in words.

    >>> chance(1e-9), chance(0.2), chance(1.0)
    ('below 0.001', '0.2', '1')
    """
    return "below 0.001" if p_value < 0.001 else f"{p_value:.2g}"
