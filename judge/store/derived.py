"""Derived runs: made from stored runs without a call, and what they are made of.

`runs.derived_from` holds a `Derivation`; `fitted_on` the questions whose labels it was fitted on. A question with a
`fold` was labelled by what was fitted on other folds only (cross-fitted), so its labels are honest; one without a fold
was seen by what labelled it: `seen` names those, and `judge.labels.scope.read` leaves them out of every number.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from judge.prompts.load import Task
from judge.store import label_rows
from judge.store.runs import begin_run, begun, identity, keep_task
from judge.store.study import Store, dumps, insert_rows, now
from judge.types import Json, Status, attributes


@dataclass(frozen=True, slots=True)
class Parent:
    """A run that another one is made from, with how many units it had been asked about by then."""

    run_id: str
    units: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """The labels that something was fitted on: of whom, how many, and the sha256 of `unit TAB label` lines by unit.

    `folds`: question -> the fold that it was left out with, None where what labelled it has seen it.
    """

    reference: str
    units: int
    sha256: str
    folds: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Derivation:
    """How a derived run came about. `kind`: calibrated, pooled, routed; `parameters`: whatever made it, as JSON."""

    kind: str
    method: str
    fields: tuple[str, ...]
    parents: tuple[Parent, ...]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    fitted: Fitted | None = None
    curve: Sequence[Sequence[Json]] = ()
    """Of a route: [share of units accepted, units that tested it, wrong ones, agreement, whether it holds] of each step."""

    def as_json(self) -> dict[str, Json]:
        """As stored in `runs.derived_from`; the questions of the labels stand in `fitted_on`."""
        f = self.fitted
        return {
            **attributes(self, "kind", "method"),
            "fields": list(self.fields),
            "parents": [{"run": p.run_id, "units": p.units} for p in self.parents],
            "parameters": dict(self.parameters),
            **({"curve": [list(step) for step in self.curve]} if self.curve else {}),
            "fitted": None
            if f is None
            else {
                **attributes(f, "reference", "units"),
                "questions": len(f.folds),
                "cross_fitted": None not in f.folds.values(),
                "sha256": f.sha256,
            },
        }


@dataclass(frozen=True, slots=True)
class FieldLabels:
    """Labels of one field, aligned to units: None where there is none; `derived_from` names the asked field."""

    field: str
    values: Sequence[str | None]
    distributions: Sequence[str | None] | None = None
    derived_from: str | None = None


def stored(conn: sqlite3.Connection, run_id: str) -> dict[str, Json] | None:
    """A run's derivation as stored; None for a run that was asked or imported."""
    row = conn.execute("SELECT derived_from FROM runs WHERE run_id = ?", [run_id]).fetchone()
    return None if row is None or row[0] is None else dict(json.loads(row[0]))


def sources(conn: sqlite3.Connection, run_id: str) -> list[str]:
    """The asked or imported runs that a run rests on, through all derived ones between; itself when it is such a one.

    What a derived judge costs a unit is what these cost together.
    """
    own = stored(conn, run_id)
    if own is None:
        return [run_id]
    return list(dict.fromkeys(s for parent in own["parents"] for s in sources(conn, parent["run"])))


def seen(conn: sqlite3.Connection, run_id: str) -> set[str]:
    """The units whose labels by this run are not honest: what gave them was fitted on labels of their questions."""
    query = (
        "SELECT unit_id FROM units WHERE question_id IN "
        "(SELECT question_id FROM fitted_on WHERE run_id = ? AND fold IS NULL)"
    )
    return {unit for (unit,) in conn.execute(query, [run_id])}


def folds(conn: sqlite3.Connection, run_id: str) -> dict[str, int | None]:
    """Question -> fold of the labels that a run was fitted on."""
    return dict(conn.execute("SELECT question_id, fold FROM fitted_on WHERE run_id = ?", [run_id]).fetchall())


def keep(
    store: Store,
    task: Task,
    model: str,
    derivation: Derivation,
    result: str,
    units: Sequence[str],
    columns: Sequence[FieldLabels],
    missing: Mapping[int, tuple[Status, str]],
    options: Mapping[str, Json] | None = None,
) -> tuple[str, bool]:
    """A derived run, in one transaction: one judgement for each of `units` (sorted), its labels, what it was fitted on.

    `missing`: place in `units` -> why it has no label. `result` is a hash of the labels: the same derivation with the
    same result is known, and stays as it is. Returns the run's id and whether it was known.
    """
    own = derivation.as_json()
    told = {name: own[name] for name in ("kind", "method", "fields", "parameters", "fitted")}
    parents = [p.run_id for p in derivation.parents]
    what = {**(options or {}), "derived": {**told, "parents": parents, "result": result}}
    with _quick(store) as conn:
        if found := begun(conn, task.name, model, [identity(what)]):
            return found[0].run_id, True
        fitted = _inherited(conn, derivation)
        if fitted and derivation.fitted is None:
            own["inherited"] = {"questions": len(fitted), "cross_fitted": None not in fitted.values()}
        keep_task(conn, task)
        run_id = begin_run(conn, task, model, what, {})
        conn.execute(
            "UPDATE runs SET derived_from = ?1, finished = started, resolved_model = (SELECT iif(count(DISTINCT "
            f"resolved_model) = 1, max(resolved_model), NULL) FROM runs WHERE run_id IN ({_marks(parents)})) "
            "WHERE run_id = ?2",
            [dumps(own), run_id, *parents],
        )
        insert_rows(conn, "INSERT INTO fitted_on VALUES ?", [(run_id, q, fold) for q, fold in fitted.items()])
        for column in columns:
            label_rows.add_column(
                conn, run_id, column.field, column.derived_from, units, column.values, column.distributions
            )
        why = {units[at]: told for at, told in missing.items()}
        _add_judgements(conn, run_id, derivation.fields, len(units), why)
    return run_id, False


def _marks(values: Collection[object]) -> str:
    return ",".join(f"?{i + 3}" for i in range(len(values)))


def _inherited(conn: sqlite3.Connection, derivation: Derivation) -> dict[str, int | None]:
    """What the run was fitted on, with what its parents were."""
    found: dict[str, int | None] = {}
    for parent in derivation.parents:
        for question, fold in folds(conn, parent.run_id).items():
            found[question] = None if fold is None else found.get(question, fold)
    own = derivation.fitted.folds if derivation.fitted else {}
    return found | {q: fold if found.get(q, fold) is not None else None for q, fold in own.items()}


@contextmanager
def _quick(store: Store) -> Iterator[sqlite3.Connection]:
    """A transaction for millions of rows whose units are known to be there, and that are counted once.

    The trigger that counts judgements one by one, the look-up of every unit, and reading all JSON that was just written
    take half the time.
    """
    conn = store.conn
    conn.execute("PRAGMA foreign_keys = OFF")
    conn.execute("PRAGMA ignore_check_constraints = ON")
    try:
        with store.transaction():
            yield conn
    finally:
        conn.execute("PRAGMA ignore_check_constraints = OFF")
        conn.execute("PRAGMA foreign_keys = ON")


def _add_judgements(
    conn: sqlite3.Connection,
    run_id: str,
    fields: Sequence[str],
    n: int,
    missing: Mapping[str, tuple[Status, str]],
) -> None:
    """A judgement for each of `n` units: those with a label of one of the asked `fields`, which SQLite finds by itself,
    and the `missing` ones."""
    name = "count_judgement"
    [trigger] = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    conn.execute(f"DROP TRIGGER {name}")
    stamp = now()
    for asked in fields:
        label_rows.judge_labelled(conn, run_id, asked, str(Status.OK), stamp)
    rows = [(run_id, unit, 0, 1, str(status), why, stamp) for unit, (status, why) in missing.items()]
    insert_rows(conn, _JUDGEMENTS, rows)
    counts = Counter({str(Status.OK): n - len(missing)}) + Counter(
        str(status) for status, _ in missing.values()
    )
    insert_rows(conn, "INSERT INTO run_counts VALUES ?", [(run_id, 0, s, n) for s, n in counts.items()])
    conn.execute(trigger)


_JUDGEMENTS = "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reason, judged_at) VALUES ?"
