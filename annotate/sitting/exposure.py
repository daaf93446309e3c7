"""The exposures: one append-only table of what each person was shown about a unit, and when.

The table covers batches, packs, pushes, imports and pages. The kinds of content are:

    text     the unit itself
    gold     the unit's known answer: a training key, gold that a task shows, or passages chosen by gold
    judge    a judge's label for the unit
    labels   other people's labels for the unit

An exposure to gold is recorded on the unit that has the gold label. For example, the verdict on a claim is
recorded on the claim, so that it applies to all its passages. A batch drawn before this table existed has
exposure `unknown`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from judge.prompts.load import Task
from judge.store import Store, label_rows
from judge.store.export import read_stored_task
from judge.store.label_rows import quote
from judge.store.study import dumps, get_time
from judge.types import GOLD

# The text alone is not an answer. Other people's labels make a label assisted, but a draw only prints a note on them.
REFUSED = ("gold", "judge")
"""The kinds of exposure that exclude a person from a batch, unless --allow-exposed is given."""
WORDS = {
    "gold": "the known answer",
    "judge": "the judge's label",
    "labels": "other people's labels",
    "text": "the text",
}


class Exposure(NamedTuple):
    """The number of units in `batch` for which `person` was shown, or will be shown, this kind of content."""

    person: str
    content: str
    batch: str
    units: int


def find_shown_gold(task: Task | None) -> tuple[str, ...]:
    """Return the gold fields that the task itself shows to annotators. The result is empty if there is no task."""
    # They are part of the task's question, so the task's labels are still blind if annotators see them.
    if task is None:
        return ()
    relevant = [task.spec.relevant.field] if task.spec.relevant is not None and _lists_relevant(task) else []
    return tuple(dict.fromkeys([*task.gold_inputs.values(), *relevant]))


def _lists_relevant(task: Task) -> bool:
    return "relevant_passages" in task.input_names


def rows_shown(task: Task, where: str) -> str:
    """Return an SQL query for everything that the screen shows before a unit is answered.

    The query selects (unit_id, what, field). `where` is an SQL condition on the assignments, which have the
    alias `a`.
    """
    parts = [f"SELECT a.unit_id AS unit_id, 'text' AS what, '' AS field FROM assignments AS a WHERE {where}"]
    gold = f"l.annotator_id = '{GOLD}' AND l.layer = 'first' AND l.repeat = 0"
    # The exposure is recorded on the unit that has the gold label, because a verdict that is shown with one passage
    # answers all passages of its claim.
    start = "SELECT l.unit_id, 'gold', l.field FROM assignments AS a JOIN units AS u ON u.unit_id = a.unit_id"
    for name in dict.fromkeys(task.gold_inputs.values()):
        parts.append(
            f"{start} JOIN {label_rows.ALL} ON l.unit_id IN (u.unit_id, u.item_id) AND l.field = {quote(name)} AND {gold} "
            f"WHERE {where}"
        )
    if task.spec.relevant is not None and _lists_relevant(task):
        parts.append(
            f"{start} JOIN passages AS p ON p.item_id = u.item_id JOIN {label_rows.ALL} ON l.unit_id = p.passage_id "
            f"AND l.field = {quote(task.spec.relevant.field)} AND {gold} WHERE {where}"
        )
    return " UNION ".join(parts)


def rows_after(task: Task, where: str) -> str:
    """Return an SQL query for everything that the screen shows after a unit is answered: training keys and
    the judge's labels.

    The arguments and the columns are those of `rows_shown`.
    """
    fields = ", ".join(quote(q.field) for q in task.spec.questions)
    return (
        f"SELECT a.unit_id AS unit_id, 'gold' AS what, l.field AS field FROM assignments AS a "
        f"JOIN {label_rows.ALL} ON l.unit_id = a.unit_id AND l.annotator_id = '{GOLD}' AND l.layer = 'first' "
        f"AND l.field IN ({fields}) WHERE a.role = 'training' AND {where} UNION "
        f"SELECT a.unit_id, 'judge', l.field FROM assignments AS a JOIN batches AS b ON b.batch = a.batch "
        f"JOIN {label_rows.ALL} ON l.unit_id = a.unit_id AND l.annotator_id = b.reveal_run AND l.layer = 'first' "
        f"AND l.repeat = 0 AND l.field IN ({fields}) WHERE a.role = 'sample' AND {where}"
    )


def is_exposed(
    conn: sqlite3.Connection,
    task: Task | None,
    person: str,
    unit: str,
    before: str | None = None,
    *,
    deciding: bool = False,
) -> bool:
    """Return whether the person was shown an answer for the unit, or for its item.

    Gold that the task shows as an input does not count. If `before` is given, only exposures before that time
    count. If a lead is `deciding` between other people's labels, seeing these labels does not count. If no
    exposure is recorded, the result is false.
    """
    # A lead decides between people's labels, so seeing them does not make the decision assisted.
    seen = "'judge'" if deciding else "'judge', 'labels'"
    gold_fields = ", ".join(quote(f) for f in find_shown_gold(task)) or "''"
    query = (
        "SELECT EXISTS (SELECT 1 FROM units AS u JOIN exposures AS x ON x.unit_id IN (u.unit_id, u.item_id) "
        f"WHERE u.unit_id = :unit AND x.person = :person AND ((x.what IN ({seen}) AND x.unit_id = u.unit_id) "
        f"OR (x.what = 'gold' AND x.field NOT IN ({gold_fields}))) AND (:before IS NULL OR x.at < :before))"
    )
    return bool(conn.execute(query, {"person": person, "unit": unit, "before": before}).fetchone()[0])


def note_rows(
    conn: sqlite3.Connection, person: str, rows: str, batch: str, how: str, **values: str | int
) -> None:
    """Record that the person was shown the rows (unit_id, what, field) of a query. `values` are the parameters
    of the query.
    """
    # Only the first exposure counts: labels given after it are not blind, and the table is append-only.
    conn.execute(
        "INSERT OR IGNORE INTO exposures (person, unit_id, what, field, batch, how, at) "
        f"SELECT :person, unit_id, what, field, :batch, :how, :at FROM ({rows})",
        {"person": person, "batch": batch, "how": how, "at": get_time(), **values},
    )


def note_batch(
    conn: sqlite3.Connection,
    task: Task,
    batch: str,
    people: Iterable[str],
    how: str,
    judge: Iterable[str] = (),
) -> None:
    """Record what each person will see in a batch that is exported from the study.

    Each person will see the content of their own units, and the judge's labels for the units in `judge`.
    """
    judged = quote(dumps(sorted(judge)))
    for person in people:
        where = f"a.batch = {quote(batch)} AND a.annotator_id = {quote(person)}"
        note_rows(conn, person, rows_shown(task, where), batch, how)
        given = f"SELECT value AS unit_id, 'judge' AS what, '' AS field FROM json_each({judged})"
        note_rows(conn, person, given, batch, how)


def note_unit(
    conn: sqlite3.Connection,
    person: str,
    unit: str,
    content: str,
    batch: str,
    how: str,
    at: str | None = None,
) -> None:
    """Store one exposure to one unit."""
    row = "SELECT :unit AS unit_id, :content AS what, '' AS field"
    note_rows(conn, person, row, batch, how, unit=unit, content=content, at=at or get_time())


def against(store: Store, task: Task, person: str, units: Sequence[str], name: str) -> list[Exposure]:
    """Return what other batches and sources have shown, or will show, the person about these units.

    The result also counts units that are still open in other batches and whose answers the new batch would reveal.
    Each of these units is counted under its own batch.
    """
    conn = store.conn
    counts: Counter[tuple[str, str]] = Counter()
    gold_fields, drawn = set(find_shown_gold(task)), set(units)
    # One parameter for all units: SQLite allows 32,766 of them, and a batch can be larger.
    mine = "SELECT unit_id, item_id FROM units WHERE unit_id IN (SELECT value FROM json_each(?))"
    of_item: dict[str, set[str]] = {}
    for unit, item in conn.execute(mine, [dumps(sorted(drawn))]):
        of_item.setdefault(item, set()).add(unit)
    # A unit can be both in the table of exposures and among the units that an open batch will show.
    seen: set[tuple[str, str, str]] = set()
    ledger = "SELECT unit_id, what, field, batch FROM exposures WHERE person = ?"
    rows = conn.execute(ledger, [person]).fetchall() + _read_planned(store, person, name)
    for unit, content, field, batch in rows:
        if content == "gold" and field in gold_fields:
            continue
        # The gold label of an item answers all its units; the gold label of a unit answers only that unit.
        for exposed in (drawn & {unit}) | (of_item.get(unit, set()) if content == "gold" else set()):
            if (exposed, content, batch) not in seen:
                seen.add((exposed, content, batch))
                counts[content, batch] += 1
    for batch, count in _count_exposing(store, task, person, name).items():
        counts["gold", batch] += count
    return [Exposure(person, content, batch, n) for (content, batch), n in counts.items()]


def _open_batches(store: Store, person: str, name: str) -> list[tuple[str, Task]]:
    query = (
        "SELECT DISTINCT b.batch, b.task FROM batches AS b JOIN assignments AS a ON a.batch = b.batch "
        "WHERE a.annotator_id = ? AND b.closed IS NULL AND b.batch <> ?"
    )
    return [
        (batch, read_stored_task(store, task)) for batch, task in store.conn.execute(query, [person, name])
    ]


def _read_planned(store: Store, person: str, name: str) -> list[tuple[str, str, str, str]]:
    """Return all exposures, past and future, from the person's open batches other than the batch `name`."""
    rows = []
    for batch, task in _open_batches(store, person, name):
        where = f"a.batch = {quote(batch)} AND a.annotator_id = {quote(person)}"
        query = f"{rows_shown(task, where)} UNION {rows_after(task, where)}"
        rows += [(*row, batch) for row in store.conn.execute(query)]
    return rows


def _count_exposing(store: Store, task: Task, person: str, name: str) -> Counter[str]:
    """Return a map from each batch to the number of its open units whose answers the new batch would reveal."""
    counts: Counter[str] = Counter()
    where = f"a.batch = {quote(name)} AND a.annotator_id = {quote(person)}"
    query = f"SELECT unit_id, what, field FROM ({rows_shown(task, where)} UNION {rows_after(task, where)}) WHERE what IN ('gold', 'judge')"
    shows = store.conn.execute(query).fetchall()
    if not shows:
        return counts
    for batch, other in _open_batches(store, person, name):
        gold_fields = find_shown_gold(other)
        judged = {unit for unit, content, _ in shows if content == "judge"}
        keys = {unit for unit, content, field in shows if content == "gold" and field not in gold_fields}
        # A label that was already given can no longer be influenced.
        rows = store.conn.execute(
            "SELECT a.unit_id, u.item_id FROM assignments AS a JOIN units AS u ON u.unit_id = a.unit_id "
            "WHERE a.batch = ? AND a.annotator_id = ? AND a.status = 'open'",
            [batch, person],
        )
        if count := sum(bool({unit, item} & keys) or unit in judged for unit, item in rows):
            counts[batch] += count
    return counts


def refusal(exposures: Sequence[Exposure]) -> str | None:
    """Return the reason why people cannot be assigned to a batch, or None if they can.

    People cannot be assigned if they were, or will be, shown an answer.
    """
    worst = [e for e in exposures if e.content in REFUSED]
    if not worst:
        return None
    listed = "; ".join(
        f"{e.person}: batch '{e.batch}' and this batch together show {WORDS[e.content]} for {e.units:,} units before they are labelled"
        if e.batch
        else f"{e.person}: an import or a page of `annotate view --reveal` showed {WORDS[e.content]} for {e.units:,} of these units"
        for e in worst[:5]
    )
    more = f"; and {len(worst) - 5} more" if len(worst) > 5 else ""
    return f"{listed}{more}. Choose other people or units, or pass --allow-exposed: then their labels count as assisted"


def warnings(exposures: Sequence[Exposure]) -> list[str]:
    """Return a warning for each exposure in a batch that does not prevent the assignment."""
    return [
        f"{e.person} has seen, or will see, {WORDS[e.content]} for {e.units:,} of these units in batch '{e.batch}'"
        for e in exposures
        if e.content not in REFUSED and e.batch
    ]


def unknown_batches(conn: sqlite3.Connection) -> list[str]:
    """Return the batches that have labels and were drawn by a version of adjudge that did not record exposures."""
    query = (
        "SELECT b.batch FROM batches AS b WHERE b.exposure = 'unknown' AND EXISTS "
        "(SELECT 1 FROM events AS e WHERE e.batch = b.batch) ORDER BY b.created"
    )
    return [batch for (batch,) in conn.execute(query)]


def waiting(conn: sqlite3.Connection) -> set[str]:
    """Return the units that somebody must still label blind, and the items of these units.

    These are the open and skipped units in open batches of any task. They include units that a lead must
    still decide. Pages do not show labels for the returned units and items.
    """
    # A skip can be undone, so skipped units are included. Gold of an item answers all its units, so items are included.
    query = (
        "SELECT u.unit_id, u.item_id FROM assignments AS a JOIN batches AS b USING (batch) "
        "JOIN units AS u ON u.unit_id = a.unit_id WHERE a.status <> 'done' AND b.closed IS NULL AND NOT EXISTS "
        "(SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND s.annotator_id = a.annotator_id)"
    )
    return {name for row in conn.execute(query) for name in row}


def note_view(conn: sqlite3.Connection, person: str) -> None:
    """Record that the person was shown a page with all labels of the selected units (`judge.store.selection`)."""
    # A person's own label is not an exposure.
    rows = (
        "SELECT l.unit_id, CASE a.kind WHEN 'judge' THEN 'judge' WHEN 'gold' THEN 'gold' ELSE 'labels' END AS what, "
        "CASE a.kind WHEN 'gold' THEN l.field ELSE '' END AS field "
        f"FROM temp.selection AS s JOIN units AS u ON u.rowid = s.n JOIN {label_rows.ALL} ON l.unit_id = u.unit_id "
        "JOIN annotators AS a ON a.annotator_id = l.annotator_id WHERE l.annotator_id <> :person"
    )
    note_rows(conn, person, rows, "", "view")
