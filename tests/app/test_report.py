"""The answer is saved before it is described, and the page can be made later."""

import json
import shutil
from pathlib import Path

import pytest

from files import easy_images, known_labels, npz, pool_labels, truncated, visible
from s2osc.app import report, summary
from s2osc.app.results_folder import UNFINISHED, version_of
from s2osc.cli.main import main

STEPS = [
    (summary, "tell"),
    (report, "write_summary"),
    # They lie between the first step and the last.
    pytest.param(summary, "cautions", marks=pytest.mark.slow),
    *(
        pytest.param(report, step, marks=pytest.mark.slow)
        for step in ("write_report", "save_drawing")
    ),
]


def fail(*_: object, **__: object) -> None:
    raise ZeroDivisionError("no picture")


def same(one: Path, other: Path) -> None:
    """The files of both are the same but for seconds and paths."""
    assert visible(one).keys() == visible(other).keys()
    for name in ("predictions.csv", "predictions.parquet", "scores.parquet", "model/model.json"):
        assert visible(one)[name] == visible(other)[name]
    first, second = (json.loads((out / "summary.json").read_text()) for out in (one, other))
    assert first.keys() == second.keys()
    assert first["audit"] == second["audit"]
    assert first["warnings"] == second["warnings"]
    # The first summary of a run is saved before its saving has taken any time.
    assert first["seconds"].keys() ^ second["seconds"].keys() <= {"save"}


@pytest.mark.parametrize(("module", "step"), STEPS)
def test_a_page_that_fails_costs_no_training(
    finished, tmp_path, quick, monkeypatch, capsys, module, step
):
    sources = [f"--{name}={finished / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(module, step, fail)
        assert main(["classify", *sources, f"--out={out}", *quick]) == 1
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert f"the answer is in {out}, and `s2osc report --out {out}` makes the page" in errors
    assert not (out / "report.html").exists()
    table = tmp_path / "again.csv"
    words = [f"--model={out / 'model'}", f"--items={finished / 'pool.npz'}"]
    assert main(["predict", *words, f"--out={table}"]) == 0
    assert main(["decide", f"--out={out}", "--false-alarm=0.2"]) == 2
    assert "s2osc report --out" in capsys.readouterr().err
    assert main(["report", f"--out={out}"]) == 0
    assert not (version_of(out) / UNFINISHED).exists()
    same(out, finished / "out")
    assert main(["decide", f"--out={out}", "--false-alarm=0.2"]) == 0


@pytest.mark.parametrize("preset", [pytest.param("plain", marks=pytest.mark.slow), "auto"])
def test_the_page_of_images_is_the_one_the_run_would_have_made(
    tmp_path, quick, monkeypatch, preset
):
    known, pool = known_labels(30), pool_labels(10)
    npz(tmp_path / "known.npz", x=easy_images(known, seed=0), y=known)
    npz(tmp_path / "pool.npz", x=easy_images(pool, seed=1), y=pool)
    words = [f"--{name}={tmp_path / name}.npz" for name in ("known", "pool")]
    words = ["classify", *words, *quick, f"--preset={preset}", f"--out={tmp_path / 'out'}"]
    with monkeypatch.context() as patch:
        patch.setattr(report, "write_report", fail)
        assert main(words) == 1
    assert main(["report", f"--out={tmp_path / 'out'}"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert main([*words, "--force"]) == 0
    other = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert page.count("data:image/webp") == other.count("data:image/webp") > 20


def test_a_finished_page_can_be_made_anew(finished, tmp_path):
    out = shutil.copytree(finished / "out", tmp_path / "out", symlinks=True)
    (out / "report.html").unlink()
    assert main(["report", f"--out={out}"]) == 0
    same(out, finished / "out")


def test_finished_results_without_seeds_are_refused_with_a_line_of_their_own(
    finished, tmp_path, quick, capsys
):
    sources = [f"--{name}={finished / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    assert main(["classify", *sources, f"--out={out}", *quick, "--preset=plain"]) == 0
    before = visible(out)
    capsys.readouterr()
    assert main(["report", f"--out={out}"]) == 2
    errors = capsys.readouterr().err
    assert len(errors.splitlines()) == 1
    assert "finished results of a run without seeds (preset plain), which keep nothing" in errors
    assert visible(out) == before


@pytest.mark.parametrize("damage", [truncated, lambda path: path.write_bytes(b"{}")])
def test_a_damaged_file_is_refused_and_nothing_changes(
    finished, tmp_path, quick, monkeypatch, capsys, damage
):
    sources = [f"--{name}={finished / name}.npz" for name in ("known", "pool")]
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(report, "write_report", fail)
        main(["classify", *sources, f"--out={out}", *quick])
    damage(version_of(out) / UNFINISHED)
    before = visible(out)
    capsys.readouterr()
    assert main(["report", f"--out={out}"]) == 2
    assert "copy the result folder again" in capsys.readouterr().err
    assert visible(out) == before
