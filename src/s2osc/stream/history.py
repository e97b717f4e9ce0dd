"""The history of a stream: a record per window, as values and as JSON in its state."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from s2osc.pipeline.audit.record import Audit, perhaps_interval, rate_json, read_interval
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.stream.update import Account

COUNTS = ("window", "items", "unknown", "groups", "asked", "answered", "labelled", "ignored")


@dataclass(frozen=True)
class Rate:
    """A rate of all known items and of each class; None where it cannot be estimated."""

    overall: Estimate | None
    per_class: Mapping[str, Estimate | None]

    def to_json(self) -> dict[str, Any]:
        return rate_json(self.overall, self.per_class)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        per_class = values["per_class"].items()
        return cls(
            perhaps_interval(values), {name: perhaps_interval(each) for name, each in per_class}
        )


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

    def to_json(self) -> dict[str, Any]:
        return {
            "nothing_unknown": self.nothing_unknown,
            "unknown_share": self.unknown_share._asdict(),
            "false_alarm": self.false_alarm.to_json(),
            "known_accuracy": self.known_accuracy.to_json(),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        return cls(
            bool(values["nothing_unknown"]),
            read_interval(values["unknown_share"]),
            Rate.from_json(values["false_alarm"]),
            Rate.from_json(values["known_accuracy"]),
        )


@dataclass(frozen=True)
class SeedAccuracy:
    """How well f knows a class, by the seeds of it."""

    n: int  # seeds
    accuracy: Estimate | None  # None without seeds

    def to_json(self) -> dict[str, Any]:
        figures = self.accuracy._asdict() if self.accuracy else {}
        return {"n": self.n, **figures}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        n = read_count("seeds", values["n"])
        return cls(n, read_interval(values) if n else None)


@dataclass(frozen=True)
class UpdateRecord:
    """What an update did, and how long it took."""

    account: Account
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return self.account.to_json() | {"seconds": self.seconds}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        seconds = read_seconds(values["seconds"])
        return cls(Account.from_json(values), seconds)


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
    classes: Mapping[str, SeedAccuracy] | None = None  # after the last update

    @property
    def seconds_in_all(self) -> float:
        return self.seconds + sum(update.seconds for update in self.updates)

    def renamed(self, old: str, new: str) -> Self:
        """The same record with another name of a class."""

        def keys(values: Mapping[str, Any]) -> dict[str, Any]:
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

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is absent has no key."""
        classes = self.classes or {}
        perhaps = {
            "audit": self.audit and self.audit.to_json(),
            "version": self.version,
            "answer": self.answer,
            "classes": {name: each.to_json() for name, each in classes.items()} or None,
        }
        return {
            **{name: getattr(self, name) for name in COUNTS},
            "k": self.k,
            "new_classes": list(self.new_classes),
            "updates": [update.to_json() for update in self.updates],
            "seconds": self.seconds,
            **{name: value for name, value in perhaps.items() if value is not None},
        }

    @classmethod
    def from_json(cls, values: Any) -> Self:
        """What ``to_json`` wrote. Records of older versions lack ``labelled``."""
        found = {"labelled": values["answered"], **values} if "answered" in values else dict(values)
        audit, classes = found.get("audit"), found.get("classes")
        k, version, answer = (found.get(name) for name in ("k", "version", "answer"))
        return cls(
            **{name: read_count(name, found[name]) for name in COUNTS},
            k=None if k is None else read_count("k", k),
            new_classes=read_texts(found["new_classes"]),
            updates=tuple(UpdateRecord.from_json(update) for update in found["updates"]),
            seconds=read_seconds(found["seconds"]),
            audit=None if audit is None else WindowAudit.from_json(audit),
            version=None if version is None else read_count("version", version),
            answer=None if answer is None else str(answer),
            classes=classes
            and {str(name): SeedAccuracy.from_json(each) for name, each in classes.items()},
        )


def read_count(name: str, value: object) -> int:
    if not isinstance(value, int) or value < 0:
        raise ValueError(f"a window of the history has {name} {value!r}")
    return value


def read_seconds(value: object) -> float:
    if not isinstance(value, int | float):
        raise ValueError(f"a window of the history took {value!r} seconds")
    return value


def read_texts(values: object) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise ValueError("it holds something else where there should be a list of texts")
    return tuple(values)
