"""Checks of hyper-parameters: what was found, what is wanted."""

from typing import get_args

from s2osc.errors import SettingsError


def check_choice(name: str, value: object, choices: object) -> None:
    """Raise unless ``value`` is one of a literal type's values."""
    if value not in get_args(choices):
        wanted = " or ".join(repr(choice) for choice in get_args(choices))
        raise SettingsError(f"{name} is {value!r}; give {wanted}")


def check_share(name: str, value: float) -> None:
    """Raise unless ``value`` lies strictly between 0 and 1."""
    if not 0 < value < 1:
        raise SettingsError(f"{name} is {value}; give a share between 0 and 1")


def check_count(name: str, value: int, least: int = 1) -> None:
    """Raise unless ``value`` is at least ``least``."""
    if value < least:
        raise SettingsError(f"{name} is {value}; give a number from {least}")
