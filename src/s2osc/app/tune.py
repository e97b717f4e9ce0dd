"""Hyper-parameters for a user's own data, from labelled files to a file of settings."""

import time
from pathlib import Path

from s2osc.app.output import result_file
from s2osc.app.representation import read_known
from s2osc.app.request import Request, check_request, choose_method
from s2osc.app.settings_file import SavedSettings, settings_text
from s2osc.data.inputs import encode_labels
from s2osc.errors import SettingsError
from s2osc.pipeline.tuning import Clock, Tuned, tune
from s2osc.progress import Stopwatch
from s2osc.settings import require_positive
from s2osc.types import Labelled

FILE = ".toml"


def tune_files(
    known: Path,
    out: Path,
    request: Request,
    *,
    minutes: float,
    force: bool = False,
    clock: Clock = time.monotonic,
) -> Tuned:
    """Labelled files in, a file of settings out: also where the preset is kept as it is."""
    require_positive("--minutes", minutes)
    if out.suffix != FILE:
        raise SettingsError(f"--to is {out}; give a file name ending in {FILE}")
    device = check_request(request)
    with result_file(out, force=force, wanted=FILE) as write:
        items, represented = read_known(known, request, device)
        inputs = represented.inputs(items.inputs, Stopwatch())
        labels, classes = encode_labels(items.labels or [])
        preset, method = choose_method(
            request,
            device,
            vectors=represented.is_vectors,
            classes=classes,
            n_labelled=len(labels),
        )
        found = tune(
            Labelled(inputs, labels),
            method,
            minutes=minutes,
            vectors=represented.is_vectors,
            seed=request.seed,
            device=device,
            clock=clock,
        )
        saved = SavedSettings(preset, {**request.changes, **found.changes})
        write(settings_text(saved, tuned_in_words(found)).encode())
    return found


def tuned_in_words(found: Tuned) -> list[str]:
    """What was chosen and how much better it is, then everything that was tried."""
    if found.changes:
        chosen = ", ".join(f"{name} {value}" for name, value in found.changes.items())
        first = (
            f"Better on known classes that were hidden: {chosen}. F1 {found.before:.3f} -> "
            f"{found.after:.3f} on {found.n_fresh} fresh tasks."
        )
    elif found.n_fresh:
        first = (
            f"What looked better did not hold on {found.n_fresh} fresh tasks (F1 "
            f"{found.before:.3f} -> {found.after:.3f}): the preset is kept as it is."
        )
    else:
        first = (
            f"Nothing tried is better beyond chance: the preset is kept (F1 {found.before:.3f})."
        )
    lines = [first]
    for tried in found.tried:
        (name, value), *_ = tried.changes.items()
        gain = f"{tried.gain:+.4f} ± {tried.error:.4f}" if tried.n_tasks > 1 else "not measured"
        lines.append(f"tried {name} {value}: {gain} of F1 in {tried.n_tasks} tasks")
    return lines
