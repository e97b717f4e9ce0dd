"""What all figures of the benchmark share: records in panels, styles, a canvas, two files.

Every figure can be read in grey print and by people who see few colours: shapes, hatches and
lightness differ wherever colours do. The caller's settings of Matplotlib are neither used nor
changed.
"""

import io
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from itertools import compress
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec

import numpy as np

from s2osc.bench.records import Record
from s2osc.errors import DataError, SettingsError
from s2osc.files import write_whole, writing
from s2osc.text import plural

try:
    from matplotlib import style
    from matplotlib.axes import Axes
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure, SubFigure
except ImportError as error:
    raise SettingsError(
        "figures need Matplotlib, which is not installed; `pip install s2osc[bench]`"
    ) from error

__all__ = ["Axes", "Figure"]  # other figures take them from here, where their lack is an error

P = ParamSpec("P")

METRIC_NAMES = {"accuracy": "accuracy", "f1": "weighted F1", "f_out": "F_out"}
MOST_COLUMNS = 4
NARROWEST = 4.5  # inches, for titles to have room
STYLE: dict[str, Any] = {
    "font.size": 9,
    "axes.titlesize": 9,
    "figure.titlesize": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "0.88",
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "svg.hashsalt": "s2osc",  # the same figure is the same file
}
DARK = "#12355b"


class BarStyle(NamedTuple):
    """How the bars of one series differ from the others, in colour and without it."""

    colour: str  # never dark: deviations are drawn over it in black
    hatch: str


BAR_STYLES = (
    BarStyle("#5b8db8", ""),
    BarStyle("#d3e3f1", "////"),
    BarStyle("#fff0b8", "...."),
    BarStyle("#e3a587", "\\\\\\\\"),
    BarStyle("#ffffff", "xxxx"),
    BarStyle("#b8b8b8", "----"),
)


class Setting(NamedTuple):
    """What a panel is about: records that differ in method, partition and seed alone."""

    size: str  # of the protocol, where the record names it
    n_unknown: int
    dataset: str

    @property
    def parts(self) -> tuple[str, str, str]:
        size = f"{self.size} size" if self.size else ""
        return self.dataset, plural(self.n_unknown, "unknown class"), size

    def __str__(self) -> str:
        return ", ".join(part for part in self.parts if part)


def name_settings(settings: Iterable[Setting]) -> tuple[dict[Setting, str], str]:
    """The data set and whatever else tells each panel from the others; then what all share.

    >>> names, shared = name_settings([Setting("cpu", 3, "mnist"), Setting("cpu", 5, "mnist")])
    >>> list(names.values()), shared
    (['mnist, 3 unknown classes', 'mnist, 5 unknown classes'], 'cpu size')
    """
    found = list(settings)
    n_different = [len(set(parts)) for parts in zip(*(s.parts for s in found), strict=True)]
    is_named = (True, *(n > 1 for n in n_different[1:]))
    names = {s: ", ".join(filter(None, compress(s.parts, is_named))) for s in found}
    shared = compress(found[0].parts, (not named for named in is_named))
    return names, ", ".join(filter(None, shared))


def setting_of(record: Record) -> Setting:
    return Setting(record.get("size") or "", len(record["unknown_classes"]), record["dataset"])


def finished(records: Sequence[Record]) -> list[Record]:
    """The records of runs that did not fail."""
    found = [record for record in records if record.get("metrics")]
    if not found:
        raise DataError(f"none of {len(records)} records holds metrics; run the experiment first")
    return found


def with_picture(records: Sequence[Record], kind: str) -> list[Record]:
    """The records that carry data for one kind of picture."""
    found = [record for record in records if (record.get("pictures") or {}).get(kind)]
    if not found:
        raise DataError(
            f"none of {len(records)} records holds pictures of the kind {kind!r}; "
            "run an experiment that is made for them"
        )
    return found


def by_setting(records: Sequence[Record]) -> dict[Setting, list[Record]]:
    """Records in panels, by the number of unknown classes and then by data set."""
    panels: dict[Setting, list[Record]] = {}
    for record in sorted(records, key=setting_of):
        panels.setdefault(setting_of(record), []).append(record)
    return panels


def styled(draw: Callable[P, Figure]) -> Callable[P, Figure]:
    """Draw with the settings above, and leave the caller's as they were found."""

    @wraps(draw)
    def draw_styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with style.context(["default", STYLE]):
            return draw(*args, **kwargs)

    return draw_styled


def make_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that belongs to no window and no global state."""
    figure = Figure(figsize=(max(width, NARROWEST), height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def panel_grid(
    panels: Mapping[Setting, Any], width: float, height: float
) -> tuple[Figure, dict[Setting, Axes], str]:
    """A figure of equal panels with shared axes, row by row; and what their titles leave out."""
    names, shared = name_settings(panels)
    n_rows = ceil(len(panels) / MOST_COLUMNS)
    n_columns = ceil(len(panels) / n_rows)
    figure = make_figure(1.2 + width * n_columns, 0.9 + height * n_rows)
    grid = figure.subplots(n_rows, n_columns, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_axis_off()
    axes_of = dict(zip(panels, grid.flat, strict=False))
    for setting, axes in axes_of.items():
        axes.tick_params(labelbottom=True)
        axes.set_title(names[setting])
    return figure, axes_of, shared


def offset_of(place: int, n_places: int) -> float:
    """How far from its row the n-th of several marks stands, so that none covers another.

    >>> [round(offset_of(place, 3), 2) for place in range(3)]
    [-0.27, 0.0, 0.27]
    """
    return 0.8 * ((place + 0.5) / n_places - 0.5)


def add_title(figure: Figure | SubFigure, text: str, shared: str = "") -> None:
    """Above everything else; ``shared``: what all panels have in common, in brackets."""
    title = f"{text} ({shared})" if shared else text
    figure.suptitle(textwrap.fill(title, int(10.5 * _width_of(figure))), x=0.01, ha="left")


def add_note(figure: Figure, text: str) -> None:
    """Small print below everything else, in lines that fit."""
    lines = textwrap.fill(text, int(15 * _width_of(figure)))
    figure.supxlabel(lines, x=0.01, ha="left", fontsize=8)


def _width_of(figure: Figure | SubFigure) -> float:
    return figure.bbox.width / figure.dpi


def add_text(axes: Axes, x: float, y: float, text: str) -> None:
    """A remark at a share of the width, level with a value on the vertical axis."""
    place = axes.get_yaxis_transform()
    axes.text(x, y, text, transform=place, va="center", fontsize=8, color="0.25")


def add_legend(figure: Figure | SubFigure, axes: Axes, note: str = "") -> None:
    """The names of what ``axes`` shows, below all panels, in as few rows as the width allows."""
    handles, names = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        names,
        loc="outside lower left",
        ncols=_n_legend_columns(names, _width_of(figure)),
        markerscale=1.2,
        title=note or None,
        title_fontsize=8,
        alignment="left",
    )


def n_legend_rows(names: Sequence[str], width: float) -> int:
    return ceil(len(names) / _n_legend_columns(names, width))


def _n_legend_columns(names: Sequence[str], width: float) -> int:
    """As many as fit into ``width`` inches, about, where names fill column by column."""
    for n_columns in range(len(names), 1, -1):
        columns = np.array_split(np.array(names), n_columns)
        letters = [max(map(len, column)) for column in columns]
        if sum(0.65 + 0.066 * n for n in letters) < width:
            return n_columns
    return 1


def save(figure: Figure, path: Path) -> list[Path]:
    """Write ``path`` with .svg and with .png added to its name, each whole or not at all."""
    written = []
    for suffix, metadata in ((".svg", {"Date": None}), (".png", {"Software": None})):
        content = io.BytesIO()
        with style.context(["default", STYLE]):
            figure.savefig(content, format=suffix[1:], dpi=160, metadata=metadata)
        whole = path.with_name(path.name + suffix)
        with writing(whole, "give another place"):
            write_whole(whole, content.getvalue())
        written.append(whole)
    return written


def counts_in_words(counts: Iterable[int]) -> str:
    """A number, or the range of several.

    >>> counts_in_words([5, 3, 5]), counts_in_words([5, 5])
    ('3 to 5', '5')
    """
    found = sorted(set(counts))
    return str(found[0]) if len(found) == 1 else f"{found[0]} to {found[-1]}"
