"""Groups within groups, and how many there are: plain values, without items or networks.

The unknown items lie in the leaves of a tree. Its splits have an order: the first makes two groups
of one, the second three of two. A grouping is a number for each leaf, so that another number of
groups, two groups that are one, or one that is two are a matter of renumbering.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from s2osc.errors import DataError, SettingsError


def median_number(chances: np.ndarray) -> int:
    """The median, where chances are those of one group, two groups, and so on.

    >>> median_number(np.array([0.4, 0.2, 0.4])), median_number(np.array([0.5, 0.5]))
    (2, 1)
    """
    return 1 + int(np.searchsorted(np.cumsum(chances), 0.5 - 1e-9))


@dataclass(frozen=True)
class NumberEvidence:
    """What speaks for a number of groups of some items."""

    borders: int  # of the number - 1 between the groups, those deeper than any in a known class
    next_border: bool  # whether one more would be, too, which speaks for more groups
    silhouette: float  # how far the groups are apart, at most 1
    smallest: float  # share of the items in the smallest group
    by_silhouette: bool = False  # whether k-means has its best silhouette with so many groups


@dataclass(frozen=True)
class GroupTree:
    """A binary tree of m splits and m + 1 leaves; the first split is the root."""

    sides: tuple[tuple[int, ...], ...]  # (m, 2) of each split: a later split, or ~leaf
    probability: tuple[float, ...]  # (m,) of each split, that it is made once those before it are
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

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5)).distribution().round(2).tolist()
        [0.1, 0.45, 0.45]
        """
        made = np.array(self.probability)
        at_least = np.concatenate([[1.0], np.cumprod(made)])
        return at_least * np.concatenate([1 - made, [1.0]])

    def with_chances(self, chances: np.ndarray) -> "GroupTree":
        """The same tree with the probability of one group, two groups, and so on.

        >>> tree = GroupTree(((1, -1), (-2, -3)), (0.0, 0.0), (5, 5, 5))
        >>> tree.with_chances(np.array([0.2, 0.4, 0.4])).probability
        (0.8, 0.5)
        """
        everyone = np.zeros(self.n_leaves)
        everyone[: len(chances)] = chances
        at_least = np.cumsum(everyone[::-1])[::-1]
        made = np.divide(
            at_least[1:], at_least[:-1], out=np.zeros(len(self.sides)), where=at_least[:-1] > 0
        )
        return replace(self, probability=tuple(np.clip(made, 0, 1).round(4).tolist()))

    def likely_number(self) -> int:
        """The median of the distribution, which is off by least in the mean."""
        return median_number(self.distribution())

    def cut(self, n: int) -> tuple[int, ...]:
        """(n_leaves,) the group of each leaf after the first n - 1 splits, the largest first.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 7)).cut(2)
        (1, 0, 0)
        """
        if not 1 <= n <= self.n_leaves:
            raise DataError(
                f"{n} groups were asked for; these items have at most {self.n_leaves} parts that "
                f"can be told apart: give a number from 1 to {self.n_leaves}"
            )
        return self.numbered(self.parts(n))

    def parts(self, n: int) -> list[frozenset[int]]:
        """The leaves of each of n groups."""
        found = {frozenset(range(self.n_leaves))}
        for a, b in self.leaves_of[: n - 1]:
            found = (found - {a | b}) | {a, b}
        return sorted(found, key=min)

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
        merge = np.ravel(merge).tolist()  # also of a single group, which is refused below
        if (n is not None) + bool(merge) + (split is not None) != 1:
            raise SettingsError("give a number of groups, or groups to merge, or one to split")
        for value in (n, split, *merge):
            if value is not None and not isinstance(value, int | np.integer):
                raise SettingsError(f"{value!r:.50} is no number of a group; give whole numbers")
        if n is not None:
            return self.cut(int(n))
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
        """One group in two, at its first split: the smaller part gets the next number.

        >>> GroupTree(((1, -1), (-2, -3)), (0.9, 0.5), (5, 5, 5)).split((0, 0, 0), 0)
        (1, 0, 0)
        """
        self._require(groups, [which])
        own = {leaf for leaf, group in enumerate(groups) if group == which}
        for a, b in self.leaves_of:
            if a & own and b & own:
                part = min((a & own, b & own), key=self._n_items)
                new = max(groups) + 1
                return tuple(new if leaf in part else group for leaf, group in enumerate(groups))
        raise DataError(f"group {which} has no parts that can be told apart; name another one")

    def certainty(self, groups: tuple[int, ...]) -> tuple[float, ...]:
        """Of each group, the probability of the numbers with which it is a group as it is."""
        chances = self.distribution()
        found = []
        for group in range(max(groups) + 1):
            own = frozenset(leaf for leaf, other in enumerate(groups) if other == group)
            numbers = [n for n in range(1, self.n_leaves + 1) if own in self.parts(n)]
            found.append(float(sum(chances[n - 1] for n in numbers)))
        return tuple(found)

    def _n_items(self, leaves: frozenset[int]) -> int:
        return sum(self.sizes[leaf] for leaf in leaves)

    def _require(self, groups: tuple[int, ...], which: Sequence[int]) -> None:
        for group in which:
            if group not in groups:
                raise DataError(f"there is no group {group}; give numbers from 0 to {max(groups)}")


ONE_LEAF = GroupTree((), (), (0,))
