"""Trained networks kept on disk by what they were trained with, so that none is trained twice.

Nothing is cached until a caller says ``with networks_cached_in(folder):``. Then a network that was
trained before with the same items, settings and seed is read from there, and the seconds its
training took are counted, so that a comparison of methods can charge each of them for it.
"""

import hashlib
import json
import os
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
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from s2osc.errors import S2OSCWarning
from s2osc.nets.networks import Network

FORMAT = 1
"""Raised whenever the same settings train another network than before."""


@dataclass
class NetworkCache:
    """A folder of networks, and the seconds of training that were saved by it."""

    folder: Path
    seconds_saved: float = 0.0


_current: ContextVar[NetworkCache | None] = ContextVar("kept networks", default=None)


@contextmanager
def networks_cached_in(folder: Path) -> Iterator[NetworkCache]:
    """Keep every network trained within, and read those that are there already."""
    kept = NetworkCache(folder)
    token = _current.set(kept)
    try:
        yield kept
    finally:
        _current.reset(token)


def trained_once(
    network: Network, train: Callable[[], None], *, items: tuple[np.ndarray, ...], facts: Any
) -> None:
    """Train ``network`` in place, unless one of the same items and facts has been kept."""
    kept = _current.get()
    if kept is None:
        train()
        return
    path = kept.folder / f"{_key(network, items, facts)}.safetensors"
    seconds = _read(network, path)
    if seconds is not None:
        kept.seconds_saved += seconds
        return
    started = time.perf_counter()
    train()
    _write(network, path, seconds=time.perf_counter() - started)


def _key(network: Network, items: tuple[np.ndarray, ...], facts: Any) -> str:
    """A name that changes with the items, the settings, the seed and torch's version."""
    about = [FORMAT, torch.__version__, asdict(network.settings), network.head.out_features, facts]
    digest = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for array in items:
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def _read(network: Network, path: Path) -> float | None:
    """Load the weights, and say how long their training took; None where there are none."""
    try:
        with safe_open(path, framework="pt") as file:
            seconds = float(file.metadata()["seconds"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (OSError, SafetensorError, KeyError, RuntimeError, TypeError, ValueError):
        return None  # not there, or damaged: train it (again)
    # Of weights that do not fit, torch would take those that do before it complains.
    if _shapes(tensors) != _shapes(network.state_dict()):
        return None
    network.load_state_dict(tensors)
    network.eval()
    return seconds


def _shapes(tensors: dict[str, torch.Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _write(network: Network, path: Path, *, seconds: float) -> None:
    part = path.with_suffix(f".{os.getpid()}.part")
    tensors = {name: tensor.cpu().contiguous() for name, tensor in network.state_dict().items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, part, metadata={"seconds": f"{seconds:.3f}"})
        os.replace(part, path)
    except (OSError, SafetensorError) as error:
        warnings.warn(
            f"a trained network cannot be kept in {path.parent} ({error}) and is trained anew "
            "where it is needed again; make room there, or set $S2OSC_CACHE to another folder",
            S2OSCWarning,
            stacklevel=3,
        )
