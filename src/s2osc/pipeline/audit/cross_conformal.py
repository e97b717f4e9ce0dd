"""Few labelled items judge by turns: the steps are repeated in folds, and their evidence joined.

In each fold other labelled items are the calibration items, the rest teaches (cross-conformal
prediction, Vovk). Each fold has networks of its own, and its scores have a scale of their own. The
pool is the same in all: so a score becomes its place among those of the pool, which means the same
in every fold. The pool is ranked by the mean of the places of each item; a calibration item has the
place of its own fold.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.audit.confidence import LEAST
from s2osc.pipeline.audit.threshold import Evidence

stats = lazily("scipy.stats")


class NamedItems(NamedTuple):
    """Held-back items, and whether the known class that each is given is right."""

    softmax: np.ndarray  # (m,) of that class, given that the item is known
    is_right: np.ndarray  # (m,)
    weights: np.ndarray  # (m,)


class Judged(NamedTuple):
    """What was measured for the n items of the pool and m calibration items."""

    evidence: Evidence
    odds: np.ndarray  # (n + m,) log-odds of g
    known: np.ndarray  # (n, C) probabilities of the known classes
    held_back: NamedItems


def join_folds(folds: Sequence[Judged]) -> Judged:
    """The evidence of all folds, on the scale of the first one, whose g answers new items.

    The odds of the pool stay those of the first fold; calibration items of the others are put where
    they stand among the odds of the pool in their own fold.
    """
    first = folds[0]
    if len(folds) == 1:
        return first
    n = len(first.evidence.score)
    scores = [fold.evidence.score for fold in folds]
    # Means vary less than single places, so they are ranked again: in each fold, too, the places
    # of the pool are spread evenly.
    place = places_within(np.mean([places_within(score) for score in scores], axis=0))
    place_of_seeds = [places_among(fold.evidence.score, fold.evidence.seed_score) for fold in folds]
    odds_of_others = [places_among(fold.odds[:n], fold.odds[n:]) for fold in folds[1:]]
    known = np.mean([given_known(fold.known) for fold in folds], axis=0)
    evidence = replace(
        first.evidence,
        score=at_places(scores[0], place),
        nearest=known.argmax(axis=1),
        seed_score=at_places(scores[0], np.concatenate(place_of_seeds)),
        seed_label=np.concatenate([fold.evidence.seed_label for fold in folds]),
        seed_nearest=np.concatenate([fold.evidence.seed_nearest for fold in folds]),
        seed_weight=np.concatenate([fold.evidence.seed_weight for fold in folds]),
    )
    held_back = zip(*(fold.held_back for fold in folds), strict=True)
    return Judged(
        evidence=evidence,
        odds=np.append(first.odds, at_places(first.odds[:n], np.concatenate(odds_of_others))),
        known=known,
        held_back=NamedItems(*map(np.concatenate, held_back)),
    )


def given_known(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities (n, C) of the known classes, given that an item is known.

    One that is surely unknown has next to none of any; they stay as small as they are.

    >>> given_known(np.array([[0.3, 0.1], [0.0, 0.0]])).round(2).tolist()
    [[0.75, 0.25], [0.0, 0.0]]
    """
    return probabilities / np.maximum(probabilities.sum(axis=1, keepdims=True), LEAST)


def places_within(scores: np.ndarray) -> np.ndarray:
    """Where each score stands among the others, from 0 to 1; equal ones alike.

    >>> places_within(np.array([5.0, 1.0, 9.0])).tolist()
    [0.5, 0.0, 1.0]
    """
    return (stats.rankdata(scores) - 1) / max(len(scores) - 1, 1)


def places_among(scores: np.ndarray, further: np.ndarray) -> np.ndarray:
    """Where further scores stand among the ``scores``, from 0 to 1.

    >>> places_among(np.array([5.0, 1.0, 9.0, 7.0]), np.array([0.0, 5.0, 8.0])).tolist()
    [0.0, 0.375, 0.75]
    """
    ordered = np.sort(scores)
    below = [np.searchsorted(ordered, further, side) for side in ("left", "right")]
    return np.asarray((below[0] + below[1]) / 2 / len(scores))


def at_places(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """The scores that stand at these places.

    >>> at_places(np.array([5.0, 1.0, 9.0]), np.array([0.0, 0.25, 1.0])).tolist()
    [1.0, 3.0, 9.0]
    """
    return np.interp(places, np.linspace(0, 1, len(scores)), np.sort(scores))
