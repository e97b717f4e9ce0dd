"""The page to label items on shows them, and no answer."""

from s2osc.report.check_page import check_page, is_check_page

PAGE = check_page(
    {7: "<a>.png", 3: "=b.png"}, {7: "data:image/webp;base64,AAAA"}, ("cat", "dog"), name="c.csv"
).decode()


def test_every_item_has_a_field_and_those_with_a_picture_show_it():
    assert PAGE.count("<input ") == 2
    assert PAGE.count("<img ") == 1
    assert PAGE.index("&lt;a&gt;.png") < PAGE.index("=b.png")
    assert "<a>.png" not in PAGE


def test_names_are_saved_as_the_table_has_them():
    assert 'data-item="&#39;=b.png"' in PAGE
    assert 'data-name="c.csv"' in PAGE


def test_known_classes_and_unknown_are_offered():
    for name in ("cat", "dog", "unknown"):
        assert f'<option value="{name}">' in PAGE


def test_a_page_is_told_from_a_users_file(tmp_path):
    page, other = tmp_path / "page.html", tmp_path / "other.html"
    page.write_text(PAGE, encoding="utf-8")
    other.write_text("<!doctype html>", encoding="utf-8")
    assert [is_check_page(path) for path in (page, other, tmp_path)] == [True, False, False]
