"""The grid: every pair of levels that can be drawn is there often enough, and can be asked for."""

from collections import Counter
from dataclasses import asdict, fields
from itertools import combinations

import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import DEFAULT_PARTITIONS
from s2osc.bench.experiments.grid import (
    DATA,
    LEVELS,
    TIMES,
    can_be_drawn,
    design,
    paired_pools_of,
    parse_levels,
    pools_of,
)
from s2osc.bench.methods import NETWORKS
from s2osc.bench.tasks.audit import AuditPool
from s2osc.errors import SettingsError


def count_pairs(pools):
    return Counter(
        pair for pool in pools for pair in combinations(sorted(asdict(pool).items(), key=str), 2)
    )


def test_every_pair_of_levels_that_goes_together_has_twenty_pools():
    counts = count_pairs(design())
    assert min(counts.values()) >= TIMES == 20
    # All shares, numbers of labels and sizes of classes go with every source.
    for source in LEVELS["source"]:
        for factor in ("unknown_share", "n_labelled", "class_sizes"):
            for level in LEVELS[factor]:
                pair = tuple(sorted([(factor, level), ("source", source)], key=str))
                assert counts[pair] >= TIMES


def test_the_levels_are_those_of_the_factors_of_a_pool():
    assert {field.name for field in fields(AuditPool)} == LEVELS.keys()
    for pool in design():
        assert all(level in LEVELS[factor] for factor, level in asdict(pool).items())


def test_pools_of_a_draw_differ_in_source_and_share_alone():
    for data in EXPERIMENTS["sources"].data:
        pools = paired_pools_of(data)
        assert all(can_be_drawn(pool) for pool in pools[:10])
        first = [pool for pool in pools if pool.draw == 0]
        assert len(set(pools)) == len(pools) == TIMES * len(first)
        sources = {pool.source for pool in first}
        assert {(pool.unknown_share, pool.source) for pool in first} == {
            (share, source) for share in (0.0, 0.4) for source in sources
        }
        assert len({pool.seed_of(number) for number, pool in enumerate(first)}) == 1


def test_only_sources_and_units_of_its_kind_are_drawn_of_a_data_set():
    assert can_be_drawn(AuditPool("mnist", source="noise 12"))
    assert not can_be_drawn(AuditPool("mnist", source="noise 10 %"))
    assert not can_be_drawn(AuditPool("mnist", columns="wild units"))
    assert can_be_drawn(AuditPool("pendigits", source="offset 0.1", columns="wild units"))
    assert not can_be_drawn(AuditPool("stackoverflow", source="offset 0.1"))
    assert can_be_drawn(AuditPool("stackoverflow", source="lower case"))
    assert can_be_drawn(AuditPool("cifar10-features", source="JPEG 40", columns="wild units"))
    assert can_be_drawn(AuditPool("cifar10-features", source="noise 20 %"))


def test_a_small_data_set_has_only_pools_it_has_the_items_for():
    assert can_be_drawn(AuditPool("digits", n_labelled=60))
    assert not can_be_drawn(AuditPool("digits", n_labelled=300))
    assert not can_be_drawn(AuditPool("digits", n_labelled=60, class_sizes="20:1"))


def test_the_partitions_of_the_experiment_are_the_pools_of_a_data_set():
    audit = EXPERIMENTS["audit"]
    every = audit.partitions("digits", None)
    assert len(every) == len(pools_of("digits")) > 50
    assert audit.partitions("digits", range(10_000)) == list(every)
    assert audit.protocol_of(None, "digits", 7) == pools_of("digits")[7]
    assert sum(len(pools_of(data)) for data in DATA) == len(design())
    assert list(EXPERIMENTS["single"].partitions("mnist", None)) == list(range(DEFAULT_PARTITIONS))


def test_any_beginning_of_the_design_has_every_data_set_and_share():
    first = design()[:100]
    assert {pool.data for pool in first} == DATA.keys()
    shares = Counter(pool.unknown_share for pool in first)
    assert max(shares.values()) <= 1.5 * min(shares.values())


def test_networks_of_every_data_set_are_those_of_a_preset():
    assert EXPERIMENTS["audit"].networks.keys() == DATA.keys()
    assert set(EXPERIMENTS["audit"].networks.values()) <= NETWORKS.keys()


@pytest.mark.parametrize(
    ("text", "levels"),
    [
        ("unknown_share=0", {"unknown_share": 0.0}),
        ("unknown_share=0.02", {"unknown_share": 0.02}),
        ("n_labelled=300, source=JPEG 40", {"n_labelled": 300, "source": "JPEG 40"}),
        ("class_sizes=20:1", {"class_sizes": "20:1"}),
    ],
)
def test_levels_are_asked_for_by_name(text, levels):
    assert parse_levels(text) == levels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour=red", "no factor 'colour'; give unknown_share, n_labelled"),
        ("n_labelled=7", "no level '7' of n_labelled; give 20, 60, 300"),
        ("noise 12", "no factor 'noise 12'"),
        ("", "no factor ''"),
    ],
)
def test_a_level_that_there_is_not_is_refused_in_one_line(text, message):
    with pytest.raises(SettingsError, match=message):
        parse_levels(text)


def test_a_data_set_outside_the_grid_is_refused():
    with pytest.raises(SettingsError, match="no pools of 'svhn'; give mnist"):
        pools_of("svhn")
