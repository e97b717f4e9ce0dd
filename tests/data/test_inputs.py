"""A user's files become arrays with names and labels, or one line that says why not."""

import struct
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from s2osc.data.images import InputShape
from s2osc.data.inputs import Items, Skipped, encode_labels, read_items, read_known_and_pool
from s2osc.errors import DataError, S2OSCWarning

VECTORS_3 = InputShape("vectors", n_features=3)
GREY_8 = InputShape("images", height=8, width=8, channels=1)
RGB_8 = InputShape("images", height=8, width=8, channels=3)


def image(path: Path, value: int = 0, size: tuple[int, int] = (8, 8), mode: str = "L") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, value).save(path)
    return path


def broken_image(path: Path) -> Path:
    noise = np.random.default_rng(0).integers(0, 256, (8, 8), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[:60])
    return path


def class_folders(root: Path, **n_images: int) -> Path:
    for name, count in n_images.items():
        for index in range(count):
            image(root / name / f"{index}.png", value=10 * index)
    return root


def vectors(n: int = 4, width: int = 3) -> np.ndarray:
    return np.arange(n * width, dtype=np.float32).reshape(n, width) / 8


def npz(path: Path, **arrays: object) -> Path:
    np.savez(path, **arrays)
    return path


def npy(path: Path, array: np.ndarray) -> Path:
    np.save(path, array)
    return path


def parquet(path: Path, /, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def text(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def known(tmp_path) -> Path:
    return class_folders(tmp_path / "known", cat=2, dog=3)


@pytest.fixture
def pool(tmp_path) -> Path:
    return class_folders(tmp_path / "pool", any=3)


@pytest.fixture
def known_vectors(tmp_path) -> Path:
    return npz(tmp_path / "known.npz", x=vectors(4), y=["a", "a", "b", "b"])


@pytest.fixture
def pool_vectors(tmp_path) -> Path:
    return npy(tmp_path / "pool.npy", vectors(5))


def known_of(source: Path, pool: Path) -> Items:
    return read_known_and_pool(source, pool)[0]


# Folders


def test_a_folder_per_class_gives_names_labels_and_pixels(known, pool):
    image(known / "cat" / "deep" / "x.png", value=99)
    items, pool_items, shape = read_known_and_pool(known, pool)
    assert items.names == [
        *("cat/0.png", "cat/1.png", "cat/deep/x.png", "dog/0.png", "dog/1.png", "dog/2.png")
    ]
    assert items.labels == ["cat"] * 3 + ["dog"] * 3
    assert items.inputs[:, 0, 0].tolist() == [0, 10, 99, 0, 10, 20]
    assert (len(pool_items), pool_items.labels, pool_items.skipped) == (3, None, [])
    assert shape.note == "9 images of 8x8, kept at that size, grey"


def test_the_shape_is_chosen_over_known_and_pool_together(known, tmp_path):
    pool = image(tmp_path / "pool" / "large.png", size=(100, 90), mode="RGB").parent
    items, pool_items, shape = read_known_and_pool(known, pool, side=24)
    assert items.inputs.shape == (5, 24, 24, 3)
    assert pool_items.inputs.shape == (1, 24, 24, 3)
    assert shape.note == "6 images of 2 sizes, 8x8 to 100x90, brought to 24x24 RGB"


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]),
            st.integers(1, 90),
            st.integers(1, 90),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_mixture_of_modes_and_sizes_ends_in_one_shape(known, tmp_path_factory, mixture):
    folder = tmp_path_factory.mktemp("mixture")
    for index, (mode, width, height) in enumerate(mixture):
        image(folder / f"{index}.png", size=(width, height), mode=mode)
    items, pool_items, shape = read_known_and_pool(known, folder)
    assert items.inputs.shape == (5, *shape.item_shape)
    assert pool_items.inputs.shape == (len(mixture), *shape.item_shape)
    assert shape.channels == (3 if {"P", "RGB", "RGBA"} & {mode for mode, *_ in mixture} else 1)


def test_images_beside_the_class_folders_are_left_out_with_a_warning(known, pool):
    image(known / "stray.png")
    with pytest.warns(S2OSCWarning, match=r"outside the class folders .* \(1, first: stray\.png\)"):
        assert len(known_of(known, pool)) == 5


# Images that cannot be read


def test_a_broken_image_is_skipped_and_named(known, pool):
    broken_image(pool / "any" / "1.png")
    (known / "dog" / "x.png").write_text("text")
    items, pool_items, _ = read_known_and_pool(known, pool)
    assert items.skipped == [Skipped("dog/x.png", "not an image of a known format")]
    assert pool_items.names == ["any/0.png", "any/2.png"]
    assert [item.name for item in pool_items.skipped] == ["any/1.png"]
    assert pool_items.inputs[:, 0, 0].tolist() == [0, 20]


def test_more_broken_images_than_readable_ones_are_an_error(known, pool):
    broken_image(pool / "any" / "0.png")
    broken_image(pool / "any" / "2.png")
    with pytest.raises(
        DataError, match=r"2 of the 3 images of .*pool cannot be read \(first: any/0"
    ):
        read_known_and_pool(known, pool)


def test_a_class_left_with_one_item_after_skipping_is_an_error(known, pool):
    broken_image(known / "cat" / "0.png")
    with pytest.raises(DataError, match=r'class "cat" .* has 1 item and 1 that cannot be read'):
        read_known_and_pool(known, pool)


def test_a_class_left_with_nothing_after_skipping_is_an_error(known, pool):
    broken_image(known / "cat" / "0.png")
    (known / "cat" / "1.png").write_text("text")
    with pytest.raises(DataError, match=r'class "cat" .* has no items and 2 that cannot be read'):
        read_known_and_pool(known, pool)


def test_the_limit_on_megapixels_names_the_file(known, pool):
    with pytest.raises(DataError, match=r"cat/0\.png has 0\.0 megapixels, above .* of 5e-05"):
        read_known_and_pool(known, pool, max_megapixels=5e-5)


# Manifests


def test_a_manifest_finds_files_beside_it_and_keeps_labels_as_written(tmp_path, pool):
    image(tmp_path / "files" / "a.png", value=7)
    elsewhere = image(tmp_path / "elsewhere" / "b.png")
    lines = ["path,label", "files/a.png,03", f"{elsewhere},03", "files/a.png,3", "files/a.png,3"]
    items = known_of(text(tmp_path / "known.csv", *lines), pool)
    assert items.labels == ["03", "03", "3", "3"]
    assert items.names == ["files/a.png", str(elsewhere), "files/a.png", "files/a.png"]
    assert items.inputs[0, 0, 0] == 7


@pytest.mark.parametrize("header", ["\ufeffPath; Label ;note", "path\tlabel\tnote"])
def test_other_delimiters_a_byte_order_mark_and_more_columns_are_understood(tmp_path, pool, header):
    image(tmp_path / "a.png")
    mark = ";" if ";" in header else "\t"
    rows = [mark.join(["a.png", label, note]) for label, note in zip("aabb", "1xyz", strict=True)]
    assert known_of(text(tmp_path / "k.csv", header, *rows), pool).labels == ["a", "a", "b", "b"]


def test_a_parquet_manifest_reads_like_a_csv_one(tmp_path, pool):
    image(tmp_path / "a.png")
    source = parquet(tmp_path / "known.parquet", path=["a.png"] * 4, label=[1, 1, 2, 2])
    assert known_of(source, pool).labels == ["1", "1", "2", "2"]


def test_rows_without_a_label_are_left_out_of_the_known_items_with_a_warning(tmp_path, pool):
    image(tmp_path / "a.png")
    rows = ["a.png,x", "a.png,", "a.png,x", "a.png,y", "a.png,y"]
    source = text(tmp_path / "known.csv", "path,label", *rows)
    with pytest.warns(S2OSCWarning, match="1 of 5 rows have no label and are left out"):
        assert known_of(source, pool).labels == ["x", "x", "y", "y"]


def test_a_manifest_of_the_pool_gives_truth_where_it_has_it(tmp_path, known):
    image(tmp_path / "a.png")
    source = text(tmp_path / "pool.csv", "path,label", "a.png,unknown", "a.png,")
    assert read_known_and_pool(known, source)[1].labels == ["unknown", ""]


def test_rows_whose_file_is_gone_are_skipped(tmp_path, known):
    image(tmp_path / "a.png")
    source = text(tmp_path / "pool.csv", "path", "a.png", "gone.png")
    pool_items = read_known_and_pool(known, source)[1]
    assert pool_items.names == ["a.png"]
    assert pool_items.skipped == [Skipped("gone.png", "no such file")]


# Arrays


def test_vectors_in_npz_and_npy_keep_their_rows(known_vectors, pool_vectors):
    items, pool_items, shape = read_known_and_pool(known_vectors, pool_vectors)
    assert items.labels == ["a", "a", "b", "b"]
    assert pool_items.names == ["0", "1", "2", "3", "4"]
    np.testing.assert_array_equal(pool_items.inputs, vectors(5))
    assert shape == InputShape("vectors", n_features=3, note="9 vectors of 3 columns")


@pytest.mark.parametrize(
    ("arrays", "labels"),
    [
        ({"y": [3, 3, 10, 10]}, ["3", "3", "10", "10"]),
        ({"y": np.array([1.0, 1.0, 2.0, 2.0])}, ["1", "1", "2", "2"]),
        ({"y": np.array([b"a", b"a", b"b", b"b"])}, ["a", "a", "b", "b"]),
        ({"y": [1, 1, 0, 0], "classes": ["ant", "bee", "fly"]}, ["bee", "bee", "ant", "ant"]),
    ],
)
def test_labels_of_arrays_are_names_or_index_the_classes(tmp_path, pool_vectors, arrays, labels):
    assert known_of(npz(tmp_path / "k.npz", x=vectors(), **arrays), pool_vectors).labels == labels


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int64, np.uint8, bool])
def test_arrays_with_two_axes_become_float32_vectors(tmp_path, dtype):
    inputs = read_items(npy(tmp_path / "a.npy", np.ones((2, 3), dtype)), like=VECTORS_3).inputs
    assert inputs.dtype == np.float32
    assert (inputs == 1).all()


@pytest.mark.parametrize("shape", [(2, 8, 8), (2, 8, 8, 1)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int64])
def test_arrays_of_grey_images_lose_an_empty_axis_and_wide_integers(tmp_path, shape, dtype):
    items = read_items(npy(tmp_path / "a.npy", np.full(shape, 255, dtype)), like=GREY_8)
    assert (items.inputs.shape, items.inputs.dtype) == ((2, 8, 8), np.uint8)
    assert (items.inputs == 255).all()


def test_grey_arrays_and_colour_files_meet_in_rgb(tmp_path):
    grey = np.full((4, 20, 20), 50, dtype=np.uint8)
    known = npz(tmp_path / "known.npz", x=grey, y=[0, 0, 1, 1])
    pool = image(tmp_path / "pool" / "a.png", size=(20, 20), mode="RGB").parent
    items, pool_items, shape = read_known_and_pool(known, pool)
    assert shape.item_shape == (20, 20, 3)
    assert (items.inputs == 50).all()
    assert pool_items.inputs.shape == (1, 20, 20, 3)


def test_the_pool_may_bring_its_truth(tmp_path, known_vectors):
    source = npz(tmp_path / "p.npz", x=vectors(2), y=[1, 0], classes=["a", "new"])
    assert read_known_and_pool(known_vectors, source)[1].labels == ["new", "a"]


# Tables of vectors


@pytest.mark.parametrize("kind", [pa.list_(pa.float32()), pa.list_(pa.float64(), 3)])
def test_a_column_of_lists_is_a_table_of_vectors(tmp_path, kind):
    column = pa.array(vectors(4).tolist(), type=kind)
    source = parquet(tmp_path / "a.parquet", v=column, item=list("wxyz"), split=["train"] * 4)
    items = read_items(source, like=VECTORS_3)
    assert items.names == ["w", "x", "y", "z"]
    np.testing.assert_array_equal(items.inputs, vectors(4))


def test_lists_in_several_row_groups_stay_in_order(tmp_path):
    table = pa.table({"v": pa.array(vectors(7).tolist(), type=pa.list_(pa.float32(), 3))})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    items = read_items(tmp_path / "a.parquet", like=VECTORS_3)
    np.testing.assert_array_equal(items.inputs, vectors(7))


def test_numeric_columns_are_features_but_ids_labels_and_row_numbers_are_not(tmp_path):
    a, b, c = vectors(2).T
    columns = {"id": [7, 8], "a": a, "b": b, "Label": [0, 1], "c": c, "__index_level_0__": [5, 6]}
    items = read_items(parquet(tmp_path / "a.parquet", **columns), like=VECTORS_3)
    np.testing.assert_array_equal(items.inputs, vectors(2))
    assert (items.names, items.labels) == (["7", "8"], ["0", "1"])


def test_known_vectors_without_a_label_are_left_out_with_a_warning(tmp_path, pool_vectors):
    x = vectors(5)
    labels = ["a", "a", None, "b", "b"]
    source = parquet(tmp_path / "k.parquet", v=pa.array(x.tolist()), label=labels)
    with pytest.warns(S2OSCWarning, match="1 of 5 rows"):
        items = known_of(source, pool_vectors)
    np.testing.assert_array_equal(items.inputs, x[[0, 1, 3, 4]])


@pytest.mark.parametrize(
    "lines",
    [
        ["a,b,c,label,item", "0,0.125,0.25,03,x", "0.375,0.5,0.625,,y"],
        [",0,1,2,label,item", "0,0,0.125,0.25,03,x", "1,0.375,0.5,0.625,,y"],
    ],
)
def test_a_csv_of_numbers_is_a_table_of_vectors(tmp_path, lines):
    items = read_items(text(tmp_path / "a.csv", *lines), like=VECTORS_3)
    np.testing.assert_array_equal(items.inputs, vectors(2))
    assert (items.names, items.labels) == (["x", "y"], ["03", ""])


def test_a_csv_of_numbers_without_a_header_loses_no_row(tmp_path):
    np.savetxt(tmp_path / "a.csv", vectors(4), delimiter=",")
    np.testing.assert_array_equal(read_items(tmp_path / "a.csv", like=VECTORS_3).inputs, vectors(4))


def test_a_csv_column_may_start_with_many_whole_numbers(tmp_path):
    lines = ["a,b,c"] + ["0,0,0"] * 300_000 + ["0.5,1,1"]
    inputs = read_items(text(tmp_path / "a.csv", *lines), like=VECTORS_3).inputs
    assert inputs[-1].tolist() == [0.5, 1, 1]


# Items for a trained model


def test_items_come_to_the_shape_of_the_model(tmp_path):
    folder = image(tmp_path / "items" / "a.png", value=30, size=(50, 40)).parent
    image(folder / "b.png", size=(8, 8), mode="RGB")
    assert read_items(folder, like=RGB_8).inputs.shape == (2, 8, 8, 3)
    assert read_items(folder, like=GREY_8).inputs.shape == (2, 8, 8)


def test_a_single_image_is_one_item(tmp_path):
    assert read_items(image(tmp_path / "a.png"), like=GREY_8).names == ["a.png"]


def test_items_of_another_kind_or_width_than_the_model_are_refused(tmp_path, pool_vectors, pool):
    with pytest.raises(DataError, match="holds images, the model was trained on vectors"):
        read_items(pool, like=VECTORS_3)
    with pytest.raises(DataError, match="has 3 columns, the model was trained on 512"):
        read_items(pool_vectors, like=InputShape("vectors", n_features=512))


# What cannot be used


def object_array(tmp_path: Path) -> Path:
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return tmp_path / "a.npy"


def truncated(path: Path) -> Path:
    path.write_bytes(path.read_bytes()[:-40])
    return path


def forged_npy(path: Path) -> Path:
    """An array of two values whose header claims far more than any machine holds."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 300), }\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(8))
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


BAD_POOLS = {
    "gone": (lambda p: p / "gone", "there is no file or folder .*gone"),
    "no images": (lambda p: text(p / "notes.txt", "").parent, "is empty; it holds no images"),
    "no rows": (lambda p: npy(p / "a.npy", np.zeros((0, 3))), r"is empty; .* shape \(0, 3\)"),
    "no columns": (lambda p: npy(p / "a.npy", np.zeros((3, 0))), "is empty"),
    "header only": (lambda p: text(p / "a.csv", "path,label"), "is empty; it holds no items"),
    "empty csv": (lambda p: text(p / "a.csv"), "cannot be read as a CSV file"),
    "no bytes": (lambda p: (p / "a.csv").write_bytes(b"") or p / "a.csv", "as a CSV file"),
    "NaN": (
        lambda p: npy(p / "a.npy", np.full((2, 3), np.nan)),
        "NaN or infinite values in 2 of 2",
    ),
    "too large": (lambda p: npy(p / "a.npy", np.full((2, 3), 1e200)), "NaN or infinite"),
    "both infinities": (lambda p: npy(p / "a.npy", np.array([[np.inf, -np.inf, 0]])), "infinite"),
    "NaN in csv": (
        lambda p: text(p / "a.csv", "a,b,c", "1,,2"),
        "NaN or infinite values in 1 of 1",
    ),
    "null in parquet": (
        lambda p: parquet(p / "a.parquet", a=[1, None], b=[1, 2], c=[1, 2]),
        "NaN or infinite values in 1 of 2",
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
    "pickled": (object_array, "cannot be read as a .npy or .npz file"),
    "truncated npy": (
        lambda p: truncated(npy(p / "a.npy", vectors(40))),
        "cannot be read as a .npy",
    ),
    "truncated npz": (
        lambda p: truncated(npz(p / "a.npz", x=vectors(40))),
        "cannot be read as a .n",
    ),
    "damaged npz": (lambda p: npz_with_damage(p / "a.npz"), "cannot be read as a .npy or .npz"),
    "text in npz": (lambda p: zip_of_text(p / "a.npz"), "cannot be read as .* is no array"),
    "forged npy": (lambda p: forged_npy(p / "a.npy"), "cannot be read as a .npy"),
    "text as npy": (lambda p: text(p / "a.npy", "hello"), "cannot be read as a .npy"),
    "text as parquet": (lambda p: text(p / "a.parquet", "hello"), "cannot be read as a Parquet"),
    "truncated parquet": (
        lambda p: truncated(parquet(p / "a.parquet", a=[1.0])),
        "cannot be read as a Parquet file",
    ),
    "bytes as csv": (
        lambda p: (p / "a.csv").write_bytes(b"\xff\xfe\x00p") and p / "a.csv",
        "cannot be read as a CSV file .*; save it as UTF-8 text",
    ),
    "latin 1 csv": (
        lambda p: (p / "a.csv").write_bytes(b"path\ncaf\xe9.png\n") and p / "a.csv",
        "cannot be read as a CSV file",
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
    "no path column": (
        lambda p: text(p / "a.csv", "file,class", "a.png,cat"),
        "found the columns file, class; give `path`",
    ),
    "text column": (
        lambda p: parquet(p / "a.parquet", file=["a.png"], size=[3]),
        "has the columns file, size; give `path`",
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
    "another suffix": (lambda p: text(p / "a.xlsx", "a"), r"a\.xlsx is not read; give a folder"),
    "images for vectors": (
        lambda p: image(p / "a.png"),
        "the pool holds images, the known items hold vectors",
    ),
    "another width": (
        lambda p: npy(p / "a.npy", vectors(2, 5)),
        "the pool has 5 columns, the known items 3",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_POOLS.values(), ids=BAD_POOLS)
def test_a_pool_that_cannot_be_used_is_one_line(tmp_path, known_vectors, make, message):
    folder = tmp_path / "bad"
    folder.mkdir()
    with pytest.raises(DataError, match=message) as caught:
        read_known_and_pool(known_vectors, make(folder))
    assert "\n" not in str(caught.value)


BAD_KNOWN = {
    "gone": (lambda p: p / "gone", "there is no file or folder"),
    "no class folders": (lambda p: image(p / "k" / "a.png").parent, "holds no folders"),
    "one class": (
        lambda p: class_folders(p / "k", cat=3),
        'only the class "cat"; give at least two',
    ),
    "one item": (lambda p: class_folders(p / "k", cat=3, dog=1), 'class "dog" of .* has 1 item;'),
    "an empty class": (
        lambda p: (p / "k" / "dog").mkdir(parents=True) or class_folders(p / "k", cat=3, cow=2),
        'class "dog" of .* has no items; give at least two',
    ),
    "reserved": (
        lambda p: class_folders(p / "k", cat=3, Unknown=2),
        'a class called "Unknown"; that name is reserved',
    ),
    "class without a name": (
        lambda p: npz(p / "k.npz", x=vectors(4), y=["", "", "b", "b"]),
        'a class called ""; that name is reserved',
    ),
    "npy": (lambda p: npy(p / "k.npy", vectors()), "holds no labels; found an array `x` only"),
    "no label column": (
        lambda p: text(p / "k.csv", "path,class", "a.png,cat"),
        "holds no labels; found the columns path, class; give",
    ),
    "no label at all": (
        lambda p: text(p / "k.csv", "path,label", "a.png,", "b.png,"),
        "holds no labels; found the columns path, label",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_KNOWN.values(), ids=BAD_KNOWN)
def test_known_items_that_cannot_be_used_are_one_line(tmp_path, pool, make, message):
    with pytest.raises(DataError, match=message) as caught:
        read_known_and_pool(make(tmp_path), pool)
    assert "\n" not in str(caught.value)


# Classes


def test_class_names_that_are_numbers_sort_as_numbers_and_before_words():
    codes, classes = encode_labels(["b", "10", "9", "-1", "03", "3", "2.5"])
    assert classes == ("-1", "2.5", "03", "3", "9", "10", "b")
    assert [classes[code] for code in codes] == ["b", "10", "9", "-1", "03", "3", "2.5"]


@given(st.lists(st.text("019.-ab", max_size=3), min_size=1))
def test_codes_and_classes_give_the_labels_back(labels):
    codes, classes = encode_labels(labels)
    assert [classes[code] for code in codes] == labels
    assert sorted(set(labels)) == sorted(classes)
