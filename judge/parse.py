"""Read the text of a complete reply as labels. Anything other than one clear verdict is left unscored.

Nothing is guessed. A label outside the set, two different verdicts and a missing JSON object each get a status
and a reason, and never a default label. `judge.accept` decides which replies are complete, and calls these
functions with their text.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from judge.prompts.load import Task
from judge.prompts.spec import Question
from judge.types import Answered, Json, Status

_AROUND = " \t\r\n\"'`*_()[]{}<>"
# These are stripped only after the label: a mark before it may negate it, as in !support.
_AFTER = _AROUND + ".:;,!"

_OPENING = re.compile(r'\{(?=\s*["}])')
"""Matches a brace that may begin a JSON object."""
_MOST_OPENINGS = 1000
"""The maximum number of such braces in a reply that begin no object. Each of them takes a pass over the text."""
_THINK = re.compile(r"\s*<think>")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed reply. It has labels only if `status` is ok.

    `reason` says why the reply has no label, or why its label has no distribution.
    """

    status: Status
    labels: tuple[Answered, ...] = ()
    reason: str | None = None


def after_reasoning(text: str) -> str | None:
    """Return the reply without the reasoning that some servers leave in it as `<think>...</think>`.

    Return None if the reply ends within the reasoning.
    """
    opened = _THINK.match(text)
    _, end, answer = text.rpartition("</think>")
    # Some templates put the opening tag into the prompt, so the reply has only the closing tag. In a JSON
    # answer, the tag is part of a quotation.
    if end and (opened or not text.lstrip().startswith("{")):
        return answer
    return None if opened else text


def parse_json(task: Task, text: str) -> Parsed:
    """Read a JSON answer, which may be alone, in a code block, or after prose."""
    questions = {q.field for q in task.spec.questions}
    try:
        objects = [o for o in _objects(text) if questions & o.keys()]
    except ValueError as error:
        return Parsed(Status.UNPARSED, reason=str(error))
    verdicts: list[dict[str, str]] = []
    problems: list[str] = []
    for candidate in objects:
        values, problem = _values(task, candidate)
        if problem:
            problems.append(problem)
            continue
        # A nested object with another verdict makes the reply ambiguous: nothing says which one the model means.
        inner = [v for v, bad in (_values(task, o) for o in _inside(candidate)) if not bad]
        for verdict in (values, *inner):
            if verdict not in verdicts:
                verdicts.append(verdict)
    if problems:
        return Parsed(Status.UNPARSED, reason=problems[0])
    # Some models answer twice, or think aloud in JSON. Choosing one of the answers would be a guess.
    if len(verdicts) > 1:
        return Parsed(Status.UNPARSED, reason=f"{len(verdicts)} different verdicts in one reply")
    if not verdicts:
        bare, _ = _find_one(text, lambda part: _bare(task, part))
        if bare is None:
            return Parsed(Status.UNPARSED, reason="no JSON object with the requested fields")
        verdicts = [{task.spec.questions[0].field: bare}]
    rationale = next((o["rationale"] for o in objects if isinstance(o.get("rationale"), str)), None)
    labels = tuple(Answered(f, v, rationale=rationale) for f, v in verdicts[0].items())
    return Parsed(Status.OK, labels)


class _Object(dict[str, Json]):
    """A JSON object that records which of its keys had several different values."""

    torn: frozenset[str] = frozenset()


def _object(pairs: list[tuple[str, Json]]) -> _Object:
    out = _Object(pairs)
    out.torn = frozenset(key for key, value in pairs if value != out[key])
    return out


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


def _objects(text: str) -> list[_Object]:
    """Return every outermost JSON object in the text. Raises ValueError if the text has too many braces."""
    objects, at, failed = [], 0, 0
    while (opening := _OPENING.search(text, at)) is not None:
        at = opening.start()
        try:
            value, end = _DECODER.raw_decode(text, at)
        except RecursionError:
            # The text is nested deeper than any answer, so its inner objects are ignored too.
            break
        except ValueError:
            failed += 1
            if failed > _MOST_OPENINGS:
                raise ValueError(f"more than {_MOST_OPENINGS:,} braces begin no JSON object") from None
            at += 1
            continue
        objects.append(value)
        at = end
    return objects


def the_object(text: str) -> Mapping[str, Json]:
    """Return the only JSON object in a reply. Raises ValueError if there is none or more than one."""
    answer = after_reasoning(text)
    objects = _objects(answer) if answer is not None else []
    if len(objects) != 1:
        raise ValueError(f"{len(objects) or 'no'} JSON object{'s' if len(objects) > 1 else ''} in the reply")
    return objects[0]


def _inside(value: Json) -> Iterator[_Object]:
    """Yield every object inside an object or a list, at any depth."""
    left = [value]
    while left:
        outer = left.pop()
        parts = outer.values() if isinstance(outer, dict) else outer
        left += [part for part in parts if isinstance(part, dict | list)]
        yield from (part for part in parts if isinstance(part, _Object))


def _values(task: Task, candidate: _Object) -> tuple[dict[str, str], str | None]:
    values = {}
    for question in task.spec.questions:
        if question.field not in candidate:
            return {}, f"field '{question.field}' is missing"
        if question.field in candidate.torn:
            return {}, f"'{question.field}' has two different values in one object"
        value, problem = read_value(question, candidate[question.field])
        if problem:
            return {}, problem
        values[question.field] = value
    return values, None


def read_value(question: Question, raw: Json) -> tuple[str, str | None]:
    """Return the label for a raw value, or a description of what is wrong with the value."""
    if question.level == "interval":
        if isinstance(raw, bool) or not isinstance(raw, int | float) or not abs(raw) < 1e300:
            return "", f"'{question.field}' is not a number: {raw!r:.80}"
        # Numbers have one spelling, because 4 and 4.0 are the same answer.
        return repr(int(raw)) if raw == int(raw) else repr(raw), None
    # Labels are strings, but for a label such as "true" a model often writes the JSON value true.
    if isinstance(raw, bool):
        raw = "true" if raw else "false"
    if question.many:
        if not isinstance(raw, list) or not all(isinstance(v, str) for v in raw):
            return "", f"'{question.field}' is not a list of strings: {raw!r:.80}"
        return json.dumps([v for v in raw if v.strip()], ensure_ascii=False), None
    if not isinstance(raw, str):
        return "", f"'{question.field}' is not a string: {raw!r:.80}"
    if question.level == "text":
        return (raw, None) if raw.strip() else ("", f"'{question.field}' is empty")
    # Models change the case of labels, which does not change their meaning.
    folded = raw.strip().casefold()
    for label in question.labels:
        if label.value.casefold() == folded:
            return label.value, None
    return "", f"the value of '{question.field}' is not one of the labels: {raw!r:.80}"


def _find_one(text: str, find_label: Callable[[str], str | None]) -> tuple[str | None, bool]:
    """Return the label that the text gives, and whether the text gives it only once.

    Some models repeat their answer on several lines. The label is None if a line gives another label or none.
    """
    if (whole := find_label(text)) is not None:
        return whole, True
    labels = {find_label(line) for line in text.splitlines() if line.strip(_AFTER)}
    return (next(iter(labels)) if len(labels) == 1 else None), False


def _bare(task: Task, text: str) -> str | None:
    """Return the label if a text consists only of a label, for models that cannot write JSON."""
    if len(task.spec.questions) != 1 or task.spec.questions[0].level not in ("nominal", "ordinal"):
        return None
    question = task.spec.questions[0]
    answer = re.sub(rf"^\s*(answer|{re.escape(question.field)})\s*[:=]", "", text, flags=re.IGNORECASE)
    value, problem = read_value(question, answer.lstrip(_AROUND).rstrip(_AFTER))
    return None if problem else value


def parse_choice(task: Task, text: str, labels: Sequence[str], codes: str) -> Parsed:
    """Read a one-character answer, or the label itself if there are no codes.

    The text may repeat the same answer on several lines, but it must not contain anything else.
    """
    field = task.spec.questions[0].field
    answer, is_alone = _find_one(text, lambda part: _read_one(task, part, labels, codes))
    if answer is not None:
        why_none = None if is_alone else "the answer is repeated, so it has no probabilities"
        return Parsed(Status.OK, (Answered(field, answer),), why_none)
    wanted = f"letters {', '.join(codes)}" if codes else f"labels {', '.join(labels)}"
    return Parsed(Status.UNPARSED, reason=f"the reply is not one of the {wanted}: {text!r:.80}")


def _read_one(task: Task, text: str, labels: Sequence[str], codes: str) -> str | None:
    """Return the label whose code or name is the whole text, or None if there is none."""
    code = text.lstrip(_AROUND).rstrip(_AFTER)
    if len(code) == 1 and code in codes:
        return labels[codes.index(code)]
    label = _bare(task, text)
    # A unit may offer only some of the task's labels.
    return label if label in labels else None


def derive(task: Task, labels: Sequence[Answered], gold: Mapping[str, str]) -> tuple[Answered, ...]:
    """Return the labels for the task's derived fields. They are looked up in tables in the task, by these
    labels and the unit's gold labels.
    """
    values = {a.field: a.value for a in labels}
    out = []
    for name, rule in task.spec.derive.items():
        key = values.get(rule.source)
        if rule.gold is not None:
            key = f"{key}|{gold[rule.gold]}" if rule.gold in gold else None
        value = rule.table.get(key) if key is not None else None
        if value is not None:
            out.append(Answered(name, value, derived_from=rule.source))
    return tuple(out)
