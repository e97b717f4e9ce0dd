"""Columns of tables: which are used, how they become vectors, and back from JSON."""

import json
import uuid

import numpy as np
import pytest

from s2osc.codec import to_plain
from s2osc.data.columns import (
    NumberColumn,
    Table,
    TableEncoder,
    WordColumn,
    choose_columns,
    notes_on_columns,
    why_left_out,
)
from s2osc.errors import DataError

RANDOM = np.random.default_rng(0)
N = 60


def words(*values: str) -> np.ndarray:
    return np.array(values, object)


def a_table() -> Table:
    return Table(
        {
            "width": np.append(RANDOM.normal(size=N - 1), np.nan),
            "row": RANDOM.permutation(N),
            "colour": words(*["red", "blue", ""] * (N // 3)),
        }
    )


def test_numbers_are_filled_with_the_median_and_words_have_a_column_each():
    encoder = TableEncoder(
        (NumberColumn("width", 2.5),), (WordColumn("colour", ("", "blue", "red")),)
    )
    table = Table({"colour": words("red", "green", ""), "width": np.array([1, np.nan, 4])})
    assert encoder.encode(table, "a table").tolist() == [
        [1, 0, 0, 1],
        [2.5, 0, 0, 0],
        [4, 1, 0, 0],
    ]


def test_the_median_and_the_words_of_both_files_are_chosen():
    parts = [np.array([1.0, np.nan, 2.0] * 9), np.array([7.0, 7.0] * 12)]
    table, pool = (Table({"a": part, "b": words(*["x"] * len(part))}) for part in parts)
    encoder = choose_columns(table, pool)
    assert encoder == TableEncoder((NumberColumn("a", 7.0),), (WordColumn("b", ("x",)),))


def test_an_encoder_survives_json():
    encoder = choose_columns(a_table())
    again = TableEncoder.from_json(json.loads(json.dumps(to_plain(encoder))))
    assert again == encoder
    table = a_table()
    np.testing.assert_array_equal(again.encode(table, "it"), encoder.encode(table, "it"))


def test_what_is_left_out_or_filled_is_noted():
    table = a_table()
    encoder = choose_columns(table)
    assert encoder.names == ["width", "colour"]
    left_out, filled = notes_on_columns(encoder, table)
    assert left_out.startswith("not used: `row` (whole numbers that occur once each, ")
    assert "--keep-column row, or keep_columns in Python, brings it back" in left_out
    assert filled.endswith("`width` (1 of 60), `colour` (20 of 60)")
    assert choose_columns(table, keep=["row"]).names == ["width", "row", "colour"]


HOURS = np.datetime64("2024-01-01", "s") + 3600 * np.arange(N)
IDENTIFIERS = {
    "row numbers": np.arange(N),
    "row numbers as floats": np.arange(N, dtype=float),
    "ids in any order": RANDOM.permutation(10**6)[:N],
    "times in order": HOURS,
    "times in order, two of each": np.sort(np.append(HOURS[::2], HOURS[::2])),
    "seconds that rise": np.cumsum(RANDOM.random(N)),
    "UUIDs": words(*(str(uuid.UUID(int=n)) for n in range(N))),
    "names": words(*(f"name {n}" for n in range(N))),
    "sentences": words(*(f"this is sentence {n}" for n in range(N))),
    "nothing": np.full(N, np.nan),
    "no words": words(*[""] * N),
}


@pytest.mark.parametrize("values", IDENTIFIERS.values(), ids=IDENTIFIERS)
def test_a_column_that_names_its_row_is_left_out(values):
    assert why_left_out([values])
    assert why_left_out([values[:30], values[30:]])


def test_sentences_are_pointed_to_the_option_for_texts():
    assert "--text-column" in why_left_out([IDENTIFIERS["sentences"]])


MEASURES = {
    "a measure": RANDOM.normal(size=N),
    "counts": RANDOM.integers(0, 30, N),
    "the same everywhere": np.ones(N),
    "dates in no order": RANDOM.permutation(HOURS),
    "words": words(*["red", "blue"] * 30),
    "words, a few of which are rare": words(*["red", "blue"] * 25, *map(str, range(10))),
    "few rows": np.arange(9),
}


@pytest.mark.parametrize("values", MEASURES.values(), ids=MEASURES)
def test_a_column_that_measures_something_is_used(values):
    assert why_left_out([values]) == ""


def test_ten_thousand_words_get_no_columns_unless_they_are_wanted():
    many = words(*(f"w{n}" for n in range(10_000)))
    table = Table({"many": many, "few": words(*["a", "b"] * 5_000)})
    assert choose_columns(table).n_features == 2
    assert choose_columns(table, keep=["many"]).n_features == 102


def test_dates_are_days():
    encoder = TableEncoder((NumberColumn("day", 0.0),), ())
    days = np.array(["1970-01-03", "NaT"], "datetime64[s]")
    assert encoder.encode(Table({"day": days}), "it").tolist() == [[2], [0]]


def test_rows_are_told_in_words():
    table = Table(
        {
            "width": np.array([1.5, np.nan]),
            "day": np.array(["2024-05-06", "NaT"], "datetime64[s]"),
            "colour": words("red", ""),
        }
    )
    assert table.in_words() == [
        "width 1.5, day 2024-05-06, colour red",
        "width –, day –, colour –",
    ]


def test_tables_that_cannot_be_used_are_one_line():
    encoder = choose_columns(a_table())
    with pytest.raises(DataError, match="X lacks columns that are used: colour; found: width"):
        encoder.encode(Table({"width": np.ones(2)}), "X")
    with pytest.raises(DataError, match="holds other values than words in the column `colour`"):
        encoder.encode(Table({"width": np.ones(2), "colour": np.ones(2)}), "X")
    with pytest.raises(DataError, match=r"no column can be used: `row` \(whole numbers"):
        choose_columns(Table({"row": np.arange(N)}))
    with pytest.raises(DataError, match="'gone' that is to be kept is not there; found: width"):
        choose_columns(a_table(), keep=["gone"])
    with pytest.raises(
        DataError,
        match=r"`a` holds numbers \(such as 1.0\) in one file and words \(such as 'x'\) in",
    ):
        choose_columns(Table({"a": np.ones(3)}), Table({"a": words("x", "y")}))


GOOD = to_plain(choose_columns(a_table()))


@pytest.mark.parametrize(
    "entry",
    [
        None,
        {},
        GOOD | {"run": "rm"},
        GOOD | {"numbers": [], "words": []},
        GOOD | {"numbers": [{"name": "a", "fill": "0"}]},
        GOOD | {"numbers": [{"name": "a", "fill": 1e30}]},
        GOOD | {"numbers": [{"name": "colour", "fill": 0.0}]},
        GOOD | {"words": [{"name": "a", "words": []}]},
        GOOD | {"words": [{"name": "a", "words": ["y", "x"]}]},
        GOOD | {"words": [{"name": "a", "words": ["x" * 10_000]}]},
    ],
)
def test_an_encoder_that_a_stranger_wrote_is_checked(entry):
    with pytest.raises(ValueError, match="the table"):
        TableEncoder.from_json(entry)


def test_a_column_that_is_empty_in_one_file_is_left_out():
    full = {"width": np.arange(60.0) % 7, "colour": words(*["red", "blue"] * 30)}
    empty = full | {"colour": np.full(60, np.nan)}
    encoder = choose_columns(Table(full), Table(empty))
    assert encoder.left_out == {"colour": "it is empty in one of the files"}
    assert choose_columns(Table(full), Table(empty), keep=["colour"]).names == ["width", "colour"]


def test_an_item_may_lack_what_a_column_holds():
    encoder = choose_columns(a_table())
    nothing = np.full(1, np.nan)
    lacking = encoder.encode(Table({"width": words(""), "colour": nothing}), "it")
    written = encoder.encode(Table({"width": nothing, "colour": words("")}), "it")
    np.testing.assert_array_equal(lacking, written)


@pytest.mark.parametrize(
    ("cell", "why"), [("{0}.5", "numbers that are written"), ("{0:02}.12.2024", "like 2024-12-31")]
)
def test_numbers_and_dates_that_came_as_words_are_called_so(cell, why):
    assert why in why_left_out([words(*(cell.format(n) for n in range(1, 60)))])


def test_dates_in_one_file_and_numbers_in_the_other_are_refused():
    dates = {"when": np.datetime64("2024-01-01", "s") + np.arange(3)}
    with pytest.raises(DataError, match=r"dates \(such as 2024-01-01\) in one file and numbers"):
        choose_columns(Table(dates), Table({"when": np.arange(3)}))
