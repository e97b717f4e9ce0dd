"""Asking a person: random items out, labels in, and what they say everywhere an audit is read."""

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from files import (
    NEW_CLASS,
    easy_images,
    easy_vectors,
    known_labels,
    npz,
    pool_labels,
    text,
    truncated,
    visible,
)
from s2osc.app import report
from s2osc.app.answer_tables import write_skipped
from s2osc.app.check import ask_person, take_labels
from s2osc.app.decide import redecide
from s2osc.app.report import report_files
from s2osc.app.results_folder import version_of
from s2osc.cli.main import main
from s2osc.data.inputs import Skipped
from s2osc.errors import DataError, OutputError, S2OSCError, SettingsError

TRUTH = pool_labels(20)


@pytest.fixture
def out(finished, tmp_path) -> Path:
    """A copy of finished results, to be checked."""
    return shutil.copytree(finished / "out", tmp_path / "out", symlinks=True)


def items_in(table: Path) -> list[str]:
    with table.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(row == {"item": row["item"], "label": ""} for row in rows)
    return [row["item"] for row in rows]


def fill(table: Path, path: Path, *, n: int | None = None, **other: str) -> Path:
    """A table with the true classes of its first ``n`` items, and ``other`` ones in their place."""
    items = items_in(table)
    labels = [other.get(f"i{item}", TRUTH[int(item)]) for item in items[:n]]
    labels += [""] * (len(items) - len(labels))
    rows = [f"{item},{label}" for item, label in zip(items, labels, strict=True)]
    return text(path, "item,label", *rows)


def summary_in(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def checked_in(out: Path) -> dict:
    return summary_in(out)["audit"]["checked"]


# Asking


def test_random_items_are_written_without_our_answer(out):
    asked = ask_person(out, 30)
    assert asked.table == out / "check.csv"
    items = items_in(asked.table)
    assert len(set(items)) == 30
    assert set(items) <= set(map(str, range(60)))
    assert items != sorted(items, key=int)
    assert (asked.n_new, asked.n_open, asked.page) == (30, 30, None)
    assert checked_in(out) is None


def test_it_is_said_beforehand_what_labels_will_tell(out):
    outlooks = ask_person(out, 12).outlooks
    assert [each.n_labels for each in outlooks] == [12, 30]  # no more than the pool holds
    assert outlooks[0].visible_share > outlooks[1].visible_share


def test_asking_changes_no_answer(out):
    before = visible(out)
    ask_person(out, 5)
    after = visible(out)
    assert after.keys() - before.keys() == {"check.csv", "checked.parquet"}
    assert {name for name in before if before[name] != after[name]} <= {"report.html"}


def test_a_second_check_asks_about_other_items_and_again_about_those_without_a_label(out, tmp_path):
    first = items_in(ask_person(out, 10).table)
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv", n=8))
    asked = ask_person(out, 10)
    items = items_in(asked.table)
    assert items[:2] == first[8:]
    assert not set(items[2:]) & set(first)
    assert (asked.n_new, asked.n_open) == (10, 12)


def test_in_the_end_every_item_was_asked_about(out, tmp_path):
    asked = ask_person(out, 1_000, table=tmp_path / "all.csv")
    assert asked.n_new == 60
    take_labels(out, fill(asked.table, tmp_path / "a.csv"))
    truth = summary_in(out)["metrics"]
    measured = checked_in(out)
    assert measured["accuracy"]["low"] == measured["accuracy"]["high"]
    assert measured["accuracy"]["estimate"] == pytest.approx(truth["accuracy"], abs=1e-5)
    with pytest.raises(DataError, match="all 60 items of the pool were checked already"):
        ask_person(out, 5)


def test_images_come_with_a_page_of_their_pictures(tmp_path, quick):
    known, pool = known_labels(60), pool_labels(20)
    npz(tmp_path / "known.npz", x=easy_images(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_images(pool, seed=1), y=pool)
    sources = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    assert main(["classify", *sources, f"--out={out}", *quick]) == 0
    asked = ask_person(out, 7)
    assert asked.page == out / "check.html"
    page = asked.page.read_text(encoding="utf-8")
    assert page.count('src="data:image/webp;base64,') == 7
    ask_person(out, 2)  # a page of ours is replaced, one of the user's is not
    text(out / "check.html", "mine")
    with pytest.raises(OutputError, match=r"check\.html is there already"):
        ask_person(out, 2)


# Labels


def test_labels_are_measured_and_come_first_everywhere(out, tmp_path):
    ask_person(out, 30)
    checked = take_labels(out, fill(out / "check.csv", tmp_path / "a.csv"))
    assert (checked.n_new, checked.n_open, checked.other_names) == (30, 0, (NEW_CLASS,))
    measured, sentence = checked_in(out), summary_in(out)["audit"]["sentence"]
    assert (measured["n_items"], measured["n_skipped"]) == (30, 0)
    assert measured["unknown_share"]["low"] < 1 / 3 < measured["unknown_share"]["high"]
    assert sentence.startswith("Of 30 random items checked by a person, ")
    page = (out / "report.html").read_text(encoding="utf-8")
    assert sentence in page
    assert "What a person measured" in page
    assert json.loads((out / "model/model.json").read_text())["checked"] == measured


def test_labels_add_up(out, tmp_path):
    ask_person(out, 10)
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv"))
    ask_person(out, 10)
    checked = take_labels(out, fill(out / "check.csv", tmp_path / "b.csv"))
    assert (checked.n_new, checked_in(out)["n_items"]) == (10, 20)
    again = take_labels(out, tmp_path / "a.csv")
    assert (again.n_new, again.result.check.n_labels) == (0, 20)


def test_a_part_of_the_labels_is_enough(out, tmp_path):
    ask_person(out, 10)
    checked = take_labels(out, fill(out / "check.csv", tmp_path / "a.csv", n=4))
    assert (checked.n_new, checked.n_open) == (4, 6)
    assert (checked_in(out)["n_items"], checked_in(out)["n_skipped"]) == (4, 0)


def test_an_item_that_is_left_out_counts_both_ways_and_that_is_told(out, tmp_path):
    items = items_in(ask_person(out, 10).table)
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv", **{f"i{items[2]}": ""}))
    assert (checked_in(out)["n_items"], checked_in(out)["n_skipped"]) == (9, 1)
    assert "check_skipped" in summary_in(out)["warning_codes"]


def test_labels_that_contradict_the_estimates_are_told_of(out, tmp_path):
    items = items_in(ask_person(out, 30).table)
    everything = {f"i{item}": "left" for item in items}
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv", **everything))
    assert "check_disagrees" in summary_in(out)["warning_codes"]
    assert checked_in(out)["unknown_share"]["estimate"] == 0


def test_ids_that_a_spreadsheet_changed_are_found(out, tmp_path):
    items = items_in(ask_person(out, 3).table)
    text(tmp_path / "a.csv", "item;label", *(f"{item}.0;LEFT" for item in items))
    assert take_labels(out, tmp_path / "a.csv").n_new == 3
    assert checked_in(out)["n_unknown"] == 0


def test_another_decision_keeps_labels_and_measures_anew(out, tmp_path):
    ask_person(out, 30)
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv"))
    before = checked_in(out)
    redecide(out, {"false_alarm": 0.5, "aim": "recall"})
    after = checked_in(out)
    assert after["n_alarms"] > before["n_alarms"]
    assert after["unknown_share"] == before["unknown_share"]
    redecide(out, {"false_alarm": 0.05, "aim": "balance"})
    assert checked_in(out) == before
    report_files(out)
    assert checked_in(out) == before
    assert pq.read_table(out / "checked.parquet")["label"].to_pylist().count("") == 0


def test_windows_of_a_stream_are_checked_as_pools_are(tmp_path, quick):
    known, pool = known_labels(60), pool_labels(20)
    npz(tmp_path / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_vectors(pool, seed=1))
    state, out = f"--state={tmp_path / 'state'}", tmp_path / "monday"
    assert main(["stream", "init", f"--known={tmp_path / 'known.npz'}", state, *quick]) == 0
    window = ["stream", "window", state, f"--pool={tmp_path / 'pool.npz'}", "--budget=5"]
    assert main([*window, f"--out={out}"]) == 0
    questions, place = (out / "queries.csv").read_bytes(), summary_in(out)["stream"]
    ask_person(out, 20)
    take_labels(out, fill(out / "check.csv", tmp_path / "a.csv"))
    assert checked_in(out)["n_items"] == 20
    assert (out / "queries.csv").read_bytes() == questions
    assert summary_in(out)["stream"] == place
    assert main([*window, f"--out={tmp_path / 'tuesday'}"]) == 0


def test_results_in_a_folder_whose_name_is_no_text_are_worked_with(out, tmp_path):
    out = out.rename(tmp_path / "caf\udce9")
    ask_person(out, 5)
    assert take_labels(out, fill(out / "check.csv", tmp_path / "a.csv")).n_new == 5
    redecide(out, {"false_alarm": "0.3"})
    report_files(out)
    assert checked_in(out)["n_items"] == 5
    write_skipped(out / "skipped.csv", [Skipped("a.png", "no image")])
    assert (out / "skipped.csv").read_text().splitlines() == [
        '"item","reason"',
        '"a.png","no image"',
    ]


# What is refused, and leaves everything as it was


@pytest.fixture
def refused(out, tmp_path):
    ask_person(out, 10)
    take_labels(out, fill(out / "check.csv", tmp_path / "done.csv", n=5))

    def run(*rows: str) -> str:
        path, before = text(tmp_path / "a.csv", *rows), visible(out)
        with pytest.raises(DataError) as error:
            take_labels(out, path)
        assert visible(out) == before
        assert "\n" not in str(error.value)
        return str(error.value)

    return run


def test_labels_of_items_that_were_not_asked_about_are_refused(out, refused):
    asked = pq.read_table(out / "checked.parquet")["item"].to_pylist()
    other = next(item for item in map(str, range(60)) if item not in asked)
    assert f"item '{other}' of" in refused("item,label", f"{other},left")
    assert "was not asked about" in refused("item,label", f"{other},left")
    assert "is not in the pool" in refused("item,label", "x.png,left")


def test_a_label_is_changed_only_by_force(out, refused, tmp_path):
    first = pq.read_table(out / "checked.parquet")["item"].to_pylist()[0]
    wrong = "top" if TRUTH[int(first)] != "top" else "left"
    assert f"and '{wrong}' now" in refused("item,label", f"{first},{wrong}")
    take_labels(out, tmp_path / "a.csv", force=True)
    assert pq.read_table(out / "checked.parquet")["label"].to_pylist()[0] == wrong


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (("item,label", "1,"), "holds no label"),
        (("item,name", "1,left"), "has no column `label`"),
        (("item,label", "1,left", "1,top"), "labels item '1' both 'left' and 'top'"),
    ],
)
def test_tables_without_labels_are_refused(refused, rows, words):
    assert words in refused(*rows)


def test_labels_of_a_pool_that_nobody_drew_items_from_are_refused(out, tmp_path):
    with pytest.raises(DataError, match="nobody was asked about items of this pool yet"):
        take_labels(out, text(tmp_path / "a.csv", "item,label", "1,left"))


def test_labels_that_were_not_read_are_never_written_over(out, tmp_path):
    ask_person(out, 5)
    filled = fill(out / "check.csv", tmp_path / "a.csv")
    shutil.copy(filled, out / "check.csv")
    before = visible(out)
    with pytest.raises(OutputError, match="holds 5 labels not read yet"):
        ask_person(out, 5)
    assert visible(out) == before
    take_labels(out, out / "check.csv")
    assert len(items_in(ask_person(out, 5).table)) == 5


@pytest.mark.parametrize("name", ["notes.csv", "predictions.csv", "check.txt", "."])
def test_other_files_are_never_written_over(out, name):
    text(out / "notes.csv", "mine")
    before = visible(out)
    with pytest.raises(OutputError):
        ask_person(out, 5, table=out / name)
    assert visible(out) == before


def test_no_items_are_too_few(out):
    with pytest.raises(SettingsError, match="--n is 0; give a number of items from 1"):
        ask_person(out, 0)


@pytest.mark.parametrize("damage", [truncated, lambda path: path.write_text("{}")])
def test_a_damaged_record_of_labels_is_refused(out, damage):
    ask_person(out, 5)
    damage(version_of(out) / "checked.parquet")
    before = visible(out)
    for run in (lambda: redecide(out, {}), lambda: ask_person(out, 5)):
        with pytest.raises(S2OSCError) as refused:
            run()
        assert "\n" not in str(refused.value)
        assert visible(out) == before


@pytest.mark.parametrize(
    "step", ["write_check", pytest.param("write_report", marks=pytest.mark.slow), "write_summary"]
)
def test_an_interruption_loses_no_labels_and_asks_the_same_again(out, tmp_path, monkeypatch, step):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report, step, interrupt)
        assert main(["check", f"--out={out}", "--n=6"]) == 130
    first = items_in(out / "check.csv")
    assert items_in(ask_person(out, 6).table) == first
    filled = fill(out / "check.csv", tmp_path / "a.csv")
    before = visible(out)
    with monkeypatch.context() as patch:
        patch.setattr(report, step, interrupt)
        assert main(["check", f"--out={out}", f"--labels={filled}"]) == 130
    assert visible(out) == before
    assert take_labels(out, filled).n_new == 6


# The command


def test_the_command_tells_what_labels_will_say_and_what_they_said(out, tmp_path, capsys):
    assert main(["check", f"--out={out}"]) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    assert "What labels of random items will tell" in printed
    assert f"30 items to label: {out / 'check.csv'}" in printed
    assert "Known classes: left, top" in printed
    filled = fill(out / "check.csv", tmp_path / "a.csv")
    assert main(["check", f"--out={out}", f"--labels={filled}"]) == 0
    printed, errors = capsys.readouterr()
    assert errors == ""
    assert printed.startswith("Of 30 random items checked by a person, ")
    assert "30 new labels, 30 in all." in printed
    assert f"Not a known class: {NEW_CLASS}." in printed


@pytest.mark.parametrize(
    "words", [["--n=0"], ["--n=x"], ["--labels=nowhere.csv"], ["--n=3", "--labels=a.csv"]]
)
def test_words_that_cannot_be_used_end_with_code_2(out, words, capsys):
    assert main(["check", f"--out={out}", *words]) == 2
    assert capsys.readouterr().err


def test_deciding_anew_and_checking_load_neither_torch_nor_what_is_slow_of_others(out):
    script = (
        "import sys; from s2osc.cli.main import main\n"
        f"assert main(['decide', '--out={out}', '--false-alarm=0.1']) == 0\n"
        f"assert main(['check', '--out={out}']) == 0\n"
        "print({'torch', 'openTSNE', 'sklearn', 'scipy.stats'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
