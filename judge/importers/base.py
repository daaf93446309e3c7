"""What an importer is, and how the command line finds one.

An importer is a module of this package with

    NAME: str                 the word after `judge items import`
    HELP: str                 one line for the listing
    def read(paths, options, bad) -> Iterator[Row]

and, when several files make up one import (claims + corpus), `TOGETHER = True`: then `read` gets
all paths in one call and they share one transaction; otherwise it is called once per file. `SIGNS`, where it has
some, are sets of keys that tell its files from others by their first row; a file with the keys of a set of `BESIDE` is one of
its own where it comes with a file that has `SIGNS`.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from judge import plugins
from judge.errors import BadInput, UsageError
from judge.importers.roles import CommonTable
from judge.types import Row

__all__ = ["Bad", "Importer", "Options", "Row", "get", "names"]

Bad = Callable[[BadInput], None]
"""Called with each unusable row; raises at once, or notes it and returns when rows may be skipped."""

Note = Callable[[str], None]
"""Takes one line for people about the import as a whole; nothing that changes what is stored."""


def _silent(message: str) -> None:
    """The default: nobody listens."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user asked for beside the paths.

    `maps` goes from our field to a dotted path in the user's row; `label_maps` goes from a label
    field to {old value: new value}. Both are stored with the import. `system` names the answers of rows that name no
    system. `as_text` are columns whose cells are text whatever they look like; `scores` goes from a column of numbers to
    the tool that gave them; `taken` is what a common table was understood as. `note` receives what the
    user should know although no row is bad (documents without text, a label map that met nothing).
    """

    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    note: Note = field(default=_silent, compare=False, repr=False)
    system: str | None = None
    as_text: frozenset[str] = frozenset()
    scores: Mapping[str, str] = field(default_factory=dict)
    taken: CommonTable | None = None


class Importer(Protocol):
    """The shape of an importer module."""

    NAME: str
    HELP: str

    def read(self, paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
        """Yield rows in file order; call `bad` for a row that cannot be used."""


def names() -> list[str]:
    """Every format: the modules of `judge.importers.formats`, but for those with a leading `_`."""
    package = importlib.import_module("judge.importers.formats")
    found = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in found if not n.startswith("_"))


def get(name: str) -> Importer:
    """The importer called `name`. Raises UsageError naming the ones there are."""
    if name not in names():
        found: Importer | None = plugins.find("importers", name)
        if found is not None:
            return found
        told = "with the path of a file alone the format is found from it"
        raise UsageError(
            f"no format '{name}'; there are: {', '.join([*names(), *plugins.names('importers')])} ({told})"
        )
    module: Importer = importlib.import_module(f"judge.importers.formats.{name.replace('-', '_')}")
    return module
