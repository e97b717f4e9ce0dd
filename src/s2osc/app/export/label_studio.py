"""Labels as tasks of Label Studio: what the program says as predictions, people's as annotations.

Pictures are inside the tasks, not larger than a person needs to tell a class, so that an import
needs no file server: ``item`` names the file itself.
"""

import base64
import io
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from PIL import Image

from s2osc.app.answer_tables import texts_of
from s2osc.app.export.items import LabelledItem, LabelledPool, headers_of
from s2osc.codec import JsonObject
from s2osc.data.columns import Table
from s2osc.data.images import in_threads, open_picture
from s2osc.data.inputs import UNSURE_NAME, Source

TASKS, CONFIG = "tasks.json", "labelling.xml"
LARGEST_PICTURE = 512  # pixels of the longer side
LARGEST_PNG = 128
"""Likewise: photos of more pixels are far smaller as JPEG."""
CHOICE, SHOWN = "class", "item"
"""The names of the two parts of a labelling page: what is chosen, and what it is about."""


def labelling_config(labels: Sequence[str], kind: str) -> str:
    """The labelling page: an item, and one choice of the labels."""
    view = ElementTree.Element("View")
    ElementTree.SubElement(view, "Header", value="$about")
    if kind == "images":
        ElementTree.SubElement(view, "Image", name=SHOWN, value="$image")
    else:
        ElementTree.SubElement(view, "Text", name=SHOWN, value="$text")
    choices = ElementTree.SubElement(
        view, "Choices", name=CHOICE, toName=SHOWN, choice="single", showInline="true"
    )
    for label in labels:
        ElementTree.SubElement(choices, "Choice", value=label)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def tasks(pool: LabelledPool, source: Source, max_megapixels: float) -> list[JsonObject]:
    """One task per item."""
    shown = _shown(source, max_megapixels)
    return [_task(item, data, pool.program) for item, data in zip(pool.items, shown, strict=True)]


def _shown(source: Source, max_megapixels: float) -> list[dict[str, str]]:
    """What the labelling page shows of each item."""
    content = source.content
    if source.kind == "images":
        assert not isinstance(content, Table)
        headers_of(source, max_megapixels)
        return [{"image": url} for url in in_threads(_picture, list(content), "Pictures")]
    if source.kind == "vectors":
        return [{"text": name} for name in source.names]
    assert isinstance(content, np.ndarray | Table)
    return [{"text": text} for text in texts_of(content) or []]


def _task(item: LabelledItem, data: dict[str, str], program: str) -> JsonObject:
    about = {"item": item.item, "about": item.category, "labelled_by": item.by}
    task: JsonObject = {"data": {**data, **about, "labelled_at": item.at}}
    result = [
        {
            "from_name": CHOICE,
            "to_name": SHOWN,
            "type": "choices",
            "value": {"choices": [item.label]},
        }
    ]
    if item.by_person:
        task["annotations"] = [{"result": result}]
    elif item.label != UNSURE_NAME:
        score = item.confidence or 0.0
        task["predictions"] = [{"model_version": program, "score": score, "result": result}]
    return task


def _picture(item: Path | np.ndarray) -> str:
    """A picture as an address that holds it, made smaller where it is large."""
    largest = LARGEST_PICTURE
    image = Image.fromarray(item) if isinstance(item, np.ndarray) else open_picture(item, largest)
    image.thumbnail((largest, largest))
    kind = "jpeg" if max(image.size) > LARGEST_PNG and image.mode in ("L", "RGB") else "png"
    content = io.BytesIO()
    image.save(content, kind)
    return f"data:image/{kind};base64,{base64.b64encode(content.getvalue()).decode()}"
