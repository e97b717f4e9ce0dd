"""The two presets and the four ablations, as values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from s2osc.errors import SettingsError
from s2osc.nets.networks import NetworkSettings
from s2osc.nets.training import TrainSettings
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.settings import change
from s2osc.pipeline.student import StudentSettings
from s2osc.pipeline.teacher import TeacherSettings

FAST = S2OSCMethod(
    teacher=TeacherSettings(
        network=NetworkSettings(),
        training=TrainSettings(
            epochs=4, batch_size=128, learning_rate=0.1, weight_decay=5e-4, min_steps=200
        ),
        augment=0.5,
    ),
    student=StudentSettings(
        network=NetworkSettings(),
        training=TrainSettings(
            epochs=2, batch_size=96, learning_rate=0.1, weight_decay=5e-4, min_steps=200
        ),
        labelled_batch=128,
        vote=True,
    ),
)
"""Minutes on two CPU cores: compact networks, one-cycle schedule, few epochs."""

PAPER = S2OSCMethod(
    teacher=TeacherSettings(
        network=NetworkSettings(
            widths=(64, 128, 256, 512), blocks=(3, 4, 6, 3), first_map=64, hidden=(512, 512)
        ),
        training=TrainSettings(
            epochs=20, batch_size=64, learning_rate=0.01, weight_decay=1e-3, schedule="constant"
        ),
    ),
    student=StudentSettings(
        network=NetworkSettings(
            widths=(64, 128, 256, 512), blocks=(2, 2, 2, 2), first_map=64, hidden=(512, 512)
        ),
        training=TrainSettings(
            epochs=30, batch_size=64, learning_rate=0.005, weight_decay=5e-4, schedule="constant"
        ),
        augment_labelled=False,
    ),
)
"""ResNet-34 and ResNet-18 with the paper's optimiser settings: for a GPU."""

PRESETS = {"fast": FAST, "paper": PAPER}


def _without_teacher(method: S2OSCMethod) -> StudentSettings:
    # f turned into g cannot teach g.
    return replace(method.student, start="teacher", alpha=0.0)


ABLATIONS = {
    "S": lambda method: replace(method, student=replace(method.student, augmentation="strong")),
    "LM": lambda method: replace(method, student=replace(method.student, hard_loss="triplet")),
    "FN": lambda method: replace(method, student=_without_teacher(method)),
    "U": lambda method: replace(method, student=replace(method.student, lambda_u=0.0)),
}
"""The paper's ablation study: S2OSC-S, S2OSC-LM, S2OSC-FN, S2OSC-U."""


def choose_preset(name: str, device: str) -> str:
    """The preset ``auto`` stands for: the paper's on a GPU, the fast one elsewhere."""
    if name == "auto":
        return "paper" if device.startswith("cuda") else "fast"
    if name not in PRESETS:
        raise SettingsError(f"the preset is {name!r}; give auto, {' or '.join(PRESETS)}")
    return name


def build_method(preset: str, changes: Mapping[str, Any]) -> S2OSCMethod:
    """A preset with the named hyper-parameters changed."""
    return change(PRESETS[preset], changes)
