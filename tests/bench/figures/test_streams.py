"""Figures of streams show what the records say."""

import numpy as np
import pytest

from s2osc.bench.experiments.streams import STREAMS
from s2osc.bench.figures.drawing import save
from s2osc.bench.figures.figures import FIGURES, figures_for
from s2osc.bench.figures.streams import (
    N_NAMED,
    STREAM_FIGURES,
    draw_drift,
    draw_stages,
    draw_timeline,
    draw_windows,
)
from s2osc.errors import DataError


def record(method="s2osc", partition=0, dataset="mnist", values=(0.9, 0.8)):
    return {
        "method": method,
        "dataset": dataset,
        "size": "cpu",
        "partition": partition,
        "known_classes": ["cat", "dog"],
        "unknown_classes": ["ship", "deer"],
        "emerges": [0, 0, 1, 2],
        "timeline": [[5, 6], [5, 0], [7, 5], [0, 8]],
        "metrics": {"accuracy": float(np.mean(values)), "f1": 0.5},
        "windows": [{"metrics": {"accuracy": value, "f_out": value / 2}} for value in values],
        "stages": [[0.9], [0.8, 0.9], [0.7, 0.8, 0.9]],
    }


def lines_of(figure):
    """By name: the heights of each line of the first panel; those without a name under None."""
    found = {}
    for line in figure.axes[0].get_lines():
        name = None if line.get_label().startswith("_") else line.get_label()
        found.setdefault(name, []).append(np.round(line.get_ydata(), 4).tolist())
    return found


def test_every_experiment_with_streams_has_figures():
    assert STREAM_FIGURES.keys() == STREAMS.keys()
    assert STREAM_FIGURES.items() <= FIGURES.items()


def test_a_line_is_the_mean_over_partitions_of_every_window():
    records = [record(values=(0.9, 0.8)), record(partition=1, values=(0.7,)), record("odin")]
    lines = lines_of(draw_windows(records))
    assert lines == {"s2osc": [[0.8, 0.8]], "odin": [[0.9, 0.8]]}
    assert lines_of(draw_windows(records, "f_out"))["s2osc"] == [[0.4, 0.4]]


def test_stages_show_what_is_left_of_the_beginning():
    figure = draw_stages([record()])
    assert lines_of(figure) == {"s2osc": [[0.9, 0.8, 0.7]]}
    [axes] = figure.axes
    assert axes.get_xlabel() == "stage (0: the beginning)"
    assert axes.get_lines()[0].get_xdata().tolist() == [0, 1, 2]
    [axes] = draw_windows([record()]).axes
    assert axes.get_xlabel() == "window"
    assert axes.get_lines()[0].get_xdata().tolist() == [1, 2]


def test_drift_is_what_is_true_beside_what_is_stated():
    drifting = record(values=(0.9, 0.8))
    for window, stated in zip(drifting["windows"], (0.95, 0.9), strict=True):
        window["metrics"] |= {"known_accuracy": stated - 0.1, "stated_accuracy": stated}
    drifting["windows"][1]["metrics"]["learnt_wrong"] = 0.25
    true, stated, wrong = lines_of(draw_drift(drifting)).values()
    assert (true, stated) == ([[0.85, 0.8]], [[0.95, 0.9]])
    np.testing.assert_array_equal(wrong, [[np.nan, 0.25]])


def test_more_methods_than_can_be_told_apart_are_thin_and_ours_never_is():
    records = [record(f"m{n}", values=(0.5 + n / 100,) * 2) for n in range(12)]
    lines = lines_of(draw_windows([*records, record(values=(0.1, 0.1))]))
    assert len(lines) == N_NAMED + 1
    assert "s2osc" in lines
    assert {"m11", "m10"} <= lines.keys()
    assert len(lines[None]) == 13 - N_NAMED


def test_lines_differ_in_more_than_colour():
    records = [record(f"m{n}") for n in range(N_NAMED)]
    drawn = draw_windows(records).axes[0].get_lines()
    assert len({line.get_marker() for line in drawn}) == N_NAMED


def test_a_method_that_only_another_panel_shows_is_in_the_legend():
    figure = draw_windows([record(), record("odin", dataset="svhn")])
    [legend] = figure.legends
    assert {text.get_text() for text in legend.get_texts()} == {"s2osc", "odin"}
    assert [axes.get_title() for axes in figure.axes] == ["mnist", "svhn"]


def test_the_timeline_has_a_bar_for_each_class_in_each_window_it_is_in():
    [axes] = draw_timeline([record(partition=1), record()]).axes
    bars = {bars.get_label(): len(bars) for bars in axes.containers}
    assert bars == {"labelled": 2, "known": 4, "new, so unknown": 2}
    texts = [text.get_text() for text in axes.texts]
    assert texts[-4:] == ["cat", "dog", "ship", "deer"]
    assert sorted(texts[:-4]) == sorted(["5", "6", "5", "7", "5", "8"])


def test_bars_of_new_classes_stand_in_the_window_they_emerge_in():
    [axes] = draw_timeline([record()]).axes
    new = next(bars for bars in axes.containers if bars.get_label().startswith("new"))
    centres = [(bar.get_x() + bar.get_width() / 2, bar.get_y() + 0.36) for bar in new]
    assert np.round(centres, 2).tolist() == [[1, 2], [2, 3]]


def test_records_that_are_not_of_streams_are_refused():
    plain = {key: record()[key] for key in ("method", "dataset", "unknown_classes", "metrics")}
    for draw in (draw_timeline, draw_windows, draw_stages):
        with pytest.raises(DataError, match="none of 1 records"):
            draw([plain])


def test_figures_are_saved_as_drawings_and_pictures(tmp_path):
    for name, figure in figures_for("stream-single", [record(), record("odin")]).items():
        paths = save(figure, tmp_path / name)
        assert [path.suffix for path in paths] == [".svg", ".png"]
        assert all(path.stat().st_size > 1_000 for path in paths)
    assert len(list(tmp_path.iterdir())) == 6
