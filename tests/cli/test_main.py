"""The command line: what it prints, what it returns, and that it is quick and tidy."""

import contextlib
import io
import json
import shlex
import shutil
import sys
import urllib.error
import urllib.request
import warnings

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from files import (
    arguments,
    broken_image,
    easy_vectors,
    image,
    known_labels,
    npz,
    pool_labels,
    snapshot,
    text,
    visible,
)
from s2osc.app.summary import LabelCounts
from s2osc.cli.main import main
from s2osc.cli.printing import show_result
from s2osc.progress import shown, track
from s2osc.version import __version__
from samples import make_summary

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
    scattered = str(audit["groups"]["number"])  # after the last group
    near = {"0": "unknown, group 0, near top"}  # of most of its items the nearest known class
    names = near | {scattered: "unknown, scattered"}
    assert {name.strip(): int(count) for name, count in rows} == counts["known"] | {
        names.get(group, f"unknown, group {group}"): n for group, n in counts["groups"].items()
    }
    assert "Against the truth the pool came with: accuracy " in printed
    assert f"In {tmp_path / 'out'}:" in printed
    for name in ("report.html", "predictions.csv", "summary.json", "model/", "scores.parquet"):
        assert f"  {name}" in printed


@pytest.mark.usefixtures("fits_anew")
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
    counts = LabelCounts({f"c{n}": n for n in range(3_000)}, unknown=7, groups={"1": 7}, unsure=0)
    summary = make_summary(n_pool=4_498_507, audit=None, counts=counts)
    show_result(summary, tmp_path / "my results", seconds=1)
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert [row.split()[1] for row in rows[:2]] == ["c2999", "c2998"]
    assert "... and 2,970 more classes, see predictions.csv" in rows[30]
    assert "unknown, group 1" in rows[31]
    assert len(rows) == 32


def test_a_suggested_command_is_quoted_for_the_shell(finished, tmp_path, capsys):
    out = shutil.copytree(finished / "out", tmp_path / "it's mine")
    assert main(["decide", f"--out={out}", "--false-alarm=0.1"]) == 0
    lines = (line for line in capsys.readouterr().out.splitlines() if "s2osc decide" in line)
    words = [shlex.split(line.split("`")[1]) for line in lines]
    wanted = [["--false-alarm", "RATE"], ["--groups", "N"]]
    assert words == [["s2osc", "decide", "--out", str(out), *change] for change in wanted]


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


def test_a_list_that_starts_with_a_negative_number_is_a_value_and_no_option(tmp_path, capsys):
    assert main(["decide", "--out", str(tmp_path), "--merge", "-1,0"]) == 2
    assert capsys.readouterr().err == (
        "s2osc: --merge is '-1,0'; give numbers of groups such as 0,2\n"
    )
