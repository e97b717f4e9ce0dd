"""S2OSC: the steps as one straight line."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from s2osc.errors import DataError, SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.networks import one_vector
from s2osc.nets.training import Outputs, outputs
from s2osc.pipeline.audit import statistics
from s2osc.pipeline.audit.calibration import SeedSettings, hold_back
from s2osc.pipeline.audit.decision import (
    Decision,
    DecisionSettings,
    Evidence,
    best_evidence,
    decide,
    threshold_for_new,
)
from s2osc.pipeline.audit.record import Audit, GroupsAudit, PurityAudit, PurityPoint
from s2osc.pipeline.filter.distinctness import (
    PAPER_K,
    FilterSettings,
    Partition,
    Ranking,
    affordable_k,
    combine,
    distinctness,
    partition_pool,
    pure_k,
    rank_by_signs,
    units,
)
from s2osc.pipeline.filter.score import ranks, unknown_probability
from s2osc.pipeline.grouping.clusters import ClusterSettings, Grouping, group_unknown
from s2osc.pipeline.grouping.rotation import Pictures
from s2osc.pipeline.grouping.space import GroupingSpace, fit_space
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.run_facts import RunFacts
from s2osc.pipeline.student import (
    Student,
    StudentSettings,
    prepare_lesson,
    train_student,
    weigh_vote,
)
from s2osc.pipeline.teacher import Teacher, TeacherOutputs, TeacherSettings, train_teacher
from s2osc.progress import Stopwatch
from s2osc.seeding import rng
from s2osc.types import UNKNOWN, Answer, Labelled, Predictions

PURITY_POINTS = 40
"""Points of the curve of purity against K that is shown."""
N_COMPARED = 2_000
"""Known items the groups of unknown ones are measured by."""


class Trust(NamedTuple):
    """What the seeds say: the evidence of every decision, and the figures drawn from it."""

    evidence: Evidence
    audit: Audit  # its classes are called by their numbers
    groups: np.ndarray  # (n,) the group of each item of the pool, were it unknown; -1: no groups
    odds: np.ndarray | None = None  # (n + m,) log-odds of g for pool and seeds; None: no student


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model with its answer for the pool it was fitted on, and how that came about."""

    model: OpenSetModel | KnownOnlyModel
    answer: Answer
    partition: Partition  # of the pool
    embeddings: np.ndarray  # (n, d) of the pool, as g sees it; as f does where nothing is unknown
    k: int  # 0 where nothing is unknown
    n_steps: dict[str, int]
    seconds: dict[str, float]
    trust: Trust | None = None  # None: no seeds

    def audit(self, names: Sequence[str]) -> Audit | None:
        """The audit with the names of the known classes; None without seeds."""
        return self.trust.audit.named(names) if self.trust else None

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.model.predict(inputs)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.model.features(inputs)


class Pool(NamedTuple):
    """Pool and seeds as they go through the steps together: the pool first, then the seeds."""

    inputs: np.ndarray
    n: int  # of the pool
    seed_labels: np.ndarray

    @property
    def is_seed(self) -> np.ndarray:
        return np.arange(len(self.inputs)) >= self.n


@dataclass(frozen=True)
class S2OSCMethod:
    """Filter distinct unknowns with a teacher, then learn them with a student.

    With ``seeds``, labelled items held back from f go through both with the pool: they weigh the
    signs of the unknown, choose K, test whether anything is unknown, set the threshold and tell
    how often the answer is wrong. Without, this is the paper's method.
    """

    teacher: TeacherSettings
    student: StudentSettings
    filtering: FilterSettings = FilterSettings()
    clusters: ClusterSettings = ClusterSettings()
    augmentation: AugmentSettings = AugmentSettings()
    seeds: SeedSettings = SeedSettings()
    decision: DecisionSettings = DecisionSettings()

    def __post_init__(self) -> None:
        if self.seeds.share:
            return
        wanting = {
            "filtering.by": (self.filtering.by == "seeds", "paper"),
            "decision.rule": (self.decision.rule == "seeds", "argmax"),
            "student.seed_weight": (self.student.seed_weight > 0, "0"),
        }
        for name, (needs_seeds, other) in wanting.items():
            if needs_seeds:
                raise SettingsError(
                    f"{name} needs seeds, but seeds.share is 0; give seeds.share=0.15, "
                    f"or {name}={other}"
                )

    def for_run(self, run: RunFacts) -> "S2OSCMethod":
        """With the networks and the budget of the run; flips where the data allow them."""
        student = self.student
        if run.student is not None:
            student = replace(
                student,
                network=run.student.network,
                training=run.student.training,
                labelled_batch=run.student.labelled_batch,
            )
        return replace(
            self,
            teacher=run.teacher or self.teacher,
            student=student,
            augmentation=replace(self.augmentation, flip=run.flip),
        )

    def fit_known_only(self, known: Labelled, *, seed: int, device: str) -> KnownOnlyModel:
        """The first step alone, for labelled items without a pool."""
        return KnownOnlyModel(
            train_teacher(known, self.teacher, self.augmentation, seed=seed, device=device)
        )

    def fit(self, known: Labelled, pool: np.ndarray, *, seed: int, device: str = "cpu") -> Solution:
        if len(pool) < 2:
            raise DataError(f"the pool has {len(pool)} item; give at least two")
        clock = Stopwatch()
        training, pooled = plant_seeds(known, pool, self.seeds, seed=seed)
        with clock("teacher"):
            teacher = train_teacher(
                training, self.teacher, self.augmentation, seed=seed, device=device
            )
        return self.solve(teacher, training, pooled, clock, seed=seed, device=device)

    def solve(
        self,
        teacher: Teacher,
        training: Labelled,
        pooled: Pool,
        clock: Stopwatch,
        *,
        seed: int,
        device: str,
    ) -> Solution:
        """Every step after f: ``training`` is what f has learnt, the seeds what it has not."""
        with clock("filter"):
            teacher_outputs = teacher.outputs(pooled.inputs)
            unit = units(teacher_outputs, self.filtering)
            w = distinctness(teacher_outputs, unit, self.filtering)
            ranking = self._rank(pooled, teacher_outputs, w, training, seed=seed)
            p_value = p_value_of(ranking, pooled, teacher_outputs.logits.argmax(1))
        if self.decision.rule == "seeds" and p_value > self.decision.level:
            return self._nothing_unknown(
                teacher, pooled, teacher_outputs, w, ranking, p_value, training, clock, seed=seed
            )
        with clock("filter"):
            k, purity = self._choose_k(ranking, pooled, training)
            parts = partition_pool(ranking.score, k)
            told = told_by_seeds(ranking, pooled, seed=seed) if len(pooled.seed_labels) else None
        with clock("student"):
            lesson = prepare_lesson(
                *(teacher, training, pooled.inputs, teacher_outputs.logits, parts, k, self.student),
                seed=seed,
                pool_unknown=told,
            )
            student = train_student(
                teacher, lesson, self.student, self.augmentation, seed=seed, device=device
            )
        with clock("answer"):
            seen = student.outputs(pooled.inputs)
            if student.vote and len(pooled.seed_labels):
                of_seeds = seen.logits[pooled.n :], teacher_outputs.logits[pooled.n :]
                student = weigh_vote(student, *of_seeds, pooled.seed_labels)
            evidence = self._gather(
                student, seen, teacher_outputs, ranking, pooled, p_value, seed=seed
            )
            decision = self._decide(student, seen, teacher_outputs, evidence, seed=seed)
            named = student.probabilities(seen.logits, teacher_outputs.logits)[:, :-1].argmax(1)
        with clock("groups"):
            space, grouping = self._group(
                teacher, training, pooled, teacher_outputs, decision.labels == UNKNOWN, seed=seed
            )
            odds = student.log_odds(seen.logits)
            threshold = (
                None if evidence is None else threshold_for_new(evidence, odds, self.decision)
            )
            model = OpenSetModel(teacher, student, space, grouping, self.filtering, unit, threshold)
            groups = model.groups_of(
                pooled.inputs[: pooled.n], teacher_outputs.embeddings[: pooled.n]
            )
        answer = Answer(
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            groups=np.where(decision.labels == UNKNOWN, groups, -1),
            distinctness=w[: pooled.n],
            filtered=np.isin(np.arange(pooled.n), parts.unknown),
            nearest=named[: pooled.n],
        )
        return Solution(
            model,
            answer,
            Partition(*(part[part < pooled.n] for part in parts)),
            seen.embeddings[: pooled.n],
            k,
            n_steps={
                "teacher": self.teacher.training.n_steps(len(training)),
                "student": self.student.training.n_steps(len(parts.undecided)),
            },
            seconds=clock.seconds,
            trust=None
            if evidence is None or decision.audit is None
            else Trust(
                evidence,
                replace(decision.audit, purity=purity, groups=audit_groups(grouping)),
                groups,
                odds,
            ),
        )

    def _rank(
        self,
        pooled: Pool,
        teacher_outputs: TeacherOutputs,
        w: np.ndarray,
        training: Labelled,
        *,
        seed: int,
    ) -> Ranking:
        if self.filtering.by == "paper" or not len(pooled.seed_labels):
            return Ranking(w, w[:, None], np.ones(training.n_classes))
        return rank_by_signs(
            pooled.inputs, teacher_outputs, w, training, pooled.seed_labels, seed=seed
        )

    def _choose_k(
        self, ranking: Ranking, pooled: Pool, training: Labelled
    ) -> tuple[int, PurityAudit | None]:
        """K as asked for, or the largest D_out that the seeds find pure; and their figures."""
        sizes = np.bincount(training.labels)
        if not len(pooled.seed_labels):
            return affordable_k(self.filtering, pooled.n, sizes), None
        scores = split_scores(ranking.score, pooled)
        weights = ranking.class_weights[pooled.seed_labels]
        share = statistics.unknown_share(
            statistics.tails(*scores, weights), pooled.n, statistics.effective_number(weights)
        )
        purity = statistics.purity_of_top(*scores, weights, share.estimate)
        most = min(PAPER_K, max(1, pooled.n // 4))
        k = (
            pure_k(purity, most, self.filtering)
            if self.filtering.k is None
            else affordable_k(self.filtering, pooled.n, sizes)
        )
        return k, audit_purity(purity, k)

    def _gather(
        self,
        student: Student,
        seen: Outputs,
        teacher_outputs: TeacherOutputs,
        ranking: Ranking,
        pooled: Pool,
        p_value: float,
        *,
        seed: int,
    ) -> Evidence | None:
        """What the answer rests on: scores of pool and seeds, and their nearest known classes."""
        if not len(pooled.seed_labels):
            return None
        named = student.probabilities(seen.logits, teacher_outputs.logits)[:, :-1]
        weights = ranking.class_weights[pooled.seed_labels]
        if self.decision.rule == "argmax":
            margin = seen.logits[:, -1] - seen.logits[:, :-1].max(1)
            return make_evidence(margin, named, pooled, weights, p_value)
        odds = student.log_odds(seen.logits)
        signs = np.column_stack([ranking.signs, odds])
        candidates = [
            odds,
            combine(signs, weights, seed=seed),
            ranks(odds) + ranks(ranking.score),
        ]
        return best_evidence(
            [make_evidence(score, named, pooled, weights, p_value) for score in candidates],
            self.decision,
        )

    def _decide(
        self,
        student: Student,
        seen: Outputs,
        teacher_outputs: TeacherOutputs,
        evidence: Evidence | None,
        *,
        seed: int,
    ) -> Decision:
        if evidence is not None:
            return decide(evidence, self.decision, seed=seed)
        p = student.probabilities(seen.logits, teacher_outputs.logits)
        unknown = student.says_unknown(seen.logits)
        nearest = p[:, :-1].argmax(1)
        confidence = np.where(unknown, p[:, -1], p[np.arange(len(p)), nearest])
        return Decision(np.where(unknown, UNKNOWN, nearest), p[:, -1], confidence, 0.0, None)

    def _group(
        self,
        teacher: Teacher,
        training: Labelled,
        pooled: Pool,
        teacher_outputs: TeacherOutputs,
        is_unknown: np.ndarray,
        *,
        seed: int,
    ) -> tuple[GroupingSpace, Grouping]:
        """Group the unknown items by the measure of known ones: seeds, or some f has learnt."""
        if len(pooled.seed_labels):
            labels = pooled.seed_labels
            known = one_vector(pooled.inputs[pooled.n :]), teacher_outputs.embeddings[pooled.n :]
        else:
            rows = rng(seed, "compared").permutation(len(training))[:N_COMPARED]
            labels = training.labels[rows]
            inputs = training.inputs[rows]
            seen = outputs(teacher.network, inputs, what="f looks at items")
            known = one_vector(inputs), seen.embeddings
        rows = np.flatnonzero(is_unknown)
        unknown = one_vector(pooled.inputs[rows]), teacher_outputs.embeddings[rows]
        space = fit_space(known, labels, unknown, seed=seed)
        pictures = None
        if unknown[0].ndim > 2:
            pictures = Pictures(unknown[0], space, seed), Pictures(known[0], space, seed)
        grouping = group_unknown(
            *(space.transform(*unknown), space.transform(*known), labels, self.clusters),
            seed=seed,
            pictures=pictures,
        )
        return space, grouping

    def _nothing_unknown(
        self,
        teacher: Teacher,
        pooled: Pool,
        teacher_outputs: TeacherOutputs,
        w: np.ndarray,
        ranking: Ranking,
        p_value: float,
        training: Labelled,
        clock: Stopwatch,
        *,
        seed: int,
    ) -> Solution:
        """f's answer: no student is trained where the pool differs in nothing from the seeds."""
        named, n = softmax(teacher_outputs.logits, axis=1), pooled.n
        weights = ranking.class_weights[pooled.seed_labels]
        evidence = make_evidence(ranking.score, named, pooled, weights, p_value)
        decision = decide(evidence, self.decision, seed=seed)
        groups = np.full(n, -1)
        answer = Answer(
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            groups=groups,
            distinctness=w[:n],
            filtered=np.zeros(n, bool),
            nearest=evidence.nearest,
        )
        purity = statistics.purity_of_top(*split_scores(ranking.score, pooled), weights, 0.0)
        assert decision.audit is not None, "there are seeds, or nothing could be tested"
        audit = replace(decision.audit, purity=audit_purity(purity, 0))
        return Solution(
            KnownOnlyModel(teacher),
            answer,
            Partition(np.empty(0, int), np.arange(n)),
            teacher_outputs.embeddings[:n],
            0,
            n_steps={"teacher": self.teacher.training.n_steps(len(training))},
            seconds=clock.seconds,
            trust=Trust(evidence, audit, groups),
        )


def plant_seeds(
    known: Labelled, pool: np.ndarray, settings: SeedSettings, *, seed: int
) -> tuple[Labelled, Pool]:
    """Hold some labelled items back from training and put them, unlabelled, after the pool."""
    held = hold_back(known.labels, settings, rng(seed, "seeds"))
    if not len(held):
        return known, Pool(pool, len(pool), np.empty(0, int))
    stays = np.ones(len(known), bool)
    stays[held] = False
    training = Labelled(known.inputs[stays], known.labels[stays])
    return training, with_seeds(pool, Labelled(known.inputs[held], known.labels[held]))


def with_seeds(pool: np.ndarray, seeds: Labelled) -> Pool:
    """A pool with seeds after it, unlabelled."""
    return Pool(np.concatenate([pool, seeds.inputs]), len(pool), seeds.labels)


def split_scores(scores: np.ndarray, pooled: Pool) -> tuple[np.ndarray, np.ndarray]:
    return scores[: pooled.n], scores[pooled.n :]


def p_value_of(ranking: Ranking, pooled: Pool, named: np.ndarray) -> float:
    """The p-value of "nothing is unknown"; 0 without seeds, for then nobody can tell.

    ``named`` is the known class that f gives each item of pool and seeds.
    """
    if not len(pooled.seed_labels):
        return 0.0
    scores = split_scores(ranking.score, pooled)
    if np.ptp(ranking.class_weights) == 0:
        return statistics.anything_unknown(*scores)
    return statistics.anything_unknown_by_class(*scores, *split_scores(named, pooled))


def told_by_seeds(ranking: Ranking, pooled: Pool, *, seed: int) -> np.ndarray:
    """P(unknown) of every item of pool and seeds, from the ranking of the filter."""
    weights = ranking.class_weights[pooled.seed_labels]
    curve = statistics.tails(*split_scores(ranking.score, pooled), weights)
    share = statistics.unknown_share(curve, pooled.n, statistics.effective_number(weights))
    everyone = np.append(np.ones(pooled.n), weights)
    return unknown_probability(ranking.score, pooled.is_seed, everyone, share.low, seed=seed)


def make_evidence(
    score: np.ndarray, named: np.ndarray, pooled: Pool, weights: np.ndarray, p_value: float
) -> Evidence:
    """Scores and probabilities of the known classes, taken apart into pool and seeds."""
    nearest, n = named.argmax(1), pooled.n
    total = np.maximum(named.sum(1), 1e-12)
    return Evidence(
        score=score[:n],
        nearest=nearest[:n],
        nearest_confidence=(named.max(1) / total)[:n],
        seed_score=score[n:],
        seed_label=pooled.seed_labels,
        seed_nearest=nearest[n:],
        seed_weight=weights,
        p_value=p_value,
    )


def audit_purity(purity: statistics.Purity, k: int) -> PurityAudit:
    """Purity against K at a few dozen places, and at the K chosen."""
    places = np.unique(np.geomspace(1, len(purity.low), PURITY_POINTS).astype(int))
    return PurityAudit(
        k=k,
        estimate=float(purity.estimate[k - 1]) if k else None,
        curve=tuple(
            PurityPoint(int(n), float(purity.estimate[n - 1]), float(purity.low[n - 1]))
            for n in places
        ),
    )


def audit_groups(grouping: Grouping) -> GroupsAudit:
    return GroupsAudit(
        number=grouping.n_groups,
        low=grouping.n_low,
        high=grouping.n_high,
        stability=tuple(round(float(value), 3) for value in grouping.stability),
        tightness=tuple(round(float(value), 3) for value in grouping.tightness),
    )
