"""Fit the method on a sample of a large pool, and judge it by items that went the way of all."""

from dataclasses import replace

import numpy as np

from s2osc.pipeline.audit import unknown_test
from s2osc.pipeline.audit.calibration import join_held_back
from s2osc.pipeline.audit.confidence import Confidence, cross_fitted, fit_names, reliability
from s2osc.pipeline.audit.decision import (
    Evidence,
    Thresholds,
    thresholds_for_new,
    unknown_curve_for_new,
)
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.large_pool.answer import LargeFit, score_in_chunks, score_items
from s2osc.pipeline.large_pool.plan import Plan, Sample
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import CalibrationScores, OpenSetModel
from s2osc.pipeline.sampling import NearestReference
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.sources.matching import Matched
from s2osc.pipeline.teacher import train_teacher
from s2osc.progress import Stopwatch
from s2osc.types import Labelled

SAMPLE_ANSWER = "sample answer"
"""The step in which the items of the sample are answered, as a part of the fit."""


def fit_sample(
    method: S2OSCMethod,
    plan: Plan,
    sample: Sample,
    sampled: np.ndarray,
    judged: np.ndarray,
    clock: Stopwatch,
    *,
    by_raw: Matched | None = None,
    device: str,
) -> LargeFit:
    """Fit the method on the sample; judge it by items that went the way of all others.

    ``sampled`` and ``judged`` are the items in the rows ``sample.pool`` and ``sample.judged``.
    ``by_raw`` is the match of photos or texts, whose labelled items the plan was made of.
    """
    roles, seed = plan.roles, plan.seed
    with clock("sources"):
        # What is joined here is needed for one step each: the names end with it.
        scaling = fit_scaling(
            roles.training.inputs, np.concatenate([judged, roles.calibration.inputs])
        )
        of_calibration = roles.calibration.inputs[sample.calibration]
        pooled = join_held_back(
            scaling.transform(np.concatenate([sampled, of_calibration])),
            scaling.transform_items(roles.held_back),
            roles.held_back_weights,
            item_weights=sample.drawn.weights(plan.strangeness.strata(roles.held_back.inputs)),
            is_extra=~sample.drawn.is_even,
            seed=seed,
        )
        matched = method.match(scaling.transform_items(roles.training), pooled, seed=seed)
        if by_raw is not None:
            matched = matched.after(by_raw)
    with clock("teacher"):
        teacher, of_training = train_teacher(
            matched.training, method.teacher, method.augmentation, seed=seed, device=device
        )
    of_sample = Stopwatch()
    solution = method.solve(teacher, of_training, matched, of_sample, seed=seed, device=device)
    # What the sample is answered in does not grow with the pool, as the answer for all does.
    clock.include(of_sample, {"answer": SAMPLE_ANSWER})
    with clock("judge"):
        calibration = scaling.transform_items(roles.calibration)
        for change in matched.changes:
            changed = change.apply(calibration.inputs, seed=seed)
            calibration = Labelled(changed, calibration.labels)
        return judge_sample(method, plan, solution.with_scaling(scaling), judged, calibration)


def judge_sample(
    method: S2OSCMethod,
    plan: Plan,
    solution: Solution,
    judged: np.ndarray,
    calibration: Labelled,
) -> LargeFit:
    """Threshold and audit for the whole pool, by calibration items, which are scaled already.

    Where the sources differ, the calibration items of the sample judge: they were moved to the
    pool's source with everything else there.
    """
    trust, model = solution.trust, solution.model
    if trust is None or trust.evidence.sources_differ:
        thresholds = model.thresholds if isinstance(model, OpenSetModel) else Thresholds(np.inf)
        evidence = trust.evidence if trust else None
        if trust is not None and evidence is not None and trust.odds is not None:
            evidence = evidence.by_odds(trust.odds)
        audit = trust.audit if trust else None
        return LargeFit(model, thresholds, None, audit, evidence, solution.k, solution.n_steps)
    settings, seed = method.decision, plan.seed
    of_pool = score_in_chunks(model, judged, settings)
    of_calibration = score_items(model, calibration.inputs, settings)
    weights = plan.roles.calibration_weights[calibration.labels]
    for each in trust.audit.classes:  # as the sample mixes the classes
        weights = np.where(calibration.labels == int(each.name), weights * each.weight, weights)
    is_right = of_calibration.nearest == calibration.labels
    named = fit_names(of_calibration.softmax, is_right, weights)
    confidence = Confidence(named)
    by_inputs = plan.strangeness.measure(plan.roles.others.inputs)
    p_value = trust.audit.test.p_value
    if isinstance(model, OpenSetModel):
        p_value = pool_p_value(
            (of_pool.score, of_pool.nearest),
            (of_calibration.score, of_calibration.nearest),
            calibration.labels,
            plan.strangeness.measure(judged),
            by_inputs,
            plan.roles.others.labels,
        )
    evidence = Evidence(
        score=of_pool.score,
        nearest=of_pool.nearest,
        nearest_confidence=confidence.of_names(of_pool.softmax),
        seed_score=of_calibration.score,
        seed_label=calibration.labels,
        seed_nearest=of_calibration.nearest,
        seed_weight=weights,
        p_value=p_value,
    )
    decision = decide(evidence, settings, seed=seed)
    odds = np.concatenate([of_pool.score, of_calibration.score])
    if isinstance(model, OpenSetModel):
        model = replace(
            model,
            thresholds=thresholds_for_new(evidence, odds, settings),
            confidence=Confidence(
                named, unknown_curve_for_new(evidence, odds, settings, seed=seed)
            ),
            calibration=CalibrationScores(of_calibration.score, weights),
        )
    else:
        calibrated = CalibrationScores(of_calibration.score, weights)
        model = replace(model, confidence=confidence, calibration=calibrated)
    n_judges = len(by_inputs.names)
    audit = replace(
        decision.audit.of_same_fit(trust.audit),
        findable_share=unknown_test.findable_share(len(judged), n_judges, settings.level),
        reliability=reliability(
            cross_fitted(of_calibration.softmax, is_right, weights, seed=seed), is_right
        ),
    ).as_sources_allow()
    return LargeFit(
        model=model,
        thresholds=None if settings.rule == "argmax" else decision.thresholds,
        sure_known_below=decision.audit.sure_known_below,
        audit=audit,
        evidence=evidence,
        k=solution.k,
        n_steps=solution.n_steps,
    )


def pool_p_value(
    of_pool: tuple[np.ndarray, np.ndarray],
    of_calibration: tuple[np.ndarray, np.ndarray],
    calibration_labels: np.ndarray,
    pool_by_inputs: NearestReference,
    judges_by_inputs: NearestReference,
    judge_labels: np.ndarray,
) -> float:
    """The p-value of "nothing is unknown": by g and its calibration items, and by the inputs.

    Strangeness has learnt from the references alone, so all other labelled items judge it.
    """
    p_values = []
    for pool, judges, classes in (
        (of_pool, of_calibration, calibration_labels),
        (pool_by_inputs, judges_by_inputs, judge_labels),
    ):
        scores, names = (np.concatenate(pair) for pair in zip(pool, judges, strict=True))
        labels = np.append(np.full(len(pool[0]), -1), classes)
        p_values.append(unknown_test.anything_unknown_in_any_mix(scores[:, None], names, labels))
    return min(1.0, 2 * min(p_values))
