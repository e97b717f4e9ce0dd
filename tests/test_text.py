"""Text enters once, and comes back from a spreadsheet as what it was."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import DataError
from s2osc.text import (
    check_name,
    clean_items,
    clean_name,
    clean_text,
    csv_cell,
    from_csv_cell,
    listed,
    match_ids,
)

ANY_TEXT = st.text(st.characters())  # lone surrogates too
FORMULAS = st.builds(
    str.__add__, st.sampled_from(["=", "+", "-", "@", "\t", "\r", "'", "'="]), ANY_TEXT
)


@given(ANY_TEXT | st.binary())
def test_clean_text_fits_on_a_line_of_utf_8_and_stays_as_it_is(value):
    text = clean_text(value)
    assert text.encode().decode() == text
    assert len(text.splitlines()) <= 1
    assert clean_text(text) == text


@given(ANY_TEXT | st.binary())
def test_a_clean_name_stays_as_it_is(value):
    assert clean_name(clean_name(value)) == clean_name(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (b"caf\xe9", "caf\\xe9"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud800", "\\ud800"),
        (" cat ", "cat"),
        ("two\nlines\x00", "two\\nlines\\x00"),
        ("Löwe 猫 👩‍🚀", "Löwe 猫 👩‍🚀"),
    ],
)
def test_what_is_no_text_is_escaped_and_text_is_left_alone(value, text):
    assert clean_text(value) == clean_name(value) == text


def test_a_class_is_the_same_however_its_accents_are_stored():
    assert clean_name("cafe\u0301") == clean_name("caf\u00e9")


@pytest.mark.parametrize("value", ["", "  ", b"\t"])
def test_a_class_without_a_name_is_refused(value):
    with pytest.raises(DataError, match="the new name is empty; give a name"):
        check_name(value, "the new name")


@given(st.lists(st.text("ab() 12", max_size=5)))
def test_every_item_has_a_name_of_its_own(names):
    cleaned = clean_items(names)
    assert len(set(cleaned)) == len(names)
    assert all(cleaned)
    once = [name.strip() for name in names if [n.strip() for n in names].count(name.strip()) == 1]
    assert set(once) - {""} <= set(cleaned)


def test_items_that_only_cleaning_makes_equal_stay_two():
    assert clean_items(["a\udce9", "a\\xe9"]) == ["a\\xe9", "a\\xe9 (2)"]


# Cells


@given(ANY_TEXT | FORMULAS)
def test_a_cell_is_read_back_as_the_text_it_was_made_of(text):
    assert from_csv_cell(csv_cell(text)) == text


@given(FORMULAS)
def test_no_cell_begins_like_a_formula_unless_it_is_a_number(text):
    cell = csv_cell(text)
    if cell[0] in "=+-@\t\r":
        float(cell)


@pytest.mark.parametrize("text", ["-5", "+1.5e3", "cat", "'tis", "", "a=b"])
def test_harmless_cells_are_written_as_they_are(text):
    assert csv_cell(text) == from_csv_cell(text) == text


@given(st.lists(FORMULAS.map(clean_text), min_size=1))
def test_cells_survive_a_csv_file(texts):
    file = io.StringIO(newline="")
    csv.writer(file).writerow([csv_cell(text) for text in texts])
    row = next(csv.reader(io.StringIO(file.getvalue(), newline="")), [])
    assert [from_csv_cell(cell) for cell in row] == texts


# Ids


@pytest.mark.parametrize(
    ("returned", "wanted"),
    [
        ("12", "00012"),
        ("12.0", "12"),
        ("1.2E+01", "12"),
        ("1,200", "1200"),
        ("1 200", "001200"),
        ("4.00638E+12", "4006381333931"),
        ("5", "+5"),
        (" a.png", "a.png"),
        ("cafe\u0301", "caf\u00e9"),
        ("007", "007"),
    ],
)
def test_an_id_is_known_again_after_a_spreadsheet_has_changed_it(returned, wanted):
    assert match_ids([returned], ["999", wanted, "b.png"]) == {returned: wanted}


@pytest.mark.parametrize("returned", ["13", "x", "", "1,2", "1e999", "9" * 5000, "nan"])
def test_an_id_that_means_no_item_is_left_out(returned):
    assert match_ids([returned, "b"], ["00012", "b"]) == {"b": "b"}


def test_the_same_text_comes_before_the_same_number():
    ids = ["12", "012", "0012"]
    assert match_ids(ids, ids) == {name: name for name in ids}
    assert match_ids(["12", "012"], ["012"]) == {"012": "012"}


@pytest.mark.parametrize("wanted", [["012", "0012"], ["12", "012"]])
def test_an_id_that_may_mean_two_items_is_refused(wanted):
    with pytest.raises(DataError, match=r"the item '12' may be '0?12', '0+12': a spreadsheet has"):
        match_ids(["12"], wanted)


def test_two_ids_that_may_mean_one_item_are_refused():
    with pytest.raises(DataError, match=r"'12' and '12\.0' may both be the item '012'"):
        match_ids(["12", "12.0"], ["012"])


def test_long_numbers_with_the_same_first_digits_are_refused():
    with pytest.raises(DataError, match=r"'4\.00638E\+12' may be"):
        match_ids(["4.00638E+12"], ["4006381333931", "4006381333948"])


@given(st.dictionaries(st.integers(0, 999_999), st.integers(1, 6), min_size=1))
def test_ids_that_differ_as_numbers_survive_any_spreadsheet(width_of_number):
    ids = [str(number).zfill(width) for number, width in width_of_number.items()]
    returned = [str(int(name)) for name in ids]
    assert list(match_ids(returned, ids).values()) == ids


def test_a_list_for_a_message_is_short():
    assert listed([*"abcdefghij"]) == "a, b, c, d, e, f, g, h and 2 more"
