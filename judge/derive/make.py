"""Store a derived run: its labels on the units of the parents, the derived fields of the task, and the origin of the run."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from judge.derive.parents import RunTable
from judge.labels import masses
from judge.stats import MISSING, BoolArray, FloatArray, IntArray
from judge.store import Store
from judge.store.derived import Derivation, FieldLabels, Fitted, Parent
from judge.store.derived import keep as keep_rows
from judge.store.inputs import gold_value
from judge.types import Json, Status

# A derived run inherits these options if all parents have the same value, because they define the purpose of a run.
SHARED = ("context", "system", "relevant", "examples", "shown", "rationale")


@dataclass(frozen=True, eq=False)
class Made:
    """Labels of one field on the units of a table.

    `codes[u]` is -1 if unit u has no label, and `probabilities[u]` is nan if it has no probabilities. `why` maps a row
    to the reason why its label is missing, unless the statuses of the parents already give the reason.
    """

    codes: IntArray
    probabilities: FloatArray | None = None
    why: Mapping[int, str] = field(default_factory=dict)


def name_of(table: RunTable, method: str) -> str:
    """Return the model name of a derived judge, which has the form `method(model, model)`."""
    return f"{method}({', '.join(str(run['model']) for run in table.runs)})"


def keep(
    store: Store,
    table: RunTable,
    kind: str,
    method: str,
    made: Mapping[str, Made],
    *,
    parameters: Mapping[str, Json] | None = None,
    fitted: Fitted | None = None,
    only: BoolArray | None = None,
    curve: Sequence[Sequence[Json]] = (),
) -> tuple[str, bool]:
    """Store labels as a run derived from the table's runs.

    Returns the new run's id, and whether the study already had this run.

    `made` maps fields to labels. Fields that are derived from these fields are also stored. `kind` is calibrated,
    pooled or routed, and `method` names the algorithm. `only` selects the units that the run covers. For `curve`, see
    `Derivation`.
    """
    rows = np.arange(len(table.units)) if only is None else np.flatnonzero(only)
    units = [table.units[at] for at in rows.tolist()]
    columns, digest = [], hashlib.sha256("\n".join(units).encode())
    unlabelled = np.ones(len(rows), dtype=np.bool_)
    for label_field, field_labels in made.items():
        domain = table.task.domain(label_field)
        codes = field_labels.codes[rows]
        # The byte order and size are fixed, so that the hash identifies the run on every machine.
        digest.update(label_field.encode() + codes.astype("<i8").tobytes())
        texts = None
        if field_labels.probabilities is not None:
            p = field_labels.probabilities[rows]
            # Rounded, so that the same derivation has the same hash on every machine.
            digest.update(np.round(p, 6).astype("<f8").tobytes())
            texts = masses.write(p, domain)
        # The code -1 selects the last entry, which is None.
        labels = [*domain, None]
        columns.append(FieldLabels(label_field, [labels[code] for code in codes.tolist()], texts))
        unlabelled &= codes == MISSING
    columns += _derive_columns(store, table, columns, units)
    reason = {
        at: text for field_labels in reversed(list(made.values())) for at, text in field_labels.why.items()
    }
    missing = {at: _choose_status(table, int(rows[at]), reason) for at in np.flatnonzero(unlabelled).tolist()}
    counts = table.judged.sum(axis=0).tolist()
    parents = tuple(Parent(run, int(n)) for run, n in zip(table.run_ids, counts, strict=True))
    derivation = Derivation(kind, method, tuple(made), parents, parameters or {}, fitted, curve)
    options = _get_shared_options(table)
    model_name = name_of(table, method)
    return keep_rows(
        store, table.task, model_name, derivation, digest.hexdigest(), units, columns, missing, options
    )


def _choose_status(table: RunTable, row: int, reason: Mapping[int, str]) -> tuple[Status, str]:
    if row in reason:
        return Status.UNPARSED, reason[row]
    ended = {by_unit[table.units[row]] for by_unit in table.statuses if table.units[row] in by_unit}
    # If the parents failed in different ways, no single status describes this run.
    if len(ended) == 1 and not ended & {"ok"}:
        return Status(ended.pop()), "none of the parents of this run has a label"
    return Status.UNPARSED, "the labels of the parents do not determine a label"


def _derive_columns(
    store: Store, table: RunTable, judged_columns: list[FieldLabels], units: list[str]
) -> list[FieldLabels]:
    """Return the labels for derived fields, which the task computes from other labels with lookup tables.

    The labels are for the same units as `judged_columns`.
    """
    values = {column.field: column.values for column in judged_columns}
    columns = []
    for name, rule in table.task.spec.derive.items():
        if rule.source not in values:
            continue
        keys = values[rule.source]
        if rule.gold is not None:
            query = f"SELECT t.unit_id, {gold_value(rule.gold)} FROM units AS t WHERE t.kind = ?"
            gold = dict(store.conn.execute(query, [table.task.spec.unit]).fetchall())
            pairs = zip(keys, units, strict=True)
            # If a row of the table needs a gold label and it is missing, the unit has no label.
            keys = [f"{key}|{gold[unit]}" if key and gold.get(unit) else None for key, unit in pairs]
        labels = [None if key is None else rule.table.get(key) for key in keys]
        columns.append(FieldLabels(name, labels, None, rule.source))
    return columns


def _get_shared_options(table: RunTable) -> dict[str, Json]:
    options_of_runs = [json.loads(run["options"]) for run in table.runs]
    return {
        name: options_of_runs[0][name]
        for name in SHARED
        if name in options_of_runs[0]
        and all(o.get(name) == options_of_runs[0][name] for o in options_of_runs)
    }
