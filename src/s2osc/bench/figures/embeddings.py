"""Figures that show items themselves: where their embeddings lie, and what they look like."""

import textwrap
from collections.abc import Sequence
from itertools import zip_longest
from math import ceil

import numpy as np

from s2osc.bench.figures.drawing import (
    MOST_COLUMNS,
    NARROWEST,
    Axes,
    Figure,
    Setting,
    add_legend,
    add_title,
    make_figure,
    n_legend_rows,
    setting_of,
    styled,
    with_picture,
)
from s2osc.bench.figures.pictures import GRID, picture_of
from s2osc.bench.records import Record, partition_of
from s2osc.types import UNKNOWN

KINDS_OF_IMAGE = ("original", "reconstruction", "counterfactual")
GALLERY_COLUMNS = 5
SHAPES = "os^vDPX<>p"
UNKNOWN_COLOUR = "#a63603"  # dark, so that it stands out from pale greys in print too
MARK_COLOUR = "#d55e00"


@styled
def draw_embeddings(records: Sequence[Record]) -> Figure:
    """t-SNE of known and unknown items: one panel per method, one block per pool."""
    pools: dict[tuple[Setting, int], list[Record]] = {}
    for record in with_picture(records, "embedding"):
        pools.setdefault((setting_of(record), partition_of(record)), []).append(record)
    n_columns = min(MOST_COLUMNS, max(map(len, pools.values())))
    n_rows = [ceil(len(pool) / n_columns) for pool in pools.values()]
    width = max(NARROWEST, 2.5 * n_columns)
    heights = [
        2.65 * rows + 0.6 + 0.2 * n_legend_rows(_names(pool[0]), width)
        for rows, pool in zip(n_rows, pools.values(), strict=True)
    ]
    figure = make_figure(width, sum(heights))
    blocks = figure.subfigures(len(pools), 1, height_ratios=heights, squeeze=False)[:, 0]
    for block, rows, ((setting, _), pool) in zip(blocks, n_rows, pools.items(), strict=True):
        grid = block.subplots(rows, n_columns, squeeze=False)
        for axes, record in zip_longest(grid.flat, pool):
            if record is None:
                axes.set_axis_off()
            else:
                draw_items_on(axes, record)
        add_title(block, f"{setting}: t-SNE of what each method sees")
        add_legend(block, grid[0, 0])
    return figure


def _names(record: Record) -> list[str]:
    """Of all that a panel shows: known classes, the unknown ones as one, wrong answers."""
    unknown = textwrap.shorten(
        f"unknown: {', '.join(record['unknown_classes'])}", 40, placeholder=" …"
    )
    return [*record["known_classes"], unknown, "wrong answer"]


@styled
def draw_gallery(records: Sequence[Record]) -> Figure:
    """What was taken as distinct unknowns, beside unknown items that were not."""
    found = with_picture(records, "gallery")
    heights = [0.9 + 0.8 * _n_gallery_rows(record) for record in found]
    figure = make_figure(8.4, sum(heights))
    blocks = figure.subfigures(len(found), 1, height_ratios=heights, squeeze=False)[:, 0]
    for block, record in zip(blocks, found, strict=True):
        gallery = record["pictures"]["gallery"]
        known, unknown = (", ".join(record[f"{kind}_classes"]) for kind in ("known", "unknown"))
        what = f"{record['dataset']}, {record['method']}"
        add_title(block, f"{what}: {unknown} unknown; known are {known}")
        taken, missed = block.subplots(1, 2)
        for axes, kind in ((taken, "filtered"), (missed, "unselected")):
            is_wrong = [not is_unknown for is_unknown in gallery[f"{kind}_true"]]
            draw_images_on(axes, gallery[kind], is_wrong, n_columns=GALLERY_COLUMNS)
        n_wrong = len(gallery["filtered_true"]) - sum(gallery["filtered_true"])
        taken.set_title(f"taken as distinct unknowns ({n_wrong} wrongly, framed)")
        missed.set_title("unknown, and not taken")
    return figure


def _n_gallery_rows(record: Record) -> int:
    gallery = record["pictures"]["gallery"]
    longest = max(len(gallery["filtered"]), len(gallery["unselected"]), 1)
    return ceil(longest / GALLERY_COLUMNS)


@styled
def draw_counterfactuals(records: Sequence[Record]) -> Figure:
    """Images, what a generator makes of them, and the same pushed out of every known class."""
    found = with_picture(records, "counterfactuals")
    n_columns = max(len(record["pictures"]["counterfactuals"]["original"]) for record in found)
    figure = make_figure(1.3 + 0.75 * n_columns, len(found) * 2.7)
    rows = figure.subplots(len(KINDS_OF_IMAGE) * len(found), 1)
    for place, axes in enumerate(rows):
        which, kind = divmod(place, len(KINDS_OF_IMAGE))
        record, name = found[which], KINDS_OF_IMAGE[kind]
        pictures = record["pictures"]["counterfactuals"][name]
        draw_images_on(axes, pictures, [False] * len(pictures), n_columns=n_columns)
        axes.text(-0.15, 0.5, name, ha="right", va="center")
        if kind == 0:
            axes.set_title(f"{record['dataset']}: counterfactual images of {record['method']}")
    return figure


def draw_items_on(axes: Axes, record: Record) -> None:
    """Known classes in pale shapes, unknown items dark and on top, wrong answers ringed."""
    *known, unknown, wrong = _names(record)
    embedding = record["pictures"]["embedding"]
    x, y, truth, labels = (np.array(embedding[key]) for key in ("x", "y", "truth", "label"))
    greys = np.linspace(0.95, 0.6, len(known))
    for number, name in enumerate(known):
        mine = truth == number
        axes.scatter(
            x[mine],
            y[mine],
            s=14,
            marker=SHAPES[number % len(SHAPES)],
            facecolors=str(greys[number]),
            edgecolors="0.5",
            linewidths=0.5,
            label=name,
        )
    mine = truth == UNKNOWN
    axes.scatter(x[mine], y[mine], s=11, color=UNKNOWN_COLOUR, linewidths=0, label=unknown)
    mine = truth != labels
    axes.scatter(
        x[mine], y[mine], s=32, facecolors="none", edgecolors="k", linewidths=0.6, label=wrong
    )
    reach = 0.54 * GRID
    xlim, ylim = ((min(v) + max(v)) / 2 + np.array([-reach, reach]) for v in (x, y))
    axes.set(xlim=xlim, ylim=ylim)
    axes.set(xticks=[], yticks=[], aspect="equal")
    axes.spines[:].set(visible=True, color="0.7")
    axes.set_title(f"{record['method']} ({100 * np.mean(truth != labels):.0f} % wrong)")


def draw_images_on(
    axes: Axes, pictures: Sequence[str], is_wrong: Sequence[bool], *, n_columns: int
) -> None:
    """Images row by row; wrong ones are framed and crossed."""
    n_rows = max(1, -(-len(pictures) // n_columns))
    for place, (picture, wrong) in enumerate(zip(pictures, is_wrong, strict=True)):
        row, column = divmod(place, n_columns)
        low, high = 0.04, 0.96
        axes.imshow(
            picture_of(picture),
            cmap="gray",
            vmin=0,
            vmax=255,
            interpolation="nearest",
            extent=(column + low, column + high, row + high, row + low),
        )
        if wrong:
            corners = np.array([low, high, high, low, low]), np.array([low, low, high, high, low])
            axes.plot(column + corners[0], row + corners[1], color=MARK_COLOUR, linewidth=2.2)
            axes.plot(
                column + 0.83,
                row + 0.17,
                marker="X",
                markersize=9,
                color=MARK_COLOUR,
                markeredgecolor="white",
            )
    axes.set(xlim=(0, n_columns), ylim=(n_rows, 0))
    axes.set_aspect("equal")
    axes.set_axis_off()
