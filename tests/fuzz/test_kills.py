"""Commands that write, killed at every change they make to the disk.

What is left reads back whole, as before or as after; the same command again works.
"""

import contextlib
import io
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from files import npz, snapshot
from fuzz.conftest import TINY
from fuzz.outcomes import Outcome
from fuzz.tracer import images_of, killed_at
from s2osc.app.results_folder import RESULTS
from s2osc.cli.main import main
from samples import make_images

UPDATE = ("--set=update.training.epochs=1", "--set=update.training.min_steps=12")


class Command(NamedTuple):
    """A command that writes, what it needs, and how to read what it leaves."""

    words: tuple[str, ...]
    beside: tuple[str, ...]
    read: Callable[[Path], Any]


def run(words: tuple[str, ...], folder: Path) -> tuple[int, str, str]:
    """Exit code and what is printed, of a command in a folder."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            code = main(words)
    return code, printed.getvalue(), errors.getvalue()


def without_seconds(found: Any) -> Any:
    """JSON without what differs from run to run; of folders, which differ, too, the name."""
    if isinstance(found, dict):
        return {
            key: Path(value).name if key == "results" and value else without_seconds(value)
            for key, value in found.items()
            if not key.startswith("seconds") and key not in ("written", "origin")
        }
    return [without_seconds(value) for value in found] if isinstance(found, list) else found


def results(name: str) -> Callable[[Path], Any]:
    """The files of a results folder. The page is left out: it says the seconds."""

    def read(folder: Path) -> Any:
        found: dict[str, Any] = {}
        for file in RESULTS:
            path = folder / name / file
            if path.exists() and file != "report.html":
                content = path.read_bytes()
                is_json = path.suffix == ".json"
                found[file] = without_seconds(json.loads(content)) if is_json else content
        return found

    return read


def pages(name: str) -> Callable[[Path], Any]:
    """The same with the page, which `report` makes anew, and which version it is of."""

    def read(folder: Path) -> Any:
        page = (folder / name / "report.html").read_bytes()
        return results(name)(folder) | {
            "page": page,
            "at": str((folder / name / "report.html").resolve().relative_to(folder.resolve())),
        }

    return read


def stream(folder: Path) -> Any:
    """The state of a stream, as `stream status` reads it, and all that an answer is made from."""
    code, printed, errors = run(("stream", "status", "--state=state", "--json"), folder)
    if code == 0:
        return without_seconds(json.loads(printed))
    assert "Traceback" not in errors
    assert "no stream" in errors, errors
    return None


def records(folder: Path) -> Any:
    return {
        path.name: without_seconds(json.loads(path.read_bytes()))
        for path in sorted((folder / "results").rglob("*.json"))
    }


def handed(folder: Path) -> Any:
    """The files of an exported folder, which lies aside for a moment while it is replaced."""
    place = folder / "handed"
    return snapshot(place if place.exists() else folder / ".handed.s2osc-old")


EXPORT = ("export", "--results=seen", "--pool=few", "--to=handed", "--format=folders")
CLASSIFY = ("classify", "--known=known.npz", "--pool=pool.npz", *TINY)
COMMANDS = {
    "classify": Command((*CLASSIFY, "--out=new"), ("known.npz", "pool.npz"), results("new")),
    "classify-force": Command(
        (*CLASSIFY, "--out=out", "--seed=1", "--force"),
        ("known.npz", "pool.npz", "out"),
        results("out"),
    ),
    "decide": Command(("decide", "--out=out", "--false-alarm=0.2"), ("out",), results("out")),
    "check": Command(("check", "--out=out", "--n=5"), ("out",), results("out")),
    "check-labels": Command(
        ("check", "--out=out", "--labels=checked.csv"), ("out", "checked.csv"), results("out")
    ),
    "report": Command(("report", "--out=out"), ("out",), pages("out")),
    "export": Command(
        (*EXPORT, "--force", "--corrections=renamed.csv"),
        ("seen", "few", "handed", "renamed.csv"),
        handed,
    ),
    "init": Command(
        ("stream", "init", "--known=known.npz", "--state=state", *TINY, *UPDATE),
        ("known.npz",),
        stream,
    ),
    "window": Command(
        *[("stream", "window", "--state=state", "--pool=pool.npz", "--out=tuesday", "--budget=4")],
        ("state", "pool.npz"),
        stream,
    ),
    "answer": Command(
        ("stream", "answer", "--state=state", "--labels=answers.csv"),
        ("state", "answers.csv"),
        stream,
    ),
    "undo": Command(("stream", "undo", "--state=state"), ("state",), stream),
    "rename": Command(("stream", "rename", "--state=state", "left", "west"), ("state",), stream),
    "bench": Command(
        *[("bench", "run", "table1", "--data=tiny", "--methods=msp", "--partitions=2")],
        ("tiny.npz",),
        records,
    ),
}
COMMANDS["bench"] = COMMANDS["bench"]._replace(
    words=(*COMMANDS["bench"].words, "--size=smoke", "--folder=.", "--device=cpu")
)


@pytest.fixture(scope="module")
def place(world, tmp_path_factory) -> Callable[[str], Path]:
    """Copy what a command needs into a folder of its own."""
    images, labels = make_images(40)
    npz(world / "tiny.npz", x=images, y=labels, classes=list("abcd"))

    def copy(name: str) -> Path:
        folder = tmp_path_factory.mktemp(name)
        for file in COMMANDS[name].beside:
            if (world / file).is_dir():
                shutil.copytree(world / file, folder / file, symlinks=True)
            else:
                shutil.copy(world / file, folder / file)
        return folder

    return copy


def judge(name: str, left: Path, before: Any, after: Any, *, again: bool) -> Outcome:
    """Whether a kill cost anything, and whether the same command works where it happened."""
    command = COMMANDS[name]
    found = command.read(left)
    if found not in (before, after) and not is_on_the_way(name, found, after):
        return Outcome("lost", f"{left}: neither as before nor as after")
    if not again:
        return Outcome("worked")
    code, _, errors = run(command.words, left)
    # Results that were whole but for the last step are there as soon as the folder is opened.
    if code == 2 and name == "classify" and command.read(left) != after:
        code, _, errors = run(("report", "--out=new"), left)
    if code == 0 or (code == 2 and command.read(left) == after):
        return Outcome("worked" if code == 0 else "refused", errors)
    return Outcome("crashed", f"{left}: the same command again, exit code {code}: {errors}")


def is_on_the_way(name: str, found: Any, after: Any) -> bool:
    """Records come one by one. The answer and the model come before their page and its words."""
    if name == "bench":
        return all(after[key] == value for key, value in found.items())
    if not name.startswith("classify") or not found:
        return False
    drawn = {"summary.json", "report.safetensors"}
    return found.keys() == after.keys() - {"report.safetensors"} and all(
        found[file] == after[file] for file in found.keys() - drawn
    )


# With --force, classify has more to lose; a check is one with and without labels.
LIKE_OTHERS = ("classify", "check-labels")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n in LIKE_OTHERS else ()) for n in COMMANDS],
)
def test_what_a_kill_leaves_is_whole(name, place, tmp_path, tally):
    folder = place(name)
    before = COMMANDS[name].read(folder)
    done = []
    images = images_of(
        lambda: done.append(run(COMMANDS[name].words, folder)), folder, tmp_path / "images"
    )
    assert done[0][0] == 0, done
    after = COMMANDS[name].read(folder)
    assert after != before
    spread = set(np.linspace(0, len(images) - 1, 3).astype(int).tolist())
    for number, image in enumerate(images):
        outcome = judge(name, image, before, after, again=number in spread)
        tally(outcome, f"{name}, killed in state {number} of {len(images)}")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_any_change_works_again(name, place, tally):
    whole = place(name)
    before = COMMANDS[name].read(whole)
    assert run(COMMANDS[name].words, whole)[0] == 0
    after = COMMANDS[name].read(whole)
    number, is_killed = 0, True
    while is_killed:
        number += 1
        folder = place(name)
        is_killed = killed_at(number, lambda folder=folder: run(COMMANDS[name].words, folder))
        tally(judge(name, folder, before, after, again=True), f"{name}, killed at change {number}")
    assert number > 3
