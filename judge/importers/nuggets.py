"""Read nuggets of questions, with assignments if the file has them, for `judge nuggets import`. This is not
an item format.

JSON Lines as the package `nuggetizer` writes them (castorini/nuggetizer), before and after the assignment:

    {"qid": "q1", "query": "...", "nuggets": [{"text": "...", "importance": "vital"}]}
    {"qid": "q1", "run_id": "system", "answer_text": "...",
     "nuggets": [{"text": "...", "importance": "okay", "assignment": "partial_support"}]}

A table (CSV) has one row per nugget, or per nugget and system: id (or qid), nugget, importance, and, where answers were
assigned, system (or run_id) and assignment.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from judge.errors import BadInput
from judge.importers import fields
from judge.importers.base import Bad
from judge.importers.records import Records, placed, table_or_json
from judge.store.nuggets import NuggetRow
from judge.types import Where

IDS = ("id", "qid", "question_id")
SYSTEMS = ("system", "run_id")


def read_nuggets(path: Path, bad: Bad) -> Iterator[NuggetRow]:
    """Yield the nuggets in one file, in order."""
    records, _ = table_or_json(path, bad, ("nugget", "importance"))
    yield from of_records(records, bad)


def of_records(records: Records, bad: Bad) -> Iterator[NuggetRow]:
    """Yield the nuggets in `nuggetizer` records (which have a list `nuggets`) or in table rows."""
    for number, record in records.rows:
        where = Where(str(records.path), number)
        try:
            row = fields.record(record)
            nuggets = [_nugget(row, row, where)] if "nugget" in row else _of_record(row, where)
        except BadInput as error:
            bad(placed(error, records.path, number, records.word))
            continue
        yield from nuggets


def _of_record(row: Mapping[str, Any], where: Where) -> list[NuggetRow]:
    """Return the nuggets in a `nuggetizer` record. Raises BadInput if it has no nuggets or the same nugget twice."""
    rows = []
    for place, entry in enumerate(fields.listing(row.get("nuggets"), "nuggets")):
        nugget = fields.mapping(entry, f"nuggets.{place}")
        try:
            rows.append(_nugget(row, {**nugget, "nugget": nugget.get("text")}, where))
        except BadInput as error:
            inside = error.field in ("nugget", "importance", "assignment")
            # A table calls it nugget, and a record text: the error names the file's own key.
            field = {"nugget": "text"}.get(error.field, error.field)
            raise BadInput(error.reason, field=f"nuggets.{place}.{field}" if inside else field) from None
    if not rows:
        raise BadInput("no nuggets", field="nuggets")
    # Two equal nuggets would count twice in every score of the question.
    texts = [row.text for row in rows]
    if twice := [text for text in texts if texts.count(text) > 1]:
        raise BadInput(f"the nugget '{twice[0]}' occurs twice", field="nuggets")
    return rows


def _nugget(row: Mapping[str, Any], nugget: Mapping[str, Any], where: Where) -> NuggetRow:
    """Return one nugget; `row` names the question and the system."""
    return NuggetRow(
        item=fields.identifier(_first(row, IDS), "id"),
        text=fields.required(nugget.get("nugget"), "nugget").strip(),
        importance=fields.required(nugget.get("importance"), "importance").strip(),
        where=where,
        system=fields.word(_first(row, SYSTEMS), "system"),
        assignment=fields.word(nugget.get("assignment"), "assignment"),
        # With its text, it can be checked that the assignments are of the stored answer.
        answer=row.get("answer_text") if isinstance(row.get("answer_text"), str) else None,
    )


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)
