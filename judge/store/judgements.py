"""Write judgements with their requests and labels, and look judgements up by request.

Each commit contains many judgements.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from judge.store import label_rows
from judge.store.study import dumps, get_time, insert_rows
from judge.types import Answered, Json, Judgement, LabelDistribution, Status


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A stored request. Parts that many requests share are stored once, by hash.

    The unit's text is not stored, because it can be rendered again from the item.
    """

    request_sha: str
    model: str
    prefix: str
    schema: str | None
    unit_sha: str
    parameters: str
    repeat: int


@dataclass(frozen=True, slots=True)
class Known:
    """The stored result of an earlier, identical request."""

    status: Status
    reason: str | None
    reply: str | None
    resolved_model: str | None
    labels: tuple[Answered, ...]
    system_fingerprint: str | None = None


def find_known_requests(conn: sqlite3.Connection, shas: Sequence[str]) -> set[str]:
    """Return those of the given requests that were sent before."""
    marks = ",".join("?" * len(shas))
    query = f"SELECT request_sha FROM requests WHERE request_sha IN ({marks})"
    return {row[0] for row in conn.execute(query, shas)}


def find_known(
    conn: sqlite3.Connection, request_sha: str, *, labelled: bool = False, limit: int = 0
) -> Known | None:
    """Return the stored result of an identical request. If the reply was repaired, this is the repaired
    result.

    Return None if the request was never answered, or if its reply was truncated at a lower token limit than
    `limit`. With `labelled`, also return None if the reply has no labels.
    """
    row = conn.execute(
        """
        SELECT k.status, k.reason, k.reply, k.resolved_model, k.max_output_tokens,
               k.outside_mass, k.system_fingerprint, k.run_id, k.unit_id, k.repeat
        FROM requests AS r JOIN latest_judgements AS k USING (run_id, unit_id, repeat)
        WHERE r.request_sha = ? AND k.status <> 'failed'
        """,
        [request_sha],
    ).fetchone()
    if row is None or (labelled and row[0] != Status.OK):
        return None
    status, reason, reply, resolved_model, cut_at, outside, fingerprint, *of_unit = row
    # With a higher limit, the same request may get a complete reply.
    if status == Status.TRUNCATED and limit > (cut_at or 0):
        return None
    rows = label_rows.make_label_rows(conn, *of_unit)
    labels = tuple(Answered(field, value, _distribution(d, outside), why) for field, value, d, why in rows)
    given = labels if status == Status.OK else ()
    return Known(Status(status), reason, reply, resolved_model, given, fingerprint)


def _distribution(stored: str | None, outside: float | None) -> LabelDistribution | None:
    if stored is None:
        return None
    masses = json.loads(stored)
    unassigned = masses.pop("unassigned")
    return LabelDistribution(masses, unassigned, outside)


@dataclass(frozen=True, slots=True)
class Entry:
    """A judgement with its request. `reused` says whether the reply was taken from an earlier, identical
    request.
    """

    judgement: Judgement
    request: RequestRecord | None
    reused: bool = False


def add_judgements(conn: sqlite3.Connection, entries: Sequence[Entry], seen: set[str]) -> None:
    """Write judgements, their labels, requests and prompts inside the caller's transaction.

    `seen` collects the prompts that are already stored, so that each prompt is hashed and inserted only once.
    """
    stamp = get_time()
    _add_prompts(conn, (e.request for e in entries if e.request), seen)
    insert_rows(
        conn,
        _REQUESTS,
        [_request_row(e.request, _get_unit_columns(e)) for e in entries if e.request and not e.reused],
    )
    insert_rows(conn, _JUDGEMENTS, [_judgement_row(e, stamp) for e in entries])
    insert_rows(conn, label_rows.JUDGED, list(_label_rows(e.judgement for e in entries)))


def add_requests(conn: sqlite3.Connection, records: Sequence[RequestRecord], seen: set[str]) -> None:
    """Write requests and their prompts inside the caller's transaction, before the requests are sent.

    The requests are not linked to units until they are answered. For `seen`, see `add_judgements`.
    """
    _add_prompts(conn, records, seen)
    insert_rows(conn, _REQUESTS, [_request_row(record, (None, None)) for record in records])


def _add_prompts(conn: sqlite3.Connection, records: Iterable[RequestRecord], seen: set[str]) -> None:
    for text in {t for r in records for t in (r.prefix, r.schema) if t} - seen:
        conn.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", [_sha(text), text])
        seen.add(text)


# If the same request is sent again for another unit, it belongs to that unit, unless it was not answered.
_REQUESTS = (
    "INSERT INTO requests VALUES ? ON CONFLICT (request_sha) DO UPDATE SET run_id = excluded.run_id, "
    "unit_id = excluded.unit_id WHERE excluded.unit_id IS NOT NULL"
)
_JUDGEMENTS = "INSERT INTO judgements VALUES ?"


def _get_unit_columns(entry: Entry) -> tuple[str | None, str | None]:
    # A failed request has no reply that an identical request could reuse.
    j = entry.judgement
    return (None, None) if j.status is Status.FAILED else (j.run_id, j.unit_id)


def _request_row(r: RequestRecord, of_unit: tuple[str | None, str | None]) -> tuple[Json, ...]:
    schema = None if r.schema is None else _sha(r.schema)
    # The unit's text is None here, because it can be rendered from the item.
    columns = (r.request_sha, r.model, None, _sha(r.prefix), schema, r.unit_sha, r.parameters, r.repeat)
    return columns + of_unit


def _judgement_row(entry: Entry, stamp: str) -> tuple[Json, ...]:
    j = entry.judgement
    return (
        j.run_id,
        j.unit_id,
        j.repeat,
        j.attempt,
        str(j.status),
        storable(j.reply),
        storable(j.reason),
        j.usage.input_tokens,
        j.usage.output_tokens,
        j.usage.cached_tokens,
        j.latency,
        j.resolved_model,
        j.request_sha,
        int(entry.reused),
        stamp,
        j.base_url,
        j.max_output_tokens,
        j.timeout,
        j.cost,
        next((a.distribution.outside for a in j.labels if a.distribution is not None), None),
        j.usage.cost,
        storable(j.system_fingerprint),
    )


def _label_rows(judgements: Iterable[Judgement]) -> Iterator[tuple[Json, ...]]:
    for j in judgements:
        if j.status is not Status.OK:
            continue
        for a in j.labels:
            d = a.distribution
            stored = None if d is None else dumps({**d.probabilities, "unassigned": d.unassigned})
            value, reason = storable(a.value), storable(a.rationale)
            yield (j.unit_id, a.field, j.run_id, j.repeat, value, stored, reason, a.derived_from)


def storable(text: str | None) -> str | None:
    """Replace lone surrogates, which SQLite cannot store. They can come from JSON escapes in a model's reply."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


_SHAS: dict[str, str] = {}


def _sha(text: str) -> str:
    # A run has thousands of requests, which share one or two of these texts.
    if text not in _SHAS:
        if len(_SHAS) > 100:
            _SHAS.clear()
        _SHAS[text] = hashlib.sha256(text.encode()).hexdigest()
    return _SHAS[text]
