"""Downloads come from a small server on this computer that breaks, lies and refuses on demand."""

import hashlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from s2osc.data.download import RemoteFile, check_file, download_file
from s2osc.errors import DataError, OutputError

CONTENT = bytes(range(256)) * 40


@dataclass
class Site:
    """What the server holds and does, and what it was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=lambda: {"/data.gz": CONTENT})
    knows_range: bool = True
    says_length: bool = True
    breaks_after: list[int] = field(default_factory=list)  # bytes sent, one entry per request
    asked: list[tuple[str, str | None]] = field(default_factory=list)  # path, Range

    def remote(self, *paths: str) -> RemoteFile:
        urls = tuple(self.address + path for path in paths or ("/data.gz",))
        return RemoteFile("data.gz", urls, hashlib.md5(CONTENT).hexdigest(), len(CONTENT))

    @property
    def ranges(self) -> list[str | None]:
        return [wanted for _, wanted in self.asked]


def answer(handler: BaseHTTPRequestHandler, site: Site) -> None:
    wanted = handler.headers["Range"]
    site.asked.append((handler.path, wanted))
    content = site.files.get(handler.path)
    if content is None:
        handler.send_error(404)
        return
    offset = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0
    if not site.knows_range:
        offset = 0
    if offset and offset >= len(content):
        handler.send_error(416)
        return
    handler.send_response(206 if offset else 200)
    if site.says_length:
        handler.send_header("Content-Length", str(len(content) - offset))
    handler.end_headers()
    n_sent = site.breaks_after.pop(0) if site.breaks_after else len(content)
    handler.wfile.write(content[offset:][:n_sent])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, site)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        site.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield site
        server.shutdown()
        thread.join()


def test_a_file_is_downloaded_whole_and_nothing_else_is_left(site: Site, tmp_path: Path) -> None:
    path = download_file(site.remote(), tmp_path / "raw" / "mnist")
    assert path == tmp_path / "raw" / "mnist" / "data.gz"
    assert path.read_bytes() == CONTENT
    assert [file.name for file in path.parent.iterdir()] == ["data.gz"]
    assert site.ranges == [None]


def test_a_sha256_serves_as_checksum_too(site: Site, tmp_path: Path) -> None:
    remote = replace(site.remote(), checksum=hashlib.sha256(CONTENT).hexdigest())
    assert download_file(remote, tmp_path).read_bytes() == CONTENT
    with pytest.raises(DataError, match="sha256"):
        download_file(replace(remote, checksum="0" * 64), tmp_path)


def test_a_broken_connection_is_resumed_where_it_broke(site: Site, tmp_path: Path) -> None:
    site.breaks_after = [5000, 100]
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges == [None, "bytes=5000-", "bytes=5100-"]


def test_the_part_an_earlier_run_left_is_not_asked_for_again(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.gz.part").write_bytes(CONTENT[:7000])
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges == ["bytes=7000-"]
    assert not (tmp_path / "data.gz.part").exists()


def test_a_connection_that_brings_nothing_more_ends_the_try_and_keeps_the_part(
    site: Site, tmp_path: Path
) -> None:
    site.breaks_after = [5000, 0]
    with pytest.raises(DataError, match="broke off after 5000 of 10240 bytes"):
        download_file(site.remote(), tmp_path)
    assert (tmp_path / "data.gz.part").read_bytes() == CONTENT[:5000]
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges[-1] == "bytes=5000-"


def test_a_server_without_range_sends_the_whole_file_again(site: Site, tmp_path: Path) -> None:
    site.knows_range = False
    site.breaks_after = [5000]
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges == [None, "bytes=5000-"]


def test_a_server_without_range_that_always_breaks_is_given_up(site: Site, tmp_path: Path) -> None:
    site.knows_range = False
    site.breaks_after = [5000] * 50
    with pytest.raises(DataError, match="broke off after 5000 of 10240 bytes"):
        download_file(site.remote(), tmp_path)
    assert len(site.asked) == 2


def test_a_server_that_drips_a_byte_per_connection_is_given_up(site: Site, tmp_path: Path) -> None:
    site.breaks_after = [1] * 500
    with pytest.raises(DataError, match="broke off"):
        download_file(site.remote(), tmp_path)
    assert len(site.asked) == 11


def test_a_wrong_checksum_is_told_and_leaves_no_file(site: Site, tmp_path: Path) -> None:
    site.files["/data.gz"] = b"something else"
    found = hashlib.md5(b"something else").hexdigest()
    with pytest.raises(DataError, match=f"md5 {found} instead of {site.remote().checksum}"):
        download_file(site.remote(), tmp_path)
    assert list(tmp_path.iterdir()) == []
    site.files["/data.gz"] = CONTENT
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT


def test_an_address_with_a_wrong_file_gives_way_to_the_next(site: Site, tmp_path: Path) -> None:
    site.files["/login"] = b"<html>please log in</html>"
    remote = site.remote("/login", "/data.gz")
    assert download_file(remote, tmp_path).read_bytes() == CONTENT
    assert site.asked == [("/login", None), ("/data.gz", None)]


def test_a_part_with_wrong_bytes_is_thrown_away_and_begun_anew(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.gz.part").write_bytes(b"<html>" * 100)
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges == ["bytes=600-", None]


def test_a_part_longer_than_the_file_is_begun_anew(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.gz.part").write_bytes(CONTENT + b"more")
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.ranges == ["bytes=10244-", None]


def test_a_part_that_is_already_whole_needs_no_server(site: Site, tmp_path: Path) -> None:
    (tmp_path / "data.gz.part").write_bytes(CONTENT)
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    assert site.asked == []


def test_a_missing_file_is_looked_for_at_the_next_address(site: Site, tmp_path: Path) -> None:
    assert download_file(site.remote("/gone", "/data.gz"), tmp_path).read_bytes() == CONTENT


def test_when_every_address_fails_each_reason_is_told_in_one_line(
    site: Site, tmp_path: Path
) -> None:
    host = site.address.removeprefix("http://")
    refused = replace(site.remote("/gone"), urls=(f"{site.address}/gone", "http://127.0.0.1:9/x"))
    message = rf"cannot download data\.gz \({host}: 404 Not Found; 127\.0\.0\.1:9: .*refused"
    with pytest.raises(DataError, match=message) as caught:
        download_file(refused, tmp_path)
    assert "\n" not in str(caught.value)


def test_without_an_announced_length_the_checksum_decides(site: Site, tmp_path: Path) -> None:
    site.says_length = False
    assert download_file(site.remote(), tmp_path).read_bytes() == CONTENT
    site.breaks_after = [5000]
    (tmp_path / "data.gz").unlink()
    with pytest.raises(DataError, match="instead of"):
        download_file(site.remote(), tmp_path)


def test_a_folder_that_cannot_be_written_is_named(site: Site, tmp_path: Path) -> None:
    (tmp_path / "raw").write_text("a file where the folder should be")
    with pytest.raises(OutputError, match=re.escape(str(tmp_path / "raw"))):
        download_file(site.remote(), tmp_path / "raw")


def test_a_file_put_by_hand_passes_with_the_right_checksum_alone(
    site: Site, tmp_path: Path
) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(CONTENT)
    check_file(path, site.remote())
    path.write_bytes(b"another edition")
    with pytest.raises(DataError, match=r"has the md5 .* moved to .*data\.gz\.wrong"):
        check_file(path, site.remote())
    assert not path.exists()
    assert (tmp_path / "data.gz.wrong").read_bytes() == b"another edition"
