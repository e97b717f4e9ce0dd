"""Turn the images of a pool into data the page can carry inside itself."""

import base64
import io
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from PIL import Image

SPRITE_SIDE = 48
PICTURE_SIDE = 192
DATA_URI = "data:image/webp;base64,"
SMALL_SIDE = 64  # images up to this side are drawn with crisp pixels


@dataclass(frozen=True)
class SpriteSheet:
    """Many thumbnails in one picture, row by row."""

    uri: str
    width: int  # of one thumbnail
    height: int
    columns: int


def make_sprites(images: np.ndarray) -> SpriteSheet:
    """Put a thumbnail of each image into one sheet."""
    columns = ceil(sqrt(len(images)))
    width, height = _thumbnail(images[0], SPRITE_SIDE).size
    mode = "L" if images.ndim == 3 else "RGB"
    sheet = Image.new(mode, (columns * width, ceil(len(images) / columns) * height))
    for place, image in enumerate(images):
        corner = (place % columns * width, place // columns * height)
        sheet.paste(_thumbnail(image, SPRITE_SIDE), corner)
    # Thousands of grey thumbnails stay small without loss; coloured ones would not.
    return SpriteSheet(_data_uri(sheet, lossless=mode == "L"), width, height, columns)


def picture_uri(image: np.ndarray) -> str:
    """One image for a gallery: as it is where it is small, reduced where it is not."""
    return _data_uri(_thumbnail(image, PICTURE_SIDE), lossless=is_small(image))


def cut_pictures(sheet: SpriteSheet, places: list[int], *, lossless: bool) -> list[str]:
    """The thumbnails at some places of a sheet, as pictures of their own."""
    with Image.open(io.BytesIO(uri_to_bytes(sheet.uri))) as whole:
        corners = [
            (place % sheet.columns * sheet.width, place // sheet.columns * sheet.height)
            for place in places
        ]
        return [
            _data_uri(
                whole.crop((left, top, left + sheet.width, top + sheet.height)), lossless=lossless
            )
            for left, top in corners
        ]


def is_small(image: np.ndarray) -> bool:
    """Whether an image has so few pixels that each is drawn sharply."""
    return max(image.shape[:2]) <= SMALL_SIDE


def _thumbnail(image: np.ndarray, side: int) -> Image.Image:
    height, width = image.shape[:2]
    scale = min(1.0, side / max(height, width))
    size = (max(1, round(width * scale)), max(1, round(height * scale)))
    picture = Image.fromarray(image)
    return picture if size == picture.size else picture.resize(size, Image.Resampling.LANCZOS)


def _data_uri(picture: Image.Image, *, lossless: bool) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", lossless=lossless, quality=80, method=4)
    return bytes_to_uri(buffer.getvalue())


def bytes_to_uri(picture: bytes) -> str:
    return DATA_URI + base64.b64encode(picture).decode()


def uri_to_bytes(uri: str) -> bytes:
    """The picture inside a data URI.

    >>> uri_to_bytes(bytes_to_uri(b"RIFF"))
    b'RIFF'
    """
    return base64.b64decode(uri.removeprefix(DATA_URI))
