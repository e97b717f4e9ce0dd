"""Records of streams -> figures: when classes come, and how answers fare from window to window."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from s2osc.bench.figures.drawing import (
    DARK,
    METRIC_NAMES,
    Axes,
    Figure,
    Setting,
    add_legend,
    add_title,
    by_setting,
    counts_in_words,
    finished,
    make_figure,
    panel_grid,
    styled,
)
from s2osc.bench.methods import OURS
from s2osc.bench.records import Record, partition_of
from s2osc.errors import DataError

N_NAMED = 7
"""Lines that can be told apart without colour; those of other methods are thin and grey."""
LINES = (
    ("#b5482a", "s", (0, (5, 1.5))),
    ("#5b8db8", "^", (0, (1, 1))),
    ("#6a6a6a", "D", (0, (6, 1.5, 1, 1.5))),
    ("#8fb3d1", "v", "solid"),
    ("#c98a3c", "P", (0, (3, 1))),
    ("#3f3f3f", "X", (0, (1, 2.5))),
)


@styled
def draw_timeline(records: Sequence[Record]) -> Figure:
    """Which classes come in which window, a panel per data set; of the first partition."""
    found = [record for record in records if record.get("timeline")]
    if not found:
        raise DataError(f"none of {len(records)} records tells when classes come")
    panels = {s: min(mine, key=partition_of) for s, mine in by_setting(found).items()}
    n_classes = max(len(record["emerges"]) for record in panels.values())
    figure, axes_of, shared = panel_grid(panels, 2.8, 0.7 + 0.24 * n_classes)
    for setting, axes in axes_of.items():
        _draw_timeline_on(axes, panels[setting])
    add_title(figure, "Classes of the stream, window by window", shared)
    partitions = counts_in_words(partition_of(record) for record in panels.values())
    add_legend(figure, figure.axes[0], f"Partition {partitions}. Numbers are those of items.")
    return figure


def _draw_timeline_on(axes: Axes, record: Record) -> None:
    """A bar per class and window; what is labelled at the beginning stands left of window 1."""
    emerges, timeline = np.array(record["emerges"]), np.array(record["timeline"])
    first = np.flatnonzero(emerges == 0)
    common: dict[str, Any] = {"height": 0.72, "edgecolor": "black", "linewidth": 0.5}
    axes.barh(first, 0.9, left=-0.45, color="white", hatch="....", label="labelled", **common)
    classes, windows = np.nonzero(timeline)
    is_new = emerges[classes] == windows + 1
    for mine, colour, hatch, what in (
        (~is_new, "#d3e3f1", "", "known"),
        (is_new, "#e3a587", "////", "new, so unknown"),
    ):
        left = windows[mine] + 0.55
        axes.barh(classes[mine], 0.9, left=left, color=colour, hatch=hatch, label=what, **common)
    for c, window in zip(classes.tolist(), windows.tolist(), strict=True):
        axes.text(
            *(window + 1, c, str(timeline[c, window])),
            ha="center",
            va="center",
            fontsize=6,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85},
        )
    # Not as labels of ticks: axes are shared, and classes differ between data sets.
    for place, name in enumerate([*record["known_classes"], *record["unknown_classes"]]):
        axes.text(-0.55, place, str(name), ha="right", va="center", fontsize=7)
    n_windows = timeline.shape[1]
    every = max(1, n_windows // 5)
    ticks = range(every, n_windows + 1, every)
    axes.set_xticks([0, *ticks], ["start", *map(str, ticks)])
    room = 0.8 + 0.3 * n_windows  # for the names of classes, whatever the scale
    axes.set(xlim=(-room, n_windows + 0.6), ylim=(len(emerges) - 0.4, -0.6), xlabel="window")
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


@styled
def draw_windows(records: Sequence[Record], metric: str = "accuracy") -> Figure:
    """A figure over the windows, a line per method and a panel per data set."""
    series = {s: _by_method(mine, metric) for s, mine in by_setting(finished(records)).items()}
    return _draw_lines(series, records, f"{METRIC_NAMES.get(metric, metric)} of the window")


@styled
def draw_stages(records: Sequence[Record]) -> Figure:
    """What is left of the classes of the beginning, stage by stage: acc_{k,1}."""
    series: dict[Setting, dict[str, list[list[float]]]] = {}
    for setting, mine in by_setting(finished(records)).items():
        of_method = series.setdefault(setting, {})
        for record in mine:
            stages = record.get("stages") or []
            of_method.setdefault(record["method"], []).append([row[0] for row in stages])
    what = "accuracy on the classes of the beginning, never seen"
    return _draw_lines(series, records, what, axis="stage (0: the beginning)", first=0)


DRIFT = {
    "known_accuracy": "accuracy on known classes",
    "stated_accuracy": "the same, as the audit states it",
    "learnt_wrong": "items learnt under a wrong name",
}


@styled
def draw_drift(record: Record) -> Figure:
    """How a stream that nobody answers goes astray: what is true, and what it believes."""
    figure = make_figure(5.2, 3.5)
    axes, names = figure.subplots(), list(DRIFT.values())
    for metric, name in DRIFT.items():
        _draw_line(axes, name, _by_window(record, metric), names)
    axes.set(ylim=(0, 1.02))
    _set_axes(axes, "window")
    add_title(figure, f"Drift of a self-taught stream: {record['dataset']}")
    add_legend(figure, axes, "Shares of items of each window.")
    return figure


def _by_method(records: Sequence[Record], metric: str) -> dict[str, list[list[float]]]:
    """Of each method, the figures of every run in the order of windows; nan where one has none."""
    found: dict[str, list[list[float]]] = {}
    for record in records:
        found.setdefault(record["method"], []).append(_by_window(record, metric))
    return found


def _by_window(record: Record, metric: str) -> list[float]:
    return [w["metrics"].get(metric, np.nan) for w in record.get("windows") or ()]


def _draw_lines(
    series: Mapping[Setting, Mapping[str, Sequence[Sequence[float]]]],
    records: Sequence[Record],
    what: str,
    *,
    axis: str = "window",
    first: int = 1,
) -> Figure:
    """A panel per setting, a line per method; ``first`` is the number of the first place."""
    if not any(run for of in series.values() for runs in of.values() for run in runs):
        raise DataError(f"none of {len(records)} records is of a stream")
    named = _named(series)
    figure, axes_of, shared = panel_grid(series, 2.8, 2.6)
    for setting, axes in axes_of.items():
        of_method = series[setting]
        others = [method for method in of_method if method not in named]
        for method in [*others, *(each for each in named if each in of_method)]:
            _draw_line(axes, method, mean_by_place(of_method[method]), named, first)
        _set_axes(axes, axis)
    # A name for every line that some panel has, whichever panel that is.
    _complete_legend(figure.axes[0], named)
    n_runs = counts_in_words(len(runs) for of in series.values() for runs in of.values())
    note = f"Mean over partitions ({n_runs} each)."
    if any(method not in named for of in series.values() for method in of):
        note += " Thin and grey: the other methods."
    add_title(figure, f"{what[0].upper()}{what[1:]}", shared)
    add_legend(figure, figure.axes[0], note)
    return figure


def _set_axes(axes: Axes, what: str) -> None:
    axes.set(xlabel=what)
    axes.locator_params(axis="x", integer=True)
    axes.grid(axis="y")


def mean_by_place(runs: Sequence[Sequence[float]]) -> list[float]:
    """The mean at each place over the runs that reach it.

    >>> mean_by_place([[1.0, 2.0, 3.0], [3.0]])
    [2.0, 2.0, 3.0]
    """
    longest = max(map(len, runs), default=0)
    means = []
    for place in range(longest):
        here = [run[place] for run in runs if len(run) > place and not np.isnan(run[place])]
        means.append(float(np.mean(here)) if here else float("nan"))
    return means


def _named(series: Mapping[Setting, Mapping[str, Sequence[Sequence[float]]]]) -> list[str]:
    """Ours first, then the methods with the best means, as many as can be told apart."""
    means: dict[str, list[float]] = {}
    for of_method in series.values():
        for method, runs in of_method.items():
            found = [value for run in runs for value in run if not np.isnan(value)]
            means.setdefault(method, []).append(float(np.mean(found)) if found else 0.0)
    best = sorted(means, key=lambda m: (m != OURS, -float(np.mean(means[m]))))
    return best[:N_NAMED]


def _line_style(method: str, named: Sequence[str]) -> dict[str, Any]:
    place = named.index(method)
    if place == 0:
        return {"color": DARK, "marker": "o", "linewidth": 2.2, "markersize": 5}
    colour, marker, line = LINES[place - 1]
    return {"color": colour, "marker": marker, "linestyle": line, "markersize": 4.5}


def _draw_line(
    axes: Axes, method: str, means: Sequence[float], named: Sequence[str], first: int = 1
) -> None:
    x = np.arange(first, first + len(means))
    if method in named:
        axes.plot(x, means, label=method, **_line_style(method, named))
    else:
        axes.plot(x, means, color="0.8", linewidth=0.8, zorder=1)


def _complete_legend(axes: Axes, named: Sequence[str]) -> None:
    there = axes.get_legend_handles_labels()[1]
    for method in named:
        if method not in there:
            axes.plot([], [], label=method, **_line_style(method, named))


Drawing = Callable[[Sequence[Record]], Figure]
OF_STREAM: dict[str, Drawing] = {
    "timeline": draw_timeline,
    "accuracy": draw_windows,
    "f_out": partial(draw_windows, metric="f_out"),
}
STREAM_FIGURES: dict[str, dict[str, Drawing]] = {
    "stream-single": OF_STREAM,
    "stream-multi": OF_STREAM,
    "stream-queries": OF_STREAM,
    "stream-k": OF_STREAM,
    "stream-long": OF_STREAM,
    "forgetting": {"stages": draw_stages},
}
"""By experiment: its figures by name."""
