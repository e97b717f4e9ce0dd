"""The presets are what the paper, and the documents, say they are."""

import pytest
import torch

from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.pipeline.filtering import PAPER_K
from s2osc.pipeline.presets import ABLATIONS, FAST, PAPER, PRESETS, build_method, choose_preset
from s2osc.pipeline.settings import flatten


@pytest.mark.parametrize("method", PRESETS.values(), ids=PRESETS.keys())
def test_both_presets_have_the_papers_hyper_parameters(method):
    student = method.student
    assert (student.alpha, student.lambda_u, student.tau, student.temperature) == (
        0.3,
        0.2,
        0.85,
        3.0,
    )
    assert method.filtering.distance_weight == 1.0
    assert PAPER_K == 300


def test_the_paper_preset_has_the_papers_optimiser():
    f, g = PAPER.teacher.training, PAPER.student.training
    assert (f.epochs, f.batch_size, f.learning_rate, f.weight_decay) == (20, 64, 0.01, 1e-3)
    assert (g.epochs, g.batch_size, g.learning_rate, g.weight_decay) == (30, 64, 0.005, 5e-4)
    assert f.schedule == g.schedule == "constant"
    assert PAPER.filtering.scale == "paper"
    assert not PAPER.student.augment_labelled
    assert PAPER.teacher.augment == 0
    assert not PAPER.student.vote
    assert not PAPER.student.gate_unknown


@pytest.mark.parametrize(
    ("settings", "size"),
    [(PAPER.teacher.network, 21_282_122), (PAPER.student.network, 11_173_962)],
    ids=["f is ResNet-34", "g is ResNet-18"],
)
@pytest.mark.parametrize("side", [28, 32, 64])
def test_the_networks_of_the_paper_preset_are_resnets_with_a_stem_for_small_images(
    settings, size, side
):
    with torch.device("meta"):
        network = Network(settings, (side, side, 3), 10)
    assert sum(parameter.numel() for parameter in network.parameters()) == size


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("S", {"student.augmentation": "strong"}),
        ("LM", {"student.hard_loss": "triplet"}),
        ("FN", {"student.start": "teacher", "student.alpha": 0.0}),
        ("U", {"student.lambda_u": 0.0}),
    ],
)
@pytest.mark.parametrize("method", PRESETS.values(), ids=PRESETS.keys())
def test_an_ablation_changes_one_thing_and_nothing_else(method, name, changed):
    assert flatten(ABLATIONS[name](method)) == flatten(method) | changed


def test_auto_is_the_papers_preset_on_a_gpu_and_the_fast_one_elsewhere():
    assert choose_preset("auto", "cuda") == "paper"
    assert choose_preset("auto", "cuda:1") == "paper"
    assert choose_preset("auto", "cpu") == "fast"
    assert choose_preset("paper", "cpu") == "paper"


def test_a_preset_that_is_not_there_is_refused():
    with pytest.raises(SettingsError, match="the preset is 'slow'; give auto, fast or paper"):
        choose_preset("slow", "cpu")


def test_a_method_is_a_preset_with_changes():
    assert build_method("fast", {}) == FAST
    assert build_method("paper", {"filtering.k": 7}).filtering.k == 7
