"""Learn the default weights of the number of groups: episodes on all classes of some data sets.

    python benchmarks/number_of_groups.py a.npz b.npz ...

Each file holds x, vectors or images, and y, their classes. Prints the scale of each measure and its
default weight, as they stand in ``pipeline/grouping/number.py``.
"""

import sys

import numpy as np

from s2osc.pipeline.episodes import EpisodeSettings
from s2osc.pipeline.grouping.evidence import MEASURES, MOST_GROUPS
from s2osc.pipeline.grouping.number import Choice, fit_weights, try_episodes
from s2osc.pipeline.grouping.space import fit_space

N_OF_CLASS = 200
N_ROUNDS = 4  # each with half of the classes, so that small numbers of groups are the most frequent
SETTINGS = EpisodeSettings(n_episodes=24, smallest=0.05)
INERTIA = 1.0


def choices_of(inputs: np.ndarray, labels: np.ndarray) -> list[Choice]:
    """Episodes on some of the classes, drawn anew in each round."""
    found = []
    for number in range(N_ROUNDS):
        random = np.random.default_rng(number)
        classes = random.permutation(np.unique(labels))
        classes = classes[: len(classes) // 2]
        rows = np.concatenate(
            [random.permutation(np.flatnonzero(labels == c))[:N_OF_CLASS] for c in classes]
        )
        known, own = inputs[rows], labels[rows]
        space = fit_space(known, own, known[:0], seed=number)
        found += try_episodes(space.reduce(known), own, SETTINGS, random)
    return [choice for choice in found if choice.right <= MOST_GROUPS]


def main(paths: list[str]) -> None:
    choices = []
    for path in paths:
        with np.load(path) as held:
            choices += choices_of(held["x"], held["y"])
    rows = np.concatenate([choice.measures - choice.measures.mean(0) for choice in choices])
    scales = rows.std(0)
    scaled = [Choice(choice.measures / scales, choice.right) for choice in choices]
    weights = fit_weights(scaled, np.zeros(len(MEASURES)), INERTIA)
    print(f"{len(choices)} episodes")
    for name, scale, weight in zip(MEASURES, scales, weights, strict=True):
        print(f'    "{name}": ({scale:.3f}, {weight:.2f}),')


if __name__ == "__main__":
    main(sys.argv[1:])
