"""Results appear whole or not at all, and nothing of the user's is lost."""

import errno
import os
from pathlib import Path

import pytest

from files import snapshot
from s2osc.errors import OutputError
from s2osc.files import (
    RESULTS,
    check_file_target,
    check_target,
    staged_file,
    staged_folder,
    staged_update,
)

EARLIER = {name: f"earlier {name}" for name in RESULTS}
FOREIGN = {"notes.txt": "mine", "model/card.md": "mine too", "more/predictions.csv": "also mine"}


def write(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {name: held.decode() for name, held in snapshot(folder).items() if held is not None}


# Processes that are killed


def stage_of_a_killed_process(folder: Path, **files: str) -> Path:
    """What such a process leaves, its lock with it, but free."""
    contents = {".lock": "", ".owned": "", "new/predictions.csv": "half"}
    return write(
        folder / ".s2osc-abc123", contents | {f"{k}/summary.json": files[k] for k in files}
    )


@pytest.mark.parametrize("earlier", [False, True], ids=["new", "replaced"])
def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path, earlier):
    out = tmp_path / "out"
    if earlier:
        out.mkdir()
    stage_of_a_killed_process(out if earlier else tmp_path)
    with staged_folder(out) as stage:
        write(stage, {"summary.json": "{}"})
    assert texts(tmp_path) == {"out/summary.json": "{}"}


def test_the_stage_of_a_process_at_work_stays(tmp_path):
    with staged_folder(tmp_path / "one") as one:
        write(one, {"summary.json": "one"})
        with staged_folder(tmp_path / "two") as two:
            write(two, {"summary.json": "two"})
    assert texts(tmp_path) == {"one/summary.json": "one", "two/summary.json": "two"}


def test_a_stage_that_holds_earlier_results_or_tells_of_no_owner_stays(tmp_path):
    stage_of_a_killed_process(tmp_path, old="the only copy")
    write(tmp_path / ".s2osc-mine", {"new/notes.txt": "mine"})
    before = texts(tmp_path)
    with staged_file(tmp_path / "out.csv") as path:
        path.write_text("a")
    assert texts(tmp_path) == before | {"out.csv": "a"}


# Folders


def test_results_appear_when_the_block_ends_and_not_before(tmp_path):
    out = tmp_path / "a" / "b" / "out"
    with staged_folder(out) as stage:
        write(stage, {"summary.json": "new", "model/model.json": "new"})
        assert not out.exists()
    assert texts(tmp_path) == {"a/b/out/summary.json": "new", "a/b/out/model/model.json": "new"}


def test_a_new_folder_has_the_rights_any_new_folder_has(tmp_path):
    (tmp_path / "plain").mkdir()
    with staged_folder(tmp_path / "out"):
        pass
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_results_join_foreign_files_in_a_folder_that_is_there(tmp_path):
    out = write(tmp_path / "out", FOREIGN)
    with staged_folder(out) as stage:
        write(stage, {"summary.json": "new", "model/model.json": "new"})
    assert texts(out) == FOREIGN | {"summary.json": "new", "model/model.json": "new"}
    assert set(tmp_path.iterdir()) == {out}


def test_all_earlier_results_go_also_those_the_new_run_has_not(tmp_path):
    out = write(tmp_path / "out", EARLIER | FOREIGN)
    with staged_folder(out) as stage:
        write(stage, {"summary.json": "new"})
        assert texts(out).items() >= EARLIER.items()
    assert texts(out) == FOREIGN | {"summary.json": "new"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("earlier", [None, EARLIER | FOREIGN], ids=["new", "replaced"])
def test_after_a_failure_everything_is_as_it_was(tmp_path, error, earlier):
    out = tmp_path / "deep" / "out"
    if earlier:
        write(out, earlier)
    before = snapshot(tmp_path)

    def fail() -> None:
        with staged_folder(out) as stage:
            write(stage, {"summary.json": "new", "predictions.csv": "half"})
            raise error

    with pytest.raises((OutputError, KeyboardInterrupt)):
        fail()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("n_moves", range(len(RESULTS) + 2))
def test_a_failure_while_results_are_exchanged_brings_the_earlier_ones_back(
    tmp_path, monkeypatch, n_moves
):
    out = write(tmp_path / "out", EARLIER | FOREIGN)
    before, rename, moved = snapshot(tmp_path), Path.rename, []

    def fail_once(path: Path, target: Path) -> Path:
        moved.append(path)
        if len(moved) == n_moves + 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    def replace_results() -> None:
        with staged_folder(out) as stage:
            write(stage, {"summary.json": "new", "model/model.json": "new"})
            monkeypatch.setattr(Path, "rename", fail_once)

    with pytest.raises(OutputError, match="Input/output error; nothing was kept"):
        replace_results()
    assert snapshot(tmp_path) == before


def test_an_update_replaces_its_own_files_and_leaves_all_others(tmp_path):
    out = write(tmp_path / "out", EARLIER | FOREIGN)
    new = {"summary.json": "new", "model/model.json": "new"}
    with staged_update(out) as stage:
        write(stage, new)
        assert texts(out).items() >= EARLIER.items()
    assert texts(out) == EARLIER | FOREIGN | new


@pytest.mark.parametrize("n_moves", range(4))
def test_a_failure_while_an_update_is_exchanged_brings_the_earlier_files_back(
    tmp_path, monkeypatch, n_moves
):
    out = write(tmp_path / "out", EARLIER | FOREIGN)
    before, rename, moved = snapshot(tmp_path), Path.rename, []

    def fail_once(path: Path, target: Path) -> Path:
        moved.append(path)
        if len(moved) == n_moves + 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(path, target)

    def update() -> None:
        with staged_update(out) as stage:
            write(stage, {"summary.json": "new", "model/model.json": "new"})
            monkeypatch.setattr(Path, "rename", fail_once)

    with pytest.raises(OutputError, match="Input/output error; nothing was kept"):
        update()
    assert snapshot(tmp_path) == before


def test_a_folder_that_is_a_disk_of_its_own_is_written_within(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    with staged_folder(out) as stage:
        assert out in stage.parents


# Files


def test_a_file_is_replaced_in_one_move(tmp_path):
    out = write(tmp_path, {"a.csv": "earlier"}) / "a.csv"
    with staged_file(out) as path:
        path.write_text("new")
        assert out.read_text() == "earlier"
    assert texts(tmp_path) == {"a.csv": "new"}


def test_a_file_that_fails_leaves_nothing(tmp_path):
    def fail() -> None:
        with staged_file(tmp_path / "deep" / "a.csv") as path:
            path.write_text("half")
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OutputError, match=r"a\.csv: No space left on device; nothing was kept"):
        fail()
    assert snapshot(tmp_path) == {}


# Places that are refused before any work


@pytest.mark.parametrize("name", RESULTS)
def test_a_folder_with_any_result_is_refused_unless_forced(tmp_path, name):
    write(tmp_path, {name: ""})
    with pytest.raises(OutputError, match=rf"holds results already \({name}\); .* --force"):
        check_target(tmp_path, force=False)
    check_target(tmp_path, force=True)


def test_a_folder_with_foreign_files_alone_is_welcome(tmp_path):
    check_target(write(tmp_path, FOREIGN), force=False)
    check_target(tmp_path / "new" / "deep", force=False)


def test_a_file_is_refused_unless_forced(tmp_path):
    out = write(tmp_path, {"a.csv": ""}) / "a.csv"
    with pytest.raises(OutputError, match=r"is there already; .* --force"):
        check_file_target(out, force=False)
    check_file_target(out, force=True)
    with pytest.raises(OutputError, match="is a folder; give a file name"):
        check_file_target(tmp_path, force=True)


def test_a_place_below_a_file_is_refused(tmp_path):
    write(tmp_path, {"a": ""})
    with pytest.raises(OutputError, match="a is a file; give a folder"):
        check_target(tmp_path / "a", force=True)
    with pytest.raises(OutputError, match=r"a is a file, so .* cannot be made"):
        check_target(tmp_path / "a" / "b" / "c", force=True)
    with pytest.raises(OutputError, match=r"a is a file, so .* cannot be made"):
        check_file_target(tmp_path / "a" / "b.csv", force=True)


def test_a_place_without_the_right_to_write_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(OutputError, match="may not be written to"):
        check_target(tmp_path / "new" / "deep", force=False)
