"""Pack a batch for another machine, as a small study with one person's blind units.

`annotate.packing.merge` merges the pack into the first study when it comes back.

A pack contains only what the task's screen shows: no judgements, no gold (except gold that is an input of the
task), no `meta`, no labels by other people, and no indication of which units are repeats or have a known
answer. Training therefore gives no feedback in a pack, and is scored when the file is merged.
"""

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from annotate.guidelines import copy_changes, keep_guidelines
from annotate.sitting import exposure
from annotate.sitting.desk import BatchInfo, batch_info
from annotate.sitting.events import Kind
from annotate.sitting.standing import INSERT, WHOLE, add_session, is_stopped, replay_log
from annotate.store import open_study
from judge.errors import UsageError
from judge.prompts.inputs import ITEM_INPUTS, LIST_INPUTS
from judge.prompts.load import Task
from judge.store import Store, label_rows
from judge.store.inputs import column, gold_value
from judge.store.runs import keep_task
from judge.store.study import dumps, get_time
from judge.types import GOLD


def pack(store: Store, batch: str, person: str, path: Path) -> int:
    """Write one person's units to a new study file, and return the number of units. Raises UsageError if the
    file exists.
    """
    info = batch_info(store, batch)
    if info.packed_for:
        raise UsageError(f"batch '{batch}' is already a packed batch")
    if info.closed:
        raise UsageError(
            f"batch '{batch}' was closed on {info.closed[:10]}, so labels from a pack could not be merged into it"
        )
    # Repeats and attention units are packed as units of the sample, because anybody can open the file.
    rows = store.conn.execute(
        "SELECT position, unit_id, CASE role WHEN 'training' THEN role ELSE 'sample' END, 0 FROM assignments "
        "WHERE batch = ? AND annotator_id = ? AND role <> 'adjudication' ORDER BY position",
        [batch, person],
    ).fetchall()
    if not rows:
        raise UsageError(f"batch '{batch}' has no units for '{person}'")
    if reason := is_stopped(store.conn, batch, person):
        raise UsageError(
            f"batch '{batch}': {person} was stopped ({reason}), so labels from a pack could not be merged"
        )
    if path.exists():
        raise UsageError(f"{path}: already exists; choose another name")
    # An incomplete file could be sent as a pack, so the file is renamed only at the end.
    part = path.with_name(f".{path.name}.part")
    _remove(part)
    try:
        _write(store, info, person, part, rows)
        # This comes before the file is renamed: if it fails, there is no pack whose units count as unseen.
        with store.transaction() as conn:
            exposure.note_batch(conn, info.task, batch, [person], "pack")
        part.replace(path)
    finally:
        _remove(part)
    return len(rows)


def _remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + end).unlink(missing_ok=True)


def _write(
    store: Store, info: BatchInfo, person: str, path: Path, rows: Sequence[tuple[int, str, str, int]]
) -> None:
    batch = info.batch
    Store.open(path).close()
    with open_study(path) as packed:
        with packed.transaction() as conn:
            keep_task(conn, info.task)
            keep_guidelines(conn, info.task.spec.guidelines)
            conn.execute(
                "INSERT INTO imports VALUES ('pack', 'pack', NULL, '{}', '{}', '{}', '{}', '[]', ?)",
                [get_time()],
            )
            conn.execute("INSERT INTO annotators VALUES (?, 'human', '{}')", [person])
            copy_units(store.conn, conn, info.task, {unit for _, unit, _, _ in rows})
            options = dumps({"pass_mark": info.plan.pass_mark})
            conn.execute(
                "INSERT INTO batches VALUES (?, ?, 'validation', 0, ?, NULL, ?, ?, NULL, 'kept')",
                [batch, info.task.name, options, person, get_time()],
            )
            copy_changes(store.conn, conn, batch)
            _copy_corrected(store.conn, conn, {unit for _, unit, _, _ in rows}, person)
            conn.executemany(
                "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
                [(batch, person, *row) for row in rows],
            )
            copy_events(store.conn, conn, batch, person)
            replay_log(conn, info.task, batch, person)
        # Without WAL the pack is one file. VACUUM overwrites deleted pages, which could contain hidden texts.
        packed.conn.execute("PRAGMA journal_mode = DELETE")
        packed.conn.execute("VACUUM")


def copy_events(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    batch: str,
    person: str,
    blindness: Callable[[int, str], str | None] = lambda position, at: None,
    without: Collection[int] = (),
) -> tuple[int, int]:
    """Copy one person's sessions and events to `target`. Return the number of new events, and how many of
    them are labels that are not blind.

    An event is skipped if `target` already has it, or if its position is in `without`. `blindness` takes the
    position and the time of a new label. It returns the label's layer, or None if the label is blind.
    """
    for row in source.execute("SELECT * FROM sessions WHERE batch = ? AND annotator_id = ?", [batch, person]):
        add_session(target, row)
    query = f"SELECT {WHOLE} FROM events WHERE batch = ? AND annotator_id = ? ORDER BY seq"
    known = {r[0] for r in target.execute("SELECT event_id FROM events WHERE batch = ?", [batch])}
    there = source.execute(query, [batch, person])
    rows = [list(row) for row in there if row[0] not in known and row[3] not in without]
    seen = 0
    for row in rows:
        if row[4] == Kind.LABEL and row[7] is None:
            row[7] = blindness(row[3], row[13])
            seen += row[7] is not None
    target.executemany(INSERT, rows)
    return len(rows), seen


_HIDDEN: dict[str, str | None] = {
    "meta": "{}",
    "import_id": "pack",
    "origin": "pack",
    "content_sha": "",
    "correct": None,
    "polarity": None,
    "pair_id": None,
}


def copy_units(source: sqlite3.Connection, target: sqlite3.Connection, task: Task, units: set[str]) -> None:
    """Copy units and everything that the task shows with them: items, answers, passages and gold labels."""
    names = set(task.input_names)
    rows = _select(
        source, "units", "unit_id, item_id, passage_id, answer_id, json_extract(span, '$.counter')", units
    )
    items, passages, answers, counters = ({row[i] for row in rows} - {None} for i in (1, 2, 3, 4))
    listed = _collect_passages(source, task, units)
    passages |= {passage for passage_ids in listed.values() for passage in passage_ids}
    if "baseline_answer" in names:
        human_answers = _select(
            source, "answers", "answer_id", items, key="item_id", where="AND system = 'human'"
        )
        answers |= {row[0] for row in human_answers}
    blank = {**_HIDDEN, **{n: None for n in ITEM_INPUTS if n not in names}}
    nothing = {**_HIDDEN, **dict.fromkeys(ITEM_INPUTS)}
    # Only the claim of the other item of a pair is shown. If passages of an item serve as noise, nothing else
    # of this item is shown.
    others = {row[0] for row in _select(source, "passages", "item_id", passages, key="passage_id")}
    _copy(source, target, "items", items, blank)
    _copy(source, target, "items", counters - items, {k: v for k, v in nothing.items() if k != "claim"})
    _copy(source, target, "items", others - items - counters, nothing)
    _copy(source, target, "passages", passages, _HIDDEN)
    _copy(source, target, "answers", answers, _HIDDEN)
    _keep_contexts(source, target, units)
    gold = _find_shown_gold(source, task, units, listed)
    _copy(source, target, "units", units | {unit for unit, _, _ in gold}, {})
    if gold:
        target.execute("INSERT INTO annotators VALUES (?, 'gold', '{}')", [GOLD])
    label_rows.add_gold(
        target, [(unit, field, GOLD, value, None) for unit, field, value in gold], "items:pack"
    )


def _copy_corrected(
    source: sqlite3.Connection, target: sqlite3.Connection, units: set[str], person: str
) -> None:
    """Copy the times at which the texts of units were corrected: earlier events of the log are for the old text, except
    those that the corrections do not concern.
    """
    rows = _select(source, "corrected_units", "unit_id, at", units)
    target.executemany("INSERT INTO corrected_units VALUES (?, ?)", rows)
    columns = "unit_id, annotator_id, source, given, corrected"
    rows = _select(
        source, "given_for_corrected", columns, units, where=f"AND annotator_id = {label_rows.quote(person)}"
    )
    target.executemany("INSERT INTO given_for_corrected VALUES (?, ?, ?, ?, ?)", rows)


def _select(
    conn: sqlite3.Connection,
    table: str,
    columns: str,
    ids: Iterable[str],
    *,
    key: str = "unit_id",
    where: str = "",
) -> list[tuple[str, ...]]:
    query = f"SELECT {columns} FROM {table} AS t WHERE t.{key} IN (SELECT value FROM json_each(?)) {where}"
    return conn.execute(query, [dumps(sorted(ids))]).fetchall()


def _copy(
    source: sqlite3.Connection,
    target: sqlite3.Connection,
    table: str,
    ids: Iterable[str],
    blank: Mapping[str, str | None],
) -> None:
    """Copy the rows with these ids, in their stored order. `blank` maps each column that annotators must not
    see to a replacement value.
    """
    key = f"{table[:-1]}_id"
    query = f"SELECT * FROM {table} WHERE {key} IN (SELECT value FROM json_each(?)) ORDER BY rowid"
    cursor = source.execute(query, [dumps(sorted(ids))])
    names = [c[0] for c in cursor.description]
    rows = [[blank.get(n, v) for n, v in zip(names, row, strict=True)] for row in cursor]
    marks = ", ".join("?" * len(names))
    target.executemany(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", rows)


def _collect_passages(source: sqlite3.Connection, task: Task, units: set[str]) -> dict[str, set[str]]:
    """Return a map from each input that is a list of passages to the ids of all passages in these lists."""
    out = {}
    for name in task.input_names:
        if name in LIST_INPUTS:
            rows = _select(source, "unit_texts", column(task, name), units)
            out[name] = {passage for (text,) in rows if text for passage in json.loads(text)}
    return out


def _keep_contexts(source: sqlite3.Connection, target: sqlite3.Connection, units: set[str]) -> None:
    """Store in the target the ids of the passages on which each answer was based. The target contains only the
    passages that are shown.
    """
    rows = _select(
        source, "unit_texts", "DISTINCT context, answer_id", units, where="AND context IS NOT NULL"
    )
    target.executemany("UPDATE answers SET context = ? WHERE answer_id = ?", rows)


def _find_shown_gold(
    source: sqlite3.Connection, task: Task, units: set[str], listed: Mapping[str, set[str]]
) -> list[tuple[str, str, str]]:
    """Return the gold labels for a pack as (unit, field, label).

    These are the labels that the task shows as inputs, and the labels that mark a passage as relevant.
    """
    out: list[tuple[str, str, str]] = []
    for name in task.gold_inputs.values():
        rows = _select(source, "unit_texts", f"t.unit_id, {gold_value(name)}", units)
        out += [(unit, name, value) for unit, value in rows]
    relevant = task.spec.relevant
    if relevant is not None:
        # The screen does not show which of several labels made a passage relevant, so the pack always has the first.
        out += [(p, relevant.field, relevant.values[0]) for p in sorted(listed["relevant_passages"])]
    return out
