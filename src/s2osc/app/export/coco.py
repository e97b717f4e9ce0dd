"""Labels of images as COCO has them: images, categories, and one annotation per image."""

import numpy as np

from s2osc.app.export.items import LabelledPool, headers_of
from s2osc.codec import JsonObject
from s2osc.data.inputs import UNKNOWN_NAME, Source
from s2osc.errors import DataError


def coco_file(pool: LabelledPool, source: Source, max_megapixels: float) -> JsonObject:
    """The object of a COCO file. Groups of unknown items are categories below ``unknown``."""
    if source.kind != "images":
        raise DataError(
            f"{source.path} holds {source.kind}, and COCO is about images; give --format jsonl, "
            "csv or parquet"
        )
    headers = headers_of(source, max_megapixels)
    number_of = {name: number for number, name in enumerate(pool.categories(), start=1)}
    is_file = not isinstance(source.content, np.ndarray)
    images, annotations = [], []
    for number, (item, header) in enumerate(zip(pool.items, headers, strict=True), start=1):
        name = item.item if is_file else f"{item.item}.png"
        images.append(
            {"id": number, "file_name": name, "width": header.width, "height": header.height}
        )
        annotations.append(
            {
                "id": number,
                "image_id": number,
                "category_id": number_of[item.category],
                "score": item.confidence,
                "labelled_by": item.by,
                "labelled_at": item.at or None,
            }
        )
    return {
        "info": {
            "description": pool.title,
            "contributor": pool.program,
            "date_created": pool.origin.at if pool.origin else None,
        },
        "licenses": [],
        "images": images,
        "categories": [
            {"id": number, "name": name, "supercategory": _above(name)}
            for name, number in number_of.items()
        ],
        "annotations": annotations,
    }


def _above(category: str) -> str:
    return UNKNOWN_NAME if category.startswith(f"{UNKNOWN_NAME}/") else "known"
