"""What an engine does: it gives the parts of a pool to workers.

A worker is made once in every process that works, from a recipe that is sent there once, and then
called with one part after another. What it writes it writes whole, so that a part may be done again
after a failure: no row is lost or doubled.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

from s2osc.data.parts import Part
from s2osc.progress import Stopwatch

Worker = Callable[[Part], int]
"""Works on one part, writes what comes of it, and returns how many rows it went through."""
Recipe = Callable[[], Worker]
"""Makes a worker where it is called."""


class Engine(Protocol):
    """Runs workers on parts, and yields the rows of each part that is done, in any order."""

    @property
    def name(self) -> str: ...

    def started(self, clock: Stopwatch) -> AbstractContextManager[None]:
        """Within it, the engine is up: it starts once, which is a step of the clock, if any."""
        ...

    def run(self, recipe: Recipe, parts: Sequence[Part]) -> Iterator[int]: ...

    def training(self) -> AbstractContextManager[None]:
        """Within it, networks are trained where the engine runs."""
        ...


@dataclass(frozen=True)
class LocalEngine:
    """One worker in this process."""

    name: str = "local"

    def started(self, clock: Stopwatch) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, recipe: Recipe, parts: Sequence[Part]) -> Iterator[int]:
        worker = recipe()
        for part in parts:
            yield worker(part)

    def training(self) -> AbstractContextManager[None]:
        return nullcontext()
