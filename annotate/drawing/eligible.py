"""Select the units from which a batch can be drawn, with their strata.

These units have all required inputs, and are not in an earlier batch.
"""

import json
import math
import re
import sqlite3
from collections.abc import Collection, Iterator

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import Candidate, Frame
from annotate.sitting.unit import PARTS
from judge.commands import command
from judge.errors import UsageError
from judge.labels import relation
from judge.prompts.load import Task
from judge.store import Store
from judge.store.derived import read_derivation
from judge.store.export import find_run, read_stored_task
from judge.store.inputs import column
from judge.store.label_rows import quote, single_label
from judge.store.study import dumps
from judge.types import GOLD

BINS = ((0.5, "below 0.5"), (0.8, "0.5 to 0.8"), (0.95, "0.8 to 0.95"), (math.inf, "0.95 and more"))


def run_of(store: Store, task: Task, plan: BatchPlan) -> str | None:
    """Return the judge run that a plan needs, or None if it needs no run.

    A run is needed to form the strata, to draw the units, or to show the judge's labels after each answer.
    """
    if not (plan.by in ("label", "confidence") or plan.queue or plan.reveal or plan.run or plan.purpose):
        return None
    option = "--reveal" if plan.reveal else "--draw least-sure" if plan.queue else f"--by {plan.by}"
    return judge_run(store, task, plan.run, "--draw ppi" if plan.purpose else option)


def judge_run(store: Store, task: Task, name: str | None, option: str) -> str:
    """Return the run called `name` or, without a name, the newest run of the task.

    Raises UsageError if the run answers other questions, or if the task has no run. The message names `option`.
    """
    if name:
        run = find_run(store, name)
        if not set(read_stored_task(store, run["task"]).fields) & {q.field for q in task.spec.questions}:
            raise UsageError(
                f"run {run['run_id']} ({run['task']}) does not answer the questions of {task.name}"
            )
        return str(run["run_id"])
    newest = find_newest_run(store, task)
    if newest is None:
        raise UsageError(
            f"{option} needs a judge run of {task.name}; to start one: {command('judge run', task.task_id, '-m', 'MODEL')}"
        )
    return newest


def find_newest_run(store: Store, task: Task) -> str | None:
    """Return the newest run of a task, or None if there is none."""
    # A derived judge, or a candidate of `judge improve`, is used only if it is named.
    row = store.conn.execute(
        "SELECT run_id FROM runs WHERE task = ? AND derived_from IS NULL AND json_extract(options, '$.tried') IS NULL "
        "ORDER BY started DESC, run_id DESC LIMIT 1",
        [task.name],
    ).fetchone()
    return None if row is None else str(row[0])


def eligible(store: Store, task: Task, plan: BatchPlan, run: str | None, of: str | None = None) -> Frame:
    """Return the units from which a batch can be drawn, as a frame in study order.

    The units have all required inputs. Units that an earlier batch drew with equal probabilities or used as
    checks are left out. An earlier batch is considered only if its task shares a question with this task.

    If `of` names a stored batch, return the frame from which that batch was drawn.
    """
    # Units that were labelled in another way (imported, from a queue, drawn by label) stay in the frame: without them
    # the draw would not be representative.
    frame, taken = with_taken(store, task, plan, run, of)
    frame.leave_out(taken)
    return frame


def with_taken(
    store: Store, task: Task, plan: BatchPlan, run: str | None, of: str | None = None
) -> tuple[Frame, set[str]]:
    """Return the frame before drawn units are removed, and the set of units to remove.

    The units to remove were drawn or used as checks in earlier batches. `eligible` removes them.
    """
    # Including the drawn units, two draws from the same units have the same frame, regardless of the options
    # that selected it.
    fields = {q.field for q in task.spec.questions}
    alike = list_earlier(store, fields, plan, of)
    # A check is never drawn, because the people who saw it know its answer. 0.2.0 left out the units of every
    # batch.
    of_0_2_0 = of is not None and plan.left_out is None
    taken = [b for b in alike if of_0_2_0 or _is_equal(store.conn, b)]
    # Few-shot examples are in the prompt with their labels, so the judge would be tested on its own prompt.
    examples = [e.item_id for e in task.spec.examples if e.item_id]
    usable = " AND ".join(f"coalesce({column(task, n)}, '') <> ''" for n in task.required_inputs)
    first = task.spec.questions[0].field
    judged = "NULL, NULL"
    if run:
        judged = ", ".join(
            single_label(":run", ":field", "t.unit_id", column) for column in ("value", "distribution")
        )
    query = f"""
        SELECT t.unit_id, t.question_id, t.dataset, t.answer_id, t.n, {judged} FROM unit_texts AS t
        WHERE t.kind = :kind AND {usable} AND ({plan.where or "1"}
        ) AND t.item_id NOT IN (SELECT value FROM json_each(:examples))
        AND t.unit_id NOT IN (SELECT value FROM json_each(:left_out))
        ORDER BY t.n
    """
    drawn = (
        "SELECT unit_id FROM batch_units WHERE batch IN (SELECT value FROM json_each(?)) "
        "OR (role <> 'sample' AND batch IN (SELECT value FROM json_each(?)))"
    )
    apart = {unit for (unit,) in store.conn.execute(drawn, [dumps(taken), dumps(alike)])}
    values = {
        "run": run,
        "field": first,
        "kind": task.spec.unit,
        "examples": dumps(examples),
        # A unit that --fresh leaves out because a batch drew it does not make the frame a different one.
        "left_out": dumps(sorted(set(plan.left_out or ()) - apart)),
    }
    frame = Frame(store.conn)
    try:
        frame.fill(_candidates(store, task, plan, store.conn.execute(query, values)))
    except sqlite3.Error as e:
        if plan.where is None:
            raise
        raise UsageError(f"--where {plan.where!r}: {e}") from e
    return frame, apart


def in_run(run: str) -> str:
    """Return the condition for all units that a run was asked about, whatever came of it."""
    return f"{_IN_RUN}{quote(run)})"


_IN_RUN = "unit_id IN (SELECT unit_id FROM judgements WHERE run_id = "


def check_condition(store: Store, plan: BatchPlan) -> None:
    """Raise UsageError if the condition of a draw for a verdict reads more than the units and their texts.

    A condition on labels or judgements could leave out the units that the judge could not label, and they would not
    count as missing labels.
    """
    if not (plan.where and plan.is_even):
        return
    # Units without a label are among those that a run was asked about, so none of them is left out.
    if of_run := re.fullmatch(re.escape(_IN_RUN) + r"'(\w+)'\)", plan.where):
        made = read_derivation(store.conn, of_run[1])
        if made is not None and made["kind"] == "routed":
            raise UsageError(
                f"--units-of {of_run[1]}: this routed run has only the units that its judge is sure of, so a draw from them gives "
                f"no verdict; name the run from which it was made: --units-of {made['parents'][0]['run']}"
            )
        return

    def list_tables(condition: str) -> set[str]:
        # SQLite's authorizer does not report a table that is read only by a column of USING or NATURAL JOIN. The
        # compiled query lists every table and index that it opens, also those below a view.
        program = store.conn.execute(f"EXPLAIN SELECT t.* FROM unit_texts AS t WHERE {condition}")
        pages = [page for _, operation, _, page, *_ in program if operation in ("OpenRead", "ReopenIdx")]
        query = "SELECT tbl_name FROM sqlite_schema WHERE rootpage IN (SELECT value FROM json_each(?))"
        return {name for (name,) in store.conn.execute(query, [dumps(pages)])}

    try:
        others = list_tables(plan.where) - list_tables("1")
    except sqlite3.Error as e:
        raise UsageError(f"--where {plan.where!r}: {e}") from e
    if others:
        raise UsageError(
            f"--where {plan.where!r}: reads {', '.join(sorted(others))}, but the condition of a draw for a verdict must use "
            "only the units and their texts (the columns of unit_texts); use another condition, or --draw for a draw without "
            "a verdict"
        )


def _is_equal(conn: sqlite3.Connection, batch: str) -> bool:
    """Return whether all units in a batch's sample had the same probability of being drawn."""
    query = (
        "SELECT count(*) = count(probability) AND max(probability) - min(probability) < 1e-9 FROM batch_units "
        "WHERE batch = ? AND role = 'sample'"
    )
    return bool(conn.execute(query, [batch]).fetchone()[0])


def _candidates(store: Store, task: Task, plan: BatchPlan, rows: sqlite3.Cursor) -> Iterator[Candidate]:
    left = read_unaccepted(store, task, plan.from_route) if plan.from_route else None
    for unit, question, dataset, answer, place, value, distribution in rows:
        if left is not None and unit not in left:
            continue
        confidence = None
        if distribution:
            masses = json.loads(distribution)
            # The probability of tokens that do not represent a label is not confidence in a label.
            confidence = max((m for k, m in masses.items() if k != "unassigned"), default=None)
        stratum = {"label": value, "dataset": dataset, "confidence": _bin(confidence)}.get(
            plan.by or "", "all"
        )
        part_of = answer if task.spec.unit in PARTS else None
        yield Candidate(unit, question, stratum or "no label", confidence, part_of, place)


def read_unaccepted(store: Store, task: Task, name: str) -> set[str]:
    """Return the units that a routed run, the result of `judge route`, left for people to label.

    These are the units that the original run judged, but that are missing from the routed run.

    Raises UsageError if the run is not a routed run, or answers other questions.
    """
    run = find_run(store, name)
    made = read_derivation(store.conn, run["run_id"])
    if made is None or made["kind"] != "routed":
        raise UsageError(
            f"--draw route --run {name}: run {run['run_id']} ({run['model']}) is not a route; to make one: {command('judge route', task.task_id, '--run', 'RUN')}"
        )
    if not set(read_stored_task(store, run["task"]).fields) & {q.field for q in task.spec.questions}:
        raise UsageError(f"run {run['run_id']} ({run['task']}) does not answer the questions of {task.name}")
    judged = relation.read_judged_units(store.conn, made["parents"][0]["run"])
    return judged - relation.read_judged_units(store.conn, run["run_id"])


def list_earlier(store: Store, fields: Collection[str], plan: BatchPlan, of: str | None = None) -> list[str]:
    """Return the batches on any of these fields that were there when a batch was drawn.

    `of` is the batch, or None if it is drawn now. What the draw recorded has priority: after a merge, a batch that
    was drawn on another machine may come first in the file.
    """
    rows = store.conn.execute(
        "SELECT batch, task FROM batches WHERE ?1 IS NULL OR rowid < (SELECT rowid FROM batches WHERE batch = ?1) "
        "OR batch IN (SELECT value FROM json_each(?2)) ORDER BY rowid",
        [of, dumps(list(plan.after or ()))],
    ).fetchall()
    return [
        batch
        for batch, name in rows
        if (of is None or plan.after is None or batch in plan.after)
        and not {q.field for q in read_stored_task(store, name).spec.questions}.isdisjoint(fields)
    ]


def list_left_out(store: Store, task: Task, plan: BatchPlan, of: str) -> list[str]:
    """Return the earlier batches whose sampled units the draw of the batch `of` left out."""
    earlier = list_earlier(store, {q.field for q in task.spec.questions}, plan, of)
    # 0.2.0 left out the units of every batch.
    return [b for b in earlier if plan.left_out is None or _is_equal(store.conn, b)]


def _bin(confidence: float | None) -> str:
    if confidence is None:
        return "no distribution"
    return next(name for limit, name in BINS if confidence < limit)


def with_gold(store: Store, task: Task, frame: Frame) -> list[str]:
    """Return the units with a valid gold label for every question."""
    kept: set[str] | None = None
    for question in task.spec.questions:
        domain = task.domain(question.field)
        rows = relation.values(store.conn, GOLD, question.field)
        inside = {unit for unit, value in rows.items() if not domain or value in domain}
        kept = inside if kept is None else kept & inside
    return sorted(frame.among(kept or ()))
