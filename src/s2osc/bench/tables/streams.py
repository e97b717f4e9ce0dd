"""Records of streams -> a table per figure, or per window; the paper's figures beside ours."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.tables.paper import paper_figure
from s2osc.bench.tables.rendering import Block, Table
from s2osc.bench.tables.runs import (
    Record,
    Runs,
    by_size,
    dataset_title,
    fullest,
    threads,
    what_failed,
    what_is_missing,
    who_beats_ours,
)
from s2osc.metrics import interval_over

LOWER_IS_BETTER = ("forgetting", "chaudhry_forgetting")
SIDE_BY_SIDE = 5
"""Columns of a table, where each is a figure."""
DIGITS = {"labels": 0, "seconds_per_window": 1}
"""Of figures that are no shares; of these none is the best."""
OF_FORGETTING = (
    "Forgetting: (A* - mean of A_k) / A*, where A_k is the accuracy after stage k on items never "
    "seen, mean over the arrivals of classes so far, and A* that of one f of all data; it counts "
    "what was never learnt too."
)
WINDOW_COLUMNS = {
    "known classes": ("n_known",),
    "K": ("k",),
    "labels": ("labels",),
    "new classes": ("n_new",),
    "found": ("n_found",),
    "accuracy": ("metrics", "accuracy"),
    "weighted F1": ("metrics", "f1"),
    "F_out": ("metrics", "f_out"),
    "seconds to recognise": ("seconds", "recognise"),
    "seconds to learn": ("seconds", "learn"),
    "MB at most so far": ("peak_memory_mb",),
}


def make_stream_tables(experiment: Experiment, records: Sequence[Record]) -> list[Block]:
    """For each size: what was run, its tables, and where ours is beaten or missing."""
    blocks: list[Block] = []
    for size, mine in by_size(records).items():
        runs = Runs(experiment, size, mine)
        blocks += [describe_streams(runs), explain_streams(runs)]
        blocks += window_tables(runs) if experiment.layout == "windows" else figure_tables(runs)
        told = (who_beats_ours(runs), what_is_missing(runs), what_failed(mine))
        blocks += [text for text in told if text]
    return blocks


# What was run


def describe_streams(runs: Runs) -> str:
    protocols = dict.fromkeys(
        protocol_in_words(record["protocol"]) for record in runs.records if "protocol" in record
    )
    partitions = ", ".join(map(str, runs.partitions))
    facts = [
        f"size {runs.size}" if runs.size else "",
        *protocols,
        labels_in_words(runs.records),
        f"partition{'' if len(runs.partitions) == 1 else 's'} {partitions}",
        threads(runs.records),
    ]
    return f"{runs.experiment.title} ({'; '.join(fact for fact in facts if fact)}):"


def labels_in_words(records: Sequence[Record]) -> str:
    """How many labels a window may cost, where that is one number.

    >>> labels_in_words([{"settings": {"budget": 200}}])
    'at most 200 labels per window'
    """
    budgets = {record.get("settings", {}).get("budget") for record in records} - {None}
    return f"at most {budgets.pop():,} labels per window" if len(budgets) == 1 else ""


def protocol_in_words(protocol: Mapping[str, Any]) -> str:
    """How many items come when.

    >>> protocol_in_words({"sizes": [600, 300], "held_out": 200})
    '600 labelled items of each known class, then 300 of each class per window, 200 never seen'
    """
    if sizes := protocol.get("sizes"):
        text = f"{sizes[0]:,} labelled items of each known class, then {sizes[1]:,} of each class"
        text += " per window"
    else:
        items = f"{protocol['n_items']:,}" if protocol.get("n_items") else "all"
        text = (
            f"{items} items of each class: of a known one half labelled and half streaming, of a "
            "new one all streaming, evenly to the end"
        )
    return f"{text}, {protocol.get('held_out', 0):,} never seen"


def explain_streams(runs: Runs) -> str:
    """How to read the tables."""
    if runs.experiment.layout == "windows":
        return (
            "Cells: mean over partitions; – is not recorded. A new class is unknown in its window."
        )
    shown = runs.experiment.columns.values()
    sentences = [
        "Cells: mean over partitions ± half of its 95 % t-interval (number of partitions) [the "
        "paper's figure]; the best of the full cells of a column in bold; – is not recorded, n/a "
        "does not apply.",
        "Averages are plain means over windows, each judged before its labels came; a class counts "
        "as known from the window after the one it emerged in. Weighted recall is accuracy."
        if "f1" in shown
        else "",
        "New classes count as one, and by themselves, as in the paper, where that is said: groups "
        "of unknown items are then matched to them with the truth. Where a method has no groups, "
        "k-means makes them, told the number of new classes."
        if "class_accuracy" in shown
        else "",
        "Seconds are those of a machine that other runs shared."
        if "seconds_per_window" in shown
        else "",
        OF_FORGETTING if "forgetting" in shown else "",
        "By Chaudhry: what the last stage lost of the best accuracy before, mean over earlier "
        "arrivals."
        if "chaudhry_forgetting" in shown
        else "",
        _joint(runs) if "forgetting" in shown else "",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _joint(runs: Runs) -> str:
    """A* of each data set: it depends on the partition and on no learner."""
    texts = []
    for dataset in runs.datasets:
        found = {
            int(record["partition"]): record["joint_accuracy"]
            for record in runs.records
            if record["dataset"] == dataset and "joint_accuracy" in record
        }
        if found:
            mean = float(np.mean(list(found.values())))
            texts.append(f"{dataset_title(dataset)} {mean:.3f} ({len(found)})")
    return f"A*: {', '.join(texts)}." if texts else ""


# Methods against data sets


def figure_tables(runs: Runs) -> list[Block]:
    """A table for each figure that some record has; of one data set, figures side by side."""
    tables = [
        _table(runs, metric, title)
        for title, metric in runs.experiment.columns.items()
        if any(_values(runs, m, d, metric) for m in runs.methods for d in runs.datasets)
    ]
    if len(runs.datasets) > 1:
        return [*tables]
    starts = range(0, len(tables), SIDE_BY_SIDE)
    return [side_by_side(tables[start : start + SIDE_BY_SIDE]) for start in starts]


def side_by_side(tables: Sequence[Table]) -> Table:
    """Tables of one column each as one, a row for every name that some of them has.

    >>> one = Table(("method", "MNIST"), (("odin", "1"),), "Accuracy")
    >>> two = Table(("method", "MNIST"), (("odin", "2"), ("all", "3")), "F_out")
    >>> side_by_side([one, two])
    Table(header=('method', 'Accuracy', 'F_out'), rows=(('odin', '1', '2'), ('all', '', '3')), \
caption='MNIST')
    """
    cells = [{row[0]: row[1] for row in table.rows} for table in tables]
    names = dict.fromkeys(name for column in cells for name in column)
    return Table(
        ("method", *(table.caption for table in tables)),
        tuple((name, *(column.get(name, "") for column in cells)) for name in names),
        tables[0].header[1],
    )


def _values(runs: Runs, method: str, dataset: str, metric: str) -> list[float]:
    """The figure of every partition that has it."""
    if metric == "seconds_per_window":
        followed = [record["windows"] for record in runs.of(method, dataset) if "windows" in record]
        return [seconds_per_window(windows) for windows in followed]
    return list(runs.values(method, dataset, "metrics", metric).values())


def seconds_per_window(windows: Sequence[Mapping[str, Any]]) -> float:
    """To recognise a window and to learn its answers, on average.

    >>> seconds_per_window([{"seconds": {"recognise": 4, "learn": 1}}, {"seconds": {"learn": 1}}])
    3.0
    """
    return float(np.mean([sum(window["seconds"].values()) for window in windows]))


def _table(runs: Runs, metric: str, title: str) -> Table:
    best = {dataset: _best(runs, dataset, metric) for dataset in runs.datasets}
    rows = [
        (method, *(_cell(runs, method, d, metric, best=best[d]) for d in runs.datasets))
        for method in runs.methods
    ]
    if metric == "f_out":
        rows.append(("everything unknown", *(_line(runs, d) for d in runs.datasets)))
    return Table(("method", *map(dataset_title, runs.datasets)), tuple(rows), title)


def _best(runs: Runs, dataset: str, metric: str) -> str | None:
    """The best mean of a column, as it is shown."""
    found = fullest([_values(runs, method, dataset, metric) for method in runs.methods])
    means = [float(np.mean(values)) for values in found]
    if not means or metric in DIGITS:
        return None
    return f"{min(means) if metric in LOWER_IS_BETTER else max(means):.3f}"


def _cell(runs: Runs, method: str, dataset: str, metric: str, *, best: str | None) -> str:
    values = _values(runs, method, dataset, metric)
    if values:
        text = _interval(values, n_digits=DIGITS.get(metric, 3), best=best)
    else:
        text = _without_a_figure(runs.of(method, dataset))
    paper = paper_figure(runs.table, method, dataset, metric)
    return text if paper is None else f"{text} [{paper:.3f}]"


def _without_a_figure(records: Sequence[Record]) -> str:
    if not records:
        return "–"
    return "failed" if all(record.get("error") for record in records) else "n/a"


def _interval(values: Sequence[float], *, n_digits: int = 3, best: str | None = None) -> str:
    found = interval_over(values)
    mean = f"{found.mean:.{n_digits}f}"
    shown = f"**{mean}**" if mean == best else mean
    error = "" if found.half_width is None else f" ± {found.half_width:.{n_digits}f}"
    return f"{shown}{error} ({found.n})"


def _line(runs: Runs, dataset: str) -> str:
    """F_out of calling everything unknown: it depends on the stream and on no learner."""
    values: dict[int, float] = {}
    for method in runs.methods:
        values |= runs.values(method, dataset, "metrics", "f_out_all_unknown")
    return _interval(list(values.values())) if values else "–"


# Windows


def window_tables(runs: Runs) -> list[Block]:
    """A table for each data set: a row for each window of each method, in the order of time."""
    return [
        Table(("window", "method", *WINDOW_COLUMNS), rows, dataset_title(dataset))
        for dataset in runs.datasets
        if (rows := _window_rows(runs, dataset))
    ]


def _window_rows(runs: Runs, dataset: str) -> tuple[tuple[str, ...], ...]:
    followed = {
        method: [r["windows"] for r in runs.of(method, dataset) if r.get("windows")]
        for method in runs.methods
    }
    longest = max((len(w) for windows in followed.values() for w in windows), default=0)
    rows = []
    for place in range(longest):
        for method, windows in followed.items():
            if here := [told[place] for told in windows if len(told) > place]:
                cells = [_mean_of(here, path) for path in WINDOW_COLUMNS.values()]
                rows.append((str(place + 1), method, *cells))
    return tuple(rows)


def _mean_of(windows: Sequence[Mapping[str, Any]], path: Sequence[str]) -> str:
    """The mean of a figure over partitions; a number of things has no digits.

    >>> _mean_of([{"metrics": {"f1": 0.5}}, {"metrics": {"f1": 0.7}}], ("metrics", "f1"))
    '0.600'
    >>> _mean_of([{"k": 200}], ("k",)), _mean_of([{"k": None}], ("k",))
    ('200', '–')
    """
    values = []
    for window in windows:
        value: Any = window
        for step in path:
            value = (value or {}).get(step)
        if value is not None:
            values.append(value)
    if not values:
        return "–"
    mean = float(np.mean(values))
    if path[0] == "metrics":
        return f"{mean:.3f}"
    if path[0] in ("seconds", "n_new", "n_found"):
        return f"{mean:.1f}"
    return f"{mean:.0f}"
