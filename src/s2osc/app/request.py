"""What a user asks for beside the data, and the method that it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from s2osc.app.extract import AUTO
from s2osc.data.inputs import MAX_MEGAPIXELS
from s2osc.errors import SettingsError
from s2osc.nets.backbones import EFFICIENTNETS
from s2osc.nets.training import resolve_device
from s2osc.pipeline.audit.threshold import number_classes
from s2osc.pipeline.large_pool.plan import check_fit_on
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.presets import build_method, choose_preset
from s2osc.settings import FIT_ON, NamedSettings, require_positive

NEED_SEEDS = (
    "decision.false_alarm",
    "decision.false_alarm_of",
    "decision.guarantee",
    "decision.aim",
    "decision.unsure",
)
TUNED = "tuned"


@dataclass(frozen=True)
class Request:
    """What a user asks for beside the data."""

    preset: str = "auto"
    changes: Mapping[str, Any] = field(default_factory=dict)  # hyper-parameters by name
    seed: int = 0
    device: str = "auto"
    title: str = "Open set classification"
    side: int | None = None  # pixels that images are brought to; None: chosen
    backbone: str = AUTO  # that images go through
    embedding: str = AUTO  # that texts go through
    text_column: str | None = None  # where tables have texts; None: in `text`, if there is one
    keep_columns: Sequence[str] = ()  # of a table, used in any case
    max_megapixels: float = MAX_MEGAPIXELS  # of an image; larger ones are refused
    fit_on: int = FIT_ON  # items of the pool; of a larger one, a sample is fitted on
    minutes: float | None = None  # that a run may take, for the choice between heads and tuned

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise SettingsError(f"the seed is {self.seed}; give a whole number from 0")
        check_fit_on(self.fit_on)
        require_positive("--minutes", self.minutes)
        if self.minutes is not None and self.preset != AUTO:
            raise SettingsError(
                f"--minutes is for --preset auto, but the preset is {self.preset}; give one of both"
            )


def check_request(request: Request) -> str:
    """The device, or one line on what cannot be used, whatever kind the items turn out to be."""
    device = resolve_device(request.device)
    for vectors in (False, True):
        choose_method(request, device, vectors=vectors)
    return device


def choose_method(
    request: Request,
    device: str,
    *,
    vectors: bool,
    classes: Sequence[str] | None = None,
    n_labelled: int | None = None,
) -> tuple[str, S2OSCMethod]:
    """The method for items of one kind, and the preset its hyper-parameters start from.

    Limits of single classes need the names of the ``classes``.
    """
    preset = choose_preset(request.preset, device, vectors=vectors, n_labelled=n_labelled)
    changes = number_classes(request.changes, classes)
    if preset == TUNED and request.backbone != AUTO:
        changes = pretrained_as(request.backbone) | dict(changes)
    method = build_method(preset, changes)
    check_decision(preset, method, request.changes)
    return preset, method


def pretrained_as(backbone: str) -> NamedSettings:
    """The changes that make f and g start from a backbone."""
    if backbone not in EFFICIENTNETS:
        raise SettingsError(
            f"--backbone is {backbone!r}, but the preset {TUNED} trains an EfficientNet-Lite; "
            f"give {' or '.join(EFFICIENTNETS)}, or another preset"
        )
    return {f"{which}.network.pretrained": backbone for which in ("teacher", "student")}


def check_decision(preset: str, method: S2OSCMethod, changes: Mapping[str, Any]) -> None:
    """Refuse an operating point where no seeds are there to set it."""
    unused = [name for name in NEED_SEEDS if name in changes]
    if unused and method.decision.rule == "argmax":
        raise SettingsError(
            f"{unused[0]} is for decisions by seeds, but the preset {preset} calls unknown what "
            "g's largest output is for; leave it out, or give another preset, such as fast"
        )
