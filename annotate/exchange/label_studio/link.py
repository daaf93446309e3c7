"""What the study knows about a batch on a server: its project, its tasks there, and whether people see the judge."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from annotate.desk import BatchInfo
from annotate.exchange.base import UNIT_KEY
from annotate.exchange.label_studio.server import Project, Server
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


def tasks_of(store: Store, batch: str, link: Link) -> dict[int, str]:
    """Task id -> unit id, as far as the study knows."""
    query = "SELECT task, unit_id FROM label_studio_tasks WHERE batch = ? AND url = ?"
    return dict(store.conn.execute(query, [batch, link.url]))


def add_tasks(store: Store, batch: str, link: Link, tasks: Mapping[int, str]) -> None:
    """Note which task is which unit."""
    with store.transaction() as conn:
        conn.executemany(
            "INSERT OR IGNORE INTO label_studio_tasks (batch, url, task, unit_id) VALUES (?, ?, ?, ?)",
            [(batch, link.url, task, unit) for task, unit in tasks.items()],
        )


def drop_tasks(store: Store, batch: str, link: Link, tasks: Iterable[int]) -> None:
    """Forget tasks that are gone, so that their units are sent again."""
    with store.transaction() as conn:
        query = "DELETE FROM label_studio_tasks WHERE batch = ? AND url = ? AND task = ?"
        conn.executemany(query, [(batch, link.url, task) for task in tasks])


def compare(
    store: Store, info: BatchInfo, server: Server, link: Link, project: Project
) -> tuple[dict[int, str], set[int], int]:
    """(task id -> unit id of the batch, those of them that are not there any more, tasks that are none of ours).

    Tasks that a push sent and could not note are found by their unit id.
    """
    known = tasks_of(store, info.batch, link)
    if project.tasks == len(known):  # listing them takes the server longer than all the rest
        return known, set(), 0
    there = server.ids(link.project)
    strange = sorted(there - set(known))
    query = "SELECT value FROM json_each(?) WHERE value IN (SELECT unit_id FROM batch_units WHERE batch = ?)"
    found = {}
    for task in server.tasks(link.project, strange):
        unit = task.get("data", {}).get(UNIT_KEY) if isinstance(task.get("data"), dict) else None
        if isinstance(unit, str):
            found[int(task["id"])] = unit
    ours = {u for (u,) in store.conn.execute(query, [dumps(sorted(set(found.values()))), info.batch])}
    new = {task: unit for task, unit in found.items() if unit in ours}
    add_tasks(store, info.batch, link, new)
    return known | new, set(known) - there, len(strange) - len(new)
