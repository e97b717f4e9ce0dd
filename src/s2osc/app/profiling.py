"""Where the time of a command goes, function by function."""

import cProfile
import pstats
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from s2osc.errors import SettingsError
from s2osc.files import check_folder, writing

PROFILES = (".prof", ".txt")
MOST_FUNCTIONS = 80
"""Of each order in a text: by the time with all they call, and by their own."""


@contextmanager
def profiled(path: Path | None) -> Iterator[None]:
    """Write where the time within goes, function by function; None: nowhere.

    A ``.prof`` file is for pstats, snakeviz and their like, a ``.txt`` file for reading. Being
    watched takes time, too: functions that call many others look slower than they are.
    """
    if path is None:
        yield
        return
    if path.suffix not in PROFILES:
        raise SettingsError(f"--profile is {path}; give a file name ending in .prof or .txt")
    check_folder(path.parent)
    watch = cProfile.Profile()
    try:
        with watch:
            yield
    finally:
        with writing(path, "give another place for the profile"):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".prof":
                watch.dump_stats(path)
            else:
                with path.open("w", encoding="utf-8") as file:
                    table = pstats.Stats(watch, stream=file)
                    for order in ("cumulative", "tottime"):
                        table.sort_stats(order).print_stats(MOST_FUNCTIONS)
