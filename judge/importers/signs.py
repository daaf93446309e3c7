"""Which format a file is in, by the keys of its first row: what each importer's `SIGNS` say, else csv or jsonl."""

from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

import ijson

from judge import plugins
from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.importers import base
from judge.importers.records import Shallow, csv_records, opened

PLAIN = ("csv", "jsonl")
"""Formats of files without signs."""
MOST_EVENTS = 10_000
"""Of a JSON parser, until the first row's keys are known: a first row with long lists shows its early ones."""


def found_format(paths: Sequence[Path]) -> str:
    """The format of files that nobody named: by their first row's keys (`SIGNS` of an importer), else csv or jsonl.

    A file with the keys that an importer has under `BESIDE` takes the format of a file with signs that is given with it.
    Raises UsageError for a path that is no file, and where the files have different formats.
    """
    keys = {path: _keys(path) for path in paths}
    found = {path: _format_of(*keys[path]) for path in paths}
    for name in dict.fromkeys(found.values()):
        beside = getattr(base.get(name), "BESIDE", ())
        for path, (_, there) in keys.items():
            if found[path] in PLAIN and any(set(sign) <= there for sign in beside):
                found[path] = name
    if len(set(found.values())) > 1:
        examples = {name: path for path, name in found.items()}
        told = ", ".join(f"{path.name} {name}" for name, path in examples.items())
        raise UsageError(
            f"these files have different formats ({told}): import them one by one, or name the format"
        )
    return next(iter(found.values()))


def _format_of(is_json: bool, keys: set[str]) -> str:
    """The format of a file with these keys."""
    for name in base.names():
        signs = getattr(base.get(name), "SIGNS", ())
        if any(set(sign) <= keys for sign in signs):
            return name
    for name, importer in plugins.working("importers"):
        if any(set(sign) <= keys for sign in getattr(importer, "SIGNS", ())):
            return name
    return "jsonl" if is_json else "csv"


def _keys(path: Path) -> tuple[bool, set[str]]:
    """Whether a file is JSON, and its first row's keys. Raises UsageError for a path that is no file, and for one that is
    no table and no JSON."""
    if not path.is_file():
        raise UsageError(f"{path}: {'a folder: name its files' if path.is_dir() else 'no such file'}")
    with opened(path) as handle:
        start = handle.read(4096).lstrip()
    if start.startswith(b"PK"):
        raise UsageError(
            f"{path}: a spreadsheet's own file or an archive: save the sheet as CSV in UTF-8, and import that"
        )
    if start[:1] in (b"{", b"["):
        return True, _keys_of_json(path)
    try:
        header, _ = csv_records(path, lambda problem: None)
    except BadInput as problem:
        if problem.field:
            # A table with a broken header; another format would not help.
            raise
        raise UsageError(
            f"{problem}; name its format ({', '.join(base.names())}), as in: {command('judge items import FORMAT', path)}"
        ) from None
    return False, set(header)


def _keys_of_json(path: Path) -> set[str]:
    """The keys of the first object, at the top or in a list; what is broken shows when the file is read."""
    found: set[str] = set()
    with opened(path) as handle:
        try:
            # Each event has its whole path: without a limit of depth they grow with the square of it.
            shallow = cast("IO[bytes]", Shallow(handle, str(path)))
            for number, (prefix, event, value) in enumerate(ijson.parse(shallow, multiple_values=True)):
                if prefix in ("", "item") and event == "map_key":
                    found.add(value)
                if (prefix in ("", "item") and event == "end_map") or number > MOST_EVENTS:
                    break
        except (ijson.JSONError, ValueError, BadInput):
            return found
    return found
