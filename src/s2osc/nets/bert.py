"""BERT's encoder (Devlin et al., 2019) in plain PyTorch, for weights as safetensors.

It reads what the files of sentence-transformers hold: token ids in, one vector per text out, the
mean of its tokens. Nothing else of BERT is here.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional as F

from s2osc.codec import JsonObject

RENAMED = (
    (r"^embeddings\.(word|position|token_type)_embeddings\.", r"\1."),
    (r"^embeddings\.LayerNorm\.", "norm."),
    (r"^encoder\.layer\.", "layers."),
    (r"\.attention\.self\.(query|key|value)\.", r".\1."),
    (r"\.attention\.output\.dense\.", ".joined."),
    (r"\.attention\.output\.LayerNorm\.", ".norm_attended."),
    (r"\.intermediate\.dense\.", ".widen."),
    (r"\.output\.dense\.", ".narrow."),
    (r"\.output\.LayerNorm\.", ".norm."),
)
"""How weights are called in published files, and here."""
UNUSED = ("pooler.", "embeddings.position_ids")


@dataclass(frozen=True)
class BertSettings:
    """The size of an encoder, by the names of its published ``config.json``."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    type_vocab_size: int = 2
    layer_norm_eps: float = 1e-12

    @classmethod
    def of_config(cls, config: JsonObject) -> "BertSettings":
        """The settings in a ``config.json``; a ``ValueError`` for networks of another kind."""
        if config.get("model_type") != "bert" or config.get("hidden_act") != "gelu":
            raise ValueError(
                f"it describes a network of type {config.get('model_type')!r} with the activation "
                f"{config.get('hidden_act')!r}, not BERT with gelu"
            )
        return cls(**{name: config[name] for name in cls.__dataclass_fields__})


class BertEncoder(nn.Module):
    """Tokens to vectors: embeddings, then layers of attention and of two linear maps."""

    def __init__(self, settings: BertSettings):
        super().__init__()
        width, eps = settings.hidden_size, settings.layer_norm_eps
        self.settings = settings
        self.word = nn.Embedding(settings.vocab_size, width)
        self.position = nn.Embedding(settings.max_position_embeddings, width)
        self.token_type = nn.Embedding(settings.type_vocab_size, width)
        self.norm = nn.LayerNorm(width, eps=eps)
        self.layers = nn.ModuleList(BertLayer(settings) for _ in range(settings.num_hidden_layers))

    def forward(self, ids: Tensor, is_token: Tensor) -> Tensor:
        """(n, d) mean vectors of ``ids`` (n, t) over their tokens; ``is_token`` (n, t) bool."""
        places = torch.arange(ids.shape[1], device=ids.device)
        # Every text is one sentence, which is of the first type.
        x = self.norm(self.word(ids) + self.position(places) + self.token_type.weight[0])
        for layer in self.layers:
            x = layer(x, is_token)
        weights = is_token.unsqueeze(-1).to(x.dtype)
        return (x * weights).sum(1) / weights.sum(1).clamp(min=1)


class BertLayer(nn.Module):
    """Attention, then two linear maps, each added to its input and normalised."""

    def __init__(self, settings: BertSettings):
        super().__init__()
        width, wide, eps = settings.hidden_size, settings.intermediate_size, settings.layer_norm_eps
        self.n_heads = settings.num_attention_heads
        self.query, self.key, self.value, self.joined = (nn.Linear(width, width) for _ in range(4))
        self.norm_attended = nn.LayerNorm(width, eps=eps)
        self.widen, self.narrow = nn.Linear(width, wide), nn.Linear(wide, width)
        self.norm = nn.LayerNorm(width, eps=eps)

    def forward(self, x: Tensor, is_token: Tensor) -> Tensor:
        query, key, value = (
            linear(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)
            for linear in (self.query, self.key, self.value)
        )
        may_attend = is_token[:, None, None, :]
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=may_attend)
        x = self.norm_attended(x + self.joined(attended.transpose(1, 2).flatten(2)))
        return self.norm(x + self.narrow(F.gelu(self.widen(x))))


def load_bert(weights: Path, config: JsonObject) -> BertEncoder:
    """An encoder with the weights of a safetensors file; a ``ValueError`` where they do not fit."""
    encoder = BertEncoder(BertSettings.of_config(config))
    found = {
        our_name(name): tensor.float()
        for name, tensor in load_file(weights).items()
        if not name.startswith(UNUSED)
    }
    try:
        encoder.load_state_dict(found)
    except RuntimeError as error:  # it lists every tensor
        raise ValueError("its weights are not those that its config.json describes") from error
    return encoder.eval()


def our_name(name: str) -> str:
    """The name here of a weight in a published file.

    >>> our_name("encoder.layer.0.attention.self.query.weight")
    'layers.0.query.weight'
    """
    for pattern, ours in RENAMED:
        name = re.sub(pattern, ours, name)
    return name
