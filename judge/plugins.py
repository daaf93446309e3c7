"""Plugins: what other packages bring, by entry points. They are looked for only when a name is not built in.

    [project.entry-points."adjudge.providers"]
    echo = "my_package.echo"              # judge run TASK -m echo/NAME

| group | an entry point is | found by |
|---|---|---|
| adjudge.providers | a module with `Provider` (and `NEEDS`), as those of `judge.providers` | `-m NAME/model` |
| adjudge.importers | a module as those of `judge.importers` | `judge items import NAME` |
| adjudge.exchange | a module as those of `annotate.exchange.formats` | `annotate export --to NAME`, `import --from NAME` |
| adjudge.measures | an object as those of `judge.stats.coefficients` | `annotate agreement --measure NAME` |
| adjudge.papers | a `judge.suites.paper.Paper` | `judge score NAME`, `judge suite NAME` |

What is built in stands above a plugin of the same name. A plugin that cannot be loaded stops the command that names it,
with its package and reason, and no other; `judge plugins` lists them all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from judge.errors import AdjudgeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "providers": "Provider",
    "importers": "read",
    "exchange": "NAME",
    "measures": "measure",
    "papers": "parts",
}
"""Kind of plugin -> what each of them has, whatever else."""


class PluginFailed(AdjudgeError):
    """A plugin that is asked for cannot be loaded, or is not what its group holds."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point: its kind and name, where it comes from, and (after `judge plugins` has tried it) what is wrong with it."""

    kind: str
    name: str
    target: str
    package: str
    problem: str | None = None


def find(kind: str, name: str) -> Any | None:
    """What the plugin of this name is, loaded; None when there is none. Raises PluginFailed for a broken one."""
    for point in _points(kind):
        if point.name == name:
            return _load(kind, point)
    return None


def names(kind: str) -> list[str]:
    """The names of the plugins of a kind, none of them loaded."""
    return sorted({point.name for point in _points(kind)})


def working(kind: str) -> Iterator[tuple[str, Any]]:
    """Name and object of each plugin of a kind that loads."""
    for name in names(kind):
        try:
            yield name, find(kind, name)
        except PluginFailed:
            continue


def every(built_in: dict[str, list[str]]) -> list[Plugin]:
    """All plugins, each tried; `built_in` are the names of each kind that a plugin cannot take."""
    found = []
    for kind in GROUPS:
        seen: set[str] = set()
        for point in _points(kind):
            problem = None
            if point.name in built_in.get(kind, ()):
                problem = "the name is taken by what is built in, which is used"
            elif point.name in seen:
                problem = "another package has a plugin of this name, which is used"
            seen.add(point.name)
            try:
                _load(kind, point)
            except PluginFailed as error:
                problem = str(error)
            found.append(Plugin(kind, point.name, point.value, _package(point), problem))
    return found


def _points(kind: str) -> list[EntryPoint]:
    """The entry points of a group, by package and name, so that who comes first does not hang on the machine."""
    return _points_on(kind, tuple(sys.path))


@cache
def _points_on(kind: str, path: tuple[str, ...]) -> list[EntryPoint]:
    """Looked for once: reading what all packages say of themselves takes longer than a paper's report."""
    from importlib.metadata import entry_points

    return sorted(entry_points(group=f"adjudge.{kind}"), key=lambda point: (point.name, _package(point)))


def _package(point: EntryPoint) -> str:
    dist = point.dist
    return f"{dist.name} {dist.version}" if dist is not None else "unknown"


def _load(kind: str, point: EntryPoint) -> Any:
    who = f"plugin '{point.name}' (adjudge.{kind}, {point.value}) of {_package(point)}"
    try:
        found = point.load()
    except (Exception, SystemExit) as error:
        raise PluginFailed(f"{who} does not load: {type(error).__name__}: {error}") from error
    if not hasattr(found, GROUPS[kind]):
        raise PluginFailed(f"{who} is no {kind.removesuffix('s')}: it has no '{GROUPS[kind]}'")
    return found
