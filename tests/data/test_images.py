"""Any image ends as uint8 pixels of one shape, and nothing oversized is ever decoded."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from s2osc.data import images
from s2osc.data.images import (
    Header,
    InputShape,
    choose_shape,
    find_images,
    fit_image,
    read_headers,
    read_pixels,
)
from s2osc.errors import DataError, SettingsError

GREY_8 = InputShape("images", height=8, width=8, channels=1)
RGB_8 = InputShape("images", height=8, width=8, channels=3)


def save(image: Image.Image, path: Path, **options: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, **options)
    return path


def red_over_blue() -> np.ndarray:
    pixels = np.zeros((8, 8, 3), dtype=np.uint8)
    pixels[:4, :, 0] = pixels[4:, :, 2] = 255
    return pixels


def header_of(path: Path, max_megapixels: float = 50) -> tuple[list[Header], list[str]]:
    return read_headers([path], "tests", max_megapixels=max_megapixels)


def pixels_of(path: Path, shape: InputShape) -> np.ndarray:
    pixels, reasons = read_pixels([path], shape, "tests")
    assert reasons == [""]
    return pixels[0]


def png_that_claims(width: int, height: int) -> bytes:
    """A PNG with a header and a few bytes of pixels, whatever size it claims."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + name
            + content
            + struct.pack(">I", zlib.crc32(name + content))
        )

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


# The shape


def test_images_of_one_small_size_keep_it_even_if_it_is_no_square():
    shape = choose_shape([Header(64, 20, False)] * 5)
    assert (shape.height, shape.width, shape.channels) == (20, 64, 1)
    assert shape.note == "5 images of 64x20, kept at that size, grey"


@pytest.mark.parametrize(
    ("sizes", "side"),
    [
        ([(65, 65)], 64),
        ([(640, 480)] * 3, 64),
        ([(40, 30), (50, 40), (70, 90)], 40),
        ([(3, 5), (4, 4)], 16),
        ([(4, 4)], 16),
    ],
)
def test_other_images_become_a_square_of_their_median_shorter_side_within_bounds(sizes, side):
    shape = choose_shape([Header(width, height, True) for width, height in sizes])
    assert shape.item_shape == (side, side, 3)


def test_a_side_that_is_asked_for_wins_over_the_images_own_size():
    assert choose_shape([Header(28, 28, False)], side=32).item_shape == (32, 32)


def test_one_colour_image_makes_the_shape_rgb():
    assert choose_shape([Header(8, 8, False), Header(8, 8, True)]).channels == 3


def test_the_note_counts_images_and_sizes():
    headers = [Header(28, 28, False)] * 1203 + [Header(640, 480, True)]
    assert choose_shape(headers, side=64).note == (
        "1,204 images of 2 sizes, 28x28 to 640x480, brought to 64x64 RGB"
    )


@pytest.mark.parametrize("side", [0, 7, 513])
def test_a_side_no_network_takes_is_refused(side):
    with pytest.raises(SettingsError, match=f"side is {side}; it must lie between 8 and 512"):
        choose_shape([Header(28, 28, False)], side=side)


# Pixels of one image


@settings(max_examples=60, deadline=None)
@given(
    mode=st.sampled_from(["1", "L", "LA", "P", "PA", "RGB", "RGBA", "CMYK", "I;16", "I", "YCbCr"]),
    width=st.integers(1, 40),
    height=st.integers(1, 40),
    shape=st.builds(
        InputShape,
        kind=st.just("images"),
        height=st.integers(1, 20),
        width=st.integers(1, 20),
        channels=st.sampled_from([1, 3]),
    ),
)
def test_any_mode_and_size_ends_in_the_shape(mode, width, height, shape):
    pixels = fit_image(Image.new(mode, (width, height)), shape)
    assert pixels.shape == shape.item_shape
    assert pixels.dtype == np.uint8


def test_an_image_of_the_right_size_keeps_every_pixel(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3), dtype=np.uint8)
    path = save(Image.fromarray(pixels), tmp_path / "a.png")
    np.testing.assert_array_equal(pixels_of(path, RGB_8), pixels)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "PA"])
def test_transparent_parts_become_white(mode):
    image = Image.new("RGBA", (8, 8), (0, 0, 0, 0)).convert(mode)
    assert (fit_image(image, GREY_8) == 255).all()


def test_half_transparent_black_becomes_mid_grey_at_any_size():
    image = Image.new("RGBA", (100, 60), (0, 0, 0, 128))
    np.testing.assert_allclose(fit_image(image, RGB_8), 127, atol=1)


@pytest.mark.parametrize("mode", ["P", "L", "RGB"])
def test_the_transparent_colour_of_a_png_becomes_white(tmp_path, mode):
    colour = (0, 0, 0) if mode == "RGB" else 0
    path = save(Image.new(mode, (8, 8)), tmp_path / "a.png", transparency=colour)
    assert (pixels_of(path, GREY_8) == 255).all()


def test_palettes_are_read_as_their_colours(tmp_path):
    image = Image.fromarray(red_over_blue()).quantize(2)
    np.testing.assert_array_equal(fit_image(image, RGB_8), red_over_blue())


def test_cmyk_is_read_as_its_colours(tmp_path):
    path = save(Image.new("CMYK", (8, 8), (0, 255, 255, 0)), tmp_path / "a.tif")
    np.testing.assert_array_equal(pixels_of(path, RGB_8)[0, 0], [255, 0, 0])


@pytest.mark.parametrize("suffix", [".png", ".tif", ".pgm"])
def test_16_bits_are_scaled_to_8(tmp_path, suffix):
    values = np.tile(np.array([0, 257, 128 * 257, 65535], dtype=np.uint16), (8, 2))
    path = save(Image.fromarray(values), tmp_path / f"a{suffix}")
    assert header_of(path)[0] == [Header(8, 8, False)]
    np.testing.assert_array_equal(pixels_of(path, GREY_8)[0, :4], [0, 1, 128, 255])


@pytest.mark.parametrize("values", [np.float32(0.5), np.int32(70000)])
def test_pixels_without_a_range_are_a_reason_to_skip(tmp_path, values):
    path = save(Image.fromarray(np.full((8, 8), values)), tmp_path / "a.tif")
    pixels, reasons = read_pixels([path], GREY_8, "tests")
    assert len(pixels) == 0
    assert "save it with 8 or 16 bits" in reasons[0]


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".webp", ".tif"])
def test_exif_orientation_is_followed(tmp_path, suffix):
    lying = np.rot90(np.vstack([np.full((8, 20), 255), np.zeros((8, 20))]), 1).astype(np.uint8)
    exif = Image.Exif()
    exif[0x0112] = 6  # turn by 90 degrees clockwise to see it upright
    path = save(Image.fromarray(lying), tmp_path / f"a{suffix}", exif=exif)
    assert header_of(path)[0][0][:2] == (20, 16)
    upright = pixels_of(path, GREY_8)
    assert upright[:3].min() > 250
    assert upright[5:].max() < 5


def test_a_damaged_exif_tag_does_not_cost_the_image(tmp_path):
    path = save(Image.new("L", (8, 8), 200), tmp_path / "a.jpg", exif=b"Exif\x00\x00nonsense")
    assert header_of(path) == ([Header(8, 8, False)], [""])
    np.testing.assert_allclose(pixels_of(path, GREY_8), 200, atol=2)


def test_the_first_frame_of_an_animation_is_taken(tmp_path):
    frames = [Image.new("L", (8, 8), value) for value in (10, 200, 90)]
    path = save(frames[0], tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert (pixels_of(path, GREY_8) == 10).all()


def test_a_large_jpeg_shrinks_to_the_colours_of_its_parts(tmp_path):
    halves = np.zeros((900, 1200), dtype=np.uint8)
    halves[:, 600:] = 240
    small = pixels_of(save(Image.fromarray(halves), tmp_path / "a.jpg", quality=95), GREY_8)
    np.testing.assert_allclose(small[:, :3], 0, atol=3)
    np.testing.assert_allclose(small[:, 6:], 240, atol=3)


def test_arrays_of_another_size_and_grey_ones_come_to_the_shape_too():
    pixels, reasons = read_pixels(np.full((3, 20, 10), 77, dtype=np.uint8), RGB_8, "tests")
    assert reasons == ["", "", ""]
    assert pixels.shape == (3, 8, 8, 3)
    assert (pixels == 77).all()


# Many images


def test_rows_of_images_that_cannot_be_read_close_up_in_order(tmp_path):
    paths = [save(Image.new("L", (8, 8), i), tmp_path / f"{i:02}.png") for i in range(40)]
    for broken in (0, 7, 39):
        paths[broken].write_bytes(paths[broken].read_bytes()[:41])
    pixels, reasons = read_pixels(paths, GREY_8, "tests")
    readable = [i for i in range(40) if i not in (0, 7, 39)]
    assert pixels[:, 0, 0].tolist() == readable
    assert [i for i, reason in enumerate(reasons) if not reason] == readable


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp", ".bmp", ".gif", ".tif", ".ppm"])
def test_a_truncated_image_has_a_reason(tmp_path, suffix):
    noise = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    path = save(Image.fromarray(noise), tmp_path / f"a{suffix}")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    pixels, reasons = read_pixels([path], RGB_8, "tests")
    assert len(pixels) == 0
    assert reasons[0]
    assert "\n" not in reasons[0]


@settings(max_examples=50, deadline=None)
@given(
    position=st.integers(0, 400), value=st.integers(0, 255), kind=st.sampled_from(["PNG", "GIF"])
)
def test_a_damaged_byte_anywhere_never_raises(tmp_path_factory, position, value, kind):
    buffer = io.BytesIO()
    Image.fromarray(red_over_blue()).save(buffer, kind)
    damaged = bytearray(buffer.getvalue())
    damaged[position % len(damaged)] = value
    path = tmp_path_factory.mktemp("damaged") / "a.png"
    path.write_bytes(damaged)
    headers, reasons = header_of(path, max_megapixels=1e12)
    assert bool(headers) != bool(reasons[0])
    if headers and headers[0].width * headers[0].height < 1e6:
        pixels, reasons = read_pixels([path], RGB_8, "tests")
        assert bool(len(pixels)) != bool(reasons[0])


def test_a_missing_file_and_a_text_file_have_reasons(tmp_path):
    (tmp_path / "text.png").write_text("not an image")
    assert header_of(tmp_path / "gone.png") == ([], ["no such file"])
    assert header_of(tmp_path / "text.png") == ([], ["not an image of a known format"])


def test_an_oversized_image_is_refused_from_its_header_alone(tmp_path):
    path = tmp_path / "bomb.png"
    path.write_bytes(png_that_claims(30_000, 20_000))
    with pytest.raises(
        DataError, match=r"bomb\.png has 600\.0 megapixels, above the limit of 50; "
    ):
        header_of(path)


def test_the_limit_can_be_raised_beyond_pillows_own_which_stays_as_it_was(tmp_path):
    path = tmp_path / "large.png"
    path.write_bytes(png_that_claims(30_000, 20_000))
    before = Image.MAX_IMAGE_PIXELS
    assert header_of(path, max_megapixels=601)[0] == [Header(30_000, 20_000, False)]
    assert before == Image.MAX_IMAGE_PIXELS


def test_headers_are_read_without_decoding_pixels(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise AssertionError("pixels were decoded")

    paths = [save(Image.new("RGB", (9, 8)), tmp_path / name) for name in ("a.png", "b.jpg")]
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", refuse)
    headers, _ = read_headers(paths, "tests", max_megapixels=1)
    assert headers == [Header(9, 8, True)] * 2


# Finding images


def test_images_are_found_below_in_order_and_other_files_are_passed_over(tmp_path):
    for name in ("b/z.png", "b/deep/A.JPEG", "a.tiff", ".hidden/x.png", "__MACOSX/y.png"):
        save(Image.new("L", (2, 2)), tmp_path / name)
    for name in (".DS_Store", "Thumbs.db", "notes.txt", "._a.png"):
        (tmp_path / name).write_bytes(b"")
    found = [path.relative_to(tmp_path).as_posix() for path in find_images(tmp_path)]
    assert found == ["a.tiff", "b/deep/A.JPEG", "b/z.png"]


def test_links_to_folders_are_followed_once(tmp_path):
    save(Image.new("L", (2, 2)), tmp_path / "pool" / "a.png")
    save(Image.new("L", (2, 2)), tmp_path / "elsewhere" / "b.png")
    (tmp_path / "pool" / "loop").symlink_to(tmp_path / "pool")
    (tmp_path / "pool" / "more").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "pool" / "more again").symlink_to(tmp_path / "elsewhere")
    assert [path.name for path in find_images(tmp_path / "pool")] == ["a.png", "b.png"]


def test_every_suffix_taken_as_an_image_can_be_decoded(tmp_path):
    for suffix in images.IMAGE_SUFFIXES:
        path = save(Image.new("L", (8, 8), 60), tmp_path / f"a{suffix}")
        np.testing.assert_allclose(pixels_of(path, GREY_8), 60, atol=2)
