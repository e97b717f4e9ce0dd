"""The main job on a pool in parts: the same answers, resumed, and told in one line."""

import errno
import io
import json
import resource
import sys
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files import easy_images, easy_vectors, known_labels, npz, pool_labels, write_images
from s2osc.app import part_work, run_folder
from s2osc.app.run_folder import write_array
from s2osc.app.summary import PartFacts
from s2osc.cli.main import main
from s2osc.cli.printing import show_parts
from s2osc.data import parts
from s2osc.data.parts import Part
from s2osc.files import write_whole
from samples import make_summary

N_FILES = 4
COLUMNS = ("item", "label", "group", "nearest", "p_known", "operating_point")
NUMBERS = ("confidence", "nearest_confidence", "unknown_score", "distinctness")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Labelled items, and one pool as an array and as Parquet files."""
    folder = tmp_path_factory.mktemp("large")
    known, pool = known_labels(200), pool_labels(240)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    vectors = easy_vectors(pool, seed=1)
    np.save(folder / "pool.npy", vectors)
    (folder / "pool").mkdir()
    for number, rows in enumerate(np.array_split(vectors, N_FILES)):
        column = pa.array(rows.tolist(), pa.list_(pa.float32()))
        pq.write_table(
            pa.table({"v": column}), folder / f"pool/{number}.parquet", row_group_size=50
        )
    return folder


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "ROWS_OF_PART", dict.fromkeys(parts.ROWS_OF_PART, 100))
    monkeypatch.setattr(parts, "BATCH_ROWS", dict.fromkeys(parts.BATCH_ROWS, 64))


def classify(data, pool, out, quick, *more):
    paths = (f"--known={data / 'known.npz'}", f"--pool={data / pool}", f"--out={out}")
    return main(["classify", *paths, "--fit-on=500", *quick, *more])


@pytest.fixture(scope="module")
def in_memory(data, tmp_path_factory, quick):
    out = tmp_path_factory.mktemp("memory") / "out"
    assert classify(data, "pool.npy", out, quick) == 0
    return pq.read_table(out / "predictions.parquet")


def answers(out):
    return pq.read_table(out / "predictions")


def assert_same(found, expected):
    for name in COLUMNS:
        assert found[name].to_pylist() == expected[name].to_pylist(), name
    for name in NUMBERS:
        np.testing.assert_allclose(found[name], expected[name], atol=1e-5, err_msg=name)


def test_a_pool_in_parts_is_answered_as_in_memory(data, tmp_path, quick, in_memory):
    out = tmp_path / "out"
    assert classify(data, "pool", out, quick) == 0
    assert len(list((out / "predictions").iterdir())) > N_FILES
    assert_same(answers(out), in_memory)
    summary = json.loads((out / "summary.json").read_text())
    n = len(in_memory)
    assert summary["items"]["pool"] == n
    assert summary["counts"]["unknown"] == in_memory["label"].to_pylist().count("unknown") > 0
    assert summary["rows"] == {"strangeness": n, "sample": 0, "answer": n}
    steps = {"strangeness", "sample", "teacher", "sample answer", "answer"}
    assert summary["seconds"].keys() >= steps, "what grows with the pool is told apart"
    assert not (out / "work").exists()


def test_a_pool_in_parts_below_the_limit_is_an_ordinary_one(data, tmp_path, quick):
    paths = (f"--known={data / 'known.npz'}", f"--out={tmp_path / 'out'}")
    assert main(["classify", *paths, f"--pool={data / 'pool'}/[0]*", *quick]) == 0
    assert (tmp_path / "out" / "predictions.csv").is_file()


@pytest.fixture
def n_reads(monkeypatch):
    """How often each part is read, beside the first rows, which tell what the items are."""
    found, batches = Counter(), parts.PartedPool.batches

    def counted(self, part, *rows):
        found[part.number] += 1
        return batches(self, part, *rows)

    monkeypatch.setattr(parts.PartedPool, "batches", counted)
    monkeypatch.setattr(
        parts.PartedPool, "first_batch", lambda self: next(batches(self, self.parts[0]))
    )
    return found


def test_items_that_judge_are_gathered_while_strangeness_is_measured(
    data, tmp_path, quick, in_memory, n_reads, monkeypatch
):
    """All of them judge here, so nothing is left to read for the sample."""
    assert classify(data, "pool", tmp_path / "out", quick) == 0
    assert set(n_reads.values()) == {2}
    n_reads.clear()
    monkeypatch.setattr("s2osc.app.large_pool.N_JUDGED", 100)
    assert classify(data, "pool", tmp_path / "few", quick) == 0
    assert set(n_reads.values()) == {3}


def test_a_run_that_was_stopped_in_its_fit_does_not_read_the_pool_for_it_again(
    data, tmp_path, quick, in_memory, n_reads, monkeypatch
):
    out = tmp_path / "out"

    def stops(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("s2osc.app.large_pool.fit_sample", stops)
        assert classify(data, "pool", out, quick) == 130
    n_reads.clear()
    assert classify(data, "pool", out, quick) == 0
    assert set(n_reads.values()) == {1}
    assert_same(answers(out), in_memory)


@pytest.mark.parametrize("step", ["StrataWorker", "AnswerWorker"])
def test_a_stopped_run_goes_on_where_it_was(
    data, tmp_path, quick, in_memory, monkeypatch, capsys, step
):
    out, worker = tmp_path / "out", getattr(part_work, step)
    work, done = worker.__call__, []

    def stops(self, part: Part):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(part.number)
        return work(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "__call__", stops)
        assert classify(data, "pool", out, quick) == 130
    assert not (out / "summary.json").exists()

    def counts(self, part: Part):
        done.append(part.number)
        return work(self, part)

    with monkeypatch.context() as patch:
        patch.setattr(worker, "__call__", counts)
        assert classify(data, "pool", out, quick) == 0
    assert sorted(done) == list(range(len(list((out / "predictions").iterdir()))))
    assert_same(answers(out), in_memory)


def test_the_rate_of_a_run_that_goes_on_is_that_of_its_own_rows(capsys, tmp_path):
    rows = {"strangeness": 0, "sample": 5, "answer": 3}
    parts_of_run = PartFacts(fit_on=500, engine="local", written="", rows=rows)
    show_parts(make_summary(parts=parts_of_run, n_pool=5), tmp_path)
    assert "answers at 2 rows/s" in capsys.readouterr().out


def test_a_run_of_other_settings_does_not_go_on(data, tmp_path, quick, monkeypatch, capsys):
    out = tmp_path / "out"

    def stops(self, part):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(part_work.AnswerWorker, "__call__", stops)
        assert classify(data, "pool", out, quick) == 130
    assert classify(data, "pool", out, quick, "--seed=1") == 2
    assert "holds a stopped run of other data or settings" in capsys.readouterr().err
    assert classify(data, "pool", out, quick, "--seed=1", "--force") == 0
    assert classify(data, "pool", out, quick, "--seed=1") == 2
    assert "holds the results of a run" in capsys.readouterr().err


def test_a_folder_of_others_is_left_alone(data, tmp_path, quick, capsys):
    (tmp_path / "mine.txt").write_text("mine")
    assert classify(data, "pool", tmp_path, quick, "--force") == 2
    assert "holds mine.txt" in capsys.readouterr().err
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_a_full_disk_is_one_line_and_what_is_done_stays(
    data, tmp_path, quick, in_memory, monkeypatch, capsys
):
    out, n_written = tmp_path / "out", []

    def full(path, content):
        if path.name.startswith("counts"):
            n_written.append(path)
            if len(n_written) > 2:
                raise OSError(errno.ENOSPC, "No space left on device")
        write_whole(path, content)

    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_whole", full)
        assert classify(data, "pool", out, quick) == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert "No space left on device; what is done stays" in line
    assert len(list((out / "work").glob("counts-*"))) == 2
    (out / "work" / "counts-mine.json").write_text("mine")
    assert classify(data, "pool", out, quick) == 0
    assert_same(answers(out), in_memory)
    # What is tidied away stands in a manifest; a file of somebody else does not.
    assert [path.name for path in (out / "work").iterdir()] == ["counts-mine.json"]


def test_an_array_that_the_disk_refuses_says_why_and_leaves_nothing(tmp_path):
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_array(tmp_path / "a.npy", np.zeros(10_000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
    rows = np.arange(12.0).reshape(3, 4)[:, ::2]
    write_array(tmp_path / "a.npy", rows, rows[:1])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), rows[[0, 1, 2, 0]])


def test_a_table_is_written_in_few_row_groups_however_small_its_batches(tmp_path, monkeypatch):
    monkeypatch.setattr(run_folder, "ROWS_OF_GROUP", 10)
    place = tmp_path / "caf\udce9.parquet"  # a name that is no text is a name, too
    with run_folder.written_table(place) as table:
        for start in range(0, 24, 4):
            table.write(pa.table({"row": range(start, start + 4)}))
    written = pq.ParquetFile(io.BytesIO(place.read_bytes()))
    assert written.read()["row"].to_pylist() == list(range(24))
    groups = range(written.metadata.num_row_groups)
    assert [written.metadata.row_group(i).num_rows for i in groups] == [12, 12]


def without_a_header(content, _vectors):
    return content[:4] + bytes(996) + content[1_000:]


def with_another_number(content, vectors):
    """As a file without checksums is damaged that can be read nevertheless."""
    place = content.index(vectors[500, 0].tobytes())
    return content[:place] + np.float32(1e6).tobytes() + content[place + 4 :]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (without_a_header, "2.parquet cannot be read ("),
        (with_another_number, "2.parquet cannot be read (row group 2 is damaged: `v` holds"),
    ],
)
def test_damage_within_a_file_is_one_line_and_the_mended_run_goes_on(
    data, tmp_path, quick, in_memory, capsys, damage, words
):
    pool = tmp_path / "pool"
    pool.mkdir()
    for path in sorted((data / "pool").iterdir()):
        (pool / path.name).write_bytes(path.read_bytes())
    whole = (pool / "2.parquet").read_bytes()
    (pool / "2.parquet").write_bytes(damage(whole, np.load(data / "pool.npy")))
    out = tmp_path / "out"
    assert classify(tmp_path, "pool", out, quick, f"--known={data / 'known.npz'}") == 2
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert words in line
    assert list((out / "work").glob("strata-00000-*.npy"))
    (pool / "2.parquet").write_bytes(whole)
    assert classify(tmp_path, "pool", out, quick, f"--known={data / 'known.npz'}") == 0
    assert_same(answers(out), in_memory)


def test_new_items_in_parts_get_the_answers_of_predict(data, tmp_path, quick, finished, capsys):
    model = f"--model={finished / 'out' / 'model'}"
    one, many = tmp_path / "one.parquet", tmp_path / "many"
    assert main(["predict", model, f"--items={data / 'pool.npy'}", f"--out={one}"]) == 0
    assert main(["predict", model, f"--items={data / 'pool'}", f"--out={many}"]) == 0
    assert_same(answers(many), pq.read_table(one))
    assert main(["predict", model, f"--items={data / 'pool'}", f"--out={many}"]) == 2
    assert "holds the results of a run" in capsys.readouterr().err


def test_progress_is_told_as_json_lines(data, tmp_path, quick, capsys, monkeypatch):
    monkeypatch.setattr("s2osc.app.large_pool.N_JUDGED", 100)
    assert classify(data, "pool", tmp_path / "out", quick, "--progress=json") == 0
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    rows = {line["step"]: line for line in lines if "rows_per_second" in line}
    assert rows.keys() == {"strangeness", "sample", "answer"}
    for line in rows.values():
        assert line["done"] == line["total"] == 720
        assert line["rows_left"] == 0
        assert line["rows_per_second"] > 0


def test_images_are_classified_in_parts(tmp_path, quick):
    known, pool = known_labels(60), pool_labels(200)
    names = [f"{label}/{row:03}.png" for row, label in enumerate(known)]
    write_images(tmp_path / "known", names, easy_images(known, seed=0))
    write_images(
        tmp_path / "pool", [f"{row:04}.png" for row in range(len(pool))], easy_images(pool, seed=1)
    )
    (tmp_path / "pool" / "broken.png").write_bytes(b"no image")
    request = ["--fit-on=500", *quick, f"--out={tmp_path / 'out'}"]
    paths = [f"--known={tmp_path / 'known'}", f"--pool={tmp_path / 'pool'}"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("s2osc.app.large_pool.N_JUDGED", 100)
        assert main(["classify", *paths, *request]) == 0
    table = answers(tmp_path / "out")
    truth = [label if label in ("left", "top") else "unknown" for label in pool]
    right = np.array(table["label"].to_pylist()) == np.array(truth)
    assert right.mean() > 0.9
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["items"] == {"known": 120, "pool": 600, "skipped": 1}
    assert "broken.png" in (tmp_path / "out" / "skipped.csv").read_text()


@pytest.mark.parametrize(
    ("pool", "more", "words"),
    [
        ("nosuch://bucket/pool", [], "nosuch://bucket/pool cannot be reached"),
        ("POOL", ["--workers=2"], "--workers is 2, but --engine is local; give --engine ray"),
        ("POOL", ["--corrections=a.csv"], "is read in parts; give the corrected items among"),
        ("POOL", ["--fit-on=3"], "fit-on is 3; give a number of items from 500"),
    ],
)
def test_what_cannot_be_used_is_one_line(data, tmp_path, capsys, pool, more, words):
    pool = str(data / "pool") if pool == "POOL" else pool
    paths = [f"--known={data / 'known.npz'}", f"--pool={pool}", f"--out={tmp_path / 'out'}"]
    assert main(["classify", *paths, "--fit-on=500", *more]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert words in lines[0]
    assert not (tmp_path / "out").exists()


def test_ray_that_is_not_installed_is_one_line(data, tmp_path, capsys, monkeypatch, quick):
    monkeypatch.setitem(sys.modules, "ray", None)
    assert classify(data, "pool", tmp_path / "out", quick, "--engine=ray") == 2
    assert "run `pip install 's2osc[ray]'`" in capsys.readouterr().err
