"""How long does a window of a stream take?

    python benchmarks/stream_window.py [--data mnist] [--items 6000] [--seconds 120] [--folder DIR]

A stream begins with labelled items of ten classes, 400 of each; then a window comes, with its
questions. Once all of its items are of known classes, and once a tenth class is new: nine are known
at the beginning. Printed are the seconds of both windows and of the update after each, and the
memory the process took at most. The exit code is 1 where a window takes longer than ``--seconds``:
a limit for two free cores.
"""

import argparse
import resource
import sys
import time
from pathlib import Path

import numpy as np

from s2osc import OpenStream
from s2osc.data.datasets import load_dataset

N_LABELLED = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--items", type=int, default=6_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    dataset = load_dataset(options.data, options.folder)
    rows = np.random.default_rng(0).permutation(len(dataset.labels))
    labelled = np.concatenate(
        [rows[dataset.labels[rows] == c][:N_LABELLED] for c in range(len(dataset.classes))]
    )
    window = np.setdiff1d(rows, labelled, assume_unique=True)[: options.items]
    slowest = 0.0
    for n_known in (len(dataset.classes), len(dataset.classes) - 1):
        known = labelled[dataset.labels[labelled] < n_known]
        stream = OpenStream(dataset.inputs[known], dataset.labels[known])
        started = time.perf_counter()
        answer = stream.classify(dataset.inputs[window])
        took = time.perf_counter() - started
        slowest = max(slowest, took)
        n_unknown = int(np.sum(answer.labels == -1))
        print(
            f"{n_known} known classes: {len(window):,} items in {took:.1f} s, {n_unknown:,} unknown"
        )
        started = time.perf_counter()
        stream.learn(answer.queries, dataset.labels[window[answer.queries]])
        print(f"  {len(answer.queries)} labels learnt in {time.perf_counter() - started:.1f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"at most {peak:,.0f} MB; the slower window took {slowest:.1f} s of {options.seconds:.0f}"
    )
    return int(slowest > options.seconds)


if __name__ == "__main__":
    sys.exit(main())
