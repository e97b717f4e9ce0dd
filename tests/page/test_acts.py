"""Acts: on the disk, once each, and nothing is lost."""

import sqlite3

import numpy as np
import pytest

from s2osc.errors import DataError
from s2osc.page.acts import ActStore

ABOUT = {"by": "Ada", "kind": "label", "pool": "p", "fit": "f"}


def test_acts_are_there_after_a_restart(tmp_path):
    store = ActStore(tmp_path / "acts.sqlite")
    store.append(key="a", target="class owl", rows=np.array([3, 1]), **ABOUT)
    store.close()
    (act,) = ActStore(tmp_path / "acts.sqlite").read()
    assert (act.id, act.by, act.target, act.rows.tolist()) == (1, "Ada", "class owl", [1, 3])


def test_an_act_with_a_key_that_came_before_is_found(tmp_path):
    store = ActStore(tmp_path / "acts.sqlite")
    store.append(key="a", rows=np.array([1]), **ABOUT)
    assert store.find("a").id == 1
    assert store.find("b") is None
    with pytest.raises(sqlite3.IntegrityError):
        store.append(key="a", rows=np.array([1]), **ABOUT)


def test_what_is_committed_waits_for_the_disk(tmp_path):
    store = ActStore(tmp_path / "acts.sqlite")
    settings = [
        store._db.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("journal_mode", "synchronous")
    ]
    assert settings == ["wal", 2]  # 2 is FULL


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "steal"}, "an act is of kind 'steal'"),
        ({"by": " "}, "needs a key and the name of a person"),
        ({"by": "x" * 61}, "the name of a person has 61 characters"),
        ({"target": "x" * 301}, "the target has 301 characters"),
    ],
)
def test_what_no_browser_of_ours_sends_is_refused(tmp_path, changes, words):
    store = ActStore(tmp_path / "acts.sqlite")
    with pytest.raises(DataError, match=words):
        store.append(key="a", **ABOUT | changes)
    assert store.read() == []


def test_a_file_that_is_no_table_of_acts_is_refused_in_one_line(tmp_path):
    (tmp_path / "acts.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(DataError, match=r"acts\.sqlite cannot be read .* move it away"):
        ActStore(tmp_path / "acts.sqlite")


def test_acts_of_a_newer_version_are_refused(tmp_path):
    store = ActStore(tmp_path / "acts.sqlite")
    store._db.execute("PRAGMA user_version = 9")
    store.close()
    with pytest.raises(DataError, match="it is of format 9"):
        ActStore(tmp_path / "acts.sqlite")
