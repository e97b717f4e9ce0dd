"""`s2osc stream`: what it prints, and that what cannot be is one line and changes nothing."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from files import (
    easy_images,
    easy_vectors,
    known_labels,
    npy,
    npz,
    pool_labels,
    snapshot,
    text,
)
from s2osc.cli.main import main
from s2osc.stream.store import open_store, read_state

TINY = (
    *(f"--set={r}.training.epochs=1" for r in ("teacher", "student", "update")),
    *(f"--set={r}.training.min_steps=12" for r in ("teacher", "student", "update")),
    *(f"--set={r}.network.hidden=16,16" for r in ("teacher", "student")),
    "--groups=1",
)


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Path:
    """Known items, two pools, and a stream whose first window asks about ten items."""
    folder = tmp_path_factory.mktemp("stream")
    known, pool = known_labels(60), pool_labels(20)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(folder / "pool.npz", x=easy_vectors(pool, seed=1), y=pool)
    stream = f"--state={folder / 'state'}"
    assert main(["stream", "init", f"--known={folder / 'known.npz'}", stream, *TINY]) == 0
    assert main([*window(folder, "pool.npz", "results"), "--budget=10"]) == 0
    return folder


@pytest.fixture
def work(begun, tmp_path) -> Path:
    return Path(shutil.copytree(begun, tmp_path / "work"))


def window(folder: Path, pool: str, out: str) -> list[str]:
    paths = {"state": folder / "state", "pool": folder / pool, "out": folder / out}
    return ["stream", "window", *(f"--{name}={path}" for name, path in paths.items())]


def answer(folder: Path, *rows: str) -> list[str]:
    path = text(folder / "answers.csv", "item,label", *rows)
    return ["stream", "answer", f"--state={folder / 'state'}", f"--labels={path}"]


@pytest.fixture
def printed_by(capsys):
    """Run a command that works; return what it prints."""

    def run(*words: object) -> str:
        capsys.readouterr()
        assert main([str(word) for word in words]) == 0
        printed, errors = capsys.readouterr()
        assert errors == ""
        return printed

    return run


@pytest.fixture
def refused(capsys, tmp_path):
    """Run a command that must be refused and leave the disk as it was; return its line."""

    def run(*words: object) -> str:
        before = snapshot(tmp_path)
        capsys.readouterr()
        code = main([str(word) for word in words])
        printed, errors = capsys.readouterr()
        assert (code, printed) == (2, "")
        assert errors.startswith("s2osc: ")
        assert len(errors.splitlines()) == 1
        assert snapshot(tmp_path) == before
        return errors

    return run


# What is printed


def test_a_window_prints_what_was_found_and_the_command_to_answer(work, printed_by):
    printed = printed_by(*window(work, "pool.npz", "my results"), "--budget=7")
    assert "60 items in the pool" in printed
    assert "Against the truth the pool came with: accuracy " in printed
    out = work / "my results"
    assert (
        f"7 items to label: write classes into the column `label` of {out}/queries.csv" in printed
    )
    last = f"  s2osc stream answer --state {work}/state --labels '{out}/queries.csv'"
    assert printed.splitlines()[-1] == last


def test_answers_print_what_was_learnt_what_joined_and_whether_the_constraint_held(
    work, printed_by
):
    printed = printed_by(*answer(work, "group 0,corner")).splitlines()
    n = json.loads((work / "results" / "summary.json").read_text())["counts"]["unknown"]
    assert printed[:2] == [f"{n} labels taken", "New classes: corner"]
    account = read_state(work / "state").history[-1].updates[0]
    for line, what, losses in zip(
        printed[2:4],
        ("the memory", "items held back"),
        (account.memory, account.seeds),
        strict=True,
    ):
        held = "did not rise" if losses.holds else "rose"
        figures = f"{losses.before:.3g} before, {losses.after:.3g} after"
        assert line == f"The loss on {what} {held}: {figures}"
    assert any("still open" in line for line in printed)
    assert f"  s2osc stream window --state {work}/state --pool POOL --out RESULTS" in printed


def test_a_file_without_labels_changes_nothing(work, printed_by):
    before = snapshot(work / "state")
    path = work / "results" / "queries.csv"
    printed = printed_by("stream", "answer", f"--state={work / 'state'}", f"--labels={path}")
    assert printed == f"{path} holds no labels: nothing was changed\n"
    assert snapshot(work / "state") == before


def test_answering_twice_brings_nothing_new(work, printed_by):
    printed_by(*answer(work, "group 0,corner"))
    printed = printed_by(*answer(work, "group 0,corner"))
    assert printed.startswith("Note: there is no new answer: nothing was learnt\n")


def test_the_status_is_a_table_or_json(work, printed_by):
    words = ("stream", "status", f"--state={work / 'state'}")
    printed = printed_by(*words)
    rows = [line.split("│")[1:-1] for line in printed.splitlines() if line.startswith("│")]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert [row[:3] for row in cells[:2]] == [
        *(["left", "the beginning", "60"], ["top", "the beginning", "60"])
    ]
    assert cells[2][:2] == ["1", "60"]
    assert "Memory: 120 of 2,000 items (" in printed
    assert "Open questions: 10 of 10 of the last window" in printed
    assert "Last change, version 2: window 1 (can be undone)" in printed
    status = json.loads(printed_by(*words, "--json"))
    assert list(status["classes"]) == ["left", "top"]
    assert status["questions"]["open"] == 10


def test_the_status_counts_answers_and_tells_whether_the_loss_rose_on_memory_and_seeds(
    work, printed_by
):
    printed_by(*answer(work, "group 0,corner"))
    rows = printed_by("stream", "status", f"--state={work / 'state'}").splitlines()
    ours = [row.split("│")[1:-1] for row in rows if row.startswith("│") and "corner" in row]
    cells = [cell.strip() for cell in ours[1]]
    (entry,) = read_state(work / "state").history
    account = entry.updates[0]
    held = ["yes" if losses.holds else "no" for losses in (account.memory, account.seeds)]
    assert cells[4:7] == ["10", "1", str(entry.unknown)]
    assert cells[-1] == "/".join(held)


def test_a_self_taught_window_never_asks(work, printed_by):
    printed = printed_by(*window(work, "pool.npz", "next"), "--self-taught", "--budget=20")
    assert "to label" not in printed
    assert "New classes: new 1" in printed
    assert "No questions are open." in printed_by("stream", "status", f"--state={work / 'state'}")
    known = npz(work / "known only.npz", x=easy_vectors(known_labels(30), seed=5))
    printed = printed_by(*window(work, known.name, "then"), "--self-taught")
    assert "Nothing is asked about this window." in printed
    assert "no answer and are closed" not in printed


def test_undo_says_what_was_undone_and_that_there_is_nothing_more(work, printed_by, refused):
    words = ("stream", "undo", f"--state={work / 'state'}")
    assert printed_by(*words) == "Undone: window 1\n"
    assert "there is nothing more to undo" in refused(*words)
    assert "No questions are open." in printed_by("stream", "status", f"--state={work / 'state'}")


def test_the_questions_of_the_open_window_are_written_again(work, printed_by, refused):
    out = work / "again.csv"
    words = ("stream", "queries", f"--state={work / 'state'}", f"--out={out}")
    assert printed_by(*words).splitlines() == [
        "10 questions are open: write classes into the column `label`, then run",
        f"  s2osc stream answer --state {work}/state --labels {out}",
    ]
    assert out.read_bytes() == (work / "results" / "queries.csv").read_bytes()
    assert "is there already; give another name, or --force" in refused(*words)
    printed_by(*words, "--force")
    assert "is a folder" in refused(*words[:-1], f"--out={work}")
    printed_by("stream", "undo", f"--state={work / 'state'}")
    assert "no questions are open" in refused(*words[:-1], f"--out={work / 'more.csv'}")


def test_one_label_is_called_one_label(work, printed_by):
    item = (work / "results" / "queries.csv").read_text("utf-8-sig").splitlines()[2].split(",")[0]
    assert "1 label taken" in printed_by(*answer(work, f"{item},corner")).splitlines()


def test_a_class_is_renamed(work, printed_by):
    printed = printed_by("stream", "rename", f"--state={work / 'state'}", "left", "[red]left[/red]")
    assert printed == "The class 'left' is now called '[red]left[/red]'\n"
    assert "[red]left[/red]" in printed_by("stream", "status", f"--state={work / 'state'}")


def test_a_window_without_unknown_items_works_and_says_so(work, printed_by):
    labels = known_labels(30)
    npz(work / "known only.npz", x=easy_vectors(labels, seed=5))
    printed = printed_by(*window(work, "known only.npz", "next"))
    assert "Cannot tell whether anything in this pool is unknown" in printed
    assert "No item of this window is called unknown." in printed
    assert "Note: 10 of the 10 questions of window 1 had no answer and are closed" in printed


def test_a_window_of_unknown_items_alone_works(work, printed_by):
    npz(work / "new.npz", x=easy_vectors(["corner"] * 30, seed=5))
    printed_by(*window(work, "new.npz", "next"))
    counts = json.loads((work / "next" / "summary.json").read_text())["counts"]
    assert counts["unknown"] >= 28


def test_a_window_of_two_items_works(work, printed_by):
    npz(work / "two.npz", x=easy_vectors(["left", "top"], seed=5))
    printed_by(*window(work, "two.npz", "next"))
    assert json.loads((work / "next" / "summary.json").read_text())["items"]["pool"] == 2


def test_without_a_budget_nothing_is_asked_and_nothing_can_be_answered(work, printed_by, refused):
    printed = printed_by(*window(work, "pool.npz", "next"), "--budget=0")
    assert printed.splitlines()[-1] == "Nothing is asked about this window."
    assert "no questions are open" in refused(*answer_again(work))


def answer_again(folder: Path) -> list[str]:
    """Answers that lie there already."""
    text(folder / "answers.csv", "item,label", "group 0,corner")
    return ["stream", "answer", f"--state={folder / 'state'}", f"--labels={folder}/answers.csv"]


# What is refused


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["999,corner"], "item '999' was not asked about in the last window; answer items of"),
        (["group 4,corner"], "item 'group 4' was not asked about"),
        (["group 0,a", "group 0,b"], "labels item 'group 0' both 'a' and 'b'; give it one label"),
        (["group 0,unknown"], "a label is 'unknown', which is no class; leave it empty, or write"),
        (["group 0,LEFT"], "a label is 'LEFT', but the class is called 'left'; write it so"),
    ],
)
def test_answers_that_cannot_be_learnt(work, refused, rows, message):
    words = answer(work, *rows)
    assert message in refused(*words)


def test_another_answer_to_the_same_question(work, printed_by, refused):
    item = read_state(work / "state").questions.names[0]
    printed_by(*answer(work, f"{item},left"))
    words = answer(work, f"{item},top")
    assert f"item '{item}' was labelled 'left' before and 'top' now; leave it" in refused(*words)


def test_answers_to_a_window_that_a_new_one_has_closed(work, printed_by, refused):
    path = work / "results" / "queries.csv"
    path.write_text(path.read_text().replace("group 0,,", "group 0,corner,"))
    printed_by(*window(work, "pool.npz", "next"))
    line = refused("stream", "answer", f"--state={work / 'state'}", f"--labels={path}")
    assert "answers window 1, but the last one is window 2, which closed it" in line


def empty_folder(folder: Path) -> None:
    (folder / "bad").mkdir()


POOLS = {
    "empty": (empty_folder, "is empty; it holds no images"),
    "missing": (lambda folder: None, "there is no file or folder"),
    "one item": (
        lambda folder: npy(folder / "bad", np.ones((1, 8), np.float32)),
        "the window has one item; give at least two items",
    ),
    "other width": (
        lambda folder: npy(folder / "bad", np.ones((9, 7), np.float32)),
        "has 7 columns, the model was trained on 8",
    ),
    "other kind": (
        lambda folder: npy(folder / "bad", easy_images(pool_labels(2), seed=0)),
        "holds images, the model was trained on vectors",
    ),
}


@pytest.mark.parametrize(("make", "message"), POOLS.values(), ids=POOLS)
def test_windows_that_cannot_be_answered_for(work, refused, make, message):
    make(work)
    found = [path.name for path in work.glob("bad*")]
    assert message in refused(*window(work, found[0] if found else "none.npz", "next"))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("--budget=-1", "the budget is -1; give a number of labels from 0"),
        ("--false-alarm=2", "false-alarm is 2.0; give a share between 0 and 1"),
        ("--out={}/state", "which is the stream's own folder; give another one"),
        ("--out={}/state/more", "which is the stream's own folder; give another one"),
        ("--out={}/results", "holds results already"),
        ("--state={}/none", "holds no stream: stream.json is not there; give the folder that"),
        ("--state={}/pool.npz", "holds no stream"),
    ],
)
def test_options_of_a_window_that_cannot_be(work, refused, word, message):
    assert message in refused(*window(work, "pool.npz", "next"), word.format(work))


@pytest.mark.parametrize("words", [["status"], ["undo"], ["rename", "left", "x"], ["answer"]])
def test_a_stream_that_is_missing_damaged_newer_or_at_work(work, refused, words):
    labels = ["--labels", work / "results" / "queries.csv"] if words == ["answer"] else []
    run = ["stream", words[0], f"--state={work / 'state'}", *words[1:], *labels]
    if words != ["status"]:
        with open_store(work / "state"):
            assert f"another process works on the stream in {work}/state" in refused(*run)
    path = work / "state" / "stream.json"
    right = path.read_text()
    path.write_text(right.replace('"format": 2', '"format": 7'))
    assert "is of format 7" in refused(*run)
    path.write_text(right[:-9])
    assert "stream.json cannot be read" in refused(*run)
    path.unlink()
    assert "holds no stream" in refused(*run)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("bottom", "x", "there is no class 'bottom'; there is left, top"),
        ("left", "left", "is called 'left' already"),
        ("left", "top", "there is a class 'top' already"),
        ("left", "Top", "there is a class 'top' already"),
        ("left", " ", "the new name of the class is empty"),
        ("left", "unknown", "a class cannot be called 'unknown', which has a meaning of its own"),
        ("left", "ignore", "a class cannot be called 'ignore'"),
    ],
)
def test_names_that_cannot_be_given(work, refused, old, new, message):
    assert message in refused("stream", "rename", f"--state={work / 'state'}", old, new)


def test_a_stream_cannot_begin_where_one_is_or_with_a_class_called_ignore(work, refused):
    init = ["stream", "init", f"--known={work / 'known.npz'}"]
    assert "holds a stream already" in refused(*init, f"--state={work / 'state'}")
    labels = ["ignore" if label == "top" else label for label in known_labels(4)]
    npz(work / "bad.npz", x=easy_vectors(known_labels(4), seed=0), y=labels)
    init = ["stream", "init", f"--known={work / 'bad.npz'}", f"--state={work / 'new'}"]
    assert "a class is called 'ignore', which marks items" in refused(*init)
    assert "memory.size is 1; give a number from 4" in refused(*init, "--memory=1")


def test_help_of_streams_loads_no_heavy_library():
    script = (
        "import sys; from s2osc.cli.main import main\n"
        "main(['stream', 'window', '--help'])\n"
        "print(sorted({'numpy', 'pyarrow', 'rich', 'torch', 'filelock'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
