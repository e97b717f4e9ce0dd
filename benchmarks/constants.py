"""What each hand-set constant does to the answer: half as much again, and half of it.

    python benchmarks/constants.py --folder DATA [--data pendigits,svhn] [--draws 2]
    python benchmarks/constants.py --show        # the table of docs/constants.md, from the record

Pools of data sets that no constant was set on: features of CIFAR-10 photos, titles of questions,
pendigits, and house numbers (SVHN) from pixels. Every constant is moved by 50 % to both sides, the
others as they are, on the same pools. One line per run in ``benchmarks/constants.jsonl``; a run
that is recorded is not run again.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from s2osc.bench.tasks.audit import AuditPool, draw_pool
from s2osc.bench.tasks.pool import PoolTask
from s2osc.data.datasets import load_dataset
from s2osc.metrics import evaluate
from s2osc.nets.backbones import EFFICIENTNET
from s2osc.nets.text_features import compute_text_features
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.presets import HEADS, QUICK
from s2osc.settings import change, flatten
from s2osc.types import Labelled, Split

RECORD = Path(__file__).with_name("constants.jsonl")
PAGE = Path(__file__).parents[1] / "docs" / "constants.md"
BEGIN, END = "<!-- constants -->", "<!-- end of constants -->"
MOVED = {"half": 0.5, "half again": 1.5}
CHANCE = 0.01
"""Of F1: two seeds of one pool differ by as much as often as not; less is no effect."""


class Constant(NamedTuple):
    """A number in the code: where it stands, what it does, how it was chosen."""

    name: str  # a setting such as student.tau, or MODULE:NAME or MODULE:NAME[KEY]
    does: str
    chosen: str
    only: str = ""  # the only data set it has a part in; empty: all


FILTER = "s2osc.pipeline.filter"
CONSTANTS = (
    Constant("student.alpha", "weight of f's signal to g", "the paper's"),
    Constant("student.lambda_u", "weight of the loss on unlabelled items", "the paper's"),
    Constant("student.tau", "confidence of a pseudo-label", "the paper's"),
    Constant("student.temperature", "of both sides of the KL", "the paper's"),
    Constant("student.seed_weight", "of the loss on P(unknown)", "MNIST, Fashion-MNIST"),
    Constant("student.labelled_batch", "labelled items in a step of g", "time"),
    Constant("student.training.batch_size", "unlabelled items in a step of g", "time"),
    Constant("student.training.min_steps", "least steps of g", "time"),
    Constant("student.training.learning_rate", "of g", "MNIST, CIFAR-10 features"),
    Constant("teacher.training.min_steps", "least steps of f", "time"),
    Constant("teacher.training.learning_rate", "of f", "MNIST, CIFAR-10 features"),
    Constant("teacher.augment", "share of a batch of f that is augmented", "MNIST"),
    Constant("augmentation.noise", "of weak views of vectors", "CIFAR-10 features"),
    Constant("seeds.share", "of labelled items that are held back", "enough judges"),
    Constant(
        "s2osc.pipeline.verdict:G_WEIGHT",
        "weight of g beside the filter in the score",
        "41 pools of six data sets",
    ),
    Constant(f"{FILTER}.neighbours:FEW_NEIGHBOURS", "the nearer neighbours", "MNIST"),
    Constant(f"{FILTER}.neighbours:MOST_NEIGHBOURS", "all neighbours", "MNIST"),
    Constant(f"{FILTER}.neighbours:N_NEAREST", "labelled items for a distance", "by custom"),
    Constant(f"{FILTER}.neighbours:N_COMPONENTS[unit vectors]", "components of vectors", "time"),
    Constant(f"{FILTER}.neighbours:N_COMPONENTS[embedding]", "of f's embedding", "MNIST"),
    Constant(f"{FILTER}.neighbours:N_COMPONENTS[pixels]", "of pixels", "MNIST", "svhn"),
    Constant(f"{FILTER}.neighbours:N_COMPONENTS[gradients]", "of gradients", "MNIST", "svhn"),
    Constant(f"{FILTER}.signs:LEAST_SPREAD", "of a class that hardly varies", "reason"),
    Constant("s2osc.pipeline.sources.comparison:SURE_SHARE", "surest share of a class", "trial"),
    Constant("s2osc.pipeline.scaling:LINEAR", "spreads up to which columns are linear", "reason"),
)


def value_of(constant: Constant, method: Any) -> float:
    """The value that users get."""
    module, _, name = constant.name.partition(":")
    if not name:
        return float(flatten(method)[constant.name])
    name, _, key = name.rstrip("]").partition("[")
    found = getattr(sys.modules[module], name)
    return float(found[key] if key else found)


@contextmanager
def moved(constant: Constant, method: Any, factor: float) -> Iterator[Any]:
    """The method with one constant multiplied; whole numbers stay whole, shares below 1."""
    module, _, name = constant.name.partition(":")
    before = value_of(constant, method)
    value = before * factor
    if before < 1:
        value = min(value, 1.0)
    if not name:
        whole = isinstance(flatten(method)[constant.name], int)
        yield change(method, {constant.name: round(value) if whole else value})
        return
    name, _, key = name.rstrip("]").partition("[")
    found = getattr(sys.modules[module], name)
    one = found[key] if key else found
    new = round(value) if isinstance(one, int) else value
    # Modules that import the name hold a copy of it.
    holders = [
        each
        for each_name, each in list(sys.modules.items())
        if each_name.startswith("s2osc.pipeline") and getattr(each, name, None) is found
    ]
    try:
        for each in holders:
            setattr(each, name, {**found, key: new} if key else new)
        yield method
    finally:
        for each in holders:
            setattr(each, name, found)


def draw(data: str, folder: Path | None, seed: int) -> Split:
    """60 labelled items of each known class, and a pool of which 40 % are unknown."""
    dataset = load_dataset(data.removesuffix("-features"), folder)
    pool = AuditPool(data, unknown_share=0.4, n_labelled=60)
    split = draw_pool(dataset, pool, seed).split
    if data.endswith("-features"):
        return PoolTask().through_backbone(split, EFFICIENTNET, flip=True)
    if data == "stackoverflow":
        model = load_text_model()
        known, items = (
            compute_text_features([str(text) for text in texts], model)
            for texts in (split.known.inputs, split.pool)
        )
        return replace(split, known=Labelled(known, split.known.labels), pool=items)
    return split


def method_for(data: str) -> Any:
    # Folds repeat the same steps five times; the constants are those of one of them.
    return QUICK if data == "svhn" else change(HEADS, {"seeds.judges": 0})


def run(data: str, folder: Path | None, n_draws: int) -> None:
    """All constants on pools of one data set, each run recorded at once."""
    done = {(line["data"], line["seed"], line["name"], line["moved"]) for line in recorded()}
    for seed in range(n_draws):
        split, method = draw(data, folder, seed), method_for(data)
        todo = [("", "as it is", None)]
        for constant in CONSTANTS:
            if constant.only in ("", data):
                todo += [(constant.name, way, constant) for way in MOVED]
        for name, way, constant in todo:
            if (data, seed, name, way) in done:
                continue
            if constant is None:
                found = method.fit(split.known, split.pool, seed=seed)
            else:
                with moved(constant, method, MOVED[way]) as other:
                    found = other.fit(split.known, split.pool, seed=seed)
            figures = evaluate(split.truth, found.answer)
            line = {"data": data, "seed": seed, "name": name, "moved": way}
            with RECORD.open("a") as file:
                print(json.dumps(line | {"f1": figures["f1"]}), file=file)


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in RECORD.read_text().splitlines()] if RECORD.exists() else []


def effects(lines: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[float, float, int]]:
    """(constant, data) to the mean change of F1 by either move, and the number of pools."""
    f1 = {(each["data"], each["seed"], each["name"], each["moved"]): each["f1"] for each in lines}
    found: dict[tuple[str, str], tuple[float, float, int]] = {}
    for name, data in {(each["name"], each["data"]) for each in lines if each["name"]}:
        seeds = [
            seed
            for seed in {each["seed"] for each in lines}
            if all((data, seed, name, way) in f1 for way in MOVED)
            and (data, seed, "", "as it is") in f1
        ]
        if seeds:
            low, high = (
                float(
                    np.mean([f1[data, s, name, way] - f1[data, s, "", "as it is"] for s in seeds])
                )
                for way in MOVED
            )
            found[name, data] = low, high, len(seeds)
    return found


def table(lines: list[dict[str, Any]]) -> str:
    """The page's table: a row for each constant."""
    found = effects(lines)
    data = list(dict.fromkeys(each["data"] for each in lines))
    n = {each: max((found[k][2] for k in found if k[1] == each), default=0) for each in data}
    rows = [
        "| constant | value | what it does | chosen by | "
        + " | ".join(f"{each} ({n[each]} pools)" for each in data)
        + " |",
        "| --- " * (4 + len(data)) + "|",
    ]
    for constant in CONSTANTS:
        value = value_of(constant, HEADS if constant.only != "svhn" else QUICK)
        cells = []
        for each in data:
            if (constant.name, each) not in found:
                cells.append("")
                continue
            low, high, _ = found[constant.name, each]
            cell = f"{low:+.3f} / {high:+.3f}"
            cells.append(f"**{cell}**" if max(abs(low), abs(high)) > CHANCE else cell)
        name = constant.name.rpartition(":")[2]
        rows.append(
            f"| `{name}` | {value:g} | {constant.does} | {constant.chosen} | "
            + " | ".join(cells)
            + " |"
        )
    return "\n".join(rows)


def show() -> None:
    """Write the table into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{table(recorded())}\n{END}{after}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where data sets lie")
    parser.add_argument("--data", default="pendigits,stackoverflow,cifar10-features,svhn")
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    if options.show:
        show()
        return
    for data in options.data.split(","):
        run(data, options.folder, options.draws)


if __name__ == "__main__":
    main()
