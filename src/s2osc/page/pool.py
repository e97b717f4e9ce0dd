"""A pool as the browser gets it: columns of all items, the map, and what one item is about.

Items have the numbers of their sorted names. So they keep them when the model learns, which moves
those that people named from the pool to the labelled items.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from s2osc.app.result import Result
from s2osc.app.result_files import load_as_decided
from s2osc.app.results_folder import DRAWING
from s2osc.arrays import chunks
from s2osc.codec import JsonObject
from s2osc.data.columns import Table
from s2osc.data.inputs import Source
from s2osc.errors import DataError, S2OSCError
from s2osc.page.operating import OperatingPoints, operating_points
from s2osc.page.thumbnails import Size, Thumbnails
from s2osc.pipeline.audit.check import check_order
from s2osc.report.drawing import Drawing, load_drawing
from s2osc.report.pictures import uri_to_bytes
from s2osc.text import shortened

ItemKind = Literal["images", "texts", "tables", "vectors"]
MOST_FOUND = 5_000
N_NEIGHBOURS = 6
SHOWN_VALUES = 64
"""Numbers of a vector that a tile draws."""
JITTER = 0.006
"""How far from its nearest an item is drawn that the map was not made for, in parts of the map."""
LONG_TEXT = 20_000


@dataclass(frozen=True, eq=False)
class Pool:
    """A result, opened to be looked at: N items, n of which the model answered for."""

    result: Result
    drawing: Drawing
    source: Source | None  # None: it cannot be opened
    thumbnails: Thumbnails | None
    missing: str  # why items cannot be shown as they are; "" where they can

    @classmethod
    def open(cls, version: Path, cache: Path) -> "Pool":
        """What lies in a folder of results."""
        result = load_as_decided(version)
        if result.evidence is None or not (version / DRAWING).is_file():
            raise DataError(
                "these results cannot be decided anew, or have no page yet; run `s2osc report` "
                "first, or classify with seeds, such as with --preset auto"
            )
        drawing = load_drawing(version / DRAWING, len(result.names))
        try:
            source = _open_source(result)
        except S2OSCError as error:
            return cls(result, drawing, None, None, str(error))
        thumbnails = None
        if source.kind == "images" and result.run.origin:
            thumbnails = Thumbnails(source, cache, max_megapixels=result.run.origin.max_megapixels)
        return cls(result, drawing, source, thumbnails, "")

    def prepare(self) -> None:
        """Make what every browser asks for first, so that none of them waits for it."""
        _ = self.columns, self.points, self.places

    def close(self) -> None:
        if self.thumbnails:
            self.thumbnails.close()

    @cached_property
    def names(self) -> list[str]:
        """(N,) sorted."""
        return sorted({*self.result.names, *self._learnt})

    @cached_property
    def _learnt(self) -> Mapping[str, str]:
        """The classes of items that were moved to the labelled ones."""
        return {row.item: row.label for row in self.result.corrections.named}

    @property
    def n(self) -> int:
        return len(self.names)

    @cached_property
    def row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    @cached_property
    def answered(self) -> np.ndarray:
        """(N,) the place of each item among those the model answered for; -1: it learnt from it."""
        places = np.full(self.n, -1)
        places[[self.row_of[name] for name in self.result.names]] = np.arange(
            len(self.result.names)
        )
        return places

    @cached_property
    def rows(self) -> np.ndarray:
        """(n,) the number of each item that the model answered for."""
        return np.array([self.row_of[name] for name in self.result.names])

    @cached_property
    def places(self) -> np.ndarray:
        """(N,) of each item in its source; -1: it is not there any more."""
        if self.source is None:
            return np.full(self.n, -1)
        place_of = {name: place for place, name in enumerate(self.source.names)}
        return np.array([place_of.get(name, -1) for name in self.names])

    @cached_property
    def key(self) -> str:
        """A digest of the items: the same pool classified again has the same."""
        text = "\0".join(self.names).encode("utf-8", errors="surrogatepass")
        return hashlib.sha256(text).hexdigest()[:16]

    @cached_property
    def fit(self) -> str:
        """A digest of what was measured: the same at every operating point, with any groups."""
        assert self.result.evidence is not None
        scores = self.result.evidence.score.astype(np.float64)
        return hashlib.sha256(scores.tobytes()).hexdigest()[:16]

    @property
    def kind(self) -> ItemKind:
        if self.result.items is not None:
            return "tables" if isinstance(self.result.items, Table) else "texts"
        return "images" if self.thumbnails or self.drawing.sprites else "vectors"

    @property
    def why_missing(self) -> str:
        """One sentence on items that are not where they were; "" where all are."""
        n_gone = int((self.places < 0).sum())
        if self.missing or not n_gone or self.source is None:
            return self.missing
        return f"{n_gone:,} items are not where they were, in {self.source.path}"

    @cached_property
    def points(self) -> OperatingPoints:
        assert self.result.evidence is not None
        return operating_points(self.result.evidence)

    # --- all items -------------------------------------------------------------------------------

    @cached_property
    def decided(self) -> np.ndarray:
        """(N,) the label of each item as it was decided; that of a person where it is learnt."""
        return self._spread(self.result.answer.labels, self._learnt_class)

    @cached_property
    def nearest(self) -> np.ndarray:
        """(N,) the best known class of each item."""
        assert self.result.answer.nearest is not None
        return self._spread(self.result.answer.nearest, self._learnt_class)

    @cached_property
    def leaf(self) -> np.ndarray:
        """(N,) of the tree of groups, were it unknown; -1: none."""
        assert self.result.leaves is not None
        return self._spread(self.result.leaves, -1)

    @cached_property
    def p_known(self) -> np.ndarray:
        """(N,)"""
        assert self.result.answer.p_known is not None
        return self._spread(self.result.answer.p_known, 1.0)

    @cached_property
    def _learnt_class(self) -> np.ndarray:
        number = {name: c for c, name in enumerate(self.result.classes)}
        return np.array([number.get(self._learnt.get(name, ""), -1) for name in self.names])

    def _spread(self, values: np.ndarray, others: np.ndarray | float) -> np.ndarray:
        """(N,) the values of the n answered items; ``others`` of those that were learnt."""
        return np.where(self.answered >= 0, values[self.answered], others)

    @cached_property
    def columns(self) -> bytes:
        """The columns of all items that the page counts, sorts and colours by."""
        answer = self.result.answer
        confidence = self._spread(answer.confidence, 1.0).astype("<f4")
        score = self._spread(answer.unknown_score, 0.0).astype("<f4")
        return pack(
            {
                "nearest": self.nearest.astype("<i2"),
                "decided": self.decided.astype("<i2"),
                "leaf": self.leaf.astype("<i2"),
                "learnt": (self.answered < 0).astype("u1"),
                "confidence": confidence,
                "p_known": self.p_known.astype("<f4"),
                "by_confidence": np.argsort(-confidence, kind="stable").astype("<i4"),
                "by_score": np.argsort(-score, kind="stable").astype("<i4"),
            }
        )

    def map(self) -> bytes:
        """(N, 2) float32: NaN where an item has no place on the map."""
        return pack({"points": self._points.astype("<f4").ravel()})

    @cached_property
    def _points(self) -> np.ndarray:
        """The items of the drawn map where they are, all others beside their nearest."""
        drawn, n_answered = self.drawing.map, len(self.result.names)
        points = np.full((n_answered, 2), np.nan)
        points[drawn.items] = drawn.points
        if drawn.pool_components is not None:
            others = np.setdiff1d(np.arange(n_answered), drawn.items)
            components = drawn.pool_components.astype(np.float32)
            centres = components[drawn.items]
            half_squares = np.square(centres).sum(axis=1) / 2
            random = np.random.default_rng(0)
            for part in chunks(len(others)):
                # The nearest has the largest product, less half of its own square.
                nearness = components[others[part]] @ centres.T
                nearness -= half_squares
                moved = random.normal(0, JITTER, (len(nearness), 2))
                points[others[part]] = drawn.points[nearness.argmax(axis=1)] + moved
        placed = np.full((self.n, 2), np.nan)
        placed[self.rows] = points
        return placed

    # --- single items ----------------------------------------------------------------------------

    def picture(self, row: int, size: Size) -> tuple[bytes, str]:
        """The picture of an item, or what the report has of it where its file is gone."""
        place = int(self.places[row])
        if self.thumbnails and place >= 0:
            return self.thumbnails.picture(place, size)
        answered = int(self.answered[row])
        pictures = self.drawing.pictures_among([answered]) if answered >= 0 else {}
        if answered not in pictures:
            raise DataError(f"there is no picture of {self.names[row]!r}")
        return uri_to_bytes(pictures[answered]), "image/webp"

    def brief(self, row: int) -> JsonObject:
        """What a tile shows of an item without a picture."""
        found: JsonObject = {"row": row, "name": self.names[row]}
        texts, answered = self.result.texts, int(self.answered[row])
        if texts is not None:
            found["text"] = texts[answered] if answered >= 0 else self._source_text(row)
        elif self._vectors is not None and self.places[row] >= 0:
            found["values"] = self._shown_values(row)
        return found

    def _source_text(self, row: int) -> str:
        """The text of an item that the model learnt from, which its results do not hold."""
        content = self.source.content if self.source else None
        if isinstance(content, np.ndarray) and content.ndim == 1 and self.places[row] >= 0:
            return shortened(str(content[self.places[row]]), LONG_TEXT)
        return self.names[row]

    @property
    def _vectors(self) -> np.ndarray | None:
        if self.source is None or self.source.kind != "vectors":
            return None
        assert isinstance(self.source.content, np.ndarray)
        return self.source.content

    def _shown_values(self, row: int) -> list[float]:
        """The first values of a vector, each from -1 to 1 by its column."""
        assert self._vectors is not None
        middle, width = self._scale
        values = (self._vectors[self.places[row]][:SHOWN_VALUES] - middle) / width
        return [round(float(value), 3) for value in np.clip(values, -1, 1)]

    @cached_property
    def _scale(self) -> tuple[np.ndarray, np.ndarray]:
        assert self._vectors is not None
        some = self._vectors[:MOST_FOUND, :SHOWN_VALUES]
        middle = np.median(some, axis=0)
        return middle, np.maximum(np.abs(some - middle).max(axis=0), 1e-12)

    def details(self, row: int, is_known: np.ndarray) -> JsonObject:
        """An item in full: its text or cells, the measures of its answer, and its likes.

        Its likes are among the items of the pool that the answer gives a known class, (N,).
        """
        result, answered = self.result, int(self.answered[row])
        found = self.brief(row) | {
            "nearest": result.classes[int(self.nearest[row])],
            "learnt": answered < 0,
            "neighbours": [],
        }
        if answered < 0:
            return found
        answer, items = result.answer, result.items
        if isinstance(items, Table):
            cells = items.columns.items()
            found["cells"] = [(name, str(values[answered])) for name, values in cells]
        elif items is not None:
            found["text"] = shortened(str(items[answered]), LONG_TEXT)
        return found | {
            "p_known": float(self.p_known[row]),
            "confidence": float(answer.confidence[answered]),
            "score": float(answer.unknown_score[answered]),
            "nearest_confidence": float(result.nearest_confidence[answered]),
            "truth": result.truth[answered] if result.truth else None,
            "neighbours": self._neighbours(answered, is_known[self.rows]),
        }

    def _neighbours(self, answered: int, is_known: np.ndarray) -> list[int]:
        """The nearest of the items that are given a known class, (n,)."""
        components = self.drawing.map.pool_components
        if components is None:
            return []
        known = np.flatnonzero(is_known)
        known = known[known != answered]
        away = np.square(components[known].astype(np.float32) - components[answered]).sum(axis=1)
        return self.rows[known[np.argsort(away, kind="stable")[:N_NEIGHBOURS]]].tolist()

    def search(self, words: str) -> list[int]:
        """The items whose name or text has all of the words."""
        wanted, found = words.casefold().split(), []
        for row, searched in enumerate(self._searched if wanted else ()):
            if all(word in searched for word in wanted):
                found.append(row)
                if len(found) == MOST_FOUND:
                    break
        return found

    @cached_property
    def _searched(self) -> Sequence[str]:
        if self.result.texts is None:
            return [name.casefold() for name in self.names]
        return [
            f"{name}\n{self.brief(row)['text']}".casefold() for row, name in enumerate(self.names)
        ]

    def check_rows(self, n: int) -> list[int]:
        """The first ``n`` items of the random check."""
        return self.rows[check_order(len(self.rows), self.result.run.seed)[:n]].tolist()


def _open_source(result: Result) -> Source:
    if result.run.origin is None:
        raise DataError(
            "these results do not say where their items lie, as those of an earlier version; only "
            "the pictures of the report are here"
        )
    return result.run.origin.open_pool(result.run.seed)


def pack(columns: dict[str, np.ndarray]) -> bytes:
    """Columns one after another, each from a multiple of 8 bytes on, behind their names.

    >>> pack({"a": np.array([1, 2], "<i2")})[4:].split(b"]")[0]
    b'[["a", "<i2", 2'
    """
    header = json.dumps([[name, v.dtype.str, len(v)] for name, v in columns.items()]).encode()
    header += b" " * (-(len(header) + 4) % 8)
    parts = [len(header).to_bytes(4, "little"), header]
    for values in columns.values():
        content = np.ascontiguousarray(values).tobytes()
        parts += [content, b"\0" * (-len(content) % 8)]
    return b"".join(parts)
