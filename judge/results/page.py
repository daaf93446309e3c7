"""The page of results: one row after the other, worst first, with its texts, scores, labels and the judge's reasons.

What a judge quotes in its reasons is marked in the texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from judge.console import format_value
from judge.document.rows import QUOTE, PageRow, RowLabel, RowsPage, RowText, Segment
from judge.results.table import IDS, TEXTS, MeasureColumn, Results, get_value
from judge.store import export
from judge.store.listing import dicts
from judge.store.study import Store
from judge.types import GOLD, AnnotatorKind

MOST = 10_000
"""The maximum number of rows on a page."""
MOST_VALUES = 20
"""The maximum number of values of a column that becomes a filter."""
SHORTEST_QUOTE = 12
"""The minimum number of characters of a quotation. Shorter ones occur in a text by chance."""
LONGEST_PART = 80
NO_ANSWER = "(no answer)"
"""Shown in place of an empty or missing answer."""
_QUOTED = re.compile(rf'["“«]([^"“”«»]{{{SHORTEST_QUOTE},}})["”»]')
_PARTS = ("sentence", "citation", "claim", "nugget")
"""The kinds of units that are parts of an answer. Their labels are shown with the answer."""


def as_page(store: Store, results: Results, sorted_by: MeasureColumn | None) -> RowsPage:
    """Return the page of the rows, in their order. A page has at most `MOST` rows; a note says how many are left out."""
    shown = results.rows[:MOST]
    passages = _read_passages(store, results.per, [row["unit_id"] for row in shown])
    parts = _read_parts(store, results, {row["unit_id"] for row in shown})
    slices = _list_slices(results)
    rows = [
        _make_row(results, row, passages.get(row["unit_id"], []), parts.get(row["unit_id"], []), slices)
        for row in shown
    ]
    notes = list(results.notes)
    if left := len(results.rows) - len(shown):
        notes.insert(0, f"{left:,} more rows are not on this page; --where and -n choose rows")
    order = f"worst {sorted_by.measure} first" if sorted_by else "as in the study"
    return RowsPage(results.title, results.per, rows, order, notes)


def _make_row(
    results: Results,
    row: Mapping[str, Any],
    passages: Sequence[Mapping[str, Any]],
    parts: Sequence[RowLabel],
    slices: Sequence[str],
) -> PageRow:
    labels = [*_list_labels(results, row), *parts]
    quotes = [quote for label in labels for quote in find_quotes(label.reason)]
    texts = [
        RowText(
            name.replace("_", " "), "", mark_quotes(str(row[name]), quotes) if row.get(name) else [NO_ANSWER]
        )
        for name in TEXTS[results.per]
        # An answer that is missing is what a reader looks for. Other texts are absent on purpose.
        if row.get(name) or name == "answer"
    ]
    texts += [
        RowText(
            f"passage {n}",
            " · ".join(str(passage[name]) for name in ("title", "date", "source") if passage[name]),
            mark_quotes(str(passage["text"]), quotes),
        )
        for n, passage in enumerate(passages, 1)
    ]
    # All measures of a paper would be a long paragraph before the texts.
    scores = [
        f"{m.measure}: {format_value(value)}"
        for m in results.measures
        if m.is_main and (value := get_value(row, m)) is not None
    ]
    facts = [f"{name}: {row[name]}" for name in ("system", "condition") if row.get(name)]
    reasons = [f"no {measure}: {why}" for measure, why in (row.get("unscored") or {}).items()]
    filters = {
        name: [str(row[name])]
        for name in ("dataset", "system", "condition", *slices)
        if row.get(name) is not None
    }
    filters |= {
        name: [str(row[name])]
        for name in results.labels
        if name not in results.free and not name.endswith(".reason") and row.get(name) is not None
    }
    return PageRow(
        str(row["unit_id"]),
        summary=str(row.get(TEXTS[results.per][0]) or row.get(TEXTS[results.per][-1]) or ""),
        facts=[*facts, *scores],
        texts=texts,
        labels=labels,
        notes=reasons,
        filters=filters,
        # The lowest number is shown first.
        numbers={
            f"worst {m.measure} first": value * m.better
            for m in results.measures
            if m.better and (value := get_value(row, m)) is not None
        },
    )


def _list_labels(results: Results, row: Mapping[str, Any]) -> Iterator[RowLabel]:
    """Yield the labels of the row itself."""
    for name in results.labels:
        if name.endswith((".status", ".reason")) or row.get(name) is None:
            continue
        head, _, rest = name.partition(".")
        kind = {"human": AnnotatorKind.HUMAN, GOLD: AnnotatorKind.GOLD}.get(head)
        if kind is None:
            reason = str(row.get(f"{name}.reason") or "")
            yield RowLabel(
                results.judges.get(name, "judge"), AnnotatorKind.JUDGE, name, str(row[name]), reason=reason
            )
        else:
            yield RowLabel("people" if kind == AnnotatorKind.HUMAN else GOLD, kind, rest, str(row[name]))


def _list_slices(results: Results) -> list[str]:
    """Return the user's own columns with few values: rows can be filtered by them."""
    slices = []
    for name in results.own_columns:
        if name in (*IDS, *TEXTS[results.per]):
            continue
        values = {str(row[name]) for row in results.rows if row.get(name) is not None}
        if 1 < len(values) <= MOST_VALUES and len(values) < len(results.rows):
            slices.append(name)
    return slices


def _read_passages(store: Store, per: str, units: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return, for each unit, the passages that its answer was given, or else those of its item."""
    if per == "passage":
        return {}
    query = (
        "SELECT t.unit_id, p.title, p.date, p.source, p.text FROM unit_texts AS t, "
        "json_each(coalesce(t.context, t.passages)) AS c JOIN passages AS p ON p.passage_id = c.value "
        "WHERE t.unit_id IN (SELECT value FROM json_each(?)) ORDER BY t.n, c.key"
    )
    passages: dict[str, list[dict[str, Any]]] = {}
    for row in dicts(store.conn, query, [json.dumps(list(units))]):
        passages.setdefault(str(row.pop("unit_id")), []).append(row)
    return passages


def _read_parts(store: Store, results: Results, answers: set[str]) -> dict[str, list[RowLabel]]:
    """Return, for each answer, the judges' labels of its sentences, citations and claims, with their reasons."""
    if results.per != "answer":
        return {}
    labels: dict[str, list[RowLabel]] = {}
    for stored in results.runs:
        run = export.find_run(store, stored["run"])
        task = export.read_stored_task(store, run["task"])
        if task.spec.unit not in _PARTS:
            continue
        column = {"claim": "answer_claim", "nugget": "nugget"}.get(task.spec.unit, "sentence")
        query = f"SELECT unit_id, answer_id, {column} AS text FROM unit_texts WHERE kind = ?"
        of = {str(row["unit_id"]): row for row in dicts(store.conn, query, [task.spec.unit])}
        for judged in export.read_judged(store, run, task):
            part = of.get(judged["unit_id"])
            if part is None or judged["repeat"] != 0 or part["answer_id"] not in answers:
                continue
            text = str(part["text"] or "")
            shown = text if len(text) <= LONGEST_PART else f"{text[: LONGEST_PART - 1]}…"
            for name, value in judged["labels"].items():
                labels.setdefault(str(part["answer_id"]), []).append(
                    RowLabel(
                        str(run["model"]),
                        AnnotatorKind.JUDGE,
                        f"{name} of {task.spec.unit} '{shown}'",
                        str(value) if value is not None else f"({judged['status']})",
                        reason=str(judged["rationale"] or judged["reason"] or ""),
                    )
                )
    return labels


def find_quotes(reason: str) -> list[str]:
    """Return what a reason may quote: the reason itself, and its parts in quotation marks."""
    whole = [reason.strip()] if len(reason.strip()) >= SHORTEST_QUOTE else []
    return [*whole, *_QUOTED.findall(reason)]


def mark_quotes(text: str, quotes: Sequence[str]) -> list[Segment]:
    """Return the text in pieces, with the quotations that occur in it word for word marked."""
    places = [(at, at + len(quote)) for quote in quotes if (at := text.find(quote)) >= 0]
    pieces: list[Segment] = []
    end = 0
    for start, stop in sorted(places):
        # Two quotations may overlap.
        if stop <= end:
            continue
        start = max(start, end)
        if start > end:
            pieces.append(text[end:start])
        pieces.append((text[start:stop], QUOTE))
        end = stop
    if end < len(text) or not pieces:
        pieces.append(text[end:])
    return pieces
