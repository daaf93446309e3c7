"""Read stored runs: listings, and the judgements of a run row by row."""

import json
from collections.abc import Iterator
from pathlib import Path

from judge.errors import UsageError
from judge.prompts.load import Task, find_tasks, load_task, parse_task
from judge.store import label_rows
from judge.store.derived import folds
from judge.store.listing import dicts
from judge.store.runs import tried
from judge.store.study import Store
from judge.types import Json

_JSON = ("options", "provider", "derived_from")
_INTERNAL = ("identity", "request_version")
_STORED = (
    "unit_id", "item_id", "question_id", "passage_id", "repeat", "attempt", "status", "reason", "reply",
    "input_tokens", "output_tokens", "latency", "resolved_model", "system_fingerprint", "request_sha", "judged_at", "cost_usd",
)  # fmt: skip
COLUMNS = ("run", "task", "model", *_STORED, "rationale")
"""The columns of a row that `judged` yields, in addition to `labels` and `distributions`."""
FITTED = "fitted_on"
"""An extra column for a run that was fitted on labels: whether these included labels for the row's question."""


def list_runs(store: Store) -> list[dict[str, Json]]:
    """Return every run with its counts by status (latest attempts), oldest first."""
    return [_with_counts(store, row) for row in dicts(store.conn, f"SELECT * FROM runs {_OLDEST}", [])]


_OLDEST = "ORDER BY started, run_id"


def _with_counts(store: Store, row: dict[str, Json]) -> dict[str, Json]:
    shown = {k: json.loads(v) if k in _JSON and v else v for k, v in row.items() if k not in _INTERNAL}
    return {**shown, **run_counts(store, row["run_id"])}


def run_counts(store: Store, run_id: str) -> dict[str, Json]:
    """Return the judgements of a run by status (latest attempts), tokens, and mean latency in seconds."""
    # The counts are kept by a trigger: counting a million judgements takes a second each time.
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
    """Return the run with this model (or `--as` name), or else the run whose id equals, starts with or ends
    with `name`.

    `last` means the newest run. Raises UsageError if no run matches or several do.
    """
    return _with_counts(store, named_run(store, name))


def named_run(store: Store, name: str) -> dict[str, Json]:
    """Return the run as `find_run` does, but without counts, which take one second per million judgements.

    JSON columns are not decoded.
    """
    rows = list(dicts(store.conn, f"SELECT * FROM runs {_OLDEST}", []))
    # `judge drift` and `judge improve` make runs of the same model. A user who names the model means the run they made.
    only_tried = tried(store.conn)
    chosen = [r for r in rows if r["run_id"] not in only_tried] or rows
    if name == "last" and chosen:
        return chosen[-1]
    # Names before ids: one run in 32 has an id that ends in the letter that somebody has named a judge by.
    matches = [r for r in chosen if r["model"] == name] or [r for r in rows if r["model"] == name]
    part = name.upper()
    # Every id starts with an empty name, which a shell variable without a value gives.
    by_id = [r for r in rows if part and (r["run_id"].startswith(part) or r["run_id"].endswith(part))]
    matches = matches or by_id
    if len(matches) != 1:
        listed = ", ".join(f"{r['run_id']} ({r['task']}, {r['model']})" for r in rows) or "no runs yet"
        raise UsageError(
            f"{'several runs are' if matches else 'no run is'} called '{name}'; available: {listed}"
        )
    return matches[0]


def stored_task(store: Store, name: str) -> Task:
    """Return the task as stored in the study, even if its file has changed or is missing."""
    row = store.conn.execute("SELECT template FROM tasks WHERE task = ?", [name]).fetchone()
    if row is None:
        raise UsageError(f"{store.path}: no task '{name}' in this study")
    return parse_task(row[0], f"{name}.md")


def known_task(store: Store, name: str, folder: Path | None = None) -> Task:
    """Return the task that a command names: from the folder if one is given, otherwise the version that the
    study has used.

    A name without a version means the newest version in the study, so a study does not change its codebook
    when adjudge ships a newer version. A task that the study has not used is loaded from its file. Raises
    TaskError or UsageError under the same conditions as `load_task`.
    """
    row = None
    if folder is None:
        row = store.conn.execute(
            "SELECT task FROM tasks WHERE task = ?1 OR task_id = ?1 ORDER BY version DESC LIMIT 1", [name]
        ).fetchone()
    return load_task(name, folder) if row is None else stored_task(store, row[0])


def newer_version(name: str, task: Task) -> str | None:
    """Return a note if adjudge ships a newer version of the task than the study uses. `name` is the name as typed."""
    if name != task.task_id or name not in {key.rpartition(".v")[0] for key in find_tasks()}:
        return None
    newest = load_task(name)
    # The study may come from a newer adjudge.
    if newest.version <= task.version:
        return None
    return f"note: this study keeps {task.name}, which it has used; {newest.name} is newer; to use it, type its full name"


def judged(store: Store, run: dict[str, Json], task: Task) -> Iterator[dict[str, Json]]:
    """Yield one row per judged unit and repeat, in study order, with status, labels, distributions and raw reply.

    If the run was fitted on labels, the column `FITTED` says whether these included labels for the row's
    question.
    """
    # Labels on questions with a fold are unbiased: the fit left those questions out.
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
    """Return every label that an import renamed, as field -> {old: new}. Reports print them."""
    merged: dict[str, dict[str, str]] = {}
    for (text,) in store.conn.execute("SELECT label_maps FROM imports ORDER BY imported_at"):
        for field, words in json.loads(text).items():
            merged.setdefault(field, {}).update(words)
    return merged
