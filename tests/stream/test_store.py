"""A stream on disk: what is written is read again, whole, whatever happens meanwhile."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors.torch import load_file

from files import snapshot
from fuzz.tracer import images_of
from s2osc.errors import DataError, ModelError, OutputError
from s2osc.pipeline.model_description import BackboneEntry
from s2osc.pipeline.presets import PRESETS
from s2osc.settings import flatten
from s2osc.stream import store as storing
from s2osc.stream.history import WindowRecord
from s2osc.stream.learner import Incremental
from s2osc.stream.state import Questions, StreamFacts, StreamState, Waiting
from s2osc.stream.store import holds_stream, open_store, read_pointer, read_state
from s2osc.stream.windows import begin_stream
from s2osc.types import Labelled
from samples import SEEDED, make_blobs, make_images, shrink

BACKBONE = BackboneEntry("net", "0f", side=96, n_views=2, flip=True, height=8, width=8, channels=3)
FACTS = StreamFacts(preset="heads", shape="some images", preparation=BACKBONE)
RECORD = WindowRecord(
    window=1, items=9, unknown=4, groups=2, k=3, asked=2, seconds=1.5, new_classes=("dög",)
)
ENTRY = RECORD.to_json()


def make_state(inputs: np.ndarray, labels: np.ndarray) -> StreamState:
    """A state that holds something of everything."""
    learner = Incremental(shrink(SEEDED, n_steps=2, k=7))
    known = Labelled(inputs[labels < 2], labels[labels < 2])
    state = begin_stream(known, ["a", "b\nc"], learner, seed=3, device="cpu", facts=FACTS)
    others = inputs[labels == 2]
    return replace(
        state,
        waiting=Waiting(others[:2], ("dög", "")),
        ignored=others[2:5],
        history=(RECORD,),
        former={"once": "a"},
        questions=Questions(
            names=("x", "y\ud800"),
            inputs=others[5:7],
            groups=np.array([0, -1]),
            suggested=np.array([-1, 1]),
            why=("typical", ""),
            answers=("", "a"),
        ),
    )


@pytest.fixture(scope="module")
def state() -> StreamState:
    return make_state(*make_blobs(12, 3))


@pytest.fixture
def folder(state, tmp_path) -> Path:
    """A stream of two versions."""
    with open_store(tmp_path / "stream", make=True) as store:
        store.write(replace(state, questions=None), "the beginning")
        store.write(state, "window 1")
    return tmp_path / "stream"


def assert_same(found: StreamState, wanted: StreamState) -> None:
    for name in ("learner", "classes", "seed", "history", "facts", "former"):
        assert getattr(found, name) == getattr(wanted, name)
    assert found.waiting.labels == wanted.waiting.labels
    for one, other in zip(arrays_of(found), arrays_of(wanted), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    weights = [each.knowledge.teacher.network.state_dict() for each in (found, wanted)]
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    assert (found.questions is None) == (wanted.questions is None)
    if found.questions and wanted.questions:
        for name in ("names", "why", "answers"):
            assert getattr(found.questions, name) == getattr(wanted.questions, name)


def arrays_of(state: StreamState) -> list[np.ndarray]:
    memory, asked = state.knowledge.memory, state.questions
    return [
        state.knowledge.teacher.centres,
        *(memory.exemplars.inputs, memory.exemplars.labels),
        *(memory.seeds.inputs, memory.seeds.labels),
        *(state.waiting.inputs, state.ignored),
        *((asked.inputs, asked.groups, asked.suggested) if asked else ()),
    ]


# What is written is read again


@pytest.mark.parametrize("colour", [None, False, True], ids=["vectors", "grey", "colour"])
def test_every_value_and_array_is_read_as_it_was_written(tmp_path, colour):
    items = make_blobs(12, 3) if colour is None else make_images(12, 3, colour=colour)
    state = make_state(*items)
    with open_store(tmp_path / "stream", make=True) as store:
        store.write(state, "the beginning")
        assert_same(store.read(), state)
    found = read_state(tmp_path / "stream")
    assert_same(found, state)
    logits = [each.knowledge.teacher.outputs(items[0]).logits for each in (found, state)]
    np.testing.assert_array_equal(*logits)


def test_a_state_without_questions_or_anything_put_aside_is_read_as_it_was(tmp_path, state):
    bare = replace(
        state,
        questions=None,
        waiting=Waiting(state.ignored[:0], ()),
        ignored=state.ignored[:0],
        history=(),
    )
    with open_store(tmp_path, make=True) as store:
        store.write(bare, "the beginning")
    assert_same(read_state(tmp_path), bare)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_stream_goes_on_with_the_settings_it_began_with(tmp_path, state, preset):
    learner = replace(state.learner, method=PRESETS[preset])
    with open_store(tmp_path, make=True) as store:
        store.write(replace(state, learner=learner), "the beginning")
    assert flatten(read_state(tmp_path).learner) == flatten(learner)


def test_the_folder_holds_plain_tensors_and_json_and_nothing_more(folder):
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert {name for name in found if "objects" not in name} == {
        *(".lock", "stream.json", "manifest.json", "versions/1.json", "versions/2.json")
    }
    assert all(name.endswith(".safetensors") for name in found if "objects" in name)
    for path in folder.rglob("*.json"):
        json.loads(path.read_text(encoding="ascii"))
    for path in folder.rglob("*.safetensors"):
        assert load_file(path)  # which refuses whatever is not a header in JSON and plain numbers


def test_what_did_not_change_is_written_once(folder, state):
    before = snapshot(folder / "objects")
    with open_store(folder) as store:
        store.write(replace(state, seed=5), "a change")
    assert snapshot(folder / "objects") == before


# Versions


def test_only_the_current_version_and_the_one_before_are_kept(folder, state):
    with open_store(folder) as store:
        for number in (3, 4, 5):
            assert store.write(replace(state, ignored=state.ignored + number), "more")[0] == number
    assert sorted(path.name for path in (folder / "versions").iterdir()) == ["4.json", "5.json"]
    named = {
        sha256
        for path in (folder / "versions").iterdir()
        for sha256 in json.loads(path.read_text())["objects"].values()
    }
    assert {path.stem for path in (folder / "objects").iterdir()} == named


def test_undo_goes_back_to_the_version_before_and_only_once(folder, state):
    with open_store(folder) as store:
        assert store.undo() == "window 1"
        assert_same(store.read(), replace(state, questions=None))
        with pytest.raises(DataError, match=r"^there is nothing more to undo in .*stream: only"):
            store.undo()
    assert_same(read_state(folder), replace(state, questions=None))


def test_after_an_undo_no_number_is_given_twice(folder, state):
    with open_store(folder) as store:
        store.undo()
        assert store.write(state, "another window").number == 3
        assert store.undo() == "another window"


def test_undo_helps_where_the_current_version_is_damaged(folder, state):
    (folder / "versions" / "2.json").write_text("{}")
    with open_store(folder) as store:
        store.undo()
    assert_same(read_state(folder), replace(state, questions=None))


def test_undo_leaves_a_version_in_place_whose_predecessor_is_damaged(folder):
    (folder / "versions" / "1.json").unlink()
    before = snapshot(folder)
    with open_store(folder) as store, pytest.raises(ModelError, match="cannot be read"):
        store.undo()
    assert snapshot(folder) == before


def test_a_prepared_version_is_gone_unless_it_is_confirmed(folder, state):
    before = snapshot(folder)
    with open_store(folder) as store:
        store.prepare(replace(state, ignored=state.ignored * 2), "window 2")
        assert snapshot(folder) != before
    assert snapshot(folder) == before


def test_files_of_others_are_left_alone(folder, state):
    others = [folder / "notes.txt", folder / "objects" / "mine.safetensors", folder / "versions/x"]
    for path in others:
        path.write_text("mine")
    with open_store(folder) as store:
        store.write(replace(state, seed=5), "a change")
    assert all(path.read_text() == "mine" for path in others)


OF_A_USER = {
    "notes.txt": "a note",
    ".movie.part": "half a movie",
    "versions/2024.json": "{}",
    "versions/7.json": "{}",
    f"objects/{'a' * 64}.safetensors": "mine",
}


def put(folder: Path, name: str, content: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.mark.parametrize("name", OF_A_USER)
def test_a_stream_is_not_begun_in_a_folder_with_files_of_others(tmp_path, name):
    path = put(tmp_path, name, OF_A_USER[name])
    before = snapshot(tmp_path)
    with (
        pytest.raises(OutputError, match=r"is not empty: it holds .*; give a new or empty"),
        open_store(tmp_path, make=True),
    ):
        pass
    assert snapshot(tmp_path) == before
    assert path.read_text() == OF_A_USER[name]


def test_files_that_look_like_ours_stay_where_a_stream_goes_on(folder, state):
    paths = [put(folder, name, content) for name, content in OF_A_USER.items()]
    put(folder, "versions/3.json", "taken")
    with open_store(folder) as store:
        for seed in range(3):
            store.write(replace(state, seed=seed), "a change")
        assert store.read().seed == 2
    assert [path.read_text() for path in paths] == list(OF_A_USER.values())
    assert (folder / "versions/3.json").read_text() == "taken"


def test_a_stream_without_its_pointer_is_refused_and_left_whole(folder, state):
    pointer = (folder / "stream.json").read_bytes()
    (folder / "stream.json").unlink()
    before = snapshot(folder)
    with (
        pytest.raises(OutputError, match=r"whose stream.json is missing; put that file back"),
        open_store(folder, make=True),
    ):
        pass
    assert snapshot(folder) == before
    (folder / "stream.json").write_bytes(pointer)
    assert_same(read_state(folder), state)


def test_a_stream_of_an_older_version_has_no_manifest_and_goes_on(folder, state):
    (folder / "manifest.json").unlink()
    assert_same(read_state(folder), state)
    orphan = put(folder, f"objects/{'b' * 64}.safetensors", "of an older version, or of a user")
    with open_store(folder) as store:
        for number in (3, 4, 5):
            store.write(replace(state, ignored=state.ignored + number), "more")
    assert sorted(path.name for path in (folder / "versions").iterdir()) == ["4.json", "5.json"]
    assert orphan.exists()


def test_a_manifest_from_a_stranger_removes_nothing_outside_the_stream(folder, state):
    mine = put(folder.parent, "mine.txt", "mine")
    path = folder / "manifest.json"
    record = json.loads(path.read_text())
    record["files"] += ["../mine.txt", str(mine), "stream.json"]
    path.write_text(json.dumps(record))
    with open_store(folder) as store:
        store.write(replace(state, seed=5), "a change")
    assert mine.read_text() == "mine"
    assert read_state(folder).seed == 5


def test_a_stream_that_cannot_begin_leaves_no_folder(tmp_path):
    with pytest.raises(KeyboardInterrupt), open_store(tmp_path / "stream", make=True):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_version_that_vanishes_while_it_is_read_gives_way_to_the_next(folder, state, monkeypatch):
    read_checked = storing._read_checked

    def slowly(path: Path, sha256: str) -> bytes:
        monkeypatch.setattr(storing, "_read_checked", read_checked)
        with open_store(folder) as store:
            for number in (3, 4):
                store.write(replace(state, seed=number), "meanwhile")
        return read_checked(path, sha256)

    monkeypatch.setattr(storing, "_read_checked", slowly)
    assert read_state(folder).seed == 4


def test_a_full_disk_leaves_the_stream_as_it_was(folder, state, monkeypatch):
    before = snapshot(folder)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with open_store(folder) as store:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OutputError, match="No space left on device; the stream is as it was"):
            store.write(replace(state, ignored=state.ignored * 2), "window 2")
    assert snapshot(folder) == before


# Damage


def test_a_folder_without_a_stream_is_refused_and_left_as_it_is(tmp_path):
    with pytest.raises(ModelError, match=r"holds no stream: stream.json is not there; give"):
        read_state(tmp_path)
    with pytest.raises(ModelError, match="holds no stream"), open_store(tmp_path / "none"):
        pass
    assert not list(tmp_path.iterdir())


def test_a_newer_format_asks_for_a_newer_program(folder):
    path = folder / "stream.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 3, "s2osc": "9.1"}))
    with pytest.raises(ModelError, match=r"of format 3, written by s2osc 9\.1; .* newer s2osc$"):
        read_state(folder)


def files_of_the_current_version(folder: Path) -> list[Path]:
    record = json.loads((folder / "versions" / "2.json").read_text())
    objects = [folder / "objects" / f"{name}.safetensors" for name in record["objects"].values()]
    return [folder / "stream.json", folder / "versions" / "2.json", *objects]


DAMAGES = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "flipped": lambda path: path.write_bytes(b"\xff" + path.read_bytes()[1:]),
    "foreign": lambda path: path.write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
@pytest.mark.parametrize("which", range(6))
def test_any_damaged_file_is_one_clear_line(folder, which, damage):
    path = files_of_the_current_version(folder)[which]
    damage(path)
    with pytest.raises(ModelError) as raised:
        read_state(folder)
    message = str(raised.value)
    assert path.name in message
    assert len(message.splitlines()) == 1


def edit(folder: Path, name: str, value: object) -> None:
    """Change a value of the current version, and its checksum with it, as a person could."""
    path = folder / "versions" / "2.json"
    record = json.loads(path.read_text()) | {name: value}
    content = json.dumps(record).encode()
    path.write_bytes(content)
    pointer = json.loads((folder / "stream.json").read_text())
    pointer["current"]["sha256"] = storing.hashlib.sha256(content).hexdigest()
    (folder / "stream.json").write_text(json.dumps(pointer))


def test_a_state_of_an_older_version_has_no_former_names(tmp_path, state, monkeypatch):
    describe = storing._describe

    def as_before(*args):
        return {name: value for name, value in describe(*args).items() if name != "former"}

    monkeypatch.setattr(storing, "_describe", as_before)
    with open_store(tmp_path, make=True) as store:
        store.write(state, "the beginning")
    assert read_state(tmp_path).former == {}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("classes", [], "0 class names where there should be 2"),
        ("classes", "ab", "a class: 'ab' is not a list"),
        ("settings", {"method.student.tua": 1}, "there is no setting 'method.student.tua'"),
        ("settings", {"memory.size": -1}, "memory.size is -1"),
        ("networks", {}, "'teacher'"),
        ("waiting", ["one"], "1 labels that wait where there should be 2"),
        ("asked", {"names": ["x"], "why": [""], "answers": [""]}, "1 questions"),
        ("asked", {"why": []}, "'names'"),
        ("history", [1], "a window of the history: 1 is not an object"),
        ("history", [ENTRY | {"answered": "many"}], "answered: 'many' is not a whole number"),
        ("history", [ENTRY | {"items": -1}], "a window of the history, items: -1 is below 0"),
        ("history", [ENTRY | {"new_classes": [[]]}], "new_classes: [] is not a text"),
        ("history", [ENTRY | {"updates": [{}]}], "updates lacks 'n_labels'"),
        (
            "history",
            [ENTRY | {"updates": [{"seconds": 1, "run": 2}]}],
            "has 'run', which is none of",
        ),
        ("history", [ENTRY | {"seconds": "1"}], "seconds: '1' is not a number"),
        ("history", [ENTRY | {"audit": {}}], "'nothing_unknown'"),
        ("history", [ENTRY | {"classes": {"a": {"n": 1}}}], "'estimate'"),
        ("history", [{"window": 1}], "'items'"),
        ("facts", {"preset": 1}, "its facts, preset: 1 is not a text"),
        (
            "facts",
            {"preset": "heads", "backbone": {"name": "a"}},
            "its facts, backbone lacks 'version'",
        ),
        ("waiting", [1, 2], "waiting: 1 is not a text"),
        ("objects", {"teacher": "../../secret"}, "an object is called 'objects/../../secret"),
        ("objects", {}, ""),  # the network lacks its weights
        ("seed", None, "int"),
    ],
)
def test_a_version_edited_by_hand_is_one_clear_line(folder, name, value, reason):
    edit(folder, name, value)
    with pytest.raises(ModelError, match=r"2\.json cannot be read \(") as raised:
        read_state(folder)
    assert reason in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize(
    "change",
    [
        *({"format": None}, {"format": "x"}, {"format": 1e999}, {"last": "x"}),
        *({"current": None}, {"current": {}}, {"previous": 5}),
        {"current": {"number": "../1", "sha256": "", "what": ""}},
    ],
)
def test_a_pointer_edited_by_hand_is_one_clear_line(folder, change):
    path = folder / "stream.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ModelError, match=r"stream\.json cannot be read \(.+\); copy"):
        read_pointer(folder)


def test_a_folder_that_cannot_be_written_to_can_still_be_read(folder, state, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(FileLock, "acquire", refuse)
    with pytest.raises(OutputError, match=r"cannot write to .*: Permission denied; give a place"):
        open_store(folder).__enter__()
    assert_same(read_state(folder), state)


# Other processes, and those that are killed


def write_numbered(folder: Path, state: StreamState, number: int, *, make: bool = False) -> None:
    state = replace(state, seed=number, ignored=state.ignored * 0 + number)
    with open_store(folder, make=make) as store:
        store.write(state, str(number))


def read_number(folder: Path) -> int:
    """The number of a version that is whole: reading checks every file and that its parts fit."""
    state = read_state(folder)
    assert (state.ignored == state.seed).all()
    return state.seed


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def test_a_second_process_is_refused_while_one_works_on_a_stream(folder, state):
    with open_store(folder):
        child = subprocess.run(
            [sys.executable, "-c", LOCK, str(folder / ".lock")], capture_output=True, check=False
        )
        assert child.stdout == b"busy\n", child.stderr
        with (
            pytest.raises(OutputError, match=r"another process works on .*; wait until"),
            open_store(folder),
        ):
            pass
        assert_same(read_state(folder), state)


LOCK = """
import sys
from filelock import FileLock, Timeout
try:
    FileLock(sys.argv[1], timeout=0).acquire()
except Timeout:
    print("busy")
"""


def test_a_change_killed_at_any_moment_leaves_the_version_before_or_after(folder, state, tmp_path):
    write_numbered(folder, state, 1)
    images = images_of(lambda: write_numbered(folder, state, 2), folder, tmp_path / "images")
    numbers = [read_number(image) for image in images]
    assert numbers == sorted(numbers)
    assert set(numbers) == {1, 2}
    assert len(numbers) > 10
    write_numbered(folder, state, 3)
    for image in images:
        write_numbered(image, state, 3)
        assert read_number(image) == 3
        assert len(names_in(image)) == len(names_in(folder))  # nothing half-written is left


def test_a_beginning_killed_at_any_moment_can_be_given_again(state, tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    images = images_of(
        lambda: write_numbered(place / "new", state, 1, make=True), place, tmp_path / "images"
    )
    assert len(images) > 10
    for image in images:
        if not holds_stream(image / "new"):
            write_numbered(image / "new", state, 1, make=True)
        assert read_number(image / "new") == 1
        write_numbered(image / "new", state, 2)
        assert len(names_in(image)) == 3 + 2 + 5  # two versions share all objects but one


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the processes are forks")
def test_a_process_killed_by_the_clock_loses_nothing_that_was_confirmed(folder, state):
    def write_on(pipe: int, number: int) -> None:
        while True:
            number += 1
            write_numbered(folder, state, number)
            os.write(pipe, number.to_bytes(4, "big"))

    write_numbered(folder, state, before := 1)
    random = np.random.default_rng(0)
    for seconds in random.uniform(0.0, 0.08, size=8):
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            try:
                write_on(writer, before)
            finally:
                os._exit(1)
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(writer)
        while number := os.read(reader, 4):
            before = int.from_bytes(number, "big")
        os.close(reader)
        found = read_number(folder)
        assert found in (before, before + 1)
        before = found
