"""A run in MLflow."""

import sys

import pytest

from s2osc.app.tracking import figures, files_of, parameters
from s2osc.cli.main import main
from s2osc.pipeline.audit.record import UnknownTest
from s2osc.pipeline.audit.statistics import Estimate
from samples import make_audit, make_summary

AUDIT = make_audit(
    ("a", "b"),
    unknown_share=Estimate(0.2, 0.1, 0.3),
    unknown_recall=None,
    false_alarm=None,
    known_accuracy=None,
    test=UnknownTest(p_value=0.5, level=0.05),
)
SUMMARY = make_summary(audit=AUDIT, metrics={"f1": 0.9})
SUMMARY.run.settings["long"] = "x" * 2_000


def test_settings_and_figures_have_names_that_tell_where_they_are_from():
    found = parameters(SUMMARY)
    assert found["student.tau"] == "0.85"
    assert len(found["long"]) == 500
    assert dict(figures(SUMMARY)) == {
        "metrics.f1": 0.9,
        "items.known": 9.0,
        "items.pool": 5.0,
        "items.skipped": 0.0,
        "seconds.answer": 1.5,
        "audit.unknown_share.estimate": 0.2,
        "audit.unknown_share.low": 0.1,
        "audit.unknown_share.high": 0.3,
        "audit.p_value": 0.5,
    }


def test_files_of_the_current_version_are_taken(finished):
    names = {path.name for path in files_of(finished / "out")}
    assert names >= {"summary.json", "report.html", "model.json", "weights.safetensors"}


def test_without_mlflow_nothing_is_begun(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    paths = [f"--{name}={tmp_path / name}" for name in ("known", "pool", "out")]
    assert main(["classify", *paths, "--mlflow"]) == 2
    assert "run `pip install 's2osc[mlflow]'`" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore")
def test_a_run_is_logged_to_a_folder(finished, tmp_path, quick, capsys):
    tracking = pytest.importorskip("mlflow.tracking")
    paths = [f"--{name}={finished / name}.npz" for name in ("known", "pool")]
    out, store = tmp_path / "out", tmp_path / "store"
    assert main(["classify", *paths, f"--out={out}", *quick, f"--mlflow={store}"]) == 0
    run = capsys.readouterr().out.split()[-1]
    client = tracking.MlflowClient(tracking_uri=store.as_uri())
    logged = client.get_run(run)
    assert logged.data.params["preset"] == "heads"
    assert logged.data.metrics["metrics.accuracy"] > 0.9
    assert "audit.unknown_share.estimate" in logged.data.metrics
    names = {each.path for each in client.list_artifacts(run)}
    assert names >= {"summary.json", "report.html", "model"}
