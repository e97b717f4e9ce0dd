"""Experiments -> documents, from records alone.

for people     the brief tables between the marks of a Markdown file
for search     every table on one HTML page
for programs   every cell in a CSV file beside the records
for papers     a folder per experiment: Markdown, LaTeX, every figure in CSV, pictures
"""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.figures.drawing import save
from s2osc.bench.figures.figures import figures_for
from s2osc.bench.records import (
    Record,
    check_complete,
    partition_of,
    read_records,
    record_path,
)
from s2osc.bench.tables.layouts import blocks_by_size, make_blocks
from s2osc.bench.tables.paper import paper_figure
from s2osc.bench.tables.rendering import Table, to_html, to_latex, to_markdown
from s2osc.bench.tables.runs import by_size
from s2osc.errors import DataError, OutputError
from s2osc.files import write_whole, writing
from s2osc.text import csv_cell

CELL_HEADER = ("size", "table", "row", "column", "cell")
FIGURE_HEADER = (
    *("experiment", "size", "dataset", "method", "partition"),
    *("mode", "part", "metric", "value", "paper"),
    *("seed", "commit", "device", "threads"),
)
MARK = re.compile(r"<!-- table (\S+) -->")
ELSEWHERE = "give another place"


def make_tables(results: Path, names: Sequence[str] = (), *, brief: bool = False) -> dict[str, str]:
    """The tables of each experiment that has records, in Markdown."""
    found = _records_of(results, names or list(EXPERIMENTS))
    return {name: make_table(name, records, brief=brief) for name, records in found.items()}


def make_table(name: str, records: Sequence[Record], *, brief: bool = False) -> str:
    return to_markdown(make_blocks(EXPERIMENTS[name], records, brief=brief))


def _records_of(results: Path, names: Sequence[str]) -> dict[str, list[Record]]:
    """The records of each named experiment that has some."""
    for name in names:
        if name not in EXPERIMENTS:
            raise DataError(f"there is no experiment {name!r}; give {' or '.join(EXPERIMENTS)}")
    found = {}
    for name in names:
        folder = EXPERIMENTS[name].records or name
        found[name] = read_records(results, folder)
        for record in found[name]:
            cell = record["dataset"], record["method"], record.get("size"), partition_of(record)
            check_complete(record_path(results, folder, *cell), record)
    if not any(found.values()):
        what = f"no records of {names[0]}" if len(names) == 1 else "no records"
        raise DataError(f"{results} holds {what}; make them with `s2osc bench run`")
    return {name: records for name, records in found.items() if records}


# For people


def fill_document(document: Path, results: Path, names: Sequence[str] = ()) -> None:
    """Put the brief tables of the named experiments, or of all it has marks for, into a file."""
    if not document.is_file():
        raise OutputError(f"there is no file {document}; give a Markdown file with marks")
    text = document.read_text(encoding="utf-8")
    wanted = names or MARK.findall(text)
    text = with_tables(text, make_tables(results, wanted, brief=True), where=str(document))
    with writing(document, ELSEWHERE):
        write_whole(document, text.encode())


def with_tables(text: str, tables: Mapping[str, str], *, where: str) -> str:
    """Replace what stands between ``<!-- table NAME -->`` and ``<!-- end -->`` by that table."""
    for name, table in tables.items():
        start, end = f"<!-- table {name} -->", "<!-- end -->"
        before, found, rest = text.partition(start)
        if not found or end not in rest.partition("<!-- table")[0]:
            raise OutputError(f"{where} has no place for the table: add {start} and {end}")
        text = before + start + "\n" + table + "\n" + end + rest.partition(end)[2]
    return text


# For search and for programs


def write_page(results: Path, names: Sequence[str], path: Path) -> None:
    """Every table of the named experiments, or of all, on one HTML page."""
    sections = {
        name: make_blocks(EXPERIMENTS[name], records)
        for name, records in _records_of(results, names or list(EXPERIMENTS)).items()
    }
    with writing(path, ELSEWHERE):
        write_whole(path, to_html("Results of s2osc", sections).encode())


def write_cells(results: Path, names: Sequence[str] = ()) -> list[Path]:
    """Every cell of every table, as ``EXPERIMENT.csv`` beside the records it is made of."""
    paths = []
    for name, records in _records_of(results, names or list(EXPERIMENTS)).items():
        path = cells_path(results, name)
        with writing(path, ELSEWHERE):
            write_whole(path, make_cells(name, records).encode())
        paths.append(path)
    return paths


def cells_path(results: Path, name: str) -> Path:
    return results / (EXPERIMENTS[name].records or name) / f"{name}.csv"


def make_cells(name: str, records: Sequence[Record]) -> str:
    rows: list[tuple[object, ...]] = []
    for size, blocks in blocks_by_size(EXPERIMENTS[name], records).items():
        for table in (block for block in blocks if isinstance(block, Table)):
            for row in table.rows:
                label = " / ".join(row[: table.n_labels])
                for column, cell in list(zip(table.header, row, strict=True))[table.n_labels :]:
                    rows.append((size, table.caption, label, column, cell.replace("**", "")))
    return _as_csv(CELL_HEADER, rows)


# For papers


def write_experiment(results: Path, name: str, folder: Path) -> list[Path]:
    """Tables as ``NAME.md`` and ``.tex``, every figure as ``NAME.csv``, and pictures."""
    records = _records_of(results, [name])[name]
    blocks = make_blocks(EXPERIMENTS[name], records)
    texts = {
        f"{name}.md": to_markdown(blocks) + "\n",
        f"{name}.csv": make_figures_csv(name, records),
        f"{name}.tex": to_latex(blocks) + "\n",
    }
    paths = [folder / file for file in texts]
    with writing(folder, ELSEWHERE):
        folder.mkdir(parents=True, exist_ok=True)
        if taken := [path for path in paths if path.is_dir()]:
            raise OutputError(f"{taken[0]} is a folder; move it away or {ELSEWHERE}")
        for path in paths:
            write_whole(path, texts[path.name].encode())
    right = [record for record in records if not record.get("error")]
    for what, figure in figures_for(name, right).items():
        paths += save(figure, folder / what)
    return paths


def make_figures_csv(name: str, records: Sequence[Record]) -> str:
    rows = [
        (name, size, *cells, *_facts(record))
        for size, mine in by_size(records).items()
        for record in mine
        for cells in _figures(name, record)
    ]
    return _as_csv(FIGURE_HEADER, rows)


def _figures(name: str, record: Record) -> Iterator[tuple[object, ...]]:
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
    for metric, value in _outcome(record).items():
        yield (*run, None, "run", metric, value, None)


def _outcome(record: Record) -> dict[str, object]:
    """Seconds of a run and of each of its steps, or what it died of."""
    if error := record.get("error"):
        return {"error": f"{error['kind']}: {error['message']}"}
    steps = {f"seconds_{step}": seconds for step, seconds in record.get("seconds", {}).items()}
    return {"seconds_total": record["seconds_total"], **steps}


def _facts(record: Record) -> tuple[object, ...]:
    machine = record.get("machine") or {}
    return record["seed"], record.get("commit"), machine.get("device"), machine.get("threads")


def _as_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([csv_cell(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()
