"""A batch's annotations back from a Label Studio server, as events: authors, times, edits, skips."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from annotate.exchange.base import UNIT_KEY
from annotate.exchange.intake import Intake, take
from annotate.exchange.label_studio import link as links
from annotate.exchange.label_studio.annotations import Authors, Reader
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key, Link, Survey
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.label_studio.server import Project, Server
from annotate.exchange.proof import Unproven
from annotate.exchange.responses import Response
from annotate.exchange.taken import Retracted
from annotate.exchange.units import ExchangeUnits
from annotate.sitting.desk import BatchInfo, batch_info
from judge.commands import command
from judge.errors import BadInput, Rejected, ServerFault, UsageError
from judge.store import Store
from judge.store.study import dumps
from judge.types import Where

AT_ONCE = 500
"""So many tasks are fetched by their ids; with more that changed, the whole export is faster."""
PAGE = 500
"""Tasks whose answers are stored in one transaction."""


@dataclass(slots=True)
class Pulled:
    """What a pull did. `new` counts labels by person, `replaced` those of them that took another one's place."""

    batch: str
    url: str
    project: int | None = None
    """The project of all; None where each person has one."""
    projects: dict[str, int] = field(default_factory=dict)
    """Person -> project."""
    assisted: bool = False
    tasks: int = 0
    changed_tasks: int = 0
    """Tasks that changed since the last pull."""
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
    quarantined: int = 0
    """Answers that wait in the quarantine, because they did not prove themselves."""
    retracted: int = 0
    """Labels undone here because their annotation was deleted there."""
    problems: list[str] = field(default_factory=list)
    """What could not be taken over, each with its task and annotation."""


def pull(
    store: Store,
    batch: str,
    server: Server,
    *,
    people: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Pulled:
    """Bring what is new; doing it again adds nothing. `people` maps an e-mail, user name or id to an annotator.

    One annotation that cannot be taken over is named and left, and read again by the next pull; the others
    come in. Raises UsageError when the batch was never pushed there, ProviderError when the server fails.
    """
    info = batch_info(store, batch)
    layout = ConfigLayout(info.task)
    out = Pulled(batch, server.url)
    with store.run_lock(f"label studio {batch}"), ExchangeUnits(store, info).reader() as inputs:
        projects = _projects(store, info, server, out)
        surveys = {link: links.survey(store, info, server, link) for link in projects}
        of = sum(len(there.unread) for there in surveys.values())
        authors = Authors(store, info, server.users() if of else {}, people or {})
        live: set[tuple[str, Key]] = set()
        known: set[tuple[str, Key]] = set()
        for link, there in surveys.items():
            if projects[link].predictions and not link.assisted:
                link = links.mark_assisted(store, batch, link)
            if link.person:
                out.projects[link.person] = link.project
            else:
                out.project = link.project
            out.assisted |= link.assisted
            seats = links.seats_of(store, batch, link.person)
            reader = Reader(layout, Check(layout.xml), inputs, partial(_author, link, authors))
            page = _Page(store, info, link, reader, out, there, seats)
            changed = there.unread
            ids = None if len(changed) > AT_ONCE else sorted(changed)
            tasks = (t for t in server.tasks(link.project, ids) if t.get("id") in changed)
            while rows := list(islice(tasks, PAGE)):
                page.take(rows)
                progress(out.changed_tasks, of)
            now = links.tasks_of(store, batch, link)
            live |= {(link.person, task_unit.key) for task, task_unit in now.items() if task in there.there}
            known |= {(link.person, task_unit.key) for task_unit in now.values()}
        out.tasks, out.deleted_tasks = len(live), len(known - live)
    return out


def _projects(store: Store, info: BatchInfo, server: Server, out: Pulled) -> dict[Link, Project]:
    """The batch's projects; of separate ones that are gone the others are pulled.

    Raises UsageError when there are none, Rejected when the only one is gone.
    """
    hint = f"another one: {command('annotate push', info.batch, '--url', server.url, '--new')}"
    known = list(links.all_stored(store, info.batch, server.url))
    if not known and (shared := links.find(store, info, server, hint)):
        return dict([shared])
    projects: dict[Link, Project] = {}
    for person in known or ExchangeUnits(store, info).people:
        try:
            project = links.find(store, info, server, hint, person)
        except Rejected as e:
            if e.status != 404 or not person:
                raise
            out.problems.append(str(e))
            continue
        if project is not None:
            projects[project[0]] = project[1]
    if not projects and not out.problems:
        message = f"batch '{info.batch}' is not on {server.url}: {command('annotate push', info.batch, '--url', server.url)}"
        raise UsageError(message)
    return projects


def _author(link: Link, authors: Authors, completed_by: Any) -> str:
    """Who annotated. Raises Unproven for somebody unknown, and for somebody in the project of another person."""
    who = authors.of(completed_by)
    if link.person and who != link.person:
        raise Unproven(
            "person",
            f"{who} annotated in the project of {link.person}, where {link.person}'s labels are in sight",
            field="completed_by",
            who=who,
        )
    return who


@dataclass(slots=True)
class _Page:
    """Stores the answers of some tasks in one transaction, and then remembers that they were read."""

    store: Store
    info: BatchInfo
    link: Link
    reader: Reader
    out: Pulled
    survey: Survey
    seats: Mapping[int, Key]
    """Position -> unit, in a project of one person."""

    def take(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """A process that dies in between reads them again, and finds every answer there."""
        left: set[str] = set()
        unread: list[BadInput] = []

        def bad(error: BadInput) -> None:
            self.out.problems.append(str(error))
            left.add(error.path)

        def unreadable(error: BadInput) -> None:
            bad(error)
            unread.append(error)

        for task in tasks:
            annotations = task.get("annotations")
            if not isinstance(annotations, list) or not all(isinstance(a, dict) for a in annotations):
                raise ServerFault(f"{self.link.url}: task {task['id']} has no list of annotations")
        how = Intake("label-studio", latest=True)
        done = take(
            self.store,
            self._responses(tasks, unreadable),
            how,
            bad,
            batch=self.info.batch,
            unread=unread,
            retracted=self._retracted(tasks),
        )
        self.out.new += done.new
        self.out.joined += done.joined
        for name in ("replaced", "older", "skips", "spans", "notes", "quarantined", "retracted"):
            setattr(self.out, name, getattr(self.out, name) + getattr(done, name))
        self.out.changed_tasks += len(tasks)
        failed = {task["id"] for task in tasks if any(_name(task, a) in left for a in task["annotations"])}
        self._remember(tasks, failed)

    def _responses(
        self, tasks: Sequence[Mapping[str, Any]], bad: Callable[[BadInput], None]
    ) -> Iterator[Response]:
        for task in tasks:
            key = links.key_of(task, self.seats)
            unit = key[0] if key else None
            ours = unit is not None and self.reader.inputs(unit) is not None
            self.out.strange_tasks += not ours
            for annotation in sorted(task["annotations"], key=lambda a: str(a.get("updated_at"))):
                where = Where(_name(task, annotation), 0)
                self.out.annotations += 1
                if key is None or unit is None or not ours:
                    reason = (
                        "the task does not say which unit it is"
                        if unit is None
                        else f"unit '{unit}' is not in the batch"
                    )
                    bad(Unproven("unit", reason, path=where.path, field=UNIT_KEY))
                    continue
                try:
                    response, problems = self.reader.response(
                        annotation, unit, blind=not self.link.assisted, where=where, data=task["data"],
                        source=self._source(annotation["id"]),
                    )  # fmt: skip
                except BadInput as e:
                    bad(BadInput(f"{unit}: {e.reason}", path=where.path, field=e.field))
                    continue
                self.out.problems += [f"{where.path}: {unit}: {problem}" for problem in problems]
                self.out.incomplete += not response.skipped and len(response.answers) < len(
                    self.reader.layout.fields
                )
                yield replace(response, repeat=key[1])

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.info.batch, self.link.url, self.link.person

    def _source(self, annotation: int) -> str:
        return f"{self.link.address}#{annotation}"

    def _retracted(self, tasks: Sequence[Mapping[str, Any]]) -> list[Retracted]:
        """Annotations that came in and are gone from a task that is still the one they were made on, or were given to
        somebody else there.

        Of a deleted task the labels stay: that says nothing about what its annotators meant.
        """
        gone = []
        for task in tasks:
            if task["id"] in self.survey.strange or self.survey.known[task["id"]].key != links.key_of(
                task, self.seats
            ):
                continue
            there = {a["id"]: a for a in task["annotations"]}
            for number, unit, repeat, who in self._known_annotations([task["id"]]):
                if number not in there or (who and self._is_another_s(there[number], who)):
                    self.out.deleted_annotations += number not in there
                    if unit and who:
                        gone.append(Retracted(who, unit, self._source(number), repeat))
        return gone

    def _is_another_s(self, annotation: Mapping[str, Any], who: str) -> bool:
        """Whether the server says now that somebody else of the batch made an annotation."""
        try:
            return self.reader.author(annotation.get("completed_by")) != who
        except Unproven:
            return False  # nobody says that it is not theirs

    def _known_annotations(self, tasks: Sequence[int]) -> list[tuple[int, str | None, int, str | None]]:
        query = (
            "SELECT annotation, unit_id, repeat, annotator_id FROM label_studio_annotations "
            "WHERE batch = ? AND url = ? AND person = ? AND task IN (SELECT value FROM json_each(?))"
        )
        return self.store.conn.execute(query, [*self._key, dumps(list(tasks))]).fetchall()

    def _remember(self, tasks: Sequence[Mapping[str, Any]], failed: set[int]) -> None:
        ours = {
            task["id"]: links.KnownTask(
                *key, None if task["id"] in failed else task["updated_at"], task["created_at"]
            )
            for task in tasks
            if (key := links.key_of(task, self.seats)) and self.reader.inputs(key[0]) is not None
        }
        with self.store.transaction() as conn:
            query = (
                "DELETE FROM label_studio_annotations WHERE batch = ? AND url = ? AND person = ? "
                "AND task IN (SELECT value FROM json_each(?))"
            )
            conn.execute(query, [*self._key, dumps([task["id"] for task in tasks])])
            conn.executemany(
                "INSERT OR REPLACE INTO label_studio_annotations VALUES (?, ?, ?, ?, ?, ?, ?, "
                "(SELECT e.annotator_id FROM event_sources AS s JOIN events AS e USING (event_id) WHERE s.source = ? "
                "ORDER BY e.seq DESC LIMIT 1))",
                [
                    (*self._key, a["id"], task["id"], *ours[task["id"]].key, self._source(a["id"]))
                    for task in tasks
                    if task["id"] in ours
                    for a in task["annotations"]
                ],
            )
            links.note_tasks(conn, self.info.batch, self.link, ours)


def _name(task: Mapping[str, Any], annotation: Mapping[str, Any]) -> str:
    return f"task {task['id']}, annotation {annotation.get('id')}"
