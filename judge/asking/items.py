"""Import items from files or rows in memory, for `judge items import` and `Study.items`; and find suitable tasks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.importers.base import Options
    from judge.prompts.load import Task
    from judge.store import Store
    from judge.store.imports import ImportReport

MOST_SUGGESTED = 3
GROUNDED = "grounding"
"""A task that fits every answer with contexts."""
ANSWERS_ALONE = ("eligibility", "deflection")
"""Tasks for answers without contexts, most useful first."""


@dataclass(slots=True)
class Imported:
    """The result of an import: the transactions with their files, notes for the user, and tasks for the data, best first.

    `has_grounds` is True if the newest answers have contexts, so that their faithfulness can be judged.
    """

    transactions: list[tuple[list[str], ImportReport]]
    notes: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    has_grounds: bool = False

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per transaction: its files, data sets, new rows by kind, and the number of skipped rows."""
        return [
            {"files": files, "datasets": report.datasets, **report.counts, "skipped": len(report.skipped)}
            for files, report in self.transactions
        ]

    @property
    def skipped(self) -> list[str]:
        """The skipped rows, each with file, line and reason."""
        return [str(problem) for _, report in self.transactions for problem in report.skipped]


def from_files(
    db: Path, format_name: str, paths: Sequence[Path], options: Options, skip_bad: bool = False
) -> Imported:
    """Import files of one format. Raises the errors of `import_files`."""
    from judge.importers import base
    from judge.importers.importing import import_files

    done = Imported(import_files(db, format_name, base.get(format_name), paths, options, skip_bad))
    return _noting_labels(db, done)


def tried(
    format_name: str, paths: Sequence[Path], options: Options, skip_bad: bool = False
) -> tuple[Imported, list[str]]:
    """Import into a study in a temporary directory. Return the result and the prompt for the first unit, as lines of text.

    Raises the errors of `from_files`.
    """
    from tempfile import TemporaryDirectory

    from judge.store import Store

    # An import needs a study, and a dry run must not change the user's.
    with TemporaryDirectory() as folder:
        db = Path(folder) / "study.db"
        done = from_files(db, format_name, paths, options, skip_bad)
        with Store.open(db, create=False) as store:
            return done, _first_prompt(store, done.tasks)


def _first_prompt(store: Store, tasks: Sequence[str]) -> list[str]:
    """Return the messages for the first unit of the first suitable task, or for an answer's sentence if there are answers."""
    from judge.prompts import load_task
    from judge.prompts.raw import renderer_of
    from judge.runner.modes import choose_mode, label_orders
    from judge.store import selection

    for name in (GROUNDED, *tasks):
        task = load_task(name)
        selection.select(store, task, selection.Selection(None, limit=1))
        unit = next(selection.pending(store, task, run_id=""), None)
        if unit is not None:
            # No model is named yet, so no label probabilities can be assumed.
            mode = choose_mode(task, False, "json")
            prompt = renderer_of(task, mode, label_orders(task, "declared")).render(unit.inputs)
            head = f"prompt of {task.name} for {unit.unit_id}:"
            return [head, *(f"--- {message.role}\n{message.content}\n" for message in prompt.messages)]
    return []


def from_rows(
    db: Path,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    options: Options,
    skip_bad: bool = False,
    *,
    columns: Sequence[str] | None = None,
) -> Imported:
    """Import rows in memory like the rows of a JSONL file, or, if `columns` lists a table's columns, of a CSV file.

    Errors use `name` as the name of the file, and count rows from 1. Raises the errors of `import_files`.
    """
    from judge.importers.importing import import_rows

    done = Imported([([name], import_rows(db, name, rows, options, skip_bad, columns))])
    return _noting_labels(db, done)


def _noting_labels(db: Path, done: Imported) -> Imported:
    from judge.store import Store

    for _, report in done.transactions:
        done.notes += strange_labels(report.label_counts)
    with Store.open(db, create=False) as store:
        done.notes += alike(store, {name for _, report in done.transactions for name in report.datasets})
        done.notes += without_contexts(store, [report.import_id for _, report in done.transactions])
        done.tasks, done.has_grounds = suited(store), has_grounds(store)
    return done


def has_grounds(store: Store) -> bool:
    """Return whether the newest answers have contexts against which they can be judged."""
    from judge.prompts import load_task
    from judge.store.selection import suits_newest

    return suits_newest(store, load_task(GROUNDED))


def without_contexts(store: Store, import_ids: Sequence[str]) -> list[str]:
    """Return a note about answers without contexts in these imports, or nothing if there are none."""
    marks = ",".join("?" * len(import_ids))
    query = f"SELECT count(*) FROM answers WHERE context = '[]' AND origin IN ({marks})"
    [(n,)] = store.conn.execute(query, list(import_ids)).fetchall()
    consequence = "their claims and sentences cannot be judged against contexts (faithfulness, citations)"
    return [f"note: {n:,} answers have no contexts: {consequence}"] if n else []


def alike(store: Store, datasets: Collection[str]) -> list[str]:
    """Return a note about items with the same text that count as separate questions, as in files with one pair per row."""
    marks = ",".join("?" * len(datasets))
    query = (
        "SELECT coalesce(sum(n), 0), count(*) FROM (SELECT count(DISTINCT question_id) AS n FROM items "
        f"WHERE dataset IN ({marks}) AND coalesce(question, claim) IS NOT NULL GROUP BY question, claim HAVING n > 1)"
    )
    [(n, words)] = store.conn.execute(query, sorted(datasets)).fetchall()
    every = f"SELECT count(*) FROM items WHERE dataset IN ({marks})"
    # A few repeated questions are common in real data; a tenth of all items means one judged pair per row.
    if n * 10 < store.conn.execute(every, sorted(datasets)).fetchone()[0] or not n:
        return []
    return [
        f"note: {n:,} items share {words:,} questions or claims, but each item counts as a separate question. Intervals and "
        "calibration treat questions as independent, so the results would be too certain. To group the items, import them "
        "into a new study (-d) with --map question_id=COLUMN, the column with the question or claim."
    ]


def strange_labels(label_counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return notes about labels that no shipped task declares for the field, usually because --map-label was forgotten."""
    from judge.prompts import find_tasks, load_task

    if not label_counts:
        return []
    domains: dict[str, set[str]] = {}
    derived_from: set[str] = set()
    for name in find_tasks():
        task = load_task(name)
        # Gold that a task compares its own answers with is not a label of a judge.
        derived_from |= {derived.gold for derived in task.spec.derive.values() if derived.gold}
        for label_field in task.fields:
            domains.setdefault(label_field, set()).update(task.domain(label_field))
    out = []
    for label_field, counts in label_counts.items():
        strange = [v for v in counts if label_field in domains and v not in domains[label_field]]
        if strange:
            examples = ", ".join(f"{v!r} ({counts[v]})" for v in strange[:5])
            want = ", ".join(sorted(domains[label_field]))
            out.append(
                f"note: labels of '{label_field}' that its task does not declare: {examples}; the task has {want}. They are "
                f"unchanged. To rename them, import into a new study (-d) with --map-label {label_field}:OLD=NEW."
            )
        unknown = label_field not in domains and label_field not in derived_from
        if unknown and (same := _tasks_with(counts)):
            out.append(
                f"note: no task has a field '{label_field}', so no judge is compared with these labels. Tasks with these labels: "
                f"{', '.join(same)}. To add the labels under their field, import again with --map ...gold.FIELD=..."
            )
    return out


def _tasks_with(labels: Iterable[str]) -> list[str]:
    """Return `task (field FIELD)` of up to three shipped tasks that have all these labels."""
    from judge.prompts import find_tasks, load_task

    wanted = set(labels)
    tasks = [load_task(name) for name in find_tasks()]
    task_names = [
        f"{task.task_id} (field {name})"
        for task in tasks
        for name in task.fields
        if wanted <= set(task.domain(name))
    ]
    return list(dict.fromkeys(task_names))[:3]


def suited(store: Store) -> list[str]:
    """Return the shipped labelling tasks whose inputs the newest units have, best first, without version numbers.

    If these units have human or gold labels, only tasks with those fields are returned. Otherwise all fitting tasks are
    returned, ranked by the number of inputs that they show.
    """
    from judge.labels.relation import newest_fields
    from judge.prompts import find_tasks, load_task
    from judge.store.selection import suits_newest

    fields = newest_fields(store.conn)
    by_task: dict[str, tuple[bool, bool, int, int]] = {}
    for name in find_tasks():
        task = load_task(name)
        if task.people_only or not _asks_for_labels(task) or not suits_newest(store, task):
            continue
        has_labels = bool(fields & set(task.fields))
        # Of tasks that show the same, the one with the fewest labels is the easiest to begin with.
        fewest = -sum(len(question.labels) for question in task.spec.questions)
        rank = (has_labels, task.spec.unit == "passage", len(task.required_inputs), fewest)
        by_task[task.task_id] = max(rank, by_task.get(task.task_id, rank))
    ranked = sorted(by_task, key=lambda name: (*(-int(x) for x in by_task[name]), name))
    # Only a task whose field has labels can be compared with people, so other tasks are not suggested then.
    wanted = [name for name in ranked if by_task[name][0]]
    if not ranked:
        wanted = [name for name in ANSWERS_ALONE if suits_newest(store, load_task(name))]
    return wanted or ranked


def _asks_for_labels(task: Task) -> bool:
    return all(question.labels for question in task.spec.questions) and task.spec.unit in ("passage", "item")
