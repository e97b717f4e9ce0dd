"""Group the unknown items, and estimate how many groups there are.

The items lie in groups of every number (``evidence.py``); episodes on the known classes tell how
probable each number is (``number.py``). A tree around the likely one has groups for all others.
"""

from dataclasses import dataclass, replace

import numpy as np

from s2osc.arrays import chunks, nearest_rows
from s2osc.lazy import lazily
from s2osc.pipeline.group_tree import ONE_LEAF, GroupTree, NumberEvidence
from s2osc.pipeline.grouping.classes import usual_class, walks_within
from s2osc.pipeline.grouping.evidence import (
    BY_SILHOUETTE,
    LEAST_SHARE,
    MEASURES,
    MOST_GROUPS,
    find_parts,
    measure_numbers,
)
from s2osc.pipeline.grouping.item_selection import N_VOTES, choose_items
from s2osc.pipeline.grouping.number import learn_number
from s2osc.pipeline.grouping.space import Placed
from s2osc.seeding import rng
from s2osc.settings import require_least

neighbors = lazily("sklearn.neighbors")

FEWEST = 30  # with fewer items, one group is likely: a split could be chance


@dataclass(frozen=True)
class ClusterSettings:
    """How many groups of unknown items there are; ``None`` estimates."""

    n_groups: int | None = None

    def __post_init__(self) -> None:
        require_least("the number of groups", self.n_groups, 1)


@dataclass(frozen=True, eq=False)
class Grouping:
    """Items in the leaves of a tree, and the group of each leaf. New items join their neighbours.

    Group 0 is the largest. Items that are far lonelier than any known item in its class are
    scattered: they get the number after the last group.
    """

    items: np.ndarray  # (r, a) features
    leaves: np.ndarray  # (r,) the leaf of each
    tree: GroupTree
    groups: tuple[int, ...]  # (tree.n_leaves,) the group of each leaf
    spreads: np.ndarray  # (tree.n_leaves,) spread of a leaf over that of a known class
    radius: float  # items farther than this from their N_VOTES-th neighbour are scattered
    n_episodes: int  # that the tree's probabilities were learnt from; 0: default weights
    evidence: tuple[NumberEvidence, ...] = ()  # of one group, two groups, ...; of a new fit alone

    @property
    def n_groups(self) -> int:
        return max(self.groups) + 1 if len(self.items) else 0

    @property
    def group_of_leaf(self) -> np.ndarray:
        """(n_leaves + 1,) the last for scattered items."""
        return np.array([*self.groups, max(self.groups) + 1])

    def with_scattered(self) -> "Grouping":
        """The same with every item in a group, however lonely."""
        return replace(self, radius=np.inf)

    def assign(self, features: np.ndarray) -> np.ndarray:
        """(n,) the group of each row's nearest items, or 0 if the fit had no unknown item."""
        return self.group_of_leaf[self.assign_leaves(features)]

    def assign_leaves(self, features: np.ndarray) -> np.ndarray:
        """(n,) the leaf of each row's nearest items; the number of leaves if it is scattered."""
        if not len(self.items):
            return np.zeros(len(features), int)
        parts = [self._vote(features[rows]) for rows in chunks(max(len(features), 1))]
        return np.concatenate(parts)

    def _vote(self, features: np.ndarray) -> np.ndarray:
        distances, nearest = nearest_rows(features, self.items, min(N_VOTES, len(self.items)))
        votes = np.zeros((len(features), self.tree.n_leaves))
        rows = np.arange(len(features))[:, None]
        # An identical item decides alone.
        np.add.at(votes, (rows, self.leaves[nearest]), 1 / (distances**2 + 1e-12))
        # Votes of a group count together; of its leaves, the one with most.
        groups = np.array(self.groups)
        of_groups = votes @ (groups[:, None] == np.arange(groups.max() + 1))
        allowed = groups == of_groups.argmax(1)[:, None]
        leaves = np.where(allowed, votes, -1).argmax(1)
        return np.where(distances[:, -1] > self.radius, self.tree.n_leaves, leaves)

    def regrouped(self, groups: tuple[int, ...]) -> "Grouping":
        """The same tree with other groups."""
        return replace(self, groups=groups)


def group_unknown(
    unknown: Placed,
    known: Placed,
    labels: np.ndarray,
    settings: ClusterSettings,
    *,
    seed: int,
) -> Grouping:
    """Group unknown items; labelled known ones, in the same space, tell what a class looks like."""
    if len(unknown) == 0:
        return Grouping(unknown.scaled, np.zeros(0, int), ONE_LEAF, (0,), np.ones(1), np.inf, 0)
    random = rng(seed, "groups")
    rows, radius = choose_items(unknown.scaled, known.scaled, labels, random)
    placed = unknown.of(rows)
    items = placed.scaled
    asked = settings.n_groups
    parts = find_parts(items, max(MOST_GROUPS, asked or 1), random)
    chances, n_episodes = np.ones(1), 0
    evidence: tuple[NumberEvidence, ...] = ()
    if len(np.unique(items, axis=0)) >= FEWEST:
        walks = walks_within(known.scaled, labels, random)
        model = learn_number(known.reduced, labels, walks, random)
        usual = usual_class(known.scaled, labels, walks)
        measures = measure_numbers(placed, parts, usual)
        chances, n_episodes = model.chances(measures), model.n_episodes
        evidence = evidence_of(measures, parts.slower_than(usual, len(measures)))
    likely = parts.tree.with_chances(chances).likely_number()
    number = likely if asked is None else min(asked, parts.tree.n_leaves)
    parts = parts.around(number)
    tree = parts.tree.with_chances(chances)
    return Grouping(
        items=items,
        leaves=parts.leaves,
        tree=tree,
        groups=tree.cut(number),
        spreads=_spreads(items, parts.leaves, tree.n_leaves, known.scaled, labels),
        radius=radius,
        n_episodes=n_episodes,
        evidence=evidence,
    )


def evidence_of(measures: np.ndarray, slower: np.ndarray) -> tuple[NumberEvidence, ...]:
    """What people are told of the measures of each number, and of how slow each mode is."""
    columns = dict(zip(MEASURES, measures.T, strict=True))
    smallest = np.exp(columns["share of the smallest group"]) - LEAST_SHARE
    is_best = np.any([columns[name] == 0 for name in BY_SILHOUETTE], axis=0)
    return tuple(
        NumberEvidence(
            borders=int((slower[: number - 1] > 0).sum()),
            next_border=bool(slower[number - 1] > 0),
            silhouette=round(float(silhouette), 3),
            smallest=round(float(share), 4),
            by_silhouette=bool(number > 1 and is_best[number - 1]),
        )
        for number, (silhouette, share) in enumerate(
            zip(columns["silhouette in the modes"], smallest, strict=True), start=1
        )
    )


def _spreads(
    items: np.ndarray, leaves: np.ndarray, n_leaves: int, known: np.ndarray, labels: np.ndarray
) -> np.ndarray:
    """(n_leaves,) the spread of each leaf over that of a known class in the mean."""
    usual = [_spread(known[labels == c]) for c in np.unique(labels)]
    own = np.array([_spread(items[leaves == leaf]) for leaf in range(n_leaves)])
    return own / max(float(np.mean(usual)) if usual else 1.0, 1e-6)


def _spread(rows: np.ndarray) -> float:
    return float(np.linalg.norm(rows - rows.mean(0), axis=1).mean()) if len(rows) else 0.0
