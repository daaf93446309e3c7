"""Tables, figures and pages are written in one place."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOORS = {
    "tabulate": ("judge/document/",),
    "matplotlib": ("judge/document/",),
    "jinja2": ("judge/document/", "judge/prompts/"),
    "markupsafe": ("judge/document/",),
}


def _imports(path: Path) -> set[str]:
    """The top-level packages that a module imports, also inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("library", DOORS)
def test_a_library_that_writes_output_is_imported_in_its_room_only(library: str) -> None:
    modules = {
        path.relative_to(ROOT).as_posix(): _imports(path)
        for package in ("judge", "annotate", "adjudge")
        for path in (ROOT / package).rglob("*.py")
    }
    users = [name for name, imported in modules.items() if library in imported]
    assert users and [name for name in users if not name.startswith(DOORS[library])] == []
