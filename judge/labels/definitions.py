"""Find the task that defines a field in a study, with the field's labels and level."""

from collections.abc import Iterable

from judge.errors import UsageError
from judge.notes import Note
from judge.prompts.load import Task
from judge.store import Store
from judge.store.export import find_task, read_stored_task


def read_stored_tasks(store: Store) -> list[Task]:
    """Return the study's tasks, newest version first."""
    names = store.conn.execute("SELECT task FROM tasks ORDER BY task_id, version DESC")
    return [read_stored_task(store, name) for (name,) in names.fetchall()]


def definitions_of(tasks: Iterable[Task], field: str) -> list[list[Task]]:
    """Return the tasks that define the field, in groups with the same labels and level."""
    groups: dict[tuple[str, ...], list[Task]] = {}
    for task in tasks:
        if field in task.fields:
            groups.setdefault((task.level(field), *task.domain(field)), []).append(task)
    return list(groups.values())


def definition_of(store: Store, field: str, name: str | None) -> tuple[Task | None, set[str], list[Note]]:
    """Return the task that defines the field, the names of all tasks that define it in the same way, and
    notes.

    Only runs of these tasks can be compared with each other.
    """
    groups = definitions_of(read_stored_tasks(store), field)
    if name is None:
        # Labels with the same name and different meanings must not be compared, so the user must choose.
        if len(groups) > 1:
            definitions = "; ".join(
                f"{g[0].name}: {', '.join(g[0].domain(field)) or 'no labels'}" for g in groups
            )
            raise UsageError(
                f"'{field}' has different labels in the tasks of this study ({definitions}); choose one with --task"
            )
        if not groups:
            return None, set(), []
        return groups[0][0], {task.name for task in groups[0]}, []
    for group in groups:
        chosen = [task for task in group if name in (task.name, task.task_id)]
        if chosen:
            other_tasks = [task.name for other in groups if other is not group for task in other]
            notes = [Note("other_labels", field=field, tasks=tuple(other_tasks))] if other_tasks else []
            return chosen[0], {task.name for task in group}, notes
    task = find_task(store, name)
    if field not in task.fields:
        raise UsageError(f"task {task.name} has no field '{field}'; it has {', '.join(task.fields)}")
    definition = (task.level(field), task.domain(field))
    comparable = [t.name for g in groups for t in g if (t.level(field), t.domain(field)) == definition]
    return task, set(comparable), []
