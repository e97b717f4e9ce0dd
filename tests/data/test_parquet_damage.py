"""Numbers of a Parquet file that are not those written, where no checksum tells."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from s2osc.data import parts
from s2osc.data.parquet_damage import lost_run, number_columns
from s2osc.data.parts import open_parts
from s2osc.data.tables import read_table
from s2osc.errors import DataError

BLOCK = 4_096
VECTORS = np.random.default_rng(0).normal(size=(1_200, 32)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "ROWS_OF_PART", dict.fromkeys(parts.ROWS_OF_PART, 400))
    monkeypatch.setattr(parts, "BATCH_ROWS", dict.fromkeys(parts.BATCH_ROWS, 150))


def write_vectors(path, vectors=VECTORS, **settings):
    column = pa.array(vectors.tolist(), pa.list_(pa.float32()))
    pq.write_table(pa.table({"v": column}), path, row_group_size=400, **settings)
    return path


def with_bytes(path, content, place):
    """The file with other bytes in one place."""
    whole = bytearray(path.read_bytes())
    whole[place : place + len(content)] = content
    path.write_bytes(whole)


def place_of(path, number):
    """Where a number of four bytes stands in a file that is not compressed."""
    return path.read_bytes().index(np.float32(number).tobytes())


def refuse(path, words):
    """By parts, and as one table."""
    for read in (lambda: open_parts(path).whole(), lambda: read_table(path)):
        with pytest.raises(DataError, match=words):
            read()


@pytest.mark.parametrize("settings", [{}, {"compression": "none", "use_dictionary": False}])
def test_zeros_in_place_of_a_lost_block_are_found(tmp_path, settings):
    path = write_vectors(tmp_path / "a.parquet", **settings)
    place = place_of(path, VECTORS[410, 5])
    with_bytes(path, bytes(BLOCK), place)
    assert not pq.read_table(path).equals(pq.read_table(write_vectors(tmp_path / "b.parquet")))
    refuse(
        path, r"a\.parquet cannot be read \(row group 1 is damaged: from its row 10 on, `v` hold"
    )


def test_numbers_beyond_those_that_the_footer_tells_of_are_found(tmp_path):
    path = write_vectors(tmp_path / "a.parquet", compression="none", use_dictionary=False)
    with_bytes(path, np.float32(1_000).tobytes(), place_of(path, VECTORS[900, 3]))
    refuse(path, r"row group 2 is damaged: `v` holds -\S+ to 1000, but -\S+ to \S+ was written")


def test_a_largest_number_that_is_missing_is_found_in_columns(tmp_path):
    path, numbers = tmp_path / "a.parquet", np.linspace(1, 2, 500, dtype=np.float32)
    table = pa.table({"name": [str(n) for n in range(500)], "a": numbers, "b": numbers[::-1]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    refused = pq.read_table(path)["b"].to_numpy()
    with_bytes(path, bytes(64), path.read_bytes().index(numbers[::-1][480:].tobytes()))
    assert not np.array_equal(pq.read_table(path)["b"].to_numpy(), refused)
    refuse(path, r"row group 0 is damaged: `b` holds 0 to 2, but 1 to 2 was written")


def zeros_at_the_ends():
    """Every vector begins and ends with zeros, as spectra do."""
    return np.pad(VECTORS, ((0, 0), (40, 40)))


def empty_items():
    vectors = VECTORS.copy()
    vectors[300:340] = 0
    return vectors


def a_part_that_is_missing_of_some():
    vectors = np.tile(VECTORS, 8)
    vectors[[7, 500, 900], 100:] = 0
    vectors[[8, 901], 20:150] = 0
    return vectors


@pytest.mark.parametrize(
    "vectors",
    [
        VECTORS,
        np.maximum(VECTORS, 0),
        np.where(VECTORS > 1, np.nan, VECTORS),
        zeros_at_the_ends(),
        zeros_at_the_ends()[:3],
        empty_items(),
        a_part_that_is_missing_of_some(),
        np.zeros_like(VECTORS),
    ],
)
def test_numbers_as_they_were_written_are_no_damage(tmp_path, vectors):
    path = write_vectors(tmp_path / "a.parquet", vectors)
    if not np.isnan(vectors).any():  # which the reader refuses, whatever wrote it
        assert len(open_parts(path).whole().names) == len(vectors)
    check_alone(path)


def check_alone(path):
    parquet = pq.ParquetFile(path)
    check = parts.DamageCheck(parquet, range(parquet.metadata.num_row_groups))
    for batch in parquet.iter_batches(130):
        check.see(batch)
    assert not check.groups


@pytest.mark.parametrize(
    "column",
    [
        pa.array([2**63 - 1, 5, None]),
        pa.array([2**64 - 1, 0, 3], pa.uint64()),
        pa.array(np.array([1, 2, 3], np.float16)),
        pa.array([[1, 2], [], None], pa.list_(pa.int32())),
        pa.array([[[1.0]], [[2.0, 3.0]], []]),
        pa.array([{"a": 1.0, "b": [1]}, {"a": -2.0, "b": []}, None]),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([-0.0, 0.0, np.nan]),
        pa.array([None, None, None], pa.float32()),
        pa.array([], pa.float32()),
    ],
    ids=lambda column: str(column.type),
)
def test_columns_of_any_type_pass_with_numbers_behind_them(tmp_path, column):
    table = pa.table({"any": column, "n": pa.array(range(len(column)), pa.int64())})
    for settings in ({}, {"write_statistics": False}):
        pq.write_table(table, tmp_path / "a.parquet", **settings)
        check_alone(tmp_path / "a.parquet")


def test_leaves_are_counted_behind_nested_columns():
    nested = pa.struct({"a": pa.float32(), "b": pa.map_(pa.string(), pa.int32())})
    schema = pa.schema({"s": nested, "v": pa.list_(pa.float32(), 3), "text": pa.string()})
    (found,) = number_columns(schema)
    assert found == (1, 3, "v")


def test_a_run_that_ends_with_an_item_is_as_it_was_measured():
    numbers = np.arange(6_400.0)
    numbers[150:300] = 0
    assert lost_run(numbers, 100) is None
    numbers[300:310] = 0
    assert lost_run(numbers, 100) == slice(150, 310)
