"""Rows in memory to a stored import: a table's (as CSV's, but with types) or objects (as JSONL's)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers.base import Bad, Options, Row
from judge.importers.importing import skipping
from judge.importers.mapped import RowReader
from judge.importers.records import Records, each, placed
from judge.store import Store
from judge.store.imports import ImportInfo, ImportReport
from judge.store.items import add_items

FORMAT = "python"
"""What stands as the format of such an import in the study."""


def import_rows(
    db: Path,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    options: Options,
    skip_bad: bool,
    columns: Sequence[str] | None = None,
) -> ImportReport:
    """One transaction, all rows or none unless `skip_bad`. `columns` are those of a table.

    Raises BadInput with `name` and the row's number from 1, UsageError for maps that fit nothing.
    """
    kept = list(rows)
    skipped, bad = skipping(skip_bad)
    info = ImportInfo(FORMAT, {name: _sha256(kept)}, options.dataset, options.maps, options.label_maps)
    with Store.open(db) as store:
        return add_items(store, _items(name, kept, options, bad, columns), info, skipped, bad)


def _items(
    name: str, rows: list[Mapping[str, Any]], options: Options, bad: Bad, columns: Sequence[str] | None
) -> Iterator[Row]:
    path = Path(name)
    reader = RowReader(path, options, cells=columns is not None)
    try:
        _check_names(columns or ())
        if columns is not None:
            reader.check_columns(dict.fromkeys(columns), all_rows=True)
    except BadInput as problem:
        raise placed(problem, path, 0) from None
    if not rows:
        bad(BadInput("there are no rows", path=name))

    def numbered() -> Iterator[tuple[int, Any]]:
        for number, row in enumerate(rows, 1):
            try:
                _check_names(row)
            except BadInput as problem:
                bad(placed(problem, path, number))
                continue
            yield number, dict(row)

    yield from each(Records(path, "line", numbered()), reader.items, bad)
    reader.finish()


def _check_names(names: Iterable[Any]) -> None:
    """Raises BadInput for a column without a name, of a name that is no text, or of a name that is there twice."""
    seen: set[str] = set()
    for place, name in enumerate(names, 1):
        if not isinstance(name, str) or not name.strip():
            raise BadInput(f"column {place} has no name that is text: {name!r}")
        if name in seen:
            raise BadInput("two columns have this name", field=name)
        seen.add(name)


def _sha256(rows: list[Mapping[str, Any]]) -> str:
    """Of the rows as JSON: what the same data have whichever way they came."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(dict(row), default=str, skipkeys=True).encode("utf-8", "replace") + b"\n")
    return digest.hexdigest()
