"""Parts of a pool on a Ray cluster: workers are actors of a Ray Data pipeline.

The recipe of a worker is put into the object store once, and every actor makes its worker from it.
Ray Data gives each free actor a part, holds back where actors are busy, and gives the part of an
actor, or of a node, that died to another one. A part is written whole, so doing it twice doubles
nothing.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from s2osc.arrays import chunks
from s2osc.data.parts import Part
from s2osc.engine.engine import Recipe
from s2osc.engine.ray_cluster import connected
from s2osc.engine.ray_training import RayTrainer
from s2osc.nets.data_parallel import trained_by
from s2osc.progress import Stopwatch

T = TypeVar("T")
R = TypeVar("R")
CHUNKS_PER_CPU = 4
"""So that no worker waits long for the last one."""


@dataclass(frozen=True)
class RayEngine:
    """Workers as actors, on this machine or on a cluster."""

    address: str | None = None  # None: Ray is started here
    n_workers: int | None = None  # None: one for every CPU of the cluster
    name: str = field(default="ray", init=False)

    @contextmanager
    def started(self, clock: Stopwatch) -> Iterator[None]:
        """Within it, Ray is joined, or runs here."""
        with ExitStack() as stack:
            with clock("engine"):
                stack.enter_context(connected(self.address, self.n_workers))
            yield

    def run(self, recipe: Recipe, parts: Sequence[Part]) -> Iterator[int]:
        if not parts:
            return
        with connected(self.address, self.n_workers) as ray:
            n_cpus = int(ray.cluster_resources().get("CPU", 1))
            n_workers = min(self.n_workers or n_cpus, n_cpus, len(parts))
            context = ray.data.DataContext.get_current()
            context.enable_progress_bars = False
            context.max_errored_blocks = 0
            data = ray.data.from_items(
                [{"number": part.number} for part in parts], override_num_blocks=len(parts)
            )
            done = data.map_batches(
                PartActor,
                fn_constructor_args=(ray.put(recipe), tuple(parts)),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=n_workers),
                num_cpus=1,
            )
            quiet = logging.getLogger("ray.data")
            quiet.setLevel(logging.ERROR)
            for row in done.iter_rows():
                yield int(row["n_rows"])

    def training(self) -> AbstractContextManager[None]:
        """Within it, networks are trained by workers of Ray Train."""
        return trained_by(RayTrainer(self.address, self.n_workers))

    def over_rows(self, work: Callable[[np.ndarray], R], inputs: np.ndarray) -> list[R]:
        """Work on chunks of rows as tasks; the array is sent once, and results come in order."""
        with connected(self.address, self.n_workers) as ray:
            sent, of_all = ray.put(inputs), ray.put(work)
            n_cpus = int(ray.cluster_resources().get("CPU", 1))
            size = max(1, -(-len(inputs) // (CHUNKS_PER_CPU * n_cpus)))
            remote = ray.remote(num_cpus=1, max_retries=3)(work_on_rows)
            parts = chunks(len(inputs), size)
            found: list[R] = ray.get([remote.remote(of_all, sent, rows) for rows in parts])
            return found

    def tasks(self, work: Callable[[T], None], items: Sequence[T]) -> Iterator[int]:
        """Do pieces of work that write their own records; yields the number of each that is done.

        A task whose worker died is done again elsewhere.
        """
        with connected(self.address, self.n_workers) as ray:
            remote = ray.remote(num_cpus=1, max_retries=3)(work)
            number_of = {remote.remote(item): number for number, item in enumerate(items)}
            while number_of:
                ready, _ = ray.wait(list(number_of))
                for each in ready:
                    ray.get(each)
                    yield number_of.pop(each)


def work_on_rows(work: Callable[[np.ndarray], R], inputs: np.ndarray, rows: slice) -> R:
    """Work on some rows of an array that every worker of a machine shares."""
    return work(inputs[rows])


class PartActor:
    """Makes a worker once, and works on the parts it is given."""

    def __init__(self, recipe: Any, parts: tuple[Part, ...]) -> None:
        import ray  # noqa: PLC0415
        import torch  # noqa: PLC0415

        torch.set_num_threads(1)  # one actor for each core
        made = ray.get(recipe) if isinstance(recipe, ray.ObjectRef) else recipe
        self.worker = made()
        self.parts = {part.number: part for part in parts}

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        number = int(batch["number"][0])
        return {"n_rows": np.array([self.worker(self.parts[number])])}
