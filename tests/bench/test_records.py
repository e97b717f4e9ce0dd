"""Records: written whole, read back the same, never mixed with those of other settings."""

import json
import os
import shutil
import subprocess
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from s2osc.baselines.post_hoc import MSP
from s2osc.bench import records
from s2osc.bench.records import (
    check_complete,
    check_same_settings,
    commit,
    fingerprint,
    is_done,
    make_folder,
    read_record,
    read_records,
    record_path,
    write_record,
)
from s2osc.data.splits import Protocol
from s2osc.errors import DataError, OutputError
from s2osc.files import part_of
from s2osc.pipeline.presets import FAST, HEADS, PLAIN
from s2osc.settings import change, flatten
from samples import make_dataset, shrink

METHOD = shrink(PLAIN, n_steps=8, k=5)


def test_a_record_is_read_as_it_was_written(tmp_path):
    record = {"dataset": "Ω", "metrics": {"f1": 0.5}, "settings": {"a": None}}
    write_record(tmp_path / "new" / "folder" / "a.json", record)
    assert read_record(tmp_path / "new" / "folder" / "a.json") == record


def test_a_half_written_record_never_appears(tmp_path, monkeypatch):
    def full_disk(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OutputError, match=r"a\.json: No space left on device; make room"):
        write_record(tmp_path / "a.json", {"metrics": {}})
    assert not list(tmp_path.glob("*a.json*"))
    monkeypatch.undo()
    write_record(tmp_path / "a.json", {"metrics": {}})
    assert {path.name for path in tmp_path.iterdir()} == {"a.json"}


def test_what_cannot_be_written_as_json_leaves_no_file(tmp_path):
    with pytest.raises(TypeError):
        write_record(tmp_path / "a.json", {"metrics": object()})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        *("", '{"metrics": ', "\x00", "[]", "3", "null", '"error"'),
        *('{"metrics": {"f1": 1e400}}', '{"metrics": NaN}', '{"a": ' + "[" * 999 + "]" * 999 + "}"),
    ],
)
def test_a_file_that_is_no_record_is_named_in_one_line(tmp_path, text):
    (tmp_path / "a.json").write_text(text)
    for read in (read_record, is_done):
        with pytest.raises(
            DataError, match=r"a\.json cannot be read .*; it is not a record"
        ) as refused:
            read(tmp_path / "a.json")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"metrics": None}, "has no metrics"),
        ({"metrics": [0.5]}, "has no metrics"),
        ({"metrics": {"f1": "0.5"}}, r"has '0\.5' as metrics\.f1; give a number"),
        ({"seconds_total": "long"}, "has no seconds_total"),
        ({"unknown_classes": 3}, "has no unknown_classes"),
        ({"error": "broken"}, "has no error"),
    ],
)
def test_a_record_without_what_tables_show_is_named(tmp_path, changes, lacks):
    whole = {"metrics": {}, "seconds_total": 1.0, "known_classes": [], "unknown_classes": []}
    check_complete(tmp_path / "a.json", whole)
    with pytest.raises(DataError, match=rf"a\.json {lacks}"):
        check_complete(tmp_path / "a.json", whole | changes)


def test_a_run_is_done_where_its_record_has_no_error(tmp_path):
    path = tmp_path / "a.json"
    assert not is_done(path)
    write_record(path, {"metrics": {"f1": 1.0}})
    assert is_done(path)
    write_record(path, {"error": {"kind": "DataError", "message": "too few items"}})
    assert not is_done(path)


def of_run(dataset: str, partition: int = 0, **facts) -> dict:
    return {"dataset": dataset, "method": "m", "partition": partition, **facts}


def test_what_is_no_record_of_a_run_is_refused_by_its_name(tmp_path):
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "note.json").write_text('{"note": "mine"}')
    with pytest.raises(DataError, match=r"note\.json is not a record of a run; move it elsewhere"):
        read_records(tmp_path, "small")


def test_a_record_under_another_name_is_refused(tmp_path):
    write_record(tmp_path / "small" / "a-m-p1.json", of_run("a"))
    with pytest.raises(DataError, match=r"a-m-p1\.json holds the record that a-m-p0\.json should"):
        read_records(tmp_path, "small")


@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ({"settings": {"k": 1}}, {"settings": {"k": 2}}, "k"),
        ({"data": "1f"}, {"data": "2e"}, "data"),
    ],
)
def test_partitions_that_do_not_belong_together_are_refused(tmp_path, first, second, what):
    for partition, facts in enumerate((first, second)):
        path = tmp_path / "small" / f"a-m-p{partition}.json"
        write_record(path, of_run("a", partition, **facts))
    with pytest.raises(DataError, match=rf"a-m-p0\.json and .*a-m-p1\.json have different {what}"):
        read_records(tmp_path, "small")


def test_a_setting_that_came_later_and_groups_do_not_part_records(tmp_path):
    for partition, settings in enumerate(({"k": 1, "clusters.n": 2}, {"k": 1, "new": 3})):
        path = tmp_path / "small" / f"a-m-p{partition}.json"
        write_record(path, of_run("a", partition, settings=settings | {"clusters.n": partition}))
    assert len(read_records(tmp_path, "small")) == 2


def test_a_record_takes_the_place_of_what_a_killed_process_left(tmp_path):
    part_of(tmp_path / "a-m-p0.json").write_text("{")
    (tmp_path / "mine.part").write_text("of somebody else")
    write_record(tmp_path / "a-m-p0.json", {"metrics": {}})
    assert {path.name for path in tmp_path.iterdir()} == {"a-m-p0.json", "mine.part"}


def test_records_that_cannot_be_written_are_told_before_anything_runs(tmp_path):
    (tmp_path / "results").write_text("a file")
    with pytest.raises(OutputError, match=r"records cannot be written into .*; give another --res"):
        make_folder(tmp_path / "results" / "table1")


def test_a_data_set_is_known_by_its_content():
    one, other = make_dataset(), make_dataset()
    assert fingerprint(one) == fingerprint(other)
    changed = replace(one, labels=one.labels[::-1].copy())
    assert fingerprint(changed) != fingerprint(one)
    assert fingerprint(replace(one, classes=one.classes[::-1])) != fingerprint(one)


def test_records_are_read_in_the_order_of_their_names_and_nothing_else_is(tmp_path):
    for name in ("b", "a"):
        write_record(tmp_path / "small" / f"{name}-m-p0.json", of_run(name))
    (tmp_path / "small" / "c.part").write_text('{"datas')
    write_record(tmp_path / "other" / "d-m-p0.json", of_run("d"))
    assert [record["dataset"] for record in read_records(tmp_path, "small")] == ["a", "b"]
    assert read_records(tmp_path, "nothing") == []


def test_every_run_has_a_file_of_its_own(tmp_path):
    names = {
        record_path(tmp_path, "t", data, method, size, partition).name
        for data in ("mnist", "mnist-features")
        for method in ("s2osc", "s2osc-u", "s2osc-paper, K=50")
        for size in (None, "cpu", "smoke")
        for partition in (0, 1)
    }
    assert len(names) == 2 * 3 * 3 * 2
    assert "mnist-features-s2osc-paper,_K=50-cpu-p1.json" in names
    assert not any(" " in name for name in names)


# Where the code is from


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    """A repository with one commit, which the code is said to lie in."""
    git = shutil.which("git")
    if git is None:
        pytest.skip("there is no git")
    for key, value in (("NAME", "A"), ("EMAIL", "a@b.c")):
        monkeypatch.setenv(f"GIT_AUTHOR_{key}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{key}", value)
    file = tmp_path / "package" / "bench" / "code.py"
    file.parent.mkdir(parents=True)
    file.write_text("1")
    (tmp_path / "package" / "other.py").write_text("1")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "One"]):
        subprocess.run([git, "-C", tmp_path, *words], check=True)
    monkeypatch.setattr(records, "__file__", str(file))
    commit.cache_clear()
    yield tmp_path
    commit.cache_clear()


def test_a_record_names_the_commit_and_whether_code_has_changed_since(repository):
    words = ["git", "-C", repository, "rev-parse", "HEAD"]
    head = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    assert commit() == head[:12]
    (repository / "package" / "other.py").write_text("2")  # in another part of the package
    commit.cache_clear()
    assert commit() == head[:12] + "+"


def test_code_that_another_repository_does_not_know_has_no_commit_of_it(repository, monkeypatch):
    file = repository / "package" / "bench" / "installed.py"
    file.write_text("3")
    monkeypatch.setattr(records, "__file__", str(file))
    commit.cache_clear()
    assert commit() is None


def test_code_from_nowhere_has_no_commit(repository):
    shutil.rmtree(repository / ".git")
    assert commit() is None


# Other pools, other methods

PROTOCOL = Protocol((0, 1), (2,), sizes=(8, 4, 12), held_out=1)


@pytest.fixture
def recorded(tmp_path) -> Path:
    record = {"settings": flatten(METHOD), "protocol": asdict(PROTOCOL)}
    write_record(tmp_path / "a.json", record)
    return tmp_path / "a.json"


def test_a_record_of_the_same_pools_is_accepted(recorded):
    check_same_settings(recorded, METHOD, PROTOCOL)


@pytest.mark.parametrize(
    "changes",
    [
        {"sizes": (8, 4, 11)},
        {"sizes": None},
        {"held_out": 2},
        {"n_known": 3, "known_classes": None},
        {"unknown_shares": (0.1,)},
    ],
)
def test_a_record_of_other_pools_is_refused(recorded, changes):
    with pytest.raises(DataError) as refusal:
        check_same_settings(recorded, METHOD, replace(PROTOCOL, **changes))
    named = str(refusal.value).partition("(")[2].partition(")")[0]
    assert set(named.split(", ")) == {f"protocol.{key}" for key in changes}


def test_what_a_protocol_did_not_have_yet_was_at_its_default(recorded):
    record = read_record(recorded)
    del record["protocol"]["shrink"]
    write_record(recorded, record)
    check_same_settings(recorded, METHOD, PROTOCOL)
    with pytest.raises(DataError, match=r"\(protocol\.shrink\)"):
        check_same_settings(recorded, METHOD, replace(PROTOCOL, shrink=True))


def test_an_earlier_record_without_a_protocol_is_of_any(recorded):
    write_record(recorded, {"settings": flatten(METHOD)})
    check_same_settings(recorded, METHOD, PROTOCOL)


def test_how_items_are_grouped_matters_where_groups_are_shown(recorded):
    other = change(METHOD, {"clusters.n_groups": 3})
    check_same_settings(recorded, other, PROTOCOL, shows_groups=False)
    with pytest.raises(DataError, match=r"\(clusters\.n_groups\)"):
        check_same_settings(recorded, other, PROTOCOL)


def test_settings_of_a_baseline_are_compared_one_by_one(tmp_path):
    write_record(tmp_path / "a.json", {"settings": flatten(MSP())})
    check_same_settings(tmp_path / "a.json", MSP())
    with pytest.raises(DataError, match=r"other settings \(known_recall\)"):
        check_same_settings(tmp_path / "a.json", MSP(known_recall=0.9))
    # What is a default of ours is none of a baseline's.
    settings = flatten(MSP())
    del settings["recipe.held_out"]
    write_record(tmp_path / "a.json", {"settings": settings})
    with pytest.raises(DataError, match=r"other settings \(recipe\.held_out\)"):
        check_same_settings(tmp_path / "a.json", MSP())


@pytest.mark.parametrize("record", [{}, {"settings": None}, {"settings": 3}])
def test_a_record_without_settings_is_refused(tmp_path, record):
    write_record(tmp_path / "a.json", record)
    with pytest.raises(DataError, match="names no settings; remove it and run again"):
        check_same_settings(tmp_path / "a.json", METHOD)


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


@pytest.mark.parametrize(("n_labelled", "in_folds"), [(600, True), (1_400, False)])
def test_folds_matter_where_few_labelled_items_judge(tmp_path, n_labelled, in_folds):
    once = replace(HEADS, seeds=replace(HEADS.seeds, judges=0))
    path = tmp_path / "a.json"
    write_record(path, {"settings": flatten(once), "n_training": n_labelled})
    check_same_settings(path, once)
    if in_folds:
        with pytest.raises(DataError, match=r"\(seeds\.judges\)"):
            check_same_settings(path, HEADS)
    else:
        check_same_settings(path, HEADS)
