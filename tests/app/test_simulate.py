"""A labelled set as a stream that answers for itself."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from files import npz, snapshot, visible
from s2osc.app import simulate as simulation
from s2osc.app.request import Request
from s2osc.app.simulate import Course, Material, number_of, simulate
from s2osc.cli.main import main
from s2osc.errors import SettingsError
from s2osc.stream.queries import QuerySettings
from samples import make_blobs, make_dataset

ROLES = ("teacher", "student", "update")
TINY = {
    **{f"{role}.training.epochs": 1 for role in ROLES},
    **{f"{role}.training.min_steps": 20 for role in ROLES},
    **{f"{role}.network.hidden": "16,16" for role in ROLES[:2]},
    "clusters.n_groups": 1,
    "seeds.judges": 0,
}
RUN = Request(changes=TINY)


@pytest.fixture(scope="module")
def items(tmp_path_factory) -> Path:
    vectors, labels = make_blobs(80, 5)
    folder = tmp_path_factory.mktemp("items")
    return npz(folder / "all.npz", x=vectors, y=labels, classes=list("abcde"))


@pytest.fixture(scope="module")
def simulated(items, tmp_path_factory) -> tuple[dict[str, Any], Path]:
    """Two windows, in each of which a class emerges: the summary, and where it lies."""
    out = tmp_path_factory.mktemp("simulated") / "out"
    course = Course(n_windows=2, known_classes=("a", "c", "b"))
    return simulate(items, out, RUN, course, QuerySettings(20)), out


def test_every_class_that_emerges_is_asked_about_and_joins(simulated):
    summary, out = simulated
    assert summary["known_classes"] == ["a", "b", "c"]
    assert [w["joined"] for w in summary["windows"]] == [w["emerging"] for w in summary["windows"]]
    assert sorted(summary["unknown_classes"]) == ["d", "e"]
    assert all(w["metrics"]["accuracy"] > 0.85 for w in summary["windows"])
    assert summary["windows"][-1]["metrics"]["held_out_accuracy"] > 0.75
    assert all(w["answered"] == w["asked"] <= 20 for w in summary["windows"])
    with (out / "windows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["joined"] for row in rows] == [w["joined"][0] for w in summary["windows"]]
    for row, window in zip(rows, summary["windows"], strict=True):
        for name in ("precision", "recall", "old_accuracy", "new_accuracy", "chaudhry_forgetting"):
            assert float(row[name]) == window["metrics"][name]
        assert int(row["labels_so_far"]) == window["labels_so_far"]
    assert summary["labels"] == sum(w["asked"] for w in summary["windows"])
    assert summary["seconds_per_window"] == pytest.approx(
        np.mean([w["seconds"] for w in summary["windows"]]), abs=0.01
    )
    assert (out / "windows.md").read_text().count("\n| ") == 4
    assert json.loads((out / "summary.json").read_text())["windows"] == summary["windows"]


def test_old_and_new_classes_are_judged_apart_and_forgetting_by_chaudhry(simulated):
    summary, _ = simulated
    stages = summary["stages"]
    assert [len(stage) for stage in stages] == [1, 2, 3]
    last = summary["windows"][-1]["metrics"]
    assert last["old_accuracy"] == stages[-1][0]
    assert last["new_accuracy"] == pytest.approx(np.mean(stages[-1][1:]), abs=1e-4)
    lost = [max(row[j] for row in stages[:2] if len(row) > j) - stages[2][j] for j in (0, 1)]
    assert last["chaudhry_forgetting"] == pytest.approx(np.mean(lost), abs=1e-4)
    assert summary["metrics"]["chaudhry_forgetting"] == last["chaudhry_forgetting"]


def test_classes_too_small_to_hold_items_out_are_not_judged_by_such():
    material = Material(
        "m", np.zeros((36, 2), np.float32), np.repeat(np.arange(4), 9), tuple("abcd")
    )
    stream = simulation.draw_stream(material, Course(n_windows=1).protocol(material), 0)
    assert simulation.stage_of(stream, 1, np.empty(0, int)) == []
    assert simulation.judge_stages([[], []]) == {}


def test_two_figures_are_drawn_where_matplotlib_is_there(simulated):
    pytest.importorskip("matplotlib")
    _, out = simulated
    found = {path.name for path in out.iterdir()}
    names = ("timeline.svg", "timeline.png", "accuracy.svg", "accuracy.png")
    assert found == {".s2osc", "windows.csv", "windows.md", "summary.json", *names}


@pytest.fixture
def no_matplotlib(monkeypatch):
    """Figures take longer than all the rest."""
    monkeypatch.setattr(simulation, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_matplotlib")
def test_without_matplotlib_there_is_a_note_in_place_of_figures(items, tmp_path):
    course = Course(n_windows=1, size=60)
    summary = simulate(items, tmp_path / "out", RUN, course, QuerySettings(0))
    assert "figures need Matplotlib: run `pip install 's2osc[bench]'`" in summary["warnings"]
    assert {Path(name).suffix for name in visible(tmp_path / "out")} == {".csv", ".md", ".json"}
    assert [w["joined"] for w in summary["windows"]] == [[]]


@pytest.mark.usefixtures("no_matplotlib")
def test_a_self_taught_stream_is_judged_by_what_its_classes_mostly_are(items, tmp_path):
    course = Course(n_windows=2, known_classes=("a", "b", "c"))
    summary = simulate(items, tmp_path / "out", RUN, course, QuerySettings(20), self_taught=True)
    assert summary["windows"][0]["joined"] == ["new 1"]
    # Nobody was asked, so no label was given.
    assert summary["labels"] == 0
    assert [window["answered"] for window in summary["windows"]] == [0, 0]
    assert summary["windows"][0]["metrics"]["held_out_accuracy"] > 0.9


def test_the_drift_of_a_self_taught_stream_is_told(items, simulated, tmp_path):
    pytest.importorskip("matplotlib")
    _, asked = simulated
    assert not (asked / "drift.svg").exists()
    # Two classes that emerge together, and are held to be one, are learnt under one name.
    course = Course(n_windows=1, known_classes=("a", "b", "c"), new_per_window=2)
    summary = simulate(items, tmp_path / "alone", RUN, course, QuerySettings(20), self_taught=True)
    (window,) = summary["windows"]
    assert window["asked"] == summary["budget"] == 0
    assert 0.2 < window["metrics"]["learnt_wrong"] < 0.6
    assert 0 <= window["metrics"]["stated_accuracy"] <= 1
    assert (tmp_path / "alone" / "drift.svg").exists()
    with (tmp_path / "alone" / "windows.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert float(row["learnt_wrong"]) == window["metrics"]["learnt_wrong"]


@pytest.mark.usefixtures("no_matplotlib")
def test_a_data_set_is_run_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(simulation, "load_dataset", lambda name, folder: make_dataset(24))
    small = {f"{role}.network.widths": "8,8,8" for role in ROLES[:2]}
    run, course = Request(changes=TINY | small), Course(n_windows=1)
    summary = simulate("tiny", tmp_path / "out", run, course, QuerySettings(5))
    assert (summary["dataset"], summary["preset"]) == ("tiny", "quick")


def test_a_window_with_every_class_has_about_the_size_asked_for():
    labels = np.repeat(np.arange(4), 100)
    material = Material("m", np.zeros((400, 2), np.float32), labels, tuple("abcd"))
    stream = simulation.draw_stream(material, Course(n_windows=2, size=40).protocol(material), 0)
    assert [len(window.truth) for window in stream.windows] == [30, 40]


def test_several_classes_emerge_together():
    labels = np.repeat(np.arange(6), 40)
    material = Material("m", np.zeros((240, 2), np.float32), labels, tuple("abcdef"))
    course = Course(n_windows=3, new_per_window=2, known_classes=("e", "a"))
    stream = simulation.draw_stream(material, course.protocol(material), 0)
    assert stream.class_numbers[:2] == (0, 4)
    assert stream.emerges.tolist() == [0, 0, 1, 1, 2, 2]
    assert len(stream.windows) == 3


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "x"], "there is no class 'x'; there is a, b, c"),
        (["a"], "1 of 3 classes are known at the beginning; give at least 2"),
        (["a", "b", "c"], "3 of 3 classes are known"),
    ],
)
def test_classes_that_cannot_be_known_at_the_beginning(names, message):
    with pytest.raises(SettingsError, match=message):
        number_of(names, "abc")


@pytest.mark.parametrize("word", ["--windows=0", "--new-per-window=0", "--size-per-window=-1"])
def test_a_course_that_cannot_be_is_one_line(items, tmp_path, capsys, word):
    words = ["stream", "simulate", f"--items={items}", f"--out={tmp_path / 'out'}", word]
    assert main(words) == 2
    assert "give a number from 1" in capsys.readouterr().err
    assert snapshot(tmp_path) == {}


def test_the_command_prints_a_row_per_window_and_the_means(items, tmp_path, capsys):
    settings = [f"--set={name}={value}" for name, value in TINY.items()]
    words = ["stream", "simulate", f"--items={items}", f"--out={tmp_path / 'out'}"]
    more = ["--windows=1", "--known-classes=a, b,c", "--budget=8", "--size-per-window=80"]
    assert main([*words, *more, *settings]) == 0
    printed = capsys.readouterr().out
    assert sum(line.startswith("│") for line in printed.splitlines()) == 1
    assert "Means over the windows: accuracy " in printed
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert f"\n{summary['labels']} labels in all, " in printed
    forgotten = summary["metrics"]["chaudhry_forgetting"]
    assert f"\nForgetting by Chaudhry, in the end: {forgotten:.3f}\n" in printed
    assert f", new_accuracy {summary['metrics']['new_accuracy']:.3f}" in printed
    assert f"In {tmp_path / 'out'}: windows.csv, windows.md, summary.json" in printed
