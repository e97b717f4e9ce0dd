"""The loop of a stream: a window comes, items are asked about, answers are learnt, the next comes.

``follow`` is the whole loop, with an ``Oracle`` that answers. Its two steps, ``open_window`` and
``take_answers``, each take a state and give the next, so that whoever keeps states
(``open_stream``, ``store``) can stop between them and wait for a person.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from s2osc.errors import DataError
from s2osc.lazy import lazily
from s2osc.pipeline.solution import Solution
from s2osc.progress import Stopwatch
from s2osc.seeding import derive, rng
from s2osc.stream.answers import check_unchanged, count_written, match_answers, resolve_answers
from s2osc.stream.groups import with_earlier_numbers
from s2osc.stream.history import UpdateRecord, WindowAudit, WindowRecord
from s2osc.stream.learner import Learner, Recognition
from s2osc.stream.names import (
    IGNORE,
    as_meant,
    check_labels,
    lookalike_notes,
    name_groups,
    names_ever,
    names_in_use,
    waiting_note,
    with_new_classes,
)
from s2osc.stream.queries import Queries, QuerySettings, choose_queries
from s2osc.stream.state import (
    KnownClass,
    Questions,
    StreamFacts,
    StreamState,
    Waiting,
    audit_classes,
)
from s2osc.stream.update import Account
from s2osc.types import UNKNOWN, Labelled

neighbors = lazily("sklearn.neighbors")

MOST_IGNORED = 300


class OpenWindow(NamedTuple):
    """A window that was recognised, and the questions about it."""

    state: StreamState
    recognition: Recognition
    queries: Queries
    notes: list[str]  # on groups that were there before


class UpdatedStream(NamedTuple):
    """The state after answers, what the update did, and what the user should know."""

    state: StreamState
    account: Account | None  # None: nothing was learnt, or nothing is measured
    notes: list[str]


# --- the loop --------------------------------------------------------------------------------


class Oracle(Protocol):
    """Who answers. ``state`` has the questions, the number of their window and the classes."""

    @property
    def is_person(self) -> bool:
        """Whether its answers count as labels that were asked for."""

    def ask(self, state: StreamState) -> Mapping[str, str]:
        """Labels of items, or of whole groups; what is left out stays without an answer."""


@dataclass(frozen=True)
class TruthOracle:
    """The truth in place of a person; items are called by their rows, as in ``follow``."""

    labels: Sequence[Sequence[str]]  # of the items of every window
    is_person: bool = True

    def ask(self, state: StreamState) -> dict[str, str]:
        questions, truth = open_questions(state), self.labels[state.n_windows - 1]
        return {name: truth[int(name)] for name in questions.names[: questions.n_asked]}


@dataclass(frozen=True)
class GroupOracle:
    """Nobody is asked: every group becomes a class of its own."""

    is_person: bool = False

    def ask(self, state: StreamState) -> dict[str, str]:
        return name_groups(open_questions(state), names_ever(state))


class WindowResult(NamedTuple):
    """What ``follow`` yields for a window."""

    before: StreamState
    window: OpenWindow
    answers: Mapping[str, str]
    updated: UpdatedStream


def follow(
    windows: Iterable[np.ndarray],
    state: StreamState,
    oracle: Oracle,
    asking: QuerySettings,
    *,
    device: str,
    clock: Callable[[str], AbstractContextManager[None]],
    seed_of: Callable[[StreamState], int] | None = None,
) -> Iterator[WindowResult]:
    """Yield one result per window. A label comes after the window was recognised.

    ``seed_of`` gives the seed of an update; without it, that of ``take_answers``.
    """
    for inputs in windows:
        rows = [str(row) for row in range(len(inputs))]
        with clock("recognise"):
            window = open_window(state, inputs, rows, asking, device=device)
        with clock("learn"):
            answers, updated = ask_oracle(
                window.state,
                oracle,
                seed=seed_of(window.state) if seed_of else None,
                device=device,
            )
        yield WindowResult(state, window, answers, updated)
        state = updated.state


def ask_oracle(
    state: StreamState, oracle: Oracle, *, seed: int | None = None, device: str
) -> tuple[Mapping[str, str], UpdatedStream]:
    """The answers of an oracle to the open questions, and the stream that has learnt them."""
    answers = oracle.ask(state) if state.questions else {}
    if not answers:
        return answers, UpdatedStream(state, None, [])
    return answers, take_answers(
        state, answers, by_person=oracle.is_person, seed=seed, device=device
    )


# --- windows ---------------------------------------------------------------------------------


def begin_stream(
    known: Labelled,
    names: Sequence[str],
    learner: Learner,
    *,
    seed: int,
    device: str,
    facts: StreamFacts | None = None,
) -> StreamState:
    """A stream before its first window; ``names`` are those of the classes 0 .. C-1."""
    knowledge = learner.begin(known, seed=derive(seed, "begin"), device=device)
    return first_state(known, names, learner, knowledge, seed=seed, facts=facts)


def first_state(
    known: Labelled,
    names: Sequence[str],
    learner: Learner,
    knowledge: Any,
    *,
    seed: int,
    facts: StreamFacts | None = None,
) -> StreamState:
    """The same where the learner has begun already."""
    sizes = np.bincount(known.labels)
    return StreamState(
        learner=learner,
        knowledge=knowledge,
        classes=tuple(KnownClass(name, 0, int(n)) for name, n in zip(names, sizes, strict=True)),
        seed=seed,
        waiting=Waiting(known.inputs[:0], ()),
        ignored=known.inputs[:0],
        facts=facts or StreamFacts(),
    )


def window_seed(state: StreamState, number: int) -> int:
    """The seed of a window, from 1."""
    return derive(state.seed, f"window {number}")


def open_window(
    state: StreamState,
    window: np.ndarray,
    names: Sequence[str],
    asking: QuerySettings,
    *,
    learner: Learner | None = None,
    device: str,
) -> OpenWindow:
    """Answer for a window and choose what to ask. Questions of the window before it are closed.

    ``learner`` is one for this window alone, in place of the stream's own.
    """
    check_window(state, window, names)
    clock = Stopwatch()
    seed = window_seed(state, state.n_windows + 1)
    with clock("window"):
        recognition = (learner or state.learner).recognise(
            state.knowledge, window, seed=seed, device=device
        )
        recognition, notes = with_earlier_numbers(recognition, state.questions)
        queries = choose_queries(
            asking,
            recognition.predictions,
            recognition.embeddings,
            groups=recognition.groups,
            may_ask=~is_ignored(state, window),
            seed=seed,
        )
    record = record_window(state, recognition, queries, clock.seconds["window"])
    questions = gather_questions(window, names, recognition, queries)
    opened = replace(
        state,
        knowledge=recognition.state,
        history=(*state.history, record),
        questions=questions,
    )
    return OpenWindow(opened, recognition, queries, notes)


def check_window(state: StreamState, window: np.ndarray, names: Sequence[str]) -> None:
    """Refuse what cannot be a window of this stream."""
    if len(window) < 2:
        found = "is empty" if not len(window) else "has one item"
        raise DataError(f"the window {found}; give at least two items, or wait for more")
    check_shape(state, window, "the window holds")
    if "" in names:
        raise DataError("an item of the window has no name; give each its own name")
    if len(set(names)) < len(names):
        double = Counter(names).most_common(1)[0][0]
        raise DataError(f"two items of the window are called {double!r}; give each its own name")


def check_shape(state: StreamState, inputs: np.ndarray, what: str) -> None:
    """Refuse items unlike those the stream began with."""
    if inputs.shape[1:] != state.item_shape or inputs.dtype != state.ignored.dtype:
        raise DataError(
            f"{what} items of shape {inputs.shape[1:]} ({inputs.dtype}); the stream began "
            f"with items of shape {state.item_shape} ({state.ignored.dtype}); give such items"
        )


def is_ignored(state: StreamState, window: np.ndarray) -> np.ndarray:
    """(n,) whether an item is like those a person is not interested in, as f sees both."""
    if len(state.ignored) <= 2:
        return np.zeros(len(window), bool)
    knowledge = state.knowledge
    others, items = (knowledge.outputs(of).embeddings for of in (state.ignored, window))
    search = neighbors.NearestNeighbors(n_neighbors=2).fit(others)
    among_others = search.kneighbors(others)[0][:, 1]
    distance = search.kneighbors(items, n_neighbors=1)[0][:, 0]
    return np.asarray(distance <= np.median(among_others))


def gather_questions(
    window: np.ndarray, names: Sequence[str], recognition: Recognition, queries: Queries
) -> Questions | None:
    """What can be answered: items asked about, in their order, then others that are in a group."""
    labels, asked = recognition.predictions.labels, set(queries.rows.tolist())
    others = [row for row in np.flatnonzero(labels == UNKNOWN).tolist() if row not in asked]
    rows = np.array([*queries.rows.tolist(), *others], int)
    if not len(rows):
        return None
    return Questions(
        names=tuple(names[row] for row in rows),
        inputs=window[rows],
        groups=groups_in(recognition)[rows],
        suggested=labels[rows],
        why=(*queries.why, *[""] * len(others)),
        answers=("",) * len(rows),
    )


def groups_in(recognition: Recognition) -> np.ndarray:
    """(n,) the groups; all that is unknown is one where the method has none."""
    if recognition.groups is not None:
        return recognition.groups
    return np.where(recognition.predictions.labels == UNKNOWN, 0, -1)


def record_window(
    state: StreamState, recognition: Recognition, queries: Queries, seconds: float
) -> WindowRecord:
    """What was found, how far it can be trusted, what was asked."""
    labels, recogniser = recognition.predictions.labels, recognition.recogniser
    solution = recogniser if isinstance(recogniser, Solution) else None
    audit = solution.audit(state.class_names) if solution else None
    return WindowRecord(
        window=state.n_windows + 1,
        items=len(labels),
        unknown=int(np.sum(labels == UNKNOWN)),
        groups=int(groups_in(recognition).max(initial=-1)) + 1,
        k=solution.k if solution else None,
        asked=len(queries.rows),
        seconds=round(seconds, 2),
        audit=WindowAudit.of(audit) if audit else None,
    )


# --- answers ---------------------------------------------------------------------------------


def take_answers(
    state: StreamState,
    answers: Mapping[str, str],
    *,
    by_person: bool = True,
    seed: int | None = None,
    device: str,
) -> UpdatedStream:
    """Learn answers. ``answers`` maps items, or ``group N``, to labels.

    A label is a class, known or new, or ``ignore``; an empty one is no answer. A group's label is
    that of all its items which have none of their own.
    """
    questions, names = open_questions(state), names_in_use(state)
    answers = match_answers(questions, answers)
    answers = {item: as_meant(label, names) for item, label in answers.items()}
    check_labels((x for x in answers.values() if x.strip()), names, state.former)
    given = resolve_answers(questions, answers)
    check_unchanged(questions, given)
    fresh = {row: label for row, label in given.items() if not questions.answers[row]}
    if not fresh:
        return UpdatedStream(state, None, ["there is no new answer: nothing was learnt"])
    labels = tuple(fresh.get(row, before) for row, before in enumerate(questions.answers))
    rows = sorted(fresh)
    return take_items(
        replace(state, questions=replace(questions, answers=labels)),
        questions.inputs[rows],
        [fresh[row] for row in rows],
        notes=lookalike_notes(questions, fresh, state.class_names),
        n_written=count_written(questions, answers, fresh) if by_person else 0,
        seed=seed,
        device=device,
    )


def close_questions(state: StreamState) -> StreamState:
    """The same where nothing may be answered any more."""
    return replace(state, questions=None)


def take_items(
    state: StreamState,
    inputs: np.ndarray,
    labels: Sequence[str],
    *,
    notes: Sequence[str] = (),
    n_written: int | None = None,
    seed: int | None = None,
    device: str,
) -> UpdatedStream:
    """Learn labelled items, asked about or not; those that are not of interest are set aside.

    ``n_written`` is how many answers a person gave for them; None: one for each.
    """
    names = names_in_use(state)
    labels = [as_meant(label, names) for label in labels]
    check_labels(labels, names, state.former)
    check_shape(state, inputs, "there are labels for")
    uninteresting = np.array([label == IGNORE for label in labels], bool)
    counts = {
        "answered": len(labels) if n_written is None else n_written,
        "labelled": len(labels),
        "ignored": int(uninteresting.sum()),
    }
    updated = learn_items(
        replace(state, ignored=sample_ignored(state, inputs[uninteresting])),
        inputs[~uninteresting],
        [label for label in labels if label != IGNORE],
        counts,
        seed=seed,
        device=device,
    )
    return updated._replace(notes=[*notes, *updated.notes])


def open_questions(state: StreamState) -> Questions:
    if state.questions is None:
        raise DataError(
            "no questions are open: the last window asked about nothing, or there was none yet; "
            "feed a window first, with a budget above 0"
        )
    return state.questions


def sample_ignored(state: StreamState, items: np.ndarray) -> np.ndarray:
    """The items that are not of interest, a limited number of them, old and new ones alike."""
    together = np.concatenate([state.ignored, items])
    random = rng(state.seed, f"ignored {state.n_windows}")
    return together[np.sort(random.permutation(len(together))[:MOST_IGNORED])]


def learn_items(
    state: StreamState,
    inputs: np.ndarray,
    labels: Sequence[str],
    counts: Mapping[str, int],
    *,
    seed: int | None,
    device: str,
) -> UpdatedStream:
    """The state after labelled items; new classes join where they have enough of them."""
    inputs = np.concatenate([state.waiting.inputs, inputs])
    labels = [*state.waiting.labels, *labels]
    names = with_new_classes(labels, state.class_names)
    number = {name: c for c, name in enumerate(names)}
    ready = np.array([label in number for label in labels], bool)
    late = [label for label in labels if label not in number]
    account, knowledge, clock = None, state.knowledge, Stopwatch()
    if ready.any():
        answers = Labelled(
            inputs[ready], np.array([number[label] for label in labels if label in number])
        )
        if seed is None:
            seed = derive(state.seed, f"answers {state.n_windows} {labels_so_far(state)}")
        with clock("update"):
            knowledge = state.learner.learn(state.knowledge, answers, seed=seed, device=device)
        account = state.learner.account(knowledge)
    state = replace(
        state,
        knowledge=knowledge,
        classes=count_labels(state, names, labels),
        waiting=Waiting(inputs[~ready], tuple(late)),
    )
    state = record_update(state, account, counts, clock.seconds.get("update", 0.0))
    return UpdatedStream(state, account, [waiting_note(late)] if late else [])


def labels_so_far(state: StreamState) -> int:
    return sum(known.n_labels for known in state.classes)


def count_labels(
    state: StreamState, names: Sequence[str], labels: Sequence[str]
) -> tuple[KnownClass, ...]:
    """The classes with the labels they have by now."""
    before = {known.name: known for known in state.classes}
    counted = []
    for name in names:
        known = before.get(name, KnownClass(name, state.n_windows, 0))
        counted.append(replace(known, n_labels=known.n_labels + labels.count(name)))
    return tuple(counted)


def record_update(
    state: StreamState, account: Account | None, counts: Mapping[str, int], seconds: float
) -> StreamState:
    """Add to the record of the last window what was learnt after it."""
    if not state.history:
        return state
    last = state.history[-1]
    last = replace(last, **{name: getattr(last, name) + n for name, n in counts.items()})
    if account is not None:
        joined = (known.name for known in state.classes if known.since == state.n_windows)
        last = replace(
            last,
            new_classes=tuple(joined),
            updates=(*last.updates, UpdateRecord(**vars(account), seconds=round(seconds, 2))),
            classes=audit_classes(state.knowledge, state.class_names),
        )
    return replace(state, history=(*state.history[:-1], last))
