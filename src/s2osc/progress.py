"""Progress bars and seconds per step.

Code that works through something long wraps it in ``track``; nothing is drawn until a caller who
has a terminal says ``with shown():``. So the library is silent and the command line is not.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

T = TypeVar("T")
_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


@contextmanager
def shown(console: Console | None = None) -> Iterator[None]:
    """Draw every ``track`` within as a bar on ``console`` (standard error by default).

    Where that is a file or a pipe nothing is drawn: bars there are only in the way.
    """
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield
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


def track(items: Iterable[T], what: str, total: int | None = None) -> Iterator[T]:
    """Yield ``items`` unchanged, drawing a bar named ``what`` where bars are shown.

    >>> list(track([1, 2, 3], "counting"))
    [1, 2, 3]
    """
    bars = _current.get()
    if bars is None:
        yield from items
    else:
        yield from bars.track(items, total=total, description=what)


class Stopwatch:
    """Seconds per named step.

    >>> clock = Stopwatch()
    >>> with clock("teacher"):
    ...     pass
    >>> list(clock.seconds)
    ['teacher']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, step: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            elapsed = time.perf_counter() - started
            self.seconds[step] = round(self.seconds.get(step, 0.0) + elapsed, 3)
