"""Questions and answers: queries.csv, as a spreadsheet leaves it, and what the answers are about.

the file      ``queries_table`` writes the questions, ``read_answers`` reads the labels
their items   ``match_answers`` finds the items they name, ``resolve_answers`` the label of each
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.data.answers import label_table, read_labels
from s2osc.errors import DataError
from s2osc.stream.names import group_word
from s2osc.stream.state import Questions, StreamState
from s2osc.text import match_ids

QUERIES = "queries.csv"
COLUMNS = ("item", "label", "suggested", "group", "why", "window", "mark")
TEXT = "text"
"""A further column, where items are texts or rows of a table."""


def queries_table(state: StreamState) -> bytes:
    """The questions as a table to write labels into: whole groups first, then items."""
    questions, record = state.questions, state.history[-1]
    rows = (
        [*group_questions(questions), *item_questions(questions, state.class_names)]
        if questions
        else []
    )
    # A letter at its beginning: no spreadsheet takes the mark for a number.
    mark = f"v{record.version}-{record.answer}" if record.answer else ""
    if questions is None or questions.texts is None:
        return label_table(COLUMNS, ([*row, state.n_windows, mark] for row in rows))
    texts = dict(zip(questions.names, questions.texts, strict=True))
    return label_table(
        (*COLUMNS, TEXT),
        ([*row, state.n_windows, mark, texts.get(row[0], "")] for row in rows),
    )


def group_questions(questions: Questions) -> Iterator[list[Any]]:
    """A row for each group, with the label all of its items have where they have one."""
    for group, n in questions.group_sizes().items():
        labels = {questions.answers[row] for row in np.flatnonzero(questions.groups == group)}
        why = f"names all {n:,} items of the group that have no label of their own"
        yield [group_word(group), labels.pop() if len(labels) == 1 else "", "", group, why]


def item_questions(questions: Questions, classes: Sequence[str]) -> Iterator[list[Any]]:
    """A row for each item that is asked about."""
    for row in range(questions.n_asked):
        suggested, group = int(questions.suggested[row]), int(questions.groups[row])
        yield [
            questions.names[row],
            questions.answers[row],
            classes[suggested] if suggested >= 0 else "",
            group if group >= 0 else "",
            questions.why[row],
        ]


class Answers(NamedTuple):
    """The labels in a file, and the window that they are about."""

    labels: dict[str, str]  # of items and groups; "" where there is none
    window: str  # the window it is about; "" where the file has no such column
    mark: str = ""  # of that window's answer; "" likewise


def read_answers(path: Path) -> Answers:
    """The columns `item` and `label` of a CSV file as spreadsheets write it; others are free."""
    labels, found, _ = read_labels(path, like=f"a window's {QUERIES}", others=("window", "mark"))
    about = {name: {_whole(value) for value in values} for name, values in found.items()}
    for values in about.values():
        if len(values) > 1:
            raise DataError(
                f"{path} answers several windows ({', '.join(sorted(values))}); "
                "give a file for each"
            )
    return Answers(labels, window="".join(about["window"]), mark="".join(about["mark"]))


def _whole(cell: str) -> str:
    """A number as it was written before a table of floats held it.

    >>> _whole("1.0"), _whole("12"), _whole("1.5")
    ('1', '12', '1.5')
    """
    return re.sub(r"^(\d+)\.0+$", r"\1", cell)


# --- what answers are about ------------------------------------------------------------------


def match_answers(questions: Questions, answers: Mapping[str, str]) -> dict[str, str]:
    """Answers by the items and groups they are about, also where a spreadsheet changed a name."""
    there = [*questions.names, *map(group_word, questions.group_sizes())]
    matched = match_ids(answers, there)
    for name in answers:
        if name not in matched:
            raise DataError(
                f"item {name!r} was not asked about in the last window; "
                "answer items of its queries.csv, or whole groups such as 'group 0'"
            )
    return {matched[name]: label for name, label in answers.items()}


def resolve_answers(questions: Questions, answers: Mapping[str, str]) -> dict[int, str]:
    """The label of each row: its own or that of its group; empty ones are left out."""
    row_of = {name: row for row, name in enumerate(questions.names)}
    groups = {group_word(group): group for group in questions.group_sizes()}
    own, of_group = {}, {}
    for name, label in answers.items():
        if not label.strip():
            continue
        if name in row_of:
            own[row_of[name]] = label
        else:
            of_group[groups[name]] = label
    for group, label in of_group.items():
        check_group_unchanged(questions, group, label)
    by_group = {
        row: of_group[group]
        for row, group in enumerate(questions.groups.tolist())
        if group in of_group
    }
    # An earlier label of an item outweighs the label of its group.
    by_group = {row: label for row, label in by_group.items() if not questions.answers[row]}
    return by_group | own


def check_unchanged(questions: Questions, given: Mapping[int, str]) -> None:
    for row, label in given.items():
        before = questions.answers[row]
        if before and before != label:
            raise DataError(
                f"item {questions.names[row]!r} was labelled {before!r} before and {label!r} now; "
                "leave it as it was, or take the last answers back with `s2osc stream undo`"
            )


def check_group_unchanged(questions: Questions, group: int, label: str) -> None:
    """Refuse a new name for a group all of whose items were called otherwise."""
    before = {questions.answers[row] for row in np.flatnonzero(questions.groups == group)}
    if "" not in before and label not in before:
        raise DataError(
            f"{group_word(group)!r} is called {label!r} now, but all of its items were labelled "
            f"{' or '.join(map(repr, sorted(before)))} before; leave it as it was, or take the "
            "last answers back with `s2osc stream undo`"
        )


def count_written(
    questions: Questions, answers: Mapping[str, str], fresh: Mapping[int, str]
) -> int:
    """How many of the answers are new: a named group is one, however many items it covers."""
    row_of = {name: row for row, name in enumerate(questions.names)}
    own = {row_of[name] for name, label in answers.items() if name in row_of and label.strip()}
    groups = {int(questions.groups[row]) for row in fresh if row not in own}
    return len(own & fresh.keys()) + len(groups)
