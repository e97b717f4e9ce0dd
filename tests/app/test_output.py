"""Places for what a job hands on: whole or not at all, and nothing of a user's is replaced."""

import os
from pathlib import Path

import pytest

from files import snapshot, text
from s2osc.app.output import LIST, result_file, result_files
from s2osc.errors import DataError, OutputError

# One file


def test_a_file_is_written_whole_and_its_lock_goes(tmp_path):
    with result_file(tmp_path / "deep" / "a.csv", force=False) as put:
        put(b"new")
    assert (tmp_path / "deep" / "a.csv").read_text() == "new"
    assert os.listdir(tmp_path / "deep") == ["a.csv"]


def test_a_file_that_is_there_is_refused_unless_forced(tmp_path):
    out = text(tmp_path / "a.csv", "old")
    with (
        pytest.raises(OutputError, match=r"is there already; .* --force"),
        result_file(out, force=False),
    ):
        pass
    with result_file(out, force=True) as put:
        put(b"new")
    assert out.read_text() == "new"
    with (
        pytest.raises(OutputError, match="is a folder; give a file name"),
        result_file(tmp_path, force=True),
    ):
        pass


def test_of_two_that_write_one_file_one_is_refused(tmp_path):
    out = tmp_path / "a.csv"
    with result_file(out, force=False) as put:
        with (
            pytest.raises(OutputError, match=r"another process writes .*a\.csv; wait until"),
            result_file(out, force=True),
        ):
            pass
        put(b"one")
    assert out.read_text() == "one"


def test_a_file_that_a_user_made_meanwhile_is_not_overwritten(tmp_path):
    out = tmp_path / "a.csv"

    def predict() -> None:
        with result_file(out, force=False) as put:
            out.write_text("mine")
            put(b"new")

    with pytest.raises(OutputError, match="is there already"):
        predict()
    assert out.read_text() == "mine"


def test_a_run_that_fails_leaves_no_file_and_no_folder(tmp_path):
    def fail() -> None:
        with result_file(tmp_path / "deep" / "a.csv", force=False):
            raise DataError("no items")

    with pytest.raises(DataError):
        fail()
    assert os.listdir(tmp_path) == []


# A folder of files


def write_into(out: Path, name: str, *, force: bool = False) -> None:
    with result_files(out, force=force) as stage:
        (stage / "cat").mkdir()
        text(stage / "cat" / name, "new")


def test_a_folder_appears_whole_and_nothing_else_is_left(tmp_path):
    out = tmp_path / "deep" / "out"
    with result_files(out, force=False) as stage:
        text(stage / "a.txt", "new")
        assert not out.exists()
    assert set(snapshot(tmp_path / "deep")) == {"out", "out/a.txt", f"out/{LIST}"}


def test_a_folder_that_is_there_is_replaced_only_if_forced(tmp_path):
    write_into(tmp_path / "out", "1.txt")
    with pytest.raises(OutputError, match="is there already"):
        write_into(tmp_path / "out", "2.txt")
    write_into(tmp_path / "out", "2.txt", force=True)
    assert os.listdir(tmp_path / "out" / "cat") == ["2.txt"]
    assert os.listdir(tmp_path) == ["out"]


def test_a_folder_with_files_of_a_user_is_never_replaced(tmp_path):
    mine = text(tmp_path / "mine.txt", "mine").parent
    with pytest.raises(OutputError, match="was not written by `s2osc export`"):
        write_into(mine, "1.txt", force=True)
    write_into(tmp_path / "out", "1.txt")
    text(tmp_path / "out" / "cat" / "mine.txt", "mine")
    before = snapshot(tmp_path)
    with pytest.raises(OutputError, match=r"holds cat/mine\.txt, which s2osc did not write"):
        write_into(tmp_path / "out", "2.txt", force=True)
    assert snapshot(tmp_path) == before


def test_a_job_that_fails_leaves_the_folder_as_it_was(tmp_path):
    write_into(tmp_path / "out", "1.txt")
    before = snapshot(tmp_path)

    def fail() -> None:
        with result_files(tmp_path / "out", force=True) as stage:
            text(stage / "a.txt", "half")
            raise DataError("no items")

    with pytest.raises(DataError):
        fail()
    assert snapshot(tmp_path) == before


def test_a_folder_that_a_killed_job_had_set_aside_comes_back(tmp_path):
    write_into(tmp_path / "out", "1.txt")
    (tmp_path / "out").rename(tmp_path / ".out.s2osc-old")
    with pytest.raises(OutputError, match="is there already"):
        write_into(tmp_path / "out", "2.txt")
    assert os.listdir(tmp_path / "out" / "cat") == ["1.txt"]
