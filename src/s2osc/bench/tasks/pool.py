"""A fitted method and a split -> figures. This is the only place where the truth enters."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from s2osc.bench.figures.pictures import pictures_of
from s2osc.bench.methods import DETECTORS, adapt, run_facts
from s2osc.bench.tasks.task import Trial, cached_networks
from s2osc.codec import JsonObject
from s2osc.data.datasets import Dataset
from s2osc.data.splits import Protocol, split_dataset
from s2osc.metrics import (
    auroc,
    evaluate,
    evaluate_classes,
    evaluate_groups,
    evaluate_paper_mode,
    kmeans_groups,
)
from s2osc.nets.backbones import load_backbone
from s2osc.nets.features import compute_photo_items
from s2osc.nets.network_cache import NetworkCache
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.solution import Solution
from s2osc.progress import Stopwatch
from s2osc.types import UNKNOWN, Answer, Labelled, Method, Predictions, Recogniser, Split


@dataclass(frozen=True)
class Judgement:
    """Figures of the pool, of items the method never saw, and of the pool in paper mode."""

    metrics: dict[str, float]
    held_out: dict[str, float] | None
    paper_mode: dict[str, float] | None


def judge_answer(
    split: Split, fitted: Recogniser, predictions: Predictions, *, detects_only: bool, seed: int
) -> Judgement:
    """All figures of one run; ``predictions`` are those for the pool."""
    n_unknown = len(split.unknown_classes)

    def figures_of(
        inputs: np.ndarray, truth: np.ndarray, classes: np.ndarray, answers: Predictions
    ) -> dict[str, float]:
        groups = groups_of(fitted, inputs, answers, n_unknown, seed=seed)
        figures = evaluate(truth, answers) | evaluate_groups(classes, truth == UNKNOWN, groups)
        if n_unknown > 1:
            figures |= evaluate_classes(truth, classes, answers.labels, groups)
        return figures

    figures = figures_of(split.pool, split.truth, split.truth_classes, predictions)
    if isinstance(fitted, Solution):
        figures |= judge_steps(split, fitted)
    held_out = in_paper_mode = None
    if len(split.held_out):
        new = split.held_out
        held_out = figures_of(
            new, split.held_out_truth, split.held_out_classes, fitted.predict(new)
        )
    if detects_only:
        in_paper_mode = evaluate_paper_mode(
            split.truth, split.truth_classes, predictions, fitted.features(split.pool), seed=seed
        )
    return Judgement(figures, held_out, in_paper_mode)


def groups_of(
    fitted: Any, inputs: np.ndarray, predictions: Predictions, n_unknown: int, *, seed: int
) -> np.ndarray:
    """(n,) the groups of a method that has some; of others, k-means of what they call unknown.

    k-means is given the true number of unknown classes, and so is DTC, as in the paper; S2OSC
    finds its own.
    """
    if isinstance(predictions, Answer):
        return predictions.groups
    if hasattr(fitted, "groups"):
        return np.asarray(fitted.groups(inputs))
    groups = np.full(len(inputs), -1)
    unknown = predictions.labels == UNKNOWN
    if unknown.any():
        groups[unknown] = kmeans_groups(fitted.features(inputs[unknown]), max(n_unknown, 1), seed)
    return groups


def judge_steps(split: Split, solution: Solution) -> dict[str, float]:
    """Figures of the steps on the way to the answer: f's accuracy, D_out's purity, the audit."""
    is_known = split.truth != UNKNOWN
    model = solution.model
    teacher_outputs = model.teacher.outputs(model.scaling.transform(split.pool))
    figures: dict[str, float] = {"k": solution.k}
    if is_known.any():
        right = teacher_outputs.logits.argmax(1)[is_known] == split.truth[is_known]
        figures["teacher_known_accuracy"] = float(np.mean(right))
    if not is_known.all():
        figures["teacher_auroc"] = auroc(split.truth, teacher_outputs.entropy)
    if solution.k:
        figures["purity_of_d_out"] = float(np.mean(~is_known[solution.partition.unknown]))
    if solution.trust is not None:
        figures |= judge_audit(evaluate(split.truth, solution.answer), solution.trust.audit)
    return {key: round(value, 5) for key, value in figures.items()}


def judge_audit(figures: dict[str, float], audit: Audit) -> dict[str, float]:
    """The audit's figures beside what is true: 1 where an interval covers the truth, else 0."""
    rounding = 1e-5  # of the figures: a rate that is an end of its interval is within
    found = {
        "nothing_unknown": float(audit.nothing_unknown),
        "shift_found": float(audit.is_shifted),
        "p_value": audit.test.p_value,
    }
    rates = {
        "false_alarm": (audit.false_alarm, "false_alarms"),
        "known_accuracy": (audit.known_accuracy, "known_accuracy"),
    }
    for name, (stated, truth) in rates.items():
        if stated is None or truth not in figures:  # hardly any item of the pool is known, or none
            continue
        low, high = stated.low, stated.high
        found[f"{name}_low"], found[f"{name}_high"] = low, high
        found[f"{name}_covered"] = float(low - rounding <= figures[truth] <= high + rounding)
    shares = {"unknown_share": audit.unknown_share, "unknown_recall": audit.unknown_recall}
    for name, share in shares.items():
        if share is not None:
            found |= {f"{name}_{end}": value for end, value in share._asdict().items()}
    return found


def run_once(
    split: Split,
    method: Method,
    *,
    seed: int,
    detects_only: bool = False,
    pictures: Sequence[str] = (),
    keep: bool = False,
    device: str = "cpu",
) -> JsonObject:
    """Fit, judge. Seconds are those a method takes by itself, also where f is from the cache."""
    clock = Stopwatch()
    with cached_networks(keep) as cache:
        with clock("fit"):
            fitted = method.fit(split.known, split.pool, seed=seed, device=device)
        with clock("predict"):
            predictions = (
                fitted.answer if isinstance(fitted, Solution) else fitted.predict(split.pool)
            )
        judged = judge_answer(split, fitted, predictions, detects_only=detects_only, seed=seed)
    seconds = seconds_per_step(fitted, clock.seconds, cache)
    total = round(sum(seconds.values()), 1)
    record: JsonObject = asdict(judged) | {"seconds": seconds, "seconds_total": total}
    if isinstance(fitted, Solution):
        record |= {"k": fitted.k, "steps": fitted.n_steps}
    if pictures:
        record["pictures"] = pictures_of(pictures, split, fitted, predictions, seed=seed)
    return record


def seconds_per_step(
    fitted: Any, measured: dict[str, float], cache: NetworkCache | None
) -> dict[str, float]:
    """Seconds of each step, with those that an f from the cache took when it was trained."""
    steps = dict(fitted.seconds) if isinstance(fitted, Solution) else dict(measured)
    if cache is not None and cache.seconds_saved:
        steps["teacher"] = round(steps.get("teacher", 0.0) + cache.seconds_saved, 3)
    return steps


@dataclass(frozen=True)
class PoolTask:
    """Labelled items of known classes and a pool: fit, answer, compare with the truth."""

    first_stage: int | None = None  # of a backbone that methods train from there; None: frozen
    side: int | None = None  # pixels that photos are brought to; None: as users' are

    def prepare(self, method: Any, protocol: Protocol, *, networks: str | None, flip: bool) -> Any:
        n_unknown = len(protocol.unknown_classes or ()) or protocol.n_unknown
        return adapt(method, run_facts(networks, flip=flip, n_unknown=n_unknown))

    def draw(self, dataset: Dataset, protocol: Protocol, partition: int) -> Split:
        return split_dataset(dataset, protocol, partition)

    def through_backbone(self, items: Split, name: str, *, flip: bool) -> Split:
        embed = self.embedding(items, name, flip=flip)
        known, pool, held_out = (
            embed(images) if len(images) else images
            for images in (items.known.inputs, items.pool, items.held_out)
        )
        labelled = Labelled(known, items.known.labels)
        return replace(items, known=labelled, pool=pool, held_out=held_out)

    def embedding(
        self, items: Split, name: str, *, flip: bool
    ) -> Callable[[np.ndarray], np.ndarray]:
        """What makes features of images like those of a split."""
        source = items.pool.shape[1:3]
        backbone = load_backbone(name, source=source, side=self.side, first_stage=self.first_stage)
        return partial(compute_photo_items, backbone=backbone, flip=flip)

    def describe(self, items: Split, dataset: Dataset) -> JsonObject:
        return {
            "unknown_share": round(float(np.mean(items.truth == UNKNOWN)), 4),
            "known_classes": [dataset.classes[c] for c in items.known_classes],
            "unknown_classes": [dataset.classes[c] for c in items.unknown_classes],
            "n_training": len(items.known),
            "n_pool": len(items.pool),
            "n_held_out": len(items.held_out),
        }

    def run(self, items: Split, trial: Trial, *, device: str) -> JsonObject:
        return run_once(
            items,
            trial.method,
            seed=trial.partition,
            detects_only=trial.name in DETECTORS,
            pictures=trial.pictures,
            keep=trial.keeps_networks and trial.size is not None,
            device=device,
        )
