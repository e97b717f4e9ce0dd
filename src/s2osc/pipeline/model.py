"""Fitted models, which answer for new items."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.nets.networks import one_vector
from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.confidence import Confidence, known_confidence
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.pipeline.filter.distinctness import FilterSettings, Units, distinctness
from s2osc.pipeline.grouping.clusters import Grouping
from s2osc.pipeline.grouping.space import GroupingSpace
from s2osc.pipeline.scaling import UNSCALED, Scaling
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from s2osc.types import UNKNOWN, Answer, Predictions


@dataclass(frozen=True, eq=False)
class CalibrationScores:
    """What new items are compared with: the calibration items by the score that new items have."""

    scores: np.ndarray  # (m,) rise with the belief that an item is unknown
    weights: np.ndarray  # (m,) how many known items each stands for, relatively

    def operating_point(self, threshold: float) -> float:
        return statistics.operating_point(self.scores, self.weights, threshold)


class FullAnswer(NamedTuple):
    """An answer, and how sure the best known class of each item is."""

    answer: Answer
    nearest_confidence: np.ndarray  # (n,) given that the item is known


@dataclass(frozen=True, eq=False)
class OpenSetModel:
    """f, g and the groups of unknown items: a Recogniser that can be saved."""

    teacher: Teacher
    student: Student
    space: GroupingSpace
    grouping: Grouping
    filtering: FilterSettings
    unit: Units
    thresholds: Thresholds | None = None  # on the log-odds of g; None: g's largest output
    scaling: Scaling = UNSCALED  # of items as they come
    calibration: CalibrationScores | None = None  # log-odds of g; None: nothing was held back
    confidence: Confidence | None = None  # None: nothing was held back, or of an earlier version

    @property
    def operating_point(self) -> float | None:
        """New items are unknown where p_known is at most this; None: g's largest output decides.

        Items given a class with a threshold of its own have another one (``operating_points``).
        """
        if self.thresholds is None or self.calibration is None:
            return None
        return self.calibration.operating_point(self.thresholds.common)

    def operating_points(self, nearest: np.ndarray) -> np.ndarray | None:
        """(n,) the same for items by their best known class."""
        if self.thresholds is None or self.calibration is None:
            return None
        found = np.full(len(nearest), self.calibration.operating_point(self.thresholds.common))
        for name, own in self.thresholds.of_class.items():
            found[nearest == name] = self.calibration.operating_point(own)
        return found

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.answer(inputs)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.student.outputs(self.scaling.transform(inputs)).embeddings

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + 1): each known class, then unknown."""
        inputs = self.scaling.transform(inputs)
        teacher_logits = self.teacher.outputs(inputs).logits
        return self.student.probabilities(self.student.outputs(inputs).logits, teacher_logits)

    def answer(self, inputs: np.ndarray) -> Answer:
        return self.answer_fully(inputs).answer

    def answer_fully(self, inputs: np.ndarray) -> FullAnswer:
        """``filtered`` is False, as only the pool of a fit is filtered."""
        inputs = self.scaling.transform(inputs)
        teacher_outputs = self.teacher.outputs(inputs)
        logits = self.student.outputs(inputs).logits
        p = self.student.probabilities(logits, teacher_outputs.logits)
        known_class, odds = p[:, :-1].argmax(1), self.student.log_odds(logits)
        unknown, best = self.predicts_unknown(logits, known_class), known_confidence(p[:, :-1])
        if self.confidence is None:
            confidence = np.where(unknown, p[:, -1], p[np.arange(len(p)), known_class])
        else:
            confidence = self.confidence.of_answers(unknown, best, odds)
        groups = np.full(len(p), -1)
        if unknown.any():
            groups[unknown] = self.groups_of(inputs[unknown])
        answer = Answer(
            labels=np.where(unknown, UNKNOWN, known_class),
            unknown_score=p[:, -1],
            confidence=confidence,
            groups=groups,
            distinctness=distinctness(teacher_outputs, self.unit, self.filtering),
            filtered=np.zeros(len(p), bool),
            nearest=known_class,
            p_known=_p_known(self.calibration, odds),
        )
        return FullAnswer(answer, _sure_of_names(self.confidence, best))

    def predicts_unknown(self, logits: np.ndarray, nearest: np.ndarray) -> np.ndarray:
        """Above the threshold of the seeds; without seeds, where g's largest output is C'."""
        if self.thresholds is None:
            return self.student.predicts_unknown(logits)
        return self.thresholds.are_passed(self.student.log_odds(logits), nearest)

    def groups_of(self, inputs: np.ndarray) -> np.ndarray:
        """The group each item is nearest to, by its scaled inputs."""
        return self.grouping.group_of_leaf[self.leaves_of(inputs)]

    def leaves_of(self, inputs: np.ndarray) -> np.ndarray:
        """The leaf of the tree of groups each item is nearest to, by its scaled inputs."""
        return self.grouping.assign_leaves(self.space.transform(one_vector(inputs)))

    def regroup(
        self, n: int | None = None, *, merge: Sequence[int] = (), split: int | None = None
    ) -> "OpenSetModel":
        """The same model with another number of groups, some groups as one, or one in two."""
        groups = self.grouping.tree.regroup(self.grouping.groups, n, merge=merge, split=split)
        return replace(self, grouping=self.grouping.regrouped(groups))


@dataclass(frozen=True, eq=False)
class KnownOnlyModel:
    """f alone, where there was no pool, or nothing unknown in it: nothing is called unknown."""

    teacher: Teacher
    scaling: Scaling = UNSCALED  # of items as they come
    calibration: CalibrationScores | None = None  # entropies of f; None: nothing was held back
    confidence: Confidence | None = None  # None: nothing was held back, or of an earlier version

    @property
    def operating_point(self) -> float | None:
        """0, as no new item is called unknown; None: nothing was held back."""
        return None if self.calibration is None else 0.0

    def operating_points(self, nearest: np.ndarray) -> np.ndarray | None:
        return None if self.calibration is None else np.zeros(len(nearest))

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.answer(inputs)

    def answer(self, inputs: np.ndarray) -> Answer:
        return self.answer_fully(inputs).answer

    def answer_fully(self, inputs: np.ndarray) -> FullAnswer:
        """The most probable known class; the score is the entropy of f over its largest value."""
        teacher_outputs = self.teacher.outputs(self.scaling.transform(inputs))
        p = softmax(teacher_outputs.logits, axis=1)
        n, n_classes = p.shape
        answer = Answer(
            labels=p.argmax(1),
            unknown_score=teacher_outputs.entropy / np.log(n_classes),
            confidence=_sure_of_names(self.confidence, p.max(1)),
            groups=np.full(n, -1),
            distinctness=teacher_outputs.entropy + teacher_outputs.distance,
            filtered=np.zeros(n, bool),
            nearest=p.argmax(1),
            p_known=_p_known(self.calibration, teacher_outputs.entropy),
        )
        return FullAnswer(answer, _sure_of_names(self.confidence, known_confidence(p)))

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.teacher.outputs(self.scaling.transform(inputs)).embeddings

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + 1): each known class, then unknown, which is never."""
        known = self.teacher.probabilities(self.scaling.transform(inputs))
        return np.pad(known, ((0, 0), (0, 1)))


def _sure_of_names(confidence: Confidence | None, softmax_of_best: np.ndarray) -> np.ndarray:
    """(n,) the probability that the best known class is right, given that an item is known."""
    return softmax_of_best if confidence is None else confidence.of_names(softmax_of_best)


def _p_known(calibration: CalibrationScores | None, scores: np.ndarray) -> np.ndarray | None:
    if calibration is None:
        return None
    return statistics.p_known(scores, calibration.scores, calibration.weights)
