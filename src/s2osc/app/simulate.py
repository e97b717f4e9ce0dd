"""A labelled set as a stream that answers for itself: what a stream would do with such data."""

import csv
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.app.representation import read_known
from s2osc.app.request import Request, choose_method
from s2osc.app.result_files import write_summary
from s2osc.app.results_folder import RESULTS, results_folder
from s2osc.app.stream.begin import check_learner, check_names
from s2osc.bench.tables.rendering import Table, to_markdown
from s2osc.bench.tasks.stream import (
    describe_stream,
    judge_stages,
    mean_figures,
    stage_accuracies,
)
from s2osc.codec import JsonObject, to_plain
from s2osc.data.datasets import load_dataset
from s2osc.data.inputs import encode_labels
from s2osc.data.streams import FEWEST_PRESENT, LabelledSet, Stream, StreamProtocol, draw_stream
from s2osc.errors import SettingsError, collect_warnings
from s2osc.metrics import evaluate_by_name
from s2osc.progress import Stopwatch, track
from s2osc.seeding import rng
from s2osc.settings import flatten, require_least
from s2osc.stream.open_stream import build_learner
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import StreamState
from s2osc.stream.update import Account
from s2osc.stream.windows import (
    GroupOracle,
    TruthOracle,
    WindowResult,
    begin_stream,
    follow,
)
from s2osc.text import csv_cell
from s2osc.types import Answer
from s2osc.version import versions

HELD_OUT = 200
"""Items of each class, a tenth of it at most, by which the accuracy of f is measured."""
FORGETTING = "chaudhry_forgetting"
FIGURES = (
    *("accuracy", "precision", "recall", "f1", "f_out"),
    *("known_accuracy", "stated_accuracy", "group_accuracy"),
    *("held_out_accuracy", "old_accuracy", "new_accuracy", FORGETTING, "learnt_wrong"),
)
"""Of a window. ``stated_accuracy`` is the audit's estimate of ``known_accuracy``, from seeds. Of
items held out, ``old_accuracy`` is about classes of the beginning and ``new_accuracy`` about those
that came since."""
FILES = (*RESULTS, "windows.csv", "windows.md")
COUNTS = ("window", "items", "unknown", "groups", "asked", "answered", "labelled", "labels_so_far")


class Material(NamedTuple):
    """Labelled items as a stream is drawn from them."""

    name: str
    inputs: np.ndarray
    labels: np.ndarray
    classes: tuple[str, ...]


@dataclass(frozen=True)
class WindowFigures:
    """What a window brought, and how good its answer was."""

    window: int  # its number, from 1
    items: int
    unknown: int
    groups: int
    asked: int
    answered: int
    labelled: int
    labels_so_far: int  # answers of this window and all before it
    emerging: tuple[str, ...]  # classes that come for the first time
    joined: tuple[str, ...]  # classes that are known after it
    metrics: dict[str, float]  # some or all of FIGURES
    update: Account | None
    seconds: float


@dataclass(frozen=True)
class Course:
    """How a simulated stream runs."""

    n_windows: int = 5
    new_per_window: int = 1
    known_classes: tuple[str, ...] = ()  # none: half of the classes, drawn by the seed
    size: int | None = None  # items of a window in which every class comes; None: all there are

    def __post_init__(self) -> None:
        for name in ("n_windows", "new_per_window", "size"):
            require_least(name, getattr(self, name), 1)

    def protocol(self, items: LabelledSet) -> StreamProtocol:
        """The course for items of certain classes."""
        sizes = None
        if self.size is not None:
            rate = max(1, self.size // len(items.classes))
            sizes = int(np.bincount(items.labels).min()) // 2, rate
        return ChosenClasses(
            n_windows=self.n_windows,
            sizes=sizes,
            held_out=HELD_OUT,
            first=number_of(self.known_classes, items.classes),
            together=self.new_per_window,
        )


@dataclass(frozen=True)
class ChosenClasses(StreamProtocol):
    """A protocol whose first classes may be named, and of which several may emerge together."""

    first: tuple[int, ...] = ()
    together: int = 1

    def draw_known(self, n_classes: int, seed: int) -> tuple[list[int], list[int]]:
        if not self.first:
            return super().draw_known(n_classes, seed)
        others = [int(c) for c in rng(seed, "classes").permutation(n_classes)]
        return sorted(self.first), [c for c in others if c not in self.first]

    def draw_arrivals(self, new: list[int], seed: int) -> list[list[int]]:
        """New classes in turn; windows after the last of them bring none.

        >>> ChosenClasses(n_windows=3, together=2).draw_arrivals([7, 5, 6], seed=0)
        [[7, 5], [6], []]
        """
        assert self.n_windows is not None
        return [new[t * self.together : (t + 1) * self.together] for t in range(self.n_windows)]


def number_of(names: Sequence[str], classes: Sequence[str]) -> tuple[int, ...]:
    """The numbers of named classes; none where none are named."""
    for name in names:
        if name not in classes:
            raise SettingsError(f"there is no class {name!r}; there is {', '.join(classes)}")
    numbers = tuple(classes.index(name) for name in dict.fromkeys(names))
    if numbers and not FEWEST_PRESENT <= len(numbers) < len(classes):
        raise SettingsError(
            f"{len(numbers)} of {len(classes)} classes are known at the beginning; give at least "
            f"{FEWEST_PRESENT}, and leave one to emerge"
        )
    return numbers


def simulate(
    source: Path | str,
    out: Path,
    request: Request,
    course: Course,
    asking: QuerySettings,
    *,
    memory: int = 2_000,
    self_taught: bool = False,
    folder: Path | None = None,
    force: bool = False,
) -> JsonObject:
    """Follow a stream drawn from labelled files, or from a data set by its name.

    The truth answers what is asked, and judges every window before it is learnt from. Returns the
    summary.
    """
    with results_folder(out, names=FILES, force=force) as results:
        if self_taught:
            asking = replace(asking, budget=0)
        of_method, device = check_learner(request, memory)
        with collect_warnings() as notes:
            items: LabelledSet
            if isinstance(source, Path):
                items = read_material(source, of_method, device)
            else:
                items = load_dataset(source, folder)
                items.require_numbers()
            is_vectors = items.inputs.dtype != np.uint8
            check_names(items.classes)
            stream = draw_stream(items, course.protocol(items), request.seed)
            preset, _ = choose_method(
                of_method, device, vectors=is_vectors, n_labelled=len(stream.known)
            )
            learner = build_learner(preset, request.changes, memory)
            names = [items.classes[number] for number in stream.class_numbers]
            state = begin_stream(
                stream.known,
                names[: stream.known.n_classes],
                learner,
                seed=request.seed,
                device=device,
            )
            windows, stages = run_stream(
                stream, names, state, asking, self_taught=self_taught, device=device
            )
        record = {
            "dataset": items.name,
            "method": "s2osc",
            "partition": request.seed,
            **describe_stream(stream, items),
            "metrics": average(to_plain(windows)),
            "labels": windows[-1].labels_so_far,
            "seconds_per_window": round(float(np.mean([window.seconds for window in windows])), 2),
            "windows": to_plain(windows),
            "stages": stages,
        }
        has_matplotlib = find_spec("matplotlib") is not None
        if not has_matplotlib:
            notes.append("figures need Matplotlib: run `pip install 's2osc[bench]'`")
        summary = {
            "title": f"Simulated stream: {items.name}",
            **record,
            "budget": asking.budget,
            "queries": asking.strategy,
            "self_taught": self_taught,
            "warnings": notes,
            "preset": preset,
            "settings": flatten(learner),
            "seed": request.seed,
            "device": device,
            "versions": versions(),
        }
        with results.publish() as stage:
            write_windows(stage, windows, items.name)
            if has_matplotlib:
                draw_figures(stage, record, self_taught=self_taught)
            write_summary(stage, summary)
        return summary


def read_material(path: Path, request: Request, device: str) -> Material:
    """Labelled files as `s2osc classify` would read them."""
    items, represented = read_known(path, request, device)
    labels, classes = encode_labels(items.labels or [])
    return Material(path.name, represented.inputs(items.inputs, Stopwatch()), labels, classes)


def run_stream(
    stream: Stream,
    names: Sequence[str],
    state: StreamState,
    asking: QuerySettings,
    *,
    self_taught: bool,
    device: str,
) -> tuple[list[WindowFigures], list[list[float]]]:
    """Follow the stream and judge every window. Returns the figures of each, and the stages.

    A stage is the accuracy on items held out, of the classes of every arrival so far; the first is
    before the first window.
    """
    truth = [[names[c] for c in window.truth] for window in stream.windows]
    oracle = GroupOracle() if self_taught else TruthOracle(truth)
    true_name = {name: name for name in names}
    figures: list[WindowFigures] = []
    stages = [stage_of(stream, 0, name_held_out(stream, names, state, true_name))]
    windows = track(
        [window.inputs for window in stream.windows],
        "windows of the stream",
        total=len(stream.windows),
    )
    results = follow(windows, state, oracle, asking, device=device, clock=Stopwatch())
    for number, result in enumerate(results, 1):
        judged = judge_by_name(result, true_name, truth[number - 1])
        if self_taught:
            made = members_by_name(result, truth[number - 1])
            true_name |= {name: mostly(members) for name, members in made.items()}
            judged |= learnt_wrong(made)
        state = result.updated.state
        named = name_held_out(stream, names, state, true_name)
        stages.append(stage_of(stream, number, named))
        judged |= judge_held_out(stream, number, named) | judge_stages(stages)
        record = state.history[-1]
        stated = record.audit and record.audit.known_accuracy.overall
        if stated:
            judged["stated_accuracy"] = stated.estimate
        before = result.before.class_names
        figures.append(
            WindowFigures(
                **{key: getattr(record, key) for key in COUNTS if key != "labels_so_far"},
                labels_so_far=sum(each.answered for each in state.history),
                emerging=tuple(names[c] for c in np.flatnonzero(stream.emerges == number).tolist()),
                joined=tuple(name for name in state.class_names if name not in before),
                metrics=judged,
                update=result.updated.account,
                seconds=round(record.seconds_in_all, 2),
            )
        )
    return figures, stages


def name_held_out(
    stream: Stream, names: Sequence[str], state: StreamState, true_name: Mapping[str, str]
) -> np.ndarray:
    """The classes that f gives to items held out, in the numbers of the stream."""
    if not len(stream.test.truth):
        return np.empty(0, int)
    number = np.array([names.index(true_name[name]) for name in state.class_names])
    return number[state.learner.name_known(state.knowledge, stream.test.inputs)]


def judge_held_out(stream: Stream, number: int, named: np.ndarray) -> dict[str, float]:
    """The accuracy of f on items held out, of all classes that have emerged so far."""
    emerged = stream.emerges[stream.test.truth] <= number
    if not emerged.any():
        return {}
    right = named[emerged] == stream.test.truth[emerged]
    return {"held_out_accuracy": round(float(np.mean(right)), 5)}


def stage_of(stream: Stream, number: int, named: np.ndarray) -> list[float]:
    """The same by arrival, after window ``number``; none where a class is too small to judge."""
    arrived = stream.emerges[stream.emerges <= number]
    if not np.isin(arrived, stream.emerges[stream.test.truth]).all():
        return []
    return stage_accuracies(stream, number + 1, named)


def members_by_name(result: WindowResult, truth: Sequence[str]) -> dict[str, list[str]]:
    """What the items of each class are that a stream made by itself, for the judge alone."""
    questions = result.window.state.questions
    if questions is None:
        return {}
    return {
        name: [
            truth[int(questions.names[row])] for row in np.flatnonzero(questions.groups == group)
        ]
        for group, name in zip(questions.group_sizes(), result.answers.values(), strict=True)
    }


def mostly(members: Sequence[str]) -> str:
    return Counter(members).most_common(1)[0][0]


def learnt_wrong(made: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """How many of the items learnt are not what their class mostly is; nothing where none is.

    >>> learnt_wrong({"new 1": ["cat", "cat", "dog"], "new 2": ["fox"]})
    {'learnt_wrong': 0.25}
    """
    n_items = sum(map(len, made.values()))
    if not n_items:
        return {}
    n_right = sum(members.count(mostly(members)) for members in made.values())
    return {"learnt_wrong": round(1 - n_right / n_items, 5)}


def judge_by_name(
    result: WindowResult, true_name: Mapping[str, str], truth: Sequence[str]
) -> dict[str, float]:
    """The figures of a window; classes that are mostly the same count as one."""
    called = [true_name[name] for name in result.before.class_names]
    classes = tuple(dict.fromkeys(called))
    number = np.array([classes.index(name) for name in called])
    answer: Answer = result.window.recognition.solution.answer
    nearest = None if answer.nearest is None else number[answer.nearest]
    labels = np.where(answer.labels >= 0, number[answer.labels], answer.labels)
    return evaluate_by_name(replace(answer, labels=labels, nearest=nearest), classes, list(truth))


def average(windows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The mean of each figure over the windows that have it; what was forgotten in the end.

    >>> average([{"metrics": {"f_out": 1.0, "f1": 0.5}}, {"metrics": {"f1": 1.0}}])
    {'f1': 0.75, 'f_out': 1.0}
    """
    means = mean_figures(windows)
    if FORGETTING in means:  # counts from the first stage on, whatever the window
        means[FORGETTING] = windows[-1]["metrics"][FORGETTING]
    return {name: means[name] for name in FIGURES if name in means}


def write_windows(folder: Path, windows: Sequence[WindowFigures], name: str) -> None:
    """One row per window: windows.csv, and windows.md to be read."""
    header = (
        *(*COUNTS, "emerging", "joined"),
        *(*FIGURES, "loss_on_memory_before", "loss_on_memory_after", "seconds"),
    )
    rows = [_row(window) for window in windows]
    with (folder / "windows.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(
            [csv_cell(cell) if isinstance(cell, str) else cell for cell in row]
            for row in (header, *rows)
        )
    table = Table(
        tuple(cell.replace("_", " ") for cell in header),
        tuple(
            tuple(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row)
            for row in rows
        ),
    )
    text = to_markdown([f"The stream of {name}, window by window:", table])
    (folder / "windows.md").write_text(text + "\n", encoding="utf-8")


def _row(window: WindowFigures) -> list[Any]:
    losses = (
        [window.update.memory.before, window.update.memory.after] if window.update else ["", ""]
    )
    return [
        *(getattr(window, key) for key in COUNTS),
        *(", ".join(names) for names in (window.emerging, window.joined)),
        *(window.metrics.get(figure, "") for figure in FIGURES),
        *losses,
        window.seconds,
    ]


def draw_figures(folder: Path, record: JsonObject, *, self_taught: bool) -> None:
    """When classes come, how answers fare and, where nobody is asked, how far they drift."""
    # Matplotlib is an extra, which this module does without.
    from s2osc.bench.figures.drawing import save  # noqa: PLC0415
    from s2osc.bench.figures.streams import (  # noqa: PLC0415
        draw_drift,
        draw_timeline,
        draw_windows,
    )

    save(draw_timeline([record]), folder / "timeline")
    save(draw_windows([record]), folder / "accuracy")
    if self_taught:
        save(draw_drift(record), folder / "drift")
