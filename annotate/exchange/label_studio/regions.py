"""What a person marked in Label Studio, as answers, evidence and a note of the task; checked without its SDK.

Offsets of evidence are code points of the text that was shown, as the page of server 1.23 counts them. Other
programs count UTF-16 units, so a span that holds its own words only when counted that way is taken so; one
that holds them in neither is reported.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from annotate.exchange.label_studio.config import EVIDENCE, MARK, NOTE, ConfigLayout
from judge.errors import BadInput
from judge.prompts.spec import Question
from judge.store.study import dumps

Span = tuple[str, int, int]


@dataclass(slots=True)
class Marked:
    """The `result` of one annotation. `problems` name what could not be taken over; the rest stands."""

    answers: dict[str, str] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    note: str | None = None
    problems: list[str] = field(default_factory=list)


def read_result(layout: ConfigLayout, result: Any, text: str) -> Marked:
    """The regions of one annotation; `text` is the main input as it was shown.

    Raises BadInput, its field being the control, for a control, type, label or number that the task does
    not have, and for two answers to one question.
    """
    if not isinstance(result, list):
        raise BadInput("must be a list of regions", field="result")
    out = Marked()
    for number, region in enumerate(result, 1):
        if not isinstance(region, Mapping):
            raise BadInput(f"region {number} must be an object", field="result")
        if region.get("type") == "relation":
            out.problems.append(f"region {number}: a relation between spans, which no task has: left out")
            continue
        name, value = region.get("from_name"), region.get("value")
        if not isinstance(name, str) or not isinstance(value, Mapping):
            raise BadInput(f"region {number} needs from_name (text) and value (an object)", field="result")
        if name == EVIDENCE and layout.evidence:
            _need_type(region, "labels", name)
            _add_span(layout, value, text, number, out)
        elif name == NOTE:
            _need_type(region, "textarea", name)
            texts = [t.strip() for t in _texts(value, name) if t.strip()]
            out.note = "\n".join(filter(None, [out.note, *texts])) or None
        elif name in layout.fields:
            _add_answer(layout.fields[name], region, value, out)
        else:
            known = ", ".join([*layout.fields, EVIDENCE, NOTE])
            raise BadInput(f"the task has no such control; there are: {known}", field=name)
    out.spans = sorted(set(out.spans))
    return out


def _need_type(region: Mapping[str, Any], wanted: str, name: str) -> None:
    if region.get("type") != wanted:
        raise BadInput(f"type is '{region.get('type')}', and must be '{wanted}'", field=name)


def _add_answer(question: Question, region: Mapping[str, Any], value: Mapping[str, Any], out: Marked) -> None:
    name = question.field
    if question.level == "interval":
        _need_type(region, "number", name)
        number = value.get("number")
        if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
            raise BadInput(f"value.number is {number!r}, and must be a number", field=name)
        answer = dumps(int(number) if float(number).is_integer() else number)
    elif question.level == "text":
        _need_type(region, "textarea", name)
        texts = _texts(value, name)
        answer = dumps(texts) if question.many else "\n".join(texts)
    else:
        _need_type(region, "choices", name)
        choices = value.get("choices")
        if not isinstance(choices, list) or len(choices) != 1:
            raise BadInput(f"value.choices is {choices!r}, and must be one label in a list", field=name)
        answer = choices[0]
        domain = [label.value for label in question.labels]
        if answer not in domain:
            raise BadInput(f"'{answer}' is no label: {', '.join(domain)}", field=name)
    if name in out.answers:
        raise BadInput("there are two answers to this question", field=name)
    out.answers[name] = answer


def _texts(value: Mapping[str, Any], name: str) -> list[str]:
    texts = value.get("text")
    if isinstance(texts, str):
        texts = [texts]
    if not isinstance(texts, list) or not all(isinstance(t, str) for t in texts):
        raise BadInput("value.text must be text, or a list of texts", field=name)
    return texts


def _add_span(layout: ConfigLayout, value: Mapping[str, Any], text: str, number: int, out: Marked) -> None:
    start, end, labels = value.get("start"), value.get("end"), value.get("labels")
    if labels != [MARK]:
        raise BadInput(f"value.labels is {labels!r}, and must be ['{MARK}']", field=EVIDENCE)
    start, end = _offset(start), _offset(end)
    if start is None or end is None:
        raise BadInput("value.start and value.end must be whole numbers", field=EVIDENCE)
    said = value.get("text")
    found = find_span(text, start, end, said if isinstance(said, str) else None)
    if found is None:
        what = f"'{said[:60]}'" if isinstance(said, str) else "its words"
        out.problems.append(
            f"region {number} ({EVIDENCE}): {start} to {end} of the {len(text)} code points of {layout.main} are not {what}: span left out"
        )
    else:
        out.spans.append((layout.main, *found))


def _offset(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal():  # as older versions wrote them
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def find_span(text: str, start: int, end: int, said: str | None) -> tuple[int, int] | None:
    """The span in code points: as counted, else counted in UTF-16 units; None when neither holds `said`."""
    if said is None:
        return (start, end) if 0 <= start < end <= len(text) else None
    wanted = said.split()
    if 0 <= start < end <= len(text) and text[start:end].split() == wanted:
        return start, end
    units = text.encode("utf-16-le", "surrogatepass")
    if not 0 <= 2 * start < 2 * end <= len(units):
        return None
    try:
        first = len(units[: 2 * start].decode("utf-16-le"))
        inside = units[2 * start : 2 * end].decode("utf-16-le")
    except UnicodeDecodeError:  # the offset cuts a character in two
        return None
    return (first, first + len(inside)) if inside.split() == wanted else None
