"""`s2osc bench`: experiments, their records, and the tables made of them."""

import argparse
import sys
from pathlib import Path
from typing import Any

from s2osc.cli.options import add_engine, add_folder, ray_of
from s2osc.errors import SettingsError


def add_bench(commands: Any) -> None:
    parser = commands.add_parser("bench", help="run experiments and make tables from their records")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    running = actions.add_parser("run", help="run what is not yet recorded; can be interrupted")
    running.set_defaults(command=run_bench)
    running.add_argument("experiment", help="such as table1; `s2osc bench list` names all")
    running.add_argument("--data", help="names, comma-separated (default: the experiment's own)")
    running.add_argument(
        "--methods",
        help="names, comma-separated; all stands for the experiment's own (default: all)",
    )
    running.add_argument(
        "--partitions", type=int, help="seeds 0 .. N-1 (default: 5; of a grid, all its pools)"
    )
    running.add_argument(
        "--only", help='pools of a grid with these levels: "source=noise 12,unknown_share=0"'
    )
    running.add_argument(
        "--size", help="paper (a GPU), cpu (default) or smoke, where an experiment has sizes"
    )
    running.add_argument(
        "--part", default="1/1", help="2/4: the second of four parts, for as many processes"
    )
    running.add_argument("--device", default="auto", help="auto (default), cpu or cuda")
    listing = actions.add_parser("list", help="show what is recorded and what is missing")
    listing.set_defaults(command=list_bench)
    reporting = actions.add_parser("report", help="make tables and figures of recorded experiments")
    reporting.set_defaults(command=report_bench)
    reporting.add_argument("experiment", nargs="*", help="default: all that have records")
    reporting.add_argument(
        "--into",
        type=Path,
        help="a Markdown file with marks for tables: a brief one goes into each",
    )
    reporting.add_argument(
        "--html", type=Path, help="a page with every table and a field to search them"
    )
    reporting.add_argument(
        "--csv", action="store_true", help="every cell as EXPERIMENT.csv beside the records"
    )
    reporting.add_argument(
        "--out", type=Path, help="a folder for Markdown, CSV, LaTeX and figures of each experiment"
    )
    for action in (running, listing, reporting):
        action.add_argument(
            "--results", type=Path, default=Path("results"), help="where records lie"
        )
    add_folder(running)
    add_engine(running)


def run_bench(options: argparse.Namespace) -> None:
    from s2osc.bench.runner import parse_part, run_experiment
    from s2osc.nets.training import resolve_device

    run_experiment(
        options.experiment,
        _data_of(options),
        _partitions_of(options),
        options.results,
        methods=options.methods,
        size=options.size,
        only=options.only,
        part=parse_part(options.part),
        device=resolve_device(options.device),
        folder=options.folder,
        engine=ray_of(options),
    )


def _data_of(options: argparse.Namespace) -> list[str] | None:
    if options.data is None:
        return None
    names = [name.strip() for name in options.data.split(",") if name.strip()]
    if not names:
        raise SettingsError(
            f"--data is {options.data!r}; give names with commas between, or leave it away"
        )
    return names


def _partitions_of(options: argparse.Namespace) -> range | None:
    if options.partitions is None:
        return None
    if options.partitions < 1:
        raise SettingsError(f"--partitions is {options.partitions}; give 1 or more")
    return range(options.partitions)


def list_bench(options: argparse.Namespace) -> None:
    from rich.console import Console

    from s2osc.bench.terminal import make_listing

    Console().print(make_listing(options.results))


def report_bench(options: argparse.Namespace) -> None:
    from s2osc.bench.experiments.catalogue import experiments_named
    from s2osc.bench.tables.documents import (
        fill_document,
        make_tables,
        write_cells,
        write_experiment,
        write_page,
    )

    names = [each for name in options.experiment for each in experiments_named(name)]
    tables = make_tables(options.results, names)
    for name in dict.fromkeys(names):
        if name not in tables:
            print(
                f"s2osc: {options.results} holds no records of {name}; "
                f"make them with `s2osc bench run {name}`",
                file=sys.stderr,
            )
    written: list[Path] = []
    if options.into:
        fill_document(options.into, options.results, names)
        written.append(options.into)
    if options.html:
        write_page(options.results, list(tables), options.html)
        written.append(options.html)
    if options.csv:
        written += write_cells(options.results, list(tables))
    if options.out:
        for name in tables:
            written += write_experiment(options.results, name, options.out / name)
    for path in written:
        print(path)
    if not written:
        print("\n\n".join(tables.values()))
