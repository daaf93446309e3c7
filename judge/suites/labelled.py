"""Labels and statuses of runs on given units, and which units a task can take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from judge.prompts.load import Task
from judge.scores.score import NOT_JUDGED, TIED
from judge.store import selection
from judge.store.study import Store
from judge.suites.chosen import Run
from judge.suites.frames import frame
from judge.types import Status

UnitNumbers = np.ndarray[Any, Any]
Found = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]
"""Labels, statuses, and which units have no judgement."""


def of_run(store: Store, run: Run, units: UnitNumbers, field: str) -> Found:
    """A run's labels of a field on these units, by the latest attempt of the first repeat."""
    query = """
        SELECT u.rowid, j.status, l.value FROM judgements AS j JOIN units AS u ON u.unit_id = j.unit_id
        LEFT JOIN labels AS l ON l.annotator_id = j.run_id AND l.field = ? AND l.unit_id = j.unit_id
             AND l.layer = 'first' AND l.repeat = 0
        WHERE j.run_id = ? AND j.repeat = 0 ORDER BY j.unit_id, j.attempt
    """
    rows = frame(store.conn, query, [field, run.run_id], "n status label")
    order = np.argsort(units)
    at = np.searchsorted(units[order], rows["n"].to_numpy())
    inside = at < len(units)
    inside[inside] = units[order][at[inside]] == rows["n"].to_numpy()[inside]
    place = order[at[inside]]
    labels = np.full(len(units), None, dtype=object)
    status = np.full(len(units), NOT_JUDGED, dtype=object)
    # Attempts come in order, so the last one stays.
    status[place] = rows["status"].to_numpy()[inside]
    labels[place] = rows["label"].to_numpy()[inside]
    labels[status != str(Status.OK)] = None
    return labels, status, status == NOT_JUDGED


def majority(each: Sequence[Found]) -> Found:
    """The label that most of several runs give each unit.

    A tie is no label; a unit without any label has the first run's status, and one that
    some run has not judged has no judgement.
    """
    n = len(each[0][0])
    codes, names = pd.factorize(np.concatenate([labels for labels, _, _ in each]))
    missing = np.logical_or.reduce([lacking for _, _, lacking in each])
    if not len(names):
        return each[0][0], each[0][1], missing
    # The last column takes what is no label.
    votes = np.zeros((n, len(names) + 1), dtype=np.int64)
    for own in codes.reshape(len(each), n):
        votes[np.arange(n), own] += 1
    votes = votes[:, : len(names)]
    most = votes.max(axis=1)
    clear = ((votes == most[:, None]).sum(axis=1) == 1) & (most > 0)
    labels = np.full(n, None, dtype=object)
    labels[clear] = np.asarray(names, dtype=object)[votes.argmax(axis=1)[clear]]
    status = each[0][1].copy()
    status[clear] = str(Status.OK)
    status[~clear & (most > 0)] = TIED
    return labels, status, missing


def fitting(
    store: Store, task: Task, units: UnitNumbers, given: Mapping[str, Sequence[str]] | None = None
) -> int:
    """How many of these units the task can take: they have its inputs, and a context where one is `given`."""
    conn = store.conn
    conn.execute("DROP TABLE IF EXISTS temp.unjudged")
    conn.execute("CREATE TEMP TABLE unjudged (n INTEGER PRIMARY KEY)")
    conn.executemany("INSERT INTO temp.unjudged VALUES (?)", ((int(n),) for n in units))
    only = selection.Selection("n IN (SELECT n FROM temp.unjudged)", contexts=given)
    return selection.select(store, task, only)[0]


def put(units: pd.DataFrame, found: Found) -> np.ndarray[Any, Any]:
    """Labels and statuses as columns of objects, so that no label stays None; which units have no judgement."""
    for name, values in zip(("label", "status"), found, strict=False):
        units[name] = pd.Series(values, index=units.index, dtype=object)
    return found[2]
