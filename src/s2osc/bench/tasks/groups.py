"""The groups of a whole run beside those of other ways, on what the run called unknown."""

from collections.abc import Callable
from dataclasses import asdict, replace

import numpy as np
from sklearn.cluster import HDBSCAN, KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from s2osc.bench.tasks.pool import PoolTask, judge_answer
from s2osc.bench.tasks.task import Trial
from s2osc.codec import JsonObject
from s2osc.data.datasets import Dataset
from s2osc.data.splits import Protocol, split_dataset
from s2osc.metrics import evaluate_groups
from s2osc.nets.networks import one_vector
from s2osc.nets.text_features import compute_text_features
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.grouping.space import fit_space
from s2osc.pipeline.model import OpenSetModel
from s2osc.pipeline.solution import Solution
from s2osc.progress import Stopwatch
from s2osc.seeding import derive, rng
from s2osc.types import UNKNOWN, Labelled, Split

MOST_GROUPS = 15
N_GROUPED = 1_500  # items that the other ways are shown
WAYS = ("told", "silhouette", "gcd", "hdbscan")
OF_FOUND = ("n_groups", "nmi_found")  # items the run missed change nothing about these
COUNTED = tuple(f"{way}_n_groups" for way in WAYS)


class GroupsTask(PoolTask):
    """A pool whose unknown items are grouped by us and, beside it, by others."""

    def draw(self, dataset: Dataset, protocol: Protocol, partition: int) -> Split:
        if not dataset.is_text:
            return split_dataset(dataset, protocol, partition)
        # Titles become vectors of what was drawn, so their numbers are drawn first.
        numbers = np.arange(len(dataset.inputs), dtype=np.float32)[:, None]
        split = split_dataset(replace(dataset, inputs=numbers), protocol, partition)
        model = load_text_model()
        known, pool = (
            compute_text_features(dataset.inputs[rows[:, 0].astype(int)].tolist(), model)
            for rows in (split.known.inputs, split.pool)
        )
        return replace(split, known=Labelled(known, split.known.labels), pool=pool)

    def run(self, items: Split, trial: Trial, *, device: str) -> JsonObject:
        clock, seed = Stopwatch(), trial.partition
        with clock("fit"):
            fitted = trial.method.fit(items.known, items.pool, seed=seed, device=device)
        is_ours = isinstance(fitted, Solution)
        with clock("predict"):
            answer = fitted.answer if is_ours else fitted.predict(items.pool)
        figures = asdict(judge_answer(items, fitted, answer, detects_only=False, seed=seed))
        if is_ours:
            figures["metrics"] |= compare_groups(items, fitted, seed=seed)
        seconds = dict(fitted.seconds) if is_ours else dict(clock.seconds)
        total = round(sum(seconds.values()), 1)
        return figures | {"seconds": seconds, "seconds_total": total}


def compare_groups(split: Split, solution: Solution, *, seed: int) -> dict[str, float]:
    """Number, accuracy and NMI of each way's groups; ours without scattered items in the number."""
    n_unknown = len(split.unknown_classes)
    called = np.flatnonzero(solution.answer.labels == UNKNOWN)
    called = rng(seed, "compared groups").permutation(called)[:N_GROUPED]
    model = solution.model
    found_groups = model.grouping.n_groups if isinstance(model, OpenSetModel) else 0
    figures: dict[str, float] = {"n_true": n_unknown, "n_groups": found_groups}
    if not len(called):
        # Where nothing was found, no way has groups.
        nothing = {f"{way}_n_groups": 0.0 for way in WAYS}
        if n_unknown > 1:
            nothing |= {f"{way}_{nmi}": 0.0 for way in WAYS for nmi in ("nmi", "nmi_found")}
        figures |= nothing
        return figures | _distances(figures, ("n_groups", *COUNTED), n_unknown)
    if len(called) < MOST_GROUPS + 2:
        return figures | _distances(figures, ("n_groups",), n_unknown)
    scaling = model.scaling
    known = one_vector(scaling.transform(split.known.inputs))
    unknown = one_vector(scaling.transform(split.pool[called]))
    space = fit_space(known, split.known.labels, unknown, seed=seed)
    rows, labelled = space.reduce(unknown), space.reduce(known)
    ways: tuple[Callable[[], np.ndarray], ...] = (
        lambda: kmeans(rows, n_unknown, seed),
        lambda: by_silhouette(rows, seed),
        lambda: by_known_classes(rows, labelled, split.known.labels, seed),
        lambda: HDBSCAN(max(5, len(rows) // 50), copy=True).fit_predict(rows),
    )
    truth = split.truth[called] == UNKNOWN
    is_found = (solution.answer.labels == UNKNOWN) & (split.truth == UNKNOWN)
    share = float(is_found.sum() / max(np.sum(split.truth == UNKNOWN), 1))
    for name, way in zip(WAYS, ways, strict=True):
        found = evaluate_groups(split.truth_classes[called], truth, way())
        for figure, value in found.items():
            # Items the run missed are wrong for every way.
            figures[f"{name}_{figure}"] = value * (1.0 if figure in OF_FOUND else share)
    return figures | _distances(figures, ("n_groups", *COUNTED), n_unknown)


def _distances(
    figures: dict[str, float], names: tuple[str, ...], n_unknown: int
) -> dict[str, float]:
    """1 where a number of groups is within one of the truth, else 0."""
    return {
        name.replace("n_groups", "within_one"): float(abs(figures[name] - n_unknown) <= 1)
        for name in names
        if name in figures
    }


def kmeans(rows: np.ndarray, n_groups: int, seed: int) -> np.ndarray:
    means = KMeans(max(n_groups, 1), n_init=3, random_state=derive(seed, "rivals"))
    return np.asarray(means.fit_predict(rows))


def by_silhouette(rows: np.ndarray, seed: int) -> np.ndarray:
    """k-means with the number of the best silhouette, which is never one."""
    found = [kmeans(rows, n, seed) for n in range(2, MOST_GROUPS + 1)]
    return max(found, key=lambda groups: float(silhouette_score(rows, groups)))


def by_known_classes(
    rows: np.ndarray, known: np.ndarray, labels: np.ndarray, seed: int
) -> np.ndarray:
    """GCD's way: known and unknown items together, in the number that fits known classes best."""
    chosen = rng(seed, "gcd").permutation(len(known))[:N_GROUPED]
    both, n_known = np.concatenate([known[chosen], rows]), len(np.unique(labels))
    totals = range(n_known + 1, n_known + MOST_GROUPS + 1)
    found = [kmeans(both, total, seed) for total in totals]
    best = max(found, key=lambda g: float(adjusted_rand_score(labels[chosen], g[: len(chosen)])))
    return np.unique(best[len(chosen) :], return_inverse=True)[1]
