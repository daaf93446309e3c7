"""Labels and statuses of runs on given units, and which units a task can take."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge.prompts.load import Task
from judge.runner.contexts import relevant
from judge.scores.score import NOT_JUDGED, TIED
from judge.stats.aggregate import tally_votes, vote
from judge.store import label_rows, selection
from judge.store.study import Store
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.types import Status

EXAMPLE = "example"
"""The status of a unit of an item that the run shows as a few-shot example: it is no row of a score."""
UnitNumbers = np.ndarray[Any, Any]
Found = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Labels, statuses, and which units have no judgement."""


def of_run(store: Store, run: Run, units: UnitNumbers, field: str) -> Found:
    """A run's labels of a field on these units, by the latest attempt of the first repeat.

    Units of the items that the run shows as examples have the status `EXAMPLE`, whatever the task's unit is.
    """
    # A label says that the judgement is ok, so only the others are looked up: half the work at a million.
    labelled = f"""
        SELECT u.rowid, l.value FROM {label_rows.FIRST} JOIN units AS u ON u.unit_id = l.unit_id
        WHERE l.annotator_id = ? AND l.field = ?
    """
    others = f"""
        SELECT u.rowid, iif(j.reason = '{TIED}', '{TIED}', j.status) FROM judgements AS j JOIN units AS u ON u.unit_id = j.unit_id
        WHERE j.run_id = ? AND j.repeat = 0 AND NOT EXISTS {label_rows.one("j.run_id", "?", "j.unit_id")}
        ORDER BY j.unit_id, j.attempt
    """
    values = [run.run_id, field]
    labels = np.full(len(units), None, dtype=object)
    status = np.full(len(units), NOT_JUDGED, dtype=object)
    order = np.argsort(units)
    found = frame(store.conn, labelled, values, "n label")
    place, inside = _places(units, order, found["n"].to_numpy())
    labels[place] = found["label"].to_numpy()[inside]
    status[place] = str(Status.OK)
    found = frame(store.conn, others, values, "n status")
    place, inside = _places(units, order, found["n"].to_numpy())
    # Attempts come in order, so the last one stays.
    status[place] = found["status"].to_numpy()[inside]
    if run.examples:
        marks = ",".join("?" * len(run.examples))
        shown = f"SELECT n FROM unit_texts WHERE item_id IN ({marks})"
        place, _ = _places(units, order, frame(store.conn, shown, run.examples, "n")["n"].to_numpy())
        labels[place], status[place] = None, EXAMPLE
    return labels, status, status == NOT_JUDGED


def _places(units: UnitNumbers, order: UnitNumbers, n: UnitNumbers) -> tuple[UnitNumbers, UnitNumbers]:
    """Where units stand that are among those asked about, and which these are; `order` sorts `units`."""
    ranked = units[order]
    at = np.searchsorted(ranked, n)
    inside = at < len(units)
    inside[inside] = ranked[at[inside]] == n[inside]
    return order[at[inside]], inside


def majority(each: Sequence[Found]) -> Found:
    """The label that most of several runs give each unit: what `judge panel` keeps as a run.

    A tie is no label; a unit without any label has the first run's status, and one that
    some run has not judged has no judgement.
    """
    n = len(each[0][0])
    codes, names = pd.factorize(np.concatenate([labels for labels, _, _ in each]))
    missing = np.logical_or.reduce([lacking for _, _, lacking in each])
    if not len(names):
        return each[0][0], each[0][1], missing
    winner, tied = vote(tally_votes(codes.reshape(len(each), n).T, len(names)))
    labels = np.array([*names, None], dtype=object)[winner]  # -1 is the last
    status = each[0][1].copy()
    status[winner >= 0] = str(Status.OK)
    status[tied] = TIED
    return labels, status, missing


def fitting(
    store: Store,
    task: Task,
    units: UnitNumbers,
    given: Mapping[str, Sequence[str]] | None = None,
    shown: str | None = None,
    probabilities: Mapping[str, str] | None = None,
) -> int:
    """How many of these units the task can take: they have its inputs, and a context where one is `given`.

    `shown` says which passages are relevant, where the task shows them (see `judge.runner.contexts`); `probabilities` are
    those of the options, in a second pass.
    """
    conn = store.conn
    conn.execute("DROP TABLE IF EXISTS temp.unjudged")
    conn.execute("CREATE TEMP TABLE unjudged (n INTEGER PRIMARY KEY)")
    conn.executemany("INSERT INTO temp.unjudged VALUES (?)", ((int(n),) for n in units))
    passages = relevant(store, shown).passages if shown is not None else None
    only = selection.Selection(
        "n IN (SELECT n FROM temp.unjudged)", contexts=given, relevant=passages, shown=probabilities
    )
    return selection.select(store, task, only)[0]


def put(units: pd.DataFrame, found: Found) -> tuple[pd.DataFrame, np.ndarray[Any, Any]]:
    """The units with their labels and statuses, but for examples; and which of them have no judgement.

    The columns are of objects, so that no label stays None.
    """
    for name, values in zip(("label", "status"), found, strict=False):
        units[name] = pd.Series(values, index=units.index, dtype=object)
    rows = (units["status"] != EXAMPLE).to_numpy()
    return units[rows].reset_index(drop=True), found[2][rows]
