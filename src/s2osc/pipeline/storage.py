"""A fitted model as a folder: ``model.json`` says what it is, ``weights.safetensors`` holds it.

Nothing in the folder is ever run: weights are plain tensors, everything else is JSON.
"""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from s2osc.errors import ModelError
from s2osc.nets.networks import Network, NetworkSettings
from s2osc.pipeline.clusters import Grouping
from s2osc.pipeline.filtering import FilterSettings, Units
from s2osc.pipeline.method import OpenSetModel
from s2osc.pipeline.student import Student
from s2osc.pipeline.teacher import Teacher
from s2osc.version import __version__

FORMAT = 1
DESCRIPTION, WEIGHTS = "model.json", "weights.safetensors"


class SavedModel(NamedTuple):
    """A model and the names of its known classes."""

    model: OpenSetModel
    classes: tuple[str, ...]


def save_model(folder: Path, model: OpenSetModel, classes: tuple[str, ...]) -> None:
    """Write the model into ``folder``, which is made where it is not there."""
    tensors = {
        "teacher_centres": torch.from_numpy(model.teacher.centres),
        "group_centres": torch.from_numpy(model.grouping.centres),
    }
    for role, network in _networks(model).items():
        for name, tensor in network.state_dict().items():
            tensors[f"{role}.{name}"] = tensor.cpu().contiguous()
    weights = save_tensors(tensors)
    description = {
        "format": FORMAT,
        "s2osc": __version__,
        "classes": list(classes),
        "unknown": model.student.unknown,
        "vote": model.student.vote,
        "networks": {role: _describe(network) for role, network in _networks(model).items()},
        "filtering": asdict(model.filtering),
        "unit": model.unit._asdict(),
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS).write_bytes(weights)
    text = json.dumps(description, indent=2, ensure_ascii=False)
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
        *(AttributeError, KeyError, TypeError, ValueError),
        *(RuntimeError, SafetensorError),
    ) as error:
        sizes_differ = isinstance(error, RuntimeError)  # torch then lists every tensor
        reason = "the networks have other sizes" if sizes_differ else error
        raise ModelError(
            f"{folder / DESCRIPTION} does not describe the weights beside it ({reason}); "
            "copy the model folder again or classify anew"
        ) from error


def _networks(model: OpenSetModel) -> dict[str, Network]:
    return {"teacher": model.teacher.network, "student": model.student.network}


def _describe(network: Network) -> dict[str, Any]:
    return {
        "settings": asdict(network.settings),
        "input_shape": list(network.input_shape),
        "n_outputs": network.head.out_features,
    }


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
    if found > FORMAT:
        raise ModelError(
            f"{folder} is of format {found}, written by s2osc {description.get('s2osc', '?')}; "
            f"this is {__version__}, which reads up to format {FORMAT}: install a newer s2osc"
        )
    return description


def _assemble(
    description: dict[str, Any], tensors: dict[str, torch.Tensor], device: str
) -> SavedModel:
    networks = {}
    for role, said in description["networks"].items():
        sizes: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in said["settings"].items()
        }
        network = Network(NetworkSettings(**sizes), tuple(said["input_shape"]), said["n_outputs"])
        mine = {
            n.removeprefix(f"{role}."): t for n, t in tensors.items() if n.startswith(f"{role}.")
        }
        network.load_state_dict(mine)
        networks[role] = network.to(device).eval()
    centres: dict[str, np.ndarray] = {
        name: tensors[name].numpy() for name in ("teacher_centres", "group_centres")
    }
    if description["unknown"] not in ("one", "many"):
        raise ValueError(f"unknown is {description['unknown']!r}")
    model = OpenSetModel(
        teacher=Teacher(networks["teacher"], centres["teacher_centres"]),
        student=Student(networks["student"], description["unknown"], description["vote"]),
        grouping=Grouping(centres["group_centres"]),
        filtering=FilterSettings(**description["filtering"]),
        unit=Units(**{name: float(value) for name, value in description["unit"].items()}),
    )
    classes = tuple(str(name) for name in description["classes"])
    if len(classes) != model.teacher.n_classes:
        raise ValueError(f"{len(classes)} class names for {model.teacher.n_classes} classes")
    return SavedModel(model, classes)
