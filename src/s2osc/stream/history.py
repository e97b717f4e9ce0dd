"""The history of a stream: a record per window, as values and as JSON in its state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from s2osc.codec import JsonObject, fields_from_plain, fields_to_plain, from_plain, to_plain
from s2osc.pipeline.audit.record import Audit, Rate
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.stream.update import Account

COUNTS = ("window", "items", "unknown", "groups", "asked", "answered", "labelled", "ignored")


@dataclass(frozen=True)
class WindowAudit:
    """The part of a window's audit that the history keeps."""

    nothing_unknown: bool
    unknown_share: Estimate
    false_alarm: Rate
    known_accuracy: Rate

    @classmethod
    def of(cls, audit: Audit) -> Self:
        alarms = {each.name: each.false_alarm for each in audit.classes}
        accuracies = {each.name: each.known_accuracy for each in audit.classes}
        return cls(
            audit.nothing_unknown,
            audit.unknown_share,
            Rate(audit.false_alarm, alarms),
            Rate(audit.known_accuracy, accuracies),
        )


@dataclass(frozen=True)
class SeedAccuracy:
    """How well f knows a class, by the seeds of it."""

    n: int  # seeds
    accuracy: Estimate | None  # None without seeds

    def to_json(self) -> JsonObject:
        """The interval stands beside the number of seeds."""
        return {"n": self.n} | (to_plain(self.accuracy) or {})

    @classmethod
    def from_json(cls, values: Any, what: str) -> Self:
        interval = {name: value for name, value in values.items() if name != "n"}
        n = from_plain(int, values["n"], f"{what}, n")
        return cls(n, from_plain(Estimate, interval, what) if n else None)


@dataclass(frozen=True)
class UpdateRecord(Account):
    """What an update did, and how long it took."""

    seconds: float


@dataclass(frozen=True)
class WindowRecord:
    """What a window brought, what was asked about it, and what was learnt from the answers."""

    window: int  # its number, from 1
    items: int
    unknown: int
    groups: int
    k: int | None  # size of D_out; None where the method has none
    asked: int
    seconds: float  # of the answer
    answered: int = 0  # answers a person wrote: of items, and of whole groups
    labelled: int = 0  # items that have a label by them, ignored ones among them
    ignored: int = 0
    new_classes: tuple[str, ...] = ()
    updates: tuple[UpdateRecord, ...] = ()
    audit: WindowAudit | None = None
    version: int | None = None  # of the state on disk that holds the window
    answer: str | None = None  # a digest of the answer on disk
    results: str | None = None  # the folder that the answer was written to
    classes: Mapping[str, SeedAccuracy] | None = None  # after the last update

    @property
    def seconds_in_all(self) -> float:
        return self.seconds + sum(update.seconds for update in self.updates)

    def renamed(self, old: str, new: str) -> Self:
        """The same record with another name of a class."""

        def keys(values: Mapping[str, Any]) -> JsonObject:
            return {new if name == old else name: value for name, value in values.items()}

        def rate(found: Rate) -> Rate:
            return replace(found, per_class=keys(found.per_class))

        audit = self.audit
        return replace(
            self,
            new_classes=tuple(new if name == old else name for name in self.new_classes),
            classes=None if self.classes is None else keys(self.classes),
            audit=audit
            and replace(
                audit,
                false_alarm=rate(audit.false_alarm),
                known_accuracy=rate(audit.known_accuracy),
            ),
        )

    def to_json(self) -> JsonObject:
        """Plain values; what is absent has no key, but for ``k``."""
        plain = fields_to_plain(self)
        return {name: value for name, value in plain.items() if value is not None or name == "k"}

    @classmethod
    def from_json(cls, values: Any, what: str = "a window of the history") -> Self:
        """What ``to_json`` wrote. Records of older versions lack ``labelled``."""
        if isinstance(values, dict) and "answered" in values:
            values = {"labelled": values["answered"], **values}
        record = fields_from_plain(cls, values, what)
        for name in COUNTS:
            if getattr(record, name) < 0:
                raise ValueError(f"{what}, {name}: {getattr(record, name)} is below 0")
        return record
