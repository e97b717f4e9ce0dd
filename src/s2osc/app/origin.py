"""Where the items of a run came from, and how they were read: to show them, and to run it again."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from s2osc.data.datasets import load_dataset
from s2osc.data.inputs import MAX_MEGAPIXELS, Items, Source, open_items
from s2osc.data.parts import is_parted, open_parts
from s2osc.data.splits import Protocol, split_dataset
from s2osc.settings import FIT_ON, NamedSettings
from s2osc.text import clean_text

DIGITS = "mnist5k"
DEMO = Protocol(known_classes=tuple(range(6)), unknown_classes=(6, 7), sizes=(300, 200, 1_000))


@dataclass(frozen=True)
class StreamPlace:
    """Where in a stream the window is that results are of."""

    state: str  # the folder of the stream
    window: int
    version: int | None  # of the state that holds the window
    answer: str | None  # a digest of the answer
    asked: int  # items that a person is asked about
    new_classes: tuple[str, ...]
    after: str  # a digest of the state before


@dataclass(frozen=True)
class Origin:
    """When results were made, of which files, and choices of a user that stand nowhere else."""

    at: str  # in UTC, as ISO 8601 writes it
    known: str | None = None  # absolute paths; None of a window, too: its stream has them
    pool: str | None = None  # None: the digits of the demo
    side: int | None = None
    backbone: str = "auto"
    embedding: str = "auto"
    text_column: str | None = None
    keep_columns: tuple[str, ...] = ()
    max_megapixels: float = MAX_MEGAPIXELS
    fit_on: int = FIT_ON
    changes: NamedSettings = field(default_factory=dict)  # hyper-parameters by name

    @classmethod
    def now(cls, known: Path | None = None, pool: Path | None = None, **choices: Any) -> "Origin":
        at = datetime.now(UTC).isoformat(timespec="seconds")
        return cls(at, known=_absolute(known), pool=_absolute(pool), **choices)

    @property
    def is_demo(self) -> bool:
        return self.pool is None

    def open_pool(self, seed: int) -> Source:
        """The items of the pool, as they lie there now; nothing is decoded yet."""
        if self.pool is None:
            return demo_sources(seed)[1]
        if is_parted(self.pool):
            return open_parts(self.pool, self.text_column).whole()
        return open_items(Path(self.pool), self.text_column)


def _absolute(path: Path | None) -> str | None:
    return clean_text(os.path.abspath(path)) if path else None


def demo_items(seed: int) -> tuple[Items, Items]:
    """Known items and a pool of digits: 0-5 are known, 6 and 7 are in the pool only."""
    digits = load_dataset(DIGITS)
    split = split_dataset(digits, DEMO, seed)
    known_names = [digits.classes[split.known_classes[label]] for label in split.known.labels]
    pool_names = [digits.classes[label] for label in split.truth_classes]
    return (
        Items(_numbered(len(known_names)), split.known.inputs, known_names),
        Items(_numbered(len(pool_names)), split.pool, pool_names),
    )


def demo_sources(seed: int) -> tuple[Source, Source]:
    """The same, as what files hold is opened."""
    known, pool = (
        Source(Path(DIGITS), items.names, items.inputs, items.labels) for items in demo_items(seed)
    )
    return known, pool


def _numbered(n: int) -> list[str]:
    return [f"digit {number}" for number in range(n)]
