"""A batch on a Label Studio server, as stored in the study: project, tasks, and whether people see the judge."""

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from annotate.exchange.base import PLACE_KEY, UNIT_KEY
from annotate.exchange.label_studio.server import Project, Server, TaskTimes
from annotate.sitting.desk import BatchInfo
from judge.errors import Rejected
from judge.store import Store
from judge.store.study import dumps, now

Key = tuple[str, int]
"""A unit, and 0, or 1 for its hidden repeat, which only a project of one person has."""


class Link(NamedTuple):
    """A batch's project on one server, `person`'s own or, where that is empty, that of all.

    `assisted`: people there see predictions, those of `run` if we sent them.
    """

    url: str
    project: int
    assisted: bool
    run: str | None
    person: str = ""

    @property
    def address(self) -> str:
        """Where people find it."""
        return f"{self.url}/projects/{self.project}"


def mark_of(store: Store, info: BatchInfo, person: str = "") -> str:
    """Return the mark in a project's description by which it is found again. It is unique to the batch."""
    row = store.conn.execute("SELECT created, seed FROM batches WHERE batch = ?", [info.batch]).fetchone()
    text = "\x1f".join([info.batch, info.task.sha256, *map(str, row), *([person] if person else [])])
    return f"adjudge:{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def description(store: Store, info: BatchInfo, run: str | None, person: str = "") -> str:
    """What a project says of itself: the batch, whose it is, and whose predictions it shows."""
    suffix = f" predictions:{run}" if run else ""
    whose = f", for {person}" if person else ""
    return f"Batch {info.batch} of {info.task.name}{whose}. {mark_of(store, info, person)}{suffix}"


def _run_in(store: Store, text: str) -> str | None:
    run = text.rpartition(" predictions:")[2].strip() if " predictions:" in text else ""
    row = store.conn.execute("SELECT run_id FROM runs WHERE run_id = ?", [run]).fetchone()
    return None if row is None else str(row[0])


def all_stored(store: Store, batch: str, url: str) -> dict[str, Link]:
    """Return the stored links by person; "" is the link of the project that everybody shares."""
    query = "SELECT project, assisted, run, person FROM label_studio_projects WHERE batch = ? AND url = ?"
    rows = store.conn.execute(query, [batch, url])
    return {who: Link(url, project, bool(assisted), run, who) for project, assisted, run, who in rows}


def stored(store: Store, batch: str, url: str, person: str = "") -> Link | None:
    """Return the stored link."""
    return all_stored(store, batch, url).get(person)


def keep(store: Store, batch: str, link: Link) -> None:
    """Note a project; a batch with predictions is marked as assisted."""
    with store.transaction() as conn:
        conn.execute(
            "INSERT INTO label_studio_projects (batch, url, person, project, assisted, run, created) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [batch, link.url, link.person, link.project, int(link.assisted), link.run, now()],
        )
        if link.assisted:
            _mark(conn, batch, link)


def mark_assisted(store: Store, batch: str, link: Link) -> Link:
    """From here on the labels from this project count as assisted."""
    link = link._replace(assisted=True)
    with store.transaction() as conn:
        query = "UPDATE label_studio_projects SET assisted = 1 WHERE batch = ? AND url = ? AND person = ?"
        conn.execute(query, [batch, link.url, link.person])
        _mark(conn, batch, link)
        conn.execute(
            "INSERT OR IGNORE INTO exposures (person, unit_id, what, batch, how, at) SELECT annotator_id, unit_id, 'judge', "
            "batch, 'pull', ? FROM assignments WHERE batch = ? AND role <> 'adjudication' AND ? IN ('', annotator_id)",
            [now(), batch, link.person],
        )
    return link


def _mark(conn: sqlite3.Connection, batch: str, link: Link) -> None:
    reason = f"predictions of run {link.run}" if link.run else "predictions that others put there"
    conn.execute(
        "UPDATE batches SET options = json_set(options, '$.assisted', ?) WHERE batch = ?",
        [f"{link.address}: {reason}", batch],
    )


def forget(store: Store, batch: str, url: str, person: str = "") -> None:
    """Drop the link; labels stay."""
    with store.transaction() as conn:
        for table in ("annotations", "tasks", "projects"):
            query = f"DELETE FROM label_studio_{table} WHERE batch = ? AND url = ? AND person = ?"
            conn.execute(query, [batch, url, person])


def find(
    store: Store, info: BatchInfo, server: Server, hint: str, person: str = ""
) -> tuple[Link, Project] | None:
    """The batch's project, or a person's, also one whose making was cut short; None when it was never pushed.

    Raises Rejected, with `hint` saying what to do, when the project the study knows is gone.
    """
    mark = mark_of(store, info, person)
    link = stored(store, info.batch, server.url, person)
    if link is None:
        project = server.find(mark)
        if project is None:
            return None
        run = _run_in(store, project.description)
        link = Link(server.url, project.id, run is not None or project.predictions > 0, run, person)
        keep(store, info.batch, link)
        return link, project
    project = server.project(link.project)
    if project is None or mark not in project.description:
        state = "was deleted there" if project is None else "is another one now"
        whose = f" for {person}" if person else ""
        raise Rejected(
            f"{link.address}: the project of batch '{info.batch}'{whose} {state}; its labels here stay: {hint}",
            404,
        )
    return link, project


class KnownTask(NamedTuple):
    """A task as stored in the study. `pulled` and `created` are None before it was read."""

    unit: str
    repeat: int
    pulled: str | None
    created: str | None

    @property
    def key(self) -> Key:
        """Which unit it is, and whether it is the hidden repeat of it."""
        return self.unit, self.repeat


def tasks_of(store: Store, batch: str, link: Link) -> dict[int, KnownTask]:
    """Return the stored tasks of a batch, by task id."""
    query = (
        "SELECT task, unit_id, repeat, pulled, created FROM label_studio_tasks "
        "WHERE batch = ? AND url = ? AND person = ?"
    )
    return {
        task: KnownTask(*rest) for task, *rest in store.conn.execute(query, [batch, link.url, link.person])
    }


def add_tasks(store: Store, batch: str, link: Link, tasks: Mapping[int, Key]) -> None:
    """Note which task is which unit; what was known of a task of this number before is forgotten."""
    with store.transaction() as conn:
        note_tasks(conn, batch, link, {task: KnownTask(*key, None, None) for task, key in tasks.items()})


def note_tasks(conn: sqlite3.Connection, batch: str, link: Link, tasks: Mapping[int, KnownTask]) -> None:
    """The same with what was read of them, inside the caller's transaction."""
    conn.executemany(
        "INSERT INTO label_studio_tasks (batch, url, person, task, unit_id, repeat, pulled, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (batch, url, person, task) DO UPDATE SET "
        "unit_id = excluded.unit_id, repeat = excluded.repeat, pulled = excluded.pulled, created = excluded.created",
        [(batch, link.url, link.person, number, *task) for number, task in tasks.items()],
    )


def drop_tasks(store: Store, batch: str, link: Link, tasks: Iterable[int]) -> None:
    """Forget tasks that are gone, so that their units are sent again; what was annotated on them stays.

    Their annotations are forgotten with them: the server gives the number of a deleted task to the one that is sent, and a
    pull would take annotations that it does not have for deleted ones.
    """
    gone = [(batch, link.url, link.person, task) for task in tasks]
    with store.transaction() as conn:
        for table in ("label_studio_annotations", "label_studio_tasks"):
            query = f"DELETE FROM {table} WHERE batch = ? AND url = ? AND person = ? AND task = ?"
            conn.executemany(query, gone)


class Survey(NamedTuple):
    """Compare the tasks of a project with the stored ones, to find out which have to be fetched."""

    known: dict[int, KnownTask]
    there: dict[int, TaskTimes]

    @property
    def gone(self) -> set[int]:
        """Known tasks that are not there any more, or whose number another task has now."""
        return {t for t, known in self.known.items() if t not in self.there or self._other(t, known)}

    @property
    def unread(self) -> set[int]:
        """Tasks that the study has not read as they are now: what is on them only they say themselves."""
        return {
            t
            for t, listed in self.there.items()
            if t not in self.known
            or self._other(t, self.known[t])
            or not same_time(listed.updated, self.known[t].pulled)
        }

    @property
    def strange(self) -> set[int]:
        """Tasks that nobody here has sent or read."""
        return {t for t in self.there if t not in self.known or self._other(t, self.known[t])}

    def _other(self, task: int, known: KnownTask) -> bool:
        return known.created is not None and not same_time(self.there[task].created, known.created)


def survey(store: Store, info: BatchInfo, server: Server, link: Link) -> Survey:
    """List the project. Equal counts prove nothing: tasks are deleted, and made again under old or new numbers."""
    return Survey(tasks_of(store, info.batch, link), server.listing(link.project))


def same_time(first: str, second: str | None) -> bool:
    """Return whether two ISO 8601 texts are the same moment."""
    return second is not None and datetime.fromisoformat(first) == datetime.fromisoformat(second)


def seats_of(store: Store, batch: str, person: str) -> dict[int, Key]:
    """Position -> unit, of everything that a person has or had in a batch; nobody has none."""
    query = (
        "SELECT position, unit_id, repeat FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication' "
        "UNION SELECT position, unit_id, repeat FROM handed_over WHERE batch = ? AND annotator_id = ?"
    )
    rows = store.conn.execute(query, [batch, person, batch, person])
    return {position: (unit, repeat) for position, unit, repeat in rows}


def key_of(task: Mapping[str, Any], seats: Mapping[int, Key]) -> Key | None:
    """The unit that a task says it is; in a project of one person with its place there. None when it says neither."""
    data = task.get("data")
    if not isinstance(data, Mapping) or not isinstance(unit := data.get(UNIT_KEY), str):
        return None
    if PLACE_KEY not in data:
        return unit, 0
    place = data[PLACE_KEY]
    seat = seats.get(place) if isinstance(place, int) and not isinstance(place, bool) else None
    return seat if seat is not None and seat[0] == unit else None


def units_there(store: Store, info: BatchInfo, server: Server, link: Link) -> tuple[dict[int, Key], set[Key]]:
    """(task id -> unit for tasks that are there and say which unit they are, units whose task was deleted).

    Tasks that a push sent and could not note, and tasks that others imported again, are found by their unit id.
    """
    tasks = survey(store, info, server, link)
    live = {t: known.key for t, known in tasks.known.items() if t in tasks.there and t not in tasks.gone}
    query = "SELECT value FROM json_each(?) WHERE value IN (SELECT unit_id FROM batch_units WHERE batch = ?)"
    seats = seats_of(store, info.batch, link.person)
    said = {}
    for task in server.tasks(link.project, sorted(tasks.strange)):
        if key := key_of(task, seats):
            said[int(task["id"])] = key
    units = sorted({unit for unit, _ in said.values()})
    ours = {u for (u,) in store.conn.execute(query, [dumps(units), info.batch])}
    new = {task: key for task, key in said.items() if key[0] in ours}
    add_tasks(store, info.batch, link, new)
    live |= new
    return live, {tasks.known[t].key for t in tasks.gone} - set(live.values())
