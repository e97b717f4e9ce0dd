"""The loop of a stream: a window comes, items are asked about, answers are learnt, the next comes.

Every step takes a state and gives the next; whoever keeps states (``open_stream``, ``store``) can
stop between any two.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.neighbors import NearestNeighbors

from s2osc.errors import DataError
from s2osc.pipeline.method import Solution
from s2osc.progress import Stopwatch
from s2osc.seeding import derive, rng
from s2osc.stream.incremental import IncrementalS2OSC
from s2osc.stream.names import (
    IGNORE,
    as_meant,
    check_labels,
    group_word,
    lookalikes,
    name_groups,
    names_ever,
    names_in_use,
)
from s2osc.stream.queries import Queries, check_asking, choose_queries
from s2osc.stream.state import Asked, KnownClass, StreamState, Waiting, audit_classes
from s2osc.stream.update import Account
from s2osc.text import match_ids
from s2osc.types import UNKNOWN, Answer, Labelled

LEAST_LABELS = 2
"""Labelled items a new class needs; fewer wait for more."""
MOST_IGNORED = 300


@dataclass(frozen=True)
class QuerySettings:
    """How many items of a window a person is asked about, and which."""

    budget: int = 200
    strategy: str = "representative"

    def __post_init__(self) -> None:
        check_asking(self.strategy, self.budget)


class Opened(NamedTuple):
    """A window with its answer and the questions about it."""

    state: StreamState
    solution: Solution
    queries: Queries


class Learnt(NamedTuple):
    """The state after answers, what the update did, and what the user should know."""

    state: StreamState
    account: Account | None  # None: there was nothing to learn
    notes: list[str]


def begin_stream(
    known: Labelled,
    names: Sequence[str],
    learner: IncrementalS2OSC,
    *,
    seed: int,
    device: str,
    facts: Mapping[str, Any] | None = None,
) -> StreamState:
    """A stream before its first window; ``names`` are those of the classes 0 .. C-1."""
    knowledge = learner.begin(known, seed=derive(seed, "begin"), device=device)
    sizes = np.bincount(known.labels)
    return StreamState(
        learner,
        knowledge,
        tuple(KnownClass(name, 0, int(n)) for name, n in zip(names, sizes, strict=True)),
        seed,
        Waiting(known.inputs[:0], ()),
        known.inputs[:0],
        facts=dict(facts or {}),
    )


def open_window(
    state: StreamState,
    window: np.ndarray,
    names: Sequence[str],
    asking: QuerySettings,
    *,
    device: str,
) -> Opened:
    """Answer for a window and choose what to ask. Questions of the window before it are closed."""
    check_window(state, window, names)
    clock = Stopwatch()
    seed = derive(state.seed, f"window {state.n_windows + 1}")
    with clock("window"):
        solution = state.learner.recognise(state.knowledge, window, seed=seed, device=device)
        answer = solution.answer
        queries = choose_queries(
            *(asking.strategy, answer, solution.embeddings, asking.budget),
            groups=answer.groups,
            may_ask=~is_ignored(state, window),
            seed=seed,
        )
    entry = describe_window(state, solution, queries, clock.seconds["window"])
    asked = gather_questions(window, names, answer, queries)
    return Opened(replace(state, history=(*state.history, entry), asked=asked), solution, queries)


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
    teacher = state.knowledge.teacher
    others, items = teacher.outputs(state.ignored).embeddings, teacher.outputs(window).embeddings
    search = NearestNeighbors(n_neighbors=2).fit(others)
    among_others = search.kneighbors(others)[0][:, 1]
    distance = search.kneighbors(items, n_neighbors=1)[0][:, 0]
    return np.asarray(distance <= np.median(among_others))


def gather_questions(
    window: np.ndarray, names: Sequence[str], answer: Answer, queries: Queries
) -> Asked | None:
    """What can be answered: items asked about, in their order, then others that are in a group."""
    asked = set(queries.rows.tolist())
    others = [row for row in np.flatnonzero(answer.is_unknown).tolist() if row not in asked]
    rows = np.array([*queries.rows.tolist(), *others], int)
    if not len(rows):
        return None
    return Asked(
        names=tuple(names[row] for row in rows),
        inputs=window[rows],
        groups=answer.groups[rows],
        suggested=np.where(answer.is_unknown[rows], UNKNOWN, answer.labels[rows]),
        why=(*queries.why, *[""] * len(others)),
        answers=("",) * len(rows),
    )


def describe_window(
    state: StreamState, solution: Solution, queries: Queries, seconds: float
) -> dict[str, Any]:
    """The entry of the history: what was found, how far it can be trusted, what was asked."""
    answer, audit = solution.answer, solution.audit(state.class_names)
    told: dict[str, Any] = {
        "window": state.n_windows + 1,
        "items": len(answer.labels),
        "unknown": int(answer.is_unknown.sum()),
        "groups": int(answer.groups.max(initial=-1)) + 1,
        "k": solution.k,
        "asked": len(queries.rows),
        "answered": 0,  # answers a person wrote: of items, and of whole groups
        "labelled": 0,  # items that have a label by them, ignored ones among them
        "ignored": 0,
        "new_classes": [],
        "updates": [],
        "seconds": round(seconds, 2),
    }
    if audit:
        shown = ("nothing_unknown", "unknown_share", "false_alarm", "known_accuracy")
        record = audit.to_json()
        told["audit"] = {name: record[name] for name in shown}
    return told


# --- answers ---------------------------------------------------------------------------------


def take_answers(
    state: StreamState, answers: Mapping[str, str], *, device: str, seconds_of: Stopwatch
) -> Learnt:
    """Learn what a person says. ``answers`` maps items, or ``group N``, to labels.

    A label is a class, known or new, or ``ignore``; an empty one is no answer. A group's label is
    that of all its items which have none of their own.
    """
    asked, names = open_questions(state), names_in_use(state)
    answers = match_answers(asked, answers)
    answers = {item: as_meant(label, names) for item, label in answers.items()}
    check_labels((x for x in answers.values() if x.strip()), names, state.former)
    given = resolve_answers(asked, answers)
    check_unchanged(asked, given)
    fresh = {row: label for row, label in given.items() if not asked.answers[row]}
    if not fresh:
        return Learnt(state, None, ["there is no new answer: nothing was learnt"])
    notes = lookalikes(asked, fresh, state.class_names)
    told = tuple(fresh.get(row, before) for row, before in enumerate(asked.answers))
    rows = sorted(fresh)
    return take_items(
        replace(state, asked=replace(asked, answers=told)),
        asked.inputs[rows],
        [fresh[row] for row in rows],
        notes,
        n_written=count_written(asked, answers, fresh),
        device=device,
        clock=seconds_of,
    )


def teach_itself(state: StreamState, *, device: str, seconds_of: Stopwatch) -> Learnt:
    """Every group becomes a class of its own. Nobody is asked: close the questions afterwards."""
    names = name_groups(state.asked, names_ever(state)) if state.asked else {}
    if not names:
        return Learnt(state, None, [])
    learnt = take_answers(state, names, device=device, seconds_of=seconds_of)
    entry = learnt.state.history[-1] | {"answered": 0}  # nobody wrote these labels
    return learnt._replace(state=replace(learnt.state, history=(*learnt.state.history[:-1], entry)))


def close_questions(state: StreamState) -> StreamState:
    """The same where nothing may be answered any more."""
    return replace(state, asked=None)


def count_written(asked: Asked, answers: Mapping[str, str], fresh: Mapping[int, str]) -> int:
    """How many of the answers told something new: a named group is one, however many it covers."""
    row_of = {name: row for row, name in enumerate(asked.names)}
    own = {row_of[name] for name, label in answers.items() if name in row_of and label.strip()}
    groups = {int(asked.groups[row]) for row in fresh if row not in own}
    return len(own & fresh.keys()) + len(groups)


def take_items(
    state: StreamState,
    inputs: np.ndarray,
    labels: Sequence[str],
    notes: list[str],
    *,
    n_written: int | None = None,
    device: str,
    clock: Stopwatch,
) -> Learnt:
    """Learn labelled items, asked about or not; those that are not of interest are set aside.

    ``n_written`` is how many answers a person gave for them; None: one for each.
    """
    names = names_in_use(state)
    labels = [as_meant(label, names) for label in labels]
    check_labels(labels, names, state.former)
    check_shape(state, inputs, "there are labels for")
    uninteresting = np.array([label == IGNORE for label in labels], bool)
    return learn_items(
        replace(state, ignored=keep_ignored(state, inputs[uninteresting])),
        inputs[~uninteresting],
        [label for label in labels if label != IGNORE],
        notes,
        n_ignored=int(uninteresting.sum()),
        n_written=len(labels) if n_written is None else n_written,
        device=device,
        clock=clock,
    )


def open_questions(state: StreamState) -> Asked:
    if state.asked is None:
        raise DataError(
            "no questions are open: the last window asked about nothing, or there was none yet; "
            "feed a window first, with a budget above 0"
        )
    return state.asked


def match_answers(asked: Asked, answers: Mapping[str, str]) -> dict[str, str]:
    """Answers by the items and groups they are about, also where a spreadsheet changed a name."""
    there = [*asked.names, *map(group_word, asked.group_sizes())]
    matched = match_ids(answers, there)
    for name in answers:
        if name not in matched:
            raise DataError(
                f"item {name!r} was not asked about in the last window; "
                "answer items of its queries.csv, or whole groups such as 'group 0'"
            )
    return {matched[name]: label for name, label in answers.items()}


def resolve_answers(asked: Asked, answers: Mapping[str, str]) -> dict[int, str]:
    """The label of each row: its own or that of its group; empty ones are left out."""
    row_of = {name: row for row, name in enumerate(asked.names)}
    groups = {group_word(group): group for group in asked.group_sizes()}
    own, of_group = {}, {}
    for name, label in answers.items():
        if not label.strip():
            continue
        if name in row_of:
            own[row_of[name]] = label
        else:
            of_group[groups[name]] = label
    for group, label in of_group.items():
        check_group_unchanged(asked, group, label)
    by_group = {
        row: of_group[group] for row, group in enumerate(asked.groups.tolist()) if group in of_group
    }
    # What was said of an item before stands against what its group is called now.
    by_group = {row: label for row, label in by_group.items() if not asked.answers[row]}
    return by_group | own


def check_unchanged(asked: Asked, given: Mapping[int, str]) -> None:
    for row, label in given.items():
        before = asked.answers[row]
        if before and before != label:
            raise DataError(
                f"item {asked.names[row]!r} was labelled {before!r} before and {label!r} now; "
                "leave it as it was, or take the last answers back with `s2osc stream undo`"
            )


def check_group_unchanged(asked: Asked, group: int, label: str) -> None:
    """Refuse a new name for a group all of whose items were called otherwise."""
    said = {asked.answers[row] for row in np.flatnonzero(asked.groups == group)}
    if "" not in said and label not in said:
        raise DataError(
            f"{group_word(group)!r} is called {label!r} now, but all of its items were labelled "
            f"{' or '.join(map(repr, sorted(said)))} before; leave it as it was, or take the last "
            "answers back with `s2osc stream undo`"
        )


def keep_ignored(state: StreamState, items: np.ndarray) -> np.ndarray:
    """The items that are not of interest, a limited number of them, old and new ones alike."""
    together = np.concatenate([state.ignored, items])
    random = rng(state.seed, f"ignored {state.n_windows}")
    return together[np.sort(random.permutation(len(together))[:MOST_IGNORED])]


def learn_items(
    state: StreamState,
    inputs: np.ndarray,
    labels: Sequence[str],
    notes: list[str],
    *,
    n_ignored: int = 0,
    n_written: int,
    device: str,
    clock: Stopwatch,
) -> Learnt:
    """f and memory after labelled items; new classes join where they have enough of them."""
    inputs = np.concatenate([state.waiting.inputs, inputs])
    labels = [*state.waiting.labels, *labels]
    counted = {
        "answered": n_written,
        "labelled": len(labels) - len(state.waiting.labels) + n_ignored,
        "ignored": n_ignored,
    }
    names = number_classes(labels, state.class_names)
    number = {name: c for c, name in enumerate(names)}
    ready = np.array([label in number for label in labels], bool)
    late = [label for label in labels if label not in number]
    if late:
        notes = [*notes, tell_waiting(late)]
    account, knowledge = None, state.knowledge
    if ready.any():
        answers = Labelled(
            inputs[ready], np.array([number[label] for label in labels if label in number])
        )
        seed = derive(state.seed, f"answers {state.n_windows} {labels_so_far(state)}")
        with clock("update"):
            knowledge, account = state.learner.learn(
                state.knowledge, answers, seed=seed, device=device
            )
    state = replace(
        state,
        knowledge=knowledge,
        classes=count_labels(state, names, labels),
        waiting=Waiting(inputs[~ready], tuple(late)),
    )
    return Learnt(
        record_update(state, account, counted, clock.seconds.get("update", 0.0)),
        account,
        notes,
    )


def number_classes(labels: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Known classes as they are, then new ones that have enough items, in order of appearance.

    >>> number_classes(["new", "a", "rare", "new"], ["a", "b"])
    ('a', 'b', 'new')
    """
    counts: dict[str, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    return (*known, *(x for x, n in counts.items() if x not in known and n >= LEAST_LABELS))


def tell_waiting(late: Sequence[str]) -> str:
    names = ", ".join(repr(name) for name in dict.fromkeys(late))
    return f"too few items to learn {names} yet: kept until there are {LEAST_LABELS} of a class"


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
    state: StreamState, account: Account | None, counted: Mapping[str, int], seconds: float
) -> StreamState:
    """Write into the entry of the last window what was learnt after it."""
    if not state.history:
        return state
    entry = dict(state.history[-1])
    entry["labelled"] = n_labelled(entry)
    for name, n in counted.items():
        entry[name] += n
    if account is not None:
        since = [known.name for known in state.classes if known.since == state.n_windows]
        entry["new_classes"] = since
        entry["updates"] = [
            *entry["updates"],
            account.as_dict() | {"seconds": round(seconds, 2)},
        ]
        entry["classes"] = audit_classes(state.knowledge, state.class_names)
    return replace(state, history=(*state.history[:-1], entry))


def n_labelled(entry: Mapping[str, Any]) -> int:
    """Items of a window that have a label; entries of older versions count them as answers."""
    return int(entry.get("labelled", entry["answered"]))
