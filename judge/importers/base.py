"""Define the interface of an importer, and find importers by name.

An importer is a module in this package that defines

    NAME: str                 the word after `judge items import`
    HELP: str                 one line for the listing
    def read_rows(paths, options, bad) -> Iterator[Row]

If one import needs several files (such as claims and a corpus), the module sets `TOGETHER = True`.
`read_rows` is then called once with all paths, and all files are imported in one transaction. Otherwise it is
called once per file.

A module may also define `SIGNS` and `BESIDE`, which identify files of its format by the keys in the first
row. Both contain sets of keys. A file matches if its first row has all keys of one set. A file that matches
`SIGNS` has this format. A file that matches only `BESIDE` has this format if it is imported together with a
file that matches `SIGNS`.
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
from judge.types import Correct, Row

__all__ = ["Bad", "Importer", "Options", "Row", "get", "ignore", "names"]

Bad = Callable[[BadInput], None]
"""The callback for a bad row.

It either raises the error immediately or, if bad rows may be skipped, records the error and returns.
"""


def ignore(error: BadInput) -> None:
    """Ignore a bad row. This callback is used when another pass over the same file reports the file's errors."""


Note = Callable[[str], None]
"""The callback that shows the user a one-line note about the import. It does not affect the stored data."""


def _silent(message: str) -> None:
    """Ignore the note. This is the default for `Options.note`."""


@dataclass(frozen=True, slots=True)
class Options:
    """The user's options for an import.

    - `maps`: maps our field to the dotted path in the user's row. Stored with the import.
    - `label_maps`: maps a label field to {label in the file: our label}. Stored with the import.
    - `note`: receives notes that are not about a bad row, for example about documents without text.
    - `system`: the system to use for rows that do not name a system.
    - `as_text`: columns whose cells are never parsed.
    - `scores`: maps a column of numbers to the tool that assigned these scores.
    - `taken`: how the columns of a table from a common evaluation tool are interpreted.
    - `turns`: the turns of a conversation that become items, "last" or "all".
    - `correct`: what to do with values that differ from the stored ones (`judge.store.imports.add_rows`).
    """

    dataset: str | None = None
    maps: Mapping[str, str] = field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    note: Note = field(default=_silent, compare=False, repr=False)
    system: str | None = None
    as_text: frozenset[str] = frozenset()
    scores: Mapping[str, str] = field(default_factory=dict)
    taken: CommonTable | None = None
    correct: Correct | None = None
    turns: str = "last"


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
    """Return the importer called `name`. If there is no such importer, raise a UsageError that lists the
    available names.
    """
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
