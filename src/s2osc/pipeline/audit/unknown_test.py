"""Is anything in the pool unknown? Tests of "nothing is", and what they would have found.

Judges are held-back labelled items that every score treats like items of the pool. Where something
is unknown, they are too few at the top of a ranking by unknown scores.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from s2osc.lazy import lazily
from s2osc.pipeline.audit.label_shift import SUSPICION, Names, judges_in_mix_of_pool

stats = lazily("scipy.stats")

FIRST_TOP, STEP, LAST_TOP = 5, 1.15, 0.8
"""Tops of a ranking that are tested: of five items, each larger by this factor, up to this share. A
rare class is at the very top; few judges are evidence only by how low they all rank."""
N_DRAWN = 1_000
"""Random draws of the judges that the smallest p-value over all tops is compared with."""
AT_ONCE = 100
FEW_DRAWN = 300
"""Judges of a name, up to which it is quicker to make those draws side by side."""
ENOUGH_AS_SMALL = 20
"""No more is drawn once so many draws are as extreme (Besag and Clifford): nothing is unknown."""
NEGLIGIBLE = 1e-25
"""A chance that is lost in the rounding of others."""
FAR_ENDS = (0.02, 0.05, 0.1)
"""Shares of the seeds above the thresholds that count where the sources differ."""
N_TESTS = 300
"""What the smallest p-value is multiplied with, about: two kinds of judges, most of three folds
(1.5), and the tops of all scores, which amount to 30 independent ones with 70 judges and to 100
with 1,000, as measured on random scores."""


class Tops(NamedTuple):
    """Nested tops of one ranking of some of the items, and how likely few judges are in each."""

    judges: slice  # of all judges, in the order of names, those that are ranked here
    segment: np.ndarray  # (n,) the first top each item is in; their number: none
    log_chances: np.ndarray  # (tops, numbers) of at most 0, 1, ... judges, made comparable

    def smallest(self, drawn: np.ndarray) -> np.ndarray:
        """(draws,) the smallest chance over the tops; ``drawn`` (draws, judges) are their rows."""
        (n_tops, n_numbers), n_draws = self.log_chances.shape, len(drawn)
        of_draw = (n_tops + 1) * np.arange(n_draws)[:, None]
        cells = (of_draw + self.segment[drawn[:, self.judges]]).ravel()
        counts = np.bincount(cells, minlength=n_draws * (n_tops + 1))
        found = counts.reshape(n_draws, n_tops + 1)[:, :n_tops].cumsum(axis=1)
        # Beyond the numbers that the table goes up to, the chance of at most so many is 1.
        chances = self.log_chances[np.arange(n_tops), np.minimum(found, n_numbers - 1)]
        return np.asarray(chances.min(axis=1))


def anything_unknown(scores: np.ndarray, names: np.ndarray, is_judge: np.ndarray) -> float:
    """The p-value of "nothing in the pool is unknown", from judges missing at the top of rankings.

    ``scores`` (n, m) of pool and judges rank them in m ways; ``names`` are predicted classes.
    Neither may depend on which items are judges. The test holds whatever the shares of the known
    classes in the pool: among the items with one name they do not matter, and if all items were
    known, the judges would be a random part. The number of judges in a top is then a sum of
    hypergeometric numbers, one for each name. Tops are those of all items and those of each name,
    where an unknown class may hide that looks like one known class. How small the smallest p-value
    over all tops is by chance comes from random draws of the judges within names, the same for all
    scores, so that scores that say the same cost nothing.

    >>> scores = np.r_[np.arange(100.0), np.arange(50) + 200.0, np.arange(0, 100, 2) + 0.5]
    >>> is_judge = np.arange(200) >= 150
    >>> anything_unknown(scores[:, None], np.zeros(200, int), is_judge) < 1e-3
    True
    """
    testable = np.isin(names, names[is_judge]) & np.isin(names, names[~is_judge])
    if not testable.any():
        return 1.0
    order = np.argsort(names[testable], kind="stable")  # items of one name stand together
    scores, is_judge = scores[testable][order], is_judge[testable][order]
    _, sizes = np.unique(names[testable], return_counts=True)
    names = np.repeat(np.arange(len(sizes)), sizes)
    n_judges = np.bincount(names[is_judge])
    rankings = _all_tops(scores, sizes, n_judges)
    smallest = _smallest(rankings, np.flatnonzero(is_judge)[None])[0]
    n_tops = sum(len(tops.log_chances) for tops in rankings)
    # What is too rare for the draws is bounded by the sum over all tops.
    bound = float(np.exp(smallest + np.log(n_tops)))
    if bound <= 1 / (N_DRAWN + 1):
        return bound
    random, n_as_small, n_drawn = np.random.default_rng(0), 0, 0
    while n_drawn < N_DRAWN:
        drawn = _draw_judges(sizes, n_judges, AT_ONCE, random)
        n_as_small += int((_smallest(rankings, drawn) <= smallest + 1e-9).sum())
        n_drawn += AT_ONCE
        if n_as_small >= ENOUGH_AS_SMALL:
            break
    return (1 + n_as_small) / (1 + n_drawn)


def anything_unknown_in_any_mix(scores: np.ndarray, names: np.ndarray, labels: np.ndarray) -> float:
    """The same where the pool may mix the known classes otherwise and names may be wrong.

    ``labels`` (n,) are the classes of the judges, -1 for the pool. Then the judges of one name are
    of other classes than the items of the pool that are given it, and as many are left out as it
    takes. The largest p-value counts.
    """
    is_judge = labels >= 0
    p_value = anything_unknown(scores, names, is_judge)
    if p_value > SUSPICION or not is_judge.any():
        return p_value
    for stays in judges_in_mix_of_pool(Names.of(names, labels), np.random.default_rng(0)):
        tested = ~is_judge
        tested[is_judge] = stays
        p_value = max(p_value, anything_unknown(scores[tested], names[tested], is_judge[tested]))
    return p_value


def _all_tops(scores: np.ndarray, sizes: np.ndarray, n_judges: np.ndarray) -> list[Tops]:
    """The tops of each score, of all names together and of each, items being sorted by name."""
    n, starts, judge_starts = len(scores), _starts(sizes), _starts(n_judges)
    top_ends, random, found = top_sizes(n), np.random.default_rng(0), []
    by_name = []  # the same for every score: all items of a top have the name
    for i in range(len(sizes)) if len(sizes) > 1 else ():
        ends = top_sizes(sizes[i])
        # As many tests as there are names count as one.
        chances = _log_chances(ends[:, None], sizes[[i]], n_judges[[i]], weight=len(sizes))
        by_name.append((ends, chances))
    for score in scores.T:
        # Equal scores are in random order, so that neither pool nor judges come first.
        order = np.lexsort((random.random(n), -score))
        name = np.searchsorted(starts, order, side="right") - 1
        segment = _segments(order, top_ends, n)
        cells = segment[order] * len(sizes) + name
        in_segment = np.bincount(cells, minlength=(len(top_ends) + 1) * len(sizes))
        counts = in_segment.reshape(-1, len(sizes))[:-1].cumsum(axis=0)
        chances = _log_chances(counts, sizes, n_judges, weight=1)
        found.append(Tops(slice(None), segment, chances))
        for i, (ends, chances) in enumerate(by_name):
            judges = slice(judge_starts[i], judge_starts[i] + n_judges[i])
            found.append(Tops(judges, _segments(order[name == i], ends, n), chances))
    return found


def _starts(sizes: np.ndarray) -> np.ndarray:
    return np.asarray(np.cumsum(sizes) - sizes)


def _segments(order: np.ndarray, ends: np.ndarray, n: int) -> np.ndarray:
    """(n,) the first top that each item of ``order``, highest first, is in."""
    segment = np.full(n, len(ends))
    segment[order] = np.searchsorted(ends, np.arange(len(order)), side="right")
    return segment


def _log_chances(
    counts: np.ndarray, sizes: np.ndarray, n_judges: np.ndarray, *, weight: int
) -> np.ndarray:
    """(tops, numbers): each top has ``counts`` (tops, names) items of names of these sizes.

    ``weight`` multiplies the chances, to compare them with those of other rankings.
    """
    sums: list[np.ndarray] = []
    for size, n_own, in_top in zip(sizes, n_judges, counts.T, strict=True):
        numbers = np.arange(min(in_top.max(), n_own) + 1)
        masses = few_judges(numbers, size, n_own, in_top[:, None])
        # Far more judges than are likely play no part where few are found, not even in ratio: given
        # that a sum is small, its parts are smaller still (Efron). They would take most time.
        n_likely = masses.shape[1] - (masses[:, ::-1] > NEGLIGIBLE).argmax(axis=1)
        likely = [mass[:n] for mass, n in zip(masses, n_likely, strict=True)]
        both = zip(sums, likely, strict=True)
        sums = [np.convolve(total, mass) for total, mass in both] if sums else likely
    chances = np.zeros((len(sums), max(map(len, sums))))
    for row, of_top in zip(chances, sums, strict=True):
        row[: len(of_top)] = of_top
    return np.asarray(np.log(np.clip(np.cumsum(chances, axis=1), 1e-300, 1.0)) + np.log(weight))


def few_judges(found: np.ndarray, size: int, n_judges: int, in_top: np.ndarray) -> np.ndarray:
    """The hypergeometric chance of so many judges in a top of ``in_top`` items.

    Of all ``size`` items ``n_judges`` are judges.

    As scipy's, by a table of factorials: there are a million of them in a large pool.

    >>> few_judges(np.arange(3), 5, 2, np.array([[2]])).round(3).tolist()
    [[0.3, 0.6, 0.1]]
    """
    logs = gammaln(np.arange(size + 1) + 1.0)  # log n!
    others, n_others = in_top - found, size - n_judges
    is_possible = (found <= n_judges) & (others >= 0) & (others <= n_others)
    a, b = np.where(is_possible, found, 0), np.where(is_possible, others, 0)
    chance = logs[n_judges] - logs[a] - logs[n_judges - a]
    chance = chance + logs[n_others] - logs[b] - logs[n_others - b]
    chance = chance - logs[size] + logs[in_top] + logs[size - in_top]
    return np.where(is_possible, np.exp(chance), 0.0)


def chance_of_few_judges(is_top: np.ndarray, names: np.ndarray, is_judge: np.ndarray) -> float:
    """The chance of at most so many judges in one top, if judges are a random part of each name.

    >>> is_top, is_judge = np.arange(10) < 4, np.arange(10) >= 5
    >>> round(chance_of_few_judges(is_top, np.zeros(10, int), is_judge), 4)  # 5 of 210
    0.0238
    """
    _, name = np.unique(names, return_inverse=True)
    n_names = int(name.max()) + 1
    sizes, n_judges, in_top = (
        np.bincount(name[rows], minlength=n_names)
        for rows in (np.ones(len(name), bool), is_judge, is_top)
    )
    log_chances = _log_chances(in_top[None], sizes, n_judges, weight=1)[0]
    found = int((is_top & is_judge).sum())
    return float(np.exp(log_chances[min(found, len(log_chances) - 1)]))


def top_sizes(n: int) -> np.ndarray:
    """The numbers of items in the tops of a ranking of n.

    >>> top_sizes(40).tolist(), top_sizes(3).tolist()
    ([5, 6, 7, 8, 9, 10, 12, 13, 15, 18, 20, 23, 27, 31, 32], [2])
    """
    last = max(1, round(LAST_TOP * n))
    if last <= FIRST_TOP:
        return np.array([last])
    n_steps = int(np.log(last / FIRST_TOP) / np.log(STEP))
    sizes = np.round(FIRST_TOP * STEP ** np.arange(n_steps + 1)).astype(int)
    return np.unique(np.append(sizes, last))


def _smallest(rankings: list[Tops], drawn: np.ndarray) -> np.ndarray:
    return np.asarray(np.min([tops.smallest(drawn) for tops in rankings], axis=0))


def _draw_judges(
    sizes: np.ndarray, n_judges: np.ndarray, n: int, random: np.random.Generator
) -> np.ndarray:
    """(n, judges): rows of so many items of each name, drawn at random n times."""
    starts = _starts(sizes)
    drawn = [
        draw_parts(size, m, n, random) + start
        for size, m, start in zip(sizes, n_judges, starts, strict=True)
    ]
    return np.concatenate(drawn, axis=1)


def draw_parts(size: int, m: int, n: int, random: np.random.Generator) -> np.ndarray:
    """(n, m): m of ``size`` rows without repetition, n times.

    Draws of a few are made side by side, by the algorithm of Floyd, which ``choice`` follows, too:
    the k-th row is drawn from the first size - m + k, and is the last of these if it is taken.

    >>> np.sort(draw_parts(3, 3, 2, np.random.default_rng(0))).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    if m > FEW_DRAWN:
        choose = random.choice
        return np.stack([choose(size, m, replace=False, shuffle=False) for _ in range(n)])
    last, starts = np.arange(size - m, size), size * np.arange(n)
    cells = starts + random.integers(0, last, size=(n, m), endpoint=True).T
    taken = np.zeros(n * size, bool)
    for cell, otherwise in zip(cells, last[:, None] + starts, strict=True):
        np.copyto(cell, otherwise, where=taken[cell])
        taken[cell] = True
    return np.asarray((cells - starts).T)


def most_agree(p_values: Sequence[float]) -> float:
    """One p-value of several that depend on each other in any way: most of them must be small.

    K / k times the k-th smallest of K, k being the least majority (Rueger): at least k of K
    p-values are at most a with a probability of at most K a / k, by the inequality of Markov.

    >>> most_agree([0.001, 0.004, 0.9])
    0.006
    """
    k = len(p_values) // 2 + 1
    return min(1.0, len(p_values) / k * sorted(p_values)[k - 1])


def unknown_at_far_end(pool: np.ndarray, seeds: np.ndarray, tolerance: float) -> float:
    """The same where the seeds come from another source and were moved to that of the pool.

    They were moved by their middle, so up to a share ``tolerance`` of the pool may be known and lie
    above the seeds nevertheless: so many items do not count. Only far ends are tested, since the
    middle of the scores differs, too.

    >>> known, seeds = np.arange(100.0), np.arange(0.5, 100, 2)
    >>> unknown_at_far_end(np.append(known, np.full(60, 200.0)), seeds, 0.1) < 0.01
    True
    >>> unknown_at_far_end(np.append(known, np.full(10, 200.0)), seeds, 0.1) > 0.5
    True
    """
    p = [1.0]
    for share in FAR_ENDS:
        threshold = np.quantile(seeds, 1 - share)
        n_seeds = int((seeds > threshold).sum())
        n_pool = int((pool > threshold).sum()) - ceil(tolerance * len(pool))
        if n_pool > 0:
            whole = len(pool) + len(seeds)
            p.append(float(stats.hypergeom.cdf(n_seeds, whole, len(seeds), n_seeds + n_pool)))
    return min(1.0, len(FAR_ENDS) * min(p))


def findable_share(n_pool: int, n_judges: int, level: float) -> float:
    """The share of the pool from which on a class apart from all known ones would be found.

    The smallest top of the ranking that the test rejects where no judge is in it.

    >>> round(findable_share(5_000, 2_000, 0.01), 4), findable_share(100, 5, 0.01)
    (0.0062, 1.0)
    """
    sizes = top_sizes(n_pool + n_judges)
    sizes = sizes[sizes <= n_pool]
    logs = gammaln(np.arange(n_pool + n_judges + 1) + 1.0)  # log n!
    # log C(N, k) over the pool alone, minus that over pool and judges
    judged = logs[n_pool] - logs[n_pool - sizes] - (logs[-1] - logs[n_pool + n_judges - sizes])
    enough = sizes[judged <= np.log(level / N_TESTS)]
    return float(enough[0] / n_pool) if len(enough) else 1.0
