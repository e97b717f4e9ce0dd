"""Label the pool: from what f and g measured to an answer with its audit.

What is measured for pool and calibration items alike is ``Judged``; one run of the steps gives one,
and several can be joined (``audit.cross_conformal``). The threshold between known and unknown is
chosen on it by ``audit.threshold``.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import logit, softmax

from s2osc.nets.training import Outputs
from s2osc.pipeline.audit.confidence import (
    Confidence,
    Curve,
    cross_fitted,
    fit_names,
    known_confidence,
    log_odds,
    reliability,
)
from s2osc.pipeline.audit.cross_conformal import Judged, NamedItems
from s2osc.pipeline.audit.held_back import Pool
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import Audit, Reliability
from s2osc.pipeline.audit.threshold import (
    DecisionSettings,
    Evidence,
    Thresholds,
    choose_threshold,
    estimated_f_out_at,
    false_alarm_limit,
    share_of_unknown,
    thresholds_for_new,
    unknown_curve_for_new,
)
from s2osc.pipeline.filter.screening import Filtered
from s2osc.pipeline.filter.unknown_probability import ranks
from s2osc.pipeline.model import CalibrationScores
from s2osc.pipeline.student import Student
from s2osc.seeding import rng
from s2osc.types import UNKNOWN

G_WEIGHT = 2
"""Of g beside the filter: g has learnt from what the filter finds, and mends it, most of all where
little is unknown (decision 30)."""
N_RESAMPLED = 100
FEWEST_ABOVE = 5
"""Calibration items above a limit: resampling fewer does not tell the error of that limit."""
CLEARLY = 2.0
"""Deviations by which g alone must find more, to decide alone: by chance in one pool of 40."""
TOO_COARSE = 1 / 3
"""The largest share of the items found by the inputs that one calibration item may stand for."""


@dataclass(frozen=True, eq=False)
class Verdict:
    """The labels of the pool: by g, or by f where nothing is unknown."""

    labels: np.ndarray  # (n,)
    unknown_score: np.ndarray  # (n,)
    confidence: np.ndarray  # (n,)
    nearest: np.ndarray  # (n,) the best known class
    nearest_confidence: np.ndarray  # (n,) of it, given that an item is known
    p_known: np.ndarray | None  # (n,); None: no seeds, as are the next three
    embeddings: np.ndarray  # (n, d)
    evidence: Evidence | None = None
    audit: Audit | None = None
    calibration: CalibrationScores | None = None  # by the score that new items have
    odds: np.ndarray | None = None  # (n + m,) log-odds of g; None: they are not what decided
    thresholds_for_new: Thresholds | None = None  # on the log-odds of g; None: g's largest output
    confidence_of_new: Confidence | None = None


# --- by f ------------------------------------------------------------------------------------


def decide_by_teacher(
    filtered: Filtered, pooled: Pool, settings: DecisionSettings, *, seed: int
) -> Verdict:
    """f's answer for a pool in which nothing is unknown."""
    known = softmax(filtered.outputs.logits, axis=1)
    measured = filtered.evidence(filtered.score, known, pooled, by="calibration")
    named = calibrate_names(named_items(known, filtered, pooled), pooled.of_pool(known), seed=seed)
    evidence = replace(measured, nearest_confidence=named.of_pool)
    embeddings = pooled.of_pool(filtered.outputs.embeddings)
    verdict = verdict_by_seeds(evidence, settings, named, embeddings=embeddings, seed=seed)
    entropy = filtered.brought_to_pool(filtered.outputs.entropy, pooled)
    return replace(
        verdict,
        calibration=CalibrationScores(pooled.of_calibration(entropy), evidence.seed_weight),
        confidence_of_new=Confidence(named.curve),
    )


# --- by g ------------------------------------------------------------------------------------


def decide_without_seeds(
    student: Student, outputs: Outputs, teacher_logits: np.ndarray, pooled: Pool
) -> Verdict:
    """The paper's answer: unknown where the largest output of g is C'."""
    p = student.probabilities(outputs.logits, teacher_logits)
    unknown, nearest = student.predicts_unknown(outputs.logits), p[:, :-1].argmax(1)
    return Verdict(
        labels=np.where(unknown, UNKNOWN, nearest),
        unknown_score=p[:, -1],
        confidence=np.where(unknown, p[:, -1], p[np.arange(len(p)), nearest]),
        nearest=nearest,
        nearest_confidence=known_confidence(p[:, :-1]),
        p_known=None,
        embeddings=pooled.of_pool(outputs.embeddings),
    )


def judge(
    student: Student,
    outputs: Outputs,
    filtered: Filtered,
    pooled: Pool,
    settings: DecisionSettings,
) -> Judged:
    """What g and the filter say about pool and calibration items."""
    logits = outputs.logits
    known = student.probabilities(logits, filtered.outputs.logits)[:, :-1]
    odds = student.log_odds(logits)
    if settings.rule == "argmax":
        score = logits[:, -1] - logits[:, :-1].max(1)
    else:
        score = joint_score(odds, filtered, pooled)
    return Judged(
        evidence=filtered.evidence(score, known, pooled, by="calibration"),
        odds=pooled.of_unlabelled(filtered.brought_to_pool(odds, pooled)),
        known=pooled.of_pool(known),
        held_back=named_items(known, filtered, pooled),
    )


def joint_score(odds: np.ndarray, filtered: Filtered, pooled: Pool) -> np.ndarray:
    """What the filter says and what g says: the mean of the log-odds of both ranks.

    Log-odds, since an item that one of them ranks above nearly all others stands out, whatever the
    other says; a mean of ranks would hide a rare class among all that is a little strange to both.
    The filter rests on neighbours among the inputs most of all, and counts by the square of what
    these know of the classes. Spies choose nothing here: g has learnt that they are known, and
    would look better than it is.
    """
    by_filter, by_g = (
        logit(ranks(score) * len(score) / (len(score) + 1))
        for score in (filtered.score, filtered.brought_to_pool(odds, pooled))
    )
    weight = filtered.skill**2
    return np.asarray((weight * by_filter + G_WEIGHT * by_g) / (weight + G_WEIGHT))


def decide_by_student(
    judged: Judged,
    by_inputs: Evidence | None,
    settings: DecisionSettings,
    *,
    embeddings: np.ndarray,
    seed: int,
) -> Verdict:
    """Label the pool by what was measured; by the inputs alone where these find clearly more."""
    named = calibrate_names(judged.held_back, judged.known, seed=seed)
    by_calibration = replace(judged.evidence, nearest_confidence=named.of_pool)
    if settings.rule == "seeds" and finds_more_alone(
        judged.odds, by_calibration, settings, seed=seed
    ):
        by_calibration = by_calibration.by_odds(judged.odds)
    evidence = by_calibration
    if settings.rule == "seeds" and by_inputs is not None:
        by_inputs = replace(
            by_inputs,
            nearest=by_calibration.nearest,
            nearest_confidence=by_calibration.nearest_confidence,
            p_value=by_calibration.p_value,
        )
        if finds_clearly_more(by_inputs, by_calibration, settings):
            evidence = by_inputs
    verdict = verdict_by_seeds(
        evidence,
        settings,
        named,
        embeddings=embeddings,
        odds=judged.odds if evidence is by_calibration else None,
        seed=seed,
    )
    n, odds = len(by_calibration.score), judged.odds
    return replace(
        verdict,
        calibration=CalibrationScores(odds[n:], by_calibration.seed_weight),
        thresholds_for_new=thresholds_for_new(by_calibration, odds, settings),
        confidence_of_new=Confidence(
            named.curve, unknown_curve_for_new(by_calibration, odds, settings, seed=seed)
        ),
    )


def finds_more_alone(
    odds: np.ndarray, by_both: Evidence, settings: DecisionSettings, *, seed: int
) -> bool:
    """Whether g alone finds clearly more than g and the filter do; ``odds`` (n + m,) are g's.

    Both get the threshold that keeps the limit on false alarms, so what one calls unknown beyond
    the other is unknown, but for the error of these thresholds: that of resampled calibration
    items, the same for both.
    """
    n_above = settings.false_alarm * by_both.n_effective
    if by_both.p_value > settings.level or n_above < FEWEST_ABOVE:
        return False
    by_g, share = by_both.by_odds(odds), share_of_unknown(by_both).estimate
    n_judges = len(by_both.seed_score)
    drawn = rng(seed, "g alone").integers(n_judges, size=(N_RESAMPLED, n_judges))
    of_g, of_both = (
        np.array([_called_unknown(evidence, rows, share, settings) for rows in drawn])
        for evidence in (by_g, by_both)
    )
    more = of_g - of_both
    return bool(more.mean() > CLEARLY * more.std())


def _called_unknown(
    evidence: Evidence, rows: np.ndarray, share: float, settings: DecisionSettings
) -> float:
    """The share of the pool above the limit that these calibration items set."""
    judges = replace(
        evidence,
        seed_score=evidence.seed_score[rows],
        seed_label=evidence.seed_label[rows],
        seed_nearest=evidence.seed_nearest[rows],
        seed_weight=evidence.seed_weight[rows],
    )
    return float((evidence.score > false_alarm_limit(judges, share, settings)).mean())


def finds_clearly_more(
    by_inputs: Evidence, by_calibration: Evidence, settings: DecisionSettings
) -> bool:
    """Whether the raw inputs, calibrated on most labelled items, find clearly more than g does.

    New items have g alone, so a little more is not enough: it must go beyond the error of a share
    among so many calibration items. As much is unknown as either of them finds.
    """
    both = by_inputs, by_calibration
    n_seeds = min(each.n_effective for each in both)
    share = max(share_of_unknown(each).estimate for each in both)
    by_i, by_g = (estimated_f_out_at(each, settings, n_seeds=n_seeds, share=share) for each in both)
    if by_i > by_g + len(by_calibration.seed_score) ** -0.5:
        return True
    return (
        by_inputs.p_value <= settings.level
        and is_too_rare(by_inputs, len(by_calibration.seed_score), settings)
        # By all their judges: what few cannot set a threshold for is what these are there for.
        and estimated_f_out_at(by_inputs, settings, share=share) > by_g
    )


def is_too_rare(by_inputs: Evidence, n_calibration: int, settings: DecisionSettings) -> bool:
    """Whether the inputs find so few items that calibration items cannot set a threshold for them.

    One calibration item more or less above it would be as many false alarms as a good part of them.
    """
    share = share_of_unknown(by_inputs).estimate
    n_found = int((by_inputs.score > choose_threshold(by_inputs, share, settings)).sum())
    return 0 < n_found < len(by_inputs.score) / n_calibration / TOO_COARSE


# --- names and labels ------------------------------------------------------------------------


class CalibratedNames(NamedTuple):
    """How sure the known class is that each item is given, by the held-back items."""

    curve: Curve
    of_pool: np.ndarray  # (n,)
    reliability: Reliability


def named_items(known: np.ndarray, filtered: Filtered, pooled: Pool) -> NamedItems:
    """The held-back items by the class they are given; ``known`` are probabilities (n, C).

    Spies count, too: neither f nor g learnt their classes.
    """
    return NamedItems(
        softmax=pooled.of_held_back(known_confidence(known)),
        is_right=pooled.of_held_back(known.argmax(1)) == pooled.held_back_labels,
        weights=pooled.of_held_back(filtered.weights(pooled)),
    )


def calibrate_names(
    held_back: NamedItems, known_of_pool: np.ndarray, *, seed: int
) -> CalibratedNames:
    """The confidence in the best known class, given that an item is known."""
    curve = fit_names(*held_back)
    stated = cross_fitted(*held_back, seed=seed)
    return CalibratedNames(
        curve=curve,
        of_pool=curve(log_odds(known_confidence(known_of_pool))),
        reliability=reliability(stated, held_back.is_right),
    )


def verdict_by_seeds(
    evidence: Evidence,
    settings: DecisionSettings,
    named: CalibratedNames,
    *,
    embeddings: np.ndarray,
    odds: np.ndarray | None = None,
    seed: int,
) -> Verdict:
    """The decision by the seeds, with its audit."""
    decision = decide(evidence, settings, seed=seed)
    return Verdict(
        labels=decision.labels,
        unknown_score=decision.unknown_score,
        confidence=decision.confidence,
        nearest=evidence.nearest,
        nearest_confidence=evidence.nearest_confidence,
        p_known=decision.p_known,
        embeddings=embeddings,
        evidence=evidence,
        audit=replace(decision.audit, reliability=named.reliability),
        odds=odds,
    )
