"""Experiments: one record per run, made once, whole or not at all."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from s2osc.bench import runner
from s2osc.bench.experiments import EXPERIMENTS, Experiment
from s2osc.bench.metrics import auroc, evaluate
from s2osc.bench.runner import (
    check_same_settings,
    for_dataset,
    judge,
    judge_audit,
    read_record,
    run_experiment,
    run_once,
    write_record,
)
from s2osc.data.splits import Protocol, split_dataset
from s2osc.errors import DataError, SettingsError
from s2osc.nets.backbones import Backbone
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import ABLATIONS, FAST, PLAIN
from s2osc.pipeline.settings import change, flatten
from samples import TINY, make_dataset, make_images, open_set, shrink

METHOD = shrink(PLAIN, n_steps=8, k=5)
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
    made = []

    def counted(split, method, dataset, *, seed, backbone):
        made.append(seed)
        return run_once(split, method, dataset, seed=seed, backbone=backbone)

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
    assert record["unknown_share"] == 0.6
    assert record["backbone"] is record["seconds_features"] is None
    assert record["k"] == record["metrics"]["k"] == 5
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

    def interrupted(split, method, dataset, *, seed, backbone):
        if seed == 1:
            raise KeyboardInterrupt
        return counted(split, method, dataset, seed=seed, backbone=backbone)

    monkeypatch.setattr(runner, "run_once", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(data, range(3))
    monkeypatch.setattr(runner, "run_once", counted)
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
    with pytest.raises(SettingsError, match="no experiment 'grand'; give released or single"):
        run_experiment("grand", ["tiny"], [0], tmp_path)


def test_flips_follow_the_data_set():
    dataset = make_dataset()
    assert for_dataset(METHOD, dataset).augmentation.flip is False
    assert for_dataset(METHOD, replace(dataset, flip=True)).augmentation.flip is True


# Features of a backbone


@pytest.fixture
def looked(monkeypatch, tmp_path) -> dict:
    """A backbone ``quarters``, which sees the brightness of four quarters; what was asked of it."""
    asked, compute = {}, runner.compute_features

    def load_quarters(name, *, source):
        asked["backbone"] = name, source
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
    monkeypatch.setattr(runner, "load_backbone", load_quarters)
    monkeypatch.setattr(runner, "compute_features", watched)
    monkeypatch.setattr(S2OSCMethod, "fit", fit)
    return asked


@pytest.mark.parametrize("flip", [False, True])
def test_through_a_backbone_the_method_sees_features_of_images_and_their_views(looked, flip):
    dataset = replace(make_dataset(12), flip=flip)
    split = split_dataset(dataset, PROTOCOL, 0)
    record = run_once(split, METHOD, dataset, seed=0, backbone="quarters")
    known, pool = looked["fitted"]
    assert known.shape == (2 * 8, 3, 12)
    assert pool.shape == (2 * 4 + 12, 3, 12)
    # Feature 0 of an image as it is: the mean of its first quarter, normalised.
    expected = (split.pool[:, :4, :4].mean((1, 2)) - 100) / 50
    np.testing.assert_allclose(pool[:, 0, 0], expected, atol=2e-3)
    assert looked["backbone"] == ("quarters", (8, 8))
    assert looked["flips"] == [flip, flip]
    assert record["backbone"] == "quarters"
    assert record["seconds_features"] > 0
    assert "features" not in record["seconds"]
    assert (record["n_training"], record["n_pool"]) == (16, 20)
    assert 0 <= record["metrics"]["teacher_known_accuracy"] <= 1


def test_an_experiment_names_the_backbone_of_its_runs(data, runs, looked, monkeypatch):
    through = Experiment("Small", PROTOCOL, {"quick": METHOD}, backbone="quarters")
    monkeypatch.setitem(EXPERIMENTS, "small", through)
    [path] = run(data, [0])
    assert read_record(path)["backbone"] == "quarters"
    assert looked["fitted"][1].ndim == 3


def test_without_a_backbone_the_method_sees_the_images(data, runs, looked):
    run(data, [0])
    assert looked.keys() == {"fitted"}
    assert looked["fitted"][1].dtype == np.uint8


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
    assert figures["n_groups"] == solution.model.grouping.n_groups
    entropy = solution.model.teacher.look(split.pool).entropy
    assert figures["teacher_auroc"] == pytest.approx(auroc(split.truth, entropy), abs=1e-5)
    assert figures["k"] == solution.k == 15
    assert "p_value" not in figures  # nobody was there to tell


def test_the_judgement_of_a_run_with_seeds_holds_their_audit(seeded):
    split, solution = seeded
    figures, account = judge(split, solution), solution.trust.audit
    assert figures["k"] == solution.k > 0
    assert figures["nothing_unknown"] == 0
    assert figures["unknown_share_low"] == pytest.approx(account["unknown_share"]["low"], abs=1e-5)
    recall = account["unknown_recall"]["estimate"]
    assert figures["unknown_recall_estimate"] == pytest.approx(recall, abs=1e-5)
    assert figures.items() >= evaluate(split.truth, solution.answer).items()


def test_where_nothing_is_found_unknown_there_is_no_purity():
    split = open_set(*make_images(60, n_classes=3))
    solution = shrink(FAST, n_steps=8, k=None).fit(split.known, split.pool, seed=0)
    figures = judge(split, solution)
    assert (figures["nothing_unknown"], figures["k"], figures["n_groups"]) == (1, 0, 0)
    assert not {"purity_of_d_out", "teacher_auroc", "group_accuracy", "f_out"} & figures.keys()
    assert "unknown_recall_estimate" not in figures


def audit_of(alarm=(0.0, 0.1), accuracy=(0.8, 1.0), **changes):
    """What the seeds say, with intervals as given."""
    account = {
        "nothing_unknown": False,
        "prior_shift": {"found": True, "weights": {}},
        "test": {"p_value": 0.004, "level": 0.01},
        "unknown_share": {"estimate": 0.3, "low": 0.2, "high": 0.4},
        "unknown_recall": None,
    }
    for name, (low, high) in (("false_alarm", alarm), ("known_accuracy", accuracy)):
        account[name] = {"estimate": (low + high) / 2, "low": low, "high": high, "per_class": {}}
    return account | changes


def covered(rates, **intervals):
    truth = dict(zip(("false_alarms", "known_accuracy"), rates, strict=True))
    said = judge_audit(truth, audit_of(**intervals))
    return said["false_alarm_covered"], said["known_accuracy_covered"]


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        ((0.05, 0.9), (1, 1)),
        ((0.11, 0.9), (0, 1)),
        ((0.05, 0.79), (1, 0)),
        ((0.2, 0.7), (0, 0)),
        ((0.1, 0.8), (1, 1)),  # the ends belong to the interval
        ((0.0, 1.0), (1, 1)),
    ],
)
def test_an_interval_covers_a_rate_between_its_ends(rates, expected):
    assert covered(rates) == expected


def test_a_rate_at_the_end_of_its_interval_is_covered_however_it_is_rounded():
    assert covered((0.66667, 0.33333), alarm=(0.1, 2 / 3), accuracy=(1 / 3, 0.9)) == (1, 1)
    assert covered((0.667, 0.333), alarm=(0.1, 2 / 3), accuracy=(1 / 3, 0.9)) == (0, 0)


def test_the_audit_is_told_figure_by_figure():
    truth = {"false_alarms": 0.05, "known_accuracy": 0.9}
    told = {
        "nothing_unknown": 0.0,
        "shift_found": 1.0,
        "p_value": 0.004,
        "false_alarm_low": 0.0,
        "false_alarm_high": 0.1,
        "false_alarm_covered": 1.0,
        "known_accuracy_low": 0.8,
        "known_accuracy_high": 1.0,
        "known_accuracy_covered": 1.0,
        "unknown_share_estimate": 0.3,
        "unknown_share_low": 0.2,
        "unknown_share_high": 0.4,
    }
    assert judge_audit(truth, audit_of()) == told
    recall = {"estimate": 0.7, "low": 0.6, "high": 0.8}
    assert judge_audit(truth, audit_of(unknown_recall=recall)) == told | {
        "unknown_recall_estimate": 0.7,
        "unknown_recall_low": 0.6,
        "unknown_recall_high": 0.8,
    }


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


# Records of earlier settings

LATER = (
    *("student.known_items", "student.seed_weight", "filtering.by", "filtering.purity"),
    *("seeds.share", "seeds.per_class"),
    *(key for key in flatten(METHOD) if key.startswith("decision.")),
)
"""Settings that came after the first records."""


@pytest.fixture
def earlier(tmp_path) -> Path:
    """A record of ``METHOD`` from before the later settings, with one that is no more."""
    now = json.loads(json.dumps(flatten(METHOD)))
    assert set(LATER) < now.keys()
    then = {key: value for key, value in now.items() if key not in LATER}
    write_record(tmp_path / "a.json", {"settings": then | {"clusters.one_group_below": 0.25}})
    return tmp_path / "a.json"


def test_an_earlier_record_is_accepted_where_later_settings_are_at_their_defaults(earlier):
    check_same_settings(earlier, METHOD)


@pytest.mark.parametrize(
    "changes",
    [
        {"seeds.share": 0.15},
        {"filtering.purity": 0.5},
        {"student.known_items": "all"},
        {"seeds.share": 0.2, "decision.rule": "seeds"},
        {"student.tau": 0.5},
    ],
)
def test_an_earlier_record_is_refused_where_they_are_not(earlier, changes):
    with pytest.raises(DataError) as refusal:
        check_same_settings(earlier, change(METHOD, changes))
    named = str(refusal.value).partition("(")[2].partition(")")[0]
    assert set(named.split(", ")) == changes.keys()


def test_a_record_with_a_setting_nobody_knows_is_refused(earlier):
    settings = read_record(earlier)["settings"] | {"student.charm": 1}
    write_record(earlier, {"settings": settings})
    with pytest.raises(DataError, match="recorded with other settings"):
        check_same_settings(earlier, METHOD)


@pytest.mark.parametrize("method", [METHOD, shrink(FAST), PLAIN, FAST])
def test_a_record_is_accepted_for_the_settings_it_was_made_with(tmp_path, method):
    write_record(tmp_path / "a.json", {"settings": flatten(method)})
    check_same_settings(tmp_path / "a.json", method)
