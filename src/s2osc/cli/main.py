"""The command line: turns words into objects and errors into one line; decides nothing.

torch and everything that imports it load inside the commands, so that ``--help`` is quick.
"""

import argparse
import io
import os
import sys
import time
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2osc.cli.stream import Shared, add_stream
from s2osc.errors import S2OSCError, S2OSCWarning, SettingsError
from s2osc.version import __version__

if TYPE_CHECKING:
    from s2osc.app.classify import Run

EXIT_ERROR, EXIT_INTERRUPTED = 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 2 for anything the user can mend, or 130 after Ctrl-C."""
    options = build_parser().parse_args(arguments)
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A class may be called what the terminal cannot show; that must not end a run.
        sys.stdout.reconfigure(errors="replace")
    try:
        with warnings.catch_warnings():
            warnings.showwarning = partial(_show_warning, warnings.showwarning)
            options.command(options)
        sys.stdout.flush()  # a pipe that was closed shows here, not when Python ends
    except S2OSCError as error:
        # A library's own message, or a file's name, may have several lines.
        print("s2osc:", *str(error).splitlines(), file=sys.stderr)
        return EXIT_ERROR
    except KeyboardInterrupt:
        print("s2osc: interrupted; no half-written results are left", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _show_warning(others: Any, message: Any, category: type[Warning], *where: Any) -> None:
    """Our own as one line, without the place in the code; those of libraries as they come."""
    if issubclass(category, S2OSCWarning):
        print("s2osc:", *str(message).splitlines(), file=sys.stderr)
    else:
        others(message, category, *where)


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="s2osc",
        description="Open set classification: for every item of a pool a known class, or unknown "
        "and which new group.",
    )
    parser.add_argument("--version", action="version", version=f"s2osc {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_classify(commands)
    _add_predict(commands)
    _add_decide(commands)
    add_stream(
        commands,
        Shared(
            *(_add_run, _add_decision, _add_reading, _add_folder),
            *(_run_of, _decision_of, _show),
        ),
    )
    _add_demo(commands)
    _add_settings(commands)
    _add_data(commands)
    _add_bench(commands)
    return parser


def _add_classify(commands: Any) -> None:
    parser = commands.add_parser(
        "classify",
        help="labelled items and a pool in, a folder of results out",
        description="Learn the known classes from labelled items, find what is unknown in a pool, "
        "and write predictions, a summary, a page to look at and the model.",
    )
    parser.set_defaults(command=classify)
    parser.add_argument(
        "--known",
        type=Path,
        required=True,
        help="labelled items: a folder per class, a manifest (CSV or Parquet with path,label), "
        ".npz (x, y, optional classes), or Parquet of vectors with a label column",
    )
    parser.add_argument(
        "--pool",
        type=Path,
        required=True,
        help="items to classify: a folder of images, a manifest, .npy, .npz, or Parquet of vectors",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument(
        "--side", type=int, help="bring images to squares of this many pixels (default: chosen)"
    )
    parser.add_argument(
        "--backbone",
        default="auto",
        metavar="auto|scratch|NAME",
        help="the pretrained network that images go through first: efficientnet-lite0 or the name "
        "of one in timm or on the Hugging Face hub; scratch for none. auto (the default) takes "
        "efficientnet-lite0 for images of more than 40 pixels a side. Features are kept in "
        "$S2OSC_CACHE or ~/.cache/s2osc/features",
    )
    _add_reading(parser)
    _add_run(parser)


def _add_predict(commands: Any) -> None:
    parser = commands.add_parser("predict", help="answer for new items with a saved model")
    parser.set_defaults(command=predict)
    parser.add_argument(
        "--model", type=Path, required=True, help="the folder `model` that classify wrote"
    )
    parser.add_argument(
        "--items", type=Path, required=True, help="new items, in any form --pool takes"
    )
    parser.add_argument("--out", type=Path, required=True, help="a .csv or .parquet file")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    _add_reading(parser)


def _add_decide(commands: Any) -> None:
    parser = commands.add_parser(
        "decide",
        help="decide the pool of earlier results anew, for another operating point",
        description="Rewrite predictions, summary and page of a result folder for another "
        "false-alarm rate, in about a second: nothing is trained. What is not given stays as it "
        "was decided last.",
    )
    parser.set_defaults(command=decide)
    parser.add_argument("--out", type=Path, required=True, help="a folder that classify wrote")
    _add_decision(parser)
    parser.add_argument(
        "--no-unsure", dest="unsure", action="store_false", help="leave no item open"
    )


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo", help="the main job on 5,000 handwritten digits, of which 6 and 7 are unknown"
    )
    parser.set_defaults(command=demo)
    parser.add_argument("--out", type=Path, default=Path("demo-results"), help="folder for results")
    parser.add_argument("--force", action="store_true", help="replace results that are there")
    _add_run(parser)


def _add_settings(commands: Any) -> None:
    parser = commands.add_parser("settings", help="list every hyper-parameter and its value")
    parser.set_defaults(command=list_settings)
    _add_run(parser)


def _add_data(commands: Any) -> None:
    parser = commands.add_parser("data", help="list and fetch the data sets of the experiments")
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="which data sets there are, and which are here")
    listing.set_defaults(command=list_data)
    fetching = actions.add_parser("fetch", help="download the official files, or take what is here")
    fetching.set_defaults(command=fetch_data)
    fetching.add_argument("name", nargs="+")
    for action in (listing, fetching):
        _add_folder(action)


def _add_bench(commands: Any) -> None:
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
    running.add_argument("--partitions", type=int, default=5, help="seeds 0 .. N-1 (default: 5)")
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
    reporting.add_argument("--into", type=Path, help="a Markdown file with marks for each table")
    reporting.add_argument(
        "--out", type=Path, help="a folder for Markdown, CSV, LaTeX and figures of each experiment"
    )
    for action in (running, listing, reporting):
        action.add_argument(
            "--results", type=Path, default=Path("results"), help="where records lie"
        )
    _add_folder(running)


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--folder", type=Path, help="where data sets lie (default: $S2OSC_DATA or ~/.cache/s2osc)"
    )


def _add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--max-megapixels", type=float, default=50, help="refuse larger images (default: 50)"
    )
    parser.add_argument("--force", action="store_true", help="replace results that are there")


def _add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--preset",
        default="auto",
        metavar="auto|fast|heads|large|plain|paper",
        help="where hyper-parameters start from. auto (the default): heads for vectors and for "
        "photos through a backbone, large for images on a GPU, fast for images elsewhere. plain "
        "and paper have no seeds: the paper's method with compact networks, and with its own",
    )
    parser.add_argument("--seed", type=int, default=0, help="same seed, same answer (default: 0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    _add_decision(parser)
    parser.add_argument(
        "--seeds",
        metavar="SHARE",
        help="share of the labelled items that is held back and hidden in the pool, to measure "
        "the answer by (default: 0.15; none with the presets plain and paper)",
    )
    parser.add_argument(
        "--filter",
        metavar="seeds|paper",
        help="how the most distinct items are found: by every sign, weighed by the seeds, or by "
        "the paper's formula (default: the preset's)",
    )
    parser.add_argument(
        "--k",
        metavar="auto|N",
        help="items taken as distinct unknowns (default: auto, as many as the seeds find pure, or "
        "300 without seeds)",
    )
    parser.add_argument("--unknown", choices=("one", "many"), help="one or several unknown classes")
    parser.add_argument(
        "--groups", metavar="auto|N", help="number of groups of unknown items (default: auto)"
    )
    parser.add_argument(
        "--flip",
        choices=("auto", "true", "false"),
        help="whether a mirrored image means the same (default: auto, yes for colour images)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="any other hyper-parameter, such as student.tau=0.9; `s2osc settings` lists them",
    )


def _add_decision(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--false-alarm",
        metavar="RATE",
        help="at most this share of known items may be called unknown (default: 0.05)",
    )
    parser.add_argument(
        "--aim",
        metavar="balance|recall",
        help="within that limit, weigh alarms against items missed, or find as many unknown items "
        "as it allows (default: balance)",
    )
    parser.add_argument(
        "--unsure", action="store_true", default=None, help="call close calls unsure"
    )


def _decision_of(options: argparse.Namespace) -> dict[str, Any]:
    """The settings of the decision that were given."""
    given = {name: getattr(options, name) for name in ("false_alarm", "aim", "unsure")}
    return {name: value for name, value in given.items() if value is not None}


def _run_of(options: argparse.Namespace) -> "Run":
    from s2osc.app.classify import Run

    changes = {
        "seeds.share": options.seeds,
        "filtering.by": options.filter,
        "filtering.k": options.k,
        "student.unknown": options.unknown,
        "clusters.n_groups": options.groups,
        "augmentation.flip": options.flip,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    changes |= {f"decision.{name}": value for name, value in _decision_of(options).items()}
    for setting in options.set:
        name, equals, value = setting.partition("=")
        if not equals:
            raise SettingsError(f"--set is {setting!r}; give NAME=VALUE, such as student.tau=0.9")
        changes[name.strip()] = value.strip()
    return Run(options.preset, changes, options.seed, options.device)


def classify(options: argparse.Namespace) -> None:
    from s2osc.app.classify import classify_files
    from s2osc.progress import shown

    run = _run_of(options)
    with shown():
        finding = classify_files(
            options.known,
            options.pool,
            options.out,
            run,
            side=options.side,
            backbone=options.backbone,
            max_megapixels=options.max_megapixels,
            force=options.force,
        )
    _show(finding.summary, options.out, seconds=sum(finding.summary["seconds"].values()))


def demo(options: argparse.Namespace) -> None:
    from s2osc.app.classify import demo as run_demo
    from s2osc.progress import shown

    run = _run_of(options)
    with shown():
        finding = run_demo(options.out, run, force=options.force)
    _show(finding.summary, options.out, seconds=sum(finding.summary["seconds"].values()))


def decide(options: argparse.Namespace) -> None:
    from s2osc.app.decide import redecide

    started = time.perf_counter()
    summary = redecide(options.out, _decision_of(options))
    _show(summary, options.out, seconds=time.perf_counter() - started)


def predict(options: argparse.Namespace) -> None:
    from s2osc.app.classify import predict_files
    from s2osc.progress import shown

    with shown():
        answer, notes = predict_files(
            options.model,
            options.items,
            options.out,
            device=options.device,
            max_megapixels=options.max_megapixels,
            force=options.force,
        )
    for note in notes:
        print(f"Note: {note}")
    n_unknown = int(answer.is_unknown.sum())
    print(f"{len(answer.labels):,} items, {n_unknown:,} of them unknown: {options.out}")


def list_settings(options: argparse.Namespace) -> None:
    from s2osc.app.classify import make_plan
    from s2osc.settings import flatten

    plan = make_plan(_run_of(options))
    preset, method = plan.for_images
    print(f"preset {preset}")
    for name, value in flatten(method).items():
        print(f"  {name:<34} {value}")
    if plan.for_vectors.preset != preset:
        print(f"for images; vectors take --preset {plan.for_vectors.preset}")


def list_data(options: argparse.Namespace) -> None:
    from s2osc.data.datasets import describe_datasets

    for status in describe_datasets(options.folder):
        print(f"{status.name:<16} {status.title:<40} {status.size:<10} {status.where}")


def fetch_data(options: argparse.Namespace) -> None:
    from s2osc.data.datasets import fetch_dataset
    from s2osc.progress import shown

    for name in options.name:
        with shown():
            path = fetch_dataset(name, options.folder)
        print(f"{name}: {path}")


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
        part=parse_part(options.part),
        device=resolve_device(options.device),
        folder=options.folder,
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


def _partitions_of(options: argparse.Namespace) -> range:
    if options.partitions < 1:
        raise SettingsError(f"--partitions is {options.partitions}; give 1 or more")
    return range(options.partitions)


def list_bench(options: argparse.Namespace) -> None:
    from rich.console import Console

    from s2osc.bench.listing import make_listing

    Console().print(make_listing(options.results))


def report_bench(options: argparse.Namespace) -> None:
    from s2osc.bench.experiments.catalogue import experiments_named
    from s2osc.bench.publishing import publish
    from s2osc.bench.tables.documents import insert_tables, make_tables

    names = [each for name in options.experiment for each in experiments_named(name)]
    tables = make_tables(options.results, names)
    for name in dict.fromkeys(names):
        if name not in tables:
            print(
                f"s2osc: {options.results} holds no records of {name}; "
                f"make them with `s2osc bench run {name}`",
                file=sys.stderr,
            )
    if options.into:
        insert_tables(options.into, tables)
    if options.out:
        for path in publish(options.results, list(tables), options.out):
            print(path)
    if not options.into and not options.out:
        print("\n\n".join(tables.values()))


def _show(summary: dict[str, Any], out: Path, *, seconds: float) -> None:
    """The audit's sentence, a small table of what was found, and where everything lies."""
    from rich.console import Console
    from rich.table import Table

    # Names of classes and folders are shown as they are, and never broken over lines.
    console = Console(markup=False, emoji=False, highlight=False)
    say = partial(console.print, soft_wrap=True)
    counts, audit = summary["counts"], summary["audit"]
    if audit:
        say(audit["sentence"], style="bold")
        say(audit["test"]["verdict"])
    table = Table(title=f"{summary['items']['pool']:,} items in the pool")
    table.add_column("answer")
    table.add_column("items", justify="right")
    for name, count in counts["known"].items():
        table.add_row(name, f"{count:,}")
    for group, count in counts["groups"].items():
        table.add_row(f"unknown, group {group}", f"{count:,}", style="bold")
    if counts["unsure"]:
        table.add_row("unsure", f"{counts['unsure']:,}", style="italic")
    console.print(table)
    for warning in summary["warnings"]:
        say(f"Note: {warning}", style="yellow")
    if "metrics" in summary:
        figures = summary["metrics"]
        told = [
            f"{name} {figures[name]:.3f}" for name in ("accuracy", "f1", "f_out") if name in figures
        ]
        say(f"Against the truth the pool came with: {', '.join(told)}")
    say(f"Took {seconds:.{0 if seconds >= 10 else 1}f} s. In {out}:")
    for name, what in (
        ("report.html", "the page to look at"),
        ("predictions.csv", "one row per item (also predictions.parquet)"),
        ("summary.json", "counts, audit, settings, seconds, metrics"),
        ("model/", "for `s2osc predict`"),
    ):
        say(f"  {name:<18} {what}")
    if audit:
        say(f"  {'scores.parquet':<18} for `s2osc decide --out {out} --false-alarm RATE`")
