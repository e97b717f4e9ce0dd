"""Methods against data sets: a table per figure of pools or of streams, the paper's beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from s2osc.bench.records import Record
from s2osc.bench.tables.paper import paper_figure
from s2osc.bench.tables.rendering import Table
from s2osc.bench.tables.runs import Runs, dataset_title, fullest
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
