"""How long does it take to group unknown items, and how does that grow with their number?

    python benchmarks/grouping.py [--most 100000]

Blobs of 256 numbers, ten unknown and ten known with 300 labelled items each: the space is fitted,
the groups and their number are found, and every item gets its group. Processor time of one thread,
so that other work on the machine matters little. 2,500 items take at most 3 s and 100,000 at most
30 s, and each further item costs at most what n log n allows.

The exit code is 1 where a bound is broken.
"""

import argparse
import sys
import time
from itertools import pairwise

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from s2osc.pipeline.grouping.clusters import ClusterSettings, group_unknown
from s2osc.pipeline.grouping.space import fit_space

AT_MOST = {2_500: 3.0, 100_000: 30.0}  # seconds
SIZES = (2_500, 10_000, 100_000)
N_CLASSES, N_LABELLED, N_COLUMNS = 10, 300, 256


def blobs(n: int, centres: np.ndarray, random: np.random.Generator) -> tuple[np.ndarray, ...]:
    labels = random.integers(0, len(centres), n)
    noise = random.normal(size=(n, centres.shape[1]), scale=2.0)
    return (centres[labels] + noise).astype(np.float32), labels


def seconds_to_group(n: int) -> tuple[float, int]:
    """Processor seconds, and how many groups were found."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(2 * N_CLASSES, N_COLUMNS))
    known, labels = blobs(N_CLASSES * N_LABELLED, centres[:N_CLASSES], random)
    unknown, _ = blobs(n, centres[N_CLASSES:], random)
    begun = time.process_time()
    space = fit_space(known, labels, unknown, seed=0)
    placed = space.place(unknown)
    grouping = group_unknown(placed, space.place(known), labels, ClusterSettings(), seed=0)
    grouping.assign(placed.scaled)
    return time.process_time() - begun, grouping.n_groups


def grows_too_fast(seconds: dict[int, float]) -> bool:
    """Whether the seconds per n log n rise from one size to the next, a tenth allowed for chance.

    >>> grows_too_fast({100: 1.0, 1_000: 12.0}), grows_too_fast({100: 1.0, 1_000: 100.0})
    (False, True)
    """
    costs = [value / (n * np.log(n)) for n, value in sorted(seconds.items())]
    return any(after > 1.1 * before for before, after in pairwise(costs))


def main(arguments: list[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--most", type=int, default=SIZES[-1], help="items of the largest pool")
    most = options.parse_args(arguments).most
    torch.set_num_threads(1)
    seconds = {}
    with threadpool_limits(1):
        seconds_to_group(N_LABELLED)  # libraries that are imported on first use cost no item
        for n in SIZES:
            if n <= most:
                seconds[n], n_groups = seconds_to_group(n)
                print(f"{n:,} vectors of {N_COLUMNS}: {seconds[n]:.2f} s, {n_groups} groups")
    is_slow = any(seconds[n] > bound for n, bound in AT_MOST.items() if n in seconds)
    is_steep = grows_too_fast(seconds)
    print(f"within the limits: {not is_slow}; no faster than n log n: {not is_steep}")
    return int(is_slow or is_steep)


if __name__ == "__main__":
    sys.exit(main())
