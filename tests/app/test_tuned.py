"""The preset tuned from files to files, and the choice of it by the time there is."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from files import npy, npz
from pretrained import QUICK, pictures, use_random_weights
from s2osc.app import representation as jobs
from s2osc.app.classify import classify_files
from s2osc.app.predict import predict_files
from s2osc.app.representation import choose_by_time, choose_representation
from s2osc.app.request import Request
from s2osc.cli.main import main
from s2osc.data.inputs import OpenSources, open_known_and_pool
from s2osc.errors import SettingsError
from s2osc.pipeline.photo_preparation import Cost
from s2osc.pipeline.storage import load_model
from s2osc.progress import shown

TUNED = Request("tuned", QUICK, device="cpu")


@pytest.fixture(autouse=True)
def _pretrained(monkeypatch, tmp_path):
    use_random_weights(monkeypatch)
    monkeypatch.setattr(jobs, "is_installed", lambda: True)
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))


def write(folder: Path, side: int = 24) -> tuple[Path, Path]:
    known, pool = np.repeat([0, 1], 30), np.repeat([0, 1, 2], 12)
    return (
        npz(folder / "known.npz", x=pictures(known, 0, side), y=known),
        npz(folder / "pool.npz", x=pictures(pool, 1, side), y=pool),
    )


def test_new_images_are_answered_as_those_of_the_pool_were(tmp_path):
    known, pool = write(tmp_path)
    result = classify_files(known, pool, tmp_path / "out", TUNED)
    assert (result.run.preset, result.run.backbone) == ("tuned", "efficientnet-lite0")
    entry = load_model(tmp_path / "out" / "model").preparation
    assert (entry.side, entry.n_views, entry.first_stage) == (32, 2, 6)
    predict_files(tmp_path / "out" / "model", pool, tmp_path / "again.parquet")
    first = pq.read_table(tmp_path / "out" / "predictions.parquet")["nearest"].to_pylist()
    assert pq.read_table(tmp_path / "again.parquet")["nearest"].to_pylist() == first


def opened(folder: Path, side: int = 48) -> OpenSources:
    return open_known_and_pool(*write(folder, side))


@pytest.mark.parametrize(("minutes", "expected"), [(2.6, "tuned"), (2.5, "auto")])
def test_it_is_chosen_where_the_minutes_allow_it(tmp_path, monkeypatch, minutes, expected):
    monkeypatch.setattr(jobs, "measure_cost", lambda *_: Cost(0.1, 0.1, 0.1))
    request = Request("auto", QUICK, device="cpu", minutes=minutes)
    # 96 images: 29 s to prepare 3 views, 48 s to train on 96 and twice 192, 77 s to answer 576 and
    # to label twice 96; 1 s for the rest
    lines = io.StringIO()
    with shown(Console(file=lines, width=200)):
        chosen = choose_by_time(opened(tmp_path), request, "cpu")
    assert chosen.preset == expected
    assert (
        "100.0 ms to prepare a view of an image, 100.0 ms to train on it once" in lines.getvalue()
    )
    assert f"; {'tuned' if expected == 'tuned' else 'heads'} is taken" in lines.getvalue()


def test_nothing_is_measured_where_there_is_no_choice(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "measure_cost", None)
    (tmp_path / "small").mkdir()
    sources, small = opened(tmp_path), opened(tmp_path / "small", side=24)
    plain = Request("auto", QUICK, device="cpu")
    hurried = replace(plain, minutes=5.0)
    for of, request in (
        (sources, plain),
        (small, hurried),
        (sources, replace(hurried, backbone="scratch")),
    ):
        assert choose_by_time(of, request, "cpu") is request
    monkeypatch.setattr(jobs, "is_installed", lambda: False)
    assert choose_by_time(sources, hurried, "cpu") is hurried


def test_another_network_is_trained_by_its_name(tmp_path):
    request = replace(TUNED, backbone="efficientnet-lite1")
    represented = choose_representation(opened(tmp_path), request, device="cpu", named=None)
    assert represented.backbone == "efficientnet-lite1"
    _, method = jobs.choose_method(request, "cpu", vectors=True)
    assert method.student.network.pretrained == "efficientnet-lite1"


@pytest.mark.parametrize("backbone", ["scratch", "resnet18"])
def test_a_network_that_cannot_be_trained_is_refused(tmp_path, backbone):
    with pytest.raises(SettingsError, match=f"--backbone is '{backbone}', but the preset tuned"):
        classify_files(*write(tmp_path), tmp_path / "out", replace(TUNED, backbone=backbone))


def test_vectors_are_refused_before_anything_is_read(tmp_path, capsys):
    known = npz(tmp_path / "k.npz", x=np.zeros((20, 3), np.float32), y=np.arange(20) % 2)
    pool = npy(tmp_path / "p.npy", np.zeros((9, 3), np.float32))
    paths = f"--known={known}", f"--pool={pool}", f"--out={tmp_path / 'out'}"
    assert main(["classify", *paths, "--preset=tuned"]) == 2
    assert "the preset tuned is for images, but the items are vectors" in capsys.readouterr().err
    assert main(["classify", *paths, "--preset=tuned", "--minutes=5"]) == 2
    assert "--minutes is for --preset auto, but the preset is tuned" in capsys.readouterr().err
    assert main(["classify", *paths, "--minutes=0"]) == 2
    assert "--minutes is 0.0; give a number above 0" in capsys.readouterr().err


def test_a_stream_refuses_it(tmp_path, capsys):
    known, _ = write(tmp_path)
    options = f"--known={known}", f"--state={tmp_path / 'state'}", "--preset=tuned"
    assert main(["stream", "init", *options]) == 2
    assert "the preset tuned is for one pool" in capsys.readouterr().err
    assert not (tmp_path / "state").exists()
