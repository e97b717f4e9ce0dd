"""Names of classes in a stream: what a label means, which names may be given, and renaming."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from s2osc.errors import DataError
from s2osc.stream.state import Questions, StreamState
from s2osc.text import clean_name

IGNORE = "ignore"
"""The label of an item that is not of interest: never learnt, its closest like not asked about."""
IN_WORDS = "not of interest"
"""Another way to write the same, with any capitals, hyphens or underscores."""
NO_CLASS = ("unknown", "unsure", "-1", "-2")
LOOKS_LIKE = 0.8
"""From this share on, items of a new name that f takes for one known class look like that class."""
SELF_TAUGHT = "new"
LEAST_LABELS = 2
"""Labelled items a new class needs; fewer wait for more."""


def names_in_use(state: StreamState) -> tuple[str, ...]:
    """Classes, and those that wait for more items."""
    return (*state.class_names, *dict.fromkeys(state.waiting.labels))


def names_ever(state: StreamState) -> tuple[str, ...]:
    """Names in use, and those that classes had before they were renamed."""
    return (*names_in_use(state), *state.former)


def as_meant(label: str, classes: Sequence[str] = ()) -> str:
    """``ignore`` for the same in words, unless a class is called so; other labels as they are.

    >>> as_meant("Not-of_interest"), as_meant("of interest"), as_meant("lynx")
    ('ignore', 'of interest', 'lynx')
    """
    return IGNORE if _plain(label) == IN_WORDS and label not in classes else label


def with_new_classes(labels: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Known classes as they are, then new ones that have enough items, in the order of names.

    >>> with_new_classes(["new 10", "a", "rare", "new 2", "new 10", "new 2"], ["a", "b"])
    ('a', 'b', 'new 2', 'new 10')
    """
    counts = Counter(labels)
    new = [name for name, n in counts.items() if name not in known and n >= LEAST_LABELS]
    return (*known, *sorted(new, key=_name_order))


def _name_order(name: str) -> list[tuple[bool, int, str]]:
    """Names sort as text, and the numbers in them as numbers."""
    parts = re.split(r"([0-9]+)", name)
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def waiting_note(late: Sequence[str]) -> str:
    names = ", ".join(repr(name) for name in dict.fromkeys(late))
    return f"too few items to learn {names} yet: kept until there are {LEAST_LABELS} of a class"


def group_word(group: int) -> str:
    """What a whole group is called among the items.

    >>> group_word(2)
    'group 2'
    """
    return f"group {group}"


def name_groups(questions: Questions, classes: Sequence[str]) -> dict[str, str]:
    """Self-taught labels: every group becomes a class of its own, numbered on from those there are.

    What a group holds of known classes, or of two new ones, is then learnt as it is: use this only
    where nobody can be asked, and watch how the classes drift.
    """
    numbered = (re.fullmatch(rf"{SELF_TAUGHT} (\d+)", name) for name in classes)
    last = max((int(found[1]) for found in numbered if found), default=0)
    return {
        group_word(group): f"{SELF_TAUGHT} {last + i}"
        for i, group in enumerate(questions.group_sizes(), start=1)
    }


def check_labels(
    labels: Iterable[str], classes: Sequence[str], former: Mapping[str, str] | None = None
) -> None:
    """Refuse labels that are no classes, former names, and one class written in two ways."""
    alike = {_plain(name): name for name in classes}
    now = {_plain(name): (name, called) for name, called in (former or {}).items()}
    for label in dict.fromkeys(labels):
        if label in classes or label == IGNORE:
            continue
        if _plain(label) == IGNORE:
            raise DataError(f"a label is {label!r}; write {IGNORE!r}, or name the class otherwise")
        if _plain(label) in NO_CLASS:
            raise DataError(
                f"a label is {label!r}, which is no class; leave it empty, or write "
                f"{IGNORE!r} for items that are not of interest"
            )
        if _plain(label) in alike:
            raise DataError(
                f"a label is {label!r}, but the class is called {alike[_plain(label)]!r}; write it "
                "so, or rename the class with `s2osc stream rename`"
            )
        if _plain(label) in now:
            name, called = now[_plain(label)]
            raise DataError(
                f"a label is {label!r}, but the class {name!r} is called {called!r} now; write "
                "that, or choose another name"
            )
        alike[_plain(label)] = label


def _plain(name: str) -> str:
    """A name without what people, and tables of numbers, write in different ways.

    >>> _plain(" Ankle-Boot "), _plain("A-"), _plain("2.0")
    ('ankle boot', 'a-', '2')
    """
    words = re.sub(r"(?<=\w)[-_](?=\w)", " ", name).casefold().split()
    return re.sub(r"^(-?\d+)\.0+$", r"\1", " ".join(words))


def lookalike_notes(
    questions: Questions, fresh: Mapping[int, str], classes: Sequence[str]
) -> list[str]:
    """A sentence on each new class whose items the model takes for one it knows."""
    notes = []
    for label in dict.fromkeys(fresh.values()):
        if label in classes or label == IGNORE:
            continue
        suggested = questions.suggested[[row for row, given in fresh.items() if given == label]]
        taken = np.bincount(suggested[suggested >= 0], minlength=1)
        if taken.max() >= LOOKS_LIKE * len(suggested):
            notes.append(
                f"{int(taken.max())} of {len(suggested)} items of the new class {label!r} look "
                f"like {classes[int(taken.argmax())]!r}; if that is its new name, undo and "
                "rename it"
            )
    return notes


def rename_class(state: StreamState, old: str, new: str) -> StreamState:
    """The same class under another name, also one that waits; its former name stays refused."""
    names, new = names_in_use(state), clean_name(new)
    old = old if old in names else clean_name(old)
    if old not in names:
        raise DataError(f"there is no class {old!r}; there is {', '.join(names)}")
    check_new_name(old, new, names)

    def now(name: str) -> str:
        return new if name == old else name

    waiting, questions = state.waiting, state.questions
    former = {name: now(called) for name, called in state.former.items()} | {old: new}
    former.pop(new, None)
    return replace(
        state,
        classes=tuple(replace(known, name=now(known.name)) for known in state.classes),
        waiting=replace(waiting, labels=tuple(map(now, waiting.labels))),
        questions=questions and replace(questions, answers=tuple(map(now, questions.answers))),
        history=tuple(record.renamed(old, new) for record in state.history),
        former=former,
    )


def check_new_name(old: str, new: str, names: Sequence[str]) -> None:
    """Refuse a name that is none, that means something else, or that is in use."""
    if new == old:
        raise DataError(f"the class is called {old!r} already; give another name")
    if not new:
        raise DataError("the new name of the class is empty; give another name")
    if _plain(new) in (IGNORE, IN_WORDS, *NO_CLASS):
        raise DataError(
            f"a class cannot be called {new!r}, which has a meaning of its own; give another name"
        )
    for name in names:
        if name != old and _plain(name) == _plain(new):
            raise DataError(f"there is a class {name!r} already; give another name")
