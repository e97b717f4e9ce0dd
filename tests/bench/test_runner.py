"""Experiments: one record per run, made once, whole or not at all."""

import contextlib
import json
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from s2osc.baselines.post_hoc import MSP
from s2osc.baselines.shared import TeacherRecipe
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import Experiment, Size, at_most
from s2osc.bench.methods import NETWORKS
from s2osc.bench.records import read_record, read_records
from s2osc.bench.runner import parse_part, plan, prepare, run_experiment
from s2osc.bench.tasks import pool as pool_task
from s2osc.bench.tasks.pool import run_once
from s2osc.data.splits import Protocol, split_dataset
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import EFFICIENTNET, Backbone
from s2osc.pipeline import teacher
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import ABLATIONS, PLAIN
from samples import make_dataset, make_images, shrink

METHOD = shrink(PLAIN, n_steps=8, k=5)
CHEAP = MSP(recipe=TeacherRecipe(METHOD.teacher))
PROTOCOL = Protocol(known_classes=(0, 1), unknown_classes=(2,))


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    """A data folder with one small data set of the user's own, ``tiny``; caches lie in it too."""
    images, labels = make_images(12)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """An experiment ``small``; the list grows by the seed of every run that is really made."""
    made = []

    def counted(split, method, *, seed, **options):
        made.append(seed)
        return run_once(split, method, seed=seed, **options)

    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, {"quick": METHOD}))
    monkeypatch.setattr(pool_task, "run_once", counted)
    return made


def run(data, partitions):
    return run_experiment("small", ["tiny"], partitions, data / "results", folder=data)


def test_every_run_leaves_a_record_of_all_a_table_needs(data, runs):
    paths = run(data, range(2))
    assert [path.name for path in paths] == ["tiny-quick-p0.json", "tiny-quick-p1.json"]
    assert paths[0].parent == data / "results" / "small"
    record = read_record(paths[1])
    assert (record["experiment"], record["method"], record["seed"]) == ("small", "quick", 1)
    assert record["dataset"] == "tiny"
    assert record["known_classes"] == ["a", "b"]
    assert record["unknown_classes"] == ["c"]
    assert (record["n_training"], record["n_pool"]) == (2 * 8, 2 * 4 + 12)
    assert record["unknown_share"] == 0.6
    assert record["backbone"] is record["seconds_features"] is None
    assert record["k"] == record["metrics"]["k"] == 5
    assert record["settings"]["student.tau"] == 0.85
    assert record["seconds_total"] == pytest.approx(sum(record["seconds"].values()), abs=0.06)
    assert {"accuracy", "f1", "f_out", "purity_of_d_out"} <= record["metrics"].keys()
    assert {"s2osc", "python", "torch", "numpy", "scikit-learn"} <= record["versions"].keys()
    assert record["machine"] == {"threads": torch.get_num_threads(), "device": "cpu"}
    assert record["protocol"]["known_classes"] == [0, 1]
    assert (record["size"], record["partition"], record["n_held_out"]) == (None, 1, 0)
    assert record["held_out"] is record["paper_mode"] is None
    assert "error" not in record
    assert "pictures" not in record


def test_what_is_recorded_is_not_run_again(data, runs):
    run(data, [0])
    before = (data / "results/small/tiny-quick-p0.json").read_bytes()
    assert len(run(data, [0, 1])) == 2
    assert runs == [0, 1]
    assert (data / "results/small/tiny-quick-p0.json").read_bytes() == before


def test_an_interrupted_experiment_goes_on_where_it_stopped(data, runs, monkeypatch):
    counted = pool_task.run_once

    def interrupted(split, method, *, seed, **options):
        if seed == 1:
            raise KeyboardInterrupt
        return counted(split, method, seed=seed, **options)

    monkeypatch.setattr(pool_task, "run_once", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(data, range(3))
    monkeypatch.setattr(pool_task, "run_once", counted)
    assert len(run(data, range(3))) == 3
    assert runs == [0, 1, 2]


def test_without_names_the_data_are_those_of_the_experiment(data, runs, monkeypatch):
    own = Experiment("Small", PROTOCOL, {"quick": METHOD}, data=("tiny",))
    monkeypatch.setitem(EXPERIMENTS, "small", own)
    paths = run_experiment("small", None, [0], data / "results", folder=data)
    assert [path.name for path in paths] == ["tiny-quick-p0.json"]
    assert read_record(paths[0])["dataset"] == "tiny"


def test_the_record_tells_how_much_is_unknown(data, runs, monkeypatch):
    shares = replace(PROTOCOL, unknown_shares=(0.0, 0.2))
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", shares, {"quick": METHOD}))
    nothing, fifth = (read_record(path) for path in run(data, range(2)))
    assert (nothing["n_pool"], nothing["unknown_share"], nothing["unknown_classes"]) == (8, 0, [])
    assert (fifth["n_pool"], fifth["unknown_share"], fifth["unknown_classes"]) == (10, 0.2, ["c"])
    of_unknown = {"f_out", "teacher_auroc", "group_accuracy"}
    assert not of_unknown & nothing["metrics"].keys()
    assert of_unknown <= fifth["metrics"].keys()


def test_records_of_other_settings_are_not_mixed_in(data, runs, monkeypatch):
    run(data, [0])
    changed = replace(METHOD, student=replace(METHOD.student, tau=0.5))
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, {"quick": changed}))
    with pytest.raises(DataError, match=r"recorded with other settings \(student.tau\); move"):
        run(data, [0, 1])
    assert runs == [0]


def test_every_method_of_an_experiment_is_run_on_the_same_partition(data, runs, monkeypatch):
    methods = {"quick": METHOD, "without U": ABLATIONS["U"](METHOD)}
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, methods))
    paths = run(data, [0])
    assert [path.name for path in paths] == ["tiny-quick-p0.json", "tiny-without_U-p0.json"]
    first, second = (read_record(path) for path in paths)
    assert second["method"] == "without U"
    assert second["settings"] == first["settings"] | {"student.lambda_u": 0.0}
    of_f = "teacher_known_accuracy"
    assert first["metrics"][of_f] == second["metrics"][of_f]


def test_an_experiment_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="no experiment 'grand'; give table1 or "):
        run_experiment("grand", ["tiny"], [0], tmp_path)


@pytest.mark.parametrize("content", [{}, []])
def test_json_that_is_no_record_is_not_taken_for_one(data, runs, content):
    path = data / "results" / "small" / "tiny-quick-p0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=r"tiny-quick-p0\.json"):
        run(data, [0])


def test_records_of_other_pools_are_not_mixed_in(data, runs, monkeypatch):
    run(data, [0])
    other = Experiment("Small", replace(PROTOCOL, pool_share=0.5), {"quick": METHOD})
    monkeypatch.setitem(EXPERIMENTS, "small", other)
    with pytest.raises(DataError, match=r"other settings \(protocol.pool_share\); move"):
        run(data, [0, 1])
    assert runs == [0]


def test_a_name_may_stand_for_several_experiments(data, runs, monkeypatch):
    cheap = Experiment("Small", PROTOCOL, {"cheap": CHEAP}, data=("tiny",))
    for name in ("several-3", "several-5"):
        monkeypatch.setitem(EXPERIMENTS, name, cheap)
    paths = run_experiment("several", None, [0], data / "results", folder=data)
    assert [path.parent.name for path in paths] == ["several-3", "several-5"]
    assert all(path.exists() for path in paths)


# The method as it is run


def test_flips_follow_the_data_set():
    dataset = make_dataset()
    for flip in (False, True):
        given = replace(dataset, flip=flip)
        ours, theirs = (
            prepare(method, EXPERIMENTS["single"], None, "tiny", given) for method in (PLAIN, MSP())
        )
        assert ours.augmentation.flip is theirs.recipe.augmentation.flip is flip


def test_without_a_size_methods_keep_their_own_networks():
    prepared = prepare(METHOD, EXPERIMENTS["single"], None, "tiny", make_dataset())
    assert prepared == replace(METHOD, augmentation=replace(METHOD.augmentation, flip=False))


def test_networks_follow_the_size_and_what_the_data_are():
    def network(size, data):
        return prepare(MSP(), EXPERIMENTS["table1"], size, data, make_dataset()).recipe.teacher

    assert network("cpu", "mnist") == PLAIN.teacher
    assert network("cpu", "mnist-features") == NETWORKS["heads"].teacher
    assert network("smoke", "mnist").training.min_steps < PLAIN.teacher.training.min_steps


# Features of a backbone


@pytest.fixture
def calls(monkeypatch, tmp_path) -> dict:
    """A backbone ``quarters``, which sees the brightness of four quarters; what was asked of it."""
    asked, compute = {}, pool_task.compute_photo_items

    def load_quarters(name, *, source, side, first_stage):
        asked["backbone"] = name, source, side, first_stage
        quarters = torch.nn.AdaptiveAvgPool2d(2)
        statistics = (100.0,) * 3, (50.0,) * 3
        return Backbone(name, "1", 8, 12, *statistics, lambda batch: quarters(batch).flatten(1))

    def watched(images, backbone, *, flip):
        asked.setdefault("flips", []).append(flip)
        return compute(images, backbone, flip=flip, folder=tmp_path / "cache")

    def fit(method, known, pool, **options):
        asked["fitted"] = known.inputs, pool
        return original(method, known, pool, **options)

    original = S2OSCMethod.fit
    monkeypatch.setattr(pool_task, "load_backbone", load_quarters)
    monkeypatch.setattr(pool_task, "compute_photo_items", watched)
    monkeypatch.setattr(S2OSCMethod, "fit", fit)
    return asked


@pytest.mark.parametrize("flip", [False, True])
def test_through_a_backbone_the_method_sees_features_of_images_and_their_views(calls, flip):
    dataset = replace(make_dataset(12), flip=flip)
    split = split_dataset(dataset, PROTOCOL, 0)
    run_once(pool_task.PoolTask().through_backbone(split, "quarters", flip=flip), METHOD, seed=0)
    known, pool = calls["fitted"]
    assert known.shape == (2 * 8, 3, 12)
    assert pool.shape == (2 * 4 + 12, 3, 12)
    # Feature 0 of an image as it is: the mean of its first quarter, normalised.
    expected = (split.pool[:, :4, :4].mean((1, 2)) - 100) / 50
    np.testing.assert_allclose(pool[:, 0, 0], expected, atol=2e-3)
    assert calls["backbone"] == ("quarters", (8, 8), None, None)
    assert calls["flips"] == [flip, flip]


def test_an_experiment_names_the_backbone_of_its_runs(data, runs, calls, monkeypatch):
    through = Experiment("Small", PROTOCOL, {"quick": METHOD}, backbone="quarters")
    monkeypatch.setitem(EXPERIMENTS, "small", through)
    record = read_record(run(data, [0])[0])
    assert record["backbone"] == "quarters"
    assert record["seconds_features"] > 0
    assert "features" not in record["seconds"]
    assert (record["n_training"], record["n_pool"]) == (16, 20)
    assert 0 <= record["metrics"]["teacher_known_accuracy"] <= 1
    assert calls["fitted"][1].ndim == 3


def test_without_a_backbone_the_method_sees_the_images(data, runs, calls):
    run(data, [0])
    assert calls.keys() == {"fitted"}
    assert calls["fitted"][1].dtype == np.uint8


def test_items_nobody_saw_go_through_the_backbone_too(calls):
    split = split_dataset(make_dataset(20), replace(PROTOCOL, held_out=2), 0)
    through = pool_task.PoolTask().through_backbone(split, "quarters", flip=False)
    assert through.held_out.shape == (3 * 2, 3, 12)
    expected = (split.held_out[:, :4, :4].mean((1, 2)) - 100) / 50
    np.testing.assert_allclose(through.held_out[:, 0, 0], expected, atol=2e-3)


def test_data_are_named_to_go_through_the_backbone(data, runs, calls, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, {"cheap": CHEAP}))
    [path] = run_experiment("small", ["tiny-features"], [0], data / "results", folder=data)
    assert path.name == "tiny-features-cheap-p0.json"
    assert read_record(path)["dataset"] == "tiny-features"
    assert read_record(path)["backbone"] == EFFICIENTNET == calls["backbone"][0]


# A method that fails


TROUBLE: list[str] = []


@dataclass(frozen=True)
class Fragile:
    """A method that fails as long as there is trouble."""

    recall: float = 0.95

    def fit(self, known, pool, *, seed, device="cpu"):
        if TROUBLE:
            raise RuntimeError(TROUBLE[0])
        return replace(CHEAP, known_recall=self.recall).fit(known, pool, seed=seed, device=device)


@pytest.fixture
def fragile(runs, monkeypatch) -> list[int]:
    """``small`` with a method that fails between two that do not."""
    methods = {"one": CHEAP, "fragile": Fragile(), "two": replace(CHEAP, known_recall=0.9)}
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, methods))
    monkeypatch.setattr(f"{__name__}.TROUBLE", ["out of luck"])
    return runs


def test_a_method_that_fails_leaves_its_error_and_the_others_go_on(data, fragile, capsys):
    with pytest.raises(DataError, match=r"1 of 3 runs failed.*tiny-fragile-p0\.json"):
        run(data, [0])
    one, failed, two = (read_record(path) for path in records_of(data))
    where = failed["error"].pop("where")
    assert failed["error"] == {"kind": "RuntimeError", "message": "out of luck"}
    assert where[-1].startswith("test_runner.py:")
    assert failed["settings"] == {"recall": 0.95}
    assert (failed["method"], failed["dataset"], failed["seed"]) == ("fragile", "tiny", 0)
    assert not {"metrics", "seconds_total"} & failed.keys()
    assert "error" not in one.keys() | two.keys()
    assert 0 <= two["metrics"]["f1"] <= 1
    assert "failed: RuntimeError: out of luck" in capsys.readouterr().err


def test_items_that_cannot_be_drawn_leave_an_error_for_each_method(data, fragile, monkeypatch):
    monkeypatch.setattr("s2osc.bench.tasks.pool.split_dataset", out_of_items)
    with pytest.raises(DataError, match="3 of 3 runs failed"):
        run(data, [0])
    errors = [read_record(path)["error"]["message"] for path in records_of(data)]
    assert errors == ["no items"] * 3


def out_of_items(*_):
    raise ValueError("no items")


def test_a_method_whose_settings_are_no_json_is_refused_before_anything_runs(data, monkeypatch):
    odd = replace(CHEAP, known_recall=np.array([0.9]))
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, {"odd": odd}))
    with pytest.raises(SettingsError, match="the settings of odd cannot be recorded"):
        run(data, [0])
    assert not list((data / "results" / "small").iterdir())


def test_records_of_other_data_are_refused_in_every_part(data, runs):
    run(data, [0, 1])
    images, labels = make_images(40)
    np.savez(data / "tiny.npz", x=images, y=labels[::-1], classes=np.array(list("abcd")))
    for part in ((1, 2), (2, 2)):
        with pytest.raises(DataError, match=r"other settings \(the data set itself\)"):
            run_experiment("small", ["tiny"], [0, 1, 2], data / "results", folder=data, part=part)


def records_of(data: Path) -> list[Path]:
    return [data / "results/small" / f"tiny-{name}-p0.json" for name in ("one", "fragile", "two")]


def test_what_failed_is_run_again_and_nothing_else(data, fragile, monkeypatch):
    paths = records_of(data)
    for _ in range(2):
        with pytest.raises(DataError, match="1 of 3 runs failed"):
            run(data, [0])
    before = [path.read_bytes() for path in paths]
    assert len(fragile) == 3 + 1
    monkeypatch.setattr(f"{__name__}.TROUBLE", [])
    assert run(data, [0]) == paths
    assert len(fragile) == 3 + 2
    after = [path.read_bytes() for path in paths]
    assert [now == then for now, then in zip(after, before, strict=True)] == [True, False, True]
    assert read_record(paths[1])["metrics"]["f1"] >= 0
    assert "error" not in read_record(paths[1])
    run(data, [0])
    assert len(fragile) == 3 + 2


def test_what_failed_may_be_run_with_other_settings(data, fragile, monkeypatch):
    with pytest.raises(DataError, match="1 of 3 runs failed"):
        run(data, [0])
    methods = EXPERIMENTS["small"].methods | {"fragile": Fragile(recall=0.8)}
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, methods))
    monkeypatch.setattr(f"{__name__}.TROUBLE", [])
    assert read_record(run(data, [0])[1])["settings"] == {"recall": 0.8}


# Killed


def killed_at_record_1(run) -> int:
    """The status of a process that is killed as it puts the record of partition 1 in its place."""
    child = os.fork()
    if child == 0:
        torch.set_num_threads(1)  # threads do not survive a fork
        put = os.replace

        def killed(source, target):
            if str(target).endswith("p1.json"):
                os.kill(os.getpid(), signal.SIGKILL)
            put(source, target)

        os.replace = killed
        with contextlib.suppress(BaseException):
            run()
        os._exit(1)
    return os.waitpid(child, 0)[1]


def test_an_experiment_that_was_killed_goes_on_where_it_stopped(data):
    def run():
        options = {"methods": "msp", "size": "smoke", "folder": data}
        return run_experiment("table1", ["tiny"], range(3), data / "results", **options)

    assert os.WTERMSIG(killed_at_record_1(run)) == signal.SIGKILL
    folder = data / "results" / "table1"
    [left] = folder.glob("*.json")
    assert left.name == "tiny-msp-smoke-p0.json"
    before, written = left.read_bytes(), left.stat().st_mtime_ns
    assert list(folder.glob(".*.s2osc-part"))  # the run that was killed as it was to be recorded
    assert len(read_records(data / "results", "table1")) == 1

    paths = run()
    assert [path.name for path in paths] == [f"tiny-msp-smoke-p{i}.json" for i in range(3)]
    assert (left.read_bytes(), left.stat().st_mtime_ns) == (before, written)
    assert sorted(folder.iterdir()) == sorted(paths)
    assert [read_record(path)["partition"] for path in paths] == [0, 1, 2]


# Parts


def test_parts_make_every_record_once(data, runs, monkeypatch):
    methods = {"one": CHEAP, "two": replace(CHEAP, known_recall=0.9)}
    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, methods))
    first, second = (
        run_experiment("small", ["tiny"], range(3), data / "results", part=part, folder=data)
        for part in ((1, 2), (2, 2))
    )
    assert runs == [0, 0, 2, 2, 1, 1]  # methods that share their items stay together
    assert not set(first) & set(second)
    assert {*first, *second} == set((data / "results" / "small").iterdir())
    assert len(run(data, range(3))) == 6
    assert len(runs) == 6


def test_more_parts_than_work_leave_some_with_nothing(data, runs):
    part = run_experiment("small", ["tiny"], [0], data / "results", part=(2, 2), folder=data)
    assert part == runs == []


@pytest.mark.parametrize("text", ["", "2", "0/2", "3/2", "1/0", "a/b", "1/2/3", "-1/2", "1.5/2"])
def test_a_part_that_is_none_is_refused(text):
    with pytest.raises(SettingsError, match="such as 1/2"):
        parse_part(text)


# Sizes, and what methods share


@pytest.fixture
def sized(data, monkeypatch) -> Path:
    """A data set ``tiny`` of 60 items of each of four classes."""
    images, labels = make_images(60)
    np.savez(data / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    return data


@pytest.fixture
def trained(fits_anew, monkeypatch) -> list[int]:
    """The list grows by the number of steps whenever f is really trained."""
    steps, train = [], teacher.train

    def counted(*words, n_steps, **options):
        steps.append(n_steps)
        return train(*words, n_steps=n_steps, **options)

    monkeypatch.setattr(teacher, "train", counted)
    return steps


def smoke(folder, methods, partitions=(0,), name="table1", **options):
    paths = run_experiment(
        *(name, ["tiny"], partitions, folder / "results"),
        **{"methods": methods, "size": "smoke", "folder": folder} | options,
    )
    return [read_record(path) for path in paths]


def test_a_comparison_records_its_size_and_items_nobody_saw(sized):
    forest, msp = smoke(sized, "isolation-forest, msp")
    assert sorted(path.name for path in (sized / "results" / "table1").iterdir()) == [
        "tiny-isolation-forest-smoke-p0.json",
        "tiny-msp-smoke-p0.json",
    ]
    for record in (forest, msp):
        assert record["size"] == "smoke"
        assert record["protocol"]["sizes"] == [30, 20, 40]
        assert (record["n_training"], record["n_pool"]) == (2 * 30, 2 * 20 + 40)
        assert record["n_held_out"] == 3 * 6  # a tenth of each class at most
        assert record["held_out"].keys() == record["metrics"].keys()
        assert {"f1", "auroc", "oscr", "fpr95", "n_groups"} <= record["metrics"].keys()
        assert "pictures" not in record
    # The forest only detects: it is also judged as the paper did.
    assert 0 <= forest["paper_mode"]["f1"] <= 1
    assert msp["paper_mode"] is None


def test_items_nobody_saw_are_in_neither_the_labelled_items_nor_the_pool(sized, monkeypatch):
    inputs_of = {}

    @dataclass(frozen=True)
    class Watching:
        def fit(self, known, pool, *, seed, device="cpu"):
            inputs_of["fitted"] = [image.tobytes() for image in (*known.inputs, *pool)]
            fitted = CHEAP.fit(known, pool, seed=seed, device=device)
            predict = type(fitted).predict

            def watched(self, inputs):
                inputs_of.setdefault("asked", []).append([image.tobytes() for image in inputs])
                return predict(self, inputs)

            monkeypatch.setattr(type(fitted), "predict", watched)
            return fitted

    small = replace(EXPERIMENTS["table1"], methods={"watching": Watching()})
    monkeypatch.setitem(EXPERIMENTS, "small", small)
    [record] = smoke(sized, None, name="small")
    pool, new = inputs_of["asked"]
    assert len(new) == record["n_held_out"] == 18
    assert set(pool) < set(inputs_of["fitted"])
    assert not set(new) & set(inputs_of["fitted"])


def test_sizes_have_records_of_their_own_and_are_not_mixed(sized, monkeypatch):
    small = replace(EXPERIMENTS["table1"], methods={"cheap": CHEAP})
    sizes = {
        "smoke": Size(at_most((10, 5, 10), 2), "tiny", "tiny"),
        "cpu": Size(at_most((8, 5, 10), 2), "tiny", "tiny"),
    }
    monkeypatch.setitem(EXPERIMENTS, "small", replace(small, sizes=sizes))
    [record], [default] = (
        smoke(sized, None, name="small"),
        smoke(sized, None, name="small", size=None),
    )
    assert (record["size"], record["n_training"]) == ("smoke", 20)
    assert (default["size"], default["n_training"]) == ("cpu", 16)
    names = sorted(path.name for path in (sized / "results" / "small").iterdir())
    assert names == ["tiny-cheap-cpu-p0.json", "tiny-cheap-smoke-p0.json"]
    larger = sizes | {"smoke": Size(at_most((12, 5, 10), 2), "tiny", "tiny")}
    monkeypatch.setitem(EXPERIMENTS, "small", replace(small, sizes=larger))
    with pytest.raises(DataError, match=r"other settings \(protocol.sizes\)"):
        smoke(sized, None, name="small")


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("single", "cpu", "one size only; leave --size away"),
        ("table1", "huge", "the size is 'huge'; give paper or cpu or smoke"),
    ],
)
def test_a_size_an_experiment_has_not_is_refused(sized, name, size, message):
    with pytest.raises(SettingsError, match=message):
        smoke(sized, None, name=name, size=size)


def test_f_is_trained_once_for_all_methods_of_a_split_and_each_is_charged_for_it(sized, trained):
    records = smoke(sized, "msp,max-logit,energy")
    assert len(trained) == 1
    first, *others = (record["seconds"] for record in records)
    assert "teacher" not in first  # its own fit trained it
    for seconds in others:
        assert 0 < seconds["teacher"] <= first["fit"]
    smoke(sized, "knn")
    assert len(trained) == 1
    smoke(sized, "knn", partitions=[1])
    assert len(trained) == 2


def test_a_kept_f_changes_no_figure(sized, trained):
    smoke(sized, "max-logit")
    [cached], [alone] = smoke(sized, "msp"), smoke(sized, "msp", name="runtime")
    assert len(trained) == 2  # for MaxLogit, and where nothing is cached
    assert cached["metrics"] == alone["metrics"]
    assert cached["held_out"] == alone["held_out"]


def test_where_seconds_are_compared_every_method_trains_its_own(sized, trained):
    records = smoke(sized, "msp,energy", name="runtime")
    assert len(trained) == 2
    assert all("teacher" not in record["seconds"] for record in records)
    assert not (sized / "cache" / "networks").exists()


def test_experiments_of_one_size_keep_no_networks(data, runs, trained):
    run(data, [0])
    assert len(trained) == 1
    assert not (data / "cache").exists()


def test_methods_are_planned_on_the_same_items_together(data):
    dataset = make_dataset()
    planned = plan(
        *("table1", EXPERIMENTS["table1"], {"a": dataset, "b-features": dataset}, [0, 3]),
        *(data,),
        methods="msp,s2osc",
        size="smoke",
    )
    assert [[(run.data, run.partition, run.name) for run in runs] for runs in planned] == [
        [(name, partition, method) for method in ("msp", "s2osc")]
        for name in ("a", "b-features")
        for partition in (0, 3)
    ]


def test_pictures_are_in_the_records_of_experiments_made_for_them(sized, monkeypatch):
    with_pictures = replace(EXPERIMENTS["embeddings"], methods={"cheap": CHEAP})
    monkeypatch.setitem(EXPERIMENTS, "small", with_pictures)
    asked = []

    def pictures_of(names, split, fitted, answers, *, seed):
        asked.append((names, len(answers.labels), seed))
        return {"embedding": {"points": []}}

    monkeypatch.setattr(pool_task, "pictures_of", pictures_of)
    [record] = smoke(sized, None, name="small")
    assert asked == [(("embedding",), 80, 0)]
    assert record["pictures"] == {"embedding": {"points": []}}
