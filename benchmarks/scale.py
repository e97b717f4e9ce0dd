"""How does the cost of a pool grow, and what does an engine add?

    python benchmarks/scale.py [--sizes 10000,100000,1000000] [--ray 1,2] [--to FILE.json]
    python benchmarks/scale.py --sizes 10000000 --share .001 --labelled 20000 [--to FILE.json]
    python benchmarks/scale.py --show FILE.json [--figure FILE.png]

Gaussian classes of 128 numbers, one item in fifty, or a share of ``--share``, of a class that is
not known, as Parquet files of at most half a million rows. Each run is `s2osc classify` in a
process of its own, with as many threads as there are cores, or with ``--threads``. Printed are its
wall time, its seconds of a core, the cost per item of the steps that go through the pool, and its
peak of memory, then how many items are called unknown, and how many rightly. ``--show`` also tells
what each item more than in the next smaller run took of a core: nothing is in it that every run
pays alike. ``--ray`` runs the sizes that ``--ray-sizes`` names with so many workers of Ray, too;
its start is told apart.

All of it takes half an hour. It can be done in portions: ``--to`` keeps what the record has of
other runs, ``--folder`` keeps the items, and ``--prepare`` makes them and stops.

Wanted: at most 20 % between the costs per item from 10^5 on, 1.15 of the time of this process with
two workers of Ray, 15 minutes and 1.5 GB for ten million. The exit code is 1 where that is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from s2osc.version import versions

WIDTH, N_FACTORS, N_CLASSES = 128, 30, 10
SHARE, N_LABELLED = 0.02, 5_000
ROWS_OF_FILE, ROWS_OF_GROUP = 500_000, 65_536
PER_ITEM = ("strangeness", "sample", "answer")
"""Steps whose cost is in proportion to the pool."""
ENGINE = "engine"
"""The step in which an engine starts."""
FLAT_FROM, FLAT = 100_000, 1.2
OVERHEAD = 1.15
MOST_SECONDS, MOST_MEGABYTES = 15 * 60.0, 1.5 * 1_024
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, kw_only=True)
class Task:
    """A pool of n items, a share of them of a class that is not known."""

    n: int
    share: float = SHARE
    labelled: int = N_LABELLED


@dataclass(frozen=True, kw_only=True)
class Cost(Task):
    """What a run took."""

    engine: str
    workers: int  # of Ray; 0: one process
    threads: int  # of this process
    cores: int
    seconds: float
    core_seconds: float  # of the process that was started; other work on the machine hardly counts
    per_step: dict[str, float]
    megabytes: float  # at the peak, of the process that was started
    unknown: int  # called so
    load: float  # of the machine, after it
    found: int | None = None  # of the class that is not known, called so; None in old records
    p_value: float | None = None  # of the test whether anything is unknown

    @property
    def which(self) -> tuple[int, str, int, int, float, int]:
        return self.n, self.engine, self.workers, self.threads, self.share, self.labelled

    @property
    def passes(self) -> float:
        """Seconds of the steps that go through the pool."""
        return sum(self.per_step.get(step, 0.0) for step in PER_ITEM)

    @property
    def microseconds_per_item(self) -> float:
        """Of the steps that go through the pool, with what they cost however small it is."""
        return 1e6 * self.passes / self.n

    @property
    def start(self) -> float:
        """Seconds in which the engine started."""
        return self.per_step.get(ENGINE, 0.0)

    @property
    def fit(self) -> float:
        """Seconds of what does not grow with the pool."""
        return self.seconds - self.start - self.passes


# --- items -----------------------------------------------------------------------------------


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


def write_items(folder: Path, task: Task) -> None:
    """Labelled items and a pool, if they are not there yet."""
    if (folder / "known.npz").exists():
        return
    items, random = Items(), np.random.default_rng(1)
    known_labels = random.integers(0, N_CLASSES, task.labelled)
    known = items.draw(known_labels)
    (folder / "pool").mkdir(parents=True, exist_ok=True)
    is_unknown = []
    for number, start in enumerate(range(0, task.n, ROWS_OF_FILE)):
        size = min(ROWS_OF_FILE, task.n - start)
        labels = random.integers(0, N_CLASSES, size)
        labels[random.random(size) < task.share] = N_CLASSES
        is_unknown.append(labels == N_CLASSES)
        values = pa.array(items.draw(labels).ravel())
        table = pa.table({"vector": pa.FixedSizeListArray.from_arrays(values, WIDTH)})
        path = folder / "pool" / f"{number:03}.parquet"
        pq.write_table(table, path, row_group_size=ROWS_OF_GROUP, compression="none")
    np.save(folder / "is_unknown.npy", np.concatenate(is_unknown))
    np.savez(folder / "known.npz", x=known, y=known_labels)  # last: then all is there


# --- runs ------------------------------------------------------------------------------------


def unknown_found(predictions: Path, is_unknown: np.ndarray) -> int:
    """How many items of the class that is not known are called unknown."""
    found, start = 0, 0
    for path in sorted(predictions.glob("*.parquet")):  # in the order of the pool
        labels = pq.read_table(path, columns=["label"]).column("label")
        called = pc.equal(labels, "unknown").to_numpy()
        found += int((called & is_unknown[start : start + len(called)]).sum())
        start += len(called)
    return found


def run(folder: Path, task: Task, workers: int, threads: int) -> Cost:
    """Classify a pool in a process of its own: without workers here, with them by Ray."""
    is_unknown = np.load(folder / "is_unknown.npy")
    command = [sys.executable, "-m", "s2osc", "classify", f"--known={folder / 'known.npz'}"]
    command += [f"--pool={folder / 'pool'}", f"--fit-on={min(50_000, task.n // 2)}"]
    command += ["--engine=ray", f"--workers={workers}"] if workers else []
    environment = {name: value for name, value in os.environ.items() if name not in THREADS}
    cores = len(os.sched_getaffinity(0))
    if threads != cores:  # else they are what a user gets, and what Ray gives to each worker
        environment |= dict.fromkeys(THREADS, str(threads))
    with tempfile.TemporaryDirectory(dir=folder) as place:
        out = Path(place) / "out"
        started = time.perf_counter()
        process = subprocess.Popen(
            [*command, f"--out={out}"], stdout=subprocess.DEVNULL, env=environment
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        if status:
            raise SystemExit(f"the run of {task.n:,} items failed")
        summary = json.loads((out / "summary.json").read_text())
        found = unknown_found(out / "predictions", is_unknown)
    return Cost(
        **asdict(task),
        engine="ray" if workers else "local",
        workers=workers,
        threads=threads,
        cores=cores,
        seconds=round(seconds, 1),
        core_seconds=round(used.ru_utime + used.ru_stime, 1),
        per_step=summary["seconds"],
        megabytes=round(used.ru_maxrss / 1_024),
        unknown=summary["counts"]["unknown"],
        load=round(os.getloadavg()[0], 1),
        found=found,
        p_value=summary["audit"]["test"]["p_value"],
    )


@contextmanager
def kept_or_temporary(folder: Path | None) -> Iterator[Path]:
    """A folder for items: one that stays, or one that goes."""
    if folder is not None:
        yield folder
        return
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def show(cost: Cost) -> None:
    steps = ", ".join(f"{name} {value:.1f}" for name, value in cost.per_step.items())
    print(
        f"{cost.n:>12,} {cost.engine:<5} {cost.workers or cost.threads} {cost.seconds:>8.1f} s"
        f" {cost.microseconds_per_item:>7.1f} us/item {cost.megabytes:>6.0f} MB"
        f"   {cost.unknown:,} unknown, {cost.found:,} rightly, p = {cost.p_value:.2g}   ({steps})",
        flush=True,
    )


# --- records ---------------------------------------------------------------------------------


def read_costs(path: Path) -> list[Cost]:
    return [Cost(**each) for each in json.loads(path.read_text())["costs"]]


def write_costs(path: Path, costs: Sequence[Cost]) -> None:
    """Write costs in the place of earlier ones of the same runs; others stay."""
    kept = {cost.which: cost for cost in (*(read_costs(path) if path.exists() else ()), *costs)}
    record = {"costs": [asdict(kept[each]) for each in sorted(kept)], "versions": versions()}
    path.write_text(json.dumps(record, indent=2) + "\n")


def misses(costs: Sequence[Cost]) -> list[str]:
    """What is not as wanted, in words."""
    local, found = [cost for cost in costs if not cost.workers], []
    for threads in sorted({cost.threads for cost in local}):
        flat = [
            cost.microseconds_per_item
            for cost in local
            if cost.threads == threads and cost.n >= FLAT_FROM
        ]
        if flat and max(flat) > FLAT * min(flat):
            ratio = max(flat) / min(flat)
            found.append(f"with {threads} threads, costs per item lie {ratio:.2f} apart")
    whole = {cost.n: cost for cost in local if cost.threads == cost.cores}
    for cost in costs:
        if cost.workers == cost.cores and cost.n in whole:
            ratio = (cost.seconds - cost.start) / whole[cost.n].seconds
            print(f"{cost.n:,} items, {cost.workers} workers of Ray: {ratio:.2f} of the local time")
            if ratio > OVERHEAD:
                found.append(f"Ray takes {ratio:.2f} of the local time at {cost.n:,}")
    for cost in local:
        if cost.seconds > MOST_SECONDS or cost.megabytes > MOST_MEGABYTES:
            found.append(f"{cost.n:,} items take {cost.seconds:.0f} s, {cost.megabytes:.0f} MB")
    return found


def further_items(costs: Sequence[Cost]) -> dict[tuple[int, str, int, int, float, int], float]:
    """What each item more than in the next smaller run took of a core, in microseconds.

    What every run pays alike is not in it, and other work on the machine hardly is. Without Ray,
    whose workers are not counted.
    """
    local, found = [cost for cost in costs if not cost.workers], {}
    for small, large in pairwise(sorted(local, key=lambda cost: (cost.threads, cost.n))):
        if small.threads == large.threads and small.n >= FLAT_FROM:  # else the sample grows, too
            more = large.core_seconds - small.core_seconds
            found[large.which] = 1e6 * more / (large.n - small.n)
    return found


def print_table(costs: Sequence[Cost]) -> None:
    """A record as a table of Markdown, for docs/scale.md."""
    further = further_items(costs)
    print(
        "| items | engine | wall time | per item | of a core | its start | fit | passes | "
        "per item | each further item, of a core | memory |"
    )
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for cost in costs:
        more = f"{further[cost.which]:.1f} µs" if cost.which in further else ""
        number, word = (cost.workers, "worker") if cost.workers else (cost.threads, "thread")
        engine = f"{'Ray' if cost.workers else 'local'}, {number} {word}{'s' * (number > 1)}"
        start = f"{cost.start:.0f} s" if cost.workers else ""
        core = "" if cost.workers else f"{cost.core_seconds:.0f} s"  # workers are not counted
        print(
            f"| {cost.n:,} | {engine} | {cost.seconds:.0f} s | "
            f"{1e6 * cost.seconds / cost.n:,.0f} µs | {core} | {start} | "
            f"{cost.fit:.0f} s | {cost.passes:.1f} s | {cost.microseconds_per_item:.1f} µs | "
            f"{more} | "
            f"{cost.megabytes / 1_024:.2f} GB |"
        )


def draw(costs: Sequence[Cost], path: Path) -> None:
    """How cost and memory grow, as a figure."""
    from matplotlib import pyplot as plt  # noqa: PLC0415  (only here)

    local = [cost for cost in costs if not cost.workers]
    fewest = min(cost.threads for cost in local)
    local = [cost for cost in local if cost.threads == fewest]
    n = [cost.n for cost in local]
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    whole = [1e6 * cost.seconds / cost.n for cost in local]
    left.loglog(n, whole, "o-", color="#888888", label="everything, shared out")
    passes = [cost.microseconds_per_item for cost in local]
    left.loglog(n, passes, "o-", color="#1f5fa8", label="the passes through the pool")
    left.set(xlabel="items of the pool", ylabel="µs of wall time for each item")
    left.legend(frameon=False)
    right.semilogx(n, [cost.megabytes / 1_024 for cost in local], "o-", color="#1f5fa8")
    right.axhline(MOST_MEGABYTES / 1_024, color="#888888", linestyle=":")
    right.set(xlabel="items of the pool", ylabel="GB at the peak", ylim=(0, None))
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",") if each]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=numbers, default="10000,100000,1000000,10000000")
    parser.add_argument("--ray", type=numbers, default="", help="numbers of workers, such as 1,2")
    parser.add_argument("--ray-sizes", type=numbers, default="1000000")
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=int, default=cores, help="of each process that is run")
    parser.add_argument("--share", type=float, default=SHARE, help="of the class not known")
    parser.add_argument("--labelled", type=int, default=N_LABELLED)
    parser.add_argument("--folder", type=Path, help="for the items, which stay there")
    parser.add_argument("--prepare", action="store_true", help="make the items and stop")
    parser.add_argument("--to", type=Path, help="a record; what it has of other runs stays")
    parser.add_argument("--show", type=Path, help="a record, to print as a table instead")
    parser.add_argument("--figure", type=Path, help="with --show: draw it, too")
    options = parser.parse_args()
    if options.show:
        costs = read_costs(options.show)
        print_table(costs)
        if options.figure:
            draw(costs, options.figure)
        return 0
    costs = []
    with kept_or_temporary(options.folder) as folder:
        for n in sorted({*options.sizes, *(options.ray_sizes if options.ray else ())}):
            task = Task(n=n, share=options.share, labelled=options.labelled)
            items = folder / f"{n}-{options.share}-{options.labelled}"
            write_items(items, task)
            if options.prepare:
                continue
            runs = [0] if n in options.sizes else []
            runs += options.ray if n in options.ray_sizes else []
            for workers in runs:
                costs.append(run(items, task, workers, options.threads))
                show(costs[-1])
                if options.to:
                    write_costs(options.to, costs)
    missed = misses(read_costs(options.to) if options.to and costs else costs)
    print(*missed, sep="\n")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
