"""Records of many methods on many data sets -> a table per metric, the paper's figures beside ours.

Sizes are never mixed: each has tables of its own. What is missing or failed is said.
"""

from collections.abc import Sequence

import numpy as np

from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.tables.paper import paper_figure
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import (
    Record,
    Runs,
    by_size,
    dataset_title,
    describe_runs,
    explain_cells,
    fullest,
    what_failed,
    what_is_missing,
    who_beats_ours,
)
from s2osc.metrics import Interval, interval_over

METRICS = {
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


def make_matrix(experiment: Experiment, records: Sequence[Record]) -> list[Block]:
    """For each size: what was run, its tables, and where ours is beaten or missing."""
    blocks: list[Block] = []
    for size, mine in by_size(records).items():
        runs = Runs(experiment, size, mine)
        blocks += [describe_runs(runs), explain_cells(runs), *_tables(runs, "metrics")]
        # Where methods share f, the seconds of a run are not those of a method.
        blocks += [] if experiment.keeps_networks else [_seconds(runs)]
        blocks += [text for text in (who_beats_ours(runs), what_is_missing(runs)) if text]
        blocks += [failed] if (failed := what_failed(mine)) else []
        if never_seen := _tables(runs, "held_out"):
            blocks += ["Items never seen (the same methods, on items that were not in the pool):"]
            blocks += never_seen
    return blocks


def _tables(runs: Runs, part: str) -> list[Block]:
    """A table for each metric that some record has."""
    metrics = METRICS | (GROUP_METRICS if runs.has_several_unknown else {})
    has = {metric for record in runs.records for metric in record.get(part) or {}}
    return [_table(runs, part, metric) for metric in metrics if metric in has]


def _table(runs: Runs, part: str, metric: str) -> Table:
    best = {dataset: _best(runs, dataset, part, metric) for dataset in runs.datasets}
    rows = []
    for method in runs.methods:
        modes = {part: method}
        if part == "metrics" and _has(runs, method, "paper_mode", metric):
            modes = {part: f"{method} (fair mode)", "paper_mode": f"{method} (paper mode)"}
        for mode, name in modes.items():
            cells = [
                _cell(runs, method, dataset, mode, metric, best=best[dataset])
                for dataset in runs.datasets
            ]
            rows.append((name, *cells))
    if metric == "f_out":
        rows.append(("everything unknown", *(_line(runs, d, part) for d in runs.datasets)))
    return Table(_header(runs), tuple(rows), METRICS.get(metric) or GROUP_METRICS[metric])


def _header(runs: Runs) -> tuple[str, ...]:
    return ("method", *map(dataset_title, runs.datasets))


def _has(runs: Runs, method: str, part: str, metric: str) -> bool:
    return any(runs.values(method, dataset, part, metric) for dataset in runs.datasets)


def _best(runs: Runs, dataset: str, part: str, metric: str) -> str | None:
    """The largest mean of a column, as it is shown: what looks the same is the same.

    Of methods with fewer partitions than others have none is the best.
    """
    found = fullest([runs.values(m, dataset, part, metric) for m in runs.methods])
    means = [interval_over(list(values.values())).mean for values in found]
    return f"{max(means):.3f}" if means else None


def _cell(
    runs: Runs, method: str, dataset: str, part: str, metric: str, *, best: str | None
) -> str:
    values = list(runs.values(method, dataset, part, metric).values())
    if values:
        # Paper mode knows the truth, so it does not compete.
        text = _interval(interval_over(values), best=None if part == "paper_mode" else best)
    else:
        mine = runs.of(method, dataset)
        text = "failed" if mine and all(record.get("error") for record in mine) else "–"
    paper = None if part == "held_out" else paper_figure(runs.table, method, dataset, metric)
    return text if paper is None else f"{text} [{paper:.3f}]"


def _line(runs: Runs, dataset: str, part: str) -> str:
    """F_out of calling everything unknown: it depends on the partition and on no method."""
    values: dict[int, float] = {}
    for method in runs.methods:
        values |= runs.values(method, dataset, part, "f_out_all_unknown")
    return _interval(interval_over(list(values.values()))) if values else "–"


def _interval(found: Interval, *, best: str | None = None) -> str:
    mean = f"{found.mean:.3f}"
    shown = f"**{mean}**" if mean == best else mean
    error = "" if found.half_width is None else f" ± {found.half_width:.3f}"
    return f"{shown}{error} ({found.n})"


def _seconds(runs: Runs) -> Table:
    """Mean seconds of a run."""
    rows = []
    for method in runs.methods:
        found = [runs.of(method, dataset) for dataset in runs.datasets]
        seconds = [[r["seconds_total"] for r in mine if "seconds_total" in r] for mine in found]
        cells = [f"{np.mean(mine):.1f} ({len(mine)})" if mine else "–" for mine in seconds]
        rows.append((method, *cells))
    return Table(_header(runs), tuple(rows), "Seconds")
