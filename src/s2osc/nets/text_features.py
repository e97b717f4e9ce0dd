"""Vectors of texts from a pretrained model, computed once per text and cached on disk.

The cache is the one of ``features.py``: a folder per model, and in it shards by the digests of
texts.
"""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from s2osc.nets.features import (
    KEY_BYTES,
    cached_features,
    default_folder,
    rounded,
    wanted_items,
)
from s2osc.nets.text_models import TextModel

FORMAT = 1  # of the cache; another number whenever vectors change their meaning
FEW = 32
"""Texts that are embedded sooner than the cache is searched for them."""
AT_ONCE = 256  # texts between two steps of the progress bar


def compute_text_features(
    texts: Sequence[str], model: TextModel, *, folder: Path | None = None
) -> np.ndarray:
    """Vectors ``(n, n_features)`` float32 of texts.

    What ``folder``, or ``default_folder()``, holds already is read from there; the rest is computed
    and added.
    """
    if len(texts) <= FEW:
        return rounded(model.embed(texts))
    readable = re.sub(r"[^\w.-]+", "-", model.name)[-60:]
    return cached_features(
        wanted_items([text_key(text) for text in texts]),
        lambda rows: model.embed([texts[row] for row in rows.tolist()]),
        shape=(model.n_features,),
        shards=(folder or default_folder()) / f"text-{readable}-{model.version}-{FORMAT}",
        at_once=AT_ONCE,
        what="vectors of texts",
    )


def text_key(text: str) -> bytes:
    """A digest of a text."""
    content = text.encode(errors="surrogatepass")
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()
