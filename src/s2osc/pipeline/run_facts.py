"""What a run knows that a method may need, and how a method declares its need."""

from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from s2osc.pipeline.student import StudentSettings
from s2osc.pipeline.teacher import TeacherSettings


@dataclass(frozen=True)
class RunFacts:
    """The facts of a run. Networks and budget of None leave a method its own."""

    n_unknown: int | None  # the true number of unknown classes; None: it changes during the run
    flip: bool = False  # a mirrored image keeps its class
    teacher: TeacherSettings | None = None
    student: StudentSettings | None = None
    judges: int | None = None  # calibration items that folds are made for
    is_trial: bool = False  # only to see that everything runs: as few steps as possible


@runtime_checkable
class Adaptable(Protocol):
    """A method that needs some facts of a run declares it with ``for_run``."""

    def for_run(self, run: RunFacts) -> Self:
        """The same method with what it takes from the run."""
        ...
