"""What people did, one row each: in SQLite, on the disk, before anybody is told that it is done.

Nothing is ever changed or removed. To take an act back is another act, so that it can be done any
number of times, by anybody, and after a restart.
"""

import sqlite3
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from s2osc.errors import DataError
from s2osc.files import guarded
from s2osc.text import clean_text

Kind = Literal["label", "check", "merge", "split", "decide", "learn", "undo", "redo"]
KINDS: tuple[str, ...] = get_args(Kind)
FORMAT = 1
LONGEST_KEY, LONGEST_NAME, LONGEST_TARGET = 64, 60, 300
ADVICE = "move it away to begin anew; results and stream are not touched by that"

SCHEMA = """
CREATE TABLE IF NOT EXISTS acts (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    at REAL NOT NULL,
    by TEXT NOT NULL,
    kind TEXT NOT NULL,
    pool TEXT NOT NULL,
    fit TEXT NOT NULL,
    target TEXT NOT NULL,
    items BLOB NOT NULL,
    undoes INTEGER REFERENCES acts (id)
)
"""


@dataclass(frozen=True, eq=False)
class Act:
    """One act of one person."""

    id: int
    key: str  # that the browser gave it: sent twice, it counts once
    at: float  # seconds since 1970
    by: str
    kind: Kind
    pool: str  # a digest of the items it is about
    fit: str  # a digest of what the model measured: groups and random draws are of one fit
    target: str  # what became of them; see ``ledger.Target``
    rows: np.ndarray  # (n,) int32 of that pool
    undoes: int | None = None  # the act it takes back


class ActStore:
    """The acts of a project. One process has it open; its threads take turns outside."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with guarded(path, ADVICE):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            # WAL and FULL: what was committed is there after kill -9, and after a power cut.
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version > FORMAT:
                raise ValueError(f"it is of format {version}, a newer s2osc wrote it")
            self._db.execute(SCHEMA)
            self._db.execute(f"PRAGMA user_version = {FORMAT}")

    def close(self) -> None:
        self._db.close()

    def read(self) -> list[Act]:
        """Every act, in order."""
        with guarded(self._path, ADVICE):
            return [_act(row) for row in self._db.execute("SELECT * FROM acts ORDER BY id")]

    def find(self, key: str) -> Act | None:
        """The act with a key, where it came before."""
        row = self._db.execute("SELECT * FROM acts WHERE key = ?", (key,)).fetchone()
        return _act(row) if row else None

    def append(
        self,
        *,
        key: str,
        by: str,
        kind: Kind,
        pool: str,
        fit: str,
        target: str = "",
        rows: np.ndarray | None = None,
        undoes: int | None = None,
    ) -> Act:
        """Put an act on the disk, and return it."""
        check_act(key, by, kind, target)
        items = np.unique(np.zeros(0) if rows is None else rows).astype("<i4")
        who = clean_text(by)
        values = (key, time.time(), who, kind, pool, fit, target, items.tobytes(), undoes)
        cursor = self._db.execute(
            "INSERT INTO acts (key, at, by, kind, pool, fit, target, items, undoes) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        )
        assert cursor.lastrowid is not None
        return _act((cursor.lastrowid, *values))


def check_act(key: str, by: str, kind: str, target: str) -> None:
    """Refuse what no browser of ours sends."""
    if kind not in KINDS:
        raise DataError(f"an act is of kind {kind!r:.50}; give one of {', '.join(KINDS)}")
    for name, value, longest in (
        ("key", key, LONGEST_KEY),
        ("name of a person", by, LONGEST_NAME),
        ("target", target, LONGEST_TARGET),
    ):
        if len(value) > longest:
            raise DataError(f"the {name} has {len(value)} characters; give at most {longest}")
    if not key or not by.strip():
        raise DataError("an act needs a key and the name of a person")


def _act(row: tuple) -> Act:
    number, key, at, by, kind, pool, fit, target, items, undoes = row
    rows = np.frombuffer(items, "<i4")
    return Act(number, key, at, by, kind, pool, fit, target, rows, undoes)
