"""Records -> tables in Markdown; reads nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.bench.experiments import EXPERIMENTS, Experiment
from s2osc.bench.runner import read_record
from s2osc.errors import DataError, OutputError

MOST_ROWS = 30
"""A table of more runs shows means alone."""
PAPER_F1 = {"mnist": 0.985, "fashion_mnist": 0.972, "cifar10": 0.854, "svhn": 0.901}


def make_tables(results: Path, names: Sequence[str] = ()) -> dict[str, str]:
    """One table per experiment that has records."""
    for name in names:
        if name not in EXPERIMENTS:
            raise DataError(f"there is no experiment {name!r}; give {' or '.join(EXPERIMENTS)}")
    tables = {}
    for name in names or EXPERIMENTS:
        records = [read_record(path) for path in sorted((results / name).glob("*.json"))]
        if records:
            tables[name] = make_table(name, records)
    if not tables:
        raise DataError(f"{results} holds no records; make them with `s2osc bench run`")
    return tables


def make_table(name: str, records: Sequence[dict[str, Any]]) -> str:
    """A row per run where there is one method; means and deviations over partitions."""
    experiment = EXPERIMENTS[name]
    numbers = sorted({record["machine"]["threads"] for record in records})
    threads = ", ".join(f"{n} thread{'' if n == 1 else 's'}" for n in numbers)
    methods = list(dict.fromkeys(experiment.methods))
    by_run = len(methods) == 1 and len(records) <= MOST_ROWS
    first = "known / unknown" if by_run else "method"
    header = ["data", first, *experiment.columns, "paper's F1", "seconds"]
    lines = [f"{experiment.title} ({threads}):", "", _row(header), _row(["---"] * len(header))]
    for dataset in sorted({record["dataset"] for record in records}, reverse=True):
        for method in methods:
            mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
            mine.sort(key=lambda record: record["seed"])
            if by_run:
                lines += [_row(_run_cells(record, experiment)) for record in mine]
            if len(mine) > 1 or (mine and not by_run):
                what = method if len(methods) > 1 else "mean"
                lines.append(_row(_mean_cells(f"{what} of {len(mine)}", mine, experiment)))
    return "\n".join(lines)


def _run_cells(record: dict[str, Any], experiment: Experiment) -> list[str]:
    unknown = ", ".join(record["unknown_classes"]) or "nothing"
    classes = f"{', '.join(record['known_classes'])} / {unknown}"
    figures = [_cell([record["metrics"].get(key)]) for key in experiment.columns.values()]
    paper = _paper_f1(record["dataset"])
    return [record["dataset"], classes, *figures, paper, f"{record['seconds_total']:.0f}"]


def _mean_cells(what: str, records: Sequence[dict[str, Any]], experiment: Experiment) -> list[str]:
    """Mean ± standard deviation over the partitions that have the figure."""
    cells = []
    for key in experiment.columns.values():
        values = [r["metrics"][key] for r in records if key in r["metrics"]]
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        cells.append(f"**{_cell(values)}**{deviation}" if values else "")
    seconds = np.mean([record["seconds_total"] for record in records])
    dataset = records[0]["dataset"]
    return [dataset, what, *cells, _paper_f1(dataset), f"{seconds:.0f}"]


def _cell(values: Sequence[float | None]) -> str:
    """A mean in three digits; a number of things in none."""
    found = [value for value in values if value is not None]
    if not found:
        return ""
    mean = float(np.mean(found))
    is_number = all(isinstance(value, int) for value in found) and mean == round(mean)
    return f"{mean:.0f}" if is_number else f"{mean:.3f}"


def _paper_f1(dataset: str) -> str:
    return f"{PAPER_F1[dataset]:.3f}" if dataset in PAPER_F1 else ""


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def insert_tables(document: Path, tables: dict[str, str]) -> None:
    """Replace what stands between ``<!-- table NAME -->`` and ``<!-- end -->`` by that table."""
    if not document.is_file():
        raise OutputError(f"there is no file {document}; give a Markdown file with marks")
    text = document.read_text(encoding="utf-8")
    for name, table in tables.items():
        start, end = f"<!-- table {name} -->", "<!-- end -->"
        before, found, rest = text.partition(start)
        if not found or end not in rest.partition("<!-- table")[0]:
            raise OutputError(f"{document} has no place for the table: add {start} and {end}")
        text = before + start + "\n" + table + "\n" + end + rest.partition(end)[2]
    document.write_text(text, encoding="utf-8")
