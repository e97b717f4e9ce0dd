"""Answer for the next window of a stream: a folder of results, and questions to answer."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.app.answer_tables import texts_of
from s2osc.app.classify import make_result
from s2osc.app.extract import NOTHING, Trusted, restore
from s2osc.app.origin import Origin, StreamPlace
from s2osc.app.report import describe_result
from s2osc.app.request import check_decision
from s2osc.app.result import Result
from s2osc.app.result_files import save_result
from s2osc.app.results_folder import SUMMARY, ResultsFolder, results_folder
from s2osc.app.stream.answer import Answered, describe_answers
from s2osc.app.stream.begin import LEARNERS_OWN
from s2osc.data.columns import Table
from s2osc.data.images import InputShape
from s2osc.data.inputs import MAX_MEGAPIXELS, Items, read_items
from s2osc.errors import DataError, OutputError, collect_warnings
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.threshold import number_classes
from s2osc.pipeline.method import S2OSCMethod
from s2osc.progress import Stopwatch
from s2osc.report.drawing import Question
from s2osc.settings import NamedSettings, change, flatten
from s2osc.stream.answers import QUERIES, item_questions, queries_table, read_answers
from s2osc.stream.queries import QuerySettings
from s2osc.stream.sources import OriginalsLearner, with_originals
from s2osc.stream.state import StreamState
from s2osc.stream.store import Pointer, Store, open_store, read_pointer
from s2osc.stream.windows import GroupOracle, ask_oracle, close_questions, open_window
from s2osc.text import clean_text
from s2osc.types import Answer


class Window(NamedTuple):
    """What a window brought."""

    result: Result
    answered: Answered | None  # the answers that a self-taught stream gave itself


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
            raw = represented.raw(items.inputs, items.inputs)
            if raw is not None and before.originals is not None:
                learner = OriginalsLearner(
                    **vars(learner),
                    window=raw.pool,
                    remembered=before.originals,
                    embed=raw.embed,
                )
            opened = open_window(
                before, inputs, items.names, asking, learner=learner, device=device
            )
            if raw is not None and before.originals is not None:
                opened = opened._replace(state=with_originals(opened.state, inputs, raw.pool))
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
            notes=[*note_closed(before), *opened.notes, *warned],
            seconds=clock.seconds,
        )
        run = replace(
            result.run,
            stream=place_in_stream(after, folder),
            origin=Origin.now(
                pool=pool,
                text_column=represented.shape.text_column or None,
                max_megapixels=max_megapixels,
            ),
        )
        result = replace(result, run=run, questions=questions_of(after, items.names))
        clock = Stopwatch(run.seconds)
        with clock("save"):
            with results.publish(plain=[QUERIES]) as stage:
                save_result(result, stage)
                (stage / QUERIES).write_bytes(queries_table(asked if self_taught else after))
                version = store.prepare(after, f"window {after.n_windows}")
            store.confirm(version)
        run = replace(run, seconds=clock.seconds)
        result = describe_result(results, replace(result, run=run))
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


def settings_of_learner(state: StreamState) -> NamedSettings:
    """The hyper-parameters that the learner has beside those of its method."""
    settings = flatten(state.learner)
    return {name: value for name, value in settings.items() if name.startswith(LEARNERS_OWN)}


def place_in_stream(state: StreamState, folder: Path) -> StreamPlace:
    """Where in its stream a window is that is to follow the current version."""
    record = state.history[-1]
    return StreamPlace(
        state=clean_text(str(folder)),
        window=record.window,
        version=record.version,
        answer=record.answer,
        asked=state.questions.n_asked if state.questions else 0,
        new_classes=tuple(record.new_classes),
        after=short_digest(read_pointer(folder)),
    )


def questions_of(state: StreamState, names: Sequence[str]) -> tuple[Question, ...]:
    """The items asked about, as the page shows them."""
    if not state.questions:
        return ()
    row_of = {name: row for row, name in enumerate(names)}
    rows = item_questions(state.questions, state.class_names)
    return tuple(Question(row_of[name], suggested, why) for name, _, suggested, _, why in rows)
