"""A fitted method and a split -> figures. This is the only place where the truth enters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from s2osc.metrics import (
    auroc,
    evaluate,
    evaluate_classes,
    evaluate_groups,
    evaluate_paper_mode,
    kmeans_groups,
)
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.method import Solution
from s2osc.types import UNKNOWN, Answer, Predictions, Recogniser, Split


@dataclass(frozen=True)
class Judgement:
    """Figures of the pool, of items the method never saw, and of the pool in paper mode."""

    metrics: dict[str, float]
    held_out: dict[str, float] | None
    paper_mode: dict[str, float] | None


def judge(
    split: Split, fitted: Recogniser, said: Predictions, *, detects_only: bool, seed: int
) -> Judgement:
    """All figures of one run; ``said`` is the answer for the pool."""
    n_unknown = len(split.unknown_classes)
    is_unknown = split.truth == UNKNOWN
    figures = evaluate(split.truth, said)
    groups = groups_of(fitted, split.pool, said, n_unknown, seed=seed)
    figures |= evaluate_groups(split.truth_classes, is_unknown, groups)
    if n_unknown > 1:
        figures |= evaluate_classes(split.truth, split.truth_classes, said.labels, groups)
    if isinstance(fitted, Solution):
        figures |= judge_steps(split, fitted)
    in_paper_mode = held_out = None
    if detects_only:
        in_paper_mode = evaluate_paper_mode(
            split.truth, split.truth_classes, said, fitted.features(split.pool), seed=seed
        )
    if len(split.held_out):
        of_new = fitted.predict(split.held_out)
        new_groups = groups_of(fitted, split.held_out, of_new, n_unknown, seed=seed)
        truth, classes = split.held_out_truth, split.held_out_classes
        held_out = evaluate(truth, of_new)
        held_out |= evaluate_groups(classes, truth == UNKNOWN, new_groups)
        if n_unknown > 1:
            held_out |= evaluate_classes(truth, classes, of_new.labels, new_groups)
    return Judgement(figures, held_out, in_paper_mode)


def groups_of(
    fitted: Any, inputs: np.ndarray, said: Predictions, n_unknown: int, *, seed: int
) -> np.ndarray:
    """(n,) the groups of a method that has some; of others, k-means of what they call unknown.

    k-means is told the true number of unknown classes, and so is DTC by ``adapt``, as in the paper;
    the groups of S2OSC are not.
    """
    if isinstance(said, Answer):
        return said.groups
    if hasattr(fitted, "groups"):
        return np.asarray(fitted.groups(inputs))
    groups = np.full(len(inputs), -1)
    unknown = said.labels == UNKNOWN
    if unknown.any():
        groups[unknown] = kmeans_groups(fitted.features(inputs[unknown]), max(n_unknown, 1), seed)
    return groups


def judge_steps(split: Split, solution: Solution) -> dict[str, float]:
    """Figures of the steps on the way to the answer: f's accuracy, D_out's purity, the audit."""
    is_known = split.truth != UNKNOWN
    teacher_outputs = solution.model.teacher.outputs(split.pool)
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
    """What the seeds said beside what is true: 1 where an interval covers the truth, else 0."""
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
