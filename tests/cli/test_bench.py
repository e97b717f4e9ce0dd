"""The commands of the bench."""

from pathlib import Path

import pytest

from files import (
    npz,
    snapshot,
    text,
)
from s2osc.bench import runner
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import write_record
from s2osc.cli.main import main
from samples import make_images


@pytest.fixture
def tiny(tmp_path, monkeypatch) -> Path:
    """A data folder with one small data set of images, ``tiny``; caches lie in it too."""
    images, labels = make_images(40)
    npz(tmp_path / "tiny.npz", x=images, y=labels, classes=list("abcd"))
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def record_of(folder: Path, f1: float, size: str = "cpu") -> None:
    """A record of our method among the ablations on MNIST."""
    record = {
        "experiment": "ablation",
        "size": size,
        "method": "s2osc",
        "dataset": "mnist",
        "partition": 0,
        "seed": 0,
        "known_classes": ["0"],
        "unknown_classes": ["5"],
        "metrics": {"f1": f1},
        "seconds_total": 3.0,
    }
    write_record(folder / "ablation" / f"mnist-s2osc-{size}-p0.json", record)


def test_bench_run_makes_the_records_it_is_asked_for(tiny, capsys):
    words = ["bench", "run", "table1", "--data=tiny", "--methods=msp", "--partitions=3"]
    words += ["--size=smoke", f"--folder={tiny}", "--device=cpu", "--part"]
    assert main([*words, "2/2"]) == 0
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.startswith("1/1 msp on tiny, partition 1: F1 ")
    assert snapshot(tiny / "results" / "table1").keys() == {"tiny-msp-smoke-p1.json"}
    assert main([*words, "1/2"]) == 0
    assert len(capsys.readouterr().err.splitlines()) == 2
    before = snapshot(tiny / "results" / "table1")
    assert list(before) == [f"tiny-msp-smoke-p{partition}.json" for partition in range(3)]
    assert main([*words, "1/1"]) == 0
    assert capsys.readouterr().err == ""
    assert snapshot(tiny / "results" / "table1") == before


def test_bench_run_without_options_runs_an_experiment_as_it_is(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(
        runner, "run_experiment", lambda *words, **more: asked.append((words, more))
    )
    assert main(["bench", "run", "table1", "--device=cpu"]) == 0
    words = ["--data=a, b,", "--partitions=2", "--size=cpu", "--methods=msp,odin", "--part=2/4"]
    words += ["--only=source=same", f"--results={tmp_path}", f"--folder={tmp_path}", "--device=cpu"]
    assert main(["bench", "run", "table1", *words]) == 0
    plain = {"methods": None, "size": None, "only": None, "part": (1, 1), "device": "cpu"}
    plain |= {"folder": None, "engine": None}
    chosen = {"methods": "msp,odin", "size": "cpu", "part": (2, 4), "folder": tmp_path}
    chosen |= {"only": "source=same"}
    assert asked == [
        (("table1", None, None, Path("results")), plain),
        (("table1", ["a", "b"], range(2), tmp_path), plain | chosen),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tables"], "there is no experiment 'tables'; give table1 or "),
        (["table1", "--part=3/2"], "the part is '3/2'; give which of how many, such as 1/2"),
        (["table1", "--data=tiny", "--methods=magic"], "there is no method 'magic'; give "),
        (
            ["table1", "--data=tiny", "--size=huge"],
            "the size is 'huge'; give paper or cpu or smoke",
        ),
        (["single", "--data=tiny", "--size=cpu"], "this experiment has one size only"),
        (["table1", "--data=tiny", "--partitions=0"], "--partitions is 0; give 1 or more"),
        (["table1", "--data=tiny", "--partitions=-2"], "--partitions is -2; give 1 or more"),
        (["table1", "--data=tiny", "--methods="], "--methods is ''; give names with commas"),
        (["table1", "--data="], "--data is ''; give names with commas between, or leave it away"),
        (["table1", "--data= ,"], "--data is ' ,'; give names with commas between"),
    ],
)
def test_bench_run_says_in_one_line_what_it_cannot_run(tiny, capsys, words, message):
    assert main(["bench", "run", *words, f"--folder={tiny}", "--device=cpu"]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.startswith(f"s2osc: {message}")
    assert errors.count("\n") == 1
    assert not (tiny / "results").exists()


def test_bench_list_shows_what_is_recorded_and_what_is_missing(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "300")
    record_of(tmp_path, 0.9)
    assert main(["bench", "list", f"--results={tmp_path}"]) == 0
    _, _, _, *lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in lines if line.strip()}
    assert list(rows) == list(EXPERIMENTS)
    missing = "mnist: s2osc-paper, s2osc-s, s2osc-lm, s2osc-fn, s2osc-u; fashion_mnist: all"
    assert rows["ablation"] == f"cpu mnist, fashion_mnist 6 1 0 {missing}"
    assert rows["single"] == "one mnist, fashion_mnist 2 0 0 all"


def test_bench_report_prints_the_tables_that_have_records(tmp_path, capsys):
    record_of(tmp_path, 0.9125)
    record_of(tmp_path, 0.1, size="smoke")
    assert main(["bench", "report", f"--results={tmp_path}"]) == 0
    printed = capsys.readouterr().out
    assert "| s2osc | **0.912** (1)" in printed
    assert printed.index("size cpu") < printed.index("0.912") < printed.index("size smoke")
    assert main(["bench", "report", "ablation", f"--results={tmp_path}"]) == 0
    assert capsys.readouterr().out == printed


def test_bench_report_fills_a_document_and_writes_a_folder_a_page_and_cells(tmp_path, capsys):
    results = tmp_path / "results"
    record_of(results, 0.9125)
    document = text(tmp_path / "page.md", "Before\n<!-- table ablation -->\n<!-- end -->\nAfter\n")
    words = ["bench", "report", "ablation", f"--results={results}"]
    page = tmp_path / "tables.html"
    options = [f"--out={tmp_path / 'out'}", f"--into={document}", f"--html={page}", "--csv"]
    assert main([*words, *options]) == 0
    paths = [tmp_path / "out" / "ablation" / f"ablation.{kind}" for kind in ("md", "csv", "tex")]
    paths += [tmp_path / "out" / "ablation" / f"bars.{kind}" for kind in ("svg", "png")]
    cells = results / "ablation" / "ablation.csv"
    assert capsys.readouterr().out.splitlines() == list(map(str, [document, page, cells, *paths]))
    assert sorted((tmp_path / "out" / "ablation").iterdir()) == sorted(paths)
    assert "**0.912** (1)" in paths[0].read_text()
    assert "**0.912** (1)" in document.read_text()
    assert "\n<!-- end -->\nAfter\n" in document.read_text()
    assert "<b>0.912</b> (1)" in page.read_text()
    assert ",0.912 (1)" in cells.read_text()


def test_bench_report_says_which_of_several_experiments_has_no_records(tmp_path, capsys):
    record_of(tmp_path, 0.9125)
    assert main(["bench", "report", "ablation", "large", f"--results={tmp_path}"]) == 0
    printed, errors = capsys.readouterr()
    assert "**0.912** (1)" in printed
    assert errors == (
        f"s2osc: {tmp_path} holds no records of large; make them with `s2osc bench run large`\n"
    )
    assert main(["bench", "report", f"--results={tmp_path}"]) == 0
    assert capsys.readouterr().err == ""


def test_bench_report_without_records_says_how_to_make_them(tmp_path, capsys):
    assert main(["bench", "report", f"--results={tmp_path}"]) == 2
    assert capsys.readouterr().err == (
        f"s2osc: {tmp_path} holds no records; make them with `s2osc bench run`\n"
    )
