"""Download one official file: resume after a break, and refuse a wrong checksum."""

import hashlib
import http.client
import math
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from s2osc.errors import DataError, OutputError
from s2osc.progress import track

CHUNK = 1 << 18  # bytes per read, and per step of the progress bar
TIMEOUT = 30.0  # seconds without a byte
MAX_BREAKS = 10  # broken connections to one address before the next is tried

PARTIAL_CONTENT = 206
RANGE_NOT_SATISFIABLE = 416


@dataclass(frozen=True)
class RemoteFile:
    """An official file: where it lies, and how to know that it is the one."""

    name: str
    urls: tuple[str, ...]  # tried in this order
    checksum: str  # hex digits: 32 are an md5, 64 a sha256
    size: int  # bytes, for the progress bar and the listing alone

    @property
    def algorithm(self) -> str:
        """Name of the checksum.

        >>> RemoteFile("a.gz", (), "d41d8cd98f00b204e9800998ecf8427e", 0).algorithm
        'md5'
        """
        return "md5" if len(self.checksum) == 32 else "sha256"


class TransferError(Exception):
    """One address did not give the whole file; another try or another address may."""


def checksum_of(path: Path, algorithm: str) -> str:
    """Hex digits of a file's checksum."""
    with path.open("rb") as file:
        # It guards against damage, not against an enemy: md5 is what the publishers give.
        digest = hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False))
    return digest.hexdigest()


def check_file(path: Path, remote: RemoteFile) -> None:
    """Move a file with a wrong checksum aside and say so; leave a right one alone."""
    found = checksum_of(path, remote.algorithm)
    if found != remote.checksum:
        aside = path.with_name(f"{path.name}.wrong")
        path.replace(aside)
        raise DataError(
            f"{path} has the {remote.algorithm} {found}, but the official file has "
            f"{remote.checksum}; it was moved to {aside}, so try again to download the official one"
        )


def download_file(remote: RemoteFile, folder: Path) -> Path:
    """Download a file into ``folder`` from the first address that gives the right bytes.

    The bytes gather in ``NAME.part``; the next call goes on from there.
    """
    part = folder / f"{remote.name}.part"
    failures = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for url in remote.urls:
            try:
                _complete(part, url, remote)
            except TransferError as failure:
                failures.append(f"{urllib.parse.urlsplit(url).netloc}: {failure}")
            else:
                return part.replace(folder / remote.name)
    except OSError as error:
        raise OutputError(
            f"cannot write {part} ({error.strerror or error}); "
            "free some space or choose another folder"
        ) from error
    raise DataError(f"cannot download {remote.name} ({'; '.join(failures)})")


def _complete(part: Path, url: str, remote: RemoteFile) -> None:
    """Make ``part`` the whole file, its checksum verified, from one address."""
    resumed = _size(part) > 0
    if resumed and checksum_of(part, remote.algorithm) == remote.checksum:
        return
    _transfer(part, url, remote)
    found = checksum_of(part, remote.algorithm)
    if found == remote.checksum:
        return
    part.unlink()
    if not resumed:
        raise TransferError(
            f"gave a file with the {remote.algorithm} {found} instead of {remote.checksum}, removed"
        )
    # The wrong bytes may be those an earlier try left, so this address deserves a clean one.
    _complete(part, url, remote)


def _transfer(part: Path, url: str, remote: RemoteFile) -> None:
    """Add what ``part`` lacks, asking again after a break as long as that brings new bytes."""
    for n_breaks in range(MAX_BREAKS + 1):
        before = _size(part)
        try:
            _append(part, url, remote)
            return
        except TransferError:
            if n_breaks == MAX_BREAKS or _size(part) <= before:
                raise


def _append(part: Path, url: str, remote: RemoteFile) -> None:
    """Ask one address once for the bytes after those in ``part``."""
    with _open(url, part) as response:
        # A server that knows no Range sends the whole file again.
        offset = _size(part) if response.status == PARTIAL_CONTENT else 0
        n_chunks = max(1, math.ceil((remote.size - offset) / CHUNK))
        with part.open("ab" if offset else "wb") as file:
            for chunk in track(_chunks(response), f"downloading {remote.name}", total=n_chunks):
                file.write(chunk)
        length = response.headers["Content-Length"]
    # http.client ends a broken body like a whole one; only its length tells them apart.
    if length is not None and _size(part) < offset + int(length):
        raise TransferError(f"broke off after {_size(part)} of {offset + int(length)} bytes")


def _open(url: str, part: Path) -> http.client.HTTPResponse:
    """Open an address at the byte where ``part`` ends."""
    offset = _size(part)
    headers = {"User-Agent": "s2osc"} | ({"Range": f"bytes={offset}-"} if offset else {})
    request = urllib.request.Request(url, headers=headers)
    try:
        response: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if offset and error.code == RANGE_NOT_SATISFIABLE:  # longer than the file it is to become
            part.unlink()
            return _open(url, part)
        raise TransferError(f"{error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise TransferError(str(error.reason)) from error
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(str(error) or type(error).__name__) from error
    return response


def _chunks(response: http.client.HTTPResponse) -> Iterator[bytes]:
    try:
        while chunk := response.read(CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise TransferError(f"broke off ({str(error) or type(error).__name__})") from error


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
