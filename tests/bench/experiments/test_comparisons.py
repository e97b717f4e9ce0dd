"""Comparisons: the paper's experiments with every method, at every size."""

from dataclasses import replace

import numpy as np
import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS, TOGETHER, experiments_named
from s2osc.bench.experiments.comparisons import COMPARISONS, K_SWEEP
from s2osc.bench.experiments.experiment import SIZES
from s2osc.bench.figures.figures import FIGURES
from s2osc.bench.methods import COMPARED, DETECTORS, METHODS, NETWORKS
from s2osc.bench.tables.paper import PAPER
from s2osc.data.datasets import DATASETS, Dataset
from s2osc.data.splits import split_dataset
from s2osc.errors import SettingsError
from s2osc.pipeline.method import S2OSCMethod
from s2osc.settings import change
from s2osc.types import UNKNOWN

EACH = [(name, size) for name, experiment in COMPARISONS.items() for size in experiment.sizes]


def classes_of(name: str, n_per_class: int) -> Dataset:
    """Empty images in as many classes as the experiment's data have; each has its own number."""
    n_classes = len(DATASETS[COMPARISONS[name].data[0].removesuffix("-features")].classes)
    labels = np.repeat(np.arange(n_classes), n_per_class)
    images = np.arange(len(labels), dtype="<u4").view(np.uint8).reshape(-1, 1, 4)
    return Dataset("sized", images, labels, tuple(map(str, range(n_classes))), 0, flip=False)


def numbers(images):
    return np.ascontiguousarray(images).view("<u4").ravel()


@pytest.mark.parametrize(("name", "size"), EACH)
def test_at_every_size_items_are_drawn_as_the_title_says(name, size):
    experiment = COMPARISONS[name]
    chosen, protocol = experiment.sized(size)
    assert chosen == size
    wanted = experiment.sizes[size]
    n = 500 if name == "large" else 6_000
    split = split_dataset(classes_of(name, n), protocol, 0)
    n_known, n_unknown = {"large": (20, 10), "several-3": (5, 3), "several-5": (5, 5)}.get(
        name, (5, 1)
    )
    assert (len(split.known_classes), len(split.unknown_classes)) == (n_known, n_unknown)
    n_held_out = min(wanted.held_out, n // 10)
    assert np.bincount(split.held_out_classes).max(initial=0) == n_held_out
    assert len(split.held_out) == (n_known + n_unknown) * n_held_out
    seen = np.concatenate([numbers(split.known.inputs), numbers(split.pool)])
    assert not np.isin(numbers(split.held_out), seen).any()
    if wanted.sizes and sum(wanted.sizes[:2]) <= n - n_held_out:
        training, pool, unknown = wanted.sizes
        assert np.bincount(split.known.labels).tolist() == [training] * n_known
        each = min(unknown // n_unknown, n - n_held_out)
        expected = [each * n_unknown] + [pool] * n_known
        assert np.bincount(split.truth - UNKNOWN).tolist() == expected


def test_small_data_are_divided_in_proportion():
    experiment = COMPARISONS["table1"]
    split = split_dataset(classes_of("table1", 100), experiment.sized("cpu")[1], 0)
    assert np.bincount(split.known.labels).tolist() == [60] * 5  # of 90: two to one
    assert np.bincount(split.truth - UNKNOWN).tolist() == [90] + [30] * 5
    assert len(split.held_out) == 6 * 10


@pytest.mark.parametrize("name", COMPARISONS)
def test_sizes_are_those_of_all_comparisons_and_name_networks(name):
    experiment = COMPARISONS[name]
    assert experiment.sizes.keys() == SIZES.keys() == {"paper", "cpu", "smoke"}
    assert experiment.sized(None)[0] == "cpu"
    assert {
        scale for size in experiment.sizes.values() for scale in (size.images, size.vectors)
    } <= (NETWORKS.keys())
    assert experiment.layout == "matrix"
    assert experiment.backbone is None  # data are named to go through one
    with pytest.raises(SettingsError, match="the size is 'small'; give paper or cpu or smoke"):
        experiment.sized("small")


@pytest.mark.parametrize("name", COMPARISONS)
def test_data_and_tables_are_there(name):
    experiment = COMPARISONS[name]
    for data in experiment.data:
        assert data.removesuffix("-features").removesuffix("_sample") in DATASETS
    assert experiment.table is None or experiment.table in PAPER


def test_figures_are_of_experiments_there_are():
    assert FIGURES.keys() <= EXPERIMENTS.keys() | TOGETHER.keys()


def test_whole_tables_compare_every_method():
    for name in ("table1", "table1-released", "several-3", "several-5", "large", "runtime"):
        assert tuple(COMPARISONS[name].methods) == COMPARED
        assert COMPARISONS[name].methods == {each: METHODS[each] for each in COMPARED}


def test_seconds_are_compared_where_each_method_trains_its_own_f():
    alone = {name for name, experiment in COMPARISONS.items() if not experiment.keeps_networks}
    assert alone == {"runtime"}


def test_the_sweep_changes_k_alone_and_ends_with_the_k_of_the_seeds():
    methods = COMPARISONS["k-sweep"].methods
    paper = METHODS["s2osc-paper"]
    expected = {f"s2osc-paper-k{k}": change(paper, {"filtering.k": k}) for k in K_SWEEP}
    assert methods == expected | {"s2osc": METHODS["s2osc"]}
    assert isinstance(METHODS["s2osc"], S2OSCMethod)
    assert METHODS["s2osc"].filtering.k is None


def test_the_ablations_are_compared_with_the_papers_form_and_ours():
    assert list(COMPARISONS["ablation"].methods) == [
        *("s2osc-paper", "s2osc-s", "s2osc-lm", "s2osc-fn", "s2osc-u", "s2osc"),
    ]


def test_pictures_are_made_where_they_are_shown():
    with_pictures = {n: e.pictures for n, e in COMPARISONS.items() if e.pictures}
    assert with_pictures == {
        "embeddings": ("embedding",),
        "case-study": ("gallery", "counterfactuals"),
    }
    assert set(with_pictures) <= FIGURES.keys()


def test_the_papers_detectors_are_methods_of_its_tables():
    assert set(DETECTORS) <= set(COMPARISONS["table1"].methods)


def test_a_size_changes_how_many_items_there_are_and_nothing_else():
    protocol = COMPARISONS["several-3"].protocol
    applied = SIZES["cpu"].apply(protocol)
    assert applied == replace(protocol, sizes=(600, 300, 900), held_out=200, shrink=True)
    assert "600 labelled and 300 pool items" in SIZES["cpu"].in_words
    assert SIZES["paper"].in_words.startswith("33 %")


# By name


def test_a_name_gives_its_experiment_or_those_it_stands_for():
    assert experiments_named("table1") == {"table1": COMPARISONS["table1"]}
    assert list(experiments_named("several")) == ["several-3", "several-5"]
    assert not EXPERIMENTS.keys() & TOGETHER.keys()
    with pytest.raises(SettingsError, match=r"no experiment 'tables'; give table1 or .* several"):
        experiments_named("tables")
