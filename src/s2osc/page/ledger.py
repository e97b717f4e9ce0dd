"""What follows from all acts on one pool: the label of each item, who disagrees, other groups.

Target     class NAME    a known class, or a new one
           unknown       unknown, in the group the model gave it
           leaf NUMBER   unknown, in the group that holds this leaf of the tree of groups
           ignore        not of interest
           none          a label is taken away
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from s2osc.errors import DataError
from s2osc.page.acts import Act
from s2osc.pipeline.group_tree import GroupTree
from s2osc.text import check_name

CLASS, LEAF = "class ", "leaf "
UNKNOWN, IGNORE, NONE = "unknown", "ignore", "none"
IGNORED_AS = ("ignore", "not of interest")
RESERVED = ("unsure", "-1", "-2", "none")
BACK = ("undo", "redo")
LABELS = ("label", "check")


def class_target(text: str, names: Iterable[str]) -> str:
    """The target that a person means by a word: spelt as a class that is there, if it is one.

    >>> class_target(" Cat", ["cat"]), class_target("Unknown", []), class_target("owl", ["cat"])
    ('class cat', 'unknown', 'class owl')
    """
    name = check_name(text, "the name")
    plain = name.casefold()
    if plain == UNKNOWN:
        return UNKNOWN
    if plain in IGNORED_AS:
        return IGNORE
    if plain in RESERVED:
        raise DataError(f"{name!r} is no name of a class; give another")
    there = {each.casefold(): each for each in names}
    return CLASS + there.get(plain, name)


class Label(NamedTuple):
    """The last label that a person gave an item."""

    target: str
    by: str
    at: float
    act: int


class Change(NamedTuple):
    """An item whose label is another one now."""

    row: int
    target: str  # "none" where no label stands
    disputed: bool


@dataclass(frozen=True)
class Agreement:
    """How two or more people agree on the items that they both labelled."""

    n_items: int  # labelled by at least two
    n_disputed: int
    kappa: Mapping[str, float]  # Cohen's, of each class against all others


class Ledger:
    """The acts on one pool, folded."""

    def __init__(self, acts: Iterable[Act] = (), fit: str = "") -> None:
        self._fit = fit
        self._acts: dict[int, Act] = {}
        self._undone_by: dict[int, list[int]] = defaultdict(list)
        self._touching: dict[int, list[int]] = defaultdict(list)  # acts on each row
        for act in acts:
            self.add(act)

    def add(self, act: Act) -> None:
        self._acts[act.id] = act
        if act.undoes is not None:
            self._undone_by[act.undoes].append(act.id)
        elif act.kind in LABELS:
            for row in act.rows.tolist():
                self._touching[row].append(act.id)

    @property
    def last(self) -> int:
        """The number of the last act; 0 without any."""
        return next(reversed(self._acts), 0)

    def stands(self, act: int) -> bool:
        """Whether an act was not taken back, or that was taken back itself."""
        return not any(self.stands(other) for other in self._undone_by.get(act, ()))

    def to_undo(self, by: str) -> Act | None:
        """The last act of a person that stands."""
        for act in reversed(self._acts.values()):
            if act.by == by and act.kind not in (*BACK, "learn") and self.stands(act.id):
                return act
        return None

    def to_redo(self, by: str) -> Act | None:
        """The last act of a person that took one back, if nothing was done since."""
        for act in reversed(self._acts.values()):
            if act.by != by or act.kind in ("learn", "redo") or not self.stands(act.id):
                continue
            return act if act.kind == "undo" else None
        return None

    def about(self, act: Act) -> Act:
        """The act that one is about in the end: itself, or what it takes back or restores."""
        return act if act.undoes is None else self.about(self._acts[act.undoes])

    # --- labels --------------------------------------------------------------------------------

    def labels_of(self, row: int, kinds: Sequence[str] = LABELS) -> dict[str, Label]:
        """The last label of an item by each person, the latest first; those taken away are not."""
        found: dict[str, Label] = {}
        for number in reversed(self._touching.get(row, ())):
            act = self._acts[number]
            if act.kind in kinds and act.by not in found and self.stands(number):
                found[act.by] = self._label(act)
        return {by: label for by, label in found.items() if label.target != NONE}

    def label_of(self, row: int, kinds: Sequence[str] = LABELS) -> Label | None:
        """The label of an item, which is the last that stands, whoever gave it."""
        for number in reversed(self._touching.get(row, ())):
            act = self._acts[number]
            if act.kind in kinds and self.stands(number):
                return None if act.target == NONE else self._label(act)
        return None

    def _label(self, act: Act) -> Label:
        """A group is one of a certain fit; after another, its items are unknown."""
        is_old = act.target.startswith(LEAF) and act.fit != self._fit
        return Label(UNKNOWN if is_old else act.target, act.by, act.at, act.id)

    def checked(self) -> dict[int, Label]:
        """The labels of items that were drawn at random for this fit."""
        return {
            row: label
            for row, label in self.labelled(("check",))
            if self._acts[label.act].fit == self._fit
        }

    def learnt(self) -> dict[int, int]:
        """The last act by which the model learnt from each item."""
        return {
            row: act.id
            for act in self._acts.values()
            if act.kind == "learn" and self.stands(act.id)
            for row in act.rows.tolist()
        }

    def labelled(self, kinds: Sequence[str] = LABELS) -> Iterator[tuple[int, Label]]:
        """Every item with a label, in the order of the pool."""
        for row in sorted(self._touching):
            if label := self.label_of(row, kinds):
                yield row, label

    def is_disputed(self, row: int) -> bool:
        """Whether people disagree about an item."""
        return len({label.target for label in self.labels_of(row).values()}) > 1

    def changes_since(self, act: int) -> list[Change]:
        """The items that later acts touched, as they stand now."""
        later = [self.about(each) for each in self._acts.values() if each.id > act]
        labelling = [each.rows for each in later if each.kind in LABELS]
        rows = np.unique(np.concatenate(labelling)).tolist() if labelling else []
        return [self._change(row) for row in rows]

    def _change(self, row: int) -> Change:
        label = self.label_of(row)
        return Change(row, label.target if label else NONE, self.is_disputed(row))

    # --- groups and the operating point ----------------------------------------------------------

    def touches_groups_since(self, act: int) -> bool:
        """Whether groups or the operating point may have changed."""
        later = (self.about(each).kind for each in self._acts.values() if each.id > act)
        return any(kind not in LABELS for kind in later)

    def regrouped(self, tree: GroupTree, groups: tuple[int, ...]) -> tuple[int, ...]:
        """The group of each leaf, after all that was merged and split."""
        for act in self._acts.values():
            if act.kind in ("merge", "split") and self._is_of_fit(act):
                # It was possible when it was done; what came before may be taken back since.
                with suppress(DataError):
                    groups = regroup(tree, groups, act.kind, leaves_in(act.target))
        return groups

    def operating_point(self) -> float | None:
        """The share of known items that may be called unknown; None: as it was decided."""
        for act in reversed(self._acts.values()):
            if act.kind == "decide" and self._is_of_fit(act):
                return float(act.target)
        return None

    def _is_of_fit(self, act: Act) -> bool:
        return act.fit == self._fit and self.stands(act.id)

    # --- people ----------------------------------------------------------------------------------

    def people(self) -> list[str]:
        return sorted({act.by for act in self._acts.values()})

    def agreement(self) -> Agreement:
        """On the items that at least two people labelled."""
        pairs: list[tuple[str, str]] = []
        n_items = n_disputed = 0
        for row in self._touching:
            targets = [label.target for _, label in sorted(self.labels_of(row).items())]
            n_items += len(targets) > 1
            n_disputed += len(set(targets)) > 1
            pairs += combinations(targets, 2)
        classes = sorted({target for pair in pairs for target in pair})
        return Agreement(n_items, n_disputed, {each: kappa(pairs, each) for each in classes})


def leaves_in(target: str) -> list[int]:
    """The leaves in the target of a merge or a split.

    >>> leaves_in("0,3")
    [0, 3]
    """
    parts = target.split(",")
    if not all(part.isdecimal() and len(part) < 7 for part in parts):
        raise DataError(f"{target!r:.50} are no leaves of groups; give numbers such as 0,3")
    return [int(part) for part in parts]


def regroup(
    tree: GroupTree, groups: tuple[int, ...], kind: str, leaves: Sequence[int]
) -> tuple[int, ...]:
    """Groups after the ones that hold some leaves were merged, or the one was split.

    What was merged meanwhile by somebody else stays so.
    """
    if max(leaves) >= len(groups):
        raise DataError(f"there is no leaf {max(leaves)}; there are {len(groups)}")
    which = sorted({groups[leaf] for leaf in leaves})
    if kind == "split":
        return tree.split(groups, which[0])
    return tree.merge(groups, which) if len(which) > 1 else groups


def kappa(pairs: Sequence[tuple[str, str]], target: str) -> float:
    """Cohen's kappa of one class against all others: 1 where both always agree on it.

    >>> kappa([("a", "a"), ("b", "b"), ("a", "b"), ("b", "b")], "a")
    0.5
    """
    votes = Counter((first == target, second == target) for first, second in pairs)
    n = len(pairs)
    agreed = (votes[True, True] + votes[False, False]) / n
    first = (votes[True, True] + votes[True, False]) / n
    second = (votes[True, True] + votes[False, True]) / n
    by_chance = first * second + (1 - first) * (1 - second)
    return 1.0 if by_chance == 1 else (agreed - by_chance) / (1 - by_chance)
