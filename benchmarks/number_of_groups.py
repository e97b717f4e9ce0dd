"""Learn the default weights of the number of groups: episodes on all classes of some data sets.

    python benchmarks/number_of_groups.py a.npz b.npz ...

Each file holds x, vectors or images, and y, their classes. Prints the scale of each measure and its
default weight, as they stand in ``pipeline/grouping/number.py``.
"""

import sys

import numpy as np

from s2osc.pipeline.grouping.evidence import MEASURES, MOST_GROUPS
from s2osc.pipeline.grouping.number import EPISODES, Choice, fit_weights, try_episodes
from s2osc.pipeline.grouping.space import fit_space

N_OF_CLASS = 200
N_ROUNDS = 12
INERTIA = 1.0


def choices_of(inputs: np.ndarray, labels: np.ndarray) -> list[Choice]:
    """Episodes on half of the classes, in a space that is fitted to the other half, too.

    Small numbers of groups are the most frequent ones, as in a pool.
    """
    found = []
    for number in range(N_ROUNDS):
        random = np.random.default_rng(number)
        classes = random.permutation(np.unique(labels))
        rows = [random.permutation(np.flatnonzero(labels == c))[:N_OF_CLASS] for c in classes]
        n_known = len(classes) // 2
        known, unknown = np.concatenate(rows[:n_known]), np.concatenate(rows[n_known:])
        own = labels[known]
        space = fit_space(inputs[known], own, inputs[unknown], seed=number)
        found += try_episodes(space.reduce(inputs[known]), own, EPISODES, random)
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
