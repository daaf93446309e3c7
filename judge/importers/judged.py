"""Import labels that a model assigned in another program, as a run in the study.

All rows are checked before anything is stored.
"""

import dataclasses
import json
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from judge.commands import command
from judge.errors import BadInput, UsageError
from judge.files import file_sha, loads
from judge.importers.fields import word
from judge.labels import relation
from judge.labels.rows import TableRows, table
from judge.labels.values import probabilities
from judge.parse import derive, read_value
from judge.prompts.load import Task
from judge.prompts.spec import Question
from judge.store.export import FITTED
from judge.store.runs import add_run
from judge.store.study import Store, get_time
from judge.types import GOLD, Answered, Json, Judgement, LabelDistribution, Status

UNIT = ("unit", "unit_id", "id")
"""Possible names of the column that contains the unit's id. The first of these names that the table has is
used.
"""
EXPORTED = ("labels", "distributions")
"""Columns that contain objects ({field: value}), as `judge runs export` writes them in JSON Lines."""
SILENT = tuple(s for s in Status if s is not Status.OK)


@dataclass(frozen=True)
class Given:
    """The user's description of the table.

    `maps` maps the names that adjudge uses to columns of the table. These names are unit, label,
    probabilities, rationale, status and repeat, and the names of fields.
    """

    path: Path
    model: str
    field: str | None = None
    dataset: str | None = None
    maps: Mapping[str, str] = dataclasses.field(default_factory=dict)
    label_maps: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class KeptRun:
    """The imported run. `known` says whether it was already stored, and `statuses` counts its units by status."""

    run_id: str
    known: bool
    statuses: Mapping[Status, int]


def import_run(store: Store, task: Task, given: Given) -> KeptRun:
    """Store a table with a model's labels as a run of the task.

    A row without a label counts as a missing label. Its status is found as follows:

    - If the label cell contains the word refused, unparsed, truncated or failed, this word is the status.
    - Otherwise, the status is the value in the column `status`.
    - If that value is empty as well, the status is unparsed.

    If the same table was already imported with the same model, task and maps, the stored run is returned. If
    a row is bad, nothing is stored. The BadInput error then names the file, line and column.
    """
    # The content is hashed, not the name, so that a copy of the file gives the same run.
    digest = file_sha(given.path)
    # All rows are checked before anything is stored, so that a bad row never leaves a partial run. They are read again
    # to be stored, because memory must not grow with the file.
    checked = _Table(store, task, given)
    statuses = Counter(judgement.status for judgement in checked.judgements())
    if not statuses:
        raise BadInput("the file has a header but no rows", path=str(given.path))
    how = {"field": given.field, "dataset": given.dataset, "maps": given.maps, "label_maps": given.label_maps}
    options = {"imported": digest, **{name: value for name, value in how.items() if value}}
    origin = {"imported": get_time(), "file": str(given.path), "sha256": digest}
    with store.transaction() as conn:
        judgements = _Table(store, task, given).judgements()
        run_id, known = add_run(conn, task, given.model, options, origin, judgements, checked.fitted)
        if file_sha(given.path) != digest:
            raise BadInput(
                "the file changed while it was imported, so nothing was stored; import it again",
                path=str(given.path),
            )
    return KeptRun(run_id, known, {s: statuses[s] for s in Status})


class _Table:
    """Converts the rows of an imported table to judgements."""

    def __init__(self, store: Store, task: Task, given: Given) -> None:
        self.task, self.given = task, given
        self.rows: TableRows = table(given.path, [*UNIT, "label", *task.fields])
        self.questions = self._questions()
        self.columns = self._columns()
        self.units = _Units(store, task.spec.unit, given.dataset)
        golds = {rule.gold for rule in task.spec.derive.values() if rule.gold}
        self.golds = {name: relation.values(store.conn, GOLD, name) for name in golds}
        self.first: dict[int, array[int]] = {}
        """For each repeat, the line of each unit's label, by the rowid of the unit; 0 if it has none."""
        self.fitted: set[str] = set()
        """The units whose questions the judge was fitted on, according to the imported file."""

    def judgements(self) -> Iterator[Judgement]:
        places = dict(zip(self.columns, self.rows.places(list(self.columns.values())), strict=True))
        for line, cells in self.rows.rows:
            row = {name: self._cell_of(name, cells[place]) for name, place in places.items()}
            try:
                yield self._judgement(row, line)
            except BadInput as e:
                column = self.columns.get(e.field, e.field)
                raise BadInput(e.reason, path=self.rows.path, line=line, field=column) from e

    def _questions(self) -> Sequence[Question]:
        questions = self.task.spec.questions
        if self.given.field is None:
            return questions
        selected = [q for q in questions if q.field == self.given.field]
        if not selected:
            names = ", ".join(q.field for q in questions)
            raise UsageError(
                f"--field {self.given.field}: {self.task.name} has no such field; its fields are: {names}"
            )
        return selected

    def _columns(self) -> dict[str, str]:
        """Return {our name for a column: its name in the table}."""
        there, maps = self.rows.columns, self.given.maps
        fields = [q.field for q in self.questions]
        single = len(fields) == 1
        offered = {"unit": UNIT, "rationale": ("rationale",), "status": ("status",), "repeat": ("repeat",)}
        offered[FITTED] = (FITTED,)
        for name in fields:
            offered[name] = (name, EXPORTED[0], *(["label"] if single else []))
            probability_columns = (
                f"{name}.distribution",
                EXPORTED[1],
                *(["probabilities"] if single else []),
            )
            offered[f"{name}.probabilities"] = probability_columns
        names = {"label": fields[0], "probabilities": f"{fields[0]}.probabilities"} if single else {}
        wanted = {names.get(name, name): column for name, column in maps.items()}
        if strange := [name for name in wanted if name not in offered]:
            raise UsageError(f"--map {strange[0]}=...: available: {', '.join([*names, *offered])}")
        columns = dict(wanted)
        for name, known in offered.items():
            if name not in columns and (column := next((c for c in known if c in there), None)) is not None:
                columns[name] = column
        for name in ("unit", fields[0]):
            if name not in columns:
                self.rows.places([offered[name][-1] if single or name == "unit" else name])
        return columns

    def _cell_of(self, name: str, cell: Json) -> Json:
        """Return the value of the field `name` in a cell.

        A cell may contain one object with the values of all fields. Any other cell is returned unchanged.
        """
        several = self.columns[name] in EXPORTED and isinstance(cell, dict)
        return cell.get(name.partition(".")[0]) if several else cell

    def _judgement(self, row: Mapping[str, Json], line: int) -> Judgement:
        rowid, unit = self.units.find(_word(row["unit"], "unit"))
        repeat = _parse_whole(row.get("repeat"))
        lines = self.first.setdefault(repeat, array("q"))
        if rowid >= len(lines):
            lines.frombytes(bytes(lines.itemsize * (rowid + 1 - len(lines) + len(lines) // 8)))
        if before := lines[rowid]:
            raise BadInput(f"unit '{unit}' already has a label on line {before}", field="unit")
        lines[rowid] = line
        why = _word(row["rationale"], "rationale") or None if "rationale" in row else None
        if _true(row.get(FITTED)):
            self.fitted.add(unit)
        status, reason = self._status(row)
        labels: tuple[Answered, ...] = ()
        if status is Status.OK:
            labels = tuple(self._answers(row, why))
            gold = {name: values[unit] for name, values in self.golds.items() if unit in values}
            labels += derive(self.task, labels, gold)
            reason = None
        return Judgement("", unit, repeat, 1, status, reason=reason, labels=labels)

    def _status(self, row: Mapping[str, Json]) -> tuple[Status, str | None]:
        cells = {q.field: row.get(q.field) for q in self.questions}
        empty = [name for name, cell in cells.items() if cell is None or str(cell).strip() == ""]
        said = _word(row.get("status"), "status").strip().casefold()
        if said and said not in [str(s) for s in Status]:
            raise BadInput(f"'{said}' must be one of {', '.join(Status)}", field="status")
        for name, cell in cells.items():
            known = {q.value.casefold() for question in self.questions for q in question.labels}
            word = str(cell).strip().casefold()
            # A task may have a label called "failed". In this case, the word is a label and not a status.
            if word in [str(s) for s in SILENT] and word not in known:
                return Status(word), f"the row has '{word}' instead of a label for {name}"
        if not said:
            said = str(Status.UNPARSED if empty else Status.OK)
        if said == Status.OK and empty:
            raise BadInput("the status is ok, but there is no label", field=empty[0])
        if said != Status.OK and len(empty) < len(cells) and "status" in row and row["status"]:
            filled = next(name for name in cells if name not in empty)
            raise BadInput(f"there is a label, but the status is {said}", field=filled)
        return Status(said), "the table has no label column"

    def _answers(self, row: Mapping[str, Json], reason: str | None) -> Iterator[Answered]:
        for question in self.questions:
            name = question.field
            value, problem = read_value(question, _raw(question, self._map_label(name, row[name])))
            if problem:
                known = ", ".join(q.value for q in question.labels)
                hint = f"; available: {known} (--map-label {name}:OLD=NEW)" if known else ""
                raise BadInput(problem + hint, field=name)
            column = f"{name}.probabilities"
            masses = (
                None if row.get(column) in (None, "") else self._distribution(question, row[column], column)
            )
            yield Answered(name, value, masses, reason)

    def _map_label(self, name: str, cell: Json) -> Json:
        # A --map-label value is always text, whereas a Parquet cell may be a number.
        label = cell if isinstance(cell, str) else json.dumps(cell)
        return self.given.label_maps.get(name, {}).get(label, cell)

    def _distribution(self, question: Question, cell: Json, column: str) -> LabelDistribution:
        def label_of(name: str) -> str | None:
            value, problem = read_value(question, self._map_label(question.field, name))
            return None if problem else value

        try:
            return probabilities(cell, [q.value for q in question.labels], label_of)
        except BadInput as e:
            raise BadInput(e.reason, field=column) from e


class _Units:
    """Finds units of one kind by their ids. A table may use several forms of the same id."""

    def __init__(self, store: Store, kind: str, dataset: str | None) -> None:
        self.conn, self.kind = store.conn, kind
        self.having = "FROM units AS u JOIN items AS i USING (item_id) WHERE u.kind = ?1 AND (?2 IS NULL OR i.dataset = ?2)"
        self.values = [kind, dataset]
        if not self.conn.execute(f"SELECT 1 {self.having} LIMIT 1", self.values).fetchone():
            where = f" of data set '{dataset}'" if dataset else ""
            raise UsageError(
                f"{store.path}: there are no units of kind {kind}{where} to label; to list the items: "
                f"{command('judge items show')}"
            )

    def find(self, name: str) -> tuple[int, str]:
        """Return the rowid and the id of the unit with this name."""
        if not name:
            raise BadInput("is empty", field="unit")
        query = f"SELECT u.rowid, u.unit_id {self.having} AND u.unit_id = ?3"
        known: tuple[int, str] | None = self.conn.execute(query, [*self.values, name]).fetchone()
        if known is not None:
            return known
        query = f"SELECT n, unit_id FROM temp.{self._other_names} WHERE name = ? ORDER BY n"
        units: list[tuple[int, str]] = self.conn.execute(query, [name]).fetchall()
        # If the unit were guessed, the label could silently be attached to the wrong unit.
        if len(units) > 1:
            examples = ", ".join(unit for _, unit in units[:3]) + (" ..." if len(units) > 3 else "")
            raise BadInput(f"'{name}' matches {len(units):,} units: {examples}", field="unit")
        if not units:
            raise BadInput(
                f"'{name}' is not the id of any {self.kind} in the study; to list the ids in an item: {command('judge items show ITEM')}",
                field="unit",
            )
        return units[0]

    @cached_property
    def _other_names(self) -> str:
        """The temporary table of the other forms of the units' ids.

        Other programs export the ids in their own files, which do not include the data set.
        """
        forms = (
            ("substr(u.unit_id, length(i.dataset) + 2)", "substr(u.unit_id, 1, length(i.dataset) + 1) = i.dataset || ':'"),
            ("u.item_id", "1"),
            ("substr(u.item_id, length(i.dataset) + 2)", "substr(u.item_id, 1, length(i.dataset) + 1) = i.dataset || ':'"),
            ("substr(u.unit_id, length(u.item_id) + 2)", "substr(u.unit_id, 1, length(u.item_id) + 1) = u.item_id || '/'"),
        )  # fmt: skip
        selects = " UNION ".join(
            f"SELECT {form} AS name, u.rowid AS n, u.unit_id {self.having} AND {condition}"
            for form, condition in forms
        )
        # On disk, because a million names in memory would take more than everything else.
        self.conn.execute("DROP TABLE IF EXISTS temp.other_names")
        self.conn.execute(
            "CREATE TEMP TABLE other_names (name TEXT, n INTEGER, unit_id TEXT, PRIMARY KEY (name, n)) WITHOUT ROWID"
        )
        self.conn.execute(f"INSERT INTO temp.other_names {selects}", self.values)
        return "other_names"


def _word(cell: Json, name: str) -> str:
    return word(cell, name) or ""


def _parse_whole(cell: Json) -> int:
    text = _word(cell, "repeat") or "0"
    if not text.isdecimal():
        raise BadInput(f"'{text}' is not a whole number", field="repeat")
    return int(text)


def _true(cell: Json) -> bool:
    text = _word(cell, FITTED).casefold()
    if text not in ("", "true", "false"):
        raise BadInput(f"'{text}' must be true or false", field=FITTED)
    return text == "true"


def _raw(question: Question, cell: Json) -> Json:
    """Convert a cell to the type that the value would have in a model's JSON reply."""
    # In a CSV file, numbers and lists are text.
    if isinstance(cell, str) and (question.level == "interval" or question.many):
        try:
            return loads(cell)
        except (ValueError, RecursionError):
            return cell
    if question.labels and isinstance(cell, int | float) and not isinstance(cell, bool):
        return json.dumps(cell)
    return cell
