"""Read stored runs: list them, find one by name, and read a run's judgements row by row."""

import json
from collections.abc import Iterator
from pathlib import Path

from judge.errors import UsageError
from judge.prompts.load import Task, find_tasks, load_task, parse_task
from judge.store import label_rows
from judge.store.derived import folds
from judge.store.listing import dicts
from judge.store.runs import read_tried
from judge.store.study import Store
from judge.types import Json

_JSON = ("options", "provider", "derived_from")
_INTERNAL = ("identity", "request_version")
_STORED = (
    "unit_id", "item_id", "question_id", "passage_id", "repeat", "attempt", "status", "reason", "reply",
    "input_tokens", "output_tokens", "latency", "resolved_model", "system_fingerprint", "request_sha", "judged_at", "cost_usd",
)  # fmt: skip
COLUMNS = ("run", "task", "model", *_STORED, "rationale")
"""The columns in a row that `read_judged` yields, except `labels` and `distributions`."""
FITTED = "fitted_on"
"""An additional column for a run that was fitted on labels.

It says whether the run was fitted on the row's question.
"""


def list_runs(store: Store) -> list[dict[str, Json]]:
    """Return all runs, oldest first. Each run has its number of units by the status of their latest attempt."""
    return [_with_counts(store, row) for row in dicts(store.conn, f"SELECT * FROM runs {_OLDEST}", [])]


_OLDEST = "ORDER BY started, run_id"


def _with_counts(store: Store, row: dict[str, Json]) -> dict[str, Json]:
    shown = {k: json.loads(v) if k in _JSON and v else v for k, v in row.items() if k not in _INTERNAL}
    return {**shown, **run_counts(store, row["run_id"])}


def run_counts(store: Store, run_id: str) -> dict[str, Json]:
    """Return a run's numbers of units by status, its tokens, its mean latency in seconds and its cost.

    The status of a unit is that of its latest attempt.
    """
    # A trigger maintains these counts, because counting a million judgements takes a second.
    latest = "SELECT status, sum(units) FROM run_counts WHERE run_id = ? GROUP BY status"
    statuses = dict(store.conn.execute(latest, [run_id]))
    sums = (
        "SELECT coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(output_tokens), 0) AS output_tokens, "
        "coalesce(sum(cached_tokens), 0) AS cached_tokens, avg(latency) AS mean_latency, sum(cost) AS cost_usd "
        "FROM judgements WHERE run_id = ?"
    )
    names = ("ok", "unparsed", "refused", "truncated", "failed")
    by_status = {"units": sum(statuses.values()), **{name: statuses.get(name, 0) for name in names}}
    return {**by_status, **next(dicts(store.conn, sums, [run_id]))}


def find_run(store: Store, name: str) -> dict[str, Json]:
    """Find a run by name.

    The name is the run's model or `--as` name. If no run has this name, a run is found whose id equals,
    starts with or ends with `name`. `last` means the newest run. Raises UsageError if no run matches, or if
    several runs match.
    """
    return _with_counts(store, find_named_run(store, name))


def find_named_run(store: Store, name: str) -> dict[str, Json]:
    """Find a run as `find_run` does, but without counting its judgements.

    Counting takes one second per million judgements. JSON columns are not decoded.
    """
    rows = list(dicts(store.conn, f"SELECT * FROM runs {_OLDEST}", []))
    # `judge drift` and `judge improve` also make runs of the model. A user who names the model means the run
    # that they made themselves.
    only_tried = read_tried(store.conn)
    chosen = [r for r in rows if r["run_id"] not in only_tried] or rows
    if name == "last" and chosen:
        return chosen[-1]
    # Names are compared before ids, because one run in 32 has an id that ends with the letter by which
    # somebody has named a judge.
    matches = [r for r in chosen if r["model"] == name] or [r for r in rows if r["model"] == name]
    part = name.upper()
    # An empty name, for example from an unset shell variable, would match the start of every id.
    by_id = [r for r in rows if part and (r["run_id"].startswith(part) or r["run_id"].endswith(part))]
    matches = matches or by_id
    if len(matches) != 1:
        listed = ", ".join(f"{r['run_id']} ({r['task']}, {r['model']})" for r in rows) or "no runs yet"
        raise UsageError(
            f"{'several runs are' if matches else 'no run is'} called '{name}'; available runs: {listed}"
        )
    return matches[0]


def read_stored_task(store: Store, name: str) -> Task:
    """Return the task as stored in the study, even if its file has changed or is missing."""
    row = store.conn.execute("SELECT template FROM tasks WHERE task = ?", [name]).fetchone()
    if row is None:
        raise UsageError(f"{store.path}: the study has no task '{name}'")
    return parse_task(row[0], f"{name}.md")


def find_task(store: Store, name: str, folder: Path | None = None) -> Task:
    """Return the task that a command names.

    If a folder is given, the task is loaded from the folder. Otherwise the version in the study is used. A
    name without a version means the newest version in the study, so a study keeps its codebook when adjudge
    includes a newer version. A task that is not in the study is loaded from its file. Raises the same errors
    as `load_task`.
    """
    row = None
    if folder is None:
        row = store.conn.execute(
            "SELECT task FROM tasks WHERE task = ?1 OR task_id = ?1 ORDER BY version DESC LIMIT 1", [name]
        ).fetchone()
    return load_task(name, folder) if row is None else read_stored_task(store, row[0])


def newer_version(name: str, task: Task) -> str | None:
    """Return a note if adjudge includes a newer version of the task than the study uses.

    `name` is the name that the user typed.
    """
    if name != task.task_id or name not in {key.rpartition(".v")[0] for key in find_tasks()}:
        return None
    newest = load_task(name)
    # The study may come from a newer adjudge.
    if newest.version <= task.version:
        return None
    return f"note: {task.name} is used, because the study already has labels or runs for it; to use the newer {newest.name}, type its full name"


def read_judged(store: Store, run: dict[str, Json], task: Task) -> Iterator[dict[str, Json]]:
    """Yield one row for each judged unit and repeat, in study order.

    A row contains the status, labels, distributions and raw reply. If the run was fitted on labels, the row
    also has the key `FITTED`. Its value is True if the fit used labels for the row's question.
    """
    # Labels on questions with a fold are unbiased, because the fit did not use these questions.
    questions = {q for q, fold in folds(store.conn, run["run_id"]).items() if fold is None}
    content = "json_object('value', l.value, 'distribution', json(l.distribution), 'rationale', l.rationale)"
    query = f"""
        SELECT u.unit_id, u.item_id, u.question_id, u.passage_id, j.repeat, j.attempt, j.status, j.reason, j.reply,
               j.input_tokens, j.output_tokens, j.latency, j.resolved_model, j.system_fingerprint, j.request_sha, j.judged_at,
               (SELECT sum(k.cost) FROM judgements AS k WHERE k.run_id = j.run_id AND k.unit_id = j.unit_id
                AND k.repeat = j.repeat) AS cost_usd,
               {label_rows.objects("j.run_id", "j.unit_id", content, "j.repeat")} AS labels
        FROM latest_judgements AS j JOIN units AS u USING (unit_id) WHERE j.run_id = ? ORDER BY j.repeat, u.rowid
    """
    for row in dicts(store.conn, query, [run["run_id"]]):
        labels = json.loads(row.pop("labels") or "{}") if row["status"] == "ok" else {}
        row.pop("labels", None)
        row["labels"] = {f: labels[f]["value"] if f in labels else None for f in task.fields}
        row["distributions"] = {f: d["distribution"] for f, d in labels.items() if d["distribution"]}
        row["rationale"] = next((d["rationale"] for d in labels.values() if d["rationale"]), None)
        fitted = {FITTED: row["question_id"] in questions} if questions else {}
        yield {"run": run["run_id"], "task": task.name, "model": run["model"], **row, **fitted}


def label_maps(store: Store) -> dict[str, dict[str, str]]:
    """Return the labels that imports have renamed, as {field: {old: new}}. Reports list them."""
    merged: dict[str, dict[str, str]] = {}
    for (text,) in store.conn.execute("SELECT label_maps FROM imports ORDER BY imported_at"):
        for field, words in json.loads(text).items():
            merged.setdefault(field, {}).update(words)
    return merged
