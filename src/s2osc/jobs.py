"""The main jobs from files to files: classify a pool, predict with a saved model, the demo."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from s2osc.bench.metrics import evaluate, matched_accuracy
from s2osc.data.datasets import load_dataset
from s2osc.data.images import InputShape
from s2osc.data.inputs import (
    MAX_MEGAPIXELS,
    Items,
    Skipped,
    encode_labels,
    read_items,
    read_known_and_pool,
)
from s2osc.data.splits import Protocol, split_dataset
from s2osc.errors import S2OSCWarning, SettingsError
from s2osc.nets.training import resolve_device
from s2osc.pipeline.method import OpenSetModel, S2OSCMethod, Solution
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.pipeline.settings import flatten
from s2osc.pipeline.storage import load_model, save_model
from s2osc.progress import Stopwatch
from s2osc.report.page import ReportInputs, write_report
from s2osc.staging import check_file_target, check_target, staged_file, staged_folder
from s2osc.types import UNKNOWN, Answer, Labelled
from s2osc.version import versions

DEMO = Protocol(known_classes=tuple(range(6)), unknown_classes=(6, 7), sizes=(300, 200, 1_000))


@dataclass(frozen=True)
class Run:
    """What a run is asked for beside its data."""

    preset: str = "auto"
    changes: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters by name
    seed: int = 0
    device: str = "auto"
    title: str = "Open set classification"

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"the seed is {self.seed}; give a whole number from 0")


class Plan(NamedTuple):
    """What a run comes to on this machine."""

    run: Run
    device: str
    preset: str
    method: S2OSCMethod


@dataclass(frozen=True)
class Finding:
    """What was found, for whoever asked."""

    solution: Solution
    classes: tuple[str, ...]
    summary: dict[str, Any]


def classify_files(
    known: Path,
    pool: Path,
    out: Path,
    run: Run,
    *,
    side: int | None = None,
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
) -> Finding:
    """Labelled files and a pool of files in, a folder of results out."""
    check_target(out, force=force)
    plan, clock = make_plan(run), Stopwatch()
    with clock("read"), noted() as notes:
        known_items, pool_items, shape = read_known_and_pool(
            known, pool, side=side, max_megapixels=max_megapixels
        )
    if side is not None and shape.kind == "vectors":
        raise SettingsError("--side is for images, but the items are vectors; leave it out")
    return classify_items(known_items, pool_items, shape, out, plan, clock, notes)


def demo(out: Path, run: Run, *, force: bool = False) -> Finding:
    """The main job on 5,000 handwritten digits: 0-5 are known, 6 and 7 are in the pool only."""
    check_target(out, force=force)
    plan, clock = make_plan(run), Stopwatch()
    with clock("read"):
        digits = load_dataset("mnist5k")
        split = split_dataset(digits, DEMO, run.seed)
        known_names = [digits.classes[split.known_classes[label]] for label in split.known.labels]
        pool_names = [digits.classes[label] for label in split.truth_classes]
        known = Items(_numbered(len(known_names)), split.known.inputs, known_names)
        pool = Items(_numbered(len(pool_names)), split.pool, pool_names)
        height, width = digits.inputs.shape[1:3]
        note = f"{len(known) + len(pool):,} digits of {height}x{width} in grey, as they come"
        shape = InputShape("images", height, width, 1, note=note)
    return classify_items(known, pool, shape, out, plan, clock)


def _numbered(n: int) -> list[str]:
    return [f"digit {number}" for number in range(n)]


def make_plan(run: Run) -> Plan:
    """Device, preset and method of a run, or one line on the setting that cannot be used."""
    device = resolve_device(run.device)
    preset = choose_preset(run.preset, device)
    return Plan(run, device, preset, build_method(preset, run.changes))


@contextmanager
def noted() -> Iterator[list[str]]:
    """Gather what warnings say to the user, who reads it with the results."""
    notes: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", S2OSCWarning)
        yield notes
    notes += [str(w.message) for w in caught if issubclass(w.category, S2OSCWarning)]


def classify_items(
    known: Items,
    pool: Items,
    shape: InputShape,
    out: Path,
    plan: Plan,
    clock: Stopwatch,
    notes: Sequence[str] = (),
) -> Finding:
    """Fit, answer, and write everything into ``out`` at once."""
    run, device, preset, method = plan
    labels, classes = encode_labels(known.labels or [])
    with noted() as said:
        solution = method.fit(
            Labelled(known.inputs, labels), pool.inputs, seed=run.seed, device=device
        )
    clock.seconds.update(solution.seconds)
    skipped = [*known.skipped, *pool.skipped]
    summary = {
        "items": {"known": len(known), "pool": len(pool), "skipped": len(skipped)},
        "counts": count_labels(solution.answer, classes),
        "metrics": judge(solution.answer, classes, pool.labels),
        "warnings": [*notes, *said, *tell_skipped(skipped, "see skipped.csv")],
        "shape": shape.note,
        "k": solution.k,
        "steps": solution.n_steps,
        "seed": run.seed,
        "device": device,
        "preset": preset,
        "settings": flatten(method),
        "versions": versions(),
        "seconds": clock.seconds,
    }
    if not summary["metrics"]:
        del summary["metrics"]
    with staged_folder(out) as stage:
        write_table(stage / "predictions.csv", pool.names, solution.answer, classes)
        write_table(stage / "predictions.parquet", pool.names, solution.answer, classes)
        if skipped:
            write_skipped(stage / "skipped.csv", skipped)
        save_model(stage / "model", solution.model, classes)
        with clock("report"):
            report = ReportInputs(
                title=run.title,
                answer=solution.answer,
                classes=classes,
                names=pool.names,
                embeddings=solution.embeddings,
                images=pool.inputs if shape.kind == "images" else None,
                summary=summary,
                truth=pool.labels,
            )
            write_report(stage / "report.html", report, seed=run.seed)
        text = json.dumps(summary, indent=2, ensure_ascii=False)
        (stage / "summary.json").write_text(text + "\n", encoding="utf-8")
    return Finding(solution, classes, summary)


class Predicted(NamedTuple):
    """The answer for new items, and what the user should know about it."""

    answer: Answer
    notes: list[str]


def predict_files(
    model: Path,
    items: Path,
    out: Path,
    *,
    device: str = "auto",
    max_megapixels: float = MAX_MEGAPIXELS,
    force: bool = False,
) -> Predicted:
    """Answer for new items with a saved model; one table out."""
    if out.suffix not in TABLE_WRITERS:
        raise SettingsError(f"--out is {out}; give a file name ending in .csv or .parquet")
    check_file_target(out, force=force)
    saved = load_model(model, resolve_device(device))
    found = read_items(items, like=shape_of(saved.model), max_megapixels=max_megapixels)
    answer = saved.model.answer(found.inputs)
    with staged_file(out) as path:
        write_table(path, found.names, answer, saved.classes)
    return Predicted(answer, tell_skipped(found.skipped, "skipped items have no row"))


def shape_of(model: OpenSetModel) -> InputShape:
    """The shape items must have for a model."""
    axes = model.teacher.network.input_shape
    if len(axes) == 1:
        return InputShape("vectors", n_features=axes[0])
    return InputShape("images", axes[0], axes[1], channels=3 if len(axes) == 3 else 1)


def count_labels(answer: Answer, classes: Sequence[str]) -> dict[str, Any]:
    """Items per known class, unknown ones, and those per group."""
    groups = np.bincount(answer.groups[answer.is_unknown])
    return {
        "known": {name: int(np.sum(answer.labels == c)) for c, name in enumerate(classes)},
        "unknown": int(answer.is_unknown.sum()),
        "groups": {str(group): int(count) for group, count in enumerate(groups)},
    }


def judge(
    answer: Answer, classes: tuple[str, ...], truth_names: list[str] | None
) -> dict[str, float]:
    """Metrics over the items that came with truth; none without."""
    has_truth = np.array([bool(name) for name in truth_names or []])
    if not has_truth.any():
        return {}
    names = np.array(truth_names)[has_truth]
    label_of = {name: label for label, name in enumerate(classes)}
    truth = np.array([label_of.get(name, UNKNOWN) for name in names])
    part = replace(answer, **{field: values[has_truth] for field, values in vars(answer).items()})
    figures = evaluate(truth, part)
    of_unknown = truth == UNKNOWN
    if of_unknown.any():
        matched = matched_accuracy(names[of_unknown], part.groups[of_unknown])
        figures["group_accuracy"] = round(matched, 5)
    return figures


TABLE_WRITERS = {
    ".csv": pyarrow.csv.write_csv,
    ".parquet": pyarrow.parquet.write_table,
}


def write_table(path: Path, names: list[str], answer: Answer, classes: Sequence[str]) -> None:
    """One row per item, as CSV or Parquet by the ending of ``path``."""
    label_names = np.array([*classes, "unknown"], object)
    columns: dict[str, Any] = {
        "item": names,
        "label": label_names[answer.labels],
        "group": pa.array(answer.groups, mask=answer.groups < 0),
        "confidence": answer.confidence.astype(np.float32),
        "unknown_score": answer.unknown_score.astype(np.float32),
        "distinctness": answer.distinctness.astype(np.float32),
        "filtered": answer.filtered,
    }
    TABLE_WRITERS[path.suffix](pa.table(columns), path)


def tell_skipped(skipped: Sequence[Skipped], where: str) -> list[str]:
    """One sentence on items that were left out, or none."""
    if not skipped:
        return []
    items = "1 item was" if len(skipped) == 1 else f"{len(skipped):,} items were"
    return [f"{items} skipped (first: {skipped[0].name}, {skipped[0].reason}); {where}"]


def write_skipped(path: Path, skipped: Sequence[Skipped]) -> None:
    columns = {"item": [s.name for s in skipped], "reason": [s.reason for s in skipped]}
    pyarrow.csv.write_csv(pa.table(columns), path)
