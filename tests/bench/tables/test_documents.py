"""Tables come from records alone, and go where their marks are."""

from dataclasses import replace

import pytest

from s2osc.bench.experiments.catalogue import COVERED, EXPERIMENTS, SEEDED
from s2osc.bench.experiments.experiment import MAIN, Experiment
from s2osc.bench.records import read_records, write_record
from s2osc.bench.tables.documents import (
    fill_document,
    make_cells,
    make_table,
    make_tables,
    with_tables,
    write_cells,
    write_experiment,
    write_page,
)
from s2osc.bench.tables.layouts import MOST_ROWS
from s2osc.data.splits import SINGLE_UNKNOWN
from s2osc.errors import DataError, OutputError
from samples import MANY, TINY


@pytest.fixture(autouse=True)
def experiments(monkeypatch):
    one, two = {"fast": TINY}, {"fast": TINY, "binary": MANY}
    monkeypatch.setitem(EXPERIMENTS, "plain", Experiment("Plain title", SINGLE_UNKNOWN, one))
    monkeypatch.setitem(EXPERIMENTS, "pair", Experiment("Pair title", SINGLE_UNKNOWN, two))
    own = {"K": "k", "F_out": "f_out", "groups": "n_groups"}
    monkeypatch.setitem(EXPERIMENTS, "own", Experiment("Own columns", SINGLE_UNKNOWN, one, own))


def record(seed, value=0.5, *, dataset="mnist", method="fast", seconds=10.0, metrics=None):
    return {
        "dataset": dataset,
        "method": method,
        "seed": seed,
        "known_classes": ["a", "b"],
        "unknown_classes": ["c"],
        "metrics": dict.fromkeys(MAIN.values(), value) if metrics is None else metrics,
        "seconds_total": seconds,
        "machine": {"threads": 2},
    }


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_run_is_a_row_of_its_figures():
    title, empty, header, rule, row = make_table("plain", [record(0, 0.12345)]).splitlines()
    assert title == "Plain title (2 threads):"
    assert empty == ""
    assert len(cells(header)) == len(cells(rule)) == len(cells(row))
    assert set(cells(rule)) == {"---"}
    assert cells(row) == ["mnist", "a, b / c", *["0.123"] * len(MAIN), "0.985", "10"]


def test_several_partitions_have_a_mean_and_a_deviation():
    records = [record(seed, value) for seed, value in ((2, 0.6), (0, 0.9), (1, 0.9))]
    *_, last = make_table("plain", records).splitlines()
    # mean of 0.9 0.9 0.6; deviation over n - 1: sqrt((2 * 0.1^2 + 0.2^2) / 2)
    assert cells(last)[:3] == ["mnist", "mean of 3", "**0.800** ± 0.173"]


def test_the_paragraph_before_says_what_a_deviation_is_where_there_is_one():
    title = make_table("plain", [record(0), record(1)]).splitlines()[0]
    assert title == "Plain title (2 threads; ± is the standard deviation over partitions):"
    pair = [record(0), record(0, method="binary")]
    assert make_table("pair", pair).splitlines()[0] == "Pair title (2 threads):"


def test_partitions_stand_in_the_order_of_their_seeds():
    records = [record(seed, seed / 10) for seed in (2, 0, 1)]
    lines = make_table("plain", records).splitlines()[4:7]
    assert [cells(line)[2] for line in lines] == ["0.000", "0.100", "0.200"]


def test_data_sets_are_not_mixed():
    records = [
        record(seed, value, dataset=data)
        for data, value in (("mnist", 0.9), ("own", 0.1))
        for seed in (0, 1)
    ]
    lines = make_table("plain", records).splitlines()[4:]
    means = {cells(line)[0]: cells(line)[2] for line in lines if "mean of 2" in line}
    assert means == {"mnist": "**0.900** ± 0.000", "own": "**0.100** ± 0.000"}
    assert [cells(line)[-2] for line in lines if cells(line)[0] == "own"] == ["", "", ""]


def test_several_methods_have_a_row_each_with_their_means():
    records = [
        record(seed, value + seed / 10, method=method)
        for method, value in (("fast", 0.4), ("binary", 0.7))
        for seed in (0, 2)
    ]
    lines = make_table("pair", records).splitlines()[4:]
    assert [cells(line)[:3] for line in lines] == [
        ["mnist", "fast of 2", "**0.500** ± 0.141"],
        ["mnist", "binary of 2", "**0.800** ± 0.141"],
    ]


def test_one_partition_of_several_methods_has_no_deviation():
    lines = make_table("pair", [record(0, 0.4)]).splitlines()[4:]
    assert [cells(line)[:3] for line in lines] == [["mnist", "fast of 1", "**0.400**"]]


def test_a_method_without_records_has_no_row():
    records = [record(0, method="binary"), record(1, method="binary")]
    lines = make_table("pair", records).splitlines()[4:]
    assert [cells(line)[1] for line in lines] == ["binary of 2"]


# Columns and cells


@pytest.mark.parametrize(
    ("name", "columns"), [("single", MAIN), ("rare", SEEDED), ("coverage", COVERED)]
)
def test_an_experiment_has_columns_of_its_own(name, columns):
    experiment = EXPERIMENTS[name]
    [method, *_] = experiment.methods
    title, _, header, *_ = make_table(name, [record(0, method=method)]).splitlines()
    assert title.startswith(experiment.title)
    beside = ["paper's F1"] if "f1" in columns.values() else []
    assert cells(header)[2:] == [*columns, *beside, "seconds"]


def own_row(*all_metrics):
    """The cells of the last row of a table of these runs, for K, F_out and groups."""
    records = [record(seed, metrics=metrics) for seed, metrics in enumerate(all_metrics)]
    return cells(make_table("own", records).splitlines()[-1])[2:5]


def test_numbers_of_things_have_no_decimals_and_rates_have_three():
    assert own_row({"k": 300, "f_out": 0.5, "n_groups": 12}) == ["300", "0.500", "12"]


@pytest.mark.parametrize("number", [0, 1])
def test_none_or_one_of_a_thing_is_not_taken_for_a_rate(number):
    metrics = {"k": number, "f_out": float(number), "n_groups": number}
    assert own_row(metrics) == [str(number), f"{number}.000", str(number)]


def test_means_of_numbers_have_decimals_where_they_need_them():
    first, second = ({"k": 300, "f_out": 1.0, "n_groups": n} for n in (1, 2))
    expected = ["**300** ± 0.000", "**1.000** ± 0.000", "**1.500** ± 0.707"]
    assert own_row(first, second) == expected


def test_a_figure_that_a_run_has_not_is_an_empty_cell():
    assert own_row({"n_groups": 2}) == ["", "", "2"]
    assert own_row({}) == ["", "", ""]


def test_a_mean_is_over_the_runs_that_have_the_figure():
    three = [{"k": 0}, {"k": 0, "f_out": 0.4}, {"k": 0, "f_out": 0.8}]
    # deviation of 0.4 and 0.8 over n - 1: sqrt(2 * 0.2^2)
    assert own_row(*three) == ["**0** ± 0.000", "**0.600** ± 0.283", ""]
    assert own_row({}, {"f_out": 0.4}) == ["", "**0.400**", ""]


def test_a_pool_without_unknown_classes_says_so():
    nothing = record(0) | {"unknown_classes": []}
    assert cells(make_table("plain", [nothing]).splitlines()[-1])[1] == "a, b / nothing"


# Many runs


def test_as_many_runs_as_a_table_holds_have_a_row_each():
    lines = make_table("plain", [record(seed) for seed in range(MOST_ROWS)]).splitlines()
    assert cells(lines[2])[1] == "known / unknown"
    assert len(lines) == 4 + MOST_ROWS + 1
    assert cells(lines[-1])[1] == f"mean of {MOST_ROWS}"


def test_more_runs_than_a_table_holds_show_their_means_alone():
    records = [record(seed, seed % 2) for seed in range(MOST_ROWS + 2)]
    lines = make_table("plain", records).splitlines()
    assert cells(lines[2])[1] == "method"
    assert [cells(line)[1] for line in lines[4:]] == [f"mean of {MOST_ROWS + 2}"]
    assert cells(lines[4])[2].startswith("**0.500**")


def test_among_many_runs_the_only_one_of_its_data_is_not_lost():
    records = [*(record(seed) for seed in range(MOST_ROWS)), record(0, 0.25, dataset="own")]
    lines = make_table("plain", records).splitlines()[4:]
    assert [cells(line)[:3] for line in lines] == [
        ["own", "mean of 1", "**0.250**"],
        ["mnist", f"mean of {MOST_ROWS}", "**0.500** ± 0.000"],
    ]


# Sizes and failures


def test_sizes_have_tables_of_their_own():
    records = [record(0, 0.9), record(0, 0.1) | {"size": "smoke"}, record(0, 0.5) | {"size": "cpu"}]
    text = make_table("plain", records)
    first, second, third = (text.index(f"| {value} |") for value in ("0.900", "0.500", "0.100"))
    assert first < second < third
    assert [line for line in text.splitlines() if line.startswith("Plain title")] == [
        "Plain title (2 threads):",
        "Plain title (size cpu, 2 threads):",
        "Plain title (size smoke, 2 threads):",
    ]


def broken(seed, **others):
    failed = record(seed, **others) | {"error": {"kind": "DataError", "message": "no room"}}
    del failed["metrics"], failed["seconds_total"]
    return failed


def test_a_failed_run_is_no_row_and_is_told():
    text = make_table("plain", [record(0), broken(1)])
    assert text == (
        make_table("plain", [record(0)])
        + "\n\nFailed: fast on mnist, partition 1 (DataError: no room)."
    )
    *_, rule, _, last = make_table("plain", [broken(1)]).splitlines()
    assert set(cells(rule)) == {"---"}
    assert last.startswith("Failed: ")


# Files


@pytest.fixture
def matrix(monkeypatch, tmp_path):
    """A folder of records of an experiment of two methods on two data sets."""
    methods = {"odin": TINY, "s2osc": MANY}
    experiment = Experiment(
        "Matrix title",
        SINGLE_UNKNOWN,
        methods,
        data=("mnist", "svhn"),
        layout="matrix",
        table="one",
    )
    monkeypatch.setitem(EXPERIMENTS, "matrix", experiment)
    run = {"size": "cpu", "protocol": {"n_unknown": 1}, "partition": 3}
    odin = record(3, method="odin", metrics={"f1": 0.5, "f_out": 0.25}) | run
    odin |= {"paper_mode": {"f1": 0.125}, "held_out": {"f1": 0.75}, "commit": "c0ffee"}
    odin |= {"seconds": {"fit": 9.5, "predict": 0.5}, "machine": {"threads": 2, "device": "cpu"}}
    write_record(tmp_path / "matrix" / "mnist-odin-cpu-p3.json", odin)
    write_record(
        tmp_path / "matrix" / "svhn-s2osc-cpu-p3.json",
        broken(3, method="s2osc", dataset="svhn") | run,
    )
    return tmp_path


def test_a_report_is_markdown_csv_and_latex(matrix, tmp_path):
    paths = write_experiment(matrix, "matrix", tmp_path / "new" / "reports")
    assert [path.name for path in paths] == ["matrix.md", "matrix.csv", "matrix.tex"]
    assert sorted(paths) == sorted((tmp_path / "new" / "reports").iterdir())
    markdown, values, latex = (path.read_text(encoding="utf-8") for path in paths)
    assert markdown == make_tables(matrix, ["matrix"])["matrix"] + "\n"
    assert "| odin (fair mode) | **0.500** (1) [0.767] | – [0.584] |" in markdown
    assert r"odin (fair mode) & \textbf{0.500} (1) [0.767] & -- [0.584] \\" in latex
    assert latex.count(r"\begin{tabular}{lll}") == latex.count(r"\end{tabular}") > 0
    assert values.splitlines() == [
        "experiment,size,dataset,method,partition,mode,part,metric,value,paper,"
        "seed,commit,device,threads",
        "matrix,cpu,mnist,odin,3,fair,pool,f1,0.5,0.767,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,fair,pool,f_out,0.25,0.39,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,paper,pool,f1,0.125,0.767,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,fair,held_out,f1,0.75,,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,,run,seconds_total,10.0,,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,,run,seconds_fit,9.5,,3,c0ffee,cpu,2",
        "matrix,cpu,mnist,odin,3,,run,seconds_predict,0.5,,3,c0ffee,cpu,2",
        "matrix,cpu,svhn,s2osc,3,,run,error,DataError: no room,,3,,,2",
    ]


def test_older_experiments_have_reports_too(tmp_path):
    write_record(tmp_path / "plain" / "mnist-fast-p0.json", record(0, 0.5))
    markdown, values, latex = write_experiment(tmp_path, "plain", tmp_path)
    assert markdown.read_text() == make_table("plain", [record(0, 0.5)]) + "\n"
    lines = values.read_text().splitlines()
    assert "plain,,mnist,fast,0,fair,pool,f1,0.5,,0,,,2" in lines
    assert "plain,,mnist,fast,0,,run,seconds_total,10.0,,0,,,2" in lines
    assert "paper's F1 & seconds" in latex.read_text()


def test_a_report_without_records_or_experiment_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no records of plain; make them"):
        write_experiment(tmp_path, "plain", tmp_path / "reports")
    with pytest.raises(DataError, match="there is no experiment 'grand'"):
        write_experiment(tmp_path, "grand", tmp_path / "reports")
    assert not (tmp_path / "reports").exists()


def test_a_report_is_written_whole_or_not_at_all(matrix, tmp_path):
    (tmp_path / "reports" / "matrix.tex").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"matrix\.tex is a folder; move it away"):
        write_experiment(matrix, "matrix", tmp_path / "reports")
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["matrix.tex"]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match=r"cannot write to .*; give another place"):
        write_experiment(matrix, "matrix", tmp_path / "file")


def test_a_report_replaces_the_one_before(matrix, tmp_path):
    first = [path.read_text() for path in write_experiment(matrix, "matrix", tmp_path / "reports")]
    again = write_experiment(matrix, "matrix", tmp_path / "reports")
    assert [path.read_text() for path in again] == first
    assert sorted((tmp_path / "reports").iterdir()) == sorted(again)


# Where tables come from and go


def test_tables_are_made_of_what_lies_in_the_folder(tmp_path):
    write_record(tmp_path / "plain" / "mnist-fast-p0.json", record(0, 0.5))
    (tmp_path / "plain" / "mnist-fast-p1.part").write_text('{"half": ')
    tables = make_tables(tmp_path)
    assert list(tables) == ["plain"]
    assert tables["plain"] == make_table("plain", [record(0, 0.5)])
    assert make_tables(tmp_path, ["plain"]) == tables


def test_without_records_there_is_no_table(tmp_path):
    with pytest.raises(DataError, match="holds no records; make them with `s2osc bench run`"):
        make_tables(tmp_path)
    with pytest.raises(DataError, match="there is no experiment 'grand'"):
        make_tables(tmp_path, ["grand"])


def test_only_what_stands_between_the_marks_is_replaced():
    text = (
        "before é\n<!-- table a -->\nold\nold\n<!-- end -->\nbetween\n"
        "<!-- table b -->\nkept\n<!-- end -->\nafter\n"
    )
    expected = (
        "before é\n<!-- table a -->\n| new |\n<!-- end -->\nbetween\n"
        "<!-- table b -->\nkept\n<!-- end -->\nafter\n"
    )
    assert with_tables(text, {"a": "| new |"}, where="page.md") == expected
    assert with_tables(expected, {"a": "| new |"}, where="page.md") == expected


def test_several_tables_find_their_own_places():
    text = "<!-- table b -->\n<!-- end -->\n<!-- table a -->\n<!-- end -->\n"
    assert with_tables(text, {"a": "A", "b": "B"}, where="page.md") == (
        "<!-- table b -->\nB\n<!-- end -->\n<!-- table a -->\nA\n<!-- end -->\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "no marks",
        "<!-- table plain -->\nno end",
        "<!-- end -->\n<!-- table plain -->",
        # A missing end does not swallow the next table.
        "<!-- table plain -->\nold\n\n## Next\n<!-- table b -->\nkept\n<!-- end -->\n",
    ],
)
def test_a_document_without_a_place_is_left_alone(tmp_path, text):
    write_record(tmp_path / "plain" / "mnist-fast-p0.json", record(0, 0.5))
    document = tmp_path / "page.md"
    document.write_text(text)
    with pytest.raises(OutputError, match="add <!-- table plain --> and <!-- end -->"):
        fill_document(document, tmp_path, ["plain"])
    assert document.read_text() == text


def test_a_document_gets_the_brief_tables_it_has_marks_for(matrix, tmp_path):
    for partition in (0, 1):
        path = tmp_path / "plain" / f"mnist-fast-p{partition}.json"
        write_record(path, record(partition, 0.5))
    document = tmp_path / "page.md"
    document.write_text("# é\n<!-- table plain -->\n<!-- end -->\n", encoding="utf-8")
    fill_document(document, tmp_path)
    text = document.read_text(encoding="utf-8")
    assert text.startswith("# é\n<!-- table plain -->\nPlain title")
    rows = [line for line in text.splitlines() if line.startswith("| mnist")]
    assert len(rows) == 1  # the mean alone, of two runs
    assert "mean of 2" in rows[0]


def test_a_brief_matrix_is_one_table_of_what_was_recorded(matrix):
    brief = make_tables(matrix, ["matrix"], brief=True)["matrix"]
    rows = [line for line in brief.splitlines() if line.startswith("|")]
    assert rows[0] == "| method | MNIST | SVHN, rebuilt |"
    assert [row.split(" | ")[0] for row in rows[2:]] == ["| odin", "| s2osc"]
    assert "**Weighted F1**" in brief
    assert "mode" not in brief


# Every cell


def test_every_cell_lies_beside_the_records_and_is_not_run_by_a_spreadsheet(matrix, monkeypatch):
    named = replace(EXPERIMENTS["matrix"], methods={"=cmd": TINY, "odin": MANY})
    monkeypatch.setitem(EXPERIMENTS, "matrix", named)
    [path] = write_cells(matrix, ["matrix"])
    assert path == matrix / "matrix" / "matrix.csv"
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "size,table,row,column,cell"
    assert "cpu,Weighted F1,odin (fair mode),MNIST,0.500 (1) [0.767]" in lines
    assert 'cpu,"Weighted F1, items never seen",odin,MNIST,0.750 (1)' in lines
    assert "cpu,Weighted F1,'=cmd,MNIST,–" in lines
    assert read_records(matrix, "matrix")  # which the new file does not disturb


def test_rows_that_two_columns_name_are_named_by_both():
    cells = make_cells("plain", [record(0, 0.5), record(1, 0.7)])
    assert ",,mnist / mean of 2,weighted F1,0.600 ± 0.141\n" in cells


def test_one_page_has_every_table_with_everything_escaped(matrix, tmp_path, monkeypatch):
    named = replace(EXPERIMENTS["matrix"], title="<script>alert(1)</script>")
    monkeypatch.setitem(EXPERIMENTS, "matrix", named)
    write_page(matrix, ["matrix"], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.count("<table>") == make_tables(matrix)["matrix"].count("| --- |\n")
    assert "<td><b>0.500</b> (1) [0.767]</td>" in page
    assert "&lt;script&gt;alert(1)" in page
    assert page.count("<script") == 1
    assert "http" not in page
