"""What tests of several folders share."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import settings

from files import easy_vectors, known_labels, npz, pool_labels
from s2osc.cli.main import main
from s2osc.pipeline.audit import confidence, outcome
from s2osc.pipeline.grouping import number
from s2osc.pipeline.presets import FAST
from s2osc.pipeline.solution import Solution
from s2osc.pipeline.sources import matching
from s2osc.report import drawing
from s2osc.types import Split
from samples import make_images, open_set, shrink

# The first example pays for what is imported late; a slow machine is no failure.
settings.register_profile("patient", deadline=None, max_examples=60)
settings.load_profile("patient")

STEPS = ("epochs=1", "min_steps=20")
QUICK = (
    *(f"--set={role}.training.{step}" for role in ("teacher", "student") for step in STEPS),
    *(f"--set={role}.network.widths=8,8,8" for role in ("teacher", "student")),
    *(f"--set={role}.network.hidden=16,16" for role in ("teacher", "student")),
    "--groups=1",
    "--set=seeds.judges=0",  # folds have tests of their own, and take as long as all the rest
)


ROUGHLY = (
    (outcome, "N_RESAMPLED", 20),
    (confidence, "N_RESAMPLED", 4),
    # Half of a small fit teaches the number of groups.
    (number, "EPISODES", replace(number.EPISODES, n_episodes=2)),
    # A quarter asks whether a change of few items that could be compared explains a discovery.
    (matching, "MANY_COMPARED", 0),
)
"""What tests do with less than users get, where its worth is not what they test."""
AS_USERS_GET_IT = tuple((module, name, getattr(module, name)) for module, name, _ in ROUGHLY)


@pytest.fixture(scope="session", autouse=True)
def _no_waiting() -> Iterator[None]:
    """No test cuts the power, so none waits for the disk; maps and intervals are drawn roughly."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)  # which refuses a closed file, too
        patch.setattr(drawing, "EARLY_ITERATIONS", 20)
        patch.setattr(drawing, "ITERATIONS", 20)
        for module, name, value in ROUGHLY:
            patch.setattr(module, name, value)
        yield


@pytest.fixture(scope="module")
def as_users_get_it() -> Iterator[None]:
    """As many draws and episodes as users get, for a file that tests their worth."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in AS_USERS_GET_IT:
            patch.setattr(module, name, value)
        yield


@pytest.fixture
def just_as_users_get_it(monkeypatch) -> None:
    """The same for a single test."""
    for module, name, value in AS_USERS_GET_IT:
        monkeypatch.setattr(module, name, value)


@pytest.fixture(scope="session")
def quick() -> tuple[str, ...]:
    """Options of the command line under which a run takes a second."""
    return QUICK


@pytest.fixture(scope="session")
def finished(tmp_path_factory) -> Path:
    """A folder with known.npz, pool.npz and, in ``out``, the results. To be read only."""
    folder = tmp_path_factory.mktemp("finished")
    known, pool = known_labels(60), pool_labels(20)
    npz(folder / "known.npz", x=easy_vectors(known, seed=0), y=known)
    npz(folder / "pool.npz", x=easy_vectors(pool, seed=1), y=pool)
    paths = [f"--{name}={folder / name}.npz" for name in ("known", "pool")]
    assert main(["classify", *paths, f"--out={folder / 'out'}", *QUICK]) == 0
    return folder


@pytest.fixture(scope="session")
def seeded() -> tuple[Split, Solution]:
    """A pool with unknown items, and what the method with seeds found in it."""
    split = open_set(*make_images(100))
    return split, shrink(FAST, n_steps=8, k=None).fit(split.known, split.pool, seed=0)


LONGEST = ("test_readme.py", "test_estimator.py", "test_contract.py", "test_method.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files come first: whoever gets one last works alone in the end.

    The audit hook of the kills stays for good and slows every call, so little comes after it.
    """

    def place(item: pytest.Item) -> int:
        if item.path.name in LONGEST:
            return 0
        if isinstance(item, pytest.DoctestItem):
            return 3
        return 2 if item.path.name == "test_kills.py" else 1

    items.sort(key=place)


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
