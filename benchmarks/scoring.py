"""What does scoring a pool cost beside the forward pass of the teacher f, and how much memory?

    python benchmarks/scoring.py [--rounds 3]

Time: logits, entropy and distance (``Teacher.outputs``) and distinctness (``distinctness``) of
10,000 images of 28 x 28 pixels, against a bare loop of f over the same batches; rounds alternate,
and the median of their ratios is at most 1.1. Both run in one thread and count the processor's
time, so that other work on the machine matters little.

Memory: a fresh process imports everything, builds f, notes its peak, makes an array of 100,000
vectors of 512 numbers (205 MB), scores it and notes its peak again. The second peak is at most the
first, plus the array, plus 300 MB.

The exit code is 1 where a bound is broken.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch

from s2osc.nets.networks import Network, as_tensor
from s2osc.nets.training import SCORING_BATCH
from s2osc.pipeline.filter.distinctness import FilterSettings, distinctness, units
from s2osc.pipeline.presets import PLAIN
from s2osc.pipeline.teacher import Teacher

AT_MOST_RATIO = 1.1
AT_MOST_EXTRA = 300e6  # bytes on top of process and array
N_CLASSES = 5
IMAGES, VECTORS = (10_000, 28, 28), (100_000, 512)
MEASURE_MEMORY = "--measure-memory"


class Cost(NamedTuple):
    """Seconds of both, and how often the forward pass fits into the scoring."""

    forward: float
    scoring: float
    ratio: float


class Memory(NamedTuple):
    """Peaks of a process and the size of what it scored, in bytes."""

    before: int
    after: int
    array: int

    @property
    def extra(self) -> int:
        """What scoring took on top of the process and the array."""
        return self.after - self.before - self.array


def new_teacher(item_shape: tuple[int, ...]) -> Teacher:
    """An f of the fast preset: what it costs does not depend on what it has learnt."""
    network = Network(PLAIN.teacher.network, item_shape, N_CLASSES).eval()
    random = np.random.default_rng(0)
    centres = random.random((N_CLASSES, network.head.in_features), dtype=np.float32)
    return Teacher(network, centres)


def score(teacher: Teacher, pool: np.ndarray) -> np.ndarray:
    settings = FilterSettings()
    teacher_outputs = teacher.outputs(pool)
    return distinctness(teacher_outputs, units(teacher_outputs, settings), settings)


def forward(teacher: Teacher, pool: np.ndarray) -> None:
    """The bare forward pass, in the batches of the scoring."""
    with torch.inference_mode():
        for start in range(0, len(pool), SCORING_BATCH):
            teacher.network(as_tensor(pool[start : start + SCORING_BATCH]))


def measure_time(rounds: int, shape: tuple[int, ...] = IMAGES) -> Cost:
    """Time forward pass and scoring in turn."""
    torch.set_num_threads(1)
    teacher = new_teacher(shape[1:])
    pool = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    score(teacher, pool[: 2 * SCORING_BATCH])
    seconds = [
        (timed(lambda: forward(teacher, pool)), timed(lambda: score(teacher, pool)))
        for _ in range(rounds)
    ]
    return Cost(
        forward=median(bare for bare, _ in seconds),
        scoring=median(whole for _, whole in seconds),
        ratio=median(whole / bare for bare, whole in seconds),
    )


def timed(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def measure_memory() -> Memory:
    """Ask a fresh process, which has no peaks of its own yet."""
    command = [sys.executable, str(Path(__file__).resolve()), MEASURE_MEMORY]
    answer = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return Memory(*json.loads(answer))


def score_vectors_and_note_peaks() -> Memory:
    """What the fresh process does."""
    teacher = new_teacher(VECTORS[1:])
    before = peak_memory()
    pool = np.random.default_rng(0).standard_normal(VECTORS, dtype=np.float32)
    score(teacher, pool)
    return Memory(before, peak_memory(), pool.nbytes)


def peak_memory() -> int:
    """The most bytes this process has held at once."""
    status = Path("/proc/self/status")
    if status.exists():
        # Linux counts in ``ru_maxrss`` what the process was forked from: the parent's peak.
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return 1024 * int(peak.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes, on macOS


def main() -> int:
    parser = argparse.ArgumentParser(description="Scoring a pool: time and memory.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(MEASURE_MEMORY, action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure_memory:
        print(json.dumps(score_vectors_and_note_peaks()))
        return 0
    cost = measure_time(asked.rounds)
    print(f"Scoring {IMAGES[0]:,} images of 28 x 28: {asked.rounds} rounds, 1 thread")
    print(f"  forward pass  {cost.forward:8.2f} s")
    print(f"  scoring       {cost.scoring:8.2f} s")
    print(f"  ratio         {cost.ratio:8.3f} (at most {AT_MOST_RATIO})")
    memory = measure_memory()
    print(f"Scoring {VECTORS[0]:,} vectors of {VECTORS[1]}: peak memory of a fresh process")
    print(f"  before        {memory.before / 1e6:8.0f} MB (imports and f)")
    print(f"  the array     {memory.array / 1e6:8.0f} MB")
    print(f"  on top        {memory.extra / 1e6:8.0f} MB (at most {AT_MOST_EXTRA / 1e6:.0f})")
    holds = cost.ratio <= AT_MOST_RATIO and memory.extra <= AT_MOST_EXTRA
    print("Both bounds hold." if holds else "A BOUND IS BROKEN.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
