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
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from judge.errors import AdjudgeError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS = {
    "providers": ("Provider",),
    "importers": ("read",),
    "exchange": ("NAME",),
    "measures": ("measure", "level", "weights", "pair", "least", "used", "features", "value", "chance"),
    "papers": ("name", "title", "read", "parts", "options", "strata", "better", "abbreviations"),
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
    try:
        # What a plugin prints while it is imported is no part of a command's answer.
        with redirect_stdout(sys.stderr):
            found = point.load()
    except (Exception, SystemExit) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        raise PluginFailed(f"{_who(kind, point)} does not load: {reason}") from error
    if lack := _lack(kind, point.name, found):
        raise _failed(kind, point, lack)
    _loaded.setdefault(point.module.partition(".")[0], _package(point))
    return found


def failed(kind: str, name: str, lack: str) -> PluginFailed:
    """The error of a plugin that is not what its group holds: which one, of which package, and what it lacks."""
    return _failed(kind, next(point for point in _points(kind) if point.name == name), lack)


def _failed(kind: str, point: EntryPoint, lack: str) -> PluginFailed:
    wanted = "exchange format" if kind == "exchange" else kind.removesuffix("s")
    return PluginFailed(f"{_who(kind, point)} is no {wanted}: {lack} (docs/plugins.md)")


def _who(kind: str, point: EntryPoint) -> str:
    return f"plugin '{point.name}' (adjudge.{kind}, {point.value}) of {_package(point)}"


def package_of(found: object) -> str | None:
    """The package of the plugin that an object's class is from; None for what is built in."""
    return _loaded.get(type(found).__module__.partition(".")[0])


_loaded: dict[str, str] = {}
"""First name of a loaded plugin's modules -> its package."""
OURS = frozenset({"judge", "annotate", "adjudge"})


def unexpected(error: BaseException) -> str:
    """An error that nobody foresaw, in words, with the package of plugins that it came from."""
    whose = f" in a plugin of {by}" if (by := _to_blame(error)) else ""
    return f"unexpected {type(error).__name__}{whose}: {error} (JUDGE_DEBUG=1 shows where)"


def _to_blame(error: BaseException) -> str | None:
    """The package of plugins in whose code an error was raised, or that was on the way to it; None where none was."""
    step, found = error.__traceback__, None
    while step is not None:
        first = str(step.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        found = found if first in OURS else _loaded.get(first, found)
        step = step.tb_next
    return found


def _lack(kind: str, name: str, found: Any) -> str | None:
    """What keeps an object from being of a kind; None when nothing does."""
    if isinstance(found, type):
        return "it is a class, where an object or a module is wanted"
    if missing := [part for part in GROUPS[kind] if not hasattr(found, part)]:
        return f"it has no '{missing[0]}'"
    if kind == "importers" and not _are_signs(getattr(found, "SIGNS", ())):
        return "its SIGNS is no list of lists of keys"
    if kind == "exchange":
        does = [way for way in ("read", "write") if hasattr(found, way)]
        writes = getattr(found, "WRITES", None)
        if not does or ("write" in does) != (writes in ("file", "folder")):
            return "it needs 'read', or 'write' with WRITES = \"file\" or \"folder\", or all"
    own = {"exchange": "NAME", "papers": "name"}.get(kind)
    if own and getattr(found, own) != name:
        return f"its {own} is '{getattr(found, own)}'"
    return None


def _are_signs(signs: Any) -> bool:
    """Whether these are lists of keys, none of them empty: that one would take every file."""
    listed = (list, tuple, set, frozenset)
    return isinstance(signs, listed) and all(isinstance(sign, listed) and sign for sign in signs)
