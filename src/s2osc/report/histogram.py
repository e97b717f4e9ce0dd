"""The distribution of w over the pool, split by the answer."""

from dataclasses import dataclass

import numpy as np

from s2osc.types import Answer

N_BINS = 48
LONG_TAIL = 20  # a log axis where the tail reaches this many medians
TOP_PERCENTILE = 99.5
MOST_TICKS = 7


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
class Mark:
    """A value on the axis of w."""

    text: str
    left: float  # 0 .. 100


@dataclass(frozen=True)
class Distribution:
    """Two histograms over one axis."""

    known: Panel
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
    is_unknown, filtered = answer.is_unknown[is_finite], answer.filtered[is_finite]
    return Distribution(
        known=_panel(w[~is_unknown], edges),
        unknown=_panel(w[is_unknown], edges),
        ticks=[_mark(value, edges, is_log) for value in choose_ticks(edges, is_log)],
        threshold=_mark(w[filtered].min(), edges, is_log) if filtered.any() else None,
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


def choose_ticks(edges: np.ndarray, is_log: bool) -> list[float]:
    """Round values along the axis.

    >>> choose_ticks(np.array([0.0, 0.55]), False)
    [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    >>> choose_ticks(np.array([0.03, 5000.0]), True)
    [0.1, 1.0, 10.0, 100.0, 1000.0]
    """
    low, high = float(edges[0]), float(edges[-1])
    if is_log:
        powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
        step = -(-len(powers) // (MOST_TICKS + 2))
        factors = (1, 2, 5) if len(powers) <= 3 else (1,)
        values = [float(f"{factor}e{power}") for power in powers[::step] for factor in factors]
        return [value for value in values if low <= value <= high]
    rough = (high - low) / (MOST_TICKS - 1)
    size = 10.0 ** np.floor(np.log10(rough))
    step = size * next(factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    places = np.arange(np.ceil(low / step), np.floor(high / step) + 1)
    return [float(f"{place * step:.12g}") for place in places]


def _panel(w: np.ndarray, edges: np.ndarray) -> Panel:
    counts = np.histogram(np.clip(w, edges[0], edges[-1]), edges)[0]
    highest = int(counts.max())
    bars = [
        Bar(count, 100 * count / max(1, highest), f"{left:.4g} to {right:.4g}")
        for count, left, right in zip(counts.tolist(), edges[:-1], edges[1:], strict=True)
    ]
    return Panel(len(w), highest, bars)


def _mark(value: float, edges: np.ndarray, is_log: bool) -> Mark:
    low, high, at = edges[0], edges[-1], np.clip(value, edges[0], edges[-1])
    place = np.log(at / low) / np.log(high / low) if is_log else (at - low) / (high - low)
    return Mark(f"{value:.4g}", round(100 * float(place), 3))
