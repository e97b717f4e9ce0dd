"""A fitted model as a folder: ``model.json`` says what it is, ``weights.safetensors`` holds it.

Nothing in the folder is ever run: weights are plain tensors, everything else is JSON.
"""

import hashlib
import json
from dataclasses import asdict, fields
from math import isfinite, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from s2osc.errors import ModelError
from s2osc.nets.networks import Network, NetworkSettings
from s2osc.pipeline.filter.distinctness import FilterSettings, Units
from s2osc.pipeline.grouping.clusters import Grouping
from s2osc.pipeline.grouping.space import GroupingSpace
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from s2osc.version import __version__

FORMAT = 3
DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"
SPACE = tuple(field.name for field in fields(GroupingSpace))
GROUPING = ("items", "groups", "stability", "tightness")
BACKBONE = {"name", "side", "version", "n_views"}


class SavedModel(NamedTuple):
    """A model, the names of its known classes, and what turned items into its inputs."""

    model: OpenSetModel | KnownOnlyModel
    classes: tuple[str, ...]
    backbone: dict[str, Any] | None = None  # name, side, version, n_views; None: raw inputs


def save_model(
    folder: Path,
    model: OpenSetModel | KnownOnlyModel,
    classes: tuple[str, ...],
    backbone: dict[str, Any] | None = None,
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
        "classes": list(classes),
        "backbone": backbone,
        "networks": {role: describe_network(network) for role, network in _networks(model).items()},
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    if isinstance(model, OpenSetModel):
        description |= {
            "unknown": model.student.unknown,
            "vote": model.student.vote,
            "voice": model.student.vote_weight,
            "threshold": _write_number(model.threshold),
            "filtering": asdict(model.filtering),
            "unit": model.unit._asdict(),
            "n_groups": {"low": model.grouping.n_low, "high": model.grouping.n_high},
        }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(weights)
    text = json.dumps(description, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def load_model(folder: Path, device: str = "cpu") -> SavedModel:
    """Read a model that ``save_model`` wrote, or say what is wrong with the folder."""
    description = _read_description(folder)
    try:
        weights = (folder / WEIGHTS).read_bytes()
    except OSError as error:
        raise ModelError(f"{folder / WEIGHTS} cannot be read: {error.strerror}") from error
    if hashlib.sha256(weights).hexdigest() != description.get("weights_sha256"):
        raise ModelError(
            f"{folder / WEIGHTS} is damaged: its checksum is not the one in {DESCRIPTION}; "
            "copy the model folder again or classify anew"
        )
    try:
        return _assemble(description, load_tensors(weights), device)
    except (
        *(AttributeError, KeyError, TypeError, ValueError, IndexError),
        *(RuntimeError, SafetensorError),
    ) as error:
        sizes_differ = isinstance(error, RuntimeError)  # torch then lists every tensor
        reason = "the networks have other sizes" if sizes_differ else error
        raise ModelError(
            f"{folder / DESCRIPTION} does not describe the weights beside it ({reason}); "
            "copy the model folder again or classify anew"
        ) from error


def _networks(model: OpenSetModel | KnownOnlyModel) -> dict[str, Network]:
    if isinstance(model, KnownOnlyModel):
        return {"teacher": model.teacher.network}
    return {"teacher": model.teacher.network, "student": model.student.network}


def _arrays(model: OpenSetModel | KnownOnlyModel) -> dict[str, np.ndarray]:
    """Every array of a model beside its networks, by the name it is stored under."""
    centres = {"teacher_centres": model.teacher.centres}
    if isinstance(model, KnownOnlyModel):
        return centres
    space = {f"space.{name}": getattr(model.space, name) for name in SPACE}
    return centres | space | {f"groups.{name}": getattr(model.grouping, name) for name in GROUPING}


def as_tensors(arrays: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """Copies of arrays, which stay as they are."""
    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


def network_tensors(role: str, network: Network) -> dict[str, torch.Tensor]:
    """The weights of a network by the names ``read_network`` looks for."""
    state = network.state_dict()
    return {f"{role}.{name}": tensor.cpu().contiguous() for name, tensor in state.items()}


def describe_network(network: Network) -> dict[str, Any]:
    """Everything ``read_network`` needs beside the weights."""
    return {
        "settings": asdict(network.settings),
        "input_shape": list(network.input_shape),
        "n_outputs": network.head.out_features,
    }


def _write_number(value: float | None) -> float | str | None:
    """A number as JSON holds it, which has no word for infinity."""
    return value if value is None or isfinite(value) else str(value)


def _read_number(value: float | str | None) -> float | None:
    if value is None:
        return None
    number = float(value)
    if isnan(number):
        raise ValueError("a threshold is not a number")
    return number


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ModelError(
            f"{folder} is not a model: {DESCRIPTION} is not there; "
            "give the folder `model` that `s2osc classify` wrote"
        )
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        found = int(description["format"])
    except (OSError, OverflowError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is damaged ({type(error).__name__}); copy the model folder again"
        ) from error
    written_by = f"{folder} is of format {found}, written by s2osc {description.get('s2osc', '?')}"
    if found > FORMAT:
        raise ModelError(
            f"{written_by}; this is {__version__}, which reads up to format {FORMAT}: "
            "install a newer s2osc"
        )
    if found < FORMAT:
        raise ModelError(
            f"{written_by}, an earlier one; this is {__version__}, which reads format {FORMAT}: "
            "classify anew"
        )
    return description


def _assemble(
    description: dict[str, Any], tensors: dict[str, torch.Tensor], device: str
) -> SavedModel:
    teacher = Teacher(
        read_network("teacher", description, tensors, device), tensors["teacher_centres"].numpy()
    )
    classes = tuple(str(name) for name in description["classes"])
    if not len(classes) == teacher.n_classes == teacher.network.head.out_features:
        raise ValueError(f"{len(classes)} class names for {teacher.n_classes} classes")
    backbone = description["backbone"]
    if backbone is not None and not BACKBONE.issubset(backbone):
        raise ValueError(f"a backbone has {', '.join(sorted(BACKBONE))}")
    if description["kind"] == "known only":
        return SavedModel(KnownOnlyModel(teacher), classes, backbone)
    if description["kind"] != "open set":
        raise ValueError(f"kind is {description['kind']!r}")
    model = OpenSetModel(
        teacher=teacher,
        student=_read_student(teacher, description, tensors, device),
        space=GroupingSpace(**{name: tensors[f"space.{name}"].numpy() for name in SPACE}),
        grouping=_read_grouping(description, tensors),
        filtering=FilterSettings(**description["filtering"]),
        unit=Units(**{name: float(value) for name, value in description["unit"].items()}),
        threshold=_read_number(description["threshold"]),
    )
    return SavedModel(model, classes, backbone)


def read_network(
    role: str, description: dict[str, Any], tensors: dict[str, torch.Tensor], device: str
) -> Network:
    """The network that ``description["networks"][role]`` tells of, with its weights."""
    said = description["networks"][role]
    sizes: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in said["settings"].items()
    }
    network = Network(NetworkSettings(**sizes), tuple(said["input_shape"]), said["n_outputs"])
    prefix = f"{role}."
    network.load_state_dict(
        {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
    )
    return network.to(device).eval()


def _read_student(
    teacher: Teacher, description: dict[str, Any], tensors: dict[str, torch.Tensor], device: str
) -> Student:
    network = read_network("student", description, tensors, device)
    wanted = {"one": teacher.n_classes + 1, "many": 2}.get(description["unknown"])
    if network.head.out_features != wanted:
        raise ValueError(f"unknown is {description['unknown']!r}, but g has other outputs")
    vote, vote_weight = bool(description["vote"]), float(description["voice"])
    return Student(network, description["unknown"], vote, vote_weight)


def _read_grouping(description: dict[str, Any], tensors: dict[str, torch.Tensor]) -> Grouping:
    items, groups, stability, tightness = (tensors[f"groups.{name}"].numpy() for name in GROUPING)
    n_items, n_groups = len(items), len(stability)
    if len(groups) != n_items or len(tightness) != n_groups or (groups >= n_groups).any():
        raise ValueError(f"{n_items} items in {n_groups} groups do not fit together")
    between = description["n_groups"]
    return Grouping(items, groups, stability, tightness, int(between["low"]), int(between["high"]))
