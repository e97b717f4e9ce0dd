"""Frozen dataclasses as JSON and back, every value checked against the type of its field.

    to_plain      dataclasses and named tuples become objects, tuples become lists
    from_plain    the same back, or a ``ValueError`` that names the place, what it holds and what it
                  should hold

A class whose JSON is not simply its fields says so in methods ``to_json`` and ``from_json``, which
both functions use; ``fields_to_plain`` and ``fields_from_plain`` are for these methods themselves.
"""

import typing
from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from inspect import Parameter, signature
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, cast

T = TypeVar("T")
JsonObject = dict[str, Any]
"""An object of JSON: only what is about to be written, or was just read."""
WANTED = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def to_plain(value: Any) -> Any:
    """Plain values for JSON.

    >>> from s2osc.pipeline.audit.statistics import Estimate
    >>> to_plain((Estimate(estimate=0.5, low=0.25, high=0.75), None))
    [{'estimate': 0.5, 'low': 0.25, 'high': 0.75}, None]
    """
    if hasattr(value, "to_json"):
        return value.to_json()
    if is_dataclass(value):
        return fields_to_plain(value)
    if hasattr(value, "_asdict"):
        return to_plain(value._asdict())
    if isinstance(value, Mapping):
        return {name: to_plain(each) for name, each in value.items()}
    return [to_plain(each) for each in value] if isinstance(value, list | tuple) else value


def fields_to_plain(value: Any) -> JsonObject:
    """A dataclass as an object with a key for each field."""
    return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}


def from_plain(kind: Any, value: Any, what: str) -> Any:
    """The value of type ``kind`` that ``to_plain`` made ``value`` of; ``what`` names it in errors.

    >>> from_plain(tuple[float, ...] | None, [1, 0.5], "its curve")
    (1, 0.5)
    >>> from_plain(dict[str, int], {"cat": "many"}, "its counts")
    Traceback (most recent call last):
    ...
    ValueError: its counts, cat: 'many' is not a whole number
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin in (UnionType, typing.Union):
        other = next(argument for argument in arguments if argument is not NoneType)
        return None if value is None else from_plain(other, value, what)
    if hasattr(kind, "from_json"):
        return kind.from_json(value, what)
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return fields_from_plain(kind, value, what)
    if origin is tuple:
        if not isinstance(value, list):
            raise ValueError(f"{what}: {value!r:.50} is not a list")
        return tuple(from_plain(arguments[0], each, what) for each in value)
    if origin in (dict, Mapping):
        each = _object(value, what)
        return {name: from_plain(arguments[1], each[name], f"{what}, {name}") for name in each}
    is_number = type(value) in (int, float) and isfinite(value)
    if not (kind is Any or (is_number if kind is float else type(value) is kind)):
        raise ValueError(f"{what}: {value!r:.50} is not {WANTED[kind]}")
    return value


def fields_from_plain(kind: type[T], value: Any, what: str) -> T:
    """A dataclass or named tuple of the object that has its fields, and no other keys."""
    values, (hints, parameters) = _object(value, what), _fields_of(cast(Hashable, kind))
    for name in values:
        if name not in hints:
            raise ValueError(f"{what} has {name!r:.50}, which is none of {', '.join(hints)}")
    for name, parameter in parameters.items():
        if name not in values and parameter.default is parameter.empty:
            raise ValueError(f"{what} lacks {name!r}")
    given = [name for name in parameters if name in values]
    return kind(**{n: from_plain(hints[n], values[n], f"{what}, {n}") for n in given})


@cache
def _fields_of(kind: type) -> tuple[dict[str, Any], Mapping[str, Parameter]]:
    """The types of all fields, and what it is made of: no fields that are computed from others."""
    return typing.get_type_hints(kind), signature(kind).parameters


def _object(value: Any, what: str) -> JsonObject:
    if not isinstance(value, dict):
        raise ValueError(f"{what}: {value!r:.50} is not an object")
    return value
