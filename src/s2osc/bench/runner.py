"""An experiment -> one JSON record per run. What is recorded is not run again.

A record lies at ``results/<experiment>/<dataset>-<method>-p<partition>.json`` and holds everything
a table needs: settings, seed, classes, versions, seconds per step, metrics. It is written whole
after its run, so an interrupted experiment goes on where it stopped.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from s2osc.bench.experiments import EXPERIMENTS
from s2osc.bench.metrics import auroc, evaluate, matched_accuracy
from s2osc.data.datasets import Dataset, load_dataset
from s2osc.data.splits import split_dataset
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import load_backbone
from s2osc.nets.features import compute_features
from s2osc.pipeline.method import S2OSCMethod, Solution
from s2osc.pipeline.presets import PLAIN
from s2osc.pipeline.settings import flatten
from s2osc.progress import Stopwatch, track
from s2osc.types import UNKNOWN, Labelled, Split
from s2osc.version import versions

DEFAULTS = S2OSCMethod(PLAIN.teacher, PLAIN.student)
"""Every later step as the paper has it."""
REMOVED = ("clusters.one_group_below",)
"""Settings that are no more. The groups followed from them, and no other figure of a record."""


def run_experiment(
    name: str,
    datasets: Sequence[str] | None,
    partitions: Sequence[int],
    results: Path,
    *,
    folder: Path | None = None,
) -> list[Path]:
    """Run whatever has no record yet, on the data sets named or on those of the experiment."""
    if name not in EXPERIMENTS:
        raise SettingsError(f"there is no experiment {name!r}; give {' or '.join(EXPERIMENTS)}")
    experiment, paths = EXPERIMENTS[name], []
    datasets = datasets or experiment.data
    loaded = {data: load_dataset(data, folder) for data in datasets}
    runs = list(product(datasets, partitions, experiment.methods))
    for data, partition, chosen in track(runs, f"experiment {name}", total=len(runs)):
        method = for_dataset(experiment.methods[chosen], loaded[data])
        path = results / name / f"{data}-{chosen.replace(' ', '_')}-p{partition}.json"
        if path.exists():
            check_same_settings(path, method)
        else:
            split = split_dataset(loaded[data], experiment.protocol, partition)
            record = run_once(
                split, method, loaded[data], seed=partition, backbone=experiment.backbone
            )
            write_record(path, {"experiment": name, "method": chosen, **record})
        paths.append(path)
    return paths


def for_dataset(method: S2OSCMethod, dataset: Dataset) -> S2OSCMethod:
    """The method with flips where the data set allows them: a mirrored digit is no digit."""
    return replace(method, augmentation=replace(method.augmentation, flip=dataset.flip))


def run_once(
    split: Split,
    method: S2OSCMethod,
    dataset: Dataset,
    *,
    seed: int,
    backbone: str | None = None,
) -> dict[str, Any]:
    """One partition: fit, judge."""
    clock = Stopwatch()
    if backbone:
        with clock("features"):
            split = through_backbone(split, backbone, flip=dataset.flip)
    solution = method.fit(split.known, split.pool, seed=seed)
    return {
        "dataset": dataset.name,
        "backbone": backbone,
        "seconds_features": clock.seconds.get("features"),
        "unknown_share": round(float(np.mean(split.truth == UNKNOWN)), 4),
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


def through_backbone(split: Split, name: str, *, flip: bool) -> Split:
    """The split with features of its images, and of a few views of them, in their place."""
    backbone = load_backbone(name, source=split.pool.shape[1:3])
    known, pool = (
        compute_features(images, backbone, flip=flip) for images in (split.known.inputs, split.pool)
    )
    return replace(split, known=Labelled(known, split.known.labels), pool=pool)


def judge(split: Split, solution: Solution) -> dict[str, float]:
    """Metrics of the answer, and of the steps on the way to it: f's accuracy, D_out's purity."""
    figures = evaluate(split.truth, solution.answer)
    is_known = split.truth != UNKNOWN
    sight = solution.model.teacher.look(split.pool)
    figures["teacher_known_accuracy"] = float(
        np.mean(sight.logits.argmax(1)[is_known] == split.truth[is_known])
    )
    figures["k"] = solution.k
    figures["n_groups"] = int(solution.answer.groups.max()) + 1
    if not is_known.all():
        figures["teacher_auroc"] = auroc(split.truth, sight.entropy)
        figures["group_accuracy"] = matched_accuracy(
            split.truth_classes[~is_known], solution.answer.groups[~is_known]
        )
    if solution.k:
        figures["purity_of_d_out"] = float(np.mean(~is_known[solution.partition.unknown]))
    if solution.trust is not None:
        figures |= judge_audit(figures, solution.trust.audit)
    return {key: round(value, 5) for key, value in figures.items()}


def judge_audit(figures: dict[str, float], account: dict[str, Any]) -> dict[str, float]:
    """What the seeds said beside what is true: 1 where an interval covers the truth, else 0."""
    rounding = 1e-5  # of the figures: a rate that is an end of its interval is within
    said = {
        "nothing_unknown": float(account["nothing_unknown"]),
        "shift_found": float(account["prior_shift"]["found"]),
        "p_value": account["test"]["p_value"],
    }
    for name, truth in (("false_alarm", "false_alarms"), ("known_accuracy", "known_accuracy")):
        low, high = account[name]["low"], account[name]["high"]
        said[f"{name}_low"], said[f"{name}_high"] = low, high
        said[f"{name}_covered"] = float(low - rounding <= figures[truth] <= high + rounding)
    for name in ("unknown_share", "unknown_recall"):
        for end, value in (account[name] or {}).items():
            said[f"{name}_{end}"] = value
    return said


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
    # A setting that came later was at its default before: defaults are the paper's reading.
    recorded = json.loads(json.dumps(flatten(DEFAULTS))) | recorded
    recorded = {key: value for key, value in recorded.items() if key not in REMOVED}
    if recorded != now:
        different = [key for key in now if recorded.get(key) != now[key]]
        raise DataError(
            f"{path} was recorded with other settings ({', '.join(different) or 'fewer'}); "
            "move the old records away or give another --results"
        )
