"""The database connection of an annotator's session. SQLite itself refuses to read what the annotator must not see.

`Blind(store, seat, task)` opens a separate, read-only connection. Its temporary views contain only the rows
of one seat (a batch and an annotator), and its authorizer allows statements to read the study only through
these views. Judgements, gold, `meta`, other people's labels, ATTACH, PRAGMA, new schema and every write are
denied.

    my_units   own positions, statuses and answers           my_texts    the task's inputs, nothing else
    my_parts   own units that are parts of one answer        my_passages the passages that the inputs list
    my_events  own events
    my_judge   the judge, for units locked after commit      my_key      the key of locked training units
    my_sources adjudication only: the labels to decide between, without names

Limitation: anybody who has the file can open it with another program. Only a pack (`annotate export --for`)
reliably hides the rest of the study.
"""

import hashlib
import re
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from annotate.sitting.events import WAS_CORRECTED
from annotate.sitting.unit import PARTS
from annotate.store import ADJUDICATED
from judge.errors import StudyError, WriteFailed
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import Store, label_rows
from judge.store.inputs import column
from judge.store.label_rows import quote
from judge.store.study import explain_errors

BUSY_MS = 3000
"""The default time for which a statement waits while another program has the lock, in milliseconds."""
_SELECT = re.compile(r"\s*SELECT\b", re.IGNORECASE)
_AS = re.compile(r"\bAS\s+", re.IGNORECASE)
_WITH = re.compile(r"\bWITH\b", re.IGNORECASE)
_HIDDEN_COLUMNS = {"meta", "correct", "polarity", "pair_id", "import_id", "content_sha"}
_TEXT_TABLES = {"items", "passages", "units", "answers", "json_each"}
_ITEM_INPUTS = {"question", "question_date", "claim", "reference_answers", "options"}
# Neither reads a column: columns are asked for one by one, as SQLITE_READ.
_HARMLESS = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}


@dataclass(frozen=True, slots=True)
class Seat:
    """The queue of one annotator in a batch. `person` is the user, who differs from `annotator` in adjudication."""

    batch: str
    annotator: str
    person: str
    session: str
    show_own: bool = True

    @property
    def is_deciding(self) -> bool:
        """Whether the user is a lead, who resolves disagreements between annotators."""
        return self.annotator != self.person


class Busy(StudyError):
    """Another program held the study's lock. Nothing was written, and the operation can be retried."""


class Blind:
    """A connection that reads only what the annotator may see. `rows` queries the views that the module's
    docstring lists.
    """

    __slots__ = ("__conn", "__path", "is_deciding")

    def __init__(self, store: Store, seat: Seat, task: Task, busy_ms: int = BUSY_MS) -> None:
        conn = store.clone().conn
        conn.execute(f"PRAGMA busy_timeout = {busy_ms}")
        conn.execute("PRAGMA temp_store = MEMORY")
        inside, public, texts = _make_views(conn, seat, task)
        # The order matters: from here on, neither this module nor any other code can create a view or set a PRAGMA.
        conn.execute("PRAGMA query_only = ON")
        conn.set_authorizer(_authorizer(inside, public, texts, set(task.input_names)))
        self.__conn, self.__path = conn, store.path
        self.is_deciding = seat.is_deciding

    def rows(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one SELECT. Raises StudyError if the statement is not allowed."""
        with explain_to_person(self.__path):
            return self.__conn.execute(_check_sql(sql), values).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.__conn.close()


def _check_sql(sql: str) -> str:
    # WITH could reuse a view's name, and EXPLAIN would print it. No statement here needs either, at any depth.
    if not _SELECT.match(sql) or _WITH.search(sql):
        raise StudyError("a blind session allows only one SELECT statement at a time")
    return sql


@contextmanager
def explain_to_person(path: Path) -> Iterator[None]:
    """Translate SQLite's errors to Busy, WriteFailed or StudyError, with messages for an annotator."""
    with explain_errors(path):
        try:
            yield
        except sqlite3.IntegrityError as e:
            raise StudyError(str(e)) from e
        except sqlite3.OperationalError as e:
            # An annotator can resolve these two problems: a full disk, and a program that holds the lock.
            text = str(e)
            if "full" in text or "disk I/O" in text:
                raise WriteFailed(
                    f"no space left on the disk of {path}: free some space, then press the key again"
                ) from e
            if "locked" in text or "busy" in text:
                raise Busy("another program is writing to the study: press the key again") from e
            raise
        except sqlite3.DatabaseError as e:
            text = str(e)
            if "prohibited" in text or "not authorized" in text or "authoriz" in text:
                raise StudyError(f"not allowed in a blind session: {text.split(' ')[0]}") from e
            raise


def _authorizer(inside: set[str], public: set[str], texts: str, inputs: set[str]) -> Any:
    """Return SQLite's authorizer callback.

    The callback allows or denies each column that a statement reads. It decides by the table, the column, and
    the innermost view that reads the column.
    """
    ok, deny, null = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY, sqlite3.SQLITE_IGNORE

    def allow(action: int, a: str | None, b: str | None, db: str | None, source: str | None) -> int:
        if action in _HARMLESS:
            return ok
        if action == sqlite3.SQLITE_FUNCTION:
            return deny if b in ("load_extension", "fts3_tokenizer", "writefile", "readfile") else ok
        if action != sqlite3.SQLITE_READ:
            return deny
        # `source` is the innermost view that reads the column; None if the statement itself does.
        if source in inside:
            return ok
        if source is None:
            return ok if a in public else deny
        if source in public:
            return ok if a in inside or a in public or a == texts else deny
        if source == texts and a in _TEXT_TABLES:
            # The view of texts names all inputs. A refusal would make the whole view unreadable, so hidden inputs read as NULL.
            hidden = b in _HIDDEN_COLUMNS or (a == "items" and b in _ITEM_INPUTS - inputs)
            return null if hidden else ok
        return deny

    return allow


def _make_views(conn: sqlite3.Connection, seat: Seat, task: Task) -> tuple[set[str], set[str], str]:
    """Create the temporary views, and return their names.

    The result contains the names of the views that may read the tables, the names of the views that statements
    may use, and the name of the view with the units' texts.
    """
    inside: set[str] = set()
    public: set[str] = set()
    batch, who = quote(seat.batch), quote(seat.annotator)
    mine = f"a.batch = {batch} AND a.annotator_id = {who}"
    # Nobody adjudicates their own labels, unless the lead allows it (--allow-own).
    if not seat.show_own:
        mine += (
            f" AND NOT EXISTS (SELECT 1 FROM main.assignments AS o WHERE o.batch = {batch} "
            f"AND o.unit_id = a.unit_id AND o.annotator_id = {quote(seat.person)})"
        )
    fields = ", ".join(quote(q.field) for q in task.spec.questions)

    texts = _copy_view(conn, "unit_texts")
    inside.add(corrections := _copy_view(conn, "event_corrections"))

    def view(name: str, body: str) -> None:
        # Tables can be read only through a view with a random name. SQLite tells the authorizer the name of the
        # innermost view, and a common table expression could reuse a name that is known.
        inside.add(hidden := f"s{secrets.token_hex(16)}")
        body = body.replace("main.unit_texts", texts).replace("main.event_corrections", corrections)
        conn.execute(f"CREATE TEMP VIEW {hidden} AS {body}")
        conn.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {hidden}")
        public.add(name)

    # Attention checks and hidden repeats must look like every other unit.
    role = "CASE WHEN a.role IN ('training', 'adjudication') THEN a.role ELSE 'unit' END AS role"
    view(
        "my_units",
        f"SELECT a.position, a.unit_id, {role}, a.status, a.answers, a.revised, a.spans, a.flag, a.note, "
        f"a.locked, a.active_ms, a.idle_ms, a.updated FROM main.assignments AS a WHERE {mine}",
    )
    view("my_texts", _texts(task, mine))
    view("my_passages", _passages(task, mine))
    view("my_parts", _parts(mine))
    view(
        "my_events",
        "SELECT a.seq, a.event_id, a.position, a.kind, a.field, a.value, a.reason, a.undoes, a.active_ms, "
        f"a.idle_ms, a.shown_ms, a.at, {WAS_CORRECTED.format('a')} AS outdated FROM main.events AS a WHERE a.batch = {batch} AND a.annotator_id = {who}",
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
        # People are numbered by a hash, so that a letter does not stand for the same person on every unit.
        rank = f"row_number() OVER (PARTITION BY a.position ORDER BY adjudge_rank({batch} || a.position || o.annotator_id))"
        conn.create_function("adjudge_rank", 1, _rank, deterministic=True)
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


def _copy_view(conn: sqlite3.Connection, name: str) -> str:
    """Copy a view of the study under a name that no common table expression can reuse. Return the new name."""
    copy = f"s{secrets.token_hex(16)}"
    row = conn.execute(
        "SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name = ?", [name]
    ).fetchone()
    conn.execute(f"CREATE TEMP VIEW {copy} AS {_AS.split(row[0], maxsplit=1)[1]}")
    return copy


def _texts(task: Task, mine: str) -> str:
    """Return the SQL query that selects the inputs of the annotator's units.

    `start` and `stop` are the offsets of a sentence in its answer.
    """
    inputs = ", ".join(f'{column(task, name)} AS "{name}"' for name in task.input_names)
    return (
        "SELECT a.position, t.unit_id, t.question_id, t.answer_id, t.passage_id, t.item_id, "
        "json_extract(u.span, '$.start') AS start, json_extract(u.span, '$.end') AS stop, "
        f"{inputs} FROM main.assignments AS a JOIN main.unit_texts AS t ON t.unit_id = a.unit_id "
        f"JOIN main.units AS u ON u.unit_id = a.unit_id WHERE {mine}"
    )


def _passages(task: Task, mine: str) -> str:
    """Return the SQL query that selects the passages in the unit's inputs, in order.

    The column `place` is the passage's index in the context that the system received for its answer.
    """
    shown = (
        "p.passage_id, p.item_id, p.title, p.date, p.source, p.text, "
        "(SELECT k.key FROM json_each(t.context) AS k WHERE k.value = p.passage_id LIMIT 1) AS place"
    )
    lists = [
        f"SELECT a.position, {quote(name)} AS name, j.key AS n, {shown} FROM main.assignments AS a "
        f"JOIN main.unit_texts AS t ON t.unit_id = a.unit_id JOIN json_each({column(task, name)}) AS j "
        f"JOIN main.passages AS p ON p.passage_id = j.value WHERE {mine}"
        for name in task.input_names
        if name in LIST_INPUTS
    ]
    nothing = f"SELECT 0 AS position, '' AS name, 0 AS n, {', '.join(['NULL'] * 7)} WHERE 0"
    return " UNION ALL ".join(lists) or nothing


def _parts(mine: str) -> str:
    """Return the SQL query that selects the annotator's units that are parts of answers.

    Hidden repeats and checks are left out.
    """
    kinds = ", ".join(map(quote, PARTS))
    return (
        "SELECT a.position, u.unit_id, u.answer_id, u.rowid AS n, json_extract(u.span, '$.start') AS start, "
        "json_extract(u.span, '$.end') AS stop, a.status, a.answers FROM main.units AS u "
        "JOIN main.assignments AS a ON a.unit_id = u.unit_id "
        f"WHERE u.kind IN ({kinds}) AND a.role IN ('sample', 'adjudication') AND {mine}"
    )


def _rank(text: str) -> bytes:
    """Return a hash of a text. Adjudication shows the annotators of a unit in the order of such hashes."""
    return hashlib.sha256(text.encode()).digest()[:8]
