"""A batch out to a Label Studio server: the project, its tasks, and the judge's labels if they are asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from annotate import exposure
from annotate.desk import BatchInfo, batch_info
from annotate.exchange.label_studio import link as links
from annotate.exchange.label_studio import sdk
from annotate.exchange.label_studio.check import Check
from annotate.exchange.label_studio.config import Layout
from annotate.exchange.label_studio.link import Link
from annotate.exchange.label_studio.server import Project, Server
from annotate.exchange.label_studio.tasks import data_of, prediction
from annotate.exchange.units import Unit, Units
from judge.errors import ProviderError, StudyError, UsageError
from judge.store import Store, label_rows
from judge.store.export import find_run, stored_task
from judge.store.study import dumps
from judge.types import Json

TASKS = 250
BYTES = 4_000_000
"""One import holds at most so many tasks, and stays under this size unless one task is larger."""
AGAIN = "annotate push --new makes another one"


@dataclass(slots=True)
class Pushed:
    """What a push did. `there` units had a task already; `deleted` had one that somebody removed."""

    batch: str
    url: str
    project: int = 0
    created: bool = False
    updated: bool = False
    new: int = 0
    there: int = 0
    deleted: int = 0
    repeats: int = 0
    """Hidden repeats, which stay with the terminal."""
    assisted: bool = False
    run: str | None = None
    without_prediction: int = 0


def push(
    store: Store,
    batch: str,
    server: Server,
    *,
    predictions: bool = False,
    run: str | None = None,
    new: bool = False,
    restore: bool = False,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Pushed:
    """Make or complete the batch's project; doing it again adds what is missing and nothing else.

    `predictions` sends the labels of `run` (default: the newest run of the task) and marks the batch as
    assisted. `new` gives up a project that is gone, `restore` sends units again whose task was deleted.
    Raises UsageError for a batch that cannot be assisted any more, ProviderError when the server fails:
    then the same call goes on where it stopped.
    """
    info = batch_info(store, batch)
    if info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: there is nothing left to label")
    layout = Layout(info.task)
    units = Units(store, info)
    run_id = _run(store, info, run) if predictions else None
    check = Check(layout.xml)
    out = Pushed(batch, server.url, repeats=units.repeats)
    with store.run_lock(f"label studio {batch}"):
        if new:
            links.forget(store, batch, server.url)
        found = None if new else links.find(store, info, server, AGAIN)
        if found is None:
            link = _create(store, info, server, layout, run_id)
            out.created = True
            sent: set[str] = set()
            lost: set[str] = set()
        else:
            link, project = found
            _same_sight(store, info, link, project, run_id)
            out.updated = _update(server, layout, link, project)
            sent, lost = _known(store, info, server, link, restore)
        link = links.stored(store, batch, server.url) or link
        missing = [u for u in units.ids if u not in sent and u not in lost]
        out.project, out.assisted, out.run = link.project, link.assisted, link.run
        out.there, out.deleted = len(sent), len(lost)
        labels = _judged(store, info, link.run) if link.run else {}
        model = _model(store, link.run) if link.run else ""
        for page in _pages(_tasks(units, layout, missing, labels, model, check)):
            try:
                ids = server.add(link.project, [task for _, task in page])
            except ProviderError as e:
                raise type(e)(
                    f"{e} (batch '{batch}': {out.there + out.new:,} of {len(units):,} units are known to be there; nothing is sent twice)"
                ) from None
            links.add_tasks(store, batch, link, dict(zip(ids, [u for u, _ in page], strict=True)))
            with store.transaction() as conn:
                judged = [unit for unit, task in page if "predictions" in task]
                exposure.note_batch(conn, info.task, batch, units.people, "push", judged)
            out.new += len(page)
            out.without_prediction += sum("predictions" not in task for _, task in page) if link.run else 0
            told(out.there + out.new, len(units))
    return out


def preview(
    store: Store, batch: str, url: str, *, predictions: bool = False, run: str | None = None
) -> Pushed:
    """What a push would send, by what the study knows: nothing is asked of the server, and nothing is written.

    Raises UsageError as `push`, and for a unit that the configuration cannot show.
    """
    info = batch_info(store, batch)
    if info.closed:
        raise StudyError(f"batch '{batch}' was closed on {info.closed[:10]}: there is nothing left to label")
    layout, units = Layout(info.task), Units(store, info)
    run_id = _run(store, info, run) if predictions else None
    out = Pushed(batch, sdk.address(url), repeats=units.repeats, assisted=run_id is not None, run=run_id)
    link = links.stored(store, batch, out.url)
    known = {task.unit for task in links.tasks_of(store, batch, link).values()} if link else set()
    missing = [u for u in units.ids if u not in known]
    labels = _judged(store, info, run_id) if run_id else {}
    sent = [task for _, task in _tasks(units, layout, missing, labels, "", Check(layout.xml))]
    out.project, out.created = link.project if link else 0, link is None
    out.new, out.there = len(sent), len(known)
    out.without_prediction = sum("predictions" not in task for task in sent) if run_id else 0
    return out


def _run(store: Store, info: BatchInfo, name: str | None) -> str:
    fields = {q.field for q in info.task.spec.questions}
    if name:
        found = find_run(store, name)
        if not set(stored_task(store, found["task"]).fields) & fields:
            raise UsageError(
                f"run {found['run_id']} ({found['task']}) did not answer what {info.task.name} asks"
            )
        return str(found["run_id"])
    query = "SELECT run_id FROM runs WHERE task = ? ORDER BY started DESC, run_id DESC LIMIT 1"
    row = store.conn.execute(query, [info.task.name]).fetchone()
    if row is None:
        raise UsageError(
            f"--with-predictions needs a judge run of {info.task.name}: judge run {info.task.task_id} -m MODEL"
        )
    return str(row[0])


def _same_sight(store: Store, info: BatchInfo, link: Link, project: Project, run: str | None) -> None:
    """Refuse to show the judge in a project that was blind so far, or another run than before."""
    if run and not link.assisted:
        raise UsageError(
            f"{link.address} was pushed without predictions: with them, its blind labels could not be told from "
            "assisted ones. Draw another batch for an assisted round"
        )
    if run and link.run and run != link.run:
        raise UsageError(f"{link.address} shows the predictions of run {link.run}: add --run {link.run}")
    if project.predictions and not link.assisted:
        links.mark_assisted(store, info.batch, link)


def _create(store: Store, info: BatchInfo, server: Server, layout: Layout, run: str | None) -> Link:
    if (
        run
        and store.conn.execute(
            "SELECT 1 FROM events WHERE batch = ? AND kind = 'label' LIMIT 1", [info.batch]
        ).fetchone()
    ):
        raise UsageError(
            f"batch '{info.batch}' has blind labels already: predictions would mix both kinds. "
            "Draw another batch for an assisted round"
        )
    title = f"adjudge: {info.batch}"
    number = server.create(
        {
            "title": title if len(title) <= 50 else title[:49] + "…",
            "description": links.description(store, info, run),
            "label_config": layout.xml,
            "expert_instruction": layout.instruction,
            "show_instruction": True,
            "show_skip_button": True,
            "enable_empty_annotation": False,
            "show_collab_predictions": run is not None,
            "maximum_annotations": max(1, int(info.options.get("overlap") or 1)),
            "sampling": "Sequential sampling",
        }
    )
    link = Link(server.url, number, run is not None, run)
    links.keep(store, info.batch, link)
    return link


def _update(server: Server, layout: Layout, link: Link, project: Project) -> bool:
    """Put our configuration back where somebody changed it."""
    if project.xml.split() == layout.xml.split():
        return False
    server.update(link.project, {"label_config": layout.xml})
    return True


def _known(
    store: Store, info: BatchInfo, server: Server, link: Link, restore: bool
) -> tuple[set[str], set[str]]:
    """(units that have a task there, units whose task was deleted and that are not sent again)."""
    live, lost = links.units_there(store, info, server, link)
    if restore:
        there = links.tasks_of(store, info.batch, link)
        links.drop_tasks(store, info.batch, link, [t for t in there if t not in live])
        return set(live.values()), set()
    return set(live.values()), lost


def _tasks(
    units: Units,
    layout: Layout,
    missing: Sequence[str],
    labels: dict[str, dict[str, tuple[str, float | None]]],
    model: str,
    check: Check,
) -> Iterator[tuple[str, dict[str, Json]]]:
    with units.reader() as inputs_of:
        for unit in missing:
            task: dict[str, Json] = {"data": data_of(layout, Unit(unit, inputs_of(unit)))}
            if unit in labels:
                made = prediction(layout, labels[unit], model)
                check.regions(made["result"])
                task["predictions"] = [made]
            else:
                check.task(task)
            yield unit, task


def _pages(tasks: Iterator[tuple[str, dict[str, Json]]]) -> Iterator[list[tuple[str, dict[str, Json]]]]:
    page: list[tuple[str, dict[str, Json]]] = []
    size = 0
    for unit, task in tasks:
        length = len(dumps(task))
        if page and (len(page) == TASKS or size + length > BYTES):
            yield page
            page, size = [], 0
        page.append((unit, task))
        size += length
    if page:
        yield page


def _judged(store: Store, info: BatchInfo, run: str) -> dict[str, dict[str, tuple[str, float | None]]]:
    """Unit -> field -> (label, its probability) of a run, for labels that the task has."""
    out: dict[str, dict[str, tuple[str, float | None]]] = {}
    for question in info.task.spec.questions:
        domain = info.task.domain(question.field)
        rows = store.conn.execute(
            f"SELECT l.unit_id, l.value, l.distribution FROM {label_rows.FIRST} JOIN batch_units AS b ON b.unit_id = l.unit_id "
            "WHERE b.batch = ? AND l.annotator_id = ? AND l.field = ?",
            [info.batch, run, question.field],
        )
        for unit, value, distribution in rows:
            if not domain or value in domain:
                chances: Any = json.loads(distribution) if distribution else {}
                out.setdefault(unit, {})[question.field] = (value, chances.get(value))
    return out


def _model(store: Store, run: str) -> str:
    return str(store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()[0])
