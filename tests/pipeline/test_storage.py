"""A model that is written and read again answers as before; a damaged one says so."""

import hashlib
import io
import json
import pickle
import struct

import numpy as np
import pytest
import torch

from s2osc.errors import ModelError
from s2osc.nets.networks import Network
from s2osc.pipeline.clusters import Grouping
from s2osc.pipeline.filtering import FilterSettings, Units
from s2osc.pipeline.method import OpenSetModel
from s2osc.pipeline.presets import ABLATIONS
from s2osc.pipeline.storage import load_model, save_model
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from samples import MANY, TINY, TINY_NETWORK, make_blobs, make_images, open_set

BLOBS = open_set(*make_blobs(40))
CLASSES = ("cat", "dog", "Ω é")
JSON, WEIGHTS = "model.json", "weights.safetensors"


def untrained(inputs, n_groups=2):
    torch.manual_seed(0)
    f, g = (Network(TINY_NETWORK, inputs.shape[1:], n).eval() for n in (3, 4))
    f.fit_normalisation(inputs)
    g.fit_normalisation(inputs)
    random = np.random.default_rng(0)
    centres = random.normal(size=(3 + n_groups, 16)).astype(np.float32)
    return OpenSetModel(
        Teacher(f, centres[:3]),
        Student(g, "one", vote=True),
        Grouping(centres[3:]),
        FilterSettings(k=5, distance_weight=0.5),
        Units(0.25, 3.5),
    )


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "model", untrained(BLOBS.pool), CLASSES)
    return tmp_path / "model"


def assert_answers_are_identical(before, after, inputs):
    mine, theirs = before.answer(inputs), after.answer(inputs)
    for name in ("labels", "groups", "unknown_score", "confidence", "distinctness", "filtered"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), name)
    np.testing.assert_array_equal(before.probabilities(inputs), after.probabilities(inputs))


@pytest.mark.parametrize("method", [TINY, MANY, ABLATIONS["FN"](TINY)], ids=["one", "many", "FN"])
def test_a_fitted_model_answers_as_before_after_a_round_trip(method, tmp_path):
    model = method.fit(BLOBS.known, BLOBS.pool, seed=0).model
    save_model(tmp_path, model, CLASSES)
    loaded = load_model(tmp_path)
    assert loaded.classes == CLASSES
    assert_answers_are_identical(model, loaded.model, BLOBS.pool)


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_a_model_of_images_survives_the_round_trip(colour, tmp_path):
    images, _ = make_images(10, colour=colour)
    model = untrained(images)
    save_model(tmp_path, model, CLASSES)
    assert_answers_are_identical(model, load_model(tmp_path).model, images)


def test_a_model_without_groups_survives_the_round_trip(tmp_path):
    save_model(tmp_path, untrained(BLOBS.pool, n_groups=0), CLASSES)
    assert load_model(tmp_path).model.grouping.centres.shape == (0, 16)


def test_what_is_not_a_weight_survives_the_round_trip(folder):
    model = load_model(folder).model
    assert model.filtering == FilterSettings(k=5, distance_weight=0.5)
    assert model.unit == Units(0.25, 3.5)
    assert (model.student.unknown, model.student.vote) == ("one", True)
    assert model.student.network.settings == TINY_NETWORK
    assert not model.teacher.network.training


def test_saving_again_replaces_the_model(folder):
    save_model(folder, untrained(BLOBS.pool), ("x", "y", "z"))
    assert load_model(folder).classes == ("x", "y", "z")


def test_names_beyond_ascii_are_written_whatever_the_locale(tmp_path, monkeypatch):
    def ascii_unless_told(encoding, stacklevel=2):
        return encoding or "ascii"

    monkeypatch.setattr(io, "text_encoding", ascii_unless_told)
    save_model(tmp_path, untrained(BLOBS.pool), CLASSES)
    assert load_model(tmp_path).classes == CLASSES


# Nothing in the folder is ever run


def test_the_folder_holds_json_and_plain_tensors_and_nothing_else(folder):
    assert {path.name for path in folder.iterdir()} == {JSON, WEIGHTS}
    weights = (folder / WEIGHTS).read_bytes()
    (length,) = struct.unpack("<Q", weights[:8])
    header = json.loads(weights[8 : 8 + length])
    assert "teacher.head.weight" in header
    assert json.loads((folder / JSON).read_text(encoding="utf-8"))["format"] == 1


def test_reading_a_model_unpickles_nothing(folder, monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("a model was unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr(torch, "load", refuse)
    load_model(folder)


# Damage


def assert_refused(folder, words):
    with pytest.raises(ModelError, match=words) as error:
        load_model(folder)
    assert "\n" not in str(error.value)


def edit(folder, **changes):
    path = folder / JSON
    description = json.loads(path.read_text(encoding="utf-8")) | changes
    path.write_text(json.dumps(description), encoding="utf-8")


def test_a_folder_that_is_no_model_is_refused(tmp_path):
    assert_refused(tmp_path, "is not a model: model.json is not there")
    assert_refused(tmp_path / "nowhere", "is not a model")


def test_missing_weights_are_named(folder):
    (folder / WEIGHTS).unlink()
    assert_refused(folder, "weights.safetensors cannot be read: No such file")


@pytest.mark.parametrize("place", [0, 100, -1])
def test_one_changed_byte_of_the_weights_is_noticed(folder, place):
    weights = bytearray((folder / WEIGHTS).read_bytes())
    weights[place] ^= 1
    (folder / WEIGHTS).write_bytes(weights)
    assert_refused(folder, "is damaged: its checksum")


def test_weights_cut_short_are_noticed(folder):
    weights = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(weights[: len(weights) // 2])
    assert_refused(folder, "is damaged: its checksum")


@pytest.mark.parametrize("content", [b"", b"no tensors at all", b"\x80\x04N."])
def test_weights_that_are_no_tensors_are_refused_even_with_their_checksum(folder, content):
    (folder / WEIGHTS).write_bytes(content)
    edit(folder, weights_sha256=hashlib.sha256(content).hexdigest())
    assert_refused(folder, "does not describe the weights beside it")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"format": null}', '{"format": "one"}', "\x00"]
)
def test_a_damaged_description_is_refused(folder, text):
    (folder / JSON).write_text(text, encoding="utf-8")
    assert_refused(folder, "model.json is damaged")


def test_a_description_that_is_not_text_is_refused(folder):
    (folder / JSON).write_bytes(b"\xff\xfe\x00\x01")
    assert_refused(folder, "model.json is damaged")


def test_a_newer_format_asks_for_a_newer_program(folder):
    edit(folder, format=2, s2osc="9.1")
    assert_refused(folder, "is of format 2, written by s2osc 9.1; .* install a newer s2osc")


@pytest.mark.parametrize(
    "changes",
    [
        {"networks": {}},
        {"networks": None},
        {"networks": {"teacher": None, "student": None}},
        {"filtering": {"k": -1}},
        {"filtering": {"colour": "red"}},
        {"filtering": None},
        {"unit": {"entropy": 1.0}},
        {"classes": None},
        {"classes": ["cat", "dog"]},  # f knows three classes
        {"unknown": "purple"},
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(folder, changes):
    edit(folder, **changes)
    assert_refused(folder, "model.json")


def test_a_description_of_another_network_is_refused(folder):
    networks = json.loads((folder / JSON).read_text(encoding="utf-8"))["networks"]
    networks["student"]["n_outputs"] = 9
    edit(folder, networks=networks)
    assert_refused(folder, "does not describe the weights beside it")
