"""Build the table of results from the same scores and labels as `judge score` and `judge runs export`.

A measure of a paper is computed from the values of units. If the units are the rows of the table, or their items, each row
gets its value. If they are parts of the rows, such as the sentences of answers, or if the measure is a ratio of two sums,
the row gets a numerator and a denominator. So the mean of a column over the rows with a value, and the ratio of the sums
of two columns, are what `judge score` prints. A measure that combines other measures, such as F1, has no value for a row.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judge.errors import UsageError
from judge.labels.reference import ReferenceLabels
from judge.labels.words import DECIDED, MAJORITY
from judge.papers.engine.paper import Paper, ScoreRequest
from judge.papers.engine.result import scores_of
from judge.prompts.load import Task
from judge.results import KINDS
from judge.scores.score import Quotient, Score
from judge.store import export
from judge.store.listing import dicts
from judge.store.study import Store
from judge.types import GOLD

TEXTS = {
    "answer": ("question", "claim", "answer"),
    "item": ("question", "claim"),
    "passage": ("question", "claim", "passage_title", "passage"),
    "sentence": ("question", "sentence"),
    "citation": ("question", "sentence", "passage"),
    "claim": ("question", "answer_claim", "answer"),
    "nugget": ("question", "nugget", "answer"),
    "pair": ("claim", "counter_claim"),
}
"""The columns of `unit_texts` that a row of each kind shows."""
IDS = ("unit_id", "dataset", "item_id", "question_id", "system", "condition")
UNSCORED = "unscored"
"""The column with the reasons why a row has no value, as {measure: reason}."""


@dataclass(frozen=True, slots=True)
class MeasureColumn:
    """The values of a measure. If `under` is set, the values of this column are numerators and `under` has the denominators.

    `better` is 1 if higher values are better, -1 if lower values are better, otherwise 0.
    """

    measure: str
    name: str
    under: str | None = None
    better: int = 1
    is_main: bool = False
    """Whether this is one of the paper's main measures."""


@dataclass(slots=True)
class Results:
    """The table: its rows by column name, the columns with measures, and what it was made from.

    `own_columns` names the columns that came from the user's file. `runs` describes the runs whose labels are shown.
    """

    per: str
    rows: list[dict[str, Any]]
    measures: list[MeasureColumn] = field(default_factory=list)
    own_columns: list[str] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    judges: dict[str, str] = field(default_factory=dict)
    """The judge behind each column with a label."""
    free: set[str] = field(default_factory=set)
    """The columns whose labels are texts or lists of the judge's own, such as claims."""
    runs: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    title: str = ""

    @property
    def columns(self) -> list[str]:
        """The names of all columns, in the order of the table."""
        return list(dict.fromkeys(name for row in self.rows for name in row))


def of_paper(store: Store, paper: Paper, request: ScoreRequest, per: str | None = None) -> Results:
    """Return a row for each unit that a paper scores. `per` is the kind of unit (default: answers, if the paper has any).

    Units without a judgement are rows without values. Raises UsageError if the paper scores no units of this kind.
    """
    from dataclasses import replace

    scores, study = scores_of(store, paper, replace(request, partial=True), None)
    kinds = _Kinds(store)
    numbers = [number for score in scores for number in _numbers(score, kinds) if number is not None]
    there = Counter(kinds.kind(number) for number in set(numbers))
    chosen = per or next((kind for kind in KINDS if there.get(kind)), "answer")
    if not there.get(chosen):
        known = ", ".join(kind for kind in KINDS if there.get(kind)) or "none"
        raise UsageError(f"--per {chosen}: {paper.name} scores no units of this kind; available: {known}")
    rows = _Rows(kinds, chosen)
    for number in numbers:
        rows.find(number)
    results = Results(chosen, _read_texts(store, chosen, rows), title=f"{paper.title}: results per {chosen}")
    by_number = dict(zip(rows.numbers, results.rows, strict=True))
    runs = [reading.run.run_id for reading in study.judges.runs_read]
    _add_labels(store, results, by_number, list(dict.fromkeys(runs)))
    for score in scores:
        _add_score(results, by_number, rows, score, paper)
    results.notes += study.notes
    return results


def merge_results(parts: Sequence[Results]) -> Results:
    """Return the results of several systems as one table, with the columns of all of them."""
    first, *others = parts
    for other in others:
        first.rows += other.rows
        first.measures += [m for m in other.measures if m not in first.measures]
        first.own_columns = list(dict.fromkeys([*first.own_columns, *other.own_columns]))
        first.labels = list(dict.fromkeys([*first.labels, *other.labels]))
        first.judges |= other.judges
        first.free |= other.free
        first.runs += [run for run in other.runs if run not in first.runs]
        first.notes += [note for note in other.notes if note not in first.notes]
    return first


def of_run(store: Store, run_name: str) -> Results:
    """Return a row for each unit that a run labelled."""
    run = export.find_run(store, run_name)
    task = export.read_stored_task(store, run["task"])
    kinds = _Kinds(store)
    rows = _Rows(kinds, task.spec.unit)
    query = "SELECT DISTINCT u.rowid FROM judgements AS j JOIN units AS u USING (unit_id) WHERE j.run_id = ? ORDER BY 1"
    for (number,) in store.conn.execute(query, [run["run_id"]]):
        rows.find(number)
    results = Results(
        task.spec.unit,
        _read_texts(store, task.spec.unit, rows),
        title=f"{task.name} by {run['model']}: results per {task.spec.unit}",
    )
    _add_labels(store, results, dict(zip(rows.numbers, results.rows, strict=True)), [run["run_id"]])
    return results


class _Kinds:
    """The kind, item and answer of each unit, by the unit's number."""

    def __init__(self, store: Store) -> None:
        query = (
            "SELECT u.rowid, u.kind, i.rowid, a.rowid FROM units AS u "
            "LEFT JOIN units AS i ON i.kind = 'item' AND i.unit_id = u.item_id "
            "LEFT JOIN units AS a ON a.kind = 'answer' AND a.unit_id = u.answer_id"
        )
        self._of = {number: (kind, item, answer) for number, kind, item, answer in store.conn.execute(query)}
        self._ids = dict(store.conn.execute("SELECT unit_id, rowid FROM units"))

    def number(self, name: Any) -> int | None:
        """Return the number of a unit that a score names by its number or its id.

        An invented citation is named SENTENCE!N, and an answer under a setting SETTING NUMBER.
        """
        if isinstance(name, int | np.integer):
            return int(name)
        text = str(name)
        if text in self._ids:
            return int(self._ids[text])
        last = text.partition("!")[0].rpartition(" ")[2]
        return int(last) if last.isdigit() and int(last) in self._of else None

    def kind(self, number: int) -> str:
        return str(self._of[number][0])

    def whole(self, number: int, per: str) -> int | None:
        """Return the unit of kind `per` to which a unit belongs, or None if it belongs to none."""
        kind, item, answer = self._of[number]
        if kind == per:
            return number
        return {"answer": answer, "item": item}.get(per)

    def item(self, number: int) -> int | None:
        """Return the item of a unit."""
        item: int | None = self._of[number][1]
        return item


class _Rows:
    """The rows of the table, in the order in which the scores list them, and the row of each unit."""

    def __init__(self, kinds: _Kinds, per: str) -> None:
        self.kinds, self._per = kinds, per
        self.numbers: dict[int, None] = {}
        self._answer_of_item: dict[int, int] = {}

    def find(self, number: int) -> int | None:
        """Return the number of the row that a unit belongs to. An item without an answer is a row of its own."""
        whole = self.kinds.whole(number, self._per)
        if whole is None and self._per == "answer" and self.kinds.kind(number) == "item":
            whole = self._answer_of_item.get(number, number)
        if whole is not None and whole not in self.numbers:
            self.numbers[whole] = None
            item = self.kinds.item(whole)
            if item is not None and self.kinds.kind(whole) == "answer":
                self._answer_of_item[item] = whole
                # A measure of the items may have been read before the answers.
                self.numbers.pop(item, None)
        return whole


def _numbers(score: Score, kinds: _Kinds) -> list[int | None]:
    """Return the number of the unit behind each row of a score. It is None for a row that no unit of the study is behind."""
    return (
        [kinds.number(name) for name in score.units.parts[0].tolist()] if len(score.units.parts) == 1 else []
    )


def _read_texts(store: Store, per: str, rows: _Rows) -> list[dict[str, Any]]:
    """Return the ids, own columns and texts of the rows."""
    names = ("unit_id", "dataset", "item_id", "question_id", "answer_system", "answer_condition", *TEXTS[per])
    columns = ", ".join(f"t.{name}" for name in names)
    query = (
        f"SELECT t.n, {columns}, i.meta AS item_meta, a.meta AS answer_meta, p.meta AS passage_meta FROM unit_texts AS t "
        "JOIN items AS i USING (item_id) LEFT JOIN answers AS a ON a.answer_id = t.answer_id "
        "LEFT JOIN passages AS p ON p.passage_id = t.passage_id WHERE t.n IN (SELECT value FROM json_each(?))"
    )
    by_number = {row.pop("n"): row for row in dicts(store.conn, query, [json.dumps(list(rows.numbers))])}
    made = []
    for number in rows.numbers:
        row = by_number[number]
        metas = [json.loads(row.pop(name) or "{}") for name in ("item_meta", "answer_meta", "passage_meta")]
        row["system"], row["condition"] = row.pop("answer_system"), row.pop("answer_condition")
        texts = {name: row.pop(name) for name in TEXTS[per]}
        own_columns = {name: value for meta in metas for name, value in meta.items()}
        made.append({**{name: row[name] for name in IDS}, **texts, "own_columns": own_columns})
    # A text that no row has, such as the claim of a question, would be an empty column.
    used = [name for name in TEXTS[per] if any(row[name] is not None for row in made)]
    taken = {*IDS, *used}
    return [
        {
            **{name: row[name] for name in (*IDS, *used)},
            **{
                (f"meta.{name}" if name in taken else name): value
                for name, value in row["own_columns"].items()
            },
        }
        for row in made
    ]


def _add_labels(
    store: Store, results: Results, rows: Mapping[int, dict[str, Any]], run_ids: Sequence[str]
) -> None:
    """Add the labels of the runs and of people to the rows: FIELD, FIELD.status, FIELD.reason, human.FIELD and gold.FIELD.

    A field of several runs has the run's task before its name.
    """
    by_unit = {row["unit_id"]: row for row in rows.values()}
    before = set(results.columns)
    results.own_columns = [name for name in results.columns if name not in {*IDS, *TEXTS[results.per]}]
    tasks: list[tuple[dict[str, Any], Task]] = []
    for run_id in run_ids:
        run = export.find_run(store, run_id)
        task = export.read_stored_task(store, run["task"])
        results.runs.append({"run": run_id, "task": task.name, "model": run["model"]})
        if task.spec.unit == results.per:
            tasks.append((run, task))
    several = Counter(name for _, task in tasks for name in task.fields)
    for run, task in tasks:
        names = {
            name: f"{task.task_id}.{name}" if several[name] > 1 or name in before else name
            for name in task.fields
        }
        columns = [column for name in names.values() for column in (name, f"{name}.status", f"{name}.reason")]
        results.labels += columns
        results.free |= {column for name, column in names.items() if not task.domain(name)}
        results.judges |= dict.fromkeys(names.values(), str(run["model"]))
        for row in rows.values():
            row.update(dict.fromkeys(columns))
        for judged in export.read_judged(store, run, task):
            row_of_unit = by_unit.get(judged["unit_id"])
            # Later repeats measure the noise of a judge; its label is the first one.
            if row_of_unit is None or judged["repeat"] != 0:
                continue
            for name, column in names.items():
                row_of_unit[column] = judged["labels"][name]
                row_of_unit[f"{column}.status"] = judged["status"]
                row_of_unit[f"{column}.reason"] = judged["rationale"] or judged["reason"]
                if export.FITTED in judged:
                    row_of_unit[export.FITTED] = judged[export.FITTED]
        for name, column in names.items():
            _add_reference(store, results, by_unit, name, column, task)


def _add_reference(
    store: Store,
    results: Results,
    rows: Mapping[str, dict[str, Any]],
    name: str,
    column: str,
    task: Task,
) -> None:
    """Add people's labels of closed work, and gold labels, beside the judge's."""
    for head, words in (("human", (DECIDED, MAJORITY)), ("gold", (GOLD,))):
        given: Mapping[str, str] = {}
        for word in words:
            try:
                given = ReferenceLabels(store, word).labels(name, task.name)
            except UsageError:
                continue
            if given:
                break
        hidden = _blind_units(store) if head == "human" else set()
        shown = {unit: label for unit, label in given.items() if unit in rows and unit not in hidden}
        if not shown:
            continue
        results.labels.append(f"{head}.{column}")
        for unit, row in rows.items():
            row[f"{head}.{column}"] = shown.get(unit)


def _blind_units(store: Store) -> set[str]:
    """Return the units of open batches. Their annotators work blind, so nobody is shown their labels."""
    tables = store.conn.execute("SELECT count(*) FROM sqlite_master WHERE name = 'batch_units'").fetchone()[0]
    if not tables:
        return set()
    query = "SELECT unit_id FROM batch_units JOIN batches USING (batch) WHERE closed IS NULL"
    return {unit for (unit,) in store.conn.execute(query)}


def _add_score(
    results: Results, by_number: Mapping[int, dict[str, Any]], rows: _Rows, score: Score, paper: Paper
) -> None:
    """Add a measure's values to the rows, as one column, or as a numerator and a denominator.

    If the measure has the name of a column that is there already, such as the label that it counts, `score.` precedes it.
    """
    value = score.value
    if not isinstance(value, Quotient) or len(score.units.parts) != 1:
        return
    places = [None if number is None else rows.find(number) for number in _numbers(score, rows.kinds)]
    # A row with several units, or a unit that counts more than once, needs the two sums of its ratio.
    times = Counter(place for place in places if place is not None)
    is_plain = value.under == -1 and max(times.values(), default=0) <= 1
    name = f"score.{score.measure}" if score.measure in results.columns else score.measure
    better, is_main = paper.better(score.measure), paper.is_main(score.measure)
    over, under = (name, None) if is_plain else (f"{name}.numerator", f"{name}.denominator")
    column = MeasureColumn(score.measure, over, under, better, is_main)
    if not times:
        return
    results.measures.append(column)
    for row in by_number.values():
        row[column.name] = None
        if column.under is not None:
            row[column.under] = None
    for place, used, sums, reason in zip(
        places, score.used.tolist(), score.rows.tolist(), score.reasons, strict=True
    ):
        row_of_unit = None if place is None else by_number.get(place)
        if row_of_unit is None:
            continue
        if not used:
            row_of_unit.setdefault(UNSCORED, {}).setdefault(score.measure, reason)
            continue
        row_of_unit[column.name] = (row_of_unit[column.name] or 0.0) + sums[value.over]
        if column.under is not None:
            divisor = 1.0 if value.under == -1 else sums[value.under]
            row_of_unit[column.under] = (row_of_unit[column.under] or 0.0) + divisor


def sort_worst_first(results: Results, name: str | None = None) -> MeasureColumn | None:
    """Sort the rows by a measure or a column, worst first, and return the measure. Rows without a value come last.

    `name` is a measure or a column. Without it, the first measure is used that is better high or low; without any measure, the order
    stays. Raises UsageError for an unknown name.
    """
    by_measure = {column.measure: column for column in results.measures}
    if name is None:
        sortable = [column for column in results.measures if column.better]
        column = next((column for column in sortable if column.is_main), next(iter(sortable), None))
        if column is None:
            return None
    elif name in by_measure:
        column = by_measure[name]
    elif name in results.columns:
        results.rows.sort(key=lambda row: (row.get(name) is None, _sortable(row.get(name))))
        return None
    else:
        known = ", ".join(by_measure) or ", ".join(results.columns)
        raise UsageError(f"--sort {name}: there is no such measure or column; available: {known}")

    def badness(row: Mapping[str, Any]) -> tuple[bool, float]:
        value = get_value(row, column)
        return value is None, 0.0 if value is None else value * (column.better or 1)

    results.rows.sort(key=badness)
    return column


def get_value(row: Mapping[str, Any], column: MeasureColumn) -> float | None:
    """Return the value of a measure in a row: its column, or the numerator over the denominator. None if it is undefined."""
    value = row.get(column.name)
    if column.under is None or value is None:
        return value
    under = row.get(column.under)
    return float(value) / float(under) if under else None


def _sortable(value: Any) -> tuple[int, float, str]:
    is_number = isinstance(value, int | float)
    return (0, float(value), "") if is_number else (1, 0.0, str(value))


OPERATORS = ("!=", ">=", "<=", "=", "<", ">", "~")
"""The comparisons of `--where`, longest first."""


def keep_where(results: Results, conditions: Iterable[str]) -> None:
    """Keep the rows that fulfil all conditions `COLUMN=VALUE`. Other comparisons are !=, <, <=, >, >= and ~ (contains).

    A measure with a numerator and a denominator is compared by their ratio. Raises UsageError for an unknown column or a
    malformed condition.
    """
    for condition in conditions:
        by_measure = {column.measure: column for column in results.measures}
        name, operator, wanted = _split_condition(condition, [*by_measure, *results.columns])
        column = by_measure.get(name)
        results.rows = [
            row
            for row in results.rows
            if _compare(row.get(name) if column is None else get_value(row, column), operator, wanted)
        ]


def _split_condition(condition: str, names: Sequence[str]) -> tuple[str, str, str]:
    """Return (column, operator, value). A column's name may contain operators, so the longest known name is used."""
    for name in sorted(names, key=len, reverse=True):
        rest = condition.removeprefix(name).lstrip() if condition.startswith(name) else ""
        operator = next((sign for sign in OPERATORS if rest.startswith(sign)), None)
        if operator is None:
            continue
        wanted = rest[len(operator) :].strip()
        if operator in ("<", "<=", ">", ">=") and _as_number(wanted) is None:
            raise UsageError(f"--where {condition}: '{wanted}' is not a number, which {operator} requires")
        return name, operator, wanted
    raise UsageError(
        f"--where {condition}: write COLUMN=VALUE with a column of these results and one of {', '.join(OPERATORS)}; "
        f"available columns: {', '.join(names)}"
    )


def _compare(value: Any, operator: str, wanted: str) -> bool:
    if operator == "~":
        return value is not None and wanted.casefold() in str(value).casefold()
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    number, other = _as_number(value), _as_number(wanted)
    if operator in ("=", "!="):
        # An id such as 007 is a text, and equals no other text.
        is_equal = text == wanted or (not isinstance(value, str) and number is not None and number == other)
        return is_equal is (operator == "=")
    if number is None or other is None:
        return False
    return {
        "<": number < other,
        "<=": number <= other,
        ">": number > other,
        ">=": number >= other,
    }[operator]


def _as_number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
