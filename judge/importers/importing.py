"""Import files, or rows in memory, into a study.

Each file is imported in its own transaction, except that files that belong together share one. All rows in
memory share one transaction. Rows in memory may be table rows, which are treated like CSV rows with typed
values, or objects, which are treated like objects in JSON Lines.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from judge.errors import BadInput, UsageError
from judge.files import file_sha, note_encoding
from judge.importers.base import Bad, Importer, Options, Row
from judge.importers.mapped import RowReader
from judge.importers.naming import dataset_name, system_name
from judge.importers.offers import file_rows
from judge.importers.records import Records, add_place, build_each, check_file
from judge.importers.roles import DATASET, LOOKED_AT, read_roles, understanding
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport
from judge.store.items import add_items
from judge.store.listing import names_of_content

T = TypeVar("T")
FORMAT = "python"
"""The format name that the study stores for rows in memory."""


def import_files(
    db: Path, name: str, importer: Importer, paths: Sequence[Path], options: Options, skip_bad: bool
) -> list[tuple[list[str], ImportReport]]:
    """Import the files. Return the paths and the report of each transaction.

    Raises UsageError if a path is not a file, and BadInput for the first bad row unless `skip_bad` is set. If
    a file has an error, nothing from this file is stored. The error for values that differ from the stored ones
    lists all of them.
    """
    # All paths are checked before the first import, so that nothing is imported if a later path is mistyped.
    for path in paths:
        check_file(path)
    together = bool(getattr(importer, "TOGETHER", False))
    # Files that belong together, such as claims and corpus, are one transaction, because one without the
    # other is unusable.
    groups = [list(paths)] if together else [[p] for p in paths]
    reports = []
    with Store.open(db) as store:
        for group in groups:
            skipped, bad = skipping(skip_bad)
            for line in filter(None, map(note_encoding, group)):
                options.note(line)
            files = {str(p): file_sha(p) for p in group}
            known = names_of_content(store, files[str(group[0])])
            # Only the first rows are read here. The import itself reads the file again.
            rows_seen = islice(file_rows(name, group[0]), LOOKED_AT)
            file_options = understood(group[0], rows_seen, options, known)
            maps = {**file_options.maps, **_constants(options)}
            info = ImportInfo(name, files, file_options.dataset, maps, file_options.label_maps)
            rows = importer.read_rows(group, file_options, bad)
            reports.append(
                ([str(p) for p in group], add_items(store, rows, info, skipped, bad, options.correct))
            )
    return reports


TURNS, AS_TEXT = "--turns", "--as-text"
"""Options that are stored with the maps of an import, because the file can be joined only if it is read in the same way."""


def _constants(options: Options) -> dict[str, str]:
    turns = {TURNS: options.turns} if options.turns != "last" else {}
    return turns | ({AS_TEXT: json.dumps(sorted(options.as_text))} if options.as_text else {})


def understood(
    path: Path, rows: Iterable[Any], options: Options, known: Sequence[tuple[str, str]] = ()
) -> Options:
    """Return the options, with maps added for the columns of a common table.

    A common table has columns that `judge.importers.roles` recognises. For other rows, no map is
    added. Maps from the user are kept. Each added map is reported to `options.note`.

    `known` lists the (data set, system) pairs whose answers were already imported from a file with the same
    content. A renamed copy of a file therefore does not become another system.

    Raises MissingFields, which names the file, if two columns could be the same field. Raises UsageError if
    an option names a missing column.
    """
    if options.taken is not None:
        return options
    rows = [row for row in rows if isinstance(row, Mapping)]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    for option, names in (("--as-text", options.as_text), ("--scores", options.scores)):
        if strange := [name for name in names if name not in columns]:
            there = (
                f"there is no such column; available columns: {', '.join(map(str, columns))}"
                if columns
                else "this option is only for tables"
            )
            raise UsageError(f"{path}: {option} {strange[0]}: {there}")
    try:
        table = read_roles(rows, options.maps, options.scores)
    except BadInput as error:
        raise add_place(error, path, 1) from None
    if table is None:
        if columns and (options.system or options.scores):
            reason = "--system and --scores require a table with a question, and contexts or an answer"
            raise UsageError(f"{path}: {reason}; available columns: {', '.join(map(str, columns))}")
        return options
    # Answers are identified by item, system and condition. A renamed copy of a file would double every answer.
    if known and not options.system and table.has_answers and not table.names_system:
        dataset, system = next((pair for pair in known if pair[1] == system_name(path)), known[0])
        options.note(
            f"{path}: a file with the same content was already imported as the system '{system}', so "
            "this import uses the same system; to import it as another system, pass --system NAME"
        )
        options = replace(options, system=system, dataset=options.dataset or dataset)
    dataset = options.dataset or (DATASET if table.derives_id else dataset_name(path))
    system = options.system or system_name(path)
    for line in understanding(table, options.maps, dataset, system, options.system is None):
        options.note(line)
    # The user's maps come last, because they take precedence over recognised columns.
    return replace(options, maps={**table.maps, **options.maps}, taken=table)


def import_each(
    store: Store,
    paths: Sequence[Path],
    info: ImportInfo,
    skip_bad: bool,
    read_rows: Callable[[Path, Bad], Iterator[T]],
    add: Callable[[Store, Iterable[T], ImportInfo, list[BadInput], Bad], ImportReport],
) -> Iterator[tuple[Path, ImportReport]]:
    """Import files with answers or rankings, each file in one transaction.

    `read_rows` reads the rows, and `add` stores them. Raises UsageError if a path is not a file, and BadInput
    for the first bad row unless `skip_bad` is set.
    """
    for path in paths:
        check_file(path)
        skipped, bad = skipping(skip_bad)
        file_info = replace(info, files={str(path): file_sha(path)})
        yield path, add(store, read_rows(path, bad), file_info, skipped, bad)


def skipping(skip_bad: bool) -> tuple[list[BadInput], Bad]:
    """Return a list for the errors of skipped rows, and a callback for the error of a bad row.

    If `skip_bad` is set, the callback appends each error to the list. Otherwise it raises the first error.
    """
    skipped: list[BadInput] = []

    def bad(error: BadInput) -> None:
        if not skip_bad:
            raise error
        skipped.append(error)

    return skipped, bad


def import_rows(
    db: Path,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    options: Options,
    skip_bad: bool,
    columns: Sequence[str] | None = None,
) -> ImportReport:
    """Import rows in one transaction. If a row is bad, nothing is stored unless `skip_bad` is set.

    `columns` contains the names of a table's columns, or is None for objects. Raises BadInput for a bad row,
    with `name` as the path and the row's number (from 1) as the line. Raises UsageError if a map names a path
    that no row has.
    """
    # The rows are needed twice, because they are hashed before they are stored.
    kept = list(rows)
    skipped, bad = skipping(skip_bad)
    options = understood(Path(name), kept[:LOOKED_AT], options)
    info = ImportInfo(FORMAT, {name: _sha256(kept)}, options.dataset, options.maps, options.label_maps)
    with Store.open(db) as store:
        items = _items(name, kept, options, bad, columns)
        return add_items(store, items, info, skipped, bad, options.correct)


def _items(
    name: str, rows: list[Mapping[str, Any]], options: Options, bad: Bad, columns: Sequence[str] | None
) -> Iterator[Row]:
    path = Path(name)
    reader = RowReader(path, options, is_csv=columns is not None)
    try:
        check_names(columns or ())
        if columns is not None:
            reader.check_columns(dict.fromkeys(columns), all_rows=True)
    except BadInput as problem:
        raise add_place(problem, path, 0) from None
    if not rows:
        bad(BadInput("there are no rows", path=name))

    def numbered() -> Iterator[tuple[int, Any]]:
        for number, row in enumerate(rows, 1):
            try:
                check_names(row)
            except BadInput as problem:
                bad(add_place(problem, path, number))
                continue
            yield number, dict(row)

    yield from build_each(Records(path, "line", numbered()), reader.items, bad)
    reader.finish()


def check_names(names: Iterable[Any], table: str = "") -> None:
    """Raise BadInput if a column has no name, a name that is not a string, or a name that occurs twice."""
    # A DataFrame may have two columns with the same name, or names that are not strings.
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        if not isinstance(name, str) or not name.strip():
            raise BadInput(f"the name of column {place} is not a string: {name!r}", path=table)
        if name in seen:
            raise BadInput("two columns have this name", path=table, field=name)
        seen.add(name)


def _sha256(rows: list[Mapping[str, Any]]) -> str:
    """Return the hash of the rows.

    They are written as JSON first, so equal data have equal hashes, whatever their source.
    """
    digest = hashlib.sha256()
    for row in rows:
        # Values that JSON cannot represent, such as dates, are written as text, which is sufficient for a
        # hash.
        digest.update(json.dumps(dict(row), default=str, skipkeys=True).encode("utf-8", "replace") + b"\n")
    return digest.hexdigest()
