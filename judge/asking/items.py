"""Import items from files or from rows in memory, for `judge items import` and `Study.items`, and suggest tasks for them."""

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
"""The task that is suggested for answers with contexts."""
ANSWERS_ALONE = ("eligibility", "deflection")
"""The tasks that are suggested for answers without contexts, most useful first."""


@dataclass(slots=True)
class Imported:
    """The result of an import: the transactions with their files, notes for the user, and suggested tasks, best first.

    `has_grounds` is True if the newest answers have contexts, so that their faithfulness can be judged.
    """

    transactions: list[tuple[list[str], ImportReport]]
    notes: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    has_grounds: bool = False

    def rows(self) -> list[dict[str, Any]]:
        """Return one dict per transaction: its files and data sets, and the numbers of new rows by kind and of skipped rows."""
        return [
            {
                "files": files,
                "datasets": report.datasets,
                **report.counts,
                "skipped": len(report.skipped),
                "votes": report.votes.rows_as_json(),
            }
            for files, report in self.transactions
        ]

    @property
    def reports(self) -> list[ImportReport]:
        """The reports of the transactions."""
        return [report for _, report in self.transactions]

    @property
    def skipped(self) -> list[str]:
        """The skipped rows, each with its file, line and reason."""
        return [str(problem) for _, report in self.transactions for problem in report.skipped]


def from_files(
    db: Path, format_name: str, paths: Sequence[Path], options: Options, skip_bad: bool = False
) -> Imported:
    """Import files of one format. Raises the errors of `import_files`."""
    from judge.importers import base
    from judge.importers.importing import import_files

    done = Imported(import_files(db, format_name, base.get(format_name), paths, options, skip_bad))
    return _noting_labels(db, done)


def preview_import(
    format_name: str, paths: Sequence[Path], options: Options, skip_bad: bool = False
) -> tuple[Imported, list[str]]:
    """Import files into a temporary study. Return the result, and the prompt for the first unit as lines of text.

    Raises the same errors as `from_files`.
    """
    from tempfile import TemporaryDirectory

    from judge.store import Store

    # An import needs a study, and a dry run must not change the user's study.
    with TemporaryDirectory() as folder:
        db = Path(folder) / "study.db"
        done = from_files(db, format_name, paths, options, skip_bad)
        with Store.open(db, create=False) as store:
            return done, _first_prompt(store, done.tasks)


def _first_prompt(store: Store, tasks: Sequence[str]) -> list[str]:
    """Return the prompt of the best suggested task for its first unit, as lines of text.

    If there are answers, the prompt for a sentence of an answer is preferred.
    """
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
    """Import rows in memory as if they came from a JSON Lines file or, if `columns` is given, from a CSV file.

    `columns` lists the columns of the table. Errors use `name` as the file name, and number the rows from 1. Raises the same
    errors as `import_files`.
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
        done.notes += note_missing_contexts(store, [report.import_id for _, report in done.transactions])
        done.tasks, done.has_grounds = find_suitable_tasks(store), has_grounds(store)
    return done


def has_grounds(store: Store) -> bool:
    """Return whether the newest answers have contexts against which they can be judged."""
    from judge.prompts import load_task
    from judge.store.selection import suits_newest

    return suits_newest(store, load_task(GROUNDED))


def note_missing_contexts(store: Store, import_ids: Sequence[str]) -> list[str]:
    """If imported answers have no contexts, return a list with one note that gives their number.

    Otherwise, return an empty list. Only the given imports are considered.
    """
    marks = ",".join("?" * len(import_ids))
    query = f"SELECT count(*) FROM answers WHERE context = '[]' AND origin IN ({marks})"
    [(n,)] = store.conn.execute(query, list(import_ids)).fetchall()
    consequence = "their claims, sentences and citations cannot be judged against contexts"
    return [f"note: {n:,} answers have no contexts: {consequence}"] if n else []


def alike(store: Store, datasets: Collection[str]) -> list[str]:
    """Return a list with a note if many items have the same text but count as separate questions.

    Otherwise, return an empty list. Such items occur when a file has one judged pair per row.
    """
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
        "calibration treat questions as independent, so intervals would be too narrow. To group the items, import them into a "
        "new study with --map question_id=COLUMN, where COLUMN contains the question or claim."
    ]


def strange_labels(label_counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Return notes about labels that are not among the labels of any shipped task with the same field.

    The usual cause is a missing --map-label.
    """
    from judge.papers.engine.papers import PAPERS
    from judge.prompts import find_tasks, load_task

    if not label_counts:
        return []
    domains: dict[str, set[str]] = {}
    # A paper uses some gold fields itself, such as GaRAGe's `insufficient`.
    derived_from = {gold_field for paper in PAPERS.values() for gold_field in paper.gold}
    for name in find_tasks():
        task = load_task(name)
        # Some gold fields are only compared with the answers of a task and are not labels that a judge gives.
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
                f"note: the task of '{label_field}' does not declare some of the labels: {examples}; it declares {want}. They were "
                f"imported unchanged. To rename them, import them with --map-label {label_field}:OLD=NEW into a new study."
            )
        unknown = label_field not in domains and label_field not in derived_from
        if unknown and (same := _tasks_with(counts)):
            out.append(
                f"note: no task has a field '{label_field}', so no judge is compared with its labels. Tasks with the same labels: "
                f"{', '.join(same)}. To store the labels under the field of a task, import again with --map ...gold.FIELD=..."
            )
    return out


def _tasks_with(labels: Iterable[str]) -> list[str]:
    """List up to three shipped tasks that have all these labels, as `task (field FIELD)`."""
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


def find_suitable_tasks(store: Store) -> list[str]:
    """Return the names, without versions, of the shipped labelling tasks that fit the newest units, best first.

    If these units have human or gold labels for fields of such tasks, only the tasks with these fields are returned.
    Tasks for passages come first, then tasks that require more inputs.
    """
    from judge.labels.relation import newest_fields
    from judge.prompts import find_tasks, load_task
    from judge.store.selection import suits_newest

    fields = newest_fields(store.conn)
    by_task: dict[str, tuple[bool, bool, int, int]] = {}
    for name in find_tasks():
        task = load_task(name)
        if task.people_only or not _has_label_questions(task) or not suits_newest(store, task):
            continue
        has_labels = bool(fields & set(task.fields))
        # Of tasks that show the same inputs, the one with the fewest labels is the easiest to start with.
        fewest = -sum(len(question.labels) for question in task.spec.questions)
        rank = (has_labels, task.spec.unit == "passage", len(task.required_inputs), fewest)
        by_task[task.task_id] = max(rank, by_task.get(task.task_id, rank))
    ranked = sorted(by_task, key=lambda name: (*(-int(x) for x in by_task[name]), name))
    # Only tasks whose field has labels can be compared with people.
    wanted = [name for name in ranked if by_task[name][0]]
    if not ranked:
        wanted = [name for name in ANSWERS_ALONE if suits_newest(store, load_task(name))]
    return wanted or ranked


def _has_label_questions(task: Task) -> bool:
    return all(question.labels for question in task.spec.questions) and task.spec.unit in ("passage", "item")
