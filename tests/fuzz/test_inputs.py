"""Damaged files of every kind, given to the commands that read them.

Each is used or refused in one line; none crashes a command, holds it up, or costs a file.
"""

import json
import zlib
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from fuzz.conftest import TINY
from fuzz.mutations import (
    BYTES,
    CSV,
    JSON,
    NPY,
    NPZ,
    PARQUET,
    PICTURES,
    PLACES,
    TENSORS,
    Mutation,
    places_in,
    put,
)
from fuzz.outcomes import outcome_of

pytestmark = pytest.mark.usefixtures("_ask_instead_of_serving")

QUICK, SLOW = 3, 52
"""Damaged files of each kind that the quick and the slow tests try."""


class Kind(NamedTuple):
    """A kind of file: which one is damaged, how, and who reads it."""

    file: str
    mutations: tuple[Mutation, ...]
    words: tuple[str, ...]
    beside: tuple[str, ...]  # what else the command needs
    precious: tuple[str, ...] = ()


def items(file: str, mutations: tuple[Mutation, ...], beside: str = "") -> Kind:
    """New items for a saved model."""
    source = file.split("/", maxsplit=1)[0]
    model = "seen" if beside == "photos" or source == "photos" else "out"
    words = ("predict", f"--model={model}/model", f"--items={source}", "--out=new.csv")
    return Kind(file, mutations, (*words, "--device=cpu"), (source, model, *beside.split()))


def known(file: str, mutations: tuple[Mutation, ...], beside: str = "") -> Kind:
    """Labelled items: they are read whole before a pool of another width is refused."""
    source = file.split("/", maxsplit=1)[0]
    words = ("classify", f"--known={source}", "--pool=narrow.npz", "--out=new", *TINY)
    return Kind(file, mutations, words, (source, "narrow.npz", *beside.split()))


def model(file: str, mutations: tuple[Mutation, ...], folder: str = "out") -> Kind:
    items = {"out": "pool.npz", "seen": "photos"}[folder]
    words = ("predict", f"--model={folder}/model", f"--items={items}", "--out=new.csv")
    return Kind(f"{folder}/model/{file}", mutations, (*words, "--device=cpu"), (folder, items))


def results(file: str, mutations: tuple[Mutation, ...]) -> Kind:
    words = ("decide", "--out=out", "--false-alarm=0.2")
    return Kind(f"out/{file}", mutations, words, ("out",), ("out",))


def page(file: str, mutations: tuple[Mutation, ...]) -> Kind:
    """What a page keeps beside its results, whose other files stay as they are."""
    words = ("page", "--results=seen", "--no-browser", "--port=0")
    return Kind(f"seen/.s2osc-page/{file}", mutations, words, ("seen",), ("seen/summary.json",))


def state(file: str, mutations: tuple[Mutation, ...], *words: str) -> Kind:
    command = ("stream", words[0], "--state=state", *words[1:])
    return Kind(f"state/{file}", mutations, command, ("state", "answers.csv"), ("state",))


KINDS = {
    "npy": items("pool.npy", NPY + PLACES),
    "npz": items("pool.npz", NPZ + PLACES),
    "parquet": items("pool.parquet", PARQUET + PLACES),
    "known-npz": known("known.npz", NPZ + PLACES),
    "known-parquet": known("known.parquet", PARQUET + PLACES),
    "manifest-csv": items("manifest.csv", CSV + PLACES, "photos"),
    "known-manifest-csv": known("manifest.csv", CSV, "photos"),
    "manifest-parquet": items("manifest.parquet", PARQUET, "photos"),
    "png": items("photos/left/0.png", PICTURES + PLACES),
    "jpeg": items("photos/a.jpg", PICTURES),
    "known-png": known("photos/left/1.png", PICTURES),
    "model-json": model("model.json", JSON + PLACES),
    "model-weights": model("weights.safetensors", TENSORS + PLACES),
    "image-model-json": model("model.json", JSON, "seen"),
    "image-model-weights": model("weights.safetensors", TENSORS, "seen"),
    "summary": results("summary.json", JSON + PLACES),
    "scores": results("scores.parquet", PARQUET + PLACES),
    "seeds": results("seeds.parquet", PARQUET),
    "checked": results("checked.parquet", PARQUET),
    "check-labels": Kind(
        *("checked.csv", CSV + PLACES),
        ("check", "--out=out", "--labels=checked.csv"),
        ("out", "checked.csv"),
        ("out",),
    ),
    "corrections": Kind(
        *("said.csv", CSV + PLACES),
        ("export", "--results=out", "--to=new.csv", "--format=csv", "--corrections=said.csv"),
        ("out", "said.csv"),
        ("out",),
    ),
    "predictions": Kind(
        *("out/predictions.parquet", PARQUET + PLACES),
        ("export", "--results=out", "--to=new.jsonl", "--format=jsonl"),
        *(("out",), ("out",)),
    ),
    "export-list": Kind(
        *("handed/.s2osc-export.json", JSON),
        ("export", "--results=seen", "--to=handed", "--format=folders", "--force", "--pool=few"),
        *(("seen", "few", "handed"), ("seen", "few")),
    ),
    "page-acts": page("acts.sqlite", BYTES + PLACES),
    "page-rounds": page("rounds.json", JSON + PLACES),
    "page-thumbnails": page("thumbnails.sqlite", BYTES + PLACES),
    "page-token": page("token", BYTES + PLACES),
    "report": results("report.safetensors", TENSORS),
    "results-model": results("model/model.json", JSON),
    "stream": state("stream.json", JSON + PLACES, "status"),
    "stream-renamed": state("stream.json", JSON, "rename", "left", "right"),
    "stream-version": state("versions/*", JSON, "status"),
    "stream-object": state("objects/*", TENSORS, "rename", "left", "right"),
    "stream-manifest": state("manifest.json", JSON, "rename", "left", "right"),
    "stream-undone": state("versions/*", JSON, "undo"),
    "answers": Kind(
        *("answers.csv", CSV + PLACES),
        ("stream", "answer", "--state=state", "--labels=answers.csv", "--device=cpu"),
        ("state", "answers.csv"),
        ("state",),
    ),
    "record": Kind(
        *("records/ablation/mnist-s2osc-cpu-p0.json", JSON + PLACES),
        ("bench", "report", "--results=records"),
        *(("records",), ("records",)),
    ),
    "record-listed": Kind(
        *("records/ablation/mnist-s2osc-cpu-p1.json", JSON),
        ("bench", "list", "--results=records"),
        *(("records",), ("records",)),
    ),
}


def cases(numbers: range) -> list[tuple[str, int]]:
    return [(name, number) for name in KINDS for number in numbers]


def try_one(name: str, number: int, sandbox, tally) -> None:
    kind = KINDS[name]
    rng = np.random.default_rng([zlib.crc32(name.encode()), number])
    place = sandbox(*kind.beside)
    found = sorted(place.glob(kind.file))
    path = found[rng.integers(len(found))]
    if path.is_symlink():  # what a link leads to is what a user would edit
        path = path.resolve()
    mutation = kind.mutations[rng.integers(len(kind.mutations))]
    mutation(rng, path)
    case = (
        f"{mutation.__name__} of {path.relative_to(place.resolve())}: s2osc {' '.join(kind.words)}"
    )
    tally(outcome_of(kind.words, place, kind.precious), case)


@pytest.mark.parametrize(("name", "number"), cases(range(QUICK)))
def test_a_damaged_file_is_used_or_refused_in_one_line(name, number, sandbox, tally):
    try_one(name, number, sandbox, tally)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "number"), cases(range(QUICK, SLOW)))
def test_many_damaged_files_are_used_or_refused_in_one_line(name, number, sandbox, tally):
    try_one(name, number, sandbox, tally)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
JSON_FILES = ("model-json", "summary", "stream", "record")


@pytest.mark.parametrize("name", JSON_FILES)
def test_any_value_in_any_place_of_our_json_is_used_or_refused(name, sandbox, tally):
    try_values(name, 8, sandbox, tally)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*JSON_FILES, "results-model", "image-model-json"])
def test_many_values_in_any_place_of_our_json_are_used_or_refused(name, sandbox, tally):
    try_values(name, 60, sandbox, tally)


def try_values(name: str, n: int, sandbox, tally) -> None:
    kind = KINDS[name]

    @settings(
        max_examples=n,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # every failure counts; none is made smaller
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        place = sandbox(*kind.beside)
        path = place / kind.file
        found = json.loads(path.read_bytes())
        spot, value = data.draw(st.sampled_from(places_in(found))), data.draw(VALUES)
        put(found, spot, value)
        path.write_text(json.dumps(found))
        case = f"{value!r} at {spot} of {kind.file}: s2osc {' '.join(kind.words)}"
        tally(outcome_of(kind.words, place, kind.precious), case)

    check()
