"""Long work: its progress, what comes of it, and an end in between."""

import time

import pytest

from s2osc.errors import DataError
from s2osc.page.jobs import Jobs
from s2osc.progress import track


def count(n: int, pause: float = 0.0) -> int:
    for _ in track(range(n), "counting", total=n):
        time.sleep(pause)
    return n


def refuse() -> None:
    raise DataError("that cannot be used; give another")


def break_down() -> None:
    raise RuntimeError("no such luck")


def wait_for(jobs: Jobs, *states: str) -> None:
    for _ in range(600):
        if jobs.current.state in states:
            return
        time.sleep(0.05)
    raise AssertionError(jobs.current)


def test_work_reports_its_steps_and_hands_on_what_it_returns():
    jobs, found = Jobs(), []
    jobs.start("Counting", count, 8, 0.1, then=found.append)
    for _ in range(600):
        described = jobs.current.describe()
        if described["step"].startswith("counting, ") and described["fraction"] > 0:
            break
        time.sleep(0.05)
    assert 0 < described["fraction"] < 1
    wait_for(jobs, "done")
    assert found == [8]


def test_a_second_piece_of_work_waits_for_a_word_and_a_cancelled_one_ends():
    jobs = Jobs()
    jobs.start("Counting", count, 1000, 0.1, expected=100.0, then=lambda _: None)
    assert 0 <= jobs.current.describe()["left"] <= 100
    with pytest.raises(DataError, match="at work already"):
        jobs.start("Counting", count, 1, then=lambda _: None)
    process = jobs._process
    jobs.cancel()
    assert jobs.current.state == "cancelled"
    assert not process.is_alive()
    with pytest.raises(DataError, match="nothing is at work"):
        jobs.cancel()


@pytest.mark.parametrize(
    ("work", "words"), [(refuse, "that cannot be used"), (break_down, "RuntimeError: no such luck")]
)
def test_work_that_fails_says_why_in_one_line(work, words):
    jobs = Jobs()
    jobs.start("Failing", work, then=lambda _: None)
    wait_for(jobs, "failed")
    assert words in jobs.current.error
