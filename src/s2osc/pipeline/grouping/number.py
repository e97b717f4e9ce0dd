"""How many groups there are: which measures find the right number on the data at hand.

Every number from one on is a choice, and a logistic regression among the choices weighs what speaks
for each. Its weights are learnt from episodes: known classes are hidden, and the number is known.
A few known classes make few episodes that differ, so the weights stay near default ones, which are
learnt from pools of other data sets. How likely a number is before anything is measured, episodes
cannot teach: how many classes they hide is not how many are unknown. The number that is taken is
the median of the probabilities (``group_tree.median_number``).
"""

from dataclasses import dataclass

import numpy as np

from s2osc.lazy import lazily
from s2osc.pipeline.episodes import EpisodeSettings, draw_episodes
from s2osc.pipeline.grouping.classes import usual_class
from s2osc.pipeline.grouping.evidence import (
    MEASURES,
    MOST_GROUPS,
    PRIOR,
    find_parts,
    measure_numbers,
)
from s2osc.pipeline.grouping.item_selection import apart_from_known, mistaken_rows
from s2osc.pipeline.grouping.space import scaled_by, within_class_whitening

optimize = lazily("scipy.optimize")

DEFAULT_WEIGHTS = {
    "silhouette in the modes": (0.195, 0.90),
    "modes slower than a class": (3.342, 0.63),
    "next mode slower than a class": (0.607, -0.69),
    "one group": (0.249, 1.40),
    "number": (4.320, -2.82),
    "logarithm of the number": (0.755, 2.02),
    "narrower than known classes": (0.182, -0.68),
    "share of the smallest group": (1.063, 1.04),
    "near the number by silhouette": (0.536, 0.65),
    "near the number by silhouette, scaled": (0.533, 0.54),
}
"""Of each measure, its deviation over the numbers of a pool, and its weight if divided by that.
``benchmarks/number_of_groups.py`` learnt them from 300 pools of pendigits, segment, 8x8 digits,
MNIST, Fashion-MNIST, titles (vectors by wordllama and by MiniLM), and features of CINIC-10 and
CIFAR-30."""
SCALES, DEFAULT = np.array([DEFAULT_WEIGHTS[name] for name in MEASURES]).T
INERTIA = 10.0
"""How strongly weights are held at the default ones: a few episodes do not move them far."""
EPISODES = EpisodeSettings(n_episodes=18, mistaken=0.0, smallest=0.05)
MOST_MISTAKEN = 0.25
"""Mistaken items for each hidden one, at most: of many known items, a few per cent are many."""


@dataclass(frozen=True, eq=False)
class Choice:
    """What speaks for each number of groups, and the right one."""

    measures: np.ndarray  # (number, len(MEASURES))
    right: int


@dataclass(frozen=True, eq=False)
class NumberModel:
    """The weight of each measure."""

    weights: np.ndarray  # (len(MEASURES),)
    n_episodes: int = 0  # that it was learnt from; 0: the default weights

    def chances(self, measures: np.ndarray) -> np.ndarray:
        """(number,) the probability of one group, two groups, and so on."""
        odds = measures / SCALES @ self.weights
        chances = np.exp(odds - odds.max())
        return np.asarray(chances / chances.sum())


def learn_number(
    reduced: np.ndarray,
    labels: np.ndarray,
    walks: dict[int, np.ndarray],
    random: np.random.Generator,
) -> NumberModel:
    """Learn from episodes on labelled items of the space, before any class scaled it.

    ``walks`` are those within classes (``classes.walks_within``).
    """
    choices = try_episodes(reduced, labels, walks, EPISODES, random)
    if not choices:
        return NumberModel(DEFAULT)
    scaled = [Choice(choice.measures / SCALES, choice.right) for choice in choices]
    return NumberModel(fit_weights(scaled, DEFAULT, INERTIA, held=PRIOR), len(choices))


def try_episodes(
    reduced: np.ndarray,
    labels: np.ndarray,
    walks: dict[int, np.ndarray],
    settings: EpisodeSettings,
    random: np.random.Generator,
) -> list[Choice]:
    """What is measured in episodes. In each, classes that are not hidden scale the space."""
    found = []
    for episode in draw_episodes(labels, settings, random):
        others = episode.others
        whitening = within_class_whitening(reduced[others], labels[others])
        placed = scaled_by(whitening, reduced)
        mistaken = mistaken_rows(placed.scaled[others], random)
        mistaken = mistaken[: int(MOST_MISTAKEN * len(episode.hidden))]
        rows = random.permutation(np.append(episode.hidden, others[mistaken]))
        others = np.delete(others, mistaken)
        rows = rows[apart_from_known(placed.scaled[rows], placed.scaled[others])]  # as in a pool
        parts = find_parts(placed.scaled[rows], MOST_GROUPS, random)
        if episode.n_classes <= parts.tree.n_leaves:
            of_class = others if len(others) else rows
            usual = usual_class(placed.scaled[of_class], labels[of_class], walks)
            measures = measure_numbers(placed.of(rows), parts, usual)
            found.append(Choice(measures, episode.n_classes))
    return found


def fit_weights(
    choices: list[Choice], default: np.ndarray, inertia: float, held: frozenset[str] = frozenset()
) -> np.ndarray:
    """The weights under which the right numbers are likeliest, not far from default ones.

    Those of ``held`` measures stay as they are. A weight never turns its measure round: where
    groups are farther apart than in any episode, it would speak for the wrong number, and loudly.
    """
    most = max(len(choice.measures) for choice in choices)
    rows = np.zeros((len(choices), most, len(default)))
    absent = np.ones((len(choices), most), bool)
    for place, choice in enumerate(choices):
        rows[place, : len(choice.measures)] = choice.measures
        absent[place, : len(choice.measures)] = False
    right = rows[np.arange(len(choices)), [choice.right - 1 for choice in choices]]

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        odds = np.where(absent, -np.inf, rows @ weights)
        highest = odds.max(1, keepdims=True)
        chances = np.exp(odds - highest)
        total = chances.sum(1, keepdims=True)
        off = weights - default
        value = (np.log(total) + highest).sum() - (right @ weights).sum() + inertia / 2 * off @ off
        slope = np.einsum("ij,ijk->k", chances / total, rows) - right.sum(0) + inertia * off
        return float(value), slope

    bounds = [
        (weight, weight)
        if name in held
        else (0 if MEASURES[name] > 0 else None, 0 if MEASURES[name] < 0 else None)
        for name, weight in zip(MEASURES, default, strict=True)
    ]
    return np.asarray(
        optimize.minimize(cost, default, jac=True, method="L-BFGS-B", bounds=bounds).x
    )
