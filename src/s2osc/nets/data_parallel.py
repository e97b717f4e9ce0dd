"""Training by several processes at once: each takes its share of every batch.

Who trains is said with ``trained_by``; without it, this process does. Where torch's processes are
joined in a group, a step is that of the whole batch: the gradients of the shares are averaged
before the weights move, so all processes have the same weights. What differs from one process is
what a network finds out about a batch as a whole (its normalisation), which views of items are
drawn, and the order of sums.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from torch import Tensor, distributed, nn

from s2osc.nets.networks import Network

Batch = TypeVar("Batch")
FEWEST_OF_SHARE = 2
"""Items of a share: a network cannot normalise by one."""


class Trainer(Protocol):
    """Calls ``fit(network, *facts, **more)``, here or elsewhere; the network is trained after."""

    def __call__(
        self, fit: Callable[..., None], network: Network, *facts: Any, **more: Any
    ) -> None: ...


def here(fit: Callable[..., None], network: Network, *facts: Any, **more: Any) -> None:
    """In this process."""
    fit(network, *facts, **more)


_current: ContextVar[Trainer] = ContextVar("trainer", default=here)


@contextmanager
def trained_by(trainer: Trainer) -> Iterator[None]:
    """Let networks be trained by another than this process."""
    token = _current.set(trainer)
    try:
        yield
    finally:
        _current.reset(token)


def trainer() -> Trainer:
    """Who trains networks now."""
    return _current.get()


def n_processes() -> int:
    """That train one network together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def share_of(batch: Batch) -> Batch:
    """The items of a batch that this process goes through: all of them where it is alone."""
    if n_processes() == 1:
        return batch
    return share(batch, distributed.get_rank(), n_processes())


def share(batch: Any, rank: int, n: int) -> Any:
    """Every n-th item of row numbers, a tensor, or a named tuple of such; all of very few.

    >>> share(np.arange(7), 1, 3).tolist(), share(np.arange(4), 1, 3).tolist()
    ([1, 4], [0, 1, 2, 3])
    """
    if batch is None:
        return None
    if isinstance(batch, np.ndarray | Tensor):
        return batch[rank::n] if len(batch) >= FEWEST_OF_SHARE * n else batch
    return type(batch)(*(share(each, rank, n) for each in batch))


@torch.no_grad()
def average_gradients(parameters: Sequence[nn.Parameter]) -> None:
    """Give every process the mean gradient of all; what no loss reached anywhere has none."""
    n = n_processes()
    if n == 1:
        return
    gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    reached = gradients[0].new_tensor([p.grad is not None for p in parameters])
    flat = torch.cat([*(gradient.flatten() for gradient in gradients), reached])
    distributed.all_reduce(flat)
    *means, reached = flat.split([*(p.numel() for p in parameters), len(parameters)])
    for parameter, mean, count in zip(parameters, means, reached.tolist(), strict=True):
        parameter.grad = mean.view_as(parameter) / n if count else None
