"""Which pools are drawn of which data set: the grid ``audit``, and the pairs of ``sources``."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from itertools import product
from typing import Any, Literal, NamedTuple

from s2osc.bench.experiments.covering import cover_pairs
from s2osc.bench.tasks.audit import POOL_ONLY, SAME, AuditPool, PairedPool, class_counts
from s2osc.data.corruptions import IMAGE_SOURCES, TITLE_SOURCES, VECTOR_SOURCES
from s2osc.errors import SettingsError
from s2osc.text import listed

TIMES = 20
"""Pools of each pair of levels, at least."""
DRAWS = 20
"""Of classes and items: each is seen from every source."""


class GridData(NamedTuple):
    """A data set of the grid."""

    kind: Literal["images", "photos", "vectors", "titles"]
    smallest_class: int  # its items
    networks: str  # the preset of networks and budget


DATA = {
    "mnist": GridData("images", 6_313, "small"),
    "fashion_mnist": GridData("images", 7_000, "small"),
    "pendigits": GridData("vectors", 1_055, "heads"),
    "digits": GridData("vectors", 174, "heads"),
    "cifar10-features": GridData("photos", 1_200, "heads"),
    "stackoverflow": GridData("titles", 1_000, "heads"),
}
SOURCES = {
    "images": tuple(IMAGE_SOURCES),
    "photos": (*IMAGE_SOURCES, *VECTOR_SOURCES),  # another camera, or other features
    "vectors": tuple(VECTOR_SOURCES),
    "titles": tuple(TITLE_SOURCES),
}
WITH_UNITS = ("photos", "vectors")
LEVELS: Mapping[str, Sequence[Any]] = {
    "unknown_share": (0.0, 0.02, 0.1, 0.4, 1.0),
    "n_labelled": (20, 60, 300),
    "class_sizes": ("balanced", "20:1", POOL_ONLY),
    "source": (SAME, *IMAGE_SOURCES, *VECTOR_SOURCES, *TITLE_SOURCES),
    "columns": ("as they are", "wild units"),
    "data": tuple(DATA),
}
"""By the factor's name in ``AuditPool``."""


def can_be_drawn(pool: AuditPool) -> bool:
    """Whether the levels go together: sources and units of that kind of data, and enough items."""
    data = DATA[pool.data]
    if pool.source not in (SAME, *SOURCES[data.kind]):
        return False
    if pool.columns != "as they are" and data.kind not in WITH_UNITS:
        return False
    return sum(counts[0] for counts in class_counts(pool)) <= data.smallest_class


@cache
def design() -> tuple[AuditPool, ...]:
    """Every pool of the grid, in the order in which pairs of levels need them."""
    combinations = product(*LEVELS.values())
    pools = [AuditPool(**dict(zip(LEVELS, levels, strict=True))) for levels in combinations]
    pools = [pool for pool in pools if can_be_drawn(pool)]
    return tuple(pools[number] for number in cover_pairs(list(map(asdict, pools)), TIMES))


@cache
def pools_of(data: str) -> tuple[AuditPool, ...]:
    """The pools of one data set, by the number of their partition."""
    if data not in DATA:
        raise SettingsError(f"the grid has no pools of {data!r}; give {listed(list(DATA))}")
    return tuple(pool for pool in design() if pool.data == data)


@cache
def paired_pools_of(data: str) -> tuple[PairedPool, ...]:
    """Pools that differ in their source alone: draw by draw, with nothing and with 40 % unknown.

    >>> [(pool.draw, pool.unknown_share, pool.source) for pool in paired_pools_of("pendigits")[3:6]]
    [(0, 0.0, 'offset 0.1'), (0, 0.4, 'same'), (0, 0.4, 'noise 10 %')]
    """
    return tuple(
        PairedPool(data, unknown_share=share, n_labelled=300, source=source, draw=draw)
        for draw in range(DRAWS)
        for share in (0.0, 0.4)
        for source in (SAME, *SOURCES[DATA[data].kind])
    )


def parse_levels(text: str) -> dict[str, Any]:
    """``source=noise 12,unknown_share=0``: levels by the names of their factors.

    >>> parse_levels("source=noise 12, unknown_share=0.4")
    {'source': 'noise 12', 'unknown_share': 0.4}
    """
    wanted: dict[str, Any] = {}
    for part in text.split(","):
        factor, _, written = (word.strip() for word in part.partition("="))
        levels = {str(level): level for level in LEVELS.get(factor, ())}
        levels |= {f"{level:g}": level for level in levels.values() if isinstance(level, float)}
        if written not in levels:
            known = listed(list(map(str, LEVELS.get(factor, ())))) or listed(list(LEVELS))
            what = f"level {written!r} of {factor}" if levels else f"factor {factor!r}"
            raise SettingsError(f"the grid has no {what}; give {known}")
        wanted[factor] = levels[written]
    return wanted
