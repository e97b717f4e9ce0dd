"""Files to damage, made once, and a tally: tried, worked, refused, crashed, hung, lost."""

import os
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image
from starlette.testclient import TestClient

from files import (
    easy_images,
    easy_vectors,
    known_labels,
    npy,
    npz,
    parquet,
    pool_labels,
    text,
    write_images,
)
from fuzz.outcomes import Outcome
from s2osc.bench.records import write_record
from s2osc.cli.main import main
from s2osc.page import server
from s2osc.page.project import TOKEN, ActRequest
from s2osc.page.security import read_token
from s2osc.page.server import guarded_app
from s2osc.page.work import ROUNDS_FILE, PoolWork, Work, opened_work

TINY = (
    *(f"--set={r}.training.epochs=1" for r in ("teacher", "student")),
    *(f"--set={r}.training.min_steps=12" for r in ("teacher", "student")),
    *(f"--set={r}.network.hidden=8,8" for r in ("teacher", "student")),
    *(f"--set={r}.network.widths=8,8,8" for r in ("teacher", "student")),
    "--groups=1",
    "--set=seeds.judges=0",
    "--device=cpu",
)


@pytest.fixture(scope="session", autouse=True)
def _logs(tmp_path_factory) -> Iterator[None]:
    """Logs and caches of these tests lie among their files."""
    former = dict(os.environ)
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("logs"))
    os.environ["S2OSC_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    os.environ.clear()
    os.environ.update(former)


@pytest.fixture(scope="session")
def world(tmp_path_factory, _logs) -> Path:
    """Whole files of every kind that a command reads. To be copied, never changed."""
    folder = tmp_path_factory.mktemp("world")
    known, pool = known_labels(20), pool_labels(10)
    for name, labels, seed in (("known", known, 0), ("pool", pool, 1)):
        vectors = easy_vectors(labels, seed)
        npz(folder / f"{name}.npz", x=vectors, y=labels)
        columns = {f"f{n}": column for n, column in enumerate(vectors.T)}
        parquet(folder / f"{name}.parquet", label=labels, **columns)
    vectors = easy_vectors(pool, 1)
    npy(folder / "pool.npy", vectors)
    npz(folder / "narrow.npz", x=vectors[:, :3])
    photos = easy_images(known, 2)
    names = [f"{name}/{row}.png" for row, name in enumerate(known)]
    write_images(folder / "photos", names, photos)
    rows = [f"photos/{name},{label}" for name, label in zip(names, known, strict=True)]
    text(folder / "manifest.csv", "path,label", *rows)
    parquet(folder / "manifest.parquet", path=[f"photos/{name}" for name in names], label=known)
    Image.fromarray(photos[0].repeat(8, 0).repeat(8, 1)).save(folder / "photos" / "a.jpg")
    words = [f"--known={folder / 'known.npz'}", f"--pool={folder / 'pool.npz'}"]
    assert main(["classify", *words, f"--out={folder / 'out'}", *TINY]) == 0
    write_images(folder / "few", names[::8], photos[::8])
    words = [f"--known={folder / 'photos'}", f"--pool={folder / 'few'}", "--backbone=scratch"]
    assert main(["classify", *words, f"--out={folder / 'seen'}", *TINY]) == 0
    make_check(folder)
    make_page(folder)
    make_stream(folder)
    text(folder / "said.csv", "item,label,by,at", "1,fox,Ann,monday", "2,fox,,", "3,unknown,,")
    text(folder / "renamed.csv", "item,label", "left/0.png,fox")
    words = [f"--results={folder / 'seen'}", f"--to={folder / 'handed'}", "--format=folders"]
    assert main(["export", *words]) == 0
    for n in range(2):
        write_record(folder / "records" / "ablation" / f"mnist-s2osc-cpu-p{n}.json", record(n))
    return folder


def make_check(folder: Path) -> None:
    """Items of which some were labelled, and labels for the others."""
    out = f"--out={folder / 'out'}"
    assert main(["check", out, "--n=8", f"--to={folder / 'checked.csv'}"]) == 0
    first, *items = (folder / "checked.csv").read_text().splitlines()
    labelled = text(folder / "some.csv", first, *(f"{item}left" for item in items[:4]))
    assert main(["check", out, f"--labels={labelled}"]) == 0
    text(folder / "checked.csv", first, *(f"{item}corner" for item in items[4:]))


def make_page(folder: Path) -> None:
    """A page on which somebody has labelled, learnt and looked."""
    with opened_work(folder / "seen", None) as work:
        project = work.project
        project.act(ActRequest("a key of 8 or more", "Ada", "label", "class fox", (0, 1)))
        project.opened.picture(0, "small")
        assert isinstance(work, PoolWork)
        work.rounds.write(project.folder / ROUNDS_FILE)
        read_token(project.folder / TOKEN)


@pytest.fixture
def _ask_instead_of_serving(monkeypatch) -> None:
    """`s2osc page` answers what a browser asks for first, and ends."""

    def answer(work: Work, bound: socket.socket, *, token: str, hosts: tuple[str, ...]) -> None:
        port = bound.getsockname()[1]
        app = guarded_app(work, token=token, port=port, hosts=hosts)
        browser = TestClient(app, base_url=f"http://127.0.0.1:{port}")
        browser.get("/", params={"token": token})
        pool = work.project.opened.key
        for path in ("project", "columns", "map", "changes", "learning", "people", "check"):
            assert browser.get(f"/api/{path}").status_code in (200, 400), path
        for row in (0, 1):
            assert browser.get(f"/api/items/{row}").status_code in (200, 400)
            assert browser.get(f"/pictures/{pool}/{row}/small").status_code in (200, 400)

    monkeypatch.setattr(server, "serve", answer)


def make_stream(folder: Path) -> None:
    """A stream with an open question, and the answers to it."""
    update = ("--set=update.training.epochs=1", "--set=update.training.min_steps=12")
    words = [f"--known={folder / 'known.npz'}", f"--state={folder / 'state'}"]
    assert main(["stream", "init", *words, *TINY, *update]) == 0
    words = [f"--state={folder / 'state'}", f"--pool={folder / 'pool.npz'}", "--budget=8"]
    assert main(["stream", "window", *words, f"--out={folder / 'monday'}", "--device=cpu"]) == 0
    first, *lines = (folder / "monday" / "queries.csv").read_text().splitlines()
    place = first.replace('"', "").split(",").index("label")
    rows = [line.split(",") for line in lines]
    for row in rows:
        row[place] = "corner"
    text(folder / "answers.csv", first, *(",".join(row) for row in rows))


def record(partition: int) -> dict[str, object]:
    """A record of our method among the ablations on MNIST."""
    return {
        "experiment": "ablation",
        "size": "cpu",
        "method": "s2osc",
        "dataset": "mnist",
        "partition": partition,
        "seed": partition,
        "known_classes": ["0"],
        "unknown_classes": ["5"],
        "metrics": {"f1": 0.9},
        "seconds_total": 3.0,
    }


@pytest.fixture
def sandbox(world, tmp_path) -> Callable[..., Path]:
    """Copy some of the world's files into a folder of their own."""

    def copy(*names: str) -> Path:
        place = tmp_path / "sandbox"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        for name in names:
            if (world / name).is_dir():
                shutil.copytree(world / name, place / name, symlinks=True)
            else:
                shutil.copy(world / name, place / name)
        return place

    return copy


@pytest.fixture
def tally(record_property, request) -> Callable[[Outcome, str], None]:
    """Count an outcome, and fail where it is none of ours."""
    counted: Counter[str] = Counter()

    def count(outcome: Outcome, case: str) -> None:
        counted["tried"] += 1
        counted[outcome.kind] += 1
        request.node.user_properties[:] = [("fuzz", dict(counted))]
        assert outcome.is_fine, (
            f"{case} {outcome.kind}. Repeat: pytest '{request.node.nodeid}'\n{outcome.detail}"
        )

    return count
