"""Define the interface of an importer, and find importers by name.

An importer is a module of this package with

    NAME: str                 the word after `judge items import`
    HELP: str                 one line for the listing
    def read_rows(paths, options, bad) -> Iterator[Row]

If one import needs several files (such as claims and corpus), the module sets `TOGETHER = True`. `read_rows`
is then called once with all paths, and they are imported in one transaction. Otherwise it is called once per
file.

The optional `SIGNS` are sets of keys. A file whose first row has all keys of one set belongs to this
importer. The optional `BESIDE` are sets of keys that do not identify a file alone. A file with the keys of
such a set belongs to the importer only if it is imported together with a file that matches `SIGNS`.
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

__all__ = ["Bad", "Importer", "Options", "Row", "get", "ignore", "names"]

Bad = Callable[[BadInput], None]
"""Callback for each bad row. It raises the error immediately or, if bad rows may be skipped, records it and
returns.
"""


def ignore(error: BadInput) -> None:
    """Ignore a bad row. This is used when another pass over the same file reports its errors."""


Note = Callable[[str], None]
"""Callback that shows the user a one-line note about the import. It does not affect the stored data."""


def _silent(message: str) -> None:
    """Ignore the note. This is the default for `Options.note`."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options for an import.

    - `maps`: our field -> dotted path in the user's row. Stored with the import.
    - `label_maps`: label field -> {label in the file: our label}. Stored with the import.
    - `note`: receives notes that are not about a bad row, for example about documents without text.
    - `system`: the system in rows that do not name one.
    - `as_text`: columns whose cells are never parsed.
    - `scores`: column of numbers -> the tool that assigned these scores.
    - `taken`: how the columns of a common table are interpreted.
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
    """The interface of an importer module."""

    NAME: str
    HELP: str

    def read_rows(self, paths: Sequence[Path], options: Options, bad: Bad) -> Iterator[Row]:
        """Yield the rows in file order, and call `bad` for each bad row."""


def names() -> list[str]:
    """Return the names of all built-in formats: the modules in `judge.importers.formats` whose names do not
    start with `_`.
    """
    package = importlib.import_module("judge.importers.formats")
    # Formats are found by listing this folder, so a new format needs no registration.
    modules = [m.name for m in pkgutil.iter_modules(package.__path__)]
    return sorted(n.replace("_", "-") for n in modules if not n.startswith("_"))


def get(name: str) -> Importer:
    """Return the importer called `name`. If there is none, raise a UsageError that lists the available names."""
    # A built-in format has priority over a plugin of the same name.
    if name not in names():
        plugin: Importer | None = plugins.find("importers", name)
        if plugin is not None:
            return plugin
        hint = "to detect the format of a file, give only its path"
        raise UsageError(
            f"there is no format '{name}'; available formats: "
            f"{', '.join([*names(), *plugins.names('importers')])} ({hint})"
        )
    # The name of a format may have a dash (claim-pairs), the name of a module cannot.
    module: Importer = importlib.import_module(f"judge.importers.formats.{name.replace('-', '_')}")
    return module
