"""Bars are drawn where somebody looks, and steps are timed."""

import io
import json

import pytest
from rich.console import Console

from s2osc import progress
from s2osc.progress import Stopwatch, counting, reported, shown, track, written


def screen():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def test_items_pass_unchanged_and_one_at_a_time():
    taken = []

    def items():
        for item in "abc":
            taken.append(item)
            yield item

    tracked = track(items(), "letters")
    assert next(tracked) == "a"
    assert taken == ["a"]
    assert list(tracked) == ["b", "c"]


def test_nothing_is_drawn_unless_asked_for(capsys):
    list(track(range(3), "counting"))
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_a_bar_is_drawn_where_a_terminal_shows_it():
    console = screen()
    with shown(console):
        assert list(track(range(3), "training f", total=3)) == [0, 1, 2]
    assert "training f" in console.file.getvalue()
    assert "100%" in console.file.getvalue()


def test_a_file_or_pipe_is_not_drawn_on():
    console = Console(file=io.StringIO(), force_terminal=False)
    with shown(console):
        assert list(track(range(3), "training f")) == [0, 1, 2]
    assert console.file.getvalue() == ""


def test_a_long_step_is_one_line_in_a_file_or_pipe(monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.0)
    console = Console(file=io.StringIO(), force_terminal=False)
    with shown(console):
        assert list(track(range(3), "training [f]")) == [0, 1, 2]
    list(track(range(3), "counting"))
    assert console.file.getvalue() == "training [f] ...\n"


class Full(io.StringIO):
    def write(self, text):
        raise OSError("no space left on device")


def test_a_file_that_takes_no_line_does_not_end_the_work(monkeypatch):
    monkeypatch.setattr(progress, "LONG", 0.0)
    with shown(Console(file=Full())):
        assert list(track(range(3), "training f")) == [0, 1, 2]


def test_after_showing_all_is_silent_again_also_after_an_error():
    console = screen()

    def fail():
        with shown(console):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    drawn = console.file.getvalue()
    list(track(range(3), "later"))
    assert console.file.getvalue() == drawn


def test_a_stopwatch_adds_up_the_seconds_of_each_step(monkeypatch):
    times = iter([0.0, 1.5, 10.0, 10.25, 20.0, 21.0])
    monkeypatch.setattr(progress.time, "perf_counter", lambda: next(times))
    clock = Stopwatch()
    for step in ("teacher", "student", "teacher"):
        with clock(step):
            pass
    assert clock.seconds == {"teacher": 2.5, "student": 0.25}


def test_a_step_that_fails_is_timed_too():
    clock = Stopwatch()

    def fail():
        with clock("teacher"):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail()
    assert list(clock.seconds) == ["teacher"]


def test_rows_are_told_every_ten_seconds_where_there_is_no_terminal(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    console = Console(file=io.StringIO(), force_terminal=False)
    with shown(console), counting("answering", total=1_000, done=100) as advance:
        for _ in range(6):
            now[0] += 4
            advance(100)
            assert list(track([1], "a step within")) == [1]
    assert console.file.getvalue().splitlines() == [
        "answering: 400 of 1,000 rows, 600 left, 25 rows/s, 24 s left",
        "answering: 700 of 1,000 rows, 300 left, 25 rows/s, 12 s left",
    ]


def test_rows_are_told_to_programs_as_json():
    file = io.StringIO()
    with written(file), counting("answering", total=10) as advance:
        advance(10)
    last = json.loads(file.getvalue().splitlines()[-1])
    assert (last["step"], last["done"], last["rows_left"]) == ("answering", 10, 0)
    assert last["rows_per_second"] > 0


def test_rows_are_drawn_on_a_terminal():
    console = screen()
    with shown(console), counting("answering", total=10) as advance:
        advance(10)
    assert "rows/s" in console.file.getvalue()


def test_rows_are_reported_to_a_page():
    steps = []
    with reported(lambda *step: steps.append(step)), counting("answering", total=10) as advance:
        advance(4)
    assert steps == [("answering", 4, 10)]
