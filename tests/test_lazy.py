"""Nobody waits for a library that is not needed."""

import ast
import sys
from pathlib import Path

import pytest

import s2osc
from s2osc.lazy import lazily

SOURCE = Path(s2osc.__file__).parent
SLOW = ("sklearn", "scipy.stats", "scipy.optimize", "scipy.io", "pandas", "openTSNE", "matplotlib")
FOLDERS = ("app", "cli", "data", "page", "pipeline", "report", "stream")
MODULES = [path for name in FOLDERS for path in sorted((SOURCE / name).rglob("*.py"))]
MODULES += [SOURCE / name for name in ("__init__.py", "arrays.py", "metrics.py", "types.py")]
# A stream may compare with these, so that it imports them.
MODULES += [SOURCE / "baselines" / name for name in ("cpe.py", "senc_mas.py", "shared.py")]


def imported(path: Path) -> set[str]:
    """The modules that are imported as soon as a file is."""
    found: set[str] = set()
    for statement in ast.parse(path.read_text()).body:
        if isinstance(statement, ast.Import):
            found |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            found |= {statement.module}
            found |= {f"{statement.module}.{alias.name}" for alias in statement.names}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_page_and_a_prediction_wait_for_no_library_that_they_may_not_need(path):
    slow = {name for name in imported(path) if f"{name}.".startswith(tuple(f"{s}." for s in SLOW))}
    assert not slow, f"write `lazily(...)` for {slow}"


def test_a_lazy_module_is_imported_when_it_is_used(monkeypatch):
    monkeypatch.delitem(sys.modules, "this", raising=False)
    poem = lazily("this")
    assert "this" not in sys.modules
    assert poem.c == 97
    assert "this" in sys.modules


def test_what_a_lazy_module_lacks_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nonsense"):
        lazily("math").nonsense  # noqa: B018
