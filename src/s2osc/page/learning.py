"""What the model does when it learns, in a process of its own, and how that compares with before.

A pool is fitted anew with the labels of people. A stream takes them in, and is archived before and
after, so that the page can go back to any state it was in.
"""

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from s2osc.app.corrections import Corrections
from s2osc.app.results_folder import link_or_copy, results_folder, version_of
from s2osc.codec import JsonObject
from s2osc.errors import S2OSCError
from s2osc.page.pool import Pool
from s2osc.page.project import FOLDER
from s2osc.pipeline.audit.record import Audit
from s2osc.text import listed
from s2osc.types import UNKNOWN, UNSURE

MOST_MOVES = 12
OURS = (".lock", FOLDER)
"""In the folder of a stream, what is no part of its state."""
POINTER = "stream.json"
"""As in ``stream.store``, which needs torch."""


# --- pools -----------------------------------------------------------------------------------


def refit(out: Path, corrections: Corrections) -> None:
    """Fit a pool anew. Runs in a process of its own, as torch is large."""
    from s2osc.app.refit import refit_results  # noqa: PLC0415

    refit_results(out, corrections)


def _link(source: str, place: str) -> None:
    link_or_copy(Path(source), Path(place))


def keep_round(out: Path, place: Path) -> None:
    """Keep the results of a folder as they are now, without a second copy on the disk."""
    if not place.exists():
        shutil.copytree(version_of(out), place, copy_function=_link)


def restore_round(out: Path, place: Path) -> None:
    """Put results that were kept back into their folder."""
    with results_folder(out, force=True) as folder, folder.publish() as stage:
        shutil.copytree(place, stage, copy_function=_link, dirs_exist_ok=True)


def called(pool: Pool) -> np.ndarray:
    """(N,) what the model calls each item, in words."""
    names = np.array([*pool.result.classes, "unsure", "unknown"], object)
    assert (UNSURE, UNKNOWN) == (-2, -1), "the last two names are read from the end"
    return names[pool.decided]


def compare(before: Pool, after: Pool) -> JsonObject:
    """What a new fit of the same items changed."""
    audits = before.result.audit, after.result.audit
    known = before.result.classes
    return {
        **_moves(called(before), called(after)),
        "new_classes": [name for name in after.result.classes if name not in known],
        "known_accuracy": _pair(*(_estimate(audit, "known_accuracy") for audit in audits)),
        "false_alarm": _pair(*(_estimate(audit, "false_alarm") for audit in audits)),
        "classes": _by_class(known, *(_accuracies(audit) for audit in audits)),
        "kept": _forgotten(*audits),
    }


def _moves(before: np.ndarray, after: np.ndarray) -> JsonObject:
    """How many items changed class, and from which to which, the most frequent first."""
    changed = before != after
    moved = Counter(zip(before[changed].tolist(), after[changed].tolist(), strict=True))
    return {
        "n_changed": int(changed.sum()),
        "moves": [[a, b, n] for (a, b), n in moved.most_common(MOST_MOVES)],
    }


def _forgotten(before: Audit | None, after: Audit | None) -> str:
    """One sentence on known classes that are less right than before, by items held back."""
    if before is None or after is None:
        return ""
    now = {each.name: each.known_accuracy for each in after.classes}
    lost = [
        each.name
        for each in before.classes
        if each.known_accuracy
        and (found := now.get(each.name))
        and found.high < each.known_accuracy.estimate
    ]
    if lost:
        return f"Less right than before, as items held back tell: {listed(lost)}."
    return "Nothing was forgotten, as far as items held back can tell."


def _estimate(audit: Audit | None, name: str) -> float | None:
    found = getattr(audit, name) if audit else None
    return found.estimate if found else None


def _pair(before: float | None, after: float | None) -> list[float] | None:
    return None if before is None or after is None else [before, after]


def _accuracies(audit: Audit | None) -> dict[str, float]:
    classes = audit.classes if audit else ()
    return {each.name: each.known_accuracy.estimate for each in classes if each.known_accuracy}


def _by_class(
    names: Sequence[str], before: Mapping[str, float], after: Mapping[str, float]
) -> list[list[Any]]:
    return [[name, before.get(name), after.get(name)] for name in names]


# --- streams -----------------------------------------------------------------------------------


def keep_state(state: Path, archive: Path) -> None:
    """Keep a stream as it is now: its files are named by their content, so links will do."""
    from s2osc.stream.store import read_pointer  # noqa: PLC0415

    place = archive / str(read_pointer(state).current.number)
    if not place.exists():
        shutil.copytree(state, place, copy_function=_link, ignore=shutil.ignore_patterns(*OURS))


def read_stream(state: Path) -> JsonObject:
    """The status of a stream, in plain values."""
    from s2osc.stream.status import read_status  # noqa: PLC0415

    return read_status(state).to_json()


def go_back(state: Path, archive: Path, number: int) -> JsonObject:
    """Make a state that was kept the current one."""
    from s2osc.stream.store import open_store, read_pointer, read_state  # noqa: PLC0415

    place = archive / str(number)
    what = read_pointer(place).current.what
    with open_store(state) as store:
        store.write(read_state(place), f"back to version {number}, {what}")
    keep_state(state, archive)
    return read_stream(state)


def classify_window(state: Path, pool: Path, out: Path, archive: Path, budget: int) -> JsonObject:
    """Answer for the next window of a stream."""
    from s2osc.app.stream.window import window_files  # noqa: PLC0415
    from s2osc.stream.queries import QuerySettings  # noqa: PLC0415

    keep_state(state, archive)
    window_files(state, pool, out, QuerySettings(budget))
    keep_state(state, archive)
    return read_stream(state)


def _named_or_why(state: Path, out: Path) -> np.ndarray | str:
    """The class of each item of the last window; why not, where its files are gone."""
    from s2osc.app.stream.answer import name_window  # noqa: PLC0415

    try:
        return name_window(state, out)
    except S2OSCError as error:
        return str(error)


def learn_window(state: Path, out: Path, archive: Path, labels: Mapping[str, str]) -> JsonObject:
    """Take people's labels of the last window in: of items that were asked about, and of others."""
    from s2osc.app.stream.answer import learn_labels  # noqa: PLC0415

    keep_state(state, archive)
    before, former = read_stream(state), _named_or_why(state, out)
    answered = learn_labels(state, out, labels)
    keep_state(state, archive)
    after, named = read_stream(state), _named_or_why(state, out)
    moves: JsonObject = {"n_changed": None, "moves": []}
    notes = list(answered.notes) if answered else []
    if isinstance(former, str) or isinstance(named, str):
        notes.append(f"Which items changed class is not known: {named}.")
    else:
        moves = _moves(former, named)
    account = answered.account if answered else None
    forgetting = [
        f"The loss on {what} {'did not rise' if losses.holds else 'rose'}: "
        f"{losses.before:.3g} before, {losses.after:.3g} after."
        for what, losses in (
            ("the memory", account.memory if account else None),
            ("items held back", account.seeds if account else None),
        )
        if losses
    ]
    accuracies = [
        {name: each["estimate"] for name, each in status["classes"].items() if "estimate" in each}
        for status in (before, after)
    ]
    return {
        "status": after,
        "change": {
            **moves,
            "new_classes": [n for n in after["classes"] if n not in before["classes"]],
            "known_accuracy": None,
            "false_alarm": None,
            "classes": _by_class(list(before["classes"]), *accuracies),
            "kept": " ".join([*forgetting, *notes]),
        },
    }
