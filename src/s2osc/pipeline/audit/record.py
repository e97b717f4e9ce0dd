"""The audit of an answer: every figure that the seeds give, from the statistics to the page.

``decision.decide`` makes it, the method adds the purity of D_out and the groups, ``wording`` puts
it into words. In files it is the ``audit`` of ``summary.json``. A figure that cannot be estimated
is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite
from typing import Any, Self

from s2osc.pipeline.audit.statistics import Estimate

SCHEMA = 1


@dataclass(frozen=True)
class UnknownTest:
    """The test of "nothing in the pool is unknown"."""

    p_value: float
    level: float


@dataclass(frozen=True)
class ClassAudit:
    """What the seeds of one class say about its items in the pool."""

    name: str
    n_seeds: int
    weight: float  # how many items of the pool each of its seeds stands for, relatively
    false_alarm: Estimate | None
    known_accuracy: Estimate | None


@dataclass(frozen=True)
class OperatingPoint:
    """What the lowest threshold within a false-alarm rate would find."""

    false_alarm: float
    recall: Estimate
    threshold: float  # on the unknown score
    n_unknown: int  # items of the pool above it


@dataclass(frozen=True)
class PurityPoint:
    """The estimated purity of the k most distinct items, and a lower bound of it."""

    k: int
    purity: float
    low: float


@dataclass(frozen=True)
class PurityAudit:
    """Purity against K at a few dozen places, and at the K chosen."""

    k: int  # 0 where nothing is unknown
    estimate: float | None  # None with a K of 0
    curve: tuple[PurityPoint, ...]


@dataclass(frozen=True)
class GroupsAudit:
    """The number of groups with its interval, and how stable and tight each is."""

    number: int
    low: int
    high: int
    stability: tuple[float, ...]
    tightness: tuple[float, ...]


@dataclass(frozen=True)
class Audit:
    """How far an answer can be trusted. ``classes`` are those that have seeds."""

    nothing_unknown: bool
    threshold: float | None  # on the unknown score; None: nothing is unknown
    sure_known_below: float | None  # items between the two are unsure; None: no item is
    rule: str  # of the decision: "argmax" or "seeds"
    aim: str
    wanted_false_alarm: float
    smallest_false_alarm: float  # that so many seeds can promise
    n_seeds: int
    test: UnknownTest
    unknown_share: Estimate
    unknown_recall: Estimate | None
    false_alarm: Estimate | None
    known_accuracy: Estimate | None
    is_shifted: bool  # the pool mixes the known classes otherwise than the labelled items do
    classes: tuple[ClassAudit, ...]
    curve: tuple[OperatingPoint, ...]  # from few false alarms to many
    purity: PurityAudit | None = None
    groups: GroupsAudit | None = None

    def named(self, names: Sequence[str]) -> Self:
        """The same with the names of the classes, which until then are called by their numbers."""
        classes = tuple(replace(each, name=names[int(each.name)]) for each in self.classes)
        return replace(self, classes=classes)

    def to_json(self) -> dict[str, Any]:
        """Plain values, as they stand in ``summary.json``."""
        classes = self.classes
        return {
            "schema": SCHEMA,
            "nothing_unknown": self.nothing_unknown,
            "threshold": self.threshold,
            "sure_known_below": self.sure_known_below,
            "seeds": {
                "number": self.n_seeds,
                "per_class": {each.name: each.n_seeds for each in classes},
            },
            "rule": self.rule,
            "wanted_false_alarm": self.wanted_false_alarm,
            "aim": self.aim,
            "smallest_false_alarm": self.smallest_false_alarm,
            "test": asdict(self.test),
            "unknown_share": self.unknown_share._asdict(),
            "unknown_recall": _interval_json(self.unknown_recall),
            "curve": [
                {
                    "false_alarm": point.false_alarm,
                    "recall": point.recall.estimate,
                    "low": point.recall.low,
                    "high": point.recall.high,
                    "threshold": point.threshold,
                    "n_unknown": point.n_unknown,
                }
                for point in self.curve
            ],
            "prior_shift": {
                "found": self.is_shifted,
                "weights": {each.name: each.weight for each in classes},
            },
            "false_alarm": rate_json(
                self.false_alarm, {each.name: each.false_alarm for each in classes}
            ),
            "known_accuracy": rate_json(
                self.known_accuracy, {each.name: each.known_accuracy for each in classes}
            ),
            "purity": None
            if self.purity is None
            else asdict(self.purity) | {"curve": [asdict(point) for point in self.purity.curve]},
            "groups": None
            if self.groups is None
            else asdict(self.groups)
            | {"stability": list(self.groups.stability), "tightness": list(self.groups.tightness)},
        }

    @classmethod
    def from_json(cls, record: object) -> Self:
        """What ``to_json`` wrote; a ValueError says why it is no such record."""
        if not isinstance(record, dict):
            raise ValueError(f"its audit is a {type(record).__name__}, not an object")
        if record.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(
                f"its audit has schema {record['schema']!r}; this version reads {SCHEMA}"
            )
        try:
            return cls._read(record)
        except KeyError as error:
            raise ValueError(f"its audit lacks {error}") from error
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"its audit is damaged: {error}") from error

    @classmethod
    def _read(cls, record: dict[str, Any]) -> Self:
        alarms, accuracies = (record[name]["per_class"] for name in RATES)
        weights = record["prior_shift"]["weights"]
        purity, groups = record["purity"], record["groups"]
        return cls(
            nothing_unknown=bool(record["nothing_unknown"]),
            threshold=_perhaps(record["threshold"]),
            sure_known_below=_perhaps(record["sure_known_below"]),
            rule=str(record.get("rule", "seeds")),
            aim=str(record["aim"]),
            wanted_false_alarm=_number(record["wanted_false_alarm"]),
            smallest_false_alarm=_number(record["smallest_false_alarm"]),
            n_seeds=int(_number(record["seeds"]["number"])),
            test=UnknownTest(_number(record["test"]["p_value"]), _number(record["test"]["level"])),
            unknown_share=read_interval(record["unknown_share"]),
            unknown_recall=perhaps_interval(record["unknown_recall"]),
            false_alarm=perhaps_interval(record["false_alarm"]),
            known_accuracy=perhaps_interval(record["known_accuracy"]),
            is_shifted=bool(record["prior_shift"]["found"]),
            classes=tuple(
                ClassAudit(
                    name=name,
                    n_seeds=int(_number(n)),
                    weight=_number(weights[name]),
                    false_alarm=perhaps_interval(alarms[name]),
                    known_accuracy=perhaps_interval(accuracies[name]),
                )
                for name, n in record["seeds"]["per_class"].items()
            ),
            curve=tuple(
                OperatingPoint(
                    false_alarm=_number(row["false_alarm"]),
                    recall=read_interval({**row, "estimate": row["recall"]}),
                    threshold=_number(row["threshold"]),
                    n_unknown=int(_number(row["n_unknown"])),
                )
                for row in record["curve"]
            ),
            purity=purity
            and PurityAudit(
                k=int(_number(purity["k"])),
                estimate=_perhaps(purity["estimate"]),
                curve=tuple(
                    PurityPoint(int(_number(row["k"])), _number(row["purity"]), _number(row["low"]))
                    for row in purity["curve"]
                ),
            ),
            groups=groups
            and GroupsAudit(
                number=int(_number(groups["number"])),
                low=int(_number(groups["low"])),
                high=int(_number(groups["high"])),
                stability=tuple(_number(value) for value in groups["stability"]),
                tightness=tuple(_number(value) for value in groups["tightness"]),
            ),
        )


RATES = ("false_alarm", "known_accuracy")


def _interval_json(figure: Estimate | None) -> dict[str, float] | None:
    return None if figure is None else figure._asdict()


def rate_json(figure: Estimate | None, per_class: Mapping[str, Estimate | None]) -> dict[str, Any]:
    """A rate of all known items and of each class; one that is absent has null for a figure."""
    ends = dict.fromkeys(Estimate._fields) if figure is None else figure._asdict()
    of_classes = {name: _interval_json(each) for name, each in per_class.items()}
    return ends | {"per_class": of_classes}


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"its audit has {value!r:.50} where a number is wanted")
    return value


def _perhaps(value: object) -> float | None:
    return None if value is None else _number(value)


def read_interval(record: Mapping[str, Any]) -> Estimate:
    return Estimate(*(_number(record[end]) for end in Estimate._fields))


def perhaps_interval(record: Mapping[str, Any] | None) -> Estimate | None:
    return None if record is None or record["estimate"] is None else read_interval(record)
