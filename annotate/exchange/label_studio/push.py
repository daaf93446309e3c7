"""Push a batch to a Label Studio server: its tasks, in one project or in one for each annotator."""

from collections.abc import Callable
from dataclasses import dataclass, field

from annotate.drawing.eligible import judge_run
from annotate.exchange.label_studio import link as links
from annotate.exchange.label_studio import sdk, tasks
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key, Link
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.label_studio.server import Project, Server
from annotate.exchange.units import ExchangeUnits, absent
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.standing import is_stopped
from judge.commands import command
from judge.errors import ProviderError, Rejected, StudyError, UsageError
from judge.store import Store


@dataclass(slots=True)
class Pushed:
    """The result of a push.

    `there` counts units that already had a task, and `deleted` counts units whose task was deleted.
    """

    batch: str
    url: str
    project: int | None = None
    """The shared project, or None if each person has a project."""
    projects: dict[str, int] = field(default_factory=dict)
    """Project numbers by person; 0 for a project that does not exist yet, in a preview."""
    created: bool = False
    updated: bool = False
    new: int = 0
    there: int = 0
    deleted: int = 0
    repeats: int = 0
    """The number of hidden repeats that are not sent, because the project is shared."""
    assisted: bool = False
    run: str | None = None
    without_prediction: int = 0


def push(
    store: Store,
    batch: str,
    server: Server,
    *,
    run: str | None = None,
    new: bool = False,
    restore: bool = False,
    separate: bool = False,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> Pushed:
    """Create the batch's project, or add the missing tasks to it.

    With `separate`, each person gets a project with their own queue. Later pushes of the batch must do the
    same. With `run`, the labels of this judge run are sent as predictions, and the batch is marked as assisted.
    With `new`, projects that were deleted on the server are abandoned, and new ones are created. With
    `restore`, units are sent again if their task was deleted.

    Raises UsageError if the batch can no longer be assisted, or was pushed with the other value of `separate`.
    Raises ProviderError if the server fails. Another call then continues where this one stopped.
    """
    info = _open(store, batch)
    with store.run_lock(f"label studio {batch}"):
        known = links.read_links(store, batch, server.url)
        people = _people(store, info, known, separate, new)
        job = _Job(store, info, server, _layout(store, info), Pushed(batch, server.url), progress)
        run_id = judge_run(store, info.task, run, "--with-predictions") if run else None
        for link in known.values() if run_id else ():
            _check_predictions(link, run_id)
        if people[0] and run_id is None:
            run_id = next((link.run for link in known.values() if link.run), None)
        if new and (people[0] == "" or "" in known):
            links.forget(store, batch, server.url)
        shown = any(link.run for who, link in known.items() if who)
        each = [(person, ExchangeUnits(store, info, person or None)) for person in people]
        job.of = sum(len(tasks.list_tasks(units, person)) for person, units in each)
        for person, units in each:
            job.send(person, units, run_id, new=new, restore=restore, shown=shown)
    return job.out


def preview(
    store: Store,
    batch: str,
    url: str,
    *,
    run: str | None = None,
    separate: bool = False,
    new: bool = False,
) -> Pushed:
    """Return the result that a push would have.

    The result is computed from the study alone: no server is contacted, and nothing is written.

    Raises UsageError under the same conditions as `push`, and for a unit that the configuration cannot show.
    """
    info = _open(store, batch)
    layout, url = _layout(store, info), sdk.address(url)
    run_id = judge_run(store, info.task, run, "--with-predictions") if run else None
    out = Pushed(batch, url, assisted=run_id is not None, run=run_id)
    known = links.read_links(store, batch, url)
    for person in _people(store, info, known, separate, new):
        link = None if new and not person else known.get(person)
        if link is not None and run_id:
            _check_predictions(link, run_id)
        units = ExchangeUnits(store, info, person or None)
        there = {task.key for task in links.tasks_of(store, batch, link).values()} if link else set()
        missing = [unit for unit in tasks.list_tasks(units, person) if unit.key not in there]
        labels = tasks.read_judged(store, info, run_id) if run_id else {}
        sent = [task for _, task in tasks.tasks_of(units, layout, missing, labels, "", Check(layout.xml))]
        if person:
            out.projects[person] = link.project if link else 0
        else:
            out.project, out.repeats = link.project if link else None, units.repeats
        out.created |= link is None
        out.new, out.there = out.new + len(sent), out.there + len(there)
        out.without_prediction += sum("predictions" not in task for task in sent) if run_id else 0
    return out


def _open(store: Store, batch: str) -> BatchInfo:
    info = batch_info(store, batch)
    if info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: no more labels are accepted")
    return info


def _layout(store: Store, info: BatchInfo) -> ConfigLayout:
    return ConfigLayout(info.task, absent(store, info))


def _people(store: Store, info: BatchInfo, known: dict[str, Link], separate: bool, new: bool) -> list[str]:
    """Return the people whose projects receive units, or [""] for the shared project.

    Raises UsageError for --separate if the batch already has a shared project.
    """
    if "" in known and separate and not new:
        raise UsageError(
            f"batch '{info.batch}' already has one project for all annotators at {known[''].address}. --separate --new abandons it and "
            f"creates one project per person; first fetch the labels of the old project: {command('annotate pull', info.batch, '--url', known[''].address)}"
        )
    if not separate and not any(known):
        return [""]
    people = [p for p in ExchangeUnits(store, info).people if not is_stopped(store.conn, info.batch, p)]
    if not people:
        raise UsageError(f"batch '{info.batch}': all its annotators were stopped")
    return people


def _check_predictions(link: Link, run: str | None) -> None:
    """Raise UsageError if the predictions of `run` must not be sent to the project.

    This is the case if the project was pushed without predictions, or shows the predictions of a different run.
    """
    if run and not link.assisted:
        raise UsageError(
            f"{link.address} was pushed without predictions. If they were added now, its blind labels could no longer be distinguished "
            "from assisted labels. To show predictions, draw another batch"
        )
    if run and link.run and run != link.run:
        raise UsageError(
            f"{link.address} shows the predictions of run {link.run}: add --with-predictions {link.run}"
        )


@dataclass(slots=True)
class _Job:
    """One push of a batch, to one project after the other."""

    store: Store
    info: BatchInfo
    server: Server
    layout: ConfigLayout
    out: Pushed
    progress: Callable[[int, int], None]
    of: int = 0
    """The number of tasks in all projects after the push."""

    def send(
        self, person: str, units: ExchangeUnits, run: str | None, *, new: bool, restore: bool, shown: bool
    ) -> None:
        """Create one project, or add the missing tasks to it."""
        out, batch = self.out, self.info.batch
        existing = self._existing(person, new)
        sent: set[Key] = set()
        lost: set[Key] = set()
        if existing is None:
            link = self._create(person, run, shown)
            out.created = True
        else:
            link, project = existing
            _check_predictions(link, run)
            # Somebody else may have added predictions on the server.
            if project.predictions and not link.assisted:
                link = links.mark_assisted(self.store, batch, link)
            out.updated |= self._update(link, project)
            sent, lost = self._read_known(link, restore)
        missing = [unit for unit in tasks.list_tasks(units, person) if unit.key not in sent | lost]
        if person:
            out.projects[person] = link.project
        else:
            out.project, out.repeats = link.project, units.repeats
        out.assisted |= link.assisted
        out.run = link.run or out.run
        out.there += len(sent)
        out.deleted += len(lost)
        labels = tasks.read_judged(self.store, self.info, link.run) if link.run else {}
        query = "SELECT model FROM runs WHERE run_id = ?"
        model = self.store.conn.execute(query, [link.run]).fetchone()[0] if link.run else ""
        check = Check(self.layout.xml)
        for page in tasks.pages(tasks.tasks_of(units, self.layout, missing, labels, model, check)):
            self._add(link, units.people, page)

    def _add(self, link: Link, people: list[str], page: list[tuple[Key, dict[str, object]]]) -> None:
        out, batch = self.out, self.info.batch
        try:
            ids = self.server.add(link.project, [task for _, task in page])
        except ProviderError as e:
            raise type(e)(
                f"{e} (batch '{batch}': {out.there + out.new:,} of {self.of:,} units are known to be on the server; no unit is sent twice)"
            ) from None
        # The server returns the ids in the order of the tasks sent. They are stored page by page, so that a push that is
        # interrupted sends no task twice.
        links.add_tasks(self.store, batch, link, dict(zip(ids, [key for key, _ in page], strict=True)))
        with self.store.transaction() as conn:
            judged = [key[0] for key, task in page if "predictions" in task]
            exposure.note_batch(conn, self.info.task, batch, people, "push", judged)
        out.new += len(page)
        out.without_prediction += sum("predictions" not in task for _, task in page) if link.run else 0
        self.progress(out.there + out.new, self.of)

    def _existing(self, person: str, new: bool) -> tuple[Link, Project] | None:
        # --new abandons a shared project. If each person has a project, it abandons only the deleted projects.
        if new and not person:
            return None
        try:
            again = f"To create another project: {command('annotate push', self.info.batch, '--url', self.server.url, '--new')}"
            return links.find(self.store, self.info, self.server, again, person)
        except Rejected as e:
            if not new or e.status != 404:
                raise
            links.forget(self.store, self.info.batch, self.server.url, person)
            return None

    def _create(self, person: str, run: str | None, shown: bool) -> Link:
        """Create a project.

        `shown` is true if another annotator's project of this batch already shows predictions. The new
        project may then show predictions even if the batch has labels.
        """
        info = self.info
        labelled = "SELECT 1 FROM events WHERE batch = ? AND kind = 'label' LIMIT 1"
        if run and not shown and self.store.conn.execute(labelled, [info.batch]).fetchone():
            raise UsageError(
                f"batch '{info.batch}' already has blind labels; showing predictions now would mix blind and assisted labels. "
                "Draw another batch for an assisted round"
            )
        title = f"adjudge: {info.batch}" + (f" ({person})" if person else "")
        number = self.server.create(
            {
                # The server rejects titles of more than 50 characters.
                "title": title if len(title) <= 50 else title[:49] + "…",
                "description": links.description(self.store, info, run, person),
                "label_config": self.layout.xml,
                "expert_instruction": self.layout.instruction,
                "show_instruction": True,
                "show_skip_button": True,
                "enable_empty_annotation": False,
                "show_collab_predictions": run is not None,
                "maximum_annotations": 1 if person else info.plan.overlap or 1,
                # Tasks are shown in the order of the queue: training comes first, and a repeat comes long after
                # its unit.
                "sampling": "Sequential sampling",
            }
        )
        link = Link(self.server.url, number, run is not None, run, person)
        links.keep(self.store, info.batch, link)
        return link

    def _update(self, link: Link, project: Project) -> bool:
        """Restore our configuration if somebody changed it on the server; return whether it was changed."""
        if project.xml.split() == self.layout.xml.split():
            return False
        self.server.update(link.project, {"label_config": self.layout.xml})
        return True

    def _read_known(self, link: Link, restore: bool) -> tuple[set[Key], set[Key]]:
        """Return the units that have a task on the server, and the units whose task was deleted.

        Units whose task was deleted are not sent again. With `restore`, they are sent again, and the second
        set is empty.
        """
        live, lost = links.units_there(self.store, self.info, self.server, link)
        if restore:
            there = links.tasks_of(self.store, self.info.batch, link)
            links.drop_tasks(self.store, self.info.batch, link, [t for t in there if t not in live])
            return set(live.values()), set()
        return set(live.values()), lost
