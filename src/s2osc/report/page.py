"""Write one answer as a page: a single file that opens anywhere and asks no network."""

import base64
import hashlib
from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.resources import files
from pathlib import Path
from shlex import quote

import numpy as np
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from s2osc.codec import JsonObject
from s2osc.errors import DataError
from s2osc.pipeline.audit.groups_in_words import number_of_groups, what_speaks
from s2osc.pipeline.audit.record import Audit
from s2osc.pipeline.grouping.typical import GroupProfile
from s2osc.report import words
from s2osc.report.alternatives import Alternative, find_alternatives
from s2osc.report.audit import AuditView, show_audit
from s2osc.report.distributions import distribution
from s2osc.report.drawing import Drawing, Question, draw
from s2osc.report.kinds import SHAPES, Kind, find_kinds, kind_of_item
from s2osc.text import plural, rounded_percent
from s2osc.types import Answer

MAP_UNITS = 10_000  # the map's longer side, in the whole numbers the page carries


@dataclass(frozen=True)
class ReportInputs:
    """Everything the page shows.

    ``summary`` is shown as it is. Three of its keys have a place of their own, all optional:
    ``metrics`` (name to number), ``warnings`` and ``seconds`` (of each step), with bars.

    Every other mapping (``counts``, ``settings``, ``versions``) becomes a table under Details,
    nested ones with dotted names, and every other value a row of the table "Run".
    """

    title: str
    answer: Answer  # for the n items of the pool
    classes: tuple[str, ...]  # the name of each known class
    names: list[str]  # (n,) one per item
    embeddings: np.ndarray | None  # (n, d) float: what the map is drawn from; None: it is drawn
    images: np.ndarray | None  # (n, H, W[, 3]) uint8, None for vectors, or a map that is drawn
    summary: JsonObject
    truth: list[str] | None  # (n,) class name of each item, where the pool came with it
    audit: Audit | None = None  # of a run with seeds, its classes named
    texts: list[str] | None = None  # (n,) what a person reads of each item; None: pictures, or none
    profiles: tuple[GroupProfile, ...] = ()  # what is typical of groups
    profile: Callable[[Answer], tuple[GroupProfile, ...]] | None = None  # and of other groups
    seed_scores: np.ndarray | None = None  # (m,) float: unknown scores of the seeds
    folder: str = ""  # the result folder as the user typed it, for the commands shown
    questions: tuple[Question, ...] = ()  # of which the first are shown; from then on drawn
    leaves: np.ndarray | None = None  # (n,) of the tree of groups, were an item unknown

    def __post_init__(self) -> None:
        n = len(self.answer.labels)
        if n == 0:
            raise DataError("the pool holds no items; a report needs at least one")
        parts: dict[str, Sized | None] = {
            "names": self.names,
            "embeddings": self.embeddings,
            "images": self.images,
            "texts": self.texts,
            "true classes": self.truth,
        }
        for what, values in parts.items():
            if values is not None and len(values) != n:
                raise DataError(
                    f"{n} answers came with {len(values)} {what}; give exactly one per item"
                )

    @cached_property
    def kinds(self) -> list[Kind]:
        found = self.audit.groups if self.audit else None
        return find_kinds(self.answer, self.classes, found.number if found else None)

    @cached_property
    def kind_of_item(self) -> np.ndarray:
        return kind_of_item(self.answer, len(self.classes))


@dataclass(frozen=True)
class Tile:
    """One item of a gallery."""

    place: int  # of the item in the page's data
    kind: Kind
    name: str
    number: str
    picture: str | None  # a data URI
    text: str | None


@dataclass(frozen=True)
class QuestionView:
    """A question as the page shows it."""

    name: str
    suggested: str
    why: str
    picture: str | None  # a data URI
    text: str | None


def write_report(
    path: Path, inputs: ReportInputs, *, seed: int, drawing: Drawing | None = None
) -> Drawing:
    """Write the page for one answer to ``path``. The same inputs and seed give the same bytes.

    Returns what was drawn; given back for another decision on the same pool, it spares drawing.
    """
    if drawing is None:
        assert inputs.embeddings is not None, "there is nothing to draw a map from"
        drawing = draw(
            inputs.answer,
            kinds=inputs.kind_of_item,
            embeddings=inputs.embeddings,
            images=inputs.images,
            questions=inputs.questions,
            seed=seed,
        )
    page = render(inputs, drawing)
    # A file name may hold bytes that are no text; the page must open all the same.
    path.write_bytes(page.encode("utf-8", errors="replace"))
    return drawing


def render(inputs: ReportInputs, drawing: Drawing) -> str:
    """The page as text."""
    answer, summary = inputs.answer, inputs.summary
    galleries = drawing.choose(answer)
    pictures = drawing.pictures_of(galleries.items)
    # The map's items come first in the page's data, then those that only a gallery shows.
    items = np.concatenate([drawing.map.items, np.setdiff1d(galleries.items, drawing.map.items)])
    tiles = partial(_tiles, inputs, pictures, items)
    audit = None
    if inputs.audit:
        audit = show_audit(
            inputs.audit, answer=answer, seed_scores=inputs.seed_scores, folder=inputs.folder
        )
    groups = words.groups_in_words(answer, inputs.audit)
    others = _alternatives(inputs, drawing)
    script = _asset("report.js")
    return _template().render(
        title=inputs.title,
        page_command=f"s2osc page --results {quote(inputs.folder)}" if inputs.folder else "",
        audit=audit,
        headline=words.headline(answer, groups),
        numbers=words.key_numbers(answer, groups),
        metrics=words.metric_numbers(summary),
        warnings=summary.get("warnings", []),
        known=[kind for kind in inputs.kinds if kind.side == "known"],
        unsure=[kind for kind in inputs.kinds if kind.side == "unsure"],
        groups=[kind for kind in inputs.kinds if kind.side == "unknown"],
        groups_in_words=groups,
        profiles={profile.group: profile for profile in inputs.profiles},
        alternatives=others,
        names=inputs.names,
        texts=inputs.texts,
        what_speaks=_what_speaks(inputs.audit),
        alternative_pictures=drawing.pictures_of(
            np.unique(
                [item for other in others for group in other.groups for item in group]
            ).astype(int)
        ),
        most=max(kind.count for kind in inputs.kinds),
        n_pool=len(inputs.names),
        map=drawing.map,
        sprites=drawing.sprites,
        questions=_questions(inputs, drawing),
        n_questions=drawing.n_questions,
        is_crisp=drawing.is_crisp,
        compositions=_compositions(inputs),
        distinct=tiles(galleries.distinct, "distinctness", answer.distinctness),
        closest=tiles(galleries.closest, "confidence", answer.confidence),
        typical=[tiles(chosen, "confidence", answer.confidence) for chosen in galleries.typical],
        distribution=distribution(answer),
        steps=words.step_times(summary),
        tables=words.tables(summary, inputs.audit),
        shapes=SHAPES,
        data=page_data(inputs, drawing, items) | {"points": _points(audit)},
        style=Markup(_asset("report.css")),
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )


def _alternatives(inputs: ReportInputs, drawing: Drawing) -> list[Alternative]:
    """Other numbers of groups; none where the run cannot be decided anew, or found no groups."""
    found = inputs.audit.groups if inputs.audit else None
    if found is None or inputs.leaves is None or not inputs.answer.is_unknown.any():
        return []
    return find_alternatives(
        found, inputs.leaves, inputs.answer, drawing, inputs.folder, inputs.profile
    )


def _what_speaks(audit: Audit | None) -> str:
    """How likely the number of groups is, and what speaks for it."""
    groups = audit.groups if audit else None
    if groups is None:
        return ""
    evidence = what_speaks(groups).get(str(groups.number))
    own = f" What speaks for {groups.number}: {evidence}." if evidence else ""
    return f"{number_of_groups(groups)}{own}"


def _questions(inputs: ReportInputs, drawing: Drawing) -> list[QuestionView]:
    return [
        QuestionView(
            inputs.names[item],
            suggested,
            why,
            drawing.pictures.get(item),
            inputs.texts[item] if inputs.texts else None,
        )
        for item, suggested, why in drawing.questions
    ]


def page_data(inputs: ReportInputs, drawing: Drawing, items: np.ndarray) -> JsonObject:
    """What the page's script draws from."""
    answer, truth, sprites = inputs.answer, inputs.truth, drawing.sprites
    points = np.round(drawing.map.points * MAP_UNITS).astype(int)
    return {
        "kinds": [
            {
                "name": kind.name,
                "side": kind.side,
                "count": kind.count,
                "colour": kind.colour,
                "shape": kind.shape,
            }
            for kind in inputs.kinds
        ],
        "shapes": SHAPES,
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "sprite": {"width": sprites.width, "height": sprites.height, "columns": sprites.columns}
        if sprites
        else None,
        "name": [inputs.names[item] for item in items],
        "text": [inputs.texts[item] for item in items] if inputs.texts else None,
        "kind": inputs.kind_of_item[items].tolist(),
        "confidence": _rounded(answer.confidence[items]),
        "score": _rounded(answer.unknown_score[items]),
        "p_known": None if answer.p_known is None else _rounded(answer.p_known[items]),
        "w": _rounded(answer.distinctness[items]),
        "filtered": answer.filtered[items].astype(int).tolist(),
        "truth": [truth[item] for item in items] if truth is not None else None,
    }


def _points(audit: AuditView | None) -> list[JsonObject]:
    points = audit.curve.points if audit and audit.curve else []
    return [{"figures": point.figures, "command": point.command} for point in points]


def _compositions(inputs: ReportInputs) -> list[words.Composition]:
    if inputs.truth is None:
        return []
    return words.compositions(inputs.kinds, inputs.kind_of_item, inputs.truth)


def _tiles(
    inputs: ReportInputs,
    pictures: Mapping[int, str],
    items: np.ndarray,
    chosen: np.ndarray,
    what: str,
    values: np.ndarray,
) -> list[Tile]:
    places = {int(item): place for place, item in enumerate(items)}
    return [
        Tile(
            place=places[item],
            kind=inputs.kinds[inputs.kind_of_item[item]],
            name=inputs.names[item],
            number=f"{what} {words.short_number(float(values[item]))}",
            picture=pictures.get(item),
            text=inputs.texts[item] if inputs.texts else None,
        )
        for item in chosen.tolist()
    ]


def _rounded(values: np.ndarray) -> list[float | None]:
    """Numbers in few digits; JSON has no word for those that are not finite."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    environment.filters["percent"] = rounded_percent
    environment.filters["plural"] = plural
    return environment.from_string(_asset("report.html"))


def _asset(name: str) -> str:
    return files("s2osc.report").joinpath(name).read_text(encoding="utf-8")
