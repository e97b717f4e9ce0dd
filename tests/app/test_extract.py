"""Photos go through a pretrained network, the same one and in the same way each time."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from files import npy, npz
from s2osc.app import extract as photos
from s2osc.app import representation as jobs
from s2osc.app.classify import classify_files
from s2osc.app.extract import Trusted, make_extractor, named_backbone, restore_extractor
from s2osc.app.predict import predict_files
from s2osc.app.representation import choose_representation
from s2osc.app.request import Request, choose_method
from s2osc.data.images import InputShape
from s2osc.data.inputs import open_known_and_pool
from s2osc.errors import ModelError
from s2osc.nets import backbones
from s2osc.nets.backbones import Backbone
from s2osc.pipeline.model_description import BackboneEntry
from s2osc.pipeline.storage import load_model

KINDS = ("left", "top", "corner")
STEPS = {
    f"{role}.{name}": value
    for role in ("teacher", "student")
    for name, value in {
        "training.epochs": 1,
        "training.min_steps": 20,
        "training.batch_size": 32,
        "network.hidden": (16,),
        "network.widths": (8, 8, 8),
        "network.first_map": 8,
    }.items()
} | {"student.labelled_batch": 32}
FEW_STEPS = {f"{role}.training.min_steps": 2 for role in ("teacher", "student")}
"""For tests of which the answer may be any."""


def tiny_backbone(
    name: str = "efficientnet-lite0", device: str = "cpu", **given: object
) -> Backbone:
    """The means of a 4 x 4 grid: what a network this cheap can see of a picture."""

    def see(batch: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.adaptive_avg_pool2d(batch, 4).flatten(1)

    side = given.get("side") or 128
    return Backbone(name, "v1", side, 48, (127.0,) * 3, (64.0,) * 3, see, device)


@pytest.fixture(autouse=True)
def backbone(monkeypatch, tmp_path):
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    for module in (jobs, photos):
        monkeypatch.setattr(module, "load_backbone", tiny_backbone)
    monkeypatch.setattr(jobs, "is_installed", lambda: True)


def pictures(labels: list[str], side: int, seed: int) -> np.ndarray:
    images = np.random.default_rng(seed).integers(0, 60, (len(labels), side, side, 3), np.uint8)
    third = side // 3
    for image, label in zip(images, labels, strict=True):
        if label == "left":
            image[:, :third] += 180
        elif label == "top":
            image[:third] += 180
        else:
            image[-third:, -third:] += 180
    return images


def write(folder: Path, side: int, n_known: int = 30, n_pool: int = 10) -> tuple[Path, Path]:
    """So many images of each class."""
    known, pool = [*KINDS[:2]] * n_known, [*KINDS] * n_pool
    return (
        npz(folder / "known.npz", x=pictures(known, side, 0), y=known),
        npz(folder / "pool.npz", x=pictures(pool, side, 1), y=pool),
    )


def run(preset: str = "auto", backbone: str = "auto", **more: object) -> Request:
    changes = STEPS | {"clusters.n_groups": 1, "seeds.judges": 0} | more
    return Request(preset, changes, device="cpu", backbone=backbone)


CHOICES = [
    (48, "auto", "auto", ("efficientnet-lite0", "heads")),
    (40, "scratch", "auto", (None, "quick")),
    (48, "scratch", "auto", (None, "quick")),
    (48, "auto", "fast", (None, "fast")),
    (24, "a-network", "auto", ("a-network", "heads")),
]


@pytest.mark.parametrize(("side", "given", "preset", "expected"), CHOICES)
def test_the_backbone_and_the_preset_are_chosen_by_the_images_and_the_request(
    tmp_path, side, given, preset, expected
):
    request, opened = run(preset, given), open_known_and_pool(*write(tmp_path, side))
    named = named_backbone(given, "cpu")
    represented = choose_representation(opened, request, device="cpu", named=named)
    vectors = represented.backbone is not None
    chosen, _ = choose_method(request, "cpu", vectors=vectors, n_labelled=60)
    assert (represented.backbone, chosen) == expected


@pytest.mark.parametrize(("n_items", "side"), [(2_500, 224), (2_501, 128), (None, 128)])
def test_few_photos_are_seen_in_more_pixels(tmp_path, monkeypatch, n_items, side):
    monkeypatch.setattr(backbones, "FEW_PHOTOS", 2_500)
    opened = open_known_and_pool(*write(tmp_path, 240))
    represented = choose_representation(
        opened, run(), device="cpu", named=named_backbone("auto", "cpu"), n_items=n_items
    )
    assert (represented.shape.height, represented.shape.width) == (side, side)
    assert represented.preparation.side == side


# A run with the backbone; one without it is below, and the rest differ in the choice alone.
@pytest.mark.parametrize(
    ("side", "given", "preset", "expected"),
    [
        pytest.param(*choice, marks=() if choice is CHOICES[0] else pytest.mark.slow)
        for choice in CHOICES
    ],
)
def test_large_images_go_through_a_backbone_unless_told_otherwise(
    tmp_path, side, given, preset, expected
):
    files = write(tmp_path, side, 40, 14)
    result = classify_files(*files, tmp_path / "out", run(preset, given))
    assert (result.run.backbone, result.run.preset) == expected
    assert ("features" in result.run.seconds) == (expected[0] is not None)
    assert result.summary.metrics["accuracy"] > 0.8


def speckled(n: int, seed: int) -> tuple[np.ndarray, list[str]]:
    """Images of noise that differ in one corner, which a few steps from scratch do not find."""
    labels = [*KINDS[:2]] * n
    images = np.random.default_rng(seed).integers(0, 255, (2 * n, 24, 24, 3), np.uint8)
    images[::2, 0, 0], images[1::2, 0, 0] = 0, 255
    return images, labels


def sees_corners(*given: object, **more: object) -> Backbone:
    """A backbone that sees that corner, and nothing else."""
    backbone = tiny_backbone(*given, **more)
    return replace(backbone, network=lambda x: 5 * x[:, :, 0, 0].repeat(1, 16))


@pytest.mark.parametrize("channels", [slice(None), 0], ids=["colour", "grey"])
def test_small_colour_images_go_through_the_backbone_if_it_names_labelled_ones_better(
    tmp_path, monkeypatch, channels
):
    for module in (jobs, photos):
        monkeypatch.setattr(module, "load_backbone", sees_corners)
    known, labels = speckled(60, 0)
    files = (
        npz(tmp_path / "known.npz", x=known[..., channels], y=labels),
        npz(tmp_path / "pool.npz", x=speckled(10, 1)[0][..., channels]),
    )
    result = classify_files(*files, tmp_path / "out", run())
    # Grey images are not what backbones were trained on.
    assert result.run.backbone == ("efficientnet-lite0" if channels == slice(None) else None)
    assert "representation" in result.run.seconds


def test_what_is_not_installed_is_noted_and_done_without(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "is_installed", lambda: False)
    result = classify_files(*write(tmp_path, 48), tmp_path / "out", run(**FEW_STEPS))
    assert result.run.backbone is None
    assert "pip install 's2osc[photos]'" in result.summary.warnings[0]


def test_a_saved_model_sees_new_photos_as_it_saw_the_first(tmp_path):
    known, pool = write(tmp_path, 200, 15, 6)
    out = tmp_path / "out"
    result = classify_files(known, pool, out, run(**FEW_STEPS))
    assert result.run.shape == "48 images of 200x200, brought to 128x128 RGB"
    assert load_model(out / "model").preparation == BackboneEntry(
        name="efficientnet-lite0",
        version="v1",
        side=128,
        n_views=2,
        flip=True,
        height=128,
        width=128,
        channels=3,
    )
    answer, notes = predict_files(out / "model", pool, tmp_path / "again.parquet")
    first = pq.read_table(out / "predictions.parquet")["nearest"].to_pylist()
    assert pq.read_table(tmp_path / "again.parquet")["nearest"].to_pylist() == first
    assert (len(answer.labels), notes) == (18, [])
    # Other sizes come to the same one.
    other = npy(tmp_path / "other.npy", pictures([*KINDS], 90, 2))
    answer, _ = predict_files(out / "model", other, tmp_path / "other.csv")
    assert len(answer.labels) == 3


def test_other_weights_than_the_models_are_refused(tmp_path, monkeypatch):
    extractor = make_extractor(tiny_backbone(), InputShape("images", 64, 64, 3), flip=True)
    newer = replace(tiny_backbone(), version="v2")
    monkeypatch.setattr(photos, "load_backbone", lambda *_, **__: newer)
    with pytest.raises(ModelError, match=r"made with weights v1 of .* but those installed are v2"):
        restore_extractor(extractor.describe(), "cpu")


def test_a_model_chooses_no_backbone_by_itself(tmp_path):
    known, pool = write(tmp_path, 24)
    classify_files(known, pool, tmp_path / "out", run(backbone="a-network", **FEW_STEPS))
    paths = tmp_path / "out" / "model", pool, tmp_path / "a.csv"
    with pytest.raises(ModelError, match=r"backbone 'a-network', which is not loaded by itself"):
        predict_files(tmp_path / "out" / "model", pool, tmp_path / "a.csv")
    with pytest.raises(ModelError, match="give --backbone with that name"):
        predict_files(*paths, trusted=Trusted("another"))
    predict_files(*paths, trusted=Trusted("a-network"))
    assert (tmp_path / "a.csv").is_file()


@pytest.mark.parametrize(("channels", "expected"), [(1, False), (3, True)])
def test_colour_photos_are_mirrored_and_grey_ones_are_not(tmp_path, channels, expected):
    known, pool = [*KINDS[:2]] * 30, [*KINDS] * 10
    files = [
        npz(
            tmp_path / f"{name}.npz",
            x=pictures(labels, 48, seed)[..., 0] if channels == 1 else pictures(labels, 48, seed),
            y=labels,
        )
        for name, labels, seed in (("known", known, 0), ("pool", pool, 1))
    ]
    classify_files(*files, tmp_path / "out", run(**FEW_STEPS))
    assert load_model(tmp_path / "out" / "model").preparation.flip == expected
