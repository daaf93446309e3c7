"""Runs: which units are still to be judged, and judgements in, several to a commit."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ulid import ULID

from judge.errors import TaskError, UsageError
from judge.prompts.load import Task
from judge.store.study import Store, canonical, dumps, now
from judge.types import GOLD, Answered, Json, Judgement, LabelDistribution, Status, Unit

PAGE = 1000


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


@dataclass(frozen=True, slots=True)
class Selection:
    """Which units a run is asked for: SQL condition on `unit_texts`, first `limit`, or a seeded sample."""

    where: str | None = None
    limit: int | None = None
    sample_seed: int | None = None


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


def select(store: Store, task: Task, selection: Selection) -> tuple[int, int]:
    """Fix the units of a run in a temporary table of this connection, in order.

    Returns (units selected, units of the kind that lack an input or are examples). Raises
    UsageError when the condition is not SQL over the columns of `unit_texts`.
    """
    conn = store.conn
    conn.create_function("adjudge_shuffle", 2, _shuffle, deterministic=True)
    wanted = f"({selection.where})" if selection.where else "1"
    examples = [e.item_id for e in task.spec.examples if e.item_id]
    usable = " AND ".join(
        [f"{name} IS NOT NULL AND {name} <> ''" for name in task.required_inputs]
        + [f"item_id NOT IN ({','.join('?' * len(examples))})"]
    )
    order = (
        "n" if selection.sample_seed is None else f"adjudge_shuffle({int(selection.sample_seed)}, unit_id)"
    )
    kind = task.spec.unit
    conn.execute("DROP TABLE IF EXISTS temp.selection")
    conn.execute("CREATE TEMP TABLE selection (place INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    try:
        conn.execute(
            "INSERT INTO temp.selection (n) SELECT n FROM unit_texts "
            f"WHERE kind = ? AND {usable} AND {wanted} ORDER BY {order} LIMIT ?",
            [kind, *examples, -1 if selection.limit is None else selection.limit],
        )
        of_kind = conn.execute(
            f"SELECT count(*) FROM unit_texts WHERE kind = ? AND {wanted}", [kind]
        ).fetchone()
        fit = conn.execute(
            f"SELECT count(*) FROM unit_texts WHERE kind = ? AND {usable} AND {wanted}", [kind, *examples]
        ).fetchone()
    except sqlite3.OperationalError as e:
        columns = [c[1] for c in conn.execute("PRAGMA table_info(unit_texts)")]
        raise UsageError(f"--where {selection.where!r}: {e}; the columns are: {', '.join(columns)}") from e
    selected = conn.execute("SELECT count(*) FROM temp.selection").fetchone()[0]
    return selected, of_kind[0] - fit[0]


def _shuffle(seed: int, unit_id: str) -> bytes:
    return hashlib.sha256(f"{seed}:{unit_id}".encode()).digest()[:8]


_LATEST = """
    SELECT j.status FROM judgements AS j
    WHERE j.run_id = :run AND j.unit_id = u.unit_id AND j.repeat = :repeat ORDER BY j.attempt DESC LIMIT 1
"""


def selected_statuses(store: Store, run_id: str, repeat: int = 0) -> Counter[str]:
    """How many of the selected units ended how; units without a judgement are under `pending`."""
    query = f"""
        SELECT coalesce(({_LATEST}), 'pending') AS status, count(*)
        FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n GROUP BY 1
    """
    return Counter(dict(store.conn.execute(query, {"run": run_id, "repeat": repeat})))


def pending(
    store: Store, task: Task, run_id: str, repeat: int = 0, retry: Collection[str] = ()
) -> Iterator[Unit]:
    """The selected units that this run has not judged, page by page, in selection order.

    A unit counts as judged when its latest attempt has a status that is neither `failed` nor in
    `retry`. Memory stays at one page whatever the study's size.
    """
    again = ["pending", "failed", *retry]
    place = 0
    while True:
        page = store.conn.execute(
            f"""
            SELECT s.place, s.n, ({_LATEST}) AS status,
                   (SELECT count(*) FROM judgements AS j
                    WHERE j.run_id = :run AND j.unit_id = u.unit_id AND j.repeat = :repeat) AS attempts
            FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n
            WHERE s.place > :place ORDER BY s.place LIMIT {PAGE}
            """,
            {"run": run_id, "repeat": repeat, "place": place},
        ).fetchall()
        if not page:
            return
        place = page[-1][0]
        wanted = {n: attempts for _, n, status, attempts in page if (status or "pending") in again}
        yield from _units(store.conn, task, wanted)


def _units(conn: sqlite3.Connection, task: Task, wanted: Mapping[int, int]) -> Iterator[Unit]:
    names = task.input_names
    golds = sorted({rule.gold for rule in task.spec.derive.values() if rule.gold})
    gold_columns = "".join(
        ", (SELECT l.value FROM labels AS l WHERE l.annotator_id = ? AND l.field = ? "
        "AND l.unit_id IN (t.unit_id, t.item_id) AND l.layer = 'first' "
        "ORDER BY l.unit_id = t.unit_id DESC LIMIT 1)"
        for _ in golds
    )
    query = (
        f"SELECT t.n, t.unit_id, {', '.join('t.' + name for name in names)}{gold_columns} "
        f"FROM unit_texts AS t WHERE t.n IN ({','.join(str(int(n)) for n in wanted)})"
    )
    values = [v for gold in golds for v in (GOLD, gold)]
    rows = {row[0]: row for row in conn.execute(query, values)}
    for n, attempts in wanted.items():
        row = rows[n]
        inputs = {
            name: json.loads(v) if v is not None and name in ("reference_answers", "options") else v
            for name, v in zip(names, row[2:], strict=False)
        }
        gold_values = zip(golds, row[2 + len(names) :], strict=True)
        yield Unit(row[1], inputs, {g: v for g, v in gold_values if v is not None}, attempts)


@dataclass(frozen=True, slots=True)
class Known:
    """What an identical request has brought before."""

    reply: str
    resolved_model: str | None
    labels: tuple[Answered, ...]


def find_known(conn: sqlite3.Connection, request_sha: str) -> Known | None:
    """Reply and asked labels of a judgement that this very request has brought, None without one."""
    row = conn.execute(
        "SELECT reply, resolved_model, run_id, unit_id, repeat FROM judgements "
        "WHERE request_sha = ? AND status = 'ok' LIMIT 1",
        [request_sha],
    ).fetchone()
    if row is None:
        return None
    found = conn.execute(
        "SELECT field, value, distribution, rationale FROM labels WHERE annotator_id = ? AND unit_id = ? "
        "AND repeat = ? AND layer = 'first' AND derived_from IS NULL",
        row[2:],
    )
    labels = tuple(Answered(field, value, _distribution(d), why) for field, value, d, why in found)
    return Known(row[0], row[1], labels)


def _distribution(stored: str | None) -> LabelDistribution | None:
    if stored is None:
        return None
    masses = json.loads(stored)
    unassigned = masses.pop("unassigned")
    return LabelDistribution(masses, unassigned)


@dataclass(frozen=True, slots=True)
class Entry:
    """One judgement with the request it rests on, ready to be written.

    `reused` marks the answer of an identical request; `final` is False for an attempt that another
    attempt (a repair) follows.
    """

    judgement: Judgement
    request: RequestRecord | None
    reused: bool = False
    final: bool = True


def add_judgements(conn: sqlite3.Connection, entries: Sequence[Entry], seen: set[str]) -> None:
    """Write judgements, their labels, requests and prompts inside the caller's transaction.

    `seen` remembers the hashes of prompts already stored, so that they are hashed and sent once.
    """
    stamp = now()
    for text in {t for e in entries if e.request for t in (e.request.prefix, e.request.schema) if t} - seen:
        conn.execute("INSERT OR IGNORE INTO prompts VALUES (?, ?)", [_sha(text), text])
        seen.add(text)
    conn.executemany(
        "INSERT OR IGNORE INTO requests VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [_request_row(e.request) for e in entries if e.request and not e.reused],
    )
    conn.executemany(
        "INSERT INTO judgements VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_judgement_row(e, stamp) for e in entries],
    )
    conn.executemany(
        "INSERT OR REPLACE INTO labels (unit_id, field, annotator_id, layer, repeat, value, distribution, "
        "rationale, derived_from) VALUES (?, ?, ?, 'first', ?, ?, ?, ?, ?)",
        _label_rows(e.judgement for e in entries),
    )


def _request_row(r: RequestRecord) -> tuple[Json, ...]:
    schema = None if r.schema is None else _sha(r.schema)
    return (r.request_sha, r.model, r.base_url, _sha(r.prefix), schema, r.unit_sha, r.parameters, r.repeat)


def _judgement_row(entry: Entry, stamp: str) -> tuple[Json, ...]:
    j = entry.judgement
    return (
        j.run_id,
        j.unit_id,
        j.repeat,
        j.attempt,
        str(j.status),
        j.reply,
        j.reason,
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
            yield (j.unit_id, a.field, j.run_id, j.repeat, a.value, stored, a.rationale, a.derived_from)


_SHAS: dict[str, str] = {}


def _sha(text: str) -> str:
    # A run has one or two of these texts and thousands of requests that name them.
    if text not in _SHAS:
        if len(_SHAS) > 100:
            _SHAS.clear()
        _SHAS[text] = hashlib.sha256(text.encode()).hexdigest()
    return _SHAS[text]
