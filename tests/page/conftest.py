"""Results and a page on them, for tests to change."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from files import easy_images, known_labels, npz, pool_labels
from page_helpers import HOST, PORT, TOKEN
from s2osc.cli.main import main
from s2osc.page.server import guarded_app
from s2osc.page.work import PoolWork, Work, opened_work


@pytest.fixture(scope="session")
def classified(tmp_path_factory, quick) -> Path:
    """A folder with known.npz, pool.npz of small images and, in ``out``, the results."""
    folder = tmp_path_factory.mktemp("images")
    known, pool = known_labels(60), pool_labels(20)
    npz(folder / "known.npz", x=easy_images(known, seed=0), y=known)
    npz(folder / "pool.npz", x=easy_images(pool, seed=1), y=pool)
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={folder / 'out'}", *quick]) == 0
    return folder


@pytest.fixture
def out(classified, tmp_path) -> Path:
    """Results of a test's own."""
    return shutil.copytree(classified / "out", tmp_path / "out", symlinks=True)


@pytest.fixture
def work(out) -> Iterator[Work]:
    with opened_work(out, None) as opened:
        assert isinstance(opened, PoolWork)
        yield opened


@pytest.fixture
def stranger(work) -> TestClient:
    """A browser that was never let in."""
    app = guarded_app(work, token=TOKEN, port=PORT)
    return TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False)


@pytest.fixture
def browser(stranger) -> TestClient:
    """A browser that opened the address with the token."""
    stranger.get(f"/?token={TOKEN}")
    stranger.headers["origin"] = f"http://{HOST}"
    return stranger
