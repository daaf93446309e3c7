"""Read nuggets, and their assignments if the file has any, for `judge nuggets import`.

`judge items import` does not accept this format.

The file may be JSON Lines from the package `nuggetizer` (castorini/nuggetizer), written before or after the
assignment step:

    {"qid": "q1", "query": "...", "nuggets": [{"text": "...", "importance": "vital"}]}
    {"qid": "q1", "run_id": "system", "answer_text": "...",
     "nuggets": [{"text": "...", "importance": "okay", "assignment": "partial_support"}]}

It may also be a table (CSV) with one row per nugget, or one row per nugget and system. The columns are id (or
qid), nugget and importance and, if there are assignments, system (or run_id) and assignment.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.files import find_duplicate
from judge.importers import fields
from judge.importers.base import Bad
from judge.importers.records import Records, add_place, table_or_json
from judge.store.nuggets import NuggetRow
from judge.types import Where

IDS = ("id", "qid", "question_id")
SYSTEMS = ("system", "run_id")


def read_nuggets(path: Path, bad: Bad) -> Iterator[NuggetRow]:
    """Yield the nuggets in a file, in order."""
    records, _ = table_or_json(path, bad, ("nugget", "importance"))
    yield from read_records(records, bad)


def read_records(records: Records, bad: Bad) -> Iterator[NuggetRow]:
    """Yield the nuggets in records.

    A record from `nuggetizer` has a list `nuggets`. A table row has a single nugget.
    """
    for number, record in records.rows:
        where = Where(str(records.path), number)
        try:
            row = fields.record(record)
            nuggets = [_nugget(row, row, where)] if "nugget" in row else _read_record(row, where)
        except BadInput as error:
            bad(add_place(error, records.path, number, records.word))
            continue
        yield from nuggets


def _read_record(row: Mapping[str, Any], where: Where) -> list[NuggetRow]:
    """Return the nuggets in a record from `nuggetizer`.

    Raises BadInput if there are no nuggets, or if two nuggets are equal.
    """
    rows = []
    for place, entry in enumerate(fields.listing(row.get("nuggets"), "nuggets")):
        nugget = fields.mapping(entry, f"nuggets.{place}")
        try:
            rows.append(_nugget(row, {**nugget, "nugget": nugget.get("text")}, where))
        except BadInput as error:
            inside = error.field in ("nugget", "importance", "assignment")
            # The text has the key "nugget" in a table and "text" in a record. The error must name the key in
            # the file.
            field = {"nugget": "text"}.get(error.field, error.field)
            raise BadInput(error.reason, field=f"nuggets.{place}.{field}" if inside else field) from None
    if not rows:
        raise BadInput("no nuggets", field="nuggets")
    # Two equal nuggets would count twice in every score of the question.
    texts = [row.text for row in rows]
    if (twice := find_duplicate(texts)) is not None:
        raise BadInput(f"the nugget '{twice}' occurs twice", field="nuggets")
    return rows


def _nugget(row: Mapping[str, Any], nugget: Mapping[str, Any], where: Where) -> NuggetRow:
    """Return one nugget. `row` contains the ids of the question and the system."""
    return NuggetRow(
        item=fields.identifier(_get_first(row, IDS), "id"),
        text=fields.require_text(nugget.get("nugget"), "nugget").strip(),
        importance=fields.require_text(nugget.get("importance"), "importance").strip(),
        where=where,
        system=fields.word(_get_first(row, SYSTEMS), "system"),
        assignment=fields.word(nugget.get("assignment"), "assignment"),
        # The answer's text is used to check that the assignments are for the stored answer.
        answer=row.get("answer_text") if isinstance(row.get("answer_text"), str) else None,
    )


def _get_first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)
