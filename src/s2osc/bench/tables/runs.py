"""The records of an experiment at one size, and what is to be said of them beside their tables."""

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from s2osc.bench.experiments.experiment import Experiment
from s2osc.errors import DataError
from s2osc.metrics import interval_over

Record = Mapping[str, Any]

OURS = "s2osc"
SIZES = ("paper", "cpu", "smoke")
TITLES = {
    "mnist": "MNIST",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "svhn": "SVHN, rebuilt",
    "cinic10": "CINIC-10",
    "cifar30": "CIFAR-30",
}
NOTES = {
    "SVHN, rebuilt": "3,000 of each digit, cropped anew from the full images of the training part; "
    "not the official file",
    "sample": "a part of the data set; the paper's figure beside it is of the whole",
    "features": "of a frozen backbone; the paper's figure beside them is of whole networks",
}


@dataclass(frozen=True)
class Runs:
    """The records of one size of an experiment."""

    experiment: Experiment
    size: str
    records: Sequence[Record]

    @property
    def table(self) -> str | None:
        """The paper's table that stands beside this one."""
        return self.experiment.table

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


Values = TypeVar("Values", bound=Sized)


def fullest(found: Sequence[Values]) -> list[Values]:
    """Those with the most values: means over different partitions are not compared.

    >>> fullest([[0.9], [0.1, 0.2], [], [0.3, 0.4]])
    [[0.1, 0.2], [0.3, 0.4]]
    """
    most = max(map(len, found), default=0)
    return [values for values in found if most and len(values) == most]


def partition_of(record: Record) -> int:
    return int(record["partition"] if "partition" in record else record["seed"])


def by_size(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records of each size, the largest first; those of old have none, and are first of all."""
    found: dict[str, list[Record]] = {}
    for record in records:
        found.setdefault(record.get("size") or "", []).append(record)
    places = {size: place for place, size in enumerate(("", *SIZES))}
    return {s: found[s] for s in sorted(found, key=lambda s: (places.get(s, len(places)), s))}


# What was run


def describe_runs(runs: Runs) -> str:
    facts = [
        f"size {runs.size}" if runs.size else "",
        _protocols(runs),
        f"partition{_s(runs.partitions)} {_listed(runs.partitions)}",
        threads(runs.records),
        TITLES["svhn"] if "svhn" in runs.recorded else "",
    ]
    return f"{runs.experiment.title} ({'; '.join(fact for fact in facts if fact)}):"


def threads(records: Iterable[Record]) -> str:
    """How many threads runs had.

    >>> threads([{"machine": {"threads": 2}}, {"machine": {"threads": 1}}])
    '1 thread, 2 threads'
    """
    numbers = sorted({record["machine"]["threads"] for record in records if "machine" in record})
    return ", ".join(f"{n} thread{'' if n == 1 else 's'}" for n in numbers)


def _protocols(runs: Runs) -> str:
    """The protocol in words; data sets are named where theirs differ."""
    texts: dict[str, str] = {}
    for record in (record for record in runs.records if record.get("protocol")):
        text = _protocol(record["protocol"])
        if texts.setdefault(record["dataset"], text) != text:
            raise DataError(
                f"records of {record['dataset']} at size {runs.size or 'none'} have two protocols "
                f"({texts[record['dataset']]}; {text}); move those of one of them away"
            )
    datasets: dict[str, list[str]] = {}
    for dataset, text in texts.items():
        datasets.setdefault(text, []).append(dataset)
    if len(datasets) == 1:
        return f"protocol: {next(iter(datasets))}"
    return "; ".join(f"protocol of {', '.join(names)}: {t}" for t, names in datasets.items())


def _protocol(settings: Mapping[str, Any]) -> str:
    """How many classes are unknown and how many items there are; the title says the rest.

    >>> _protocol({"n_unknown": 3, "pool_share": 0.33, "sizes": [600, 300, 900], "held_out": 0})
    '3 unknown classes, 600 labelled and 300 pool items of each known class, 900 unknown ones'
    """
    texts = []
    if n_unknown := settings.get("n_unknown"):
        texts.append(f"{n_unknown} unknown class{'' if n_unknown == 1 else 'es'}")
    if sizes := settings.get("sizes"):
        training, pool, unknown = sizes
        at_most = "at most " if settings.get("shrink") else ""
        texts.append(
            f"{at_most}{training:,} labelled and {pool:,} pool items of each known class, "
            f"{unknown:,} unknown ones"
        )
    elif share := settings.get("pool_share"):
        texts.append(f"{100 * share:.0f} % of the known data and all of the unknown in the pool")
    if held_out := settings.get("held_out"):
        texts.append(f"{held_out:,} items of each class, a tenth of it at most, never seen")
    return ", ".join(texts)


def explain_cells(runs: Runs) -> str:
    """How to read the tables, as far as these records need it."""
    sentences = [
        "Cells: mean over partitions ± half of its 95 % t-interval (number of partitions) [the "
        "paper's figure]; the best of the full cells of a column in bold; – is not recorded.",
        "AUROC and OSCR judge the score, whatever the threshold.",
    ]
    if any(record.get("paper_mode") for record in runs.records):
        sentences.append(
            "Fair mode: the class of a known item is the method's own. Paper mode: both parts are "
            "clustered and clusters matched to classes with the truth, so it is never the best"
            + ("; each unknown class is then one of its own." if runs.has_several_unknown else ".")
        )
    if runs.has_several_unknown:
        sentences.append(
            "Figures of groups are over all truly unknown items: one called known is wrong. "
            "Unknown classes count as one, and by themselves where that is said: groups are then "
            "matched to them with the truth. DTC and, for methods without groups, k-means are told "
            "their number; S2OSC is not."
        )
    titles = " ".join(map(dataset_title, runs.recorded))
    notes = {name: note for name, note in NOTES.items() if name in titles}
    sentences += [f"{name[0].upper()}{name[1:]}: {note}." for name, note in notes.items()]
    return " ".join(sentences)


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


# What a reader should not have to look for


def who_beats_ours(runs: Runs) -> str:
    """Where another method has the larger mean F1, over the partitions that both have."""
    found, has_rivals = [], False
    for dataset in runs.datasets:
        ours = runs.values(OURS, dataset, "metrics", "f1")
        for method in runs.methods:
            if method == OURS:
                continue
            theirs = runs.values(method, dataset, "metrics", "f1")
            common = sorted(ours.keys() & theirs.keys())
            if not common:
                continue
            has_rivals = True
            mean, our_mean = (
                interval_over([values[p] for p in common]).mean for values in (theirs, ours)
            )
            if mean > our_mean:
                found.append(
                    f"{method} on {dataset_title(dataset)} ({mean:.3f} against {our_mean:.3f}, "
                    f"{len(common)} partition{_s(common)})"
                )
    if found:
        return f"Better than {OURS} in mean weighted F1: {'; '.join(found)}."
    return f"No other method beats {OURS} in mean weighted F1." if has_rivals else ""


def what_is_missing(runs: Runs) -> str:
    """Runs without a record, against every partition that any run has; methods alike together."""
    methods: dict[str, list[str]] = {}
    for method in runs.methods:
        gaps = {
            dataset: sorted(set(runs.partitions) - set(map(partition_of, runs.of(method, dataset))))
            for dataset in runs.datasets
        }
        if any(gaps.values()):
            methods.setdefault(_gaps(gaps, runs.partitions), []).append(method)
    if not methods:
        return "Nothing is missing."
    texts = [f"{', '.join(names)} ({gaps})" for gaps, names in methods.items()]
    return f"Missing: {'; '.join(texts)}."


def _gaps(gaps: Mapping[str, Sequence[int]], partitions: Sequence[int]) -> str:
    if all(list(missing) == list(partitions) for missing in gaps.values()):
        return "everything"
    texts = [
        dataset
        if list(missing) == list(partitions)
        else f"{dataset}: partition{_s(missing)} {_listed(missing)}"
        for dataset, missing in gaps.items()
        if missing
    ]
    return "; ".join(texts)


def what_failed(records: Iterable[Record]) -> str:
    texts = [
        f"{record['method']} on {record['dataset']}, partition {partition_of(record)} "
        f"({record['error']['kind']}: {record['error']['message']})"
        for record in records
        if record.get("error")
    ]
    return f"Failed: {'; '.join(texts)}." if texts else ""


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def _s(things: Sequence[object]) -> str:
    return "" if len(things) == 1 else "s"
