"""Describe the origin of a run's labels.

If a run was fitted on reference labels, also find out whether these labels have changed since.
"""

import hashlib
from collections.abc import Mapping

from judge.errors import UsageError
from judge.labels import relation
from judge.labels.reference import ReferenceLabels
from judge.store import Store, derived
from judge.store.export import read_stored_task
from judge.store.origin import origins
from judge.types import Json


def describe_origin(store: Store, run_id: str) -> str | None:
    """Describe the origin of an imported or derived run. Return None for a run with model calls."""
    text = origins(store.conn, [run_id]).get(run_id)
    made = derived.read_derivation(store.conn, run_id)
    if text and made and made["fitted"] and _has_changed(store, run_id, made):
        text += f"; it was fitted on labels of '{made['fitted']['reference']}' that have changed since then; derive the run again"
    return text


def _has_changed(store: Store, run_id: str, made: Mapping[str, Json]) -> bool:
    """Return whether any of the reference labels that the run was fitted on have been removed or changed."""
    task, fitted = read_stored_task(store, _task(store, run_id)), made["fitted"]
    field, n = str(made["fields"][0]), int(fitted["units"])
    try:
        labels = ReferenceLabels(store, fitted["reference"]).labels(field, task.name)
    except UsageError:
        # The reference no longer has any labels.
        return True
    domain = set(task.domain(field))
    judged_units = set().union(
        *(relation.read_judged_units(store.conn, parent["run"]) for parent in made["parents"])
    )
    query = (
        "SELECT unit_id FROM units WHERE question_id IN (SELECT question_id FROM fitted_on WHERE run_id = ?) "
        "ORDER BY unit_id"
    )
    units = [
        unit
        for (unit,) in store.conn.execute(query, [run_id])
        if unit in judged_units and labels.get(unit) in domain
    ]
    lines = "".join(f"{unit}\t{labels[unit]}\n" for unit in units)
    # Additional labels do not count as a change, because annotation may simply have continued.
    if len(units) != n:
        return len(units) < n
    return hashlib.sha256(lines.encode()).hexdigest() != str(fitted["sha256"])


def _task(store: Store, run_id: str) -> str:
    return str(store.conn.execute("SELECT task FROM runs WHERE run_id = ?", [run_id]).fetchone()[0])
