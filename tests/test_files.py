"""Files that are whole or absent, and readers that say what is wrong."""

import os

import pytest

from s2osc.errors import DataError, ModelError, OutputError
from s2osc.files import (
    cache_folder,
    check_folder,
    check_regular,
    guarded,
    lock,
    made_folders,
    parse_json,
    part_of,
    read_json,
    read_whole,
    write_whole,
)


def test_a_file_is_written_whole_and_nothing_else_is_left(tmp_path):
    write_whole(tmp_path / "new" / "a.json", b"content")
    assert (tmp_path / "new" / "a.json").read_bytes() == b"content"
    assert os.listdir(tmp_path / "new") == ["a.json"]


def test_what_a_killed_process_left_is_taken_over_by_the_next_write(tmp_path):
    part_of(tmp_path / "a").write_bytes(b"half of something longer than the new content")
    write_whole(tmp_path / "a", b"whole")
    assert os.listdir(tmp_path) == ["a"]
    assert (tmp_path / "a").read_bytes() == b"whole"


def test_a_write_that_fails_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    write_whole(tmp_path / "a", b"before")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(tmp_path / "a", b"after")
    assert (tmp_path / "a").read_bytes() == b"before"
    assert os.listdir(tmp_path) == ["a"]


def test_a_held_lock_is_refused_at_once_with_the_line_given(tmp_path):
    with (
        lock(tmp_path / "lock", "busy"),
        pytest.raises(OutputError, match="somebody works here"),
        lock(tmp_path / "lock", "somebody works here"),
    ):
        pass


def test_a_lock_file_may_go_with_the_lock(tmp_path):
    with lock(tmp_path / "lock", "busy", remove=True):
        assert os.listdir(tmp_path) == ["lock"]
    assert os.listdir(tmp_path) == []


def test_folders_that_were_made_and_stayed_empty_go_again(tmp_path):
    with made_folders(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert os.listdir(tmp_path) == []
    with made_folders(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").touch()
    assert os.listdir(tmp_path / "a") == ["file"]


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "link").symlink_to("nowhere")
    with pytest.raises(OutputError, match="a is a file; give a folder"):
        check_folder(tmp_path / "a")
    with pytest.raises(OutputError, match=r"a is a file, so .* cannot be made"):
        check_folder(tmp_path / "a" / "b" / "c")
    with pytest.raises(OutputError, match="link is a link that leads nowhere; give a folder"):
        check_folder(tmp_path / "link")
    check_folder(tmp_path / "new" / "deep")


def test_a_place_without_the_right_to_write_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    with pytest.raises(OutputError, match="may not be written to"):
        check_folder(tmp_path / "new" / "deep")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "it holds a list"),
        ('{"a": 1e400}', "1e400"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": ' + "9" * 40 + "}", "40 digits"),
        ('{"a": ' + "[" * 60 + "]" * 60 + "}", "nested"),
        ('{"a": ' + "[" * 100_000, "nested too deeply"),
        ('{"a": ', "Expecting value"),
        (b"\xff\xfe{", "utf-16"),
    ],
)
def test_json_from_a_stranger_is_refused_with_one_line(tmp_path, text, message):
    path = tmp_path / "model.json"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelError, match=message) as caught:
        read_json(path, "copy it again", ModelError)
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).endswith("copy it again")


def test_ordinary_json_is_read_as_it_is():
    assert parse_json('{"a": {"b": [1, -2.5, "x", null, true]}}') == {
        "a": {"b": [1, -2.5, "x", None, True]}
    }


def test_a_pipe_is_refused_instead_of_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pool.csv")
    with pytest.raises(DataError, match="a pipe or a device"):
        check_regular(tmp_path / "pool.csv")


def test_a_file_of_another_size_than_expected_is_not_read(tmp_path):
    (tmp_path / "a").write_bytes(b"12345")
    with pytest.raises(DataError, match="5 bytes, where at most 4"):
        read_whole(tmp_path / "a", largest=4)


def test_whatever_a_parser_raises_becomes_one_line_about_the_file(tmp_path):
    for error in (KeyError("x"), RecursionError(), MemoryError(), ZeroDivisionError("a\nb")):
        with pytest.raises(DataError, match="cannot be read") as caught, guarded(tmp_path, "mend"):
            raise error
        assert len(str(caught.value).splitlines()) == 1


def test_our_own_errors_pass_the_guard_unchanged(tmp_path):
    with pytest.raises(ModelError, match=r"^as it is$"), guarded(tmp_path, "mend"):
        raise ModelError("as it is")


def test_a_cache_lies_where_a_variable_says_or_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path))
    assert cache_folder("S2OSC_CACHE", "features") == tmp_path
    monkeypatch.delenv("S2OSC_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert cache_folder("S2OSC_CACHE", "features") == tmp_path / "mine" / "s2osc" / "features"


@pytest.mark.parametrize(
    "content", [b'{"a": "\\ud800"}', b'{"\\uD8FF": 1}', b'{"a": "\xed\xa0\x80"}']
)
def test_half_of_a_character_is_no_text(tmp_path, content):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(DataError, match=r"it holds text that is no Unicode\); copy it"):
        read_json(tmp_path / "a.json", "copy it")


def test_a_character_of_two_halves_is_text(tmp_path):
    (tmp_path / "a.json").write_bytes(b'{"a": "\\ud83d\\ude00"}')
    assert read_json(tmp_path / "a.json", "copy it") == {"a": "\U0001f600"}
