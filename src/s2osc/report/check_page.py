"""The page on which a person labels random items of a pool, shown without any answer."""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from s2osc.text import csv_cell

MARK = b'<meta name="generator" content="s2osc check">'


def check_page(
    items: Mapping[int, str],
    pictures: Mapping[int, str],
    classes: Sequence[str],
    *,
    texts: Sequence[str] | None = None,
    name: str,
) -> bytes:
    """The page for items by their rows; it saves labels as a table called ``name``."""
    script = _asset("check.js")
    page = _template().render(
        mark=Markup(MARK.decode()),
        items=[
            (item, csv_cell(item), pictures.get(row), texts[row] if texts else None)
            for row, item in items.items()
        ],
        classes=classes,
        name=name,
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
    )
    # A file name may hold bytes that are no text; the page must open all the same.
    return page.encode("utf-8", errors="replace")


def is_check_page(path: Path) -> bool:
    """Whether a file is such a page, and holds nothing of a person's."""
    return path.is_file() and MARK in path.read_bytes()[:500]


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    )
    return environment.from_string(_asset("check.html"))


def _asset(name: str) -> str:
    return files("s2osc.report").joinpath(name).read_text(encoding="utf-8")
