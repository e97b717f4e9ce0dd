"""A user's files become arrays with names and labels, or one line that says why not."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from files import broken_image, class_folders, image, npy, npz, parquet, text, vectors
from s2osc.data.images import InputShape
from s2osc.data.inputs import Items, Skipped, encode_labels, open_known_and_pool, read_items
from s2osc.errors import DataError, S2OSCWarning, SettingsError

VECTORS_3 = InputShape("vectors", n_features=3)
GREY_8 = InputShape("images", height=8, width=8, channels=1)
RGB_8 = InputShape("images", height=8, width=8, channels=3)


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


def read_known_and_pool(
    known: Path, pool: Path, *, side: int | None = None, **limits: float
) -> tuple[Items, Items, InputShape]:
    opened = open_known_and_pool(known, pool, **limits)
    shape = opened.shape(side)
    return *opened.read(shape), shape


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
    assert items.names == [*("files/a.png", str(elsewhere), "files/a.png (2)", "files/a.png (3)")]
    assert items.inputs[0, 0, 0] == 7


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


# Arrays and tables


def test_vectors_come_with_their_shape(known_vectors, pool_vectors):
    items, pool_items, shape = read_known_and_pool(known_vectors, pool_vectors)
    assert items.labels == ["a", "a", "b", "b"]
    np.testing.assert_array_equal(pool_items.inputs, vectors(5))
    assert shape == InputShape("vectors", n_features=3, note="9 vectors of 3 columns")


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


def test_known_vectors_without_a_label_are_left_out_with_a_warning(tmp_path, pool_vectors):
    x = vectors(5)
    labels = ["a", "a", None, "b", "b"]
    source = parquet(tmp_path / "k.parquet", v=pa.array(x.tolist()), label=labels)
    with pytest.warns(S2OSCWarning, match="1 of 5 rows"):
        items = known_of(source, pool_vectors)
    np.testing.assert_array_equal(items.inputs, x[[0, 1, 3, 4]])


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


@pytest.mark.parametrize("limit", [float("nan"), 0, -1, float("inf")])
def test_a_limit_on_megapixels_is_a_number_above_0(known, pool, limit):
    with pytest.raises(SettingsError, match=r"--max-megapixels is .*; give a number above 0"):
        read_known_and_pool(known, pool, max_megapixels=limit)


def test_a_limit_on_megapixels_is_checked_for_vectors_too(pool_vectors):
    with pytest.raises(SettingsError, match="--max-megapixels is nan"):
        read_items(pool_vectors, like=VECTORS_3, max_megapixels=float("nan"))


def test_known_items_at_a_path_too_long_for_the_disk_are_not_there(tmp_path, pool):
    with pytest.raises(DataError, match="there is no file or folder"):
        known_of(tmp_path / ("a" * 300), pool)


def test_names_of_folders_and_files_that_are_no_utf_8_become_text(known, pool):
    image(known / os.fsdecode(b"caf\xe9") / os.fsdecode(b"t\xe9.png"))
    image(known / os.fsdecode(b"caf\xe9") / "x.png")
    items = known_of(known, pool)
    assert items.labels[:2] == ["caf\\xe9"] * 2
    assert items.names[:2] == ["caf\\xe9/t\\xe9.png", "caf\\xe9/x.png"]


def test_two_folders_for_one_class_are_refused(known, pool):
    for name in ("caf\u00e9", "cafe\u0301"):
        image(known / name / "x.png")
    with pytest.raises(DataError, match='two folders for the class "caf\u00e9"; join or rename'):
        known_of(known, pool)


BAD_POOLS = {
    "gone": (lambda p: p / "gone", "there is no file or folder .*gone"),
    "no images": (lambda p: text(p / "notes.txt", "").parent, "is empty; it holds no images"),
    "header only": (lambda p: text(p / "a.csv", "path,label"), "is empty; it holds no items"),
    "a long path": (lambda p: p / ("a" * 300), "there is no file or folder"),
    "a long path in a table": (
        lambda p: text(p / "a.csv", "path", "a" * 300),
        r"1 of the 1 images .* cannot be read \(first: a+, no such file\)|holds images",
    ),
    "a pipe": (lambda p: os.mkfifo(p / "a.csv") or p / "a.csv", "is a pipe or a device"),
    "a pipe of pixels": (lambda p: os.mkfifo(p / "a.png") or p / "a.png", "is a pipe or a device"),
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
        "found the columns path, class .rename `class` to `label` if it holds the classes.; give",
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
