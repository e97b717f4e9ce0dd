"""What an experiment is: a protocol, methods, data, and what its table shows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from s2osc.bench.tasks.audit import AuditPool
from s2osc.bench.tasks.pool import PoolTask
from s2osc.bench.tasks.task import Task
from s2osc.data.splits import Protocol
from s2osc.data.streams import StreamProtocol
from s2osc.errors import SettingsError
from s2osc.settings import NamedSettings

MAIN = {
    "f on known": "teacher_known_accuracy",
    "purity of D_out": "purity_of_d_out",
    "accuracy": "accuracy",
    "weighted F1": "f1",
    "F_out": "f_out",
    "all unknown": "f_out_all_unknown",
}


@dataclass(frozen=True)
class Size:
    """How much of the data an experiment uses, and which presets give its networks."""

    changes: Mapping[str, Any]  # of the protocol
    images: str  # the preset of the networks of images
    vectors: str


def at_most(sizes: tuple[int, int, int] | None, held_out: int) -> NamedSettings:
    """Training items and pool items of a known class, unknown ones in all; and those held out."""
    return {"sizes": sizes, "held_out": held_out, "shrink": True}


SIZES = {
    "paper": Size(at_most(None, 500), "paper", "heads"),
    "cpu": Size(at_most((600, 300, 900), 200), "plain", "heads"),
    "smoke": Size(at_most((30, 20, 40), 10), "tiny", "tiny"),
}
"""``paper``: all data and the paper's networks, for a GPU. ``cpu``: a table in hours on two cores.
``smoke``: a minute, to see that everything runs; its figures mean nothing."""


DEFAULT_PARTITIONS = 5

LayoutName = Literal["rows", "matrix", "grid", "sources", "stream", "windows"]
"""A row per run; methods against data sets, of pools or of streams; levels of factors; sources of
the same pools; windows of a stream."""


@dataclass(frozen=True)
class Experiment:
    """A protocol, the methods that run under it, and the figures its table shows."""

    title: str
    protocol: Protocol | StreamProtocol | AuditPool
    methods: Mapping[str, Any]  # methods, or learners with their questions
    columns: Mapping[str, str] = field(default_factory=lambda: MAIN)
    data: tuple[str, ...] = ("mnist", "fashion_mnist")
    backbone: str | None = None  # photos go through it, and the method sees features
    task: Task[Any] = PoolTask()
    layout: LayoutName = "rows"
    headlines: tuple[str, ...] = ("f1",)  # figures of a brief table
    table: str | None = None  # of the paper, whose figures stand beside ours
    sizes: Mapping[str, Size] = field(default_factory=dict)  # empty: its protocol is its size
    pictures: tuple[str, ...] = ()  # what is drawn of each run and stored in its record
    keeps_networks: bool = True  # f is trained once for all methods; False: each trains its own
    records: str | None = None  # the experiment whose records it shows; None: its own
    pools: Callable[[str], Sequence[AuditPool]] | None = None
    """Of a data set, the protocol of each partition; None: all partitions have one protocol."""
    networks: Mapping[str, str] = field(default_factory=dict)
    """By data set, the preset of the networks, where sizes do not say it."""

    @property
    def shows_groups(self) -> bool:
        return self.layout not in ("rows", "grid", "sources") or "n_groups" in self.columns.values()

    def partitions(self, data: str, wanted: Sequence[int] | None) -> Sequence[int]:
        """Those of the wanted partitions that there are; None: all of a grid, else five."""
        if self.pools is None:
            return range(DEFAULT_PARTITIONS) if wanted is None else wanted
        every = range(len(self.pools(data)))
        return every if wanted is None else [number for number in wanted if number in every]

    def protocol_of(
        self, size: str | None, data: str, partition: int
    ) -> Protocol | StreamProtocol | AuditPool:
        """The protocol of one partition of a data set."""
        _, protocol = self.sized(size)
        return self.pools(data)[partition] if self.pools else protocol

    def sized(self, size: str | None) -> tuple[str | None, Protocol | StreamProtocol | AuditPool]:
        """The size by name and the protocol it gives; ``None`` is the size for a CPU."""
        if not self.sizes:
            if size is not None:
                raise SettingsError("this experiment has one size only; leave --size away")
            return None, self.protocol
        size = size or "cpu"
        if size not in self.sizes:
            raise SettingsError(f"the size is {size!r}; give {' or '.join(self.sizes)}")
        return size, replace(self.protocol, **self.sizes[size].changes)
