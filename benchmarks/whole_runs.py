"""How long does a whole run take, from the command to the page?

    python benchmarks/whole_runs.py [--cases vectors,images] [--to FILE.json] [--folder DIR]

Each case is a run of ``s2osc`` in a process of its own, as a user starts it: labelled items and a
pool in, a folder of results out. Printed are its seconds by step, as summary.json has them, what
share of the wall time they account for, its F1, and the limit of the case, which is for two free
cores. ``--to`` writes the same as a record. The exit code is 1 where a limit is broken.

Vectors are Gaussian classes that overlap; images are digits. ``mnist`` needs that data set in
``--folder``; the others need nothing but the package.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from s2osc.data.datasets import load_dataset
from s2osc.version import versions

N_CLASSES, N_KNOWN = 10, 8
N_FACTORS = 30
"""Directions in which the classes of vectors differ and vary; all columns are mixed from them."""
LEAST_ACCOUNTED = 0.95
"""Of the wall time: what the steps in summary.json add up to, at least."""


class Case(NamedTuple):
    """A run: what it is given, and for how long it may take."""

    options: Callable[[Path, Path | None], list[str]]  # of `s2osc`, from a folder for its inputs
    seconds: float  # at most, on two free cores


@dataclass(frozen=True)
class Timing:
    """What a run took."""

    case: str
    seconds: float
    limit: float
    steps: dict[str, float]
    f1: float

    @property
    def accounted(self) -> float:
        return sum(self.steps.values()) / self.seconds

    @property
    def holds(self) -> bool:
        return self.seconds <= self.limit and self.accounted >= LEAST_ACCOUNTED

    def in_words(self) -> str:
        steps = ", ".join(f"{step} {seconds:.1f}" for step, seconds in self.steps.items())
        return (
            f"{self.case}: {self.seconds:.1f} s of at most {self.limit:.0f}, F1 {self.f1:.3f}\n"
            f"  {self.accounted:.0%} by step: {steps}"
        )


def make_vectors(n: int, n_classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Items (n, 256) of overlapping classes; the classes are the same for every seed."""
    shape = np.random.default_rng(0)
    centres = 1.2 * shape.normal(size=(N_CLASSES, N_FACTORS))
    mixing = shape.normal(size=(N_FACTORS, 256)) / np.sqrt(N_FACTORS)
    random = np.random.default_rng(seed)
    labels = random.integers(n_classes, size=n)
    factors = centres[labels] + random.normal(size=(n, N_FACTORS))
    return (factors @ mixing + 0.3 * random.normal(size=(n, 256))).astype(np.float32), labels


def classify(
    folder: Path, known: tuple[np.ndarray, ...], pool: tuple[np.ndarray, ...]
) -> list[str]:
    """The options to classify arrays, each (items, labels)."""
    options = ["classify"]
    for name, (inputs, labels) in (("known", known), ("pool", pool)):
        np.savez(folder / f"{name}.npz", x=inputs, y=labels)
        options += [f"--{name}", str(folder / f"{name}.npz")]
    return options


def vectors(n_known: int, n_pool: int) -> Callable[[Path, Path | None], list[str]]:
    return lambda folder, _: classify(
        folder,
        known=make_vectors(n_known, N_KNOWN, seed=1),
        pool=make_vectors(n_pool, N_CLASSES, seed=2),
    )


def digits(
    n_known: int, n_pool: int, *, data: str = "mnist5k", side: int = 28
) -> Callable[[Path, Path | None], list[str]]:
    """So many digits from 0 to 7 that are labelled, and of all ten in the pool."""

    def options(folder: Path, data_folder: Path | None) -> list[str]:
        dataset = load_dataset(data, data_folder)
        rows = np.random.default_rng(0).permutation(len(dataset.labels))
        known = rows[dataset.labels[rows] < N_KNOWN][:n_known]
        pool = np.setdiff1d(rows, known)
        pool = np.random.default_rng(1).permutation(pool)[:n_pool]
        parts = [
            (resized(dataset.inputs[part], side), dataset.labels[part]) for part in (known, pool)
        ]
        return classify(folder, *parts)

    return options


def resized(images: np.ndarray, side: int) -> np.ndarray:
    if images.shape[1] == side:
        return images
    bring = [
        Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR) for image in images
    ]
    return np.stack([np.asarray(image) for image in bring])


CASES = {
    "vectors": Case(vectors(3_000, 2_500), 12),
    "many vectors": Case(vectors(10_000, 10_000), 30),
    "demo": Case(lambda *_: ["demo"], 30),
    "small images": Case(digits(1_300, 900, side=16), 25),
    "mnist": Case(digits(20_000, 16_000, data="mnist"), 75),
}
WITHOUT_DATA = [name for name in CASES if name != "mnist"]


def run(name: str, data_folder: Path | None) -> Timing:
    """Run one case in a process of its own."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        options = case.options(folder, data_folder)
        command = [sys.executable, "-m", "s2osc", *options, "--out", str(folder / "out")]
        started = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - started
        summary = json.loads((folder / "out" / "summary.json").read_bytes())
    return Timing(
        name, round(seconds, 2), case.seconds, summary["seconds"], summary["metrics"]["f1"]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", default=",".join(WITHOUT_DATA), help=", ".join(CASES))
    parser.add_argument("--to", type=Path, help="a .json file for the record")
    parser.add_argument("--folder", type=Path, help="where mnist lies")
    options = parser.parse_args()
    timings = []
    for name in options.cases.split(","):
        timings.append(run(name, options.folder))
        print(timings[-1].in_words(), flush=True)
    if options.to:
        record = {
            "versions": versions(),
            "cores": len(os.sched_getaffinity(0)),
            "runs": [asdict(timing) for timing in timings],
        }
        options.to.write_text(json.dumps(record, indent=2) + "\n")
    return int(not all(timing.holds for timing in timings))


if __name__ == "__main__":
    sys.exit(main())
