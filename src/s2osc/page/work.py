"""The long work of a project: to learn, to answer for a window, to go back to an earlier state."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from s2osc.app.corrections import Correction, Corrections
from s2osc.app.results_folder import check_summary, version_of
from s2osc.codec import JsonObject, from_plain, to_plain
from s2osc.errors import DataError
from s2osc.files import as_json, guarded, read_json, write_whole
from s2osc.page import learning
from s2osc.page.jobs import Job, Jobs
from s2osc.page.ledger import CLASS, IGNORE, LEAF, Label
from s2osc.page.project import Project, page_folder
from s2osc.page.uploads import Uploads
from s2osc.text import plural

ROUNDS, ROUNDS_FILE, STATES = "rounds", "rounds.json", "states"
NOT_OF_INTEREST = "not of interest"
"""What such items are called in files for other programs."""


def label_words(label: Label) -> str:
    """A label as files have it."""
    if label.target == IGNORE:
        return NOT_OF_INTEREST
    return "unknown" if label.target.startswith(LEAF) else label.target.removeprefix(CLASS)


def corrections_of(project: Project, *, ignored: bool = False) -> Corrections:
    """The labels that people gave to items of a pool; with or without what is not of interest."""
    names = project.opened.names
    return Corrections(
        tuple(
            Correction(names[row], label_words(label), label.by, _iso(label.at))
            for row, label in project.ledger.labelled()
            if ignored or label.target != IGNORE
        )
    )


def _iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Work(Protocol):
    """What the page asks for, whether of a pool or of a stream."""

    project: Project
    jobs: Jobs

    def describe(self) -> JsonObject: ...

    def learn(self, by: str) -> Job: ...

    def back(self, to: int) -> None: ...


@dataclass(frozen=True)
class Round:
    """One answer of the model about a pool, kept to go back to."""

    id: int
    what: str
    at: float


@dataclass(frozen=True)
class Rounds:
    """All of them, the one that is shown, and what the last one changed."""

    current: int = 0
    rounds: tuple[Round, ...] = ()
    last: JsonObject | None = field(default=None)

    @classmethod
    def read(cls, path: Path) -> "Rounds":
        if not path.is_file():
            return cls(rounds=(Round(0, "the first answer", time.time()),))
        advice = "move it away to begin a new list"
        content = read_json(path, advice)
        with guarded(path, advice):
            found: Rounds = from_plain(cls, content, "it")
        return found

    def write(self, path: Path) -> None:
        write_whole(path, as_json(to_plain(self)))


class PoolWork:
    """A pool is fitted anew with the labels of people; every answer is kept."""

    def __init__(self, project: Project) -> None:
        self.project, self.jobs = project, Jobs()
        self._file = project.folder / ROUNDS_FILE
        self.rounds = Rounds.read(self._file)

    def describe(self) -> JsonObject:
        with self.project.mutex:
            corrections = corrections_of(self.project)
            origin = self.project.opened.result.run.origin
            can = bool(corrections) and origin is not None
            words = (
                f"People have labelled {plural(len(corrections.rows), 'item')} so far. Learning "
                "classifies the pool again with these labels; it takes about as long as the first "
                "time."
            )
            if origin is None:
                words = "These results do not say which files they were made of; export instead."
            return {
                "words": words,
                "n_labels": len(corrections.rows),
                "can_learn": can,
                "last": self.rounds.last,
                "rounds": [
                    to_plain(each) | {"current": each.id == self.rounds.current}
                    for each in self.rounds.rounds
                ],
                "stream": None,
            }

    def learn(self, by: str) -> Job:
        project = self.project
        with project.mutex:
            out = project.out
            assert out is not None
            corrections = corrections_of(project)
            if not corrections:
                raise DataError("nobody has labelled anything yet")
            learning.keep_round(out, self._place(self.rounds.current))
            expected = sum(project.opened.result.run.seconds.values())
            before = project.opened
            rows = [before.row_of[each.item] for each in corrections.rows]

            def then(_: Any) -> None:
                project.note_learning(by, rows)
                self._learnt(out, before, f"learnt from {plural(len(corrections.rows), 'label')}")

            return self.jobs.start(
                "Learning", learning.refit, out, corrections, expected=expected, then=then
            )

    def _learnt(self, out: Path, before: Any, what: str) -> None:
        number = max(each.id for each in self.rounds.rounds) + 1
        learning.keep_round(out, self._place(number))
        self.project.open_pool(out)
        change = learning.compare(before, self.project.opened) | {"at": time.time()}
        rounds = (*self.rounds.rounds, Round(number, what, time.time()))
        self._set(Rounds(number, rounds, change))

    def back(self, to: int) -> None:
        with self.project.mutex:
            if to not in {each.id for each in self.rounds.rounds} or self.jobs.is_busy:
                raise DataError(f"there is no state {to} to go back to, or the model is at work")
            out = self.project.out
            assert out is not None
            learning.keep_round(out, self._place(self.rounds.current))
            learning.restore_round(out, self._place(to))
            self.project.open_pool(out)
            self._set(replace(self.rounds, current=to))

    def _place(self, number: int) -> Path:
        return self.project.folder / ROUNDS / str(number)

    def _set(self, rounds: Rounds) -> None:
        rounds.write(self._file)
        self.rounds = rounds


class StreamWork:
    """A stream takes labels in, and windows; every confirmed state is kept."""

    def __init__(self, project: Project, state: Path) -> None:
        self.project, self.state, self.jobs = project, state, Jobs()
        self.uploads = Uploads(project.folder)
        self.archive = project.folder / STATES
        self.status: JsonObject | None = None
        self.last: JsonObject | None = None
        # Not one of the jobs: people need not wait for it.
        Jobs().start("Reading the stream", learning.read_stream, state, then=self._read_first)

    def _read_first(self, status: JsonObject) -> None:
        if self.status is None:  # no window came sooner
            self._read(status)

    def _read(self, status: JsonObject) -> None:
        self.status = status
        results = status["windows"][-1].get("results") if status["windows"] else None
        out = Path(results) if results and Path(results).is_dir() else None
        if out != self.project.out or out is not None:
            self.project.open_pool(out)

    def describe(self) -> JsonObject:
        with self.project.mutex:
            labels, n_changed = self._labels()
            words = f"{plural(len(labels), 'label')} of this window to learn from."
            if self.project.pool is None:
                words = "There is no window yet: drop its files below."
            if n_changed:
                words += (
                    f" {plural(n_changed, 'label')} changed after the model learnt from it: go "
                    "back to the state before to learn it anew."
                )
            return {
                "words": words,
                "n_labels": len(labels),
                "can_learn": bool(labels) and not self.jobs.is_busy,
                "last": self.last,
                "rounds": self._states(),
                "stream": self._history(),
            }

    def _labels(self) -> tuple[dict[str, str], int]:
        """Labels the stream has not learnt, by item, and how many were changed since it did."""
        if self.project.pool is None:
            return {}, 0
        learnt, names = self.project.ledger.learnt(), self.project.opened.names
        fresh: dict[str, str] = {}
        n_changed = 0
        for row, label in self.project.ledger.labelled():
            if row in learnt:
                n_changed += label.act > learnt[row]
            elif label_words(label) != "unknown":
                fresh[names[row]] = label_words(label)
        return fresh, n_changed

    def learn(self, by: str) -> Job:
        with self.project.mutex:
            labels, _ = self._labels()
            out = self.project.out
            if not labels or out is None:
                raise DataError("there are no labels to learn from")
            rows = [self.project.opened.row_of[item] for item in labels]

            def then(found: JsonObject) -> None:
                self.project.note_learning(by, rows)
                self.last = found["change"] | {"at": time.time()}
                self._read(found["status"])

            return self.jobs.start(
                *("Learning", learning.learn_window, self.state, out, self.archive, labels),
                expected=self._seconds_of_update(),
                then=then,
            )

    def _seconds_of_update(self) -> float | None:
        windows = self.status["windows"] if self.status else []
        seconds = [update["seconds"] for each in windows for update in each.get("updates", ())]
        return seconds[-1] if seconds else None

    def window(self, pool: Path, budget: int) -> Job:
        """Answer for the next window, in a new folder beside the stream."""
        place = self.state.with_name(f"{self.state.name}-windows")
        number = 1
        while os.path.lexists(place / str(number)):
            number += 1
        windows = self.status["windows"] if self.status else []
        return self.jobs.start(
            "Answering for the window",
            learning.classify_window,
            self.state,
            pool,
            place / str(number),
            self.archive,
            budget,
            expected=windows[-1]["seconds"] if windows else None,
            then=self._read,
        )

    def back(self, to: int) -> None:
        if not (self.archive / str(to)).is_dir():
            raise DataError(f"there is no state {to} to go back to")
        self.jobs.start(
            *("Going back", learning.go_back, self.state, self.archive, to), then=self._read
        )

    def _states(self) -> list[JsonObject]:
        """The states that were kept, the last first."""
        found = []
        current = self.status["version"] if self.status else None
        numbers = (int(path.name) for path in self.archive.glob("*") if path.name.isdecimal())
        for number in sorted(numbers, reverse=True):
            pointer = self.archive / str(number) / learning.POINTER
            if pointer.is_file():
                content = read_json(pointer, "remove it")
                what = str(content["current"]["what"])
                at = pointer.stat().st_mtime
                found.append({"id": number, "what": what, "at": at, "current": number == current})
        return found

    def _history(self) -> JsonObject:
        if self.status is None:
            return {"windows": [], "classes": {}}
        return {
            "classes": self.status["classes"],
            "windows": [_window_row(each) for each in self.status["windows"]],
        }


def _window_row(record: JsonObject) -> JsonObject:
    """A window in the history, as the page shows it."""
    audit = record.get("audit") or {}
    accuracy = (audit.get("known_accuracy") or {}).get("estimate")
    held = [
        losses["after"] <= losses["before"] * (1 + 1e-6)
        for update in record.get("updates", ())
        for losses in (update.get("memory"), update.get("seeds"))
        if losses
    ]
    names = ("window", "items", "unknown", "groups", "asked", "labelled", "new_classes")
    return {name: record[name] for name in names} | {
        "accuracy": accuracy,
        "held": ("yes" if all(held) else "not quite") if held else "–",
    }


@contextmanager
def opened_work(results: Path | None, state: Path | None) -> Iterator[Work]:
    """The page of a folder of results, or of a stream; refused where another server has it."""
    place = results or state
    assert place is not None
    if results:
        check_summary(version_of(results), results)
    elif not (place / learning.POINTER).is_file():
        raise DataError(
            f"{place} holds no stream: {learning.POINTER} is not there; "
            "give the folder that `s2osc stream init --state` made"
        )
    with page_folder(place) as folder:
        project = Project(folder, results)
        work: Work = PoolWork(project) if results else StreamWork(project, place)
        try:
            yield work
        finally:
            work.jobs.close()
            project.close()
