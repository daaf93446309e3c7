"""The quarantine: imported labels that lack proof of their text, unit or annotator.

Each record has a reason, and waits until a lead accepts or drops it.

Records in the quarantine are not used in any result.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.store import Store
from judge.store.listing import dicts
from judge.store.study import dumps, get_time
from judge.types import Json, Where

# If the text was in doubt, a corrected text in a later import proves nothing: nobody can tell which text the annotator saw.
LASTING = ("text", "conflict")
"""The codes of problems that a later import of the same record cannot resolve."""
KEPT = ("unit", "annotator", "answers", "spans", "skipped", "flag", "note", "seconds", "at", "blind", "repeat",
        "layers", "source")  # fmt: skip
"""The attributes of a response that a record stores. The other attributes come from the study."""
IF_SET: dict[str, Any] = {"edited_by": None, "revised": {}, "role": "sample"}
"""More such attributes with their defaults. A default is left out, because the ids of older records lack it."""


def record_of(batch: str | None, form: str, response: Response) -> str:
    """Return the id of a record: a hash of its content and origin."""
    # The id depends on the content, so that importing the same file twice does not list a record twice. How names are
    # mapped is an option of the import, and not part of the content.
    payload = _payload(response)
    if response.user:
        payload |= {"annotator": response.user} | {n: True for n in ("edited_by",) if n in payload}
    parts = [batch, form, response.source, payload]
    return hashlib.sha256(dumps(parts).encode()).hexdigest()[:32]


def code_of(error: BadInput) -> str:
    """Return the code of a problem: what is in doubt or, for a record that is malformed, the field."""
    return error.code if isinstance(error, Unproven) else error.field or "record"


def add(
    conn: sqlite3.Connection, batch: str | None, form: str, response: Response | None, error: BadInput
) -> str:
    """Add a record to the quarantine unless it is already listed, inside the caller's transaction. Return its id.

    `response` is None for a record that could not be parsed.
    """
    place = f"{error.path}:{error.line}" if error.line else error.path
    reason = (
        f"{error.field}: {error.reason}" if error.field and not isinstance(error, Unproven) else error.reason
    )
    if response is None:
        # An unreadable record has no content, so its place and its error identify it.
        record = hashlib.sha256(_clean(dumps([batch, form, str(error)])).encode()).hexdigest()[:32]
        who = unit = ""
        payload = None
    else:
        record, payload = record_of(batch, form, response), dumps(_payload(response))
        who, unit = response.annotator, response.unit
    add_row(conn, record, batch, form, (place, who, unit), code_of(error), reason, payload)
    return record


def add_row(
    conn: sqlite3.Connection,
    record: str,
    batch: str | None,
    form: str,
    about: tuple[str, str, str],
    code: str,
    reason: str,
    payload: str | None,
) -> None:
    """Add the row of a record. A listed record that is still open gets the new annotator and problem. `about` contains the record's place in the file, its
    annotator and its unit.
    """
    # Names, units and reasons quote a foreign file, which may contain lone surrogates that SQLite rejects.
    values = [*map(_clean, about), code, _clean(reason), payload, get_time()]
    conn.execute(
        # If names are mapped differently now, the record may have another annotator and another problem.
        "INSERT INTO quarantine (record, batch, format, place, annotator, unit, code, reason, response, found_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (record) DO UPDATE SET annotator = excluded.annotator, "
        "code = excluded.code, reason = excluded.reason, response = excluded.response WHERE status = 'open'",
        [record, batch, form, *values],
    )


def status_of(conn: sqlite3.Connection, batch: str | None, form: str, response: Response) -> str | None:
    """Return the quarantine status of a response, or None if the response must be checked.

    A response need not be checked if a lead has already accepted or dropped its record, or if only a lead can
    resolve the problem.
    """
    # The id of a server's record (`source`) and its time also identify it, in case its content is now read
    # differently.
    row = conn.execute(
        "SELECT status, code FROM quarantine WHERE record = ? OR (? <> '' AND json_extract(response, '$.source') = ? "
        "AND json_extract(response, '$.at') = ?) ORDER BY status = 'settled', status = 'open'",
        [record_of(batch, form, response), response.source, response.source, response.at],
    ).fetchone()
    if row is None or (row[0] == "open" and row[1] not in LASTING) or row[0] == "settled":
        return None
    return str(row[0])


def rename(conn: sqlite3.Connection, batch: str | None, form: str, response: Response) -> None:
    """Give the open record of a response the annotator to whom the names of this import map it."""
    conn.execute(
        "UPDATE quarantine SET annotator = ?1, response = json_set(response, '$.annotator', ?1) "
        "WHERE record = ?2 AND status = 'open' AND annotator <> ?1",
        [response.annotator, record_of(batch, form, response)],
    )


def was_edited(conn: sqlite3.Connection, response: Response) -> bool:
    """Return whether a quarantined version of a server's record was edited by somebody else.

    The annotator has seen this edit, so a label that the annotator gave again in the same record is not blind.
    """
    query = "SELECT 1 FROM quarantine WHERE code = 'editor' AND annotator = ? AND ? <> '' AND json_extract(response, '$.source') = ?"
    return conn.execute(query, [response.annotator, response.source, response.source]).fetchone() is not None


def close_proved(conn: sqlite3.Connection, batch: str | None, form: str, response: Response) -> None:
    """Close the open quarantine record of a response, because a later import has stored the response."""
    conn.execute(
        "UPDATE quarantine SET status = 'settled', decided_at = ? WHERE status = 'open' AND batch IS ? AND format = ? "
        "AND (record = ? OR (place = ? AND ? <> '') OR (json_extract(response, '$.source') = ? AND ? <> ''))",
        [get_time(), batch, form, record_of(batch, form, response), response.where.path, response.source,
         response.source, response.source],
    )  # fmt: skip


def listing(store: Store, batch: str | None = None, status: str | None = "open") -> list[dict[str, Json]]:
    """Return one row per record with this batch and status, oldest first. None means any batch or status."""
    query = (
        "SELECT quarantine_id AS id, batch, format, place, annotator, unit, code, reason, status, found_at, decided_at, "
        "note, response IS NOT NULL AS readable FROM quarantine WHERE (? IS NULL OR batch = ?) AND (? IS NULL OR status = ?) "
        "ORDER BY quarantine_id"
    )
    rows = list(dicts(store.conn, query, [batch, batch, status, status]))
    for row in rows:
        row["readable"] = bool(row["readable"])
    return rows


def drop(store: Store, numbers: Sequence[int], note: str | None = None) -> int:
    """Reject records permanently, and return their number. Raises UsageError for a record that is not open."""
    with store.transaction() as conn:
        for number in numbers:
            open_record(conn, number)
            decide(conn, number, "dropped", note)
    return len(numbers)


def open_record(conn: sqlite3.Connection, number: int) -> dict[str, Any]:
    """Return the row of an open record with its parsed `response` (None if unreadable). Raises UsageError if
    the record is not open.
    """
    record = next(dicts(conn, "SELECT * FROM quarantine WHERE quarantine_id = ?", [number]), None)
    if record is None:
        raise UsageError(
            f"there is no record {number} in the quarantine; to list the records: {command('annotate quarantine list')}"
        )
    if record["status"] != "open":
        raise UsageError(f"record {number} in the quarantine is already {record['status']}")
    return record | {"response": json.loads(record["response"]) if record["response"] else None}


def decide(conn: sqlite3.Connection, number: int, status: str, note: str | None) -> None:
    """Store a lead's decision on a record, with the lead's note."""
    conn.execute(
        "UPDATE quarantine SET status = ?, decided_at = ?, note = ? WHERE quarantine_id = ?",
        [status, get_time(), note, number],
    )


def _payload(response: Response) -> dict[str, Json]:
    values = asdict(response)
    payload = {
        name: value
        for name, value in values.items()
        if name in KEPT or values[name] != IF_SET.get(name, value)
    }
    return json.loads(_clean(json.dumps(payload, sort_keys=True, ensure_ascii=False)))  # type: ignore[no-any-return]


def response_of(payload: dict[str, Any], number: int) -> Response:
    """Return the response that the record with this number stores."""
    spans = payload["spans"]
    spans = None if spans is None else [(n, a, b) for n, a, b in spans]
    return Response(**{**payload, "spans": spans, "where": Where(f"quarantine {number}", 0)})


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()
