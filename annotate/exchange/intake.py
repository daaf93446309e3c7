"""Responses into a study: checked one by one, stored in one transaction, the second time nothing.

With a batch they become events of its log, as if the person had sat down at the terminal; without one
they are rows of `labels` and nothing else (no times, notes, evidence or skips).
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import replace

from ulid import ULID

from annotate.desk import batch_info
from annotate.events import ASSISTED, UNDECLARED
from annotate.exchange.checks import Checks
from annotate.exchange.log import BatchLog
from annotate.exchange.responses import Response
from annotate.exchange.taken import Intake, Taken, conflict, ensure_person, kind_of
from judge.errors import BadInput, StudyError, UsageError
from judge.prompts.load import Task
from judge.store import Store
from judge.store.study import dumps, now

__all__ = ["Intake", "Taken", "take"]


def take(
    store: Store,
    responses: Iterable[Response],
    how: Intake,
    bad: Callable[[BadInput], None],
    *,
    batch: str | None = None,
    task: Task | None = None,
) -> Taken:
    """Store the responses, all or nothing; `bad` gets what cannot be used and raises, or lets it be left out.

    Raises StudyError for a closed batch or one that somebody has open as one of these annotators.
    """
    done = Taken()
    info = batch_info(store, batch) if batch else None
    if info and info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: its labels stand as they are")
    if info and info.packed_for:
        raise UsageError(f"batch '{batch}' is a packed one: import into the study it was packed from")
    checks = Checks(store, info.task if info else task, how.labels, derived=info is None)
    with ExitStack() as locks, store.transaction() as conn:
        inside: BatchLog | _Labels = (
            BatchLog(store, conn, info, how, done, locks) if info else _Labels(conn, how, done)
        )
        for response in responses:
            named = replace(response, annotator=how.people.get(response.annotator, response.annotator))
            try:
                inside.take(checks.checked(named))
            except BadInput as e:
                where = response.where
                bad(e if e.path else BadInput(e.reason, path=where.path, line=where.line, field=e.field))
        inside.finish()
        if done.changed:
            _remember(conn, how, batch, done, inside.sessions)
    return done


def _remember(
    conn: sqlite3.Connection, how: Intake, batch: str | None, done: Taken, sessions: list[str]
) -> None:
    files = []
    for path in how.files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
        files.append({"path": str(path), "sha256": digest})
    kinds = list(done.blind)
    blind = how.blind or (kinds[0] if len(kinds) == 1 else "mixed" if kinds else UNDECLARED)
    counts = {
        "labels": sum(done.new.values()),
        **{k: getattr(done, k) for k in ("replaced", "skips", "spans", "notes", "flags")},
    }
    counts |= {"blindness": dict(done.blind), "units": len(done.units)}
    conn.execute(
        "INSERT INTO label_imports VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [str(ULID()), how.format, batch, blind, dumps(files), dumps(sessions), dumps(counts), now()],
    )


class _Labels:
    """Labels of a study without a batch."""

    def __init__(self, conn: sqlite3.Connection, how: Intake, done: Taken) -> None:
        self._conn, self._how, self._done = conn, how, done
        self.sessions: list[str] = []

    def take(self, response: Response) -> None:
        done = self._done
        for what, there in (("skips", response.skipped), ("spans", response.spans), ("notes", response.note),
                            ("flags", response.flag)):  # fmt: skip
            if there:
                done.left_out[what] += 1
        rows = []
        kinds: Counter[str] = Counter()
        for name, value in response.answers.items():
            key = [response.unit, name, response.annotator]
            known = dict(
                self._conn.execute(
                    "SELECT layer, value FROM labels WHERE unit_id = ? AND field = ? AND annotator_id = ? AND repeat = ? "
                    "AND layer <> 'revised'",
                    [*key, response.repeat],
                ).fetchall()
            )
            if value in known.values():
                done.unchanged += 1
            elif known:
                raise conflict(response, name, next(iter(known.values())), value)
            else:
                kind = kind_of(response, name, self._how)
                kinds[kind] += 1
                rows.append([*key, ASSISTED if kind == "assisted" else "first", response.repeat, value])
        if rows:
            ensure_person(self._conn, response)
        self._conn.executemany(
            "INSERT INTO labels (unit_id, field, annotator_id, layer, repeat, value) VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
        if rows:
            done.new[response.annotator] += len(rows)
            done.blind += kinds
        if response.answers:
            done.units.add(response.unit)

    def finish(self) -> None:
        """Nothing is left to do."""
