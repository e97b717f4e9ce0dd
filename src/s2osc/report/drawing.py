"""The parts of a page that need embeddings and images: drawn once, saved in a small file.

A page for another decision shows the same map and the same thumbnails; only colours, counts and
galleries change.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save

from s2osc.arrays import chunks, in_one_thread, leading_components, squared_distances, tsne
from s2osc.files import check_regular, guarded, parse_json
from s2osc.pipeline.audit.check import check_order
from s2osc.progress import track
from s2osc.report.kinds import count_groups
from s2osc.report.pictures import (
    SpriteSheet,
    bytes_to_uri,
    cut_pictures,
    is_small,
    make_sprites,
    picture_uri,
    uri_to_bytes,
)
from s2osc.seeding import rng
from s2osc.types import Answer

METADATA = "drawing"
MAP_ITEMS = 3000
FEWEST_FOR_TSNE = 20  # below it, neighbourhoods are too small to mean anything
FEWEST_PER_KIND = 20
N_COMPONENTS = 30
EARLY_ITERATIONS, ITERATIONS, REPORT_EVERY = 75, 200, 25
TSNE_ITEMS = 1000
"""So many items of the map are placed by t-SNE, which takes seconds for more; the others are placed
among those nearest to them."""
N_NEAREST, N_TOGETHER = 5, 3
"""Neighbours of an item, and those of them that lie together on the map, where it is placed."""
MOST_QUESTIONS = 60
MOST_CHECKED = 300  # items a person may be asked about later, whose pictures are kept
GALLERY_ITEMS = 24
MANY_GROUPS = 8  # from here on each group shows fewer items


class Question(NamedTuple):
    """An item of the pool that a person is asked about."""

    item: int
    suggested: str  # a known class, or "" where none is likely
    why: str


class Galleries(NamedTuple):
    """Places in the pool, first to be looked at first."""

    distinct: np.ndarray
    closest: np.ndarray
    typical: list[np.ndarray]  # of each group

    @property
    def items(self) -> np.ndarray:
        """All of them, each once, rising."""
        return np.unique(np.concatenate([self.distinct, self.closest, *self.typical]))


@dataclass(frozen=True)
class PoolMap:
    """Where some items of a pool are drawn."""

    items: np.ndarray  # (m,) int: places in the pool, rising
    points: np.ndarray  # (m, 2) float: the longer side runs from 0 to 1
    components: np.ndarray  # (m, c) float32: the embeddings, in as few dimensions as matter
    method: str  # in words, for the caption
    pool_components: np.ndarray | None = None
    """(n, c) float16, from -1 to 1: those of every item of the pool; older results lack them."""


@dataclass(frozen=True)
class Drawing:
    """The map of a pool, and pictures of its items where it has any."""

    map: PoolMap
    sprites: SpriteSheet | None  # of the map's items; None for vectors
    pictures: dict[int, str]  # data URIs of the items that galleries showed first, or questions
    is_crisp: bool  # images have so few pixels that each is drawn sharply
    questions: tuple[Question, ...] = ()  # that are shown
    n_questions: int = 0  # that were asked

    def choose(self, answer: Answer) -> Galleries:
        """The galleries of an answer, out of the items of which there is a picture."""
        may_show = np.ones(len(answer.labels), bool)
        if self.sprites:
            may_show[:] = False
            may_show[self.map.items] = True
            may_show[list(self.pictures)] = True
        return choose_galleries(answer, self.map, may_show)

    def pictures_of(self, items: np.ndarray) -> dict[int, str]:
        """A picture of each item: as it was saved, or its thumbnail cut from the sheet."""
        if self.sprites is None:
            return {}
        wanted = items.tolist()
        missing = [item for item in wanted if item not in self.pictures]
        places = np.searchsorted(self.map.items, missing).tolist()
        cut = cut_pictures(self.sprites, places, lossless=self.is_crisp) if missing else []
        found = self.pictures | dict(zip(missing, cut, strict=True))
        return {item: found[item] for item in wanted}

    def pictures_among(self, items: Sequence[int]) -> dict[int, str]:
        """The pictures of those items of which there is one."""
        there = {*self.pictures, *self.map.items.tolist()}
        return self.pictures_of(np.array([item for item in items if item in there], int))


def draw(
    answer: Answer,
    kinds: np.ndarray,
    embeddings: np.ndarray,
    images: np.ndarray | None,
    *,
    seed: int,
    questions: Sequence[Question] = (),
) -> Drawing:
    """Draw the map and make the pictures for an answer, ``kinds`` being those of its items."""
    pool_map = draw_map(embeddings, kinds, seed=seed)
    asked, n_asked = tuple(questions[:MOST_QUESTIONS]), len(questions)
    if images is None:
        return Drawing(pool_map, None, {}, False, asked, n_asked)
    galleries = choose_galleries(answer, pool_map, np.ones(len(images), bool))
    shown = [*galleries.items.tolist(), *(question.item for question in asked)]
    shown += check_order(len(images), seed)[:MOST_CHECKED].tolist()
    return Drawing(
        pool_map,
        make_sprites(images[pool_map.items]),
        {item: picture_uri(images[item]) for item in dict.fromkeys(shown)},
        is_small(images[0]),
        asked,
        n_asked,
    )


def save_drawing(path: Path, drawing: Drawing) -> None:
    """Write a drawing as one file of plain arrays."""
    pictures = [np.frombuffer(uri_to_bytes(uri), np.uint8) for uri in drawing.pictures.values()]
    arrays = {
        "items": drawing.map.items.astype(np.int64),
        "points": drawing.map.points.astype(np.float64),
        "components": drawing.map.components,
        **({} if (all_of := drawing.map.pool_components) is None else {"pool_components": all_of}),
        "picture_items": np.array(list(drawing.pictures), np.int64),
        "picture_sizes": np.array([len(picture) for picture in pictures], np.int64),
        "pictures": np.concatenate([np.empty(0, np.uint8), *pictures]),
    }
    facts: dict[str, object] = {"method": drawing.map.method, "is_crisp": drawing.is_crisp}
    if drawing.questions:
        facts |= {"questions": drawing.questions, "n_questions": drawing.n_questions}
    if sheet := drawing.sprites:
        arrays["sprites"] = np.frombuffer(uri_to_bytes(sheet.uri), np.uint8)
        facts |= {"width": sheet.width, "height": sheet.height, "columns": sheet.columns}
    # One entry, as several would be written in an order of their own.
    path.write_bytes(save(arrays, metadata={METADATA: json.dumps(facts)}))


def load_drawing(path: Path, n_items: int) -> Drawing:
    """Read what ``save_drawing`` wrote for a pool of so many items, or say that it is damaged."""
    check_regular(path)
    with guarded(path, "copy the result folder again or classify anew"):
        with safe_open(path, framework="numpy") as file:
            facts = parse_json(file.metadata()[METADATA])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return _assemble(facts, arrays, n_items)


def _assemble(facts: dict[str, Any], arrays: dict[str, np.ndarray], n_items: int) -> Drawing:
    items, points, components = (arrays[name] for name in ("items", "points", "components"))
    if not len(items) == len(points) == len(components) or points.shape[1:] != (2,):
        raise ValueError("its arrays are of different lengths")
    if not (np.isfinite(points).all() and np.isfinite(components).all()):
        raise ValueError("it holds points that are no numbers")
    questions = tuple(
        Question(int(item), str(suggested), str(why))
        for item, suggested, why in facts.get("questions", ())
    )
    asked_items = np.array([question.item for question in questions], np.int64)
    shown = np.concatenate([items, arrays["picture_items"], asked_items])
    if not len(items) or shown.min() < 0 or shown.max() >= n_items:
        raise ValueError(f"it is not about the {n_items} items of the pool")
    ends = np.cumsum(arrays["picture_sizes"])
    parts = np.split(arrays["pictures"], ends)[:-1] if len(ends) else []
    pictures = {
        item: bytes_to_uri(part.tobytes())
        for item, part in zip(arrays["picture_items"].tolist(), parts, strict=True)
    }
    sheet = None
    if "sprites" in arrays:
        uri = bytes_to_uri(arrays["sprites"].tobytes())
        sheet = SpriteSheet(
            uri, int(facts["width"]), int(facts["height"]), columns=int(facts["columns"])
        )
    of_pool = arrays.get("pool_components")
    if of_pool is not None and (len(of_pool) != n_items or not np.isfinite(of_pool).all()):
        raise ValueError(f"its components are not those of the {n_items} items of the pool")
    pool_map = PoolMap(items, points, components, facts["method"], of_pool)
    n_questions = int(facts.get("n_questions", 0))
    return Drawing(pool_map, sheet, pictures, bool(facts["is_crisp"]), questions, n_questions)


# --- the map: neighbours in the embedding are neighbours on the page --------------------------


@in_one_thread
def draw_map(embeddings: np.ndarray, kinds: np.ndarray, *, seed: int) -> PoolMap:
    """Sample the pool, reduce its embeddings to the plane, and scale them to the page."""
    items = sample_items(kinds, MAP_ITEMS, seed=seed)
    of_pool = leading_components(embeddings[items], N_COMPONENTS, of=embeddings)
    reduced = components = of_pool[items]
    if not reduced.any():
        method = "one point, as the embeddings do not differ"
    elif len(items) < FEWEST_FOR_TSNE:
        method = f"two principal components, as t-SNE needs {FEWEST_FOR_TSNE} items"
    else:
        fitted = sample_items(kinds[items], TSNE_ITEMS, seed=seed)
        method, points = "t-SNE of the embeddings", _tsne(components[fitted], seed=seed)
        reduced = place_among(components, fitted, points)
    return PoolMap(
        items,
        fit_to_page(reduced),
        components.astype(np.float32, order="C"),
        method,
        # Their scale is of no matter.
        (of_pool / (np.abs(of_pool).max() or 1.0)).astype(np.float16),
    )


def sample_items(kinds: np.ndarray, at_most: int, *, seed: int) -> np.ndarray:
    """Draw items at random, with some of every kind however rare it is.

    >>> kinds = np.array([0] * 99 + [1])
    >>> 99 in sample_items(kinds, 10, seed=0)
    True
    """
    order = rng(seed, "map").permutation(len(kinds))
    assured = min(FEWEST_PER_KIND, max(1, at_most // len(np.unique(kinds))))
    is_assured = np.zeros(len(kinds), dtype=bool)
    for kind in np.unique(kinds):
        is_assured[np.flatnonzero(kinds[order] == kind)[:assured]] = True
    return np.sort(np.concatenate([order[is_assured], order[~is_assured]])[:at_most])


def fit_to_page(points: np.ndarray) -> np.ndarray:
    """Rotate the widest direction to the horizontal, and scale it to 0 .. 1."""
    plane = points[:, :2] - points[:, :2].mean(axis=0)
    plane = plane @ np.linalg.svd(plane, full_matrices=False)[2].T if len(plane) > 1 else plane
    plane -= plane.min(axis=0)
    return plane / (plane.max() or 1.0)


def place_among(vectors: np.ndarray, fitted: np.ndarray, points: np.ndarray) -> np.ndarray:
    """(n, 2): the ``fitted`` items at their ``points``, each other item among its neighbours.

    Of the nearest fitted items, those count that lie together: an item between two clusters in the
    space shall not lie in the void between them.

    >>> line = np.array([[0.0], [1.0], [2.0], [9.0], [1.1]])
    >>> place_among(line, np.arange(4), np.array([[0.0, 0], [3, 0], [6, 0], [90, 0]]))[4].tolist()
    [3.0, 0.0]
    """
    placed = np.empty((len(vectors), 2))
    placed[fitted] = points
    others = np.setdiff1d(np.arange(len(vectors)), fitted)
    n_nearest = min(N_NEAREST, len(fitted))
    for part in chunks(len(others)):
        away = squared_distances(vectors[others[part]], vectors[fitted])
        near = points[np.argsort(away, axis=1, kind="stable")[:, :n_nearest]]
        apart = np.linalg.norm(near - np.median(near, axis=1, keepdims=True), axis=2)
        together = np.argsort(apart, axis=1, kind="stable")[:, :N_TOGETHER, None]
        placed[others[part]] = np.take_along_axis(near, together, axis=1).mean(axis=1)
    return placed


def _tsne(vectors: np.ndarray, *, seed: int) -> np.ndarray:
    n_reports = (EARLY_ITERATIONS + ITERATIONS) // REPORT_EVERY
    bar = track(range(n_reports), "drawing the map", total=n_reports)

    def advance(*_: object) -> None:
        next(bar, None)

    points = tsne(
        vectors,
        seed=seed,
        early_exaggeration_iter=EARLY_ITERATIONS,
        n_iter=ITERATIONS,
        theta=0.7,  # coarser than usual: the same picture in half the time
        callbacks=advance,
        callbacks_every_iters=REPORT_EVERY,
    )
    for _ in bar:
        pass
    return points


# --- galleries: the items a person should look at first ---------------------------------------


def choose_galleries(answer: Answer, pool_map: PoolMap, may_show: np.ndarray) -> Galleries:
    """The galleries of an answer, out of the items that can be shown, (n,) bool."""
    return Galleries(
        most_distinct(answer, may_show), least_sure(answer, may_show), typical(answer, pool_map)
    )


def most_distinct(answer: Answer, may_show: np.ndarray) -> np.ndarray:
    """The items farthest from every known class, among those called unknown or filtered."""
    candidates = np.flatnonzero((answer.is_unknown | answer.filtered) & may_show)
    order = np.argsort(-answer.distinctness[candidates], kind="stable")
    return candidates[order][:GALLERY_ITEMS]


def least_sure(answer: Answer, may_show: np.ndarray) -> np.ndarray:
    """The items whose label is the closest call."""
    candidates = np.flatnonzero(may_show)
    order = np.argsort(answer.confidence[candidates], kind="stable")
    return candidates[order][:GALLERY_ITEMS]


def typical(answer: Answer, pool_map: PoolMap) -> list[np.ndarray]:
    """For each group, the items of the map nearest to its centre in the embedding."""
    n_groups = count_groups(answer)
    n_items = GALLERY_ITEMS // 2 if n_groups < MANY_GROUPS else GALLERY_ITEMS // 4
    group_of_place = answer.groups[pool_map.items]
    chosen = []
    for group in range(n_groups):
        places = np.flatnonzero(group_of_place == group)
        vectors = pool_map.components[places].astype(np.float64)
        # The mean of an empty group is undefined; it has no typical items either.
        centre = vectors.mean(axis=0) if len(places) else 0.0
        distance = np.linalg.norm(vectors - centre, axis=1)
        nearest = places[np.argsort(distance, kind="stable")][:n_items]
        chosen.append(pool_map.items[nearest])
    return chosen
