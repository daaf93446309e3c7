"""The declarations of papers, judge/papers/NAME.toml, as plain data.

Each package takes its part of a declaration: importers the names of conditions, and the engine of papers everything else.
"""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "papers"


@cache
def read_declarations() -> dict[str, dict[str, Any]]:
    """Return the declaration of each built-in paper, by the paper's name."""
    return {path.stem: read_declaration(path) for path in sorted(_FOLDER.glob("*.toml"))}


def read_declaration(path: Path) -> dict[str, Any]:
    """Return the declaration in one file."""
    return tomllib.loads(path.read_text("utf-8"))
