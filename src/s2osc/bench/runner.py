"""An experiment -> one JSON record per run. What is recorded is not run again.

A record lies at ``results/<experiment>/<dataset>-<method>-p<partition>.json`` and holds everything
a table needs: settings, seed, classes, versions, seconds per step, metrics. It is written whole
after its run, so an interrupted experiment goes on where it stopped.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from s2osc.bench.metrics import evaluate, matched_accuracy
from s2osc.data.datasets import Dataset, load_dataset
from s2osc.data.splits import RELEASED_SPLIT, SINGLE_UNKNOWN, Protocol, split_dataset
from s2osc.errors import DataError, SettingsError
from s2osc.pipeline.method import S2OSCMethod, Solution
from s2osc.pipeline.presets import ABLATIONS, FAST
from s2osc.pipeline.settings import change, flatten
from s2osc.progress import track
from s2osc.types import UNKNOWN, Split
from s2osc.version import versions


@dataclass(frozen=True)
class Experiment:
    """A protocol and the methods that run under it."""

    title: str
    protocol: Protocol
    methods: Mapping[str, S2OSCMethod]


def _variants() -> dict[str, S2OSCMethod]:
    """The fast preset, each choice of it turned to the paper's reading, and the ablations."""
    choices: dict[str, dict[str, Any]] = {
        "g answers alone": {"student.vote": False},
        "gate on D_out as printed": {"student.gate_unknown": True},
        "labelled items plain": {"student.augment_labelled": False},
        "f on plain items": {"teacher.augment": 0.0},
        "w standardised": {"filtering.scale": "standardised"},
        "w = entropy": {"filtering.distance_weight": 0.0},
        "g binary": {"student.unknown": "many"},
    }
    changed = {name: change(FAST, changes) for name, changes in choices.items()}
    ablated = {f"S2OSC-{letter}": ablate(FAST) for letter, ablate in ABLATIONS.items()}
    return {"fast": FAST, **changed, **ablated}


EXPERIMENTS = {
    "released": Experiment(
        "Released split: classes 0-4 known (4,000 items of each for training, 2,000 in the pool), "
        "class 5 unknown (6,000 in the pool)",
        RELEASED_SPLIT,
        {"fast": FAST},
    ),
    "single": Experiment(
        "Random partitions: half of the classes known, one unknown, 33 % of the known data and "
        "all of the unknown class in the pool",
        SINGLE_UNKNOWN,
        {"fast": FAST},
    ),
    "variants": Experiment(
        "Choices and ablations: random partitions with half of the classes known, one unknown; "
        "2,000 training items and 1,000 pool items of each known class, 3,000 unknown ones",
        Protocol(sizes=(2_000, 1_000, 3_000)),
        _variants(),
    ),
}


def run_experiment(
    name: str,
    datasets: Sequence[str],
    partitions: Sequence[int],
    results: Path,
    *,
    folder: Path | None = None,
) -> list[Path]:
    """Run whatever has no record yet; return the paths of all records."""
    if name not in EXPERIMENTS:
        raise SettingsError(f"there is no experiment {name!r}; give {' or '.join(EXPERIMENTS)}")
    experiment, paths = EXPERIMENTS[name], []
    loaded = {data: load_dataset(data, folder) for data in datasets}
    runs = list(product(datasets, partitions, experiment.methods))
    for data, partition, chosen in track(runs, f"experiment {name}", total=len(runs)):
        method = for_dataset(experiment.methods[chosen], loaded[data])
        path = results / name / f"{data}-{chosen.replace(' ', '_')}-p{partition}.json"
        if path.exists():
            check_same_settings(path, method)
        else:
            split = split_dataset(loaded[data], experiment.protocol, partition)
            record = run_once(split, method, loaded[data], seed=partition)
            write_record(path, {"experiment": name, "method": chosen, **record})
        paths.append(path)
    return paths


def for_dataset(method: S2OSCMethod, dataset: Dataset) -> S2OSCMethod:
    """The method with flips where the data set allows them: a mirrored digit is no digit."""
    return replace(method, augmentation=replace(method.augmentation, flip=dataset.flip))


def run_once(split: Split, method: S2OSCMethod, dataset: Dataset, *, seed: int) -> dict[str, Any]:
    """One partition: fit, judge."""
    solution = method.fit(split.known, split.pool, seed=seed)
    return {
        "dataset": dataset.name,
        "seed": seed,
        "known_classes": [dataset.classes[c] for c in split.known_classes],
        "unknown_classes": [dataset.classes[c] for c in split.unknown_classes],
        "n_training": len(split.known),
        "n_pool": len(split.pool),
        "metrics": judge(split, solution),
        "seconds": solution.seconds,
        "seconds_total": round(sum(solution.seconds.values()), 1),
        "k": solution.k,
        "steps": solution.n_steps,
        "settings": flatten(method),
        "machine": {"threads": torch.get_num_threads(), "device": "cpu"},
        "versions": versions(),
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def judge(split: Split, solution: Solution) -> dict[str, float]:
    """Metrics of the answer, and of the steps on the way to it: f's accuracy, D_out's purity."""
    figures = evaluate(split.truth, solution.answer)
    is_known = split.truth != UNKNOWN
    of_f = solution.model.teacher.look(split.pool[is_known]).logits.argmax(1)
    figures["teacher_known_accuracy"] = float(np.mean(of_f == split.truth[is_known]))
    figures["purity_of_d_out"] = float(np.mean(~is_known[solution.partition.unknown]))
    figures["n_groups"] = len(solution.model.grouping.centres)
    figures["group_accuracy"] = matched_accuracy(
        split.truth_classes[~is_known], solution.answer.groups[~is_known]
    )
    return {key: round(value, 5) for key, value in figures.items()}


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(part, path)


def read_record(path: Path) -> dict[str, Any]:
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path} is not a record: {error}; remove it and run again") from error
    return record


def check_same_settings(path: Path, method: S2OSCMethod) -> None:
    """Refuse to mix records of different settings in one table."""
    try:
        recorded: dict[str, Any] = dict(read_record(path)["settings"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} names no settings; remove it and run again") from error
    now = json.loads(json.dumps(flatten(method)))
    if recorded != now:
        different = [key for key in now if recorded.get(key) != now[key]]
        raise DataError(
            f"{path} was recorded with other settings ({', '.join(different) or 'fewer'}); "
            "move the old records away or give another --results"
        )
