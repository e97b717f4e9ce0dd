"""Hyper-parameters: by name, and checked.

    by name     ``flatten`` a method's settings into a table, ``change`` some of them
    checks      ``require_*``: what a ``__post_init__`` asks of its fields

A name is the path of a field, ``student.tau`` or ``teacher.training.epochs``. Values may be text,
as a command line gives them.
"""

import types
import typing
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from difflib import get_close_matches
from functools import cache
from math import isfinite
from typing import Any, TypeVar, cast

from s2osc.errors import SettingsError

Settings = TypeVar("Settings")
NamedSettings = dict[str, Any]
"""Hyper-parameters by their dotted names; values as the fields have them, or text."""
FIT_ON = 50_000
"""Items that a pool is fitted on: a larger one by a sample of so many. A fact of a run, not of the
method."""


# --- by name ---------------------------------------------------------------------------------


def flatten(settings: Any) -> NamedSettings:
    """Every hyper-parameter by its dotted name."""
    return {name: value for name, value, _ in _leaves(settings, "")}


def change(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """A copy with the named hyper-parameters changed.

    >>> from s2osc.pipeline.filter.distinctness import FilterSettings
    >>> change(FilterSettings(), {"k": "50", "scale": "paper"}) == FilterSettings(k=50)
    True
    """
    wanted = {name: kind for name, _, kind in _leaves(settings, "")}
    converted = {}
    for name, value in changes.items():
        if name not in wanted:
            near = get_close_matches(name, wanted, n=3, cutoff=0.4)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there is {', '.join(wanted)}"
            raise SettingsError(f"there is no setting {name!r}; {hint}")
        converted[name] = convert(name, value, wanted[name])
    return _replaced(settings, converted, "")


def convert(name: str, value: Any, kind: Any) -> Any:
    """``value``, text or not, as the type a setting is declared with.

    >>> convert("widths", "16,32", tuple[int, ...]), convert("k", "5", int | None)
    ((16, 32), 5)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        if value is None or (type(None) in arguments and str(value).lower() in ("none", "auto")):
            return None
        return convert(name, value, next(a for a in arguments if a is not type(None)))
    if origin is typing.Literal:
        if value not in arguments:
            raise SettingsError(f"{name} is {value!r}; give one of {', '.join(arguments)}")
        return value
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple):
            raise SettingsError(f"{name} is {value!r}; give numbers, such as 32,64")
        return tuple(convert(name, part, arguments[0]) for part in parts)
    return _convert_number(name, value, kind)


def _convert_number(name: str, value: Any, kind: type) -> Any:
    try:
        if kind is bool:
            return {"true": True, "false": False}[str(value).lower()]
        number = float(value)
        if not isfinite(number) or (kind is int and number != int(number)):
            raise ValueError
        return kind(number)
    except (KeyError, TypeError, ValueError, OverflowError):
        wanted = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
        raise SettingsError(f"{name} is {value!r}; give {wanted}") from None


def _leaves(settings: Any, prefix: str) -> Iterator[tuple[str, Any, Any]]:
    """(dotted name, value, declared type) of every field that is not itself settings."""
    kinds = _kinds_of(cast(Hashable, type(settings)))
    for field in fields(settings):
        value = getattr(settings, field.name)
        if is_dataclass(value):
            yield from _leaves(value, f"{prefix}{field.name}.")
        else:
            yield prefix + field.name, value, kinds[field.name]


@cache
def _kinds_of(settings: type) -> dict[str, Any]:
    return typing.get_type_hints(settings)


def _replaced(settings: Any, values: Mapping[str, Any], prefix: str) -> Any:
    """All at once, so that settings that depend on each other can change together."""
    new = {}
    for field in fields(settings):
        name, value = prefix + field.name, getattr(settings, field.name)
        new[field.name] = (
            _replaced(value, values, f"{name}.") if is_dataclass(value) else values.get(name, value)
        )
    return replace(settings, **new)


# --- checks ----------------------------------------------------------------------------------
#
# A number that is None was left open and passes; NaN never does.


def require_least(name: str, value: float | None, least: float) -> None:
    """Refuse a number below ``least``."""
    if value is not None and not value >= least:
        raise SettingsError(f"{name} is {value}; give a number from {least}")


def require_positive(name: str, value: float | None) -> None:
    """Refuse a number that is not above 0."""
    if value is not None and not value > 0:
        raise SettingsError(f"{name} is {value}; give a number above 0")


def require_share(name: str, value: float | None) -> None:
    """Refuse a number that does not lie strictly between 0 and 1."""
    if value is not None and not 0 < value < 1:
        raise SettingsError(f"{name} is {value}; give a share between 0 and 1")


def require_range(name: str, value: float | None, least: float, most: float) -> None:
    """Refuse a share below ``least`` or above ``most``."""
    if value is not None and not least <= value <= most:
        raise SettingsError(f"{name} is {value}; give a share from {least} to {most}")


def require_choice(name: str, value: str, choices: Any) -> None:
    """Refuse a word that is not among ``choices``, a literal type or a tuple."""
    words = typing.get_args(choices) or choices
    if value not in words:
        raise SettingsError(f"{name} is {value!r}; give {' or '.join(map(repr, words))}")
