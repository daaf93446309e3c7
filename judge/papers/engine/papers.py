"""The papers of `judge score` and `judge suite`, by name. Each is declared in judge/papers/NAME.toml, and its module
judge/papers/NAME.py computes the scores.

`--help` needs only the declarations. A module is imported when one of its functions is called, because modules of
papers import pandas, which takes long.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from judge import plugins
from judge.paper_files import read_declaration, read_declarations
from judge.papers.engine.paper import KnownAs, Option, Paper, Part

ORDER = (
    *("garage", "raguard", "confirmation", "mirage", "urag"),
    *("retrieval", "faithfulness", "rag", "nuggets", "conformal"),
)
"""The order in which papers are listed. Other declarations follow by name, so a new paper needs no line here."""


_ELSEWHERE = ("conditions", "needed", "published")
"""Parts of a declaration that other modules read."""


def declared_beside(module: str, path: str) -> Paper:
    """Return the paper of a plugin. `module` is its module's name, and NAME.toml is next to its file `path`."""
    file = Path(path).with_suffix(".toml")
    return declared(file.stem, read_declaration(file), module)


def declared(name: str, declaration: Mapping[str, Any], module: str) -> Paper:
    """Return the paper with this declaration. `module` is the name of the module with its functions.

    Lists of tables (`parts`, `options`, `known`) have the fields of `Part`, `Option` and `KnownAs`. `functions` maps
    fields of `Paper` to names of functions, and `strata` maps stratifications to names of functions. A name with dots
    is in another module: a report asks whether a paper is `present`, and must not import pandas for the answer.
    """
    given = {field: value for field, value in declaration.items() if field not in _ELSEWHERE}

    def function(of: str) -> Callable[..., Any]:
        elsewhere, _, name = of.rpartition(".")
        return lambda *values: getattr(import_module(elsewhere or module), name)(*values)

    figures = [
        figure | ({"function": function(figure["function"])} if "function" in figure else {})
        for figure in given.pop("figures", [])
    ]
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
        figures=tuple(figures),
        **functions,
        **_freeze(given),
    )


def _freeze(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with tuples instead of lists, because declarations do not change."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


PAPERS: dict[str, Paper] = {
    name: declared(name, declaration, f"judge.papers.{name}")
    for name, declaration in sorted(
        read_declarations().items(), key=lambda pair: ORDER.index(pair[0]) if pair[0] in ORDER else len(ORDER)
    )
}


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
