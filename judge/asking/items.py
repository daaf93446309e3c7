"""Items in, from files or from rows in memory: `judge items import` and `Study.items`; and what can be done next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from judge.importers.base import Options
    from judge.prompts.load import Task
    from judge.store import Store
    from judge.store.imports import ImportReport

MOST_SUGGESTED = 3


@dataclass(slots=True)
class Imported:
    """What an import did: each transaction with its files, notes for people, and tasks that the data suit, best first."""

    transactions: list[tuple[list[str], ImportReport]]
    notes: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)

    def rows(self) -> list[dict[str, Any]]:
        """One row a transaction: its files, data sets, what is new, and how many rows were left out."""
        return [
            {"files": files, "datasets": report.datasets, **report.counts, "skipped": len(report.skipped)}
            for files, report in self.transactions
        ]

    @property
    def skipped(self) -> list[str]:
        """Rows that were left out, each with file, line and reason."""
        return [str(problem) for _, report in self.transactions for problem in report.skipped]


def from_files(
    db: Path, format_name: str, paths: Sequence[Path], options: Options, skip_bad: bool = False
) -> Imported:
    """Import files of one format. Raises as `import_files` does."""
    from judge.importers import base
    from judge.importers.importing import import_files

    done = Imported(import_files(db, format_name, base.get(format_name), paths, options, skip_bad))
    return _told(db, done)


def from_rows(
    db: Path,
    name: str,
    rows: Iterable[Mapping[str, Any]],
    options: Options,
    skip_bad: bool = False,
    *,
    columns: Sequence[str] | None = None,
) -> Imported:
    """Import rows in memory, as those of a JSONL file; with `columns` (those of a table) as those of a CSV file.

    `name` stands for the file in errors, which count rows from 1. Raises as `import_files` does.
    """
    from judge.importers.memory import import_rows

    done = Imported([([name], import_rows(db, name, rows, options, skip_bad, columns))])
    return _told(db, done)


def _told(db: Path, done: Imported) -> Imported:
    from judge.store import Store

    for _, report in done.transactions:
        done.notes += strange_labels(report.label_counts)
    with Store.open(db, create=False) as store:
        done.tasks = suited(store)
    return done


def strange_labels(label_counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Labels that no shipped task of that field knows: most often a forgotten --map-label."""
    from judge.prompts import find_tasks, load_task

    domains: dict[str, set[str]] = {}
    for name in find_tasks():
        task = load_task(name)
        for label_field in task.fields:
            domains.setdefault(label_field, set()).update(task.domain(label_field))
    out = []
    for label_field, counts in label_counts.items():
        strange = [v for v in counts if label_field in domains and v not in domains[label_field]]
        if strange:
            told = ", ".join(f"{v!r} ({counts[v]})" for v in strange[:5])
            want = ", ".join(sorted(domains[label_field]))
            out.append(
                f"note: labels of '{label_field}' that its task does not have: {told}; the task has {want}. "
                f"They stay as they are; --map-label {label_field}:OLD=NEW in an import into a new study (-d) maps them."
            )
        if label_field not in domains and (same := _tasks_with(counts)):
            out.append(
                f"note: no task has a field '{label_field}', so no judge is held against these labels; tasks with such labels: "
                f"{', '.join(same)} (--map ...gold.FIELD=... names the field, in an import into a new study)"
            )
    return out


YES, NO = ("yes", "true", "1", "y", "pos", "positive"), ("no", "false", "0", "n", "neg", "negative")
"""What people write for the first and the second of two labels."""
MOST_LABELS = 10
LOOKED_AT = 1000
"""Rows of a file whose labels are looked at."""
GRADED = ("relevance_grade", "relevance_0_3")
"""Fields whose labels are grades, the fewest first."""


def label_maps(format_name: str, path: Path, maps: Mapping[str, str]) -> list[str]:
    """`FIELD:OLD=NEW` for each label of a CSV or JSONL file's mapped columns that the field's task has not.

    Where it cannot be told which of the task's labels is meant, NEW names all of them.
    """
    columns = {name.rpartition("gold.")[2]: column for name, column in maps.items() if "gold." in name}
    domains, found = _domains(), _values(format_name, path, maps)
    out = []
    for field_name, column in columns.items():
        known = domains.get(field_name, [])
        values = found.get(column, [])
        if not known or set(values) <= set(known) or len(values) > MOST_LABELS:
            continue
        for value in values:
            if value not in known:
                out.append(f"{field_name}:{value}={_meant(value, known)}")
    return out


def gold_maps(
    format_name: str, path: Path, maps: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The maps of a CSV or JSONL file with the guessed columns of labels held against their values.

    A retriever's score is left out; grades go to the field that has them. What the user gave stays.
    """
    from judge.importers.guess import are_ranking

    domains, values = _domains(), _values(format_name, path, maps)
    out: dict[str, str] = {}
    for name, column in maps.items():
        before, gold, field_name = name.rpartition("gold.")
        found = values.get(column, [])
        if gold and name not in given and are_ranking(column, found):
            continue
        if gold and name not in given and any("|" in _meant(v, domains.get(field_name, [v])) for v in found):
            graded = (f for f in GRADED if set(found) <= set(domains[f]))
            field_name = next(graded, field_name)
        out[before + gold + field_name] = column
    return out


def _values(format_name: str, path: Path, maps: Mapping[str, str]) -> dict[str, list[str]]:
    """Column mapped to gold -> its different values as text, in the first rows of the file and in their passages."""
    from itertools import islice

    from judge.importers import records

    columns = [column for name, column in maps.items() if "gold." in name]
    if not columns:
        return {}
    inside = maps.get("passages", "passages")
    reader = records.json_records if format_name == "jsonl" else lambda *given: records.csv_records(*given)[1]
    found: dict[str, dict[str, None]] = {column: {} for column in columns}
    for _, row in islice(reader(path, lambda problem: None).rows, LOOKED_AT):
        held = row.get(inside) if isinstance(row, dict) else None
        for part in (row, *(held if isinstance(held, list) else [])):
            for column in columns if isinstance(part, dict) else ():
                value = part.get(column)
                if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
                    found[column][str(value)] = None
    return {column: list(values) for column, values in found.items()}


def _meant(value: str, known: Sequence[str]) -> str:
    folded = value.strip().lower().replace(" ", "_").replace("-", "_")
    same = [label for label in known if label.lower().replace("-", "_") == folded]
    if len(known) == 2 and folded in (*YES, *NO):
        same = [known[0 if folded in YES else 1]]
    return same[0] if same else "|".join(known)


def _domains() -> dict[str, list[str]]:
    """Label field of a shipped task -> its labels in order, of the task that was first to have it."""
    from judge.prompts import find_tasks, load_task

    found: dict[str, list[str]] = {}
    for name in find_tasks():
        task = load_task(name)
        for field_name in task.fields:
            found.setdefault(field_name, list(task.domain(field_name)))
    return found


def _tasks_with(labels: Iterable[str]) -> list[str]:
    """`task (field FIELD)` of the shipped tasks that have all these labels."""
    from judge.prompts import find_tasks, load_task

    wanted = set(labels)
    tasks = [load_task(name) for name in find_tasks()]
    found = [
        f"{task.task_id} (field {name})"
        for task in tasks
        for name in task.fields
        if wanted <= set(task.domain(name))
    ]
    return list(dict.fromkeys(found))[:3]


def suited(store: Store) -> list[str]:
    """Shipped tasks with labels whose inputs the newest units have, best first, without their versions.

    Where these units have labels of people or gold, the tasks of those fields, because a judge can be held against them;
    else those that show most of what there is.
    """
    from judge.labels.relation import newest_fields
    from judge.prompts import find_tasks, load_task
    from judge.store.selection import suits_newest

    fields = newest_fields(store.conn)
    found: dict[str, tuple[bool, bool, int]] = {}
    for name in find_tasks():
        task = load_task(name)
        if task.people_only or not _asks_for_labels(task) or not suits_newest(store, task):
            continue
        has_labels = bool(fields & set(task.fields))
        rank = (has_labels, task.spec.unit == "passage", len(task.required_inputs))
        found[task.task_id] = max(rank, found.get(task.task_id, rank))
    ranked = sorted(found, key=lambda name: (*(-int(x) for x in found[name]), name))
    # Where labels say what is wanted, other tasks are no advice.
    wanted = [name for name in ranked if found[name][0]]
    return wanted or ranked


def _asks_for_labels(task: Task) -> bool:
    return all(question.labels for question in task.spec.questions) and task.spec.unit in ("passage", "item")
