"""Hyper-parameters from labelled files to a file, and from that file into a run."""

import json
from itertools import count

import numpy as np
import pytest

from conftest import QUICK
from files import npz
from s2osc.app.settings_file import SavedSettings, read_settings, settings_text
from s2osc.app.tune import tune_files
from s2osc.cli.main import build_parser, main
from s2osc.cli.options import request_of
from s2osc.errors import SettingsError
from s2osc.testing import make_blobs


@pytest.fixture
def known(tmp_path):
    inputs, labels = make_blobs(30, 4)
    return npz(tmp_path / "known.npz", x=inputs, y=labels)


def test_settings_survive_their_file(tmp_path):
    saved = SavedSettings(
        "heads", {"student.tau": 0.9, "student.start": "teacher", "student.vote": True}
    )
    path = tmp_path / "settings.toml"
    path.write_text(settings_text(saved, ["two\nlines"]))
    assert read_settings(path) == saved


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("preset = ", "settings.toml"),
        ('preset = "heads"\nmore = 1', "wanted are preset and settings"),
        ("preset = 3", "preset is a word"),
        ("settings = 3", "settings a table"),
    ],
)
def test_a_file_of_something_else_is_one_line(tmp_path, content, wanted):
    path = tmp_path / "settings.toml"
    path.write_text(content)
    with pytest.raises(SettingsError, match=wanted):
        read_settings(path)


def test_a_setting_that_does_not_exist_is_one_line(tmp_path, known, capsys):
    path = tmp_path / "settings.toml"
    path.write_text('[settings]\n"student.tou" = 0.9\n')
    words = ["classify", f"--known={known}", f"--pool={known}", f"--out={tmp_path / 'out'}"]
    assert main([*words, f"--settings={path}"]) == 2
    assert "did you mean student.tau" in capsys.readouterr().err


def test_tune_writes_settings_that_classify_takes(tmp_path, known):
    to, out = tmp_path / "mine.toml", tmp_path / "out"
    seconds = count()
    quick = build_parser().parse_args(["settings", *QUICK])
    found = tune_files(
        known, to, request_of(quick), minutes=0.2, clock=lambda: float(next(seconds))
    )
    saved = read_settings(to)
    assert saved.preset == "heads"
    assert saved.changes["teacher.training.min_steps"] == "12"  # what was asked for stays
    assert to.read_text().count("# tried ") == len(found.tried) > 0
    pool = npz(tmp_path / "pool.npz", x=make_blobs(20, 5, seed=1)[0])
    words = [f"--known={known}", f"--pool={pool}", f"--out={out}"]
    assert main(["classify", *words, f"--settings={to}", "--set=student.tau=0.7"]) == 0
    settings = json.loads((out / "summary.json").read_bytes())["settings"]
    assert settings["teacher.training.min_steps"] == 12
    assert settings["student.tau"] == 0.7


def test_settings_that_are_there_are_not_replaced(tmp_path, known, capsys):
    to = tmp_path / "mine.toml"
    to.write_text("mine")
    assert main(["tune", f"--known={known}", f"--to={to}", "--minutes=1"]) == 2
    assert to.read_text() == "mine"
    assert "--force" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--minutes=0"], ["--minutes=nan"], ["--to=settings.json"]])
def test_what_cannot_be_used_is_one_line(known, words, capsys):
    assert main(["tune", f"--known={known}", *words]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_two_classes_are_too_few(tmp_path, capsys):
    known = npz(tmp_path / "k.npz", x=np.eye(40, dtype=np.float32), y=np.repeat([0, 1], 20))
    assert main(["tune", f"--known={known}", f"--to={tmp_path / 's.toml'}", *QUICK]) == 2
    assert "at least three classes" in capsys.readouterr().err
    assert not (tmp_path / "s.toml").exists()
