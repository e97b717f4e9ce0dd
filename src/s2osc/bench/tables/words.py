"""What stands beside the tables: what was run, how to read the cells, what is missing."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from s2osc.bench.methods import OURS
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.runs import TITLES, Runs, dataset_title, find_gaps, gaps_in_words
from s2osc.errors import DataError
from s2osc.metrics import interval_over
from s2osc.text import plural

CELLS = (
    "Cells: mean over partitions ± half of its 95 % t-interval (number of partitions) [the "
    "paper's figure]; the best of the full cells of a column in bold; – is not recorded, n/a does "
    "not apply."
)
NOTES = {
    "SVHN, rebuilt": "3,000 of each digit, cropped anew from the full images of the training part; "
    "not the official file",
    "sample": "a part of the data set; the paper's figure beside it is of the whole",
    "features": "of a frozen backbone; the paper's figure beside them is of whole networks",
}


# What was run


def describe_pools(runs: Runs) -> str:
    svhn = TITLES["svhn"] if "svhn" in runs.recorded else ""
    return _title(runs, _protocols(runs), _partitions(runs), threads(runs.records), svhn)


def describe_streams(runs: Runs) -> str:
    records = runs.records
    protocols = dict.fromkeys(stream_in_words(r["protocol"]) for r in records if "protocol" in r)
    limits = labels_in_words(records), levels_in_words(records)
    return _title(runs, *protocols, *limits, _partitions(runs), threads(records))


def _title(runs: Runs, *facts: str) -> str:
    size = f"size {runs.size}" if runs.size else ""
    return f"{runs.experiment.title} ({'; '.join(filter(None, [size, *facts]))}):"


def _partitions(runs: Runs) -> str:
    numbers = ", ".join(map(str, runs.partitions))
    return f"partition{'' if len(runs.partitions) == 1 else 's'} {numbers}"


def threads(records: Iterable[Record]) -> str:
    """How many threads runs had.

    >>> threads([{"machine": {"threads": 2}}, {"machine": {"threads": 1}}])
    '1 thread, 2 threads'
    """
    numbers = sorted({record["machine"]["threads"] for record in records if "machine" in record})
    return ", ".join(plural(n, "thread") for n in numbers)


def _protocols(runs: Runs) -> str:
    """The protocol in words; data sets are named where theirs differ."""
    texts: dict[str, str] = {}
    for record in (record for record in runs.records if record.get("protocol")):
        text = pool_in_words(record["protocol"])
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


def pool_in_words(settings: Mapping[str, Any]) -> str:
    """How many classes are unknown and how many items there are; the title says the rest.

    >>> pool_in_words({"n_unknown": 3, "sizes": [600, 300, 900], "held_out": 0})
    '3 unknown classes, 600 labelled and 300 pool items of each known class, 900 unknown ones'
    """
    texts = []
    if n_unknown := settings.get("n_unknown"):
        texts.append(plural(n_unknown, "unknown class"))
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


def stream_in_words(protocol: Mapping[str, Any]) -> str:
    """How many items come when.

    >>> stream_in_words({"sizes": [600, 300], "held_out": 200})
    '600 labelled items of each known class, then 300 of each class per window, 200 never seen'
    """
    if sizes := protocol.get("sizes"):
        text = f"{sizes[0]:,} labelled items of each known class, then {sizes[1]:,} of each class"
        text += " per window"
    else:
        items = f"{protocol['n_items']:,}" if protocol.get("n_items") else "all"
        text = (
            f"{items} items of each class: of a known one half labelled and half streaming, of a "
            "new one all streaming, evenly to the end"
        )
    return f"{text}, {protocol.get('held_out', 0):,} never seen"


def labels_in_words(records: Sequence[Record]) -> str:
    """How many labels a window may cost, where that is one number.

    >>> labels_in_words([{"settings": {"budget": 200}}])
    'at most 200 labels per window'
    """
    budgets = {record.get("settings", {}).get("budget") for record in records} - {None}
    return f"at most {budgets.pop():,} labels per window" if len(budgets) == 1 else ""


def levels_in_words(records: Sequence[Record]) -> str:
    """The level at which our learners test whether anything in a window is unknown.

    >>> key = "learner.method.decision.level"
    >>> levels_in_words([{"settings": {key: 0.01}}, {"settings": {key: 0.05}}, {"settings": {}}])
    'tested at a level of 1 % and 5 %'
    """
    key = "learner.method.decision.level"
    levels = {record.get("settings", {}).get(key) for record in records} - {None}
    texts = [f"{100 * level:.0f} %" for level in sorted(levels)]
    return f"tested at a level of {' and '.join(texts)}" if levels else ""


# How to read the cells


def explain_pools(runs: Runs) -> str:
    """How to read the tables, as far as these records need it."""
    sentences = [CELLS, "AUROC and OSCR judge the score, whatever the threshold."]
    if any(record.get("paper_mode") for record in runs.records):
        sentences.append(
            "Fair mode: the class of a known item is the method's own. Paper mode: both parts are "
            "clustered and clusters matched to classes with the truth, so it is never the best"
            + ("; each unknown class is then one of its own." if runs.has_several_unknown else ".")
        )
    if runs.has_several_unknown:
        sentences.append(
            "Figures of groups are over all truly unknown items: one called known is wrong. "
            "Unknown classes count as one, and by themselves where the caption says so: groups are "
            "then matched to them with the truth. DTC and, for methods without groups, k-means are "
            "given their number; S2OSC is not."
        )
    titles = " ".join(map(dataset_title, runs.recorded))
    notes = {name: note for name, note in NOTES.items() if name in titles}
    sentences += [f"{name[0].upper()}{name[1:]}: {note}." for name, note in notes.items()]
    return " ".join(sentences)


STREAM_SENTENCES = {
    "f1": "Averages are plain means over windows, each judged before its labels came; a class "
    "counts as known from the window after the one it emerged in. Weighted recall is accuracy.",
    "class_accuracy": "New classes count as one, and by themselves, as in the paper, where the "
    "caption says so: groups of unknown items are then matched to them with the truth. Where a "
    "method has no groups, k-means makes them, given the number of new classes.",
    "seconds_per_window": "Seconds are those of a machine that other runs shared.",
    "forgetting": "Forgetting: (A* - mean of A_k) / A*, where A_k is the accuracy after stage k on "
    "items never seen, mean over the arrivals of classes so far, and A* that of one f of all data; "
    "it counts what was never learnt too.",
    "chaudhry_forgetting": "By Chaudhry: what the last stage lost of the best accuracy before, "
    "mean over earlier arrivals.",
}
"""By the figure that needs it."""


def explain_streams(runs: Runs) -> str:
    """How to read the tables of streams, as far as their figures need it."""
    shown = runs.experiment.columns.values()
    sentences = [text for metric, text in STREAM_SENTENCES.items() if metric in shown]
    joint = _joint(runs) if "forgetting" in shown else ""
    return " ".join([CELLS, *sentences, joint]).strip()


def _joint(runs: Runs) -> str:
    """A* of each data set: it depends on the partition and on no learner."""
    texts = []
    for dataset in runs.datasets:
        found = {
            partition_of(record): record["joint_accuracy"]
            for record in runs.records
            if record["dataset"] == dataset and "joint_accuracy" in record
        }
        if found:
            mean = float(np.mean(list(found.values())))
            texts.append(f"{dataset_title(dataset)} {mean:.3f} ({len(found)})")
    return f"A*: {', '.join(texts)}." if texts else ""


GRID_SENTENCES = (
    "A cell: the share, its exact 95 % interval, the number of pools. Covered: the 95 % interval "
    "of the audit holds the truth. Only intervals that could be wrong count: not one from 0 to 1, "
    "not the unknown share where nothing is unknown and nothing was found, not false alarms and "
    "recall where nothing was found. Level: discoveries where nothing is unknown; power: "
    "discoveries where something is. False warnings: of another mix of classes, or of another "
    "source, where there is none. Stated - true false alarms: mean ± half of its 95 % "
    "interval. f's own: what f, which calls nothing unknown, gives on the same pools."
)

SOURCES_SENTENCES = (
    "A cell: the share, its exact 95 % interval, the number of pools; differences: mean ± half of "
    "its 95 % interval. Told: that the sources differ. f's own: what f, which calls nothing "
    "unknown, names right of the same pool. All pools of a draw have the same classes and labelled "
    "items, and those of one unknown share the same items, changed as the source changes them."
)


# What a reader should not miss


def what_to_note(runs: Runs) -> list[str]:
    return [who_beats_ours(runs), what_is_missing(runs), what_failed(runs.records)]


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
                    f"{plural(len(common), 'partition')})"
                )
    if found:
        return f"Better than {OURS} in mean weighted F1: {'; '.join(found)}."
    return f"No other method beats {OURS} in mean weighted F1." if has_rivals else ""


def what_is_missing(runs: Runs) -> str:
    """Runs without a record, against every partition that any run has."""
    missing = gaps_in_words(find_gaps(runs, runs.records), runs.partitions)
    return "Nothing is missing." if missing == "nothing" else f"Missing: {missing}."


def what_failed(records: Iterable[Record]) -> str:
    texts = [
        f"{record['method']} on {record['dataset']}, partition {partition_of(record)} "
        f"({record['error']['kind']}: {record['error']['message']})"
        for record in records
        if record.get("error")
    ]
    return f"Failed: {'; '.join(texts)}." if texts else ""
