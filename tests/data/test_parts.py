"""Pools that are read in parts."""

import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from files import image, parquet, truncated
from s2osc.data import parts
from s2osc.data.images import InputShape
from s2osc.data.inputs import items_like
from s2osc.data.parts import count_rows, is_parted, open_parts
from s2osc.data.tables import read_table
from s2osc.errors import DataError

VECTORS = np.random.default_rng(0).normal(size=(1_000, 4)).astype(np.float32)


def write_parquet(folder, sizes=(300, 500, 200), group=100):
    folder.mkdir(exist_ok=True)
    start = 0
    for number, size in enumerate(sizes):
        rows = pa.array(VECTORS[start : start + size].tolist(), pa.list_(pa.float32()))
        pq.write_table(pa.table({"v": rows}), folder / f"{number}.parquet", row_group_size=group)
        start += size
    return folder


def read_all(pool):
    return [source for part in pool.parts for source in pool.batches(part)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "ROWS_OF_PART", dict.fromkeys(parts.ROWS_OF_PART, 150))


@pytest.mark.parametrize("form", ["folder", "glob", "file", "address"])
def test_parquet_files_are_read_row_by_row_in_order(tmp_path, form):
    folder = write_parquet(tmp_path / "pool")
    address = {
        "folder": folder,
        "glob": f"{folder}/*.parquet",
        "file": folder / "0.parquet",
        "address": f"file://{folder}",
    }[form]
    pool = open_parts(address, batch_rows=64)
    n = 300 if form == "file" else 1_000
    assert pool.n == n
    assert max(len(source.names) for source in read_all(pool)) <= 64
    whole = pool.whole()
    np.testing.assert_array_equal(whole.content, VECTORS[:n])
    assert whole.names == [str(row) for row in range(n)]


def test_every_row_is_in_one_part(tmp_path):
    pool = open_parts(write_parquet(tmp_path / "pool"))
    assert [part.number for part in pool.parts] == list(range(len(pool.parts)))
    assert len(pool.parts) == 6  # 200 + 100, 200 + 200 + 100, 200 rows
    firsts = [part.first for part in pool.parts]
    assert firsts == np.cumsum([0, *(part.n for part in pool.parts)])[:-1].tolist()


def test_memory_addresses_are_read(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    folder = write_parquet(tmp_path / "pool")
    system = fsspec.filesystem("memory")
    for path in sorted(folder.iterdir()):
        system.pipe(f"/pool/{path.name}", path.read_bytes())
    pool = open_parts("memory://pool")
    np.testing.assert_array_equal(pool.whole().content, VECTORS)


def test_an_array_file_is_mapped(tmp_path):
    np.save(tmp_path / "pool.npy", VECTORS)
    pool = open_parts(tmp_path / "pool.npy", batch_rows=64)
    assert pool.n == 1_000
    np.testing.assert_array_equal(pool.whole().content, VECTORS)
    assert pool.whole().names == [str(row) for row in range(1_000)]


def test_images_of_a_folder_are_read_in_parts(tmp_path):
    for number in range(7):
        image(tmp_path / f"{number}.png", value=10 * number)
    pool = open_parts(tmp_path, batch_rows=3)
    shape = InputShape("images", 8, 8, 1)
    pixels = [items_like(source, shape).inputs for source in read_all(pool)]
    assert [len(batch) for batch in pixels] == [3, 3, 1]
    assert np.concatenate(pixels)[:, 0, 0].tolist() == [0, 10, 20, 30, 40, 50, 60]


def tar_of_images(path, values):
    with tarfile.open(path, "w") as archive:
        for number, value in enumerate(values):
            for suffix, content in (("png", png(value)), ("txt", b"a caption")):
                about = tarfile.TarInfo(f"{number:05}.{suffix}")
                about.size = len(content)
                archive.addfile(about, io.BytesIO(content))
    return path


def png(value):
    content = io.BytesIO()
    Image.new("L", (8, 8), value).save(content, "PNG")
    return content.getvalue()


def test_images_of_tar_files_are_read_without_unpacking(tmp_path):
    tar_of_images(tmp_path / "a.tar", [1, 2, 3])
    tar_of_images(tmp_path / "b.tar", [4, 5])
    pool = open_parts(tmp_path, batch_rows=2)
    assert pool.n == 5
    shape = InputShape("images", 8, 8, 1)
    items = [items_like(source, shape) for source in read_all(pool)]
    assert np.concatenate([each.inputs for each in items])[:, 0, 0].tolist() == [1, 2, 3, 4, 5]
    assert items[-1].names == ["b.tar/00000.png", "b.tar/00001.png"]


@pytest.mark.parametrize("form", ["parquet", "npy", "images", "tar"])
def test_some_rows_are_read_alone(tmp_path, form, monkeypatch):
    pool, rows, read = tmp_path / "pool", np.array([1, 2, 155, 170, 299]), []
    if form == "parquet":
        write_parquet(pool, sizes=(300,))
    elif form == "npy":
        pool = tmp_path / "pool.npy"
        np.save(pool, VECTORS[:300])
    else:
        pool.mkdir()
        for row in range(300):
            (pool / f"{row:03}.png").write_bytes(b"%d" % row)
    if form == "tar":
        with tarfile.open(tmp_path / "pool.tar", "w") as archive:
            for row in range(300):
                archive.add(pool / f"{row:03}.png", f"{row:03}.png")
        pool = tmp_path / "pool.tar"
        member = parts._read_member
        monkeypatch.setattr(
            parts, "_read_member", lambda file, each: read.append(each) or member(file, each)
        )
    opened = open_parts(pool, batch_rows=2)
    assert len(opened.parts) > 1
    found = []
    for part in opened.parts:
        wanted = rows[(rows >= part.first) & (rows < part.first + part.n)]
        found += [name for source in opened.batches(part, wanted) for name in source.names]
    assert [int(name.rpartition("/")[2].removesuffix(".png")) for name in found] == rows.tolist()
    assert len(read) == (len(rows) if form == "tar" else 0)


def test_a_tar_file_that_ends_too_early_is_named(tmp_path):
    path = tar_of_images(tmp_path / "a.tar", [1, 2, 3])
    pool = open_parts(path)
    path.write_bytes(path.read_bytes()[:600])
    with pytest.raises(DataError, match=r"a\.tar cannot be read"):
        read_all(pool)


def test_damaged_parquet_among_others_is_named_before_anything_is_read(tmp_path):
    folder = write_parquet(tmp_path / "pool")
    truncated(folder / "1.parquet")
    with pytest.raises(DataError, match=r"1\.parquet cannot be read .* parts that are done stay"):
        open_parts(folder)


def test_a_number_that_was_changed_is_found_where_pages_have_checksums(tmp_path):
    table = pa.table({"v": pa.array(np.linspace(0, 1, 500))})
    pq.write_table(
        table,
        tmp_path / "a.parquet",
        compression="none",
        use_dictionary=False,
        write_page_checksum=True,
    )
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(DataError, match=r"a\.parquet cannot be read \(.*checksum"):
        open_parts(tmp_path).whole()
    with pytest.raises(DataError, match=r"a\.parquet cannot be read \(.*checksum"):
        read_table(tmp_path / "a.parquet")


def test_other_columns_are_named(tmp_path):
    folder = write_parquet(tmp_path / "pool")
    parquet(folder / "9.parquet", v=[1.0, 2.0])
    with pytest.raises(
        DataError, match=r"9\.parquet has `v` of type double, where .*0\.parquet has it as list"
    ):
        open_parts(folder)
    parquet(folder / "9.parquet", w=[[1.0]])
    with pytest.raises(DataError, match=r"9\.parquet has no column `v`"):
        open_parts(folder)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("nosuch://bucket/pool", "cannot be reached"),
        ("memory://nothing/here/*.parquet", "there is no file at"),
        ("nothing/*.parquet", "no file is named like"),
    ],
)
def test_addresses_that_lead_nowhere_are_named(address, words):
    with pytest.raises(DataError, match=words):
        open_parts(address)


def test_rows_are_counted_from_headers(tmp_path):
    np.save(tmp_path / "a.npy", VECTORS)
    folder = write_parquet(tmp_path / "pool")
    image(tmp_path / "images" / "a.png")
    assert count_rows(tmp_path / "a.npy") == 1_000
    assert count_rows(folder / "1.parquet") == 500
    assert count_rows(tmp_path / "images") == 1
    truncated(folder / "1.parquet")
    assert count_rows(folder / "1.parquet") == 0
    assert count_rows(tmp_path / "nothing.npy") == 0


def test_folders_of_images_are_no_data_sets(tmp_path):
    image(tmp_path / "a.png")
    parquet(tmp_path / "notes.parquet", v=[1])
    assert not is_parted(tmp_path)


def test_kinds_of_files_are_not_mixed(tmp_path):
    write_parquet(tmp_path, sizes=(10,))
    tar_of_images(tmp_path / "a.tar", [1])
    with pytest.raises(DataError, match="files of several kinds"):
        open_parts(tmp_path)
