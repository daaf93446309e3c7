"""Detect a file's format by comparing the keys of its first row with the `SIGNS` of each importer."""

from collections.abc import Sequence
from pathlib import Path

from judge import plugins
from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.files import open_input, start_of
from judge.importers import base
from judge.importers.records import check_file, csv_records, json_events

PLAIN = ("csv", "jsonl")
"""The default formats, for files that do not match any `SIGNS`."""
MOST_EVENTS = 10_000
"""Maximum number of JSON parser events that are read to find the first row's keys.

If a row contains long lists, keys after them may be ignored.
"""


def recognise_format(paths: Sequence[Path]) -> str:
    """Return the format of these files.

    The format is determined in this order:

    - If an importer's function `recognises` accepts any of the files, all files have this importer's format.
    - If the keys in a file's first row match the `SIGNS` of an importer, the file has this importer's format.
    - If the keys match the `BESIDE` of an importer, and another file has this importer's format, both files
      have it.
    - Any other file is csv or jsonl.

    Raises UsageError if a path is not a file, or if the files have different formats.
    """
    for name in base.names():
        # TREC files have no header, so there are no keys to compare.
        recognises = getattr(base.get(name), "recognises", None)
        if recognises and any(path.is_file() and recognises(path) for path in paths):
            return name
    keys = {path: _keys(path) for path in paths}
    formats = {path: _format_of(*keys[path]) for path in paths}
    for name in dict.fromkeys(formats.values()):
        beside = getattr(base.get(name), "BESIDE", ())
        for path, (_, there) in keys.items():
            if formats[path] in PLAIN and any(set(sign) <= there for sign in beside):
                formats[path] = name
    if len(set(formats.values())) > 1:
        examples = {name: path for path, name in formats.items()}
        listed = ", ".join(f"{path.name} {name}" for name, path in examples.items())
        raise UsageError(
            f"these files have different formats ({listed}); import them separately, or name the format"
        )
    return next(iter(formats.values()))


def _format_of(is_json: bool, keys: set[str]) -> str:
    """Return the format of a file with these keys."""
    for name in base.names():
        signs = getattr(base.get(name), "SIGNS", ())
        if any(set(sign) <= keys for sign in signs):
            return name
    # Built-in formats take precedence over plugins, as in `base.get`.
    for name, importer in plugins.working("importers"):
        if any(set(sign) <= keys for sign in getattr(importer, "SIGNS", ())):
            return name
    return "jsonl" if is_json else "csv"


def _keys(path: Path) -> tuple[bool, set[str]]:
    """Return (whether the file is JSON, the keys of its first row).

    Raises UsageError if a path is not a file, or if the file is neither a table nor JSON.
    """
    check_file(path)
    with open_input(path) as handle:
        # The content determines the format, not the file's suffix.
        start = start_of(handle)
    # .xlsx and .ods files are ZIP archives.
    if start.startswith(b"PK"):
        raise UsageError(
            f"{path}: this is a spreadsheet or an archive; save the sheet as a CSV file in UTF-8, and "
            "import the CSV file"
        )
    if start[:1] in (b"{", b"["):
        return True, _keys_of_json(path)
    try:
        header, _ = csv_records(path, base.ignore)
    except BadInput as problem:
        if problem.field:
            # The file is a table with a malformed header, so another format would not help.
            raise
        raise UsageError(
            f"{problem}; name the file's format ({', '.join(base.names())}), as in: "
            f"{command('judge items import FORMAT', path)}"
        ) from None
    return False, set(header)


def _keys_of_json(path: Path) -> set[str]:
    """Return the keys of the first object, either at the top level or in a list.

    Malformed JSON is ignored here, because the importer reports it later.
    """
    keys: set[str] = set()
    for number, (prefix, event, value) in enumerate(json_events(path)):
        if prefix in ("", "item") and event == "map_key":
            keys.add(value)
        if (prefix in ("", "item") and event == "end_map") or number > MOST_EVENTS:
            break
    return keys
