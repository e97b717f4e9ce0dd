"""The presets and the four ablations, as values."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from s2osc.errors import SettingsError
from s2osc.nets.networks import NetworkSettings
from s2osc.nets.training import TrainSettings
from s2osc.pipeline.audit.held_back import SeedSettings
from s2osc.pipeline.method import S2OSCMethod
from s2osc.pipeline.student import StudentSettings
from s2osc.pipeline.teacher import TeacherSettings
from s2osc.settings import change

PLAIN = S2OSCMethod(
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
"""The paper's method in minutes on two CPU cores: compact networks, one-cycle schedule."""


def with_seeds(method: S2OSCMethod) -> S2OSCMethod:
    """The method with seeds in the pool, and everything they are good for."""
    return replace(
        method,
        student=replace(method.student, vote=True, known_items="all", seed_weight=0.5),
        filtering=replace(method.filtering, by="seeds"),
        seeds=SeedSettings(share=0.15),
        decision=replace(method.decision, rule="seeds"),
    )


SEEDED = with_seeds(PLAIN)
SMALL_MAPS = NetworkSettings(grey_map=8)
"""The compact network with grey images in maps of 8 x 8: a quarter of the multiplications."""

FAST = replace(
    SEEDED,
    teacher=replace(
        SEEDED.teacher,
        network=NetworkSettings(widths=(16, 32, 96)),
        training=replace(SEEDED.teacher.training, epochs=6),
    ),
    student=replace(
        SEEDED.student,
        network=SMALL_MAPS,
        training=replace(SEEDED.student.training, epochs=4, min_steps=400),
    ),
)
"""The default for images on a CPU, if there are many labelled ones: large maps for f, but fewer
channels in them. Naming known classes takes what small maps lose, finding unknown ones does not
(decision 35)."""

FEW_JUDGES = 60
"""Calibration items, three of which are the usual limit of 5 %. Images from scratch are judged by
as many at least; more would be dear, since each of their folds takes as long as the first fit."""

QUICK = replace(
    SEEDED,
    teacher=replace(SEEDED.teacher, network=SMALL_MAPS),
    student=replace(SEEDED.student, network=SMALL_MAPS),
    seeds=replace(SEEDED.seeds, judges=FEW_JUDGES),
)
"""The default for images on a CPU, if few are labelled: f, too, sees grey images in small maps;
very few of them judge in folds."""
FEW_LABELLED = 3_000
"""Labelled items up to which the preset ``quick`` is as right (decisions 26 and 35)."""

MANY_JUDGES = 100
"""Calibration items, with which a limit of 1 % of false alarms can be kept."""

HEADS = replace(
    FAST,
    seeds=replace(FAST.seeds, judges=MANY_JUDGES),
    teacher=TeacherSettings(
        network=NetworkSettings(hidden=(512,)),
        training=TrainSettings(
            epochs=8, batch_size=128, learning_rate=0.05, weight_decay=5e-4, min_steps=300
        ),
        augment=0.5,
    ),
    student=replace(
        FAST.student,
        network=NetworkSettings(hidden=(512,)),
        training=TrainSettings(
            epochs=4, batch_size=96, learning_rate=0.05, weight_decay=5e-4, min_steps=300
        ),
    ),
)
"""The default for vectors, those of a pretrained backbone among them: f and g are small heads, so
that few labelled items can judge in folds."""

_TUNED_NETWORK = NetworkSettings(pretrained="efficientnet-lite0", first_stage=4)
_TUNED_STEPS = TrainSettings(
    epochs=4,
    batch_size=64,
    learning_rate=2e-3,
    weight_decay=0.01,
    min_steps=200,
    optimiser="adam",
    layer_decay=0.9,
)
TUNED = replace(
    FAST,
    teacher=TeacherSettings(network=_TUNED_NETWORK, training=_TUNED_STEPS, augment=1.0),
    student=replace(
        FAST.student,
        network=_TUNED_NETWORK,
        training=replace(_TUNED_STEPS, epochs=3, min_steps=300),
        labelled_batch=64,
        rounds=2,
    ),
)
"""Photos, with more time: f and g start from a pretrained network and train its upper stages. The
filter compares features that no label has touched, and g learns more from what a first g ranks."""

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
"""The paper's method with its networks, ResNet-34 and ResNet-18, and optimisers: for a GPU."""

LARGE = with_seeds(PAPER)
"""The default for images on a GPU: the networks of the paper, with seeds."""

PRESETS = {
    "fast": FAST,
    "quick": QUICK,
    "heads": HEADS,
    "tuned": TUNED,
    "large": LARGE,
    "plain": PLAIN,
    "paper": PAPER,
}


def _without_teacher(method: S2OSCMethod) -> StudentSettings:
    # g starts as a copy of f, so f is no teacher.
    return replace(method.student, start="teacher", alpha=0.0)


ABLATIONS = {
    "S": lambda method: replace(method, student=replace(method.student, augmentation="strong")),
    "LM": lambda method: replace(method, student=replace(method.student, hard_loss="triplet")),
    "FN": lambda method: replace(method, student=_without_teacher(method)),
    "U": lambda method: replace(method, student=replace(method.student, lambda_u=0.0)),
}
"""The paper's ablation study: S2OSC-S, S2OSC-LM, S2OSC-FN, S2OSC-U."""


def choose_preset(
    name: str, device: str, *, vectors: bool = False, n_labelled: int | None = None
) -> str:
    """The preset ``auto`` stands for: heads for vectors, large on a GPU, fast or quick elsewhere.

    >>> choose_preset("auto", "cpu"), choose_preset("auto", "cuda"), choose_preset("paper", "cpu")
    ('fast', 'large', 'paper')
    >>> choose_preset("auto", "cpu", n_labelled=500)
    'quick'
    """
    if name == "auto":
        if vectors or device.startswith("cuda"):
            return "heads" if vectors else "large"
        return "quick" if n_labelled is not None and n_labelled <= FEW_LABELLED else "fast"
    if name not in PRESETS:
        raise SettingsError(f"the preset is {name!r}; give auto, {' or '.join(PRESETS)}")
    return name


def build_method(preset: str, changes: Mapping[str, Any]) -> S2OSCMethod:
    """A preset with the named hyper-parameters changed."""
    return change(PRESETS[preset], changes)
