"""The files of a result folder: what is counted, judged, written and read again."""

import csv
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from s2osc.app.result import (
    Measured,
    Nearest,
    count_labels,
    judge,
    read_measured,
    read_summary,
    table_bytes,
    write_measured,
    write_skipped,
)
from s2osc.data.inputs import Skipped
from s2osc.errors import DataError
from s2osc.pipeline.audit.decision import DecisionSettings, Evidence, decide
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.text import from_csv_cell
from s2osc.types import UNKNOWN, Answer
from samples import make_audit

CLASSES = ("a", "b")


def answer_of(labels: list[int], groups: list[int]) -> Answer:
    n = len(labels)
    return Answer(
        labels=np.array(labels),
        unknown_score=np.linspace(0, 1, n),
        confidence=np.full(n, 0.5),
        groups=np.array(groups),
        distinctness=np.arange(n) / 4,
        filtered=np.arange(n) == 0,
    )


def nearest_of(labels: list[int]) -> Nearest:
    return Nearest(np.array(labels), np.linspace(0.5, 1, len(labels)))


def measured_of(n: int = 40, n_seeds: int = 30, **changes: object) -> Measured:
    """A pool of which the last quarter is unknown, and seeds, with odd numbers throughout."""
    random = np.random.default_rng(0)
    score = random.normal(size=n) + 9 * (np.arange(n) >= 3 * n // 4)
    evidence = Evidence(
        score=score,
        nearest=np.arange(n) % 2,
        nearest_confidence=random.uniform(0.5, 1, n).astype(np.float32),
        seed_score=random.normal(size=n_seeds),
        seed_label=np.arange(n_seeds) % 2,
        seed_nearest=np.arange(n_seeds) % 2,
        seed_weight=np.ones(n_seeds),
        p_value=1e-7 / 3,
    )
    parts = {
        "names": [f"é,{row}" for row in range(n)],
        "truth": ["a", ""] * (n // 2),
        "classes": CLASSES,
        "evidence": evidence,
        "odds": random.normal(size=n + n_seeds).astype(np.float32),
        "groups": np.arange(n) % 3,
        "distinctness": random.exponential(size=n),
        "filtered": np.arange(n) >= n - 3,
    }
    return Measured(**parts | changes)


def summary_of(measured: Measured) -> dict:
    return {
        "counts": {"known": dict.fromkeys(measured.classes, 0)},
        "audit": make_audit(test=UnknownTest(measured.evidence.p_value, 0.01)).to_json(),
    }


# Counting and judging


def test_labels_are_counted_per_class_and_group():
    counts = count_labels(answer_of([0, -1, -1, 0, -1, -2], [-1, 1, 0, -1, 1, -1]), CLASSES)
    assert counts == {
        "known": {"a": 2, "b": 0},
        "unknown": 3,
        "groups": {"0": 1, "1": 2},
        "unsure": 1,
    }
    none = count_labels(answer_of([0, 1], [-1, -1]), CLASSES)
    assert none == {"known": {"a": 1, "b": 1}, "unknown": 0, "groups": {}, "unsure": 0}


def test_only_items_with_truth_are_judged():
    answer = answer_of([0, 1, -1, -1], [-1, -1, 0, 1])
    figures = judge(answer, CLASSES, ["a", "a", "new", ""])
    assert figures["accuracy"] == pytest.approx(2 / 3, abs=1e-5)
    assert figures["group_accuracy"] == 1
    assert judge(answer, CLASSES, None) == judge(answer, CLASSES, [""] * 4) == {}


def test_any_class_other_than_the_known_ones_counts_as_unknown():
    answer = answer_of([0, -1, -1], [-1, 0, 0])
    figures = judge(answer, ("a",), ["a", "unknown", "zebra"])
    assert (figures["accuracy"], figures["f_out"]) == (1, 1)
    assert figures["group_accuracy"] == 0.5


def test_items_left_unsure_are_neither_right_nor_wrong():
    answer = answer_of([0, -1, -2, -2], [-1, 0, -1, -1])
    figures = judge(answer, CLASSES, ["a", "new", "a", "new"])
    assert (figures["accuracy"], figures["decided"]) == (1, 0.5)
    nobody = judge(answer_of([-2, -2], [-1, -1]), CLASSES, ["a", "b"])
    assert nobody == {"decided": 0.0}


# The table


def test_names_with_commas_quotes_and_line_breaks_survive_in_both_tables(tmp_path):
    names = ['a,"b"', "c\nd", "é", "f"]
    answer, classes = answer_of([0, -1, 0, -2], [-1, 0, -1, -1]), ['x "y", z', "w"]
    for suffix in (".csv", ".parquet"):
        content = table_bytes(suffix, names, answer, nearest_of([0, 1, 0, 1]), classes)
        (tmp_path / f"t{suffix}").write_bytes(content)
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["item"] for row in rows] == names
    assert [row["label"] for row in rows] == ['x "y", z', "unknown", 'x "y", z', "unsure"]
    assert [row["nearest"] for row in rows] == ['x "y", z', "w", 'x "y", z', "w"]
    assert [row["group"] for row in rows] == ["", "0", "", ""]
    table = pq.read_table(tmp_path / "t.parquet")
    assert table["item"].to_pylist() == names
    assert table["distinctness"].to_pylist() == [0, 0.25, 0.5, 0.75]


def test_no_spreadsheet_runs_a_name_and_every_name_is_read_back(tmp_path):
    names, classes = ["=cmd|' /C calc'!A0", "-5", "'@x", "a"], ["+1 555", "w"]
    answer = answer_of([0, -1, 0, 1], [-1, 0, -1, -1])
    content = table_bytes(".csv", names, answer, nearest_of([0, 1, 0, 1]), classes)
    (tmp_path / "t.csv").write_bytes(content)
    write_skipped(tmp_path / "s.csv", [Skipped("=1", "@bad")])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["item"] for row in rows] == ["'=cmd|' /C calc'!A0", "-5", "''@x", "a"]
    assert rows[0]["label"] == "'+1 555"
    assert [from_csv_cell(row["item"]) for row in rows] == names
    assert (tmp_path / "s.csv").read_text().splitlines()[1] == """ "'=1","'@bad" """.strip()


def test_the_nearest_class_is_the_best_known_one_whatever_unknown_gets():
    nearest = Nearest.of(np.array([[0.1, 0.3, 0.6], [0.0, 0.0, 1.0]]))
    assert nearest.labels.tolist() == [1, 0]
    np.testing.assert_allclose(nearest.confidence, [0.75, 0])


# What was measured


@pytest.mark.parametrize(
    "changes", [{}, {"odds": None, "truth": None, "groups": np.full(40, -1)}], ids=["all", "least"]
)
def test_what_was_measured_comes_back_exactly(tmp_path, changes):
    measured = measured_of(**changes)
    write_measured(tmp_path, measured)
    again = read_measured(tmp_path, summary_of(measured))
    assert (again.names, again.truth, again.classes) == (
        measured.names,
        measured.truth,
        measured.classes,
    )
    for one, other in ((measured, again), (measured.evidence, again.evidence)):
        for name, value in vars(one).items():
            if isinstance(value, np.ndarray):
                np.testing.assert_array_equal(value, getattr(other, name), name)
                assert value.dtype == getattr(other, name).dtype, name
    assert again.evidence.p_value == measured.evidence.p_value
    assert (again.odds is None) == (measured.odds is None)


def test_an_answer_takes_the_groups_of_unknown_items_alone():
    measured = measured_of()
    decision = decide(measured.evidence, DecisionSettings(rule="seeds"), seed=0)
    answer = measured.answer(decision)
    is_unknown = answer.labels == UNKNOWN
    assert is_unknown.sum() >= 8
    np.testing.assert_array_equal(answer.groups[is_unknown], measured.groups[is_unknown])
    assert (answer.groups[~is_unknown] == -1).all()


def rewrite(path: Path, **changes: object) -> None:
    table = pq.read_table(path)
    for name, values in changes.items():
        place = table.column_names.index(name)
        table = (
            table.remove_column(place)
            if values is None
            else table.set_column(place, name, [values(table[name].to_pylist())])
        )
    pq.write_table(table, path)


DAMAGE = {
    "gone": lambda p: (p / "scores.parquet").unlink(),
    "cut short": lambda p: (p / "seeds.parquet").write_bytes(
        (p / "seeds.parquet").read_bytes()[:-9]
    ),
    "text": lambda p: (p / "scores.parquet").write_text("no table"),
    "a column less": lambda p: rewrite(p / "scores.parquet", score=None),
    "another class": lambda p: rewrite(p / "seeds.parquet", label=lambda v: ["z", *v[1:]]),
    "a NaN": lambda p: rewrite(p / "scores.parquet", score=lambda v: [float("nan"), *v[1:]]),
    "text for numbers": lambda p: rewrite(p / "seeds.parquet", score=lambda v: ["x"] * len(v)),
    "no seeds": lambda p: pq.write_table(
        pq.read_table(p / "seeds.parquet").slice(0, 0), p / "seeds.parquet"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_scores_are_refused_in_one_line(tmp_path, damage):
    measured = measured_of()
    write_measured(tmp_path, measured)
    damage(tmp_path)
    with pytest.raises(DataError, match=r"\.parquet is damaged .*; copy the result folder") as said:
        read_measured(tmp_path, summary_of(measured))
    assert "\n" not in str(said.value)


def test_a_run_without_seeds_cannot_be_decided_anew(tmp_path):
    with pytest.raises(DataError, match=r"without seeds \(preset paper\)"):
        read_measured(tmp_path, {"audit": None, "preset": "paper"})


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_damaged_summary_is_refused(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(DataError, match=r"summary\.json cannot be read"):
        read_summary(tmp_path)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no results: summary\.json is not there"):
        read_summary(tmp_path)
