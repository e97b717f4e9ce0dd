"""The commands on one pool: classify, predict, decide, check, report, demo, settings."""

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2osc.cli.options import (
    add_command,
    add_decision,
    add_device,
    add_engine,
    add_force,
    add_minutes,
    add_paths,
    add_profile,
    add_progress,
    add_reading,
    add_representation,
    add_run,
    add_tables,
    add_trusted,
    decision_of,
    engine_of,
    item_address,
    request_of,
    shown_as,
    trusted_of,
)
from s2osc.cli.printing import printer, quoted, show_parts, show_result
from s2osc.errors import SettingsError
from s2osc.text import at_most, listed, plural, rounded_percent

if TYPE_CHECKING:
    from s2osc.app.check import Asked
    from s2osc.app.summary import Summary


def add_pool_commands(commands: Any) -> None:
    _add_classify(commands)
    _add_predict(commands)
    _add_decide(commands)
    _add_check(commands)
    parser = add_command(
        commands,
        "report",
        report,
        help="make the page of earlier results, where it is missing, or anew",
        description="Make report.html and the words of summary.json for a result folder whose run "
        "ended before they were made. Nothing is trained.",
    )
    add_paths(parser, out="a folder that classify wrote")


def add_demo_and_settings(commands: Any) -> None:
    words = "the main job on 5,000 handwritten digits, of which 6 and 7 are unknown"
    parser = add_command(commands, "demo", demo, help=words)
    parser.add_argument("--out", type=Path, default=Path("demo-results"), help="folder for results")
    add_force(parser)
    add_run(parser)
    add_profile(parser)
    words = "list every hyper-parameter and its value"
    add_run(add_command(commands, "settings", list_settings, help=words))


def _add_classify(commands: Any) -> None:
    parser = add_command(
        commands,
        "classify",
        classify,
        help="labelled items and a pool in, a folder of results out",
        description="Learn the known classes from labelled items, find what is unknown in a pool, "
        "and write predictions, a summary, a page to look at and the model.",
    )
    add_paths(
        parser,
        known="labelled items: a folder per class, a manifest (a table with path,label), .npz (x, "
        "y, optional classes), or a table (CSV, Parquet, JSON lines) of texts (text,label), or of "
        "numbers and words with a label column",
        out="folder for the results",
    )
    parser.add_argument(
        "--pool",
        type=item_address,
        required=True,
        help="items to classify: a folder of images, a manifest, .npy, .npz, or a table; read in "
        "parts, and however large: .parquet or .tar (WebDataset) files as a folder, a glob or an "
        "address such as s3://bucket/pool",
    )
    add_progress(parser)
    add_engine(parser)
    parser.add_argument(
        "--mlflow",
        nargs="?",
        const="mlruns",
        metavar="STORE",
        help="log settings, audit, metrics and files to MLflow: a folder (default: mlruns) or an "
        "address; needs `pip install 's2osc[mlflow]'`",
    )
    parser.add_argument(
        "--corrections",
        type=Path,
        metavar="FILE",
        help="a CSV file with the columns item and label (and by and at) on items of the pool: one "
        "with a class joins the labelled items, a new name is a new class; unknown is called so",
    )
    add_representation(parser)
    add_minutes(parser)
    add_tables(parser)
    add_reading(parser)
    add_force(parser)
    add_run(parser)
    add_profile(parser)


def _add_predict(commands: Any) -> None:
    words = "answer for new items with a saved model"
    parser = add_command(commands, "predict", predict, help=words)
    add_paths(
        parser,
        model="the folder `model` that classify wrote",
        out="a .csv or .parquet file; of items that are read in parts, a folder",
    )
    parser.add_argument(
        "--items", type=item_address, required=True, help="new items, in any form --pool takes"
    )
    add_progress(parser)
    add_engine(parser)
    add_trusted(parser)
    add_device(parser)
    add_reading(parser)
    add_force(parser)


def _add_decide(commands: Any) -> None:
    parser = add_command(
        commands,
        "decide",
        decide,
        help="decide the pool of earlier results anew, for another operating point",
        description="Rewrite predictions, summary and page of a result folder for another "
        "false-alarm rate or other groups, in about a second: nothing is trained. What is not "
        "given stays as it was decided last.",
    )
    add_paths(parser, out="a folder that classify wrote")
    add_decision(parser)
    parser.add_argument(
        "--no-unsure", dest="unsure", action="store_false", help="leave no item open"
    )
    parser.add_argument(
        "--groups", type=int, metavar="N", help="the most likely N groups of unknown items"
    )
    parser.add_argument("--merge", metavar="A,B", help="make one group of two or more, such as 0,2")
    parser.add_argument("--split", type=int, metavar="A", help="make two groups of one")


def _add_check(commands: Any) -> None:
    parser = add_command(
        commands,
        "check",
        check,
        help="label random items of the pool, and measure the answer without any assumption",
        description="Write random items of the pool to be labelled by a person; then read the "
        "labels and measure the answer by them. Each further check asks about other items, and "
        "labels add up.",
    )
    add_paths(parser, out="a folder that classify or stream window wrote")
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--n", type=int, help="ask about so many items that were not asked about (default: 30)"
    )
    either.add_argument(
        "--labels",
        type=Path,
        help="the table with its column `label` filled in: a known class, or unknown, or any new "
        "name, which means the same; empty where you cannot tell",
    )
    parser.add_argument(
        "--to", type=Path, help="a .csv file for the items (default: check.csv in the folder)"
    )
    add_force(parser, "labels that were read before")


def classify(options: argparse.Namespace) -> None:
    from s2osc.app.profiling import profiled
    from s2osc.progress import Stopwatch

    if options.mlflow:
        from s2osc.app.tracking import check_mlflow

        check_mlflow()
    clock = Stopwatch()
    with profiled(options.profile), shown_as(options):
        with clock("start"):
            from s2osc.app.classify import classify_files
            from s2osc.app.corrections import NO_CORRECTIONS
            from s2osc.app.large_pool import classify_parts, parts_of_pool

            request = request_of(options)
        parts = parts_of_pool(options.pool, request)
        if parts is not None and parts.n > request.fit_on:
            refuse_for_parts(options)
            summary = classify_parts(
                options.known,
                parts,
                options.out,
                request,
                engine=engine_of(options),
                force=options.force,
                clock=clock,
            )
            show_parts(summary, options.out)
            track_run(options, summary)
            return
        result = classify_files(
            options.known,
            options.pool if parts is None else parts,
            options.out,
            request,
            corrections=options.corrections or NO_CORRECTIONS,
            force=options.force,
            clock=clock,
        )
    show_result(result.summary, options.out, seconds=sum(result.run.seconds.values()))
    track_run(options, result.summary)


def track_run(options: argparse.Namespace, summary: "Summary") -> None:
    """Log a finished run to MLflow, if that was asked for."""
    if not options.mlflow:
        return
    from s2osc.app.tracking import log_run

    run = log_run(options.out, summary, options.mlflow)
    print(f"In MLflow, {options.mlflow}: run {run}")


def refuse_for_parts(options: argparse.Namespace) -> None:
    """Refuse what a pool that is read in parts has no place for."""
    if options.corrections:
        raise SettingsError(
            f"--corrections is {options.corrections}, but {options.pool} is read in parts; give "
            "the corrected items among --known"
        )


def predict(options: argparse.Namespace) -> None:
    from s2osc.app.predict import predict_files
    from s2osc.data.parts import is_parted

    if is_parted(options.items):
        predict_data_set(options)
        return
    with shown_as(options):
        answer, notes = predict_files(
            options.model,
            options.items,
            options.out,
            trusted=trusted_of(options),
            device=options.device,
            max_megapixels=options.max_megapixels,
            force=options.force,
        )
    for note in notes:
        print(f"Note: {note}")
    n_unknown = int(answer.is_unknown.sum())
    items = plural(len(answer.labels), "item")
    print(f"{items}, {n_unknown:,} of them called unknown: {options.out}")


def predict_data_set(options: argparse.Namespace) -> None:
    """Answer for items that are read in parts."""
    from s2osc.app.predict_parts import predict_parts
    from s2osc.data.parts import open_parts

    with shown_as(options):
        counts, notes = predict_parts(
            options.model,
            open_parts(options.items, options.text_column),
            options.out,
            trusted=trusted_of(options),
            device=options.device,
            max_megapixels=options.max_megapixels,
            engine=engine_of(options),
            force=options.force,
        )
    for note in notes:
        print(f"Note: {note}")
    items = plural(counts.n_rows, "item")
    print(f"{items}, {counts.n_unknown:,} of them called unknown: {options.out}")


def decide(options: argparse.Namespace) -> None:
    from s2osc.app.decide import Regrouping, redecide

    started = time.perf_counter()
    regrouping = Regrouping(options.groups, group_numbers(options.merge), options.split)
    result = redecide(options.out, decision_of(options), regrouping)
    show_result(result.summary, options.out, seconds=time.perf_counter() - started)


def group_numbers(text: str | None) -> tuple[int, ...]:
    """The numbers of groups in a list such as 0,2.

    >>> group_numbers("0,2")
    (0, 2)
    """
    if text is None:
        return ()
    numbers = text.split(",")
    if len(numbers) < 2 or not all(number.strip().isdecimal() for number in numbers):
        raise SettingsError(f"--merge is {text!r}; give numbers of groups such as 0,2")
    return tuple(int(number) for number in numbers)


def check(options: argparse.Namespace) -> None:
    from s2osc.app.check import USUAL, ask_person, take_labels

    if options.labels is None:
        n = USUAL[0] if options.n is None else options.n
        show_asked(ask_person(options.out, n, table=options.to), options.out)
        return
    if options.to:
        raise SettingsError(
            f"--to is {options.to}, where items to label are written, but --labels reads labels; "
            "leave one of them out"
        )
    started = time.perf_counter()
    checked = take_labels(options.out, options.labels, force=options.force)
    show_result(checked.result.summary, options.out, seconds=time.perf_counter() - started)
    say = printer()
    n_labels = checked.result.check.n_labels
    say(f"{plural(checked.n_new, 'new label')}, {n_labels:,} in all.")
    if checked.other_names:
        say(f"Not a known class: {listed(checked.other_names)}.")
    if checked.n_open:
        say(f"{plural(checked.n_open, 'item')} asked about, but without a label.")


def show_asked(asked: "Asked", out: Path) -> None:
    """Print what labels will tell, and where to write them."""
    from rich.table import Table

    from s2osc.pipeline.audit.wording import interval_in_words

    say = printer()
    called = float(asked.result.answer.is_unknown.mean())
    table = Table(title="What labels of random items will tell, with 95% confidence")
    for heading in (
        "labels",
        f"unknown share, if {rounded_percent(called)}",
        "right answers, if 95%",
        "a class is seen from",
    ):
        table.add_column(heading, justify="right")
    for each in asked.outlooks:
        table.add_row(
            f"{each.n_labels:,}",
            interval_in_words(each.unknown_share),
            interval_in_words(each.accuracy),
            f"{at_most(each.visible_share)} of the pool",
        )
    say(table, soft_wrap=False)
    n_again = asked.n_open - asked.n_new
    again = f", {n_again:,} of them asked before" if n_again else ""
    say(f"{plural(asked.n_open, 'item')} to label{again}: {asked.table}")
    if asked.page:
        say(f"The same as a page, to label and save there: {asked.page}")
    say(f"Known classes: {listed(asked.result.classes)}; for anything else write unknown. Then:")
    say(f"  s2osc check --out {quoted(out)} --labels {quoted(asked.table)}")


def report(options: argparse.Namespace) -> None:
    from s2osc.app.report import report_files

    started = time.perf_counter()
    result = report_files(options.out)
    show_result(result.summary, options.out, seconds=time.perf_counter() - started)


def demo(options: argparse.Namespace) -> None:
    from s2osc.app.profiling import profiled
    from s2osc.progress import Stopwatch, shown

    clock = Stopwatch()
    with profiled(options.profile), shown():
        with clock("start"):
            from s2osc.app.classify import demo as run_demo

            request = request_of(options)
        result = run_demo(options.out, request, force=options.force, clock=clock)
    show_result(result.summary, options.out, seconds=sum(result.run.seconds.values()))


def list_settings(options: argparse.Namespace) -> None:
    from s2osc.app.request import check_request, choose_method
    from s2osc.settings import flatten

    request = request_of(options)
    device = check_request(request)
    preset, method = choose_method(request, device, vectors=False)
    for_vectors, _ = choose_method(request, device, vectors=True)
    print(f"preset {preset}")
    for name, value in flatten(method).items():
        print(f"  {name:<34} {value}")
    if for_vectors != preset:
        print(f"for images; vectors take --preset {for_vectors}")
