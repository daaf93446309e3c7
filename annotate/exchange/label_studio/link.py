"""What the study knows about a batch on a server: its project, its tasks there, and whether people see the judge."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from annotate.desk import BatchInfo
from annotate.exchange.base import UNIT_KEY
from annotate.exchange.label_studio.server import Listed, Project, Server
from judge.errors import Rejected
from judge.store import Store
from judge.store.study import dumps, now


class Link(NamedTuple):
    """A batch's project on one server. `assisted`: people there see predictions, those of `run` if we sent them."""

    url: str
    project: int
    assisted: bool
    run: str | None

    @property
    def address(self) -> str:
        """Where people find it."""
        return f"{self.url}/projects/{self.project}"


def mark_of(store: Store, info: BatchInfo) -> str:
    """What the project's description holds, so that it is found again: nobody else's batch has it."""
    row = store.conn.execute("SELECT created, seed FROM batches WHERE batch = ?", [info.batch]).fetchone()
    text = "\x1f".join([info.batch, info.task.sha256, *map(str, row)])
    return f"adjudge:{hashlib.sha256(text.encode()).hexdigest()[:20]}"


def description(store: Store, info: BatchInfo, run: str | None) -> str:
    """What a project says of itself: the batch, and whose predictions it shows."""
    told = f" predictions:{run}" if run else ""
    return f"Batch {info.batch} of {info.task.name}. {mark_of(store, info)}{told}"


def _run_in(store: Store, text: str) -> str | None:
    run = text.rpartition(" predictions:")[2].strip() if " predictions:" in text else ""
    found = store.conn.execute("SELECT run_id FROM runs WHERE run_id = ?", [run]).fetchone()
    return None if found is None else str(found[0])


def stored(store: Store, batch: str, url: str) -> Link | None:
    """The link that the study holds."""
    query = "SELECT project, assisted, run FROM label_studio_projects WHERE batch = ? AND url = ?"
    row = store.conn.execute(query, [batch, url]).fetchone()
    return None if row is None else Link(url, row[0], bool(row[1]), row[2])


def keep(store: Store, batch: str, link: Link) -> None:
    """Note a project; a batch with predictions is marked as assisted."""
    with store.transaction() as conn:
        conn.execute(
            "INSERT INTO label_studio_projects (batch, url, project, assisted, run, created) VALUES (?, ?, ?, ?, ?, ?)",
            [batch, link.url, link.project, int(link.assisted), link.run, now()],
        )
        if link.assisted:
            _mark(conn, batch, link)


def mark_assisted(store: Store, batch: str, link: Link) -> Link:
    """From here on the labels from this project count as assisted."""
    link = link._replace(assisted=True)
    with store.transaction() as conn:
        query = "UPDATE label_studio_projects SET assisted = 1 WHERE batch = ? AND url = ?"
        conn.execute(query, [batch, link.url])
        _mark(conn, batch, link)
        conn.execute(
            "INSERT OR IGNORE INTO exposures (person, unit_id, what, batch, how, at) SELECT annotator_id, unit_id, 'judge', "
            "batch, 'pull', ? FROM assignments WHERE batch = ? AND role <> 'adjudication'",
            [now(), batch],
        )
    return link


def _mark(conn: sqlite3.Connection, batch: str, link: Link) -> None:
    what = f"predictions of run {link.run}" if link.run else "predictions that others put there"
    conn.execute(
        "UPDATE batches SET options = json_set(options, '$.assisted', ?) WHERE batch = ?",
        [f"{link.address}: {what}", batch],
    )


def forget(store: Store, batch: str, url: str) -> None:
    """Drop the link; labels stay."""
    with store.transaction() as conn:
        for table in ("annotations", "tasks"):
            conn.execute(f"DELETE FROM label_studio_{table} WHERE batch = ? AND url = ?", [batch, url])
        conn.execute("DELETE FROM label_studio_projects WHERE batch = ? AND url = ?", [batch, url])


def find(store: Store, info: BatchInfo, server: Server, hint: str) -> tuple[Link, Project] | None:
    """The batch's project, also one whose making was cut short; None when it was never pushed.

    Raises Rejected, with `hint` saying what to do, when the project the study knows is gone.
    """
    mark = mark_of(store, info)
    link = stored(store, info.batch, server.url)
    if link is None:
        project = server.find(mark)
        if project is None:
            return None
        run = _run_in(store, project.description)
        link = Link(server.url, project.id, run is not None or project.predictions > 0, run)
        keep(store, info.batch, link)
        return link, project
    project = server.project(link.project)
    if project is None or mark not in project.description:
        what = "was deleted there" if project is None else "is another one now"
        raise Rejected(
            f"{link.address}: the project of batch '{info.batch}' {what}; its labels here stay: {hint}", 404
        )
    return link, project


class Known(NamedTuple):
    """A task as the study knows it. `pulled` and `created` are None before it was read."""

    unit: str
    pulled: str | None
    created: str | None


def tasks_of(store: Store, batch: str, link: Link) -> dict[int, Known]:
    """What the study knows of the tasks of a batch, by task id."""
    query = "SELECT task, unit_id, pulled, created FROM label_studio_tasks WHERE batch = ? AND url = ?"
    return {task: Known(*rest) for task, *rest in store.conn.execute(query, [batch, link.url])}


def add_tasks(store: Store, batch: str, link: Link, tasks: Mapping[int, str]) -> None:
    """Note which task is which unit; what was known of a task of this number before is forgotten."""
    with store.transaction() as conn:
        conn.executemany(
            "INSERT INTO label_studio_tasks (batch, url, task, unit_id) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (batch, url, task) DO UPDATE SET unit_id = excluded.unit_id, pulled = NULL, created = NULL",
            [(batch, link.url, task, unit) for task, unit in tasks.items()],
        )


def drop_tasks(store: Store, batch: str, link: Link, tasks: Iterable[int]) -> None:
    """Forget tasks that are gone, so that their units are sent again."""
    with store.transaction() as conn:
        query = "DELETE FROM label_studio_tasks WHERE batch = ? AND url = ? AND task = ?"
        conn.executemany(query, [(batch, link.url, task) for task in tasks])


class Survey(NamedTuple):
    """The tasks of a project against what the study knows: by number, then what has to be read."""

    known: dict[int, Known]
    there: dict[int, Listed]

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

    def _other(self, task: int, known: Known) -> bool:
        return known.created is not None and not same_time(self.there[task].created, known.created)


def survey(store: Store, info: BatchInfo, server: Server, link: Link) -> Survey:
    """List the project. Equal counts prove nothing: tasks are deleted, and made again under old or new numbers."""
    return Survey(tasks_of(store, info.batch, link), server.listing(link.project))


def same_time(one: str, other: str | None) -> bool:
    """Whether two times are one, however they are written."""
    return other is not None and datetime.fromisoformat(one) == datetime.fromisoformat(other)


def units_there(store: Store, info: BatchInfo, server: Server, link: Link) -> tuple[dict[int, str], set[str]]:
    """(task id -> unit for tasks that are there and say which unit they are, units whose task was deleted).

    Tasks that a push sent and could not note, and tasks that others imported again, are found by their unit id.
    """
    found = survey(store, info, server, link)
    live = {t: known.unit for t, known in found.known.items() if t in found.there and t not in found.gone}
    query = "SELECT value FROM json_each(?) WHERE value IN (SELECT unit_id FROM batch_units WHERE batch = ?)"
    said = {}
    for task in server.tasks(link.project, sorted(found.strange)):
        data = task.get("data")
        unit = data.get(UNIT_KEY) if isinstance(data, dict) else None
        if isinstance(unit, str):
            said[int(task["id"])] = unit
    ours = {u for (u,) in store.conn.execute(query, [dumps(sorted(set(said.values()))), info.batch])}
    new = {task: unit for task, unit in said.items() if unit in ours}
    add_tasks(store, info.batch, link, new)
    live |= new
    return live, {found.known[t].unit for t in found.gone} - set(live.values())
