"""A batch's annotations back from a Label Studio server, as events: authors, times, edits, skips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from annotate.desk import BatchInfo, batch_info
from annotate.exchange.intake import Intake, take
from annotate.exchange.label_studio import link as links
from annotate.exchange.label_studio.annotations import Reader
from annotate.exchange.label_studio.authors import Authors
from annotate.exchange.label_studio.check import Check
from annotate.exchange.label_studio.config import Layout
from annotate.exchange.label_studio.link import Link
from annotate.exchange.label_studio.server import Server
from annotate.exchange.responses import Response
from annotate.exchange.units import Units
from judge.errors import BadInput, ServerFault, UsageError
from judge.store import Store
from judge.store.study import dumps
from judge.types import Where

AT_ONCE = 500
"""So many tasks are fetched by their ids; with more that changed, the whole export is faster."""
PAGE = 500
"""Tasks whose answers are stored in one transaction."""

LATE = timedelta(minutes=1)
"""How much later than its time stamp a change may become visible on a busy server."""


@dataclass(slots=True)
class Pulled:
    """What a pull did. `new` counts labels by person, `replaced` those of them that took another one's place."""

    batch: str
    url: str
    project: int = 0
    assisted: bool = False
    tasks: int = 0
    read: int = 0
    """Tasks that changed since the last pull, and were read."""
    annotations: int = 0
    """Annotations of these."""
    new: Counter[str] = field(default_factory=Counter)
    replaced: int = 0
    older: int = 0
    """Answers that a later one, here or there, had replaced already."""
    skips: int = 0
    spans: int = 0
    notes: int = 0
    joined: Counter[str] = field(default_factory=Counter)
    """Units given to people who were not asked for them: annotator -> how many."""
    incomplete: int = 0
    """Answers that leave a question open."""
    deleted_tasks: int = 0
    deleted_annotations: int = 0
    strange_tasks: int = 0
    problems: list[str] = field(default_factory=list)
    """What could not be taken over, each with its task and annotation."""


def pull(
    store: Store,
    batch: str,
    server: Server,
    *,
    people: Mapping[str, str] | None = None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Pulled:
    """Bring what is new; doing it again adds nothing. `people` maps an e-mail, user name or id to an annotator.

    One annotation that cannot be taken over is named and left, and read again by the next pull; the others
    come in. Raises UsageError when the batch was never pushed there, ProviderError when the server fails.
    """
    info = batch_info(store, batch)
    layout = Layout(info.task)
    out = Pulled(batch, server.url)
    with store.run_lock(f"label studio {batch}"), Units(store, info).reader() as inputs:
        hint = f"annotate push {batch} --url {server.url} --new makes another one"
        found = links.find(store, info, server, hint)
        if found is None:
            raise UsageError(
                f"batch '{batch}' is not on {server.url}: annotate push {batch} --url {server.url}"
            )
        link, project = found
        known, gone, out.strange_tasks = links.compare(store, info, server, link, project)
        if project.predictions and not link.assisted:
            link = links.mark_assisted(store, batch, link)
        live = {unit for task, unit in known.items() if task not in gone}
        out.project, out.assisted = link.project, link.assisted
        out.tasks, out.deleted_tasks = len(live), len(set(known.values()) - live)
        changed = _changed(store, batch, link, server) - gone
        authors = Authors(store, info, server.users() if changed else {}, people or {})
        page = _Page(store, info, link, Reader(layout, Check(layout.xml), inputs, authors.of), out)
        ids = None if len(changed) > AT_ONCE else sorted(changed)
        tasks = (t for t in server.tasks(link.project, ids) if t.get("id") in changed)
        while rows := list(islice(tasks, PAGE)):
            page.take(rows, known)
            told(out.read, len(changed))
    return out


def _changed(store: Store, batch: str, link: Link, server: Server) -> set[int]:
    """Tasks of ours with something new since they were last read."""
    query = "SELECT task, pulled FROM label_studio_tasks WHERE batch = ? AND url = ?"
    pulled = dict(store.conn.execute(query, [batch, link.url]))
    never = {task for task, when in pulled.items() if when is None}
    if len(never) == len(pulled):
        return never
    since = max(datetime.fromisoformat(when) for when in pulled.values() if when) - LATE
    there = server.changed(link.project, since)
    return never | {task for task, when in there.items() if task in pulled and not _same(when, pulled[task])}


def _same(one: str, other: str | None) -> bool:
    return other is not None and datetime.fromisoformat(one) == datetime.fromisoformat(other)


@dataclass(slots=True)
class _Page:
    """Stores the answers of some tasks in one transaction, and then remembers that they were read."""

    store: Store
    info: BatchInfo
    link: Link
    reader: Reader
    out: Pulled

    def take(self, tasks: Sequence[Mapping[str, Any]], known: Mapping[int, str]) -> None:
        """A process that dies in between reads them again, and finds every answer there."""
        left: set[str] = set()

        def bad(error: BadInput) -> None:
            self.out.problems.append(str(error))
            left.add(error.path)

        how = Intake("label-studio", latest=True)
        responses = self._responses(tasks, known, bad)
        done = take(self.store, responses, how, bad, batch=self.info.batch)
        self.out.new += done.new
        self.out.joined += done.joined
        for name in ("replaced", "older", "skips", "spans", "notes"):
            setattr(self.out, name, getattr(self.out, name) + getattr(done, name))
        self.out.read += len(tasks)
        failed = {task["id"] for task in tasks if any(_name(task, a) in left for a in task["annotations"])}
        self._remember(tasks, failed)

    def _responses(
        self, tasks: Sequence[Mapping[str, Any]], known: Mapping[int, str], bad: Callable[[BadInput], None]
    ) -> Iterator[Response]:
        for task in tasks:
            unit, annotations = known[task["id"]], task.get("annotations")
            if not isinstance(annotations, list) or not all(isinstance(a, dict) for a in annotations):
                raise ServerFault(f"{self.link.url}: task {task['id']} has no list of annotations")
            for annotation in sorted(annotations, key=lambda a: str(a.get("updated_at"))):
                where = Where(_name(task, annotation), 0)
                self.out.annotations += 1
                try:
                    response, problems = self.reader.response(
                        annotation, unit, blind=not self.link.assisted, where=where
                    )
                except BadInput as e:
                    bad(BadInput(f"{unit}: {e.reason}", path=where.path, field=e.field))
                    continue
                self.out.problems += [f"{where.path}: {unit}: {problem}" for problem in problems]
                self.out.incomplete += not response.skipped and len(response.answers) < len(
                    self.reader.layout.fields
                )
                yield response

    def _remember(self, tasks: Sequence[Mapping[str, Any]], failed: set[int]) -> None:
        key = [self.info.batch, self.link.url]
        read = [task["id"] for task in tasks]
        now = {a["id"]: task["id"] for task in tasks for a in task["annotations"]}
        query = (
            "SELECT annotation FROM label_studio_annotations WHERE batch = ? AND url = ? "
            "AND task IN (SELECT value FROM json_each(?))"
        )
        known = {a for (a,) in self.store.conn.execute(query, [*key, dumps(read)])}
        gone = known - set(now)
        self.out.deleted_annotations += len(gone)
        with self.store.transaction() as conn:
            conn.executemany(
                "DELETE FROM label_studio_annotations WHERE batch = ? AND url = ? AND annotation = ?",
                [(*key, a) for a in gone],
            )
            conn.executemany(
                "INSERT INTO label_studio_annotations VALUES (?, ?, ?, ?)",
                [(*key, a, t) for a, t in now.items() if a not in known],
            )
            conn.executemany(
                "UPDATE label_studio_tasks SET pulled = ? WHERE batch = ? AND url = ? AND task = ?",
                [(t["updated_at"], *key, t["id"]) for t in tasks if t["id"] not in failed],
            )


def _name(task: Mapping[str, Any], annotation: Mapping[str, Any]) -> str:
    return f"task {task['id']}, annotation {annotation.get('id')}"
