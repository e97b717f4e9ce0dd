"""How does the cost of a pool grow, and what does an engine add?

    python benchmarks/scale.py [--sizes 10000,100000,1000000] [--ray 1,2] [--to FILE.json]

Gaussian classes of 128 numbers, one item in fifty of a class that is not known, as Parquet files of
at most a million rows. Each run is `s2osc classify` in a process of its own. Printed are its wall
time, what the fit and the answers took, rows a second, and its peak of memory. ``--ray`` repeats
the largest size up to a million with so many workers of Ray; its start is told apart.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from s2osc.version import versions

WIDTH, N_FACTORS, N_CLASSES, N_KNOWN_ITEMS = 128, 30, 10, 5_000
SHARE = 0.02
ROWS_OF_FILE, ROWS_OF_GROUP = 500_000, 65_536
PER_ITEM = ("strangeness", "sample", "answer")
"""Steps whose cost is in proportion to the pool."""


@dataclass(frozen=True)
class Cost:
    """What a run took."""

    n: int
    engine: str
    workers: int
    threads: int
    seconds: float
    per_step: dict[str, float]
    megabytes: float  # at the peak, of the largest process
    unknown: int  # called so

    @property
    def microseconds_per_item(self) -> float:
        """Of the steps that go through the pool."""
        return 1e6 * sum(self.per_step.get(step, 0.0) for step in PER_ITEM) / self.n


class Items:
    """Draws items of the same classes, again and again."""

    def __init__(self, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.mix = (self.random.normal(size=(N_FACTORS, WIDTH)) / 5).astype(np.float32)
        centres = 1.6 * self.random.normal(size=(N_CLASSES + 1, N_FACTORS))
        self.centres = centres.astype(np.float32)

    def draw(self, labels: np.ndarray) -> np.ndarray:
        noise = self.random.standard_normal((len(labels), N_FACTORS), dtype=np.float32)
        rest = self.random.standard_normal((len(labels), WIDTH), dtype=np.float32)
        return (self.centres[labels] + noise) @ self.mix + np.float32(0.3) * rest


def write_items(folder: Path, n: int) -> None:
    """Labelled items and a pool of n."""
    items, random = Items(), np.random.default_rng(1)
    labels = random.integers(0, N_CLASSES, N_KNOWN_ITEMS)
    np.savez(folder / "known.npz", x=items.draw(labels), y=labels)
    (folder / "pool").mkdir()
    for number, start in enumerate(range(0, n, ROWS_OF_FILE)):
        size = min(ROWS_OF_FILE, n - start)
        labels = random.integers(0, N_CLASSES, size)
        labels[random.random(size) < SHARE] = N_CLASSES
        values = pa.array(items.draw(labels).ravel())
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(values, WIDTH)})
        path = folder / "pool" / f"{number:03}.parquet"
        pq.write_table(table, path, row_group_size=ROWS_OF_GROUP, compression="none")


def run(folder: Path, n: int, *, engine: str, workers: int, threads: int) -> Cost:
    out = folder / f"out-{engine}-{workers}"
    command = [sys.executable, "-m", "s2osc", "classify", "--known", str(folder / "known.npz")]
    command += ["--pool", str(folder / "pool"), "--out", str(out), "--fit-on"]
    command += [str(min(50_000, n // 2)), "--engine", engine]
    command += ["--workers", str(workers)] if engine == "ray" else []
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    started = time.perf_counter()
    subprocess.run(
        command,
        check=True,
        stdout=subprocess.DEVNULL,
        env=os.environ | dict.fromkeys(names, str(threads)),
    )
    seconds = time.perf_counter() - started
    # The largest of all processes that have ended so far; sizes rise, so it is this one's.
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1_024
    summary = json.loads((out / "summary.json").read_text())
    return Cost(
        n=n,
        engine=engine,
        workers=workers,
        threads=threads,
        seconds=round(seconds, 1),
        per_step=summary["seconds"],
        megabytes=round(peak),
        unknown=summary["counts"]["unknown"],
    )


def show(cost: Cost) -> None:
    steps = ", ".join(f"{name} {value:.1f}" for name, value in cost.per_step.items())
    print(
        f"{cost.n:>12,} {cost.engine:<6} x{cost.workers} {cost.seconds:>8.1f} s"
        f" {cost.microseconds_per_item:>7.1f} us/item {cost.megabytes:>6.0f} MB   ({steps})",
        flush=True,
    )


def print_table(paths: Sequence[Path]) -> None:
    """Records as a table of Markdown, for docs/scale.md."""
    records = [json.loads(path.read_text()) for path in paths]
    costs = [Cost(**each) for record in records for each in record["costs"]]
    print("| items | engine | threads or workers | wall time | fit | per item | peak of memory |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for cost in sorted(costs, key=lambda cost: (cost.n, cost.engine)):
        n = cost.workers if cost.engine == "ray" else cost.threads
        fit = sum(value for step, value in cost.per_step.items() if step not in PER_ITEM)
        print(
            f"| {cost.n:,} | {cost.engine} | {n} | {cost.seconds:.0f} s | {fit:.0f} s | "
            f"{cost.microseconds_per_item:.0f} µs | {cost.megabytes / 1_024:.2f} GB |"
        )


def measure(sizes: Sequence[int], workers: Sequence[int], threads: int, place: Path) -> list[Cost]:
    costs = []
    for n in sizes:
        with tempfile.TemporaryDirectory(dir=place) as name:
            write_items(Path(name), n)
            costs.append(run(Path(name), n, engine="local", workers=1, threads=threads))
            show(costs[-1])
            if n == max(size for size in sizes if size <= 1_000_000):
                for number in workers:
                    costs.append(run(Path(name), n, engine="ray", workers=number, threads=1))
                    show(costs[-1])
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="10000,100000,1000000,10000000")
    parser.add_argument("--ray", default="", help="numbers of workers, such as 1,2")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="of local runs")
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--to", type=Path)
    parser.add_argument("--show", type=Path, nargs="+", help="records, to print as a table instead")
    options = parser.parse_args()
    if options.show:
        print_table(options.show)
        return 0
    sizes = [int(size) for size in options.sizes.split(",")]
    workers = [int(number) for number in options.ray.split(",") if number]
    costs = measure(sizes, workers, options.threads, options.place)
    if options.to:
        record = {"costs": [asdict(cost) for cost in costs], "versions": versions()}
        options.to.write_text(json.dumps(record, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
