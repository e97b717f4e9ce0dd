"""The command line: what it prints, what it returns, and that it is quick and tidy."""

import contextlib
import io
import json
import os
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import warnings
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from rich.console import Console

from files import (
    broken_image,
    easy_vectors,
    image,
    known_labels,
    npy,
    npz,
    pool_labels,
    snapshot,
    text,
    visible,
)
from s2osc.app import predict as jobs
from s2osc.bench import runner
from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.records import write_record
from s2osc.cli.main import main
from s2osc.cli.options import show_result
from s2osc.errors import S2OSCWarning
from s2osc.pipeline import storage
from s2osc.progress import shown, track
from s2osc.version import __version__
from samples import make_images


def arguments(folder: Path, out: Path, *more: str) -> list[str]:
    """Words for `classify` on the items of a folder."""
    sources = [f"--known={folder / 'known.npz'}", f"--pool={folder / 'pool.npz'}"]
    return ["classify", *sources, f"--out={out}", *more]


# classify


def test_what_was_found_is_printed_and_nothing_goes_to_standard_error(
    finished, tmp_path, quick, capsys
):
    assert main(arguments(finished, tmp_path / "out", *quick)) == 0
    printed, errors = capsys.readouterr()
    counts = json.loads((tmp_path / "out" / "summary.json").read_text())["counts"]
    assert errors == ""
    audit = json.loads((tmp_path / "out" / "summary.json").read_text())["audit"]
    assert printed.splitlines()[:2] == [audit["sentence"], audit["test"]["verdict"]]
    assert "60 items in the pool" in printed
    rows = [line.split("│")[1:3] for line in printed.splitlines() if line.startswith("│")]
    assert {name.strip(): int(count) for name, count in rows} == counts["known"] | {
        f"unknown, group {group}": count for group, count in counts["groups"].items()
    }
    assert "Against the truth the pool came with: accuracy " in printed
    assert f"In {tmp_path / 'out'}:" in printed
    for name in ("report.html", "predictions.csv", "summary.json", "model/", "scores.parquet"):
        assert f"  {name}" in printed


def test_the_same_seed_gives_the_same_bytes_in_whatever_order_flags_come(finished, tmp_path, quick):
    words = arguments(finished, tmp_path / "out", *quick, "--seed=0", "--flip=false")
    assert main([words[0], *reversed(words[1:])]) == 0
    for name in ("predictions.csv", "predictions.parquet", "model/weights.safetensors"):
        assert (tmp_path / "out" / name).read_bytes() == (finished / "out" / name).read_bytes()


def test_another_seed_gives_another_answer(finished, tmp_path, quick):
    assert main(arguments(finished, tmp_path / "out", *quick, "--seed=1")) == 0
    other, one = (
        (folder / "out" / "predictions.csv").read_bytes() for folder in (tmp_path, finished)
    )
    assert other != one


def test_short_options_are_hyper_parameters_too(finished, tmp_path, quick):
    more = (
        *("--k=5", "--unknown=many", "--groups=2", "--flip=true", "--set=student.tau=0.7"),
        *("--false-alarm=0.1", "--aim=recall", "--unsure", "--hold-back=0.3", "--filter=paper"),
        "--set=decision.level=0.9",  # so few items are not enough to be sure of unknown ones
    )
    assert main(arguments(finished, tmp_path / "out", *quick, *more)) == 0
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    wanted = {
        "filtering.k": 5,
        "student.unknown": "many",
        "clusters.n_groups": 2,
        "augmentation.flip": True,
        "student.tau": 0.7,
        "decision.false_alarm": 0.1,
        "decision.aim": "recall",
        "decision.unsure": True,
        "seeds.share": 0.3,
        "filtering.by": "paper",
    }
    assert told["settings"].items() >= wanted.items()
    assert len(told["counts"]["groups"]) in (2, 3)  # scattered items are a group of their own kind


def test_the_former_name_of_hold_back_still_works_and_says_so(capsys):
    def run(word):
        with warnings.catch_warnings():
            warnings.simplefilter("default")  # as users run it
            assert main(["settings", word]) == 0
        return capsys.readouterr()

    now, then, help = map(run, ("--hold-back=0.25", "--seeds=0.25", "--help"))
    assert "seeds.share                        0.25" in now.out
    assert (then.out, now.err) == (now.out, "")
    wanted = "s2osc: --seeds is now called --hold-back; the next version knows only that\n"
    assert then.err == wanted
    assert "--hold-back SHARE" in help.out
    assert "--seeds" not in help.out


def test_very_many_classes_are_a_table_of_thirty_rows(tmp_path, capsys):
    summary = {
        "counts": {"known": {f"c{n}": n for n in range(3_000)}, "groups": {"1": 7}, "unsure": 0},
        "items": {"pool": 4_498_507},
        "audit": None,
        "warnings": [],
    }
    show_result(summary, tmp_path / "my results", seconds=1)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows[:2]] == ["c2999", "c2998"]
    assert "... and 2,970 more classes, see predictions.csv" in rows[30]
    assert "unknown, group 1" in rows[31]
    assert len(rows) == 32


def test_a_suggested_command_is_quoted_for_the_shell(finished, tmp_path, capsys):
    out = shutil.copytree(finished / "out", tmp_path / "it's mine")
    assert main(["decide", f"--out={out}", "--false-alarm=0.1"]) == 0
    (line,) = (line for line in capsys.readouterr().out.splitlines() if "s2osc decide" in line)
    words = shlex.split(line.split("`")[1])
    assert words == ["s2osc", "decide", "--out", str(out), "--false-alarm", "RATE"]


def test_results_that_are_there_stay_as_they_are(finished, capsys):
    before = snapshot(finished)
    assert main(arguments(finished, finished / "out")) == 2
    assert snapshot(finished) == before
    assert "holds results already" in capsys.readouterr().err


def test_force_replaces_results_and_leaves_foreign_files(finished, tmp_path, quick):
    out = shutil.copytree(finished / "out", tmp_path / "out")
    text(out / "skipped.csv", "of an earlier run")
    foreign = [text(out / "notes.txt", "mine"), text(out / "model" / "card.md", "mine")]
    assert main(arguments(finished, out, *quick, "--seed=1", "--force")) == 0
    assert [path.read_text() for path in foreign] == ["mine\n", "mine\n"]
    assert json.loads((out / "summary.json").read_text())["seed"] == 1
    assert visible(out).keys() == visible(finished / "out").keys() | {
        "notes.txt",
        "model/card.md",
    }


def test_notes_are_printed(tmp_path, quick, capsys):
    for row, name in enumerate(known_labels(4)):
        image(tmp_path / "known" / name / f"{row}.png", value=10 * row)
        image(tmp_path / "pool" / f"{row}.png", value=10 * row)
    broken_image(tmp_path / "pool" / "[7].png")
    words = ["classify", f"--known={tmp_path / 'known'}", f"--pool={tmp_path / 'pool'}"]
    assert main([*words, f"--out={tmp_path / 'out'}", *quick, "--k=100", "--preset=plain"]) == 0
    printed = capsys.readouterr().out
    assert "Note: K = 100 is too large for a pool of 8 items and classes of up to " in printed
    assert "Note: 1 item was skipped (first: [7].png, " in printed
    assert "see skipped.csv" in printed


def test_classes_and_folders_are_shown_as_they_are_called(tmp_path, quick, monkeypatch):
    names = {"left": "[/red] :cat:", "top": "größer"}
    known = [names[name] for name in known_labels(4)]
    npz(tmp_path / "known.npz", x=easy_vectors(known_labels(4), seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_vectors(pool_labels(4), seed=0), y=pool_labels(4))
    out = tmp_path / "[bold]" / ("long" * 40)
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", terminal)
    assert main(arguments(tmp_path, out, *quick)) == 0
    terminal.flush()
    printed = terminal.buffer.getvalue().decode("ascii")
    assert "[/red] :cat:" in printed
    assert "gr??er" in printed
    assert f"In {out}:" in printed
    labels = pq.read_table(out / "predictions.parquet")["label"].to_pylist()
    assert set(labels) <= {*names.values(), "unknown"}


@pytest.mark.parametrize("is_terminal", [True, False])
def test_bars_are_drawn_on_a_terminal_and_not_into_a_file(is_terminal):
    console = Console(file=io.StringIO(), force_terminal=is_terminal)
    with shown(console):
        assert list(track([1, 2, 3], "counting")) == [1, 2, 3]
    assert ("counting" in console.file.getvalue()) == is_terminal
    assert bool(console.file.getvalue()) == is_terminal


# predict


def test_predict_repeats_most_labels_of_classify(finished, tmp_path, capsys):
    words = [f"--model={finished / 'out' / 'model'}", f"--items={finished / 'pool.npz'}"]
    assert main(["predict", *words, f"--out={tmp_path / 'again.parquet'}"]) == 0
    again, first = (
        pq.read_table(path)["label"].to_pylist()
        for path in (tmp_path / "again.parquet", finished / "out" / "predictions.parquet")
    )
    assert sum(one == other for one, other in zip(again, first, strict=True)) > 0.9 * len(first)
    n_unknown = again.count("unknown")
    printed = f"60 items, {n_unknown} of them called unknown: {tmp_path / 'again.parquet'}\n"
    assert capsys.readouterr() == (printed, "")


def test_predict_replaces_a_file_only_when_forced(finished, tmp_path, capsys):
    out = text(tmp_path / "a.csv", "mine")
    words = [f"--model={finished / 'out' / 'model'}", f"--items={finished / 'pool.npz'}"]
    assert main(["predict", *words, f"--out={out}"]) == 2
    assert "a.csv is there already" in capsys.readouterr().err
    assert out.read_text() == "mine\n"
    assert main(["predict", *words, f"--out={out}", "--force"]) == 0
    assert out.read_text().startswith('"item","label"')
    assert list(tmp_path.iterdir()) == [out]


# settings, data, version


def test_settings_lists_every_hyper_parameter_with_its_value(capsys):
    assert main(["settings", "--preset=paper", "--set", "student.tau = 0.9", "--k=50"]) == 0
    first, *lines = capsys.readouterr().out.splitlines()
    assert first == "preset paper"
    told = dict(line.split(maxsplit=1) for line in lines)
    assert (told["student.tau"], told["filtering.k"]) == ("0.9", "50")
    assert told["teacher.network.blocks"] == "(3, 4, 6, 3)"


def test_settings_tells_which_preset_vectors_take(capsys):
    assert main(["settings", "--device=cpu", "--k=auto", "--groups=auto", "--unsure"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (lines[0], lines[-1]) == ("preset fast", "for images; vectors take --preset heads")
    told = dict(line.split(maxsplit=1) for line in lines[1:-1])
    assert told["decision.unsure"] == "True"
    assert told["filtering.k"] == told["clusters.n_groups"] == "None"


def test_data_list_names_every_data_set_and_the_users_own(tmp_path, capsys):
    npz(tmp_path / "signs.npz", x=[[1.0]], y=[0])
    assert main(["data", "list", f"--folder={tmp_path}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.split()[0] for line in lines]
    assert {"mnist", "fashion_mnist", "cifar10", "mnist5k"} <= set(names)
    assert lines[names.index("signs")].endswith(str(tmp_path / "signs.npz"))


def test_data_fetch_without_a_network_says_in_one_line_what_to_do(tmp_path, capsys, monkeypatch):
    def unreachable(*_: object, **__: object) -> None:
        raise urllib.error.URLError("Name or service not known")

    monkeypatch.setattr(urllib.request, "urlopen", unreachable)
    assert main(["data", "fetch", "cifar10", f"--folder={tmp_path}"]) == 2
    printed, errors = capsys.readouterr()
    assert printed == ""
    assert errors.startswith("s2osc: cannot download cifar-10")
    assert errors.count("\n") == 1
    assert "Name or service not known" in errors
    assert str(tmp_path / "cifar10.npz") in errors


# bench


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


# Words


def test_version_prints_the_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"s2osc {__version__}\n"


@pytest.mark.parametrize("words", [[], ["classify"], ["nonsense"], ["settings", "--seed=x"]])
def test_words_that_are_no_command_exit_with_2(words, capsys):
    assert main(words) == 2
    assert "usage: s2osc" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        "classify --known=known.npz --pool=pool.npz --out={}",
        "predict --model=out/model --items=pool.npz --out={}.csv",
        "predict --model={} --items=pool.npz --out=new.csv",
        "decide --out={}",
        "report --out={}",
        "check --out={}",
        "export --results=out --format=csv --to={}.csv",
        "export --results={} --format=csv --to=new.csv",
        "page --no-browser --results={}",
        "page --no-browser --state={}",
        "stream init --known=known.npz --state={}",
        "stream status --state={}",
        "bench report --results={}",
        "data list --folder={}",
    ],
)
def test_a_path_too_long_for_the_disk_is_refused_in_one_line(finished, words, capsys):
    before = snapshot(finished)
    with contextlib.chdir(finished):
        code = main(words.format("a" * 300).split())
    complaint = capsys.readouterr().err
    assert (code, complaint.count("\n")) == (2, 1), complaint
    assert snapshot(finished) == before


# The process


def run_python(*words: str) -> str:
    command = [sys.executable, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_help_is_there_in_less_than_a_third_of_a_second():
    seconds = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        printed = run_python("-m", "s2osc", "--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        # Time on the processor: other work on the machine does not count.
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        if seconds[-1] < 0.3:
            break
    assert printed.startswith("usage: s2osc")
    assert min(seconds) < 0.3


@pytest.mark.parametrize(
    "words", [["--help"], ["classify", "--help"], ["decide", "--help"], ["--version"]]
)
def test_help_loads_no_heavy_library(words):
    script = (
        "import sys; from s2osc.cli.main import main\n"
        f"main({words!r})\n"
        "print(sorted({'numpy', 'pyarrow', 'rich', 'torch', 'sklearn'} & set(sys.modules)))"
    )
    assert run_python("-c", script).splitlines()[-1] == "[]"


def test_a_reader_who_leaves_early_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        done = subprocess.run(
            [sys.executable, "-m", "s2osc", "data", "list"],
            stdout=pipe,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONUNBUFFERED": ""},  # as users run it
            check=False,
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_leaves_nothing_behind_and_exits_with_130(finished, tmp_path, quick, monkeypatch):
    begun, errors = os.pipe(), os.pipe()
    child = os.fork()  # everything is imported already
    if child == 0:

        def wait(*_: object) -> None:
            os.write(begun[1], b"writing")
            time.sleep(60)

        # A shell that runs the tests in the background leaves the signal ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        torch.set_num_threads(1)  # threads do not survive a fork
        monkeypatch.setattr(storage, "save_model", wait)
        monkeypatch.setattr(sys, "stderr", os.fdopen(errors[1], "w"))
        code = main(arguments(finished, tmp_path / "deep" / "out", *quick))
        sys.stderr.flush()
        os._exit(code)
    os.close(begun[1])
    os.close(errors[1])
    with os.fdopen(begun[0], "rb", buffering=0) as first, os.fdopen(errors[0]) as printed:
        assert first.read(7) == b"writing"
        assert (tmp_path / "deep").exists()
        os.kill(child, signal.SIGINT)
        _, status = os.waitpid(child, 0)
        assert printed.read() == "s2osc: interrupted; no half-written results are left\n"
    assert os.waitstatus_to_exitcode(status) == 130
    assert snapshot(tmp_path) == {}


@pytest.mark.parametrize(
    "step",
    ["classify.open_known_beside", "result_files.write_tables", "result_files.write_measured"],
)
def test_ctrl_c_at_any_step_keeps_earlier_results(finished, tmp_path, quick, monkeypatch, step):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    out = shutil.copytree(finished / "out", tmp_path / "out", symlinks=True)
    before = snapshot(tmp_path)
    monkeypatch.setattr(f"s2osc.app.{step}", interrupt)
    assert main(arguments(finished, out, *quick, "--force")) == 130
    assert snapshot(tmp_path) == before


def test_ctrl_c_while_predicting_leaves_no_file(finished, tmp_path, monkeypatch):
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(jobs, "table_bytes", interrupt)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={finished / 'pool.npz'}"]
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}"]) == 130
    assert snapshot(tmp_path) == {}


@pytest.fixture
def failing(finished, tmp_path, monkeypatch) -> list[str]:
    """Words for a command that fails in a way nobody foresaw. Logs go to ``logs``."""

    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("two\nlines")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "logs"))
    monkeypatch.setattr(jobs, "read_items", fail)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={npy(tmp_path / 'a.npy', [[1]])}"]
    return ["predict", *words, f"--out={tmp_path / 'a.csv'}"]


def test_a_failure_nobody_foresaw_is_one_line_and_a_log(failing, tmp_path, capsys):
    assert main(failing) == 1
    printed, errors = capsys.readouterr()
    (log,) = (path for path in (tmp_path / "logs").rglob("*") if path.is_file())
    wanted = "s2osc: stopped by an unexpected error, ZeroDivisionError (two); the traceback is in "
    assert (printed, errors) == ("", f"{wanted}{log}\n")
    first, *_, last, end = log.read_text().splitlines()
    assert shlex.split(first) == ["s2osc", *failing]
    assert (last, end) == ("ZeroDivisionError: two", "lines")


def test_where_no_log_can_be_written_the_end_of_the_traceback_is_printed(failing, tmp_path, capsys):
    text(tmp_path / "logs", "a file")
    assert main(failing) == 1
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "the traceback could not be saved" in errors
    assert "it ends in" in errors


def test_an_error_that_ctrl_c_caused_is_an_interruption(finished, tmp_path, monkeypatch, capsys):
    def interrupted(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise ImportError("could not load")  # noqa: B904

    monkeypatch.setattr(jobs, "read_items", interrupted)
    words = [f"--model={finished / 'out' / 'model'}", f"--items={tmp_path}"]
    assert main(["predict", *words, f"--out={tmp_path / 'a.csv'}"]) == 130
    assert capsys.readouterr().err == "s2osc: interrupted; no half-written results are left\n"


TAKES_NOTHING = [
    (">&-", 2, "standard output is closed; what was written to files is whole"),
    (">/dev/full", 2, "cannot print: No space left on device; what was written to files "),
    (">&- 2>&-", 2, ""),
    (">/dev/full 2>/dev/full", 2, ""),
    ("| true", 0, ""),
]


@pytest.mark.parametrize(
    ("words", "closed", "code", "line"),
    [
        *((words, *case) for words in ("data list", "--help") for case in TAKES_NOTHING),
        ("settings", *TAKES_NOTHING[0]),  # imports torch before it prints
    ],
)
def test_an_output_that_takes_nothing_is_one_line(words, closed, code, line):
    command = f'set -o pipefail; "{sys.executable}" -m s2osc {words} {closed}'
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(f"s2osc: {line}" if line else "")
    assert done.stderr.count("\n") == bool(line)


@pytest.mark.parametrize("gaps", [(0.3,), (0.3, 0.02), (0.8,), (0.8, 0.1)])
def test_ctrl_c_is_quiet_while_python_imports(finished, tmp_path, gaps):
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('begun', flush=True); from s2osc.__main__ import run; sys.exit(run())"
    )
    words = arguments(finished, tmp_path / "out")
    process = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout.readline() == "begun\n"
        for gap in gaps:
            time.sleep(gap)
            process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (
        printed,
        errors.replace("s2osc: interrupted; no half-written results are left\n", ""),
    ) == ("", "")
    assert snapshot(tmp_path) == {}


LEAVING = """
import atexit, sys, threading, time
import s2osc.cli.main
from s2osc.__main__ import run
atexit.register(print, "registered")
class Library:
    def __del__(self):
        print("taken apart", flush=True)
library = Library()
def work_on():
    time.sleep(0.3)
    print("worked on", flush=True)
{begin}
s2osc.cli.main.main = lambda: print("done") or 3
sys.exit(run())
"""


@pytest.mark.parametrize(
    ("begin", "printed"),
    [
        ("", "done\nregistered\n"),
        ("threading.Thread(target=work_on, daemon=True).start()", "done\nregistered\n"),
        (
            "threading.Thread(target=work_on).start()",
            "done\nworked on\nregistered\ntaken apart\n",
        ),
    ],
)
def test_a_command_that_is_done_ends_without_taking_its_libraries_apart(begin, printed):
    command = [sys.executable, "-c", LEAVING.format(begin=begin)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (3, printed, "")


def test_a_warning_of_ours_is_one_line_without_a_place_in_the_code(monkeypatch, capsys):
    def warn(_):
        warnings.warn("no figure:\ntoo few", S2OSCWarning, stacklevel=1)
        warnings.warn("old", FutureWarning, stacklevel=1)

    monkeypatch.setattr("s2osc.cli.bench.list_bench", warn)
    with pytest.warns(FutureWarning, match="old"):  # those of others come as ever
        assert main(["bench", "list"]) == 0
    assert capsys.readouterr().err == "s2osc: no figure: too few\n"
