"""Plugins: extensions in other packages, found by their entry points.

They are loaded only if a name is not built in.

    [project.entry-points."adjudge.providers"]
    echo = "my_package.echo"              # judge run TASK -m echo/NAME

| group | an entry point is | used by |
|---|---|---|
| adjudge.providers | a module with `Provider` (and `NEEDS`), like those in `judge.providers` | `-m NAME/model` |
| adjudge.importers | a module like those in `judge.importers` | `judge items import NAME` |
| adjudge.exchange | a module like those in `annotate.exchange.formats` | `annotate export --to NAME`, `import --from NAME` |
| adjudge.measures | an object like those in `judge.stats.coefficients` | `annotate agreement --measure NAME` |
| adjudge.papers | a `judge.papers.engine.paper.Paper` | `judge score NAME`, `judge suite NAME` |

A built-in extension has priority over a plugin of the same name. If a plugin cannot be loaded, only commands
that name it fail. Their error contains the package and the reason. `judge plugins` lists all plugins.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from judge.errors import AdjudgeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "providers": ("Provider",),
    "importers": ("read_rows",),
    "exchange": ("NAME",),
    "measures": ("measure", "level", "weights", "pair", "least", "mask_used", "features", "value", "chance"),
    "papers": ("name", "title", "compute_scores", "parts", "options", "strata", "better", "abbreviations"),
}
"""Maps each kind of plugin to the attributes that it needs."""


class PluginFailed(AdjudgeError):
    """A requested plugin cannot be loaded, or lacks what its group requires."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """An entry point. `problem` is the error that occurred when `judge plugins` loaded the plugin, or None."""

    kind: str
    name: str
    target: str
    package: str
    problem: str | None = None


def find(kind: str, name: str) -> Any | None:
    """Load and return the plugin of this name, or return None if there is no such plugin.

    Raises PluginFailed if the plugin is broken.
    """
    for point in _points(kind):
        if point.name == name:
            return _load(kind, point)
    return None


def names(kind: str) -> list[str]:
    """Return the names of the plugins of a kind, without loading them."""
    return sorted({point.name for point in _points(kind)})


def working(kind: str) -> Iterator[tuple[str, Any]]:
    """Yield the name and the object of each plugin of a kind that can be loaded."""
    for name in names(kind):
        try:
            yield name, find(kind, name)
        except PluginFailed:
            # A broken package must not stop a command that does not name it.
            continue


def load_all(built_in: dict[str, list[str]]) -> list[Plugin]:
    """Load and return all plugins. `built_in` contains the names of the built-in extensions of each kind.
    Plugins with such a name are not used.
    """
    plugins = []
    for kind in GROUPS:
        seen: set[str] = set()
        for point in _points(kind):
            problem = None
            if point.name in built_in.get(kind, ()):
                problem = "the built-in extension of this name is used instead"
            elif point.name in seen:
                problem = "the plugin of this name in another package is used instead"
            # Loaded even if it is not used, because it may still be broken.
            seen.add(point.name)
            try:
                _load(kind, point)
            except PluginFailed as error:
                problem = str(error)
            plugins.append(Plugin(kind, point.name, point.value, _package(point), problem))
    return plugins


def _points(kind: str) -> list[EntryPoint]:
    """Return the entry points of a group by package and name, so that the order is the same on every machine."""
    # The search path is the key of the cache, so that a folder added to it later is searched too.
    return _points_on(kind, tuple(sys.path))


@cache
def _points_on(kind: str, path: tuple[str, ...]) -> list[EntryPoint]:
    """Return the entry points of a group.

    They are cached, because reading the metadata of all packages takes longer than a report.
    """
    from importlib.metadata import entry_points

    return sorted(entry_points(group=f"adjudge.{kind}"), key=lambda point: (point.name, _package(point)))


def _package(point: EntryPoint) -> str:
    dist = point.dist
    return f"{dist.name} {dist.version}" if dist is not None else "unknown"


def _load(kind: str, point: EntryPoint) -> Any:
    try:
        # Anything that a plugin prints during its import must not end up in the data on stdout.
        with redirect_stdout(sys.stderr):
            loaded = point.load()
    # SystemExit is included, because a script may end the process when it is imported.
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise PluginFailed(f"{_describe_package(kind, point)} cannot be loaded: {reason}") from error
    if lack := _find_lack(kind, point.name, loaded):
        raise _make_failure(kind, point, lack)
    # Tracebacks name modules instead of entry points, so packages are looked up by module.
    _loaded.setdefault(point.module.partition(".")[0], _package(point))
    return loaded


def make_failure(kind: str, name: str, lack: str) -> PluginFailed:
    """Return the error for an invalid plugin. The error names the package and what the plugin lacks."""
    return _make_failure(kind, next(point for point in _points(kind) if point.name == name), lack)


def _make_failure(kind: str, point: EntryPoint, lack: str) -> PluginFailed:
    group = "exchange format" if kind == "exchange" else kind.removesuffix("s")
    return PluginFailed(
        f"{_describe_package(kind, point)} is not a valid {group}: {lack} (see docs/plugins.md)"
    )


def _describe_package(kind: str, point: EntryPoint) -> str:
    return f"plugin '{point.name}' (adjudge.{kind}, {point.value}) of {_package(point)}"


def package_of(instance: object) -> str | None:
    """Return the package of the plugin that an object's class is from, or None for a built-in class."""
    return _loaded.get(type(instance).__module__.partition(".")[0])


_loaded: dict[str, str] = {}
"""Maps the first part of a loaded plugin's module name to its package."""
OURS = frozenset({"judge", "annotate", "adjudge"})


def describe_unexpected(error: BaseException) -> str:
    """Describe an unexpected error, with the packages of plugins in its traceback."""
    whose = f" in a plugin of {by}" if (by := _to_blame(error)) else ""
    return f"unexpected {type(error).__name__}{whose}: {error} (set JUDGE_DEBUG=1 to see the traceback)"


def _to_blame(error: BaseException) -> str | None:
    """Return the package of the plugin that raised an error or called the code that raised it.

    Return None if no plugin was involved.
    """
    step, blamed = error.__traceback__, None
    while step is not None:
        first = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        blamed = blamed if first in OURS else _loaded.get(first, blamed)
        step = step.tb_next
    return blamed


def _find_lack(kind: str, name: str, loaded: Any) -> str | None:
    """Return the reason why an object cannot be used as this kind of plugin, or None if it can be used."""
    if isinstance(loaded, type):
        return "it is a class, but an object or a module is needed"
    # Checked before use, because a later AttributeError would not name the package.
    if missing := [part for part in GROUPS[kind] if not hasattr(loaded, part)]:
        return f"it has no '{missing[0]}'"
    if kind == "importers" and not _are_signs(getattr(loaded, "SIGNS", ())):
        return "its SIGNS is not a list of lists of keys"
    if kind == "exchange":
        does = [way for way in ("read_responses", "write") if hasattr(loaded, way)]
        writes = getattr(loaded, "WRITES", None)
        if not does or ("write" in does) != (writes in ("file", "folder")):
            return "it needs 'read_responses', 'write' with WRITES = \"file\" or \"folder\", or both"
    attribute = {"exchange": "NAME", "papers": "name"}.get(kind)
    if attribute and getattr(loaded, attribute) != name:
        return f"its {attribute} is '{getattr(loaded, attribute)}'"
    return None


def _are_signs(signs: Any) -> bool:
    """Return whether the value is a list whose elements are non-empty lists of keys. An empty element would
    match every file.
    """
    listed = (list, tuple, set, frozenset)
    return isinstance(signs, listed) and all(isinstance(sign, listed) and sign for sign in signs)
