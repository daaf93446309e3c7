"""Correct stored texts, gold labels and rankings on purpose (`judge items import --correct`).

Every changed value is logged with the old one, in `corrections`. If a correction changes a text that a unit shows,
the unit is recorded in `corrected_units`, and the labels that people and judges gave before are marked as given
for the old text: they have the layer `old_text`, which no estimate uses. People's units are open again, and a
judge's units count as failed, so that the same run asks for them again.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from judge.commands import command
from judge.errors import BadInput
from judge.excerpts import quote_both
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task, parse_task
from judge.store import label_rows, label_sources
from judge.store.study import dumps, get_time
from judge.types import GOLD, Json, Where

FIXED = ("question_id", "pair_id", "polarity")
"""Columns of an item that decide which units there are and how they are grouped. They cannot be corrected."""
MOST_LISTED = 20
"""The maximum number of differing values that an error lists. All of them are counted."""
_INPUT_OF = {"text": "passage", "title": "passage_title", "date": "passage_date", "source": "passage_source"}
"""Maps the columns of a passage to the inputs of a task that shows a single passage."""
_IN_LISTS = ("text", "title", "date")
"""The columns of a passage that are shown where a task lists several passages."""


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A stored value that differs from the value in a row of a file.

    `kind` is item, passage, gold or ranking. `id` is the item, the passage, the unit of a gold label, or
    NAME/STAGE/ITEM. `sha` is the new hash of an item or passage.
    """

    kind: str
    id: str
    field: str
    old: str | None
    new: str | None
    where: Where
    sha: str = ""

    def as_json(self) -> dict[str, Json]:
        """Return the correction in its documented form."""
        place = f"{self.where.path}:{self.where.line}"
        return {
            "kind": self.kind,
            "id": self.id,
            "field": self.field,
            "old": self.old,
            "new": self.new,
            "place": place,
        }

    @property
    def reason(self) -> str:
        """What differs, as a phrase for an error or a summary."""
        if self.kind == "ranking":
            name, stage, item = json.loads(self.id)
            return f"the study has a different list from '{name}' at stage '{stage}' for '{item}'"
        return f"'{self.id}': {self.field} is {quote_both(self.new or '', self.old or '')}"


def refuse(differing: Sequence[ChangedValue], bad: Callable[[BadInput], None]) -> None:
    """Pass an error for each differing item, passage, gold label or ranking to `bad`. If `bad` raises the first
    one, raise one error that lists all of them.
    """
    by_row: dict[tuple[str, str, Where], list[ChangedValue]] = {}
    for d in differing:
        by_row.setdefault((d.kind, d.id, d.where), []).append(d)
    errors = [
        BadInput(
            ", ".join(d.reason for d in some),
            path=where.path,
            line=where.line,
            field=some[0].field,
        )
        for (_, _, where), some in by_row.items()
    ]
    for error in errors:
        try:
            bad(error)
        except BadInput:
            raise _as_one(errors, all(d.kind == "ranking" for d in differing)) from None


def _as_one(errors: Sequence[BadInput], are_rankings: bool) -> BadInput:
    first = errors[0]
    listed = [
        first.reason,
        *(f"{e.path}:{e.line}: field '{e.field}': {e.reason}" for e in errors[1:MOST_LISTED]),
    ]
    if len(errors) > MOST_LISTED:
        listed.append(f"and {len(errors) - MOST_LISTED:,} more")
    way = (
        "stored rankings are not replaced by default; give this ranking another name with --name, or replace the stored one on "
        f"purpose with --correct: {command('judge systems import --help')}"
        if are_rankings
        else "stored values are not replaced by default; to replace them on purpose, add --correct; to import only the "
        f"rest of the file, add --skip-bad: {command('judge items import --help')}"
    )
    return BadInput("\n".join([*listed, way]), path=first.path, line=first.line, field=first.field)


def apply(conn: sqlite3.Connection, corrections: Sequence[ChangedValue], source: str) -> Counter[str]:
    """Store the new values, log the old ones, and mark the labels of every unit whose shown text changed.

    `source` is that of new gold labels. Return the number of `units` whose text changed, and how many labels of
    `people` and of `judges` on them no longer count. Raises BadInput for a value that cannot be corrected, or that
    the file gives twice.
    """
    corrections = _check(corrections)
    at = get_time()
    tasks = [
        parse_task(text, f"{name}.md")
        for name, text in conn.execute("SELECT task, template FROM tasks").fetchall()
    ]
    units: dict[str, None] = {}
    for correction in corrections:
        _STORE[correction.kind](conn, correction, source)
        units |= dict.fromkeys(_affected(conn, tasks, correction))
        if correction.kind == "gold":
            _derive_again(conn, tasks, correction)
    conn.executemany(
        "INSERT INTO corrections (kind, id, field, old, new, place, at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(*c.as_json().values(), at) for c in corrections],
    )
    return mark_outdated(conn, list(units), at)


def _check(corrections: Sequence[ChangedValue]) -> list[ChangedValue]:
    """Return the corrections without repetitions: several rows of a file may give the same item or passage."""
    seen: dict[tuple[str, str, str], ChangedValue] = {}
    for c in corrections:
        earlier = seen.setdefault((c.kind, c.id, c.field), c)
        if earlier.new != c.new:
            reason = (
                f"'{c.id}' has two different values in this import (the first on line {earlier.where.line})"
            )
            raise BadInput(reason, path=c.where.path, line=c.where.line, field=c.field)
        if c.kind == "item" and c.field in FIXED:
            reason = (
                f"{c.reason}, and this cannot be corrected, because it decides which units the study has; import the "
                "row under a new id"
            )
            raise BadInput(reason, path=c.where.path, line=c.where.line, field=c.field)
    return list(seen.values())


def _store_text(conn: sqlite3.Connection, c: ChangedValue, source: str) -> None:
    # The field is a column name of this module's own tables, never text from a file.
    conn.execute(
        f"UPDATE {c.kind}s SET {c.field} = ?, content_sha = ? WHERE {c.kind}_id = ?", [c.new, c.sha, c.id]
    )


def _store_gold(conn: sqlite3.Connection, c: ChangedValue, source: str) -> None:
    label_rows.replace_gold(conn, c.id, c.field, str(c.new), source)


def _store_ranking(conn: sqlite3.Connection, c: ChangedValue, source: str) -> None:
    name, stage, item = json.loads(c.id)
    conn.execute("DELETE FROM rankings WHERE name = ? AND stage = ? AND item_id = ?", [name, stage, item])
    conn.executemany(
        "INSERT INTO rankings VALUES (?, ?, ?, ?, ?, ?)",
        [(name, stage, item, n, *entry) for n, entry in enumerate(json.loads(c.new or "[]"), 1)],
    )


_STORE: Mapping[str, Callable[[sqlite3.Connection, ChangedValue, str], None]] = {
    "item": _store_text,
    "passage": _store_text,
    "gold": _store_gold,
    "ranking": _store_ranking,
}


def _affected(conn: sqlite3.Connection, tasks: Iterable[Task], c: ChangedValue) -> list[str]:
    """Return the units on which a changed value was shown.

    A unit counts if a task of the study shows the value on units of its kind. On a kind of unit that no task of
    the study labels, each text of the item, and a passage's own text, counts as shown.
    """
    shown: dict[str, set[str]] = {}
    golds: dict[str, set[str]] = {}
    for task in tasks:
        kind = str(task.spec.unit)
        shown.setdefault(kind, set()).update(task.input_names)
        relevant = {task.spec.relevant.field} if task.spec.relevant is not None else set()
        golds.setdefault(kind, set()).update(task.gold_inputs.values(), relevant)
    if c.kind == "ranking" or (c.kind == "item" and c.field == "correct"):
        return []
    if c.kind == "gold":
        rows = conn.execute("SELECT unit_id, kind FROM units WHERE ?1 IN (unit_id, item_id)", [c.id])
        return [unit for unit, kind in rows if c.field in golds.get(kind, ())]
    if c.kind == "item":
        query = (
            "SELECT unit_id, kind, item_id = ?1 FROM units WHERE item_id = ?1 "
            "OR (kind = 'pair' AND json_extract(span, '$.counter') = ?1)"
        )
        return [
            unit
            for unit, kind, is_own in conn.execute(query, [c.id])
            if kind not in shown or (c.field if is_own else f"counter_{c.field}") in shown[kind]
        ]
    query = (
        "SELECT unit_id, kind, passage_id IS ?1 FROM units "
        "WHERE item_id = (SELECT item_id FROM passages WHERE passage_id = ?1)"
    )
    return [
        unit
        for unit, kind, is_own in conn.execute(query, [c.id])
        if (is_own and (kind not in shown or _INPUT_OF[c.field] in shown[kind]))
        or (c.field in _IN_LISTS and not shown.get(kind, set()).isdisjoint(LIST_INPUTS))
    ]


def mark_outdated(conn: sqlite3.Connection, units: Collection[str], at: str) -> Counter[str]:
    """Mark the labels of these units as given for an old text. For the result, see `apply`."""
    # One table for all statements, because there may be many units.
    conn.execute("CREATE TEMP TABLE outdated_now (unit_id TEXT PRIMARY KEY)")
    conn.executemany("INSERT INTO temp.outdated_now VALUES (?)", [(unit,) for unit in units])
    chosen = "unit_id IN (SELECT unit_id FROM temp.outdated_now)"
    runs = "annotator_id IN (SELECT run_id FROM runs)"
    counts = Counter(units=len(units))
    for name, who in (("people", f"annotator_id IN ({label_sources.PEOPLE})"), ("judges", runs)):
        counts[name] = label_rows.count_usable(conn, f"{chosen} AND {who}")
    conn.execute(
        "INSERT OR IGNORE INTO corrected_units SELECT unit_id, ? FROM temp.outdated_now ORDER BY unit_id",
        [at],
    )
    label_rows.mark_old_text(conn, f"{chosen} AND {runs}")
    conn.execute(
        # The latest attempt is not a success any more, so that the run asks again when it is resumed.
        "INSERT INTO judgements (run_id, unit_id, repeat, attempt, status, reason, judged_at) "
        "SELECT run_id, unit_id, repeat, attempt + 1, 'failed', 'the text of the unit was corrected afterwards', ? "
        f"FROM latest_judgements WHERE run_id IN (SELECT run_id FROM runs) AND {chosen} AND status <> 'failed'",
        [at],
    )
    label_sources.follow_units(conn, chosen)
    conn.execute("DROP TABLE temp.outdated_now")
    return counts


def _derive_again(conn: sqlite3.Connection, tasks: Iterable[Task], c: ChangedValue) -> None:
    """Compute again the labels that are derived from an answer and this gold label, by judges and in batches."""
    gold_of_unit = label_rows.single_label(label_rows.quote(GOLD), "?2", "u.unit_id")
    query = f"SELECT unit_id FROM units AS u WHERE u.unit_id = ?1 OR (u.item_id = ?1 AND {gold_of_unit} IS NULL) ORDER BY u.rowid"
    units = [unit for (unit,) in conn.execute(query, [c.id, c.field])]
    for task in tasks:
        for name, rule in task.spec.derive.items():
            if rule.gold == c.field:
                table = {
                    v.partition("|")[0]: label for v, label in rule.table.items() if v.endswith(f"|{c.new}")
                }
                for unit in units:
                    label_rows.derive_again(conn, task.name, unit, name, rule.source, table)
                    _derive_given(conn, task.name, unit, name, rule.source, table)


def _derive_given(
    conn: sqlite3.Connection, task: str, unit: str, name: str, source: str, table: Mapping[str, str]
) -> None:
    # Only batches derive labels from gold: an import without a batch stores what its file says.
    of_task = (
        "substr(source, instr(source, ':') + 1) IN (SELECT batch FROM batches WHERE task = ?) "
        "AND (source GLOB 'batch:*' OR source GLOB 'adjudication:*')"
    )
    conn.execute(
        f"DELETE FROM label_sources WHERE unit_id = ? AND field = ? AND {of_task}", [unit, name, task]
    )
    query = (
        "SELECT unit_id, ?3, annotator_id, layer, repeat, value, rationale, ?2, source, given, stored "
        f"FROM label_sources WHERE unit_id = ?1 AND field = ?2 AND {of_task.replace('?', '?4')}"
    )
    rows = conn.execute(query, [unit, source, name, task]).fetchall()
    label_sources.add(conn, [(*row[:5], table[row[5]], None, *row[7:]) for row in rows if row[5] in table])


def as_text(value: Json) -> str | None:
    """Return a stored value as text: lists and objects as JSON."""
    return value if value is None or isinstance(value, str) else dumps(value)
