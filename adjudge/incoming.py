"""Import items for `Study.items` from a file, a table or rows.

For unknown column names, the error suggests a value for `maps`.
"""

import dataclasses
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from adjudge import outcomes
from adjudge.outcome import Outcome
from judge.errors import BadInput, UsageError


def import_items(
    study: Path,
    data: Any,
    format: str | None,
    skip_bad: bool,
    *,
    dataset: str | None,
    maps: Mapping[str, str],
    label_maps: Mapping[str, Mapping[str, str]],
    **more: Any,
) -> Outcome:
    """Import items. `more` sets other fields of `judge.importers.base.Options`.

    Raises UsageError if an argument is invalid, and BadInput if the data is invalid. For unknown column
    names, the error suggests a value for `maps`.
    """
    from judge.asking.items import from_files, from_rows
    from judge.importers.base import Options
    from judge.importers.formats.chat import has_messages
    from judge.importers.guess import MissingFields
    from judge.importers.importing import understood
    from judge.importers.offers import file_rows, suggest_maps
    from judge.importers.signs import recognise_format

    _check_maps(maps, label_maps)
    said: list[str] = []
    options = Options(dataset, maps, label_maps, said.append, **more)
    rows: Iterable[Any]
    try:
        paths = _paths(data)
        if paths:
            format = format or recognise_format(paths)
            # Kept because errors suggest maps if columns have other names.
            rows = file_rows(format, paths[0])
            done = from_files(study, format, paths, options, skip_bad)
        else:
            if format is not None:
                raise UsageError("format= can be used only with files, not with a DataFrame or rows")
            used = {"id", "question", "claim", "passages.text", *maps.values()}
            name, rows, columns = rows_in_memory(data, used)
            if rows and has_messages(rows[0]):
                rows, columns = _flatten(name, rows, options.turns), None
            options = understood(Path(name), rows, options)
            names_itself = options.taken is not None and options.taken.derives_id
            if not names_itself and not any(row.get("dataset") for row in rows):
                # Rows in memory have no file whose name could name the data set.
                options = dataclasses.replace(options, dataset=dataset or "data")
            done = from_rows(study, name, rows, options, skip_bad, columns=columns)
    except MissingFields as lacking:
        suggested, renamed = suggest_maps(lacking.maps, rows, maps)
        message = f"{lacking.reason}; try: maps={suggested!r}"
        message += f", label_maps={renamed!r}" if renamed and not label_maps else ""
        raise BadInput(message, path=lacking.path, line=lacking.line, field=lacking.field) from None
    return outcomes.imported(study, done, said)


def _flatten(name: str, rows: Iterable[Any], turns: str) -> list[dict[str, Any]]:
    from judge.importers.formats.chat import flatten
    from judge.importers.records import add_place

    made = []
    for number, row in enumerate(rows, 1):
        try:
            made += flatten(row, turns)
        except BadInput as problem:
            raise add_place(problem, Path(name), number, "row") from None
    return made


def _paths(data: Any) -> list[Path]:
    """Return the paths in `data`, which is one path or a list of paths. Return an empty list for data in memory."""
    listed = data if isinstance(data, list | tuple) else [data]
    return [Path(entry) for entry in listed] if all(isinstance(entry, str | Path) for entry in listed) else []


def rows_in_memory(data: Any, used: Collection[str]) -> tuple[str, list[dict[str, Any]], list[str] | None]:
    """Return a name for error messages, the rows in `data`, and the column names.

    The column names are None if `data` is not a table. Raises UsageError if a column in `used` is the index
    of the frame.
    """
    from adjudge.frames import rows_of

    rows, columns = rows_of(data)
    # The index of a frame is not a column, but groupby and set_index move columns into it.
    named = [name for name in getattr(getattr(data, "index", None), "names", ()) if isinstance(name, str)]
    wanted = set(used) - set(columns or ())
    if columns is not None and (lost := [name for name in named if name in wanted]):
        raise UsageError(f"'{lost[0]}' is the frame's index, not a column: pass frame.reset_index()")
    return "rows" if columns is None else "DataFrame", rows, columns


def _check_maps(maps: Any, label_maps: Any) -> None:
    """Raise UsageError unless `maps` is {field: column} and `label_maps` is {field: {old: new}}."""
    if not isinstance(maps, Mapping) or not all(isinstance(v, str) for v in maps.values()):
        raise UsageError("maps must map our fields to your columns, e.g. {'question': 'query'}")
    if not isinstance(label_maps, Mapping) or not all(isinstance(v, Mapping) for v in label_maps.values()):
        raise UsageError(
            "label_maps must map a label field to {old: new}, e.g. {'stance': {'yes': 'support'}}"
        )
