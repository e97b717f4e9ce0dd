"""What a fit found: the model, its answer for the pool, and how far both can be trusted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from s2osc.pipeline.audit import unknown_test
from s2osc.pipeline.audit.record import Audit, PurityAudit
from s2osc.pipeline.audit.threshold import Evidence
from s2osc.pipeline.filter.distinctness import Partition
from s2osc.pipeline.filter.screening import Filtered, audit_sources
from s2osc.pipeline.grouping.pool import audit_groups
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.scaling import Scaling
from s2osc.pipeline.sources.matched import Matched
from s2osc.pipeline.verdict import Verdict
from s2osc.types import Answer, Predictions


class Trust(NamedTuple):
    """The audit by the seeds, and the evidence behind it."""

    evidence: Evidence
    audit: Audit  # the names of classes are their numbers
    odds: np.ndarray | None = None  # (n + m,) log-odds of g for pool and seeds; None: no student


@dataclass(frozen=True, eq=False)
class Solution:
    """A fitted model, its answer for the pool of the fit, and facts about the fit."""

    model: OpenSetModel | KnownOnlyModel
    answer: Answer
    partition: Partition  # of the pool
    embeddings: np.ndarray  # (n, d) of the pool by g, or by f where nothing is unknown
    nearest_confidence: np.ndarray  # (n,) of the best known class, given that an item is known
    leaves: np.ndarray  # (n,) of the tree of groups, were an item unknown; -1: no groups
    k: int  # 0 where nothing is unknown
    n_steps: dict[str, int]
    seconds: dict[str, float]
    trust: Trust | None = None  # None: no seeds

    def audit(self, names: Sequence[str]) -> Audit | None:
        """The audit with the names of the known classes; None without seeds."""
        return self.trust.audit.named(names) if self.trust else None

    def with_scaling(self, scaling: Scaling) -> "Solution":
        """For items as they come, where the fit was to scaled ones."""
        return replace(self, model=replace(self.model, scaling=scaling))

    def predict(self, inputs: np.ndarray) -> Predictions:
        return self.model.predict(inputs)

    def features(self, inputs: np.ndarray) -> np.ndarray:
        return self.model.features(inputs)


def make_trust(
    model: OpenSetModel | KnownOnlyModel,
    verdict: Verdict,
    filtered: Filtered,
    matched: Matched,
    purity: PurityAudit | None,
) -> Trust | None:
    """The audit, completed by what does not depend on the decision; None without seeds."""
    audit = verdict.audit
    if verdict.evidence is None or audit is None:
        return None
    if filtered.mix is not None:
        weights = filtered.mix.weights
        classes = tuple(replace(c, weight=float(weights[int(c.name)])) for c in audit.classes)
        audit = replace(audit, classes=classes, is_shifted=filtered.mix.is_shifted)
    if filtered.by_inputs is not None:
        n_judges = len(filtered.by_inputs.seed_score)
        share = unknown_test.findable_share(len(verdict.labels), n_judges, audit.test.level)
        audit = replace(audit, findable_share=share)
    audit = replace(
        audit,
        sources=audit_sources(filtered, matched),
        purity=purity,
        groups=audit_groups(model.grouping) if isinstance(model, OpenSetModel) else None,
    ).as_sources_allow()
    return Trust(evidence=verdict.evidence, audit=audit, odds=verdict.odds)
