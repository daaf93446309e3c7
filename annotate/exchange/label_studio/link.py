"""A batch on a Label Studio server, as stored in the study: its project, its tasks, and whether annotators see
predictions.
"""

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
from judge.store.study import dumps, get_time

Key = tuple[str, int]
"""A unit's id, and 1 for its hidden repeat or 0 for the unit itself. Only projects for one person have hidden
repeats.
"""


class Link(NamedTuple):
    """A batch's project on one server. The project is for one `person`, or shared by all annotators if `person`
    is empty.

    `assisted` is true if annotators see predictions in the project. `run` is the run whose predictions we sent.
    """

    url: str
    project: int
    assisted: bool
    run: str | None
    person: str = ""

    @property
    def address(self) -> str:
        """The address of the project in a browser."""
        return f"{self.url}/projects/{self.project}"


def mark_of(store: Store, info: BatchInfo, person: str = "") -> str:
    """Return a text that identifies the batch in a project's description.

    If `person` is given, the text identifies this person's project of the batch.
    """
    # A push that is killed after the server created the project, but before the study stored it, finds the
    # project by this mark.
    row = store.conn.execute("SELECT created, seed FROM batches WHERE batch = ?", [info.batch]).fetchone()
    text = "\x1f".join([info.batch, info.task.sha256, *map(str, row), *([person] if person else [])])
    return f"adjudge:{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def description(store: Store, info: BatchInfo, run: str | None, person: str = "") -> str:
    """Return a project's description: the batch, the annotator, and the run whose predictions it shows."""
    suffix = f" predictions:{run}" if run else ""
    whose = f", for {person}" if person else ""
    return f"Batch {info.batch} of {info.task.name}{whose}. {mark_of(store, info, person)}{suffix}"


def _run_in(store: Store, text: str) -> str | None:
    run = text.rpartition(" predictions:")[2].strip() if " predictions:" in text else ""
    row = store.conn.execute("SELECT run_id FROM runs WHERE run_id = ?", [run]).fetchone()
    return None if row is None else str(row[0])


def read_links(store: Store, batch: str, url: str) -> dict[str, Link]:
    """Return the stored links by person. The key "" stands for the shared project."""
    query = "SELECT project, assisted, run, person FROM label_studio_projects WHERE batch = ? AND url = ?"
    rows = store.conn.execute(query, [batch, url])
    return {who: Link(url, project, bool(assisted), run, who) for project, assisted, run, who in rows}


def keep(store: Store, batch: str, link: Link) -> None:
    """Store the link to a project, and mark the batch as assisted if the project has predictions."""
    with store.transaction() as conn:
        conn.execute(
            "INSERT INTO label_studio_projects (batch, url, person, project, assisted, run, created) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [batch, link.url, link.person, link.project, int(link.assisted), link.run, get_time()],
        )
        if link.assisted:
            _mark(conn, batch, link)


def mark_assisted(store: Store, batch: str, link: Link) -> Link:
    """Mark a project as assisted, and return the changed link. From now on, labels from the project count as
    assisted.
    """
    link = link._replace(assisted=True)
    with store.transaction() as conn:
        query = "UPDATE label_studio_projects SET assisted = 1 WHERE batch = ? AND url = ? AND person = ?"
        conn.execute(query, [batch, link.url, link.person])
        _mark(conn, batch, link)
        # The server does not record who opened which prediction, so everybody counts as exposed to all of them.
        conn.execute(
            "INSERT OR IGNORE INTO exposures (person, unit_id, what, batch, how, at) SELECT annotator_id, unit_id, 'judge', "
            "batch, 'pull', ? FROM assignments WHERE batch = ? AND role <> 'adjudication' AND ? IN ('', annotator_id)",
            [get_time(), batch, link.person],
        )
    return link


def _mark(conn: sqlite3.Connection, batch: str, link: Link) -> None:
    reason = (
        f"predictions of run {link.run}" if link.run else "predictions that somebody else added on the server"
    )
    conn.execute(
        "UPDATE batches SET options = json_set(options, '$.assisted', ?) WHERE batch = ?",
        [f"{link.address}: {reason}", batch],
    )


def forget(store: Store, batch: str, url: str, person: str = "") -> None:
    """Delete the link and the stored records of its tasks; labels are kept."""
    with store.transaction() as conn:
        for table in ("annotations", "tasks", "projects"):
            query = f"DELETE FROM label_studio_{table} WHERE batch = ? AND url = ? AND person = ?"
            conn.execute(query, [batch, url, person])


def find(
    store: Store, info: BatchInfo, server: Server, hint: str, person: str = ""
) -> tuple[Link, Project] | None:
    """Return the shared project of the batch, or one person's project.

    Return None if the project was never pushed. A project that an interrupted push created is also found.
    Raises Rejected if the stored project was deleted or replaced on the server. The error message ends with
    `hint`, which tells the user what to do next.
    """
    mark = mark_of(store, info, person)
    link = read_links(store, info.batch, server.url).get(person)
    if link is None:
        project = server.find(mark)
        if project is None:
            return None
        run = _run_in(store, project.description)
        link = Link(server.url, project.id, run is not None or project.predictions > 0, run, person)
        keep(store, info.batch, link)
        return link, project
    project = server.project(link.project)
    # The server may give the number of a deleted project to a new project, so the number alone proves nothing.
    if project is None or mark not in project.description:
        state = "was deleted there" if project is None else "was replaced by another project"
        whose = f" for {person}" if person else ""
        raise Rejected(
            f"{link.address}: the project of batch '{info.batch}'{whose} {state}; its labels in the study are kept. {hint}",
            404,
        )
    return link, project


class KnownTask(NamedTuple):
    """A task as stored in the study. `pulled` and `created` are None until the task is first read."""

    unit: str
    repeat: int
    pulled: str | None
    created: str | None

    @property
    def key(self) -> Key:
        """The unit of the task, and whether the task is the unit's hidden repeat."""
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
    """Store the unit of each task. The records of earlier tasks with the same numbers are replaced."""
    with store.transaction() as conn:
        note_tasks(conn, batch, link, {task: KnownTask(*key, None, None) for task, key in tasks.items()})


def note_tasks(conn: sqlite3.Connection, batch: str, link: Link, tasks: Mapping[int, KnownTask]) -> None:
    """Store tasks with the times at which they were read, in the caller's transaction."""
    conn.executemany(
        "INSERT INTO label_studio_tasks (batch, url, person, task, unit_id, repeat, pulled, created) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (batch, url, person, task) DO UPDATE SET "
        "unit_id = excluded.unit_id, repeat = excluded.repeat, pulled = excluded.pulled, created = excluded.created",
        [(batch, link.url, link.person, number, *task) for number, task in tasks.items()],
    )


def drop_tasks(store: Store, batch: str, link: Link, tasks: Iterable[int]) -> None:
    """Delete the records of tasks that were deleted on the server, so that their units are sent again; labels
    are kept.
    """
    # The records of their annotations must be deleted as well. The server may give the number of a deleted task
    # to a new task, and a pull would then treat the old task's annotations as deleted from the new task.
    keys = [(batch, link.url, link.person, task) for task in tasks]
    with store.transaction() as conn:
        for table in ("label_studio_annotations", "label_studio_tasks"):
            query = f"DELETE FROM {table} WHERE batch = ? AND url = ? AND person = ? AND task = ?"
            conn.executemany(query, keys)


class Survey(NamedTuple):
    """A comparison of a project's tasks on the server with the tasks stored in the study."""

    known: dict[int, KnownTask]
    there: dict[int, TaskTimes]

    @property
    def gone(self) -> set[int]:
        """Stored tasks that were deleted on the server, or whose number now belongs to another task."""
        return {t for t, known in self.known.items() if t not in self.there or self._is_other(t, known)}

    @property
    def unread(self) -> set[int]:
        """Tasks that are new, or that have changed since they were last read."""
        return {
            t
            for t, listed in self.there.items()
            if t not in self.known
            or self._is_other(t, self.known[t])
            or not is_same_time(listed.updated, self.known[t].pulled)
        }

    @property
    def strange(self) -> set[int]:
        """Tasks that the study has neither sent nor read."""
        return {t for t in self.there if t not in self.known or self._is_other(t, self.known[t])}

    def _is_other(self, task: int, known: KnownTask) -> bool:
        # The creation time distinguishes a task from a later task with the same number.
        return known.created is not None and not is_same_time(self.there[task].created, known.created)


def survey(store: Store, info: BatchInfo, server: Server, link: Link) -> Survey:
    """Compare a project's tasks on the server with the tasks stored in the study."""
    # All tasks are listed, because an equal number of tasks proves nothing: tasks may be deleted, and created
    # again under old or new numbers.
    return Survey(tasks_of(store, info.batch, link), server.listing(link.project))


def is_same_time(first: str, second: str | None) -> bool:
    """Return whether two ISO 8601 strings denote the same moment."""
    return second is not None and datetime.fromisoformat(first) == datetime.fromisoformat(second)


def seats_of(store: Store, batch: str, person: str) -> dict[int, Key]:
    """Return a map from queue positions to the units that are or were assigned to a person in a batch.

    The map is empty for a shared project.
    """
    # A unit that was handed over stays in the first person's project, and may still be labelled there.
    query = (
        "SELECT position, unit_id, repeat FROM assignments WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication' "
        "UNION SELECT position, unit_id, repeat FROM handed_over WHERE batch = ? AND annotator_id = ?"
    )
    rows = store.conn.execute(query, [batch, person, batch, person])
    return {position: (unit, repeat) for position, unit, repeat in rows}


def key_of(task: Mapping[str, Any], seats: Mapping[int, Key]) -> Key | None:
    """Return the unit that a task names, and whether the task is the unit's hidden repeat.

    Return None if the task does not name a unit, or if it names a different unit than the queue has at this
    position.
    """
    data = task.get("data")
    if not isinstance(data, Mapping) or not isinstance(unit := data.get(UNIT_KEY), str):
        return None
    if PLACE_KEY not in data:
        return unit, 0
    place = data[PLACE_KEY]
    seat = seats.get(place) if isinstance(place, int) and not isinstance(place, bool) else None
    return seat if seat is not None and seat[0] == unit else None


def units_there(store: Store, info: BatchInfo, server: Server, link: Link) -> tuple[dict[int, Key], set[Key]]:
    """Return a map from the tasks on the server to their units, and the set of units whose task was deleted.

    Tasks that do not name their unit are left out. Tasks that an interrupted push sent, and tasks that
    somebody imported again, are recognised by their unit id.
    """
    tasks = survey(store, info, server, link)
    live = {t: known.key for t, known in tasks.known.items() if t in tasks.there and t not in tasks.gone}
    query = "SELECT value FROM json_each(?) WHERE value IN (SELECT unit_id FROM batch_units WHERE batch = ?)"
    seats = seats_of(store, info.batch, link.person)
    named = {}
    for task in server.tasks(link.project, sorted(tasks.strange)):
        if key := key_of(task, seats):
            named[int(task["id"])] = key
    units = sorted({unit for unit, _ in named.values()})
    # Somebody may have imported tasks of another batch into this project.
    in_batch = {u for (u,) in store.conn.execute(query, [dumps(units), info.batch])}
    new = {task: key for task, key in named.items() if key[0] in in_batch}
    add_tasks(store, info.batch, link, new)
    live |= new
    return live, {tasks.known[t].key for t in tasks.gone} - set(live.values())
