"""What a task is: the items of a run, the facts of them, and the figures that come out."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from s2osc.codec import JsonObject
from s2osc.data.datasets import Dataset
from s2osc.nets.features import default_folder
from s2osc.nets.network_cache import NetworkCache, networks_cached_in

Items = TypeVar("Items")
THROUGH = "-features"
"""A data set with this after its name goes through the backbone first."""
COMPARED_SIDE = 96
"""Pixels that photos are brought to where methods or pools are compared: all see the same features,
those of the records. Users get larger ones."""


@dataclass(frozen=True)
class Trial:
    """One data set, one partition, one method, and where its record goes."""

    experiment: str
    data: str
    name: str  # of the method
    method: Any  # as it is run: a method, or a learner with its questions
    partition: int
    size: str | None
    protocol: Any  # what ``Task.draw`` takes
    path: Path
    networks: str | None = None  # the preset of networks and budget; None: the method's own
    flip: bool = True  # a mirrored image keeps its class
    keeps_networks: bool = True  # f is read from a cache where another method has trained it
    pictures: tuple[str, ...] = ()  # what is drawn of the run and stored in its record


class Task(Protocol[Items]):
    """A pool to answer, or a stream to follow."""

    def prepare(self, method: Any, protocol: Any, *, networks: str | None, flip: bool) -> Any:
        """The method as it is run."""
        ...

    def draw(self, dataset: Dataset, protocol: Any, partition: int) -> Items: ...

    def through_backbone(self, items: Items, name: str, *, flip: bool) -> Items:
        """The items with features of their images, and of a few views of them, in their place."""
        ...

    def describe(self, items: Items, dataset: Dataset) -> JsonObject:
        """Facts of the items, as records have them."""
        ...

    def run(self, items: Items, trial: Trial, *, device: str) -> JsonObject:
        """Figures and seconds, as records have them."""
        ...


@contextmanager
def cached_networks(keep: bool) -> Iterator[NetworkCache | None]:
    with networks_cached_in(default_folder() / "networks") if keep else nullcontext() as cache:
        yield cache
