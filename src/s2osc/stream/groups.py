"""Groups of a window that were there in the window before keep their numbers."""

from dataclasses import dataclass, replace

import numpy as np

from s2osc.pipeline.model import OpenSetModel
from s2osc.pipeline.solution import Solution
from s2osc.stream.learner import Recognition
from s2osc.stream.state import Questions
from s2osc.text import listed

SAME = 0.5
"""Of the items of a group, from which on they are the group they were found in."""


@dataclass(frozen=True)
class Numbering:
    """The numbers of the groups of a window, beside those of the window before it."""

    numbers: tuple[int, ...]  # of each group, as it was found
    before: tuple[int | None, ...]  # the number it had; None: it was not there

    def in_words(self) -> list[str]:
        """What a person should know who remembers the window before."""
        was = dict(zip(self.numbers, self.before, strict=True))
        again = [n for n in sorted(was) if was[n] == n]
        moved = [f"group {n} was {was[n]}" for n in sorted(was) if was[n] not in (None, n)]
        new = [n for n in sorted(was) if was[n] is None]
        if len(new) == len(was):
            return []
        parts = [f"{_are(again)} the same again"] if again else []
        parts += moved + ([f"{_are(new)} new"] if new else [])
        return [f"Of the groups without a name in the window before: {'; '.join(parts)}"]


def _are(groups: list[int]) -> str:
    """Some groups, and what follows of them.

    >>> _are([1]), _are([0, 2])
    ('group 1 is', 'groups 0, 2 are')
    """
    names = listed([str(group) for group in groups])
    return f"group {names} is" if len(groups) == 1 else f"groups {names} are"


def number_groups(before: np.ndarray, now: np.ndarray, n_groups: int) -> Numbering:
    """Numbers for groups: where most items of an earlier group lie in one, that of the earlier one.

    The same items are in the groups ``before`` and ``now``. Numbers are 0 .. n_groups - 1, so an
    earlier number beyond these cannot be kept.

    >>> number_groups(np.array([0, 0, 0, 1, 1]), np.array([1, 1, 2, 0, 0]), 3)
    Numbering(numbers=(1, 0, 2), before=(1, 0, None))
    """
    counts = np.zeros((int(before.max(initial=-1)) + 1, n_groups), int)
    np.add.at(counts, (before, now), 1)
    enough = counts > SAME * counts.sum(1, keepdims=True)
    earlier: dict[int, int] = {}
    for place in np.argsort(-counts, axis=None, kind="stable").tolist():
        old, new = divmod(place, n_groups)
        if enough[old, new] and new not in earlier:  # most of a group lies in one alone
            earlier[new] = old
    numbers = {new: old for new, old in earlier.items() if old < n_groups}
    free = (n for n in range(n_groups) if n not in numbers.values())
    return Numbering(
        tuple(numbers[group] if group in numbers else next(free) for group in range(n_groups)),
        tuple(earlier.get(group) for group in range(n_groups)),
    )


def with_earlier_numbers(
    recognition: Recognition, questions: Questions | None
) -> tuple[Recognition, list[str]]:
    """What was recognised with the numbers that groups without a name had, and a note on them.

    ``questions`` are those of the window before, which hold its groups.
    """
    solution = recognition.recogniser
    if questions is None or not isinstance(solution, Solution):
        return recognition, []
    model, audit = solution.model, solution.trust.audit if solution.trust else None
    is_open = (questions.groups >= 0) & np.array([not answer for answer in questions.answers])
    if not isinstance(model, OpenSetModel) or not is_open.any():
        return recognition, []
    whole = replace(model, grouping=model.grouping.with_scattered())
    now = whole.groups_of(model.scaling.transform(questions.inputs[is_open]))
    numbering = number_groups(questions.groups[is_open], now, model.grouping.n_groups)
    number = np.array(numbering.numbers)
    of_leaf = tuple(number[list(model.grouping.groups)].tolist())
    groups = solution.answer.groups
    groups = np.where(groups >= 0, number[groups], -1)
    trust = solution.trust
    if trust and audit and audit.groups:
        audit = replace(audit, groups=replace(audit.groups, groups=of_leaf))
        trust = trust._replace(audit=audit)
    numbered = replace(
        solution,
        model=replace(model, grouping=model.grouping.regrouped(of_leaf)),
        answer=replace(solution.answer, groups=groups),
        trust=trust,
    )
    found = replace(recognition, predictions=numbered.answer, groups=groups, recogniser=numbered)
    return found, numbering.in_words()
