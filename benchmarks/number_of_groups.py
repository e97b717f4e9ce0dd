"""Learn the default weights of the number of groups: pools of some data sets.

    python benchmarks/number_of_groups.py a.npz b.npz ...

Each file holds x, vectors or images, and y, their classes. Of each, pools are drawn as a run leaves
them to the grouping: some classes are known, one to five (of many classes up to ten) are not, in
every fourth pool some of these are rare; a part of the unknown items is missed, those nearest to
known ones first, and a few known items are among them by mistake. Prints how often the weights
learnt from all other files find the number within one, and, of all files, the scale of each measure
and its default weight, as they stand in ``pipeline/grouping/number.py``.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors

from s2osc.pipeline.grouping.company import choose_items
from s2osc.pipeline.grouping.evidence import (
    MEASURES,
    MOST_GROUPS,
    class_spread,
    find_parts,
    measure_numbers,
)
from s2osc.pipeline.grouping.number import Choice, fit_weights
from s2osc.pipeline.grouping.space import fit_space
from s2osc.types import UNKNOWN

N_ROUNDS = 6
NUMBERS = (1, 2, 3, 4, 5, 8, 10)
N_IN_POOL = 100  # items of a known class
RAREST = 0.06  # of the items of the first unknown class
FEWEST = 8
INERTIA = 1.0


def choices_of(inputs: np.ndarray, labels: np.ndarray) -> list[Choice]:
    """What is measured in each pool, and how many classes there are."""
    return [
        choice
        for seed in range(N_ROUNDS)
        for number in NUMBERS
        for choice in measured(inputs, labels, number, np.random.default_rng([seed, number]))
    ]


def measured(
    inputs: np.ndarray, labels: np.ndarray, number: int, random: np.random.Generator
) -> Iterator[Choice]:
    """One pool; none where there are too few classes or too few items."""
    classes = random.permutation(np.unique(labels))
    n_known = min(len(classes) // 2, 10)
    if number > len(classes) - n_known:
        return
    n_labelled, n_unknown = random.choice([60, 200]), random.choice([200, 600])
    rare = random.random() < 0.25
    known, pool, truth = [], [], []
    for place, c in enumerate(classes[: n_known + number]):
        rows = random.permutation(np.flatnonzero(labels == c))
        if place < n_known:
            n = min(n_labelled, 2 * len(rows) // 3)
            known.append(rows[:n])
            own = rows[n : n + N_IN_POOL]
        else:
            share = RAREST ** random.random() if rare and place > n_known else 1.0
            own = rows[: max(FEWEST, int(share * n_unknown / number))]
        pool.append(own)
        truth.append(np.full(len(own), place if place < n_known else UNKNOWN))
    of_known = np.repeat(np.arange(n_known), [len(rows) for rows in known])
    labelled, items = inputs[np.concatenate(known)], inputs[np.concatenate(pool)]
    found = items[called_unknown(labelled, of_known, items, np.concatenate(truth), random)]
    space = fit_space(labelled, of_known, found, seed=0)
    whitened = space.transform(labelled)
    grouped, _ = choose_items(space.transform(found), whitened, of_known, random)
    parts = find_parts(grouped, MOST_GROUPS, random)
    if number <= parts.tree.n_leaves:
        spread = class_spread(whitened, of_known)
        yield Choice(measure_numbers(grouped, parts, spread), number)


def called_unknown(
    labelled: np.ndarray,
    labels: np.ndarray,
    items: np.ndarray,
    truth: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray:
    """Rows of the items called unknown: 70 to 98 % of those that are, 1 to 8 % of the others."""
    space = fit_space(labelled, labels, items, seed=0)
    search = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(space.transform(labelled))
    distances = search.kneighbors(space.transform(items))[0].mean(1)
    score = distances.argsort().argsort() / len(items) + random.normal(0, 0.15, len(items))
    called = []
    for is_called, low, high in ((truth == UNKNOWN, 0.7, 0.98), (truth != UNKNOWN, 0.01, 0.08)):
        rows = np.flatnonzero(is_called)
        n = int(random.uniform(low, high) * len(rows))
        called.append(rows[np.argsort(-score[rows])[:n]])
    return np.sort(np.concatenate(called))


def learn(choices: list[Choice]) -> tuple[np.ndarray, np.ndarray]:
    """The scale of each measure, and its weight over that."""
    rows = np.concatenate([choice.measures - choice.measures.mean(0) for choice in choices])
    scales = rows.std(0)
    scaled = [Choice(choice.measures / scales, choice.right) for choice in choices]
    return scales, fit_weights(scaled, np.zeros(len(MEASURES)), INERTIA)


def within_one(choices: list[Choice], scales: np.ndarray, weights: np.ndarray) -> float:
    """How often the median of the probabilities is within one of the right number."""
    found = []
    for choice in choices:
        odds = choice.measures / scales @ weights
        chances = np.exp(odds - odds.max())
        median = 1 + int(np.searchsorted(np.cumsum(chances / chances.sum()), 0.5))
        found.append(abs(median - choice.right) <= 1)
    return float(np.mean(found))


def main(paths: list[str]) -> None:
    choices = {}
    for path in paths:
        with np.load(path) as held:
            choices[Path(path).stem] = choices_of(held["x"], held["y"])
    for name, own in choices.items() if len(choices) > 1 else ():
        scales, weights = learn([each for key, of in choices.items() if key != name for each in of])
        print(
            f"{name}: {len(own)} pools, within one by others {within_one(own, scales, weights):.2f}"
        )
    everything = [choice for own in choices.values() for choice in own]
    scales, weights = learn(everything)
    print(f"{len(everything)} pools")
    for name, scale, weight in zip(MEASURES, scales, weights, strict=True):
        print(f'    "{name}": ({scale:.3f}, {weight:.2f}),')


if __name__ == "__main__":
    main(sys.argv[1:])
