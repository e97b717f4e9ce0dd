"""The distribution of w over the pool, split by the answer."""

from dataclasses import dataclass

import numpy as np

from s2osc.report.charts import Mark, Scale
from s2osc.types import UNKNOWN, UNSURE, Answer

N_BINS = 48
LONG_TAIL = 20  # a log axis where the tail reaches this many medians
TOP_PERCENTILE = 99.5


@dataclass(frozen=True)
class Bar:
    """One bin of one panel."""

    count: int
    height: float  # 0 .. 100
    range: str


@dataclass(frozen=True)
class Panel:
    """The bars of the items that got one answer."""

    count: int
    highest: int
    bars: list[Bar]


@dataclass(frozen=True)
class Distribution:
    """Histograms over one axis."""

    known: Panel
    unsure: Panel | None  # where no item is unsure
    unknown: Panel
    ticks: list[Mark]
    threshold: Mark | None  # the smallest w that was filtered
    n_filtered: int
    notes: list[str]  # what a reader must know about the axis


def distribution(answer: Answer) -> Distribution | None:
    """Count w in bins, on an axis that its long tail does not flatten."""
    is_finite = np.isfinite(answer.distinctness)
    w = answer.distinctness[is_finite].astype(np.float64)
    if not len(w):
        return None
    edges, is_log, notes = choose_axis(w)
    if n_left_out := int((~is_finite).sum()):
        notes.append(f"{n_left_out:,} items without a finite w are left out.")
    labels, filtered = answer.labels[is_finite], answer.filtered[is_finite]
    scale = Scale(float(edges[0]), float(edges[-1]), is_log)
    return Distribution(
        known=_panel(w[labels >= 0], edges),
        unsure=_panel(w[labels == UNSURE], edges) if answer.is_unsure.any() else None,
        unknown=_panel(w[labels == UNKNOWN], edges),
        ticks=[_mark(value, scale) for value in scale.ticks()],
        threshold=_mark(float(w[filtered].min()), scale) if filtered.any() else None,
        n_filtered=int(answer.filtered.sum()),
        notes=notes,
    )


def choose_axis(w: np.ndarray) -> tuple[np.ndarray, bool, list[str]]:
    """Edges of the bins, whether they grow by a factor, and notes for the reader.

    >>> edges, is_log, _ = choose_axis(np.array([1.0, 1.0, 1.0, 10_000.0]))
    >>> is_log, round(edges[-1])
    (True, 10000)
    """
    low, median, top, high = np.percentile(w, [0, 50, TOP_PERCENTILE, 100])
    if median > 0 and top > LONG_TAIL * median:
        first = max(np.percentile(w[w > 0], 100 - TOP_PERCENTILE), high * 1e-9)
        notes = ["The axis is logarithmic."]
        if n_below := int((w < first).sum()):
            notes.append(f"The {n_below:,} smallest values are counted in the first bar.")
        return np.geomspace(first, high, N_BINS + 1), True, notes
    if low == high:
        return np.linspace(low - 0.5, low + 0.5, N_BINS + 1), False, []
    if low < top and high - low > 1.5 * (top - low):
        n_above = int((w > top).sum())
        note = f"The {n_above:,} largest values, up to {high:.4g}, are counted in the last bar."
        return np.linspace(low, top, N_BINS + 1), False, [note]
    return np.linspace(low, high, N_BINS + 1), False, []


def _panel(w: np.ndarray, edges: np.ndarray) -> Panel:
    counts = np.histogram(np.clip(w, edges[0], edges[-1]), edges)[0]
    highest = int(counts.max())
    bars = [
        Bar(count, 100 * count / max(1, highest), f"{left:.4g} to {right:.4g}")
        for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True)
    ]
    return Panel(len(w), highest, bars)


def _mark(value: float, scale: Scale) -> Mark:
    return Mark(f"{value:.4g}", scale.place(value))
