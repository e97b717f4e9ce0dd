"""A saved model as one ONNX file, checked against the model itself before it is written."""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from s2osc.app.export.model_card import model_card
from s2osc.app.extract import NOTHING, FeatureExtractor, Trusted, restore_extractor
from s2osc.app.output import result_file
from s2osc.app.result_files import read_summary
from s2osc.app.results_folder import MODEL, read_results
from s2osc.app.summary import Summary
from s2osc.errors import ModelError, SettingsError
from s2osc.nets.efficientnet import N_FEATURES
from s2osc.nets.features import photo_views, rounded
from s2osc.nets.photo_items import photo_items
from s2osc.pipeline.model_description import BackboneEntry
from s2osc.pipeline.onnx_graph import AnswerGraph
from s2osc.pipeline.storage import SavedModel, load_model
from s2osc.seeding import rng

NEEDED = ("onnx", "onnxscript", "onnxruntime")
OPSET = 18
CLOSE = 1e-4
"""How far scores of the graph may be from those of the model."""
N_CHECKED = 64
INPUT = "items"


class OnnxModel(NamedTuple):
    """A graph, and the form of its inputs."""

    content: bytes
    shape: tuple[int | str, ...]
    extractor: FeatureExtractor | None  # of photos


def export_onnx(
    results: Path, to: Path, *, trusted: Trusted = NOTHING, force: bool = False
) -> tuple[Path, Path]:
    """Write the model of results as ``to`` and a card about it beside; returns both places."""
    if to.suffix.lower() != ".onnx":
        raise SettingsError(f"--onnx is {to}; give a file name ending in .onnx")
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise SettingsError(f"{missing[0]} is not installed; run `pip install 's2osc[onnx]'`")
    card = to.with_suffix(".md")
    with (
        result_file(card, force=force, wanted=".md") as write_card,
        result_file(to, force=force, wanted=".onnx") as write_model,
    ):
        saved, summary = read_results(results, _read_version)
        made = make_onnx(saved, trusted)
        check_graph(made, saved)
        write_card(model_card(summary, file=to.name, shape=made.shape).encode())
        write_model(made.content)
    return to, card


def _read_version(version: Path) -> tuple[SavedModel, Summary]:
    return load_model(version / MODEL), read_summary(version)


def make_onnx(saved: SavedModel, trusted: Trusted = NOTHING) -> OnnxModel:
    """The graph of a saved model. Texts and rows of a table enter as the vectors made of them."""
    extractor = None
    if isinstance(saved.preparation, BackboneEntry):
        extractor = restore_extractor(saved.preparation, "cpu", allowed=trusted.backbone)
    graph = AnswerGraph(saved.model, extractor.backbone if extractor else None)
    n = torch.export.Dim("n", min=1)
    axes: dict[int, Any] = {0: n}
    example = example_items(saved, extractor, 3)
    shape: tuple[int | str, ...] = ("n", *example.shape[1:])
    if extractor:
        axes[1] = torch.export.Dim("views", min=1)
        shape = ("n", "views", *example.shape[2:])
    with _quiet():
        program = torch.onnx.export(
            graph,
            (torch.from_numpy(example),),
            dynamo=True,
            opset_version=OPSET,
            input_names=[INPUT],
            output_names=list(graph.output_names),
            dynamic_shapes={INPUT: axes},
            verbose=False,
        )
    assert program is not None, "with dynamo=True there is a program"
    proto = program.model_proto
    for key, value in (("classes", json.dumps(saved.classes)), ("unknown", "-1")):
        proto.metadata_props.add(key=key, value=value)
    return OnnxModel(proto.SerializeToString(), shape, extractor)


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter's remarks on its own libraries are not for our users."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def example_items(saved: SavedModel, extractor: FeatureExtractor | None, n: int) -> np.ndarray:
    """Random items of the form that the graph takes."""
    random, scaling = rng(0, "onnx"), saved.model.scaling
    axes = saved.model.teacher.network.input_shape
    if extractor:
        images = random.integers(0, 256, (n, *extractor.shape.item_shape), dtype=np.uint8)
        return views_of(images, extractor)
    if len(axes) > 1:
        return random.integers(0, 256, (n, *axes), dtype=np.uint8)
    items = random.normal(size=(n, *axes))
    if len(scaling.centre):
        items = scaling.centre + scaling.spread * items
    return items.astype(np.float32)


def views_of(images: np.ndarray, extractor: FeatureExtractor) -> np.ndarray:
    """Photos of the extractor's shape as the graph takes them."""
    return photo_views(images, extractor.backbone, n_views=extractor.n_views, flip=extractor.flip)


def run_onnx(content: bytes, items: np.ndarray) -> dict[str, np.ndarray]:
    """What onnxruntime makes of a graph."""
    import onnxruntime  # noqa: PLC0415  (an extra)

    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {INPUT: items}), strict=True))


def check_graph(made: OnnxModel, saved: SavedModel) -> None:
    """Refuse a graph whose answers for random items are not those of the model."""
    items = example_items(saved, made.extractor, N_CHECKED)
    inputs = features_of(items, made.extractor) if made.extractor else items
    found, answer = run_onnx(made.content, items), saved.model.answer(inputs)
    gap = float(np.abs(found["unknown_score"] - answer.unknown_score).max())
    if gap > CLOSE or not np.array_equal(found["label"], answer.labels):
        raise ModelError(
            f"the graph does not answer as the model does (scores differ by up to {gap:.1g}); "
            "report this with the versions of torch and onnxruntime"
        )


def features_of(views: np.ndarray, extractor: FeatureExtractor) -> np.ndarray:
    """The features of views, with maps where networks take them, as ``predict`` has them."""
    flat = torch.from_numpy(views.reshape(-1, *views.shape[2:]))
    features = rounded(extractor.backbone.embed(flat)).reshape(*views.shape[:2], -1)
    has_maps = extractor.backbone.first_stage is not None
    return photo_items(features, N_FEATURES) if has_maps else features
