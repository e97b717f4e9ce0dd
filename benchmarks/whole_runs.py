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


class Items(NamedTuple):
    """Labelled items, and those of a pool."""

    known: np.ndarray
    labels: np.ndarray
    pool: np.ndarray
    truth: np.ndarray

    def save(self, folder: Path) -> tuple[str, str]:
        """Write them as files that `s2osc` reads; their names."""
        known, pool = folder / "known.npz", folder / "pool.npz"
        np.savez(known, x=self.known, y=self.labels)
        np.savez(pool, x=self.pool, y=self.truth)
        return str(known), str(pool)


class Case(NamedTuple):
    """A run: what it is given, and for how long it may take."""

    seconds: float  # at most, on two free cores
    items: Callable[[Path | None], Items] | None = None  # from a folder of data; None: the demo
    is_window: bool = False  # of a stream that begins with the labelled items


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


def vectors(n_known: int, n_pool: int) -> Callable[[Path | None], Items]:
    return lambda _: Items(
        *make_vectors(n_known, N_KNOWN, seed=1), *make_vectors(n_pool, N_CLASSES, seed=2)
    )


def digits(
    n_known: int, n_pool: int, *, data: str = "mnist5k", side: int = 28
) -> Callable[[Path | None], Items]:
    """So many digits from 0 to 7 that are labelled, and of all ten in the pool."""

    def draw(folder: Path | None) -> Items:
        dataset = load_dataset(data, folder)
        rows = np.random.default_rng(0).permutation(len(dataset.labels))
        known = rows[dataset.labels[rows] < N_KNOWN][:n_known]
        pool = rows[~np.isin(rows, known)][:n_pool]
        images = resized(dataset.inputs, side)
        return Items(images[known], dataset.labels[known], images[pool], dataset.labels[pool])

    return draw


def resized(images: np.ndarray, side: int) -> np.ndarray:
    if images.shape[1] == side:
        return images
    bring = [
        Image.fromarray(image).resize((side, side), Image.Resampling.BILINEAR) for image in images
    ]
    return np.stack([np.asarray(image) for image in bring])


CASES = {
    "vectors": Case(12, vectors(3_000, 2_500)),
    "many vectors": Case(30, vectors(10_000, 10_000)),
    "window of vectors": Case(6, vectors(3_000, 1_000), is_window=True),
    "demo": Case(30),
    "small images": Case(25, digits(1_300, 900, side=16)),
    "window of images": Case(25, digits(3_000, 1_000), is_window=True),
    "mnist": Case(75, digits(20_000, 16_000, data="mnist")),
}
WITHOUT_DATA = [name for name in CASES if name != "mnist"]


def s2osc(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "s2osc", *words], check=True, stdout=subprocess.DEVNULL)


def run(name: str, data_folder: Path | None) -> Timing:
    """Run one case in a process of its own."""
    case = CASES[name]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        words = ["demo"]
        if case.items:
            known, pool = case.items(data_folder).save(folder)
            words = ["classify", "--known", known, "--pool", pool]
            if case.is_window:
                state = str(folder / "stream")
                s2osc("stream", "init", "--known", known, "--state", state)
                words = ["stream", "window", "--state", state, "--pool", pool]
        started = time.perf_counter()
        s2osc(*words, "--out", str(folder / "out"))
        seconds = time.perf_counter() - started
        summary = json.loads((folder / "out" / "summary.json").read_bytes())
    f1 = summary["metrics"]["f1"]
    return Timing(name, round(seconds, 2), case.seconds, summary["seconds"], f1)


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
