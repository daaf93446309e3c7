"""Runs of an attached study `src` into `main`, those of one identity joined, with their judgements and labels."""

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
    """Fill `temp.run_map` (old, new) and add the runs that are new: (how many were joined, notes, conflicts).

    A run is joined with one of the same task, model, identity and way of hashing; a derived one, which was made of
    what its study held, only with itself.
    """
    conn.execute("DROP TABLE IF EXISTS temp.run_map")
    conn.execute("CREATE TEMP TABLE run_map (old TEXT PRIMARY KEY, new TEXT NOT NULL) WITHOUT ROWID")
    joined, notes, clashes = 0, [], []
    query = "SELECT run_id FROM src.runs INTERSECT SELECT run_id FROM main.runs"
    taken: set[str] = {run_id for (run_id,) in conn.execute(query)}
    columns = columns_of(conn, "runs")
    found = conn.execute(f"SELECT {', '.join(columns)} FROM src.runs ORDER BY started, run_id").fetchall()
    for values in found:
        run = dict(zip(columns, values, strict=True))
        other = _alike(conn, run, taken, columns)
        new = run["run_id"] if other is None else other["run_id"]
        taken.add(new)
        conn.execute("INSERT INTO temp.run_map VALUES (?, ?)", [run["run_id"], new])
        if other is None:
            _add_run(conn, run)
            continue
        joined += 1
        told = _models(run, other)
        if told and not same_model and not _is_vendors(run, other):
            clashes.append(f"{told}: --same-model joins them")
        elif told:
            notes.append(f"{told}: joined")
        _join(conn, run, other)
    return joined, notes, clashes


def _alike(
    conn: Connection, run: dict[str, Any], taken: set[str], columns: list[str]
) -> dict[str, Any] | None:
    own = conn.execute("SELECT * FROM main.runs WHERE run_id = ?", [run["run_id"]]).fetchone()
    if own is not None:
        return dict(zip(columns, own, strict=True))
    if run["derived_from"] is not None:
        return None
    query = (
        "SELECT * FROM main.runs WHERE task = ? AND model = ? AND identity = ? AND request_version = ? "
        "AND derived_from IS NULL ORDER BY started DESC, run_id DESC"
    )
    of = [run[name] for name in ("task", "model", "identity", "request_version")]
    for values in conn.execute(query, of):
        other = dict(zip(columns, values, strict=True))
        # Two of one study stay two.
        if other["run_id"] not in taken:
            return other
    return None


def _models(run: dict[str, Any], other: dict[str, Any]) -> str | None:
    """What to say when servers gave the model different names."""
    one, two = (r["resolved_model"] or json.loads(r["provider"]).get("reports") for r in (run, other))
    if not one or not two or one == two:
        return None
    return f"run {run['run_id']} ({run['task']}, {run['model']}): its servers called the model '{one}' and '{two}'"


def _is_vendors(*runs: dict[str, Any]) -> bool:
    """A vendor's alias moves on, and nobody can ask for what it was."""
    return any(json.loads(run["provider"]).get("own_server") for run in runs)


def _add_run(conn: Connection, run: dict[str, Any]) -> None:
    renamed = conn.execute("SELECT old, new FROM temp.run_map WHERE old <> new").fetchall()
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
    """One run that began when the first of both did, and has ended when both have."""
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
    """What was counted of all invocations of both: none of these stands for the other's where they were apart."""
    one, two = run.provider.get(PROBES) or {}, other.provider.get(PROBES) or {}
    if run.run_id == other.run_id:
        return {PROBES: max(one, two, key=lambda took: took.get("calls", 0))} if one or two else {}
    new = (
        "SELECT 1 FROM src.judgements AS s WHERE s.run_id = ? AND NOT EXISTS (SELECT 1 FROM main.judgements AS m WHERE "
        "m.run_id = ? AND m.unit_id = s.unit_id AND m.repeat = s.repeat AND m.judged_at = s.judged_at) LIMIT 1"
    )
    if conn.execute(new, [run.run_id, other.run_id]).fetchone() is None:
        return {}  # a study that was merged before
    added = {name: n + (two.get(name) or 0) for name, n in one.items() if n is not None}
    return {SELECTED: None, **({PROBES: {**one, **two, **added}} if one or two else {})}


def add_judgements(conn: Connection, twice: Counter[str]) -> Iterator[str]:
    """Judgements with their labels and requests; yields the units whose labels differ in one run.

    A unit that both have attempts of keeps all of them, those that count last. `twice["same"]` counts those that both
    have the same label of, by attempts of their own.
    """
    conn.execute("DROP TABLE IF EXISTS temp.theirs")
    conn.execute(
        "CREATE TEMP TABLE theirs (run_id TEXT, unit_id TEXT, repeat INTEGER, PRIMARY KEY (run_id, unit_id, repeat)) "
        "WITHOUT ROWID"
    )
    ours = "SELECT 1 FROM main.judgements AS m WHERE m.run_id = r.new AND m.unit_id = s.unit_id AND m.repeat = s.repeat"
    # Whole groups that are new: their labels come with them.
    conn.execute(
        "INSERT OR IGNORE INTO temp.theirs SELECT r.new, s.unit_id, s.repeat FROM src.judgements AS s "
        f"JOIN temp.run_map AS r ON r.old = s.run_id WHERE NOT EXISTS ({ours})"
    )
    yield from _both(conn, twice)
    theirs = "JOIN temp.theirs AS t ON t.run_id = r.new AND t.unit_id = s.unit_id AND t.repeat = s.repeat"
    conn.execute(f"INSERT OR IGNORE {_of_mapped(conn, 'judgements', run_id='r.new')} {theirs}")
    conn.execute(f"INSERT OR REPLACE {_of_mapped(conn, LABELS, annotator_id='r.new')} {theirs}")
    conn.execute(
        f"INSERT {_of_mapped(conn, 'requests', 'LEFT', run_id='coalesce(r.new, s.run_id)')} WHERE true "
        "ON CONFLICT (request_sha) DO UPDATE SET run_id = excluded.run_id, unit_id = excluded.unit_id "
        "WHERE requests.unit_id IS NULL AND excluded.unit_id IS NOT NULL"
    )


def _of_mapped(conn: Connection, table: str, join: str = "", **run: str) -> str:
    """The rows of a table of `src` for `main`, with the new id in the column that names the run."""
    [(of, new)] = run.items()
    names = columns_of(conn, table)
    listed = ", ".join(new if c == of else f"s.{c}" for c in names)
    return (
        f"INTO main.{table} ({', '.join(names)}) SELECT {listed} FROM src.{table} AS s "
        f"{join} JOIN temp.run_map AS r ON r.old = s.{of}"
    )


def _both(conn: Connection, twice: Counter[str]) -> Iterator[str]:
    """Units of one run that both studies have attempts of, other ones than the same."""
    same = " AND ".join(f"m.{c} IS s.{c}" for c in ("status", "reply", "judged_at", "request_sha"))
    one = "m.run_id = r.new AND m.unit_id = s.unit_id AND m.repeat = s.repeat"
    # What a copy of the study has in common with it is passed over here, without a look at each row in Python.
    query = (
        "SELECT DISTINCT s.run_id, r.new, s.unit_id, s.repeat FROM src.judgements AS s "
        "JOIN temp.run_map AS r ON r.old = s.run_id "
        f"WHERE EXISTS (SELECT 1 FROM main.judgements AS m WHERE {one}) "
        f"AND NOT EXISTS (SELECT 1 FROM main.judgements AS m WHERE {one} AND m.attempt = s.attempt AND {same})"
    )
    conn.execute("DROP TABLE IF EXISTS temp.met")
    conn.execute(f"CREATE TEMP TABLE met AS {query}")
    for old, run, unit, repeat in conn.execute("SELECT * FROM temp.met"):
        told = _settle(conn, old, run, unit, repeat, twice)
        if told is not None:
            yield told


def _settle(conn: Connection, old: str, run: str, unit: str, repeat: int, twice: Counter[str]) -> str | None:
    ours, theirs = _attempts(conn, "main", run, unit, repeat), _attempts(conn, "src", old, unit, repeat)
    known = {_fingerprint(a) for a in ours}
    new = [a for a in theirs if _fingerprint(a) not in known]
    if not new:
        return None
    back = {_fingerprint(a) for a in theirs}
    own = [a for a in ours if _fingerprint(a) not in back]
    if not own:
        # The same attempts, and more of them, in the order that they were given: by going on, or by an earlier merge.
        order, wins = theirs, True
    else:
        mine, other = ours[-1]["status"], theirs[-1]["status"]
        wins = _worth(other) > _worth(mine)
        if mine == other == Status.OK:
            said, says = _said(conn, "main", run, unit, repeat), _said(conn, "src", old, unit, repeat)
            if said != says:
                return f"run {run}, unit '{unit}': {says} and {said}"
            twice["same"] += 1
        order = [*ours, *new] if wins else [*new, *ours]
    of = [run, unit, repeat]
    conn.execute("DELETE FROM main.judgements WHERE run_id = ? AND unit_id = ? AND repeat = ?", of)
    for number, attempt in enumerate(order, 1):
        row = {**attempt, "run_id": run, "attempt": number}
        marks = ", ".join("?" * len(row))
        conn.execute(f"INSERT INTO main.judgements ({', '.join(row)}) VALUES ({marks})", list(row.values()))
    if wins:
        conn.execute(f"DELETE FROM main.{LABELS} WHERE +annotator_id = ? AND unit_id = ? AND repeat = ?", of)
        # Its attempts are here: only the labels are still to come.
        conn.execute("INSERT INTO temp.theirs VALUES (?, ?, ?)", of)
    return None


def _worth(status: str) -> int:
    """A label counts before an answer that is none, and that before a call that failed."""
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


def _said(conn: Connection, schema: str, run: str, unit: str, repeat: int) -> str:
    query = (
        f"SELECT field, value FROM {schema}.{LABELS} WHERE +annotator_id = ? AND unit_id = ? AND repeat = ? "
        "AND layer = 'first' ORDER BY field"
    )
    return ", ".join(f"{name} {value}" for name, value in conn.execute(query, [run, unit, repeat]))


def finish(conn: Connection) -> None:
    """What follows from the rows of all studies: pairs whose halves came from two, counts, names of models."""
    conn.execute(
        "INSERT INTO units (unit_id, kind, item_id, question_id, span) "
        "SELECT o.item_id || '~' || c.item_id, 'pair', o.item_id, o.question_id, json_object('counter', c.item_id) "
        "FROM items AS o JOIN items AS c ON c.dataset = o.dataset AND c.pair_id = o.pair_id "
        "WHERE o.polarity = 'original' AND c.polarity = 'counter' "
        "AND NOT EXISTS (SELECT 1 FROM units AS u WHERE u.unit_id = o.item_id || '~' || c.item_id) "
        "ORDER BY o.rowid, c.rowid"
    )
    conn.execute("DELETE FROM run_counts")
    conn.execute(
        "INSERT INTO run_counts SELECT run_id, repeat, status, count(*) FROM latest_judgements GROUP BY 1, 2, 3"
    )
    conn.execute(
        "UPDATE runs SET resolved_model = coalesce((SELECT j.resolved_model FROM judgements AS j "
        "WHERE j.run_id = runs.run_id AND j.resolved_model IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1), "
        "resolved_model)"
    )
