"""The audit of an answer: every figure that the seeds give, from the statistics to the page.

``outcome.decide`` makes it, the method adds the purity of D_out and the groups, ``wording`` puts
it into words. In files it is the ``audit`` of ``summary.json``. A figure that cannot be estimated
is None.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from s2osc.codec import JsonObject, fields_from_plain, fields_to_plain, from_plain, to_plain
from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.statistics import Estimate, guessed_share
from s2osc.pipeline.group_tree import GroupTree, NumberEvidence

SCHEMA = 1
MOSTLY = 0.5
LIKELY = 0.1
"""The probability from which on another number of groups is named as an alternative."""


@dataclass(frozen=True)
class UnknownTest:
    """The test of "nothing in the pool is unknown"."""

    p_value: float
    level: float
    long_tail: LongTail | None = None  # what the p-value rests on; None: on exact tests

    @property
    def exact_p_value(self) -> float:
        """Of the same without a word on how the distances of known items thin out."""
        return self.p_value if self.long_tail is None else self.long_tail.chance


@dataclass(frozen=True)
class SourcesAudit:
    """The test of "labelled items and pool come from the same source", on surely known items."""

    p_value: float
    level: float
    n_pool: int  # surely known items of the pool
    n_labelled: int  # and of the calibration items
    differ: bool
    signs: tuple[str, ...]  # that still tell the sources apart, most first
    changes: tuple[str, ...] = ()  # that labelled items were given to look like those of the pool
    still_differ: bool = False  # in spite of the changes
    is_suspected: bool = False  # the changes are not shown, but would explain what stands out
    tolerance: float = 0.0  # share of the known items that a change may leave above labelled ones

    @property
    def remain_apart(self) -> bool:
        """Whether the sources differ and nothing has mended it."""
        return self.differ and (self.still_differ or not self.changes)


@dataclass(frozen=True)
class ClassAudit:
    """What the seeds of one class say about its items in the pool."""

    name: str
    n_seeds: int
    weight: float  # how many items of the pool each of its seeds stands for, relatively
    false_alarm: Estimate | None
    known_accuracy: Estimate | None


@dataclass(frozen=True)
class ClassLimit:
    """The limit on false alarms among the known items that are given one class."""

    name: str
    wanted_false_alarm: float
    smallest_false_alarm: float  # that so many seeds can promise
    n_seeds: int  # that are given the class
    operating_point: float  # items given the class are unknown where p_known is at most this


@dataclass(frozen=True)
class OperatingPoint:
    """What the lowest threshold within a false-alarm rate would find."""

    false_alarm: float
    recall: Estimate
    threshold: float  # on the unknown score
    n_unknown: int  # items of the pool above it

    def to_json(self) -> JsonObject:
        """The interval of the recall stands beside the other figures."""
        recall, low, high = self.recall
        figures = {"threshold": self.threshold, "n_unknown": self.n_unknown}
        return {
            "false_alarm": self.false_alarm,
            "recall": recall,
            "low": low,
            "high": high,
        } | figures

    @classmethod
    def from_json(cls, row: Any, what: str) -> Self:
        interval = {"estimate": row["recall"], "low": row["low"], "high": row["high"]}
        others = {name: row[name] for name in row if name not in interval}
        return fields_from_plain(cls, others | {"recall": interval}, what)


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
class ReliabilityBin:
    """Held-back items of about the same stated confidence, and how often their class was right."""

    stated: float  # on average
    n: int
    right: Estimate


@dataclass(frozen=True)
class Reliability:
    """Stated confidence in the class named against how often it was right, among held-back items.

    Each item by a calibration that was fitted without it.
    """

    n_items: int
    error: float  # the expected calibration error
    error_by_chance: float  # what it would be on average, were the confidence exactly right
    bins: tuple[ReliabilityBin, ...]


@dataclass(frozen=True)
class GroupsAudit:
    """A tree of possible groups, those that were chosen, and how sure that is."""

    tree: GroupTree
    groups: tuple[int, ...]  # the group of each leaf
    spreads: tuple[float, ...]  # of each leaf, over that of a known class
    n_episodes: int  # on known classes, that tell how probable a number is; 0: default weights
    evidence: tuple[NumberEvidence, ...] = ()  # of one group, two groups, ...; none: unmeasured

    def __post_init__(self) -> None:
        n = self.tree.n_leaves
        if len(self.groups) != n or sorted(set(self.groups)) != list(range(max(self.groups) + 1)):
            raise ValueError(f"{len(self.groups)} numbers of groups are not those of {n} leaves")

    @property
    def number(self) -> int:
        return max(self.groups) + 1

    @property
    def group_of_leaf(self) -> np.ndarray:
        """(n_leaves + 1,) the last for scattered items, which are in no group."""
        return np.array([*self.groups, self.number])

    @property
    def certainty(self) -> tuple[float, ...]:
        return self.tree.certainty(self.groups)

    @property
    def alternatives(self) -> tuple[tuple[int, float], ...]:
        """Numbers of groups that are likely, with their probability, the likeliest first."""
        chances = self.tree.distribution()
        order = np.argsort(-chances, kind="stable")
        return tuple((int(n) + 1, float(chances[n])) for n in order if chances[n] >= LIKELY)

    @property
    def likely(self) -> int:
        """The number that is likely, whichever a person asked for."""
        return self.tree.likely_number()

    def to_json(self) -> JsonObject:
        """The fields, after what a reader looks for, which follows from them."""
        return {
            "number": self.number,
            "certainty": [round(value, 3) for value in self.certainty],
            "alternatives": [[n, round(chance, 3)] for n, chance in self.alternatives],
            **fields_to_plain(self),
        }

    @classmethod
    def from_json(cls, value: Any, what: str = "groups") -> "GroupsAudit":
        if not isinstance(value, dict):
            raise ValueError(f"{what}: {value!r:.50} is not an object")
        derived = ("number", "certainty", "alternatives", "sentence", "what_speaks")
        return fields_from_plain(cls, {n: v for n, v in value.items() if n not in derived}, what)


@dataclass(frozen=True)
class CheckedAudit:
    """What a person's labels of random items of the pool say: exact, without any assumption."""

    n_items: int  # with a label
    n_skipped: int  # without one among those asked about up to the last label
    n_unknown: int  # of no known class
    n_known: int  # of a known class, with an answer that is not unsure
    n_alarms: int  # of these, called unknown
    n_right: int  # of all
    unknown_share: Estimate
    accuracy: Estimate | None  # of all answers; None where no item tells, as in the rates below
    false_alarm: Estimate | None
    known_accuracy: Estimate | None
    unknown_recall: Estimate | None


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
    guarantee: str = "average"  # the limit on false alarms holds over pools, or in this "pool"
    operating_point: float | None = None  # unknown where p_known is at most this; None: g decides
    findable_share: float | None = None  # of the pool: a class of this size would have been found
    sources: SourcesAudit | None = None  # None: they were not, or could not be compared
    purity: PurityAudit | None = None
    groups: GroupsAudit | None = None
    checked: CheckedAudit | None = None  # None: nobody has labelled items of the pool
    reliability: Reliability | None = None  # None: of an earlier version
    class_limits: tuple[ClassLimit, ...] = ()  # classes with a limit of their own

    @property
    def sources_differ(self) -> bool:
        return self.sources is not None and self.sources.differ

    @property
    def sources_remain_apart(self) -> bool:
        """Whether labelled items and pool differ in spite of all that was done about it."""
        return self.sources is not None and self.sources.remain_apart

    @property
    def source_is_suspected(self) -> bool:
        """Whether something stands out, and another source would explain it as well."""
        return self.sources is not None and self.sources.is_suspected

    def of_same_fit(self, other: Self) -> Self:
        """This audit with what does not depend on the decision taken from another one."""
        weights = {each.name: each.weight for each in other.classes}
        return replace(
            self,
            classes=tuple(replace(each, weight=weights[each.name]) for each in self.classes),
            is_shifted=other.is_shifted,
            findable_share=other.findable_share,
            sources=other.sources,
            purity=other.purity,
            groups=other.groups,
            reliability=other.reliability,
        ).as_sources_allow()

    def as_sources_allow(self) -> Self:
        """Without the figures that rest on one source where there are two.

        Where labelled items were changed to look like those of the pool, the change is only about
        right: figures allow for what it may leave.
        """
        found = self.with_missed()
        if self.sources is None or not self.sources.differ:
            return found
        if self.sources.remain_apart:
            return replace(
                found,
                false_alarm=None,
                known_accuracy=None,
                unknown_recall=None,
                classes=tuple(
                    replace(each, false_alarm=None, known_accuracy=None) for each in found.classes
                ),
                curve=(),
                unknown_share=found.unknown_share._replace(low=0.0, high=1.0),
            )
        left, share = self.sources.tolerance, found.unknown_share
        alarms = 0.0 if self.nothing_unknown else left  # there are none where nothing is unknown
        return replace(
            found,
            unknown_share=share._replace(low=max(0.0, share.low - left)),
            false_alarm=_wider(found.false_alarm, above=alarms),
            known_accuracy=_wider(found.known_accuracy, below=left),
            classes=tuple(
                replace(
                    each,
                    false_alarm=_wider(each.false_alarm, above=alarms),
                    known_accuracy=_wider(each.known_accuracy, below=left),
                )
                for each in found.classes
            ),
        )

    @property
    def hardly_tells_classes(self) -> bool:
        """Whether most known items get a class by guessing: then no other class need stand out."""
        if self.known_accuracy is None:
            return False
        return guessed_share(self.known_accuracy.estimate, len(self.classes)) > MOSTLY

    def with_missed(self) -> Self:
        """Where nothing was found: what could be there unseen is part of the unknown share."""
        if not self.nothing_unknown:
            return self
        is_open = self.sources_remain_apart or self.source_is_suspected or self.hardly_tells_classes
        missed = 1.0 if is_open else self.findable_share or 0.0
        share = self.unknown_share
        return replace(self, unknown_share=share._replace(high=max(share.high, missed)))

    def named(self, names: Sequence[str]) -> Self:
        """The same with the names of the classes, which until then are called by their numbers."""
        classes = tuple(replace(each, name=names[int(each.name)]) for each in self.classes)
        limits = tuple(replace(each, name=names[int(each.name)]) for each in self.class_limits)
        return replace(self, classes=classes, class_limits=limits)

    def operating_points(self, nearest: np.ndarray, names: Sequence[str]) -> np.ndarray | None:
        """(n,) the operating point of items by their best known class; None: g decides."""
        if self.operating_point is None:
            return None
        own = {each.name: each.operating_point for each in self.class_limits}
        return np.array([own.get(name, self.operating_point) for name in names])[nearest]

    def to_json(self) -> JsonObject:
        """Plain values, as they stand in ``summary.json``."""

        def per_class(figure: str) -> JsonObject:
            return {each.name: getattr(each, figure) for each in self.classes}

        return {
            "schema": SCHEMA,
            "nothing_unknown": self.nothing_unknown,
            "threshold": self.threshold,
            "operating_point": self.operating_point,
            "sure_known_below": self.sure_known_below,
            "seeds": {"number": self.n_seeds, "per_class": per_class("n_seeds")},
            "rule": self.rule,
            "wanted_false_alarm": self.wanted_false_alarm,
            "guarantee": self.guarantee,
            "aim": self.aim,
            "smallest_false_alarm": self.smallest_false_alarm,
            "class_limits": to_plain(self.class_limits),
            "test": to_plain(self.test),
            "unknown_share": to_plain(self.unknown_share),
            "unknown_recall": to_plain(self.unknown_recall),
            "curve": to_plain(self.curve),
            "prior_shift": {"found": self.is_shifted, "weights": per_class("weight")},
            "false_alarm": to_plain(Rate(self.false_alarm, per_class("false_alarm"))),
            "known_accuracy": to_plain(Rate(self.known_accuracy, per_class("known_accuracy"))),
            "findable_share": self.findable_share,
            "sources": to_plain(self.sources),
            "purity": to_plain(self.purity),
            "groups": to_plain(self.groups),
            "reliability": to_plain(self.reliability),
            "checked": to_plain(self.checked),
        }

    @classmethod
    def from_json(cls, record: Any, what: str = "its audit") -> Self:
        """What ``to_json`` wrote; a ValueError says why it is no such record."""
        if not isinstance(record, dict):
            raise ValueError(f"{what} is a {type(record).__name__}, not an object")
        if record.get("schema", SCHEMA) != SCHEMA:
            raise ValueError(f"{what} has schema {record['schema']!r}; this version reads {SCHEMA}")
        try:
            seeds, shift = record["seeds"], record["prior_shift"]
            rates = {name: Rate.from_json(record[name], f"{what}, {name}") for name in RATES}
            classes = [
                {"name": name, "n_seeds": n, "weight": shift["weights"][name]}
                | {rate: to_plain(rates[rate].per_class[name]) for rate in RATES}
                for name, n in seeds["per_class"].items()
            ]
            absent = dict.fromkeys(
                ("operating_point", "findable_share", "sources", "reliability", "checked")
            )
            found = {
                "rule": "seeds",
                "guarantee": "average",
                "class_limits": [],
                **absent,
                **record,
                "classes": classes,
            }
            found |= {rate: to_plain(rates[rate].overall) for rate in RATES}
            found |= {"n_seeds": seeds["number"], "is_shifted": shift["found"]}
            # Words may stand beside the figures.
            found["test"] = {"long_tail": None} | {
                field.name: record["test"][field.name]
                for field in fields(UnknownTest)
                if field.name != "long_tail" or "long_tail" in record["test"]
            }
            return fields_from_plain(
                cls, {field.name: found[field.name] for field in fields(cls)}, what
            )
        except KeyError as error:
            raise ValueError(f"{what} lacks {error}") from error
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"{what} is damaged: {error}") from error


RATES = ("false_alarm", "known_accuracy")


def _wider(rate: Estimate | None, *, below: float = 0.0, above: float = 0.0) -> Estimate | None:
    """A rate with an interval that is longer by so much at its ends.

    >>> _wider(Estimate(0.04, 0.02, 0.98), below=0.05, above=0.05)
    Estimate(estimate=0.04, low=0.0, high=1.0)
    """
    if rate is None:
        return None
    return rate._replace(low=max(0.0, rate.low - below), high=min(1.0, rate.high + above))


@dataclass(frozen=True)
class Rate:
    """A rate of all known items and of each class; None where it cannot be estimated."""

    overall: Estimate | None
    per_class: Mapping[str, Estimate | None]

    def to_json(self) -> JsonObject:
        """The figures of all items stand beside those of the classes; absent ones are null."""
        absent = dict.fromkeys(Estimate._fields)
        return (to_plain(self.overall) or absent) | {"per_class": to_plain(self.per_class)}

    @classmethod
    def from_json(cls, values: Any, what: str) -> Self:
        overall = {name: values[name] for name in Estimate._fields}
        return cls(
            None if overall["estimate"] is None else from_plain(Estimate, overall, what),
            from_plain(Mapping[str, Estimate | None], values["per_class"], what),
        )
