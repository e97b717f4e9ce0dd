"""A run in MLflow, where that is installed: settings, audit, metrics and files.

The store is a folder here, or whatever address MLflow knows. Nothing of a run depends on it: it is
told after everything is saved.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from s2osc.app.results_folder import version_of
from s2osc.app.summary import Summary
from s2osc.errors import OutputError, SettingsError
from s2osc.files import reason
from s2osc.pipeline.audit.statistics import Estimate

EXPERIMENT = "s2osc"
LONGEST_VALUE = 500
"""Characters of a parameter that every store takes."""
FILES = ("summary.json", "report.html", "predictions.csv", "skipped.csv", "model")
LARGEST_FILE = 64 * 2**20
"""Bytes of a file that goes into the store as well."""


def check_mlflow() -> None:
    """Refuse to begin where MLflow is not installed."""
    try:
        import mlflow  # noqa: F401, PLC0415  (an extra, and slow to import)
    except ModuleNotFoundError as error:
        raise SettingsError(
            "--mlflow needs mlflow-skinny, which is not installed; run "
            "`pip install 's2osc[mlflow]'`"
        ) from error


def log_run(out: Path, summary: Summary, store: str) -> str:
    """Log a finished run to a store; returns its id there."""
    from mlflow.tracking import MlflowClient  # noqa: PLC0415

    address = store
    if "://" not in store:
        address = Path(store).absolute().as_uri()
        # A folder needs no database; MLflow asks for it to be said that this is meant.
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")
    try:
        client = MlflowClient(tracking_uri=address)
        found = client.get_experiment_by_name(EXPERIMENT)
        experiment = found.experiment_id if found else client.create_experiment(EXPERIMENT)
        run = client.create_run(experiment, run_name=summary.run.title).info.run_id
        for name, value in parameters(summary).items():
            client.log_param(run, name, value)
        for name, number in figures(summary):
            client.log_metric(run, name, number)
        for path in files_of(out):
            client.log_artifact(run, str(path), "model" if path.parent.name == "model" else None)
        client.set_terminated(run)
    except Exception as error:  # any: every kind of store has errors of its own
        raise OutputError(
            f"the run is saved in {out}, but MLflow cannot log it to {store} ({reason(error)}); "
            "give another store with --mlflow"
        ) from error
    return str(run)


def parameters(summary: Summary) -> dict[str, str]:
    """Settings, and the facts of the run."""
    run, names = summary.run, ("preset", "seed", "device", "backbone", "k")
    values = {name: getattr(run, name) for name in names} | run.settings | run.versions
    return {name: str(value)[:LONGEST_VALUE] for name, value in values.items()}


def figures(summary: Summary) -> Iterator[tuple[str, float]]:
    """Metrics, the audit's estimates with their ends, items and seconds, by name."""
    items = {"known": summary.run.n_known, "pool": summary.n_pool, "skipped": summary.run.n_skipped}
    rows = summary.parts.rows if summary.parts else {}
    parts: dict[str, Mapping[str, float]] = {
        "metrics": summary.metrics,
        "items": items,
        "seconds": summary.run.seconds,
        "rows": rows,
    }
    for part, values in parts.items():
        for name, value in values.items():
            yield f"{part}.{name}", float(value)
    if summary.audit is None:
        return
    for name in ("unknown_share", "unknown_recall", "false_alarm", "known_accuracy"):
        interval: Estimate | None = getattr(summary.audit, name)
        if interval is not None:
            for end in ("estimate", "low", "high"):
                yield f"audit.{name}.{end}", float(getattr(interval, end))
    yield "audit.p_value", float(summary.audit.test.p_value)


def files_of(out: Path) -> Iterator[Path]:
    """The files of a result that a store keeps: none that is very large."""
    version = version_of(out)
    for name in FILES:
        place = version / name
        for path in sorted(place.iterdir()) if place.is_dir() else [place]:
            if path.is_file() and path.stat().st_size <= LARGEST_FILE:
                yield path
