"""Labels made elsewhere, from a table: one row a unit, question and annotator."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from annotate._rows import read_rows
from annotate.desk import batch_info
from annotate.store import ensure_human
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.store import Store


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a table has what; `annotator` and `field` may be given for all rows instead."""

    unit: str = "unit"
    label: str = "label"
    annotator: str | None = "annotator"
    field: str | None = "field"


@dataclass(slots=True)
class Imported:
    """What came in: new labels by annotator, and labels that were there already."""

    new: Counter[str] = field(default_factory=Counter)
    unchanged: int = 0
    units: set[str] = field(default_factory=set)


def import_labels(
    store: Store,
    path: Path,
    columns: Columns,
    *,
    annotator: str = "",
    field_name: str = "",
    task: Task | None = None,
    batch: str | None = None,
) -> Imported:
    """Store every row's label, all or nothing; an empty label is no label.

    `batch` accepts only units of that batch and labels of its task. Raises BadInput with file and line
    for an unknown unit, a label outside the task's, and one that differs from the stored label.
    """
    info = batch_info(store, batch) if batch else None
    task = info.task if info else task
    allowed = _units_of(store, batch) if batch else None
    wanted = [columns.unit, columns.label, *([columns.annotator] if columns.annotator else []),
              *([columns.field] if columns.field else [])]  # fmt: skip
    done = Imported()
    with store.transaction() as conn:
        for line, cells in read_rows(path, wanted):
            row = dict(zip(wanted, cells, strict=True))
            unit, value = row[columns.unit], row[columns.label]
            who = row[columns.annotator] if columns.annotator else annotator
            name = row[columns.field] if columns.field else field_name
            if not value:
                continue
            if not who or not name:
                raise BadInput("a row needs an annotator and a field", path=str(path), line=line)
            if conn.execute("SELECT 1 FROM units WHERE unit_id = ?", [unit]).fetchone() is None:
                raise BadInput(
                    f"no unit '{unit}' in the study", path=str(path), line=line, field=columns.unit
                )
            if allowed is not None and unit not in allowed:
                raise BadInput(f"unit '{unit}' is not in batch '{batch}'", path=str(path), line=line)
            if task is not None:
                _check_label(task, name, value, str(path), line)
            try:
                ensure_human(conn, [who])
            except UsageError as e:
                raise BadInput(str(e), path=str(path), line=line, field=columns.annotator or "") from e
            key = [unit, name, who]
            known = conn.execute(
                "SELECT value FROM labels WHERE unit_id = ? AND field = ? AND annotator_id = ? AND layer = 'first' AND repeat = 0",
                key,
            ).fetchone()
            if known is None:
                conn.execute(
                    "INSERT INTO labels (unit_id, field, annotator_id, value) VALUES (?, ?, ?, ?)",
                    [*key, value],
                )
                done.new[who] += 1
            elif known[0] == value:
                done.unchanged += 1
            else:
                told = f"{who} has labelled '{unit}' '{known[0]}' in the study, and '{value}' here"
                raise BadInput(told, path=str(path), line=line, field=name)
            done.units.add(unit)
    return done


def _units_of(store: Store, batch: str | None) -> set[str]:
    return {u for (u,) in store.conn.execute("SELECT unit_id FROM assignments WHERE batch = ?", [batch])}


def _check_label(task: Task, name: str, value: str, path: str, line: int) -> None:
    if name not in task.fields:
        raise BadInput(
            f"task {task.name} has no field '{name}': {', '.join(task.fields)}", path=path, line=line
        )
    domain = task.domain(name)
    if domain and value not in domain:
        raise BadInput(f"'{value}' is no label: {', '.join(domain)}", path=path, line=line, field=name)
