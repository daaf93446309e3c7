"""Copy the runs in the attached database `src` into `main`. Runs with the same identity become one run."""

import json
from collections import Counter
from collections.abc import Iterator
from sqlite3 import Connection
from typing import Any

from judge.store._merge_rows import LABELS, columns_of
from judge.store.runs import PROBES, SELECTED, TRIED, Begun, adopt
from judge.store.study import canonical, dumps
from judge.types import Status


def map_runs(conn: Connection, same_model: bool) -> tuple[int, list[str], list[str]]:
    """Add the new runs, and store each run's old and new ids in `temp.run_map`.

    Returns (number of joined runs, notes, conflicts). Two runs are joined if they have the same task, model,
    identity and request version. A derived run depends on all data in its study, so it is joined only with a
    run that has the same id.
    """
    conn.execute("DROP TABLE IF EXISTS temp.run_map")
    conn.execute("CREATE TEMP TABLE run_map (old TEXT PRIMARY KEY, new TEXT NOT NULL) WITHOUT ROWID")
    joined, notes, clashes = 0, [], []
    query = "SELECT run_id FROM src.runs INTERSECT SELECT run_id FROM main.runs"
    taken: set[str] = {run_id for (run_id,) in conn.execute(query)}
    columns = columns_of(conn, "runs")
    rows = conn.execute(f"SELECT {', '.join(columns)} FROM src.runs ORDER BY started, run_id").fetchall()
    for values in rows:
        run = dict(zip(columns, values, strict=True))
        other = _counterpart(conn, run, taken, columns)
        new = run["run_id"] if other is None else other["run_id"]
        taken.add(new)
        conn.execute("INSERT INTO temp.run_map VALUES (?, ?)", [run["run_id"], new])
        if other is None:
            _add_run(conn, run)
            continue
        joined += 1
        # Two servers may serve different weights under one name; joining their answers would mix two judges.
        difference = _models(run, other)
        if difference and not same_model and not _is_vendors(run, other):
            clashes.append(f"{difference}; to join the two runs, pass --same-model")
        elif difference:
            notes.append(f"{difference}: joined")
        _join(conn, run, other)
    return joined, notes, clashes


def _counterpart(
    conn: Connection, run: dict[str, Any], taken: set[str], columns: list[str]
) -> dict[str, Any] | None:
    """Return the run in `main` that this run is joined with, or None if there is no such run."""
    stored = conn.execute("SELECT * FROM main.runs WHERE run_id = ?", [run["run_id"]]).fetchone()
    if stored is not None:
        return dict(zip(columns, stored, strict=True))
    if run["derived_from"] is not None:
        return None
    query = (
        "SELECT * FROM main.runs WHERE task = ? AND model = ? AND identity = ? AND request_version = ? "
        "AND derived_from IS NULL ORDER BY started DESC, run_id DESC"
    )
    criteria = [run[name] for name in ("task", "model", "identity", "request_version")]
    for values in conn.execute(query, criteria):
        other = dict(zip(columns, values, strict=True))
        # Two runs of one study are never joined with each other.
        if other["run_id"] not in taken:
            return other
    return None


def _models(run: dict[str, Any], other: dict[str, Any]) -> str | None:
    """Return a message if the servers of the two runs reported different model names."""
    first, second = (r["resolved_model"] or json.loads(r["provider"]).get("reports") for r in (run, other))
    if not first or not second or first == second:
        return None
    return f"run {run['run_id']} ({run['task']}, {run['model']}): its servers reported different models, '{first}' and '{second}'"


def _is_vendors(*runs: dict[str, Any]) -> bool:
    """Return whether the model of one of the runs is served by a vendor.

    The model behind a vendor's alias can change, because vendors point aliases to newer models over time.
    """
    return any(json.loads(run["provider"]).get("own_server") for run in runs)


def _add_run(conn: Connection, run: dict[str, Any]) -> None:
    renamed = conn.execute("SELECT old, new FROM temp.run_map WHERE old <> new").fetchall()
    # The derivation names its parents, whose ids may have changed.
    if run["derived_from"] is not None:
        for old, new in renamed:
            for name in ("derived_from", "options", "identity"):
                run[name] = run[name] and run[name].replace(old, new)
        run["identity"] = run["identity"] and canonical(json.loads(run["identity"]))
    conn.execute(
        "INSERT OR IGNORE INTO main.annotators SELECT * FROM src.annotators WHERE annotator_id = ?",
        [run["run_id"]],
    )
    marks = ", ".join("?" * len(run))
    conn.execute(f"INSERT INTO main.runs ({', '.join(run)}) VALUES ({marks})", list(run.values()))


def _join(conn: Connection, run: dict[str, Any], other: dict[str, Any]) -> None:
    """Update the stored run.

    Its start becomes the earlier of the two starts. It is finished only if both runs are finished.
    """
    both = [
        Begun(r["run_id"], json.loads(r["options"]), json.loads(r["provider"]), r["resolved_model"])
        for r in (run, other)
    ]
    addresses = both[0].addresses | {
        url: name or both[0].addresses.get(url) for url, name in both[1].addresses.items()
    }
    facts = {
        **both[1].provider,
        **({"addresses": addresses} if addresses else {}),
        **_sums(conn, both[0], both[1]),
    }
    facts = {
        name: value
        for name, value in facts.items()
        if name != SELECTED or value == both[0].provider.get(name)
    }
    finished = max(run["finished"], other["finished"]) if run["finished"] and other["finished"] else None
    conn.execute(
        "UPDATE main.runs SET provider = ?, started = ?, finished = ? WHERE run_id = ?",
        [dumps(facts), min(run["started"], other["started"]), finished, other["run_id"]],
    )
    if TRIED not in both[0].options:
        adopt(conn, other["run_id"])


def _sums(conn: Connection, run: Begun, other: Begun) -> dict[str, Any]:
    """Return the sum of both runs' totals. Neither run's totals include the invocations of the other run."""
    ours, theirs = run.provider.get(PROBES) or {}, other.provider.get(PROBES) or {}
    if run.run_id == other.run_id:
        return {PROBES: max(ours, theirs, key=lambda took: took.get("calls", 0))} if ours or theirs else {}
    new = (
        "SELECT 1 FROM src.judgements AS s WHERE s.run_id = ? AND NOT EXISTS (SELECT 1 FROM main.judgements AS m WHERE "
        "m.run_id = ? AND m.unit_id = s.unit_id AND m.repeat = s.repeat AND m.judged_at = s.judged_at) LIMIT 1"
    )
    if conn.execute(new, [run.run_id, other.run_id]).fetchone() is None:
        # The study was merged before, and its judgements are already counted.
        return {}
    added = {name: n + (theirs.get(name) or 0) for name, n in ours.items() if n is not None}
    return {SELECTED: None, **({PROBES: {**ours, **theirs, **added}} if ours or theirs else {})}


def add_judgements(conn: Connection, twice: Counter[str]) -> Iterator[str]:
    """Add judgements with their labels and requests. Yield a message for each unit for which a run's labels
    differ.

    If both studies have attempts for a unit, all attempts are kept, and the attempt that counts is stored
    last. `twice["same"]` counts the units that both studies judged separately, with the same result.
    """
    conn.execute("DROP TABLE IF EXISTS temp.theirs")
    conn.execute(
        "CREATE TEMP TABLE theirs (run_id TEXT, unit_id TEXT, repeat INTEGER, PRIMARY KEY (run_id, unit_id, repeat)) "
        "WITHOUT ROWID"
    )
    ours = "SELECT 1 FROM main.judgements AS m WHERE m.run_id = r.new AND m.unit_id = s.unit_id AND m.repeat = s.repeat"
    # Units without any judgement in `main`: their labels are copied with them.
    conn.execute(
        "INSERT OR IGNORE INTO temp.theirs SELECT r.new, s.unit_id, s.repeat FROM src.judgements AS s "
        f"JOIN temp.run_map AS r ON r.old = s.run_id WHERE NOT EXISTS ({ours})"
    )
    yield from _resolve_both(conn, twice)
    theirs = "JOIN temp.theirs AS t ON t.run_id = r.new AND t.unit_id = s.unit_id AND t.repeat = s.repeat"
    conn.execute(f"INSERT OR IGNORE {_build_insert(conn, 'judgements', run_id='r.new')} {theirs}")
    conn.execute(f"INSERT OR REPLACE {_build_insert(conn, LABELS, annotator_id='r.new')} {theirs}")
    conn.execute(
        f"INSERT {_build_insert(conn, 'requests', 'LEFT', run_id='coalesce(r.new, s.run_id)')} WHERE true "
        "ON CONFLICT (request_sha) DO UPDATE SET run_id = excluded.run_id, unit_id = excluded.unit_id "
        "WHERE requests.unit_id IS NULL AND excluded.unit_id IS NOT NULL"
    )


def _build_insert(conn: Connection, table: str, join: str = "", **run: str) -> str:
    """Return an INSERT statement for a table's rows in `src`.

    In the column that contains the run's id, the old id is replaced with the new one.
    """
    [(of, new)] = run.items()
    names = columns_of(conn, table)
    listed = ", ".join(new if c == of else f"s.{c}" for c in names)
    return (
        f"INTO main.{table} ({', '.join(names)}) SELECT {listed} FROM src.{table} AS s "
        f"{join} JOIN temp.run_map AS r ON r.old = s.{of}"
    )


def _resolve_both(conn: Connection, twice: Counter[str]) -> Iterator[str]:
    """Merge the units for which the two studies have different attempts in the same run."""
    same = " AND ".join(f"m.{c} IS s.{c}" for c in ("status", "reply", "judged_at", "request_sha"))
    same_unit = "m.run_id = r.new AND m.unit_id = s.unit_id AND m.repeat = s.repeat"
    # Units that both studies share (one was a copy of the other) are skipped in SQL: reading each row in
    # Python is slow.
    query = (
        "SELECT DISTINCT s.run_id, r.new, s.unit_id, s.repeat FROM src.judgements AS s "
        "JOIN temp.run_map AS r ON r.old = s.run_id "
        f"WHERE EXISTS (SELECT 1 FROM main.judgements AS m WHERE {same_unit}) "
        f"AND NOT EXISTS (SELECT 1 FROM main.judgements AS m WHERE {same_unit} AND m.attempt = s.attempt AND {same})"
    )
    conn.execute("DROP TABLE IF EXISTS temp.met")
    conn.execute(f"CREATE TEMP TABLE met AS {query}")
    for old, run, unit, repeat in conn.execute("SELECT * FROM temp.met"):
        conflict = _merge_attempts(conn, old, run, unit, repeat, twice)
        if conflict is not None:
            yield conflict


def _merge_attempts(
    conn: Connection, old: str, run: str, unit: str, repeat: int, twice: Counter[str]
) -> str | None:
    """Merge the attempts for a unit.

    Return a conflict message if both studies have a label and the labels differ.
    """
    ours, theirs = _attempts(conn, "main", run, unit, repeat), _attempts(conn, "src", old, unit, repeat)
    in_ours = {_fingerprint(a) for a in ours}
    new = [a for a in theirs if _fingerprint(a) not in in_ours]
    if not new:
        return None
    in_theirs = {_fingerprint(a) for a in theirs}
    only_ours = [a for a in ours if _fingerprint(a) not in in_theirs]
    if not only_ours:
        # `src` has the same attempts and later ones: the run was resumed there, or the studies were merged
        # before.
        order, wins = theirs, True
    else:
        our_status, their_status = ours[-1]["status"], theirs[-1]["status"]
        wins = _worth(their_status) > _worth(our_status)
        if our_status == their_status == Status.OK:
            our_labels, their_labels = (
                _labels_of(conn, "main", run, unit, repeat),
                _labels_of(conn, "src", old, unit, repeat),
            )
            if our_labels != their_labels:
                return f"run {run}, unit '{unit}': the labels are {their_labels} in one study and {our_labels} in another"
            twice["same"] += 1
        # The last attempt of a unit is the one that counts.
        order = [*ours, *new] if wins else [*new, *ours]
    unit_key = [run, unit, repeat]
    conn.execute("DELETE FROM main.judgements WHERE run_id = ? AND unit_id = ? AND repeat = ?", unit_key)
    for number, attempt in enumerate(order, 1):
        row = {**attempt, "run_id": run, "attempt": number}
        marks = ", ".join("?" * len(row))
        conn.execute(f"INSERT INTO main.judgements ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    if wins:
        conn.execute(
            # The plus keeps SQLite from reading all labels of the run for each unit.
            f"DELETE FROM main.{LABELS} WHERE +annotator_id = ? AND unit_id = ? AND repeat = ?",
            unit_key,
        )
        # The attempts are already stored; only the labels are still to be copied.
        conn.execute("INSERT INTO temp.theirs VALUES (?, ?, ?)", unit_key)
    return None


def _worth(status: str) -> int:
    """Return the rank of a status.

    A reply with a label ranks above a reply without a label, which in turn ranks above a failed call.
    """
    return 2 if status == Status.OK else int(status != Status.FAILED)


def _attempts(conn: Connection, schema: str, run: str, unit: str, repeat: int) -> list[dict[str, Any]]:
    cursor = conn.execute(
        f"SELECT * FROM {schema}.judgements WHERE run_id = ? AND unit_id = ? AND repeat = ? ORDER BY attempt",
        [run, unit, repeat],
    )
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor]


def _fingerprint(attempt: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(attempt[name] for name in ("status", "reply", "judged_at", "request_sha"))


def _labels_of(conn: Connection, schema: str, run: str, unit: str, repeat: int) -> str:
    query = (
        f"SELECT field, value FROM {schema}.{LABELS} WHERE +annotator_id = ? AND unit_id = ? AND repeat = ? "
        "AND layer = 'first' ORDER BY field"
    )
    return ", ".join(f"{name} {value}" for name, value in conn.execute(query, [run, unit, repeat]))


def finish(conn: Connection) -> None:
    """Update the data that depend on both studies: claim pairs, counts, and model names of runs.

    The two claims in a pair may come from different studies.
    """
    conn.execute(
        "INSERT INTO units (unit_id, kind, item_id, question_id, span) "
        "SELECT o.item_id || '~' || c.item_id, 'pair', o.item_id, o.question_id, json_object('counter', c.item_id) "
        "FROM items AS o JOIN items AS c ON c.dataset = o.dataset AND c.pair_id = o.pair_id "
        "WHERE o.polarity = 'original' AND c.polarity = 'counter' "
        "AND NOT EXISTS (SELECT 1 FROM units AS u WHERE u.unit_id = o.item_id || '~' || c.item_id) "
        "ORDER BY o.rowid, c.rowid"
    )
    # The triggers that keep the counts were off while rows were copied.
    conn.execute("DELETE FROM run_counts")
    conn.execute(
        "INSERT INTO run_counts SELECT run_id, repeat, status, count(*) FROM latest_judgements GROUP BY 1, 2, 3"
    )
    conn.execute(
        "UPDATE runs SET resolved_model = coalesce((SELECT j.resolved_model FROM judgements AS j "
        "WHERE j.run_id = runs.run_id AND j.resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1), "
        "resolved_model)"
    )
