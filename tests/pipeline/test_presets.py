"""The presets are what the paper, and the documents, say they are."""

import pytest
import torch

from s2osc.errors import SettingsError
from s2osc.nets.networks import Network
from s2osc.pipeline.filter.distinctness import PAPER_K
from s2osc.pipeline.presets import (
    ABLATIONS,
    FAST,
    FEW_LABELLED,
    HEADS,
    LARGE,
    PAPER,
    PLAIN,
    PRESETS,
    QUICK,
    build_method,
    choose_preset,
    with_seeds,
)
from s2osc.settings import flatten


@pytest.mark.parametrize("method", PRESETS.values(), ids=PRESETS.keys())
def test_every_preset_has_the_papers_hyper_parameters(method):
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


WITH_SEEDS = {
    "filtering.by": "seeds",
    "seeds.share": 0.15,
    "decision.rule": "seeds",
    "student.vote": True,
    "student.known_items": "all",
    "student.seed_weight": 0.5,
}


@pytest.mark.parametrize(
    ("seeded", "plain"),
    [(with_seeds(PLAIN), PLAIN), (LARGE, PAPER)],
    ids=["compact", "large"],
)
def test_with_seeds_a_preset_changes_in_nothing_but_what_seeds_are_good_for(seeded, plain):
    assert flatten(seeded) == flatten(plain) | WITH_SEEDS
    assert with_seeds(plain) == seeded == with_seeds(seeded)


def test_small_maps_are_for_grey_images_alone():
    for role in ("teacher", "student"):
        (small, usual) = (getattr(method, role).network for method in (QUICK, PLAIN))
        assert small.stem_stride(28, 1) == 2 * usual.stem_stride(28, 1)
        assert small.stem_stride(32, 3) == usual.stem_stride(32, 3)


@pytest.mark.parametrize("method", [PLAIN, PAPER], ids=["plain", "paper"])
def test_the_papers_method_has_no_seeds(method):
    assert method.seeds.share == method.student.seed_weight == 0
    assert (method.filtering.by, method.decision.rule) == ("paper", "argmax")


def test_the_preset_for_vectors_has_seeds_and_one_layer():
    table = flatten(HEADS)
    assert {name: table[name] for name in WITH_SEEDS} == WITH_SEEDS
    assert HEADS.teacher.network.hidden == HEADS.student.network.hidden == (512,)


SMALL_MAPS = {f"{role}.network.grey_map": 8 for role in ("teacher", "student")}


def test_the_quick_preset_has_small_maps_of_grey_images_and_folds():
    assert flatten(QUICK) == flatten(PLAIN) | WITH_SEEDS | SMALL_MAPS | {"seeds.judges": 60}


def test_the_fast_preset_has_large_maps_for_f_alone_and_more_steps():
    assert flatten(FAST) == flatten(PLAIN) | WITH_SEEDS | SMALL_MAPS | {
        "teacher.network.grey_map": None,
        "teacher.network.widths": (16, 32, 96),
        "teacher.training.epochs": 6,
        "student.training.epochs": 4,
        "student.training.min_steps": 400,
    }


def test_few_labelled_images_get_the_quick_preset():
    for n_labelled, preset in ((FEW_LABELLED, "quick"), (FEW_LABELLED + 1, "fast"), (None, "fast")):
        assert choose_preset("auto", "cpu", n_labelled=n_labelled) == preset
    assert choose_preset("auto", "cpu", vectors=True, n_labelled=10) == "heads"
    assert choose_preset("auto", "cuda", n_labelled=10) == "large"
    assert choose_preset("fast", "cpu", n_labelled=10) == "fast"


@pytest.mark.parametrize(
    ("device", "vectors", "name"),
    [
        ("cpu", False, "fast"),
        ("cuda", False, "large"),
        ("cuda:1", False, "large"),
        ("cpu", True, "heads"),
        ("cuda", True, "heads"),
    ],
)
def test_auto_follows_the_inputs_and_the_device(device, vectors, name):
    assert choose_preset("auto", device, vectors=vectors) == name


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_that_is_named_is_taken_whatever_the_inputs(name):
    assert choose_preset(name, "cpu", vectors=True) == name


def test_a_preset_that_is_not_there_is_refused():
    words = "the preset is 'slow'; give auto, fast or quick or heads or tuned or large or plain or"
    with pytest.raises(SettingsError, match=words):
        choose_preset("slow", "cpu")


def test_a_method_is_a_preset_with_changes():
    assert build_method("fast", {}) == FAST
    assert build_method("paper", {"filtering.k": 7}).filtering.k == 7
