"""Put an answer and the record of its run into words and rows."""

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from s2osc.codec import JsonObject
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.audit.wording import tell
from s2osc.report.kinds import Kind, count_groups
from s2osc.text import plural
from s2osc.text import rounded_percent as percent
from s2osc.types import Answer

PARTS_SHOWN = 3  # true classes named for each kind of answer
# Shown elsewhere than in tables.
PLACED_KEYS = ("audit", "groups", "metrics", "warnings", "warning_codes", "seconds", "origin")
# Shown as words or charts.
SHOWN_OF_AUDIT = (
    *("sentence", "cautions", "curve", "per_class", "weights", "tree", "spreads"),
    *("bins", "class_limits", "what_speaks", "evidence", "long_tail"),
)
METRICS_IN_WORDS = {
    "precision": "mean over classes by size",
    "recall": "mean over classes by size",
    "f1": "mean over classes by size",
    "macro_f1": "plain mean over classes",
    "f_out": "F1 of unknown against known",
    "f_out_all_unknown": "F_out if all were called unknown",
    "auroc": "unknown scored above known",
    "oscr": "known named right, below unknown",
    "fpr95": "unknown passed with 95% of known",
    "group_accuracy": "groups matched to true classes",
    "nmi_found": "of unknown items that were found",
}
"""What is behind a name that does not say it."""
INITIALS = {
    "f1": "F1",
    "oscr": "OSCR",
    "fpr95": "FPR95",
    "auroc": "AUROC",
    "auc": "AUC",
    "nmi": "NMI",
    "ari": "ARI",
}


@dataclass(frozen=True)
class IntervalText:
    """A share from 0 to 1 with its interval; None where it was not estimated."""

    figure: Estimate | None

    @property
    def bar(self) -> float:
        """Where a bar ends that starts at 0."""
        return self.figure.estimate if self.figure else 0.0

    @property
    def whiskers(self) -> tuple[float, float] | None:
        """From where to where the estimate may lie."""
        return (self.figure.low, self.figure.high) if self.figure else None

    @property
    def value(self) -> str:
        return percent(self.figure.estimate) if self.figure else "not estimated"

    @property
    def range(self) -> str:
        """Between which shares the estimate lies; nothing where there is no estimate.

        >>> IntervalText(Estimate(0.04, 0.021, 0.063)).range, IntervalText(None).range
        ('2.1% to 6.3%', '')
        """
        return f"{percent(self.figure.low)} to {percent(self.figure.high)}" if self.figure else ""

    @property
    def text(self) -> str:
        """The estimate and its interval.

        >>> IntervalText(Estimate(0.04, 0.021, 0.063)).text, IntervalText(None).text
        ('4.0% (2.1% to 6.3%)', 'not estimated')
        """
        return f"{self.value} ({self.range})" if self.figure else self.value


@dataclass(frozen=True)
class KeyNumber:
    """A number that says much about the answer."""

    value: str
    name: str
    remark: str = ""


@dataclass(frozen=True)
class Part:
    """The items of one kind that share a true class."""

    name: str
    share: float
    is_match: bool


@dataclass(frozen=True)
class Composition:
    """What the items given one answer truly are."""

    kind: Kind
    parts: list[Part]  # largest first; the last may be all others


@dataclass(frozen=True)
class DetailTable:
    """Rows of a name and a value."""

    title: str
    rows: list[tuple[str, str]]


@dataclass(frozen=True)
class StepTime:
    """How long one step of the run took."""

    name: str
    seconds: float
    share: float  # of the longest step


def headline(answer: Answer, groups: str) -> tuple[str, str]:
    """The answer in one sentence: the number to stress, and the words after it."""
    n, n_unknown, n_unsure = len(answer.labels), *_counts(answer)
    unsure = f"; {n_unsure:,} {'is' if n_unsure == 1 else 'are'} unsure" if n_unsure else ""
    if n_unknown == 0 and n_unsure:
        return "0", f" of {plural(n, 'item')} {'is' if n == 1 else 'are'} called unknown{unsure}"
    if n_unknown == 0 and n == 1:
        return "1", " item, and it is given a known class"
    if n_unknown == 0:
        return "0", f" of {n:,} items are called unknown: each is given a known class"
    verb = "is" if n_unknown == 1 else "are"
    return (
        f"{n_unknown:,}",
        f" of {plural(n, 'item')} {verb} called unknown, in {groups}{unsure}",
    )


def groups_in_words(answer: Answer, audit: Audit | None) -> str:
    """How many groups there are, and between which numbers that was estimated to lie."""
    found = audit.groups if audit else None
    number = min(count_groups(answer), found.number) if found else count_groups(answer)
    if not found or not number:
        return plural(number, "group")
    others = [str(n) for n, _ in found.alternatives if n != found.number]
    perhaps = f" (perhaps {' or '.join(others)})" if others else ""
    scattered = " and scattered items" if count_groups(answer) > found.number else ""
    return plural(number, "group") + perhaps + scattered


def key_numbers(answer: Answer, groups: str) -> list[KeyNumber]:
    """The answer in a few numbers."""
    n, n_unknown, n_unsure = len(answer.labels), *_counts(answer)
    n_known = n - n_unknown - n_unsure
    n_classes = len(np.unique(answer.labels[answer.labels >= 0]))
    known = f"{percent(n_known / n)} in {plural(n_classes, 'class')}"
    unknown = f"{percent(n_unknown / n)} in {groups}"
    unsure = [KeyNumber(f"{n_unsure:,}", "Unsure", percent(n_unsure / n))] if n_unsure else []
    return [
        KeyNumber(f"{n:,}", "In the pool"),
        KeyNumber(f"{n_known:,}", "Known", known if n_classes else ""),
        KeyNumber(f"{n_unknown:,}", "Called unknown", unknown if n_unknown else ""),
        *unsure,
    ]


def _counts(answer: Answer) -> tuple[int, int]:
    return int(answer.is_unknown.sum()), int(answer.is_unsure.sum())


def compositions(
    kinds: list[Kind], kind_of_item: np.ndarray, truth: list[str]
) -> list[Composition]:
    """The true classes behind each answer that was given."""
    found = []
    for kind in kinds:
        if not kind.count:
            continue
        counts = Counter(truth[item] for item in np.flatnonzero(kind_of_item == kind.index))
        ranked = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
        n_named = PARTS_SHOWN if len(ranked) > PARTS_SHOWN + 1 else len(ranked)
        # A group has no name to match: its largest true class is what it found.
        match = {"known": kind.name, "unknown": ranked[0][0], "unsure": None}[kind.side]
        parts = [Part(name, count / kind.count, name == match) for name, count in ranked[:n_named]]
        if others := ranked[n_named:]:
            share = sum(count for _, count in others) / kind.count
            parts.append(Part(f"{len(others)} others", share, is_match=False))
        found.append(Composition(kind, parts))
    return found


def metric_numbers(summary: JsonObject) -> list[KeyNumber]:
    """The metrics that are one number each."""
    metrics = summary.get("metrics") or {}
    return [
        KeyNumber(
            f"{value:.3f}" if isinstance(value, float) else format_value(value),
            spell(name),
            METRICS_IN_WORDS.get(name, ""),
        )
        for name, value in metrics.items()
        if isinstance(value, int | float)
    ]


def step_times(summary: JsonObject) -> list[StepTime]:
    """The steps of the run in the order they ran."""
    seconds = summary.get("seconds") or {}
    longest = max(seconds.values(), default=0) or 1
    return [StepTime(spell(name), value, value / longest) for name, value in seconds.items()]


def tables(summary: JsonObject, audit: Audit | None) -> list[DetailTable]:
    """The rest of the summary: a table per mapping, and one of single values."""
    found = [DetailTable("Audit", mapping_rows(_single_figures(tell(audit))))] if audit else []
    single = []
    for key, value in summary.items():
        if key in PLACED_KEYS:
            continue
        if isinstance(value, dict):
            found.append(DetailTable(spell(key), mapping_rows(value)))
        else:
            single.append((spell(key), format_value(value)))
    nested = {k: v for k, v in (summary.get("metrics") or {}).items() if isinstance(v, dict)}
    if nested:
        found.append(DetailTable("Metrics in detail", mapping_rows(nested)))
    return [DetailTable("Run", single), *found] if single else found


def _single_figures(audit: JsonObject) -> JsonObject:
    """An audit without the curves and classes that its charts and its table of classes show."""
    return {
        key: _single_figures(value) if isinstance(value, dict) else value
        for key, value in audit.items()
        if key not in SHOWN_OF_AUDIT
    }


def mapping_rows(mapping: JsonObject, prefix: str = "") -> list[tuple[str, str]]:
    """Rows of a nested mapping.

    >>> mapping_rows({"teacher": {"epochs": 3, "augment": True}, "fraction": 0.1})
    [('teacher.epochs', '3'), ('teacher.augment', 'yes'), ('fraction', '0.1')]
    """
    rows = []
    for key, value in mapping.items():
        name = f"{prefix}{key}"
        rows += mapping_rows(value, f"{name}.") if isinstance(value, dict) else []
        rows += [(name, format_value(value))] if not isinstance(value, dict) else []
    return rows


def format_value(value: object) -> str:
    """A value as a person would write it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return ", ".join(format_value(part) for part in value) or "none"
    return str(value)


def spell(name: str) -> str:
    """A key as a heading.

    >>> spell("weighted_f1"), spell("accuracy"), spell("f_out")
    ('Weighted F1', 'Accuracy', 'F_out')
    """
    if name == "f_out":
        return "F_out"
    words = " ".join(INITIALS.get(word, word) for word in name.split("_"))
    return words[:1].upper() + words[1:]


def short_number(value: float) -> str:
    """A score in few digits.

    >>> short_number(0.98765), short_number(12345.6), short_number(float("inf"))
    ('0.988', '12,346', '∞')
    """
    if not math.isfinite(value):
        return "∞" if value > 0 else "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
