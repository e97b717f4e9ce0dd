"""The README's examples: with smaller networks, and, where there is time, as they stand."""

import csv
import json
import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from s2osc import OpenStream
from s2osc.cli.main import main

pytestmark = pytest.mark.filterwarnings("ignore::s2osc.errors.CautionWarning")
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

SMALL = {
    f"{role}.{name}": value
    for role in ("teacher", "student")
    for name, value in {
        "network.widths": (8, 8, 8),
        "network.hidden": (64, 32),
        "training.epochs": 1,
        "training.min_steps": 40,
        "training.batch_size": 48,
    }.items()
} | {"seeds.judges": 0}  # folds have tests of their own, and take as long as all the rest
SMALL_STREAM = SMALL | {"update.training.min_steps": 25, "update.training.epochs": 1}
AS_THEY_STAND = pytest.param({}, marks=pytest.mark.slow)
SIZES = ["small", "as they stand"]
at_both_sizes = pytest.mark.parametrize("settings", [SMALL, AS_THEY_STAND], ids=SIZES)
streams_at_both_sizes = pytest.mark.parametrize(
    "settings", [SMALL_STREAM, AS_THEY_STAND], ids=SIZES
)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def run_python(example: str, call: str, settings: dict[str, Any], **names: object) -> None:
    """Run an example; the settings become the last argument of a call that stands in it."""
    assert call in example
    more = call.replace(")", f", settings={settings})").replace("(, ", "(")
    exec(compile(example.replace(call, more), "README.md", "exec"), names)


def run_command(line: str, settings: dict[str, Any]) -> None:
    """Run a command; those that train take the settings."""
    program, *words = shlex.split(line.removeprefix("$ "), comments=True)
    assert program == "s2osc"
    more = [f"--set={name}={str(value).strip('()')}" for name, value in settings.items()]
    assert main([*words, *more] if "--known" in words else words) == 0


@at_both_sizes
def test_the_python_example_tells_known_from_unknown(
    settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    example, _ = blocks("python")
    run_python(example, "S2OSC()", settings)
    labels, share_right, groups, audit, checked = capsys.readouterr().out.strip().splitlines()
    assert "-1" in labels
    assert float(share_right) > 0.9
    assert groups.endswith("groups of unknown items")
    assert audit.startswith("{'estimate': ")
    assert checked.startswith("{'estimate': ")


@streams_at_both_sizes
def test_the_stream_in_python_learns_the_classes_that_arrive(
    settings: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = blocks("python")
    call = "OpenStream(V[early & known], y[early & known], budget=60)"
    run_python(example, call, settings, np=np, digits=load_digits())
    printed = json.loads(capsys.readouterr().out)
    assert printed[:6] == list(range(6))
    assert sorted(printed[6:]) == [6, 7]
    assert OpenStream.load("stream").classes == printed


@streams_at_both_sizes
def test_the_commands_of_a_stream_answer_ask_and_learn(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load_digits()
    for n, (image, label) in enumerate(zip(digits.images[:500], digits.target, strict=False)):
        folder = f"labelled/{label}" if n % 2 and label < 5 else "monday"
        path = tmp_path / "photos" / folder / f"{n}-{label}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype(np.uint8)).save(path)
    monkeypatch.chdir(tmp_path)
    _, example = blocks("console")
    for line in example.strip().splitlines():
        if "stream answer" in line:
            fill_in(tmp_path / "monday" / "queries.csv")
        run_command(line, settings)
    assert "5" in OpenStream.load("stream").classes


def fill_in(path: Path) -> None:
    """What a person does: names every item that is asked about; items are called NUMBER-CLASS."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        name = re.search(r"-(\d)\.png", row["item"])
        row["label"] = name.group(1) if name else ""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@at_both_sizes
def test_the_commands_classify_a_folder_and_predict_for_another(
    settings: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load_digits()
    for n, (image, label) in enumerate(zip(digits.images[:600], digits.target, strict=False)):
        folder = "later" if n >= 500 else f"labelled/{label}" if n % 2 and label < 5 else "new"
        path = tmp_path / "photos" / folder / f"{n}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype(np.uint8)).save(path)
    monkeypatch.chdir(tmp_path)
    example, _ = blocks("console")
    for line in example.strip().splitlines():
        if "--labels" in line:  # what a person does between the two commands
            asked = tmp_path / "results" / "check.csv"
            head, *rows = asked.read_text().splitlines()
            asked.write_text("\n".join([head, *(f"{row}unknown" for row in rows)]) + "\n")
        run_command(line, settings)
    assert (tmp_path / "results" / "report.html").exists()
    assert len((tmp_path / "later.csv").read_text().splitlines()) == 101
