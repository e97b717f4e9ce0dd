"""Arrays and tables become names, labels and inputs, or one line that says why not."""

import io
import json
import os
import struct
import zipfile
from datetime import timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from files import npy, npz, parquet, text, truncated, vectors
from s2osc.data.tables import ARRAY_SUFFIXES, Contents, read_arrays, read_table
from s2osc.errors import DataError


def read(path: Path) -> Contents:
    return read_arrays(path) if path.suffix in ARRAY_SUFFIXES else read_table(path)


# Arrays


def test_vectors_in_npy_keep_their_rows(tmp_path):
    held = read_arrays(npy(tmp_path / "a.npy", vectors(5)))
    assert (held.names, held.labels) == (["0", "1", "2", "3", "4"], None)
    np.testing.assert_array_equal(held.content, vectors(5))


@pytest.mark.parametrize(
    ("arrays", "labels"),
    [
        ({"y": [3, 3, 10, 10]}, ["3", "3", "10", "10"]),
        ({"y": np.array([1.0, 1.0, 2.0, 2.0])}, ["1", "1", "2", "2"]),
        ({"y": np.array([b"a", b"a", b"b", b"b"])}, ["a", "a", "b", "b"]),
        ({"y": [1, 1, 0, 0], "classes": ["ant", "bee", "fly"]}, ["bee", "bee", "ant", "ant"]),
    ],
)
def test_labels_of_arrays_are_names_or_index_the_classes(tmp_path, arrays, labels):
    assert read_arrays(npz(tmp_path / "k.npz", x=vectors(), **arrays)).labels == labels


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.uint8, bool])
def test_arrays_with_two_axes_become_float32_vectors(tmp_path, dtype):
    content = read_arrays(npy(tmp_path / "a.npy", np.ones((2, 3), dtype))).content
    assert content.dtype == np.float32
    assert (content == 1).all()


@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 8, 8, 1)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_arrays_of_grey_images_lose_an_empty_axis_and_wide_integers(tmp_path, shape, dtype):
    content = read_arrays(npy(tmp_path / "a.npy", np.full(shape, 255, dtype))).content
    assert (content.shape, content.dtype) == ((2, 8, 8), np.uint8)
    assert (content == 255).all()


# Tables of vectors


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3)])
def test_a_column_of_lists_is_a_table_of_vectors(tmp_path, kind):
    column = pa.array(vectors(4).tolist(), type=kind)
    source = parquet(tmp_path / "a.parquet", v=column, item=list("wxyz"), split=["train"] * 4)
    held = read_table(source)
    assert held.names == ["w", "x", "y", "z"]
    np.testing.assert_array_equal(held.content, vectors(4))


def test_lists_in_several_row_groups_stay_in_order(tmp_path):
    table = pa.table({"v": pa.array(vectors(7).tolist(), type=pa.list_(pa.float32(), 3))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    np.testing.assert_array_equal(read_table(tmp_path / "a.parquet").content, vectors(7))


def test_numeric_columns_are_features_but_ids_labels_and_row_numbers_are_not(tmp_path):
    a, b, c = vectors(2).T
    columns = {"id": [7, 8], "a": a, "b": b, "Label": [0, 1], "c": c, "__index_level_0__": [5, 6]}
    held = read_table(parquet(tmp_path / "a.parquet", **columns))
    np.testing.assert_array_equal(held.content.as_vectors("a table"), vectors(2))
    assert list(held.content.columns) == ["a", "b", "c"]
    assert (held.names, held.labels) == (["7", "8"], ["0", "1"])


@pytest.mark.parametrize(
    "lines",
    [
        ["a,b,c,label,item", "0,0.125,0.25,03,x", "0.375,0.5,0.625,,y"],
        [",0,1,2,label,item", "0,0,0.125,0.25,03,x", "1,0.375,0.5,0.625,,y"],
    ],
)
def test_a_csv_of_numbers_is_a_table_of_vectors(tmp_path, lines):
    held = read_table(text(tmp_path / "a.csv", *lines))
    np.testing.assert_array_equal(held.content.as_vectors("a table"), vectors(2))
    assert (held.names, held.labels) == (["x", "y"], ["03", ""])


def test_a_csv_of_numbers_without_a_header_loses_no_row(tmp_path):
    np.savetxt(tmp_path / "a.csv", vectors(4), delimiter=",")
    content = read_table(tmp_path / "a.csv").content
    np.testing.assert_array_equal(content.as_vectors("a table"), vectors(4))


def test_a_csv_column_may_start_with_many_whole_numbers(tmp_path):
    lines = ["a,b,c"] + ["0,0,0"] * 300_000 + ["0.5,1,1"]
    content = read_table(text(tmp_path / "a.csv", *lines)).content
    assert content.as_vectors("a table")[-1].tolist() == [0.5, 1, 1]


# Manifests


def test_a_manifest_names_files_beside_it(tmp_path):
    held = read_table(text(tmp_path / "a.csv", "path,label,size", "b/c.png,03,9", "/d.png,,9"))
    assert held == (
        ["b/c.png", "/d.png"],
        [tmp_path / "b" / "c.png", Path("/d.png")],
        ["03", ""],
        "the columns path, label, size",
    )


@pytest.mark.parametrize("header", ["\ufeffPath; Label ;note", "path\tlabel\tnote"])
def test_other_delimiters_a_byte_order_mark_and_more_columns_are_understood(tmp_path, header):
    mark = ";" if ";" in header else "\t"
    rows = [mark.join(["a.png", label, note]) for label, note in zip("aabb", "1xyz", strict=True)]
    assert read_table(text(tmp_path / "k.csv", header, *rows)).labels == ["a", "a", "b", "b"]


def test_cells_that_we_wrote_for_a_spreadsheet_are_read_back_as_they_were(tmp_path):
    held = read_table(text(tmp_path / "a.csv", "item,label,v", "'=1+1,'@home,-1", "x,'tis,2"))
    assert (held.names, held.labels) == (["=1+1", "x"], ["@home", "'tis"])
    assert held.content.columns["v"].tolist() == [-1, 2]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_every_item_of_a_table_has_a_name_of_its_own(tmp_path, suffix):
    source = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        text(source, "item,v", "a,1", ",2", "a,3")
    else:
        parquet(source, item=["a", None, "a"], v=[1, 2, 3])
    assert read_table(source).names == ["a", "row 1", "a (2)"]


def test_labels_that_are_no_utf_8_become_text(tmp_path):
    held = read_arrays(npz(tmp_path / "a.npz", x=vectors(2), y=[b"caf\xe9", b"tea"]))
    assert held.labels == ["caf\\xe9", "tea"]
    held = read_arrays(npz(tmp_path / "b.npz", x=vectors(2), y=["caf\udce9", "tea"]))
    assert held.labels == ["caf\\xe9", "tea"]


def test_a_class_is_one_however_its_accents_are_stored(tmp_path):
    held = read_table(text(tmp_path / "a.csv", "label,v", "caf\u00e9,1", "cafe\u0301,2"))
    assert len(set(held.labels)) == 1


def test_a_table_may_lie_where_names_are_no_utf_8(tmp_path):
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    for source in (text(folder / "a.csv", "v", "1"), parquet(folder / "a.parquet", v=[1.0])):
        assert read_table(source).content.columns["v"].tolist() == [1]


# What cannot be used


def object_array(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return tmp_path / "a.npy"


def forged_npy(
    path: Path, *, shape: str = "(1000000000000, 300)", descr: str = "<f4", header: bytes = b""
) -> Path:
    """Eight bytes of values under a header that claims something else."""
    made = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    header = header or made
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8))
    return path


def packed(path: Path, method: int) -> Path:
    file = io.BytesIO()
    np.save(file, vectors(40))
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("x.npy", file.getvalue())
    return path


def zip_bomb(path: Path) -> Path:
    """An archive that says its one array takes 2**60 bytes."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", forged_npy(path.with_name("x.npy")).read_bytes())
        archive.filelist[0].file_size = 2**60
    return path


def encrypted(path: Path) -> Path:
    npz(path, x=vectors(2))
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag in the list of members
    path.write_bytes(content)
    return path


def zip_of_text(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", "no array")
    return path


def npz_with_damage(path: Path) -> Path:
    npz(path, x=vectors(40))
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(content)
    return path


BAD_FILES = {
    "no rows": (lambda p: npy(p / "a.npy", np.zeros((0, 3))), r"is empty; .* shape \(0, 3\)"),
    "no columns": (lambda p: npy(p / "a.npy", np.zeros((3, 0))), "is empty"),
    "empty csv": (lambda p: text(p / "a.csv"), "cannot be read"),
    "no bytes": (lambda p: (p / "a.csv").write_bytes(b"") or p / "a.csv", "cannot be read"),
    "NaN": (
        lambda p: npy(p / "a.npy", np.full((2, 3), np.nan)),
        "NaN or infinite values in 2 of 2",
    ),
    "too large": (
        lambda p: npy(p / "a.npy", np.full((2, 3), 1e200)),
        r"values beyond 1e\+15 in 2 of 2 vectors \(first: row 0, column 0, 1e\+200\)",
    ),
    "too large in csv": (
        lambda p: text(p / "a.csv", "a,b", "1,2", "1,-3e38"),
        r"the column `b` of .* holds 3e\+38, beyond 1e\+15; bring it to a scale near 1",
    ),
    "complex": (lambda p: npy(p / "a.npy", np.ones((2, 3), complex)), "type complex128"),
    "dates": (lambda p: npy(p / "a.npy", np.zeros((2, 3), "M8[s]")), r"type datetime64\[s\]"),
    "several fields": (
        lambda p: npy(p / "a.npy", np.zeros(2, [("a", "f4"), ("b", "f4")])),
        "cannot be read .*neither numbers nor text",
    ),
    "damaged literal in the header": (
        lambda p: forged_npy(p / "a.npy", header=b"{'descr': '<f4', 'shape': ((("),
        "cannot be read",
    ),
    "negative shape": (
        lambda p: forged_npy(p / "a.npy", shape="(-1, 2)"),
        r"gives the shape \(-1, 2\)",
    ),
    "more rows than the file has": (
        lambda p: forged_npy(p / "a.npy", shape="(3, 1)"),
        "announces 12 bytes of values, and it has 8",
    ),
    "text of no width": (
        lambda p: forged_npy(p / "a.npy", descr="<U0", shape="(1000000000,)"),
        "cannot be read .*neither numbers nor text",
    ),
    "lzma npz": (
        lambda p: packed(p / "a.npz", zipfile.ZIP_LZMA),
        "a method that np.savez does not use",
    ),
    "zip bomb": (lambda p: zip_bomb(p / "a.npz"), "announces 1,152,921,504,606,846,976 bytes"),
    "encrypted npz": (lambda p: encrypted(p / "a.npz"), "cannot be read .*encrypted"),
    "labels that are no text": (
        lambda p: npz(p / "a.npz", x=vectors(1), y=np.frombuffer(b"\xfe\xff\x10\x7f", "<U1")),
        "cannot be read",
    ),
    "a class named twice": (
        lambda p: npz(p / "a.npz", x=vectors(2), y=[0, 1], classes=["caf\u00e9", "cafe\u0301 "]),
        "`classes` holds caf\u00e9 more than once; rename them",
    ),
    "odd time zone": (
        lambda p: parquet(p / "a.parquet", a=[1.0], label=pa.array([0], pa.timestamp("s", "Mars"))),
        "cannot be read .*give the column `label` as text",
    ),
    "far date": (
        lambda p: parquet(p / "a.parquet", a=[1.0], label=pa.array([2**62], pa.timestamp("ms"))),
        "cannot be read .*give the column `label` as text",
    ),
    "a folder": (lambda p: (p / "a.csv").mkdir() or p / "a.csv", "is a folder; give a file"),
    "a pipe": (lambda p: os.mkfifo(p / "a.csv") or p / "a.csv", "is a pipe or a device"),
    "a pipe of arrays": (lambda p: os.mkfifo(p / "a.npy") or p / "a.npy", "is a pipe or a device"),
    "a pipe of Parquet": (
        lambda p: os.mkfifo(p / "a.parquet") or p / "a.parquet",
        "is a pipe or a device",
    ),
    "both infinities": (lambda p: npy(p / "a.npy", np.array([[np.inf, -np.inf, 0]])), "infinite"),
    "infinite in csv": (
        lambda p: text(p / "a.csv", "a,b,c", "1,inf,2"),
        "the column `b` of .* holds inf in row 0; leave cells empty",
    ),
    "a number with a comma": (
        lambda p: text(p / "a.csv", "a;b", *["1;0,5"] * 3),
        "`b` of .* holds numbers, but '0,5' in row 0; write numbers with a point",
    ),
    "a word among numbers": (
        lambda p: text(p / "a.csv", "a", *["1"] * 20, "many"),
        "`a` of .* holds numbers, but 'many' in row 20",
    ),
    "a column of structures": (
        lambda p: parquet(p / "a.parquet", a=[{"b": 1}]),
        "the column `a` of .* is of type struct",
    ),
    "damaged JSON lines": (
        lambda p: text(p / "a.jsonl", '{"text": "a"}', '{"text": '),
        r"cannot be read \(line 2: .*give one JSON object in each line",
    ),
    "a list as JSON line": (
        lambda p: text(p / "a.jsonl", "[1]"),
        r"cannot be read \(line 1: it holds a list, not an object",
    ),
    "float images": (
        lambda p: npy(p / "a.npy", np.zeros((2, 8, 8))),
        "images of type float64; give uint8 values from 0 to 255",
    ),
    "16-bit images": (
        lambda p: npy(p / "a.npy", np.full((2, 8, 8), 256, np.uint16)),
        "images of type uint16; give uint8",
    ),
    "words": (lambda p: npy(p / "a.npy", np.array([["a"]])), "values of type <U1; give numbers"),
    "one axis": (lambda p: npy(p / "a.npy", np.zeros(3)), "has 1 axes"),
    "no axis": (lambda p: npy(p / "a.npy", np.array(3.0)), "has 0 axes"),
    "pickled": (object_array, "cannot be read .*neither numbers nor text"),
    "truncated npy": (
        lambda p: truncated(npy(p / "a.npy", vectors(40))),
        "cannot be read",
    ),
    "truncated npz": (
        lambda p: truncated(npz(p / "a.npz", x=vectors(40))),
        "cannot be read",
    ),
    "damaged npz": (lambda p: npz_with_damage(p / "a.npz"), "cannot be read"),
    "text in npz": (lambda p: zip_of_text(p / "a.npz"), "cannot be read"),
    "forged npy": (lambda p: forged_npy(p / "a.npy"), "cannot be read"),
    "text as npy": (lambda p: text(p / "a.npy", "hello"), "cannot be read"),
    "text as parquet": (lambda p: text(p / "a.parquet", "hello"), "cannot be read"),
    "truncated parquet": (
        lambda p: truncated(parquet(p / "a.parquet", a=[1.0])),
        "cannot be read .*Parquet",
    ),
    "bytes as csv": (
        lambda p: (p / "a.csv").write_bytes(b"\xff\xfe\x00p") and p / "a.csv",
        "cannot be read .*; save it as CSV in UTF-8 text",
    ),
    "latin 1 csv": (
        lambda p: (p / "a.csv").write_bytes(b"path\ncaf\xe9.png\n") and p / "a.csv",
        "cannot be read",
    ),
    "ragged csv": (lambda p: text(p / "a.csv", "a,b", "1,2", "1"), "Expected 2 columns, got 1"),
    "no x": (lambda p: npz(p / "a.npz", data=vectors()), "no array `x`; found: data"),
    "y of another length": (
        lambda p: npz(p / "a.npz", x=vectors(4), y=[1, 2]),
        r"4 items in `x` and labels of shape \(2,\) in `y`",
    ),
    "y beyond classes": (
        lambda p: npz(p / "a.npz", x=vectors(2), y=[0, 2], classes=["a", "b"]),
        "whole numbers from 0 to 1, which index `classes`",
    ),
    "two columns of one name": (
        lambda p: text(p / "a.csv", "a,b,a", "1,2,3"),
        "has several columns called a; rename them",
    ),
    "ragged lists": (
        lambda p: parquet(p / "a.parquet", v=[[1.0], [1.0, 2.0]]),
        "`v` of .* holds vectors of different lengths",
    ),
    "missing list": (
        lambda p: parquet(p / "a.parquet", v=[[1.0], None]),
        "`v` of .* holds vectors of different lengths, or none",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_file_that_cannot_be_used_is_one_line(tmp_path, make, message):
    with pytest.raises(DataError, match=message) as caught:
        read(make(tmp_path))
    assert "\n" not in str(caught.value)


def test_dates_are_dates_in_every_kind_of_file(tmp_path):
    days = ["2024-05-06", "2023-01-02", None]
    rows = [json.dumps({"day": day, "width": n}) for n, day in enumerate(days)]
    lines = text(tmp_path / "a.jsonl", "\n".join(rows))
    pq.write_table(pa.table({"day": days, "width": [0, 1, 2]}), tmp_path / "a.parquet")
    table = text(tmp_path / "a.csv", "day,width\n2024-05-06,0\n2023-01-02,1\n,2")
    for path in (lines, tmp_path / "a.parquet", table):
        column = read_table(path).content.columns["day"]
        assert column.astype("datetime64[D]").astype(str).tolist() == [*days[:2], "NaT"]


def test_durations_are_seconds(tmp_path):
    spans = pa.array([timedelta(minutes=1), None], pa.duration("us"))
    pq.write_table(pa.table({"took": spans, "width": [0, 1]}), tmp_path / "a.parquet")
    column = read_table(tmp_path / "a.parquet").content.columns["took"]
    np.testing.assert_array_equal(column, [60, np.nan])
