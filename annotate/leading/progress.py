"""A batch as the lead sees it: progress, pace, checks, and current agreement. It contains no labels."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict

from annotate.leading.adjudication import for_the_lead
from annotate.leading.deviation import find_deviations
from annotate.leading.haste import ReadingPace, describe_haste, paces
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.standing import is_stopped, people_of
from judge.prompts.spec import Question
from judge.stats import Ratings, measures
from judge.store import Store, label_rows
from judge.store.listing import dicts
from judge.types import Json, Measure


def list_batches(store: Store) -> list[dict[str, Json]]:
    """Return one row per batch, the oldest first."""
    query = """
        SELECT b.batch, b.task, b.purpose, b.created, b.closed, b.packed_for,
               (SELECT count(*) FROM batch_units AS u WHERE u.batch = b.batch AND u.role = 'sample') AS units,
               (SELECT group_concat(DISTINCT a.annotator_id) FROM assignments AS a
                WHERE a.batch = b.batch AND a.role <> 'adjudication') AS annotators,
               (SELECT count(*) FROM assignments AS a WHERE a.batch = b.batch AND a.role <> 'adjudication') AS positions,
               (SELECT count(*) FROM assignments AS a
                WHERE a.batch = b.batch AND a.role <> 'adjudication' AND a.status = 'done') AS done
        FROM batches AS b ORDER BY b.created, b.batch
    """
    rows = []
    for row in dicts(store.conn, query, []):
        # Names contain no comma: see `annotate.store.check_name`.
        row["annotators"] = sorted((row["annotators"] or "").split(",")) if row["annotators"] else []
        rows.append(row)
    return rows


def show_batch(store: Store, name: str) -> dict[str, Json]:
    """Return the progress of a batch as a JSON object.

    It contains the progress, pace and checks of each annotator, the strata, and the current agreement.
    """
    info = batch_info(store, name)
    speeds = paces(store, name)
    (options,) = store.conn.execute("SELECT options FROM batches WHERE batch = ?", [name]).fetchone()
    return {
        "batch": name,
        "task": info.task.name,
        "options": {k: v for k, v in json.loads(options).items() if k not in ("strata", "judges")},
        "reveal": info.reveal,
        "closed": info.closed,
        "strata": list(dicts(store.conn, _STRATA, [name])),
        "annotators": [_person(store, info, who, speeds.get(who)) for who in people_of(store.conn, name)],
        "too_fast": [describe_haste(who, pace) for who, pace in sorted(speeds.items()) if pace.too_fast],
        "adjudication": _adjudication(store, name) | {"policy": str(info.plan.adjudication)},
        "for_the_lead": for_the_lead(store, name),
        "flags": list(dicts(store.conn, _FLAGS, [name])),
        "changes": changes(store, name),
        "measures": [_wordless(m) for m in agreement(store, info)],
        "deviations": _deviations(store, info),
    }


_STRATA = """
    SELECT stratum, count(*) AS units, min(weight) AS weight_low, max(weight) AS weight_high
    FROM batch_units WHERE batch = ? AND role = 'sample' GROUP BY stratum ORDER BY stratum
"""


_FLAGS = """
    SELECT unit_id AS unit, annotator_id AS annotator, flag, note, status FROM assignments
    WHERE batch = ? AND flag IS NOT NULL AND role <> 'adjudication' ORDER BY updated, unit_id, annotator_id
"""


def changes(store: Store, name: str) -> list[dict[str, Json]]:
    """Return the changes that leads have made to the batch since it was drawn, the oldest first."""
    query = "SELECT what, annotator_id AS annotator, detail, note, at FROM batch_changes WHERE batch = ? ORDER BY seq"
    return [{**row, "detail": json.loads(row["detail"])} for row in dicts(store.conn, query, [name])]


def _wordless(measure: Measure) -> dict[str, Json]:
    """Return a measure as JSON, without its notes and with a neutral reason.

    The original notes and reason could reveal a label, and the person who watches the progress may also label
    in the batch.
    """
    reason = "not defined on the existing labels" if measure.reason else None
    return {**measure.as_json(), "reason": reason, "notes": []}


_COUNTS = """
    SELECT count(*) AS units, sum(status = 'done') AS done, sum(status = 'skipped') AS skipped, sum(status = 'open') AS open,
           sum(flag IS NOT NULL) AS flagged, sum(note IS NOT NULL) AS noted, sum(active_ms) / 1000.0 AS active_seconds,
           sum(idle_ms) / 1000.0 AS idle_seconds
    FROM assignments WHERE batch = ? AND annotator_id = ?
"""
# Labels from a file, and labels that a draw reused, say nothing of when a person worked.
_LAST_EVENT = """
    SELECT max(e.at) FROM events AS e JOIN sessions AS s USING (session_id)
    WHERE e.batch = ? AND e.annotator_id = ? AND s.version NOT LIKE '% import %' AND s.version NOT GLOB '* adopt'
"""
_TIMES = """
    SELECT active_ms FROM assignments WHERE batch = ? AND annotator_id = ? AND status = 'done' AND active_ms > 0 ORDER BY 1
"""


def _person(store: Store, info: BatchInfo, who: str, pace_of: ReadingPace | None) -> dict[str, Json]:
    key = [info.batch, who]
    (counts,) = dicts(store.conn, _COUNTS, key)
    (last_event,) = store.conn.execute(_LAST_EVENT, key).fetchone()
    times = [ms for (ms,) in store.conn.execute(_TIMES, key)]
    # Labels made elsewhere may have no time, and do not count towards the pace.
    pace = len(times) / (sum(times) / 3_600_000) if times else None
    right, answered = _count_known(store, info, who, "training")
    caught, checked = _count_known(store, info, who, "attention")
    same, again = _repeats(store, info, who)
    wanted = info.plan.training
    # Nobody has passed or failed before the training is complete.
    finished = wanted and answered >= wanted
    return {
        "annotator": who,
        **counts,
        "median_seconds": times[len(times) // 2] / 1000 if times else None,
        "units_per_hour": None if pace is None else round(pace, 1),
        "training_right": right,
        "training_answered": answered,
        "training_passed": right / answered >= info.plan.pass_mark if finished else None,
        "attention_right": caught,
        "attention_answered": checked,
        "repeats_same": same,
        "repeats_answered": again,
        "fast": pace_of.fast if pace_of else None,
        "timed": pace_of.timed if pace_of else 0,
        "second_layer_open": _second_open(store, info, who),
        "last_event": last_event,
        "stopped": is_stopped(store.conn, info.batch, who),
    }


def _count_known(store: Store, info: BatchInfo, who: str, role: str) -> tuple[int, int]:
    """Return (correct, answered) for the units with a known answer. A unit counts as correct if every field is
    correct.
    """
    gold: dict[str, dict[str, str]] = {}
    fields = [q.field for q in info.task.spec.questions]
    rows = store.conn.execute(
        f"SELECT l.unit_id, l.field, l.value FROM {label_rows.FIRST} JOIN batch_units AS b ON b.unit_id = l.unit_id "
        "WHERE b.batch = ? AND b.role = ? AND l.annotator_id = 'gold'",
        [info.batch, role],
    )
    for unit, field, value in rows:
        if field in fields:
            gold.setdefault(unit, {})[field] = value
    right = answered = 0
    query = "SELECT unit_id, answers FROM assignments WHERE batch = ? AND annotator_id = ? AND role = ? AND status = 'done'"
    for unit, text in store.conn.execute(query, [info.batch, who, role]):
        if unit in gold:
            answered += 1
            answers = json.loads(text)
            right += all(answers.get(f) == v for f, v in gold[unit].items())
    return right, answered


def _second_open(store: Store, info: BatchInfo, who: str) -> int | None:
    """Return the number of finished units that `who` must still compare with the judge's labels.

    On these units, `who` has neither kept nor revised at least one label for which the judge also gave a label.
    Return None if the batch does not reveal a judge's labels.
    """
    if not info.reveal:
        return None
    fields = [q.field for q in info.task.spec.questions]
    query = f"""
        SELECT count(*) FROM assignments AS a JOIN batches AS b ON b.batch = a.batch
        WHERE a.batch = ? AND a.annotator_id = ? AND a.role = 'sample' AND a.status = 'done' AND EXISTS (
            SELECT 1 FROM {label_rows.ALL} WHERE l.unit_id = a.unit_id AND l.annotator_id = b.reveal_run
            AND l.layer = 'first' AND l.repeat = 0 AND l.field IN ({", ".join("?" * len(fields))})
            AND NOT EXISTS (SELECT 1 FROM json_each(a.revised) AS r WHERE r.key = l.field))
    """
    return int(store.conn.execute(query, [info.batch, who, *fields]).fetchone()[0])


def _repeats(store: Store, info: BatchInfo, who: str) -> tuple[int, int]:
    """Return (same, total) for the units that the annotator labelled twice.

    `total` is the number of these units, and `same` is the number of those with the same answers both times.
    """
    rows = store.conn.execute(
        """
        SELECT a.answers, r.answers FROM assignments AS r JOIN assignments AS a
        ON a.batch = r.batch AND a.annotator_id = r.annotator_id AND a.unit_id = r.unit_id AND a.role = 'sample'
        WHERE r.batch = ? AND r.annotator_id = ? AND r.role = 'repeat' AND r.status = 'done' AND a.status = 'done'
        """,
        [info.batch, who],
    ).fetchall()
    return sum(json.loads(a) == json.loads(b) for a, b in rows), len(rows)


def _adjudication(store: Store, name: str) -> dict[str, Json]:
    row = store.conn.execute(
        "SELECT count(*), coalesce(sum(status = 'done'), 0) FROM assignments WHERE batch = ? AND role = 'adjudication'",
        [name],
    ).fetchone()
    return {"units": row[0], "decided": row[1]}


def agreement(store: Store, info: BatchInfo) -> list[Measure]:
    """Compute percent agreement and Krippendorff's alpha for each question with categories.

    The measures use the units that at least two of the batch's annotators have labelled.
    """
    names = ["percent", "krippendorff_alpha"]
    return [
        measure
        for question, table in _tables(store, info)
        for measure in measures(table, names, level=question.level, field=question.field)
    ]


def _deviations(store: Store, info: BatchInfo) -> list[dict[str, Json]]:
    """Return, for each question with categories, how far each person's labels are from those of the others."""
    rows: list[dict[str, Json]] = []
    for question, table in _tables(store, info):
        people = table.select([p for p in table.annotators if not is_stopped(store.conn, info.batch, p)])
        for deviation in find_deviations(people, level=question.level):
            rows.append({"field": question.field, **asdict(deviation), "text": deviation.describe()})
    return rows


def _tables(store: Store, info: BatchInfo) -> Iterator[tuple[Question, Ratings]]:
    """Yield each question with categories, and the labels of the units that at least two people have labelled."""
    for question in info.task.spec.questions:
        if question.level in ("interval", "text"):
            continue
        # Repeats and checks are not units in the sample, and labels after a reveal are not blind.
        rows = store.conn.execute(
            "SELECT unit, annotator, label, question FROM batch_labels WHERE batch = ? AND field = ? "
            "AND layer = 'first' AND role = 'sample'",
            [info.batch, question.field],
        ).fetchall()
        seen = Counter(unit for unit, *_ in rows)
        kept = [tuple(r) for r in rows if seen[r[0]] > 1]
        if kept:
            yield question, Ratings.from_rows(kept, info.task.domain(question.field))
