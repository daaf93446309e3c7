"""A unit as styled text with highlights.

The head contains short texts such as the question, the claim or the sentence to be labelled. The body is a passage or
an answer. For parts of answers, the passages are beside the body.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from textual.content import Content, Span
from textual.style import Style

from annotate.guidelines import label_keys
from annotate.highlights import find_answers, find_terms, find_text, query_terms
from annotate.sitting.desk import Sheet
from annotate.sitting.unit import AnswerPart, ShownPassage
from annotate.tui.colours import MARK, QUIET
from annotate.tui.layout import lay_out
from annotate.tui.untrusted import ShownText, make_one_line, make_visible
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task
from judge.text import markers

BODY = ("answer", "baseline_answer", "passage")
NAMES = {
    "question": "Question",
    "claim": "Claim",
    "counter_claim": "Counter claim",
    "options": "Options",
    "reference_answers": "Reference answer",
    "sentence": "Sentence",
    "answer_claim": "Claim of the answer",
    "nugget": "Nugget",
    "answer": "Answer",
    "passage": "Passage",
    "baseline_answer": "Human answer",
    "passages": "Passages",
    "context": "Context given to the system",
    "cited_passages": "Cited passages",
    "other_cited_passages": "Also cited",
    "relevant_passages": "Relevant passages",
}
ANSWER_STYLE = "bold $text on $success-muted"
PART_STYLE = "bold $text on $primary-muted"
TERM_STYLE = f"underline {MARK}"
CITED_STYLE = f"bold {MARK}"
EVIDENCE_STYLE = "bold $text on $warning-muted"
SEARCH_STYLE = "bold reverse"
CURSOR_STYLE = "reverse"
NAME_STYLE = "bold $text-primary"


@dataclass(slots=True)
class Picker:
    """The cursor for marking evidence. It covers the characters from `start` to `end` in the raw text `name`.

    If the user has begun to mark a span, `anchor` is the offset at which the span begins.
    """

    name: str
    start: int
    end: int
    anchor: int | None = None


class Markable(NamedTuple):
    """A text in which evidence can be marked.

    `name` is the name of an input or, in a list of passages, the id of a passage. If `beside` is true, the text is in
    the pane beside the body; otherwise it is in the body. `at` is the offset of the text in its pane.
    """

    name: str
    raw: str
    shown: ShownText
    beside: bool
    at: int


@dataclass(slots=True)
class UnitText:
    """A unit that is ready to be drawn. `aside` is the content beside the body, or None if there is only the body."""

    head: Content
    body: Content
    aside: Content | None
    title: str
    aside_title: str
    texts: list[Markable] = field(default_factory=list)
    matches: int = 0
    focus: int | None = None
    """The offset, in the body, of the part of the answer that is to be labelled."""
    first: tuple[Markable, int] | None = None
    """The text and the offset at which the evidence cursor starts.

    This is a search hit. Without one, it is an occurrence of a reference answer or, at last, of a word of the question.
    """
    hits: int = 0
    """The number of search hits."""
    places: dict[bool, list[int]] = field(default_factory=dict)
    """The sorted offsets of highlights and search hits, for the body (False) and for the pane beside it (True)."""


def unit_text(
    task: Task,
    sheet: Sheet,
    columns: Callable[[bool], int],
    *,
    highlights: bool = True,
    picker: Picker | None = None,
    searched: str = "",
) -> UnitText:
    """Return the unit's texts as they are drawn: the head, the body, and the pane beside the body.

    `columns` returns the line width in columns, or 0 to show texts as stored. It is called with True if there is a pane
    beside the body.
    """
    inputs, in_body = sheet.inputs, []
    # If there is an answer, the passages with which it is compared are beside it; otherwise passages are the body.
    apart = bool(inputs.get("answer"))
    beside = ["passage"] if apart and inputs.get("passage") else []
    in_body += [n for n in BODY if inputs.get(n) and n not in beside]
    lists = [n for n in inputs if n in LIST_INPUTS and inputs.get(n)]
    two = apart and bool(beside or lists)
    maker = _Maker(task, sheet, columns(two), highlights, picker, searched)
    for name in in_body:
        maker.text(name, beside=False)
    for name in beside:
        maker.text(name, beside=True)
    for name in lists:
        maker.passages(name, beside=apart)
    body, aside = (Content("").join(maker.parts[side]) for side in (False, True))
    names = [NAMES[n] for n in [*beside, *lists]]
    out = UnitText(
        head(task, sheet), body, aside if two else None,
        NAMES.get(in_body[0], "") if in_body else "", " · ".join(names), maker.texts, maker.matches, maker.focus,
        places={beside: sorted(places) for beside, places in maker.places.items()},
    )  # fmt: skip
    if sheet.parts:
        # The evidence for a part of an answer is in the passages, so marking begins there.
        out.texts.sort(key=lambda t: not t.beside)
    ranks = [(rank, n, at) for n, t in enumerate(out.texts) for rank, at in maker.first_hits.get(t.name, ())]
    if ranks:
        _, n, at = min(ranks)
        out.first, out.hits = (out.texts[n], at), maker.hits
    return out


class _Maker:
    """A builder that collects the pieces of text for both panes, and the offset of each text in its pane."""

    def __init__(
        self,
        task: Task,
        sheet: Sheet,
        columns: int,
        highlights: bool,
        picker: Picker | None,
        searched: str,
    ) -> None:
        self.columns, self.searched = columns, searched
        self.first_hits: dict[str, list[tuple[int, int]]] = {}
        """A map from the name of each text to (rank, offset) pairs: the first search hit or highlight of each kind."""
        self.hits = 0
        self.sheet, self.highlights, self.picker = sheet, highlights, picker
        inputs = sheet.inputs
        self.answers = [a for a in (inputs.get("reference_answers") or []) if isinstance(a, str)]
        self.terms = query_terms(
            str(inputs[n])
            for n in ("question", "claim", "answer_claim", "nugget", "sentence")
            if inputs.get(n)
        )
        self.cited = _find_citable_names(inputs)
        self.parts: dict[bool, list[Content]] = {False: [], True: []}
        self.length = {False: 0, True: 0}
        self.places: dict[bool, set[int]] = {False: set(), True: set()}
        self.texts: list[Markable] = []
        self.matches = 0
        self.focus: int | None = None

    def text(self, name: str, *, beside: bool) -> None:
        """Add an input that is a single text."""
        raw = str(self.sheet.inputs[name])
        self._add(beside, _title(name, self.sheet.inputs))
        highlighted = self._in_answer(raw) if name in ("answer", "baseline_answer") else self._in_passage(raw)
        self._add_text(name, raw, highlighted, beside)

    def passages(self, name: str, *, beside: bool) -> None:
        """Add an input that is a list of passages."""
        passages: list[ShownPassage] = self.sheet.inputs[name]
        self._add(beside, Content.assemble((NAMES[name], NAME_STYLE), "\n"))
        for number, passage in enumerate(passages, 1):
            about = " · ".join(
                make_one_line(a, 100) for a in (passage.title, passage.date, passage.source) if a
            )
            mark = f"[{passage.marker or passage.place or number}]"
            if passage.marker and passage.place and str(passage.place) not in passage.marker:
                mark += f" no. {passage.place}"
            self._add(beside, Content.assemble((f"{mark} ", NAME_STYLE), (about, QUIET), "\n"))
            self._add_text(passage.passage_id, passage.text, self._in_passage(passage.text), beside)

    def _add(self, beside: bool, piece: Content) -> None:
        self.parts[beside].append(piece)
        self.length[beside] += len(piece.plain)

    def _add_text(self, name: str, raw: str, highlighted: list[tuple[int, int, str]], beside: bool) -> None:
        view, picker = lay_out(raw, self.columns), self.picker
        hits = [(a, b, SEARCH_STYLE) for a, b in find_text(raw, self.searched.strip())]
        self.hits += len(hits)
        self.first_hits[name] = _firsts([*hits, *highlighted])
        highlighted += hits
        self.places[beside] |= {
            self.length[beside] + view.find_offset(a) for a, _, style in highlighted if style in _RANKS
        }
        highlighted += [(a, b, EVIDENCE_STYLE) for n, a, b in self.sheet.state.spans if n == name]
        if picker is not None and picker.name == name:
            low = min(picker.start, picker.anchor if picker.anchor is not None else picker.start)
            highlighted.append((low, max(picker.end, low), CURSOR_STYLE))
        self.texts.append(Markable(name, raw, view, beside, self.length[beside]))
        part = self.sheet.part
        if name == "answer" and part is not None and part.span is not None:
            self.focus = self.length[beside] + view.find_offset(part.span[0])
        spans = [Span(*added, QUIET) for added in view.added]
        spans += [Span(view.find_offset(a), view.end(b), style) for a, b, style in highlighted]
        # Passages are untrusted. In Content with spans, [markup] in a text is not interpreted.
        self._add(beside, Content(view.text, spans))
        self._add(beside, Content("\n\n"))

    def _in_passage(self, raw: str) -> list[tuple[int, int, str]]:
        if not self.highlights:
            return []
        highlighted = [(a, b, TERM_STYLE) for a, b in find_terms(raw, self.terms)]
        highlighted += [(a, b, ANSWER_STYLE) for a, b in find_answers(raw, self.answers)]
        self.matches += len(highlighted)
        return highlighted

    def _in_answer(self, raw: str) -> list[tuple[int, int, str]]:
        """Return the ranges to highlight in an answer: the part to be labelled, the labelled parts, matches and citations."""
        highlighted: list[tuple[int, int, str]] = []
        done = [p for p in self.sheet.parts if p.span and p.status == "done"]
        highlighted += [(*p.span, QUIET) for p in done if p.span and p.position != self.sheet.position]
        if self.highlights:
            # In an answer with parts, the terms come from the part in question, which is marked as a whole.
            if not self.sheet.parts:
                highlighted += [(a, b, TERM_STYLE) for a, b in find_terms(raw, self.terms)]
                highlighted += [(a, b, ANSWER_STYLE) for a, b in find_answers(raw, self.answers)]
                self.matches += len(highlighted)
            # Only ids of passages on the screen are citations. Other numbers in brackets are ordinary text.
            highlighted += [(m.start, m.end, CITED_STYLE) for m in markers(raw, self.cited)]
        part = self.sheet.part
        if part is not None and part.span is not None:
            highlighted.append((*part.span, PART_STYLE))
        return highlighted


_RANKS = {SEARCH_STYLE: 0, ANSWER_STYLE: 1, TERM_STYLE: 2}


def _firsts(highlighted: Iterable[tuple[int, int, str]]) -> list[tuple[int, int]]:
    first: dict[int, int] = {}
    for start, _, style in highlighted:
        if style in _RANKS:
            rank = _RANKS[style]
            first[rank] = min(start, first.get(rank, start))
    return sorted(first.items())


def _find_citable_names(inputs: dict[str, Any]) -> set[str]:
    """Return the ids by which the passages on the screen can be cited."""
    lists: Iterable[Sequence[ShownPassage]] = (inputs[n] for n in LIST_INPUTS if inputs.get(n))
    return {p.marker for passages in lists for p in passages if p.marker}


def _title(name: str, inputs: dict[str, Any]) -> Content:
    parts: list[tuple[str, str]] = [(NAMES[name], NAME_STYLE)]
    if name == "passage":
        about = [inputs.get(n) for n in ("passage_title", "passage_date", "passage_source")]
        if about[0]:
            parts.append((f"  {make_one_line(str(about[0]), 200)}", "bold"))
        parts += [(f"  · {make_one_line(str(a), 100)}", QUIET) for a in about[1:] if a]
    return Content.assemble(*parts, "\n")


HEAD = (
    "question",
    "claim",
    "counter_claim",
    "options",
    "reference_answers",
    "sentence",
    "answer_claim",
    "nugget",
)
BOLD = ("question", "claim", "counter_claim", "sentence", "answer_claim", "nugget")
GOLD_STYLE = "bold $text on $warning-muted"
HERE_STYLE = "bold $text on $primary-muted"
# An answer can have thousands of sentences, and the head must leave rows for the text.
MOST_PARTS = 40


def head(task: Task, sheet: Sheet) -> Content:
    """Return the short texts that are shown above the body, such as the question, the claim or the reference answers."""
    inputs, rows = sheet.inputs, []
    for name in HEAD:
        value = inputs.get(name)
        if not value:
            continue
        label = NAMES[name]
        if name == "question" and inputs.get("question_date"):
            label += f" ({make_one_line(str(inputs['question_date']), 40)})"
        if isinstance(value, list):
            value = " · ".join(str(v) for v in value)
        elif isinstance(value, dict):
            value = "\n".join(f"{k}. {v}" for k, v in value.items())
        style = "bold" if name in BOLD else ""
        rows.append(Content.assemble((f"{label}  ", NAME_STYLE), (make_visible(str(value)).text, style)))
    for name, gold in task.gold_inputs.items():
        text = make_one_line(str(inputs[name]), 200)
        rows.append(
            Content.assemble((f" {gold}: {text} ", GOLD_STYLE), ("  shown, so the task is not blind", QUIET))
        )
    if len(sheet.parts) > 1:
        rows.append(_steps(task, sheet))
    return Content("\n").join(rows)


def _steps(task: Task, sheet: Sheet) -> Content:
    """Return the parts of the answer with their labels. A click on a part goes to that part."""
    keys = {value: key for labels in label_keys(task).values() for key, value in labels.items()}
    at = next(i for i, p in enumerate(sheet.parts) if p.position == sheet.position)
    kind = task.spec.unit.capitalize()
    first = max(0, min(at - MOST_PARTS // 2, len(sheet.parts) - MOST_PARTS))
    chips = [Content.styled(f"{kind} {at + 1} of {len(sheet.parts)} to label in this answer  ", NAME_STYLE)]
    for number, part in enumerate(sheet.parts[first : first + MOST_PARTS], first + 1):
        text = f" {number}{_mark(part, keys)} "
        chip = Content.styled(text, HERE_STYLE if part.position == sheet.position else QUIET)
        chips.append(chip.stylize(Style.from_meta({"@click": f"screen.go({part.position})"})))
    return Content("").join(chips)


def _mark(part: AnswerPart, keys: dict[str, str]) -> str:
    if part.status == "skipped":
        return "-"
    return "".join(keys.get(value, "✓") for value in part.answers.values()) or "·"
