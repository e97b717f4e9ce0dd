"""Begin a stream with labelled files; take its last change back, or rename a class."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from s2osc.app.answer_tables import skipped_note
from s2osc.app.representation import read_known
from s2osc.app.request import Request, check_request, choose_method
from s2osc.data.inputs import encode_labels
from s2osc.errors import DataError, OutputError, collect_warnings
from s2osc.progress import Stopwatch
from s2osc.stream.names import IGNORE, as_meant, rename_class
from s2osc.stream.open_stream import build_learner
from s2osc.stream.sources import with_originals
from s2osc.stream.state import StreamFacts, StreamState
from s2osc.stream.store import check_may_begin, holds_stream, open_store
from s2osc.stream.windows import begin_stream
from s2osc.text import clean_name
from s2osc.types import Labelled

LEARNERS_OWN = ("update.", "memory.")
"""How the names of settings begin that the learner has beside those of its method."""


class Begun(NamedTuple):
    """A new stream, and what the user should know about it."""

    state: StreamState
    n_items: int
    notes: list[str]


def init_files(
    known: Path,
    folder: Path,
    request: Request,
    *,
    memory: int = 2_000,
) -> Begun:
    """Labelled files in, the folder of a stream out."""
    refuse_stream(folder)
    of_method, device = check_learner(request, memory)
    with collect_warnings() as notes:
        items, represented = read_known(known, of_method, device)
        labels, classes = encode_labels(items.labels or [])
        check_names(classes)
        preset, _ = choose_method(
            of_method, device, vectors=represented.is_vectors, n_labelled=len(labels)
        )
        facts = StreamFacts(
            preset=preset, shape=represented.shape.note, preparation=represented.preparation
        )
        with open_store(folder, make=True) as store:
            refuse_stream(folder)  # nor one that was begun meanwhile
            inputs = represented.inputs(items.inputs, Stopwatch())
            state = begin_stream(
                Labelled(inputs, labels),
                classes,
                build_learner(preset, request.changes, memory),
                seed=request.seed,
                device=device,
                facts=facts,
            )
            originals = represented.originals(items.inputs)
            if originals is not None:
                state = with_originals(state, inputs, originals)
            store.write(state, "the beginning")
    notes += skipped_note(items.skipped, "they are left out")
    return Begun(state, len(items), notes)


def check_learner(request: Request, memory: int) -> tuple[Request, str]:
    """The part of a request that is about the method, and the device.

    A setting of method or learner that cannot be used is refused.
    """
    of_method = {n: v for n, v in request.changes.items() if not n.startswith(LEARNERS_OWN)}
    request_of_method = replace(request, changes=of_method)
    device = check_request(request_of_method)
    preset, _ = choose_method(request_of_method, device, vectors=False)
    build_learner(preset, request.changes, memory)
    return request_of_method, device


def refuse_stream(folder: Path) -> None:
    if holds_stream(folder):
        raise OutputError(
            f"{folder} holds a stream already; give another folder, or remove this one"
        )
    check_may_begin(folder)


def check_names(classes: Sequence[str]) -> None:
    """Refuse known classes whose name means something else among answers."""
    for name in classes:
        if as_meant(name).casefold() == IGNORE:
            raise DataError(
                f"a class is called {name!r}, which marks items that are not of interest; rename it"
            )


def undo_last(folder: Path) -> str:
    """Take the last confirmed change back; return what it was."""
    with open_store(folder) as store:
        return store.undo()


def rename_in(folder: Path, old: str, new: str) -> str:
    """Give a class of a stream another name; return the name as it is stored."""
    new = clean_name(new)
    with open_store(folder) as store:
        store.write(rename_class(store.read(), old, new), f"{old!r} renamed {new!r}")
    return new
