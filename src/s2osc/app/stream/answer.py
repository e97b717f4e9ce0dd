"""Learn what a person answers about the last window of a stream."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from s2osc.app.extract import NOTHING, restore
from s2osc.app.result_files import read_summary
from s2osc.app.results_folder import version_of
from s2osc.data.inputs import read_items
from s2osc.errors import DataError, OutputError, collect_warnings
from s2osc.files import write_whole, writing
from s2osc.nets.training import resolve_device
from s2osc.progress import Stopwatch
from s2osc.stream.answers import QUERIES, Answers, queries_table, read_answers
from s2osc.stream.names import names_in_use
from s2osc.stream.sources import with_originals
from s2osc.stream.state import StreamState
from s2osc.stream.store import Pointer, open_store, read_pointer, read_state
from s2osc.stream.update import Account
from s2osc.stream.windows import UpdatedStream, open_questions, take_answers, take_items
from s2osc.text import match_classes


@dataclass(frozen=True)
class Answered:
    """What became of a person's answers."""

    n_labels: int
    n_ignored: int
    new_classes: tuple[str, ...]
    account: Account | None  # None: nothing was learnt
    notes: list[str]
    n_open: int  # questions without an answer

    @property
    def has_any(self) -> bool:
        return self.n_labels + self.n_ignored > 0


def write_open_queries(folder: Path, out: Path, *, force: bool = False) -> int:
    """Write the questions of the last window again, with the answers given so far.

    Returns how many have no answer yet.
    """
    state = read_state(folder)
    questions = open_questions(state)
    if out.is_dir():
        raise OutputError(f"{out} is a folder; give the name of a file, such as {out / QUERIES}")
    if out.exists() and not force:
        raise OutputError(f"{out} is there already; give another name, or --force to replace it")
    with writing(out, "make room, or give another place"):
        write_whole(out, queries_table(state))
    return questions.n_open


def answer_file(folder: Path, labels: Path, *, device: str = "auto") -> Answered | None:
    """Learn the labels in a file; None where it holds none."""
    device = resolve_device(device)
    with open_store(folder) as store:
        state, given = store.read(device), read_answers(labels)
        if not any(given.labels.values()):
            return None
        check_about_last(given, state, read_pointer(folder), labels)
        meant = match_classes(given.labels.values(), names_in_use(state))
        answers = {item: meant.get(label, label) for item, label in given.labels.items()}
        with collect_warnings() as notes:
            learnt = take_answers(state, answers, device=device)
        if learnt.state is not state:
            store.write(learnt.state, f"answers to window {state.n_windows}")
    answered = describe_answers(state, learnt)
    spelled = [
        f"the label {label!r} was read as the class {name!r}" for label, name in meant.items()
    ]
    return replace(answered, notes=[*answered.notes, *spelled, *notes])


def learn_labels(
    folder: Path, out: Path, labels: Mapping[str, str], *, device: str = "auto"
) -> Answered | None:
    """Learn labels of items of the last window, whose results lie in ``out``; None without any.

    Items that were asked about, or are in a group, are answers. The stream has no copy of the
    others, so they are read again from where the window came from.
    """
    device = resolve_device(device)
    with open_store(folder) as store:
        state = store.read(device)
        asked = set(state.questions.names if state.questions else ())
        answers = {item: label for item, label in labels.items() if item in asked}
        others = {item: label for item, label in labels.items() if item not in asked}
        learnt = UpdatedStream(state, None, [])
        with collect_warnings() as notes:
            if answers:
                learnt = take_answers(state, answers, device=device)
            if others:
                inputs, originals = read_window_items(state, out, list(others), device)
                more = take_items(learnt.state, inputs, list(others.values()), device=device)
                if originals is not None and more.state.originals is not None:
                    more = more._replace(state=with_originals(more.state, inputs, originals))
                learnt = more._replace(
                    account=more.account or learnt.account, notes=[*learnt.notes, *more.notes]
                )
        if learnt.state is state:
            return None
        store.write(learnt.state, f"labels of window {state.n_windows}")
    answered = describe_answers(state, learnt)
    return replace(answered, notes=[*answered.notes, *notes])


def name_window(folder: Path, out: Path, *, device: str = "auto") -> np.ndarray:
    """(n,) the most likely known class of each item of the last window, by the current state."""
    device = resolve_device(device)
    state = read_state(folder, device)
    inputs, _ = read_window_items(state, out, None, device)
    classes = np.array(state.class_names, object)
    return classes[state.learner.name_known(state.knowledge, inputs)]


def read_window_items(
    state: StreamState, out: Path, names: Sequence[str] | None, device: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Items of a window as the networks get them, from where they came from; None: all of them.

    Also the photos or texts that they are features of; None of other items.
    """
    origin = read_summary(version_of(out)).run.origin
    if origin is None or origin.pool is None:
        raise DataError(f"{out} does not say where the items of its window lie")
    represented = restore(state.facts.preparation, state.item_shape, device, NOTHING)
    items = read_items(
        Path(origin.pool), like=represented.shape, max_megapixels=origin.max_megapixels
    )
    if names is not None:
        row_of = {name: row for row, name in enumerate(items.names)}
        missing = [name for name in names if name not in row_of]
        if missing:
            raise DataError(f"item {missing[0]!r} is not in {origin.pool} any more; put it back")
        items = items.keep([row_of[name] for name in names])
    inputs = represented.inputs(items.inputs, Stopwatch())
    return inputs, represented.originals(items.inputs)


def check_about_last(given: Answers, state: StreamState, pointer: Pointer, path: Path) -> None:
    """Refuse answers to another window than the last one; files made by hand may leave it out.

    Numbers of windows are given again after an undo, so the mark of the answer counts, too.
    """
    version, _, answer = given.mark.removeprefix("v").partition("-")
    last = state.history[-1].answer if state.history else None
    is_last = given.window in ("", str(state.n_windows))
    if is_last and (not given.mark or answer == last):
        return
    window = f"window {given.window}" if given.window else "a window"
    if given.window.isdigit() and int(given.window) < state.n_windows:
        raise DataError(
            f"{path} answers {window}, but the last one is window {state.n_windows}, which closed "
            f"it; answer the {QUERIES} of the last window"
        )
    if version.isdigit() and int(version) > pointer.last:
        raise DataError(
            f"{path} answers {window}, which was never confirmed: its process ended before that; "
            "feed that window again with `s2osc stream window`"
        )
    raise DataError(
        f"{path} answers {window} as this stream does not have it: it was undone, never confirmed, "
        f"or is of another stream; answer the {QUERIES} of the last window, or feed that one again"
    )


def describe_answers(before: StreamState, learnt: UpdatedStream) -> Answered:
    """What ``learnt`` changed."""
    (old, new), known = (state.history[-1] for state in (before, learnt.state)), before.class_names
    n_ignored = new.ignored - old.ignored
    return Answered(
        n_labels=new.labelled - old.labelled - n_ignored,
        n_ignored=n_ignored,
        new_classes=tuple(name for name in learnt.state.class_names if name not in known),
        account=learnt.account,
        notes=learnt.notes,
        n_open=learnt.state.questions.n_open if learnt.state.questions else 0,
    )
