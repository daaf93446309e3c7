"""The papers of `judge score` and `judge suite`, by name. Each is declared in judge/papers/NAME.toml, and its module
judge/papers/NAME.py computes the scores.

`--help` needs only the declarations. A module is imported when one of its functions is called, because modules of
papers import pandas, which takes long.
"""

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from judge import plugins
from judge.papers.engine.paper import KnownAs, Option, Paper, Part

_FOLDER = Path(__file__).parent.parent
ORDER = (
    *("garage", "raguard", "confirmation", "mirage", "urag"),
    *("retrieval", "faithfulness", "rag", "nuggets", "conformal"),
)
"""The order in which papers are listed. Other declarations follow by name, so a new paper needs no line here."""


def declared(name: str, folder: Path = _FOLDER, package: str = "judge.papers") -> Paper:
    """Return the paper that NAME.toml in this folder declares, with the functions of its module in `package`.

    Lists of tables (`parts`, `options`, `known`) have the fields of `Part`, `Option` and `KnownAs`. `functions` maps
    fields of `Paper` to names of functions, and `strata` maps stratifications to names of functions.
    """
    given: dict[str, Any] = tomllib.loads((folder / f"{name}.toml").read_text("utf-8"))

    def function(of: str) -> Callable[..., Any]:
        return lambda *values: getattr(import_module(f"{package}.{name}"), of)(*values)

    parts, options = given.pop("parts"), given.pop("options", {})
    functions: dict[str, Any] = {field: function(of) for field, of in given.pop("functions", {}).items()}
    return Paper(
        name=name,
        compute_scores=function("compute_scores"),
        parts=tuple(Part(part, **_freeze({"tasks": (), **fields})) for part, fields in parts.items()),
        options=tuple(
            Option(option, **_freeze({"default": "", **fields})) for option, fields in options.items()
        ),
        known={measure: KnownAs(**fields) for measure, fields in given.pop("known", {}).items()},
        strata={stratum: function(of) for stratum, of in given.pop("strata", {}).items()},
        **functions,
        **_freeze(given),
    )


def _freeze(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with tuples instead of lists, because declarations do not change."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def _list_names() -> list[str]:
    there = sorted(path.stem for path in _FOLDER.glob("*.toml"))
    return sorted(there, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))


PAPERS: dict[str, Paper] = {name: declared(name) for name in _list_names()}


def find(name: str) -> Paper | None:
    """Return the paper with this name or alias (built-in or from a plugin), or None if there is none.

    Raises PluginFailed if a plugin does not load.
    """
    known = next((paper for paper in PAPERS.values() if name in (paper.name, *paper.aliases)), None)
    return known or plugins.find("papers", name)


def list_papers() -> list[Paper]:
    """List the built-in papers, followed by the papers of all plugins that load."""
    # A plugin cannot take the name of a paper that is built in.
    return [*PAPERS.values(), *(paper for name, paper in plugins.working("papers") if name not in PAPERS)]
