"""Every experiment by its name."""

from s2osc.bench.experiments.comparisons import COMPARISONS
from s2osc.bench.experiments.experiment import Experiment
from s2osc.bench.experiments.pools import POOLS
from s2osc.bench.experiments.streams import STREAMS
from s2osc.errors import SettingsError

EXPERIMENTS: dict[str, Experiment] = {**COMPARISONS, **POOLS, **STREAMS}

TOGETHER = {"several": ("several-3", "several-5")}
"""Names that stand for more than one experiment."""


def experiments_named(name: str) -> dict[str, Experiment]:
    """The experiment of that name, or those it stands for."""
    names = TOGETHER.get(name, (name,))
    if not set(names) <= EXPERIMENTS.keys():
        there_are = " or ".join([*EXPERIMENTS, *TOGETHER])
        raise SettingsError(f"there is no experiment {name!r}; give {there_are}")
    return {each: EXPERIMENTS[each] for each in names}
