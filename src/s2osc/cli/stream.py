"""`s2osc stream`: windows come, labels are asked for, classes arrive.

torch and everything that imports it load inside the commands.
"""

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from s2osc.cli.options import (
    add_command,
    add_decision,
    add_device,
    add_folder,
    add_force,
    add_paths,
    add_reading,
    add_representation,
    add_run,
    add_tables,
    add_trusted,
    decision_of,
    request_of,
    trusted_of,
)
from s2osc.cli.printing import printer, quoted, show_result
from s2osc.codec import JsonObject
from s2osc.text import listed, plural

if TYPE_CHECKING:
    from rich.table import Table

    from s2osc.app.stream.answer import Answered
    from s2osc.stream.history import WindowRecord
    from s2osc.stream.status import ClassStatus
    from s2osc.stream.update import Account

QUERIES = ("representative", "unknown", "random")


def add_stream(commands: Any) -> None:
    parser = commands.add_parser(
        "stream",
        help="follow a stream of windows in which classes keep arriving",
        description="Begin with labelled items; for every window get what `classify` writes and a "
        "list of items to label; answer it, and the classes you named are known in the next.",
    )
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_init(actions)
    _add_window(actions)
    _add_queries_and_answer(actions)
    words = "show what is known, since when and how well"
    parser = _add_action(actions, "status", status, help=words)
    parser.add_argument("--json", action="store_true", help="as JSON")
    words = "take the last change back: answers, window or name"
    _add_action(actions, "undo", undo, help=words)
    parser = _add_action(actions, "rename", rename, help="give a class another name")
    parser.add_argument("old")
    parser.add_argument("new")
    _add_simulate(actions)


def _add_action(
    actions: Any, name: str, run: Callable[[argparse.Namespace], None], **words: str
) -> argparse.ArgumentParser:
    """A command on a stream that lies in a folder."""
    parser = add_command(actions, name, run, **words)
    add_paths(parser, state="the folder of the stream")
    return parser


def _add_init(actions: Any) -> None:
    parser = _add_action(actions, "init", init, help="begin a stream with labelled items")
    add_paths(parser, known="labelled items, as `s2osc classify` takes them")
    _add_memory(parser)
    add_representation(parser)
    add_tables(parser)
    add_reading(parser)
    add_run(parser)


def _add_memory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--memory",
        type=int,
        default=2_000,
        help="labelled items that are kept, of all classes together (default: 2000)",
    )


def _add_asking(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--budget", type=int, default=200, help="items to ask about per window (default: 200)"
    )
    parser.add_argument(
        "--queries",
        choices=QUERIES,
        default=QUERIES[0],
        help="which items: typical of each group and close calls (default), called unknown, or any",
    )
    parser.add_argument(
        "--self-taught",
        action="store_true",
        help="nobody is asked: every group of unknown items becomes a class at once",
    )


def _add_window(actions: Any) -> None:
    words = "answer for the next window, and list what to ask about it"
    parser = _add_action(actions, "window", window, help=words)
    add_paths(
        parser,
        pool="its items, as `s2osc classify` takes them",
        out="folder for the results",
    )
    _add_asking(parser)
    add_decision(parser)
    add_trusted(parser)
    add_device(parser)
    add_reading(parser)
    add_force(parser)


def _add_queries_and_answer(actions: Any) -> None:
    words = "write the questions of the last window again, with the answers so far"
    parser = _add_action(actions, "queries", queries, help=words)
    add_paths(parser, out="the table to write, as CSV")
    add_force(parser, "a file that is there")
    words = "learn the labels of the last window's questions"
    parser = _add_action(actions, "answer", answer, help=words)
    add_paths(
        parser,
        labels="the queries.csv of the last window with labels written into it: known or new "
        "classes, `ignore` for what is not of interest, nothing where you cannot say",
    )
    add_device(parser)


def _add_simulate(actions: Any) -> None:
    parser = add_command(
        actions,
        "simulate",
        simulate,
        help="run a labelled set as a stream that answers for itself",
        description="Hide some classes of a labelled set, let them emerge window by window, and "
        "answer every question with the truth: what a stream would do with such data.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--items", type=Path, help="labelled items, in any form --known takes")
    source.add_argument("--data", help="a data set by its name; `s2osc data list` names all")
    add_paths(parser, out="folder for the results")
    parser.add_argument("--windows", type=int, default=5, help="how many (default: 5)")
    parser.add_argument(
        "--new-per-window", type=int, default=1, help="classes that emerge in each (default: 1)"
    )
    parser.add_argument(
        "--known-classes",
        metavar="NAMES",
        help="comma-separated, known at the beginning (default: half of all, drawn by the seed)",
    )
    parser.add_argument(
        "--size-per-window",
        type=int,
        metavar="N",
        help="about how many items a window has when every class is there (default: all)",
    )
    _add_asking(parser)
    _add_memory(parser)
    add_representation(parser)
    add_tables(parser)
    add_folder(parser)
    add_reading(parser)
    add_force(parser)
    add_run(parser)


def init(options: argparse.Namespace) -> None:
    from s2osc.app.stream.begin import init_files
    from s2osc.progress import shown

    request = request_of(options)
    with shown():
        begun = init_files(
            options.known,
            options.state,
            request,
            memory=options.memory,
        )
    say = printer()
    for note in begun.notes:
        say(f"Note: {note}", style="yellow")
    names = begun.state.class_names
    say(f"{begun.n_items:,} labelled items of {len(names)} classes: {listed(names, most=12)}")
    say(f"The stream lies in {options.state}. Feed its first window:")
    say(f"  s2osc stream window --state {quoted(options.state)} --pool POOL --out RESULTS")


def window(options: argparse.Namespace) -> None:
    from s2osc.progress import Stopwatch, shown

    clock = Stopwatch()
    with clock("start"):
        from s2osc.app.stream.window import window_files
        from s2osc.stream.queries import QuerySettings
    with shown():
        found = window_files(
            options.state,
            options.pool,
            options.out,
            QuerySettings(options.budget, options.queries),
            decision=decision_of(options),
            self_taught=options.self_taught,
            trusted=trusted_of(options),
            device=options.device,
            max_megapixels=options.max_megapixels,
            force=options.force,
            clock=clock,
        )
    summary = found.result.summary
    show_result(summary, options.out, seconds=sum(summary.run.seconds.values()))
    say = printer()
    if not summary.counts.unknown:
        say("No item of this window is called unknown.")
    if found.answered:
        _print_answered(found.answered, say)
    elif summary.run.stream is None or not summary.run.stream.asked:
        say("Nothing is asked about this window.")
    else:
        labels = options.out / "queries.csv"
        n = summary.run.stream.asked
        items = plural(n, "item")
        say(f"{items} to label: write classes into the column `label` of {labels}, then run")
        say(f"  s2osc stream answer --state {quoted(options.state)} --labels {quoted(labels)}")


def queries(options: argparse.Namespace) -> None:
    from s2osc.app.stream.answer import write_open_queries

    n_open = write_open_queries(options.state, options.out, force=options.force)
    say = printer()
    number = "1 question is" if n_open == 1 else f"{n_open:,} questions are"
    say(f"{number} open: write classes into the column `label`, then run")
    state, labels = quoted(options.state), quoted(options.out)
    say(f"  s2osc stream answer --state {state} --labels {labels}")


def answer(options: argparse.Namespace) -> None:
    from s2osc.app.stream.answer import answer_file
    from s2osc.progress import shown

    with shown():
        answered = answer_file(options.state, options.labels, device=options.device)
    say = printer()
    if answered is None:
        say(f"{options.labels} holds no labels: nothing was changed")
        return
    _print_answered(answered, say)
    state = quoted(options.state)
    if answered.n_open:
        n = answered.n_open
        still = "1 question is still open" if n == 1 else f"{n:,} questions are still open"
        say(f"{still}: answer in the same way, or go on:")
    else:
        say("Every question is answered. Next:")
    say(f"  s2osc stream window --state {state} --pool POOL --out RESULTS")
    say(f"  s2osc stream undo --state {state}" + " " * 3 + "takes these answers back")


def status(options: argparse.Namespace) -> None:
    from s2osc.stream.status import read_status

    found = read_status(options.state)
    if options.json:
        print(json.dumps(found.to_json(), indent=2, ensure_ascii=False))
        return
    say = printer()
    say(_classes_table(found.classes))
    if found.windows:
        say(_windows_table(found.windows))
    memory = found.memory
    say(
        f"Memory: {memory.exemplars + memory.seeds:,} of {memory.size:,} items "
        f"({memory.exemplars:,} learnt from, {memory.seeds:,} held back), "
        f"{memory.megabytes:,.3g} MB"
    )
    if found.waiting:
        few = ", ".join(f"{name} ({n})" for name, n in found.waiting.items())
        say(f"Too few labels to learn yet: {few}")
    questions = found.questions
    if questions:
        say(f"Open questions: {questions.open:,} of {questions.asked:,} of the last window")
    else:
        say("No questions are open.")
    last = f"version {found.version}: {found.last_change}"
    say(f"Last change, {last}{' (can be undone)' if found.can_undo else ''}")


def undo(options: argparse.Namespace) -> None:
    from s2osc.app.stream.begin import undo_last

    print(f"Undone: {undo_last(options.state)}")


def rename(options: argparse.Namespace) -> None:
    from s2osc.app.stream.begin import rename_in

    new = rename_in(options.state, options.old, options.new)
    print(f"The class {options.old!r} is now called {new!r}")


def simulate(options: argparse.Namespace) -> None:
    from s2osc.app.simulate import Course
    from s2osc.app.simulate import simulate as run_simulation
    from s2osc.progress import shown
    from s2osc.stream.queries import QuerySettings

    names = options.known_classes.split(",") if options.known_classes else []
    with shown():
        summary = run_simulation(
            options.items or options.data,
            options.out,
            request_of(options),
            Course(
                n_windows=options.windows,
                new_per_window=options.new_per_window,
                known_classes=tuple(name.strip() for name in names),
                size=options.size_per_window,
            ),
            QuerySettings(options.budget, options.queries),
            memory=options.memory,
            self_taught=options.self_taught,
            folder=options.folder,
            force=options.force,
        )
    say = printer()
    say(_simulation_table(summary["windows"]))
    for warning in summary["warnings"]:
        say(f"Note: {warning}", style="yellow")
    means = dict(summary["metrics"])
    forgotten = means.pop("chaudhry_forgetting", None)
    figures = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
    say(f"Means over the windows: {figures}")
    if forgotten is not None:
        say(f"Forgetting by Chaudhry, in the end: {forgotten:.3f}")
    labels = plural(summary["labels"], "label")
    say(f"{labels} in all, {summary['seconds_per_window']:,.1f} s per window")
    say(f"In {options.out}: windows.csv, windows.md, summary.json and, with Matplotlib, figures")


def _simulation_table(windows: Sequence[JsonObject]) -> "Table":
    from rich.table import Table

    table = Table(title="Simulated stream", padding=0)
    counted = ("window", "items", "asked")
    judged = ("accuracy", "f_out", "old_accuracy", "new_accuracy")
    for name in (*counted, "emerging", "joined", *judged, "seconds"):
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    for window in windows:
        figures = window["metrics"]
        table.add_row(
            *(f"{window[name]:,}" for name in counted),
            *(", ".join(window[name]) for name in ("emerging", "joined")),
            *(f"{figures[name]:.3f}" if name in figures else "-" for name in judged),
            f"{window['seconds']:.1f}",
        )
    return table


def _print_answered(answered: "Answered", say: Callable[..., None]) -> None:
    """What was learnt, and the losses before and after."""
    for note in answered.notes:
        say(f"Note: {note}", style="yellow")
    if answered.n_labels:
        ignored = f", {plural(answered.n_ignored, 'item')} ignored" if answered.n_ignored else ""
        say(f"{plural(answered.n_labels, 'label')} taken{ignored}")
    elif answered.n_ignored:
        say(f"{plural(answered.n_ignored, 'item')} ignored")
    if answered.new_classes:
        say(f"New classes: {listed(answered.new_classes, most=12)}", style="bold")
    account = answered.account
    if account is None:
        return
    for what, losses in (("the memory", account.memory), ("items held back", account.seeds)):
        if losses:
            held = "did not rise" if losses.holds else "rose"
            before, after = _apart(losses.before, losses.after)
            say(f"The loss on {what} {held}: {before} before, {after} after")


def _apart(one: float, other: float) -> tuple[str, str]:
    """Two figures in as few digits, from three on, as show their difference.

    >>> _apart(0.000012, 0.0000345), _apart(0.12345, 0.12346), _apart(0.5, 0.5)
    (('1.2e-05', '3.45e-05'), ('0.12345', '0.12346'), ('0.5', '0.5'))
    """
    for digits in range(3, 10):
        shown = f"{one:.{digits}g}", f"{other:.{digits}g}"
        if shown[0] != shown[1]:
            break
    else:
        shown = f"{one:.3g}", f"{other:.3g}"
    return shown


def _classes_table(classes: Sequence["ClassStatus"]) -> "Table":
    from rich.table import Table

    table = Table(title="Known classes")
    table.add_column("class")
    for name in ("since window", "labels", "accuracy on items held back", "n"):
        table.add_column(name, justify="right")
    for each in classes:
        known, seeds, accuracy = each.known, each.seeds, "-"
        if found := seeds.accuracy:
            accuracy = f"{found.estimate:.1%} ({found.low:.1%} - {found.high:.1%})"
        since = str(known.since or "the beginning")
        table.add_row(known.name, since, f"{known.n_labels:,}", accuracy, f"{seeds.n:,}")
    return table


def _windows_table(windows: Sequence["WindowRecord"]) -> "Table":
    from rich.table import Table

    title = "Windows (held: the loss did not rise, on the memory/on items held back)"
    table = Table(title=title, padding=0)  # without it a narrow terminal would cut the figures
    counts = ("window", "items", "unknown", "groups", "asked", "answered", "labelled")
    for name in counts:
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("new classes", overflow="fold")
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("held", justify="right", no_wrap=True)
    for record in windows:
        table.add_row(
            *(f"{getattr(record, name):,}" for name in counts),
            ", ".join(record.new_classes),
            f"{record.seconds_in_all:.1f}",
            _held(record.updates),
        )
    return table


def _held(accounts: Sequence["Account"]) -> str:
    """Whether the constraint held in all updates of a window: on the memory, and on the seeds."""
    if not accounts:
        return "-"
    words = []
    for losses in ([each.memory for each in accounts], [each.seeds for each in accounts]):
        held = [each.holds for each in losses if each]
        words.append(("yes" if all(held) else "no") if held else "-")
    return "/".join(words)
