"""Read labels and statuses of given units from runs, and count the units that can be judged in a task."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge.prompts.load import Task
from judge.runner.contexts import relevant
from judge.scores.score import NOT_JUDGED, TIED
from judge.store import label_rows, selection
from judge.store.study import Store
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.types import Status

EXAMPLE = "example"
"""The status of a unit whose item is shown by the run as a few-shot example. Such a unit is not scored."""
UnitNumbers = np.ndarray[Any, Any]
UnitLabels = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""The labels and statuses of units, and a mask of the units without a judgement."""


def read_run_labels(store: Store, run: Run, units: UnitNumbers, field: str) -> UnitLabels:
    """Return a run's labels for a field on these units, from the latest attempt in the first repeat.

    If the run shows an item as an example, all units of this item have the status `EXAMPLE`.
    """
    # A label implies the status ok, so statuses are read only for other judgements. With a million units, this halves the time.
    labelled = f"""
        SELECT u.rowid, l.value FROM {label_rows.FIRST} JOIN units AS u ON u.unit_id = l.unit_id
        WHERE l.annotator_id = ? AND l.field = ?
    """
    # Repeats measure how stable a judge is. A score reads only the first, so that adding repeats does not change it.
    others = f"""
        SELECT u.rowid, iif(j.reason = '{TIED}', '{TIED}', j.status) FROM judgements AS j JOIN units AS u ON u.unit_id = j.unit_id
        WHERE j.run_id = ? AND j.repeat = 0 AND NOT EXISTS {label_rows.single_label("j.run_id", "?", "j.unit_id")}
        ORDER BY j.unit_id, j.attempt
    """
    values = [run.run_id, field]
    labels = np.full(len(units), None, dtype=object)
    status = np.full(len(units), NOT_JUDGED, dtype=object)
    index = pd.Index(units)
    rows = frame(store.conn, labelled, values, "n label")
    place, inside = _places(index, rows)
    labels[place] = rows["label"].to_numpy()[inside]
    status[place] = str(Status.OK)
    rows = frame(store.conn, others, values, "n status")
    place, inside = _places(index, rows)
    # Rows are ordered by attempt, so that the last attempt overwrites earlier ones.
    status[place] = rows["status"].to_numpy()[inside]
    if run.examples:
        marks = ",".join("?" * len(run.examples))
        shown = f"SELECT n FROM unit_texts WHERE item_id IN ({marks})"
        place, _ = _places(index, frame(store.conn, shown, run.examples, "n"))
        labels[place], status[place] = None, EXAMPLE
    return labels, status, status == NOT_JUDGED


def _places(units: "pd.Index[Any]", rows: pd.DataFrame) -> tuple[UnitNumbers, UnitNumbers]:
    """Return the position of each row's unit in `units`, and a mask of the rows whose unit is in `units`."""
    place = units.get_indexer(pd.Index(rows["n"]))
    return place[place >= 0], place >= 0


def fitting(
    store: Store,
    task: Task,
    units: UnitNumbers,
    given: Mapping[str, Sequence[str]] | None = None,
    shown: str | None = None,
    probabilities: Mapping[str, str] | None = None,
) -> int:
    """Count the units that have all inputs of the task, and can therefore be judged in it.

    `given` maps items to their contexts. If it is not None, items without a context are not counted. If the
    task shows relevant passages, `shown` says where their relevance comes from (see `judge.runner.contexts`).
    If the task shows probabilities for the options, `probabilities` contains those from the system's first
    pass.
    """
    conn = store.conn
    conn.execute("DROP TABLE IF EXISTS temp.unjudged")
    # A temporary table: SQLite limits the number of values in one statement.
    conn.execute("CREATE TEMP TABLE unjudged (n INTEGER PRIMARY KEY)")
    conn.executemany("INSERT INTO temp.unjudged VALUES (?)", ((int(n),) for n in units))
    passages = relevant(store, shown).passages if shown is not None else None
    only = selection.Selection(
        "n IN (SELECT n FROM temp.unjudged)", contexts=given, relevant=passages, shown=probabilities
    )
    return selection.select(store, task, only)[0]


def add_labels(units: pd.DataFrame, labels: UnitLabels) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """Add labels and statuses to the units, and drop the units of items that are shown as examples.

    Return the remaining units, and a mask of the units without a judgement. The new columns have dtype object,
    which keeps a missing label as None.
    """
    for name, values in zip(("label", "status"), labels, strict=False):
        units[name] = pd.Series(values, index=units.index, dtype=object)
    rows = (units["status"] != EXAMPLE).to_numpy()
    return units[rows].reset_index(drop=True), labels[2][rows]
