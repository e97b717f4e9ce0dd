"""What is recorded, what failed, what is missing; and the board of runs that go on."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from s2osc.baselines.post_hoc import MSP
from s2osc.bench import terminal
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.experiments.experiment import SIZES, Experiment
from s2osc.bench.records import record_path, write_record
from s2osc.bench.terminal import Board, make_listing
from s2osc.data.splits import SINGLE_UNKNOWN
from s2osc.errors import DataError

METHODS = {"msp": MSP(), "strict": MSP(known_recall=0.9)}


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two experiments, and no others: ``matrix``, which has sizes, and ``pool``."""
    sized = Experiment(
        *("Many", SINGLE_UNKNOWN, METHODS), data=("a", "b"), layout="matrix", sizes=SIZES
    )
    one = Experiment("One", SINGLE_UNKNOWN, {"msp": MSP()}, data=("a",))
    monkeypatch.setattr(terminal, "EXPERIMENTS", {"matrix": sized, "pool": one})
    return tmp_path


def add(results, experiment, data, method, size=None, partition=0, **outcome):
    record = {"dataset": data, "method": method, "size": size, "partition": partition}
    path = record_path(results, experiment, data, method, size, partition)
    write_record(path, record | (outcome or {"metrics": {"f1": 0.5}}))


def rows(results):
    table = make_listing(results)
    return [tuple(column._cells[row] for column in table.columns) for row in range(table.row_count)]


def test_without_records_everything_is_missing(results):
    assert rows(results) == [
        ("matrix", "any", "a, b", "2", "0", "0", "all"),
        ("pool", "one", "a", "1", "0", "0", "all"),
    ]


def test_each_size_has_a_row_with_what_it_lacks(results):
    for partition in (0, 1):
        add(results, "matrix", "a", "msp", "cpu", partition)
    add(results, "matrix", "b", "msp", "cpu", error={"kind": "DataError", "message": "no"})
    for data in ("a", "b"):
        for method in METHODS:
            add(results, "matrix", data, method, "smoke")
    add(results, "pool", "a", "msp")
    assert rows(results) == [
        ("matrix", "cpu", "a, b", "2", "2", "1", "a: strict; b: all"),
        ("matrix", "smoke", "a, b", "2", "4", "0", "nothing"),
        ("pool", "one", "a", "1", "1", "0", "nothing"),
    ]


def test_a_cell_lacks_the_partitions_that_other_cells_have(results):
    for partition in (0, 1, 2):
        add(results, "matrix", "a", "msp", "cpu", partition)
    add(results, "matrix", "a", "strict", "cpu", 1)
    for method in METHODS:
        add(results, "matrix", "b", method, "cpu", 0)
    add(results, "matrix", "b", "msp", "cpu", 1, error={"kind": "DataError", "message": "no"})
    add(results, "matrix", "b", "msp", "cpu", 2)
    missing = "a: strict (partitions 0 2); b: msp (partition 1), strict (partitions 1 2)"
    assert rows(results)[0][4:] == ("7", "1", missing)


def test_a_partition_that_failed_everywhere_is_missing(results):
    add(results, "pool", "a", "msp")
    add(results, "pool", "a", "msp", partition=1, error={"kind": "DataError", "message": "no"})
    assert rows(results)[1][4:] == ("1", "1", "a: msp (partition 1)")


def test_earlier_records_name_no_size(results):
    write_record(results / "pool" / "a-msp-p0.json", {"dataset": "a", "method": "msp", "seed": 0})
    assert rows(results)[1] == ("pool", "one", "a", "1", "1", "0", "nothing")


def test_a_run_that_failed_and_was_repeated_is_there(results):
    add(results, "pool", "a", "msp", error={"kind": "DataError", "message": "no"})
    assert rows(results)[1][4:] == ("0", "1", "all")
    add(results, "pool", "a", "msp")
    assert rows(results)[1][4:] == ("1", "0", "nothing")


def test_a_file_that_is_no_record_is_named(results):
    (results / "pool").mkdir()
    (results / "pool" / "a.json").write_text("{")
    with pytest.raises(DataError, match=r"a\.json cannot be read .* it is not a record"):
        make_listing(results)


def printed(results, width):
    shown = io.StringIO()
    Console(file=shown, width=width).print(make_listing(results))
    return shown.getvalue()


def test_the_list_names_every_experiment(tmp_path):
    _, _, _, *lines = printed(tmp_path, 400).splitlines()
    assert [line.split()[0] for line in lines if line.strip()] == list(EXPERIMENTS)


def test_nothing_is_cut_in_80_columns(tmp_path):
    text = printed(tmp_path, 80)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    words = set(text.replace(",", "").split())
    assert words >= EXPERIMENTS.keys()
    assert words >= {data for experiment in EXPERIMENTS.values() for data in experiment.data}
    long = "a-data-set-with-a-name-that-is-longer-than-any-column"
    add(tmp_path, "table1", long, "msp", "cpu")
    header, *lines = printed(tmp_path, 80).splitlines()
    column = slice(header.index("data"), header.index("methods"))
    assert long in "".join(line[column].strip() for line in lines)


# The board


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
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: time.now))
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
