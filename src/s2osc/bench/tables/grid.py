"""The table of the grid: for each level of each factor, how often the audit was right."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv

from s2osc.bench.experiments.grid import LEVELS
from s2osc.bench.methods import OURS
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import Runs
from s2osc.bench.tables.words import GRID_SENTENCES, threads, what_failed
from s2osc.bench.tasks.audit import POOL_ONLY, SAME, AuditPool, Stated
from s2osc.codec import from_plain
from s2osc.errors import DataError
from s2osc.text import plural

CONFIDENCE = 0.95
ROUNDING = 1e-5
"""Of recorded figures: a rate that is an end of its interval is within."""
MORE = "Warnings one by one, and the answers"
MUCH_WORSE = 0.02
"""Of F1, below f alone."""
FACTORS = {
    "unknown_share": "unknown share",
    "n_labelled": "labelled per class",
    "class_sizes": "class sizes",
    "source": "source",
    "columns": "columns",
    "data": "data",
}
INTERVALS = {
    "unknown_share": "unknown share",
    "false_alarms": "false alarms",
    "known_accuracy": "known accuracy",
    "unknown_recall": "recall",
}
"""What the audit states with an interval."""


@dataclass(frozen=True)
class Outcome:
    """What came out for one pool; ``truth`` lacks figures that the pool has no items for."""

    pool: AuditPool
    truth: dict[str, float]
    stated: Stated

    @classmethod
    def of(cls, record: Record, kind: type[AuditPool] = AuditPool) -> "Outcome":
        try:
            return cls(
                from_plain(kind, record["protocol"], "its protocol"),
                record["metrics"],
                from_plain(Stated, record["stated"], "what it states"),
            )
        except ValueError as error:
            where = f"{record['dataset']}, partition {partition_of(record)}"
            raise DataError(f"the record of {where}: {error}; remove it and run again") from error

    @property
    def has_unknown(self) -> bool:
        return self.pool.unknown_share > 0

    @property
    def has_known(self) -> bool:
        return self.pool.unknown_share < 1


# --- what is counted -------------------------------------------------------------------------


def is_covered(outcome: Outcome, rate: str) -> bool | None:
    """Whether an interval covers the truth; None: it does not count.

    It does not count where nothing is stated, where the pool has no items to compare with, and
    where it is right whatever the method does:

    - an interval from 0 to 1;
    - the unknown share, where "nothing is unknown" was found and is true;
    - false alarms and recall, where "nothing is unknown" was found: no item is called unknown.
    """
    stated, truth = getattr(outcome.stated, rate), outcome.truth.get(rate)
    if stated is None or truth is None or (stated.low <= 0 and stated.high >= 1):
        return None
    if not outcome.stated.finds_unknown:
        if rate in ("false_alarms", "unknown_recall"):
            return None
        if rate == "unknown_share" and not outcome.has_unknown:
            return None
    return bool(stated.low - ROUNDING <= truth <= stated.high + ROUNDING)


def is_false_discovery(outcome: Outcome) -> bool | None:
    return None if outcome.has_unknown else outcome.stated.finds_unknown


def is_discovery(outcome: Outcome) -> bool | None:
    return outcome.stated.finds_unknown if outcome.has_unknown else None


def is_false_shift(outcome: Outcome) -> bool | None:
    """Where the pool has the mix of the labelled items; where nothing is known there is no mix."""
    has_own_mix = outcome.pool.class_sizes == POOL_ONLY
    return _names_another_mix(outcome) if outcome.has_known and not has_own_mix else None


def is_shift_found(outcome: Outcome) -> bool | None:
    has_own_mix = outcome.pool.class_sizes == POOL_ONLY
    return _names_another_mix(outcome) if outcome.has_known and has_own_mix else None


def _names_another_mix(outcome: Outcome) -> bool:
    return "class_shift" in outcome.stated.cautions


def is_false_difference(outcome: Outcome) -> bool | None:
    return _names_another_source(outcome) if outcome.pool.source == SAME else None


def is_falsely_warned(outcome: Outcome) -> bool | None:
    answers = [is_false_shift(outcome), is_false_difference(outcome)]
    could_be = [answer for answer in answers if answer is not None]
    return any(could_be) if could_be else None


def is_difference_found(outcome: Outcome) -> bool | None:
    return None if outcome.pool.source == SAME else _names_another_source(outcome)


def _names_another_source(outcome: Outcome) -> bool:
    return "sources_differ" in outcome.stated.cautions


def is_much_worse(outcome: Outcome) -> bool:
    """Than f alone, which calls nothing unknown."""
    return outcome.truth["f1"] < outcome.truth["teacher_f1"] - MUCH_WORSE


class Count(NamedTuple):
    """So many of n."""

    hits: int
    n: int

    @classmethod
    def of(cls, answers: Sequence[bool | None]) -> "Count":
        counted = [answer for answer in answers if answer is not None]
        return cls(sum(counted), len(counted))

    def interval(self) -> tuple[float, float]:
        """The exact binomial one (Clopper and Pearson).

        >>> [round(end, 3) for end in Count(19, 20).interval()], Count(5, 5).interval()[1]
        ([0.751, 0.999], 1.0)
        """
        tail = (1 - CONFIDENCE) / 2
        hits, misses = self.hits, self.n - self.hits
        low = float(betaincinv(hits, misses + 1, tail)) if hits else 0.0
        high = float(betaincinv(hits + 1, misses, 1 - tail)) if misses else 1.0
        return low, high

    def __str__(self) -> str:
        """The share, its interval, and the number of pools.

        >>> str(Count(19, 20)), str(Count(0, 0))
        ('0.95 (0.75–1.00; 20)', '–')
        """
        if not self.n:
            return "–"
        low, high = self.interval()
        return f"{self.hits / self.n:.2f} ({low:.2f}–{high:.2f}; {self.n})"


# --- columns ---------------------------------------------------------------------------------

Column = Callable[[Sequence[Outcome]], str]


def _count(is_hit: Callable[[Outcome], bool | None], outcomes: Sequence[Outcome]) -> str:
    return str(Count.of([is_hit(outcome) for outcome in outcomes]))


def excess_of_false_alarms(outcomes: Sequence[Outcome]) -> str:
    """Stated minus true false alarms, where they are stated and some item is called unknown."""
    return mean_with_error(
        [
            outcome.stated.false_alarms.estimate - outcome.truth["false_alarms"]
            for outcome in outcomes
            if outcome.stated.false_alarms is not None
            and is_covered(outcome, "false_alarms") is not None
        ]
    )


def mean_with_error(differences: Sequence[float]) -> str:
    """The mean, and half of its 95 % interval.

    >>> mean_with_error([0.1, 0.3]), mean_with_error([0.1]), mean_with_error([])
    ('+0.200 ± 0.196', '+0.100', '–')
    """
    if not differences:
        return "–"
    if len(differences) == 1:
        return f"{differences[0]:+.3f}"
    half = 1.96 * np.std(differences, ddof=1) / len(differences) ** 0.5
    return f"{np.mean(differences):+.3f} ± {half:.3f}"


def accuracy_beside_teacher(outcomes: Sequence[Outcome]) -> str:
    """Of pools in which nothing is unknown: ours, and in brackets that of f alone."""
    pools = [outcome.truth for outcome in outcomes if not outcome.has_unknown]
    return _beside(pools, "accuracy", "teacher_known_accuracy")


def f1_beside_teacher(outcomes: Sequence[Outcome]) -> str:
    """Of pools in which something is unknown: ours, and in brackets that of f alone."""
    pools = [outcome.truth for outcome in outcomes if outcome.has_unknown]
    return _beside(pools, "f1", "teacher_f1")


def mean_f_out(outcomes: Sequence[Outcome]) -> str:
    found = [outcome.truth["f_out"] for outcome in outcomes if "f_out" in outcome.truth]
    return f"{np.mean(found):.3f}" if found else "–"


def _beside(pools: Sequence[dict[str, float]], ours: str, of_teacher: str) -> str:
    if not pools:
        return "–"
    means = [float(np.mean([pool[name] for pool in pools])) for name in (ours, of_teacher)]
    return f"{means[0]:.3f} ({means[1]:.3f})"


MAIN_COLUMNS: dict[str, Column] = {
    "pools": lambda outcomes: str(len(outcomes)),
    **{
        f"{title} covered": partial(_count, partial(is_covered, rate=rate))
        for rate, title in INTERVALS.items()
    },
    "level": partial(_count, is_false_discovery),
    "power": partial(_count, is_discovery),
    "false warnings": partial(_count, is_falsely_warned),
    "stated - true false alarms": excess_of_false_alarms,
    "nothing unknown: accuracy (f's own)": accuracy_beside_teacher,
    "something unknown: F1 (f's own)": f1_beside_teacher,
}
MORE_COLUMNS: dict[str, Column] = {
    "class shift, falsely": partial(_count, is_false_shift),
    "class shift, rightly": partial(_count, is_shift_found),
    "sources differ, falsely": partial(_count, is_false_difference),
    "sources differ, rightly": partial(_count, is_difference_found),
    "F_out": mean_f_out,
    f"F1 more than {MUCH_WORSE} below f's own": partial(_count, is_much_worse),
}


def grid_table(
    outcomes: Sequence[Outcome], columns: Mapping[str, Column] = MAIN_COLUMNS, caption: str = ""
) -> Table:
    """A row for all pools, and one for each level of each factor that some pool has."""
    rows = {("all", ""): outcomes}
    for factor, title in FACTORS.items():
        for level in LEVELS[factor]:
            mine = [each for each in outcomes if getattr(each.pool, factor) == level]
            if mine:
                rows[title, level_text(level)] = mine
    cells = tuple(
        (*names, *(column(mine) for column in columns.values())) for names, mine in rows.items()
    )
    return Table(("factor", "value", *columns), cells, caption, n_labels=2)


def source_table(outcomes: Sequence[Outcome]) -> Table:
    """F_out of each source and unknown share; where nothing is unknown, accuracy."""
    shares = [share for share in LEVELS["unknown_share"] if share > 0]
    header = ("source", "nothing unknown: accuracy (f's own)", *map(level_text, shares))
    rows = []
    for source in LEVELS["source"]:
        mine = [each for each in outcomes if each.pool.source == source]
        by_share = [[each for each in mine if each.pool.unknown_share == s] for s in shares]
        if mine:
            rows.append((source, accuracy_beside_teacher(mine), *map(mean_f_out, by_share)))
    return Table(header, tuple(rows), "F_out by source and unknown share")


def level_text(level: object) -> str:
    """A level for people.

    >>> level_text(0.02), level_text(300), level_text("same")
    ('2 %', '300', 'same')
    """
    return f"{100 * level:.0f} %" if isinstance(level, float) else str(level)


def rival_table(records: Sequence[Record], ours: str) -> Table | None:
    """Other methods on the same pools: mean F1, and how often ours is much worse."""
    f1 = {(r["method"], r["dataset"], partition_of(r)): float(r["metrics"]["f1"]) for r in records}
    rows = []
    for rival in sorted({method for method, *_ in f1} - {ours}):
        cells = [cell for method, *cell in f1 if method == rival and (ours, *cell) in f1]
        pairs = [(f1[ours, *cell], f1[rival, *cell]) for cell in cells]
        if pairs:
            worse = Count.of([mine < theirs - MUCH_WORSE for mine, theirs in pairs])
            means = [f"{np.mean(values):.3f}" for values in zip(*pairs, strict=True)]
            rows.append((rival, str(len(pairs)), means[1], means[0], str(worse)))
    if not rows:
        return None
    header = ("method", "pools", "its F1", "ours", f"ours more than {MUCH_WORSE} below")
    return Table(header, tuple(rows), "Other methods on the same pools")


# --- as documents show it --------------------------------------------------------------------


def grid_in_full(runs: Runs) -> Sequence[Block]:
    mine = _outcomes(runs)
    rivals = rival_table(runs.right, OURS)
    return [
        *grid_in_brief(runs),
        *([grid_table(mine, MORE_COLUMNS, MORE), source_table(mine)] if mine else []),
        *([rivals] if rivals else []),
        what_failed(runs.records),
    ]


def grid_in_brief(runs: Runs) -> Sequence[Block]:
    mine = _outcomes(runs)
    facts = ", ".join(filter(None, [plural(len(mine), "pool"), threads(runs.right)]))
    tables = [grid_table(mine)] if mine else []
    return [f"{runs.experiment.title} ({facts})", *tables, GRID_SENTENCES]


def _outcomes(runs: Runs) -> list[Outcome]:
    return [
        Outcome.of(record)
        for record in runs.right
        if record["method"] == OURS and record.get("stated")
    ]
