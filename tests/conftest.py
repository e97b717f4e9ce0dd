"""What tests of several folders share."""

import gc
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

# Imports of ours stand where they are used: the process that only hands out tests needs none.
if TYPE_CHECKING:
    from s2osc.pipeline.solution import Solution
    from s2osc.types import Split

# The first example pays for what is imported late; a slow machine is no failure.
settings.register_profile("patient", deadline=None, max_examples=40)
settings.load_profile("patient")

STEPS = ("epochs=1", "min_steps=12")
QUICK = (
    *(f"--set={role}.training.{step}" for role in ("teacher", "student") for step in STEPS),
    *(f"--set={role}.network.widths=8,8,8" for role in ("teacher", "student")),
    *(f"--set={role}.network.hidden=16,16" for role in ("teacher", "student")),
    "--groups=1",
    "--set=seeds.judges=0",  # folds have tests of their own, and take as long as all the rest
)
LEARNT = tuple(f"--set={role}.training.min_steps=25" for role in ("teacher", "student"))
"""After ``QUICK``, for tests of what a run has learnt."""

ROUGHLY: dict[str, Any] = {
    "s2osc.pipeline.audit.unknown_test.N_DRAWN": 400,
    "s2osc.pipeline.audit.outcome.N_RESAMPLED": 20,
    "s2osc.pipeline.audit.confidence.N_RESAMPLED": 4,
    "s2osc.pipeline.audit.label_shift.N_RESAMPLED": 1,
    # Known classes are taken to be as usual ones are, and no walk through them is measured.
    "s2osc.pipeline.grouping.classes.FEWEST": 1_000_000,
    # Half of a small fit teaches the number of groups.
    "s2osc.pipeline.grouping.number.EPISODES": lambda users: replace(users, n_episodes=2),
    # A quarter asks whether a change of few items that could be compared explains a discovery.
    "s2osc.pipeline.sources.matched.MANY_COMPARED": 0,
    # Few photos go through a backbone as many do: in half as many pixels.
    "s2osc.nets.backbones.FEW_PHOTOS": 0,
}
"""What tests do with less than users get, where its worth is not what they test."""
AS_USERS_GET_IT: dict[str, Any] = {}


@pytest.fixture(scope="session", autouse=True)
def _no_waiting() -> Iterator[None]:
    """No test cuts the power, so none waits for the disk; maps and intervals are drawn roughly."""
    from s2osc import progress
    from s2osc.cli import main as command_line
    from s2osc.report import drawing

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses a closed file, too
        patch.setattr(drawing, "EARLY_ITERATIONS", 5)
        patch.setattr(drawing, "ITERATIONS", 5)
        # On a busy machine a step of a second may take ten; what is printed must not depend on it.
        patch.setattr(progress, "LONG", 600.0)
        # A process of a user's builds it once; a thousand commands here would each do it anew.
        patch.setattr(command_line, "build_parser", cache(command_line.build_parser))
        for name, value in ROUGHLY.items():
            module, _, constant = name.rpartition(".")
            users = AS_USERS_GET_IT[name] = getattr(import_module(module), constant)
            patch.setattr(name, value(users) if callable(value) else value)
        yield


@pytest.fixture(scope="module")
def as_users_get_it() -> Iterator[None]:
    """As many draws and episodes as users get, for a file that tests their worth."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in AS_USERS_GET_IT.items():
            patch.setattr(name, value)
        yield


@pytest.fixture
def just_as_users_get_it(monkeypatch) -> None:
    """The same for a single test."""
    for name, value in AS_USERS_GET_IT.items():
        monkeypatch.setattr(name, value)


AROUND_FITS = (
    *("app", "cli", "page", "fuzz", "service", "bench"),
    *("test_open_stream.py", "test_windows.py", "test_store.py", "test_bad_input.py"),
)
"""Folders and files of tests of what is done with a fit, not of the fit itself."""


@pytest.fixture(scope="module", autouse=True)
def _fit_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """There, the same fit to the same items is made once."""
    if not {*request.path.parts} & {*AROUND_FITS}:
        yield
        return
    import fits

    def constants() -> list[Any]:
        places = (name.rpartition(".") for name in ROUGHLY)
        return [getattr(import_module(module), constant) for module, _, constant in places]

    yield from fits.fitting_once(constants)


@pytest.fixture
def fits_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of whether the same fit gives the same answer."""
    monkeypatch.setattr("fits.IS_ON", False)


@pytest.fixture(scope="session")
def quick() -> tuple[str, ...]:
    """Options of the command line under which a run takes a second."""
    return QUICK


@pytest.fixture(scope="session")
def learnt() -> tuple[str, ...]:
    """The same with steps enough to learn most items."""
    return (*QUICK, *LEARNT)


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A folder with known.npz, pool.npz and, in ``out``, the results. To be read only."""
    from files import easy_vectors, known_labels, npz, pool_labels
    from s2osc.cli.main import main

    folder = tmp_path_factory.mktemp("finished")
    known, pool = known_labels(60), pool_labels(20)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(folder / "pool.npz", x=easy_vectors(pool, seed=1), y=pool)
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={folder / 'out'}", *QUICK]) == 0
    return folder


@pytest.fixture(scope="session")
def seeded() -> "tuple[Split, Solution]":
    """A pool with unknown items, and what the method with seeds found in it."""
    from s2osc.pipeline.presets import FAST
    from samples import make_images, open_set, shrink

    split = open_set(*make_images(100))
    return split, shrink(FAST, n_steps=8, k=None).fit(split.known, split.pool, seed=0)


LONGEST = (
    "test_contract.py",
    "test_estimator.py",
    "test_method.py",
    "test_browser.py",
    "test_readme.py",
    "test_extract.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first, and two equally long ones last: so nobody works alone.

    The audit hook of the kills stays for good and slows every call, so little comes after it.
    """

    def place(item: pytest.Item) -> int:
        if item.path.name in LONGEST:
            return LONGEST.index(item.path.name)
        if isinstance(item, pytest.DoctestItem):
            return len(LONGEST) + 2
        return len(LONGEST) + (item.path.parent.name == "fuzz")

    items.sort(key=place)


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """What is imported and collected stays to the end: no search for garbage goes through it."""
    gc.disable()


def pytest_collection_finish() -> None:
    """What a test leaves is small, so searches for garbage may be rare, too."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """What became of the damaged files and killed commands of ``tests/fuzz``."""
    total: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, counted in getattr(report, "user_properties", ()):
                if name == "fuzz" and report.when == "call":
                    total.update(counted)
    if total:
        kinds = ("tried", "worked", "refused", "crashed", "hung", "lost")
        terminalreporter.write_line("fuzz: " + ", ".join(f"{k} {total[k]:,}" for k in kinds))
