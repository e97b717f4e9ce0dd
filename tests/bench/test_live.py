"""The board: what is done, how good it was, and how long the rest takes."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from s2osc.bench import live
from s2osc.bench.live import Board


def run(name="msp", data="mnist", partition=0):
    return SimpleNamespace(name=name, data=data, partition=partition)


def record(f1=0.9, seconds=12.0):
    return {"metrics": {"f1": f1}, "seconds_total": seconds}


FAILED = {"error": {"kind": "DataError", "message": "class 3 has [1] item"}}
RUNS = [
    run(name, data, p) for data in ("mnist", "svhn") for p in (0, 1) for name in ("msp", "odin")
]


@pytest.fixture
def clock(monkeypatch) -> SimpleNamespace:
    """The seconds that have gone by."""
    time = SimpleNamespace(now=0.0)
    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=lambda: time.now))
    return time


def make_board(*, terminal: bool, **size: int) -> tuple[Board, io.StringIO]:
    drawn = io.StringIO()
    size = {"width": 120} | size
    console = Console(file=drawn, force_terminal=terminal, color_system=None, **size)
    return Board("table1", RUNS, console), drawn


def finish(board, clock, run, outcome, seconds):
    board.begin(run)
    clock.now += seconds
    board.done(run, outcome)


# Not on a terminal


def test_elsewhere_than_on_a_terminal_each_run_is_a_line(clock):
    board, drawn = make_board(terminal=False)
    with board:
        board.done(RUNS[0], record())  # recorded before: nobody waited for it
        assert drawn.getvalue() == ""
        finish(board, clock, RUNS[1], record(0.8125, 59.6), 60)
        finish(board, clock, RUNS[2], FAILED, 20)
    assert drawn.getvalue().splitlines() == [
        "2/8 odin on mnist, partition 0: F1 0.812, 60 s; about 4 min left",
        "3/8 msp on mnist, partition 1: failed: DataError: class 3 has [1] item; about 4 min left",
    ]


def test_the_default_is_standard_error(capsys, clock):
    board = Board("small", [run()])
    with board:
        finish(board, clock, run(), record(), 1)
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors == "1/1 msp on mnist, partition 0: F1 0.900, 12 s; less than a minute left\n"


# On a terminal


def test_on_a_terminal_a_table_fills(clock, capsys):
    board, drawn = make_board(terminal=True)
    with board:
        finish(board, clock, RUNS[0], record(0.9), 30)
        finish(board, clock, RUNS[2], record(0.95), 30)
        finish(board, clock, RUNS[1], FAILED, 30)
        board.begin(RUNS[4])
    assert capsys.readouterr().err == ""
    shown = drawn.getvalue()
    assert "table1: mean weighted F1" in shown
    last = shown[shown.rindex("3 of 8 runs") :]
    rows = [line.split("│")[1:-1] for line in last.splitlines() if line.startswith("│")]
    assert [[cell.strip() for cell in row] for row in rows] == [
        ["msp", "0.925 (2/2)", "– (0/2)"],
        ["odin", "– (0/2, 1 failed)", "– (0/2)"],
    ]
    assert last.startswith("3 of 8 runs, about 2 min left. Now: msp on svhn, partition 0")


def test_what_runs_now_is_seen_on_a_terminal_lower_than_the_table(clock):
    board, drawn = make_board(terminal=True, width=80, height=6)
    with board:
        board.begin(RUNS[0])
        shown = drawn.getvalue()
    assert "0 of 8 runs, time left not known yet. Now: msp on mnist, partition 0" in shown
    assert "odin" not in shown


def test_the_table_is_left_as_it_was_last(clock):
    board, drawn = make_board(terminal=True)
    with board:
        for each in RUNS:
            finish(board, clock, each, record(), 1)
    last = drawn.getvalue()
    last = last[last.rindex("8 of 8 runs") :]
    assert last.count("0.900 (2/2)") == 4
    assert "8 of 8 runs, less than a minute left" in last
    assert "Now:" not in last


def test_the_terminal_is_given_back_when_a_run_is_interrupted(clock):
    board, drawn = make_board(terminal=True)

    def interrupted():
        with board:
            board.begin(RUNS[0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert drawn.getvalue().rindex("\x1b[?25h") > drawn.getvalue().rindex("\x1b[?25l")  # cursor


# Time left


def test_the_time_left_is_not_known_until_every_method_has_run(clock, capsys):
    board, _ = make_board(terminal=False)
    assert board.time_left() == "time left not known yet"
    finish(board, clock, RUNS[0], record(), 120)
    assert board.time_left() == "time left not known yet"
    finish(board, clock, RUNS[1], FAILED, 60)
    assert board.time_left() == "about 9 min left"  # three runs of two minutes, three of one


def test_the_time_left_goes_by_method_and_data_set(clock, capsys):
    board, _ = make_board(terminal=False)
    finish(board, clock, run("msp", "mnist"), record(), 600)
    finish(board, clock, run("odin", "mnist"), record(), 60)
    assert board.time_left() == "about 33 min left"
    clock.now += 1_000  # between runs
    finish(board, clock, run("msp", "svhn"), record(), 1_200)
    assert board.time_left() == "about 33 min left"  # msp 10 and 20, odin 3 of 1
    finish(board, clock, run("odin", "mnist", 1), record(), 180)
    assert board.time_left() == "about 34 min left"  # odin takes 2 by now


def test_runs_recorded_before_tell_the_time_too(clock):
    board, _ = make_board(terminal=False)
    board.done(run("msp", "mnist"), record(seconds=600))
    board.done(run("odin", "mnist"), record(seconds=60))
    assert board.time_left() == "about 33 min left"
    for each in RUNS[2:]:
        board.done(each, record())
    assert board.time_left() == "less than a minute left"


def test_every_cell_counts_its_own_runs(clock):
    uneven = Board("small", [run(), run(partition=1), run("odin")])
    assert uneven.n_wanted == 3
    uneven.done(run(), FAILED)
    uneven.done(run(partition=1), record(0.5))
    assert uneven.cell("msp", "mnist") == "0.500 (1/2, 1 failed)"
    assert uneven.cell("odin", "mnist") == "– (0/1)"


def test_a_board_without_runs_has_nothing_to_do(capsys):
    with Board("small", []) as board:
        assert board.n_wanted == board.n_done == 0
    assert capsys.readouterr().err == ""
