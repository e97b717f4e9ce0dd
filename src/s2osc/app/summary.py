"""What ``summary.json`` says about a run: one value, written and read back checked.

A pool in memory and one that is read in parts have the same summary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, get_type_hints

import numpy as np

from s2osc.app.run_record import RunRecord
from s2osc.codec import JsonObject, from_plain, to_plain
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.audit.wording import Caution, cautions, tell
from s2osc.pipeline.grouping.typical import GroupProfile
from s2osc.types import Answer

AS_THEY_ARE = (
    *("title", "k", "steps", "preset", "settings", "shape", "backbone"),
    *("seed", "device", "versions", "seconds"),
)
"""Facts of the run that stand in the file under their own names."""
WHERE_THERE_ARE = ("embedding", "columns", "stream", "origin")
"""The same of facts that many runs do not have."""


@dataclass(frozen=True)
class LabelCounts:
    """What became of the items of a pool."""

    known: dict[str, int]  # items of each known class
    unknown: int | None  # None: the summary does not say
    groups: dict[str, int]
    unsure: int

    @classmethod
    def of_answer(cls, answer: Answer, classes: Sequence[str]) -> "LabelCounts":
        groups = np.bincount(answer.groups[answer.is_unknown])
        return cls(
            known={name: int(np.sum(answer.labels == c)) for c, name in enumerate(classes)},
            unknown=int(answer.is_unknown.sum()),
            groups={str(group): int(count) for group, count in enumerate(groups)},
            unsure=int(answer.is_unsure.sum()),
        )


@dataclass(frozen=True)
class CorrectionCounts:
    """Items that people labelled before the fit."""

    labelled: dict[str, int]  # of each class
    unknown: int


@dataclass(frozen=True)
class PartFacts:
    """What only a pool has that was read in parts."""

    fit_on: int
    engine: str
    written: str  # in UTC, as ISO 8601 writes it
    rows: dict[str, int]  # of each step


@dataclass(frozen=True)
class Summary:
    """A run in figures: what it was of, what became of the items, and how far to trust that."""

    run: RunRecord
    n_pool: int
    audit: Audit | None  # None without seeds
    counts: LabelCounts
    # Made anew from the other files of a result, and so not read back.
    profiles: tuple[GroupProfile, ...] = ()
    metrics: dict[str, float] = field(default_factory=dict)
    corrections: CorrectionCounts | None = None
    parts: PartFacts | None = None

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self.counts.known)

    @property
    def cautions(self) -> list[Caution]:
        return cautions(self.audit) if self.audit else []

    @property
    def warnings(self) -> list[str]:
        return [*self.run.notes, *(caution.text for caution in self.cautions)]

    def to_json(self, *, words: bool = True) -> JsonObject:
        """Without ``words`` the audit has figures alone."""
        limits = self.cautions if words else []
        audit, run = self.audit, self.run
        found = {name: to_plain(getattr(run, name)) for name in AS_THEY_ARE}
        optional = {name: to_plain(getattr(run, name)) for name in WHERE_THERE_ARE}
        optional["corrections"] = to_plain(self.corrections)
        return {
            "title": found.pop("title"),
            "items": {"known": run.n_known, "pool": self.n_pool, "skipped": run.n_skipped},
            "audit": audit and (tell(audit) if words else audit.to_json()),
            "counts": to_plain(self.counts),
            **({"groups": to_plain(self.profiles)} if self.profiles and words else {}),
            **({"metrics": self.metrics} if self.metrics else {}),
            "warnings": [*run.notes, *(caution.text for caution in limits)],
            "warning_codes": [*[None] * len(run.notes), *(caution.code for caution in limits)],
            **{name: value for name, value in found.items() if name != "seconds"},
            **{name: value for name, value in optional.items() if value},
            **(to_plain(self.parts) if self.parts else {}),
            "seconds": found["seconds"],
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "Summary":
        """The summary that was written; any exception where the record is none."""
        texts = from_plain(tuple[str, ...], record["warnings"], "warnings")
        items = from_plain(dict[str, int], record["items"], "items")
        counts = record["counts"]
        if len(counts["known"]) < 1:
            raise ValueError("it counts no known class")
        codes = record.get("warning_codes", [])[: len(texts)]
        kinds = get_type_hints(RunRecord)
        run = RunRecord(
            **{name: from_plain(kinds[name], record[name], name) for name in AS_THEY_ARE},
            **{name: from_plain(kinds[name], record.get(name), name) for name in WHERE_THERE_ARE},
            n_known=items["known"],
            n_skipped=items["skipped"],
            notes=tuple(text for text, code in zip_longest(texts, codes) if code is None),
        )
        return cls(
            run=run,
            n_pool=items["pool"],
            counts=LabelCounts(
                known=from_plain(dict[str, int], counts["known"], "counts.known"),
                unknown=from_plain(int | None, counts.get("unknown"), "counts.unknown"),
                groups=from_plain(dict[str, int], counts.get("groups", {}), "counts.groups"),
                unsure=from_plain(int, counts.get("unsure", 0), "counts.unsure"),
            ),
            audit=Audit.from_json(record["audit"]) if record["audit"] else None,
        )
