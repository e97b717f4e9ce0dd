"""Pools that hold hardly any known item: every job gives an answer, and no figure is made up."""

import json
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

from s2osc.cli.main import main

pytestmark = pytest.mark.usefixtures("as_users_get_it")
SMALL = [
    f"--set={role}.{name}"
    for role in ("teacher", "student")
    for name in ("training.epochs=1", "training.min_steps=25")
]
SMALL_IMAGES = [
    *SMALL,
    *(f"--set={role}.network.widths=8,8,8" for role in ("teacher", "student")),
    "--preset=fast",
]


@pytest.fixture(scope="module", params=["vectors", pytest.param("images", marks=pytest.mark.slow)])
def files(request, tmp_path_factory):
    """Labelled digits 0 to 4, a pool of nines, and the options of a quick run."""
    folder = tmp_path_factory.mktemp("digits")
    digits = load_digits()
    is_image = request.param == "images"
    x = (digits.images * 15).astype(np.uint8) if is_image else digits.data.astype(np.float32)
    known, nines = np.flatnonzero(digits.target < 5)[:200], np.flatnonzero(digits.target == 9)[:30]
    np.savez(folder / "known.npz", x=x[known], y=digits.target[known])
    np.save(folder / "pool.npy", x[nines])
    return folder, SMALL_IMAGES if is_image else SMALL


def read_strictly(path: Path) -> dict:
    """A JSON file in which no number may be NaN or infinite."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{path} holds {name}")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def test_classify_answers_for_a_pool_without_known_items(files):
    folder, options = files
    known, pool, out = (str(folder / name) for name in ("known.npz", "pool.npy", "out"))
    assert main(["classify", "--known", known, "--pool", pool, "--out", out, *options]) == 0
    audit = read_strictly(Path(out) / "summary.json")["audit"]
    assert audit["unknown_share"]["low"] > 0.5
    assert "of this pool is of no known class" in audit["sentence"]
    page = (Path(out) / "report.html").read_text(encoding="utf-8")
    assert audit["sentence"] in unescape(page)
    assert main(["decide", "--out", out, "--false-alarm", "0.1"]) == 0


@pytest.mark.slow  # with fewer draws it is quick, in tests/app/test_stream.py
def test_a_window_of_a_stream_may_hold_nothing_known(files):
    folder, options = files
    known, pool, state, out = (
        str(folder / name) for name in ("known.npz", "pool.npy", "state", "window")
    )
    assert main(["stream", "init", "--known", known, "--state", state, *options]) == 0
    assert main(["stream", "window", "--state", state, "--pool", pool, "--out", out]) == 0
    assert read_strictly(Path(out) / "summary.json")["audit"]["unknown_share"]["low"] > 0.5
