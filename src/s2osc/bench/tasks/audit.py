"""Pools of many kinds: is what the audit states about them true?

A pool has an unknown share, so many labelled items, balanced or unequal classes, a source, and
columns in some units. Its record holds what is true, what the audit states, and what f alone does.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from s2osc.bench.methods import adapt, run_facts
from s2osc.bench.tasks.pool import PoolTask
from s2osc.bench.tasks.task import COMPARED_SIDE, THROUGH, Trial
from s2osc.codec import JsonObject, to_plain
from s2osc.data.corruptions import IMAGE_SOURCES, TITLE_SOURCES, VECTOR_SOURCES, change_units
from s2osc.data.datasets import Dataset
from s2osc.errors import DataError
from s2osc.metrics import evaluate, weighted_scores
from s2osc.nets.text_features import compute_text_features
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.pipeline.audit.wording import cautions
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.sources.matched import RawItems
from s2osc.progress import Stopwatch
from s2osc.seeding import rng
from s2osc.types import UNKNOWN, Labelled, Split

SAME = "same"
"""The source of labelled items."""
N_KNOWN = 5
"""Known classes of a pool."""
N_POOL = 500
"""Items of a pool."""
RATIO = 20
"""Of the largest class to the smallest, where classes are unequal."""
POOL_ONLY = "20:1 in the pool"
"""Labelled items are balanced, as people choose them; the pool is as it comes."""
FEATURES_OF = 1_200
"""Items of a class, the first ones, whose features are computed: all pools share them."""


# --- the pool --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AuditPool:
    """The factors of the grid, each at one of its levels."""

    data: str = "digits"
    unknown_share: float = 0.0
    n_labelled: int = 60  # of each known class, on average
    class_sizes: str = "balanced"  # or "20:1", of labelled items and pool alike, or POOL_ONLY
    source: str = SAME  # of the pool
    columns: str = "as they are"  # or "wild units"; of labelled items and pool alike

    def seed_of(self, partition: int) -> int:
        """By which the classes and items of a partition are drawn."""
        return partition


@dataclass(frozen=True)
class PairedPool(AuditPool):
    """A pool that has the classes and items of all pools of its draw, whatever their source."""

    draw: int = 0

    def seed_of(self, partition: int) -> int:
        return self.draw


class DrawnPool(NamedTuple):
    """The items of a pool, and what it is an example of."""

    split: Split
    pool: AuditPool
    seed: int
    raw: RawItems | None = None  # photos or texts that the items are features of


def draw_pool(dataset: Dataset, pool: AuditPool, seed: int) -> DrawnPool:
    """Known and unknown classes at random, then items of each at random, none of them twice."""
    order = [int(c) for c in rng(seed, "classes").permutation(len(dataset.classes))]
    random = rng(seed, "items")
    rows = {c: random.permutation(_rows_of(dataset, c, pool.data)) for c in order}
    known_classes = tuple(sorted(order[:N_KNOWN]))
    order_of_sizes = random.permutation(N_KNOWN)
    sizes = [[counts[i] for i in order_of_sizes] for counts in class_counts(pool)]
    training, known = [], []
    for c, n_labelled, n_pool in zip(known_classes, *sizes, strict=True):
        if len(rows[c]) < n_labelled + n_pool:
            raise DataError(
                f"class {dataset.classes[c]} of {dataset.name} has {len(rows[c])} items; the pool "
                f"takes {n_labelled + n_pool}"
            )
        training.append(rows[c][:n_labelled])
        known.append(rows[c][n_labelled : n_labelled + n_pool])
    unknown = unknown_rows([rows[c] for c in order[N_KNOWN:]], N_POOL - sum(sizes[1]), dataset.name)
    training_rows = np.concatenate(training)
    pool_rows = random.permutation(np.concatenate([*known, unknown]))
    label_of = np.full(len(dataset.classes), UNKNOWN)
    label_of[list(known_classes)] = np.arange(N_KNOWN)
    nothing = np.empty(0, int)
    split = Split(
        known=Labelled(dataset.inputs[training_rows], label_of[dataset.labels[training_rows]]),
        pool=dataset.inputs[pool_rows],
        truth=label_of[dataset.labels[pool_rows]],
        truth_classes=dataset.labels[pool_rows],
        known_classes=known_classes,
        unknown_classes=tuple(np.unique(dataset.labels[unknown]).tolist()),
        held_out=dataset.inputs[nothing],
        held_out_truth=nothing,
        held_out_classes=nothing,
    )
    return DrawnPool(split, pool, seed)


def _rows_of(dataset: Dataset, c: int, data: str) -> np.ndarray:
    rows = np.flatnonzero(dataset.labels == c)
    return rows[:FEATURES_OF] if data.endswith(THROUGH) else rows


def class_counts(pool: AuditPool) -> tuple[list[int], list[int]]:
    """Labelled items of each known class, and items of the pool, the largest class first.

    >>> class_counts(AuditPool(unknown_share=0.8, n_labelled=20, class_sizes=POOL_ONLY))
    ([20, 20, 20, 20, 20], [54, 25, 12, 6, 3])
    """
    n_known = round((1 - pool.unknown_share) * N_POOL)
    equal, unequal = np.ones(N_KNOWN), np.asarray(RATIO ** -np.linspace(0, 1, N_KNOWN))
    return (
        apportion(N_KNOWN * pool.n_labelled, unequal if pool.class_sizes == "20:1" else equal),
        apportion(n_known, equal if pool.class_sizes == "balanced" else unequal),
    )


def apportion(n: int, weights: np.ndarray) -> list[int]:
    """``n`` items in proportion to the weights, in whole items.

    >>> apportion(100, np.array([1, 0.5, 0.1])), apportion(7, np.ones(3))
    ([63, 31, 6], [3, 2, 2])
    """
    exact = n * weights / weights.sum()
    counts = np.floor(exact).astype(int)
    largest_rests = np.argsort(counts - exact, kind="stable")[: n - counts.sum()]
    counts[largest_rests] += 1
    return [int(count) for count in counts]


def unknown_rows(of_classes: Sequence[np.ndarray], n: int, name: str) -> np.ndarray:
    """So many rows of one unknown class; of more classes, alike, where one has too few."""
    for n_classes in range(1, len(of_classes) + 1):
        counts = apportion(n, np.ones(n_classes))
        taken = [rows[:count] for rows, count in zip(of_classes[:n_classes], counts, strict=True)]
        if sum(map(len, taken)) == n:
            return np.concatenate(taken)
    raise DataError(f"the unknown classes of {name} have too few items; the pool takes {n}")


def from_source(drawn: DrawnPool) -> DrawnPool:
    """The pool as its source gives it: images and titles as they are taken, titles as vectors."""
    split, pool, seed = drawn.split, drawn.pool, drawn.seed
    known, items = split.known.inputs, split.pool
    if pool.source in IMAGE_SOURCES | TITLE_SOURCES:
        items = (IMAGE_SOURCES | TITLE_SOURCES)[pool.source](items, seed)
    if items.dtype.kind != "U":
        return with_items(drawn, known, items)
    model = load_text_model()

    def embed(texts: np.ndarray) -> np.ndarray:
        return compute_text_features(texts.tolist(), model)

    vectors = with_items(drawn, embed(known), embed(items))
    return vectors._replace(raw=RawItems(items, known, embed))


def in_columns(drawn: DrawnPool) -> DrawnPool:
    """Vectors as their source gives them, in their units."""
    split, pool, seed = drawn.split, drawn.pool, drawn.seed
    known, items = split.known.inputs, split.pool
    if pool.source in VECTOR_SOURCES:
        items = VECTOR_SOURCES[pool.source](items, seed)
    if pool.columns == "wild units":
        known, items = change_units(known), change_units(items)
    return with_items(drawn, known, items)


def with_items(drawn: DrawnPool, known: np.ndarray, pool: np.ndarray) -> DrawnPool:
    split = drawn.split
    return drawn._replace(
        split=replace(split, known=Labelled(known, split.known.labels), pool=pool)
    )


# --- what is stated --------------------------------------------------------------------------


@dataclass(frozen=True)
class Stated:
    """Every figure of an audit that can be compared with the truth; None: not stated."""

    unknown_share: Estimate | None
    false_alarms: Estimate | None
    known_accuracy: Estimate | None
    unknown_recall: Estimate | None
    p_value: float  # of "nothing in the pool is unknown"
    finds_unknown: bool  # the test's decision
    cautions: tuple[str, ...]  # codes

    @classmethod
    def of(cls, audit: Audit) -> "Stated":
        """This is the one place of the benchmark that reads an audit."""
        return cls(
            unknown_share=audit.unknown_share,
            false_alarms=audit.false_alarm,
            known_accuracy=audit.known_accuracy,
            unknown_recall=audit.unknown_recall,
            p_value=audit.test.p_value,
            finds_unknown=not audit.nothing_unknown,
            cautions=tuple(caution.code for caution in cautions(audit)),
        )


# --- the run ---------------------------------------------------------------------------------


def judge_pool(split: Split, fitted: Solution) -> dict[str, float]:
    """What is true of the answer, and what f alone would have given: it calls nothing unknown."""
    is_known = split.truth != UNKNOWN
    scaled = fitted.model.scaling.transform(split.pool)
    by_teacher = fitted.model.teacher.outputs(scaled).logits.argmax(1)
    figures = {
        "unknown_share": float(np.mean(~is_known)),
        "teacher_f1": weighted_scores(split.truth, by_teacher)["f1"],
    }
    if is_known.any():
        right = (by_teacher == split.truth)[is_known]
        figures["teacher_known_accuracy"] = float(np.mean(right))
    return {name: round(value, 5) for name, value in figures.items()}


class AuditTask:
    """A pool of the grid: fit, answer, and compare the audit with the truth."""

    def prepare(self, method: Any, protocol: AuditPool, *, networks: str | None, flip: bool) -> Any:
        return adapt(method, run_facts(networks, flip=flip, n_unknown=1))

    def draw(self, dataset: Dataset, protocol: AuditPool, partition: int) -> DrawnPool:
        drawn = from_source(draw_pool(dataset, protocol, protocol.seed_of(partition)))
        # The columns of photos are those of their features.
        return drawn if protocol.data.endswith(THROUGH) else in_columns(drawn)

    def through_backbone(self, items: DrawnPool, name: str, *, flip: bool) -> DrawnPool:
        task, images = PoolTask(side=COMPARED_SIDE), items.split
        embed = task.embedding(images, name, flip=flip)

        def in_units(photos: np.ndarray) -> np.ndarray:
            is_wild = items.pool.columns == "wild units"
            return change_units(embed(photos)) if is_wild else embed(photos)

        raw = RawItems(images.pool, images.known.inputs, in_units)
        # Features that come from another source themselves are not what the photos give.
        are_of_photos = items.pool.source not in VECTOR_SOURCES
        split = task.through_backbone(images, name, flip=flip)
        return in_columns(items._replace(split=split, raw=raw if are_of_photos else None))

    def describe(self, items: DrawnPool, dataset: Dataset) -> JsonObject:
        return PoolTask().describe(items.split, dataset)

    def run(self, items: DrawnPool, trial: Trial, *, device: str) -> JsonObject:
        clock, split = Stopwatch(), items.split
        with clock("fit"):
            raw = {"raw": items.raw} if isinstance(trial.method, S2OSCMethod) else {}
            fitted = trial.method.fit(
                split.known, split.pool, seed=items.seed, device=device, **raw
            )
        is_ours = isinstance(fitted, Solution)
        with clock("predict"):
            predictions = fitted.answer if is_ours else fitted.predict(split.pool)
        trust = fitted.trust if is_ours else None
        seconds = dict(fitted.seconds) if is_ours else dict(clock.seconds)
        return {
            "metrics": evaluate(split.truth, predictions)
            | (judge_pool(split, fitted) if is_ours else {}),
            "stated": to_plain(Stated.of(trust.audit)) if trust else None,
            "seconds": seconds,
            "seconds_total": round(sum(seconds.values()), 1),
        }
