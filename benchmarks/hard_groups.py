"""How many groups, where that is hard: a class with two sides, a small class beside large ones.

    python benchmarks/hard_groups.py a.npz b.npz ... [--to FILE.json]

Each file holds x, vectors or images, and y, their classes. *Two sides*: the unknown items are of
one class that is made of two, as chairs from the front and from the back would be; the known
classes are as they are, or made of two as well. Right is one group. *Small*: beside two unknown
classes is a third that makes up 1, 2 or 5 % of the unknown items. It counts as found where one
group holds most of it, and little else. Unknown items are called so as a run would
(``number_of_groups.called_unknown``): some are missed, and a few known items are among them.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from number_of_groups import called_unknown

from s2osc.pipeline.grouping.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.grouping.space import fit_space
from s2osc.types import UNKNOWN

N_ROUNDS = 10
N_LABELLED, N_IN_POOL, N_UNKNOWN = 200, 100, 600
SHARES = (0.01, 0.02, 0.05)
MOST = 0.5  # of the small class, and of the group that holds it


@dataclass(frozen=True)
class Found:
    """What was found in the pools of one data set, each of one kind."""

    data: str
    kind: str
    pools: int
    right: int  # pools with one group, or with the small class as a group
    groups: float  # in the mean


class Items:
    """The items of a data set, each drawn once at most."""

    def __init__(self, labels: np.ndarray, random: np.random.Generator):
        self.classes = random.permutation(np.unique(labels)).tolist()
        self.rows = {c: random.permutation(np.flatnonzero(labels == c)) for c in self.classes}

    def classes_of(self, n_parts: int) -> list[int]:
        """The next classes that nothing was drawn of."""
        taken, self.classes = self.classes[:n_parts], self.classes[n_parts:]
        return taken

    def draw(self, classes: list[int], n: int) -> np.ndarray:
        """Rows of items, as many of each class; fewer where a class has not so many."""
        drawn = []
        for c in classes:
            n_of_class = n // len(classes)
            drawn.append(self.rows[c][:n_of_class])
            self.rows[c] = self.rows[c][n_of_class:]
        return np.concatenate(drawn)


def group_pool(
    inputs: np.ndarray,
    items: Items,
    unknown: list[np.ndarray],
    parts: int,
    random: np.random.Generator,
) -> tuple[Grouping, np.ndarray, np.ndarray]:
    """Groups beside known classes of so many parts; the group and the unknown class of each item.

    The class is the place in ``unknown``, or -1 of a known item.
    """
    known, pool, truth = [], list(unknown), [np.full(len(r), i) for i, r in enumerate(unknown)]
    for _ in range(min(10, len(items.classes) // parts)):
        classes = items.classes_of(parts)
        known.append(items.draw(classes, N_LABELLED))
        pool.append(items.draw(classes, N_IN_POOL))
        truth.append(np.full(len(pool[-1]), -1))
    labels = np.repeat(np.arange(len(known)), list(map(len, known)))
    labelled, everyone = inputs[np.concatenate(known)], inputs[np.concatenate(pool)]
    of_class = np.concatenate(truth)
    truth_of_known = np.where(of_class < 0, 0, UNKNOWN)
    called = called_unknown(labelled, labels, everyone, truth_of_known, random)
    space = fit_space(labelled, labels, everyone[called], seed=0)
    placed = space.place(everyone[called])
    grouping = group_unknown(placed, space.place(labelled), labels, ClusterSettings(), seed=0)
    return grouping, grouping.assign(placed.scaled), of_class[called]


def of_two_sides(parts_of_known: int) -> Callable[..., tuple[bool, int]]:
    def run(inputs: np.ndarray, items: Items, random: np.random.Generator) -> tuple[bool, int]:
        unknown = items.draw(items.classes_of(2), N_UNKNOWN)
        grouping, _, _ = group_pool(inputs, items, [unknown], parts_of_known, random)
        return grouping.n_groups == 1, grouping.n_groups

    return run


def of_small(share: float) -> Callable[..., tuple[bool, int]]:
    def run(inputs: np.ndarray, items: Items, random: np.random.Generator) -> tuple[bool, int]:
        large = [items.draw(items.classes_of(1), N_UNKNOWN) for _ in range(2)]
        n_small = round(share / (1 - share) * sum(map(len, large)))
        small = items.draw(items.classes_of(1), max(n_small, 2))
        grouping, groups, classes = group_pool(inputs, items, [*large, small], 1, random)
        return is_a_group(groups, classes == 2), grouping.n_groups

    return run


def is_a_group(groups: np.ndarray, is_small: np.ndarray) -> bool:
    """Whether most of some items are in one group, which holds hardly anything else.

    >>> is_a_group(np.array([0, 0, 0, 1, 1, 1]), np.array([0, 0, 0, 0, 1, 1], bool))
    True
    """
    if not is_small.any():
        return False
    within = np.bincount(groups[is_small])
    group = int(within.argmax())
    return bool(within[group] > MOST * max(is_small.sum(), np.sum(groups == group)))


KINDS = {
    "two sides": of_two_sides(1),
    "two sides, known ones too": of_two_sides(2),
    **{f"small, {share:.0%}": of_small(share) for share in SHARES},
}


def measure(name: str, inputs: np.ndarray, labels: np.ndarray) -> list[Found]:
    """Every kind of pool of one data set."""
    found = []
    for kind, run in KINDS.items():
        outcomes = []
        for seed in range(N_ROUNDS):
            random = np.random.default_rng(seed)
            outcomes.append(run(inputs, Items(labels, random), random))
        right, numbers = zip(*outcomes, strict=True)
        found.append(Found(name, kind, len(right), sum(right), float(np.mean(numbers))))
    return found


def table(found: list[Found]) -> str:
    """Markdown: pools that were right of all, and how many groups in the mean."""
    lines = [f"| data | {' | '.join(KINDS)} |", "| --- |" + " --- |" * len(KINDS)]
    for data in dict.fromkeys(each.data for each in found):
        cells = [
            f"{each.right} of {each.pools} ({each.groups:.1f})"
            for each in found
            if each.data == data
        ]
        lines.append(f"| {data} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--to", type=Path, help="a file for the record")
    chosen = options.parse_args(arguments)
    found = []
    for path in chosen.files:
        with np.load(path) as held:
            found += measure(path.stem, held["x"], held["y"])
        print(path.stem, file=sys.stderr)
    print(table(found))
    if chosen.to:
        chosen.to.write_text(json.dumps([asdict(each) for each in found], indent=2) + "\n")


if __name__ == "__main__":
    main()
