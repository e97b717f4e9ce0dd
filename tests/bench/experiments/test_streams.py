"""The experiments with streams: who follows them how, at which size, recorded by the one runner."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from s2osc.baselines.cpe import CPE
from s2osc.baselines.dtc import DTC
from s2osc.baselines.isolation_forest import IsolationForest
from s2osc.baselines.post_hoc import MSP
from s2osc.baselines.senc_mas import SENCMaS
from s2osc.baselines.shared import TeacherRecipe
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import Experiment, Size
from s2osc.bench.experiments.streams import (
    MANY_LABELS,
    STREAM_SIZES,
    STREAMS,
    WIDE_LIMIT,
)
from s2osc.bench.methods import COMPARED, NETWORKS
from s2osc.bench.records import read_record
from s2osc.bench.runner import prepare, run_experiment
from s2osc.bench.tables.documents import make_tables, write_experiment
from s2osc.bench.tasks.stream import StreamTask, as_learner, as_stream_method
from s2osc.bench.terminal import make_listing
from s2osc.data.datasets import Dataset
from s2osc.data.streams import StreamProtocol, draw_stream
from s2osc.errors import DataError, SettingsError
from s2osc.pipeline.presets import FAST, PLAIN
from s2osc.stream.learner import (
    LEVEL,
    Incremental,
    Prototyping,
    Refit,
    Sketching,
    Static,
    for_streams,
)
from s2osc.stream.open_stream import build_learner
from samples import TINY, make_dataset, make_images

CHEAP = MSP(recipe=TeacherRecipe(TINY.teacher))
TINY_SIZE = {"smoke": Size({"sizes": (8, 6), "held_out": 2}, "tiny", "tiny")}
SMALL = Experiment(
    "Small streams",
    StreamProtocol(),
    {"cheap": as_stream_method(CHEAP), "forest": as_stream_method(IsolationForest())},
    EXPERIMENTS["stream-single"].columns,
    data=("tiny",),
    task=StreamTask(),
    layout="stream",
    table="stream",
    sizes=TINY_SIZE,
)


# Who follows a stream how


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        (FAST, Incremental),
        (PLAIN, Incremental),
        (CPE(), Prototyping),
        (SENCMaS(), Sketching),
        (IsolationForest(), Static),
        (MSP(), Refit),
        (DTC(), Refit),
    ],
)
def test_a_method_follows_a_stream_by_its_own_update_if_it_has_one(method, kind):
    assert type(as_learner(method)) is kind
    assert as_learner(method).method == (for_streams(method) if method == FAST else method)


def test_streams_of_bench_and_product_test_at_one_level():
    ours = STREAMS["stream-single"].methods["s2osc"].learner.method
    assert ours.decision.level == build_learner("fast", {}, 2_000).method.decision.level == LEVEL


def test_ours_asks_for_representatives_and_all_others_about_what_is_unknown():
    asked = {name: method.queries for name, method in STREAMS["stream-single"].methods.items()}
    assert list(asked) == list(COMPARED)
    assert asked.pop("s2osc") == "representative"
    assert set(asked.values()) == {"unknown"}
    assert {method.budget for method in STREAMS["stream-single"].methods.values()} == {200}


def test_memories_are_of_one_size_for_everyone():
    sizes = {
        method.learner.memory.size
        for method in STREAMS["stream-single"].methods.values()
        if hasattr(method.learner, "memory")
    }
    assert sizes == {2_000}


def test_the_questions_differ_in_what_their_names_say():
    methods = STREAMS["stream-queries"].methods
    assert {name: (m.queries, m.budget) for name, m in methods.items()} == {
        "s2osc-representative-100": ("representative", 100),
        "s2osc-random-100": ("random", 100),
        "s2osc-random-200": ("random", 200),
        "s2osc-unknown-100": ("unknown", 100),
    }
    assert len({method.learner for method in methods.values()}) == 1


def test_k_is_left_to_the_seeds_or_is_that_of_the_paper():
    methods = STREAMS["stream-k"].methods
    assert [method.learner.method.filtering.k for method in methods.values()] == [None, 300]
    both = [replace(m.learner.method, filtering=FAST.filtering) for m in methods.values()]
    assert both == [for_streams(FAST)] * 2


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("size", STREAM_SIZES)
def test_every_stream_can_be_drawn_at_every_size(name, size):
    """Of ten classes of 6,000 items, as in CIFAR-10."""
    images, labels = np.zeros((60_000, 1, 1), np.uint8), np.tile(np.arange(10), 6_000)
    dataset = Dataset("ten", images, labels, tuple("0123456789"), n_train=60_000, flip=False)
    stream = draw_stream(dataset, STREAMS[name].sized(size)[1], seed=0)
    assert stream.known.n_classes == 5
    assert stream.n_classes == 10
    if name == "stream-long":
        assert len(stream.windows) == 20
    if (name, size) == ("stream-single", "cpu"):
        assert set(np.bincount(stream.known.labels)) == {600}
        assert set(stream.timeline[:5].ravel()) == {120}
        assert stream.timeline[5:].sum(axis=1).tolist() == [1_200] * 5
        assert set(np.bincount(stream.test.truth)) == {200}


# As it is run


def test_a_run_has_the_networks_of_its_size_and_flips_where_the_data_allow_it():
    experiment, dataset = STREAMS["stream-single"], make_dataset()
    ours, cheap = experiment.methods["s2osc"], experiment.methods["msp"]
    on_images = prepare(ours, experiment, "cpu", "mnist", dataset).learner
    on_vectors = prepare(ours, experiment, "cpu", "cifar10-features", dataset).learner
    assert on_images.method.teacher == PLAIN.teacher
    assert on_vectors.method.teacher == NETWORKS["heads"].teacher
    assert not on_images.method.augmentation.flip
    flipped = prepare(cheap, experiment, "cpu", "mnist", replace(dataset, flip=True))
    assert flipped.learner.method.recipe.augmentation.flip
    quick = prepare(ours, experiment, "smoke", "mnist", dataset).learner
    assert quick.update.training == NETWORKS["tiny"].teacher.training
    assert on_images.update == ours.learner.update


def test_a_method_that_clusters_is_told_of_one_new_class_and_estimates_several():
    dataset = make_dataset()
    given = {
        name: prepare(DTC(), STREAMS[name], "cpu", "mnist", dataset).learner.method.n_unknown
        for name in ("stream-single", "stream-multi")
    }
    assert given == {"stream-single": 1, "stream-multi": None}


def test_with_several_new_classes_ours_balances_within_a_wide_limit_and_within_the_usual_one():
    methods = STREAMS["stream-multi"].methods
    wide, usual = (methods[name].learner.method for name in ("s2osc", "s2osc-limit-5"))
    assert (wide.decision.false_alarm, usual.decision.false_alarm) == (WIDE_LIMIT, 0.05)
    assert replace(wide, decision=usual.decision) == usual == for_streams(FAST)
    assert {method.budget for method in methods.values()} == {MANY_LABELS}


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A data folder with ``tiny``, four classes of 40 images, and an experiment ``small``."""
    images, labels = make_images(40)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(EXPERIMENTS, "small", SMALL)
    shown = replace(SMALL, title="Shown", records="small")
    monkeypatch.setitem(EXPERIMENTS, "shown", shown)
    return tmp_path


def run(data: Path, name: str = "small", **options) -> list[Path]:
    return run_experiment(name, None, [0], data / "results", size="smoke", folder=data, **options)


def test_a_run_of_a_stream_leaves_a_record_of_every_window(data):
    paths = run(data)
    assert [path.name for path in paths] == [
        "tiny-cheap-smoke-p0.json",
        "tiny-forest-smoke-p0.json",
    ]
    cheap, forest = map(read_record, paths)
    assert (cheap["experiment"], cheap["size"], cheap["partition"]) == ("small", "smoke", 0)
    assert [window["window"] for window in cheap["windows"]] == [1, 2]
    assert [len(row) for row in cheap["stages"]] == [1, 2, 3]
    assert {"accuracy", "precision", "recall", "f1", "f_out"} <= cheap["metrics"].keys()
    assert {"forgetting", "chaudhry_forgetting", "labels", "found"} <= cheap["metrics"].keys()
    assert "forgetting" not in forest["metrics"]
    assert cheap["joint_accuracy"] == forest["joint_accuracy"]
    assert cheap["timeline"] == [[6, 6], [6, 6], [6, 6], [0, 6]]
    assert cheap["settings"]["queries"] == "unknown"
    assert cheap["settings"]["learner.memory.size"] == 2_000
    assert cheap["protocol"]["sizes"] == [8, 6]
    assert all(window["peak_memory_mb"] > 0 for window in cheap["windows"])


def test_a_recorded_stream_is_not_followed_again_and_other_settings_are_refused(data, monkeypatch):
    [path] = run(data, methods="forest")
    before = path.read_bytes()
    assert run(data, methods="forest") == [path]
    assert path.read_bytes() == before
    other = as_stream_method(IsolationForest(n_trees=5))
    monkeypatch.setitem(EXPERIMENTS, "small", replace(SMALL, methods={"forest": other}))
    with pytest.raises(DataError, match=r"other settings \(learner.method.n_trees\)"):
        run(data, methods="forest")
    larger = {"smoke": Size({"sizes": (8, 7), "held_out": 2}, "tiny", "tiny")}
    monkeypatch.setitem(EXPERIMENTS, "small", replace(SMALL, sizes=larger))
    with pytest.raises(DataError, match=r"other settings \(protocol.sizes\)"):
        run(data, methods="forest")


def test_methods_of_single_pools_may_be_asked_for_by_name(data):
    [path] = run(data, methods="senc-mas")
    assert read_record(path)["metrics"]["labels"] >= 0
    with pytest.raises(SettingsError, match="there is no method 'nobody'"):
        run(data, methods="nobody")


@dataclass(frozen=True)
class Fragile:
    """A method that always fails."""

    def fit(self, known, pool, *, seed, device="cpu"):
        raise RuntimeError("out of luck")


def test_a_learner_that_fails_is_recorded_with_its_error(data, monkeypatch):
    fragile = as_stream_method(Fragile())
    monkeypatch.setitem(EXPERIMENTS, "small", replace(SMALL, methods={"fragile": fragile}))
    with pytest.raises(DataError, match="1 of 1 runs failed"):
        run(data)
    record = read_record(data / "results/small/tiny-fragile-smoke-p0.json")
    assert record["error"].pop("where")[-1].startswith("test_streams.py:")
    assert record["error"] == {"kind": "RuntimeError", "message": "out of luck"}
    assert "Failed: fragile on tiny" in make_tables(data / "results", ["small"])["small"]


def test_an_experiment_may_show_the_records_of_another(data):
    assert run(data, "shown", methods="forest") == [
        data / "results/small/tiny-forest-smoke-p0.json"
    ]
    tables = make_tables(data / "results", ["small", "shown"])
    assert "Small streams (size smoke" in tables["small"]
    assert "Shown (size smoke" in tables["shown"]
    listed = make_listing(data / "results")
    names = list(listed.columns[0]._cells)
    assert [listed.columns[4]._cells[names.index(n)] for n in ("small", "shown")] == ["1", "1"]
    published = write_experiment(data / "results", "shown", data / "out/shown")
    assert {path.name for path in published} == {"shown.md", "shown.csv", "shown.tex"}
    values = (data / "out/shown/shown.csv").read_text()
    assert "shown,smoke,tiny,forest,0,fair,window 2,accuracy," in values


def test_forgetting_is_a_table_of_the_streams_with_one_new_class():
    forgetting, single = STREAMS["forgetting"], STREAMS["stream-single"]
    assert forgetting.records == "stream-single"
    same = ("protocol", "methods", "data", "sizes", "table")
    assert all(getattr(forgetting, name) == getattr(single, name) for name in same)
    assert [name for name, each in EXPERIMENTS.items() if each.records] == ["forgetting"]
