"""Runs from end to end on blobs, their numbers kept in ``blobs.json``.

A refactoring leaves them as they are. A change of the method writes them anew with
``python tests/golden/test_golden.py`` from the root (``PYTHONPATH=tests``), in the same commit, and
says why. Labels of single items are not kept: they may differ between machines.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from s2osc.bench.tasks.pool import judge_answer
from s2osc.pipeline.grouping.clusters import ClusterSettings
from s2osc.pipeline.presets import FAST, PLAIN
from samples import make_blobs, open_set, shrink

pytestmark = pytest.mark.usefixtures("as_users_get_it")

KEPT = Path(__file__).with_name("blobs.json")
METHODS = {"fast": FAST, "plain": PLAIN}
TOLERANCE = 0.03  # one item of D_out is 0.025
OF_INTERVALS = ("_low", "_high", "_covered")  # one seed more or less moves them by more


def run_blobs(name: str) -> dict[str, float]:
    """Blobs that overlap a little, so that the figures have room to move either way."""
    split = open_set(*make_blobs(200, distance=3.5))
    method = shrink(METHODS[name], n_steps=100, k=40)
    method = replace(method, clusters=ClusterSettings(n_groups=1))
    solution = method.fit(split.known, split.pool, seed=0)
    answer = solution.answer
    judged = judge_answer(split, solution, solution.answer, detects_only=False, seed=0)
    figures = judged.metrics | {
        "mean_confidence": float(answer.confidence.mean()),
        "mean_unknown_score": float(answer.unknown_score.mean()),
        "mean_distinctness": float(answer.distinctness.mean() / answer.distinctness.max()),
    }
    return {
        name: round(value, 4) for name, value in figures.items() if not name.endswith(OF_INTERVALS)
    }


@pytest.mark.parametrize("name", METHODS)
def test_the_run_on_blobs_has_the_figures_that_are_kept(name):
    kept = json.loads(KEPT.read_text(encoding="utf-8"))[name]
    assert run_blobs(name) == pytest.approx(kept, abs=TOLERANCE)


if __name__ == "__main__":
    found = {name: run_blobs(name) for name in METHODS}
    KEPT.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
