"""Records -> figures; reads nothing else."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from scipy.stats import rankdata

from s2osc.bench.figures.drawing import (
    BAR_STYLES,
    DARK,
    METRIC_NAMES,
    Axes,
    Figure,
    Setting,
    add_legend,
    add_note,
    add_text,
    add_title,
    by_setting,
    counts_in_words,
    finished,
    make_figure,
    name_settings,
    offset_of,
    panel_grid,
    setting_of,
    styled,
)
from s2osc.bench.figures.embeddings import draw_counterfactuals, draw_embeddings, draw_gallery
from s2osc.bench.figures.ranking import draw_ranking
from s2osc.bench.figures.streams import STREAM_FIGURES, Drawing
from s2osc.bench.records import Record, partition_of
from s2osc.bench.tables.runs import by_size
from s2osc.errors import DataError, S2OSCWarning

METRICS = tuple(METRIC_NAMES)
SECONDS = "seconds_total"
K = "filtering.k"  # the setting
FEWEST_SECONDS = 0.05  # records hold tenths of a second, and a logarithm needs more than none


def figures_for(name: str, records: Sequence[Record]) -> dict[str, Figure]:
    """The figures of one experiment by name; one its records cannot fill yet is left out.

    Sizes are never mixed: the largest has the plain names, others have theirs added.
    """
    figures = {}
    for place, size in enumerate(by_size(records) or [""]):
        mine = [record for record in records if (record.get("size") or "") == size]
        for kind, draw in FIGURES.get(name, {}).items():
            what = f"{kind}-{size}" if place else kind
            try:
                figures[what] = draw(mine)
            except DataError as error:
                warnings.warn(f"{name}: no figure {what!r}: {error}", S2OSCWarning, stacklevel=2)
    return figures


@styled
def draw_bars(records: Sequence[Record], metrics: Sequence[str] = METRICS) -> Figure:
    """A panel per data set and number of unknown classes; methods best first by metric one."""
    panels = by_setting(finished(records))
    methods = _in_order(panels, metrics[0])[::-1]
    height = 0.5 + 0.13 * len(methods) * (len(metrics) + 0.7)
    figure, axes_of, shared = panel_grid(panels, 2.3, height)
    for setting, axes in axes_of.items():
        _set_rows(axes, methods, panels[setting])
        for place, metric in enumerate(metrics):
            _draw_bars_on(axes, panels[setting], methods, metric, place, len(metrics))
        axes.set(xlim=(0, 1))
        axes.grid(axis="x")
    note = f"Mean and standard deviation over partitions ({_n_runs(panels)} each)."
    if len(metrics) > 1:
        add_legend(figure, figure.axes[0], note)
    else:
        add_note(figure, note)
    what = "answers" if len(metrics) > 1 else METRIC_NAMES.get(metrics[0], metrics[0])
    add_title(figure, f"{what[0].upper()}{what[1:]} on the pool", shared)
    return figure


def _draw_bars_on(
    axes: Axes,
    records: Sequence[Record],
    methods: Sequence[str],
    metric: str,
    place: int,
    n_metrics: int,
) -> None:
    values = {row: _values(records, metric, method) for row, method in enumerate(methods)}
    found = {row + offset_of(place, n_metrics): v for row, v in values.items() if v}
    style, height = BAR_STYLES[place % len(BAR_STYLES)], 0.8 / n_metrics
    axes.barh(
        list(found),
        [np.mean(numbers) for numbers in found.values()],
        height=height,
        xerr=[_deviation(numbers) for numbers in found.values()],
        error_kw={"linewidth": 1.1},
        color=style.colour,
        edgecolor="black",
        linewidth=0.6,
        hatch=style.hatch,
        label=METRIC_NAMES.get(metric, metric),
    )
    if metric == "f_out" and (reference := _values(records, "f_out_all_unknown")):
        axes.vlines(
            [float(np.mean(reference))] * len(found),
            [row - height / 2 for row in found],
            [row + height / 2 for row in found],
            color="black",
            linewidth=2.2,
            label="F_out of calling everything unknown",
        )


@styled
def draw_k_sweep(records: Sequence[Record]) -> Figure:
    """Each metric against K, one column per data set; a level line where K was left to choose."""
    panels = by_setting(_with_k(finished(records)))
    names, shared = name_settings(panels)
    figure = make_figure(1.2 + 2.6 * len(panels), 0.9 + 1.6 * len(METRICS))
    grid = figure.subplots(len(METRICS), len(panels), squeeze=False, sharex="col", sharey="col")
    sweeps = {setting: _by_k(mine) for setting, mine in panels.items()}
    for column, (setting, by_k) in zip(grid.T, sweeps.items(), strict=True):
        for axes, metric in zip(column, METRICS, strict=True):
            _draw_sweep_on(axes, by_k, metric)
        column[0].set_title(names[setting])
        column[-1].set_xlabel("K")
        _set_k_axis(column[-1], sorted(k for k in by_k if k is not None))
    for axes, metric in zip(grid[:, 0], METRICS, strict=True):
        axes.set_ylabel(METRIC_NAMES[metric])
    n_runs = counts_in_words(len(runs) for by_k in sweeps.values() for runs in by_k.values())
    title = "Answers against K, the number of items taken as distinct unknowns"
    add_title(figure, title, shared)
    add_note(
        figure,
        f"Mean and, as a band, standard deviation over partitions ({n_runs} each). "
        "Dashed: the method chose K itself.",
    )
    return figure


def _with_k(records: Sequence[Record]) -> list[Record]:
    """The records of methods that have a K; others may have been run by name."""
    found = [record for record in records if K in record["settings"]]
    if not found:
        raise DataError(
            f"none of {len(records)} records is of a method with a K; run s2osc or s2osc-paper-k300"
        )
    return found


def _by_k(records: Sequence[Record]) -> dict[int | None, list[Record]]:
    by_k: dict[int | None, list[Record]] = {}
    for record in records:
        k = record["settings"][K]
        runs = by_k.setdefault(k, [])
        if partition_of(record) in map(partition_of, runs):
            raise DataError(
                f"{setting_of(record)}, partition {partition_of(record)} has two records of "
                f"K = {k or 'auto'}; a sweep shows one method"
            )
        runs.append(record)
    return by_k


def _draw_sweep_on(axes: Axes, by_k: dict[int | None, list[Record]], metric: str) -> None:
    values = {k: _values(runs, metric) for k, runs in by_k.items()}
    ks = sorted(k for k, numbers in values.items() if k is not None and numbers)
    means = np.array([np.mean(values[k]) for k in ks])
    spread = np.array([_deviation(values[k]) for k in ks])
    if chosen := values.get(None):
        level, around = float(np.mean(chosen)), _deviation(chosen)
        axes.axhspan(level - around, level + around, facecolor="none", edgecolor="0.8", hatch="///")
        axes.axhline(level, color="#b5482a", linestyle=(0, (4, 1.5)), linewidth=1.5)
        name = by_k[None][0]["method"]
        name = name if "auto" in name else f"{name}, K auto"
        add_text(axes, 1.02, level, name.replace(", ", "\n"))
    axes.fill_between(ks, means - spread, means + spread, color="0.5", alpha=0.3, linewidth=0)
    axes.plot(ks, means, marker="o", color=DARK, markersize=4.5)
    axes.grid(axis="y")


def _set_k_axis(axes: Axes, ks: Sequence[int]) -> None:
    """Ticks where K was tried, on a scale that keeps them apart, numbered where there is room."""
    if not ks:
        return
    is_wide = ks[-1] >= 10 * ks[0]
    axes.set_xscale("log" if is_wide else "linear")
    places = np.log(ks) if is_wide else np.array(ks, float)
    texts, last = [], -np.inf
    for k, place in zip(ks, places, strict=True):
        has_room = place - last >= 0.13 * np.ptp(places)
        texts.append(str(k) if has_room else "")
        last = place if has_room else last
    axes.set_xticks(ks, texts)
    axes.minorticks_off()


@styled
def draw_runtime(records: Sequence[Record]) -> Figure:
    """Seconds of every method on every data set, quickest first, on a logarithmic scale."""
    panels = by_setting(finished(records))
    methods = _in_order(panels, SECONDS)
    figure, axes_of, shared = panel_grid(panels, 2.3, 0.7 + 0.19 * len(methods))
    for setting, axes in axes_of.items():
        mine = panels[setting]
        _set_rows(axes, methods, mine)
        values = {row: _values(mine, SECONDS, method) for row, method in enumerate(methods)}
        found = {row: seconds for row, seconds in values.items() if seconds}
        lows, highs, means = (list(map(of, found.values())) for of in (min, max, np.mean))
        axes.hlines(list(found), lows, highs, color="0.4", linewidth=1.2)
        axes.plot(means, list(found), "o", color=DARK, markersize=4.5)
        axes.set(xlabel="seconds")
        axes.grid()
    _set_seconds(figure.axes[0], _values(finished(records), SECONDS))
    add_title(figure, "Time of a run", shared)
    add_note(
        figure,
        f"Mean, and a line from the shortest to the longest of {_n_runs(panels)} runs each; "
        "logarithmic scale.",
    )
    return figure


def _set_seconds(axes: Axes, seconds: Sequence[float]) -> None:
    low, high = min(seconds) / 1.5, max(seconds) * 1.5
    for steps in ((1,), (1, 3), (1, 2, 5)):
        ticks = [step * 10.0**n for n in range(-2, 8) for step in steps]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) >= 3:
            break
    axes.set_xscale("log")
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlim(low, high)


def _set_rows(axes: Axes, methods: Sequence[str], records: Sequence[Record]) -> None:
    """One row per method, from the top; a row without records says so."""
    axes.set_yticks(range(len(methods)), methods)
    axes.set_ylim(len(methods) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    for row, method in enumerate(methods):
        if method not in {record["method"] for record in records}:
            add_text(axes, 0.03, row, "no record")


def _values(records: Sequence[Record], metric: str, method: str | None = None) -> list[float]:
    """The figures that exist, of one method or of all."""
    mine = [record for record in records if method in (None, record["method"])]
    if metric == SECONDS:
        return [max(FEWEST_SECONDS, record[SECONDS]) for record in mine]
    return [record["metrics"][metric] for record in mine if metric in record["metrics"]]


def _deviation(values: Sequence[float]) -> float:
    return float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def _n_runs(panels: Mapping[Setting, Sequence[Record]]) -> str:
    """How many records stand behind a mean."""
    methods = [[record["method"] for record in records] for records in panels.values()]
    return counts_in_words(n for of_panel in methods for n in Counter(of_panel).values())


def _in_order(panels: Mapping[Setting, Sequence[Record]], metric: str) -> list[str]:
    """Methods by their mean place among the methods of each panel, lowest figures first.

    Not by their mean figure: one that ran on easy data alone would seem the best.
    """
    places: dict[str, list[float]] = {}
    for records in panels.values():
        values = {r["method"]: _values(records, metric, r["method"]) for r in records}
        found = {method: np.mean(numbers) for method, numbers in values.items() if numbers}
        ranks = rankdata(list(found.values())) / max(1, len(found))
        for method, rank in zip(found, ranks, strict=True):
            places.setdefault(method, []).append(float(rank))
    methods = sorted({record["method"] for records in panels.values() for record in records})
    return sorted(methods, key=lambda method: np.mean(places.get(method, [0.0])))


FIGURES: dict[str, dict[str, Drawing]] = {
    "table1": {"ranking": draw_ranking, "f1": partial(draw_bars, metrics=("f1",))},
    "table1-released": {"bars": draw_bars},
    "several-3": {"bars": draw_bars},
    "several-5": {"bars": draw_bars},
    "large": {"bars": draw_bars},
    "ablation": {"bars": draw_bars},
    "k-sweep": {"k-sweep": draw_k_sweep},
    "embeddings": {"embeddings": draw_embeddings},
    "case-study": {"gallery": draw_gallery, "counterfactuals": draw_counterfactuals},
    "runtime": {"runtime": draw_runtime},
    **STREAM_FIGURES,
}
"""By experiment: its figures by name."""
