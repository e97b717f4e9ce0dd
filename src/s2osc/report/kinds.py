"""The kinds of answer in a pool, each known class and each unknown group, and how each is drawn.

Where some items are left unsure, they are a kind of their own, after all others.
"""

from dataclasses import dataclass

import numpy as np

from s2osc.types import Answer

# Outlines in a square from -1 to 1, read by the page's swatches and by its map alike.
SHAPES = {
    "circle": "M-.9 0a.9 .9 0 1 0 1.8 0a.9 .9 0 1 0-1.8 0z",
    "square": "M-.8-.8h1.6v1.6h-1.6z",
    "triangle": "M0-1L1 .8H-1z",
    "drop": "M0-1L.9 0A.9 .9 0 0 1-.9 0z",
    "diamond": "M0-1.1L1.1 0L0 1.1L-1.1 0z",
    "cross": "M-.4-1h.8v.6h.6v.8h-.6v.6h-.8v-.6h-.6v-.8h.6z",
    "star": "M0-1.15L.3-.38L1.1-.36L.48 .14L.68 .93L0 .48L-.68 .93L-.48 .14L-1.1-.36L-.3-.38z",
    "hourglass": "M-.95-1H.95L.3 0L.95 1H-.95L-.3 0z",
    "ring": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0zM-.5 0a.5 .5 0 1 1 1 0a.5 .5 0 1 1-1 0z",
}
KNOWN_SHAPES = ("circle", "square", "triangle", "drop")
GROUP_SHAPES = ("diamond", "cross", "star", "hourglass")
N_KNOWN_COLOURS = 8  # --known-0 .. in report.css: cool hues, apart for colour-blind eyes too
N_GROUP_COLOURS = 6  # --group-0 .. in report.css: warm hues


@dataclass(frozen=True)
class Kind:
    """One known class, one unknown group, or the unsure items."""

    index: int
    name: str
    side: str  # "known", "unknown" or "unsure"
    count: int
    share: float  # of the pool
    colour: str  # the name of a CSS variable
    shape: str  # a key of SHAPES

    @property
    def is_known(self) -> bool:
        return self.side == "known"


def kind_of_item(answer: Answer, n_classes: int) -> np.ndarray:
    """The kind of each item: known classes come first, groups follow, unsure items are last."""
    assert answer.labels.max() < n_classes, "a label has no class name"
    assert ((answer.groups >= 0) == answer.is_unknown).all(), "groups are for unknown items alone"
    kinds = np.where(answer.is_unknown, n_classes + answer.groups, answer.labels)
    return np.where(answer.is_unsure, n_classes + count_groups(answer), kinds).astype(int)


def count_groups(answer: Answer) -> int:
    """How many groups of unknown items there are."""
    return int(answer.groups.max()) + 1


def find_kinds(answer: Answer, classes: tuple[str, ...], n_found: int | None = None) -> list[Kind]:
    """Every known class, also those no item was given, every unknown group, and the unsure.

    Where ``n_found`` groups were found, the number after the last stands for scattered items.

    >>> one = np.ones(3)
    >>> answer = Answer(np.array([0, -1, -1]), one, one, np.array([-1, 0, 0]), one, one > 1)
    >>> [(kind.name, kind.count, kind.shape) for kind in find_kinds(answer, ("cat", "dog"))]
    [('cat', 1, 'circle'), ('dog', 0, 'circle'), ('Group 0', 2, 'diamond')]
    """
    n_groups = count_groups(answer)
    styles = [_style("known", place, name) for place, name in enumerate(classes)]
    styles += [
        _style("unknown", place, "Scattered" if place == n_found else f"Group {place}")
        for place in range(n_groups)
    ]
    if answer.is_unsure.any():
        styles.append({"side": "unsure", "name": "Unsure", "colour": "--unsure", "shape": "ring"})
    counts = np.bincount(kind_of_item(answer, len(classes)), minlength=len(styles)).tolist()
    return [
        Kind(index=index, count=count, share=count / len(answer.labels), **style)
        for index, (style, count) in enumerate(zip(styles, counts, strict=True))
    ]


def _style(side: str, place: int, name: str) -> dict[str, str]:
    """Name, colour and shape of a class or group, by its number."""
    if side == "known":
        colours, n_colours, shapes = "--known", N_KNOWN_COLOURS, KNOWN_SHAPES
    else:
        colours, n_colours, shapes = "--group", N_GROUP_COLOURS, GROUP_SHAPES
    return {
        "side": side,
        "name": name,
        "colour": f"{colours}-{place % n_colours}",
        "shape": shapes[place // n_colours % len(shapes)],
    }
