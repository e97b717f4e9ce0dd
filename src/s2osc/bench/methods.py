"""METHODS: every method by the name that tables and commands use.

A method of another package joins them by an entry point of the group ``s2osc.methods`` that names
an instance of it.
"""

from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from s2osc.baselines.cfo import CFO
from s2osc.baselines.cpe import CPE
from s2osc.baselines.dtc import DTC
from s2osc.baselines.eulac import EULAC
from s2osc.baselines.isolation_forest import IsolationForest
from s2osc.baselines.lacu_svm import LACUSVM
from s2osc.baselines.odin import ODIN
from s2osc.baselines.one_class_svm import OneClassSVM
from s2osc.baselines.openmax import OpenMax
from s2osc.baselines.post_hoc import KNN, MSP, Energy, Mahalanobis, MaxLogit, ViM
from s2osc.baselines.senc_mas import SENCMaS
from s2osc.errors import SettingsError
from s2osc.nets.networks import NetworkSettings
from s2osc.nets.training import TrainSettings
from s2osc.pipeline.presets import ABLATIONS, FAST, HEADS, PAPER, PLAIN, PRESETS
from s2osc.pipeline.run_facts import Adaptable, RunFacts
from s2osc.pipeline.teacher import TeacherSettings
from s2osc.settings import change
from s2osc.types import Method

GROUP = "s2osc.methods"
"""Of the entry points of other packages."""
PAPER_FORM = replace(PAPER, teacher=PLAIN.teacher)
"""The paper's reading of every step; networks and budget are those of the size that is run."""

METHODS: dict[str, Method] = {
    "isolation-forest": IsolationForest(),
    "one-class-svm": OneClassSVM(),
    "lacu-svm": LACUSVM(),
    "senc-mas": SENCMaS(),
    "odin": ODIN(),
    "cfo": CFO(),
    "cpe": CPE(),
    "dtc": DTC(),
    "msp": MSP(),
    "max-logit": MaxLogit(),
    "energy": Energy(),
    "knn": KNN(),
    "mahalanobis": Mahalanobis(),
    "vim": ViM(),
    "openmax": OpenMax(),
    "eulac": EULAC(),
    "s2osc-paper": PAPER_FORM,
    "s2osc": FAST,
    **{f"s2osc-{letter.lower()}": ablate(PAPER_FORM) for letter, ablate in ABLATIONS.items()},
}

ABLATED = ("s2osc-paper", *(f"s2osc-{letter.lower()}" for letter in ABLATIONS))
OURS = "s2osc"
COMPARED = (
    "isolation-forest",
    "one-class-svm",
    "lacu-svm",
    "senc-mas",
    "odin",
    "cfo",
    "cpe",
    "dtc",
    "msp",
    "max-logit",
    "energy",
    "knn",
    "mahalanobis",
    "vim",
    "openmax",
    "eulac",
    "s2osc-paper",
    "s2osc",
)
"""The methods of the recorded comparisons: each once, ours in the paper's form and in our own. Who
adds one runs the comparisons with it."""
DETECTORS = ("isolation-forest", "odin", "cfo")
"""What the paper used as detectors only: their answers are also counted in paper mode."""

_TINY_STEPS = TrainSettings(
    epochs=1, batch_size=16, learning_rate=0.05, weight_decay=5e-4, min_steps=12
)
_TINY_NETWORK = NetworkSettings(widths=(8, 16), blocks=(1, 1), first_map=8, hidden=(16,))
TINY = replace(
    PLAIN,
    teacher=TeacherSettings(_TINY_NETWORK, _TINY_STEPS, augment=0.5),
    student=replace(PLAIN.student, network=_TINY_NETWORK, training=_TINY_STEPS, labelled_batch=16),
)
"""Networks that learn next to nothing, at once."""
_SMALL_STEPS = TrainSettings(
    epochs=4, batch_size=64, learning_rate=0.1, weight_decay=5e-4, min_steps=80
)
SMALL = replace(
    FAST,
    teacher=replace(
        FAST.teacher, network=NetworkSettings(widths=(16, 32, 64)), training=_SMALL_STEPS
    ),
    student=replace(
        FAST.student,
        network=NetworkSettings(widths=(16, 32, 64)),
        training=_SMALL_STEPS,
        labelled_batch=64,
    ),
)
"""The fast preset with smaller networks and fewer steps: for many small pools."""
HEADS_OF_RECORDS = change(
    HEADS, {"teacher.training.min_steps": 400, "student.training.min_steps": 500}
)
"""Vectors in comparisons: more steps than the preset, which is as right with fewer."""
NETWORKS = PRESETS | {"heads": HEADS_OF_RECORDS, "small": SMALL, "tiny": TINY}


def choose_methods(names: str | None, own: Mapping[str, Method]) -> dict[str, Method]:
    """Methods by comma-separated names; ``all`` or None stands for the experiment's own."""
    if names is None:
        return dict(own)
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    if not wanted:
        raise SettingsError(
            f"--methods is {names!r}; give names with commas between, or all, or leave it away"
        )
    chosen: dict[str, Method] = {}
    for name in wanted:
        chosen |= own if name == "all" else {name: find_method(name, own)}
    return chosen


def find_method(name: str, own: Mapping[str, Method]) -> Method:
    """The experiment's own form of a method, or ours, or that of another package.

    A package is imported when its method is asked for: a broken one stops nothing else.
    """
    ours = {**own, **METHODS, **own}
    points = list(entry_points(group=GROUP))
    named = [point for point in points if point.name == name]
    if named and len(named) + (name in ours) > 1:
        raise SettingsError(
            f"the package {_package(named[-1])} brings a method {name!r}, which there is already; "
            "give it another name"
        )
    if name in ours:
        return ours[name]
    if not named:
        there_are = dict.fromkeys([*ours, *(point.name for point in points)])
        raise SettingsError(f"there is no method {name!r}; give {' or '.join(there_are)}")
    return _load(named[0])


def _load(point: EntryPoint) -> Method:
    where = f"the entry point {point.name!r} of the package {_package(point)}"
    try:
        method = point.load()
    except Exception as error:  # whatever the import of another package dies of
        raise SettingsError(
            f"{where} cannot be loaded ({type(error).__name__}: {error}); mend that package or "
            "run other methods"
        ) from error
    if isinstance(method, type):
        raise SettingsError(
            f"{where} names the class {method.__name__}; name an instance of it instead"
        )
    if not is_dataclass(method):
        raise SettingsError(
            f"{where} names a {type(method).__name__}; name an instance of a frozen dataclass "
            "with `fit`"
        )
    return cast(Method, method)


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "of no name"


def adapt(method: Any, run: RunFacts) -> Any:
    """The method with what it declares to need of the run; any other as it is."""
    return method.for_run(run) if isinstance(method, Adaptable) else method


def run_facts(networks: str | None, *, flip: bool, n_unknown: int | None) -> RunFacts:
    """The facts of a run with the networks and the budget of a preset; None: each its own."""
    facts = RunFacts(n_unknown=n_unknown, flip=flip, is_trial=networks == "tiny")
    if networks is None:
        return facts
    preset = NETWORKS[networks]
    return replace(
        facts, teacher=preset.teacher, student=preset.student, judges=preset.seeds.judges
    )
