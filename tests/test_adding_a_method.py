"""docs/adding-a-method.md, followed from its first line to the tables."""

import re
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np

from s2osc.bench import methods
from s2osc.bench.records import read_record
from s2osc.cli.main import main
from samples import make_images

DOCUMENT = Path(__file__).parents[1] / "docs" / "adding-a-method.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text("utf-8"), re.S)


def test_the_example_keeps_the_contract_runs_and_stands_in_the_tables(tmp_path, monkeypatch):
    module = types.ModuleType("my_package")
    monkeypatch.setitem(sys.modules, "my_package", module)
    for source in blocks("python"):  # the method, then the contract
        exec(compile(source, str(DOCUMENT), "exec"), module.__dict__)

    name, value = re.search(r'^([\w-]+) = "(.*)"$', blocks("toml")[0], re.M).groups()
    point = EntryPoint(name, value, "s2osc.methods")
    monkeypatch.setattr(methods, "entry_points", lambda group: [point])
    monkeypatch.setenv("S2OSC_CACHE", str(tmp_path / "cache"))
    images, labels = make_images(60)
    np.savez(tmp_path / "tiny.npz", x=images, y=labels, classes=np.array(list("abcd")))
    monkeypatch.chdir(tmp_path)
    run, report = (line.split()[1:] for line in blocks("bash")[0].splitlines())
    run[run.index("--data") + 1] = "tiny"
    run[run.index("--partitions") + 1] = "2"
    assert main([*run, "--size=smoke", f"--folder={tmp_path}"]) == 0
    assert main(report) == 0

    records = [read_record(path) for path in sorted(tmp_path.glob("results/table1/*.json"))]
    assert {record["method"] for record in records} == {"msp", "nearest-mean"}
    assert all("error" not in record for record in records)
    # Both rest on the same f of each partition, which was trained once.
    assert len(list((tmp_path / "cache" / "networks").glob("*.safetensors"))) == 2
    for kind in ("md", "csv", "tex"):
        assert "nearest-mean" in (tmp_path / f"reports/table1/table1.{kind}").read_text("utf-8")
