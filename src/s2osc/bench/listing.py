"""What is recorded of each experiment, and what is missing."""

from pathlib import Path

from rich.table import Table

from s2osc.bench.experiments import EXPERIMENTS
from s2osc.bench.records import read_records


def make_listing(results: Path) -> Table:
    """A row per experiment and size: data sets, methods, records, failed runs, what has none."""
    table = Table("experiment", "size", "data", "methods", "records", "failed", "without a record")
    for name, experiment in EXPERIMENTS.items():
        records = read_records(results, experiment.records or name)
        sizes = sorted({str(record.get("size") or "") for record in records}) or [""]
        for size in sizes:
            mine = [record for record in records if str(record.get("size") or "") == size]
            right = [record for record in mine if not record.get("error")]
            there = {(record["dataset"], record["method"]) for record in right}
            methods = dict.fromkeys([*experiment.methods, *(method for _, method in there)])
            datasets = dict.fromkeys([*experiment.data, *(data for data, _ in there)])
            wanted = [(data, method) for data in datasets for method in methods]
            missing = [cell for cell in wanted if cell not in there]
            table.add_row(
                name,
                size or ("any of " + ", ".join(experiment.sizes) if experiment.sizes else "one"),
                ", ".join(datasets),
                str(len(methods)),
                str(len(right)),
                str(len(mine) - len(right)),
                in_words(missing, wanted),
            )
    return table


def in_words(missing: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> str:
    """Cells without a record, a data set at a time.

    >>> cells = [("mnist", "msp"), ("mnist", "odin"), ("svhn", "msp"), ("svhn", "odin")]
    >>> in_words(cells[1:], cells), in_words(cells, cells), in_words([], cells)
    ('mnist: odin; svhn: all', 'all', 'nothing')
    """
    if not missing or len(missing) == len(wanted):
        return "all" if missing else "nothing"
    parts = []
    for data in dict.fromkeys(data for data, _ in missing):
        methods = [method for each, method in missing if each == data]
        is_all = len(methods) == sum(each == data for each, _ in wanted)
        parts.append(f"{data}: {'all' if is_all else ', '.join(methods)}")
    return "; ".join(parts)
