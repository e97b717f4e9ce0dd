"""Groups within groups, and how many there are: plain values, without items or networks.

The unknown items lie in the leaves of a tree. Each of its splits carries the probability that its
two sides are of different classes. A grouping is a number for each leaf, so that another number of
groups, two groups that are one, or one that is two are a matter of renumbering.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from s2osc.errors import DataError, SettingsError


@dataclass(frozen=True)
class GroupTree:
    """A binary tree of m splits and m + 1 leaves; the first split is the root."""

    sides: tuple[tuple[int, ...], ...]  # (m, 2) of each split: a later split, or ~leaf
    probability: tuple[float, ...]  # (m,) that the two sides are of different classes
    sizes: tuple[int, ...]  # (m + 1,) items of each leaf

    def __post_init__(self) -> None:
        n = len(self.sides)
        leaves = sorted(~side for pair in self.sides for side in pair if side < 0)
        splits = sorted(side for pair in self.sides for side in pair if side >= 0)
        fits = (
            all(len(pair) == 2 and all(s < 0 or s > i for s in pair) for i, pair in self._numbered)
            and splits == list(range(1, n))
            and leaves == (list(range(n + 1)) if n else [])
            and len(self.probability) == n
            and len(self.sizes) == n + 1
            and all(0 <= p <= 1 for p in self.probability)
        )
        if not fits:
            raise ValueError(f"{n} splits and {len(self.sizes)} leaves do not make a tree")

    @property
    def _numbered(self) -> list[tuple[int, tuple[int, ...]]]:
        return list(enumerate(self.sides))

    @property
    def n_leaves(self) -> int:
        return len(self.sizes)

    @cached_property
    def leaves_of(self) -> list[tuple[frozenset[int], frozenset[int]]]:
        """The leaves on each side of each split."""
        found: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())] * len(
            self.sides
        )

        def under(side: int) -> frozenset[int]:
            return frozenset([~side]) if side < 0 else found[side][0] | found[side][1]

        for split in reversed(range(len(self.sides))):
            a, b = self.sides[split]
            found[split] = under(a), under(b)
        return found

    def distribution(self) -> np.ndarray:
        """(n_leaves,) the probability of one group, two groups, and so on.

        A group is divided if its split is one between classes, its parts by their own splits.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5)).distribution().round(2).tolist()
        [0.1, 0.45, 0.45]
        """
        numbers = [np.ones(1)] * len(self.sides)

        def of(side: int) -> np.ndarray:
            return np.ones(1) if side < 0 else numbers[side]

        for split in reversed(range(len(self.sides))):
            a, b = (of(side) for side in self.sides[split])
            divided = np.convolve(a, b) * self.probability[split]
            numbers[split] = np.concatenate([[1 - self.probability[split]], divided])
        return numbers[0] if self.sides else np.ones(1)

    def likely_number(self) -> int:
        """The median of the distribution, which is off by least in the mean."""
        return 1 + int(np.searchsorted(np.cumsum(self.distribution()), 0.5 - 1e-9))

    def interval(self, certainty: float = 0.8) -> tuple[int, int]:
        """The numbers between which the true one lies with a certainty, by the tree."""
        risen = np.cumsum(self.distribution())
        rest = (1 - certainty) / 2
        low, high = np.searchsorted(risen, [rest + 1e-9, 1 - rest - 1e-9])
        return 1 + int(low), 1 + min(int(high), self.n_leaves - 1)

    def cut(self, n: int) -> tuple[int, ...]:
        """(n_leaves,) the group of each leaf: the most likely n groups, the largest first.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 7)).cut(2)
        (1, 0, 0)
        """
        if not 1 <= n <= self.n_leaves:
            raise DataError(
                f"{n} groups were asked for; these items have at most {self.n_leaves} parts that "
                f"can be told apart: give a number from 1 to {self.n_leaves}"
            )
        best: list[list[tuple[float, int]]] = []  # of a split, by number of groups less one
        for split in reversed(range(len(self.sides))):
            best.insert(0, self._best_of(split, [[]] * (split + 1) + best))
        parts: list[frozenset[int]] = []

        def divide(side: int, number: int) -> None:
            if number == 1:
                both = frozenset([~side]) if side < 0 else frozenset.union(*self.leaves_of[side])
                parts.append(both)
                return
            first = best[side][number - 1][1]
            a, b = self.sides[side]
            divide(a, first)
            divide(b, number - first)

        divide(0 if self.sides else -1, n)
        return self.numbered(parts)

    def _best_of(self, split: int, best: list[list[tuple[float, int]]]) -> list[tuple[float, int]]:
        """By number of groups: the log-likelihood, and how many of them the first side has."""
        p = min(max(self.probability[split], 1e-6), 1 - 1e-6)
        a, b = ([(0.0, 1)] if side < 0 else best[side] for side in self.sides[split])
        found = [(float(np.log(1 - p)), 1)]
        for number in range(2, len(a) + len(b) + 1):
            firsts = range(max(1, number - len(b)), min(len(a), number - 1) + 1)
            value, first = max((a[f - 1][0] + b[number - f - 1][0], f) for f in firsts)
            found.append((float(np.log(p)) + value, first))
        return found

    def numbered(self, parts: Sequence[frozenset[int]]) -> tuple[int, ...]:
        """The group of each leaf, where the parts are groups: the largest is 0."""
        order = sorted(parts, key=lambda part: (-sum(self.sizes[leaf] for leaf in part), min(part)))
        groups = [0] * self.n_leaves
        for number, part in enumerate(order):
            for leaf in part:
                groups[leaf] = number
        return tuple(groups)

    def regroup(
        self,
        groups: tuple[int, ...],
        n: int | None = None,
        *,
        merge: Sequence[int] = (),
        split: int | None = None,
    ) -> tuple[int, ...]:
        """Other groups: ``n`` of them, some of ``groups`` as one, or one of them in two."""
        if (n is not None) + bool(merge) + (split is not None) != 1:
            raise SettingsError("give a number of groups, or groups to merge, or one to split")
        if n is not None:
            return self.cut(n)
        return self.merge(groups, merge) if merge else self.split(groups, split or 0)

    def merge(self, groups: tuple[int, ...], which: Sequence[int]) -> tuple[int, ...]:
        """Some groups as one, under the lowest of their numbers; those after them move up.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5)).merge((0, 1, 2), (0, 2))
        (0, 1, 0)
        """
        self._require(groups, which)
        if len(set(which)) < 2:
            raise DataError(f"{len(set(which))} group is to be merged; give two or more numbers")
        joined = [min(which) if group in which else group for group in groups]
        rising = sorted(set(joined))
        return tuple(rising.index(group) for group in joined)

    def split(self, groups: tuple[int, ...], which: int) -> tuple[int, ...]:
        """One group in two, at its most probable split: the smaller part gets the next number.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5)).split((0, 0, 0), 0)
        (1, 0, 0)
        """
        self._require(groups, [which])
        own = {leaf for leaf, group in enumerate(groups) if group == which}
        candidates = [
            (probability, -number, min((a & own, b & own), key=self._n_items))
            for number, (probability, (a, b)) in enumerate(
                zip(self.probability, self.leaves_of, strict=True)
            )
            if a & own and b & own
        ]
        if not candidates:
            raise DataError(f"group {which} has no parts that can be told apart; name another one")
        part = max(candidates, key=lambda each: each[:2])[2]
        new = max(groups) + 1
        return tuple(new if leaf in part else group for leaf, group in enumerate(groups))

    def certainty(self, groups: tuple[int, ...]) -> tuple[float, ...]:
        """Of each group, the probability that it is apart from the others and one class itself."""
        found = []
        for group in range(max(groups) + 1):
            own = {leaf for leaf, other in enumerate(groups) if other == group}
            apart, inside = 1.0, 0.0
            for probability, (a, b) in zip(self.probability, self.leaves_of, strict=True):
                if a & own and b & own:
                    inside = max(inside, probability)
                elif a >= own or b >= own:
                    apart = probability  # of the last such split, which is the nearest
            found.append(apart * (1 - inside))
        return tuple(found)

    def _n_items(self, leaves: frozenset[int]) -> int:
        return sum(self.sizes[leaf] for leaf in leaves)

    def _require(self, groups: tuple[int, ...], which: Sequence[int]) -> None:
        for group in which:
            if group not in groups:
                raise DataError(f"there is no group {group}; give numbers from 0 to {max(groups)}")


ONE_LEAF = GroupTree((), (), (0,))
