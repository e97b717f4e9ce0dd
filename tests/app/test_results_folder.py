"""A results folder holds one whole version at any moment, and nothing of the user's is lost."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from files import visible
from s2osc.app.results_folder import RESULTS, read_current, results_folder, version_of
from s2osc.errors import DataError, OutputError

OLD = {"summary.json": "old", "predictions.csv": "old", "skipped.csv": "old"} | {
    f"model/{name}": "old" for name in ("model.json", "weights.safetensors")
}
NEW = {name: "new" for name in OLD if name != "skipped.csv"} | {"report.html": "new"}
FOREIGN = {"notes.txt": "mine", "model/card.md": "mine too", "more/predictions.csv": "also mine"}
CHANGES = (
    *("rename", "replace", "symlink", "link", "unlink", "rmdir", "mkdir"),
    *("fsync", "open"),
)


def write(folder: Path, contents: dict[str, str]) -> Path:
    for name, text in contents.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def texts(folder: Path) -> dict[str, str]:
    return {name: held.decode() for name, held in visible(folder).items() if held is not None}


def publish(out: Path, contents: dict[str, str], **how: bool) -> None:
    with results_folder(out, **how) as folder, folder.publish() as stage:
        write(stage, contents)


@pytest.fixture
def out(tmp_path) -> Path:
    publish(tmp_path / "out", OLD)
    return tmp_path / "out"


@pytest.fixture(params=["links", "copies"])
def either(request, monkeypatch) -> None:
    """On a disk with symbolic links, and on one without."""
    if request.param == "copies":
        refuse_links(monkeypatch)


def refuse_links(monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "symlink", refuse)
    monkeypatch.setattr(os, "link", refuse)


# Versions


@pytest.mark.usefixtures("either")
def test_results_appear_when_the_block_ends_and_not_before(tmp_path):
    out = tmp_path / "a" / "b" / "out"
    with results_folder(out) as folder:
        with folder.publish() as stage:
            write(stage, OLD)
            assert texts(out) == {}
        assert texts(out) == OLD
    assert texts(out) == OLD


@pytest.mark.usefixtures("either")
def test_a_new_version_replaces_every_file_and_leaves_those_of_the_user(tmp_path):
    out = write(tmp_path / "out", FOREIGN)
    publish(out, OLD)
    publish(out, NEW, update=True)
    assert texts(out) == NEW | FOREIGN
    publish(out, {"summary.json": "last"}, force=True)
    assert texts(out) == {"summary.json": "last"} | FOREIGN
    assert len(list((out / ".s2osc" / "versions").iterdir())) == 1


@pytest.mark.usefixtures("either")
def test_files_can_be_kept_from_the_version_before(tmp_path):
    out = tmp_path / "out"
    publish(out, OLD)
    with results_folder(out, update=True) as folder:
        keep = ["predictions.csv", "model/weights.safetensors"]
        with folder.publish(keep=keep) as stage:
            write(stage, {"summary.json": "new"})
    assert texts(out) == {"summary.json": "new"} | dict.fromkeys(keep, "old")


@pytest.mark.usefixtures("either")
def test_a_file_for_the_user_to_write_into_stays_as_it_is_left(tmp_path):
    out = tmp_path / "out"
    with results_folder(out) as folder, folder.publish(plain=["queries.csv"]) as stage:
        write(stage, OLD | {"queries.csv": "label?"})
    assert texts(out) == OLD | {"queries.csv": "label?"}
    publish(out, NEW, update=True)
    assert texts(out) == NEW | {"queries.csv": "label?"}
    (out / "queries.csv").write_text("cat")
    publish(out, OLD, update=True)
    publish(out, NEW, force=True)
    assert texts(out) == NEW | {"queries.csv": "cat"}
    assert not (out / "queries.csv").is_symlink()


def test_hidden_files_are_part_of_a_version_and_not_of_the_folder(out):
    publish(out, NEW | {".unfinished": "new"}, update=True)
    assert texts(out) == NEW
    assert (version_of(out) / ".unfinished").read_text() == "new"


def test_a_folder_can_be_moved_and_copied(out, tmp_path):
    moved = out.rename(tmp_path / "moved")
    assert texts(moved) == OLD
    copied = shutil.copytree(moved, tmp_path / "copied", symlinks=True)
    publish(copied, NEW, update=True)
    assert (texts(moved), texts(copied)) == (OLD, NEW)


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("whole", [True, False], ids=["with the store", "without it"])
def test_a_copy_without_links_is_read_and_gets_versions_again(tmp_path, whole):
    publish(tmp_path / "out", OLD)
    ignore = None if whole else shutil.ignore_patterns(".s2osc")
    copied = shutil.copytree(tmp_path / "out", tmp_path / "copied", ignore=ignore)
    write(copied, FOREIGN)
    assert (version_of(copied) / "summary.json").read_text() == "old"
    publish(copied, NEW, update=True)
    assert texts(copied) == NEW | FOREIGN
    publish(copied, OLD, update=True)
    assert texts(copied) == OLD | FOREIGN


def test_a_copy_from_which_links_were_left_out_is_recovered(out, tmp_path):
    def links(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder, name).is_symlink()]

    copied = shutil.copytree(out, tmp_path / "copied", ignore=links)
    assert texts(copied) == {}
    with pytest.raises(OutputError, match="holds results already"):
        publish(copied, NEW)
    assert texts(copied) == OLD
    publish(copied, NEW, update=True)
    assert texts(copied) == NEW


def test_a_model_is_read_from_one_version_also_while_it_changes(out):
    def read(place: Path) -> str:
        first = (place / "model.json").read_text()
        if first == "old":
            publish(out, NEW, update=True)
        try:
            return first + (place / "weights.safetensors").read_text()
        except OSError as error:
            raise DataError("gone") from error

    assert read_current(out / "model", read) == "newnew"


def test_a_model_that_a_user_put_there_is_the_one_that_is_read(out):
    (out / "model" / "model.json").unlink()
    write(out, {"model/model.json": "mine"})
    assert read_current(out / "model", lambda p: (p / "model.json").read_text()) == "mine"


# What is refused


@pytest.mark.parametrize("name", RESULTS)
def test_a_folder_with_any_result_is_refused_unless_forced(tmp_path, name):
    write(tmp_path, {name: "old"})
    with (
        pytest.raises(OutputError, match=rf"holds results already \({name}\); .* --force"),
        results_folder(tmp_path),
    ):
        pass
    assert texts(tmp_path) == {name: "old"}
    assert not (tmp_path / ".s2osc").exists()
    publish(tmp_path, NEW, force=True)
    assert texts(tmp_path) == NEW


def test_two_runs_on_one_folder_are_one_run_and_one_line(tmp_path):
    out = tmp_path / "out"
    with results_folder(out) as folder:
        with (
            pytest.raises(OutputError, match=r"another process writes to .*out; wait until"),
            results_folder(out),
        ):
            pass
        with folder.publish() as stage:
            write(stage, NEW)
    assert texts(out) == NEW


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
@pytest.mark.parametrize("earlier", [None, OLD | FOREIGN], ids=["new", "there"])
def test_after_a_failure_everything_is_as_it_was(tmp_path, error, earlier):
    out = tmp_path / "deep" / "out"
    if earlier:
        write(out, earlier)
    before = texts(tmp_path)

    def fail() -> None:
        with results_folder(out, force=True) as folder, folder.publish() as stage:
            write(stage, {"summary.json": "new", "predictions.csv": "half"})
            raise error

    with pytest.raises((OutputError, KeyboardInterrupt)):
        fail()
    assert texts(tmp_path) == before
    assert out.exists() == bool(earlier)


def test_where_nothing_is_published_nothing_is_left(tmp_path):
    with results_folder(tmp_path / "a" / "out"):
        pass
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("either")
def test_a_file_that_a_user_saved_over_ours_is_not_overwritten(tmp_path):
    out = tmp_path / "out"
    publish(out, OLD)
    (out / "predictions.csv").unlink()
    write(out, {"predictions.csv": "mine"})
    with pytest.raises(OutputError, match=r"predictions\.csv is not as s2osc wrote it; copy it"):
        publish(out, NEW, update=True)
    assert texts(out) == OLD | {"predictions.csv": "mine"}
    (out / "predictions.csv").unlink()
    publish(out, NEW, update=True)
    assert texts(out) == NEW


def test_a_file_that_a_user_changed_through_its_link_is_not_overwritten(out):
    write(out, {"predictions.csv": "mine"})
    with pytest.raises(OutputError, match=r"predictions\.csv is not as s2osc wrote it"):
        publish(out, NEW, update=True)
    assert texts(out) == OLD | {"predictions.csv": "mine"}
    publish(out, NEW, force=True)
    assert texts(out) == NEW


def test_a_folder_or_a_link_in_the_place_of_a_file_is_refused_also_when_forced(tmp_path):
    (tmp_path / "one" / "report.html").mkdir(parents=True)
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "model").symlink_to(tmp_path / "one", target_is_directory=True)
    for name, message in (("one", "report.html is a folder"), ("two", "model is a link")):
        with (
            pytest.raises(OutputError, match=message),
            results_folder(tmp_path / name, force=True),
        ):
            pass


def test_a_folder_without_results_cannot_be_updated(tmp_path):
    for out in (tmp_path, tmp_path / "new"):
        with (
            pytest.raises(DataError, match=r"holds no results: summary\.json is not there"),
            results_folder(out, update=True),
        ):
            pass
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"versions": {"1": {"../a": "b"}}, "plain": {}}']
)
def test_a_damaged_manifest_is_refused_and_nothing_is_removed(out, content):
    (out / ".s2osc" / "manifest.json").write_text(content)
    with pytest.raises(OutputError, match=r"manifest\.json cannot be read") as refused:
        publish(out, NEW, force=True)
    assert "\n" not in str(refused.value)
    assert texts(out) == OLD


def test_what_the_manifest_does_not_list_stays(out):
    mine = write(out / ".s2osc" / "versions" / "7", {"mine.txt": "mine"})
    publish(out, NEW, update=True)
    assert (mine / "mine.txt").read_text() == "mine"
    assert texts(out) == NEW


# A process that is killed


class Killed(BaseException):
    """The process is gone: nothing it still wants to do happens."""


@contextmanager
def killed_at(step: int, monkeypatch) -> Iterator[list[int]]:
    """End the process at one of its changes to the disk; the list counts them."""
    counted: list[int] = []

    def dying(name: str, change):
        def call(*arguments: object, **more: object):
            if name != "open" or (len(arguments) > 1 and arguments[1] & os.O_CREAT):
                counted.append(1)
                if len(counted) > step:
                    raise Killed
            return change(*arguments, **more)

        return call

    with monkeypatch.context() as patch, suppress(Killed):
        for name in CHANGES:
            patch.setattr(os, name, dying(name, getattr(os, name)))
        yield counted


def start_plain(out: Path) -> None:
    write(out, OLD)


def start_published(out: Path) -> None:
    publish(out, OLD)


@pytest.mark.parametrize(
    ("has_links", "start"),
    [
        (True, start_published),
        (False, start_plain),
        pytest.param(True, start_plain, marks=pytest.mark.slow),
        pytest.param(False, start_published, marks=pytest.mark.slow),
    ],
)
def test_a_process_killed_anywhere_leaves_one_whole_version(
    tmp_path, monkeypatch, has_links, start
):
    if not has_links:
        refuse_links(monkeypatch)
    seen = []
    for step in range(500):
        out = tmp_path / str(step)
        start(out)
        write(out, FOREIGN)
        with killed_at(step, monkeypatch) as counted:
            publish(out, NEW, update=True)
        version = version_of(out)
        held = {name for name in RESULTS if (version / name).is_file()}
        found = {name: (version / name).read_text() for name in held}
        assert found in (OLD, NEW), step
        if not (out / ".s2osc" / "current").is_file():  # links: also for who knows none of this
            known = {name: text for name, text in texts(out).items() if name not in FOREIGN}
            assert known == found, step
        seen.append(found["summary.json"])
        publish(out, OLD, update=True)
        assert texts(out) == OLD | FOREIGN, step
        assert len(list((out / ".s2osc" / "versions").iterdir())) == 1
        if len(counted) <= step:
            break
    assert seen == sorted(seen, reverse=True)  # old, until it is new
    assert {"old", "new"} == set(seen)
    assert len(seen) > 20


@pytest.mark.usefixtures("either")
@pytest.mark.parametrize(
    "either", ["links", pytest.param("copies", marks=pytest.mark.slow)], indirect=True
)
def test_a_process_killed_while_the_first_version_is_made_leaves_a_folder_to_begin_again_in(
    tmp_path, monkeypatch
):
    for step in range(500):
        out = tmp_path / str(step)
        with killed_at(step, monkeypatch) as counted:
            publish(out, NEW)
        with results_folder(out, force=True) as folder:
            assert texts(out) in ({}, NEW), step
            assert bool(texts(out)) == (folder.version != out)
            with folder.publish() as stage:
                write(stage, OLD)
        assert texts(out) == OLD, step
        if len(counted) <= step:
            return
    raise AssertionError("it never came to its end")
