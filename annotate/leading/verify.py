"""Verify a study: recompute its state from all logs, and compare the result with the stored rows."""

import hashlib
import json
import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from annotate.drawing.batch import redraw
from annotate.drawing.eligible import list_left_out, with_taken
from annotate.drawing.sample import DrawnUnit
from annotate.guidelines import guideline_texts
from annotate.leading.adjudication import POLICY
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import fold
from annotate.sitting.standing import events_of, follow, source_of
from annotate.store import ADJUDICATED
from judge.errors import UsageError
from judge.reread import unlike_replies
from judge.store import Store, label_rows
from judge.store.export import read_stored_task
from judge.store.label_sources import PEOPLE
from judge.store.listing import dicts
from judge.types import GOLD, Json

NEAR = 1e-6
"""The largest accepted relative difference between a unit's stored weight and the inverse of its inclusion
probability.
"""


class Finding(NamedTuple):
    """A difference that a check found in a row: the kind of check, the row's location, the recomputed value
    and the stored value.
    """

    kind: str
    where: str
    expected: str
    stored: str


def verify(store: Store) -> list[Finding]:
    """Return every difference between the stored rows and the rows that are recomputed from logs and sources."""
    conn = store.conn
    with store.reading_once():
        # All checks read one snapshot, because a label that is given between two queries would look like a difference.
        conn.execute("BEGIN")
        try:
            return [
                *_logs(store),
                *_imports(conn),
                *_rulings(conn),
                *_orphans(conn),
                *_labels(conn),
                *_judges(store),
                *_weights(store),
                *_draws(store),
                *_guidelines(store),
                *_corrections(conn),
                *_splits(conn),
                *_exposures(conn),
            ]
        finally:
            conn.execute("ROLLBACK")


def _logs(store: Store) -> Iterator[Finding]:
    """Recompute the states of units and the labels in each batch from the batch's log, and compare them with
    the stored ones.
    """
    conn = store.conn
    for (batch,) in conn.execute("SELECT batch FROM batches ORDER BY rowid").fetchall():
        task = batch_info(store, batch).task
        query = "SELECT DISTINCT annotator_id FROM assignments WHERE batch = ? ORDER BY 1"
        for (person,) in conn.execute(query, [batch]).fetchall():
            events = events_of(conn, batch, person)
            expected: set[tuple[Json, ...]] = set()
            seats = "SELECT * FROM assignments WHERE batch = ? AND annotator_id = ? ORDER BY position"
            for row in dicts(conn, seats, [batch, person]):
                seat, unit = (batch, person, row["position"]), (row["unit_id"], row["repeat"])
                state = fold(events.pop(row["position"], []))
                columns, labels = follow(conn, task, seat, row["role"], unit, state)
                expected |= {tuple(label) for label in labels}
                for name, value in columns.items():
                    if value != row[name]:
                        where = f"batch '{batch}', {person}, unit '{unit[0]}': {name}"
                        yield Finding("log", where, str(value), str(row[name]))
            yield from _sources(conn, batch, person, expected)


def _sources(
    conn: sqlite3.Connection, batch: str, person: str, expected: set[tuple[Json, ...]]
) -> Iterator[Finding]:
    query = (
        "SELECT unit_id, field, annotator_id, layer, repeat, value, rationale, derived_from, source, given, stored "
        "FROM label_sources WHERE annotator_id = ? AND source = ?"
    )
    stored = set(conn.execute(query, [person, source_of(batch, person)]))
    for row in sorted(expected ^ stored, key=str):
        where = f"batch '{batch}', {person}, unit '{row[0]}', field '{row[1]}', layer '{row[3]}'"
        label = f"{row[5]} (given {row[9]})"
        yield Finding("log", where, *((label, "nothing") if row in expected else ("nothing", label)))


def _imports(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check imported labels against the log of imported labels. Votes that were imported with items are included."""
    columns = "source, annotator_id, unit_id, field, repeat, layer, value, given"
    of_imports = "source NOT GLOB 'batch:*' AND source NOT GLOB 'adjudication:*'"
    logged: dict[tuple[Json, ...], dict[str, str]] = defaultdict(dict)
    for *key, layer, value, given in conn.execute(f"SELECT {columns} FROM imported_labels"):
        logged[tuple(key)][layer] = f"{value} ({layer}, given {given})"
    there = set()
    for *identity, layer, value, given in conn.execute(
        f"SELECT {columns} FROM label_sources WHERE {of_imports} ORDER BY 1, 3, 2, 4"
    ):
        key = tuple(identity)
        there.add(key)
        label = f"{value} ({layer}, given {given})"
        if logged.get(key, {}).get(layer) != label:
            yield Finding("import", _place(key), " or ".join(logged[key].values()) or "nothing", label)
    # If a label's blindness was declared later, the label is logged with both layers, as after a merge of two studies.
    for key in sorted(logged.keys() - there, key=str):
        if logged[key]:
            yield Finding("import", _place(key), " or ".join(logged[key].values()), "nothing")


def _rulings(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check the decisions between contradicting labels against their log, which is numbered without gaps."""
    for n in _find_gaps(conn, "label_rulings"):
        yield Finding("ruling", f"ruling {n}", "a ruling", "nothing")
    expected: dict[tuple[Json, ...], set[tuple[str, str]]] = defaultdict(set)
    query = (
        "SELECT annotator_id, field, unit_id, repeat, json_extract(j.value, '$[0]'), json_extract(j.value, '$[1]'), "
        "json_extract(j.value, '$[2]'), r.value, kept, at FROM label_rulings AS r, json_each(r.rejected) AS j"
    )
    for *key, value, kept, at in conn.execute(query):
        if value == key[5]:
            where = f"ruling of {at}, {key[0]}, unit '{key[2]}', field '{key[1]}', repeat {key[3]}"
            yield Finding("ruling", where, f"'{value}' is kept", f"'{value}' is rejected")
        expected[tuple(key)].add((kept, at))
    # If leads of two studies decided differently, the merge reopens the conflict, and keeps both decisions in the log.
    query = "SELECT annotator_id, field, unit_id, repeat, source, value, given FROM standing_rejections"
    standing = set(conn.execute(query).fetchall())
    expected = defaultdict(set, {key: decisions for key, decisions in expected.items() if key in standing})
    query = (
        "SELECT annotator_id, field, unit_id, repeat, source, value, given, kept, at FROM label_resolutions"
    )
    stored = {tuple(key): (kept, at) for *key, kept, at in conn.execute(query)}
    for key in sorted(expected.keys() | stored.keys(), key=str):
        if stored.get(key) not in expected[key]:
            person, field, unit, repeat, source, value, given = key
            where = f"'{value}' from '{source}' (given {given}), {person}, unit '{unit}', field '{field}', repeat {repeat}"
            rejected = [f"rejected for '{kept}' ({at})" for kept, at in sorted(expected[key])]
            decision = stored.get(key)
            other = f"rejected for '{decision[0]}' ({decision[1]})" if decision else "nothing"
            yield Finding("ruling", where, " or ".join(rejected) or "nothing", other)


def _find_gaps(conn: sqlite3.Connection, table: str) -> list[int]:
    """Return the numbers that are missing in a log whose rows are numbered from 1 without gaps."""
    numbers = {n for (n,) in conn.execute(f"SELECT seq FROM {table}")}
    query = "SELECT max(seq) FROM sqlite_sequence WHERE name = ?"
    last = conn.execute(query, [table]).fetchone()[0] or 0
    return sorted(set(range(1, max(last, *numbers, 0) + 1)) - numbers)


def _place(key: tuple[Json, ...]) -> str:
    source, person, unit, field, repeat = key
    return f"'{source}', {person}, unit '{unit}', field '{field}', repeat {repeat}"


def _judges(store: Store) -> Iterator[Finding]:
    """Check that each judge's labels match the judge's stored replies."""
    for (run,) in store.conn.execute("SELECT run_id FROM runs ORDER BY run_id").fetchall():
        for difference in unlike_replies(store, run):
            where = f"run {run}, unit '{difference.unit}', field '{difference.field}'"
            yield Finding("judge", where, difference.expected or "nothing", difference.stored or "nothing")


def _orphans(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Find labels whose source (a batch, an import or a run) is not in the study."""
    # Labels in a study of version 0.2.0 that are in no log have the source 'study:0.2.0', which is not in any table.
    query = """
        SELECT s.annotator_id, s.unit_id, s.field, s.source, s.value FROM label_sources AS s WHERE NOT CASE
            WHEN s.source GLOB 'batch:*' OR s.source GLOB 'adjudication:*' THEN EXISTS (SELECT 1 FROM assignments AS a
                WHERE a.batch = substr(s.source, instr(s.source, ':') + 1) AND a.annotator_id = s.annotator_id
                AND a.unit_id = s.unit_id AND a.repeat = s.repeat)
            WHEN s.source GLOB 'import:*' THEN EXISTS (SELECT 1 FROM label_imports AS i
                WHERE i.import_id = substr(s.source, 8, 26))
            WHEN s.source GLOB 'items:*' THEN EXISTS (SELECT 1 FROM imports AS i WHERE i.import_id = substr(s.source, 7))
                OR EXISTS (SELECT 1 FROM runs AS r WHERE r.run_id = substr(s.source, 7))
            ELSE s.source = 'study:0.2.0' END
        ORDER BY 2, 1, 3
    """
    for person, unit, field, source, value in conn.execute(query):
        yield Finding("source", f"{person}, unit '{unit}', field '{field}'", f"a source '{source}'", value)


def _labels(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check that people's stored labels equal the labels that result from the sources in `label_sources`."""
    columns = "annotator_id, unit_id, field, repeat, layer, value, sources, rationale, derived_from"
    sides = []
    for table in ("resolved_labels", "labels"):
        rows = conn.execute(f"SELECT {columns} FROM {table} WHERE annotator_id IN ({PEOPLE})")
        # The order in which sources are listed has no meaning.
        sides.append({row[:5]: (row[5], tuple(sorted(json.loads(row[6]))), *row[7:]) for row in rows})
    expected, stored = sides
    for key in sorted(expected.keys() | stored.keys(), key=str):
        if expected.get(key) != stored.get(key):
            person, unit, field, repeat, layer = key
            where = f"{person}, unit '{unit}', field '{field}', layer '{layer}', repeat {repeat}"
            described = [
                f"{s[0]} ({', '.join([*s[1], *filter(None, s[2:])])})" if s else "nothing"
                for s in (expected.get(key), stored.get(key))
            ]
            yield Finding("label", where, *described)


def _weights(store: Store) -> Iterator[Finding]:
    """Check that each unit's weight is the inverse of its inclusion probability, and that the weights add up to
    the size of the frame.
    """
    conn = store.conn
    # A pack contains no probabilities: its units were drawn in another study.
    batches = "SELECT batch FROM batches WHERE packed_for IS NULL ORDER BY rowid"
    for (batch,) in conn.execute(batches).fetchall():
        info = batch_info(store, batch)
        query = "SELECT unit_id, probability, weight FROM batch_units WHERE batch = ? AND role = 'sample'"
        stored = {unit: (p, weight) for unit, p, weight in conn.execute(query, [batch])}
        for unit, expected in _expect_designs(store, info, stored).items():
            if not _is_close(stored[unit], expected):
                p, weight = stored[unit]
                where = f"batch '{batch}', unit '{unit}'"
                yield Finding("weight", where, _weight(expected), f"{weight} (probability {p})")
    query = (
        "SELECT DISTINCT a.batch, a.unit_id FROM assignments AS a WHERE a.role IN ('sample', 'repeat') "
        "AND (SELECT packed_for FROM batches AS b WHERE b.batch = a.batch) IS NULL AND NOT EXISTS (SELECT 1 "
        "FROM batch_units AS u WHERE u.batch = a.batch AND u.unit_id = a.unit_id) ORDER BY 1, 2"
    )
    for batch, unit in conn.execute(query):
        yield Finding("weight", f"batch '{batch}', unit '{unit}'", "a unit of the sample", "not drawn")


Design = tuple[float | None, float | None]
"""The inclusion probability and the weight of a drawn unit."""


def _expect_designs(store: Store, info: BatchInfo, stored: dict[str, Design]) -> dict[str, Design]:
    """Return the inclusion probability and the weight that each unit should have.

    The function repeats the draw to compute them. If the draw cannot be repeated, it uses the stored plan.
    """
    plan = info.plan
    again, _ = _repeat_draw(store, info)
    if {d.unit_id for d in again} == set(stored):
        return {d.unit_id: (d.probability, d.weight) for d in again}
    # The frame has changed since the draw (an import, more labels by the judge), but the plan still contains its
    # size.
    if plan.is_even and plan.frame and not plan.by_question and plan.left_out is not None:
        share = len(stored) / plan.frame
        return dict.fromkeys(stored, (share, 1 / share))
    by_chance = not (plan.queue or plan.from_route) and plan.annotators
    return {
        unit: (
            # nan is not close to any number, so the stored value is reported.
            p if p is not None or not by_chance else math.nan,
            None if p is None else 1 / p if p > 0 else math.nan,
        )
        for unit, (p, _) in stored.items()
    }


def _repeat_draw(store: Store, info: BatchInfo) -> tuple[list[DrawnUnit], bool]:
    """Repeat the draw of a batch. Return the drawn units, and whether they were drawn from the stored frame.

    The list is empty if the batch does not record how it was drawn, or if its frame has another size now.
    """
    plan, conn = info.plan, store.conn
    if not (plan.annotators and plan.frame):
        return [], False
    # Labels that the judge gave after the draw may have changed the strata.
    later = "SELECT 1 FROM judgements WHERE run_id = ? AND judged_at > (SELECT created FROM batches WHERE batch = ?)"
    if plan.run and conn.execute(f"{later} LIMIT 1", [plan.run, info.batch]).fetchone():
        return [], False
    checks = "SELECT unit_id FROM batch_units WHERE batch = ? AND role <> 'sample'"
    try:
        frame, taken = with_taken(store, info.task, plan, plan.run, info.batch)
        is_stored_frame = plan.frame_id is not None and frame.fingerprint() == plan.frame_id
        frame.leave_out([*taken, *(u for (u,) in conn.execute(checks, [info.batch]))])
        drawn = redraw(frame, plan) if len(frame) == plan.frame or is_stored_frame else []
    except UsageError:
        return [], False
    return drawn, is_stored_frame


def _is_close(stored: Design, expected: Design) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or b is None or abs(a - b) <= NEAR * abs(b))
        for a, b in zip(stored, expected, strict=True)
    )


def _weight(design: Design) -> str:
    p, weight = design
    if p is None:
        return "no weight, because the unit was not drawn at random"
    return "a probability from 0 to 1" if math.isnan(p) else f"{weight} (probability {p})"


def _draws(store: Store) -> Iterator[Finding]:
    """Check what each draw recorded of earlier batches: they are older, and it left out the units that they drew."""
    conn = store.conn
    created = dict(conn.execute("SELECT batch, created FROM batches").fetchall())
    query = (
        "SELECT unit_id FROM batch_units WHERE batch = ?1 AND role = 'sample' "
        "INTERSECT SELECT unit_id FROM batch_units WHERE batch = ?2 AND role = 'sample' ORDER BY 1"
    )
    extended = "SELECT 1 FROM batch_changes WHERE batch = ? AND what = 'extend' AND at > ?"
    sample = "SELECT unit_id FROM batch_units WHERE batch = ? AND role = 'sample'"
    seeds = dict(conn.execute("SELECT batch, seed FROM batches").fetchall())
    for batch in created:
        info = batch_info(store, batch)
        if seeds[batch] != info.plan.seed:
            yield Finding(
                "draw", f"batch '{batch}'", f"the seed {info.plan.seed}", f"the seed {seeds[batch]}"
            )
        if info.plan.draw_id is not None and info.plan.draw_id != info.plan.hash_draw():
            where = f"batch '{batch}', what its draw recorded"
            yield Finding("draw", where, f"a record with the hash {info.plan.draw_id[:12]}", "another record")
        again, is_stored_frame = _repeat_draw(store, info)
        other = {unit for (unit,) in conn.execute(sample, [batch])}.symmetric_difference(
            d.unit_id for d in again
        )
        if is_stored_frame and other and not info.packed_for:
            where = f"batch '{batch}', {len(other):,} units such as '{min(other)}'"
            yield Finding("draw", where, "the units that its seed draws from its frame", "other units")
        for earlier in info.plan.after or ():
            if created.get(earlier, "") > created[batch]:
                yield Finding(
                    "draw", f"batch '{batch}'", "only older batches before it", f"'{earlier}' is newer"
                )
        for earlier in list_left_out(store, info.task, info.plan, batch) if info.plan.after else ():
            # An earlier batch that was extended since may have drawn a unit of this batch, which is no fault of this draw.
            if conn.execute(extended, [earlier, created[batch]]).fetchone():
                continue
            for (unit,) in conn.execute(query, [batch, earlier]):
                where = f"batch '{batch}', unit '{unit}'"
                yield Finding(
                    "draw", where, f"a unit that batch '{earlier}' did not draw", "a unit of both batches"
                )


def _guidelines(store: Store) -> Iterator[Finding]:
    """Check that tasks and guidelines have the text of their hash, and that sessions showed a text of their batch."""
    conn = store.conn
    for n in _find_gaps(conn, "guideline_changes"):
        yield Finding("guidelines", f"change {n} of guidelines", "a change", "nothing")
    unchanged = "SELECT batch, at, new FROM guideline_changes WHERE old = new ORDER BY seq"
    for batch, at, new in conn.execute(unchanged).fetchall():
        where = f"guidelines of batch '{batch}', change of {at}"
        yield Finding("guidelines", where, "another text", f"the same text {new[:12]}")
    for task, sha, text in conn.execute("SELECT task, sha256, template FROM tasks ORDER BY task").fetchall():
        if hashlib.sha256(text.encode()).hexdigest() != sha:
            yield Finding("guidelines", f"task {task}", f"the text with the hash {sha[:12]}", "another text")
    batches = conn.execute("SELECT batch, task FROM batches ORDER BY rowid").fetchall()
    for batch, name in batches:
        texts = guideline_texts(conn, batch, read_stored_task(store, name))
        for text in texts:
            if hashlib.sha256(text.text.encode()).hexdigest() != text.sha256:
                where = f"guidelines of batch '{batch}' since {text.since}"
                yield Finding(
                    "guidelines", where, f"the text with the hash {text.sha256[:12]}", "another text"
                )
        query = "SELECT old, at FROM guideline_changes WHERE batch = ? ORDER BY at, seq"
        for before, (old, at) in zip(texts, conn.execute(query, [batch]).fetchall(), strict=False):
            if old != before.sha256:
                where = f"guidelines of batch '{batch}', change of {at}"
                yield Finding("guidelines", where, f"a change of the text {before.sha256[:12]}", old[:12])
        shown = "SELECT session_id, guidelines FROM sessions WHERE batch = ? AND guidelines IS NOT NULL ORDER BY 1"
        for session, sha in conn.execute(shown, [batch]).fetchall():
            if sha not in {text.sha256 for text in texts}:
                where = f"batch '{batch}', session {session}"
                yield Finding("guidelines", where, "guidelines of this batch", f"the text {sha[:12]}")


def _corrections(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check that the study has the values to which it was corrected, and that corrected units have a correction."""
    stored = {
        "item": "SELECT {} FROM items WHERE item_id = ?",
        "passage": "SELECT {} FROM passages WHERE passage_id = ?",
    }
    gold = f"SELECT {label_rows.single_label(label_rows.quote(GOLD), '?2', '?1')}"
    query = (
        "SELECT kind, id, field, new FROM corrections AS c WHERE kind IN ('item', 'passage', 'gold') AND NOT EXISTS (SELECT 1 "
        "FROM corrections AS o WHERE (o.kind, o.id, o.field) = (c.kind, c.id, c.field) AND (o.at, o.seq) > (c.at, c.seq))"
    )
    for kind, name, field, new in conn.execute(query).fetchall():
        columns = [row[1] for row in conn.execute(f"PRAGMA table_info('{kind}s')")]
        if kind == "gold":
            row = conn.execute(gold, [name, field]).fetchone()
        elif field not in columns:
            yield Finding("correction", f"{kind} '{name}'", "a column of the study", field)
            continue
        else:
            row = conn.execute(stored[kind].format(field), [name]).fetchone()
        if row is None or row[0] != new:
            where = f"{kind} '{name}', {field}"
            yield Finding("correction", where, str(new), str(None if row is None else row[0]))
    query = (
        "SELECT c.id, c.at FROM corrections AS c JOIN units AS u ON u.unit_id = c.id WHERE c.kind = 'passage' AND c.field = 'text' "
        "AND NOT EXISTS (SELECT 1 FROM corrected_units AS d WHERE (d.unit_id, d.at) = (c.id, c.at)) ORDER BY c.seq"
    )
    for unit, at in conn.execute(query):
        yield Finding("correction", f"unit '{unit}'", f"marked as corrected at {at}", "nothing")
    # A pack has the times of corrections, but not the values, which its annotator must not see.
    query = (
        "SELECT unit_id, at FROM corrected_units WHERE at NOT IN (SELECT at FROM corrections) "
        "AND NOT EXISTS (SELECT 1 FROM batches WHERE packed_for IS NOT NULL) ORDER BY 1, 2"
    )
    for unit, at in conn.execute(query):
        yield Finding(
            "correction", f"unit '{unit}'", f"a correction of {at}", "nothing in the log of corrections"
        )


def _splits(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check that every question in a split is in the study, and that the openings of each sealed test are all recorded.

    The openings are numbered from 1 in `split_looks`, so a missing record leaves a gap.
    """
    query = "SELECT task_id, question_id FROM split_questions WHERE question_id NOT IN (SELECT question_id FROM units)"
    for task, question in conn.execute(query):
        yield Finding(
            "split", f"split of {task}", f"question '{question}' in the study", "the question is missing"
        )
    query = (
        "SELECT task_id, count(*), max(look) FROM split_looks GROUP BY task_id HAVING count(*) <> max(look)"
    )
    for task, n, last in conn.execute(query):
        yield Finding("split", f"looks at the test of {task}", f"{n}", f"the last is number {last}")


def _exposures(conn: sqlite3.Connection) -> Iterator[Finding]:
    """Check that for every label, the table of exposures shows that the person saw the unit.

    Two kinds of labels need no exposure: adopted labels, which were taken over from items or from an import,
    and decisions by a policy, which are made without showing the unit to anybody.
    """
    query = f"""
        SELECT DISTINCT 'batch ''' || e.batch || '''', s.person, a.unit_id FROM events AS e JOIN sessions AS s USING (session_id)
        JOIN assignments AS a ON a.batch = e.batch AND a.annotator_id = e.annotator_id AND a.position = e.position
        JOIN batches AS b ON b.batch = e.batch
        WHERE e.kind = 'label' AND b.exposure = 'kept' AND b.packed_for IS NULL AND s.version NOT LIKE '% adopt'
          AND NOT (e.annotator_id = '{ADJUDICATED}' AND s.person = '{POLICY}')
          AND NOT EXISTS (SELECT 1 FROM exposures AS x WHERE x.person = s.person AND x.unit_id = a.unit_id)
        UNION SELECT '''' || s.source || '''', s.annotator_id, s.unit_id FROM label_sources AS s
        WHERE s.source GLOB 'import:*'
          AND NOT EXISTS (SELECT 1 FROM exposures AS x WHERE x.person = s.annotator_id AND x.unit_id = s.unit_id)
        ORDER BY 1, 2, 3
    """
    for way, person, unit in conn.execute(query):
        yield Finding("exposure", f"{way}, {person}, unit '{unit}'", "shown", "not in the table of exposures")
