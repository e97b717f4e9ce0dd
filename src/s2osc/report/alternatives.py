"""Other numbers of groups that are likely: what they would look like, and the command for each."""

from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.report.drawing import Drawing, typical
from s2osc.text import percent
from s2osc.types import Answer

N_SHOWN = 3
N_TYPICAL = 6  # items of each group


@dataclass(frozen=True)
class Alternative:
    """One number of groups."""

    number: int
    chance: str  # that this is the right number
    command: str
    groups: list[list[int]]  # items that are typical of each


def find_alternatives(
    groups: GroupsAudit, leaves: np.ndarray, answer: Answer, drawing: Drawing, folder: str
) -> list[Alternative]:
    """The likeliest numbers beside the one that was chosen, in rising order; none without doubt."""
    chances = groups.tree.distribution()
    others = [n for n, _ in groups.alternatives if n != groups.number]
    for near in (groups.number - 1, groups.number + 1):
        if near not in others and 1 <= near <= groups.tree.n_leaves:
            others.append(near)
    found = []
    for number in sorted(others[:N_SHOWN]):
        of_leaf = np.array([*groups.tree.cut(number), number])
        would_be = replace(answer, groups=np.where(answer.is_unknown, of_leaf[leaves], -1))
        items = typical(would_be, drawing.map)[:number]
        found.append(
            Alternative(
                number=number,
                chance=percent(float(chances[number - 1])),
                command=f"s2osc decide --out {quote(folder)} --groups {number}",
                groups=[each[:N_TYPICAL].tolist() for each in items],
            )
        )
    return found
