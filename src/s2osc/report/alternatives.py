"""Other numbers of groups that are likely: what they would look like, and the command for each."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from shlex import quote

import numpy as np

from s2osc.pipeline.audit.groups_in_words import evidence_in_words
from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.pipeline.grouping.typical import GroupProfile
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
    evidence: str  # what speaks for it; "": nothing was measured
    command: str
    groups: list[list[int]]  # items that are typical of each
    words: list[str]  # what is typical of each, in words; "" where nothing is


def find_alternatives(
    groups: GroupsAudit,
    leaves: np.ndarray,
    answer: Answer,
    drawing: Drawing,
    folder: str,
    profile: Callable[[Answer], tuple[GroupProfile, ...]] | None = None,
) -> list[Alternative]:
    """The likeliest numbers beside the one that was chosen, in rising order; none without doubt."""
    chances, speaks = groups.tree.distribution(), groups.evidence
    others = [n for n, _ in groups.alternatives if n != groups.number]
    for near in (groups.number - 1, groups.number + 1):
        if near not in others and 1 <= near <= groups.tree.n_leaves:
            others.append(near)
    found = []
    for number in sorted(others[:N_SHOWN]):
        of_leaf = np.array([*groups.tree.cut(number), number])
        would_be = replace(answer, groups=np.where(answer.is_unknown, of_leaf[leaves], -1))
        items = typical(would_be, drawing.map)[:number]
        profiles = {each.group: each for each in profile(would_be)} if profile else {}
        found.append(
            Alternative(
                number=number,
                chance=percent(float(chances[number - 1])),
                evidence=evidence_in_words(number, speaks[number - 1])
                if number <= len(speaks)
                else "",
                command=f"s2osc decide --out {quote(folder)} --groups {number}",
                groups=[each[:N_TYPICAL].tolist() for each in items],
                words=[
                    ", ".join(profiles[group].typical) if group in profiles else ""
                    for group in range(number)
                ],
            )
        )
    return found
