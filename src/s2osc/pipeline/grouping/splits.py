"""A tree of possible groups, and how probable it is that a split of it parts two classes.

Items are linked to their neighbours; the slowest modes of a walk along these links are coordinates
in which what hangs together lies together, whatever its shape. Ward's method makes a tree of them.
Each split of the tree is measured: how far apart are its sides, how deep is the valley between
them, how many links does it cut, how wide are they beside known classes. What of this tells classes
apart on the data at hand is learnt from episodes, in which the same is done with known classes.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.episodes import EpisodeSettings, draw_episodes
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.graph import nearest_others, slowest_modes
from s2osc.pipeline.grouping.space import whitened, within_class_whitening

hierarchy = lazily("scipy.cluster.hierarchy")
linear_model = lazily("sklearn.linear_model")

N_MODES = 15
MOST_LEAVES = 40
SMALLEST_SHARE = 0.015  # of the items, for a side of a split
SMALLEST = 5  # items
NEAR = 0.2  # of the distance between two centres: what is near one of them, or the middle
N_SIMULATED = 6, 50  # classes, and items of each
MEASURES = (
    "separation along the line between the centres",
    "items halfway",
    "silhouette",
    "silhouette of the worse side",
    "links that are cut",
    "distance of the centres",
    "spread",
    "spread of the sides",
    "balance of the sides",
    "share of the smaller side",
    "share of all items",
    "height below that of the split above",
    "height of the split below",
    "height below the first split",
)


@dataclass(frozen=True, eq=False)
class Split:
    """A place where the tree of some items divides, and what was measured there."""

    parts: tuple[np.ndarray, np.ndarray]  # rows of each side
    sides: tuple[int, int]  # a later split, or ~leaf
    measures: np.ndarray  # (len(MEASURES),)


@dataclass(frozen=True, eq=False)
class Splits:
    """The splits of a tree, the root first, and the leaf of each item; -1: between the leaves."""

    splits: tuple[Split, ...]
    leaves: np.ndarray  # (n,)

    @property
    def n_leaves(self) -> int:
        return len(self.splits) + 1


@dataclass(frozen=True, eq=False)
class SplitModel:
    """A logistic regression on the measures of a split."""

    mean: np.ndarray
    scale: np.ndarray
    weights: np.ndarray
    intercept: float
    n_episodes: int  # that it was learnt from; 0: from simulated classes

    def probability(self, splits: Sequence[Split]) -> np.ndarray:
        """(m,) that the sides of each split are of different classes."""
        if not splits:
            return np.zeros(0)
        rows = (np.stack([split.measures for split in splits]) - self.mean) / self.scale
        odds = rows @ self.weights + self.intercept
        return np.clip(1 / (1 + np.exp(-np.clip(odds, -20, 20))), 1e-3, 1 - 1e-3)

    def tree(self, found: Splits) -> GroupTree:
        sizes = np.bincount(found.leaves[found.leaves >= 0], minlength=found.n_leaves)
        return GroupTree(
            sides=tuple(split.sides for split in found.splits),
            probability=tuple(np.round(self.probability(found.splits), 4).tolist()),
            sizes=tuple(sizes.tolist()),
        )


# --- the tree --------------------------------------------------------------------------------


def find_splits(
    items: np.ndarray,
    known_spread: float,
    random: np.random.Generator,
    *,
    smallest: int | None = None,
    n_leaves: int = MOST_LEAVES,
) -> Splits:
    """The tree of some items, down to parts of ``smallest`` items.

    ``known_spread`` is the mean squared distance of known items to the centre of their class.
    """
    n = len(items)
    least = smallest or max(SMALLEST, round(SMALLEST_SHARE * n))
    if n < max(2 * least, 2) or not np.ptp(items, axis=0).any():
        return Splits((), np.zeros(n, int))
    nearest = nearest_others(items, int(np.clip(n // 20, 5, 12)))
    place = slowest_coordinates(nearest, random) if n > 4 * SMALLEST else items
    merges = hierarchy.linkage(place, "ward")
    measure = _Measure(items, nearest, known_spread, merges)
    return _prune(merges, measure, least, n_leaves)


def slowest_coordinates(nearest: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """(n, m): the slowest modes, each scaled by how slow it is, as in a walk's commute time."""
    n_modes = min(N_MODES + 1, len(nearest) // 2)
    values, modes = slowest_modes(nearest, n_modes, random)
    steady = modes[:, :1]
    flat = np.where(np.abs(steady) < 1e-12, 1e-12, steady)
    return np.asarray(modes[:, 1:] / flat / np.sqrt(np.maximum(1 - values[1:], 0.02)))


def _prune(merges: np.ndarray, measure: "_Measure", least: int, n_leaves: int) -> Splits:
    """The splits from the root down, the highest first, as long as both sides are large enough."""
    n = len(merges) + 1

    def real(node: int) -> int | None:
        """The next split at or below a node; smaller sides before it are outliers of it."""
        while node >= n:
            a, b = merges[node - n, :2].astype(int)
            small = [len(measure.members[side]) < least for side in (a, b)]
            if not any(small):
                return node if merges[node - n, 2] > 0 else None
            if all(small):
                return None
            node = b if small[0] else a
        return None

    first = real(2 * n - 2)
    if first is None:
        return Splits((), np.zeros(n, int))
    chosen, above = [first], {first: 0.0}
    waiting = [first]
    while waiting and len(chosen) < n_leaves - 1:
        node = max(waiting, key=lambda each: merges[each - n, 2])
        waiting.remove(node)
        for side in merges[node - n, :2].astype(int):
            below = real(int(side))
            if below is not None and len(chosen) < n_leaves - 1:
                chosen.append(below)
                waiting.append(below)
                above[below] = float(merges[node - n, 2])
    number = {node: place for place, node in enumerate(chosen)}
    leaves, splits, n_found = np.full(n, -1), [], 0
    for node in chosen:
        parts = [measure.members[side] for side in merges[node - n, :2].astype(int)]
        sides = []
        for side, rows in zip(merges[node - n, :2].astype(int), parts, strict=True):
            below = real(int(side))
            if below in number:
                sides.append(number[below])
            else:
                sides.append(~n_found)
                leaves[rows] = n_found
                n_found += 1
        splits.append(
            Split((parts[0], parts[1]), (sides[0], sides[1]), measure(node, above[node], first))
        )
    return Splits(tuple(splits), leaves)


class _Measure:
    """Measures the splits of one tree."""

    def __init__(
        self, items: np.ndarray, nearest: np.ndarray, known_spread: float, merges: np.ndarray
    ) -> None:
        self.items, self.nearest, self.merges = items, nearest, merges
        self.known_spread = max(known_spread, 1e-12)
        self.members: list[np.ndarray] = [np.array([row]) for row in range(len(items))]
        for a, b in merges[:, :2].astype(int):
            self.members.append(np.concatenate([self.members[a], self.members[b]]))
        squares = (items**2).sum(1)
        self.distances = np.sqrt(np.maximum(squares[:, None] + squares - 2 * items @ items.T, 0))

    def __call__(self, node: int, height_above: float, root: int) -> np.ndarray:
        n = len(self.items)
        a, b = self.merges[node - n, :2].astype(int)
        rows = self.members[a], self.members[b]
        x, y = self.items[rows[0]], self.items[rows[1]]
        n_both = len(x) + len(y)
        heights = [self.merges[side - n, 2] if side >= n else 0.0 for side in (a, b)]
        height, highest = self.merges[node - n, 2], self.merges[root - n, 2]
        spreads = [((part - part.mean(0)) ** 2).sum(1).mean() for part in (x, y)]
        both = np.concatenate([x, y])
        separation, halfway = _along_the_line(x, y)
        silhouettes = self._silhouettes(*rows)
        smaller = min(len(x), len(y))
        distance = ((x.mean(0) - y.mean(0)) ** 2).sum()
        return np.array(
            [
                separation,
                halfway,
                np.concatenate(silhouettes).mean(),
                min(each.mean() for each in silhouettes),
                np.log(self._cut(*rows) + 0.02),
                np.log(distance / self.known_spread + 1e-6),
                np.log(((both - both.mean(0)) ** 2).sum(1).mean() / self.known_spread + 1e-6),
                np.log(np.dot(spreads, [len(x), len(y)]) / n_both / self.known_spread + 1e-6),
                np.log(smaller / n_both),
                np.log(smaller / n),
                np.log(n_both / n),
                np.log(height / height_above) if height_above else 0.0,
                np.log(max(heights) / height + 1e-3),
                np.log(height / highest),
            ]
        )

    def _silhouettes(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of each item on each side: how much nearer is its own side than the other?"""
        between = self.distances[np.ix_(a, b)]

        def of(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
            own = self.distances[np.ix_(rows, rows)].sum(1) / max(len(rows) - 1, 1)
            return np.asarray((others - own) / np.maximum(np.maximum(others, own), 1e-12))

        return of(a, between.mean(1)), of(b, between.mean(0))

    def _cut(self, a: np.ndarray, b: np.ndarray) -> float:
        """The normalised cut between the sides, links to others not counted."""
        side = np.full(len(self.items), -1)
        side[a], side[b] = 0, 1
        links = np.array(
            [[np.sum(side[self.nearest[rows]] == s) for s in (0, 1)] for rows in (a, b)]
        )
        crossing = links[0, 1] + links[1, 0]
        return sum(crossing / max(2 * links[s, s] + crossing, 1) for s in (0, 1))


def _along_the_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Two sets seen along the line between their centres: separation, and items halfway.

    The first is the log of the distance of the centres over the deviation of the sets; the second
    the log of the density halfway over that at the centres.
    """
    line = y.mean(0) - x.mean(0)
    length = max(float(line @ line), 1e-12)
    along = [(part - x.mean(0)) @ line / length for part in (x, y)]  # 0 and 1 at the centres
    separation = -0.5 * np.log((along[0].var() + along[1].var()) / 2 + 1e-6)
    halfway = np.mean(np.abs(np.concatenate(along) - 0.5) < NEAR)
    at_centres = min(np.mean(np.abs(along[place] - place) < NEAR) for place in (0, 1))
    return float(separation), float(np.log((halfway + 0.01) / (at_centres + 0.01)))


# --- what is learnt --------------------------------------------------------------------------


def learn_splits(
    reduced: np.ndarray,
    labels: np.ndarray,
    random: np.random.Generator,
    settings: EpisodeSettings | None = None,
) -> SplitModel:
    """Learn which splits part classes, from episodes on labelled items of the space.

    ``reduced`` are the items before any class scaled the space: in each episode, classes that are
    not hidden do so. Where the labels allow no episode, round clouds stand for classes.
    """
    settings = settings or EpisodeSettings()
    measures, truth, n_used = _try_episodes(reduced, labels, settings, random)
    if len(set(truth)) < 2:
        clouds, of_cloud = simulated_classes(random)
        measures, truth, _ = _try_episodes(clouds, of_cloud, settings, random)
        n_used = 0
    rows = np.stack(measures)
    mean, scale = rows.mean(0), rows.std(0) + 1e-3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few splits of one kind converge slowly
        fitted = linear_model.LogisticRegression(max_iter=500).fit((rows - mean) / scale, truth)
    return SplitModel(mean, scale, fitted.coef_[0], float(fitted.intercept_[0]), n_used)


def _try_episodes(
    reduced: np.ndarray,
    labels: np.ndarray,
    settings: EpisodeSettings,
    random: np.random.Generator,
) -> tuple[list[np.ndarray], list[bool], int]:
    """The measures of every split in every episode, and whether it parts classes."""
    measures: list[np.ndarray] = []
    truth: list[bool] = []
    episodes = draw_episodes(labels, settings, random)
    for episode in episodes:
        whitening = within_class_whitening(reduced[episode.others], labels[episode.others])
        others = whitened(reduced[episode.others], whitening)
        items = whitened(reduced[episode.hidden], whitening)
        own = labels[episode.others]
        if not len(own):
            others, own = items, labels[episode.hidden]
        found = find_splits(items, class_spread(others, own), random)
        classes = np.where(episode.is_mistaken, -1, labels[episode.hidden])
        for split in found.splits:
            a, b = (_most_frequent(classes[rows]) for rows in split.parts)
            if a is not None and b is not None:
                measures.append(split.measures)
                truth.append(a != b)
    return measures, truth, len(episodes)


def _most_frequent(classes: np.ndarray) -> int | None:
    """The class most items are of; None where all items are mistaken ones."""
    there = classes[classes >= 0]
    return int(np.bincount(there).argmax()) if len(there) else None


def class_spread(rows: np.ndarray, labels: np.ndarray) -> float:
    """The mean squared distance of an item to the centre of its class, in the mean of classes."""
    parts = [rows[labels == c] for c in np.unique(labels)]
    spreads = [((part - part.mean(0)) ** 2).sum(1).mean() for part in parts if len(part) > 1]
    return float(np.mean(spreads)) if spreads else 1.0


def simulated_classes(random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Round clouds in ten dimensions, some far apart and some overlapping, and their numbers."""
    n_classes, n_each = N_SIMULATED
    centres = random.normal(size=(n_classes, 10)) * random.uniform(0.7, 2.5, (n_classes, 1))
    labels = np.repeat(np.arange(n_classes), n_each)
    return (centres[labels] + random.normal(size=(len(labels), 10))).astype(np.float32), labels
