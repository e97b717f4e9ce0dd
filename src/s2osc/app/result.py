"""What was found about a pool: one value. ``result_files.py`` saves it in a result folder.

Another operating point or other groups are another value; nothing is trained for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from s2osc.app.answer_tables import texts_of
from s2osc.app.corrections import NO_CORRECTIONS, Corrections
from s2osc.app.run_record import RunRecord
from s2osc.app.summary import CorrectionCounts, LabelCounts, Summary
from s2osc.codec import to_plain
from s2osc.data.columns import Table
from s2osc.data.inputs import Skipped
from s2osc.errors import DataError
from s2osc.metrics import evaluate_by_name
from s2osc.pipeline.audit.check import Check
from s2osc.pipeline.audit.outcome import decide
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.pipeline.grouping.typical import GroupProfile, WordCounts, profile_groups
from s2osc.pipeline.model_description import Preparation
from s2osc.report.drawing import Question
from s2osc.settings import change, flatten
from s2osc.types import UNKNOWN, Answer

if TYPE_CHECKING:
    from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel

DECISION = "decision."
"""How the names of settings begin that another decision may change."""
ASKED_BEFORE = (
    "The groups were changed after the window was answered. The stream and the questions in "
    "queries.csv have them as they were found."
)


@dataclass(frozen=True, eq=False)
class Result:
    """All that was found about a pool of n items by m seeds, and how it came about."""

    run: RunRecord
    names: list[str]  # (n,)
    truth: list[str] | None  # (n,) the class of each item, "" where it came with none
    classes: tuple[str, ...]
    answer: Answer
    nearest_confidence: np.ndarray  # (n,) of ``answer.nearest``, given that the item is known
    evidence: Evidence | None  # of every decision; None without seeds, as are the next three
    leaves: np.ndarray | None  # (n,) of the tree of groups, were it unknown; -1: no groups
    audit: Audit | None  # its classes named
    odds: np.ndarray | None  # (n + m,) log-odds of g for pool and seeds; None: no student
    corrections: Corrections = NO_CORRECTIONS  # labels that people gave items before the fit
    check: Check = Check()  # items that a person was asked about, and the labels
    items: np.ndarray | Table | None = None  # (n,) texts, or rows; None for images and vectors
    # What the page is drawn from, until it is.
    embeddings: np.ndarray | None = None  # (n, d)
    images: np.ndarray | None = None  # (n, H, W[, 3]) uint8; None for vectors
    questions: tuple[Question, ...] = ()
    # Of a new fit alone.
    model: "OpenSetModel | KnownOnlyModel | None" = None
    preparation: Preparation | None = None  # of the model's items
    skipped: tuple[Skipped, ...] = ()

    @property
    def decision(self) -> DecisionSettings:
        """The settings that the pool was decided by."""
        own = {n: v for n, v in self.run.settings.items() if n.startswith(DECISION)}
        return change(DecisionSettings(), {n.removeprefix(DECISION): v for n, v in own.items()})

    @cached_property
    def texts(self) -> list[str] | None:
        """What a person reads of each item; None where there are pictures, or only numbers."""
        return texts_of(self.items)

    @cached_property
    def profiles(self) -> tuple[GroupProfile, ...]:
        """What is typical of each group."""
        return self.profile(self.answer)

    def profile(self, answer: Answer) -> tuple[GroupProfile, ...]:
        """What is typical of the groups of an answer for these items."""
        return profile_groups(answer, self.classes, self._compared)

    @cached_property
    def _compared(self) -> WordCounts | Table | None:
        return WordCounts.of(self.items) if isinstance(self.items, np.ndarray) else self.items

    @cached_property
    def metrics(self) -> dict[str, float]:
        """The answer against the truth that the pool came with; empty without."""
        return evaluate_by_name(self.answer, self.classes, self.truth)

    def decided(self, settings: DecisionSettings) -> "Result":
        """The result of another operating point. Nothing is trained."""
        if self.evidence is None or self.audit is None or self.leaves is None:
            raise DataError(
                f"these are the results of a run without seeds (preset {self.run.preset}), so "
                "there is nothing to decide anew from; classify with seeds, such as with --preset "
                "auto"
            )
        decision = decide(self.evidence, settings, seed=self.run.seed)
        answer = replace(
            self.answer,
            labels=decision.labels,
            unknown_score=decision.unknown_score,
            confidence=decision.confidence,
            p_known=decision.p_known,
            groups=np.where(decision.labels == UNKNOWN, self._groups_if_unknown(), -1),
        )
        answer = self.as_corrected(answer)
        audit = decision.audit.named(self.classes).of_same_fit(self.audit)
        own = {DECISION + n: to_plain(v) for n, v in flatten(settings).items()}
        return replace(
            self,
            run=replace(self.run, settings=self.run.settings | own),
            answer=answer,
            audit=replace(audit, checked=self.check.measure(answer.labels, self.classes)),
        )

    def as_corrected(self, answer: Answer) -> Answer:
        """The answer with the items unknown that a person calls so, each in its nearest group.

        Where there are no groups to be near to, they are one of their own.
        """
        sure = self.corrections.is_unknown(self.names)
        if not sure.any():
            return answer
        groups = np.where(sure & (answer.groups < 0), self._groups_if_unknown(), answer.groups)
        new_group = int(groups.max()) + 1
        return replace(
            answer,
            labels=np.where(sure, UNKNOWN, answer.labels),
            confidence=np.where(sure, 1.0, answer.confidence),
            groups=np.where(sure & (groups < 0), new_group, groups),
        )

    def _groups_if_unknown(self) -> np.ndarray:
        """(n,) the group of each item, were it unknown; -1: no groups."""
        if self.audit is None or self.audit.groups is None or self.leaves is None:
            return np.full(len(self.names), -1)
        return self.audit.groups.group_of_leaf[self.leaves]

    def regrouped(
        self, n: int | None = None, *, merge: Sequence[int] = (), split: int | None = None
    ) -> "Result":
        """The result with other groups. Nothing is trained, and nothing else changes."""
        found = self.audit.groups if self.audit else None
        if self.audit is None or found is None:
            raise DataError(
                "there is nothing to group in these results: nothing is unknown in them, or they "
                f"are of a run without seeds (preset {self.run.preset})"
            )
        groups = found.tree.regroup(found.groups, n, merge=merge, split=split)
        audit = replace(self.audit, groups=replace(found, groups=groups))
        run = self.run
        if run.stream and ASKED_BEFORE not in run.notes:
            run = replace(run, notes=(*run.notes, ASKED_BEFORE))
        return replace(self, run=run, audit=audit).decided(self.decision)

    @cached_property
    def summary(self) -> Summary:
        named, n_labelled = self.corrections.sizes(), len(self.corrections.rows)
        corrections = CorrectionCounts(named, n_labelled - sum(named.values()))
        return Summary(
            run=self.run,
            n_pool=len(self.names),
            audit=self.audit,
            counts=LabelCounts.of_answer(self.answer, self.classes),
            profiles=self.profiles,
            metrics=self.metrics,
            corrections=corrections if self.corrections else None,
        )
