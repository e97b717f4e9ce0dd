"""A fit on a sample of a large pool, and its answers for every item of it."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.arrays import chunks
from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.confidence import known_confidence
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence, Thresholds
from s2osc.pipeline.filter.distinctness import distinctness
from s2osc.pipeline.filter.unknown_probability import squash
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.types import UNKNOWN, UNSURE, Answer

SCORED_AT_ONCE = 4_096


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

    @property
    def finds_nothing(self) -> bool:
        """Whether the test finds nothing unknown; False without seeds."""
        return self.audit is not None and self.audit.nothing_unknown

    @property
    def sources_differ(self) -> bool:
        return self.evidence is not None and self.evidence.sources_differ


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
