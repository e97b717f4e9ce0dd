"""``model.json``: the description of a saved model, written and read without torch.

The folder may come from a stranger. Here its text becomes typed values within their ranges; in
``storage.py`` they are compared with the weights before a network is built.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from pathlib import Path
from typing import Any

from s2osc.codec import JsonObject, fields_from_plain, from_plain, to_plain
from s2osc.data.columns import TableEncoder
from s2osc.errors import ModelError
from s2osc.files import read_json
from s2osc.pipeline.audit.record import CheckedAudit
from s2osc.pipeline.audit.threshold import Thresholds
from s2osc.version import __version__

FORMAT, OLDEST = 5, 5
"""Models of earlier formats have groups of another kind, and know neither texts nor columns."""
DESCRIPTION, CHECKED, OF_CLASS = "model.json", "checked", "threshold_of_class"
LARGEST_SIDE = 4_096  # pixels
MOST_VIEWS = 100
MOST_STAGES = 7
COPY_AGAIN = "copy the model folder again or classify anew"


@dataclass(frozen=True)
class BackboneEntry:
    """How the images of a model became vectors. The name chooses nothing: it is to be compared."""

    name: str
    version: str  # digest of the weights
    side: int  # pixels the backbone gets
    n_views: int
    flip: bool
    height: int  # pixels the images were brought to first
    width: int
    channels: int  # 1 or 3
    first_stage: int | None = None  # maps before it follow the features; None: features alone

    @property
    def image_shape(self) -> tuple[int, ...]:
        """Of one image, as arrays have it."""
        return (self.height, self.width) if self.channels == 1 else (self.height, self.width, 3)

    @classmethod
    def from_json(cls, entry: Any, what: str = "the backbone") -> "BackboneEntry":
        """The entry of a file; a ``ValueError`` where it is none.

        >>> values = {"name": "a", "version": "0f", "side": 96, "n_views": 2, "flip": True}
        >>> BackboneEntry.from_json(values | {"height": 32, "width": 32, "channels": 3}).side
        96
        """
        found = fields_from_plain(cls, entry, what)
        for name, low, high in (
            ("side", 1, LARGEST_SIDE),
            ("height", 1, LARGEST_SIDE),
            ("width", 1, LARGEST_SIDE),
            ("n_views", 0, MOST_VIEWS),
        ):
            check_whole(getattr(found, name), f"{what}'s {name}", low=low, high=high)
        if found.first_stage is not None:
            check_whole(found.first_stage, f"{what}'s first_stage", low=1, high=MOST_STAGES)
        if found.channels not in (1, 3):
            raise ValueError(f"{what}'s channels are {found.channels}, not 1 or 3")
        return found


@dataclass(frozen=True)
class EmbeddingEntry:
    """How the texts of a model became vectors. The name chooses nothing: it is to be compared."""

    name: str
    version: str  # digest of the weights and the tokenizer
    column: str  # that tables have texts in

    @classmethod
    def from_json(cls, entry: Any, what: str = "the embedding") -> "EmbeddingEntry":
        return fields_from_plain(cls, entry, what)


Preparation = BackboneEntry | EmbeddingEntry | TableEncoder
"""How photos, texts or rows of a table became the vectors that a model takes."""
PREPARATIONS: dict[str, type[BackboneEntry] | type[EmbeddingEntry] | type[TableEncoder]] = {
    "backbone": BackboneEntry,
    "embedding": EmbeddingEntry,
    "table": TableEncoder,
}
"""By the keys they have in a description."""


def describe_preparation(preparation: Preparation | None) -> JsonObject:
    """What a description holds of it; models of items as they are have ``null`` for a backbone."""
    made = {key: to_plain(preparation) for key, c in PREPARATIONS.items() if type(preparation) is c}
    return {"backbone": None} | made


def read_preparation(description: Mapping[str, Any], what: str = "the") -> Preparation | None:
    """What ``describe_preparation`` wrote; a ``ValueError`` where it is something else."""
    found = {"backbone": description["backbone"]}
    found |= {key: description[key] for key in PREPARATIONS if key in description}
    given = [key for key, entry in found.items() if entry is not None]
    if len(given) > 1:
        raise ValueError(f"{what} {' and the '.join(given)} exclude each other")
    return (
        PREPARATIONS[given[0]].from_json(found[given[0]], f"{what} {given[0]}") if given else None
    )


def check_whole(value: Any, what: str, *, low: int, high: int) -> int:
    """A whole number within a range; a ``ValueError`` for anything else."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{what} is {value!r:.100}, not a whole number from {low} to {high}")
    return value


def read_description(folder: Path) -> JsonObject:
    """What ``model.json`` holds, of the format that this program reads."""
    path = folder / DESCRIPTION
    if not path.is_file():
        raise ModelError(
            f"{folder} is not a model: {DESCRIPTION} is not there; "
            "give the folder `model` that `s2osc classify` wrote"
        )
    description = read_json(path, COPY_AGAIN, ModelError)
    found = description.get("format")
    if type(found) is not int:
        raise ModelError(f"{path} cannot be read (its format is {found!r:.100}); {COPY_AGAIN}")
    written_by = f"{folder} is of format {found}, written by s2osc {description.get('s2osc', '?')}"
    if found > FORMAT:
        raise ModelError(
            f"{written_by}; this is {__version__}, which reads up to format {FORMAT}: "
            "install a newer s2osc"
        )
    if found < OLDEST:
        raise ModelError(
            f"{written_by}, an earlier one; this is {__version__}, which reads formats from "
            f"{OLDEST} on: classify anew"
        )
    return description


def with_thresholds(description: JsonObject, thresholds: Thresholds | None) -> JsonObject:
    """The description of the same model with other thresholds."""
    return description | write_thresholds(thresholds)


def write_thresholds(thresholds: Thresholds | None) -> JsonObject:
    """The common threshold, and those of single classes by their number."""
    if thresholds is None:
        return {"threshold": None, OF_CLASS: {}}
    of_class = {str(name): own for name, own in thresholds.of_class.items()}
    return {"threshold": write_number(thresholds.common), OF_CLASS: of_class}


def read_thresholds(description: JsonObject, *, n_classes: int) -> Thresholds | None:
    """What ``write_thresholds`` wrote; earlier versions knew no thresholds of single classes."""
    common = read_number(description["threshold"])
    own = from_plain(dict[str, float], description.get(OF_CLASS, {}), OF_CLASS)
    of_class = {check_whole(int(n), OF_CLASS, low=0, high=n_classes - 1): t for n, t in own.items()}
    return None if common is None else Thresholds(common, of_class)


def with_groups(description: JsonObject, groups: Sequence[int]) -> JsonObject:
    """The same with other groups of the same tree."""
    return description | {"groups": description["groups"] | {"groups": list(groups)}}


def with_check(description: JsonObject, checked: CheckedAudit | None) -> JsonObject:
    """The same with what a person measured about the answer for the pool, and nothing before."""
    others = {name: value for name, value in description.items() if name != CHECKED}
    return others | ({CHECKED: to_plain(checked)} if checked else {})


def write_number(value: float | None) -> float | str | None:
    """A number as JSON holds it, which has no word for infinity."""
    return value if value is None or isfinite(value) else str(value)


def read_number(value: float | str | None) -> float | None:
    """The number that ``write_number`` wrote."""
    if value is None:
        return None
    number = float(value)
    if isnan(number):
        raise ValueError("a threshold is not a number")
    return number
