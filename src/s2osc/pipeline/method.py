"""S2OSC: the steps as one straight line."""

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import softmax

from s2osc.errors import DataError
from s2osc.nets.augment import AugmentSettings
from s2osc.pipeline.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.filtering import (
    FilterSettings,
    Partition,
    Units,
    affordable_k,
    distinctness,
    partition_pool,
    units,
)
from s2osc.pipeline.student import Student, StudentSettings, prepare_lesson, train_student
from s2osc.pipeline.teacher import Sight, Teacher, TeacherSettings, train_teacher
from s2osc.progress import Stopwatch
from s2osc.types import UNKNOWN, Answer, Labelled, Predictions


@dataclass(frozen=True, eq=False)
class OpenSetModel:
    """f, g and the groups of unknown items: a Recogniser that can be kept and used again."""

    teacher: Teacher
    student: Student
    grouping: Grouping
    filtering: FilterSettings
    unit: Units

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.answer(inputs)

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + 1): each known class, then unknown."""
        taught = self.teacher.look(inputs).logits
        return self.student.probabilities(self.student.look(inputs).logits, taught)

    def answer(self, inputs: np.ndarray) -> Answer:
        """Everything about each item. None is filtered: that is a matter of the pool of the fit."""
        return self.combine(self.teacher.look(inputs), *self.student.look(inputs))

    def combine(self, sight: Sight, logits: np.ndarray, embeddings: np.ndarray) -> Answer:
        """The answer from what f and g saw: a known class, or unknown and which group."""
        p = self.student.probabilities(logits, sight.logits)
        unknown = self.student.says_unknown(logits)
        known_class = p[:, :-1].argmax(1)
        labels = np.where(unknown, UNKNOWN, known_class)
        groups = np.full(len(p), -1)
        if unknown.any():
            groups[unknown] = self.grouping.assign(embeddings[unknown])
        return Answer(
            labels=labels,
            unknown_score=p[:, -1],
            confidence=np.where(unknown, p[:, -1], p[np.arange(len(p)), known_class]),
            groups=groups,
            distinctness=distinctness(sight, self.unit, self.filtering),
            filtered=np.zeros(len(p), bool),
        )


@dataclass(frozen=True, eq=False)
class KnownOnlyModel:
    """f alone, where there was no pool: nothing is called unknown."""

    teacher: Teacher

    def predict(self, inputs: np.ndarray) -> Predictions:
        """The most probable known class; the score is the entropy of f."""
        sight = self.teacher.look(inputs)
        p = softmax(sight.logits, axis=1)
        return Predictions(p.argmax(1), sight.entropy, p.max(1))

    def probabilities(self, inputs: np.ndarray) -> np.ndarray:
        """(n, C + 1): each known class, then unknown, which is never."""
        return np.pad(self.teacher.probabilities(inputs), ((0, 0), (0, 1)))


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model with its answer for the pool it was fitted on, and how that came about."""

    model: OpenSetModel
    answer: Answer
    partition: Partition
    embeddings: np.ndarray  # (n, d) of the pool, as g sees it
    k: int
    n_steps: dict[str, int]
    seconds: dict[str, float]

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.model.predict(inputs)


@dataclass(frozen=True)
class S2OSCMethod:
    """Filter distinct unknowns with a teacher, then learn them with a student."""

    teacher: TeacherSettings
    student: StudentSettings
    filtering: FilterSettings = FilterSettings()
    clusters: ClusterSettings = ClusterSettings()
    augmentation: AugmentSettings = AugmentSettings()

    def fit_known_only(self, known: Labelled, *, seed: int, device: str) -> KnownOnlyModel:
        """The first step alone, for labelled items without a pool."""
        return KnownOnlyModel(
            train_teacher(known, self.teacher, self.augmentation, seed=seed, device=device)
        )

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> Solution:
        if len(pool) < 2:
            raise DataError(f"the pool has {len(pool)} item; give at least two")
        clock = Stopwatch()
        with clock("teacher"):
            teacher = train_teacher(
                known, self.teacher, self.augmentation, seed=seed, device=device
            )
        with clock("filter"):
            sight = teacher.look(pool)
            unit = units(sight, self.filtering)
            weights = distinctness(sight, unit, self.filtering)
            k = affordable_k(self.filtering, len(pool), np.bincount(known.labels))
            parts = partition_pool(weights, k)
        with clock("student"):
            lesson = prepare_lesson(
                teacher, known, pool, sight.logits, parts, k, self.student, seed=seed
            )
            student = train_student(
                teacher, lesson, self.student, self.augmentation, seed=seed, device=device
            )
        with clock("answer"):
            seen = student.look(pool)
        with clock("groups"):
            unknown = seen.embeddings[student.says_unknown(seen.logits)]
            grouping = group_unknown(unknown, self.clusters, seed=seed)
        model = OpenSetModel(teacher, student, grouping, self.filtering, unit)
        answer = replace(
            model.combine(sight, *seen), filtered=np.isin(np.arange(len(pool)), parts.unknown)
        )
        return Solution(
            model,
            answer,
            parts,
            seen.embeddings,
            k,
            n_steps={
                "teacher": self.teacher.training.n_steps(len(known)),
                "student": self.student.training.n_steps(len(parts.undecided)),
            },
            seconds=clock.seconds,
        )
