"""Learn the default weights of the number of groups: pools of some data sets.

    python benchmarks/number_of_groups.py a.npz b.npz ...

Each file holds x, vectors or images, and y, their classes. Of each, pools are drawn as a run leaves
them to the grouping: some classes are known, one to five (of many classes up to ten) are not, in
every tenth pool some of these are rare; a part of the unknown items is missed, those nearest to
known ones first, and a few known items are among them by mistake. Prints how often the weights
learnt from all other files find the number, exactly and within one, and, of all files, the scale of
each measure and its default weight, as they stand in ``pipeline/grouping/number.py``, and the walk
in a class in the mean, as it stands in ``pipeline/grouping/classes.py``.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.neighbors import NearestNeighbors

from s2osc.pipeline.group_tree import median_number
from s2osc.pipeline.grouping.classes import UsualClass, usual_class, walks_within
from s2osc.pipeline.grouping.evidence import MEASURES, MOST_GROUPS, find_parts, measure_numbers
from s2osc.pipeline.grouping.item_selection import choose_items
from s2osc.pipeline.grouping.number import SCALES, Choice, NumberModel, fit_weights
from s2osc.pipeline.grouping.space import fit_space
from s2osc.types import UNKNOWN

N_ROUNDS = 6
NUMBERS = (1, 2, 3, 4, 5, 8, 10)
N_IN_POOL = 100  # items of a known class
RAREST = 0.06  # of the items of the first unknown class
RARE = 0.1  # of the pools: a class of eight items cannot be found, and teaches that fewer is right
FEWEST = 8
INERTIA = 1.0


def choices_of(inputs: np.ndarray, labels: np.ndarray) -> tuple[list[Choice], list[UsualClass]]:
    """What is measured in each pool, with how many classes there are, and what a class is there."""
    found = [
        pool
        for seed in range(N_ROUNDS)
        for number in NUMBERS
        for pool in measured(inputs, labels, number, np.random.default_rng([seed, number]))
    ]
    return [choice for choice, _ in found], [usual for _, usual in found]


def measured(
    inputs: np.ndarray, labels: np.ndarray, number: int, random: np.random.Generator
) -> Iterator[tuple[Choice, UsualClass]]:
    """One pool; none where there are too few classes or too few items."""
    classes = random.permutation(np.unique(labels))
    n_known = min(len(classes) // 2, 10)
    if number > len(classes) - n_known:
        return
    n_labelled, n_unknown = random.choice([60, 200]), random.choice([200, 600])
    rare = random.random() < RARE
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
    whitened, placed = space.transform(labelled), space.place(found)
    rows, _ = choose_items(placed.scaled, whitened, of_known, random)
    placed = placed.of(rows)
    parts = find_parts(placed.scaled, MOST_GROUPS, random)
    if number <= parts.tree.n_leaves:
        usual = usual_class(whitened, of_known, walks_within(whitened, of_known, random))
        yield Choice(measure_numbers(placed, parts, usual), number), usual


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


def errors(choices: list[Choice], scales: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(pools,) by how much the number is off."""
    model = NumberModel(weights)
    numbers = [
        median_number(model.chances(choice.measures / scales * SCALES)) for choice in choices
    ]
    return np.abs(np.array(numbers) - [choice.right for choice in choices])


def main(paths: list[str]) -> None:
    choices, usual = {}, []
    for path in paths:
        with np.load(path) as held:
            choices[Path(path).stem], own_usual = choices_of(held["x"], held["y"])
            usual += own_usual
    for name, own in choices.items() if len(choices) > 1 else ():
        scales, weights = learn([each for key, of in choices.items() if key != name for each in of])
        off = errors(own, scales, weights)
        print(
            f"{name}: {len(own)} pools; by weights of the others, the number is right in "
            f"{np.mean(off == 0):.2f} and within one in {np.mean(off <= 1):.2f}"
        )
    everything = [choice for own in choices.values() for choice in own]
    scales, weights = learn(everything)
    print(f"{len(everything)} pools")
    for name, scale, weight in zip(MEASURES, scales, weights, strict=True):
        print(f'    "{name}": ({scale:.3f}, {weight:.2f}),')
    print("walk in a class:", np.mean([each.walk for each in usual], axis=0).round(2).tolist())


if __name__ == "__main__":
    main(sys.argv[1:])
