"""The example of docs/adding-a-method.md is run as it stands there."""

import re
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np

from s2osc.bench import methods
from s2osc.bench.records import read_record
from s2osc.bench.runner import run_experiment
from samples import make_images

DOCUMENT = Path(__file__).parents[1] / "docs" / "adding-a-method.md"


def test_the_example_keeps_the_contract_and_runs_in_the_benchmark(tmp_path, monkeypatch):
    source, checks = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.S)
    module = types.ModuleType("my_package")
    monkeypatch.setitem(sys.modules, "my_package", module)
    exec(compile(source, str(DOCUMENT), "exec"), module.__dict__)
    exec(compile(checks, str(DOCUMENT), "exec"), module.__dict__)
    module.NEAREST_MEAN = module.NearestMean()
    name, value = re.search(r'^([\w-]+) = "(my_package:\w+)"$', DOCUMENT.read_text("utf-8"), re.M)[
        0
    ].split(" = ")
    point = EntryPoint(name, value.strip('"'), "s2osc.methods")
    monkeypatch.setattr(methods, "entry_points", lambda group: [point])
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    images, labels = make_images(60)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    paths = run_experiment(
        "table1",
        ["tiny"],
        [0],
        tmp_path / "results",
        methods=f"{name},msp",
        size="smoke",
        folder=tmp_path,
    )
    mine, other = (read_record(path) for path in paths)
    assert mine["method"] == "nearest-mean"
    assert mine["settings"]["known_recall"] == 0.95
    assert 0 <= mine["metrics"]["auroc"] <= 1
    # Both rest on the same f, which was trained for the first and charged to both.
    assert other["seconds"]["teacher"] > 0
    assert len(list((tmp_path / "cache" / "networks").glob("*.safetensors"))) == 1
