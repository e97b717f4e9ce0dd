"""Results of image files, for all exports."""

from pathlib import Path

import pytest

from files import easy_images, known_labels, pool_files, pool_labels, write_images
from s2osc.cli.main import main

KNOWN, POOL = known_labels(60), pool_labels(20)


@pytest.fixture(scope="session")
def photos(tmp_path_factory, quick) -> Path:
    """A folder with ``known`` and ``pool`` as image files and, in ``out``, the results."""
    folder = tmp_path_factory.mktemp("photos")
    files = [f"{name}/{row:03}.png" for row, name in enumerate(KNOWN)]
    write_images(folder / "known", files, easy_images(KNOWN, seed=0))
    write_images(folder / "pool", pool_files(20), easy_images(POOL, seed=1))
    paths = [f"--{name}={folder / name}" for name in ("known", "pool", "out")]
    assert main(["classify", *paths, *quick]) == 0
    return folder
