"""One seed per run, one random stream per purpose; the global random state is not changed."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


def derive(seed: int, purpose: str) -> int:
    """A seed for one purpose, independent of every other purpose's.

    >>> derive(0, "teacher") == derive(0, "teacher"), derive(0, "teacher") == derive(0, "student")
    (True, False)
    """
    words = np.random.SeedSequence([seed, zlib.crc32(purpose.encode())])
    return int(words.generate_state(1, np.uint32)[0])


def rng(seed: int, purpose: str) -> np.random.Generator:
    """A numpy generator for one purpose of a run."""
    return np.random.default_rng(derive(seed, purpose))


@contextmanager
def torch_seed(seed: int, purpose: str) -> Iterator[None]:
    """Draw torch's random numbers (initial weights, dropout, noise) from one purpose's stream."""
    import torch  # noqa: PLC0415  (numpy-only callers of this module need no torch)

    with torch.random.fork_rng():
        torch.manual_seed(derive(seed, purpose))
        yield
