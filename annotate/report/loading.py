"""From a study and what is asked for to the subject of a report, with the defaults filled in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from annotate.report.subject import ReportOptions, Subject
from judge.errors import UsageError
from judge.labels.panel import Panel
from judge.labels.reference import resolve
from judge.labels.scope import Scope, fields_of, read
from judge.prompts.load import Task
from judge.store import Store
from judge.store.export import known_task, stored_task
from judge.types import AnnotatorKind


def load(store: Store, asked: ReportOptions) -> Subject:
    """The subject that the command asks for, with defaults filled in.

    Raises UsageError for names that are not in the study, and where a choice is left open.
    """
    task, field, others = _choose(store, asked)
    people = None if asked.annotators is None else tuple(asked.annotators)
    order = None if asked.order is None else tuple(asked.order)
    panel = read(store, Scope(field, task, asked.batch, tuple(asked.runs), people, asked.level, order))
    short = _shorter(panel)
    wanted = asked.reference
    # A run goes by the name that annotate agreement shows, too.
    held = resolve(short, None if wanted is None else dict(_renaming(panel)).get(wanted, wanted))
    return Subject(asked, short, held, others)


def _shorter(panel: Panel) -> Panel:
    """The same with judges under the shortest names that tell them apart: the model, or model and end of the run's id."""
    return panel.renamed(_renaming(panel))


def _renaming(panel: Panel) -> dict[str, str]:
    models = {name: name.rpartition(" · ")[0].rpartition(" · ")[0] for name in panel.shown.values()}
    taken = Counter([*models.values(), *(n for n in panel.ratings.annotators if n not in models)])
    return {
        name: model if model and taken[model] == 1 else f"{model} · {name.rpartition(' · ')[2]}"
        for name, model in models.items()
    }


def _choose(store: Store, asked: ReportOptions) -> tuple[str | None, str, list[str]]:
    """The task (None when no task defines the field), the field, and the task's other labelled fields."""
    labelled = fields_of(store)
    if not labelled:
        raise UsageError(f"{store.path}: there are no labels yet (judge items import, judge run)")
    if asked.field is not None and asked.task is None:
        return None, asked.field, []
    task = (
        known_task(store, asked.task)
        if asked.task is not None
        else _only_task(store, [row.task for row in labelled if row.task])
    )
    if task is None:
        fields = sorted({row.field for row in labelled})
        if len(fields) > 1:
            raise UsageError(f"name one field with --field: {', '.join(fields)}")
        return None, fields[0], []
    # A task that the study has not used is found again by what the user called it, which may be a path.
    name = task.name if _is_stored(store, task.name) else asked.task
    mine = {row.field: row.annotators for row in labelled if row.field in task.fields}
    if asked.field is not None:
        return name, asked.field, [f for f in mine if f != asked.field]
    if not mine:
        raise UsageError(f"nobody labelled a field of {task.name} ({', '.join(task.fields)})")
    usable = [f for f in task.fields if f in mine and task.level(f) != "text"] or list(mine)
    kinds = dict(store.conn.execute("SELECT annotator_id, kind FROM annotators").fetchall())
    # A judge and somebody else labelled them.
    compared = [f for f in usable if len(of := {kinds[a] for a in mine[f]}) > 1 and AnnotatorKind.JUDGE in of]
    field = (compared or usable)[0]
    return name, field, [f for f in usable if f != field]


def _is_stored(store: Store, task: str) -> bool:
    return store.conn.execute("SELECT 1 FROM tasks WHERE task = ?", [task]).fetchone() is not None


def _only_task(store: Store, labelled: Sequence[str]) -> Task | None:
    """The only task whose fields have labels."""
    names = [row[0] for row in store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")]
    candidates = list(dict.fromkeys(n for n in names if n in labelled))
    if len(candidates) > 1:
        raise UsageError(
            f"the study has labels for several tasks; name one with --task: {', '.join(candidates)}"
        )
    return stored_task(store, candidates[0]) if candidates else None
