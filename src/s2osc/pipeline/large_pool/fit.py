"""Fit the method on a sample of a large pool, and judge it by items that went the way of all."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from s2osc.pipeline.audit import unknown_test
from s2osc.pipeline.audit.confidence import Confidence, cross_fitted, fit_names, reliability
from s2osc.pipeline.audit.held_back import Pool, join_held_back
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.threshold import (
    Evidence,
    Thresholds,
    thresholds_for_new,
    unknown_curve_for_new,
)
from s2osc.pipeline.filter.far_items import measure_far_items
from s2osc.pipeline.filter.neighbours import input_spaces
from s2osc.pipeline.large_pool.answer import LargeFit, score_in_chunks, score_items
from s2osc.pipeline.large_pool.plan import Plan, Sample, plan_fit
from s2osc.pipeline.large_pool.roles import Roles
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import CalibrationScores, OpenSetModel
from s2osc.pipeline.sampling import as_vectors
from s2osc.pipeline.scaling import Scaling, fit_scaling
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.sources.changes import Change
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.sources.suspicion import (
    match_of_suspected,
    suspected_sources,
    unless_explained,
)
from s2osc.pipeline.teacher import TeacherOutputs, train_teacher
from s2osc.progress import Stopwatch
from s2osc.types import Labelled

MOST_FAR = 50_000
"""Items of the pool whose distance to all labelled ones is measured, to bound the cost."""
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
    ``by_raw`` is the match of photos or texts, whose labelled items the plan was made of. What was
    found must stand out from labelled ones with a change that is only suspected, too.
    """
    roles, seed = plan.roles, plan.seed
    with clock("sources"):
        scaling = fit_scaling(
            roles.training.inputs, np.concatenate([judged, roles.calibration.inputs])
        )
        training, pooled = join_sample(roles, sample, sampled, scaling, seed=seed)
        matched = method.match(training, pooled, scaling, seed=seed)
        if by_raw is not None:
            matched = matched.after(by_raw)
    with clock("teacher"):
        teacher, of_training = train_teacher(
            matched.training, method.teacher, method.augmentation, seed=seed, device=device
        )

    of_whole = scaling.transform(judged[:: -(-len(judged) // MOST_FAR)])

    labelled = scaling.transform_items(roles.everyone)

    def by_vectors(changes: Sequence[Change]) -> float:
        """By the more telling of two measures of how far items lie from labelled ones."""
        p_value = p_value_of_far_items(of_whole, labelled, changes, seed=seed)
        if not changes:
            p_value = min(p_value, p_value_of_strangeness(plan, judged))
        return min(1.0, 2 * p_value)

    def fit_matched(
        plan: Plan, matched: Matched, of_training: TeacherOutputs, changes: Sequence[Change]
    ) -> LargeFit:
        of_sample = Stopwatch()
        solution = method.solve(
            teacher,
            of_training,
            matched,
            of_sample,
            # What a source does to features of photos or texts, these see too well.
            p_by_inputs=by_vectors if by_raw is None else None,
            seed=seed,
            device=device,
        )
        # What the sample is answered in does not grow with the pool, as the answer for all does.
        clock.include(of_sample, {"answer": SAMPLE_ANSWER})
        with clock("judge"):
            calibration = scaling.transform_items(plan.roles.calibration)
            for change in changes:
                changed = change.apply(calibration.inputs, seed=seed)
                calibration = Labelled(changed, calibration.labels)
            findable = partial(unknown_test.findable_share, level=method.decision.level)
            share = findable(len(judged), len(plan.roles.others))
            if by_raw is None:
                share = min(share, findable(len(of_whole), len(labelled)))
            return judge_sample(
                method,
                plan,
                solution.with_scaling(scaling),
                judged,
                calibration,
                p_by_inputs=(
                    partial(by_vectors, changes)
                    if by_raw is None
                    else partial(p_value_of_strangeness, plan, judged)
                ),
                findable_share=share,
            )

    def explained_by(suspected: Matched) -> LargeFit | None:
        with clock("sources"):
            changed = plan_fit(suspected.features, method.seeds, fit_on=plan.fit_on, seed=seed)
            if p_value_of_strangeness(changed, judged) <= method.decision.level:
                return None
            again = sample.with_calibration(changed.roles.calibration, seed=seed)
            training, pooled = join_sample(changed.roles, again, sampled, scaling, seed=seed)
            match = match_of_suspected(suspected, training, pooled, seed=seed)
        # f stays as it is, and so does the scale: as in a pool that is no sample.
        fit = fit_matched(changed, match, teacher.outputs(training.inputs), ())
        return fit if fit.finds_nothing and not fit.sources_differ else None

    fit = fit_matched(plan, matched, of_training, matched.changes)
    if by_raw is None or fit.audit is None or fit.finds_nothing:
        return fit
    with clock("sources"):
        suspected = list(suspected_sources(by_raw, seed=seed))
    return unless_explained(fit, suspected, explained_by)


def join_sample(
    roles: Roles, sample: Sample, sampled: np.ndarray, scaling: Scaling, *, seed: int
) -> tuple[Labelled, Pool]:
    """Training items, and the sample with held-back ones after it, all of them scaled."""
    of_calibration = roles.calibration.inputs[sample.calibration]
    return scaling.transform_items(roles.training), join_held_back(
        scaling.transform(np.concatenate([sampled, of_calibration])),
        scaling.transform_items(roles.held_back),
        roles.held_back_weights,
        item_weights=sample.weights(roles.held_back),
        is_extra=~sample.drawn.is_even,
        seed=seed,
    )


def judge_sample(
    method: S2OSCMethod,
    plan: Plan,
    solution: Solution,
    judged: np.ndarray,
    calibration: Labelled,
    *,
    p_by_inputs: Callable[[], float],
    findable_share: float,
) -> LargeFit:
    """Threshold and audit for the whole pool, by calibration items, which are scaled already.

    ``p_by_inputs`` gives the p-value of "nothing is unknown" by the inputs of the whole pool, which
    would find a class of the share ``findable_share``.

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
    p_value = trust.audit.test.p_value
    if isinstance(model, OpenSetModel):
        by_g = p_value_of_scores(
            (of_pool.score, of_pool.nearest),
            (of_calibration.score, of_calibration.nearest),
            calibration.labels,
        )
        p_value = min(1.0, 2 * by_g, p_by_inputs())
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
    audit = replace(
        decision.audit.of_same_fit(trust.audit),
        findable_share=findable_share,
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


def p_value_of_strangeness(plan: Plan, judged: np.ndarray) -> float:
    """The p-value of "nothing is unknown" by the inputs, doubled: the other test is that by g.

    Strangeness has learnt from the references alone, so all other labelled items judge it.
    """
    others = plan.roles.others
    of_pool, of_judges = map(plan.strangeness.measure, (judged, others.inputs))
    return min(1.0, 2 * p_value_of_scores(of_pool, of_judges, others.labels))


def p_value_of_far_items(
    pool: np.ndarray, labelled: Labelled, changes: Sequence[Change], *, seed: int
) -> float:
    """The same by how far items lie from labelled ones, which all judge.

    All are scaled, and labelled items get the changes.
    """
    inputs = labelled.inputs
    for change in changes:
        inputs = change.apply(inputs, seed=seed)
    labels = np.append(np.full(len(pool), -1), labelled.labels)
    spaces = input_spaces(as_vectors(np.concatenate([pool, inputs])), seed=seed)
    far = measure_far_items(spaces, labels, seed=seed)
    p_value = unknown_test.anything_unknown_in_any_mix(far.score[:, None], far.names, labels)
    return min(1.0, 2 * p_value)


def p_value_of_scores(
    of_pool: tuple[np.ndarray, np.ndarray],
    of_judges: tuple[np.ndarray, np.ndarray],
    classes: np.ndarray,
) -> float:
    """The same by scores and names of pool and judges, of these classes."""
    scores, names = (np.concatenate(pair) for pair in zip(of_pool, of_judges, strict=True))
    labels = np.append(np.full(len(of_pool[0]), -1), classes)
    return unknown_test.anything_unknown_in_any_mix(scores[:, None], names, labels)
