"""Streams from files to files: what a window writes, what answers do, and that nothing is half."""

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from files import easy_images, easy_vectors, known_labels, npz, pool_labels, snapshot, text
from s2osc.app.decide import Regrouping, redecide
from s2osc.app.request import Request
from s2osc.app.stream.answer import answer_file, write_open_queries
from s2osc.app.stream.begin import init_files, rename_in, undo_last
from s2osc.app.stream.window import window_files
from s2osc.errors import DataError, OutputError, SettingsError
from s2osc.stream import store as storing
from s2osc.stream.answers import read_answers
from s2osc.stream.open_stream import OpenStream
from s2osc.stream.queries import QuerySettings
from s2osc.stream.state import StreamFacts
from s2osc.stream.status import OpenQuestions, read_status
from s2osc.stream.store import open_store, read_state

ROLES = ("teacher", "student", "update")
TINY = {
    **{f"{role}.training.epochs": 1 for role in ROLES},
    **{f"{role}.training.min_steps": 15 for role in ROLES},
    **{f"{role}.network.hidden": "16,16" for role in ROLES[:2]},
    **{f"{role}.network.widths": "8,8,8" for role in ROLES[:2]},
    "clusters.n_groups": 1,
}
RUN = Request(changes=TINY)
TEN = QuerySettings(10)
POOL = pool_labels(20)


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """Known items, two windows, a stream before and after the first. To be read only."""
    folder = tmp_path_factory.mktemp("stream")
    known = known_labels(60)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(folder / "one.npz", x=easy_vectors(POOL, seed=1), y=POOL)
    npz(folder / "two.npz", x=easy_vectors(POOL, seed=2))
    init_files(folder / "known.npz", folder / "begun", RUN)
    shutil.copytree(folder / "begun", folder / "state")
    window_files(folder / "state", folder / "one.npz", folder / "results", TEN)
    return folder


@pytest.fixture
def work(begun, tmp_path) -> Path:
    """The same, to be worked on."""
    return Path(shutil.copytree(begun, tmp_path / "work"))


def queries(folder: Path) -> list[dict[str, str]]:
    with (folder / "queries.csv").open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def summary(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text(encoding="utf-8"))


def answers(path: Path, **labels: str) -> Path:
    rows = [f"{name.replace('_', ' ').removeprefix('i')},{label}" for name, label in labels.items()]
    return text(path, "item,label", *rows)


# Beginning


def test_a_stream_remembers_its_settings_seed_and_where_its_items_came_from(begun):
    state = read_state(begun / "begun")
    assert state.class_names == ("left", "top")
    assert [(known.since, known.n_labels) for known in state.classes] == [(0, 60), (0, 60)]
    assert state.learner.method.teacher.training.min_steps == 15
    assert state.learner.update.training.min_steps == 15
    assert state.learner.memory.size == 2_000
    assert state.facts == StreamFacts(preset="heads", shape="120 vectors of 8 columns")


@pytest.mark.parametrize(
    ("changes", "memory", "message"),
    [
        ({"update.distilation": 1}, 100, "there is no setting 'update.distilation'; did you mean"),
        ({"student.tua": 1}, 100, "there is no setting 'student.tua'"),
        ({}, 2, "memory.size is 2; give a number from 4"),
    ],
)
def test_settings_are_refused_before_anything_is_read(tmp_path, changes, memory, message):
    with pytest.raises(SettingsError, match=message):
        init_files(tmp_path / "none", tmp_path / "state", Request(changes=changes), memory=memory)
    assert not list(tmp_path.iterdir())


def test_a_stream_is_never_begun_over_another(begun):
    before = snapshot(begun)
    with pytest.raises(OutputError, match="holds a stream already; give another folder"):
        init_files(begun / "known.npz", begun / "begun", RUN)
    assert snapshot(begun) == before


def test_a_stream_is_never_begun_among_files_of_a_user(begun, tmp_path):
    for name in ("versions/2024.json", ".movie.part"):
        path = tmp_path / "mine" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(OutputError, match=r"mine is not empty: it holds '\.movie\.part'; give"):
        init_files(begun / "known.npz", tmp_path / "mine", RUN)
    assert snapshot(tmp_path) == before


# Windows


def test_a_window_writes_what_classify_writes_and_the_questions(begun):
    names = {path.name for path in (begun / "results").iterdir()}
    assert names == {
        ".s2osc",
        *("predictions.csv", "predictions.parquet", "summary.json", "report.html", "model"),
        *("scores.parquet", "seeds.parquet", "report.safetensors", "queries.csv"),
    }
    found = summary(begun / "results")
    assert found["items"] == {"known": 120, "pool": 60, "skipped": 0}
    assert found["metrics"]["accuracy"] > 0.9
    assert found["shape"] == "60 vectors of 8 columns"
    assert (found["title"], found["preset"]) == ("Window 1", "heads")
    assert found["settings"]["memory.size"] == 2_000
    labels = pq.read_table(begun / "results" / "predictions.parquet")["label"].to_pylist()
    assert labels.count("unknown") == found["counts"]["unknown"]


def test_another_operating_point_leaves_the_questions_on_the_page(work):
    before = (work / "results" / "report.html").read_text(encoding="utf-8")
    redecide(work / "results", {"false_alarm": 0.2})
    after = (work / "results" / "report.html").read_text(encoding="utf-8")
    assert after != before
    for page in (before, after):
        assert all(reason in page for reason in ('id="questions"', "typical of group 0"))


def test_questions_are_groups_first_then_items_without_labels(begun):
    rows = queries(begun / "results")
    n = summary(begun / "results")["counts"]["unknown"]
    assert rows[0] == {
        "item": "group 0",
        "label": "",
        "suggested": "",
        "group": "0",
        "why": f"names all {n} items of the group that have no label of their own",
        "window": "1",
        "mark": f"v2-{read_state(begun / 'state').history[0].answer}",
    }
    assert len(rows) == 11
    predicted = pq.read_table(begun / "results" / "predictions.parquet").to_pylist()
    by_name = {row["item"]: row for row in predicted}
    for row in rows[1:]:
        found = by_name[row["item"]]
        is_unknown = found["label"] == "unknown"
        assert row["suggested"] == ("" if is_unknown else found["label"])
        assert row["group"] == ("0" if is_unknown else "")
        assert row["why"] in ("typical of group 0", "one of group 0", "between known and unknown")
        assert row["label"] == ""


@pytest.mark.usefixtures("fits_anew")
def test_the_same_window_of_the_same_stream_gives_the_same_files(begun, work):
    window_files(work / "begun", work / "one.npz", work / "again", TEN)
    for name in ("predictions.csv", "queries.csv", "model/weights.safetensors"):
        assert (work / "again" / name).read_bytes() == (begun / "results" / name).read_bytes()


def test_results_name_window_and_version_as_the_history_does(begun):
    place = summary(begun / "results")["stream"]
    (entry,) = read_state(begun / "state").history
    assert (place["window"], place["version"], place["asked"]) == (1, 2, 10)
    assert place["answer"] == entry.answer
    assert entry.version == read_status(begun / "state").version == 2


def test_results_whose_window_was_not_confirmed_are_recognised(work, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(storing.Store, "confirm", killed)
    before = snapshot(work / "state")
    with pytest.raises(KeyboardInterrupt):
        window_files(work / "state", work / "two.npz", work / "lost", TEN)
    monkeypatch.undo()
    assert snapshot(work / "state") == before
    lost = summary(work / "lost")["stream"]
    window_files(work / "state", work / "one.npz", work / "next", TEN)
    entries = [(e.version, e.answer) for e in read_state(work / "state").history]
    assert (lost["version"], lost["answer"]) not in entries
    place = summary(work / "next")["stream"]
    assert (place["version"], place["answer"]) in entries


def test_results_that_were_never_confirmed_give_way_to_the_same_command(work, monkeypatch):
    lost = lose(work, monkeypatch)
    found = window_files(work / "state", work / "two.npz", work / "lost", TEN)
    assert found.result.run.stream.answer == lost["stream"]["answer"]
    assert read_status(work / "state").questions.window == 2
    # They are confirmed now.
    with pytest.raises(OutputError, match="holds results already"):
        window_files(work / "state", work / "one.npz", work / "lost", TEN)


def test_a_self_taught_window_that_was_never_confirmed_can_be_fed_again(work, monkeypatch):
    lose(work, monkeypatch, self_taught=True)
    assert queries(work / "lost")[0]["label"] == "new 1"
    window_files(work / "state", work / "two.npz", work / "lost", TEN, self_taught=True)
    assert read_state(work / "state").class_names == ("left", "top", "new 1")


def test_labels_for_a_window_that_was_never_confirmed_are_kept_and_serve_later(work, monkeypatch):
    lose(work, monkeypatch)
    path = work / "lost" / "queries.csv"
    label_group(path, "corner")
    with pytest.raises(
        DataError, match=r"window 2, which was never confirmed: .* feed that window"
    ):
        answer_file(work / "state", path)
    with pytest.raises(OutputError, match="holds labels for a window that was never confirmed"):
        window_files(work / "state", work / "two.npz", work / "lost", TEN)
    path.rename(work / "mine.csv")
    window_files(work / "state", work / "two.npz", work / "lost", TEN)
    assert answer_file(work / "state", work / "mine.csv").new_classes == ("corner",)


def test_results_of_a_copy_of_the_stream_do_not_give_way(work):
    shutil.copytree(work / "state", work / "copy")
    window_files(work / "copy", work / "two.npz", work / "next", TEN)
    with pytest.raises(OutputError, match="holds results already"):
        window_files(work / "state", work / "two.npz", work / "next", TEN)


def lose(work: Path, monkeypatch: pytest.MonkeyPatch, **options: bool) -> dict:
    """Results of a process that is killed before their window is confirmed."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storing.Store, "confirm", killed)
        with pytest.raises(KeyboardInterrupt):
            window_files(work / "state", work / "two.npz", work / "lost", TEN, **options)
    return summary(work / "lost")


def label_group(path: Path, label: str) -> None:
    """Write a label into a window's queries.csv."""
    path.write_text(path.read_text().replace("group 0,,", f"group 0,{label},"))


@pytest.mark.parametrize("step", ["stream.window.queries_table", "result_files.write_tables"])
def test_a_window_that_fails_leaves_stream_and_results_as_they_were(work, monkeypatch, step):
    def fails(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(f"s2osc.app.{step}", fails)
    before = snapshot(work)
    with pytest.raises((OutputError, OSError), match="No space left"):
        window_files(work / "state", work / "two.npz", work / "next", TEN)
    assert snapshot(work) == before


def test_a_state_that_cannot_be_written_leaves_no_results(work, monkeypatch):
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    before = snapshot(work)
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left on device"):
        window_files(work / "state", work / "two.npz", work / "next", TEN)
    assert snapshot(work) == before


def test_questions_nobody_answered_are_closed_with_a_note(work):
    found = window_files(work / "state", work / "two.npz", work / "next", TEN)
    (note,) = [text for text in found.result.summary.warnings if "closed" in text]
    assert note == "10 of the 10 questions of window 1 had no answer and are closed"
    path = work / "results" / "queries.csv"
    path.write_text(path.read_text().replace("group 0,,", "group 0,corner,"))
    with pytest.raises(DataError, match="answers window 1, but the last one is window 2"):
        answer_file(work / "state", path)


def test_an_operating_point_is_for_one_window_only(work):
    more = {"false_alarm": "0.2", "aim": "recall", "unsure": True}
    window_files(work / "begun", work / "one.npz", work / "next", TEN, decision=more)
    settings = summary(work / "next")["settings"]
    assert settings["decision.false_alarm"] == 0.2
    assert settings["decision.aim"] == "recall"
    decision = read_state(work / "begun").learner.method.decision
    assert (decision.false_alarm, decision.aim, decision.unsure) == (0.05, "balance", False)


def test_results_of_a_window_can_be_decided_anew_and_still_tell_their_window(work):
    before = summary(work / "results")
    after = redecide(work / "results", {"false_alarm": 0.3}).summary.to_json()
    assert after["stream"] == before["stream"]
    assert after["settings"]["decision.false_alarm"] == 0.3


def test_a_window_can_be_grouped_anew_while_its_questions_stay(work):
    before, asked = summary(work / "results"), queries(work / "results")
    found = redecide(work / "results", {}, Regrouping(split=0))
    assert found.audit.groups.number == 2
    after = summary(work / "results")
    assert after["stream"] == before["stream"]
    assert sum(after["counts"]["groups"].values()) == after["counts"]["unknown"]
    assert len(after["counts"]["groups"]) == 2
    assert any("have them as they were found" in warning for warning in after["warnings"])
    assert queries(work / "results") == asked
    back = redecide(work / "results", {}, Regrouping(merge=(0, 1)))
    assert back.summary.to_json()["counts"] == before["counts"]
    assert answer_file(work / "state", answers(work / "a.csv", group_0="corner")).new_classes == (
        "corner",
    )


def test_without_a_budget_nothing_is_asked(work):
    found = window_files(work / "begun", work / "one.npz", work / "next", QuerySettings(0))
    assert found.result.run.stream.asked == 0
    assert queries(work / "next") == []
    with pytest.raises(DataError, match="no questions are open"):
        answer_file(work / "begun", answers(work / "a.csv", group_0="corner"))


def test_a_self_taught_stream_makes_a_class_of_each_group(work):
    asking = QuerySettings(4)
    found = window_files(work / "begun", work / "one.npz", work / "next", asking, self_taught=True)
    assert found.answered
    assert found.answered.new_classes == ("new 1",)
    assert read_state(work / "begun").class_names == ("left", "top", "new 1")
    assert found.result.run.stream.new_classes == ("new 1",)
    assert found.result.run.n_known == 120
    assert queries(work / "next")[0]["label"] == "new 1"
    assert undo_last(work / "begun") == "window 1"
    assert read_state(work / "begun").class_names == ("left", "top")


def test_a_self_taught_window_asks_nothing_and_leaves_no_question_open(work):
    found = window_files(work / "begun", work / "one.npz", work / "a", TEN, self_taught=True)
    assert found.result.run.stream.asked == 0
    assert found.answered.n_open == 0
    assert read_status(work / "begun").questions is None
    (entry,) = read_status(work / "begun").windows
    assert (entry.asked, entry.answered, entry.labelled) == (0, 0, entry.unknown)
    page = (work / "a" / "report.html").read_text(encoding="utf-8")
    assert 'id="questions"' not in page
    found = window_files(work / "begun", work / "two.npz", work / "b", TEN, self_taught=True)
    assert not any("no answer and are closed" in note for note in found.result.summary.warnings)
    assert read_status(work / "begun").questions is None


def test_force_replaces_the_results_of_an_earlier_window(work):
    with pytest.raises(OutputError, match="holds results already"):
        window_files(work / "state", work / "two.npz", work / "results", TEN)
    window_files(work / "state", work / "two.npz", work / "results", TEN, force=True)
    assert {row["window"] for row in queries(work / "results")} == {"2"}


def test_labels_that_lie_where_results_should_go_are_not_written_over(work):
    (work / "next").mkdir()
    path = shutil.copy(work / "results" / "queries.csv", work / "next")
    before = Path(path).read_bytes()
    with pytest.raises(OutputError, match=r"holds a queries\.csv already; give another folder"):
        window_files(work / "state", work / "two.npz", work / "next", TEN)
    assert Path(path).read_bytes() == before


def test_images_are_brought_to_the_shape_the_stream_began_with(tmp_path):
    known, pool = known_labels(20), pool_labels(6)
    npz(tmp_path / "known.npz", x=easy_images(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_images(pool, seed=1).repeat(2, axis=1).repeat(2, axis=2))
    init_files(tmp_path / "known.npz", tmp_path / "state", RUN)
    found = window_files(tmp_path / "state", tmp_path / "pool.npz", tmp_path / "out", TEN)
    assert found.result.run.shape == "18 images as 8x8 grey"
    assert found.result.run.preset == "quick"
    assert read_state(tmp_path / "state").questions.inputs.shape[1:] == (8, 8)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    questions = page[page.index('<section id="questions"') : page.index('<section id="check"')]
    asked = [row["item"] for row in queries(tmp_path / "out") if "group" not in row["item"]]
    assert questions.count('src="data:image') == len(asked)
    assert [questions.index(f'title="{name}">') for name in asked] == sorted(
        questions.index(f'title="{name}">') for name in asked
    )


def test_a_stream_saved_in_python_goes_on_with_files(tmp_path, begun):
    known = known_labels(30)
    stream = OpenStream(easy_vectors(known, seed=0), known, settings=TINY)
    stream.save(tmp_path / "state")
    window_files(tmp_path / "state", begun / "one.npz", tmp_path / "out", TEN)
    assert OpenStream.load(tmp_path / "state").history[0]["items"] == 60


@pytest.mark.parametrize("n", [2, 30])
def test_a_window_in_which_nothing_is_known_is_answered_for(work, n):
    new = ["corner"] * n
    npz(work / "new.npz", x=easy_vectors(new, seed=3), y=new)
    found = window_files(work / "begun", work / "new.npz", work / "next", TEN)
    text = (work / "next" / "summary.json").read_text(encoding="utf-8")
    assert "NaN" not in text
    assert found.result.summary.n_pool == n
    assert read_state(work / "begun").history[-1].items == n


# Answers


def test_answers_to_a_window_that_was_undone_are_not_taken_for_those_of_another(work):
    stale = work / "results" / "queries.csv"
    label_group(stale, "corner")
    undo_last(work / "state")
    with pytest.raises(DataError, match="window 1 as this stream does not have it: it was undone"):
        answer_file(work / "state", stale)
    window_files(work / "state", work / "two.npz", work / "next", TEN)
    before = snapshot(work)
    with pytest.raises(DataError, match="window 1 as this stream does not have it: it was undone"):
        answer_file(work / "state", stale)
    assert snapshot(work) == before


def test_answers_hold_when_the_same_window_is_fed_again(work):
    label_group(work / "results" / "queries.csv", "corner")
    undo_last(work / "state")
    window_files(work / "state", work / "one.npz", work / "next", TEN)
    answered = answer_file(work / "state", work / "results" / "queries.csv")
    assert answered.new_classes == ("corner",)


def test_a_window_is_read_as_a_table_of_floats_writes_it(work):
    rows = ["item,label,window", "group 0,corner,1.0", "nobody,,"]
    given = read_answers(text(work / "a.csv", *rows))
    assert (given.window, given.mark) == ("1", "")
    answered = answer_file(work / "state", text(work / "a.csv", *rows[:2]))
    assert answered.new_classes == ("corner",)


def test_a_group_is_one_answer_and_its_items_are_counted_apart(work):
    answered = answer_file(work / "state", answers(work / "a.csv", group_0="corner"))
    (entry,) = read_status(work / "state").windows
    assert (entry.asked, entry.answered, entry.labelled) == (10, 1, answered.n_labels)
    assert answered.n_labels > 1


def test_a_class_named_in_the_answers_is_known_in_the_next_window(work):
    answered = answer_file(work / "state", answers(work / "a.csv", group_0="corner"))
    n = summary(work / "results")["counts"]["unknown"]
    assert (answered.n_labels, answered.n_ignored, answered.new_classes) == (n, 0, ("corner",))
    assert answered.account.n_new_classes == 1
    window_files(work / "state", work / "two.npz", work / "next", TEN)
    labels = pq.read_table(work / "next" / "predictions.parquet")["label"].to_pylist()
    assert np.mean([one == other for one, other in zip(labels, POOL, strict=True)]) > 0.9


def test_a_file_without_labels_changes_nothing(work):
    before = snapshot(work)
    assert answer_file(work / "state", work / "results" / "queries.csv") is None
    assert snapshot(work) == before


def test_the_same_answers_again_change_nothing(work):
    path = answers(work / "a.csv", group_0="corner")
    answer_file(work / "state", path)
    before = snapshot(work)
    answered = answer_file(work / "state", path)
    assert (answered.n_labels, answered.new_classes, answered.account) == (0, (), None)
    assert answered.notes == ["there is no new answer: nothing was learnt"]
    assert snapshot(work) == before


def test_undo_takes_the_answers_back_and_questions_are_open_again(work):
    before = read_status(work / "state")
    answer_file(work / "state", answers(work / "a.csv", group_0="corner"))
    assert undo_last(work / "state") == "answers to window 1"
    after = read_status(work / "state")
    assert after.classes == before.classes
    assert after.questions == before.questions == OpenQuestions(1, asked=10, open=10, groups=1)


def test_a_class_that_a_spreadsheet_took_for_a_number_is_no_new_class(work):
    rename_in(work / "state", "left", "00004")
    item = queries(work / "results")[1]["item"]
    answered = answer_file(work / "state", answers(work / "a.csv", **{f"i{item}": "4"}))
    assert (answered.n_labels, list(answered.new_classes)) == (1, [])
    assert "the label '4' was read as the class '00004'" in answered.notes
    assert read_state(work / "state").questions.answers.count("00004") == 1


def test_a_renamed_class_is_written_by_its_new_name(work):
    rename_in(work / "state", "left", "sinister")
    assert read_state(work / "state").class_names == ("sinister", "top")
    item = queries(work / "results")[1]["item"]
    with pytest.raises(DataError, match="the class is called 'sinister'"):
        answer_file(work / "state", text(work / "a.csv", "item,label", f"{item},Sinister"))
    with pytest.raises(DataError, match="the class 'left' is called 'sinister' now; write that"):
        answer_file(work / "state", text(work / "a.csv", "item,label", f"{item},left"))
    assert undo_last(work / "state") == "'left' renamed 'sinister'"
    assert rename_in(work / "state", "left", " sinister ") == "sinister"


def test_a_name_that_is_no_utf_8_is_escaped_and_the_stream_goes_on(work):
    assert rename_in(work / "state", "left", os.fsdecode(b"caf\xe9")) == "caf\\xe9"
    rename_in(work / "state", os.fsdecode(b"caf\xe9"), "=1+1")
    window_files(work / "state", work / "two.npz", work / "more", TEN)
    assert {row["suggested"] for row in queries(work / "more")} <= {"", "'=1+1", "top"}


def test_ignored_items_are_counted_apart(work):
    answered = answer_file(work / "state", answers(work / "a.csv", group_0="ignore"))
    assert answered.n_ignored == summary(work / "results")["counts"]["unknown"]
    assert (answered.n_labels, answered.new_classes, answered.account) == (0, (), None)


FORMS = {
    "plain": "item,label\na,cat\nb,\n",
    "mark of UTF-8": "\ufeffitem,label\na,cat\nb,\n",
    "semicolons": "item;label\r\na;cat\r\nb;\r\n",
    "tabs": "item\tlabel\na\tcat\nb\t\n",
    "quoted": '"item","label"\n"a","cat"\n"b",""\n',
    "other columns": "why,label,item,note\nx, cat ,a,1\n,,b,\n",
    "capitals": "Item , LABEL\na,cat\nb,\n",
    "empty rows": "item,label\na,cat\n\n,\nb\n",
    "twice the same": "item,label\na,cat\na,cat\na,\nb,\n",
}


@pytest.mark.parametrize("written", FORMS.values(), ids=FORMS)
def test_answers_are_read_as_spreadsheets_write_them(tmp_path, written):
    (tmp_path / "a.csv").write_bytes(written.encode())
    assert read_answers(tmp_path / "a.csv").labels == {"a": "cat", "b": ""}


def test_cells_that_are_no_formulas_come_back_without_their_apostrophe(tmp_path):
    text(tmp_path / "a.csv", "item,label", "'=a,'@home", "'-b,'tis")
    assert read_answers(tmp_path / "a.csv").labels == {"=a": "@home", "-b": "'tis"}


def test_names_with_commas_quotes_and_lines_come_back(tmp_path):
    (tmp_path / "a.csv").write_bytes('item,label\n"a, ""b""\nc",Käse\n'.encode())
    assert read_answers(tmp_path / "a.csv").labels == {'a, "b"\nc': "Käse"}


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (b"", "is empty"),
        (b"name,label\na,b\n", "has no column `item`; found: name, label; give `item`"),
        (b"item,class\na,b\n", "has no column `label`"),
        (b"item,label,label\na,b,c\n", "has more than one column `label`"),
        (b"item,label\na,cat\na,dog\n", "labels item 'a' both 'cat' and 'dog'; give it one label"),
        (b"item,label\n,cat\n", "row 2 of .* has the label 'cat' but no item"),
        (b"item,label,window\na,cat,1\nb,dog,2\n", r"answers several windows \(1, 2\)"),
        ("item,label\na,Käse\n".encode("cp1252"), "is not UTF-8 text; save it as CSV in UTF-8"),
        (b'item,label\n"' + b"x" * 200_000, "cannot be read .field larger"),
    ],
)
def test_files_that_hold_no_answers_are_refused(tmp_path, written, message):
    (tmp_path / "a.csv").write_bytes(written)
    with pytest.raises(DataError, match=message) as raised:
        read_answers(tmp_path / "a.csv")
    assert len(str(raised.value).splitlines()) == 1


def test_items_named_like_groups_are_refused(work):
    names = ["group 7", *map(str, range(59))]
    vectors = easy_vectors(POOL, seed=1)
    columns = ",".join(f"x{i}" for i in range(8))
    rows = [f"{name}," + ",".join(map(str, row)) for name, row in zip(names, vectors, strict=True)]
    pool = text(work / "pool.csv", f"item,{columns}", *rows)
    with pytest.raises(DataError, match="called 'group 7', as whole groups are; rename it"):
        window_files(work / "state", pool, work / "next", TEN)


NAMES = [
    "00012",
    "=1+1",
    "-x",
    "@home",
    " spaced ",
    "",
    "twice",
    "twice",
    b"caf\xe9".decode("latin1"),
]


def spoilt_pool(path: Path) -> Path:
    """A window whose items have names that spreadsheets change, run or cannot tell apart."""
    names = [*NAMES, *(f"{row:05}" for row in range(100, 151))]
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = zip(names, easy_vectors(POOL, seed=1).tolist(), strict=True)
        csv.writer(file).writerows(
            [["item", *(f"x{i}" for i in range(8))], *([name, *row] for name, row in rows)]
        )
    return path


def test_answers_come_back_from_a_spreadsheet_whatever_items_are_called(work):
    """Every item can be answered, by the name that a spreadsheet leaves of it."""
    pool = spoilt_pool(work / "pool.csv")
    window_files(work / "begun", pool, work / "next", QuerySettings(60, "random"))
    rows = queries(work / "next")
    assert not any(row["item"].startswith(("=", "@", "-")) for row in rows)
    changed = [
        (f"{int(row['item'])}" if row["item"].isdigit() else row["item"], "corner")
        for row in rows
        if not row["item"].startswith("group")
    ]
    assert len(changed) == 60
    with (work / "a.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("item", "label"), *changed])
    assert answer_file(work / "begun", work / "a.csv").n_labels == 60


def test_questions_are_written_again_with_the_answers_given_so_far(work):
    label, item = "=cmd", queries(work / "results")[1]["item"]
    answer_file(work / "state", answers(work / "a.csv", **{f"i{item}": label}))
    assert write_open_queries(work / "state", work / "again.csv") == 9
    again = read_answers(work / "again.csv")
    assert (again.labels[item], again.window) == (label, "1")
    assert f"{item},'{label}," in (work / "again.csv").read_text()
    # The same answers again are nothing new.
    assert answer_file(work / "state", work / "again.csv").n_labels == 0


def test_results_are_on_the_disk_before_the_stream_confirms_their_window(work, monkeypatch):
    """A power cut loses nothing that is confirmed: no file, and no name of a file or folder."""
    synced, lacking, replace_file = set(), [], os.replace

    def replace_watched(source, target):
        if Path(target) == work / "begun" / "stream.json":
            there = [work, *(p for p in (work / "new").rglob("*") if p.name != "lock")]
            lacking.append([path for path in there if path.stat().st_ino not in synced])
        replace_file(source, target)

    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    monkeypatch.setattr(os, "replace", replace_watched)
    window_files(work / "begun", work / "one.npz", work / "new" / "next", TEN)
    assert lacking == [[]]


def test_a_stream_in_a_folder_whose_name_is_no_text_answers_for_windows(work):
    folder = work / "caf\udce9"
    shutil.copytree(work / "begun", folder)
    found = window_files(folder, work / "one.npz", work / "next\udce9", TEN)
    assert found.result.run.stream.state.endswith("caf\\xe9")
    assert {row["label"] for row in queries(work / "next\udce9")} == {""}


# How it stands


def test_the_status_has_classes_windows_questions_and_memory(begun):
    status = read_status(begun / "state")
    assert [record.window for record in status.windows] == [1]
    assert (status.last_change, status.can_undo) == ("window 1", True)
    assert status.memory.exemplars + status.memory.seeds == 120
    plain = status.to_json()
    assert list(plain["classes"]) == ["left", "top"]
    assert plain["classes"]["left"].keys() == {"since", "labels", "n", "estimate", "low", "high"}
    assert plain["questions"].keys() == {"window", "asked", "open", "groups"}
    assert plain["memory"].keys() == {"size", "exemplars", "seeds", "megabytes"}
    assert json.loads(json.dumps(plain)) == plain


def test_the_status_can_be_read_while_another_process_works(begun):
    with open_store(begun / "state") as store:
        assert read_status(begun / "state").version == 2
        assert store.read().n_windows == 1


def test_labels_of_too_few_items_wait_and_are_listed(work):
    item = queries(work / "results")[1]["item"]
    answered = answer_file(work / "state", text(work / "a.csv", "item,label", f"{item},rare"))
    assert (answered.new_classes, answered.account) == ((), None)
    assert read_status(work / "state").waiting == {"rare": 1}


def test_streams_of_other_presets_refuse_an_operating_point_without_seeds(work):
    with open_store(work / "state") as store:
        state = store.read()
        method = state.learner.method
        plain = replace(method, decision=replace(method.decision, rule="argmax"))
        learner = replace(state.learner, method=plain)
        store.write(replace(state, learner=learner, facts=StreamFacts("plain")), "a change")
    with pytest.raises(SettingsError, match="is for decisions by seeds, but the preset plain"):
        window_files(
            work / "state", work / "two.npz", work / "next", TEN, decision={"false_alarm": 0.1}
        )
