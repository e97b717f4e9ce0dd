"""S2OSC: the steps as one straight line."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from s2osc.errors import DataError, SettingsError
from s2osc.nets.augmentation.augment import AugmentSettings
from s2osc.nets.training import Outputs
from s2osc.pipeline.audit.cross_conformal import Judged, join_folds
from s2osc.pipeline.audit.held_back import Pool, SeedSettings, further_folds, hide_in_pool
from s2osc.pipeline.audit.threshold import DecisionSettings
from s2osc.pipeline.filter.distinctness import (
    FilterSettings,
    Partition,
)
from s2osc.pipeline.filter.screening import (
    Filtered,
    filter_pool,
    stands_out_by_inputs,
    with_p_value_of_whole,
    with_sure_items,
)
from s2osc.pipeline.filter.selection import Selection, select_distinct, select_nothing
from s2osc.pipeline.grouping.clusters import ClusterSettings
from s2osc.pipeline.grouping.pool import group_pool
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.run_facts import RunFacts
from s2osc.pipeline.scaling import Scaling, fit_scaling
from s2osc.pipeline.solution import Solution, make_trust
from s2osc.pipeline.sources.changes import Change
from s2osc.pipeline.sources.matched import Matched, RawItems
from s2osc.pipeline.sources.matching import (
    compare_inputs,
    match_as_told,
    match_raw,
    match_sources,
)
from s2osc.pipeline.sources.suspicion import (
    changed_on_suspicion,
    suspected_of_raw,
    suspected_sources,
    thinned,
    unless_explained,
)
from s2osc.pipeline.student import (
    Student,
    StudentSettings,
    prepare_lesson,
    train_student,
    weigh_vote,
)
from s2osc.pipeline.teacher import (
    Taught,
    Teacher,
    TeacherOutputs,
    TeacherSettings,
    train_teacher,
)
from s2osc.pipeline.verdict import (
    decide_by_student,
    decide_by_teacher,
    decide_without_seeds,
    judge,
)
from s2osc.progress import Stopwatch
from s2osc.seeding import derive
from s2osc.types import UNKNOWN, Answer, Labelled


class Learnt(NamedTuple):
    """g, its outputs for pool and seeds, and what it learnt from."""

    student: Student
    outputs: Outputs
    selection: Selection


@dataclass(frozen=True)
class S2OSCMethod:
    """Filter distinct unknowns with a teacher, then learn them with a student.

    With ``seeds``, labelled items held back from f go through both with the pool. They weigh the
    signs of the unknown, choose K, test whether anything is unknown, set the threshold and estimate
    the error rates. Without seeds, this is the paper's method.
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
        seeds = self.seeds
        if run.judges is not None and seeds.share:
            seeds = replace(seeds, judges=run.judges)
        return replace(
            self,
            teacher=run.teacher or self.teacher,
            student=student,
            augmentation=replace(self.augmentation, flip=run.flip),
            seeds=seeds,
        )

    def fit_known_only(self, known: Labelled, *, seed: int, device: str) -> KnownOnlyModel:
        """The first step alone, for labelled items without a pool."""
        scaling = fit_scaling(known.inputs)
        known = scaling.transform_items(known)
        taught = train_teacher(known, self.teacher, self.augmentation, seed=seed, device=device)
        return KnownOnlyModel(taught.teacher, scaling)

    def fit(
        self,
        known: Labelled,
        pool: np.ndarray,
        *,
        seed: int,
        device: str = "cpu",
        raw: RawItems | None = None,
    ) -> Solution:
        """Every step, from labelled items and a pool to the answer.

        ``raw`` are the photos or texts that the items are features of: what a source changes.
        """
        if len(pool) < 2:
            raise DataError(f"the pool has {len(pool)} item; give at least two")
        clock = Stopwatch()
        with clock("sources"):
            by_raw = self.match_raw(known, pool, raw, seed=seed)
            known = known if by_raw is None else by_raw.training
            scaling = fit_scaling(known.inputs, pool)
            known, pool = scaling.transform_items(known), scaling.transform(pool)
            training, pooled = hide_in_pool(known, pool, self.seeds, seed=seed)
            matched = self.match(training, pooled, scaling, seed=seed)
            if by_raw is not None:
                matched = matched.after(by_raw)
        with clock("teacher"):
            teacher, of_training = self._train_teacher(matched.training, seed=seed, device=device)

        def hide_changed(suspected: Matched) -> tuple[Labelled, Pool]:
            # The same labelled items are held back as without the change.
            return hide_in_pool(suspected.training, pool, self.seeds, seed=seed)

        solution = self.solve(
            teacher,
            of_training,
            matched,
            clock,
            labelled=known,
            suspected_raw=by_raw and partial(suspected_of_raw, by_raw, hide_changed, seed=seed),
            learn_again=partial(self._train_teacher, seed=seed, device=device),
            seed=seed,
            device=device,
        )
        return solution.with_scaling(scaling)

    def match_raw(
        self, known: Labelled, pool: np.ndarray, raw: RawItems | None, *, seed: int
    ) -> Matched | None:
        """Labelled features as if of photos or texts of the pool's source; None: no such items."""
        if raw is None or self.filtering.by != "seeds" or not self.seeds.share:
            return None
        return match_raw(known, pool, raw, seed=seed)

    def match(self, training: Labelled, pooled: Pool, scaling: Scaling, *, seed: int) -> Matched:
        """Labelled items as if from the source of the pool; as they are in the paper's method.

        All of them were scaled by ``scaling``.
        """
        if self.filtering.by != "seeds" or not pooled.is_calibrated:
            return Matched(training, pooled)
        return match_sources(training, pooled, scaling=scaling, seed=seed)

    def solve(
        self,
        teacher: Teacher,
        of_training: TeacherOutputs,
        matched: Matched,
        clock: Stopwatch,
        *,
        labelled: Labelled | None = None,
        suspected_raw: Callable[[], Iterator[Matched]] | None = None,
        learn_again: Callable[[Labelled], Taught] | None = None,
        p_by_inputs: Callable[[Sequence[Change]], float] | None = None,
        seed: int,
        device: str,
    ) -> Solution:
        """Every step after f, which was trained on other items than the held-back ones.

        ``of_training`` are its outputs for the training items. All items are scaled already. Where
        few were held back, folds are made of ``labelled``, all labelled items; None: there are no
        others that may judge. ``suspected_raw`` gives matches by changes that the pool may show
        of the photos or texts that items are features of. ``learn_again`` trains f on labelled
        items that were changed since; None: f stays as it is. ``p_by_inputs`` is the p-value of
        "nothing is unknown" in the whole pool, of which this is a sample, by labelled items with
        changes.
        """
        model: OpenSetModel | KnownOnlyModel
        with clock("filter"):
            filtered, matched = self._filter(
                teacher, of_training, matched, suspected_raw, p_by_inputs, seed=seed
            )
            changed = None
            if learn_again is not None and filtered.sources is not None:
                changed = match_as_told(matched, filtered.sources, seed=seed)
        if learn_again is not None and changed is not None:
            with clock("teacher"):
                teacher, of_training = learn_again(changed.training)
            with clock("filter"):
                filtered, matched = self._filter(
                    teacher, of_training, changed, suspected_raw, p_by_inputs, seed=seed
                )
        training, pooled = matched.training, matched.pooled
        if self._is_all_known(filtered):
            # Nothing in the pool is unknown, so no student is trained.
            with clock("answer"):
                selection = select_nothing(filtered, pooled)
                verdict = decide_by_teacher(filtered, pooled, self.decision, seed=seed)
            model = KnownOnlyModel(
                teacher, calibration=verdict.calibration, confidence=verdict.confidence_of_new
            )
            groups = leaves = np.full(pooled.n, -1)
        else:
            student, outputs, selection = self._learn(
                teacher, filtered, matched, clock, seed=seed, device=device
            )
            if filtered.p_value is None:
                verdict = decide_without_seeds(student, outputs, filtered.outputs.logits, pooled)
            else:
                with clock("answer"):
                    folds = [judge(student, outputs, filtered, pooled, self.decision)]
                if labelled is not None:
                    folds += self._judge_in_folds(
                        labelled, matched, clock, seed=seed, device=device
                    )
                with clock("answer"):
                    verdict = decide_by_student(
                        join_folds(folds),
                        filtered.by_inputs,
                        self.decision,
                        embeddings=pooled.of_pool(outputs.embeddings),
                        seed=seed,
                    )
            with clock("groups"):
                space, grouping = group_pool(
                    training, pooled, verdict.labels == UNKNOWN, self.clusters, seed=seed
                )
                model = OpenSetModel(
                    teacher=teacher,
                    student=student,
                    space=space,
                    grouping=grouping,
                    filtering=self.filtering,
                    unit=filtered.unit,
                    thresholds=verdict.thresholds_for_new,
                    calibration=verdict.calibration,
                    confidence=verdict.confidence_of_new,
                )
                leaves = model.leaves_of(pooled.of_pool(pooled.inputs))
                groups = grouping.group_of_leaf[leaves]
        return Solution(
            model=model,
            answer=Answer(
                labels=verdict.labels,
                unknown_score=verdict.unknown_score,
                confidence=verdict.confidence,
                groups=np.where(verdict.labels == UNKNOWN, groups, -1),
                distinctness=pooled.of_pool(filtered.w),
                filtered=np.isin(np.arange(pooled.n), selection.parts.unknown),
                nearest=verdict.nearest,
                p_known=verdict.p_known,
            ),
            partition=Partition(
                unknown=selection.parts.unknown[selection.parts.unknown < pooled.n],
                undecided=selection.parts.undecided[selection.parts.undecided < pooled.n],
            ),
            embeddings=verdict.embeddings,
            nearest_confidence=verdict.nearest_confidence,
            leaves=leaves,
            k=selection.k,
            n_steps=self._count_steps(training, selection),
            seconds=clock.seconds,
            trust=make_trust(model, verdict, filtered, matched, selection.purity),
        )

    def _learn(
        self,
        teacher: Teacher,
        filtered: Filtered,
        matched: Matched,
        clock: Stopwatch,
        *,
        seed: int,
        device: str,
    ) -> Learnt:
        """D_out and U, and g, which learns from them; then again from what that g ranks."""
        training, pooled, ranked = matched.training, matched.pooled, filtered
        for number in range(self.student.rounds):
            own = derive(seed, f"round {number + 1}") if number else seed
            with clock("filter"):
                selection = select_distinct(ranked, pooled, training, self.filtering, seed=own)
            with clock("student"):
                student = self._train_student(
                    teacher, training, pooled, filtered, selection, seed=own, device=device
                )
            with clock("answer"):
                outputs = student.outputs(pooled.inputs)
                odds = student.log_odds(outputs.logits)
                ranked = replace(filtered, score=filtered.brought_to_pool(odds, pooled))
        with clock("answer"):
            student = self._weigh_vote(student, outputs, filtered, pooled)
        return Learnt(student, outputs, selection)

    def _judge_in_folds(
        self, labelled: Labelled, matched: Matched, clock: Stopwatch, *, seed: int, device: str
    ) -> Iterator[Judged]:
        """What further folds measure, each with an f and a g of its own, for the same pool.

        Labelled items are changed as those of the first fold were.
        """
        for change in matched.changes:
            labelled = Labelled(change.apply(labelled.inputs, seed=seed), labelled.labels)
        folds = further_folds(labelled, matched.pooled, self.seeds, seed=seed)
        for number, (training, pooled) in enumerate(folds, start=1):
            with clock("folds"):
                own = derive(seed, f"fold {number}")
                again = compare_inputs(training, pooled, scaling=matched.scaling, seed=own)
                again = again._replace(
                    changes=matched.changes, first=matched.first, of_raw=matched.of_raw
                )
                teacher, of_training = self._train_teacher(training, seed=own, device=device)
                found = teacher.outputs(pooled.inputs)
                filtered = filter_pool(found, of_training, again, self.filtering, seed=own)
                student, outputs, _ = self._learn(
                    teacher, filtered, again, Stopwatch(), seed=own, device=device
                )
                yield judge(student, outputs, filtered, pooled, self.decision)

    def _train_teacher(self, training: Labelled, *, seed: int, device: str) -> Taught:
        return train_teacher(training, self.teacher, self.augmentation, seed=seed, device=device)

    def _filter(
        self,
        teacher: Teacher,
        of_training: TeacherOutputs,
        matched: Matched,
        suspected_raw: Callable[[], Iterator[Matched]] | None,
        p_by_inputs: Callable[[Sequence[Change]], float] | None,
        *,
        seed: int,
    ) -> tuple[Filtered, Matched]:
        """The filter, and the labelled items it rests on.

        What another source explains as well is no discovery.
        """

        def with_whole(filtered: Filtered, matched: Matched) -> Filtered:
            if p_by_inputs is None or not self._is_all_known(filtered):
                return filtered
            return with_p_value_of_whole(filtered, matched, p_by_inputs)

        found = teacher.outputs(matched.pooled.inputs)
        filtered = filter_pool(found, of_training, matched, self.filtering, seed=seed)
        filtered = with_whole(filtered, matched)
        if matched.last is None or self._is_all_known(filtered):
            return filtered, matched

        def explained_by(suspected: Matched) -> tuple[Filtered, Matched] | None:
            if stands_out_by_inputs(suspected, self.decision.level, seed=seed):
                return None
            # Labelled items are changed, the pool is not.
            of_held_back = teacher.outputs(suspected.pooled.of_held_back(suspected.pooled.inputs))
            changed = found.first(suspected.pooled.n).followed_by(of_held_back)
            of_changed = teacher.outputs(suspected.training.inputs)
            again = filter_pool(changed, of_changed, suspected, self.filtering, seed=seed)
            again = with_whole(again, suspected)
            # A change that sets the sources apart is none that the pool can have.
            is_explained = self._is_all_known(again) and not again.sources_differ
            return (again, suspected) if is_explained else None

        return unless_explained(
            (filtered, matched), self._suspected(matched, suspected_raw, seed=seed), explained_by
        )

    def _suspected(
        self,
        matched: Matched,
        suspected_raw: Callable[[], Iterator[Matched]] | None,
        *,
        seed: int,
    ) -> Iterator[Matched]:
        """Matches by changes that the pool may show: of items, then of their photos or texts."""
        if not self._stands_out_anyway(matched, seed=seed):
            yield from suspected_sources(matched, seed=seed)
        if suspected_raw is not None:
            yield from suspected_raw()

    def _stands_out_anyway(self, matched: Matched, *, seed: int) -> bool:
        """Whether a sample says that no suspected change explains what stands out."""
        few = thinned(matched, seed=seed) if matched.is_suspicious else None
        return few is not None and all(
            stands_out_by_inputs(suspected, self.decision.level, seed=seed)
            for suspected in changed_on_suspicion(few, seed=seed)
        )

    def _is_all_known(self, filtered: Filtered) -> bool:
        """Whether the test finds nothing unknown; False where nothing was held back."""
        if self.decision.rule != "seeds" or filtered.p_value is None:
            return False
        return filtered.p_value > self.decision.level

    def _train_student(
        self,
        teacher: Teacher,
        training: Labelled,
        pooled: Pool,
        filtered: Filtered,
        selection: Selection,
        *,
        seed: int,
        device: str,
    ) -> Student:
        known, known_logits = training, filtered.of_training.logits
        if filtered.sources is not None and filtered.sources.differ:
            known, known_logits = with_sure_items(
                training, known_logits, pooled, filtered.sources, filtered.outputs
            )
        lesson = prepare_lesson(
            known=known,
            known_teacher_logits=known_logits,
            pool=pooled.inputs,
            pool_teacher_logits=filtered.outputs.logits,
            parts=selection.parts,
            k=selection.k,
            settings=self.student,
            pool_unknown=selection.unknown_probability,
            seed=seed,
        )
        return train_student(
            teacher, lesson, self.student, self.augmentation, seed=seed, device=device
        )

    def _count_steps(self, training: Labelled, selection: Selection) -> dict[str, int]:
        steps = {"teacher": self.teacher.training.n_steps(len(training))}
        if selection.k:
            n_undecided = len(selection.parts.undecided)
            n_steps = self.student.training.n_steps(n_undecided)
            steps["student"] = self.student.rounds * n_steps
        return steps

    def _weigh_vote(
        self, student: Student, student_outputs: Outputs, filtered: Filtered, pooled: Pool
    ) -> Student:
        """g with the vote weight that the spies choose, where f and g vote on the known class."""
        if not student.vote or not len(pooled.spy_labels):
            return student
        return weigh_vote(
            student,
            logits=pooled.of_spies(student_outputs.logits),
            teacher_logits=pooled.of_spies(filtered.outputs.logits),
            labels=pooled.spy_labels,
        )
