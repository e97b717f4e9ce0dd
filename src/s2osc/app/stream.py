"""Streams from files to files: begin one, answer for a window, learn labels, undo, rename."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.app.answer_tables import skipped_note, texts_of
from s2osc.app.classify import (
    Request,
    check_decision,
    check_request,
    choose_method,
    make_result,
    read_known,
)
from s2osc.app.extract import NOTHING, Trusted, restore
from s2osc.app.origin import Origin
from s2osc.app.report import describe_result
from s2osc.app.result import Result
from s2osc.app.result_files import read_facts, save_result
from s2osc.app.results_folder import SUMMARY, ResultsFolder, results_folder, version_of
from s2osc.data.columns import Table
from s2osc.data.images import InputShape
from s2osc.data.inputs import MAX_MEGAPIXELS, Items, encode_labels, read_items
from s2osc.errors import DataError, OutputError, collect_warnings
from s2osc.files import write_whole, writing
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.decision import number_classes
from s2osc.pipeline.method import S2OSCMethod
from s2osc.progress import Stopwatch
from s2osc.report.drawing import Question
from s2osc.settings import change, flatten
from s2osc.stream.answers import (
    QUERIES,
    Answers,
    item_questions,
    queries_table,
    read_answers,
)
from s2osc.stream.names import IGNORE, as_meant, rename_class
from s2osc.stream.open_stream import build_learner
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import StreamFacts, StreamState
from s2osc.stream.store import (
    Pointer,
    Store,
    check_may_begin,
    holds_stream,
    open_store,
    read_pointer,
    read_state,
)
from s2osc.stream.update import Account
from s2osc.stream.windows import (
    GroupOracle,
    UpdatedStream,
    ask_oracle,
    begin_stream,
    close_questions,
    open_questions,
    open_window,
    take_answers,
    take_items,
)
from s2osc.text import clean_name, clean_text
from s2osc.types import Answer, Labelled

LEARNERS_OWN = ("update.", "memory.")
"""How the names of settings begin that the learner has beside those of its method."""


class Begun(NamedTuple):
    """A new stream, and what the user should know about it."""

    state: StreamState
    n_items: int
    notes: list[str]


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


class Window(NamedTuple):
    """What a window brought."""

    result: Result
    answered: Answered | None  # the answers that a self-taught stream gave itself


def init_files(
    known: Path,
    folder: Path,
    request: Request,
    *,
    memory: int = 2_000,
) -> Begun:
    """Labelled files in, the folder of a stream out."""
    refuse_stream(folder)
    of_method, device = check_learner(request, memory)
    with collect_warnings() as notes:
        items, represented = read_known(known, of_method, device)
        labels, classes = encode_labels(items.labels or [])
        check_names(classes)
        preset, _ = choose_method(of_method, device, vectors=represented.is_vectors)
        facts = StreamFacts(
            preset=preset, shape=represented.shape.note, preparation=represented.preparation
        )
        with open_store(folder, make=True) as store:
            refuse_stream(folder)  # nor one that was begun meanwhile
            inputs = represented.inputs(items.inputs, Stopwatch())
            state = begin_stream(
                Labelled(inputs, labels),
                classes,
                build_learner(preset, request.changes, memory),
                seed=request.seed,
                device=device,
                facts=facts,
            )
            store.write(state, "the beginning")
    notes += skipped_note(items.skipped, "they are left out")
    return Begun(state, len(items), notes)


def check_learner(request: Request, memory: int) -> tuple[Request, str]:
    """The part of a request that is about the method, and the device.

    A setting of method or learner that cannot be used is refused.
    """
    of_method = {n: v for n, v in request.changes.items() if not n.startswith(LEARNERS_OWN)}
    request_of_method = replace(request, changes=of_method)
    device = check_request(request_of_method)
    preset, _ = choose_method(request_of_method, device, vectors=False)
    build_learner(preset, request.changes, memory)
    return request_of_method, device


def refuse_stream(folder: Path) -> None:
    if holds_stream(folder):
        raise OutputError(
            f"{folder} holds a stream already; give another folder, or remove this one"
        )
    check_may_begin(folder)


def check_names(classes: Sequence[str]) -> None:
    """Refuse known classes whose name means something else among answers."""
    for name in classes:
        if as_meant(name).casefold() == IGNORE:
            raise DataError(
                f"a class is called {name!r}, which marks items that are not of interest; rename it"
            )


# --- windows ---------------------------------------------------------------------------------


def window_files(
    folder: Path,
    pool: Path,
    out: Path,
    asking: QuerySettings,
    *,
    decision: Mapping[str, Any] | None = None,
    self_taught: bool = False,
    trusted: Trusted = NOTHING,
    device: str = "auto",
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
    clock: Stopwatch | None = None,
) -> Window:
    """Answer for the next window: a folder of results, and questions to answer.

    Results come first and the stream follows. Both lie on the disk first; then the
    results move into their place, and last ``stream.json`` is replaced. If anything fails, neither
    happens; a process killed between the two leaves results the stream knows nothing of, so the
    same window can be fed again. The other order could lose the questions of a confirmed window.
    Such results are recognised by ``stream`` in their summary.json, and the next ones replace them.
    """
    check_apart(folder, out)
    device, clock = resolve_device(device), clock or Stopwatch()
    if self_taught:
        asking = replace(asking, budget=0)
    with open_both(folder, out, force=force) as (store, results):
        with clock("read"):
            before = store.read(device)
        preset, method = choose_decision(before, decision or {})
        represented = restore(before.facts.preparation, before.item_shape, device, trusted)
        with clock("read"):
            items = read_items(pool, like=represented.shape, max_megapixels=max_megapixels)
        check_items(items)
        with collect_warnings() as warned:
            inputs = represented.inputs(items.inputs, clock)
            learner = replace(before.incremental, method=method)
            opened = open_window(
                before, inputs, items.names, asking, learner=learner, device=device
            )
            opened = opened._replace(
                state=with_texts(opened.state, items.names, represented.readable(items.inputs))
            )
            learnt = None
            if self_taught:
                _, learnt = ask_oracle(opened.state, GroupOracle(), device=device)
        solution = opened.recognition.solution
        asked = note_answer(
            learnt.state if learnt else opened.state,
            version=store.next_number,
            answer=digest_of(items.names, solution.answer),
            results=clean_text(os.path.abspath(out)),
        )
        after = asked if asking.budget else close_questions(asked)
        result = make_result(
            solution,
            items,
            classes=before.class_names,
            title=f"Window {after.n_windows}",
            represented=replace(represented, shape=describe_shape(represented.shape, len(items))),
            preset=preset,
            settings=flatten(method) | settings_of_learner(after),
            seed=after.seed,
            device=device,
            n_known=sum(known.n_labels for known in before.classes),
            skipped=items.skipped,
            notes=[*note_closed(before), *warned],
            seconds=clock.seconds,
        )
        result = replace(
            result,
            questions=questions_of(after, items.names),
            stream=place_in_stream(after, folder),
            origin=Origin.now(
                pool=pool,
                text_column=represented.shape.text_column or None,
                max_megapixels=max_megapixels,
            ),
        )
        clock = Stopwatch(result.seconds)
        with clock("save"):
            with results.publish(plain=[QUERIES]) as stage:
                save_result(result, stage)
                (stage / QUERIES).write_bytes(queries_table(asked if self_taught else after))
                version = store.prepare(after, f"window {after.n_windows}")
            store.confirm(version)
        result = describe_result(results, replace(result, seconds=clock.seconds))
    answered = learnt and describe_answers(opened.state, learnt)
    return Window(result, answered if answered and answered.has_any else None)


@contextmanager
def open_both(folder: Path, out: Path, *, force: bool) -> Iterator[tuple[Store, ResultsFolder]]:
    """The stream and the results of its next window, both locked.

    The stream comes first: until its lock is held, another process may confirm what lies in
    ``out``.
    """
    with open_store(folder) as store:
        pointer = read_pointer(folder)
        with results_folder(
            out,
            force=force,
            replaces=lambda version: n_unconfirmed(version, folder, pointer) is not None,
        ) as results:
            check_queries(out, n_unconfirmed(results.version, folder, pointer), force=force)
            yield store, results


def note_answer(state: StreamState, *, version: int, answer: str, results: str) -> StreamState:
    """The state with the digest of the last window's answer, its place, and its version."""
    record = replace(state.history[-1], version=version, answer=answer, results=results)
    return replace(state, history=(*state.history[:-1], record))


def check_apart(folder: Path, out: Path) -> None:
    """Refuse results among the files of the stream itself."""
    if Path(os.path.abspath(out)).is_relative_to(os.path.abspath(folder)):
        raise OutputError(f"--out is {out}, which is the stream's own folder; give another one")


def check_queries(out: Path, n_lost: int | None, *, force: bool) -> None:
    """Refuse to write over labels, but for questions that were never confirmed."""
    if force or not (out / QUERIES).exists():
        return
    if n_lost is None:
        raise OutputError(
            f"{out} holds a {QUERIES} already; give another folder, or --force to replace it"
        )
    if n_lost and holds_labels(out / QUERIES):
        raise OutputError(
            f"{out / QUERIES} holds labels for a window that was never confirmed; move the file "
            "elsewhere, feed the window again, and answer with the file"
        )


def n_unconfirmed(results: Path, folder: Path, pointer: Pointer) -> int | None:
    """How many questions there are in results whose window was never confirmed; None: no such.

    They follow the version that is still the current one, and have a number that no version has.
    A copy of the stream has both in common with it, so its folder counts as well.
    """
    try:
        stream = json.loads((results / SUMMARY).read_bytes())["stream"]
        is_lost = (
            stream["after"] == short_digest(pointer)
            and int(stream["version"]) > pointer.last
            and os.path.abspath(stream["state"]) == clean_text(os.path.abspath(folder))
        )
        return int(stream["asked"]) if is_lost else None
    except (OSError, LookupError, TypeError, ValueError):
        return None


def short_digest(pointer: Pointer) -> str:
    """A short digest of the current version."""
    return pointer.current.sha256[:16]


def holds_labels(path: Path) -> bool:
    """Whether a person may have written into a table of questions."""
    try:
        return any(read_answers(path).labels.values())
    except DataError:
        return True  # not as it was written


def choose_decision(state: StreamState, decision: Mapping[str, Any]) -> tuple[str, S2OSCMethod]:
    """Preset and method of one window, at another operating point where that is asked for."""
    preset = state.facts.preset or "auto"
    changes = {f"decision.{name}": value for name, value in decision.items()}
    method = change(state.learner.method, number_classes(changes, state.class_names))
    check_decision(preset, method, changes)
    return preset, method


def check_items(items: Items) -> None:
    """Refuse names of items under which they could not be answered."""
    for name in items.names:
        if name.startswith("group ") and name.removeprefix("group ").isdigit():
            raise DataError(
                f"an item of the window is called {name!r}, as whole groups are; rename it"
            )


def digest_of(names: Sequence[str], answer: Answer) -> str:
    """A short digest of an answer: the same for the same items, labels, groups and scores."""
    digest = hashlib.sha256("\0".join(names).encode("utf-8", errors="surrogatepass"))
    for values in (answer.labels, answer.groups, answer.unknown_score.astype(np.float32)):
        digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()[:16]


def describe_shape(shape: InputShape, n_items: int) -> InputShape:
    """The shape with a sentence on the items brought to it."""
    if shape.kind == "vectors":
        note = f"{n_items:,} vectors of {shape.n_features:,} columns"
    elif shape.kind != "images":
        note = f"{n_items:,} {'texts' if shape.kind == 'texts' else 'rows of a table'}"
    else:
        colours = "RGB" if shape.channels == 3 else "grey"
        note = f"{n_items:,} images as {shape.width}x{shape.height} {colours}"
    return replace(shape, note=note)


def with_texts(
    state: StreamState, names: Sequence[str], items: np.ndarray | Table | None
) -> StreamState:
    """The state whose questions carry what a person reads of each item, where there is any."""
    texts = texts_of(items)
    if texts is None or state.questions is None:
        return state
    text_of = dict(zip(names, texts, strict=True))
    asked = tuple(text_of[name] for name in state.questions.names)
    return replace(state, questions=replace(state.questions, texts=asked))


def note_closed(state: StreamState) -> list[str]:
    """One sentence on questions that a new window closes, or none."""
    questions = state.questions
    if not questions or not questions.n_open:
        return []
    return [
        f"{questions.n_open:,} of the {questions.n_asked:,} questions of window {state.n_windows} "
        "had no answer and are closed"
    ]


def settings_of_learner(state: StreamState) -> dict[str, Any]:
    """The hyper-parameters that the learner has beside those of its method."""
    settings = flatten(state.learner)
    return {name: value for name, value in settings.items() if name.startswith(LEARNERS_OWN)}


def place_in_stream(state: StreamState, folder: Path) -> dict[str, Any]:
    """Where in its stream a window is that is to follow the current version."""
    record = state.history[-1]
    return {
        "state": clean_text(str(folder)),
        "window": record.window,
        "version": record.version,
        "answer": record.answer,
        "asked": state.questions.n_asked if state.questions else 0,
        "new_classes": list(record.new_classes),
        "after": short_digest(read_pointer(folder)),
    }


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


def questions_of(state: StreamState, names: Sequence[str]) -> tuple[Question, ...]:
    """The items asked about, as the page shows them."""
    if not state.questions:
        return ()
    row_of = {name: row for row, name in enumerate(names)}
    rows = item_questions(state.questions, state.class_names)
    return tuple(Question(row_of[name], suggested, why) for name, _, suggested, _, why in rows)


# --- answers ---------------------------------------------------------------------------------


def answer_file(folder: Path, labels: Path, *, device: str = "auto") -> Answered | None:
    """Learn the labels in a file; None where it holds none."""
    device = resolve_device(device)
    with open_store(folder) as store:
        state, given = store.read(device), read_answers(labels)
        if not any(given.labels.values()):
            return None
        check_about_last(given, state, read_pointer(folder), labels)
        with collect_warnings() as notes:
            learnt = take_answers(state, given.labels, device=device)
        if learnt.state is not state:
            store.write(learnt.state, f"answers to window {state.n_windows}")
    answered = describe_answers(state, learnt)
    return replace(answered, notes=[*answered.notes, *notes])


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
                inputs = read_window_items(state, out, list(others), device)
                more = take_items(learnt.state, inputs, list(others.values()), device=device)
                learnt = more._replace(
                    account=more.account or learnt.account, notes=[*learnt.notes, *more.notes]
                )
        if learnt.state is state:
            return None
        store.write(learnt.state, f"labels of window {state.n_windows}")
    answered = describe_answers(state, learnt)
    return replace(answered, notes=[*answered.notes, *notes])


def read_window_items(
    state: StreamState, out: Path, names: Sequence[str], device: str
) -> np.ndarray:
    """Items of a window as the networks get them, from where they came from."""
    origin = read_facts(version_of(out)).origin
    if origin is None or origin.pool is None:
        raise DataError(f"{out} does not say where the items of its window lie")
    represented = restore(state.facts.preparation, state.item_shape, device, NOTHING)
    items = read_items(
        Path(origin.pool), like=represented.shape, max_megapixels=origin.max_megapixels
    )
    row_of = {name: row for row, name in enumerate(items.names)}
    missing = [name for name in names if name not in row_of]
    if missing:
        raise DataError(f"item {missing[0]!r} is not in {origin.pool} any more; put it back")
    rows = [row_of[name] for name in names]
    return represented.inputs(items.keep(rows).inputs, Stopwatch())


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


# --- other changes --------------------------------------------------------------------------


def undo_last(folder: Path) -> str:
    """Take the last confirmed change back; return what it was."""
    with open_store(folder) as store:
        return store.undo()


def rename_in(folder: Path, old: str, new: str) -> str:
    """Give a class of a stream another name; return the name as it is stored."""
    new = clean_name(new)
    with open_store(folder) as store:
        store.write(rename_class(store.read(), old, new), f"{old!r} renamed {new!r}")
    return new
