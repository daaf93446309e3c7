"""Runs: the one of a task, model and options, and judgements in, several to a commit."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ulid import ULID

from judge.errors import TaskError
from judge.prompts.load import Task
from judge.store.study import Store, canonical, dumps, insert_rows, now
from judge.types import Answered, Json, Judgement, LabelDistribution, Status


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """A request as stored: everything constant by hash, the unit's own text re-renderable from the item."""

    request_sha: str
    model: str
    base_url: str | None
    prefix: str
    schema: str | None
    unit_sha: str
    parameters: str
    repeat: int


def keep_task(conn: sqlite3.Connection, task: Task) -> None:
    """Store the task's text once. Raises TaskError when the study knows this version with other text."""
    found = conn.execute("SELECT sha256 FROM tasks WHERE task = ?", [task.name]).fetchone()
    if found is None:
        conn.execute(
            "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, ?)",
            [
                task.name,
                task.task_id,
                task.version,
                task.sha256,
                dumps(task.spec.model_dump(mode="json", by_alias=True)),
                task.text,
            ],
        )
    elif found[0] != task.sha256:
        raise TaskError(
            f"{task.path or task.name}: this study has used {task.name} with another text; save the changed "
            f"file as {task.task_id}.v{task.version + 1}.md"
        )


def start_run(
    store: Store, task: Task, model: str, options: Mapping[str, Json], provider: Mapping[str, Json]
) -> tuple[str, bool]:
    """The run of this task, model and options: the one the study has, else a new one.

    Returns its id and whether it was there before.
    """
    identity = canonical(dict(options))
    with store.transaction() as conn:
        keep_task(conn, task)
        found = conn.execute(
            "SELECT run_id FROM runs WHERE task = ? AND model = ? AND options = ?",
            [task.name, model, identity],
        ).fetchone()
        if found:
            conn.execute("UPDATE runs SET finished = NULL WHERE run_id = ?", [found[0]])
            return str(found[0]), True
        run_id = str(ULID())
        conn.execute(
            "INSERT INTO annotators VALUES (?, 'judge', ?)",
            [run_id, dumps({"model": model, "task": task.name})],
        )
        conn.execute(
            "INSERT INTO runs VALUES (?, ?, ?, NULL, ?, ?, ?, NULL)",
            [run_id, task.name, model, identity, dumps(dict(provider)), now()],
        )
    return run_id, False


def close_run(store: Store, run_id: str, *, finished: bool) -> None:
    """Note the model name that most replies carried, and the time when the run came to its end."""
    with store.transaction() as conn:
        conn.execute(
            "UPDATE runs SET finished = ?1, resolved_model = (SELECT resolved_model FROM judgements WHERE "
            "run_id = ?2 AND resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1) "
            "WHERE run_id = ?2",
            [now() if finished else None, run_id],
        )


@dataclass(frozen=True, slots=True)
class Known:
    """What an identical request has brought before."""

    status: Status
    reason: str | None
    reply: str | None
    resolved_model: str | None
    labels: tuple[Answered, ...]


def known_requests(conn: sqlite3.Connection, shas: Sequence[str]) -> set[str]:
    """Those of these requests that have been sent before."""
    marks = ",".join("?" * len(shas))
    query = f"SELECT request_sha FROM requests WHERE request_sha IN ({marks})"
    return {row[0] for row in conn.execute(query, shas)}


def find_known(conn: sqlite3.Connection, request_sha: str, *, labelled: bool = False) -> Known | None:
    """How a unit stands that this very request was sent for, after a repair if there was one.

    None when it was never sent or never answered; `labelled` accepts only an answer with labels.
    """
    row = conn.execute(
        """
        SELECT k.status, k.reason, k.reply, k.resolved_model, k.run_id, k.unit_id, k.repeat
        FROM requests AS r JOIN latest_judgements AS k USING (run_id, unit_id, repeat)
        WHERE r.request_sha = ? AND k.status <> 'failed'
        """,
        [request_sha],
    ).fetchone()
    if row is None or (labelled and row[0] != Status.OK):
        return None
    status, reason, reply, resolved_model, *of_unit = row
    found = conn.execute(
        "SELECT field, value, distribution, rationale FROM labels WHERE annotator_id = ? AND unit_id = ? "
        "AND repeat = ? AND layer = 'first' AND derived_from IS NULL",
        of_unit,
    )
    labels = tuple(Answered(field, value, _distribution(d), why) for field, value, d, why in found)
    return Known(Status(status), reason, reply, resolved_model, labels if status == Status.OK else ())


def _distribution(stored: str | None) -> LabelDistribution | None:
    if stored is None:
        return None
    masses = json.loads(stored)
    unassigned = masses.pop("unassigned")
    return LabelDistribution(masses, unassigned)


@dataclass(frozen=True, slots=True)
class Entry:
    """One judgement with the request it rests on; `reused` marks the answer of an identical request."""

    judgement: Judgement
    request: RequestRecord | None
    reused: bool = False


def add_judgements(conn: sqlite3.Connection, entries: Sequence[Entry], seen: set[str]) -> None:
    """Write judgements, their labels, requests and prompts inside the caller's transaction.

    `seen` remembers the hashes of prompts already stored, so that they are hashed and sent once.
    """
    stamp = now()
    for text in {t for e in entries if e.request for t in (e.request.prefix, e.request.schema) if t} - seen:
        conn.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", [_sha(text), text])
        seen.add(text)
    insert_rows(conn, _REQUESTS, [_request_row(e) for e in entries if e.request and not e.reused])
    insert_rows(conn, _JUDGEMENTS, [_judgement_row(e, stamp) for e in entries])
    insert_rows(conn, _LABELS, list(_label_rows(e.judgement for e in entries)))


# A request that is sent again stands for the later unit, unless that one got no answer.
_REQUESTS = (
    "INSERT INTO requests VALUES ? ON CONFLICT (request_sha) DO UPDATE SET run_id = excluded.run_id, "
    "unit_id = excluded.unit_id WHERE excluded.unit_id IS NOT NULL"
)
_JUDGEMENTS = "INSERT INTO judgements VALUES ?"
_LABELS = (
    "INSERT OR REPLACE INTO labels (unit_id, field, annotator_id, repeat, value, distribution, rationale, "
    "derived_from) VALUES ?"
)


def _request_row(entry: Entry) -> tuple[Json, ...]:
    r, j = entry.request, entry.judgement
    assert r is not None
    schema = None if r.schema is None else _sha(r.schema)
    of_unit = (None, None) if j.status is Status.FAILED else (j.run_id, j.unit_id)
    own = (r.request_sha, r.model, r.base_url, _sha(r.prefix), schema, r.unit_sha, r.parameters, r.repeat)
    return own + of_unit


def _judgement_row(entry: Entry, stamp: str) -> tuple[Json, ...]:
    j = entry.judgement
    return (
        j.run_id,
        j.unit_id,
        j.repeat,
        j.attempt,
        str(j.status),
        _storable(j.reply),
        _storable(j.reason),
        j.usage.input_tokens,
        j.usage.output_tokens,
        j.usage.cached_tokens,
        j.latency,
        j.resolved_model,
        j.request_sha,
        int(entry.reused),
        stamp,
    )


def _label_rows(judgements: Iterable[Judgement]) -> Iterator[tuple[Json, ...]]:
    for j in judgements:
        if j.status is not Status.OK:
            continue
        for a in j.labels:
            d = a.distribution
            stored = None if d is None else dumps({**d.probabilities, "unassigned": d.unassigned})
            value, why = _storable(a.value), _storable(a.rationale)
            yield (j.unit_id, a.field, j.run_id, j.repeat, value, stored, why, a.derived_from)


def _storable(text: str | None) -> str | None:
    """A model's text without half surrogate pairs (JSON escapes can hold them), which SQLite refuses."""
    return text if text is None or text.isascii() else text.encode("utf-8", "replace").decode()


_SHAS: dict[str, str] = {}


def _sha(text: str) -> str:
    # A run has one or two of these texts and thousands of requests that name them.
    if text not in _SHAS:
        if len(_SHAS) > 100:
            _SHAS.clear()
        _SHAS[text] = hashlib.sha256(text.encode()).hexdigest()
    return _SHAS[text]
