"""The units on a page: texts with highlights and evidence, and every label with its source and rationale.

If somebody must still label a unit without seeing other labels, the page contains only the unit's texts. It contains no
labels, and nothing that reveals a label, such as a judge's reply, evidence or a note.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from annotate.drawing.batch import redraw
from annotate.drawing.eligible import eligible
from annotate.highlights import find_answers, find_terms, query_terms
from annotate.sitting import exposure
from annotate.sitting.queue import batch_info
from judge.document.rows import EVIDENCE, HIGHLIGHT, PageRow, RowLabel, RowsPage, RowText, Segment
from judge.errors import UsageError
from judge.labels import relation
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.store import Store, splits
from judge.store.inputs import column, marked, passages
from judge.store.runs import read_tried
from judge.store.selection import Selection, select
from judge.store.study import dumps
from judge.types import AnnotatorKind

MOST = 10_000
"""The maximum number of units on a page. A browser needs more than half a second to read a page with so many."""
MOST_PEOPLE = 8
"""The maximum number of people who each have a filter. More people share one."""
_JSON = ("reference_answers", "options")
_ABOUT = ("passage_title", "passage_date", "passage_source")
_ASKED = ("question", "claim", "answer_claim", "nugget", "sentence")
"""The inputs whose words are highlighted in the other texts."""


@dataclass(slots=True)
class ShownUnit:
    """A unit on a page: its row, and its first labels by kind of annotator.

    `waits` is true if somebody must still label the unit blind. `judges` maps each judge to its labels by field, and
    `people` maps each field to the labels of everybody else.
    """

    row: PageRow
    waits: bool
    judges: dict[str, dict[str, str]] = field(default_factory=dict)
    people: dict[str, set[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """A page of units, with the number of units whose labels are left out because somebody must label them blind."""

    page: RowsPage
    withheld: int


def view(store: Store, task: Task, selection: Selection, *, reveal_to: Sequence[str] = ()) -> View:
    """Read the selected units of a task.

    If `reveal_to` names people, the page has all labels, and the study first records that these people saw them. Raises
    UsageError if no units are selected, or more than a page can have.
    """
    n, _ = select(store, task, selection)
    if not n:
        raise UsageError(f"no unit of {task.name} matches the selection, so there is nothing to show")
    if n > MOST:
        raise UsageError(
            f"{n:,} units are selected, but a page can have at most {MOST:,}; choose fewer with --where, --batch, or -n {MOST} --sample 0"
        )
    # People who read everything are no longer blind, so nothing needs to be left out for them.
    waiting = set() if reveal_to else exposure.waiting(store.conn) | _find_undrawn(store)
    # Exposures are recorded before the page is written: if writing fails, there are too many of them, but never too few.
    if reveal_to:
        with store.transaction() as conn:
            for person in reveal_to:
                exposure.note_view(conn, person)
    units = _with_texts(store, task, waiting)
    names = _names(store)
    _add_labels(store, task, units, names)
    _add_lost(store, units, names)
    for unit in units.values():
        _add_filters(unit)
    withheld = sum(unit.waits for unit in units.values())
    note = f"Labels of {withheld:,} of the {n:,} units are left out: somebody must still label them, or a unit of their item, blind."
    notes = [note] if withheld else []
    rows = [unit.row for unit in units.values()]
    title = f"{task.spec.title} ({task.name})"
    return View(RowsPage(title, "unit", rows, "as in the study", notes), withheld)


def _find_undrawn(store: Store) -> set[str]:
    """Return the ids of the units that open batches may still draw, and of these units' items.

    Only batches that draw units until a verdict is decided are considered.
    """
    # The seed fixes the order of such a draw, so its next block is known. The people who get these units label them blind.
    query = "SELECT batch FROM batches WHERE closed IS NULL AND json_extract(options, '$.until') IS NOT NULL"
    names: set[str] = set()
    for (batch,) in store.conn.execute(query).fetchall():
        info = batch_info(store, batch)
        frame = eligible(store, info.task, info.plan, info.plan.run, batch)
        # Training and attention units are taken from the frame before the sample is drawn.
        checks = "SELECT unit_id FROM batch_units WHERE batch = ? AND role <> 'sample'"
        frame.leave_out([unit for (unit,) in store.conn.execute(checks, [batch])])
        drawn = [d.unit_id for d in redraw(frame, replace(info.plan, n=info.plan.until))]
        of_item = "SELECT item_id FROM units WHERE unit_id IN (SELECT value FROM json_each(?))"
        names.update(drawn, (item for (item,) in store.conn.execute(of_item, [dumps(drawn)])))
    return names


def _with_texts(store: Store, task: Task, waiting: set[str]) -> dict[str, ShownUnit]:
    """Return the selected units with their texts. The texts of units in `waiting` contain no marked evidence."""
    # Gold that a task shows to its own annotators may be the answer to another task's question.
    names = [
        name
        for name in task.input_names
        if name not in task.gold_inputs and name not in ("relevant_passages", "option_probabilities")
    ]
    columns = "".join(f", {column(task, name)}" for name in names)
    query = (
        f"SELECT t.unit_id, t.question_id, t.dataset, t.answer_system{columns} "
        "FROM temp.selection AS s JOIN unit_texts AS t ON t.n = s.n ORDER BY s.place"
    )
    rows = [(row[:4], dict(zip(names, row[4:], strict=True))) for row in store.conn.execute(query).fetchall()]
    ids = {
        i for _, inputs in rows for name in LIST_INPUTS if inputs.get(name) for i in json.loads(inputs[name])
    }
    listed = passages(store.conn, ids) if ids else {}
    marks = _evidence(store)
    shown = {}
    for (unit_id, question, dataset, system), inputs in rows:
        waits = unit_id in waiting
        spans, remarks = ([], []) if waits else marks.get(unit_id, ([], []))
        texts = list(_texts(inputs, listed, spans))
        row = PageRow(unit_id, texts[-1].plain() if texts else "", texts=texts, notes=list(remarks))
        row.facts = [f"data set {dataset}", f"question {question}"]
        # The filters of a page are in the order in which its rows name them.
        row.filters = {"Status": [], "Differences": [], "Data set": [dataset]}
        if system is not None:
            row.facts.append(f"system {system}")
            row.filters["System"] = [system]
        if remarks:
            row.filters["Status"].append("with a note or flag")
        shown[unit_id] = ShownUnit(row, waits)
    return shown


Span = tuple[str, int, int]
Remarks = list[str]


def _evidence(store: Store) -> dict[str, tuple[list[Span], Remarks]]:
    """Return the evidence and the remarks for each unit.

    The evidence consists of the spans that people marked in the unit's texts. The remarks are people's flags and notes.
    """
    query = (
        "SELECT a.unit_id, a.annotator_id, a.spans, a.flag, a.note FROM assignments AS a "
        "JOIN units AS u USING (unit_id) JOIN temp.selection AS s ON s.n = u.rowid "
        "WHERE a.role IN ('sample', 'repeat', 'adjudication') "
        "AND (a.spans <> '[]' OR a.flag IS NOT NULL OR a.note IS NOT NULL) ORDER BY a.annotator_id, a.batch, a.position"
    )
    marks: dict[str, tuple[list[Span], Remarks]] = {}
    for unit, person, spans, flag, note in store.conn.execute(query):
        evidence, remarks = marks.setdefault(unit, ([], []))
        evidence += [(str(name), int(start), int(end)) for name, start, end in json.loads(spans)]
        remarks += [f"{person}, {word}: {text}" for word, text in (("flag", flag), ("note", note)) if text]
    return marks


def _texts(
    inputs: Mapping[str, str | None], listed: Mapping[str, Mapping[str, Any]], spans: Sequence[Span]
) -> Iterator[RowText]:
    """Return the inputs in the task's order, with a separate entry for each passage in a list."""
    terms = query_terms(value for name in _ASKED if (value := inputs.get(name)))
    answers = [a for a in json.loads(inputs.get("reference_answers") or "[]") if isinstance(a, str)]

    def pieces(name: str, text: str, *, searched: bool) -> list[Segment]:
        marks = [(start, end, HIGHLIGHT) for start, end in find_answers(text, answers)] if searched else []
        marks += [(start, end, HIGHLIGHT) for start, end in find_terms(text, terms)] if searched else []
        marks += [(start, end, EVIDENCE) for name_of_text, start, end in spans if name_of_text == name]
        return _pieces(text, marks)

    for name, value in inputs.items():
        if not value or name in _ABOUT:
            continue
        title = name.replace("_", " ")
        if name in LIST_INPUTS:
            ids = json.loads(value)
            for marker, passage in marked(ids, {i: listed[i]["item_id"] for i in ids}).items():
                of = listed[passage]
                about = " · ".join(str(of[key]) for key in ("title", "date") if of[key])
                yield RowText(f"{title} [{marker}]", about, pieces(passage, str(of["text"]), searched=True))
        elif name in _JSON:
            yield RowText(title, "", [_format_value(json.loads(value))])
        else:
            about = (
                " · ".join(inputs[key] or "" for key in _ABOUT if inputs.get(key))
                if name == "passage"
                else ""
            )
            yield RowText(title, about, pieces(name, value, searched=name not in _ASKED))


def _format_value(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {text}" for key, text in value.items())
    return "\n".join(map(str, value))


def _pieces(text: str, marked: Iterable[tuple[int, int, str]]) -> list[Segment]:
    """Split a text where marks begin and end. Where evidence and a highlight overlap, the piece is evidence."""
    marks = [(max(0, start), min(end, len(text)), kind) for start, end, kind in marked]
    cuts = sorted({0, len(text), *(at for start, end, _ in marks for at in (start, end))})
    out: list[Segment] = []
    for start, end in pairwise(cuts):
        # A person's evidence is more informative than a word of the question.
        kinds = {kind for low, high, kind in marks if low <= start < high}
        piece = text[start:end]
        out.append(piece if not kinds else (piece, EVIDENCE if EVIDENCE in kinds else HIGHLIGHT))
    return out


def _names(store: Store) -> dict[str, tuple[str, AnnotatorKind]]:
    """Return a map from each run and each person to a pair (name, kind).

    If several runs have the same model, their names include the end of the run id. Runs that were made by a search or a
    drift check are excluded, because no number in the study uses them.
    """
    only_tried = read_tried(store.conn)
    runs = {
        run: model
        for run, model in store.conn.execute("SELECT run_id, model FROM runs")
        if run not in only_tried
    }
    n_runs = Counter(runs.values())
    names = {
        run: (model if n_runs[model] == 1 else f"{model} · {run[-6:]}", AnnotatorKind.JUDGE)
        for run, model in runs.items()
    }
    for person, kind in store.conn.execute("SELECT annotator_id, kind FROM annotators"):
        if person not in only_tried:
            names.setdefault(person, (person, AnnotatorKind(kind)))
    return names


def _add_labels(
    store: Store, task: Task, units: Mapping[str, ShownUnit], names: Mapping[str, tuple[str, AnnotatorKind]]
) -> None:
    """Add labels to the units, except those that somebody must still label blind.

    A judge's labels on units in the sealed test are left out.
    """
    sealed = {
        who: splits.read_closed_units(store, task.task_id, who)
        for who, (_, kind) in names.items()
        if kind == AnnotatorKind.JUDGE
    }
    given = [
        row
        for row in relation.read_selection(store.conn)
        if row[2] in names and not units[row[0]].waits and row[0] not in sealed.get(row[2], ())
    ]
    several = len({row[1] for row in given}) > 1
    many = len({row[2] for row in given if names[row[2]][1] == AnnotatorKind.HUMAN}) > MOST_PEOPLE
    for unit_id, question, who, layer, repeat, value, distribution, reason, derived, sources in given:
        unit, (name, kind) = units[unit_id], names[who]
        confidence = json.loads(distribution).get(value) if distribution else None
        source = [*(json.loads(sources) if sources else ()), "" if layer == "first" else layer]
        source += [f"repeat {repeat}" if repeat else "", f"from {derived}" if derived else ""]
        text = ", ".join(filter(None, source))
        unit.row.labels.append(RowLabel(name, kind, question, value, confidence, text, reason or ""))
        # Repeats and revisions are shown, but the filters use the first label.
        if layer != "first" or repeat:
            continue
        named = "any person" if many and kind == AnnotatorKind.HUMAN else name
        title = f"{named}, {question}" if several else named
        unit.row.filters.setdefault(title, []).append(value)
        if kind != AnnotatorKind.JUDGE:
            unit.people.setdefault(question, set()).add(value)
            continue
        unit.judges.setdefault(name, {})[question] = value
        if confidence is not None:
            unit.row.numbers[f"{title}: surest first"] = -confidence
            unit.row.numbers[f"{title}: least sure first"] = confidence


def _add_lost(
    store: Store, units: Mapping[str, ShownUnit], names: Mapping[str, tuple[str, AnnotatorKind]]
) -> None:
    """Add the reason for each judgement without a label."""
    lost = (
        "SELECT j.unit_id, j.run_id, j.status, coalesce(j.reason, '') FROM latest_judgements AS j "
        "JOIN units AS u USING (unit_id) JOIN temp.selection AS s ON s.n = u.rowid "
        "WHERE j.status <> 'ok' AND j.repeat = 0 ORDER BY s.place, j.run_id"
    )
    for unit_id, run, status, reason in store.conn.execute(lost):
        if run in names and not units[unit_id].waits:
            row = units[unit_id].row
            row.notes.append(f"{names[run][0]} gave no label: {status}{f', {reason}' if reason else ''}")
            row.filters["Status"].append("a judge gave no label")


def _add_filters(unit: ShownUnit) -> None:
    """Add the values for the filters by status and by difference, and a note on a unit without labels."""
    statuses = unit.row.filters["Status"]
    if unit.waits:
        statuses.append("waits for a blind label")
        unit.row.notes.append("This unit waits for a blind label: its labels are not in this page.")
        return
    if unit.people:
        statuses.append("labelled by people")
    elif unit.judges:
        statuses.append("labelled by judges only")
    elif not unit.row.labels:
        statuses.append("no label")
        unit.row.notes.append("Nobody has labelled this unit.")
    unit.row.filters["Differences"] += _differences(unit)


def _differences(unit: ShownUnit) -> Iterator[str]:
    """Yield who gave different labels to a question of the unit, or that nobody did."""
    named = set()
    for name, labels in unit.judges.items():
        if any(
            people != {labels[question]} for question, people in unit.people.items() if question in labels
        ):
            named.add(f"{name} and people differ")
    questions = {question for labels in unit.judges.values() for question in labels}
    if any(len({of[q] for of in unit.judges.values() if q in of}) > 1 for q in questions):
        named.add("judges differ")
    if any(len(people) > 1 for people in unit.people.values()):
        named.add("people differ")
    if not named and len(unit.row.labels) > 1:
        named.add("nobody differs")
    yield from sorted(named)
