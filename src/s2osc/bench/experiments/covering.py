"""Designs that have every pair of levels often enough, without every combination of levels."""

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

import numpy as np


def cover_pairs(candidates: Sequence[Mapping[str, Hashable]], times: int) -> list[int]:
    """Candidates to run, by number, such that each pair of levels occurs ``times`` at least.

    A candidate gives every factor a level; pairs that no candidate has cannot go together and are
    not asked for. Greedy and without chance: the candidate with most pairs that are still missing
    comes next. All pairs come once, then all twice, and so on, so any beginning of the design is a
    fair design itself. A candidate may come again.

    >>> eight = [{"a": a, "b": b, "c": c} for a in "xy" for b in "xy" for c in "xy"]
    >>> ["".join(eight[number].values()) for number in cover_pairs(eight, times=1)]
    ['xxx', 'xyy', 'yxy', 'yyx']
    """
    numbers: dict[tuple[Hashable, ...], int] = {}
    pairs_of = np.array(
        [
            [
                numbers.setdefault((one, each[one], other, each[other]), len(numbers))
                for one, other in combinations(sorted(each), 2)
            ]
            for each in candidates
        ]
    )
    n_occurred = np.zeros(len(numbers), int)
    n_used = np.zeros(len(candidates), int)
    chosen = []
    for wanted in range(1, times + 1):
        while (n_occurred < wanted).any():
            here = n_occurred[pairs_of]
            n_missing = (here < wanted).sum(1)
            # Of equals, what was used least, then what brings the rarest pairs, then the first.
            best = int(np.lexsort((here.sum(1), n_used, -n_missing))[0])
            n_occurred[pairs_of[best]] += 1
            n_used[best] += 1
            chosen.append(best)
    return chosen
