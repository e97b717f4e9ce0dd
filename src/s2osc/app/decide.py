"""Decide a pool anew: another operating point, or other groups, from what a run has measured.

Nothing is trained and no network is loaded: scores of pool and seeds, and the leaf of each item in
the tree of groups, lie in the result folder.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from s2osc.app.report import rewrite_results
from s2osc.app.result import Result
from s2osc.app.result_files import COPY_AGAIN, load_result
from s2osc.app.results_folder import results_folder
from s2osc.errors import SettingsError
from s2osc.files import guarded
from s2osc.pipeline.audit.threshold import DecisionSettings, number_classes
from s2osc.settings import change


@dataclass(frozen=True)
class Regrouping:
    """Other groups: so many, or some as one, or one in two. None of these: the groups stay."""

    n_groups: int | None = None
    merge: Sequence[int] = ()
    split: int | None = None

    def __post_init__(self) -> None:
        if (self.n_groups is not None) + bool(self.merge) + (self.split is not None) > 1:
            raise SettingsError(
                "give one of --groups, --merge and --split; run `s2osc decide` once for each"
            )


AS_THEY_ARE = Regrouping()


def redecide(out: Path, changes: Mapping[str, Any], regrouping: Regrouping = AS_THEY_ARE) -> Result:
    """Rewrite the answer in a result folder.

    ``changes`` are settings of the decision by name (``false_alarm``, ``false_alarm_of`` with
    limits by the names of classes, ``guarantee``, ``aim``, ``unsure``); those that are not named
    stay as they were decided last.
    """
    # What cannot be used is refused before anything is read.
    change(DecisionSettings(), number_classes(changes, None))
    # To ask for an operating point is to leave the decision to the seeds.
    changes = {"rule": "seeds", **changes} if changes else {}
    with results_folder(out, update=True) as folder:
        with guarded(out, COPY_AGAIN):  # figures of an edited table go through the decision, too
            result = load_result(folder.version, changes)
        if regrouping != AS_THEY_ARE:
            result = result.regrouped(
                regrouping.n_groups, merge=regrouping.merge, split=regrouping.split
            )
        rewrite_results(folder, result)
        return result
