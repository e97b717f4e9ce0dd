"""One run from end to end on blobs, its numbers kept in ``blobs.json``.

A refactoring leaves them as they are. A change of the method writes them anew with
``python tests/golden/test_golden.py`` from the root (``PYTHONPATH=tests``), in the same commit, and
says why. Labels of single items are not kept: they may differ between machines.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from s2osc.bench.runner import judge
from s2osc.pipeline.clusters import ClusterSettings
from s2osc.pipeline.presets import FAST
from samples import make_blobs, open_set, shrink

KEPT = Path(__file__).with_name("blobs.json")
TOLERANCE = 0.03  # one item of D_out is 0.025


def run_blobs() -> dict[str, float]:
    """Blobs that overlap a little, so that the figures have room to move either way."""
    split = open_set(*make_blobs(200, distance=3.5))
    method = replace(shrink(FAST, n_steps=100, k=40), clusters=ClusterSettings(n_groups=1))
    solution = method.fit(split.known, split.pool, seed=0)
    answer = solution.answer
    figures = judge(split, solution) | {
        "mean_confidence": float(answer.confidence.mean()),
        "mean_unknown_score": float(answer.unknown_score.mean()),
        "mean_distinctness": float(answer.distinctness.mean() / answer.distinctness.max()),
    }
    return {name: round(value, 4) for name, value in figures.items()}


def test_the_run_on_blobs_has_the_figures_that_are_kept():
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    found = run_blobs()
    assert found == pytest.approx(kept, abs=TOLERANCE)


if __name__ == "__main__":
    KEPT.write_text(json.dumps(run_blobs(), indent=1) + "\n", encoding="utf-8")
