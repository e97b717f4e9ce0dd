"""What is recorded of each experiment, and what is missing."""

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import read_records
from s2osc.bench.tables.runs import Runs, by_size, find_gaps, gaps_in_words

COLUMNS = ("experiment", "size", "data", "methods", "records", "failed", "missing")


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
    return [
        runs.size or ("any" if runs.experiment.sizes else "one"),
        ", ".join(runs.datasets),
        str(len(runs.methods)),
        str(len(runs.right)),
        str(len(runs.records) - len(runs.right)),
        gaps_in_words(find_gaps(runs, runs.right), runs.partitions),
    ]
