"""Records -> tables in Markdown, CSV and LaTeX; reads nothing else."""

import csv
import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.records import read_records
from s2osc.bench.tables.matrix import make_matrix
from s2osc.bench.tables.paper import PAPER, paper_figure
from s2osc.bench.tables.rendering import Block, Table, to_latex, to_markdown
from s2osc.bench.tables.runs import Record, by_size, partition_of, threads, what_failed
from s2osc.bench.tables.streams import make_stream_tables
from s2osc.errors import DataError, OutputError

MOST_ROWS = 30
"""A table of more runs shows means alone."""
CSV_HEADER = (
    *("experiment", "size", "dataset", "method", "partition"),
    *("mode", "part", "metric", "value", "paper"),
    *("seed", "commit", "device", "threads"),
)


def make_tables(results: Path, names: Sequence[str] = ()) -> dict[str, str]:
    """The tables of each experiment that has records, in Markdown."""
    tables = {}
    for name in names or EXPERIMENTS:
        if records := _read_records(results, name):
            tables[name] = make_table(name, records)
    if not tables:
        raise DataError(f"{results} holds no records; make them with `s2osc bench run`")
    return tables


def make_table(name: str, records: Sequence[Record]) -> str:
    return to_markdown(_make_blocks(EXPERIMENTS[name], records))


def write_report(results: Path, name: str, folder: Path) -> list[Path]:
    """The tables of an experiment as ``NAME.md`` and ``.tex``, and its figures as ``NAME.csv``."""
    records = _read_records(results, name)
    if not records:
        raise DataError(f"{results} holds no records of {name}; make them with `s2osc bench run`")
    blocks = _make_blocks(EXPERIMENTS[name], records)
    texts = {
        f"{name}.md": to_markdown(blocks) + "\n",
        f"{name}.csv": _make_csv(name, records),
        f"{name}.tex": to_latex(blocks) + "\n",
    }
    return _write_together(folder, texts)


def _read_records(results: Path, name: str) -> list[dict[str, Any]]:
    if name not in EXPERIMENTS:
        raise DataError(f"there is no experiment {name!r}; give {' or '.join(EXPERIMENTS)}")
    return read_records(results, EXPERIMENTS[name].records or name)


def _make_blocks(experiment: Experiment, records: Sequence[Record]) -> list[Block]:
    """In the layout of the experiment, and never two sizes in one table."""
    if experiment.layout == "matrix":
        return make_matrix(experiment, records)
    if experiment.layout in ("stream", "windows"):
        return make_stream_tables(experiment, records)
    blocks: list[Block] = []
    for size, mine in by_size(records).items():
        table = _table_of_runs(experiment, [r for r in mine if not r.get("error")])
        blocks += [_title_of_runs(experiment, size, mine, table), table]
        blocks += [failed] if (failed := what_failed(mine)) else []
    return blocks


def _title_of_runs(
    experiment: Experiment, size: str, records: Sequence[Record], table: Table
) -> str:
    has_deviations = any("±" in cell for row in table.rows for cell in row)
    facts = ", ".join(filter(None, [f"size {size}" if size else "", threads(records)]))
    deviations = "± is the standard deviation over partitions" if has_deviations else ""
    return f"{experiment.title} ({'; '.join(filter(None, [facts, deviations]))}):"


def _table_of_runs(experiment: Experiment, records: Sequence[Record]) -> Table:
    """A row per run where there is one method; means and deviations over partitions."""
    methods = list(dict.fromkeys(experiment.methods))
    by_run = len(methods) == 1 and len(records) <= MOST_ROWS
    first = "known / unknown" if by_run else "method"
    rows = []
    for dataset in sorted({record["dataset"] for record in records}, reverse=True):
        for method in methods:
            mine = [r for r in records if (r["dataset"], r["method"]) == (dataset, method)]
            mine.sort(key=partition_of)
            if by_run:
                rows += [_run_cells(record, experiment) for record in mine]
            if len(mine) > 1 or (mine and not by_run):
                what = method if len(methods) > 1 else "mean"
                rows.append(_mean_cells(f"{what} of {len(mine)}", mine, experiment))
    paper = ("paper's F1",) if _shows_f1(experiment) else ()
    header = ("data", first, *experiment.columns, *paper, "seconds")
    return Table(header, tuple(map(tuple, rows)))


def _run_cells(record: Record, experiment: Experiment) -> list[str]:
    unknown = ", ".join(record["unknown_classes"]) or "nothing"
    classes = f"{', '.join(record['known_classes'])} / {unknown}"
    figures = [_cell([record["metrics"].get(key)]) for key in experiment.columns.values()]
    paper = _paper_f1(record["dataset"], experiment)
    return [record["dataset"], classes, *figures, *paper, f"{record['seconds_total']:.0f}"]


def _mean_cells(what: str, records: Sequence[Record], experiment: Experiment) -> list[str]:
    """Mean ± standard deviation over the partitions that have the figure."""
    cells = []
    for key in experiment.columns.values():
        values = [r["metrics"][key] for r in records if key in r["metrics"]]
        deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
        cells.append(f"**{_cell(values)}**{deviation}" if values else "")
    seconds = np.mean([record["seconds_total"] for record in records])
    dataset = records[0]["dataset"]
    return [dataset, what, *cells, *_paper_f1(dataset, experiment), f"{seconds:.0f}"]


def _cell(values: Sequence[float | None]) -> str:
    """A mean in three digits; a number of things in none."""
    found = [value for value in values if value is not None]
    if not found:
        return ""
    mean = float(np.mean(found))
    is_number = all(isinstance(value, int) for value in found) and mean == round(mean)
    return f"{mean:.0f}" if is_number else f"{mean:.3f}"


def _shows_f1(experiment: Experiment) -> bool:
    return "f1" in experiment.columns.values()


def _paper_f1(dataset: str, experiment: Experiment) -> list[str]:
    """Where ours is shown, and of the whole data set: no row here says what a sample is."""
    if not _shows_f1(experiment):
        return []
    figures = PAPER["one"].get(("s2osc", dataset))
    return [f"{figures['f1']:.3f}" if figures else ""]


def _make_csv(name: str, records: Sequence[Record]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for size, mine in by_size(records).items():
        for record in mine:
            facts = _csv_facts(record)
            writer.writerows((name, size, *cells, *facts) for cells in _csv_cells(name, record))
    return text.getvalue()


def _csv_cells(name: str, record: Record) -> Iterator[tuple[object, ...]]:
    """A row per figure of one record, from its data set on; the error of a run that failed."""
    table = EXPERIMENTS[name].table
    dataset, method = record["dataset"], record["method"]
    run = (dataset, method, partition_of(record))
    for field, mode, part in (
        ("metrics", "fair", "pool"),
        ("paper_mode", "paper", "pool"),
        ("held_out", "fair", "held_out"),
    ):
        for metric, value in (record.get(field) or {}).items():
            paper = paper_figure(table, method, dataset, metric) if part == "pool" else None
            yield (*run, mode, part, metric, value, paper)
    for window in record.get("windows") or ():
        for metric, value in window["metrics"].items():
            yield (*run, "fair", f"window {window['window']}", metric, value, None)
    for metric, value in _csv_outcome(record).items():
        yield (*run, None, "run", metric, value, None)


def _csv_outcome(record: Record) -> dict[str, object]:
    """Seconds of a run and of each of its steps, or what it died of."""
    if error := record.get("error"):
        return {"error": f"{error['kind']}: {error['message']}"}
    steps = {f"seconds_{step}": seconds for step, seconds in record.get("seconds", {}).items()}
    return {"seconds_total": record["seconds_total"], **steps}


def _csv_facts(record: Record) -> tuple[object, ...]:
    machine = record.get("machine") or {}
    return record["seed"], record.get("commit"), machine.get("device"), machine.get("threads")


def _write_together(folder: Path, texts: dict[str, str]) -> list[Path]:
    """Every file whole, or none of them: all are written elsewhere first."""
    paths = [folder / name for name in texts]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if taken := [path for path in paths if path.is_dir()]:
            raise OutputError(f"{taken[0]} is a folder; move it away or give another place")
        with TemporaryDirectory(dir=folder) as aside:
            for name, text in texts.items():
                Path(aside, name).write_text(text, encoding="utf-8")
            for path in paths:
                os.replace(Path(aside, path.name), path)
    except OSError as error:
        raise OutputError(f"the report cannot be written: {error}; give another place") from error
    return paths


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
