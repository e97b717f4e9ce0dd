"""Signs that an item is of no known class, and their sum.

Each sign rises with the belief that an item is unknown. Signs come in families, which see different
things: what f answers, how far the nearest labelled items and the centres of classes are in the
inputs, how few of the neighbours there are labelled, and both in the embedding of f. Every family
weighs the same: a sum needs no weights that would have to be learnt from this pool, and so cannot
learn what else, apart from classes, differs between labelled items and pool.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.filter.neighbours import (
    FEW_NEIGHBOURS,
    MOST_NEIGHBOURS,
    N_COMPONENTS,
    Neighbours,
    find_neighbours,
    input_spaces,
    lack_by_distance,
    lack_of_known,
    mahalanobis_distance,
    nearest_labelled,
    principal_components,
)
from s2osc.pipeline.filter.unknown_probability import ranks
from s2osc.pipeline.teacher import TeacherOutputs
from s2osc.seeding import rng
from s2osc.types import Labelled

FEWEST_OF_CLASS = 20
"""A class with fewer reference items is standardised together with the others."""
N_TEACHING_FOLDS = 3
"""Where the inputs alone are judged, each third of the labelled items teaches once: enough to know
what is usual, and the others, more than half, judge."""
KNOWN_NEIGHBOURS = "known neighbours, inputs "
"""How the signs of neighbours among the inputs are named, before the number of their space."""
LEAST_SPREAD = 0.25
"""Of the common spread: what a class that hardly varies counts with at least."""


@dataclass(frozen=True, eq=False)
class Signs:
    """The signs of n items, with the name of each sign and the family it belongs to."""

    columns: np.ndarray  # (n, m)
    names: tuple[str, ...]
    families: tuple[str, ...]

    def take(self, signs: np.ndarray) -> "Signs":
        """Only some of the signs."""
        chosen = np.arange(len(self.names))[signs]
        return Signs(
            self.columns[:, chosen],
            tuple(self.names[i] for i in chosen),
            tuple(self.families[i] for i in chosen),
        )

    def of_rows(self, rows: slice) -> "Signs":
        return replace(self, columns=self.columns[rows])

    def by_family(self, values: np.ndarray) -> np.ndarray:
        """(n, families): the mean of ``values`` (n, m) over the signs of each family."""
        return _mean_of_groups(values, self.families)

    def by_kind(self, values: np.ndarray) -> np.ndarray:
        """(n, kinds): the mean over the signs that measure the same in several spaces."""
        return _mean_of_groups(values, [name.partition(",")[0] for name in self.names])


def is_of_inputs(name: str) -> bool:
    """Whether a sign is the lack of labelled neighbours among the inputs, by its name."""
    return name.startswith(KNOWN_NEIGHBOURS)


def _mean_of_groups(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    kinds = list(dict.fromkeys(groups))
    of_sign = np.array([kinds.index(group) for group in groups])
    return np.stack([values[:, of_sign == i].mean(axis=1) for i in range(len(kinds))], axis=1)


class InputSigns(NamedTuple):
    """Signs that f has no part in, so that training items can judge, too: most of them do.

    A third of all labelled items teaches, the others judge; training items that were chosen, not
    drawn, are no sample of their class, and all of them teach. Rows are the pool, then all labelled
    items. Nothing depends on which of pool and judges is which, so that known items of the pool and
    judges are exchangeable.
    """

    signs: Signs
    names: np.ndarray  # (n,) the class most of the nearest teaching items have
    is_spy: np.ndarray  # (n,) teaches
    is_judge: np.ndarray  # (n,)


class MeasuredInputs(NamedTuple):
    """The inputs of pool, held-back and training items as points, and the signs of one fold."""

    spaces: list["Space"]
    labels: np.ndarray  # (n,) -1 for the pool
    folds: list[np.ndarray]  # (n,) who teaches in each fold
    free: InputSigns  # of the first fold


class Measured(NamedTuple):
    """All signs of the items, and those of the inputs alone."""

    signs: Signs  # of pool, calibration items and spies
    without_spies: Signs  # of the same, where training items alone are known: all others may judge
    folds: tuple[InputSigns, ...]  # of the inputs: each labelled item teaches in one of them
    labels: np.ndarray  # of the judges of the first fold

    @property
    def of_inputs(self) -> InputSigns:
        """The first fold."""
        return self.folds[0]


def measure_inputs(pooled: Pool, training: Labelled, *, seed: int) -> MeasuredInputs:
    """What the inputs alone say, as far as it takes to compare the sources."""
    labels = np.concatenate([np.full(pooled.n, -1), pooled.held_back_labels, training.labels])
    is_training = np.arange(len(labels)) >= len(pooled.inputs)
    spaces = find_spaces(np.concatenate([pooled.inputs, training.inputs]), seed=seed)
    folds = teaching_folds(labels, None if pooled.training_is_random else is_training, seed=seed)
    free = signs_of_fold(spaces, labels, folds[0], seed=seed)
    return MeasuredInputs(spaces, labels, folds, free)


def measure_signs(
    inputs: MeasuredInputs,
    pooled: Pool,
    teacher_outputs: TeacherOutputs,
    of_training: TeacherOutputs,
    w: np.ndarray,
    training: Labelled,
    *,
    seed: int,
) -> Measured:
    """The signs of all items; ``w`` is Eq. 2. Calibration items count as unlabelled in all."""
    spaces, labels, (_, *others), free = inputs
    n, rows = len(pooled.inputs), np.arange(len(labels))
    # Known are spies and training items, or training items alone.
    of_inputs, by_training = (
        signs_of_inputs(spaces, is_known, labels, seed=seed)[0].of_rows(slice(n))
        for is_known in (rows >= pooled.n_unlabelled, rows >= n)
    )
    in_embedding = _signs_of_embedding(pooled, teacher_outputs, of_training, training, seed=seed)
    of_f = Signs(np.stack([w, teacher_outputs.entropy], axis=1), ("w", "entropy of f"), ("f", "f"))
    is_distance = np.array([name.startswith("distance") for name in in_embedding.names])
    return Measured(
        signs=joined_signs(of_f, of_inputs, in_embedding),
        without_spies=joined_signs(of_f, by_training, in_embedding.take(is_distance)),
        folds=(free, *(signs_of_fold(spaces, labels, each, seed=seed) for each in others)),
        labels=labels[free.is_judge],
    )


def teaching_folds(
    labels: np.ndarray, teaching: np.ndarray | None, *, seed: int
) -> list[np.ndarray]:
    """Who teaches in each fold: ``teaching`` in a single one; None: each labelled item once."""
    if teaching is not None:
        return [teaching]
    rows = rng(seed, "teaching").permutation(np.flatnonzero(labels >= 0))
    parts = np.array_split(rows, min(N_TEACHING_FOLDS, len(rows)))
    return [np.isin(np.arange(len(labels)), part) for part in parts]


def signs_of_fold(
    spaces: Sequence["Space"], labels: np.ndarray, teaches: np.ndarray, *, seed: int
) -> InputSigns:
    """The signs of the inputs where some labelled items teach and the others judge."""
    found = signs_of_inputs(spaces, teaches, labels, seed=seed)
    return InputSigns(*found, teaches, (labels >= 0) & ~teaches)


class Space(NamedTuple):
    """All items as points of one space, with the nearest neighbours of each."""

    points: np.ndarray
    neighbours: Neighbours


def find_spaces(inputs: np.ndarray, *, seed: int) -> list[Space]:
    """The spaces of the inputs, with neighbours among all items."""
    what = "neighbours among the inputs"
    return [
        Space(points, find_neighbours(points, len(points), seed=seed, what=what))
        for points in input_spaces(inputs, seed=seed)
    ]


def signs_of_inputs(
    spaces: Sequence[Space], is_known: np.ndarray, labels: np.ndarray, *, seed: int
) -> tuple[Signs, np.ndarray]:
    """How few known neighbours every item has and how far they are, where ``is_known`` alone count.

    Also the class (n,) that most of the nearest known items have, by vote over the spaces.
    """
    rows, n_classes = np.flatnonzero(is_known), max(int(labels.max()) + 1, 1)
    found, votes = [], np.zeros((len(labels), n_classes))
    for number, (points, near) in enumerate(spaces, start=1):
        for k in (FEW_NEIGHBOURS, MOST_NEIGHBOURS):
            lack = lack_of_known(near, is_known.astype(float), k)
            found.append((f"{KNOWN_NEIGHBOURS}{number}, {k}", "neighbours", lack))
        nearest = nearest_labelled(
            points,
            rows,
            labels[rows],
            n_classes,
            neighbours=near,
            seed=seed,
            what="nearest labelled items",
        )
        found.append((f"distance, inputs {number}", "distance", nearest.distance))
        ratio = lack_by_distance(points, near, nearest.distance, float(is_known.mean()))
        found.append((f"relative distance, inputs {number}", "neighbours", ratio))
        centre = mahalanobis_distance(points, rows, labels[rows])
        found.append((f"distance from centres, inputs {number}", "distance", centre))
        votes[np.arange(len(labels)), nearest.votes] += 1
    return _stack(found), votes.argmax(axis=1)


def _signs_of_embedding(
    pooled: Pool,
    teacher_outputs: TeacherOutputs,
    of_training: TeacherOutputs,
    training: Labelled,
    *,
    seed: int,
) -> Signs:
    """The same in f's embedding: the spies among the neighbours, the distance to training items."""
    embeddings = teacher_outputs.embeddings
    embedded = principal_components(embeddings, N_COMPONENTS["embedding"], seed=seed)
    near = find_neighbours(embedded, len(embeddings), seed=seed, what="neighbours in f's embedding")
    found = []
    for k in (FEW_NEIGHBOURS, MOST_NEIGHBOURS):
        lack = lack_of_known(near, pooled.is_spy.astype(float), k)
        found.append((f"known neighbours, embedding, {k}", "embedding", lack))
    points = np.concatenate([embeddings, of_training.embeddings])
    nearest = nearest_labelled(
        points,
        np.arange(len(embeddings), len(points)),
        training.labels,
        training.n_classes,
        n_scored=len(embeddings),
        seed=seed,
        what="nearest labelled items in f's embedding",
    )
    found.append(("distance, embedding", "embedding", nearest.distance))
    return _stack(found)


def joined_signs(*parts: Signs) -> Signs:
    return Signs(
        np.concatenate([part.columns for part in parts], axis=1),
        sum((part.names for part in parts), ()),
        sum((part.families for part in parts), ()),
    )


def _stack(found: Sequence[tuple[str, str, np.ndarray]]) -> Signs:
    names, families, columns = zip(*found, strict=True)
    return Signs(np.stack(columns, axis=1), names, families)


def sum_of_signs(signs: Signs, names: np.ndarray, is_reference: np.ndarray) -> np.ndarray:
    """(n,) the mean over the families of the standardised signs."""
    return signs.by_family(standardise(signs.columns, names, is_reference)).mean(axis=1)


def score_of_signs(signs: Signs, names: np.ndarray, is_reference: np.ndarray) -> np.ndarray:
    """(n,) how distinct every item is: its rank by two scores, added.

    The sum of all families, which no single one misleads; and the neighbours among the inputs,
    which f has no part in: f looks at what tells known classes apart, and that may hide a new one.
    Nothing is learnt from the pool.
    """
    by_all = ranks(sum_of_signs(signs, names, is_reference))
    near = np.array([is_of_inputs(name) for name in signs.names])
    if not near.any():
        return by_all
    of_near = [ranks(column) for column in signs.take(near).columns.T]
    return by_all + ranks(np.mean(of_near, axis=0))


def rankings(signs: Signs, names: np.ndarray, is_reference: np.ndarray) -> np.ndarray:
    """(n, m) scores to find the unknown by: each kind of sign, the sum of all, and the score.

    A sign by itself is standardised over all classes: the spread of each is known too roughly for
    the very top of a ranking, and the test looks at each predicted class by itself, too.
    """
    nameless = np.zeros(len(names), int)
    of_kinds = signs.by_kind(standardise(signs.columns, nameless, is_reference))
    total = sum_of_signs(signs, names, is_reference)
    return np.column_stack([of_kinds, total, score_of_signs(signs, names, is_reference)])


def standardise(values: np.ndarray, names: np.ndarray, is_reference: np.ndarray) -> np.ndarray:
    """Columns in units of the upper spread of the reference items of the same predicted class.

    Far out they grow as their logarithm, so that no sign silences the others.

    >>> standardise(np.array([0.0, 1, 2, 4]), np.zeros(4, int), np.arange(4) < 3).round(2).tolist()
    [-1.05, 0.0, 1.05, 2.03]
    """
    middle, spread = _middle_and_spread(values[is_reference])
    centred = np.empty(values.shape)
    for name in np.unique(names):
        rows = names == name
        own = values[is_reference & rows]
        at, scale = _middle_and_spread(own) if len(own) >= FEWEST_OF_CLASS else (middle, spread)
        least = np.maximum(LEAST_SPREAD * spread, 1e-12)
        centred[rows] = (values[rows] - at) / np.maximum(scale, least)
    return np.arcsinh(centred)


def _middle_and_spread(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of each column."""
    if not len(values):
        return np.zeros(values.shape[1:]), np.ones(values.shape[1:])
    middle, upper = np.quantile(values, [0.5, 0.9], axis=0)
    return middle, upper - middle
