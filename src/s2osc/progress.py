"""Progress of long steps, and seconds and rows per step.

Code that works through something long wraps it in ``track``, or counts its rows by ``counting``;
nothing is shown until a caller says ``with shown():``. So the library is silent and the command
line is not.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import IO, TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from s2osc.text import duration

T = TypeVar("T")
Report = Callable[[str, int, int | None], None]
"""Gets the name of a step, how much of it is done, and of how much, where that is known."""


@dataclass
class JsonLines:
    """A file or pipe for programs: one JSON object in each line."""

    file: IO[str]
    last: float = field(default=float("-inf"))

    def write(self, step: str, done: int, total: int | None, **more: float | None) -> None:
        line = {"step": step, "done": done, "total": total} | more
        with suppress(OSError, ValueError):  # nobody may be reading; the work goes on
            print(json.dumps(line), file=self.file, flush=True)

    def is_due(self) -> bool:
        """Whether a second has passed since the last line; then it begins anew."""
        is_due = time.perf_counter() - self.last >= 1.0
        if is_due:
            self.last = time.perf_counter()
        return is_due


_current: ContextVar[Progress | Console | JsonLines | Report | None] = ContextVar(
    "progress", default=None
)

LONG = 2.0
"""Seconds after which a step is worth a line where no bars can be drawn."""
EVERY = 10.0
"""Seconds between two lines on the rows of a step, where no bars can be drawn."""


@contextmanager
def shown(console: Console | None = None) -> Iterator[None]:
    """Draw every ``track`` within as a bar on ``console`` (standard error by default).

    Bars are in the way in a file or a pipe: there a step that takes long is one line.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        token = _current.set(console)
        try:
            yield
        finally:
            _current.reset(token)
        return
    columns = (
        TextColumn("{task.description:<34}"),
        BarColumn(bar_width=32),
        TaskProgressColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as bars:
        token = _current.set(bars)
        try:
            yield
        finally:
            _current.reset(token)


@contextmanager
def written(file: IO[str]) -> Iterator[None]:
    """Write every step within as JSON lines, for programs: at its ends, and every second."""
    token = _current.set(JsonLines(file))
    try:
        yield
    finally:
        _current.reset(token)


@contextmanager
def reported(report: Report) -> Iterator[None]:
    """Hand every step of every ``track`` within to ``report``, for a page to draw.

    >>> with reported(print):
    ...     _ = list(track("ab", "spelling", total=2))
    spelling 0 2
    spelling 1 2
    spelling 2 2
    """
    token = _current.set(report)
    try:
        yield
    finally:
        _current.reset(token)


def say(text: str) -> None:
    """One line for people, where progress is shown to them."""
    bars = _current.get()
    if isinstance(bars, Progress):
        bars.console.print(text, highlight=False, markup=False)
    elif isinstance(bars, Console):
        bars.print(text, highlight=False, markup=False)


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield ``items`` unchanged, showing how far it is under the name ``what``.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    bars = _current.get()
    if bars is None:
        yield from items
    elif isinstance(bars, Console):
        yield from _with_a_line(items, what, bars)
    elif isinstance(bars, JsonLines):
        yield from _with_json(items, what, total, bars)
    elif not isinstance(bars, Progress):
        yield from _with_reports(items, what, total, bars)
    else:
        yield from bars.track(items, total=total, description=what)


def _with_reports(items: Iterable[T], what: str, total: int | None, report: Report) -> Iterator[T]:
    """Yield ``items``, each reported once it is done."""
    if total is None and isinstance(items, Sized):
        total = len(items)
    report(what, 0, total)
    for done, item in enumerate(items, start=1):
        yield item
        report(what, done, total)


def _with_json(items: Iterable[T], what: str, total: int | None, lines: JsonLines) -> Iterator[T]:
    done = 0
    for done, item in enumerate(items, start=1):
        yield item
        if lines.is_due():
            lines.write(what, done, total)
    lines.write(what, done, total)


@dataclass
class RowCount:
    """How far a step is that works through so many rows."""

    what: str
    total: int
    done: int = 0
    here: int = 0  # of those done, the ones of this run: a stopped run goes on where it was
    started: float = field(default_factory=time.perf_counter)

    @property
    def per_second(self) -> float:
        return self.here / max(time.perf_counter() - self.started, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        return (self.total - self.done) / self.per_second if self.here else None

    def in_words(self) -> str:
        """One line.

        >>> RowCount("answering", total=2_000, done=500).in_words()
        'answering: 500 of 2,000 rows, 1,500 left'
        """
        left = f"{self.what}: {self.done:,} of {self.total:,} rows, {self.total - self.done:,} left"
        if self.seconds_left is None:
            return left
        return f"{left}, {self.per_second:,.0f} rows/s, {duration(self.seconds_left)} left"


@contextmanager
def counting(what: str, total: int, done: int = 0) -> Iterator[Callable[[int], None]]:
    """A function that takes the number of rows just done; ``done`` were done in an earlier run.

    On a terminal it is a bar, elsewhere a line every ten seconds. Steps within are not shown.
    """
    bars, count = _current.get(), RowCount(what, total, done, started=time.perf_counter())
    task = bars.add_task(what, total=total, completed=done) if isinstance(bars, Progress) else None
    printed = time.perf_counter()

    def advance(n: int) -> None:
        nonlocal printed
        count.done += n
        count.here += n
        if isinstance(bars, Progress) and task is not None:
            rate = f"{what}, {count.per_second:,.0f} rows/s"
            bars.update(task, completed=count.done, description=rate)
        elif isinstance(bars, JsonLines):
            if bars.is_due():
                _write_rows(bars, count)
        elif isinstance(bars, Console):
            if time.perf_counter() - printed >= EVERY:
                printed = time.perf_counter()
                with suppress(OSError, ValueError):  # nobody may be reading; the work goes on
                    print(count.in_words(), file=bars.file, flush=True)
        elif bars is not None and not isinstance(bars, Progress):
            bars(what, count.done, total)

    token = _current.set(None)
    try:
        yield advance
    finally:
        _current.reset(token)
    if isinstance(bars, JsonLines):
        _write_rows(bars, count)


def _write_rows(lines: JsonLines, count: RowCount) -> None:
    rate, left = round(count.per_second, 1), count.seconds_left
    lines.write(
        count.what,
        count.done,
        count.total,
        rows_per_second=rate,
        rows_left=count.total - count.done,
        seconds_left=None if left is None else round(left, 1),
    )


def _with_a_line(items: Iterable[T], what: str, console: Console) -> Iterator[T]:
    """Yield ``items``; print a line once they take long."""
    started, is_printed = time.perf_counter(), False
    for item in items:
        yield item
        if not is_printed and time.perf_counter() - started > LONG:
            is_printed = True
            with suppress(OSError, ValueError):  # nobody may be reading; the work goes on
                print(f"{what} ...", file=console.file, flush=True)


class Stopwatch:
    """Seconds per named step, and rows where a step counts them.

    >>> clock = Stopwatch()
    >>> with clock("teacher"):
    ...     pass
    >>> list(clock.seconds)
    ['teacher']
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        """Goes on from the seconds of the steps ``before``."""
        self.seconds: dict[str, float] = dict(before or {})
        self.rows: dict[str, int] = {}

    def count(self, step: str, n: int) -> None:
        """Note that a step went through so many rows."""
        self.rows[step] = self.rows.get(step, 0) + n

    def include(self, other: "Stopwatch", names: Mapping[str, str]) -> None:
        """Add the seconds of another one; ``names`` are those of steps that are called otherwise.

        >>> clock = Stopwatch({"answer": 1.0})
        >>> clock.include(Stopwatch({"answer": 2.0, "filter": 3.0}), {"answer": "first answer"})
        >>> clock.seconds
        {'answer': 1.0, 'first answer': 2.0, 'filter': 3.0}
        """
        for step, seconds in other.seconds.items():
            name = names.get(step, step)
            self.seconds[name] = round(self.seconds.get(name, 0.0) + seconds, 3)

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            self.seconds[step] = round(self.seconds.get(step, 0.0) + elapsed, 3)
