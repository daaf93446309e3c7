"""The units on a page: texts with highlights and evidence, and every label with its source and rationale.

If somebody must still label a unit without seeing other labels, the page contains only the unit's texts. It contains no
labels, and nothing that reveals a label, such as a judge's reply, evidence or a note.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from annotate.drawing.batch import redraw
from annotate.drawing.eligible import eligible
from annotate.highlights import find_answers, find_terms, query_terms
from annotate.sitting import exposure
from annotate.sitting.queue import batch_info
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
"""The maximum number of units on a page. With more units, a browser would need more than three seconds to open the page."""
_JSON = ("reference_answers", "options")
_ABOUT = ("passage_title", "passage_date", "passage_source")
_ASKED = ("question", "claim", "answer_claim", "nugget", "sentence")
"""The inputs whose words are highlighted in the other texts."""

HIGHLIGHT, EVIDENCE = "h", "e"
Segment = str | tuple[str, str]
"""A piece of plain text, or a pair of a piece and its mark (HIGHLIGHT or EVIDENCE)."""


@dataclass(slots=True)
class ShownLabel:
    """A label from a run or a person, with the probability of the label and the label's source (a batch or an import)."""

    field: str
    who: str
    value: str
    layer: str
    repeat: int
    confidence: float | None
    rationale: str | None
    derived_from: str | None
    source: str | None


@dataclass(slots=True)
class ShownUnit:
    """A unit on a page.

    Each entry of `texts` is a tuple (name, remark, pieces). `lost` has a tuple (run, status, reason) for each judgement
    without a label.
    """

    unit_id: str
    question: str
    dataset: str
    system: str | None
    waits: bool
    texts: list[tuple[str, str, list[Segment]]] = field(default_factory=list)
    labels: list[ShownLabel] = field(default_factory=list)
    lost: list[tuple[str, str, str]] = field(default_factory=list)
    remarks: list[tuple[str, str]] = field(default_factory=list)
    """Pairs of a person and this person's note or flag."""


@dataclass(frozen=True, slots=True)
class View:
    """The content of a page. `who` maps each run id and each person to a pair (name, kind)."""

    task: Task
    units: Sequence[ShownUnit]
    who: Mapping[str, tuple[str, str]]
    withheld: int
    """The number of units whose labels are left out, because somebody must still label these units blind."""


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
    runs = _runs(store)
    units = _with_texts(store, task, waiting)
    _add_labels(store, task, units, runs)
    shown = list(units.values())
    return View(task, shown, _names(store, shown, runs), sum(unit.waits for unit in shown))


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


def _runs(store: Store) -> dict[str, str]:
    """Return a map from run ids to models. Runs that were made by a search or a drift check are excluded."""
    only_tried = read_tried(store.conn)
    rows = store.conn.execute("SELECT run_id, model FROM runs")
    return {run: model for run, model in rows if run not in only_tried}


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
        unit = ShownUnit(unit_id, question, dataset, system, unit_id in waiting)
        spans, remarks = ([], []) if unit.waits else marks.get(unit_id, ([], []))
        unit.texts, unit.remarks = list(_texts(inputs, listed, spans)), remarks
        shown[unit_id] = unit
    return shown


Span = tuple[str, int, int]
Remarks = list[tuple[str, str]]


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
        remarks += [(person, f"{word}: {text}") for word, text in (("flag", flag), ("note", note)) if text]
    return marks


def _texts(
    inputs: Mapping[str, str | None], listed: Mapping[str, Mapping[str, Any]], spans: Sequence[Span]
) -> Iterator[tuple[str, str, list[Segment]]]:
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
                yield f"{title} [{marker}]", about, pieces(passage, str(of["text"]), searched=True)
        elif name in _JSON:
            yield title, "", [_format_value(json.loads(value))]
        else:
            about = (
                " · ".join(inputs[key] or "" for key in _ABOUT if inputs.get(key))
                if name == "passage"
                else ""
            )
            yield title, about, pieces(name, value, searched=name not in _ASKED)


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


def _add_labels(store: Store, task: Task, units: Mapping[str, ShownUnit], runs: Mapping[str, str]) -> None:
    """Add labels to the units, except those that somebody must still label blind.

    A judge's labels on units in the sealed test are left out.
    """
    sealed = {run: splits.read_closed_units(store, task.task_id, run) for run in runs}
    only_tried = read_tried(store.conn)
    for row in relation.read_selection(store.conn):
        unit = units[row[0]]
        # A search or a drift check made these runs, and no number in the study uses them.
        is_hidden = row[2] in only_tried
        if is_hidden or unit.waits or unit.unit_id in sealed.get(row[2], ()):
            continue
        masses = json.loads(row[6]) if row[6] else {}
        confidence = masses.get(row[5])
        source = ", ".join(json.loads(row[9])) if row[9] else None
        unit.labels.append(
            ShownLabel(row[1], row[2], row[5], row[3], row[4], confidence, row[7], row[8], source)
        )
    lost = (
        "SELECT j.unit_id, j.run_id, j.status, coalesce(j.reason, '') FROM latest_judgements AS j "
        "JOIN units AS u USING (unit_id) JOIN temp.selection AS s ON s.n = u.rowid "
        "WHERE j.status <> 'ok' AND j.repeat = 0 ORDER BY s.place, j.run_id"
    )
    for unit_id, run, status, reason in store.conn.execute(lost):
        if run in runs and not units[unit_id].waits:
            units[unit_id].lost.append((run, status, reason))


def _names(store: Store, units: Iterable[ShownUnit], runs: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return a map from the runs and people on the page to pairs (name, kind).

    If several runs have the same model, their names include the end of the run id.
    """
    seen = sorted(
        {label.who for unit in units for label in unit.labels}
        | {run for unit in units for run, _, _ in unit.lost}
    )
    kinds = dict(store.conn.execute("SELECT annotator_id, kind FROM annotators"))
    models = [runs[who] for who in seen if who in runs]
    names = {}
    for who in seen:
        if who in runs:
            model = runs[who]
            name = model if models.count(model) == 1 else f"{model} · {who[-6:]}"
            names[who] = (name, str(AnnotatorKind.JUDGE))
        else:
            names[who] = (who, str(kinds[who]))
    return names
