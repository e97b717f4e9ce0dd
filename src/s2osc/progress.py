"""Progress of long steps, and seconds per step.

Code that works through something long wraps it in ``track``; nothing is shown until a caller says
``with shown():``. So the library is silent and the command line is not.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

T = TypeVar("T")
Report = Callable[[str, int, int | None], None]
"""Gets the name of a step, how much of it is done, and of how much, where that is known."""
_current: ContextVar[Progress | Console | Report | None] = ContextVar("progress", default=None)

LONG = 2.0
"""Seconds after which a step is worth a line where no bars can be drawn."""


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
    """Seconds per named step.

    >>> clock = Stopwatch()
    >>> with clock("teacher"):
    ...     pass
    >>> list(clock.seconds)
    ['teacher']
    """

    def __init__(self, before: Mapping[str, float] | None = None) -> None:
        """Goes on from the seconds of the steps ``before``."""
        self.seconds: dict[str, float] = dict(before or {})

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            self.seconds[step] = round(self.seconds.get(step, 0.0) + elapsed, 3)
