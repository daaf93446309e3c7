"""A unit as styled text: the head (question, claim, answers) and the body (passage, answer), highlighted.

Nothing here parses markup: text from the study goes into Content character by character.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from textual.content import Content

from annotate.desk import Desk, Sheet
from annotate.tui.words import Shown, find_answers, find_terms, one_line, query_terms, shown

HEAD = ("question", "claim", "counter_claim", "options", "reference_answers", "sentence", "answer_claim")
BODY = ("answer", "passage", "baseline_answer")
NAMES = {
    "question": "Question",
    "claim": "Claim",
    "counter_claim": "Counter claim",
    "options": "Options",
    "reference_answers": "Reference answer",
    "sentence": "Sentence",
    "answer_claim": "Claim of the answer",
    "answer": "Answer",
    "passage": "Passage",
    "baseline_answer": "Human answer",
    "passages": "Passages",
    "context": "What the answer was given",
    "cited_passages": "Cited passages",
    "other_cited_passages": "Also cited",
}
ANSWER_STYLE = "bold $text on $success-muted"
TERM_STYLE = "underline $text-accent"
EVIDENCE_STYLE = "bold $text on $warning-muted"
CURSOR_STYLE = "reverse"
NAME_STYLE = "bold $text-primary"
QUIET = "dim"


@dataclass(slots=True)
class Picker:
    """The evidence cursor: code points of the body's raw text."""

    start: int
    end: int
    anchor: int | None = None


@dataclass(slots=True)
class UnitText:
    """A unit made ready to draw; `main` is the input that evidence is marked in."""

    head: Content
    body: Content
    aside: Content | None
    main: str | None
    raw: str
    shown: Shown | None
    body_at: int = 0
    """Where the main text begins in `body`."""
    matches: int = 0
    extra: dict[str, Any] = field(default_factory=dict)


def unit_text(desk: Desk, sheet: Sheet, *, highlights: bool = True, picker: Picker | None = None) -> UnitText:
    """Head, body and aside of a unit."""
    inputs = sheet.inputs
    answers = [a for a in (inputs.get("reference_answers") or []) if isinstance(a, str)]
    terms = query_terms(
        str(inputs[n]) for n in ("question", "claim", "answer_claim", "sentence") if inputs.get(n)
    )
    main = next((n for n in ("passage", "answer") if inputs.get(n)), None)
    out = UnitText(_head(inputs), Content(""), None, main, "", None)
    parts: list[Content] = []
    for name in [
        *(n for n in BODY if n in inputs),
        *(n for n in inputs if n not in HEAD + BODY and _is_text(n)),
    ]:
        if not inputs.get(name):
            continue
        parts.append(_title(name, inputs))
        raw = str(inputs[name])
        view = shown(raw)
        text = Content(view.text)
        found: list[tuple[int, int, str]] = []
        if highlights:
            if name == "answer" and inputs.get("sentence"):
                found += [(a, b, ANSWER_STYLE) for a, b in find_answers(raw, [str(inputs["sentence"])])]
            else:
                found += [(a, b, TERM_STYLE) for a, b in find_terms(raw, terms)]
                found += [(a, b, ANSWER_STYLE) for a, b in find_answers(raw, answers)]
            out.matches += len(found)
        found += [(a, b, EVIDENCE_STYLE) for n, a, b in sheet.state.spans if n == name]
        if name == main:
            out.raw, out.shown = raw, view
            out.body_at = sum(len(p.plain) for p in parts)
            if picker is not None:
                low = min(picker.start, picker.anchor if picker.anchor is not None else picker.start)
                found.append((low, max(picker.end, low), CURSOR_STYLE))
        parts += [_styled(text, view, found), Content("\n\n")]
    out.body = Content("").join(parts)
    lists = [n for n in ("cited_passages", "context", "passages", "other_cited_passages") if inputs.get(n)]
    if lists:
        out.aside = Content("").join(
            p for n in lists for p in _passages(desk, n, inputs[n], terms if highlights else [])
        )
    return out


def _styled(text: Content, view: Shown, found: Iterable[tuple[int, int, str]]) -> Content:
    for start, end, style in found:
        text = text.stylize(style, view.at(start), view.at(end))
    return text


def _is_text(name: str) -> bool:
    return not name.startswith("passage_") and name not in (
        "question_date", "passages", "context", "cited_passages", "other_cited_passages",
    )  # fmt: skip


def _head(inputs: dict[str, Any]) -> Content:
    rows: list[Content] = []
    for name in HEAD:
        value = inputs.get(name)
        if not value:
            continue
        label = NAMES[name]
        if name == "question" and inputs.get("question_date"):
            label += f" ({one_line(str(inputs['question_date']), 40)})"
        if isinstance(value, list):
            value = " · ".join(str(v) for v in value)
        elif isinstance(value, dict):
            value = "\n".join(f"{k}. {v}" for k, v in value.items())
        style = "bold" if name in ("question", "claim", "sentence", "answer_claim") else ""
        rows.append(Content.assemble((f"{label}  ", NAME_STYLE), (shown(str(value)).text, style)))
    return Content("\n").join(rows)


def _title(name: str, inputs: dict[str, Any]) -> Content:
    parts: list[tuple[str, str]] = [(NAMES.get(name, name.replace("_", " ").capitalize()), NAME_STYLE)]
    if name == "passage":
        about = [inputs.get(n) for n in ("passage_title", "passage_date", "passage_source")]
        if about[0]:
            parts.append((f"  {one_line(str(about[0]), 200)}", "bold"))
        parts += [(f"  · {one_line(str(a), 100)}", QUIET) for a in about[1:] if a]
    return Content.assemble(*parts, "\n")


def _passages(desk: Desk, name: str, ids: list[str], terms: list[str]) -> list[Content]:
    parts = [Content.assemble((NAMES[name], NAME_STYLE), "\n")]
    for number, passage in enumerate(desk.passages(ids), 1):
        about = " · ".join(one_line(a, 100) for a in (passage.title, passage.date, passage.source) if a)
        view = shown(passage.text)
        text = _styled(
            Content(view.text), view, [(a, b, TERM_STYLE) for a, b in find_terms(passage.text, terms)]
        )
        parts += [Content.assemble((f"[{number}] ", NAME_STYLE), (about, QUIET), "\n"), text, Content("\n\n")]
    return parts
