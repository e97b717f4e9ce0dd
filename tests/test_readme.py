"""The README's examples, run as they stand."""

import csv
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from s2osc import OpenStream
from s2osc.cli.main import main

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


def test_the_python_example_tells_known_from_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    example, _ = blocks("python")
    exec(compile(example, "README.md", "exec"), {})
    labels, share_right, groups, audit = capsys.readouterr().out.strip().splitlines()
    assert "-1" in labels
    assert float(share_right) > 0.9
    assert groups.endswith("groups of unknown items")
    assert audit.startswith("{'estimate': ")


def test_the_stream_in_python_learns_the_classes_that_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    _, example = blocks("python")
    exec(compile(example, "README.md", "exec"), {"np": np, "digits": load_digits()})
    printed = json.loads(capsys.readouterr().out)
    assert printed[:6] == list(range(6))
    assert sorted(printed[6:]) == [6, 7]
    assert OpenStream.load("stream").classes == printed


def test_the_commands_of_a_stream_answer_ask_and_learn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digits = load_digits()
    for n, (image, label) in enumerate(zip(digits.images[:700], digits.target, strict=False)):
        folder = f"labelled/{label}" if n % 2 and label < 5 else "monday"
        path = tmp_path / "photos" / folder / f"{n}-{label}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image * 15).astype(np.uint8)).save(path)
    monkeypatch.chdir(tmp_path)
    _, example = blocks("console")
    for line in example.strip().splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if "answer" in words:
            fill_in(tmp_path / "monday" / "queries.csv")
        assert main(words[1:]) == 0
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


def test_the_commands_classify_a_folder_and_predict_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
        program, *arguments = shlex.split(line.removeprefix("$ "))
        assert program == "s2osc"
        assert main(arguments) == 0
    assert (tmp_path / "results" / "report.html").exists()
    assert len((tmp_path / "later.csv").read_text().splitlines()) == 101
