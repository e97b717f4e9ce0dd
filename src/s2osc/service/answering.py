"""The answers of a saved model for items that a program sends."""

import base64
import binascii
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from s2osc.app.answer_tables import UNNAMED
from s2osc.app.extract import NOTHING, Representation, Trusted, restore
from s2osc.app.results_folder import read_current
from s2osc.data.images import check_sizes, read_pixels
from s2osc.errors import DataError
from s2osc.nets.training import resolve_device
from s2osc.pipeline.model import KnownOnlyModel, OpenSetModel
from s2osc.pipeline.storage import load_model
from s2osc.progress import Stopwatch
from s2osc.types import check_inputs

MOST_MEGAPIXELS = 50.0


class ItemAnswer(NamedTuple):
    """What is answered for one item, as a row of ``predictions.csv``."""

    label: str
    group: int | None
    confidence: float
    nearest: str
    p_known: float | None
    operating_point: float | None


@dataclass(frozen=True, eq=False)
class ModelService:
    """A model that is loaded once, and answers for arrays of items."""

    model: OpenSetModel | KnownOnlyModel
    classes: tuple[str, ...]
    represented: Representation

    @property
    def kind(self) -> str:
        """What it takes: vectors, images or texts."""
        return self.represented.shape.kind

    @property
    def item_shape(self) -> tuple[int, ...]:
        return () if self.kind == "texts" else self.represented.shape.item_shape

    def vectors(self, rows: Sequence[Sequence[float]]) -> np.ndarray:
        """Vectors as sent, checked."""
        self._check_kind("vectors")
        width = self.represented.shape.n_features
        for number, row in enumerate(rows):
            if len(row) != width:
                raise DataError(
                    f"vector {number} has {len(row)} numbers; the model was trained on {width}"
                )
        return check_inputs(np.array(rows, np.float64).reshape(len(rows), width), "the request")

    def images(self, encoded: Sequence[str]) -> np.ndarray:
        """Images as files in base64, brought to the shape of the model."""
        self._check_kind("images")
        try:
            content = [base64.b64decode(text, validate=True) for text in encoded]
        except (binascii.Error, ValueError) as error:
            raise DataError(f"an image is not in base64 ({error}); encode its file") from error
        check_sizes(content, "the request", max_megapixels=MOST_MEGAPIXELS)
        pixels, reasons = read_pixels(content, self.represented.shape, "the request")
        for number, why in enumerate(reasons):
            if why:
                raise DataError(f"image {number} cannot be read: {why}")
        return pixels

    def texts(self, texts: Sequence[str]) -> np.ndarray:
        self._check_kind("texts")
        for number, text in enumerate(texts):
            if not text.strip():
                raise DataError(f"text {number} is empty; give some words")
        found = np.empty(len(texts), object)
        found[:] = list(texts)
        return found

    def _check_kind(self, given: str) -> None:
        if given != self.kind:
            raise DataError(f"the request holds {given}, the model was trained on {self.kind}")

    def answer(self, items: np.ndarray) -> list[ItemAnswer]:
        """The answers for items that were checked before."""
        answer = self.model.answer(self.represented.inputs(items, Stopwatch()))
        assert answer.nearest is not None, "f and g give every item its best known class"
        points = self.model.operating_points(answer.nearest)
        names = (*self.classes, *UNNAMED)
        return [
            ItemAnswer(
                label=names[answer.labels[row]],
                group=int(answer.groups[row]) if answer.groups[row] >= 0 else None,
                confidence=float(answer.confidence[row]),
                nearest=names[answer.nearest[row]],
                p_known=None if answer.p_known is None else float(answer.p_known[row]),
                operating_point=None if points is None else float(points[row]),
            )
            for row in range(len(answer.labels))
        ]


def load_service(folder: Path, *, device: str = "auto", trusted: Trusted = NOTHING) -> ModelService:
    """The service of a model that ``classify`` wrote."""
    device = resolve_device(device)
    saved = read_current(folder, lambda place: load_model(place, device))
    axes = saved.model.teacher.network.input_shape
    represented = restore(saved.preparation, axes, device, trusted)
    if represented.shape.kind == "tables":
        raise DataError(
            f"{folder} was trained on a table, which is not served; run `s2osc predict` on tables"
        )
    return ModelService(saved.model, saved.classes, represented)
