"""Does the test "nothing is unknown" find what it should, and only that?

    python benchmarks/unknown_test.py [--null 1000] [--rounds 12] [--large]

Gaussian classes in 32 columns, wine and null pools of several kinds go through the filter without f
and without g: the signs of the inputs, judged in three folds of the labelled items. For each kind
of pool the table says how often something unknown is found at the 1 and 5 % levels, the median
p-value and the seconds per pool. ``--large`` adds pools of 50,000 items, minutes each.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_wine

from s2osc.pipeline.audit.unknown_test import findable_share, most_agree
from s2osc.pipeline.filter.far_items import measure_far_items
from s2osc.pipeline.filter.screening import p_value_of_fold, tail_of_a_class
from s2osc.pipeline.filter.signs import find_spaces, signs_of_fold, teaching_folds
from s2osc.pipeline.scaling import fit_scaling
from s2osc.types import Labelled

N_COLUMNS = 32


class Case(NamedTuple):
    """A kind of pool."""

    name: str
    draw: Callable[[int], tuple[Labelled, np.ndarray]]
    n: int  # pools


def gaussian(
    seed: int,
    *,
    n_pool: int,
    n_unknown: int = 0,
    n_labelled: int,
    n_classes: int = 10,
    apart: float = 8.0,
    ratio: float = 1.0,  # of the largest class to the smallest
    freedom: float | None = None,  # of Student's t; None: Gaussian
) -> tuple[Labelled, np.ndarray]:
    """Labelled items and a pool; all centres are equally far from each other."""
    random = np.random.default_rng(seed)
    directions, _ = np.linalg.qr(random.normal(size=(N_COLUMNS, N_COLUMNS)))
    centres = directions[: n_classes + 1] * apart / np.sqrt(2)
    shares = ratio ** -np.linspace(0, 1, n_classes)
    labels, known = (
        random.choice(n_classes, n, p=shares / shares.sum())
        for n in (n_labelled, n_pool - n_unknown)
    )
    labels[:n_classes] = np.arange(n_classes)  # each class has one

    def items(classes: np.ndarray) -> np.ndarray:
        noise = random.normal(size=(len(classes), N_COLUMNS))
        if freedom:
            noise /= np.sqrt(random.chisquare(freedom, (len(classes), 1)) / freedom)
        return (centres[classes] + noise).astype(np.float32)

    pool = items(np.append(known, np.full(n_unknown, n_classes)))
    return Labelled(items(labels), labels), pool


def wine(seed: int, *, n_labelled: int = 60) -> tuple[Labelled, np.ndarray]:
    """Two classes of wine with labels, the third without; as many labelled items as given."""
    random, (inputs, classes) = np.random.default_rng(seed), load_wine(return_X_y=True)
    unknown = seed % 3
    rows = random.permutation(np.flatnonzero(classes != unknown))
    labels = np.unique(classes[rows], return_inverse=True)[1]
    pool = np.append(rows[n_labelled:], np.flatnonzero(classes == unknown))
    known = Labelled(inputs[rows[:n_labelled]].astype(np.float32), labels[:n_labelled])
    return known, inputs[pool].astype(np.float32)


def p_value(known: Labelled, pool: np.ndarray, *, seed: int) -> float:
    """As the filter finds it where f finds nothing: by the folds of the inputs, or by the tail."""
    scaling = fit_scaling(known.inputs, pool)
    spaces = find_spaces(
        np.concatenate([scaling.transform(pool), scaling.transform(known.inputs)]), seed=seed
    )
    labels = np.append(np.full(len(pool), -1), known.labels)
    teaching = teaching_folds(labels, None, seed=seed)
    folds = tuple(signs_of_fold(spaces, labels, each, seed=seed) for each in teaching)
    exact = min(1.0, 2 * most_agree([p_value_of_fold(fold, labels) for fold in folds]))
    far = measure_far_items([space.points for space in spaces], labels, seed=seed)
    tail = tail_of_a_class(far, labels >= 0)
    return exact if tail is None else min(exact, tail.p_value)


def cases(n_null: int, n_rounds: int, *, large: bool) -> list[Case]:
    def of(**options: float) -> Callable[[int], tuple[Labelled, np.ndarray]]:
        return lambda seed: gaussian(seed, **options)  # type: ignore[arg-type]

    small = {"n_pool": 500, "n_labelled": 1_500, "n_classes": 5}
    few = {"n_pool": 500, "n_labelled": 100, "n_classes": 5}
    found = [
        Case("null, 300 labelled of each class", of(**small), n_null // 4),
        Case("null, 20 labelled of each class", of(**few), n_null // 4),
        Case("null, classes 20:1, heavy tails", of(**few, ratio=20, freedom=3), n_null // 4),
        Case("null, classes that overlap", of(**few, apart=3), n_null // 4),
        Case(
            "25 of 500, 1,500 labelled, 6 deviations", of(**small, n_unknown=25, apart=6), n_rounds
        ),
        Case("50 of 500, 100 labelled, 8 deviations", of(**few, n_unknown=50), n_rounds),
        Case("200 of 500, 100 labelled, 6 deviations", of(**few, n_unknown=200, apart=6), n_rounds),
        Case("wine, a class unnamed, 60 labelled", wine, 10),
        Case("1 % of 5,000, 2,000 labelled", of(n_pool=5_000, n_unknown=50, n_labelled=2_000), 5),
    ]
    n_findable = round(500 * findable_share(500, 1_000, 0.01))
    found.append(
        Case(
            f"the findable share: {n_findable} of 500, 20 deviations",
            of(**small, n_unknown=n_findable, apart=20),
            n_rounds,
        )
    )
    if large:
        for n in (500, 100):
            name = f"{n / 500:g} % of 50,000, 2,000 labelled"
            found.append(Case(name, of(n_pool=50_000, n_unknown=n, n_labelled=2_000), 1))
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--null", type=int, default=1_000, help="pools with nothing unknown")
    parser.add_argument("--rounds", type=int, default=12, help="pools of each other kind")
    parser.add_argument("--large", action="store_true", help="pools of 50,000 items, too")
    chosen = parser.parse_args(words)
    print("| pools | n | found at 1 % | at 5 % | median p | seconds |\n|---|---|---|---|---|---|")
    for case in cases(chosen.null, chosen.rounds, large=chosen.large):
        begun = time.perf_counter()
        p = np.array([p_value(*case.draw(seed), seed=seed) for seed in range(case.n)])
        seconds = (time.perf_counter() - begun) / case.n
        at = [f"{int((p <= level).sum())}" for level in (0.01, 0.05)]
        print(
            f"| {case.name} | {case.n} | {at[0]} | {at[1]} | {np.median(p):.2g} | {seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
