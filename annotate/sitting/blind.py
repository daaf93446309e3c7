"""The connection of a person at work: SQLite itself refuses what that person must not see.

`Blind(store, seat, task)` takes a connection of its own and leaves it with temporary views filtered to
one seat (batch and annotator) and an authorizer that lets statements reach the study through those
views only. Judgements, gold, `meta`, other people's labels, ATTACH, PRAGMA and new schema are denied.

    my_units   positions, how each stands, own answers       my_texts    the task's inputs, nothing else
    my_parts   own units that are parts of one answer        my_passages the passages that the inputs list
    my_standing  INSERT: how a position of one's own stands from now on
    my_seen    INSERT: a position of one's own was shown (for the ledger)
    my_events  own events (INSERT: one more)                 my_labels, my_clearing   INSERT: own labels, or none
    my_judge   the judge, for units locked after commit      my_key      the key of locked training units
    my_sources adjudication only: the labels to decide between, without names

Triggers take nothing from an inserted row that the person may not decide: whether the judge may be shown,
which layer a label is of and whether it is blind follow from the log and the ledger of exposures.
A view may be read only under a name that is random and known to nobody outside this module: SQLite
tells the authorizer the name of the innermost view, and a common table expression could borrow it.
The honest limit: whoever owns the file can open it with another program. `annotate batches pack`
is the separation that holds.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from annotate.sitting import views as bodies
from annotate.sitting.events import STANDING
from annotate.sitting.seat import Seat
from annotate.store import ADJUDICATED
from judge.errors import StudyError, WriteFailed
from judge.prompts.load import Task
from judge.store import Store, label_rows
from judge.store.label_rows import quoted as quote
from judge.store.study import explained

BUSY_MS = 3000
"""How long a statement waits for another program's lock, unless told otherwise."""
_FIRST_WORD = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE)\b", re.IGNORECASE)
_AS = re.compile(r"\bAS\s+", re.IGNORECASE)
_WITH = re.compile(r"\bWITH\b", re.IGNORECASE)
_HIDDEN_COLUMNS = {"meta", "correct", "polarity", "pair_id", "import_id", "content_sha"}
_TEXT_TABLES = {"items", "passages", "units", "answers", "json_each"}
_ITEM_INPUTS = {"question", "question_date", "claim", "reference_answers", "options"}
_WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
_HARMLESS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_TRANSACTION,
    sqlite3.SQLITE_SAVEPOINT,
    sqlite3.SQLITE_RECURSIVE,
}


class Busy(StudyError):
    """Another program held the study's lock; nothing was written, and the same may be tried again."""


class Blind:
    """What a screen can do with a study: `rows` and `write`, on the views above."""

    __slots__ = ("__aside", "__busy_ms", "__conn", "__path", "__waits")

    def __init__(self, store: Store, seat: Seat, task: Task, busy_ms: int | None = None) -> None:
        clone = store.clone()
        conn = clone.conn
        self.__busy_ms = BUSY_MS if busy_ms is None else int(busy_ms)
        conn.execute(f"PRAGMA busy_timeout = {self.__busy_ms}")
        conn.execute("PRAGMA temp_store = MEMORY")
        inside, public, texts = _make_views(conn, seat, task)
        self.__aside, self.__waits = [False], 0
        conn.set_authorizer(_authorizer(inside, public, texts, set(task.input_names), self.__aside))
        self.__conn, self.__path = conn, store.path

    def rows(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of one SELECT. Raises StudyError for anything that is not allowed."""
        with explained(self.__path), _denied(self.__path):
            return self.__conn.execute(_checked(sql), values).fetchall()

    def write(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> None:
        """One INSERT, UPDATE or DELETE on the views, inside `transaction`."""
        with explained(self.__path), _denied(self.__path):
            self.__conn.execute(_checked(sql), values)

    @contextmanager
    def transaction(self, wait_ms: int | None = None) -> Iterator[None]:
        """All or nothing, committed to the disk on leaving. Raises WriteFailed or StudyError.

        It waits `wait_ms` for another program that is writing, without it as long as the session does.
        """
        with explained(self.__path), _denied(self.__path):
            self._begin(wait_ms)
            try:
                yield
                self.__conn.execute("COMMIT")
            except BaseException:
                if self.__conn.in_transaction:
                    self.__conn.execute("ROLLBACK")
                raise

    def _begin(self, wait_ms: int | None) -> None:
        if wait_ms is None:
            self.__conn.execute("BEGIN IMMEDIATE")
            return
        try:
            self._wait(wait_ms)
            self.__conn.execute("BEGIN IMMEDIATE")
        finally:
            self._wait(self.__busy_ms)

    def _wait(self, ms: int) -> None:
        # The session itself may set nothing, so the authorizer steps aside for this word. Another authorizer
        # would compile every statement again; and the number is there because SQLite sets it in compiling.
        self.__waits += 1
        self.__aside[0] = True
        try:
            self.__conn.execute(f"PRAGMA busy_timeout = {int(ms)} -- {self.__waits}")
        finally:
            self.__aside[0] = False

    def close(self) -> None:
        """Close the connection."""
        self.__conn.close()


def _checked(sql: str) -> str:
    # WITH could borrow a view's name and EXPLAIN would print it; nothing here needs either, at any depth.
    if not _FIRST_WORD.match(sql) or _WITH.search(sql):
        raise StudyError("not allowed in a blind session: one SELECT, INSERT, UPDATE or DELETE at a time")
    return sql


@contextmanager
def _denied(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.IntegrityError as e:
        raise StudyError(str(e)) from e
    except sqlite3.OperationalError as e:
        text = str(e)
        if "full" in text or "disk I/O" in text:
            raise WriteFailed(f"no room on the disk of {path}: make some, then press the key again") from e
        if "locked" in text or "busy" in text:
            raise Busy("another program is writing in the study: press the key again") from e
        raise
    except sqlite3.DatabaseError as e:
        text = str(e)
        if "prohibited" in text or "not authorized" in text or "authoriz" in text:
            raise StudyError(f"not allowed in a blind session: {text.split(' ')[0]}") from e
        raise


def _authorizer(inside: set[str], public: set[str], texts: str, inputs: set[str], aside: list[bool]) -> Any:
    """The callback: what each compiled statement may touch, by action, table and innermost view; while `aside`
    is set, how long to wait for a lock may be too."""
    ok, deny, null = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY, sqlite3.SQLITE_IGNORE

    def allow(action: int, a: str | None, b: str | None, db: str | None, source: str | None) -> int:
        if action in _HARMLESS:
            return ok
        if action == sqlite3.SQLITE_PRAGMA:
            return ok if aside[0] and a == "busy_timeout" else deny
        if action == sqlite3.SQLITE_FUNCTION:
            return deny if b in ("load_extension", "fts3_tokenizer", "writefile", "readfile") else ok
        if source in inside:
            return ok if action == sqlite3.SQLITE_READ or action in _WRITES else deny
        if action == sqlite3.SQLITE_READ:
            if source is None:
                return ok if a in public else deny
            if source in public:
                return ok if a in inside or a in public or a == texts else deny
            if source == texts and a in _TEXT_TABLES:
                hidden = b in _HIDDEN_COLUMNS or (a == "items" and b in _ITEM_INPUTS - inputs)
                return null if hidden else ok
            if source == "events_closed":
                return ok if a in ("batches", "events") and b in ("closed", "batch") else deny
            if source == "events_stopped":
                return ok if a in ("stopped", "events") and b in ("batch", "annotator_id") else deny
            return deny
        if action in _WRITES and source is None:
            return ok if a in public else deny
        return deny

    return allow


def _make_views(conn: sqlite3.Connection, seat: Seat, task: Task) -> tuple[set[str], set[str], str]:
    """Create the views and their triggers.

    Returns (names with access to the tables, names to use, the name of the units' texts).
    """
    inside: set[str] = set()
    public: set[str] = set()
    batch, who = quote(seat.batch), quote(seat.annotator)
    mine = f"a.batch = {batch} AND a.annotator_id = {who}"
    if not seat.show_own:
        mine += (
            f" AND NOT EXISTS (SELECT 1 FROM main.assignments AS o WHERE o.batch = {batch} "
            f"AND o.unit_id = a.unit_id AND o.annotator_id = {quote(seat.person)})"
        )
    fields = ", ".join(quote(q.field) for q in task.spec.questions)

    def secret() -> str:
        inside.add(name := f"s{secrets.token_hex(16)}")
        return name

    # A copy of the view `unit_texts` under a name that no common table expression can borrow.
    texts = f"s{secrets.token_hex(16)}"
    row = conn.execute("SELECT sql FROM sqlite_master WHERE type = 'view' AND name = 'unit_texts'").fetchone()
    conn.execute(f"CREATE TEMP VIEW {texts} AS {_AS.split(row[0], maxsplit=1)[1]}")

    def view(name: str, body: str) -> None:
        own = secret()
        conn.execute(f"CREATE TEMP VIEW {own} AS {body.replace('main.unit_texts', texts)}")
        conn.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {own}")
        public.add(name)

    def trigger(name: str, body: str) -> None:
        conn.execute(f"CREATE TEMP TRIGGER {secret()} INSTEAD OF INSERT ON {name} BEGIN {body}; END")

    # What follows from events is as closed as they are: triggers on the log alone would leave labels to be written.
    still = bodies.still(batch, who)

    role = "CASE WHEN a.role IN ('training', 'adjudication') THEN a.role ELSE 'unit' END AS role"
    view(
        "my_units",
        f"SELECT a.position, a.unit_id, {role}, a.status, a.answers, a.revised, a.spans, a.flag, a.note, "
        f"a.locked, a.active_ms, a.idle_ms, a.updated FROM main.assignments AS a WHERE {mine}",
    )
    # An UPDATE of a view would read the whole view first; an INSERT of what is new reads nothing.
    view("my_standing", f"SELECT 0 AS position, {', '.join(f'NULL AS {c}' for c in STANDING)}")
    here = f"batch = {batch} AND annotator_id = {who} AND position = NEW.position"
    locks = bodies.Locks(task, f"e.batch = {batch} AND e.annotator_id = {who} AND e.position = NEW.position")
    # What was shown follows from the log alone, and from then on the first answers stand, whatever is inserted.
    columns = [
        f"{c} = CASE WHEN locked THEN {c} ELSE NEW.{c} END" if c in bodies.FIRST else f"{c} = NEW.{c}"
        for c in STANDING
        if c != "locked"
    ]
    trigger(
        "my_standing",
        f"{still}; UPDATE assignments SET {', '.join(columns)}, locked = max(locked, {locks.shown}) WHERE {here}",
    )
    view("my_texts", bodies.texts(task, mine))
    view("my_passages", bodies.passages(task, mine))
    view("my_parts", bodies.parts(mine))
    view(
        "my_events",
        "SELECT a.seq, a.event_id, a.position, a.kind, a.field, a.value, a.reason, a.undoes, a.active_ms, "
        f"a.idle_ms, a.shown_ms, a.at FROM main.events AS a WHERE a.batch = {batch} AND a.annotator_id = {who}",
    )
    trigger("my_events", bodies.events(task, seat, here, locks))
    view("my_seen", "SELECT 0 AS position")
    trigger("my_seen", bodies.seen(task, seat, f"a.{here.replace(' AND ', ' AND a.')}"))
    kept = "a.role IN ('sample', 'repeat', 'adjudication')"
    view(
        "my_labels",
        "SELECT 0 AS position, '' AS field, '' AS layer, '' AS value, '' AS rationale, '' AS derived_from",
    )
    layer = locks.layer
    trigger(
        "my_labels",
        f"{still}; {label_rows.GIVEN_ONCE} "
        f"SELECT a.unit_id, NEW.field, {who}, {layer}, a.repeat, NEW.value, NEW.rationale, NEW.derived_from "
        f"FROM main.assignments AS a WHERE a.batch = {batch} AND a.annotator_id = {who} AND a.position = NEW.position "
        f"AND {kept} AND {locks.may_label}{bodies.derivations(task, batch, who, kept, locks)}",
    )
    # A view has no rows to delete, so clearing a unit is written as an insert into my_clearing.
    view("my_clearing", "SELECT 0 AS position")
    task_fields = ", ".join(quote(f) for f in task.fields)
    trigger(
        "my_clearing",
        f"{still}; "
        + label_rows.clearing(
            who,
            task_fields,
            f"(SELECT a.unit_id, a.repeat FROM main.assignments AS a WHERE a.batch = {batch} "
            f"AND a.annotator_id = {who} AND a.position = NEW.position AND {kept})",
        )
        + f" AND (layer = 'revised' OR NOT {locks.shown})",
    )
    view(
        "my_key",
        "SELECT a.position, l.field, l.value, l.rationale FROM main.assignments AS a "
        f"JOIN {label_rows.ALL} ON l.unit_id = a.unit_id WHERE {mine} AND a.locked = 1 AND a.role = 'training' AND l.annotator_id = 'gold' "
        f"AND l.layer = 'first' AND l.field IN ({fields})",
    )
    view(
        "my_judge",
        "SELECT a.position, l.field, l.value, l.distribution, l.rationale FROM main.assignments AS a "
        "JOIN main.batches AS b ON b.batch = a.batch "
        f"JOIN {label_rows.ALL} ON l.unit_id = a.unit_id AND l.annotator_id = b.reveal_run "
        f"WHERE {mine} AND a.locked = 1 AND a.role = 'sample' AND l.layer = 'first' AND l.repeat = 0 "
        f"AND l.field IN ({fields})",
    )
    if seat.annotator == ADJUDICATED:
        # Numbered by a hash, so that the same letter is not the same person on every unit.
        rank = f"row_number() OVER (PARTITION BY a.position ORDER BY adjudge_rank({batch} || a.position || o.annotator_id))"
        conn.create_function("adjudge_rank", 1, bodies.rank, deterministic=True)
        view(
            "my_sources",
            f"SELECT a.position, {rank} AS number, CASE o.status WHEN 'done' THEN o.answers ELSE '{{}}' END AS answers, "
            "CASE o.status WHEN 'skipped' THEN 'skipped' || coalesce(': ' || o.note, '') ELSE o.note END AS note, "
            "o.flag, o.spans FROM main.assignments AS a "
            f"JOIN main.assignments AS o ON o.batch = a.batch AND o.unit_id = a.unit_id "
            f"WHERE {mine} AND o.role = 'sample' AND (o.status <> 'open' OR o.flag IS NOT NULL) AND NOT EXISTS "
            "(SELECT 1 FROM main.stopped AS s WHERE s.batch = o.batch AND s.annotator_id = o.annotator_id)",
        )
    return inside, public, texts
