"""Deciding anew: the answer follows, nothing is trained, and no half of it is ever seen."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from files import NEW_CLASS, easy_images, known_labels, npz, pool_labels, text, truncated, visible
from s2osc.app import report, result
from s2osc.app import summary as summaries
from s2osc.app.decide import Regrouping, redecide
from s2osc.app.results_folder import version_of
from s2osc.cli.main import main
from s2osc.errors import DataError, S2OSCError, SettingsError
from s2osc.text import at_most

REWRITTEN = {
    *("predictions.csv", "predictions.parquet", "summary.json", "report.html"),
    "model/model.json",
}


@pytest.fixture
def out(finished, tmp_path) -> Path:
    """A copy of finished results, to be decided anew."""
    return shutil.copytree(finished / "out", tmp_path / "out", symlinks=True)


def labels_in(out: Path) -> list[str]:
    return pq.read_table(out / "predictions.parquet")["label"].to_pylist()


def summary_in(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def make_harder(out: Path) -> None:
    """Scores by which unknown items can be found from known ones only so far."""
    table = pq.read_table(out / "scores.parquet")
    is_new = np.array(pool_labels(20)) == NEW_CLASS
    score = np.random.default_rng(0).normal(size=len(is_new)) + 2.5 * is_new
    place = table.column_names.index("score")
    pq.write_table(table.set_column(place, "score", [score]), out / "scores.parquet")
    seeds = pq.read_table(out / "seeds.parquet")
    place, random = seeds.column_names.index("score"), np.random.default_rng(2)
    score = random.normal(size=len(seeds))
    pq.write_table(seeds.set_column(place, "score", [score]), out / "seeds.parquet")


def changed(before: dict, after: dict) -> set[str]:
    assert before.keys() == after.keys()
    return {name for name in before if before[name] != after[name]}


# The answer


def test_nothing_changed_gives_every_byte_back(out):
    before = visible(out)
    redecide(out, {})
    # The page of a run is written before it is known how long that took.
    assert changed(before, visible(out)) <= {"report.html"}
    again = visible(out)
    redecide(out, {})
    assert visible(out) == again


def test_another_rate_and_back_gives_the_first_answer_back(out):
    before = visible(out)
    redecide(out, {"false_alarm": "0.3", "aim": "recall"})
    assert changed(before, visible(out)) == REWRITTEN
    redecide(out, {"false_alarm": "0.05", "aim": "balance"})
    assert changed(before, visible(out)) <= {"report.html"}


def test_more_false_alarms_allowed_call_more_items_unknown(out):
    counts = []
    for rate in (0.03, 0.1, 0.3):
        summary = redecide(out, {"false_alarm": rate, "aim": "recall"}).summary.to_json()
        counts.append(summary["counts"]["unknown"])
        assert labels_in(out).count("unknown") == counts[-1]
        assert summary["audit"]["wanted_false_alarm"] == rate
        # Each seed is judged by a threshold that was chosen without it.
        assert summary["audit"]["false_alarm"]["low"] <= rate
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]


def test_summary_page_and_tables_tell_the_same(out):
    summary = redecide(out, {"false_alarm": 0.3, "aim": "recall"}).summary.to_json()
    assert summary == summary_in(out)
    labels, truth = labels_in(out), pool_labels(20)
    right = [
        given == (true if true in ("left", "top") else "unknown")
        for given, true in zip(labels, truth, strict=True)
    ]
    assert summary["metrics"]["accuracy"] == pytest.approx(np.mean(right), abs=1e-5)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert summary["audit"]["sentence"] in page
    assert f"{summary['counts']['unknown']} of 60" in page
    groups = pq.read_table(out / "predictions.parquet")["group"].to_pylist()
    assert [group is not None for group in groups] == [label == "unknown" for label in labels]


def test_what_was_not_decided_is_kept(out):
    before = summary_in(out)
    after = redecide(out, {"false_alarm": 0.3, "aim": "recall"}).summary.to_json()
    decided = {"audit", "counts", "groups", "metrics", "settings", "warnings", "warning_codes"}
    assert {name for name in before if before[name] != after[name]} <= decided
    found, were = after["settings"], before["settings"]
    assert {name for name in found if found[name] != were[name]} == {
        "decision.false_alarm",
        "decision.aim",
    }
    for name in ("purity", "groups", "test"):
        assert after["audit"][name] == before["audit"][name]


def test_items_can_be_left_unsure_and_be_decided_again(out):
    make_harder(out)
    redecide(out, {})
    first = labels_in(out)
    redecide(out, {"false_alarm": 0.03, "unsure": True})
    n_unsure = labels_in(out).count("unsure")
    assert summary_in(out)["counts"]["unsure"] == n_unsure > 0
    rows = pq.read_table(out / "predictions.parquet").to_pylist()
    assert all(row["nearest"] in ("left", "top") for row in rows)
    redecide(out, {"false_alarm": 0.05, "unsure": False})
    assert labels_in(out) == first


def test_warnings_about_the_rate_come_and_go_with_it(out):
    n = summary_in(out)["audit"]["seeds"]["number"]
    assert redecide(out, {"false_alarm": 0.001}).summary.warnings == [
        f"{n} seeds can promise a false-alarm rate of {at_most(1 / (n + 1))} at best, not 0.1%: "
        "label more items of the known classes, or give a higher --false-alarm"
    ]
    assert redecide(out, {"false_alarm": 0.05}).summary.warnings == []


def test_the_model_follows(finished, out, tmp_path):
    words = [f"--model={out / 'model'}", f"--items={finished / 'pool.npz'}"]
    counts = []
    for rate in (0.03, 0.5):
        redecide(out, {"false_alarm": rate, "aim": "recall"})
        table = tmp_path / f"{rate}.parquet"
        assert main(["predict", *words, f"--out={table}"]) == 0
        counts.append(pq.read_table(table)["label"].to_pylist().count("unknown"))
    assert counts[0] < counts[1]


def test_pictures_of_images_are_shown_again(tmp_path, quick):
    known, pool = known_labels(60), pool_labels(20)
    npz(tmp_path / "known.npz", x=easy_images(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_images(pool, seed=1), y=pool)
    sources = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    assert main(["classify", *sources, f"--out={out}", *quick]) == 0
    redecide(out, {"false_alarm": 0.4, "aim": "recall"})
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count('src="data:image/webp;base64,') >= 24


def test_a_pool_in_which_nothing_is_unknown_stays_so(tmp_path, quick):
    known, pool = known_labels(60), known_labels(30)
    for name, labels, seed in (("known", known, 0), ("pool", pool, 1)):
        npz(tmp_path / f"{name}.npz", x=easy_images(labels, seed=seed), y=labels)
    sources = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    assert main(["classify", *sources, f"--out={out}", *quick]) == 0
    before = visible(out)
    summary = redecide(out, {"false_alarm": 0.4, "aim": "recall"}).summary.to_json()
    assert summary["audit"]["nothing_unknown"]
    assert "model/model.json" not in changed(before, visible(out))


def test_seeds_decide_where_the_largest_output_did_once_a_rate_is_asked_for(
    finished, tmp_path, quick
):
    sources = [f"--{name}={finished / name}.npz" for name in ("known", "pool")]
    words = [*sources, *quick, "--preset=plain", "--hold-back=0.2", f"--out={tmp_path / 'out'}"]
    assert main(["classify", *words]) == 0
    first = labels_in(tmp_path / "out")
    redecide(tmp_path / "out", {})
    assert labels_in(tmp_path / "out") == first
    assert json.loads((tmp_path / "out/model/model.json").read_text())["threshold"] is None
    summary = redecide(tmp_path / "out", {"false_alarm": 0.1}).summary.to_json()
    assert summary["settings"]["decision.rule"] == "seeds"
    assert json.loads((tmp_path / "out/model/model.json").read_text())["threshold"] is not None


# The command


def test_the_command_prints_what_classify_does(out, capsys):
    assert main(["decide", f"--out={out}", "--false-alarm=0.3", "--aim=recall"]) == 0
    printed, errors = capsys.readouterr()
    audit = summary_in(out)["audit"]
    assert errors == ""
    assert printed.splitlines()[:2] == [audit["sentence"], audit["test"]["verdict"]]
    assert "60 items in the pool" in printed
    assert f"In {out}:" in printed


# Whole or not at all


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (result, "decide"),
        (summaries, "cautions"),
        *((report, step) for step in ("write_tables", "write_report", "write_summary")),
    ],
)
def test_an_interruption_keeps_the_earlier_answer(out, monkeypatch, module, step):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = visible(out)
    monkeypatch.setattr(module, step, interrupt)
    assert main(["decide", f"--out={out}", "--false-alarm=0.3"]) == 130
    assert visible(out) == before


def test_foreign_files_are_left_alone(out):
    text(out / "notes.txt", "mine")
    text(out / "model" / "card.md", "mine")
    redecide(out, {"false_alarm": 0.3})
    assert (out / "notes.txt").read_text() == (out / "model" / "card.md").read_text() == "mine\n"


@pytest.mark.parametrize(
    "change",
    [
        *(
            lambda found, name=name: found.pop(name)
            for name in ("warnings", "title", "items", "seed")
        ),
        lambda found: found.update(warnings=[1]),
        lambda found: found.update(items={}),
        lambda found: found.update(seconds=float("nan")),
        lambda found: found["audit"].pop("test"),
        lambda found: found["settings"].update({"decision.false_alarm": "many"}),
    ],
)
def test_a_summary_that_was_edited_is_refused_before_anything_is_rewritten(out, change):
    found = summary_in(out)
    change(found)
    (out / "summary.json").write_text(json.dumps(found))
    before = visible(out)
    with pytest.raises(S2OSCError) as refused:
        redecide(out, {"aim": "recall"})
    assert "\n" not in str(refused.value)
    assert visible(out) == before


NEEDED = ("summary.json", "scores.parquet", "seeds.parquet", "report.safetensors")


@pytest.mark.parametrize("name", NEEDED)
@pytest.mark.parametrize("damage", [Path.unlink, truncated, lambda path: path.write_text("{}")])
def test_damaged_results_are_refused_and_left_as_they_are(out, name, damage):
    damage(version_of(out) / name)
    before = visible(out)
    with pytest.raises(DataError) as refused:
        redecide(out, {"false_alarm": 0.3})
    assert "\n" not in str(refused.value)
    assert visible(out) == before


def test_only_one_change_of_groups_at_a_time():
    with pytest.raises(SettingsError, match="give one of --groups, --merge and --split"):
        Regrouping(n_groups=2, split=0)


# Limits of single classes


def test_a_class_may_have_a_limit_of_its_own(out, capsys):
    make_harder(out)
    command = ["decide", "--out", str(out), "--aim", "recall", "--false-alarm", "0.3"]
    assert main([*command, "--false-alarm-of", "left=0.1"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "of the known items that are given the class left and 30% of the others" in printed
    rows = pq.read_table(out / "predictions.parquet").to_pylist()
    points = {row["nearest"]: row["operating_point"] for row in rows}
    assert points["left"] < points["top"]
    for row in rows:
        own = points[row["nearest"]]
        assert row["operating_point"] == own
        assert (row["p_known"] <= own) == (row["label"] == "unknown")
    assert [each["name"] for each in summary_in(out)["audit"]["class_limits"]] == ["left"]
    redecide(out, {"false_alarm_of": {}})
    assert summary_in(out)["audit"]["class_limits"] == []


@pytest.mark.parametrize(
    ("limit", "words"),
    [
        ("lift=0.1", "false-alarm-of names 'lift', which is no known class; did you mean 'left'?"),
        ("left=2", "false-alarm-of left is 2; give a share between 0 and 1, such as 0.01"),
        ("left", "--false-alarm-of is 'left'; give CLASS=RATE, such as cat=0.01, or none"),
    ],
)
def test_a_limit_that_cannot_be_used_is_one_line_and_changes_nothing(out, capsys, limit, words):
    before = visible(out)
    assert main(["decide", "--out", str(out), "--false-alarm-of", limit]) == 2
    assert words in " ".join(capsys.readouterr().err.split())
    assert visible(out) == before


DECIDE = """
import sys
from s2osc.cli.main import main
assert main(["decide", "--out", sys.argv[1], *sys.argv[2:]]) == 0
slow = ("pandas", "torch", "sklearn", "scipy.stats")
print([name for name in slow if name in sys.modules], file=sys.stderr)
"""


@pytest.mark.parametrize("change", [["--false-alarm", "0.1"], ["--guarantee", "pool"]])
def test_another_decision_imports_no_library_that_it_does_not_need(out, change):
    command = [sys.executable, "-c", DECIDE, str(out), *change]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


def test_the_command_says_how_many_groups_there_are_and_may_be(out, capsys):
    assert main(["decide", "--out", str(out), "--groups", "2"]) == 0
    printed = capsys.readouterr().out
    groups = summary_in(out)["audit"]["groups"]
    assert groups["sentence"] in printed
    assert groups["sentence"].startswith("2 groups, as asked for; so few items")
    assert groups["sentence"] in (out / "report.html").read_text(encoding="utf-8")
