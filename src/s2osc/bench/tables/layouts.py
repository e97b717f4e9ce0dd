"""Records of an experiment -> paragraphs and tables, in full or in brief.

In full, everything that was recorded; in brief, the one table that answers the question of the
experiment, for documents that people read.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.grid import grid_in_brief, grid_in_full
from s2osc.bench.tables.paper import PAPER, paper_figure
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import Runs, by_size, dataset_title, fullest
from s2osc.bench.tables.sources import sources_in_brief, sources_in_full
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
from s2osc.metrics import interval_over

POOL_METRICS = {
    "f1": "Weighted F1",
    "accuracy": "Accuracy",
    "f_out": "F_out",
    "auroc": "AUROC",
    "oscr": "OSCR",
}
GROUP_METRICS = {
    "class_f1": "Weighted F1, each unknown class by itself",
    "class_accuracy": "Accuracy, each unknown class by itself",
    "group_accuracy": "Group accuracy",
    "nmi": "NMI",
    "ari": "ARI",
}
NEVER_SEEN = ", items never seen"
LOWER_IS_BETTER = ("forgetting", "chaudhry_forgetting")
DIGITS = {"labels": 0, "seconds_per_window": 1}
"""Of figures that are no shares; of these none is the best."""
SIDE_BY_SIDE = 5
"""Columns of a table, where each is a figure."""
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
    held_out = pool_tables(runs, "held_out")
    paragraph = "Items never seen (the same methods, on items that were not in the pool):"
    return [
        describe_pools(runs),
        explain_pools(runs),
        *pool_tables(runs),
        # Where methods share f, the seconds of a run are not those of a method.
        *([] if runs.experiment.keeps_networks else [seconds_table(runs)]),
        *what_to_note(runs),
        *([paragraph] if held_out else []),
        *held_out,
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


def pool_tables(runs: Runs, part: str = "metrics") -> list[Table]:
    """A table for each figure of pools that some record has. ``part``: a field of records."""
    metrics = POOL_METRICS | (GROUP_METRICS if runs.has_several_unknown else {})
    has = {metric for record in runs.records for metric in record.get(part) or {}}
    note = NEVER_SEEN if part == "held_out" else ""
    return [
        metric_table(runs, metric, title + note, part=part)
        for metric, title in metrics.items()
        if metric in has
    ]


def stream_tables(runs: Runs) -> list[Table]:
    """A table for each figure of streams that some record has; of one data set, side by side."""
    tables = [
        metric_table(runs, metric, title)
        for title, metric in runs.experiment.columns.items()
        if any(values_of(runs, m, d, metric) for m in runs.methods for d in runs.datasets)
    ]
    if len(runs.datasets) > 1:
        return tables
    starts = range(0, len(tables), SIDE_BY_SIDE)
    return [side_by_side(tables[start : start + SIDE_BY_SIDE]) for start in starts]


def metric_table(
    runs: Runs, metric: str, title: str, *, part: str = "metrics", fair_only: bool = False
) -> Table:
    """One figure of every method on every data set, and in paper mode of those that have it."""
    best = {dataset: _best(runs, dataset, metric, part) for dataset in runs.datasets}
    rows = []
    for method in runs.methods:
        modes = {part: method}
        if part == "metrics" and not fair_only and _has_paper_mode(runs, method, metric):
            modes = {part: f"{method} (fair mode)", "paper_mode": f"{method} (paper mode)"}
        for mode, name in modes.items():
            cells = [
                _cell(runs, method, dataset, metric, part=mode, best=best[dataset])
                for dataset in runs.datasets
            ]
            rows.append((name, *cells))
    if metric == "f_out":
        rows.append(("everything unknown", *(_all_unknown(runs, d, part) for d in runs.datasets)))
    return Table(("method", *map(dataset_title, runs.datasets)), tuple(rows), title)


def side_by_side(tables: Sequence[Table]) -> Table:
    """Tables of one column each as one, a row for every name that some of them has.

    >>> one = Table(("method", "MNIST"), (("odin", "1"),), "Accuracy")
    >>> two = Table(("method", "MNIST"), (("odin", "2"), ("all", "3")), "F_out")
    >>> side_by_side([one, two]).rows
    (('odin', '1', '2'), ('all', '', '3'))
    """
    cells = [{row[0]: row[1] for row in table.rows} for table in tables]
    names = dict.fromkeys(name for column in cells for name in column)
    return Table(
        ("method", *(table.caption for table in tables)),
        tuple((name, *(column.get(name, "") for column in cells)) for name in names),
        tables[0].header[1],
    )


def values_of(
    runs: Runs, method: str, dataset: str, metric: str, part: str = "metrics"
) -> list[float]:
    """The figure of every partition that has it."""
    if metric == "seconds_per_window":
        followed = [record["windows"] for record in runs.of(method, dataset) if "windows" in record]
        return [seconds_per_window(windows) for windows in followed]
    return list(runs.values(method, dataset, part, metric).values())


def seconds_per_window(windows: Sequence[Mapping[str, Any]]) -> float:
    """To recognise a window and to learn its answers, on average.

    >>> seconds_per_window([{"seconds": {"recognise": 4, "learn": 1}}, {"seconds": {"learn": 1}}])
    3.0
    """
    return float(np.mean([sum(window["seconds"].values()) for window in windows]))


def seconds_table(runs: Runs) -> Table:
    """Mean seconds of a run."""
    rows = []
    for method in runs.methods:
        found = [runs.of(method, dataset) for dataset in runs.datasets]
        seconds = [[r["seconds_total"] for r in mine if "seconds_total" in r] for mine in found]
        cells = [f"{np.mean(mine):.1f} ({len(mine)})" if mine else "–" for mine in seconds]
        rows.append((method, *cells))
    return Table(("method", *map(dataset_title, runs.datasets)), tuple(rows), "Seconds")


def _has_paper_mode(runs: Runs, method: str, metric: str) -> bool:
    return any(runs.values(method, dataset, "paper_mode", metric) for dataset in runs.datasets)


def _best(runs: Runs, dataset: str, metric: str, part: str) -> str | None:
    """The best mean of a column, as it is shown: what looks the same is the same.

    Of methods with fewer partitions than others have none is the best.
    """
    found = fullest([values_of(runs, method, dataset, metric, part) for method in runs.methods])
    means = [float(np.mean(values)) for values in found]
    if not means or metric in DIGITS:
        return None
    return f"{min(means) if metric in LOWER_IS_BETTER else max(means):.3f}"


def _cell(
    runs: Runs, method: str, dataset: str, metric: str, *, part: str, best: str | None
) -> str:
    values = values_of(runs, method, dataset, metric, part)
    if values:
        # Paper mode knows the truth, so it does not compete.
        best = None if part == "paper_mode" else best
        text = _interval(values, n_digits=DIGITS.get(metric, 3), best=best)
    else:
        text = _without_a_figure(runs.of(method, dataset))
    paper = (
        None if part == "held_out" else paper_figure(runs.experiment.table, method, dataset, metric)
    )
    return text if paper is None else f"{text} [{paper:.3f}]"


def _without_a_figure(records: Sequence[Record]) -> str:
    if not records:
        return "–"
    return "failed" if all(record.get("error") for record in records) else "n/a"


def _all_unknown(runs: Runs, dataset: str, part: str) -> str:
    """F_out of calling everything unknown: it depends on the partition and on no method."""
    values: dict[int, float] = {}
    for method in runs.methods:
        values |= runs.values(method, dataset, part, "f_out_all_unknown")
    return _interval(list(values.values())) if values else "–"


def _interval(values: Sequence[float], *, n_digits: int = 3, best: str | None = None) -> str:
    found = interval_over(values)
    mean = f"{found.mean:.{n_digits}f}"
    shown = f"**{mean}**" if mean == best else mean
    error = "" if found.half_width is None else f" ± {found.half_width:.{n_digits}f}"
    return f"{shown}{error} ({found.n})"


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
    "grid": (grid_in_full, grid_in_brief),
    "sources": (sources_in_full, sources_in_brief),
    "stream": (streams_in_full, streams_in_brief),
    "windows": (windows_in_full, windows_in_brief),
}
"""By the layout of an experiment: in full, and in brief."""
