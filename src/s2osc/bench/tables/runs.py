"""The records of an experiment at one size: what there is, and what is missing."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from s2osc.bench.experiments.experiment import SIZES, Experiment
from s2osc.bench.records import Record, partition_of

TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "svhn": "SVHN, rebuilt",
    "cinic10": "CINIC-10",
    "cifar30": "CIFAR-30",
}
Gaps = Mapping[tuple[str, str], Sequence[int]]
"""By data set and method: the partitions without a record."""


@dataclass(frozen=True)
class Runs:
    """The records of one size of an experiment."""

    experiment: Experiment
    size: str
    records: Sequence[Record]

    @cached_property
    def datasets(self) -> list[str]:
        found = sorted({record["dataset"] for record in self.records})
        return list(dict.fromkeys([*self.experiment.data, *found]))

    @cached_property
    def recorded(self) -> list[str]:
        """The data sets that some record is of."""
        there = {record["dataset"] for record in self.records}
        return [dataset for dataset in self.datasets if dataset in there]

    @cached_property
    def methods(self) -> list[str]:
        """Those of the experiment in its order, then others that were run by name."""
        found = sorted({record["method"] for record in self.records})
        return list(dict.fromkeys([*self.experiment.methods, *found]))

    @cached_property
    def partitions(self) -> list[int]:
        return sorted({partition_of(record) for record in self.records})

    @cached_property
    def right(self) -> list[Record]:
        """The records of runs that did not fail."""
        return [record for record in self.records if not record.get("error")]

    @cached_property
    def has_several_unknown(self) -> bool:
        return any(len(record.get("unknown_classes", ())) > 1 for record in self.records)

    def of(self, method: str, dataset: str) -> list[Record]:
        wanted = (method, dataset)
        return [r for r in self.records if (r["method"], r["dataset"]) == wanted]

    def values(self, method: str, dataset: str, part: str, metric: str) -> dict[int, float]:
        """The metric of every partition that has it. ``part``: a field of records."""
        found = {
            partition_of(record): (record.get(part) or {}).get(metric)
            for record in self.of(method, dataset)
        }
        return {partition: value for partition, value in found.items() if value is not None}

    def as_recorded(self) -> "Runs":
        """The same without data sets and methods that have no record."""
        there = {record["method"] for record in self.records}
        methods = {name: it for name, it in self.experiment.methods.items() if name in there}
        shown = replace(self.experiment, data=tuple(self.recorded), methods=methods)
        return replace(self, experiment=shown)


Values = TypeVar("Values", bound=Sized)


def fullest(found: Sequence[Values]) -> list[Values]:
    """Those with the most values: means over different partitions are not compared.

    >>> fullest([[0.9], [0.1, 0.2], [], [0.3, 0.4]])
    [[0.1, 0.2], [0.3, 0.4]]
    """
    most = max(map(len, found), default=0)
    return [values for values in found if most and len(values) == most]


def by_size(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records of each size, the largest first; before them the records that name no size."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.get("size") or "", []).append(record)
    places = {size: place for place, size in enumerate(("", *SIZES))}
    return {s: found[s] for s in sorted(found, key=lambda s: (places.get(s, len(places)), s))}


def dataset_title(dataset: str) -> str:
    """The name of a data set for people.

    >>> dataset_title("cinic10_sample-features"), dataset_title("own")
    ('CINIC-10, sample, features', 'own')
    """
    images = dataset.removesuffix("-features")
    whole = images.removesuffix("_sample")
    if whole not in TITLES:
        return dataset
    kinds = ["sample"] * (whole != images) + ["features"] * (images != dataset)
    return ", ".join([TITLES[whole], *kinds])


# What is missing


def find_gaps(runs: Runs, records: Sequence[Record]) -> Gaps:
    """Of every cell, the partitions that some run has a record of and ``records`` lack."""
    there = {(record["dataset"], record["method"], partition_of(record)) for record in records}
    return {
        (data, method): [
            p
            for p in runs.experiment.partitions(data, runs.partitions)
            if (data, method, p) not in there
        ]
        for data in runs.datasets
        for method in runs.methods
    }


def gaps_in_words(gaps: Gaps, partitions: Sequence[int]) -> str:
    """What is missing, a data set at a time; where a method has some partitions, those it lacks.

    >>> gaps = {("mnist", "msp"): [1], ("mnist", "odin"): [], ("svhn", "msp"): [0, 1]}
    >>> gaps_in_words(gaps, [0, 1]), gaps_in_words({("mnist", "msp"): []}, [0, 1])
    ('mnist: msp (partition 1); svhn: all', 'nothing')
    """
    if all(list(missing) == list(partitions) for missing in gaps.values()):
        return "all"
    lacking: dict[str, list[str]] = {}  # data sets that lack the same together
    for data in dict.fromkeys(data for data, _ in gaps):
        mine = {method: missing for (each, method), missing in gaps.items() if each == data}
        if all(list(missing) == list(partitions) for missing in mine.values()):
            lacking.setdefault("all", []).append(data)
        elif texts := [_lacks(m, missing, partitions) for m, missing in mine.items() if missing]:
            lacking.setdefault(", ".join(texts), []).append(data)
    return "; ".join(f"{', '.join(data)}: {what}" for what, data in lacking.items()) or "nothing"


def _lacks(method: str, missing: Sequence[int], partitions: Sequence[int]) -> str:
    if list(missing) == list(partitions):
        return method
    s = "" if len(missing) == 1 else "s"
    return f"{method} (partition{s} {_ranges(missing)})"


def _ranges(numbers: Sequence[int]) -> str:
    """Rising numbers, those in a row by the first and the last of them.

    >>> _ranges([0, 1, 4, 7, 8, 9])
    '0 1 4 7-9'
    """
    rows: list[list[int]] = []
    for number in numbers:
        if rows and rows[-1][-1] == number - 1:
            rows[-1].append(number)
        else:
            rows.append([number])
    texts = [f"{row[0]}-{row[-1]}" if len(row) > 2 else " ".join(map(str, row)) for row in rows]
    return " ".join(texts)
