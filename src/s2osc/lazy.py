"""Libraries that take long to import, imported when they are first used.

scikit-learn and ``scipy.stats`` take a second between them, which nobody should wait for who opens
a page or asks about one item.
"""

from importlib import import_module
from types import ModuleType
from typing import Any


class LazyModule(ModuleType):
    """Stands for a module until something in it is asked for."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def lazily(name: str) -> ModuleType:
    """The module of a name, which is imported when it is first used.

    >>> fractions = lazily("fractions")
    >>> fractions.Fraction(2, 4)
    Fraction(1, 2)
    """
    return LazyModule(name)
