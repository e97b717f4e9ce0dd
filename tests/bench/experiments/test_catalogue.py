"""The experiments: what they compare is what their names say, and can be run and shown."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from s2osc.bench.experiments.catalogue import (
    COMPARISONS,
    EXPERIMENTS,
    GRIDS,
    GROUPS,
    K_SWEEP,
    POOLS,
    TOGETHER,
    experiments_named,
)
from s2osc.bench.experiments.experiment import SIZES
from s2osc.bench.experiments.streams import STREAMS
from s2osc.bench.figures.figures import FIGURES
from s2osc.bench.methods import COMPARED, DETECTORS, METHODS, NETWORKS, SMALL
from s2osc.bench.tables.paper import PAPER
from s2osc.bench.tasks.pool import judge_answer
from s2osc.bench.tasks.task import COMPARED_SIDE
from s2osc.data.datasets import DATASETS, Dataset
from s2osc.data.splits import split_dataset
from s2osc.errors import SettingsError
from s2osc.nets.backbones import EFFICIENTNET, FEW_SIDE
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import FAST, PLAIN, TUNED
from s2osc.settings import change, flatten
from s2osc.types import UNKNOWN

OF_POOLS = COMPARISONS | POOLS
EACH = [(name, size) for name, experiment in COMPARISONS.items() for size in experiment.sizes]


def different(method: S2OSCMethod, other: S2OSCMethod) -> dict[str, object]:
    """The settings of ``method`` that ``other`` has not."""
    before = flatten(other)
    return {key: value for key, value in flatten(method).items() if value != before[key]}


def test_an_experiment_shows_figures_that_runs_have(seeded):
    split, solution = seeded
    judgement = judge_answer(split, solution, solution.answer, detects_only=False, seed=0)
    for name, experiment in OF_POOLS.items():
        columns = experiment.columns
        assert columns, name
        assert set(columns.values()) <= judgement.metrics.keys(), name
        assert len(set(columns.values())) == len(columns), name


def test_comparisons_pools_grids_and_streams_are_all_there_is():
    kinds = (COMPARISONS, POOLS, GRIDS, GROUPS, STREAMS)
    assert EXPERIMENTS == COMPARISONS | POOLS | GRIDS | GROUPS | STREAMS
    assert len(EXPERIMENTS) == sum(map(len, kinds))


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_compares_methods_that_differ_and_have_records_of_their_own(name):
    methods = EXPERIMENTS[name].methods
    assert methods
    assert name not in POOLS or all(isinstance(it, S2OSCMethod) for it in methods.values())
    assert len(set(methods.values())) == len(methods)
    files = {chosen.replace(" ", "_") for chosen in methods}
    assert len(files) == len(methods)
    assert not any(set(file) & set('/\\:*?"<>|') for file in files)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_what_is_called_by_the_name_of_a_preset_is_that_preset(name):
    presets = {"plain": PLAIN, "fast": FAST, "heads": NETWORKS["heads"], "small": SMALL}
    for chosen, method in EXPERIMENTS[name].methods.items():
        assert presets.get(chosen, method) == method


def sized(n_per_class: int) -> Dataset:
    images = np.zeros((10 * n_per_class, 1, 1), np.uint8)
    labels = np.tile(np.arange(10), n_per_class)
    return Dataset("sized", images, labels, tuple("0123456789"), len(labels), flip=False)


@pytest.mark.parametrize("name", POOLS)
def test_the_data_are_large_enough_for_every_partition(name):
    """Ten classes of 6,300 items at least are in MNIST, of 500 in its bundled part."""
    experiment = EXPERIMENTS[name]
    dataset = sized(500 if "mnist5k" in experiment.data else 6_300)
    for seed in range(max(1, len(experiment.protocol.unknown_shares))):
        split = split_dataset(dataset, experiment.protocol, seed)
        assert len(split.known_classes) == 5
        share = experiment.protocol.draw_unknown_share(seed)
        if share is not None:
            assert np.mean(split.truth == UNKNOWN) == pytest.approx(share, abs=0.003)


def test_titles_say_what_is_drawn():
    def drawn(name, seed=0):
        split = split_dataset(sized(6_300), EXPERIMENTS[name].protocol, seed)
        return len(split.known) // 5, np.bincount(split.truth + 1, minlength=6).tolist()

    assert drawn("released") == (4_000, [6_000] + [2_000] * 5)
    assert drawn("none") == (2_000, [0] + [1_500] * 5)
    assert drawn("rare") == (2_000, [153] + [1_500] * 5)
    assert drawn("rarest") == (2_000, [38] + [1_500] * 5)
    assert drawn("shirt") == drawn("t-shirt") == drawn("five") == (2_000, [4_500] + [1_500] * 5)
    assert drawn("features") == (1_500, [3_000] + [1_000] * 5)
    assert drawn("variants") == drawn("improvements") == (2_000, [3_000] + [1_000] * 5)
    assert drawn("coverage", seed=5) == (300, [1_167] + [100] * 5)
    assert drawn("shift", seed=4) == (300, [160, 0, 100, 20, 20, 20])


def test_the_hard_pools_are_of_the_garments_they_name():
    classes = DATASETS["fashion_mnist"].classes
    for name, known, unknown in (
        ("shirt", ["T-shirt/top", "pullover", "coat", "sandal", "sneaker"], ["shirt"]),
        ("t-shirt", ["pullover", "coat", "shirt", "sneaker", "ankle boot"], ["T-shirt/top"]),
    ):
        protocol = EXPERIMENTS[name].protocol
        assert [classes[c] for c in protocol.known_classes] == known
        assert [classes[c] for c in protocol.unknown_classes] == unknown


def test_shift_is_the_coverage_of_other_pools():
    first, shift = EXPERIMENTS["coverage"], EXPERIMENTS["shift"]
    assert shift.protocol == replace(first.protocol, shifted=True)
    assert (shift.methods, shift.columns, shift.data) == (first.methods, first.columns, first.data)


def test_features_are_those_of_the_backbone_for_heads():
    named = {name for name, experiment in EXPERIMENTS.items() if experiment.backbone}
    assert named == {"features", "few-photos", "tuned"}
    assert EXPERIMENTS["features"].backbone == EFFICIENTNET
    assert EXPERIMENTS["features"].methods == {"heads": NETWORKS["heads"]}


def test_tuned_networks_get_the_maps_they_start_from():
    tuned = EXPERIMENTS["tuned"]
    assert tuned.methods == {"tuned": TUNED}
    start = TUNED.teacher.network
    assert TUNED.student.network == start
    assert (tuned.backbone, tuned.task.first_stage) == (start.pretrained, start.first_stage)
    # The pools of `features`, of other data, so that both can be compared where data agree.
    assert replace(tuned.protocol, shrink=False) == EXPERIMENTS["features"].protocol


def test_small_is_the_fast_preset_with_smaller_networks_and_fewer_steps():
    keys = different(SMALL, FAST)
    assert {key.partition(".")[2].partition(".")[0] for key in keys} == {
        "network",
        "training",
        "labelled_batch",
    }
    assert max(SMALL.teacher.network.widths) < max(FAST.teacher.network.widths)
    assert SMALL.student.training.n_steps(500) < FAST.student.training.n_steps(500)


# What the rows of comparisons differ in


def test_the_variants_differ_from_the_plain_preset_in_what_their_names_say():
    changed = {
        name: different(method, PLAIN) for name, method in EXPERIMENTS["variants"].methods.items()
    }
    assert changed == {
        "plain": {},
        "g answers alone": {"student.vote": False},
        "gate on D_out as printed": {"student.gate_unknown": True},
        "labelled items plain": {"student.augment_labelled": False},
        "f on plain items": {"teacher.augment": 0.0},
        "w standardised": {"filtering.scale": "standardised"},
        "w = entropy": {"filtering.distance_weight": 0.0},
        "g binary": {"student.unknown": "many"},
        "S2OSC-S": {"student.augmentation": "strong"},
        "S2OSC-LM": {"student.hard_loss": "triplet"},
        "S2OSC-FN": {"student.start": "teacher", "student.alpha": 0.0},
        "S2OSC-U": {"student.lambda_u": 0.0},
    }


def test_the_improvements_lead_from_plain_to_fast_one_step_at_a_time():
    methods = EXPERIMENTS["improvements"].methods
    way = [name for name in methods if not name.startswith("fast, ")]
    steps = [different(methods[name], methods[before]) for before, name in pairwise(way)]
    assert way[0] == "plain"
    assert dict(zip(way[1:], steps, strict=True)) == {
        "seeds watch": {"seeds.share": 0.15},
        "+ threshold of the seeds": {"decision.rule": "seeds"},
        "+ filter of the seeds, K auto": {"filtering.by": "seeds"},
        "+ all known items": {"student.known_items": "all"},
        "+ seeds teach g": {"student.seed_weight": 0.5},
        "+ small maps of g, more steps": {
            "student.network.grey_map": 8,
            "student.training.epochs": 4,
            "student.training.min_steps": 400,
        },
        "+ fewer channels of f, more steps (fast)": {
            "teacher.network.widths": (16, 32, 96),
            "teacher.training.epochs": 6,
        },
    }
    assert methods[way[-1]] == FAST


def test_ours_without_one_part_lacks_that_part_alone():
    methods = EXPERIMENTS["improvements"].methods
    changed = {
        name: different(method, FAST)
        for name, method in methods.items()
        if name.startswith("fast, ")
    }
    assert changed == {
        "fast, filter=paper": {"filtering.by": "paper"},
        "fast, argmax": {"decision.rule": "argmax"},
        "fast, without pseudo-labels": {"student.lambda_u": 0.0},
        "fast, g names the known alone": {"student.vote": False},
        "fast, g binary": {"student.unknown": "many"},
        "fast, all the limit allows": {"decision.aim": "recall"},
    }


def test_a_table_shows_groups_where_a_column_does_or_methods_are_compared():
    shown = {name for name, experiment in OF_POOLS.items() if experiment.shows_groups}
    seeded = {
        "rare",
        "rarest",
        "shirt",
        "t-shirt",
        "five",
        "features",
        "few-photos",
        "tuned",
        "improvements",
    }
    assert shown == COMPARISONS.keys() | seeded


# Comparisons: the paper's experiments with every method, at every size


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
    n = 500 if name == "large" else 6_000
    split = split_dataset(classes_of(name, n), protocol, 0)
    n_known, n_unknown = {"large": (20, 10), "several-3": (5, 3), "several-5": (5, 5)}.get(
        name, (5, 1)
    )
    assert (len(split.known_classes), len(split.unknown_classes)) == (n_known, n_unknown)
    n_held_out = min(protocol.held_out, n // 10)
    assert np.bincount(split.held_out_classes).max(initial=0) == n_held_out
    assert len(split.held_out) == (n_known + n_unknown) * n_held_out
    used = np.concatenate([numbers(split.known.inputs), numbers(split.pool)])
    assert not np.isin(numbers(split.held_out), used).any()
    if protocol.sizes and sum(protocol.sizes[:2]) <= n - n_held_out:
        training, pool, unknown = protocol.sizes
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
        own = data in ("segment", "pendigits")  # tables that are put into the folder by hand
        assert own or data.removesuffix("-features").removesuffix("_sample") in DATASETS
    assert experiment.table is None or experiment.table in PAPER


def test_figures_are_of_experiments_there_are():
    assert FIGURES.keys() <= EXPERIMENTS.keys() | TOGETHER.keys()


def test_whole_tables_compare_every_method():
    for name in (
        "table1",
        "table1-released",
        "several-3",
        "several-5",
        "large",
        "few-labels",
        "runtime",
    ):
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
    experiment = COMPARISONS["several-3"]
    protocol, (_, sized) = experiment.protocol, experiment.sized("cpu")
    assert sized == replace(protocol, sizes=(600, 300, 900), held_out=200, shrink=True)


# By name


def test_a_name_gives_its_experiment_or_those_it_stands_for():
    assert experiments_named("table1") == {"table1": COMPARISONS["table1"]}
    assert list(experiments_named("several")) == ["several-3", "several-5"]
    assert not EXPERIMENTS.keys() & TOGETHER.keys()
    with pytest.raises(SettingsError, match=r"no experiment 'tables'; give table1 or .* several"):
        experiments_named("tables")


def test_methods_are_compared_by_the_features_of_their_records():
    compared = [EXPERIMENTS[name].task for name in ("table1", "several-3", "large", "features")]
    assert [task.side for task in compared] == [COMPARED_SIDE] * 4
    assert EXPERIMENTS["few-photos"].task.side == FEW_SIDE
    assert EXPERIMENTS["groups-3"].task.side is None
