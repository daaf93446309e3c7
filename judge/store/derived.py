"""Store derived runs, which are computed from stored runs without model calls, and record their sources.

`runs.derived_from` stores a `Derivation`, and the table `fitted_on` lists the questions whose labels the run
was fitted on. If a question has a `fold`, its labels come from a fit on the other folds only (cross-fitting),
so they are unbiased. If it has no fold, the question was used in the fit itself. `read_seen_units` returns
the units of such questions, and `judge.labels.scope.read_panel` excludes them from all scores.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from judge.prompts.load import Task
from judge.store import label_rows
from judge.store.runs import begin_run, find_begun, identity, keep_task
from judge.store.study import Store, dumps, get_time, insert_rows
from judge.types import Json, Status, attributes


@dataclass(frozen=True, slots=True)
class Parent:
    """A run from which another run is derived.

    `units` is the number of units that this run had judged when the other run was derived.
    """

    run_id: str
    units: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """The labels that a derived run was fitted on: the reference, the number of labels, and a sha256.

    The hash is computed over `unit TAB label` lines, sorted by unit. `folds` maps each question to the fold
    in which it was held out, or to None if the fit used it.
    """

    reference: str
    units: int
    sha256: str
    folds: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class Derivation:
    """Describes how a derived run was computed.

    `kind` is calibrated, pooled or routed. `parameters` contains the method's parameters as JSON.
    """

    kind: str
    method: str
    fields: tuple[str, ...]
    parents: tuple[Parent, ...]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    fitted: Fitted | None = None
    curve: Sequence[Sequence[Json]] = ()
    """For a routed run, one list per step: [share of units accepted, number of test units, errors, agreement,
    passed].
    """

    def as_json(self) -> dict[str, Json]:
        """Return the JSON for `runs.derived_from`.

        The questions are omitted, because they are stored in the table `fitted_on`.
        """
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
    """The labels for one field: one value for each unit, or None if the unit has no label.

    If the field is derived from another field, `derived_from` is the name of that field.
    """

    field: str
    values: Sequence[str | None]
    distributions: Sequence[str | None] | None = None
    derived_from: str | None = None


def read_derivation(conn: sqlite3.Connection, run_id: str) -> dict[str, Json] | None:
    """Return how a run was derived, or None for an imported run or a run with model calls."""
    row = conn.execute("SELECT derived_from FROM runs WHERE run_id = ?", [run_id]).fetchone()
    return None if row is None or row[0] is None else dict(json.loads(row[0]))


def sources(conn: sqlite3.Connection, run_id: str) -> list[str]:
    """Return the judged or imported runs from which a run is derived, directly or through other derived runs.

    If the run is not derived, return the run itself. The cost of a derived judge is the sum of the costs of
    these runs.
    """
    derivation = read_derivation(conn, run_id)
    if derivation is None:
        return [run_id]
    # Two parents may have the same source, whose cost must be counted only once.
    return list(dict.fromkeys(s for parent in derivation["parents"] for s in sources(conn, parent["run"])))


def read_seen_units(conn: sqlite3.Connection, run_id: str) -> set[str]:
    """Return the units for which the run's labels are biased.

    They are biased if the run was fitted on labels for the same question.
    """
    query = (
        "SELECT unit_id FROM units WHERE question_id IN "
        "(SELECT question_id FROM fitted_on WHERE run_id = ? AND fold IS NULL)"
    )
    return {unit for (unit,) in conn.execute(query, [run_id])}


def folds(conn: sqlite3.Connection, run_id: str) -> dict[str, int | None]:
    """Return {question: fold} for the questions whose labels a run was fitted on."""
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
    options: Mapping[str, Json],
) -> tuple[str, bool]:
    """Store a derived run in one transaction.

    The run consists of a judgement for each of `units` (sorted), the labels, and the questions that the run
    was fitted on. `missing` maps a position in `units` to the reason why the unit at that position has no
    label. `result` is a hash of the labels. If a run with the same derivation and result is already stored,
    nothing is written. `options` is added to the run's options. Returns (the run's id, whether it was already
    stored).
    """
    stored_derivation = derivation.as_json()
    recorded = {
        name: stored_derivation[name] for name in ("kind", "method", "fields", "parameters", "fitted")
    }
    parents = [p.run_id for p in derivation.parents]
    all_options = {**options, "derived": {**recorded, "parents": parents, "result": result}}
    with _quick(store) as conn:
        if earlier := find_begun(conn, task.name, model, [identity(all_options)]):
            return earlier[0].run_id, True
        fitted = _combine_folds(conn, derivation)
        if fitted and derivation.fitted is None:
            stored_derivation["inherited"] = {
                "questions": len(fitted),
                "cross_fitted": None not in fitted.values(),
            }
        keep_task(conn, task)
        run_id = begin_run(conn, task, model, all_options, {})
        conn.execute(
            "UPDATE runs SET derived_from = ?1, finished = started, resolved_model = (SELECT iif(count(DISTINCT "
            f"resolved_model) = 1, max(resolved_model), NULL) FROM runs WHERE run_id IN ({_marks(parents)})) "
            "WHERE run_id = ?2",
            [dumps(stored_derivation), run_id, *parents],
        )
        insert_rows(conn, "INSERT INTO fitted_on VALUES ?", [(run_id, q, fold) for q, fold in fitted.items()])
        for column in columns:
            label_rows.add_column(
                conn, run_id, column.field, column.derived_from, units, column.values, column.distributions
            )
        reason_of = {units[at]: reason for at, reason in missing.items()}
        # Judgements are stored as well, so that derived runs can be read like all other runs.
        _add_judgements(conn, run_id, derivation.fields, len(units), reason_of)
    return run_id, False


def _marks(values: Collection[object]) -> str:
    return ",".join(f"?{i + 3}" for i in range(len(values)))


def _combine_folds(conn: sqlite3.Connection, derivation: Derivation) -> dict[str, int | None]:
    """Return the fold of each question on which the run or one of its parents was fitted.

    The fold is None if one of these runs was fitted on the question without holding it out. The labels for
    the question are then biased.
    """
    folds_of: dict[str, int | None] = {}
    for parent in derivation.parents:
        for question, fold in folds(conn, parent.run_id).items():
            folds_of[question] = None if fold is None else folds_of.get(question, fold)
    fitted = derivation.fitted.folds if derivation.fitted else {}
    return folds_of | {q: fold if folds_of.get(q, fold) is not None else None for q, fold in fitted.items()}


@contextmanager
def _quick(store: Store) -> Iterator[sqlite3.Connection]:
    """Open a transaction for writing millions of rows for known units. The rows are counted at the end.

    The trigger that counts rows, the foreign-key lookups and the checks of new JSON are disabled, because
    they would take half of the time.
    """
    conn = store.conn
    # SQLite ignores a change of `foreign_keys` inside a transaction, so the order matters.
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
    """Add one judgement for each of the `n` units of a derived run.

    Units with a label in one of `fields` get the status ok. For every other unit, `missing` contains its
    status and the reason.
    """
    name = "count_judgement"
    [trigger] = conn.execute("SELECT sql FROM sqlite_master WHERE name = ?", [name]).fetchone()
    conn.execute(f"DROP TRIGGER {name}")
    stamp = get_time()
    for label_field in fields:
        label_rows.judge_labelled(conn, run_id, label_field, str(Status.OK), stamp)
    rows = [(run_id, unit, 0, 1, str(status), reason, stamp) for unit, (status, reason) in missing.items()]
    insert_rows(conn, _JUDGEMENTS, rows)
    counts = Counter({str(Status.OK): n - len(missing)}) + Counter(
        str(status) for status, _ in missing.values()
    )
    insert_rows(conn, "INSERT INTO run_counts VALUES ?", [(run_id, 0, s, n) for s, n in counts.items()])
    conn.execute(trigger)


_JUDGEMENTS = "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reason, judged_at) VALUES ?"
