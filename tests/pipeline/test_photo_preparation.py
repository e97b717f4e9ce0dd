"""f and g start from a pretrained network: prepared, trained, saved, loaded, and what it costs."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrained import pictures, quick_method, use_random_weights
from s2osc.errors import ModelError, SettingsError
from s2osc.nets.backbones import load_backbone, load_efficientnet
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.networks import as_tensor
from s2osc.nets.photo_items import features_of, photo_items
from s2osc.nets.start import start_network
from s2osc.pipeline.model import OpenSetModel
from s2osc.pipeline.onnx_graph import AnswerGraph
from s2osc.pipeline.photo_preparation import (
    Cost,
    describe_photos,
    load_start,
    measure_cost,
    prepare_photos,
    pretrained_start,
)
from s2osc.pipeline.presets import HEADS, TUNED
from s2osc.pipeline.storage import load_model, save_model
from s2osc.settings import change
from s2osc.types import Labelled

KNOWN, POOL = np.repeat([0, 1], 40), np.repeat([0, 1, 2], 20)
FEW = pictures(np.array([0, 1, 2]), seed=7)


@pytest.fixture(autouse=True)
def _pretrained(monkeypatch, tmp_path):
    use_random_weights(monkeypatch)
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def photos() -> np.ndarray:
    return prepare_photos(FEW, describe_photos(FEW, quick_method(), "cpu"), "cpu")


def test_features_are_those_of_the_network_without_maps(photos):
    frozen = load_backbone("efficientnet-lite0", source=(24, 24))
    np.testing.assert_allclose(features_of(photos)[:, 0], frozen(FEW), rtol=2e-3, atol=2e-3)


def test_training_begins_with_the_pretrained_features(photos):
    network = start_network(pretrained_start(quick_method()), photos, n_outputs=2).eval()
    with torch.inference_mode():
        embedded = network.embed(as_tensor(photos))
    expected = features_of(photos).mean(axis=1)
    np.testing.assert_allclose(embedded.numpy(), expected, rtol=1e-2, atol=1e-2)


def test_lower_layers_learn_more_slowly_than_the_head(photos):
    network = start_network(pretrained_start(quick_method()), photos, n_outputs=2)
    names = [name for name, _ in network.named_parameters()]
    factors = dict(zip(names, network.rate_factors(0.5), strict=True))
    assert factors["head.weight"] == 1
    assert factors["body.head.weight"] == pytest.approx(1 / 3)
    assert factors["body.blocks.4.project.bias"] == pytest.approx(1 / 6)
    assert factors["body.blocks.0.project.bias"] == pytest.approx(1 / 96)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A model, how its photos were prepared, and images it has not seen."""
    with pytest.MonkeyPatch.context() as patch:
        use_random_weights(patch)
        patch.setenv("S2OSC_CACHE", str(tmp_path_factory.mktemp("cache")))
        known, pool = pictures(KNOWN, seed=0), pictures(POOL, seed=1)
        method = change(quick_method(), {"decision.level": 0.5})
        entry = describe_photos(known, method, "cpu")
        labelled = Labelled(prepare_photos(known, entry, "cpu"), KNOWN)
        solution = method.fit(labelled, prepare_photos(pool, entry, "cpu"), seed=0)
        return solution, entry


def test_g_is_trained_from_the_same_start(fitted):
    solution, _ = fitted
    assert isinstance(solution.model, OpenSetModel)
    start = load_efficientnet("efficientnet-lite0").head.conv.weight.detach().flatten(1)
    for network in (solution.model.teacher.network, solution.model.student.network):
        moved = (network.body.head.weight.detach() - start).abs()
        assert 0 < moved.max() < 0.05  # trained, and not begun anew
    known = POOL < 2
    assert np.mean(solution.answer.nearest[known] == POOL[known]) > 0.9


def test_a_saved_model_answers_as_before(fitted, tmp_path):
    solution, entry = fitted
    save_model(tmp_path / "model", solution.model, ("a", "b"), entry)
    saved = load_model(tmp_path / "model")
    assert saved.preparation == entry
    photos = prepare_photos(FEW, saved.preparation, "cpu")
    expected, found = solution.model.answer(photos), saved.model.answer(photos)
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.unknown_score, expected.unknown_score)


def test_the_graph_answers_as_the_model_does(fitted):
    solution, _ = fitted
    backbone = load_start(quick_method(), "cpu", source=(24, 24))
    graph = AnswerGraph(solution.model, backbone)
    views = torch.randint(0, 256, (4, 3, 3, 32, 32)).float()
    with torch.inference_mode():
        label, score, *_ = graph(views)
    stacked = np.stack([backbone.embed(view) for view in views])
    answer = solution.model.answer(photo_items(stacked, N_FEATURES))
    np.testing.assert_array_equal(label.numpy(), answer.labels)
    np.testing.assert_allclose(score.numpy(), answer.unknown_score, atol=1e-3)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: d["networks"]["teacher"]["settings"].update(first_stage=5),
        lambda d: d["networks"]["teacher"]["settings"].update(pretrained="efficientnet-lite9"),
        lambda d: d["networks"]["teacher"].update(input_shape=[112 * 9]),
        lambda d: d["networks"]["teacher"].update(input_shape=[112 * 10**4]),
        lambda d: d["backbone"].update(first_stage=None),
        lambda d: d["backbone"].update(first_stage=5),
        lambda d: d["backbone"].update(first_stage=99),
        lambda d: d["backbone"].update(name="efficientnet-lite1"),
        lambda d: d.update(backbone=None),
    ],
)
def test_a_description_that_does_not_fit_is_refused(fitted, tmp_path, damage):
    solution, entry = fitted
    save_model(tmp_path / "model", solution.model, ("a", "b"), entry)
    path = tmp_path / "model" / "model.json"
    description = json.loads(path.read_text())
    damage(description)
    path.write_text(json.dumps(description))
    with pytest.raises(ModelError, match="does not describe the weights beside it"):
        load_model(tmp_path / "model")


def test_other_weights_and_other_networks_are_refused():
    entry = describe_photos(FEW, quick_method(), "cpu")
    with pytest.raises(ModelError, match="made with weights 00ff of the backbone"):
        prepare_photos(FEW, replace(entry, version="00ff"), "cpu")
    with pytest.raises(ModelError, match="the backbone 'theirs', not with ours"):
        prepare_photos(FEW, replace(entry, name="theirs"), "cpu")


def test_f_and_g_start_from_the_same():
    with pytest.raises(SettingsError, match=r"f starts from stage 5 .* g from stage 4"):
        pretrained_start(change(TUNED, {"teacher.network.first_stage": 5}))
    with pytest.raises(SettingsError, match="give both the same"):
        pretrained_start(HEADS)


def test_the_cost_is_measured_and_adds_up():
    method = quick_method()
    cost = measure_cost(method, load_start(method, "cpu", source=(24, 24)))
    assert min(cost) > 0
    base = cost.seconds(method, 200, 200)
    assert cost.seconds(method, 200, 400) > base
    slower = Cost(cost.prepared + 0.01, cost.trained, cost.answered)
    assert slower.seconds(method, 200, 200) == pytest.approx(base + 400 * 3 * 0.01)
    more_steps = change(method, {"teacher.training.min_steps": 106})
    extra = (106 - 11) * 16 * cost.trained  # 170 training items make 11 steps of 16
    assert cost.seconds(more_steps, 200, 200) == pytest.approx(base + extra)


def test_only_the_networks_of_the_package_can_be_trained():
    with pytest.raises(SettingsError, match="stages of the backbone 'resnet18' cannot be trained"):
        load_backbone("resnet18", first_stage=5)


def test_what_the_cache_gives_back_is_what_was_computed(photos):
    again = prepare_photos(FEW, describe_photos(FEW, quick_method(), "cpu"), "cpu")
    np.testing.assert_array_equal(again, photos)
