"""Pools of the grid: drawn as their factors say, and recorded with truth and statement."""

import json
from dataclasses import replace

import numpy as np
import pytest

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import read_record
from s2osc.bench.runner import run_experiment
from s2osc.bench.tables.documents import make_table
from s2osc.bench.tasks.audit import (
    N_KNOWN,
    N_POOL,
    POOL_ONLY,
    AuditPool,
    AuditTask,
    PairedPool,
    Stated,
    draw_pool,
    unknown_rows,
)
from s2osc.bench.tasks.pool import PoolTask
from s2osc.codec import from_plain, to_plain
from s2osc.data.corruptions import add_noise, change_units, offset_columns
from s2osc.data.datasets import Dataset, load_dataset
from s2osc.errors import DataError, SettingsError
from s2osc.nets.text_models import load_text_model
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from s2osc.types import UNKNOWN, Labelled
from samples import SEEDED, TINY, make_audit
from texts import WORDS, easy_texts, write_package

DIGITS = load_dataset("digits")


def numbered(n_per_class: int = 1_200) -> Dataset:
    """Vectors that tell which item of the data set they are."""
    labels = np.tile(np.arange(10), n_per_class)
    items = np.arange(len(labels), dtype=np.float32)[:, None]
    return Dataset("own", items, labels, tuple("0123456789"), len(labels), flip=False)


def test_pools_of_a_draw_have_the_same_items_whatever_their_source_and_number():
    task, pool = AuditTask(), PairedPool("digits", 0.1, 20, draw=4)
    same = task.draw(DIGITS, pool, 0).split
    moved = task.draw(DIGITS, replace(pool, source="offset 0.1"), 1).split
    np.testing.assert_array_equal(same.known.inputs, moved.known.inputs)
    np.testing.assert_array_equal(offset_columns(same.pool, 0.1), moved.pool)
    other = task.draw(DIGITS, replace(pool, draw=5), 0).split
    assert not np.array_equal(same.pool, other.pool)


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("sizes", ["balanced", "20:1", POOL_ONLY])
@pytest.mark.parametrize("n_labelled", [20, 300])
def test_a_pool_has_the_share_the_labels_and_the_classes_it_is_an_example_of(
    share, sizes, n_labelled
):
    dataset = numbered()
    pool = AuditPool("own", share, n_labelled, sizes)
    split = draw_pool(dataset, pool, seed=3).split
    items = np.concatenate([split.known.inputs, split.pool])[:, 0].astype(int)
    assert len(set(items)) == len(items)
    np.testing.assert_array_equal(split.truth_classes, dataset.labels[items[len(split.known) :]])
    assert len(split.pool) == N_POOL
    assert np.mean(split.truth == UNKNOWN) == pytest.approx(share)
    counts = np.bincount(split.known.labels, minlength=N_KNOWN)
    assert counts.sum() == N_KNOWN * n_labelled
    ratio = counts.max() / counts.min()
    assert ratio == pytest.approx(20, rel=0.15) if sizes == "20:1" else ratio == 1
    assert len(split.unknown_classes) == (share > 0)
    assert not set(split.known_classes) & set(split.unknown_classes)


def test_the_pool_mixes_the_known_classes_as_the_labelled_items_do():
    split = draw_pool(numbered(), AuditPool("own", 0.1, 300, "20:1"), seed=0).split
    labelled = np.bincount(split.known.labels) / len(split.known)
    known = split.truth[split.truth != UNKNOWN]
    np.testing.assert_allclose(np.bincount(known) / len(known), labelled, atol=0.003)


def test_a_pool_may_have_another_mix_than_balanced_labelled_items():
    split = draw_pool(numbered(), AuditPool("own", 0.1, 300, POOL_ONLY), seed=0).split
    assert np.bincount(split.known.labels).tolist() == [300] * N_KNOWN
    counts = np.bincount(split.truth[split.truth != UNKNOWN])
    assert counts.sum() == 0.9 * N_POOL
    assert counts.max() / counts.min() == pytest.approx(20, rel=0.15)


def test_another_seed_draws_other_classes_and_the_same_seed_the_same_items():
    first, again, other = (draw_pool(numbered(), AuditPool("own"), s).split for s in (1, 1, 2))
    np.testing.assert_array_equal(first.pool, again.pool)
    assert first.known_classes == again.known_classes != other.known_classes


def test_where_one_unknown_class_has_too_few_items_more_are_unknown():
    split = draw_pool(DIGITS, AuditPool("digits", 1.0, 20), seed=0).split
    assert len(split.unknown_classes) == 3
    counts = np.bincount(split.truth_classes)
    assert sorted(counts[counts > 0]) == [166, 167, 167]
    rows = [np.arange(4), np.arange(10, 14)]
    assert unknown_rows(rows, 3, "own").tolist() == [0, 1, 2]
    assert unknown_rows(rows, 0, "own").tolist() == []
    with pytest.raises(DataError, match="unknown classes of own have too few items"):
        unknown_rows(rows, 9, "own")


def test_a_class_with_too_few_items_is_named():
    with pytest.raises(DataError, match=r"class \d of digits has \d+ items; the pool takes 400"):
        draw_pool(DIGITS, AuditPool("digits", n_labelled=300), seed=0)


def test_only_the_pool_comes_from_the_other_source():
    images = np.full((4_000, 6, 6), 100, np.uint8)
    dataset = Dataset("mnist", images, np.tile(np.arange(10), 400), tuple("0123456789"), 0, False)
    split = AuditTask().draw(dataset, AuditPool("mnist", source="noise 12"), 5).split
    assert (split.known.inputs == 100).all()
    np.testing.assert_array_equal(split.pool, add_noise(images[:N_POOL], 12, seed=5))


def test_units_change_for_labelled_items_and_pool_alike():
    task, wild = AuditTask(), AuditPool("digits", columns="wild units")
    before = task.draw(DIGITS, replace(wild, columns="as they are"), 0).split
    after = task.draw(DIGITS, wild, 0).split
    np.testing.assert_array_equal(after.pool, change_units(before.pool))
    np.testing.assert_array_equal(after.known.inputs, change_units(before.known.inputs))


def test_photos_are_changed_before_they_become_features_and_columns_after(monkeypatch):
    images = np.full((4_000, 6, 6), 100, np.uint8)
    dataset = Dataset("own", images, np.tile(np.arange(10), 400), tuple("0123456789"), 0, False)
    task, photos = AuditTask(), AuditPool("own-features", source="brightness +10 %")
    drawn = task.draw(dataset, photos, 0)
    assert (drawn.split.known.inputs == 100).all()
    assert (drawn.split.pool == 110).all()
    by_column = replace(photos, source="offset 0.1", columns="wild units")
    drawn = task.draw(dataset, by_column, 0)
    assert (drawn.split.pool == 100).all()
    vectors = np.random.default_rng(0).normal(size=(N_POOL, 8)).astype(np.float32)
    features = replace(
        drawn.split, pool=vectors, known=Labelled(vectors[:300], drawn.split.known.labels)
    )
    monkeypatch.setattr(PoolTask, "through_backbone", lambda *_, **__: features)
    found = task.through_backbone(drawn, "efficientnet-lite0", flip=False).split
    np.testing.assert_allclose(found.pool, change_units(offset_columns(vectors, 0.1)))
    np.testing.assert_allclose(found.known.inputs, change_units(vectors[:300]))


def test_titles_become_the_vectors_that_users_get(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(write_package(tmp_path / "packages")))
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    load_text_model.cache_clear()
    labels = np.tile(np.arange(6), 300)
    titles = np.array(easy_texts([list(WORDS)[c % 3] for c in labels], seed=0))
    dataset = Dataset("own", titles, labels, tuple("012345"), len(titles), flip=False)
    task, pool = AuditTask(), AuditPool("own", n_labelled=20)
    plain = task.draw(dataset, pool, 0).split
    assert plain.pool.shape == (N_POOL, 32)
    model = load_text_model()
    expected = draw_pool(dataset, pool, 0).split
    np.testing.assert_allclose(plain.known.inputs, model.embed(expected.known.inputs), atol=1e-3)
    typed = task.draw(dataset, replace(pool, source="typing errors"), 0).split
    np.testing.assert_array_equal(typed.known.inputs, plain.known.inputs)
    assert not np.allclose(typed.pool, plain.pool, atol=1e-2)


def test_what_an_audit_states_survives_json():
    stated = Stated.of(
        make_audit(("0", "1"), is_shifted=True, unknown_recall=None, smallest_false_alarm=0.1)
    )
    assert stated.false_alarms == Estimate(0.04, 0.02, 0.06)
    assert stated.known_accuracy == Estimate(0.9, 0.85, 0.95)
    assert (stated.unknown_recall, stated.finds_unknown) == (None, True)
    assert stated.cautions == ("few_seeds", "class_shift")
    assert from_plain(Stated, json.loads(json.dumps(to_plain(stated))), "it") == stated
    nothing = make_audit(nothing_unknown=True, test=UnknownTest(0.4, 0.01))
    assert (Stated.of(nothing).finds_unknown, Stated.of(nothing).p_value) == (False, 0.4)


def few_pools(data):
    return [AuditPool(data, share, 20) for share in (0.0, 0.4, 1.0)]


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Records of three small pools by our method and by the paper's, which states nothing."""
    methods = {"s2osc": SEEDED, "s2osc-paper": TINY}
    grid = replace(EXPERIMENTS["audit"], methods=methods, data=("digits",), pools=few_pools)
    monkeypatch.setitem(EXPERIMENTS, "audit", replace(grid, networks={}))
    return tmp_path / "results"


def test_a_record_holds_the_factors_the_truth_and_what_is_stated(results):
    paths = run_experiment("audit", None, None, results)
    assert [path.name for path in paths] == [
        f"digits-{method}-p{number}.json"
        for number in range(3)
        for method in ("s2osc", "s2osc-paper")
    ]
    nothing, some, everything = (read_record(path) for path in paths[::2])
    assert AuditPool(**some["protocol"]) == AuditPool("digits", 0.4, 20)
    metrics = some["metrics"]
    assert metrics["unknown_share"] == 0.4
    assert {"false_alarms", "known_accuracy", "unknown_recall", "f1", "f_out"} <= metrics.keys()
    assert {"teacher_known_accuracy", "teacher_f1"} <= metrics.keys()
    assert from_plain(Stated, some["stated"], "it").unknown_share.high <= 1
    assert some["seconds_total"] >= 0
    assert "unknown_recall" not in nothing["metrics"]
    assert "teacher_known_accuracy" not in everything["metrics"]
    plain = read_record(paths[1])
    assert plain["stated"] is None
    table = make_table("audit", [read_record(path) for path in paths])
    assert "(3 pools," in table
    assert "| s2osc-paper | 3 |" in table


def test_only_pools_with_the_levels_asked_for_are_run(results):
    def run(only):
        return run_experiment("audit", None, None, results, methods="s2osc", only=only)

    assert [path.name for path in run("unknown_share=0.4")] == ["digits-s2osc-p1.json"]
    with pytest.raises(SettingsError, match="no level"):
        run("unknown_share=0.5")


def test_levels_of_an_experiment_without_a_grid_are_refused(results):
    with pytest.raises(SettingsError, match="single has no levels to choose from"):
        run_experiment("single", ["digits"], None, results, only="source=same")
