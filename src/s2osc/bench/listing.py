"""What is recorded of each experiment, and what is missing."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import read_records
from s2osc.bench.tables.runs import Record, Runs, by_size, partition_of

COLUMNS = ("experiment", "size", "data", "methods", "records", "failed", "missing")
Gaps = Mapping[tuple[str, str], Sequence[int]]
"""By data set and method: the partitions without a record."""


def make_listing(results: Path) -> Table:
    """A row per experiment and size: data sets, methods, records, failed runs, what is missing."""
    # Narrow enough for 80 columns; what is still too long is folded, never cut.
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 0, 1, 0))
    for column in COLUMNS:
        table.add_column(column, overflow="fold", no_wrap=column == "experiment")
    for name, experiment in EXPERIMENTS.items():
        records = read_records(results, experiment.records or name)
        for size, mine in (by_size(records) or {"": []}).items():
            table.add_row(name, *_cells(Runs(experiment, size, mine)))
    return table


def _cells(runs: Runs) -> list[str]:
    right = [record for record in runs.records if not record.get("error")]
    return [
        runs.size or ("any" if runs.experiment.sizes else "one"),
        ", ".join(runs.datasets),
        str(len(runs.methods)),
        str(len(right)),
        str(len(runs.records) - len(right)),
        in_words(find_gaps(runs, right), runs.partitions),
    ]


def find_gaps(runs: Runs, right: Sequence[Record]) -> Gaps:
    """Of every cell, the partitions that some run has a record of and it has none that is right."""
    there = {(record["dataset"], record["method"], partition_of(record)) for record in right}
    return {
        (data, method): [p for p in runs.partitions if (data, method, p) not in there]
        for data in runs.datasets
        for method in runs.methods
    }


def in_words(gaps: Gaps, partitions: Sequence[int]) -> str:
    """What is missing, a data set at a time; where a method has some partitions, those it lacks.

    >>> gaps = {("mnist", "msp"): [1], ("mnist", "odin"): [], ("svhn", "msp"): [0, 1]}
    >>> in_words(gaps, [0, 1]), in_words({("mnist", "msp"): []}, [0, 1])
    ('mnist: msp (partition 1); svhn: all', 'nothing')
    """
    if all(list(missing) == list(partitions) for missing in gaps.values()):
        return "all"
    parts = []
    for data in dict.fromkeys(data for data, _ in gaps):
        mine = {method: missing for (each, method), missing in gaps.items() if each == data}
        if all(list(missing) == list(partitions) for missing in mine.values()):
            parts.append(f"{data}: all")
        elif texts := [_lacks(m, missing, partitions) for m, missing in mine.items() if missing]:
            parts.append(f"{data}: {', '.join(texts)}")
    return "; ".join(parts) or "nothing"


def _lacks(method: str, missing: Sequence[int], partitions: Sequence[int]) -> str:
    if list(missing) == list(partitions):
        return method
    s = "" if len(missing) == 1 else "s"
    return f"{method} (partition{s} {' '.join(map(str, missing))})"
