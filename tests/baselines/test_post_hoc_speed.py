"""The benchmark of the post-hoc scores: what it compares is the same, and its bounds hold."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_limits

PATH = Path(__file__).parents[2] / "benchmarks" / "post_hoc.py"


def load():
    spec = importlib.util.spec_from_file_location("post_hoc_benchmark", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


benchmark = load()
NAMES = ["Energy", "KNN", "Mahalanobis"]


@pytest.fixture(scope="module")
def small():
    items = benchmark.prepare(n_items=300, n_bank=200, n_dimensions=16, n_classes=4)
    return benchmark.pairs(items, k=7)


@pytest.fixture
def one_thread():
    found = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        yield
    torch.set_num_threads(found)


@pytest.mark.parametrize("name", NAMES)
def test_our_scores_are_those_of_the_plain_way(small, name):
    ours, reference = small[name].ours(), small[name].reference()
    assert ours.shape == (300,)
    assert np.ptp(ours) > 0.1
    np.testing.assert_allclose(ours, reference, atol=benchmark.TOLERANCE, rtol=0)


def test_a_result_holds_only_within_its_bounds():
    good = benchmark.Result(1.0, 2.0, 2.0, 1e-5)
    assert good.holds
    assert not good._replace(ratio=0.99).holds
    assert not good._replace(difference=2e-4).holds


def test_a_difference_is_found():
    pair = benchmark.Pair(lambda: np.zeros(3), lambda: np.array([0.0, -0.5, 0.0]))
    assert benchmark.measure(pair, rounds=2).difference == 0.5


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", NAMES)
def test_our_scores_are_as_quick_as_the_plain_way(name):
    pair = benchmark.pairs(benchmark.prepare(n_items=10_000))[name]
    assert benchmark.measure(pair, rounds=3).holds
