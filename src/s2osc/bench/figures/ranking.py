"""Which methods can be told apart over many runs: mean ranks and their critical difference.

J. Demsar, Statistical comparisons of classifiers over multiple data sets, JMLR 7, 2006: in every
cell (a data set and a partition of its classes) the methods are ranked, the Friedman test asks
whether their mean ranks differ at all (of two methods, the sign test), the Nemenyi
test which of them do.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
from scipy.stats import binomtest, friedmanchisquare, rankdata, studentized_range

from s2osc.bench.figures.drawing import (
    METRIC_NAMES,
    Axes,
    Figure,
    add_note,
    add_title,
    finished,
    make_figure,
    setting_of,
    styled,
)
from s2osc.bench.records import Record, partition_of
from s2osc.errors import DataError

SIGNIFICANCE = 0.05
FEWEST_CELLS = 2


@dataclass(frozen=True)
class MethodRanks:
    """Methods from best to worst, and which of them no test tells apart."""

    methods: tuple[str, ...]
    mean_ranks: np.ndarray  # (k,) rising, 1 is best
    n_cells: int
    p_value: float  # of the Friedman test; of two methods, of the sign test
    difference: float  # critical, of two mean ranks
    joined: tuple[tuple[int, int], ...]  # first and last of methods that are not distinguishable
    left_out: tuple[str, ...]  # methods that lack too many cells


def rank_methods(scores: Mapping[Hashable, Mapping[str, float]]) -> MethodRanks:
    """Rank methods by their scores, higher is better, in the cells that all of them have.

    Methods with the fewest cells are left out until the others share half of the cells.
    """
    methods, cells = comparable_methods(scores)
    if len(methods) < 2 or len(cells) < FEWEST_CELLS:
        raise DataError(
            f"a ranking needs 2 methods that share {FEWEST_CELLS} cells (data set and partition); "
            f"{len(scores)} cells were found, of which {', '.join(methods) or 'no methods'} share "
            f"{len(cells)}: run more methods or partitions"
        )
    values = np.array([[scores[cell][method] for method in methods] for cell in cells])
    ranks = rankdata(-values, axis=1)
    mean_ranks = ranks.mean(axis=0)
    best_first = np.argsort(mean_ranks, kind="stable")
    p_value = p_value_of(values)
    difference = critical_difference(len(methods), len(cells))
    # Where the Friedman test finds no difference at all, none may be looked for between pairs.
    reach = difference if p_value < SIGNIFICANCE else inf
    return MethodRanks(
        methods=tuple(methods[i] for i in best_first),
        mean_ranks=mean_ranks[best_first],
        n_cells=len(cells),
        p_value=p_value,
        difference=difference,
        joined=join_methods(mean_ranks[best_first], reach),
        left_out=tuple(sorted({m for cell in scores.values() for m in cell} - set(methods))),
    )


def comparable_methods(
    scores: Mapping[Hashable, Mapping[str, float]],
) -> tuple[list[str], list[Hashable]]:
    """The methods that share at least half of the cells, and the cells that they share.

    >>> comparable_methods({0: {"a": 1, "b": 1, "c": 1}, 1: {"a": 1, "b": 1}, 2: {"a": 1, "b": 1}})
    (['a', 'b'], [0, 1, 2])
    """
    methods = sorted({method for cell in scores.values() for method in cell})
    n_cells = {method: sum(method in cell for cell in scores.values()) for method in methods}
    while True:
        shared = [cell for cell, found in scores.items() if found.keys() >= set(methods)]
        if 2 * len(shared) >= len(scores) or len(methods) < 2:
            return methods, shared
        methods.remove(min(methods, key=lambda method: n_cells[method]))


def p_value_of(values: np.ndarray) -> float:
    """How likely mean ranks this different are where methods do not differ; (cells, methods).

    Friedman's test, which takes three methods at least; of two, the sign test.
    """
    if values.shape[1] == 2:
        n_better, n_worse = (int(np.sum(s * (values[:, 0] - values[:, 1]) > 0)) for s in (1, -1))
        n_cells = n_better + n_worse
        return float(binomtest(n_better, n_cells).pvalue) if n_cells else 1.0
    with np.errstate(invalid="ignore"):  # 0 / 0 where all methods tie in every cell
        p_value = float(friedmanchisquare(*values.T).pvalue)
    return 1.0 if np.isnan(p_value) else p_value


def critical_difference(n_methods: int, n_cells: int) -> float:
    """By how much two mean ranks must differ to be told apart (Nemenyi).

    >>> round(critical_difference(3, 10), 3)
    1.048
    """
    quantile = float(studentized_range.ppf(1 - SIGNIFICANCE, n_methods, inf)) / sqrt(2)
    return quantile * sqrt(n_methods * (n_methods + 1) / (6 * n_cells))


def join_methods(mean_ranks: np.ndarray, difference: float) -> tuple[tuple[int, int], ...]:
    """First and last of the longest runs of methods whose rising ranks differ by no more.

    >>> join_methods(np.array([1.0, 1.5, 2.2, 4.0]), 1.0)
    ((0, 1), (1, 2))
    """
    runs: list[tuple[int, int]] = []
    for first, rank in enumerate(mean_ranks):
        last = int(np.flatnonzero(mean_ranks - rank <= difference + 1e-9)[-1])
        if last > first and (not runs or last > runs[-1][1]):
            runs.append((first, last))
    return tuple(runs)


@styled
def draw_ranking(records: Sequence[Record], metric: str = "f1") -> Figure:
    """Mean ranks of methods at one size, and which of them no test tells apart."""
    size = _size_of(finished(records))
    scores: dict[Any, dict[str, float]] = {}
    for record in finished(records):
        cell = (setting_of(record), partition_of(record))
        found = scores.setdefault(cell, {})
        if record["method"] in found:
            raise DataError(
                f"{cell[0]}, partition {cell[1]} has two records of {record['method']}; "
                "a ranking takes one of each method"
            )
        if metric in record["metrics"]:
            found[record["method"]] = record["metrics"][metric]
    ranking = rank_methods(scores)
    n_rows = (len(ranking.methods) + 1) // 2
    figure = make_figure(7.5, 1.7 + 0.24 * n_rows + 0.09 * len(ranking.joined))
    draw_ranking_on(figure.subplots(), ranking)
    name = METRIC_NAMES.get(metric, metric)
    cells = f"{ranking.n_cells} cells (data set and partition)"
    add_title(figure, f"Ranks by {name} over {cells}" + (f", {size} size" if size else ""))
    add_note(figure, _verdict(ranking))
    return figure


def _size_of(records: Sequence[Record]) -> str:
    sizes = sorted({record.get("size") or "" for record in records})
    if len(sizes) > 1:
        found = ", ".join(size or "none" for size in sizes)
        raise DataError(f"records of the sizes {found} were found; a ranking takes those of one")
    return sizes[0]


def _verdict(ranking: MethodRanks) -> str:
    differ = "differ" if ranking.p_value < SIGNIFICANCE else "do not differ beyond chance"
    p_value = "p < 0.001" if ranking.p_value < 0.001 else f"p = {ranking.p_value:.3f}"
    left_out = ", ".join(ranking.left_out)
    test = "Friedman" if len(ranking.methods) > 2 else "sign"
    return (
        f"Mean ranks {differ} ({test} test, {p_value}). Methods joined by a bar "
        f"cannot be told apart (Nemenyi test at {SIGNIFICANCE}, which takes cells as independent)."
    ) + (f" Left out, with too few cells: {left_out}." if left_out else "")


def draw_ranking_on(axes: Axes, ranking: MethodRanks) -> None:
    """A critical-difference diagram: best at the left, bars join what cannot be told apart."""
    k = len(ranking.methods)
    n_left = ceil(k / 2)
    top = 0.9 + 0.28 * len(ranking.joined)  # of the first name, below the bars
    axes.set(xlim=(0.3 - 0.22 * k, k + 0.7 + 0.22 * k), ylim=(top + 0.8 * n_left, -2.4))
    axes.set_axis_off()
    axes.plot([1, k], [0, 0], color="black", linewidth=1.2)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0, -0.25], color="black", linewidth=1.2)
        axes.text(rank, -0.4, str(rank), ha="center", va="bottom")
    axes.text(0.8, -0.2, "mean rank", ha="right", va="bottom", style="italic")
    _draw_ruler(axes, ranking.difference)
    for place, (name, rank) in enumerate(zip(ranking.methods, ranking.mean_ranks, strict=True)):
        is_left = place < n_left
        row = top + 0.8 * (place if is_left else k - 1 - place)
        end = 0.5 if is_left else k + 0.5
        axes.plot([rank, rank, end], [0, row, row], color="0.35", linewidth=0.9)
        side, gap = ("right", -0.08) if is_left else ("left", 0.08)
        axes.text(end + gap, row, f"{name}  {rank:.2f}", ha=side, va="center")
    for line, (first, last) in enumerate(ranking.joined):
        ends = ranking.mean_ranks[[first, last]] + (-0.06, 0.06)
        height = 0.4 + 0.28 * line
        axes.plot(ends, [height] * 2, color="black", linewidth=3.5, solid_capstyle="butt")


def _draw_ruler(axes: Axes, difference: float) -> None:
    axes.plot([1, 1 + difference], [-1.5, -1.5], color="black", linewidth=1.2, marker="|")
    axes.text(
        1 + difference / 2, -1.65, f"critical difference {difference:.2f}", ha="center", va="bottom"
    )
