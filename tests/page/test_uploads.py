"""Files that are dropped: none leaves its folder, none is too large."""

import struct
import zlib

import pytest

from files import image
from s2osc.errors import DataError
from s2osc.page.uploads import Uploads, check_picture, safe_name


def huge_png(path, width, height):
    """A PNG whose header says how large it is, and which has no pixels."""

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    path.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"") + chunk(b"IEND", b"")
    )
    return path


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../evil.png", "evil.png"),
        ("/etc/cron.d/x.csv", "x.csv"),
        ("..\\..\\x.jpg", "x.jpg"),
        ("a\0b.png", "a_b.png"),
        ("<script>.png", "_script_.png"),
        ("n" * 500 + ".png", "n" * 120 + ".png"),
    ],
)
def test_a_name_keeps_no_way_out_of_its_folder(given, kept):
    assert safe_name(given) == kept


@pytest.mark.parametrize("name", ["evil.sh", "x.html", "..", ".", "", "png", "x.pkl", "x.svg"])
def test_what_is_no_image_and_no_table_is_refused(name):
    with pytest.raises(DataError, match="neither an image nor a table"):
        safe_name(name)


def test_a_link_that_lies_there_is_not_followed(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.find(uploads.begin(2))
    (upload.folder / "a.png").symlink_to(tmp_path / "outside.png")
    handle, path = upload.create(0, "a.png")
    with open(handle, "wb") as file:
        file.write(b"x")
    assert path.name == "0-a.png"
    assert not (tmp_path / "outside.png").exists()


def test_files_that_were_not_announced_are_refused(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.find(uploads.begin(1))
    with pytest.raises(DataError, match="not one of the 1"):
        upload.create(1, "a.png")
    with pytest.raises(DataError, match="drop from 1 to"):
        uploads.begin(10**6)
    with pytest.raises(DataError, match="another page"):
        uploads.find("../..")


def test_an_image_of_300_megapixels_is_refused_unseen(tmp_path):
    with pytest.raises(DataError, match=r"big\.png"):
        check_picture(huge_png(tmp_path / "big.png", 20_000, 15_000))
    with pytest.raises(DataError, match="has 64 megapixels; at most 50"):
        check_picture(huge_png(tmp_path / "large.png", 8_000, 8_000))
    check_picture(image(tmp_path / "small.png"))


def test_a_drop_is_images_or_one_table(tmp_path):
    uploads = Uploads(tmp_path)
    upload = uploads.find(uploads.begin(3))
    with pytest.raises(DataError, match="drop images, or one table"):
        upload.pool()
    image(upload.folder / "a.png")
    assert upload.pool() == upload.folder
    (upload.folder / "t.csv").write_text("text,label\n")
    with pytest.raises(DataError, match="not both"):
        upload.pool()
