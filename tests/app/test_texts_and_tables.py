"""Texts and tables from files to files: classify, decide, check, predict, streams."""

import csv
import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files import text
from s2osc.app.extract import NOTHING, TableExtractor, TextExtractor, Trusted, restore
from s2osc.cli.main import main
from s2osc.errors import ModelError
from s2osc.nets.text_models import MINILM, load_text_model
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.model_description import EmbeddingEntry
from s2osc.pipeline.storage import load_model
from texts import WORDS, easy_texts, write_package

KNOWN, POOL = ["fruit", "tools"] * 60, ["fruit", "tools", "music"] * 30


@pytest.fixture(scope="module", autouse=True)
def tiny_model(tmp_path_factory):
    """The tiny model of texts in the place of MiniLM, and a cache of its own."""
    folder = tmp_path_factory.mktemp("packages")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(write_package(folder)))
        patch.setenv("S2OSC_CACHE", str(folder / "cache"))
        load_text_model.cache_clear()
        yield
    load_text_model.cache_clear()


def write_csv(path: Path, **columns: list) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
    return path


def write_json_lines(path: Path, **columns: list) -> Path:
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return text(path, *(json.dumps(row) for row in rows))


def write_parquet(path: Path, **columns: list) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


WRITERS = {".csv": write_csv, ".jsonl": write_json_lines, ".parquet": write_parquet}


def write_texts(folder: Path, suffix: str = ".csv", column: str = "text") -> list[str]:
    """Labelled texts and a pool, as options of the command."""
    for name, labels, seed in (("known", KNOWN, 0), ("pool", POOL, 1)):
        content = {column: easy_texts(labels, seed), "label": labels}
        WRITERS[suffix](folder / f"{name}{suffix}", **content)
    return [f"--{name}={folder / name}{suffix}" for name in ("known", "pool")]


def write_rows(folder: Path) -> list[str]:
    """Labelled rows of numbers and words, and a pool of them."""
    for name, labels, seed in (("known", KNOWN, 0), ("pool", POOL, 1)):
        random = np.random.default_rng(seed)
        place = np.array([list(WORDS).index(label) for label in labels])
        write_csv(
            folder / f"{name}.csv",
            row_id=random.permutation(len(labels)).tolist(),
            width=(6 * place + random.normal(size=len(labels))).round(3).tolist(),
            weight=["" if n == 4 else n for n in random.integers(3, 9, len(labels)).tolist()],
            colour=np.array(["red", "blue", "green"])[place].tolist(),
            label=labels,
        )
    return [f"--{name}={folder / name}.csv" for name in ("known", "pool")]


@pytest.fixture(scope="module")
def of_texts(tmp_path_factory, quick) -> Path:
    """A folder with known.csv, pool.csv and, in ``out``, the results. To be read only."""
    folder = tmp_path_factory.mktemp("texts")
    assert main(["classify", *write_texts(folder), f"--out={folder / 'out'}", *quick]) == 0
    return folder


@pytest.fixture(scope="module")
def of_rows(tmp_path_factory, quick) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    assert main(["classify", *write_rows(folder), f"--out={folder / 'out'}", *quick]) == 0
    return folder


def summary_in(out: Path) -> dict:
    return json.loads((out / "summary.json").read_text(encoding="utf-8"))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


# Texts


def test_texts_are_told_apart_and_stand_beside_their_answer(of_texts):
    summary = summary_in(of_texts / "out")
    assert summary["metrics"]["accuracy"] >= 0.9
    assert (summary["embedding"], summary["preset"]) == (MINILM, "heads")
    rows = rows_of(of_texts / "out" / "predictions.csv")
    assert [row["text"] for row in rows] == easy_texts(POOL, seed=1)


def test_a_group_has_its_words_in_summary_and_page(of_texts):
    (group,) = summary_in(of_texts / "out")["groups"]
    assert set(group["typical"]) <= set(WORDS["music"])
    assert len(group["typical"]) >= 4
    assert group["nearest"] in ("fruit", "tools")
    page = (of_texts / "out" / "report.html").read_text(encoding="utf-8")
    assert f"<li><bdi>{group['typical'][0]}</bdi></li>" in page
    assert f'<bdi class="tile-text">{easy_texts(POOL, seed=1)[2]}' in page


@pytest.mark.parametrize("suffix", [".jsonl", pytest.param(".parquet", marks=pytest.mark.slow)])
def test_other_forms_and_another_column_give_the_same_answer(tmp_path, of_texts, quick, suffix):
    files = write_texts(tmp_path, suffix, column="body")
    words = [*files, f"--out={tmp_path / 'out'}", "--text-column=body", *quick]
    assert main(["classify", *words]) == 0
    again, before = (
        pq.read_table(folder / "out" / "predictions.parquet") for folder in (tmp_path, of_texts)
    )
    assert again.equals(before)
    out = tmp_path / "again.parquet"
    model = f"--model={tmp_path / 'out' / 'model'}"
    assert main(["predict", model, f"--items={tmp_path / f'pool{suffix}'}", f"--out={out}"]) == 0
    assert pq.read_table(out)["text"].to_pylist() == easy_texts(POOL, seed=1)


def test_new_texts_may_be_in_another_column(tmp_path, of_texts, capsys):
    items = write_csv(tmp_path / "items.csv", title=["some apple", "a violin of the harp"])
    words = [f"--model={of_texts / 'out' / 'model'}", f"--items={items}"]
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}"]) == 2
    assert "has no column `text`; found: title; give one of them" in capsys.readouterr().err
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}", "--text-column=title"]) == 0
    assert rows_of(tmp_path / "a.csv")[0]["label"] == "fruit"


def test_a_person_is_asked_about_texts(tmp_path, quick):
    out = tmp_path / "out"
    assert main(["classify", *write_texts(tmp_path), f"--out={out}", *quick]) == 0
    assert main(["decide", f"--out={out}", "--false-alarm=0.3"]) == 0
    assert summary_in(out)["groups"][0]["typical"]
    assert main(["check", f"--out={out}", "--n=5"]) == 0
    pool = easy_texts(POOL, seed=1)
    rows = rows_of(out / "check.csv")
    assert [row["text"] for row in rows] == [pool[int(row["item"])] for row in rows]
    page = (out / "check.html").read_text(encoding="utf-8")
    assert all(f'<bdi class="text">{row["text"]}</bdi>' in page for row in rows)
    for row in rows:
        row["label"] = POOL[int(row["item"])]
    labels = write_csv(tmp_path / "l.csv", **{name: [r[name] for r in rows] for name in rows[0]})
    assert main(["check", f"--out={out}", f"--labels={labels}"]) == 0
    assert summary_in(out)["audit"]["checked"]["n_items"] == 5


def test_a_stream_of_texts_asks_about_texts_and_learns_their_classes(tmp_path, quick):
    known, pool = write_texts(tmp_path)
    state, out = f"--state={tmp_path / 'stream'}", tmp_path / "window"
    assert main(["stream", "init", known, state, *quick]) == 0
    assert main(["stream", "window", state, pool, f"--out={out}", "--budget=12"]) == 0
    asked = [row for row in rows_of(out / "queries.csv") if row["item"].isdigit()]
    texts = easy_texts(POOL, seed=1)
    assert [row["text"] for row in asked] == [texts[int(row["item"])] for row in asked]
    assert main(["stream", "queries", state, f"--out={tmp_path / 'q.csv'}"]) == 0
    assert (tmp_path / "q.csv").read_bytes() == (out / "queries.csv").read_bytes()
    page = (out / "report.html").read_text(encoding="utf-8")
    assert texts[int(asked[0]["item"])] in page
    for row in asked:
        row["label"] = POOL[int(row["item"])]
    answers = {name: [row[name] for row in asked] for name in asked[0]}
    labels = write_csv(tmp_path / "answers.csv", **answers)
    assert main(["stream", "answer", state, f"--labels={labels}"]) == 0
    assert main(["stream", "window", state, pool, f"--out={tmp_path / 'next'}"]) == 0
    assert "music" in summary_in(tmp_path / "next")["counts"]["known"]


def test_empty_texts_are_skipped_and_named(tmp_path, quick, capsys):
    files = write_texts(tmp_path)
    text(tmp_path / "pool.csv", "text", *easy_texts(POOL, seed=1), '" "')
    assert main(["classify", *files, f"--out={tmp_path / 'out'}", *quick]) == 0
    assert rows_of(tmp_path / "out" / "skipped.csv") == [
        {"item": "90", "reason": "its text is empty"}
    ]


def test_texts_that_are_all_the_same_have_an_answer(tmp_path, quick):
    known, _ = write_texts(tmp_path)
    pool = write_csv(tmp_path / "same.csv", text=["some apple"] * 40)
    words = [known, f"--pool={pool}", f"--out={tmp_path / 'out'}", *quick]
    assert main(["classify", *words]) == 0
    assert len({row["label"] for row in rows_of(tmp_path / "out" / "predictions.csv")}) == 1


# A model folder from a stranger


def test_a_saved_model_names_its_embedding_and_chooses_none(of_texts):
    entry = load_model(of_texts / "out" / "model").preparation
    assert isinstance(restore(entry, (32,), "cpu", NOTHING).extractor, TextExtractor)
    for name in ("../mine", "someone/model"):
        stranger = EmbeddingEntry(name, entry.version, "text")
        with pytest.raises(ModelError, match="give --embedding with that name if you trust it"):
            restore(stranger, (32,), "cpu", Trusted(embedding="another"))
    with pytest.raises(ModelError, match="made with weights v0 of the embedding"):
        restore(EmbeddingEntry(MINILM, "v0", "text"), (32,), "cpu", NOTHING)


# Tables


def test_rows_are_told_apart_by_numbers_and_words(of_rows):
    summary = summary_in(of_rows / "out")
    assert summary["metrics"]["accuracy"] >= 0.9
    assert summary["columns"]["used"] == ["width", "weight", "colour"]
    assert list(summary["columns"]["left_out"]) == ["row_id"]
    left_out, filled, *_ = summary["warnings"]
    assert "`row_id` (whole numbers that occur once each" in left_out
    assert "`weight`" in filled
    largest, *_ = summary["groups"]
    assert {words.split()[0] for words in largest["typical"]} >= {"width", "colour"}


def test_the_page_lists_the_columns_and_shows_rows(of_rows):
    page = (of_rows / "out" / "report.html").read_text(encoding="utf-8")
    assert "width, weight, colour" in page
    assert "colour green" in page


def test_new_rows_need_the_columns_used_and_no_others(tmp_path, of_rows, capsys):
    model, out = f"--model={of_rows / 'out' / 'model'}", tmp_path / "a.csv"
    columns = {"colour": ["red", "purple"], "weight": [4, ""], "width": [0.5, 6.0]}
    items = write_csv(tmp_path / "items.csv", **columns)
    assert main(["predict", model, f"--items={items}", f"--out={out}"]) == 0
    assert rows_of(out)[0]["label"] == "fruit"
    del columns["colour"]
    items = write_csv(tmp_path / "fewer.csv", **columns)
    assert main(["predict", model, f"--items={items}", f"--out={out}", "--force"]) == 2
    assert "lacks columns that are used: colour; found: weight, width" in capsys.readouterr().err


def test_a_column_can_be_kept(tmp_path, quick):
    out = tmp_path / "out"
    words = [*write_rows(tmp_path), f"--out={out}", "--keep-column=row_id", *quick]
    assert main(["classify", *words]) == 0
    assert summary_in(out)["columns"]["used"][0] == "row_id"


def test_a_stream_of_rows_keeps_its_columns(tmp_path, quick):
    known, pool = write_rows(tmp_path)
    state, out = f"--state={tmp_path / 'stream'}", tmp_path / "window"
    assert main(["stream", "init", known, state, *quick]) == 0
    assert main(["stream", "window", state, pool, f"--out={out}", "--budget=4"]) == 0
    assert summary_in(out)["columns"]["used"] == ["width", "weight", "colour"]
    asked = [row for row in rows_of(out / "queries.csv") if row["item"].isdigit()]
    assert all(row["text"].startswith("width ") for row in asked)


def test_a_saved_table_needs_no_other_file(of_rows):
    entry = load_model(of_rows / "out" / "model").preparation
    made = restore(entry, (5,), "cpu", NOTHING).extractor
    assert isinstance(made, TableExtractor)
    assert [column.name for column in made.encoder.numbers] == ["width", "weight"]


# What cannot be used


def refusal(capsys, folder: Path, known: Path, pool: Path, *more: str) -> str:
    words = [f"--known={known}", f"--pool={pool}", f"--out={folder / 'out'}", *more]
    assert main(["classify", *words]) == 2
    assert not (folder / "out").exists()
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


@pytest.mark.parametrize("name", ["class", "Target", "y"])
def test_labels_under_another_name_get_a_hint(tmp_path, capsys, name):
    known = write_csv(tmp_path / "k.csv", **{"text": ["a", "b"], name: ["x", "y"]})
    line = refusal(capsys, tmp_path, known, known)
    assert f"rename `{name}` to `label` if it holds the classes" in line


COLUMNS = {"a": [0.5, 0.1, 0.2, 0.4], "label": ["x", "x", "y", "y"]}
BAD = {
    "all texts empty": ({"text": ["", " ", "", ""]}, (), "4 of the 4 texts .* cannot be read"),
    "a text column that is not there": ({"a": [1]}, ("--text-column=b",), "has no column `b`"),
    "a pool without the columns": ({"b": [1, 2]}, (), "the pool lacks columns .*: a; found: b"),
    "a pool of texts": ({"text": ["a"]}, (), "the pool holds texts, the known items hold tables"),
    "words for numbers": (
        {"a": ["u", "v"]},
        (),
        r"`a` holds numbers \(such as .*\) in one file and words \(such as",
    ),
    "an embedding for a table": (
        {"a": [1]},
        ("--embedding=wordllama",),
        "--embedding is for texts",
    ),
    "a column to keep": ({"a": [1.5]}, ("--keep-column=z",), "'z' that is to be kept is not there"),
}


@pytest.mark.parametrize(("columns", "more", "message"), BAD.values(), ids=BAD)
def test_tables_that_cannot_be_used_are_one_line(tmp_path, capsys, columns, more, message):
    known = write_csv(tmp_path / "known.csv", **COLUMNS)
    pool = write_csv(tmp_path / "pool.csv", **columns)
    if "text" in columns and not any(cell.strip() for cell in columns["text"]):
        known = write_csv(tmp_path / "known.csv", text=list("abcd"), label=COLUMNS["label"])
    assert re.search(message, refusal(capsys, tmp_path, known, pool, *more))


def test_options_for_tables_are_refused_where_items_are_texts(tmp_path, capsys):
    known, pool = (tmp_path / name for name in ("known.csv", "pool.csv"))
    write_texts(tmp_path)
    line = refusal(capsys, tmp_path, known, pool, "--keep-column=text")
    assert "--keep-column is for tables, but the items are texts; leave it out" in line


def test_columns_that_name_their_rows_alone_are_one_line(tmp_path, capsys):
    ids = [f"item {n}" for n in range(40)]
    known = write_csv(tmp_path / "k.csv", name=ids, label=["x", "y"] * 20)
    line = refusal(capsys, tmp_path, known, known)
    assert "no column can be used: `name` (40 words, most of which hardly any items share)" in line


@pytest.mark.parametrize("column", ["width", pytest.param("colour", marks=pytest.mark.slow)])
def test_one_column_of_numbers_or_words_has_an_answer(tmp_path, quick, column):
    files = write_rows(tmp_path)
    for name in ("known.csv", "pool.csv"):
        rows = rows_of(tmp_path / name)
        kept = {each: [row[each] for row in rows] for each in (column, "label")}
        write_csv(tmp_path / name, **kept)
    assert main(["classify", *files, f"--out={tmp_path / 'out'}", *quick]) == 0
    assert summary_in(tmp_path / "out")["columns"]["used"] == [column]


def test_texts_of_a_large_pool_are_compared_as_texts_in_parts_as_in_memory(
    tmp_path, quick, monkeypatch
):
    compared, match = [], S2OSCMethod.match_raw

    def recorded(self, known, pool, raw, *, seed):
        compared.append((raw.pool.tolist(), raw.labelled.tolist(), pool))
        return match(self, known, pool, raw, seed=seed)

    monkeypatch.setattr(S2OSCMethod, "match_raw", recorded)
    monkeypatch.setattr("s2osc.pipeline.large_pool.plan.MOST_COMPARED", 100)
    labels = ["fruit", "tools", "music"] * 200
    texts = easy_texts(labels, 1)
    texts[5] = ""  # is left out
    write_csv(tmp_path / "known.csv", text=easy_texts(KNOWN, 0), label=KNOWN)
    (tmp_path / "pool").mkdir()
    for number in range(2):
        write_parquet(tmp_path / f"pool/{number}.parquet", text=texts[300 * number :][:300])
    kept = texts[:5] + texts[6:]
    write_parquet(tmp_path / "pool.parquet", text=kept)
    for form in ("pool", "pool.parquet"):
        paths = [f"--known={tmp_path / 'known.csv'}", f"--pool={tmp_path / form}"]
        out = f"--out={tmp_path / 'out of'} {form}"
        assert main(["classify", *paths, out, "--fit-on=500", *quick]) == 0
    in_parts, in_memory = compared
    assert len(in_parts[0]) in (99, 100)
    assert len(in_memory[0]) == 100
    assert set(in_parts[0]) <= set(kept)
    assert in_parts[1] == in_memory[1]
    by_text = dict(zip(in_memory[0], in_memory[2], strict=True))
    both = [row for row, each in enumerate(in_parts[0]) if each in by_text]
    assert len(both) > 10
    for row in both:
        np.testing.assert_allclose(in_parts[2][row], by_text[in_parts[0][row]], atol=1e-5)
