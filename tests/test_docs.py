"""The documents name places that are there."""

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "s2osc"
DOCUMENTS = [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PLACE = re.compile(r"`(?:src/s2osc/)?((?:[a-z_]+/)*[a-z_]+\.py)(?:: ([^`]+))?`((?:, `\w+`)*)")


def names_in(path: Path) -> set[str]:
    """Everything a module defines, and what its classes define as ``Class.name``."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        found |= {target.id for target in targets if isinstance(target, ast.Name)}
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            methods = (part for part in node.body if isinstance(part, ast.FunctionDef))
            found |= {f"{node.name}.{part.name}" for part in methods}
    return found


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.stem)
def test_every_file_and_function_a_document_names_is_there(document):
    text = document.read_text(encoding="utf-8")
    folders = ["", *(f"{name}/" for name in re.findall(r"^\*\*([a-z]+)/\*\*", text, re.MULTILINE))]
    for place, first, more in PLACE.findall(text):
        # A table below a folder's paragraph names files within it.
        paths = [path for folder in folders if (path := SOURCE / (folder + place)).is_file()]
        elsewhere = [ROOT / folder / place for folder in ("", "tests", "benchmarks")]
        assert paths or any(map(Path.is_file, elsewhere)), f"{document.name} names {place}"
        names = [name for name in (first, *re.findall(r"`(\w+)`", more)) if name]
        for name in names if paths else ():
            assert any(name in names_in(path) for path in paths), (
                f"{document.name} names {name} in {place}"
            )


@pytest.mark.usefixtures("as_users_get_it")
def test_the_guards_of_the_page_of_constants_have_the_values_of_the_code():
    page = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w.]+):(\w+)` \| ([\d./ ]+) \|", page, flags=re.MULTILINE)
    assert len(rows) >= 10
    for module, name, value in rows:
        numbers = [float(number) for number in value.split("/")]
        stated = numbers[0] / numbers[1] if len(numbers) == 2 else numbers[0]
        assert getattr(import_module(f"s2osc.pipeline.{module}"), name) == stated, name
