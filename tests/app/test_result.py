"""The files of a result folder: what is counted, judged, written and read again."""

import csv
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from s2osc.app.answer_tables import table_bytes, write_skipped
from s2osc.app.origin import StreamPlace
from s2osc.app.result import Result
from s2osc.app.result_files import load_result, save_result, write_summary, write_tables
from s2osc.app.results_folder import UNFINISHED
from s2osc.app.run_record import RunRecord
from s2osc.app.summary import LabelCounts
from s2osc.data.inputs import Skipped
from s2osc.errors import DataError
from s2osc.pipeline.audit.long_tail import LongTail
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.pipeline.audit.threshold import DecisionSettings, Evidence
from s2osc.report.drawing import Question
from s2osc.settings import flatten
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
        nearest=np.arange(n) % 2,
    )


def result_of(n: int = 40, n_seeds: int = 30, **changes: object) -> Result:
    """A pool of which the last quarter is unknown, and seeds, with odd numbers throughout."""
    random = np.random.default_rng(0)
    evidence = Evidence(
        score=random.normal(size=n) + 9 * (np.arange(n) >= 3 * n // 4),
        nearest=np.arange(n) % 2,
        nearest_confidence=random.uniform(0.5, 1, n).astype(np.float32),
        seed_score=random.normal(size=n_seeds),
        seed_label=np.arange(n_seeds) % 2,
        seed_nearest=np.arange(n_seeds) % 2,
        seed_weight=np.ones(n_seeds),
        p_value=1e-7 / 3,
    )
    settings = DecisionSettings(rule="seeds", false_alarm=0.1)
    answer = answer_of([0] * n, [-1] * n)
    run = RunRecord(
        title="A pool",
        n_known=99,
        n_skipped=2,
        notes=("two items were skipped",),
        k=3,
        steps={"teacher": 7},
        preset="heads",
        settings={"student.tau": 0.9}
        | {f"decision.{name}": value for name, value in flatten(settings).items()},
        shape="vectors",
        backbone=None,
        seed=5,
        device="cpu",
        versions={"s2osc": "0"},
        seconds={"read": 0.5},
        stream=StreamPlace("s", 1, 2, "a digest", 3, ("fox",), "another"),
    )
    result = Result(
        run=run,
        names=[f"é,{row}" for row in range(n)],
        truth=["a", ""] * (n // 2),
        classes=CLASSES,
        answer=replace(answer, distinctness=random.exponential(size=n)),
        nearest_confidence=evidence.nearest_confidence,
        evidence=evidence,
        leaves=np.arange(n) % 3,
        audit=make_audit(CLASSES, test=UnknownTest(evidence.p_value, settings.level)),
        odds=random.normal(size=n + n_seeds).astype(np.float32),
        embeddings=random.normal(size=(n, 3)).astype(np.float32),
        questions=(Question(3, "a", "a close call"),),
    )
    result = result.decided(settings)
    facts = {name: changes.pop(name) for name in ("preset", "stream") if name in changes}
    return replace(result, run=replace(result.run, **facts), **changes)


WITHOUT_SEEDS = {"evidence": None, "leaves": None, "audit": None, "odds": None, "preset": "paper"}


def finish(folder: Path, result: Result) -> None:
    """Leave a folder as it is once its page is drawn."""
    write_summary(folder, result.summary.to_json())
    (folder / UNFINISHED).unlink()


# Counting and judging


def test_labels_are_counted_per_class_and_group():
    answer = answer_of([0, -1, -1, 0, -1, -2], [-1, 1, 0, -1, 1, -1])
    counts = LabelCounts.of_answer(answer, CLASSES)
    groups = {"0": 1, "1": 2}
    assert counts == LabelCounts(known={"a": 2, "b": 0}, unknown=3, groups=groups, unsure=1)
    none = LabelCounts.of_answer(answer_of([0, 1], [-1, -1]), CLASSES)
    assert none == LabelCounts(known={"a": 1, "b": 1}, unknown=0, groups={}, unsure=0)


# The table


def test_names_with_commas_quotes_and_line_breaks_survive_in_both_tables(tmp_path):
    names = ['a,"b"', "c\nd", "é", "f"]
    answer, classes = answer_of([0, -1, 0, -2], [-1, 0, -1, -1]), ['x "y", z', "w"]
    for suffix in (".csv", ".parquet"):
        content = table_bytes(
            suffix,
            names=names,
            answer=answer,
            nearest_confidence=np.ones(4),
            operating_points=np.full(4, 0.25),
            classes=classes,
        )
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
    assert table["operating_point"].to_pylist() == [0.25] * 4
    assert table["p_known"].to_pylist() == [None] * 4  # nothing was held back
    assert [row["p_known"] for row in rows] == [""] * 4


def test_in_both_tables_unknown_is_what_has_a_p_value_up_to_the_operating_point(tmp_path):
    result = result_of()
    result = result.decided(result.decision)
    write_tables(tmp_path, result)
    with (tmp_path / "predictions.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    written = [(float(row["p_known"]), float(row["operating_point"])) for row in rows]
    table = pq.read_table(tmp_path / "predictions.parquet")
    assert written == list(
        zip(table["p_known"].to_pylist(), table["operating_point"].to_pylist(), strict=True)
    )
    is_unknown = [row["label"] == "unknown" for row in rows]
    assert any(is_unknown)
    assert is_unknown == [p <= at for p, at in written]
    assert {at for _, at in written} == {result.summary.to_json()["audit"]["operating_point"]}


def test_no_spreadsheet_runs_a_name_and_every_name_is_read_back(tmp_path):
    names, classes = ["=cmd|' /C calc'!A0", "-5", "'@x", "a"], ["+1 555", "w"]
    answer = answer_of([0, -1, 0, 1], [-1, 0, -1, -1])
    content = table_bytes(
        ".csv",
        names=names,
        answer=answer,
        nearest_confidence=np.ones(4),
        operating_points=None,
        classes=classes,
    )
    (tmp_path / "t.csv").write_bytes(content)
    write_skipped(tmp_path / "s.csv", [Skipped("=1", "@bad")])
    with (tmp_path / "t.csv").open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    assert [row["item"] for row in rows] == ["'=cmd|' /C calc'!A0", "-5", "''@x", "a"]
    assert rows[0]["label"] == "'+1 555"
    assert [from_csv_cell(row["item"]) for row in rows] == names
    assert (tmp_path / "s.csv").read_text().splitlines()[1] == """ "'=1","'@bad" """.strip()


# What comes back


def assert_same(one: object, other: object, *, without: tuple[str, ...] = ()) -> None:
    for field in fields(one):
        value, again = getattr(one, field.name), getattr(other, field.name)
        if field.name in without:
            continue
        if field.name in ("answer", "evidence") and value is not None:
            assert_same(value, again)
        elif isinstance(value, np.ndarray):
            np.testing.assert_array_equal(value, again, field.name)
            assert value.dtype == again.dtype, field.name
        else:
            assert value == again, field.name


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"odds": None, "truth": None, "stream": None},
        {"images": np.zeros((40, 4, 4), np.uint8)},
        WITHOUT_SEEDS,
    ],
    ids=["all", "least", "images", "no seeds"],
)
def test_a_result_comes_back_exactly_before_its_page_is_made(tmp_path, changes):
    result = result_of(**changes)
    save_result(result, tmp_path)
    assert_same(result, load_result(tmp_path))


def test_a_result_comes_back_exactly_from_its_scores(tmp_path):
    result = result_of()
    save_result(result, tmp_path)
    finish(tmp_path, result)
    again = load_result(tmp_path)
    assert_same(result, again, without=("embeddings", "questions"))
    assert again.summary.to_json() == result.summary.to_json()
    other = result.decided(replace(result.decision, aim="recall"))
    assert load_result(tmp_path, {"aim": "recall"}).summary.to_json() == other.summary.to_json()


def test_where_items_too_far_out_begin_comes_back_with_the_scores(tmp_path):
    result = result_of(odds=None)
    tail = LongTail(n_items=10, n_regular=0.5, n_judges=0, chance=0.04, start=6.5)
    evidence = replace(result.evidence, p_value=tail.p_value, long_tail=tail)
    result = replace(result, evidence=evidence).decided(result.decision)
    np.testing.assert_array_equal(result.answer.is_unknown, evidence.score > 6.5)
    save_result(result, tmp_path)
    finish(tmp_path, result)
    again = load_result(tmp_path)
    assert_same(result, again, without=("embeddings", "questions"))
    assert again.audit.test.long_tail == tail


def test_only_unknown_items_have_a_group():
    result = result_of()
    is_unknown = result.answer.labels == UNKNOWN
    assert is_unknown.sum() >= 8
    group_of_leaf = result.audit.groups.group_of_leaf
    expected = group_of_leaf[result.leaves[is_unknown]]
    np.testing.assert_array_equal(result.answer.groups[is_unknown], expected)
    assert (result.answer.groups[~is_unknown] == -1).all()


def test_another_operating_point_leaves_the_first_result_as_it_was():
    result = result_of()
    before = result.summary.to_json()
    strict = result.decided(DecisionSettings(rule="seeds", false_alarm=0.5, aim="recall"))
    assert strict.answer.is_unknown.sum() > result.answer.is_unknown.sum()
    assert strict.run.settings["decision.false_alarm"] == 0.5
    assert result.summary.to_json() == before
    assert strict.decided(result.decision).summary.to_json() == before


def test_warnings_about_the_audit_have_a_code_and_do_not_come_back_as_notes(tmp_path):
    result = result_of().decided(DecisionSettings(rule="seeds", false_alarm=0.001))
    summary = result.summary.to_json()
    assert summary["warning_codes"] == [None, "few_seeds"]
    save_result(result, tmp_path)
    finish(tmp_path, result)
    assert load_result(tmp_path).run.notes == ("two items were skipped",)


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
    "weights of nothing": lambda p: rewrite(p / "seeds.parquet", weight=lambda v: [0.0] * len(v)),
    "a weight below 0": lambda p: rewrite(p / "seeds.parquet", weight=lambda v: [-1.0, *v[1:]]),
    "a weight beyond all": lambda p: rewrite(p / "seeds.parquet", weight=lambda v: [1e200, *v[1:]]),
    "odds of the pool alone": lambda p: rewrite(p / "seeds.parquet", odds=None),
    "a group that cannot be": lambda p: rewrite(
        p / "scores.parquet", leaf_if_unknown=lambda v: [2**60, *v[1:]]
    ),
    "no seeds": lambda p: pq.write_table(
        pq.read_table(p / "seeds.parquet").slice(0, 0), p / "seeds.parquet"
    ),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_scores_are_refused_in_one_line(tmp_path, damage):
    save_result(result_of(), tmp_path)
    damage(tmp_path)
    with pytest.raises(DataError, match=r"\.parquet cannot be read") as refused:
        load_result(tmp_path)
    assert "\n" not in str(refused.value)


def test_scores_of_another_pool_are_refused(tmp_path):
    result = result_of()
    save_result(result, tmp_path)
    finish(tmp_path, result)
    table = pq.read_table(tmp_path / "scores.parquet")
    pq.write_table(table.slice(0, 30), tmp_path / "scores.parquet")
    with pytest.raises(DataError, match=r"scores of 30 items, but its summary\.json is about 40"):
        load_result(tmp_path)


def test_a_run_without_seeds_cannot_be_decided_anew(tmp_path):
    result = result_of(**WITHOUT_SEEDS)
    with pytest.raises(DataError, match=r"without seeds \(preset paper\)"):
        result.decided(DecisionSettings(rule="seeds"))
    save_result(result, tmp_path)
    finish(tmp_path, result)
    with pytest.raises(DataError, match=r"without seeds \(preset paper\), which keep nothing"):
        load_result(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "\x00"])
def test_a_damaged_summary_is_refused(tmp_path, text):
    (tmp_path / "summary.json").write_text(text)
    with pytest.raises(DataError, match=r"summary\.json cannot be read"):
        load_result(tmp_path)


@pytest.mark.parametrize(
    "edit",
    [
        {"k": "many"},
        {"backbone": 1},
        {"seconds": {"read": "long"}},
        {"warnings": "none"},
        {"counts": {"known": {}}},
        {"items": {"known": 1, "pool": "40", "skipped": 0}},
        {"stream": []},
        {"audit": {"schema": 99}},
    ],
    ids=str,
)
def test_a_summary_whose_fields_are_of_another_kind_is_refused(tmp_path, edit):
    result = result_of()
    save_result(result, tmp_path)
    summary = json.loads((tmp_path / "summary.json").read_text(encoding="utf-8"))
    write_summary(tmp_path, summary | edit)
    with pytest.raises(DataError, match=r"summary\.json cannot be read"):
        load_result(tmp_path)


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"holds no results: summary\.json is not there"):
        load_result(tmp_path)


def test_groups_change_and_nothing_else_of_the_answer():
    result = result_of()
    for change, n_groups in (({"n": 3}, 3), ({"merge": (0, 1)}, 1), ({"split": 1}, 3)):
        other = result.regrouped(**change)
        np.testing.assert_array_equal(other.answer.labels, result.answer.labels)
        assert other.audit.groups.number == n_groups
        of_leaf = other.audit.groups.group_of_leaf
        is_unknown = other.answer.is_unknown
        expected = of_leaf[other.leaves[is_unknown]]
        np.testing.assert_array_equal(other.answer.groups[is_unknown], expected)


def test_without_groups_there_is_nothing_to_regroup():
    result = result_of()
    nothing = replace(result, audit=replace(result.audit, groups=None))
    with pytest.raises(DataError, match="nothing to group in these results"):
        nothing.regrouped(2)
