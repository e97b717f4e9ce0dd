"""Runs on a terminal: what is recorded and what is missing, and runs while they go on."""

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import read_records
from s2osc.bench.tables.runs import Runs, by_size, find_gaps, gaps_in_words
from s2osc.bench.tasks.task import Trial
from s2osc.codec import JsonObject

LISTED = ("experiment", "size", "data", "methods", "records", "failed", "missing")


def make_listing(results: Path) -> Table:
    """A row per experiment and size: data sets, methods, records, failed runs, what is missing."""
    # Narrow enough for 80 columns; what is still too long is folded, never cut.
    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 0, 1, 0))
    for column in LISTED:
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


class Board:
    """Methods against data sets: how many partitions are done, and their mean F1 so far.

    On a terminal the table is drawn anew after each run; elsewhere each run is a line.
    """

    def __init__(self, title: str, runs: Sequence[Trial], console: Console | None = None) -> None:
        self.title = title
        self.console = console or Console(stderr=True)
        self.names = list(dict.fromkeys(run.name for run in runs))
        self.data = list(dict.fromkeys(run.data for run in runs))
        self.wanted = dict.fromkeys(((name, data) for name in self.names for data in self.data), 0)
        for run in runs:
            self.wanted[run.name, run.data] += 1
        self.records: dict[tuple[str, str], list[JsonObject]] = {cell: [] for cell in self.wanted}
        self.seconds: dict[tuple[str, str], list[float]] = {cell: [] for cell in self.wanted}
        self.now, self.n_done, self.started = "", 0, time.monotonic()
        self.live = Live(console=self.console, auto_refresh=False) if self.is_drawn else None

    @property
    def is_drawn(self) -> bool:
        return self.console.is_terminal

    def __enter__(self) -> "Board":
        if self.live:
            self.live.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        if self.live:
            self.live.__exit__(*error)

    def begin(self, run: Trial) -> None:
        self.now = f"{run.name} on {run.data}, partition {run.partition}"
        self.started = time.monotonic()
        self._draw()

    def done(self, run: Trial, record: JsonObject) -> None:
        """Count a run that was made now, or was recorded before."""
        self.records[run.name, run.data].append(record)
        self.n_done += 1
        took = time.monotonic() - self.started if self.now else record.get("seconds_total", 0.0)
        self.seconds[run.name, run.data].append(took)
        if self.now and not self.live:
            self.console.print(self.line(record), highlight=False, markup=False, soft_wrap=True)
        self.now = ""
        self._draw()

    @property
    def n_wanted(self) -> int:
        return sum(self.wanted.values())

    def line(self, record: JsonObject) -> str:
        """A run in one line."""
        error = record.get("error")
        if error:
            outcome = f"failed: {error['kind']}: {error['message']}"
        else:
            outcome = f"F1 {record['metrics']['f1']:.3f}, {record['seconds_total']:.0f} s"
        return f"{self.n_done}/{self.n_wanted} {self.now}: {outcome}; {self.time_left()}"

    def time_left(self) -> str:
        """What the runs left take if each takes as long as those of its method."""
        seconds = 0.0
        for (name, data), n_wanted in self.wanted.items():
            n_left = n_wanted - len(self.records[name, data])
            took = self.seconds_of(name, data)
            if n_left and not took:
                return "time left not known yet"
            seconds += n_left * mean(took) if n_left else 0.0
        minutes = seconds / 60
        return f"about {minutes:.0f} min left" if minutes >= 1 else "less than a minute left"

    def seconds_of(self, name: str, data: str) -> list[float]:
        """Of a method's runs on a data set; without any, of those on other data."""
        elsewhere = [s for (each, _), took in self.seconds.items() if each == name for s in took]
        return self.seconds[name, data] or elsewhere

    def _draw(self) -> None:
        if self.live:
            self.live.update(self.render(), refresh=True)

    def render(self) -> Group:
        table = Table(title=f"{self.title}: mean weighted F1 (partitions done)")
        table.add_column("method")
        for data in self.data:
            table.add_column(data, justify="right")
        for name in self.names:
            table.add_row(name, *(self.cell(name, data) for data in self.data))
        state = f"{self.n_done} of {self.n_wanted} runs, {self.time_left()}"
        # Above the table: what a terminal has no room for is cut off below.
        return Group(Text(f"{state}. Now: {self.now}" if self.now else state), table)

    def cell(self, name: str, data: str) -> str:
        """``0.912 (2/3)``, with the number of failed runs where there are some."""
        records = self.records[name, data]
        right = [record["metrics"]["f1"] for record in records if not record.get("error")]
        f1 = f"{mean(right):.3f}" if right else "–"
        n_failed = len(records) - len(right)
        failed = f", {n_failed} failed" if n_failed else ""
        return f"{f1} ({len(right)}/{self.wanted[name, data]}{failed})"
