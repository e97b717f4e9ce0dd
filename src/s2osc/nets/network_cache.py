"""A cache of trained networks on disk, by what they were trained with.

Nothing is cached outside ``with networks_cached_in(folder):``. Within it, a network that was
trained before with the same items, settings and seed is loaded, and the seconds of its training are
added up, so that a comparison can charge every method for them.
"""

import hashlib
import json
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save

from s2osc.errors import DataError, OutputError, S2OSCWarning
from s2osc.files import guarded, lock, write_whole
from s2osc.nets.networks import Network

FORMAT = 1
"""To be raised whenever the same settings train another network than before."""
PATIENCE = 60.0
"""Seconds to wait for another process that writes to the cache."""


@dataclass
class NetworkCache:
    """A folder of trained networks, and the seconds of training it has saved."""

    folder: Path
    seconds_saved: float = 0.0


_current: ContextVar[NetworkCache | None] = ContextVar("network cache", default=None)


@contextmanager
def networks_cached_in(folder: Path) -> Iterator[NetworkCache]:
    """Load networks from this folder where they are there, and save those that are trained."""
    cache = NetworkCache(folder)
    token = _current.set(cache)
    try:
        yield cache
    finally:
        _current.reset(token)


def train_once(
    network: Network, train: Callable[[], None], *, items: tuple[np.ndarray, ...], facts: Any
) -> None:
    """Train ``network`` in place, or load its weights if the cache has them.

    ``items`` and ``facts`` are all that the training depends on.
    """
    cache = _current.get()
    if cache is None:
        train()
        return
    path = cache.folder / f"{_key(network, items, facts)}.safetensors"
    seconds = _load(network, path)
    if seconds is not None:
        cache.seconds_saved += seconds
        return
    started = time.perf_counter()
    train()
    _save(network, path, seconds=time.perf_counter() - started)


def _key(network: Network, items: tuple[np.ndarray, ...], facts: Any) -> str:
    """A name that depends on the items, the settings, the seed and torch's version."""
    about = [FORMAT, torch.__version__, asdict(network.settings), network.head.out_features, facts]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in items:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def _load(network: Network, path: Path) -> float | None:
    """Load the weights and return the seconds of their training; None if missing or damaged."""
    try:
        with guarded(path, "it is trained again"), safe_open(path, framework="pt") as file:
            seconds = float(file.metadata()["seconds"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except DataError:
        return None
    # Compared first: torch would load the weights that fit before it complains of the others.
    if _shapes(tensors) != _shapes(network.state_dict()):
        return None
    network.load_state_dict(tensors)
    network.eval()
    return seconds


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _save(network: Network, path: Path, *, seconds: float) -> None:
    tensors = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    folder = path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        beside = folder.with_name(f"{folder.name}.lock")
        with lock(beside, f"another process is writing to {folder}", seconds=PATIENCE):
            write_whole(path, save(tensors, metadata={"seconds": f"{seconds:.3f}"}))
    except (OSError, OutputError) as error:
        warnings.warn(
            f"a trained network cannot be cached in {folder} ({error}) and is trained again when "
            "it is needed; make room there, or set $S2OSC_CACHE to another folder",
            S2OSCWarning,
            stacklevel=3,
        )
