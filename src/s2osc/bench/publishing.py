"""Experiments -> a folder each: Markdown, CSV, LaTeX and figures, from records alone."""

from collections.abc import Sequence
from pathlib import Path

from s2osc.bench.experiments.catalogue import EXPERIMENTS
from s2osc.bench.figures.figures import figures_for, save
from s2osc.bench.records import read_records
from s2osc.bench.tables.documents import write_report


def publish(results: Path, names: Sequence[str], out: Path) -> list[Path]:
    """Write everything about the named experiments, and say which files that are."""
    paths = []
    for name in names:
        paths += write_report(results, name, out / name)
        records = read_records(results, EXPERIMENTS[name].records or name)
        right = [record for record in records if not record.get("error")]
        for what, figure in figures_for(name, right).items():
            paths += save(figure, out / name / what)
    return paths
