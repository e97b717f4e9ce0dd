"""A model that is written and read again answers as before; a damaged one says so."""

import hashlib
import io
import json
import pickle
import struct
import time
from dataclasses import replace

import numpy as np
import pytest
import safetensors.numpy
import torch

from s2osc.codec import to_plain
from s2osc.errors import ModelError
from s2osc.files import as_json
from s2osc.nets.networks import Network
from s2osc.pipeline.audit.confidence import Confidence, Curve
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.pipeline.filter.distinctness import FilterSettings, Units
from s2osc.pipeline.group_tree import ONE_LEAF, GroupTree
from s2osc.pipeline.grouping.clusters import Grouping
from s2osc.pipeline.grouping.space import GroupingSpace, input_features
from s2osc.pipeline.model import CalibrationScores, KnownOnlyModel, OpenSetModel
from s2osc.pipeline.model_description import BackboneEntry, with_thresholds
from s2osc.pipeline.presets import ABLATIONS
from s2osc.pipeline.scaling import fit_scaling
from s2osc.pipeline.storage import load_model, save_model
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from samples import (
    MANY,
    SEEDED,
    SEEDED_MANY,
    TINY,
    TINY_NETWORK,
    make_blobs,
    make_images,
    open_set,
)

BLOBS = open_set(*make_blobs(40))
CLASSES = ("cat", "dog", "Ω é")
JSON, WEIGHTS = "model.json", "weights.safetensors"
BACKBONE = BackboneEntry(
    name="efficientnet",
    version="1",
    side=224,
    n_views=2,
    flip=True,
    height=64,
    width=48,
    channels=3,
)
FILTERING = FilterSettings(by="seeds", k=5, purity=0.8, distance_weight=0.5)
TREE = GroupTree(((-1, -2),), (0.75,), (8, 8))


def as_thresholds(common, of_class=None):
    return None if common is None else Thresholds(common, of_class or {})


def untrained(inputs, n_groups=2, threshold=0.25, of_class=None):
    torch.manual_seed(0)
    f, g = (Network(TINY_NETWORK, inputs.shape[1:], n).eval() for n in (3, 4))
    f.fit_normalisation(inputs)
    g.fit_normalisation(inputs)
    random = np.random.default_rng(0)

    def draw(*shape):
        return random.normal(size=shape).astype(np.float32)

    n_inputs = input_features(inputs).shape[1]
    return OpenSetModel(
        Teacher(f, draw(3, 16)),
        Student(g, "one", vote=True, vote_weight=0.5),
        GroupingSpace(
            draw(n_inputs),
            np.ones(n_inputs, np.float32),
            draw(4, n_inputs).T,
            draw(4, 4),
        ),
        Grouping(
            draw(8 * n_groups, 4),
            np.repeat(np.arange(n_groups), 8),
            TREE if n_groups else ONE_LEAF,
            (0, 1) if n_groups else (0,),
            random.random(max(n_groups, 1)),
            3.5,
            24,
        ),
        FILTERING,
        Units(0.25, 3.5),
        as_thresholds(threshold, of_class),
        fit_scaling(inputs),
        CalibrationScores(np.sort(draw(9)), random.uniform(0.5, 2, 9)),
    )


@pytest.fixture
def folder(tmp_path):
    save_model(tmp_path / "model", untrained(BLOBS.pool), CLASSES)
    return tmp_path / "model"


def assert_answers_are_identical(before, after, inputs):
    mine, theirs = before.answer(inputs), after.answer(inputs)
    for name in ("labels", "groups", "unknown_score", "confidence", "distinctness", "filtered"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name), name)
    np.testing.assert_array_equal(mine.p_known, theirs.p_known)
    assert before.operating_point == after.operating_point
    np.testing.assert_array_equal(before.probabilities(inputs), after.probabilities(inputs))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(ABLATIONS["FN"](TINY), id="FN"),
        pytest.param(SEEDED_MANY, id="many, with seeds"),
        # Each half of them stands in one of those above.
        pytest.param(TINY, id="one", marks=pytest.mark.slow),
        pytest.param(MANY, id="many", marks=pytest.mark.slow),
        pytest.param(SEEDED, id="with seeds", marks=pytest.mark.slow),
    ],
)
def test_a_fitted_model_answers_as_before_after_a_round_trip(method, tmp_path):
    model = method.fit(BLOBS.known, BLOBS.pool, seed=0).model
    save_model(tmp_path, model, CLASSES)
    loaded = load_model(tmp_path)
    assert (loaded.classes, loaded.preparation) == (CLASSES, None)
    assert isinstance(loaded.model, OpenSetModel)
    assert loaded.model.thresholds == model.thresholds
    assert_answers_are_identical(model, loaded.model, BLOBS.pool)


def test_a_model_of_a_pool_without_unknown_items_survives_the_round_trip(tmp_path):
    pool = BLOBS.pool[BLOBS.truth >= 0]
    model = SEEDED.fit(BLOBS.known, pool, seed=0).model
    assert isinstance(model, KnownOnlyModel)
    save_model(tmp_path, model, CLASSES, BACKBONE)
    loaded = load_model(tmp_path)
    assert isinstance(loaded.model, KnownOnlyModel)
    assert (loaded.classes, loaded.preparation) == (CLASSES, BACKBONE)
    assert_answers_are_identical(model, loaded.model, BLOBS.pool)


def test_a_model_of_stacked_views_survives_the_round_trip(tmp_path):
    views = np.stack([BLOBS.pool, BLOBS.pool + np.float32(0.1), BLOBS.pool * 2], axis=1)
    model = untrained(BLOBS.pool)
    save_model(tmp_path, model, CLASSES, BACKBONE)
    assert_answers_are_identical(model, load_model(tmp_path).model, views)


@pytest.mark.parametrize("colour", [False, True], ids=["grey", "colour"])
def test_a_model_of_images_survives_the_round_trip(colour, tmp_path):
    images, _ = make_images(10, colour=colour)
    model = untrained(images)
    save_model(tmp_path, model, CLASSES)
    assert_answers_are_identical(model, load_model(tmp_path).model, images)


def test_a_model_without_groups_survives_the_round_trip(tmp_path):
    model = untrained(BLOBS.pool, n_groups=0)
    save_model(tmp_path, model, CLASSES)
    loaded = load_model(tmp_path).model
    assert loaded.grouping.n_groups == 0
    assert_answers_are_identical(model, loaded, BLOBS.pool)


def test_what_is_not_a_weight_survives_the_round_trip(folder):
    model = load_model(folder).model
    assert model.filtering == FILTERING
    assert model.unit == Units(0.25, 3.5)
    student = model.student
    assert (student.unknown, student.vote, student.vote_weight) == ("one", True, 0.5)
    assert model.student.network.settings == TINY_NETWORK
    assert not model.teacher.network.training
    assert model.grouping.tree == TREE
    assert (model.grouping.groups, model.grouping.radius) == ((0, 1), 3.5)


def test_every_array_survives_the_round_trip_with_its_type(folder):
    before, after = untrained(BLOBS.pool), load_model(folder).model
    for part in ("space", "grouping", "scaling"):
        mine, theirs = vars(getattr(before, part)), vars(getattr(after, part))
        for name in (name for name, value in mine.items() if isinstance(value, np.ndarray)):
            np.testing.assert_array_equal(mine[name], theirs[name], name)
            assert mine[name].dtype == theirs[name].dtype


@pytest.mark.parametrize("threshold", [None, 0.0, -1.5, 1 / 3, float("inf"), float("-inf")])
def test_any_threshold_survives_the_round_trip(threshold, tmp_path):
    save_model(tmp_path, untrained(BLOBS.pool, threshold=threshold), CLASSES)
    assert load_model(tmp_path).model.thresholds == as_thresholds(threshold)

    def refuse(word):
        raise AssertionError(f"{word} is no JSON")

    json.loads((tmp_path / JSON).read_text(encoding="utf-8"), parse_constant=refuse)


@pytest.mark.parametrize("threshold", [None, 0.5, float("-inf")])
def test_another_threshold_changes_nothing_else_of_a_description(folder, threshold):
    before = json.loads((folder / JSON).read_text(encoding="utf-8"))
    (folder / JSON).write_bytes(as_json(with_thresholds(before, as_thresholds(threshold))))
    assert load_model(folder).model.thresholds == as_thresholds(threshold)
    after = json.loads((folder / JSON).read_text(encoding="utf-8"))
    assert after | {"threshold": None} == before | {"threshold": None}


def test_classes_whose_names_are_no_utf_8_are_written_escaped(tmp_path):
    save_model(tmp_path, untrained(BLOBS.pool), ("caf\udce9", "x", "y"))
    assert load_model(tmp_path).classes == ("caf\\xe9", "x", "y")


def test_what_made_the_inputs_is_kept(tmp_path):
    save_model(tmp_path, untrained(BLOBS.pool), CLASSES, BACKBONE)
    assert load_model(tmp_path).preparation == BACKBONE


def test_read_only_arrays_can_be_saved(tmp_path):
    model = untrained(BLOBS.pool)
    for array in (model.teacher.centres, model.space.input_axes, model.grouping.items):
        array.flags.writeable = False
    save_model(tmp_path, model, CLASSES)
    load_model(tmp_path)


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
    assert {"teacher.head.weight", "space.input_axes", "groups.items"} <= set(header)
    assert json.loads((folder / JSON).read_text(encoding="utf-8"))["format"] == 5


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
    assert_refused(folder, "model.json cannot be read")


def test_a_description_that_is_not_text_is_refused(folder):
    (folder / JSON).write_bytes(b"\xff\xfe\x00\x01")
    assert_refused(folder, "model.json cannot be read")


def test_a_newer_format_asks_for_a_newer_program(folder):
    edit(folder, format=6, s2osc="9.1")
    assert_refused(folder, "is of format 6, written by s2osc 9.1; .* install a newer s2osc")


def test_a_model_without_calibration_items_answers_without_p_values(tmp_path):
    save_model(tmp_path, replace(untrained(BLOBS.pool), calibration=None), CLASSES)
    model = load_model(tmp_path).model
    assert model.answer(BLOBS.pool).p_known is None
    assert model.operating_point is None


def test_images_with_a_scaling_are_refused(tmp_path):
    model = replace(untrained(make_images(10)[0]), scaling=fit_scaling(BLOBS.pool))
    save_model(tmp_path, model, CLASSES)
    assert_refused(tmp_path, "does not describe the weights beside it")


@pytest.mark.parametrize("number", [2, 1, 0, -7])
def test_an_earlier_format_asks_for_another_run(folder, number):
    edit(folder, format=number, s2osc="0.1.0")
    words = f"is of format {number}, written by s2osc 0.1.0, an earlier one; .* classify anew"
    assert_refused(folder, words)


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
        {"unit": {"entropy": 1.0, "distance": 0.0}},
        {"unit": {"entropy": -1.0, "distance": 1.0}},
        {"unit": {"entropy": 1.0, "distance": 1e300}},
        {"classes": None},
        {"classes": ["cat", "dog"]},  # f knows three classes
        {"unknown": "purple"},
        {"unknown": ["one"]},
        {"unknown": "many"},  # g has four outputs
        {"kind": "half open"},
        {"kind": None},
        {"threshold": "high"},
        {"threshold": "nan"},
        {"threshold": []},
        {"groups": None},
        {"groups": {"tree": {"sides": [[0, 0]], "probability": [1], "sizes": [1, 1]}}},
        {"backbone": {"name": "efficientnet"}},
        {"backbone": "efficientnet"},
        {"backbone": 7},
        {"backbone": to_plain(BACKBONE) | {"side": 10**9}},
        {"backbone": to_plain(BACKBONE) | {"side": "224"}},
        {"backbone": to_plain(BACKBONE) | {"n_views": -1}},
        {"backbone": to_plain(BACKBONE) | {"flip": 1}},
        {"backbone": to_plain(BACKBONE) | {"channels": 2}},
        {"backbone": to_plain(BACKBONE) | {"run": "rm"}},
        {"classes": ["cat", "dog", "dog"]},
        {"classes": ["cat", "dog", ""]},
        {"classes": "cat"},
    ],
    ids=str,
)
def test_a_description_that_does_not_fit_is_refused(folder, changes):
    edit(folder, **changes)
    assert_refused(folder, "model.json")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_outputs", 9),
        ("n_outputs", 10**12),
        ("n_outputs", "4"),
        ("input_shape", [10**9]),
        ("input_shape", [10**7, 10**7]),
        ("input_shape", [2, 2, 2, 2]),
        ("input_shape", [-8]),
        ("input_shape", "8"),
        ("hidden", [99_999_999]),
        ("hidden", [16] * 100_000),
        ("hidden", [16, [16]]),
        ("blocks", [10**6, 1, 1]),
        ("blocks", [1, 1, "one"]),
        ("widths", [10**6, 8, 8]),
        ("first_map", 0),
        ("colour", 1),
    ],
)
@pytest.mark.parametrize("role", ["teacher", "student"])
def test_networks_of_other_sizes_are_refused_before_they_are_built(folder, role, name, value):
    networks = json.loads((folder / JSON).read_text(encoding="utf-8"))["networks"]
    of_settings = name in networks[role]["settings"] or name == "colour"
    (networks[role]["settings"] if of_settings else networks[role])[name] = value
    edit(folder, networks=networks)
    started = time.process_time()
    assert_refused(folder, "does not describe the weights beside it")
    assert time.process_time() - started < 1


@pytest.mark.parametrize(
    "name", ["classes", "kind", "backbone", "networks", "filtering", "unit", "threshold", "vote"]
)
def test_a_description_that_lacks_something_is_refused(folder, name):
    path = folder / JSON
    description = json.loads(path.read_text(encoding="utf-8"))
    del description[name]
    path.write_text(json.dumps(description), encoding="utf-8")
    assert_refused(folder, "model.json")


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("groups.leaves", np.zeros(3, np.int64)),
        ("groups.leaves", np.full(16, 2)),
        ("groups.spreads", np.ones(5)),
        ("teacher_centres", np.zeros((4, 16), np.float32)),
        ("teacher_centres", np.zeros((3, 15), np.float32)),
        ("teacher_centres", np.full((3, 16), np.nan, np.float32)),
        ("teacher.head.weight", np.full((3, 16), np.inf, np.float32)),
        ("teacher.head.weight", np.full((3, 16), 3e38, np.float32)),
        ("teacher.head.weight", np.full((3, 16), np.nan, np.float32)),
        ("teacher.head.weight", np.zeros((16, 3), np.float32)),
        ("teacher.head.weight", np.zeros((3, 16), np.float64)),
        ("teacher.head.bias", None),
        ("teacher.scale", np.zeros(2, np.float32)),
        ("space.input_mean", None),
        ("space.input_axes", np.zeros((3, 4), np.float32)),
        ("space.input_scale", np.zeros(2, np.float32)),
        ("scaling.spread", None),
        ("scaling.weight", None),
        ("scaling.spread", np.array([1.0, -1.0])),
        ("scaling.spread", np.array([1.0, np.inf])),
        ("scaling.centre", np.zeros(3)),
        ("groups.items", None),
        ("groups.items", np.zeros((16, 6), np.float32)),
        ("groups.leaves", np.full(16, -1)),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(folder, name, tensor):
    tensors = safetensors.numpy.load((folder / WEIGHTS).read_bytes())
    del tensors[name]
    content = safetensors.numpy.save(tensors if tensor is None else tensors | {name: tensor})
    (folder / WEIGHTS).write_bytes(content)
    edit(folder, weights_sha256=hashlib.sha256(content).hexdigest())
    assert_refused(folder, "does not describe the weights beside it")


def test_thresholds_of_classes_and_the_confidence_come_back(tmp_path):
    confidence = Confidence(Curve((0.0, 2.0), (0.5, 0.9)), Curve((-9.0, 9.0), (0.0, 0.9)))
    model = replace(untrained(BLOBS.pool, of_class={2: 0.75}), confidence=confidence)
    save_model(tmp_path, model, CLASSES)
    loaded = load_model(tmp_path).model
    assert loaded.thresholds == Thresholds(0.25, {2: 0.75})
    assert loaded.confidence == confidence


def test_models_of_before_have_neither(folder):
    description = json.loads((folder / JSON).read_bytes())
    for name in ("confidence", "threshold_of_class"):
        del description[name]
    (folder / JSON).write_bytes(as_json(description))
    loaded = load_model(folder).model
    assert loaded.thresholds == Thresholds(0.25)
    assert loaded.confidence is None


@pytest.mark.parametrize(
    "damage",
    [
        {"threshold_of_class": {"3": 0.5}},
        {"threshold_of_class": {"0": "low"}},
        {"threshold_of_class": [0.5]},
        {"confidence": {"named": {"places": [1.0, 0.0], "values": [0.0, 1.0]}}},
    ],
)
def test_damaged_thresholds_and_curves_are_refused(folder, damage):
    description = json.loads((folder / JSON).read_bytes())
    (folder / JSON).write_bytes(as_json(description | damage))
    with pytest.raises(ModelError, match="does not describe"):
        load_model(folder)
