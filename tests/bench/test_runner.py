"""Experiments: one record per run, made once, whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from s2osc.bench import runner
from s2osc.bench.metrics import evaluate
from s2osc.bench.runner import (
    EXPERIMENTS,
    Experiment,
    for_dataset,
    judge,
    read_record,
    run_experiment,
    write_record,
)
from s2osc.data.splits import Protocol
from s2osc.errors import DataError, SettingsError
from s2osc.pipeline.presets import ABLATIONS, FAST
from s2osc.pipeline.settings import flatten
from samples import TINY, make_dataset, make_images, open_set, shrink

METHOD = shrink(FAST, n_steps=8, k=5)
PROTOCOL = Protocol(known_classes=(0, 1), unknown_classes=(2,))


@pytest.fixture
def data(tmp_path) -> Path:
    """A data folder with one small data set of the user's own, ``tiny``."""
    images, labels = make_images(12)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    return tmp_path


@pytest.fixture
def runs(monkeypatch) -> list[int]:
    """An experiment ``small``; the list grows by the seed of every run that is really made."""
    made, run_once = [], runner.run_once

    def counted(split, method, dataset, *, seed):
        made.append(seed)
        return run_once(split, method, dataset, seed=seed)

    monkeypatch.setitem(EXPERIMENTS, "small", Experiment("Small", PROTOCOL, {"quick": METHOD}))
    monkeypatch.setattr(runner, "run_once", counted)
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
    assert record["k"] == 5
    assert record["settings"]["student.tau"] == 0.85
    assert record["seconds_total"] == pytest.approx(sum(record["seconds"].values()), abs=0.06)
    assert {"accuracy", "f1", "f_out", "purity_of_d_out"} <= record["metrics"].keys()
    assert {"s2osc", "python", "torch", "numpy", "scikit-learn"} <= record["versions"].keys()


def test_what_is_recorded_is_not_run_again(data, runs):
    run(data, [0])
    before = (data / "results/small/tiny-quick-p0.json").read_bytes()
    assert len(run(data, [0, 1])) == 2
    assert runs == [0, 1]
    assert (data / "results/small/tiny-quick-p0.json").read_bytes() == before


def test_an_interrupted_experiment_goes_on_where_it_stopped(data, runs, monkeypatch):
    counted = runner.run_once

    def interrupted(split, method, dataset, *, seed):
        if seed == 1:
            raise KeyboardInterrupt
        return counted(split, method, dataset, seed=seed)

    monkeypatch.setattr(runner, "run_once", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(data, range(3))
    monkeypatch.setattr(runner, "run_once", counted)
    assert len(run(data, range(3))) == 3
    assert runs == [0, 1, 2]


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
    with pytest.raises(SettingsError, match="no experiment 'grand'; give released or single"):
        run_experiment("grand", ["tiny"], [0], tmp_path)


def test_flips_follow_the_data_set():
    dataset = make_dataset()
    assert for_dataset(METHOD, dataset).augmentation.flip is False
    assert for_dataset(METHOD, replace(dataset, flip=True)).augmentation.flip is True


def test_the_variants_differ_from_the_fast_preset_in_what_their_names_say():
    methods, fast = EXPERIMENTS["variants"].methods, flatten(FAST)
    different = {
        name: {key for key, value in flatten(method).items() if value != fast[key]}
        for name, method in methods.items()
    }
    assert different["fast"] == set()
    assert different["gate on D_out as printed"] == {"student.gate_unknown"}
    assert different["S2OSC-U"] == {"student.lambda_u"}
    assert all(keys for name, keys in different.items() if name != "fast")


# Judging


def test_the_judgement_holds_the_answer_the_teacher_and_the_filter():
    split = open_set(*make_images())
    solution = TINY.fit(split.known, split.pool, seed=0)
    figures = judge(split, solution)
    is_unknown = split.truth < 0
    assert evaluate(split.truth, solution.answer).items() <= figures.items()
    said = solution.model.teacher.look(split.pool).logits.argmax(1)
    expected = np.mean((said == split.truth)[~is_unknown])
    assert figures["teacher_known_accuracy"] == pytest.approx(expected, abs=1e-5)
    purity = is_unknown[solution.partition.unknown].mean()
    assert figures["purity_of_d_out"] == pytest.approx(purity, abs=1e-5)
    assert figures["n_groups"] == len(solution.model.grouping.centres)


# Records


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = {"dataset": "Ω", "metrics": {"f1": 0.5}, "settings": {"a": None}}
    write_record(tmp_path / "new" / "folder" / "a.json", record)
    assert read_record(tmp_path / "new" / "folder" / "a.json") == record


def test_a_half_written_record_never_appears(tmp_path, monkeypatch):
    write_text = Path.write_text

    def full_disk(path, text, **options):
        write_text(path, text[: len(text) // 2], **options)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_record(tmp_path / "a.json", {"metrics": {}})
    assert not list(tmp_path.glob("*.json"))
    monkeypatch.undo()
    write_record(tmp_path / "a.json", {"metrics": {}})
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


def test_what_cannot_be_written_as_json_leaves_no_file(tmp_path):
    with pytest.raises(TypeError):
        write_record(tmp_path / "a.json", {"metrics": object()})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", ["", '{"metrics": ', "\x00"])
def test_a_file_that_is_no_record_is_named(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=r"a\.json is not a record"):
        read_record(tmp_path / "a.json")


@pytest.mark.parametrize("content", [{}, []])
def test_json_that_is_no_record_is_not_taken_for_one(data, runs, content):
    path = data / "results" / "small" / "tiny-quick-p0.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(DataError, match=r"tiny-quick-p0\.json"):
        run(data, [0])
