"""Hyper-parameters in a file: `s2osc tune` writes one, `--settings` reads it."""

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from s2osc.errors import SettingsError
from s2osc.files import guarded, read_whole
from s2osc.settings import NamedSettings

LARGEST = 1_000_000  # bytes
ADVICE = 'give a file that `s2osc tune` wrote, or lines such as "student.tau" = 0.9'
Value = str | bool | int | float


class SavedSettings(NamedTuple):
    """A preset, and what is changed in it."""

    preset: str
    changes: NamedSettings


def settings_text(saved: SavedSettings, remarks: Sequence[str] = ()) -> str:
    """The settings as TOML, under remarks for people.

    >>> print(settings_text(SavedSettings("heads", {"student.tau": 0.9}), ["better by .01"]))
    # better by .01
    preset = "heads"
    <BLANKLINE>
    [settings]
    "student.tau" = 0.9
    <BLANKLINE>
    """
    lines = [f"# {line}".rstrip() for remark in remarks for line in remark.splitlines()]
    lines += [f'preset = "{saved.preset}"', "", "[settings]"]
    lines += [f'"{name}" = {_as_toml(value)}' for name, value in saved.changes.items()]
    return "\n".join(lines) + "\n"


def _as_toml(value: Value | Sequence[Value]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, Sequence):
        return f"[{', '.join(_as_toml(each) for each in value)}]"
    return repr(value)


def read_settings(path: Path) -> SavedSettings:
    """A file of settings; whether there are such settings is checked where they are used."""
    with guarded(path, ADVICE, SettingsError):
        content = read_whole(path, largest=LARGEST, error=SettingsError)
        found = tomllib.loads(content.decode())
    preset, changes = found.pop("preset", "auto"), found.pop("settings", {})
    if found:
        raise SettingsError(f"{path} has {', '.join(found)}; wanted are preset and settings")
    if not isinstance(preset, str) or not isinstance(changes, dict):
        raise SettingsError(f"{path}: preset is a word, and settings a table; {ADVICE}")
    return SavedSettings(preset, changes)
