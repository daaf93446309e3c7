"""Fetch a batch's annotations from a Label Studio server, and store them as events with annotators, times,
edits and skips.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from annotate.exchange.base import UNIT_KEY
from annotate.exchange.gate import import_rows
from annotate.exchange.label_studio import link as links
from annotate.exchange.label_studio.annotations import Authors, Reader, list_names
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key, Link, Survey
from annotate.exchange.label_studio.server import Project, Server, User
from annotate.exchange.proof import PartOfRecord, Unproven
from annotate.exchange.responses import Response
from annotate.exchange.result import ImportOptions, ImportResult, Retracted
from annotate.exchange.units import ExchangeUnits
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.standing import people_of
from judge.commands import command
from judge.errors import BadInput, Rejected, ServerFault, UsageError
from judge.store import Store
from judge.store.study import dumps
from judge.types import Where

AT_ONCE = 500
"""The largest number of changed tasks that are fetched by id. Above this number, fetching the whole export is
faster.
"""
PAGE = 500
"""The number of tasks whose answers are stored in one transaction."""


@dataclass(slots=True)
class Pulled:
    """The result of a pull."""

    batch: str
    url: str
    project: int | None = None
    """The shared project, or None if each person has a project."""
    projects: dict[str, int] = field(default_factory=dict)
    """Projects by person."""
    assisted: bool = False
    tasks: int = 0
    changed_tasks: int = 0
    """Tasks that changed since the last pull."""
    annotations: int = 0
    """The annotations in the changed tasks."""
    imported: ImportResult = field(default_factory=ImportResult)
    """The result of passing the annotations through the gate."""
    incomplete: int = 0
    """Annotations that do not answer every question."""
    deleted_tasks: int = 0
    deleted_annotations: int = 0
    strange_tasks: int = 0
    problems: list[str] = field(default_factory=list)
    """Descriptions of everything that was left out, each with its task and annotation."""


def pull(
    store: Store,
    batch: str,
    server: Server,
    *,
    people: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Pulled:
    """Store the new annotations of a batch. A second call adds nothing. `people` maps a user's e-mail, user
    name or id to an annotator.

    Unusable annotations are skipped and named in `problems`. The next pull reads them again. Raises UsageError
    if the batch was never pushed to the server, and ProviderError if the server fails.
    """
    info = batch_info(store, batch)
    layout = ConfigLayout(info.task)
    out = Pulled(batch, server.url)
    with store.run_lock(f"label studio {batch}"), ExchangeUnits(store, info).reader() as inputs:
        projects = _projects(store, info, server, out)
        surveys = {link: links.survey(store, info, server, link) for link in projects}
        of = sum(len(there.unread) for there in surveys.values())
        # If nothing has changed, a pull requests only the list of tasks.
        users, given = list(server.users().values()) if of else [], people or {}
        _check_users(users, given)
        authors = Authors(users, given, people_of(store.conn, batch), "--annotator ")
        live: set[tuple[str, Key]] = set()
        known: set[tuple[str, Key]] = set()
        for link, there in surveys.items():
            # This is checked at every pull, because everybody with access to the server can add predictions.
            if projects[link].predictions and not link.assisted:
                link = links.mark_assisted(store, batch, link)
            if link.person:
                out.projects[link.person] = link.project
            else:
                out.project = link.project
            out.assisted |= link.assisted
            seats = links.seats_of(store, batch, link.person)
            reader = Reader(layout, inputs, partial(_author, link, authors), authors.name_user)
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


def _check_users(users: Sequence[User], given: Mapping[str, str]) -> None:
    """Raise UsageError if a name in `given` does not match a user."""
    for name in given:
        if users and not any(name in list_names(u) for u in users):
            known = ", ".join(map(str, users))
            raise UsageError(
                f"--annotator {name}={given[name]}: the server has no such user; available: {known}"
            )


def _projects(store: Store, info: BatchInfo, server: Server, out: Pulled) -> dict[Link, Project]:
    """Return the batch's projects. If each person has a project, deleted projects are left out and reported in
    `problems`.

    Raises UsageError if there is no project, and Rejected if the shared project was deleted.
    """
    hint = f"To create another project: {command('annotate push', info.batch, '--url', server.url, '--new')}"
    known = list(links.read_links(store, info.batch, server.url))
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
        message = f"batch '{info.batch}' is not on {server.url}; to push it: {command('annotate push', info.batch, '--url', server.url)}"
        raise UsageError(message)
    return projects


def _author(link: Link, authors: Authors, completed_by: Any) -> str:
    """Return the annotator for a user. Raises Unproven for an unknown user, and for a user who annotated in
    another person's project.
    """
    who = authors.find_author(completed_by)
    # Annotators of one project see each other's annotations, so such a label may not be blind.
    if link.person and who != link.person:
        raise Unproven(
            "person",
            f"{who} annotated in the project of {link.person}, where {link.person}'s labels are visible",
            field="completed_by",
            who=who,
        )
    return who


@dataclass(slots=True)
class _Page:
    """Stores the answers to some tasks in one transaction, and then marks the tasks as read."""

    store: Store
    info: BatchInfo
    link: Link
    reader: Reader
    out: Pulled
    survey: Survey
    seats: Mapping[int, Key]
    """The units by position in the person's queue. Empty for a shared project."""

    def take(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Store the answers to these tasks, and then mark the tasks as read."""
        # The tasks are marked as read afterwards: a process that is killed in between reads them again, and adds nothing.
        left_out: set[str] = set()
        unread: list[BadInput] = []

        def bad(error: BadInput) -> None:
            self.out.problems.append(str(error))
            # The rest of the record was imported, so it need not be read again.
            if not isinstance(error, PartOfRecord):
                left_out.add(error.path)

        def unreadable(error: BadInput) -> None:
            bad(error)
            unread.append(error)

        for task in tasks:
            annotations = task.get("annotations")
            if not isinstance(annotations, list) or not all(isinstance(a, dict) for a in annotations):
                raise ServerFault(f"{self.link.url}: task {task['id']} has no list of annotations")
        # An edited annotation is a later answer by the same person, not a contradiction.
        how = ImportOptions("label-studio", latest=True)
        done = import_rows(
            self.store,
            self._responses(tasks, unreadable),
            how,
            bad,
            inputs=self.reader.inputs,
            batch=self.info.batch,
            unread=unread,
            retracted=self._find_retracted(tasks),
        )
        self.out.imported.add(done)
        self.out.changed_tasks += len(tasks)
        failed = {
            task["id"] for task in tasks if any(_name(task, a) in left_out for a in task["annotations"])
        }
        self._mark_as_read(tasks, failed)

    def _responses(
        self, tasks: Sequence[Mapping[str, Any]], bad: Callable[[BadInput], None]
    ) -> Iterator[Response]:
        for task in tasks:
            key = links.key_of(task, self.seats)
            unit = key[0] if key else None
            ours = unit is not None and self.reader.inputs(unit) is not None
            self.out.strange_tasks += not ours
            # The last response counts, so the latest annotation comes last.
            for annotation in sorted(task["annotations"], key=lambda a: str(a.get("updated_at"))):
                where = Where(_name(task, annotation), 0)
                self.out.annotations += 1
                if key is None or unit is None or not ours:
                    reason = (
                        "the task does not name its unit"
                        if unit is None
                        else f"unit '{unit}' is not in the batch"
                    )
                    bad(Unproven("unit", reason, path=where.path, field=UNIT_KEY))
                    continue
                try:
                    response = self.reader.response(
                        annotation, unit, blind=not self.link.assisted, where=where, data=task["data"],
                        source=self._source(annotation["id"]),
                    )  # fmt: skip
                except BadInput as e:
                    bad(BadInput(f"{unit}: {e.reason}", path=where.path, field=e.field))
                    continue
                self.out.incomplete += not response.skipped and len(response.answers) < len(
                    self.reader.layout.fields
                )
                yield replace(response, repeat=key[1])

    @property
    def _key(self) -> tuple[str, str, str]:
        return self.info.batch, self.link.url, self.link.person

    def _source(self, annotation: int) -> str:
        return f"{self.link.address}#{annotation}"

    def _find_retracted(self, tasks: Sequence[Mapping[str, Any]]) -> list[Retracted]:
        """Return the imported annotations that have since been deleted from their task, or assigned to another user.

        The labels from a deleted task are kept.
        """
        withdrawn = []
        for task in tasks:
            # Deleting a task does not mean that its labels were wrong.
            if task["id"] in self.survey.strange or self.survey.known[task["id"]].key != links.key_of(
                task, self.seats
            ):
                continue
            present = {a["id"]: a for a in task["annotations"]}
            for number, unit, repeat, who in self._read_known([task["id"]]):
                if number not in present or (who and self._has_other_author(present[number], who)):
                    self.out.deleted_annotations += number not in present
                    if unit and who:
                        withdrawn.append(Retracted(who, unit, self._source(number), repeat))
        return withdrawn

    def _has_other_author(self, annotation: Mapping[str, Any], who: str) -> bool:
        """Return whether the server now names a different annotator of the batch as the author of an annotation."""
        try:
            return self.reader.author(annotation.get("completed_by")) != who
        except Unproven:
            # An unknown user is no evidence against the annotator.
            return False

    def _read_known(self, tasks: Sequence[int]) -> list[tuple[int, str | None, int, str | None]]:
        query = (
            "SELECT annotation, unit_id, repeat, annotator_id FROM label_studio_annotations "
            "WHERE batch = ? AND url = ? AND person = ? AND task IN (SELECT value FROM json_each(?))"
        )
        return self.store.conn.execute(query, [*self._key, dumps(list(tasks))]).fetchall()

    def _mark_as_read(self, tasks: Sequence[Mapping[str, Any]], failed: set[int]) -> None:
        # A task with a failed annotation stays unread, so that the next pull reads it again.
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
