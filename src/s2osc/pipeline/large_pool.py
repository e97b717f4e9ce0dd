"""A pool that is too large to fit on: a sample of it teaches, and the model answers for all.

    labelled    training items + held-back ones for the sample + calibration items
    sample      strangeness of pool and calibration items ─► strata ─► rows, more of the strange
    fit         the method on the sample ─► f, g, groups
    judge       items drawn evenly from the pool, against the calibration items ─► threshold, audit
    answer      every item of the pool by the scores that new items have

Calibration items go the way of the pool: each is drawn into the sample as often as any item of its
stratum, where it is unlabelled, and is answered by the same scores. So a known item of the pool and
a calibration item are exchangeable, whatever the rates of the sample, and the audit needs none.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from scipy.special import softmax

from s2osc.arrays import chunks
from s2osc.errors import SettingsError
from s2osc.pipeline.audit import statistics, unknown_test
from s2osc.pipeline.audit.calibration import SeedSettings, join_held_back
from s2osc.pipeline.audit.confidence import (
    Confidence,
    cross_fitted,
    fit_names,
    known_confidence,
    reliability,
)
from s2osc.pipeline.audit.decision import (
    DecisionSettings,
    Evidence,
    Thresholds,
    thresholds_for_new,
    unknown_curve_for_new,
)
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.filter.distinctness import Partition, distinctness
from s2osc.pipeline.filter.score import squash
from s2osc.pipeline.labelled_roles import Roles, assign_roles
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model import CalibrationScores, KnownOnlyModel, OpenSetModel
from s2osc.pipeline.sampling import (
    SKIPPED,
    Drawn,
    NearestReference,
    Strangeness,
    draw_evenly,
    draw_strata,
    fit_strangeness,
)
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.solution import Solution, Trust
from s2osc.pipeline.sources.matching import Matched, RawItems
from s2osc.pipeline.teacher import train_teacher
from s2osc.progress import Stopwatch
from s2osc.settings import FIT_ON
from s2osc.types import UNKNOWN, UNSURE, Answer, Labelled

T = TypeVar("T")
FEWEST_FIT = 500
N_JUDGED = 200_000
"""Items of the pool, drawn evenly, that threshold and audit rest on: a share of one in a thousand
is then known to a fifteenth of it, and the audit's resampling takes seconds."""
SCORED_AT_ONCE = 4_096
MOST_COMPARED, MOST_COMPARED_BYTES = 2_000, 2**27
"""Photos or texts of the pool, drawn evenly, that labelled ones are compared with as such."""
SAMPLE_ANSWER = "sample answer"
"""The step in which the items of the sample are answered, as a part of the fit."""


class OverRows(Protocol):
    """Works on the items of a pool in chunks, and gives what comes of each, in order."""

    def __call__(self, work: Callable[[np.ndarray], T], inputs: np.ndarray) -> list[T]: ...


def check_fit_on(fit_on: int) -> int:
    if fit_on < FEWEST_FIT:
        raise SettingsError(
            f"fit-on is {fit_on}; give a number of items from {FEWEST_FIT}, such as {FIT_ON}"
        )
    return fit_on


class Plan(NamedTuple):
    """What is fixed before the pool is read."""

    roles: Roles
    strangeness: Strangeness
    calibration_strata: np.ndarray
    fit_on: int
    seed: int


def plan_fit(known: Labelled, settings: SeedSettings, *, fit_on: int, seed: int) -> Plan:
    """The roles of the labelled items, and how strangeness is measured."""
    roles = assign_roles(known, settings, seed=seed)
    training = roles.training
    references = Labelled(training.inputs[roles.references], training.labels[roles.references])
    strangeness = fit_strangeness(references, roles.others.inputs)
    strata = strangeness.strata(roles.calibration.inputs)
    return Plan(roles, strangeness, strata, check_fit_on(fit_on), seed)


class Sample(NamedTuple):
    """Rows of the pool and of the calibration items that the method is fitted on."""

    drawn: Drawn
    pool: np.ndarray  # rows of the pool, sorted
    calibration: np.ndarray  # rows of the calibration items
    judged: np.ndarray  # rows of the pool, drawn evenly, sorted


def draw_compared(n_rows: int, item_bytes: int, *, seed: int) -> np.ndarray:
    """Rows of the pool, drawn evenly, whose photos or texts tell what its source is like."""
    return draw_evenly(n_rows, min(MOST_COMPARED, MOST_COMPARED_BYTES // item_bytes), seed=seed)


def draw_judged(plan: Plan, n_rows: int, n: int = N_JUDGED) -> np.ndarray:
    """Rows of the pool, drawn evenly, that are to judge the fit: known before any is read."""
    return draw_evenly(n_rows, n, seed=plan.seed)


def draw_sample(plan: Plan, strata: np.ndarray, judged: np.ndarray | None = None) -> Sample:
    """From the stratum of each item of the pool; calibration items stand after it.

    ``judged`` are rows that were drawn before, among them some that cannot be read.
    """
    everyone = np.concatenate([strata, plan.calibration_strata])
    drawn = draw_strata(everyone, plan.strangeness.n_strata, plan.fit_on, seed=plan.seed)
    is_pool = drawn.rows < len(strata)
    judged = draw_judged(plan, len(strata)) if judged is None else judged
    return Sample(
        drawn=drawn,
        pool=drawn.rows[is_pool],
        calibration=drawn.rows[~is_pool] - len(strata),
        judged=judged[strata[judged] != SKIPPED],
    )


# --- the fit ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LargeFit:
    """A model, how items of the pool are decided by it, and the audit."""

    model: OpenSetModel | KnownOnlyModel  # for new items
    thresholds: Thresholds | None  # of items of the pool; None: g's largest output
    sure_known_below: float | None  # on the unknown score: items between are unsure
    audit: Audit | None  # None without seeds
    evidence: Evidence | None  # of the items judged; None without seeds, or after a restart
    k: int
    n_steps: dict[str, int]


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


# --- the answer ------------------------------------------------------------------------------


class Scores(NamedTuple):
    """What a model measures about n items."""

    score: np.ndarray  # (n,) rises with the belief that an item is unknown
    nearest: np.ndarray  # (n,) the best known class
    softmax: np.ndarray  # (n,) of it, given that the item is known
    distinctness: np.ndarray  # (n,)
    embeddings: np.ndarray  # (n, d)


def score_items(
    model: OpenSetModel | KnownOnlyModel, inputs: np.ndarray, settings: DecisionSettings
) -> Scores:
    """The scores of scaled items: log-odds of g, or the entropy of f where there is no g.

    By the rule of the paper the score is the margin of C' over the known classes.
    """
    of_f = model.teacher.outputs(inputs)
    if isinstance(model, KnownOnlyModel):
        p = softmax(of_f.logits, axis=1)
        return Scores(
            of_f.entropy, p.argmax(1), p.max(1), of_f.entropy + of_f.distance, of_f.embeddings
        )
    logits, embeddings = model.student.outputs(inputs)
    known = model.student.probabilities(logits, of_f.logits)[:, :-1]
    score = model.student.log_odds(logits)
    if settings.rule == "argmax":
        score = logits[:, -1] - logits[:, :-1].max(1)
    return Scores(
        score=score,
        nearest=known.argmax(1),
        softmax=known_confidence(known),
        distinctness=distinctness(of_f, model.unit, model.filtering),
        embeddings=embeddings,
    )


def score_in_chunks(
    model: OpenSetModel | KnownOnlyModel, inputs: np.ndarray, settings: DecisionSettings
) -> Scores:
    """The scores of items as they come, without embeddings, which would take most of the memory."""
    found = []
    for rows in chunks(len(inputs), SCORED_AT_ONCE):
        scores = score_items(model, model.scaling.transform(inputs[rows]), settings)
        found.append(scores._replace(embeddings=np.empty((len(scores.score), 0))))
    return Scores(*(np.concatenate(values) for values in zip(*found, strict=True)))


class PoolAnswer(NamedTuple):
    """The answer for n items of the pool, and what it was made from."""

    answer: Answer
    nearest_confidence: np.ndarray
    scores: Scores


def answer_items(fit: LargeFit, inputs: np.ndarray, settings: DecisionSettings) -> PoolAnswer:
    """Items of the pool as they come, decided by the thresholds of the pool."""
    model = fit.model
    inputs = model.scaling.transform(inputs)
    found = score_items(model, inputs, settings)
    # Without seeds, the margin of C' over the known classes decides.
    thresholds = fit.thresholds or Thresholds(0.0)
    score = found.score
    is_unknown = thresholds.are_passed(score, found.nearest)
    labels = np.where(is_unknown, UNKNOWN, found.nearest)
    if fit.sure_known_below is not None:
        levelled = squash(thresholds.level(score, found.nearest))
        labels[(levelled > fit.sure_known_below) & ~is_unknown] = UNSURE
    named, confidence = found.softmax, found.softmax
    if model.confidence is not None:
        named = model.confidence.of_names(found.softmax)
        confidence = model.confidence.of_answers(labels == UNKNOWN, found.softmax, score)
    groups = np.full(len(labels), -1)
    if isinstance(model, OpenSetModel) and is_unknown.any():
        groups[is_unknown] = model.groups_of(inputs[is_unknown])
    answer = Answer(
        labels=labels,
        unknown_score=squash(score),
        confidence=confidence,
        groups=groups,
        distinctness=found.distinctness,
        filtered=np.zeros(len(labels), bool),
        nearest=found.nearest,
        p_known=None
        if model.calibration is None
        else statistics.p_known(score, model.calibration.scores, model.calibration.weights),
    )
    return PoolAnswer(answer, named, found)


def join_answers(parts: Sequence[PoolAnswer]) -> PoolAnswer:
    """The answers for chunks of a pool as one."""
    if len(parts) == 1:
        return parts[0]
    answers = [part.answer for part in parts]
    has_p_known = answers[0].p_known is not None
    joined = {
        field.name: np.concatenate([getattr(answer, field.name) for answer in answers])
        for field in fields(Answer)
        if field.name != "p_known" or has_p_known
    }
    return PoolAnswer(
        Answer(**joined),
        np.concatenate([part.nearest_confidence for part in parts]),
        Scores(*map(np.concatenate, zip(*(part.scores for part in parts), strict=True))),
    )


def at_once(work: Callable[[np.ndarray], T], inputs: np.ndarray) -> list[T]:
    """Work on all items here, as one chunk."""
    return [work(inputs)]


def fit_large_pool(
    method: S2OSCMethod,
    known: Labelled,
    pool: np.ndarray,
    *,
    fit_on: int,
    seed: int,
    device: str = "cpu",
    over_rows: OverRows = at_once,
    raw: RawItems | None = None,
) -> Solution:
    """The method for a pool in memory, fitted on a sample of it if it has more items than that.

    ``over_rows`` does what is done with every item, chunk by chunk, here or elsewhere. ``raw``
    are the photos or texts that the items are features of; of a large pool some are compared.
    """
    check_fit_on(fit_on)
    if len(pool) <= fit_on:
        return method.fit(known, pool, seed=seed, device=device, raw=raw)
    clock, by_raw = Stopwatch(), None
    if raw is not None:
        with clock("sources"):
            rows = draw_compared(len(pool), raw.pool[:1].nbytes, seed=seed)
            some = raw._replace(pool=raw.pool[rows])
            by_raw = method.match_raw(known, pool[rows], some, seed=seed)
            known = known if by_raw is None else by_raw.training
    with clock("sample"):
        plan = plan_fit(known, method.seeds, fit_on=fit_on, seed=seed)
        sample = draw_sample(plan, np.concatenate(over_rows(plan.strangeness.strata, pool)))
    fit = fit_sample(
        method,
        plan,
        sample,
        pool[sample.pool],
        pool[sample.judged],
        clock,
        by_raw=by_raw,
        device=device,
    )
    with clock("answer"):
        parts = over_rows(partial(answer_items, fit, settings=method.decision), pool)
        answer, named, scores = join_answers(parts)
    model = fit.model
    leaves = np.full(len(pool), -1)
    if isinstance(model, OpenSetModel):
        with clock("groups"):
            leaves = model.leaves_of(model.scaling.transform(pool))
    trust = None
    if fit.audit is not None and fit.evidence is not None:
        evidence = replace(
            fit.evidence, score=scores.score, nearest=scores.nearest, nearest_confidence=named
        )
        is_g = isinstance(model, OpenSetModel)
        odds = np.concatenate([evidence.score, evidence.seed_score]) if is_g else None
        trust = Trust(evidence, fit.audit, odds)
    return Solution(
        model=model,
        answer=answer,
        partition=Partition(np.empty(0, int), np.arange(len(pool))),
        embeddings=scores.embeddings,
        nearest_confidence=named,
        leaves=leaves,
        k=fit.k,
        n_steps=fit.n_steps,
        seconds=clock.seconds,
        trust=trust,
    )
