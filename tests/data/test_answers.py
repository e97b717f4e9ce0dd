"""Tables for labels: whatever an item is called, it comes back as it was."""

import pytest

from s2osc.data.answers import label_table, read_labels
from s2osc.errors import DataError
from s2osc.text import clean_text


@pytest.mark.parametrize("item", ["a.png", "=1+1", "'=1", 'a, "b"', "Käse", "-5", "00012"])
def test_items_come_back_as_they_were(tmp_path, item):
    path = tmp_path / "a.csv"
    path.write_bytes(label_table(("item", "label"), [[item, "@home"], ["other", ""]]))
    labels = read_labels(path, like="a table").labels
    assert labels == {clean_text(item): "@home", "other": ""}


def test_other_columns_are_read_where_they_are_there(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(label_table(("item", "label", "day"), [["a", "", 1], ["b", "", 2]]))
    assert read_labels(path, like="it", others=("day", "hour")).others == {
        "day": {"1", "2"},
        "hour": set(),
    }


def test_the_file_that_is_wanted_is_named(tmp_path):
    with pytest.raises(DataError, match=r"there is no file .*; give the table"):
        read_labels(tmp_path / "a.csv", like="the table")
