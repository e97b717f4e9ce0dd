"""What a page is drawn from can be kept, and drawn from again."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s2osc.errors import DataError
from s2osc.report import drawing as report_drawing
from s2osc.report.drawing import (
    Question,
    draw,
    draw_map,
    fit_to_page,
    load_drawing,
    sample_items,
    save_drawing,
)
from s2osc.report.page import write_report
from s2osc.report.pictures import uri_to_bytes


def drawn_for(inputs):
    return draw(inputs.answer, inputs.kind_of_item, inputs.embeddings, inputs.images, seed=0)


@pytest.mark.parametrize(
    "images",
    [(60, 6, 6), (60, 6, 6, 3), (60, 90, 70, 3), None],
    ids=["grey", "colour", "large", "vectors"],
)
def test_a_page_from_a_kept_drawing_is_the_same_to_the_byte(pool, seeded, tmp_path, images):
    pixels = None if images is None else np.random.default_rng(0).integers(0, 255, images, np.uint8)
    inputs = seeded(pool(images=pixels))
    drawing = write_report(tmp_path / "first.html", inputs, seed=0)
    save_drawing(tmp_path / "kept.safetensors", drawing)
    again = load_drawing(tmp_path / "kept.safetensors", 60)
    without = replace(inputs, embeddings=None, images=None)
    write_report(tmp_path / "again.html", without, seed=0, drawing=again)
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "first.html").read_bytes()


def test_the_same_drawing_is_kept_as_the_same_bytes(pool, tmp_path):
    for name in ("a", "b"):
        save_drawing(tmp_path / name, drawn_for(pool()))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_galleries_of_another_answer_take_thumbnails_from_the_sheet(pool, monkeypatch, tmp_path):
    monkeypatch.setattr(report_drawing, "MAP_ITEMS", 100)
    monkeypatch.setattr(report_drawing, "MOST_CHECKED", 5)
    inputs = pool(n=200)
    drawing = drawn_for(inputs)
    answer = replace(inputs.answer, confidence=inputs.answer.confidence[::-1].copy())
    chosen = drawing.choose(answer)
    shown = set(drawing.map.items.tolist()) | set(drawing.pictures)
    assert set(chosen.items.tolist()) <= shown
    assert len(chosen.closest) == 24
    pictures = drawing.pictures_of(chosen.items)
    assert pictures.keys() == set(chosen.items.tolist())
    fresh = [item for item in pictures if item not in drawing.pictures]
    assert fresh
    # A thumbnail of a small grey image is the image itself, so cutting it out loses nothing.
    again = drawn_for(replace(inputs, answer=answer)).pictures
    assert all(pictures[item] == again[item] for item in fresh if item in again)


def test_pictures_are_kept_as_they_are(pool, tmp_path):
    drawing = drawn_for(pool())
    save_drawing(tmp_path / "kept", drawing)
    again = load_drawing(tmp_path / "kept", 60)
    assert again.pictures == drawing.pictures
    assert all(uri_to_bytes(uri)[:4] == b"RIFF" for uri in again.pictures.values())


@pytest.mark.parametrize("with_images", [True, False])
def test_questions_are_kept_with_their_pictures(pool, tmp_path, with_images):
    inputs = pool() if with_images else pool(images=None)
    asked = tuple(Question(item % 60, "dog", f"reason {item}") for item in range(75))
    write_report(tmp_path / "first.html", replace(inputs, questions=asked), seed=0)
    drawing = draw(
        *(inputs.answer, inputs.kind_of_item, inputs.embeddings, inputs.images),
        questions=asked,
        seed=0,
    )
    save_drawing(tmp_path / "kept", drawing)
    again = load_drawing(tmp_path / "kept", 60)
    assert (again.questions, again.n_questions) == (asked[:60], 75)
    assert all((question.item in again.pictures) == with_images for question in again.questions)
    # The page for another decision knows the questions from the drawing alone.
    write_report(tmp_path / "again.html", inputs, seed=0, drawing=again)
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "first.html").read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b"no tensors", None], ids=["empty", "text", "about another pool"]
)
def test_a_damaged_drawing_is_refused_in_one_line(pool, tmp_path, content):
    path = tmp_path / "kept.safetensors"
    save_drawing(path, drawn_for(pool()))
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(DataError, match=r"kept\.safetensors cannot be read") as refused:
        load_drawing(path, 60 if content is not None else 59)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["points", "components"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_drawing_with_points_that_are_no_numbers_is_refused(pool, tmp_path, name, value):
    drawing = drawn_for(pool())
    values = getattr(drawing.map, name).copy()
    values[1, 1] = value
    save_drawing(tmp_path / "kept", replace(drawing, map=replace(drawing.map, **{name: values})))
    with pytest.raises(DataError, match="points that are no numbers") as refused:
        load_drawing(tmp_path / "kept", 60)
    assert "\n" not in str(refused.value)


def test_a_drawing_that_is_gone_is_refused(tmp_path):
    with pytest.raises(DataError, match="cannot be read"):
        load_drawing(tmp_path / "gone", 3)


# --- the map ----------------------------------------------------------------------------------


@given(
    st.lists(st.integers(0, 8), min_size=1, max_size=200), st.integers(9, 50), st.integers(0, 99)
)
def test_a_sample_holds_every_kind_and_no_item_twice(kinds, at_most, seed):
    chosen = sample_items(np.array(kinds), at_most, seed=seed)
    assert len(chosen) == min(at_most, len(kinds))
    assert (np.diff(chosen) > 0).all()
    assert {kinds[item] for item in chosen} == set(kinds)


def test_items_of_one_cluster_are_neighbours_on_the_map():
    random = np.random.default_rng(0)
    kinds = np.repeat([0, 1, 2], 40)
    embeddings = random.normal(size=(120, 64)) + 12 * np.eye(3, 64)[kinds]
    drawn = draw_map(embeddings.astype(np.float32), kinds, seed=0)
    gaps = np.linalg.norm(drawn.points[:, None] - drawn.points, axis=2) + 9 * np.eye(120)
    assert (kinds[gaps.argmin(axis=1)] == kinds).mean() > 0.98


@pytest.mark.parametrize("n", [1, 2, 10, 50])
@pytest.mark.parametrize("dimensions", [1, 2, 40])
def test_identical_items_share_a_point(n, dimensions):
    drawn = draw_map(np.ones((n, dimensions), np.float32), np.zeros(n, int), seed=0)
    assert (drawn.points == 0).all()
    assert drawn.method.startswith("one point")


@pytest.mark.parametrize("n", [2, 3, 19, 20, 40])
@pytest.mark.parametrize("dimensions", [1, 2, 40])
def test_small_and_thin_pools_are_placed_within_the_page(n, dimensions):
    embeddings = np.random.default_rng(0).normal(size=(n, dimensions)).astype(np.float32)
    points = draw_map(embeddings, np.zeros(n, int), seed=0).points
    assert points.shape == (n, 2)
    assert np.isfinite(points).all()
    assert points.min() == 0
    assert points.max() == pytest.approx(1)


def test_many_copies_of_few_items_are_placed():
    embeddings = np.repeat(np.eye(3, 5, dtype=np.float32), 30, axis=0)
    points = draw_map(embeddings, np.zeros(90, int), seed=0).points
    assert np.isfinite(points).all()


def test_the_widest_direction_lies_level():
    line = np.linspace(0, 1, 50)
    points = fit_to_page(np.stack([0.1 * line, line], axis=1))
    assert np.ptp(points[:, 0]) == pytest.approx(1)
    assert np.ptp(points[:, 1]) == pytest.approx(0, abs=1e-9)


def test_global_random_state_is_left_as_found():
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    draw_map(np.random.default_rng(0).normal(size=(30, 4)), np.zeros(30, int), seed=0)
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
