"""Figures show what the records say, and are the same files whoever draws them."""

import base64
import importlib
import io
import sys
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from PIL import Image

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.figures.drawing import by_setting, make_figure, save, setting_of
from s2osc.bench.figures.embeddings import draw_counterfactuals, draw_embeddings, draw_gallery
from s2osc.bench.figures.figures import (
    FIGURES,
    draw_bars,
    draw_k_sweep,
    draw_runtime,
    figures_for,
)
from s2osc.bench.figures.ranking import (
    critical_difference,
    draw_ranking,
    join_methods,
    p_value_of,
    rank_methods,
)
from s2osc.errors import DataError, OutputError, S2OSCWarning, SettingsError


def record(method="odin", dataset="mnist", partition=0, *, n_unknown=1, seconds=10.0, **metrics):
    return {
        "method": method,
        "dataset": dataset,
        "partition": partition,
        "seed": partition,
        "size": "cpu",
        "known_classes": ["cat", "dog"],
        "unknown_classes": ["ship", "deer", "frog"][:n_unknown],
        "metrics": {"accuracy": 0.8, "f1": 0.7, "f_out": 0.6} | metrics,
        "seconds_total": seconds,
        "settings": {},
    }


def swept(k, partition=0, method="s2osc", **metrics):
    return record(method, partition=partition, **metrics) | {"settings": {"filtering.k": k}}


def with_pictures(kind, value, **changes):
    return record() | {"pictures": {kind: value}} | changes


def png(shade):
    buffer = io.BytesIO()
    Image.new("L", (4, 4), shade).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


EMBEDDING = {"x": [0, 500, 1000, 20], "y": [0, 10, 300, 40], "truth": [0, 1, -1, -1]}
EMBEDDED = with_pictures("embedding", EMBEDDING | {"label": [0, -1, -1, 1]})
GALLERY = with_pictures(
    "gallery",
    {
        "filtered": [png(10), png(20), png(30)],
        "filtered_true": [True, False, True],
        "unselected": [png(40)],
        "unselected_true": [True],
    },
)
COUNTERFACTUALS = with_pictures(
    "counterfactuals",
    {
        "original": [png(1), png(2)],
        "reconstruction": [png(3), png(4)],
        "counterfactual": [png(5), png(6)],
    },
)
RANKED = [
    record(method, partition=partition, f1=f1)
    for partition, scores in enumerate([(0.9, 0.8, 0.7), (0.9, 0.8, 0.8), (0.6, 0.8, 0.5)])
    for method, f1 in zip("abc", scores, strict=True)
]
DRAWN = {
    "embeddings": (draw_embeddings, [EMBEDDED]),
    "bars": (draw_bars, [record("odin"), record("cpe", f_out_all_unknown=0.5)]),
    "k-sweep": (draw_k_sweep, [swept(50), swept(300), swept(None)]),
    "gallery": (draw_gallery, [GALLERY]),
    "counterfactuals": (draw_counterfactuals, [COUNTERFACTUALS]),
    "ranking": (draw_ranking, RANKED),
    "runtime": (draw_runtime, [record("odin"), record("cpe", seconds=100.0)]),
}


def texts(figure):
    """Everything that can be read in a figure."""
    return " ".join(t.get_text() for t in figure.findobj(mpl.text.Text)).replace("\n", " ")


def row_names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def points(collection):
    return sorted(map(tuple, np.asarray(collection.get_offsets()).tolist()))


# All of them


@pytest.mark.parametrize(("draw", "records"), DRAWN.values(), ids=DRAWN.keys())
def test_every_figure_is_written_whole_as_svg_and_png(draw, records, tmp_path):
    svg, png_file = save(draw(records), tmp_path / "new" / "v1.2")
    assert (svg.name, png_file.name) == ("v1.2.svg", "v1.2.png")
    assert svg.read_text(encoding="utf-8").rstrip().endswith("</svg>")
    with Image.open(png_file) as picture:
        picture.load()
        assert min(picture.size) > 200
    assert sorted(path.name for path in svg.parent.iterdir()) == ["v1.2.png", "v1.2.svg"]


@pytest.mark.parametrize(("draw", "records"), DRAWN.values(), ids=DRAWN.keys())
def test_no_label_leaves_the_figure_or_covers_another(draw, records, drawn_texts):
    figure = draw(records)
    boxes = drawn_texts(figure)
    for text, box in boxes:
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= figure.bbox.x1 + 1, text
        assert box.y1 <= figure.bbox.y1 + 1, text
    for (text, one), (other_text, other) in combinations(boxes, 2):
        width = min(one.x1, other.x1) - max(one.x0, other.x0)
        height = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert min(width, height) < 1, (text, other_text)


@pytest.fixture
def drawn_texts(monkeypatch):
    """What draws a figure and returns each text that is seen in it, with its place."""
    draw, drawn = mpl.text.Text.draw, {}

    def note(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn[id(text)] = text
        return draw(text, renderer)

    def draw_and_list(figure):
        monkeypatch.setattr(mpl.text.Text, "draw", note)
        figure.canvas.draw()
        return [(text.get_text(), text.get_window_extent()) for text in drawn.values()]

    return draw_and_list


def test_two_drawings_of_the_same_records_are_the_same_files(tmp_path):
    for draw, records in (DRAWN["gallery"], DRAWN["embeddings"]):
        one, two = (save(draw(records), tmp_path / name) for name in ("one", "two"))
        for first, second in zip(one, two, strict=True):
            assert first.read_bytes() == second.read_bytes()


def test_settings_of_the_caller_are_neither_used_nor_changed(tmp_path):
    draw, records = DRAWN["bars"]
    (expected, _) = save(draw(records), tmp_path / "expected")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        before = dict(mpl.rcParams)
        (found, _) = save(draw(records), tmp_path / "found")
        assert dict(mpl.rcParams) == before
    assert found.read_bytes() == expected.read_bytes()


def test_a_place_that_cannot_be_written_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot write to .*name\.svg"):
        save(make_figure(2, 2), tmp_path / "file" / "name")


def test_without_matplotlib_the_user_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "s2osc.bench.figures.drawing")
    with pytest.raises(SettingsError, match=r"need Matplotlib.*`pip install s2osc\[bench\]`"):
        importlib.import_module("s2osc.bench.figures.drawing")


@pytest.mark.parametrize("draw", [draw_bars, draw_k_sweep, draw_ranking, draw_runtime])
def test_failed_runs_alone_are_no_figure(draw):
    failed = {key: value for key, value in record().items() if key != "metrics"}
    with pytest.raises(DataError, match="none of 1 records holds metrics"):
        draw([failed | {"error": {"kind": "DataError", "message": "no"}}])


@pytest.mark.parametrize("draw", [draw_embeddings, draw_gallery, draw_counterfactuals])
def test_records_without_pictures_are_no_figure(draw):
    with pytest.raises(DataError, match="none of 2 records holds pictures of the kind"):
        draw([record(), record() | {"pictures": {}}])


def test_each_experiment_has_its_figures():
    records = [swept(50), EMBEDDED, GALLERY, COUNTERFACTUALS]
    for name in ("several-3", "several-5", "table1-released", "large", "ablation"):
        assert list(figures_for(name, records[:1])) == ["bars"]
    assert list(figures_for("k-sweep", records[:1])) == ["k-sweep"]
    assert list(figures_for("embeddings", records)) == ["embeddings"]
    assert list(figures_for("case-study", records)) == ["gallery", "counterfactuals"]
    assert list(figures_for("runtime", records)) == ["runtime"]
    assert list(figures_for("table1", RANKED)) == list(FIGURES["table1"]) == ["ranking", "f1"]
    assert figures_for("shirt", records) == {}


def test_a_figure_that_records_cannot_fill_yet_is_left_out_with_a_warning():
    with pytest.warns(S2OSCWarning, match="table1: no figure 'ranking': a ranking needs 2 methods"):
        figures = figures_for("table1", [record()])
    assert list(figures) == ["f1"]


def test_figures_are_those_of_experiments():
    assert FIGURES.keys() <= EXPERIMENTS.keys()


def test_sizes_have_figures_of_their_own():
    smoke = [each | {"size": "smoke", "metrics": {"f1": 0.1}} for each in RANKED]
    alone = figures_for("table1", RANKED)
    both = figures_for("table1", [*smoke, *RANKED])
    assert list(both) == ["ranking", "f1", "ranking-smoke", "f1-smoke"]
    for what, figure in alone.items():
        assert texts(both[what]) == texts(figure)
        assert "cpu size" in texts(figure)
        assert "smoke size" in texts(both[f"{what}-smoke"])
        assert "cpu" not in texts(both[f"{what}-smoke"])
    assert row_names(both["f1"].axes[0]) == row_names(alone["f1"].axes[0])


def test_a_figure_that_one_size_cannot_fill_is_there_for_the_other():
    with pytest.warns(S2OSCWarning, match="table1: no figure 'ranking-smoke': a ranking needs"):
        figures = figures_for("table1", [*RANKED, record() | {"size": "smoke"}])
    assert list(figures) == ["ranking", "f1", "f1-smoke"]


def test_panels_go_by_unknown_classes_and_then_by_data_set():
    records = [record(dataset=d, n_unknown=n) for d in ("svhn", "mnist") for n in (3, 2)]
    assert [str(setting) for setting in by_setting(records)] == [
        "mnist, 2 unknown classes, cpu size",
        "svhn, 2 unknown classes, cpu size",
        "mnist, 3 unknown classes, cpu size",
        "svhn, 3 unknown classes, cpu size",
    ]


def test_records_older_than_sizes_and_partitions_are_drawn():
    old = {key: v for key, v in record().items() if key not in ("size", "partition")}
    assert str(setting_of(old)) == "mnist, 1 unknown class"
    draw_ranking([old | {"seed": seed, "method": m} for seed in range(2) for m in "abc"])


# Bars


def test_bars_are_as_long_as_the_means_and_lines_as_the_deviations():
    records = [record("good", partition=p, accuracy=a) for p, a in enumerate((0.9, 0.7, 0.8))] + [
        record("bad", accuracy=0.4)
    ]
    axes = draw_bars(records, ("accuracy", "f1")).axes[0]
    accuracy, f1 = (c for c in axes.containers if isinstance(c, mpl.container.BarContainer))
    assert row_names(axes) == ["good", "bad"]
    assert [bar.get_width() for bar in accuracy] == pytest.approx([0.8, 0.4])
    assert [bar.get_width() for bar in f1] == pytest.approx([0.7, 0.7])
    (lines,) = accuracy.errorbar.lines[2]
    ends = [segment[:, 0].tolist() for segment in lines.get_segments()]
    # deviation over n - 1: sqrt((0.1^2 + 0.1^2) / 2); one partition has none
    assert ends[0] == pytest.approx([0.7, 0.9])
    assert ends[1] == pytest.approx([0.4, 0.4])
    assert axes.yaxis_inverted()


def test_each_number_of_unknown_classes_has_a_panel():
    figure = draw_bars([record(n_unknown=n, accuracy=n / 10) for n in (1, 3)])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["mnist, 1 unknown class", "mnist, 3 unknown classes"]
    assert [axes.containers[1][0].get_width() for axes in figure.axes] == pytest.approx([0.1, 0.3])
    assert "cpu size" in texts(figure)


def test_a_method_without_a_record_in_a_panel_keeps_its_row_and_is_named():
    records = [record("a"), record("b", f1=0.9), record("a", "svhn")]
    mnist, svhn = draw_bars(records, ("f1",)).axes
    assert row_names(mnist) == ["b", "a"]
    assert [text.get_text() for text in svhn.texts] == ["no record"]
    assert svhn.texts[0].get_position()[1] == 0
    assert not mnist.texts


def test_a_method_that_ran_on_easy_data_alone_does_not_come_first():
    records = [record(m, "svhn", f1=v) for m, v in (("best", 0.5), ("worst", 0.3))]
    records += [record(m, "mnist", f1=v) for m, v in (("best", 0.99), ("easy", 0.95), ("worst", 0))]
    assert row_names(draw_bars(records, ("f1",)).axes[0]) == ["best", "easy", "worst"]


def test_the_f_out_of_calling_everything_unknown_stands_at_the_bars_of_f_out():
    records = [record(m, f_out_all_unknown=v) for m, v in (("a", 0.5), ("b", 0.6))]
    axes = draw_bars(records).axes[0]
    (marks,) = (c for c in axes.collections if c.get_label().startswith("F_out of calling"))
    assert [segment[0, 0] for segment in marks.get_segments()] == pytest.approx([0.55, 0.55])
    bars = next(c for c in axes.containers if c.get_label() == "F_out")
    assert [segment[:, 1].mean() for segment in marks.get_segments()] == pytest.approx(
        [bar.get_y() + bar.get_height() / 2 for bar in bars]
    )


def test_a_metric_that_a_run_has_not_is_no_bar():
    without = record("a")
    del without["metrics"]["f_out"]
    axes = draw_bars([without, record("b")]).axes[0]
    bars = next(c for c in axes.containers if c.get_label() == "F_out")
    assert [bar.get_width() for bar in bars] == [0.6]


# K


def test_the_sweep_shows_the_mean_of_each_metric_at_each_k():
    records = [
        swept(k, partition, accuracy=a + partition / 10, f_out=a)
        for k, a in ((300, 0.7), (50, 0.5), (1000, 0.6))
        for partition in (0, 1)
    ]
    accuracy, _, f_out = draw_k_sweep(records).axes
    (line,) = accuracy.lines
    assert line.get_xdata().tolist() == [50, 300, 1000]
    assert line.get_ydata() == pytest.approx([0.55, 0.75, 0.65])
    assert f_out.lines[0].get_ydata() == pytest.approx([0.5, 0.7, 0.6])
    band = accuracy.collections[0].get_paths()[0].vertices
    # two values 0.1 apart: a deviation of 0.1 / sqrt(2) around their mean
    assert band[:, 1].max() == pytest.approx(0.75 + 0.1 / 2**0.5)
    assert [axes.get_ylabel() for axes in (accuracy, f_out)] == ["accuracy", "F_out"]


def test_k_left_to_choose_is_a_level_line_with_its_own_name():
    figure = draw_k_sweep([swept(50), swept(300), swept(None, method="ours, K auto", f1=0.9)])
    level, sweep = figure.axes[1].lines
    assert list(level.get_ydata()) == [0.9, 0.9]
    assert sweep.get_xdata().tolist() == [50, 300]
    assert [text.get_text() for text in figure.axes[1].texts] == ["ours\nK auto"]
    assert "s2osc\nK auto" in [t.get_text() for t in draw_k_sweep([swept(None)]).axes[0].texts]


def test_a_sweep_of_two_methods_is_refused():
    with pytest.raises(DataError, match="partition 0 has two records of K = 50"):
        draw_k_sweep([swept(50, method="a"), swept(50, method="b")])


def test_a_method_without_k_is_no_part_of_a_sweep():
    figure = draw_k_sweep([swept(50), swept(300), record("msp", f1=0.1)])
    (line,) = figure.axes[1].lines
    assert line.get_ydata().tolist() == [0.7, 0.7]
    assert "msp" not in texts(figure)
    with pytest.raises(DataError, match="none of 1 records is of a method with a K; run s2osc"):
        draw_k_sweep([record("msp")])


def test_every_k_has_a_tick_and_a_number_where_there_is_room():
    axes = draw_k_sweep([swept(k) for k in (10, 100, 105, 1000)]).axes[-1]
    assert axes.get_xscale() == "log"
    assert axes.get_xticks().tolist() == [10, 100, 105, 1000]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10", "100", "", "1000"]
    assert draw_k_sweep([swept(100), swept(300)]).axes[-1].get_xscale() == "linear"


# Items


def test_an_embedding_shows_every_item_by_its_class_and_rings_wrong_answers():
    axes = draw_embeddings([EMBEDDED]).axes[0]
    by_name = {c.get_label(): points(c) for c in axes.collections}
    assert by_name == {
        "cat": [(0, 0)],
        "dog": [(500, 10)],
        "unknown: ship": [(20, 40), (1000, 300)],
        "wrong answer": [(20, 40), (500, 10)],
    }
    assert axes.get_title() == "odin (50 % wrong)"
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert low < 0
        assert high > 300
    assert axes.get_xlim()[1] > 1000


def test_pools_are_blocks_and_methods_are_panels():
    records = [
        EMBEDDED | {"method": method, "unknown_classes": unknown}
        for method in ("original", "cpe", "ours")
        for unknown in (["ship"], ["ship", "frog"])
    ]
    figure = draw_embeddings(records)
    assert len(figure.subfigs) == 2
    titles = [[axes.get_title().split(" (")[0] for axes in b.axes] for b in figure.subfigs]
    assert titles == [["original", "cpe", "ours"]] * 2
    assert "unknown: ship, frog" in texts(figure.subfigs[1])
    assert "2 unknown classes" in figure.subfigs[1].get_suptitle()


def test_many_classes_differ_in_shape_or_grey():
    names = [f"class {i}" for i in range(20)]
    axes = draw_embeddings([EMBEDDED | {"known_classes": names}]).axes[0]
    styles = {
        (c.get_paths()[0].vertices.tobytes(), c.get_facecolor().tobytes())
        for c in axes.collections[:20]
    }
    assert len(styles) == 20


def test_a_gallery_shows_the_images_and_marks_wrong_ones():
    figure = draw_gallery([GALLERY])
    taken, missed = figure.axes
    assert [int(image.get_array()[0, 0]) for image in taken.images] == [10, 20, 30]
    assert [int(image.get_array()[0, 0]) for image in missed.images] == [40]
    crosses = [line.get_xydata()[0].tolist() for line in taken.lines if line.get_marker() == "X"]
    # in the upper right corner of the second image
    assert len(crosses) == 1
    assert 1.5 < crosses[0][0] < 2
    assert 0 < crosses[0][1] < 0.5
    assert not missed.lines
    assert "1 wrongly" in taken.get_title()
    assert "ship unknown; known are cat, dog" in texts(figure)


def test_a_gallery_without_unselected_items_is_drawn(tmp_path):
    nothing_left = GALLERY["pictures"]["gallery"] | {"unselected": [], "unselected_true": []}
    assert save(draw_gallery([with_pictures("gallery", nothing_left)]), tmp_path / "gallery")


def test_counterfactuals_stand_below_their_originals():
    rows = draw_counterfactuals([COUNTERFACTUALS]).axes
    shown = [[int(image.get_array()[0, 0]) for image in axes.images] for axes in rows]
    assert shown == [[1, 2], [3, 4], [5, 6]]
    names = [axes.texts[0].get_text() for axes in rows]
    assert names == ["original", "reconstruction", "counterfactual"]


# Ranks


def test_mean_ranks_of_a_hand_example():
    # ranks: 1 2 3; 1 2.5 2.5 (a tie); 2 1 3
    cells = {0: (0.9, 0.8, 0.7), 1: (0.9, 0.8, 0.8), 2: (0.6, 0.8, 0.5)}
    ranking = rank_methods({cell: dict(zip("abc", s, strict=True)) for cell, s in cells.items()})
    assert ranking.methods == ("a", "b", "c")
    assert ranking.mean_ranks == pytest.approx([4 / 3, 5.5 / 3, 8.5 / 3])
    assert ranking.n_cells == 3
    assert ranking.left_out == ()


def test_the_critical_difference_is_that_of_the_tables():
    # Demsar 2006, q at 0.05: 2.343 for 3 methods, 2.569 for 4, 3.164 for 10
    assert critical_difference(3, 10) == pytest.approx(2.343 * (12 / 60) ** 0.5, abs=5e-4)
    assert critical_difference(4, 14) == pytest.approx(2.569 * (20 / 84) ** 0.5, abs=5e-4)
    assert critical_difference(10, 30) == pytest.approx(3.164 * (110 / 180) ** 0.5, abs=5e-4)


def test_where_all_methods_tie_in_every_cell_they_do_not_differ():
    assert p_value_of(np.full((6, 3), 2.0)) == p_value_of(np.full((6, 2), 2.0)) == 1.0


def test_two_methods_are_compared_by_the_sign_test():
    ranking = rank_methods({cell: {"a": cell % 6, "b": 0} for cell in range(6)})
    assert ranking.p_value == pytest.approx(2 * 0.5**5)  # five of five, and a tie
    records = [record(method, partition=p) for method in "ab" for p in range(3)]
    assert "(sign test, p = 1.000)" in texts(draw_ranking(records))


def test_methods_closer_than_the_critical_difference_are_joined_once():
    ranks = np.array([1.0, 1.2, 1.4, 3.0, 3.1])
    assert join_methods(ranks, 0.5) == ((0, 2), (3, 4))
    assert join_methods(ranks, 0.1) == ((3, 4),)
    assert join_methods(ranks, 9.0) == ((0, 4),)


def test_where_the_friedman_test_finds_nothing_all_are_joined():
    scores = {cell: {"a": cell % 2, "b": (cell + 1) % 2, "c": 0.5} for cell in range(40)}
    ranking = rank_methods(scores)
    assert ranking.p_value > 0.9
    assert ranking.joined == ((0, 2),)


def test_clear_differences_are_not_joined():
    ranking = rank_methods({cell: {"a": 3, "b": 2, "c": 1} for cell in range(20)})
    assert ranking.p_value < 0.001
    assert ranking.joined == ()


def test_a_method_with_few_cells_is_left_out_and_named():
    records = [record(m, partition=p, f1=ord(m) / 200) for m in "abc" for p in range(4)]
    figure = draw_ranking([*records, record("late", partition=0)])
    assert "over 4 cells" in texts(figure)
    assert "Left out, with too few cells: late." in texts(figure)
    assert "c  1.00" in texts(figure)


def test_cells_that_a_drawn_method_lacks_do_not_count():
    records = [record(m, partition=p, f1=0.5 + p / 10) for m in "ab" for p in range(4)]
    figure = draw_ranking([*records, *(record("c", partition=p, f1=0.1) for p in range(3))])
    assert "over 3 cells" in texts(figure)
    assert {"a  1.50", "b  1.50", "c  3.00"} <= {t.get_text() for t in figure.axes[0].texts}


def test_a_ranking_needs_methods_that_share_cells():
    with pytest.raises(DataError, match="a ranking needs 2 methods that share 2 cells"):
        draw_ranking([record("a", partition=0), record("b", partition=1)])
    with pytest.raises(DataError, match="two records of a; a ranking takes one"):
        draw_ranking([record("a"), record("a")])
    with pytest.raises(DataError, match="records of the sizes cpu, smoke were found; a ranking"):
        draw_ranking([*RANKED, record() | {"size": "smoke"}])


def test_the_diagram_puts_each_method_at_its_mean_rank_and_joins_by_bars():
    axes = draw_ranking(RANKED).axes[0]
    bars = [line for line in axes.lines if line.get_linewidth() > 3]
    assert len(bars) == 1
    assert bars[0].get_xdata() == pytest.approx([4 / 3 - 0.06, 8.5 / 3 + 0.06])
    feet = [line.get_xdata()[0] for line in axes.lines if len(line.get_xdata()) == 3]
    assert feet == pytest.approx([4 / 3, 5.5 / 3, 8.5 / 3])
    ruler = next(line for line in axes.lines if line.get_marker() == "|")
    assert np.diff(ruler.get_xdata()) == pytest.approx(critical_difference(3, 3))


# Time


def test_the_time_of_a_method_is_the_mean_of_its_runs_on_a_logarithmic_scale():
    records = [record("slow", partition=p, seconds=s) for p, s in enumerate((100.0, 300.0))]
    axes = draw_runtime([*records, record("quick", seconds=2.0)]).axes[0]
    assert row_names(axes) == ["quick", "slow"]
    assert list(axes.lines[0].get_xdata()) == [2, 200]
    (ranges,) = axes.collections
    assert ranges.get_segments()[1][:, 0].tolist() == [100, 300]
    assert axes.get_xscale() == "log"


def test_a_run_too_quick_to_be_timed_is_drawn_within_the_panel():
    axes = draw_runtime([record("a", seconds=0.0), record("b", seconds=50.0)]).axes[0]
    assert axes.get_xlim()[0] < axes.lines[0].get_xdata()[0] <= 0.05


@pytest.mark.parametrize("seconds", [(12.0, 14.0), (1.0, 60.0), (0.1, 50_000.0)])
def test_the_scale_of_time_has_ticks_whatever_its_length(seconds):
    records = [record(str(s), seconds=s) for s in seconds]
    axes = draw_runtime(records).axes[0]
    low, high = axes.get_xlim()
    assert 1 <= sum(low <= tick <= high for tick in axes.get_xticks()) <= 8
