"""What a source leaves in its items."""

import numpy as np
import pytest

from s2osc.data.corruptions import (
    add_noise,
    blur_images,
    change_brightness,
    compress_as_jpeg,
    shift_pixels,
)
from s2osc.pipeline.sources.traces import (
    NOISE,
    image_traces,
    measure_traces,
    noise_of_vectors,
    text_traces,
)


def random(seed=0):
    return np.random.default_rng(seed)


def disks(n=40, side=24, *, colour=False):
    """Soft disks of different size and brightness near the middle."""
    draw = random()
    rows, columns = np.mgrid[:side, :side]
    radius = draw.uniform(4, 8, (n, 1, 1))
    centre = side / 2 + draw.uniform(-1, 1, (2, n, 1, 1))
    away = np.hypot(rows - centre[0], columns - centre[1])
    grey = draw.uniform(150, 240, (n, 1, 1)) / (1 + np.exp(2 * (away - radius)))
    images = np.rint(grey).astype(np.uint8)
    return np.repeat(images[..., None], 3, axis=3) if colour else images


def trace(images, name):
    traces = image_traces(images)
    return traces.columns[:, traces.names.index(name)]


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize(
    ("change", "name", "rises"),
    [
        (lambda x: add_noise(x, 8, seed=0), NOISE, True),
        (lambda x: blur_images(x, 0.8), "fine detail", False),
        (lambda x: change_brightness(x, 0.8), "brightest pixel", False),
        (lambda x: compress_as_jpeg(x, 20), "edges of blocks", True),
        (lambda x: shift_pixels(x, down=1), "row", True),
        (lambda x: shift_pixels(x, right=-1), "column", False),
    ],
)
def test_every_change_shows_in_its_trace(change, name, rises, colour):
    images = disks(colour=colour)
    before, after = trace(images, name), trace(change(images), name)
    assert np.mean((after > before) if rises else (after < before)) > 0.9


def test_noise_shows_in_colours_where_grey_is_full_of_texture():
    rough = disks(colour=True)
    grain = random().integers(-40, 40, rough.shape[:3])
    rough = np.clip(rough + grain[..., None], 0, 255).astype(np.uint8)
    noisy = add_noise(rough, 4, seed=0)
    in_grey, in_colours = (
        np.mean(trace(noisy, name) > trace(rough, name).max())
        for name in (NOISE, f"{NOISE} in colours")
    )
    assert in_colours == 1
    assert in_grey < 0.1


def test_compression_leaves_less_detail_of_colours():
    images = random().integers(0, 256, (50, 16, 16, 3)).astype(np.uint8)
    before, after = (
        trace(each, "detail of colours") for each in (images, compress_as_jpeg(images, 40))
    )
    assert np.all(after < before)


def test_a_mistyped_word_is_like_a_word_of_another_text():
    texts = np.array(["sorting lists", "sorting trees", "srting lists", "sotring trees", "ggraph"])
    found = text_traces(texts)
    mistyped = found.columns[:, found.names.index("mistyped words")]
    assert mistyped.tolist() == [0, 0, 0.5, 0.5, 0]


def test_a_word_of_a_million_letters_is_measured_at_once():
    text_traces(np.array(["a" * 1_000_000, "b"]))


def test_a_shift_moves_beginning_and_end_by_as_much():
    images = disks()
    moved = shift_pixels(images, down=2)
    for name in ("row", "row, 5%", "row, 95%"):
        assert np.median(trace(moved, name) - trace(images, name)) == pytest.approx(2, abs=0.2)


@pytest.mark.parametrize("shape", [(5, 1, 1), (5, 2, 9), (5, 3, 3, 3), (1, 30, 40)])
def test_images_of_any_size_give_numbers(shape):
    images = random().integers(0, 256, shape).astype(np.uint8)
    assert np.isfinite(image_traces(images).columns).all()
    assert np.isfinite(image_traces(np.zeros(shape, np.uint8)).columns).all()


def test_noise_on_vectors_shows_in_the_directions_in_which_classes_hardly_vary():
    draw = random()
    classes = draw.integers(0, 3, 300)
    main = draw.normal(size=(300, 2)) @ draw.normal(size=(2, 10)) * 3
    vectors = (main + 5 * classes[:, None] + 0.1 * draw.normal(size=(300, 10))).astype(np.float32)
    is_reference = np.arange(300) < 100
    energy = noise_of_vectors(vectors, classes, is_reference, seed=0)
    vectors[200:] += 0.3 * draw.normal(size=(100, 10)).astype(np.float32)
    noisy = noise_of_vectors(vectors, classes, is_reference, seed=0)
    np.testing.assert_allclose(noisy[:200], energy[:200], atol=1e-3)
    assert np.median(noisy[200:]) > np.quantile(energy[200:], 0.95)


def graded_vectors(n_columns=16):
    """Vectors that vary less and less from one direction to the next, and columns of each."""
    draw = random()
    turned = np.linalg.qr(draw.normal(size=(n_columns, n_columns)))[0]
    return draw.normal(size=(900, n_columns)) * np.geomspace(2, 0.05, n_columns) @ turned


def test_little_noise_on_vectors_shows_in_the_directions_that_vary_least():
    vectors, is_reference = graded_vectors(), np.arange(900) < 300
    noise = 0.1 * vectors.std(axis=0) * random().normal(size=vectors.shape)
    vectors[600:] += noise[600:]
    found = noise_of_vectors(vectors, np.zeros(900, int), is_reference, seed=0)
    assert np.mean(found[600:, None] > found[300:600]) > 0.7


def test_noise_on_vectors_is_measured_whatever_the_units_of_the_columns():
    vectors, is_reference = graded_vectors(), np.arange(900) < 300
    found, in_units = (
        noise_of_vectors(each, np.zeros(900, int), is_reference, seed=0)
        for each in (vectors, vectors * np.geomspace(1e-2, 1e2, vectors.shape[1]))
    )
    np.testing.assert_allclose(in_units, found, rtol=1e-3, atol=1e-3)


def test_rounding_is_no_noise():
    vectors, is_reference = graded_vectors(), np.arange(900) < 300
    vectors = np.column_stack([vectors, vectors.sum(axis=1)])
    rounded = np.where(np.arange(900)[:, None] < 600, vectors, vectors.round(2))
    exact, found = (
        noise_of_vectors(each, np.zeros(900, int), is_reference, seed=0)
        for each in (vectors, rounded)
    )
    assert np.abs(found - exact)[600:].mean() < 0.2 * exact.std()


def test_few_columns_are_traces_themselves_and_many_by_their_components():
    draw = random()
    for n_columns, wanted in ((3, 4), (90, 41)):
        vectors = draw.normal(size=(120, n_columns)).astype(np.float32)
        found = measure_traces(vectors, np.zeros(120, int), np.arange(120) < 60, seed=0)
        assert found.columns.shape == (120, wanted)
        assert len(found.names) == wanted
        assert np.isfinite(found.columns).all()


def test_an_offset_that_is_nearly_right_does_not_set_apart_what_shares_a_value():
    values = np.repeat([0.0, 1.0], [200, 200])[:, None]  # most at one of two ends
    moved = values + 0.001
    classes, is_reference = np.zeros(800, int), np.ones(800, bool)
    traces = measure_traces(np.concatenate([values, moved]), classes, is_reference, seed=0)
    found = traces.columns[:, 0]
    above = (found[400:600, None] > found[None, :200]).mean()
    assert 0.4 < above < 0.6
    assert (found[400:600, None] < found[None, 200:400]).all()


def test_one_column_one_reference_and_classes_without_one_give_numbers():
    vectors = np.arange(6, dtype=np.float32)[:, None]
    energy = noise_of_vectors(vectors, np.array([0, 0, 1, 1, 2, 2]), np.arange(6) == 0, seed=0)
    assert np.isfinite(energy).all()


def test_all_columns_are_one_kind_of_trace_and_noise_is_another():
    vectors = random().normal(size=(60, 3)).astype(np.float32)
    found = measure_traces(vectors, np.zeros(60, int), np.arange(60) < 30, seed=0)
    assert found.mean_of_kinds(np.array([1.0, 2.0, 6.0, 5.0])).tolist() == [3.0, 5.0]
    images = measure_traces(
        np.zeros((2, 9, 9), np.uint8), np.zeros(2, int), np.ones(2, bool), seed=0
    )
    values = np.arange(float(len(images.names)))
    np.testing.assert_array_equal(images.mean_of_kinds(values), values)
