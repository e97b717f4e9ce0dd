"""The table of sources: the same pools from the source of the labelled items, and from others."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from s2osc.bench.experiments.grid import LEVELS
from s2osc.bench.methods import OURS
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.grid import (
    MUCH_WORSE,
    Count,
    Outcome,
    accuracy_beside_teacher,
    excess_of_false_alarms,
    is_false_discovery,
    mean_f_out,
    mean_with_error,
)
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import Runs, dataset_title
from s2osc.bench.tables.words import SOURCES_SENTENCES, threads, what_failed
from s2osc.bench.tasks.audit import SAME, PairedPool
from s2osc.text import plural

MUCH_LESS = 0.05
"""Of F_out, below that of the same items from the source of the labelled ones."""
PAPER = "s2osc-paper"


class SeenPool(NamedTuple):
    """What came out for a pool from some source, and for the same pool otherwise."""

    data: str
    outcome: Outcome
    same: Outcome | None  # of the same items from the source of the labelled ones
    papers_f1: float | None  # of the paper's method for the same pool

    @property
    def pool(self) -> PairedPool:
        pool = self.outcome.pool
        assert isinstance(pool, PairedPool)
        return pool


def pair_pools(records: Sequence[Record]) -> list[SeenPool]:
    """Ours, each beside its like from the same source and beside the paper's method."""
    papers_f1 = {_place(r): float(r["metrics"]["f1"]) for r in records if r["method"] == PAPER}
    ours = [r for r in records if r["method"] == OURS and r.get("stated")]
    outcomes = {_place(record): Outcome.of(record, PairedPool) for record in ours}
    same = {
        _like(data, outcome): outcome
        for (data, _), outcome in outcomes.items()
        if outcome.pool.source == SAME
    }
    return [
        SeenPool(place[0], outcome, same.get(_like(place[0], outcome)), papers_f1.get(place))
        for place, outcome in outcomes.items()
    ]


def _place(record: Record) -> tuple[str, int]:
    return record["dataset"], partition_of(record)


def _like(data: str, outcome: Outcome) -> tuple[str, int, float]:
    pool = outcome.pool
    assert isinstance(pool, PairedPool)
    return data, pool.draw, pool.unknown_share


# --- columns ---------------------------------------------------------------------------------

Column = Callable[[Sequence[SeenPool]], str]


def _of_outcomes(column: Callable[[Sequence[Outcome]], str], pools: Sequence[SeenPool]) -> str:
    return column([pool.outcome for pool in pools])


def _count(is_hit: Callable[[SeenPool], bool | None], pools: Sequence[SeenPool]) -> str:
    return str(Count.of([is_hit(pool) for pool in pools]))


def loses_known(pool: SeenPool) -> bool | None:
    """Where nothing is unknown: whether far fewer answers are right than f's own."""
    if pool.outcome.has_unknown:
        return None
    truth = pool.outcome.truth
    return truth["accuracy"] < truth["teacher_known_accuracy"] - MUCH_WORSE


def is_told(pool: SeenPool) -> bool:
    return "sources_differ" in pool.outcome.stated.cautions


def loss_of_f_out(pool: SeenPool) -> float | None:
    """How much less F_out is than from the source of the labelled items; None: not comparable."""
    if not pool.outcome.has_unknown or pool.same is None or pool.pool.source == SAME:
        return None
    return pool.same.truth["f_out"] - pool.outcome.truth["f_out"]


def loses_unknown(pool: SeenPool) -> bool | None:
    loss = loss_of_f_out(pool)
    return None if loss is None else loss > MUCH_LESS


def mean_loss(pools: Sequence[SeenPool]) -> str:
    found = [-loss for loss in map(loss_of_f_out, pools) if loss is not None]
    return mean_with_error(found)


def is_below_paper(pool: SeenPool) -> bool | None:
    """Where something is unknown: whether the paper's method answers far better."""
    if not pool.outcome.has_unknown or pool.papers_f1 is None:
        return None
    return pool.outcome.truth["f1"] < pool.papers_f1 - MUCH_WORSE


def f1_beside_paper(pools: Sequence[SeenPool]) -> str:
    """Of pools in which something is unknown: ours, and in brackets that of the paper's method."""
    both = [
        (pool.outcome.truth["f1"], pool.papers_f1)
        for pool in pools
        if pool.outcome.has_unknown and pool.papers_f1 is not None
    ]
    if not both:
        return "–"
    ours, papers = np.mean(both, axis=0)
    return f"{ours:.3f} ({papers:.3f})"


COLUMNS: Mapping[str, Column] = {
    "pools": lambda pools: str(len(pools)),
    "told": partial(_count, is_told),
    "nothing unknown: accuracy (f's own)": partial(_of_outcomes, accuracy_beside_teacher),
    f"more than {MUCH_WORSE} below f": partial(_count, loses_known),
    "discoveries": partial(_count, lambda pool: is_false_discovery(pool.outcome)),
    "40 % unknown: F_out": partial(_of_outcomes, mean_f_out),
    "F_out - that of the same source": mean_loss,
    f"more than {MUCH_LESS} below": partial(_count, loses_unknown),
    "stated - true false alarms": partial(_of_outcomes, excess_of_false_alarms),
    "F1 (the paper's method)": f1_beside_paper,
    f"more than {MUCH_WORSE} below it": partial(_count, is_below_paper),
}


def sources_table(pools: Sequence[SeenPool], caption: str = "") -> Table:
    """A row for each source, and one for all but the source of the labelled items."""
    rows = {
        source: [pool for pool in pools if pool.pool.source == source]
        for source in LEVELS["source"]
    }
    rows["all others"] = [pool for pool in pools if pool.pool.source != SAME]
    cells = tuple(
        (source, *(column(mine) for column in COLUMNS.values()))
        for source, mine in rows.items()
        if mine
    )
    return Table(("source", *COLUMNS), cells, caption)


# --- as documents show it --------------------------------------------------------------------


def sources_in_full(runs: Runs) -> Sequence[Block]:
    pools = pair_pools(runs.right)
    by_data = [[pool for pool in pools if pool.data == data] for data in runs.recorded]
    tables = [sources_table(mine, dataset_title(mine[0].data)) for mine in by_data if mine]
    return [*sources_in_brief(runs), *tables, what_failed(runs.records)]


def sources_in_brief(runs: Runs) -> Sequence[Block]:
    pools = pair_pools(runs.right)
    of_data = ", ".join(dataset_title(data) for data in runs.recorded)
    facts = ", ".join(filter(None, [of_data, plural(len(pools), "pool"), threads(runs.right)]))
    tables = [sources_table(pools)] if pools else []
    return [f"{runs.experiment.title} ({facts})", *tables, SOURCES_SENTENCES]
