"""Records of an experiment -> paragraphs and tables, in full or in brief.

In full, everything that was recorded; in brief, the one table that answers the question of the
experiment, for documents that people read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.comparison import (
    GROUP_METRICS,
    POOL_METRICS,
    metric_table,
    pool_tables,
    seconds_per_window,
    seconds_table,
    side_by_side,
    stream_tables,
)
from s2osc.bench.tables.paper import PAPER
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import Runs, by_size, dataset_title
from s2osc.bench.tables.words import (
    describe_pools,
    describe_streams,
    explain_pools,
    explain_streams,
    threads,
    what_failed,
    what_to_note,
    who_beats_ours,
)

MOST_ROWS = 30
"""A table of more runs shows means alone."""
WINDOW_COLUMNS = {
    "known classes": ("n_known", 0),
    "K": ("k", 0),
    "labels": ("labels", 0),
    "new classes": ("n_new", 1),
    "found": ("n_found", 1),
    "accuracy": ("accuracy", 3),
    "weighted F1": ("f1", 3),
    "F_out": ("f_out", 3),
    "seconds to recognise": ("recognise", 1),
    "seconds to learn": ("learn", 1),
    "MB at most so far": ("peak_memory_mb", 0),
}
"""What a window holds, by itself or among its metrics and seconds, and the digits shown."""
Layout = Callable[[Runs], Sequence[Block]]


def make_blocks(
    experiment: Experiment, records: Sequence[Record], *, brief: bool = False
) -> list[Block]:
    """All blocks, and never two sizes in one table."""
    by_sizes = blocks_by_size(experiment, records, brief=brief)
    return [block for blocks in by_sizes.values() for block in blocks]


def blocks_by_size(
    experiment: Experiment, records: Sequence[Record], *, brief: bool = False
) -> dict[str, list[Block]]:
    layout = LAYOUTS[experiment.layout][brief]
    return {
        size: [block for block in layout(Runs(experiment, size, mine)) if block]
        for size, mine in by_size(records).items()
    }


# A row per run, or per method


def runs_in_full(runs: Runs) -> Sequence[Block]:
    table = _table_of_runs(runs, shows_runs=len(runs.right) <= MOST_ROWS)
    return [_title_of_runs(runs, table), table, what_failed(runs.records)]


def runs_in_brief(runs: Runs) -> Sequence[Block]:
    table = _table_of_runs(runs, shows_runs=False)
    return [_title_of_runs(runs, table), table]


def _title_of_runs(runs: Runs, table: Table) -> str:
    has_deviations = any("±" in cell for row in table.rows for cell in row)
    facts = ", ".join(filter(None, [f"size {runs.size}" if runs.size else "", threads(runs.right)]))
    deviations = "± is the standard deviation over partitions" if has_deviations else ""
    return f"{runs.experiment.title} ({'; '.join(filter(None, [facts, deviations]))}):"


def _table_of_runs(runs: Runs, *, shows_runs: bool) -> Table:
    """A row per run where there is one method; means and deviations over partitions."""
    experiment, methods = runs.experiment, list(runs.experiment.methods)
    shows_runs = shows_runs and len(methods) == 1
    rows = []
    for dataset in sorted({record["dataset"] for record in runs.right}, reverse=True):
        for method in methods:
            mine = [r for r in runs.right if (r["dataset"], r["method"]) == (dataset, method)]
            mine.sort(key=partition_of)
            if shows_runs:
                rows += [_row_of_runs(_classes(record), [record], experiment) for record in mine]
            if len(mine) > 1 or (mine and not shows_runs):
                what = method if len(methods) > 1 else "mean"
                name = f"{what} of {len(mine)}"
                rows.append(_row_of_runs(name, mine, experiment, mark="**"))
    first = "known / unknown" if shows_runs else "method"
    paper = ["paper's F1"] if "f1" in experiment.columns.values() else []
    header = ("data", first, *experiment.columns, *paper, "seconds")
    return Table(header, tuple(rows), n_labels=2)


def _classes(record: Record) -> str:
    unknown = ", ".join(record["unknown_classes"]) or "nothing"
    return f"{', '.join(record['known_classes'])} / {unknown}"


def _row_of_runs(
    name: str, records: Sequence[Record], experiment: Experiment, mark: str = ""
) -> tuple[str, ...]:
    """Mean ± standard deviation over the partitions that have the figure; the paper's F1."""
    cells = []
    for key in experiment.columns.values():
        values = [r["metrics"][key] for r in records if key in r["metrics"]]
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        cells.append(f"{mark}{_mean(values)}{mark}{deviation}" if values else "")
    dataset = records[0]["dataset"]
    if "f1" in experiment.columns.values():
        # Of the whole data set alone: no row here says what a sample is.
        paper = PAPER["one"].get(("s2osc", dataset))
        cells.append(f"{paper['f1']:.3f}" if paper else "")
    seconds = np.mean([record["seconds_total"] for record in records])
    return (dataset, name, *cells, f"{seconds:.0f}")


def _mean(values: Sequence[float]) -> str:
    """A mean in three digits; a number of things in none."""
    mean = float(np.mean(values))
    is_number = all(isinstance(value, int) for value in values) and mean == round(mean)
    return f"{mean:.0f}" if is_number else f"{mean:.3f}"


# Methods against data sets


def pools_in_full(runs: Runs) -> Sequence[Block]:
    never_seen = pool_tables(runs, "held_out")
    paragraph = "Items never seen (the same methods, on items that were not in the pool):"
    return [
        describe_pools(runs),
        explain_pools(runs),
        *pool_tables(runs),
        # Where methods share f, the seconds of a run are not those of a method.
        *([] if runs.experiment.keeps_networks else [seconds_table(runs)]),
        *what_to_note(runs),
        *([paragraph] if never_seen else []),
        *never_seen,
    ]


def pools_in_brief(runs: Runs) -> Sequence[Block]:
    titles = POOL_METRICS | GROUP_METRICS
    return [describe_pools(runs), *_headlines(runs, titles), who_beats_ours(runs)]


def streams_in_full(runs: Runs) -> Sequence[Block]:
    return [
        describe_streams(runs),
        explain_streams(runs),
        *stream_tables(runs),
        *what_to_note(runs),
    ]


def streams_in_brief(runs: Runs) -> Sequence[Block]:
    titles = {metric: title for title, metric in runs.experiment.columns.items()}
    return [describe_streams(runs), *_headlines(runs, titles)]


def _headlines(runs: Runs, titles: Mapping[str, str]) -> list[Table]:
    """The figures that answer the experiment's question; of one data set, side by side."""
    shown = runs.as_recorded()
    tables = [
        metric_table(shown, metric, titles[metric], fair_only=True)
        for metric in runs.experiment.headlines
    ]
    return [side_by_side(tables)] if len(shown.datasets) == 1 else tables


# Windows of a stream


def windows_in_full(runs: Runs) -> Sequence[Block]:
    """A table for each data set: a row for each window of each method, in the order of time."""
    tables = [
        Table(("window", "method", *WINDOW_COLUMNS), rows, dataset_title(dataset), n_labels=2)
        for dataset in runs.datasets
        if (rows := _window_rows(runs, dataset))
    ]
    return [
        describe_streams(runs),
        "Cells: mean over partitions; – is not recorded. A new class is unknown in its window.",
        *tables,
        *what_to_note(runs),
    ]


def windows_in_brief(runs: Runs) -> Sequence[Block]:
    """Means over windows and partitions."""
    columns = {"accuracy": "accuracy", "weighted F1": "f1", "F_out": "f_out"}
    rows = []
    for dataset in runs.recorded:
        for method in runs.methods:
            mine = [record for record in runs.of(method, dataset) if record.get("windows")]
            if mine:
                means = [_mean([r["metrics"][metric] for r in mine]) for metric in columns.values()]
                seconds = np.mean([seconds_per_window(record["windows"]) for record in mine])
                n_windows = f"{len(mine[0]['windows'])}"
                cells = (dataset_title(dataset), method, n_windows, *means, f"{seconds:.1f}")
                rows.append(cells)
    header = ("data", "method", "windows", *columns, "seconds per window")
    return [describe_streams(runs), Table(header, tuple(rows), n_labels=2)]


def _window_rows(runs: Runs, dataset: str) -> tuple[tuple[str, ...], ...]:
    followed = {
        method: [r["windows"] for r in runs.of(method, dataset) if r.get("windows")]
        for method in runs.methods
    }
    longest = max((len(w) for windows in followed.values() for w in windows), default=0)
    rows = []
    for place in range(longest):
        for method, windows in followed.items():
            if here := [run[place] for run in windows if len(run) > place]:
                cells = [_mean_of(here, *column) for column in WINDOW_COLUMNS.values()]
                rows.append((str(place + 1), method, *cells))
    return tuple(rows)


def _mean_of(windows: Sequence[Mapping[str, Any]], name: str, n_digits: int) -> str:
    """The mean of a figure over partitions.

    >>> _mean_of([{"metrics": {"f1": 0.5}}, {"metrics": {"f1": 0.7}}], "f1", 3)
    '0.600'
    >>> _mean_of([{"k": 200}], "k", 0), _mean_of([{"k": None}], "k", 0)
    ('200', '–')
    """
    flat = [{**each, **each.get("metrics", {}), **each.get("seconds", {})} for each in windows]
    values = [each[name] for each in flat if each.get(name) is not None]
    return f"{np.mean(values):.{n_digits}f}" if values else "–"


LAYOUTS: dict[str, tuple[Layout, Layout]] = {
    "rows": (runs_in_full, runs_in_brief),
    "matrix": (pools_in_full, pools_in_brief),
    "stream": (streams_in_full, streams_in_brief),
    "windows": (windows_in_full, windows_in_brief),
}
"""By the layout of an experiment: in full, and in brief."""
