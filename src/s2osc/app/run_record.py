"""How a result came about: the facts of a run that a result and its summary both carry."""

from dataclasses import dataclass

from s2osc.app.origin import Origin, StreamPlace
from s2osc.data.columns import Columns
from s2osc.settings import NamedSettings


@dataclass(frozen=True)
class RunRecord:
    """What was run, on how many items, and how long it took."""

    title: str
    n_known: int
    n_skipped: int
    notes: tuple[str, ...]  # warnings about the run; those about the audit come from the audit
    k: int
    steps: dict[str, int]  # of training
    preset: str
    settings: NamedSettings  # hyper-parameters by name
    shape: str  # of the items, in words
    backbone: str | None
    seed: int
    device: str
    versions: dict[str, str]
    seconds: dict[str, float]
    embedding: str | None = None  # that texts went through
    columns: Columns | None = None  # of a table
    stream: StreamPlace | None = None  # None: of no stream
    origin: Origin | None = None  # None: of an earlier version
