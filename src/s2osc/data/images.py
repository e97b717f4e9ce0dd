"""Image files of any size and mode -> one uint8 array.

Headers are read first, so that the shape is chosen over every image and nothing oversized is ever
decoded; then the pixels, each image straight into its row of one array.
"""

import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from s2osc.errors import DataError, SettingsError
from s2osc.files import reason
from s2osc.progress import track
from s2osc.text import clean_text

IMAGE_SUFFIXES = frozenset(
    (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
)
# Content decides, not the suffix. Formats that start other programs or draw vectors are not here.
FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
SIDE_RANGE = (8, 512)  # what a caller may ask for
DEFAULT_SIDE_RANGE = (16, 64)  # what is chosen for them, for networks that start from scratch
N_THREADS = min(8, os.cpu_count() or 1)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class InputShape:
    """The one shape all items of a run have; a model is used again on items brought to it."""

    kind: Literal["images", "vectors", "texts", "tables"]
    height: int = 0
    width: int = 0
    channels: int = 0  # 1 (grey) or 3 (RGB)
    n_features: int = 0  # vectors only
    text_column: str = ""  # texts only: where tables have them
    note: str = ""  # one sentence: what was found, and what was made of it

    @property
    def item_shape(self) -> tuple[int, ...]:
        """The axes of one item.

        >>> InputShape("images", height=28, width=28, channels=1).item_shape
        (28, 28)
        """
        if self.kind == "vectors":
            return (self.n_features,)
        return (self.height, self.width, 3) if self.channels == 3 else (self.height, self.width)


class Header(NamedTuple):
    """Size and colour of an image, read before its pixels."""

    width: int
    height: int
    is_colour: bool


def choose_shape(
    headers: Sequence[Header], side: int | None = None, largest: int = DEFAULT_SIDE_RANGE[1]
) -> InputShape:
    """One shape for all images: their own if they share a small one, a square otherwise.

    ``largest`` is the side that is not exceeded unless a ``side`` is asked for.

    >>> choose_shape([Header(28, 28, False)] * 3).note
    '3 images of 28x28, kept at that size, grey'
    >>> choose_shape([Header(640, 480, True), Header(30, 40, False)], side=32).note
    '2 images of 2 sizes, 30x40 to 640x480, brought to 32x32 RGB'
    """
    if side is not None and not SIDE_RANGE[0] <= side <= SIDE_RANGE[1]:
        raise SettingsError(
            f"side is {side}; it must lie between {SIDE_RANGE[0]} and {SIDE_RANGE[1]}"
        )
    sizes = {(header.width, header.height) for header in headers}
    is_colour = any(header.is_colour for header in headers)
    channels, colours = (3, "RGB") if is_colour else (1, "grey")
    width, height = min(sizes)
    if side is None and len(sizes) == 1 and _is_small(width, height, largest):
        made = f"kept at that size, {colours}"
    else:
        width = height = side or _median_side(headers, largest)
        made = f"brought to {width}x{height} {colours}"
    note = f"{_count_sizes(len(headers), sizes)}, {made}"
    return InputShape("images", height=height, width=width, channels=channels, note=note)


def _count_sizes(n_images: int, sizes: set[tuple[int, int]]) -> str:
    by_area = sorted(sizes, key=lambda size: (size[0] * size[1], size))
    smallest, largest = (f"{width}x{height}" for width, height in (by_area[0], by_area[-1]))
    images = "1 image" if n_images == 1 else f"{n_images:,} images"
    if len(sizes) == 1:
        return f"{images} of {smallest}"
    return f"{images} of {len(sizes):,} sizes, {smallest} to {largest}"


def _is_small(width: int, height: int, largest: int) -> bool:
    return SIDE_RANGE[0] <= min(width, height) and max(width, height) <= largest


def _median_side(headers: Sequence[Header], largest: int) -> int:
    median = np.median([min(header.width, header.height) for header in headers])
    return int(np.clip(median, DEFAULT_SIDE_RANGE[0], largest))


def find_images(folder: Path) -> list[Path]:
    """Every image file below ``folder``, sorted; a folder linked to twice is visited once."""
    visited: set[str] = set()
    found: list[Path] = []
    for root, folders, files in os.walk(folder, followlinks=True, onerror=_cannot_open):
        real = os.path.realpath(root)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        folders[:] = sorted(name for name in folders if not is_hidden(name))
        found += [Path(root, name) for name in files if is_image_name(name)]
    return sorted(found, key=lambda path: path.parts)


def is_image_name(name: str) -> bool:
    """Whether a file is taken as an image, by its name.

    >>> [is_image_name(name) for name in ("a.JPG", "._a.jpg", "Thumbs.db")]
    [True, False, False]
    """
    return Path(name).suffix.lower() in IMAGE_SUFFIXES and not is_hidden(name)


def is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _cannot_open(error: OSError) -> None:
    raise DataError(
        f"the folder {error.filename} cannot be opened ({error.strerror}); allow reading it"
    ) from error


def read_headers(
    files: Sequence[Path | bytes], what: str, *, max_megapixels: float
) -> tuple[list[Header], list[str]]:
    """The header of each image, and for each the reason why it cannot be read ("" where it can).

    Only images that can be read have a header in the answer.
    """
    answers = in_threads(_read_header, files, f"Headers of {what}")
    for path, answer in zip(files, answers, strict=True):
        if isinstance(answer, Header):
            _check_size(path if isinstance(path, Path) else what, answer, max_megapixels)
    headers = [answer for answer in answers if isinstance(answer, Header)]
    return headers, [answer if isinstance(answer, str) else "" for answer in answers]


def check_sizes(images: Sequence[bytes], what: str, *, max_megapixels: float) -> None:
    """Refuse images that are larger than wanted, before any of them is decoded."""
    for image in images:
        header = _read_header(image)
        if isinstance(header, Header):
            _check_size(what, header, max_megapixels)


def _check_size(path: Path | str, header: Header, max_megapixels: float) -> None:
    megapixels = header.width * header.height / 1e6
    if megapixels > max_megapixels:
        raise DataError(
            f"{path} has {megapixels:,.1f} megapixels, above the limit of {max_megapixels:g}; "
            "shrink or remove it, or raise --max-megapixels"
        )


def read_pixels(
    images: Sequence[Path | bytes] | np.ndarray, shape: InputShape, what: str
) -> tuple[np.ndarray, list[str]]:
    """Images brought to one shape, and for each the reason why it cannot be read ("" where it can).

    Only images that can be read have a row in the array.
    """
    if isinstance(images, np.ndarray) and images.shape[1:] == shape.item_shape:
        return images, [""] * len(images)
    pixels = np.empty((len(images), *shape.item_shape), dtype=np.uint8)

    def read_row(row: int) -> str:
        try:
            pixels[row] = _read_image(images[row], shape)
        except Exception as error:  # decoders raise nearly anything on damaged bytes
            return _reason(error)
        return ""

    reasons = in_threads(read_row, range(len(images)), f"Images of {what}")
    readable = [row for row, reason in enumerate(reasons) if not reason]
    # Rows close up in place: a selection would hold the whole array twice.
    for new, old in enumerate(readable):
        if new != old:
            pixels[new] = pixels[old]
    return pixels[: len(readable)], reasons


def in_threads(work: Callable[[T], R], items: Sequence[T], what: str) -> list[R]:
    """Work on each image, several at a time."""
    with _pillow_without_limits(), ThreadPool(N_THREADS) as threads:
        return list(track(threads.imap(work, items, chunksize=16), what, total=len(items)))


@contextmanager
def _pillow_without_limits() -> Iterator[None]:
    """Let our own limit on megapixels be the only one, and warnings on odd metadata be silent.

    Both are state of the process, so they are set around the threads and put back after.
    """
    Image.init()  # plug-ins are loaded once here, not by threads in a race
    limit = Image.MAX_IMAGE_PIXELS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        Image.MAX_IMAGE_PIXELS = None
        try:
            yield
        finally:
            Image.MAX_IMAGE_PIXELS = limit


def _read_header(path: Path | bytes) -> Header | str:
    # A name too long for the disk is no file; Path would raise.
    if isinstance(path, Path) and not os.path.isfile(path):
        return "no such file"
    try:
        with Image.open(_opened(path), formats=FORMATS) as image:
            width, height = image.size
            is_colour = image.mode not in ("1", "L", "LA") and image.mode[0] not in "IF"
            if _lies_on_its_side(image):
                width, height = height, width
            return Header(width, height, is_colour)
    except Exception as error:  # decoders raise nearly anything on damaged bytes
        return _reason(error)


def _lies_on_its_side(image: Image.Image) -> bool:
    # TIFF headers are rotated already; a PNG would decode its pixels in search of a late tag.
    if image.format == "TIFF" or "exif" not in image.info:
        return False
    with suppress(Exception):  # the pixels may be sound beside a damaged tag
        return image.getexif().get(ExifTags.Base.Orientation, 1) >= 5
    return False


def _reason(error: Exception) -> str:
    if isinstance(error, UnidentifiedImageError):
        return "not an image of a known format"
    return clean_text(reason(error))


def _opened(image: Path | bytes) -> Path | io.BytesIO:
    return image if isinstance(image, Path) else io.BytesIO(image)


def _read_image(image: Path | bytes | np.ndarray, shape: InputShape) -> np.ndarray:
    if isinstance(image, np.ndarray):
        return fit_image(Image.fromarray(image), shape)
    return fit_image(_decoded(image, max(shape.width, shape.height)), shape)


def open_picture(path: Path, side: int) -> Image.Image:
    """An image for people, as L, RGB or RGBA, with twice so many pixels a side or all it has."""
    return _to_plain_mode(_decoded(path, side))


def _decoded(path: Path | bytes, side: int) -> Image.Image:
    """The pixels of an image, the right way up; not many more than twice the side wanted."""
    # Given a name, Pillow maps uncompressed files into memory, and misreads a rotated TIFF.
    content = path.open("rb") if isinstance(path, Path) else io.BytesIO(path)
    with content as file, Image.open(file, formats=FORMATS) as opened:
        # A JPEG decodes at 1/2, 1/4 or 1/8 of its size where twice what is wanted is left.
        opened.draft(None, (2 * side, 2 * side))
        opened.load()
        with suppress(Exception):  # the pixels may be sound beside a damaged tag
            ImageOps.exif_transpose(opened, in_place=True)
        return opened


def fit_image(image: Image.Image, shape: InputShape) -> np.ndarray:
    """The pixels of one image in ``shape``: stretched to its size, transparent parts white.

    >>> fit_image(Image.new("1", (9, 9), 1), InputShape("images", 2, 2, channels=1))
    array([[255, 255],
           [255, 255]], dtype=uint8)
    """
    size = (shape.width, shape.height)
    image = _to_plain_mode(image)
    if image.size != size:
        image = image.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", size, "white"), image)
    return np.asarray(image.convert("RGB" if shape.channels == 3 else "L"))


def _to_plain_mode(image: Image.Image) -> Image.Image:
    """The image as L, RGB or RGBA, the modes that resize well."""
    if image.mode == "F":
        raise ValueError("float pixels; save it with 8 or 16 bits per channel")
    if image.mode[0] == "I":
        return _to_8_bits(image)
    if image.has_transparency_data:
        return image if image.mode == "RGBA" else image.convert("RGBA")
    if image.mode in ("L", "RGB"):
        return image
    return image.convert("L" if image.mode == "1" else "RGB")


def _to_8_bits(image: Image.Image) -> Image.Image:
    values = np.asarray(image)
    if values.min() < 0 or values.max() > 65535:
        raise ValueError("32-bit pixels; save it with 8 or 16 bits per channel")
    return Image.fromarray(((values.astype(np.uint32) * 255 + 32767) // 65535).astype(np.uint8))
