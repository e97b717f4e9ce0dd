"""Records -> tables in Markdown; reads nothing else."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.bench.runner import EXPERIMENTS, read_record
from s2osc.errors import DataError, OutputError

COLUMNS = {
    "f on known": "teacher_known_accuracy",
    "purity of D_out": "purity_of_d_out",
    "accuracy": "accuracy",
    "weighted F1": "f1",
    "F_out": "f_out",
    "all unknown": "f_out_all_unknown",
}
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
    """A row per run; then, where there are several partitions, mean and deviation."""
    threads = ", ".join(sorted({f"{record['machine']['threads']} threads" for record in records}))
    methods = list(dict.fromkeys(EXPERIMENTS[name].methods))
    first = "known / unknown" if len(methods) == 1 else "method"
    header = ["data", first, *COLUMNS, "paper's F1", "seconds"]
    lines = [
        f"{EXPERIMENTS[name].title} ({threads}):",
        "",
        _row(header),
        _row(["---"] * len(header)),
    ]
    for dataset in sorted({record["dataset"] for record in records}, reverse=True):
        for method in methods:
            mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
            mine.sort(key=lambda record: record["seed"])
            if len(methods) == 1:
                lines += [_row(_run_cells(record)) for record in mine]
            if len(mine) > 1 or len(methods) > 1:
                what = f"mean of {len(mine)}" if len(methods) == 1 else method
                lines += [_row(_mean_cells(what, mine))] if mine else []
    return "\n".join(lines)


def _run_cells(record: dict[str, Any]) -> list[str]:
    classes = ", ".join(record["known_classes"]) + " / " + ", ".join(record["unknown_classes"])
    figures = [f"{record['metrics'][key]:.3f}" for key in COLUMNS.values()]
    paper = _paper_f1(record["dataset"])
    return [record["dataset"], classes, *figures, paper, f"{record['seconds_total']:.0f}"]


def _mean_cells(what: str, records: Sequence[dict[str, Any]]) -> list[str]:
    """Mean ± standard deviation over partitions."""
    cells = []
    for key in COLUMNS.values():
        values = [record["metrics"][key] for record in records]
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        cells.append(f"**{np.mean(values):.3f}**{deviation}")
    seconds = np.mean([record["seconds_total"] for record in records])
    dataset = records[0]["dataset"]
    return [dataset, what, *cells, _paper_f1(dataset), f"{seconds:.0f}"]


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
