"""A fitted model as a folder: ``model.json`` describes it, ``weights.safetensors`` holds it.

Nothing in the folder is ever run: weights are plain tensors, everything else is JSON.
"""

import hashlib
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from s2osc.codec import JsonObject, from_plain, to_plain
from s2osc.errors import ModelError
from s2osc.files import as_json, read_whole, reason, write_whole
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.networks import Network, NetworkSettings
from s2osc.pipeline.audit.confidence import Confidence
from s2osc.pipeline.audit.record import GroupsAudit
from s2osc.pipeline.filter.distinctness import FilterSettings, Units
from s2osc.pipeline.group_tree import GroupTree
from s2osc.pipeline.grouping.clusters import Grouping
from s2osc.pipeline.grouping.space import GroupingSpace, input_features
from s2osc.pipeline.model import CalibrationScores, KnownOnlyModel, OpenSetModel
from s2osc.pipeline.model_description import (
    COPY_AGAIN,
    DESCRIPTION,
    FORMAT,
    LARGEST_SIDE,
    BackboneEntry,
    Preparation,
    check_whole,
    describe_preparation,
    read_description,
    read_number,
    read_preparation,
    read_thresholds,
    write_number,
    write_thresholds,
)
from s2osc.pipeline.scaling import UNSCALED, Scaling
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from s2osc.settings import change
from s2osc.text import clean_name
from s2osc.types import LARGEST_INPUT
from s2osc.version import __version__

WEIGHTS = "weights.safetensors"
LARGEST_WEIGHTS = 2**33  # bytes: two networks as large as any may be, and groups of many items
LARGEST_AXIS = 10_000_000  # of inputs and outputs
SPACE = tuple(field.name for field in fields(GroupingSpace))
SCALING = tuple(field.name for field in fields(Scaling))
CALIBRATION = tuple(field.name for field in fields(CalibrationScores))
GROUPING = ("items", "leaves", "spreads")


class SavedModel(NamedTuple):
    """A model, the names of its known classes, and what made its inputs of items."""

    model: OpenSetModel | KnownOnlyModel
    classes: tuple[str, ...]
    preparation: Preparation | None = None  # None: items are taken as they are


def save_model(
    folder: Path,
    model: OpenSetModel | KnownOnlyModel,
    classes: tuple[str, ...],
    preparation: Preparation | None = None,
) -> None:
    """Write the model into ``folder``, which is made where it is not there."""
    tensors = as_tensors(_arrays(model))
    for role, network in _networks(model).items():
        tensors |= network_tensors(role, network)
    weights = save_tensors(tensors)
    description = {
        "format": FORMAT,
        "s2osc": __version__,
        "kind": "open set" if isinstance(model, OpenSetModel) else "known only",
        "classes": [clean_name(name) for name in classes],
        **describe_preparation(preparation),
        "networks": {role: describe_network(network) for role, network in _networks(model).items()},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "confidence": to_plain(model.confidence),
    }
    if isinstance(model, OpenSetModel):
        description |= {
            "unknown": model.student.unknown,
            "vote": model.student.vote,
            "voice": model.student.vote_weight,
            **write_thresholds(model.thresholds),
            "filtering": asdict(model.filtering),
            "unit": model.unit._asdict(),
            "groups": {
                "tree": to_plain(model.grouping.tree),
                "groups": list(model.grouping.groups),
                "radius": write_number(model.grouping.radius),
                "n_episodes": model.grouping.n_episodes,
            },
        }
    write_whole(folder / WEIGHTS, weights)
    write_whole(folder / DESCRIPTION, as_json(description))


def load_model(folder: Path, device: str = "cpu") -> SavedModel:
    """Read a model that ``save_model`` wrote, or raise one line on what is wrong there."""
    description = read_description(folder)
    weights = read_whole(folder / WEIGHTS, largest=LARGEST_WEIGHTS, error=ModelError)
    if hashlib.sha256(weights).hexdigest() != description.get("weights_sha256"):
        raise ModelError(
            f"{folder / WEIGHTS} is damaged: its checksum is not the one in {DESCRIPTION}; "
            f"{COPY_AGAIN}"
        )
    try:
        return _assemble(description, load_tensors(weights), device)
    except Exception as error:  # any: whatever does not fit is the fault of the folder
        raise ModelError(
            f"{folder / DESCRIPTION} does not describe the weights beside it ({reason(error)}); "
            f"{COPY_AGAIN}"
        ) from error


def _networks(model: OpenSetModel | KnownOnlyModel) -> dict[str, Network]:
    if isinstance(model, KnownOnlyModel):
        return {"teacher": model.teacher.network}
    return {"teacher": model.teacher.network, "student": model.student.network}


def _arrays(model: OpenSetModel | KnownOnlyModel) -> dict[str, np.ndarray]:
    """Every array of a model beside its networks, by the name it is stored under."""
    found = {"teacher_centres": model.teacher.centres} | scaling_arrays(model.scaling)
    if model.calibration is not None:
        found |= {f"calibration.{name}": getattr(model.calibration, name) for name in CALIBRATION}
    if isinstance(model, KnownOnlyModel):
        return found
    space = {f"space.{name}": getattr(model.space, name) for name in SPACE}
    return found | space | {f"groups.{name}": getattr(model.grouping, name) for name in GROUPING}


def scaling_arrays(scaling: Scaling) -> dict[str, np.ndarray]:
    """The arrays of a scaling by the names ``read_scaling`` looks for; none for images."""
    if not len(scaling.centre):
        return {}
    return {f"scaling.{name}": getattr(scaling, name) for name in SCALING}


def read_scaling(tensors: dict[str, torch.Tensor], network: Network) -> Scaling:
    """How items are scaled before the network sees them; not at all if nothing says so."""
    if "scaling.centre" not in tensors:
        return UNSCALED
    if len(network.input_shape) != 1:
        raise ValueError("images have a scaling, which vectors alone have")
    shape = _compared_shape(network)
    arrays = {name: _array(tensors, f"scaling.{name}", shape) for name in SCALING}
    if (arrays["spread"] < 0).any():
        raise ValueError("scaling.spread holds values below 0")
    return Scaling(**arrays)


def _compared_shape(network: Network) -> tuple[int, ...]:
    """The shape of what items are compared by: of photos with maps, their features."""
    return (N_FEATURES,) if network.settings.is_pretrained else network.input_shape


def as_tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Copies of arrays, which stay as they are."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def network_tensors(role: str, network: Network) -> dict[str, torch.Tensor]:
    """The weights of a network by the names ``read_network`` looks for."""
    state = network.state_dict()
    return {f"{role}.{name}": tensor.cpu().contiguous() for name, tensor in state.items()}


def describe_network(network: Network) -> JsonObject:
    """Everything ``read_network`` needs beside the weights."""
    return {
        "settings": asdict(network.settings),
        "input_shape": list(network.input_shape),
        "n_outputs": network.head.out_features,
    }


def _assemble(description: JsonObject, tensors: dict[str, torch.Tensor], device: str) -> SavedModel:
    network = read_network("teacher", description, tensors, device)
    classes = _read_classes(description["classes"], n_classes=network.head.out_features)
    n_embedding = network.head.in_features
    centres = _array(tensors, "teacher_centres", (len(classes), n_embedding))
    teacher, scaling = Teacher(network, centres), read_scaling(tensors, network)
    calibration = _read_calibration(tensors)
    preparation = read_preparation(description)
    _check_maps(network, preparation)
    confidence = from_plain(Confidence | None, description.get("confidence"), "confidence")
    if description["kind"] == "known only":
        known_only = KnownOnlyModel(teacher, scaling, calibration, confidence)
        return SavedModel(known_only, classes, preparation)
    if description["kind"] != "open set":
        raise ValueError(f"kind is {description['kind']!r:.100}")
    space = _read_space(tensors, network)
    model = OpenSetModel(
        teacher=teacher,
        student=_read_student(teacher, description, tensors, device),
        space=space,
        grouping=_read_grouping(description, tensors, space),
        filtering=change(FilterSettings(), description["filtering"]),
        unit=_read_units(description["unit"]),
        thresholds=read_thresholds(description, n_classes=len(classes)),
        calibration=calibration,
        confidence=confidence,
        scaling=scaling,
    )
    return SavedModel(model, classes, preparation)


def _check_maps(network: Network, preparation: Preparation | None) -> None:
    """Networks that begin with maps need a backbone that gives them, and no others do."""
    settings, given = network.settings, None
    if isinstance(preparation, BackboneEntry) and preparation.first_stage is not None:
        given = preparation.name, preparation.first_stage
    wanted = (settings.pretrained, settings.first_stage) if settings.is_pretrained else None
    if given != wanted:
        raise ValueError(f"the networks begin with maps of {wanted}, the backbone gives {given}")


def _read_classes(names: Any, *, n_classes: int) -> tuple[str, ...]:
    classes = tuple(clean_name(name) for name in names) if isinstance(names, list) else ()
    if len(classes) != n_classes or len(set(classes)) != n_classes or not all(classes):
        raise ValueError(
            f"{len(classes)} class names for {n_classes} classes, or one of them twice"
        )
    return classes


def read_network(
    role: str, description: JsonObject, tensors: dict[str, torch.Tensor], device: str
) -> Network:
    """The network that ``description["networks"][role]`` describes, with its weights.

    Its size is compared with the weights before it is built: whatever a description asks for, no
    more memory is taken than the weights have. A ``ValueError`` or ``SettingsError`` where they
    differ.
    """
    entry, prefix = description["networks"][role], f"{role}."
    settings = change(NetworkSettings(), entry["settings"])
    shape = tuple(entry["input_shape"])
    if len(shape) not in (1, 2, 3) or shape[2:] not in ((), (3,)):
        raise ValueError(f"its inputs have the shape {shape!r:.100}")
    for length in shape:
        high = LARGEST_AXIS if len(shape) == 1 else LARGEST_SIDE
        check_whole(length, "an axis of the inputs", low=1, high=high)
    n_outputs = check_whole(entry["n_outputs"], "n_outputs", low=1, high=LARGEST_AXIS)
    weights = {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
    n_held = sum(t.numel() for name, t in weights.items() if name.endswith(("weight", "bias")))
    if settings.n_parameters(shape, n_outputs) != n_held:
        raise ValueError(f"the network {role} has other sizes than its {n_held:,} weights")
    for name, tensor in weights.items():
        least = 0 if name == "scale" or name.endswith("running_var") else -LARGEST_INPUT
        is_number = tensor.dtype in (torch.float32, torch.int64)
        is_moderate = ((tensor >= least) & (tensor <= LARGEST_INPUT)).all()  # no NaN is
        if not is_number or not is_moderate or (name == "scale" and not tensor.all()):
            raise ValueError(f"{prefix}{name} holds values that no network has")
    network = Network(settings, shape, n_outputs)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:  # it lists every tensor
        raise ValueError(f"the network {role} has weights of other shapes") from error
    return network.to(device).eval()


def _array(
    tensors: dict[str, torch.Tensor], name: str, shape: tuple[int | None, ...]
) -> np.ndarray:
    """A finite array of a shape, whose axes may be free (None)."""
    array = tensors[name].numpy()
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
    )
    if not fits or not np.isfinite(array).all():
        raise ValueError(f"{name} has the shape {array.shape}, or values that are not finite")
    return array


def _read_space(tensors: dict[str, torch.Tensor], network: Network) -> GroupingSpace:
    kind = np.float32 if len(network.input_shape) == 1 else np.uint8
    n_inputs = input_features(np.zeros((1, *_compared_shape(network)), kind)).shape[1]
    shapes = {
        "input_mean": (n_inputs,),
        "input_scale": (n_inputs,),
        "input_axes": (n_inputs, None),
        "whitening": (None, None),
    }
    arrays = {name: _array(tensors, f"space.{name}", shapes[name]) for name in SPACE}
    n_axes = arrays["input_axes"].shape[1]
    if arrays["whitening"].shape != (n_axes, n_axes):
        raise ValueError(f"space.whitening is not of {n_axes} axes")
    if not arrays["input_scale"].all():
        raise ValueError("space.input_scale holds 0")
    return GroupingSpace(**arrays)


def _read_calibration(tensors: dict[str, torch.Tensor]) -> CalibrationScores | None:
    """What new items are compared with; None where nothing was held back, or in older models."""
    if "calibration.scores" not in tensors:
        return None
    scores = _array(tensors, "calibration.scores", (None,))
    weights = _array(tensors, "calibration.weights", (len(scores),))
    if not len(scores) or not (weights > 0).all():
        raise ValueError("calibration.weights holds values that are not above 0, or none")
    return CalibrationScores(scores, weights)


def _read_units(entry: JsonObject) -> Units:
    unit = Units(**{name: float(value) for name, value in entry.items()})
    # What is divided by them is float32, which ends at 3e38.
    if not all(1e-30 <= value <= 1e30 for value in unit):
        raise ValueError(f"the units are {unit.entropy:g} and {unit.distance:g}")
    return unit


def _read_student(
    teacher: Teacher, description: JsonObject, tensors: dict[str, torch.Tensor], device: str
) -> Student:
    network = read_network("student", description, tensors, device)
    wanted = {"one": teacher.n_classes + 1, "many": 2}.get(description["unknown"])
    if network.head.out_features != wanted or network.input_shape != teacher.network.input_shape:
        raise ValueError(
            f"unknown is {description['unknown']!r:.100}, but g has other inputs or outputs"
        )
    vote, vote_weight = bool(description["vote"]), float(description["voice"])
    return Student(network, description["unknown"], vote, vote_weight)


def _read_grouping(
    description: JsonObject, tensors: dict[str, torch.Tensor], space: GroupingSpace
) -> Grouping:
    entry = description["groups"]
    tree = from_plain(GroupTree, entry["tree"], "the tree of groups")
    items = _array(tensors, "groups.items", (None, space.input_axes.shape[1]))
    leaves = _array(tensors, "groups.leaves", (len(items),))
    spreads = _array(tensors, "groups.spreads", (tree.n_leaves,))
    groups = from_plain(tuple[int, ...], entry["groups"], "the groups of leaves")
    if leaves.dtype.kind != "i" or (leaves < 0).any() or (leaves >= tree.n_leaves).any():
        raise ValueError(f"{len(items)} items do not lie in {tree.n_leaves} leaves")
    audit = GroupsAudit(tree, groups, tuple(spreads.tolist()), int(entry["n_episodes"]))
    radius = read_number(entry["radius"])
    if radius is None or radius < 0:
        raise ValueError(f"the radius of groups is {radius}, not a number from 0")
    return Grouping(items, leaves, tree, audit.groups, spreads, radius, audit.n_episodes)
