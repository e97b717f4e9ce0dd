"""BERT's encoder: what its vectors depend on, and weights as they are published."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from s2osc.nets.bert import BertSettings, load_bert, our_name
from texts import TINY, published_name, tiny_encoder

CONFIG = vars(TINY) | {"model_type": "bert", "hidden_act": "gelu", "use_cache": True}


def encode(encoder, rows: list[list[int]]) -> np.ndarray:
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    is_token = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    with torch.inference_mode():
        return encoder(ids, is_token).numpy()


def test_without_layers_a_text_is_the_mean_of_its_normalised_tokens():
    encoder = tiny_encoder(replace(TINY, num_hidden_layers=0))
    tokens = (
        encoder.word.weight[[5, 9]] + encoder.position.weight[:2] + encoder.token_type.weight[0]
    )
    wanted = F.layer_norm(tokens, (32,), eps=1e-12).mean(0).detach().numpy()
    np.testing.assert_allclose(encode(encoder, [[5, 9]])[0], wanted, atol=1e-6)


def test_a_layer_is_attention_and_two_linear_maps_each_added_and_normalised():
    encoder = tiny_encoder()
    (layer,) = encoder.layers
    x = torch.randn(1, 3, 32)
    heads = [part(x).reshape(3, 4, 8).transpose(0, 1) for part in (layer.query, layer.key)]
    weights = (heads[0] @ heads[1].transpose(1, 2) / 8**0.5).softmax(-1)
    values = layer.value(x).reshape(3, 4, 8).transpose(0, 1)
    attended = x + layer.joined((weights @ values).transpose(0, 1).reshape(1, 3, 32))
    attended = F.layer_norm(attended, (32,))
    wanted = F.layer_norm(attended + layer.narrow(F.gelu(layer.widen(attended))), (32,))
    torch.testing.assert_close(layer(x, torch.ones(1, 3, dtype=torch.bool)), wanted)


def test_padding_and_company_do_not_change_a_vector():
    encoder = tiny_encoder()
    alone = encode(encoder, [[2, 7, 3]])
    among = encode(encoder, [[2, 7, 3], [2, 8, 9, 10, 11, 3]])
    np.testing.assert_allclose(among[:1], alone, atol=1e-6)


def test_the_order_of_words_matters():
    there, back = encode(tiny_encoder(), [[2, 7, 8, 9, 3], [2, 9, 8, 7, 3]])
    assert np.abs(there - back).max() > 1e-3


def test_published_weights_are_read_by_their_names(tmp_path):
    encoder = tiny_encoder()
    names = list(encoder.state_dict())
    assert [our_name(published_name(name)) for name in names] == names
    published = {published_name(name): t for name, t in encoder.state_dict().items()}
    save_file(published | {"pooler.dense.bias": torch.zeros(32)}, tmp_path / "w.safetensors")
    loaded = load_bert(tmp_path / "w.safetensors", CONFIG)
    np.testing.assert_array_equal(encode(loaded, [[2, 7, 3]]), encode(encoder, [[2, 7, 3]]))
    with pytest.raises(ValueError, match=r"are not those that its config\.json describes"):
        load_bert(tmp_path / "w.safetensors", CONFIG | {"num_hidden_layers": 2})


@pytest.mark.parametrize("change", [{"model_type": "gpt2"}, {"hidden_act": "relu"}])
def test_networks_of_another_kind_are_refused(change):
    with pytest.raises(ValueError, match="not BERT with gelu"):
        BertSettings.of_config(CONFIG | change)
