"""The benchmarks: what they compare is the same, and their bounds hold."""

import importlib.util
import json
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from s2osc.pipeline.filter import neighbours, signs
from s2osc.pipeline.presets import HEADS
from samples import make_blobs

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


def load(name):
    spec = importlib.util.spec_from_file_location(name, BENCHMARKS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


step_of_g, scoring, whole_runs = load("step_of_g"), load("scoring"), load("whole_runs")
grouping, number_of_groups = load("grouping"), load("number_of_groups")
hard_groups = load("hard_groups")
constants = load("constants")
scale = load("scale")


@pytest.fixture(autouse=True)
def threads_as_found():
    found = torch.get_num_threads()
    yield
    torch.set_num_threads(found)


@pytest.fixture(scope="module")
def setting():
    """Small batches: what is compared does not depend on their size."""
    whole = step_of_g.prepare()
    training = replace(whole.student.training, batch_size=24)
    return replace(whole, student=replace(whole.student, training=training, labelled_batch=16))


@pytest.mark.parametrize("seed", range(3))
def test_the_step_of_g_and_its_reference_have_the_same_loss(setting, seed):
    network = step_of_g.new_student(setting, seed)
    ours, reference = step_of_g.both_losses(setting, network, seed)
    assert ours == pytest.approx(reference, abs=step_of_g.LOSS_TOLERANCE)
    other, _ = step_of_g.both_losses(setting, network, seed + 10)
    assert other != pytest.approx(ours, abs=10 * step_of_g.LOSS_TOLERANCE)


def test_the_step_of_g_and_its_reference_lead_to_the_same_weights(setting):
    start = step_of_g.new_student(setting)
    ours, reference = deepcopy(start), step_of_g.plainly_laid_out(start)
    step_of_g.our_steps(setting, ours)(2)
    step_of_g.reference_steps(setting, reference)(2)
    for before, mine, theirs in zip(
        start.parameters(), ours.parameters(), reference.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-4, rtol=1e-3)
        assert not torch.equal(before, mine)


def test_a_result_holds_only_within_its_bounds():
    good = step_of_g.Result(10.0, 20.0, 2.0, 0.5, 0.50005)
    assert good.holds
    assert not good._replace(ratio=1.49).holds
    assert not good._replace(reference_loss=0.5002).holds


def test_the_peak_memory_is_counted_in_bytes():
    held = np.ones(8_000_000)
    assert held.nbytes < scoring.peak_memory() < 1000 * held.nbytes


@pytest.mark.slow
def test_the_step_of_g_is_faster_than_its_reference():
    result = step_of_g.measure(rounds=7, n_steps=1)
    assert result.losses_agree
    assert result.ratio >= step_of_g.AT_LEAST


@pytest.mark.slow
def test_scoring_costs_little_more_than_the_forward_pass():
    assert scoring.measure_time(rounds=3, shape=(4_000, 28, 28)).ratio <= scoring.AT_MOST_RATIO


@pytest.mark.slow
def test_scoring_needs_little_memory_beyond_the_array():
    assert scoring.measure_memory().extra <= scoring.AT_MOST_EXTRA


def test_a_whole_run_takes_no_longer_than_its_limit_and_accounts_for_its_time():
    timing = whole_runs.Timing("vectors", 10.0, 12.0, {"start": 2.0, "filter": 7.6}, 0.9)
    assert timing.holds
    assert not replace(timing, limit=9.0).holds
    assert not replace(timing, steps={"filter": 7.6}).holds
    assert timing.in_words().endswith("96% by step: start 2.0, filter 7.6")


@pytest.mark.parametrize("name", ["vectors", "small images"])
def test_the_pool_of_a_whole_run_has_classes_that_are_not_labelled(name):
    items = whole_runs.CASES[name].items(None)
    assert set(items.labels) < set(items.truth)
    assert items.known.shape[1:] == items.pool.shape[1:]


def test_grouping_is_as_quick_as_promised_and_finds_the_blobs():
    seconds, n_groups = grouping.seconds_to_group(2_500)
    assert seconds < 2 * grouping.AT_MOST[2_500]
    assert n_groups == grouping.N_CLASSES


def test_seconds_that_grow_faster_than_n_log_n_are_found():
    assert not grouping.grows_too_fast({100: 1.0, 1_000: 12.0})
    assert grouping.grows_too_fast({100: 1.0, 1_000: 100.0})


def test_default_weights_are_learnt_from_files(tmp_path, capsys, monkeypatch):
    vectors, classes = make_blobs(40, 6, distance=9.0)
    np.savez(tmp_path / "blobs.npz", x=vectors, y=classes)
    monkeypatch.setattr(number_of_groups, "N_ROUNDS", 1)
    number_of_groups.main([str(tmp_path / "blobs.npz")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "3 pools"  # three of six classes are known
    assert len(lines) == 1 + len(number_of_groups.MEASURES) + 1
    assert lines[-1].startswith("walk in a class: [")


def test_groups_are_found_where_that_is_hard(monkeypatch, tmp_path, capsys):
    """Blobs far apart: one class with two sides is two groups, and a twentieth is one by itself."""
    vectors, labels = make_blobs(150, 8, distance=30.0)
    np.savez(tmp_path / "blobs.npz", x=vectors, y=labels)
    for name, value in {"N_ROUNDS": 1, "N_LABELLED": 40, "N_IN_POOL": 20, "N_UNKNOWN": 150}.items():
        monkeypatch.setattr(hard_groups, name, value)
    hard_groups.main([str(tmp_path / "blobs.npz"), "--to", str(tmp_path / "found.json")])
    printed = capsys.readouterr().out
    assert printed.count("of 1 (") == len(hard_groups.KINDS)
    assert "| blobs | 0 of 1 (2.0) |" in printed
    assert len(json.loads((tmp_path / "found.json").read_text())) == len(hard_groups.KINDS)


def test_a_constant_is_moved_wherever_it_is_used_and_put_back():
    by_name = {constant.name.rpartition(":")[2]: constant for constant in constants.CONSTANTS}
    with constants.moved(by_name["FEW_NEIGHBOURS"], HEADS, 0.5) as method:
        assert neighbours.FEW_NEIGHBOURS == signs.FEW_NEIGHBOURS == 15
        assert method == HEADS
    assert neighbours.FEW_NEIGHBOURS == signs.FEW_NEIGHBOURS == 30
    with constants.moved(by_name["N_COMPONENTS[unit vectors]"], HEADS, 1.5):
        assert signs.N_COMPONENTS["unit vectors"] == 192
    assert signs.N_COMPONENTS["unit vectors"] == 128
    with constants.moved(by_name["student.tau"], HEADS, 1.5) as method:
        assert method.student.tau == 1.0  # a share is at most 1


def test_what_a_constant_does_is_the_mean_over_pools_that_have_all_runs():
    def line(seed, name, way, f1):
        return {"data": "a", "seed": seed, "name": name, "moved": way, "f1": f1}

    lines = [line(seed, "", "as it is", 0.9) for seed in (0, 1, 2)]
    lines += [line(seed, "student.tau", "half", 0.9 + 0.1 * seed) for seed in (0, 1)]
    lines += [line(seed, "student.tau", "half again", 0.8) for seed in (0, 1, 2)]
    low, high, n = constants.effects(lines)["student.tau", "a"]
    assert (round(low, 9), round(high, 9), n) == (0.05, -0.1, 2)
    assert "| `student.tau` | 0.85 |" in constants.table(lines)
    assert "**+0.050 / -0.100**" in constants.table(lines)


def test_the_table_of_the_constants_is_that_of_the_record():
    assert constants.table(constants.recorded()) in constants.PAGE.read_text()


def cost(n, passes, **facts):
    """A run of ``n`` items whose passes took so many seconds."""
    about = {"engine": "local", "workers": 0, "threads": 1, "cores": 2}
    about |= {"seconds": passes + 60.0, "core_seconds": passes + 50.0, "megabytes": 1_000}
    about |= {"unknown": 0, "load": 0.0} | facts
    return scale.Cost(n=n, per_step={"answer": passes, "sample answer": 2.0}, **about)


def test_what_every_run_pays_is_no_cost_of_a_further_item():
    costs = [cost(n, 0.5 + 2e-5 * n) for n in (100_000, 1_000_000)]
    assert [each.microseconds_per_item for each in costs] == pytest.approx([25.0, 20.5])
    others = [cost(10_000, 3.0, threads=2), cost(2_000_000, 9.0, engine="ray", workers=2)]
    assert scale.further_items([*costs, *others]) == {costs[1].which: pytest.approx(20.0)}


def test_costs_per_item_that_lie_apart_are_a_miss():
    assert not scale.misses([cost(100_000, 2.4), cost(1_000_000, 20.5)])
    (miss,) = scale.misses([cost(100_000, 3.0), cost(1_000_000, 20.0)])
    assert "costs per item lie 1.50 apart" in miss
