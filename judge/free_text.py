"""Find the label in a reply in free text: what a raw task, whose prompt asks for no format of ours, gets.

Patterns are literal text around the labels, with no repetition but of white space and marks, so that the time is linear in the
reply, whatever a task file says.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from judge.parse import Parsed, after_reasoning
from judge.prompts.load import Task
from judge.prompts.spec import LABEL, TEXT, WORDS
from judge.types import Answered, Reply, Status

_NEGATED = re.compile(r"(?:\b(?:not|never|no)|n['’]t)\s{1,3}(?:\w{1,15}\s{1,3})?$", re.IGNORECASE)
_BEFORE = 40
"""Characters before a label in which a negation is looked for."""
_MARKS = r"[\s\"'“”‘’`*_(\[{]*"
"""What may stand between the words of a pattern and the label: `Answer: **(B)**`."""
_ARTICLE = r"(?!['’]|\s+(?!(?:is|or|and|because|since|seems|as)\b)[a-z])"
"""After a capital A or I, which are words too: "A book", "I think". "A is right" is the letter."""


def parse_free_text(task: Task, reply: Reply, labels: Sequence[str]) -> Parsed:
    """Parse the reply to a raw task; `labels` are those that the unit can have.

    Two different labels, a negated one, and none are no answer.
    """
    if reply.stop == "refusal":
        return Parsed(Status.REFUSED, reason=reply.text[:300] or "the model refused")
    text = after_reasoning(reply.text)
    if text is None or reply.stop == "length":
        return Parsed(Status.TRUNCATED, reason="the reply was cut off at the token limit")
    question, answer = task.spec.questions[0], task.spec.answer
    if not question.labels:
        return _free(question.field, text.strip(), answer)
    found: dict[str, str] = {}
    pattern = _pattern(tuple(labels), answer)
    for match in pattern.finditer(text):
        label = next(name for name in labels if _key(name) == _key(match["label"]))
        start = match.start("label")
        if answer == WORDS and _NEGATED.search(text[max(0, start - _BEFORE) : start]):
            return Parsed(Status.UNPARSED, reason=f"'{label}' is negated in the reply: {text!r:.80}")
        found[label] = label
    if len(found) > 1:
        return Parsed(
            Status.UNPARSED, reason=f"{len(found)} different labels in one reply: {', '.join(found)}"
        )
    if not found:
        where = "" if answer == WORDS else f" as '{answer}'"
        return Parsed(Status.UNPARSED, reason=f"none of the labels {', '.join(labels)}{where}: {text!r:.80}")
    return Parsed(Status.OK, (Answered(question.field, next(iter(found))),))


def _free(field: str, text: str, answer: str) -> Parsed:
    """The whole reply, or the rest of the line where the pattern stands."""
    if answer:
        before, _, after = answer.partition(TEXT)
        ends = _literal(after) if after.strip() else "$"
        lines = re.findall(rf"{_literal(before)}[^\S\n]*([^\n]*?){ends}", text, re.IGNORECASE | re.MULTILINE)
        found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if len(found) > 1:
            return Parsed(Status.UNPARSED, reason=f"{len(found)} different answers in one reply")
        if not found:
            return Parsed(Status.UNPARSED, reason=f"no answer as '{answer}': {text!r:.80}")
        text = found[0]
    if not text:
        return Parsed(Status.UNPARSED, reason=f"'{field}' is empty")
    return Parsed(Status.OK, (Answered(field, text),))


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...], answer: str) -> re.Pattern[str]:
    # The longest first: of "not supported" and "supported" the former is meant where it stands.
    names = "|".join(_name(label, answer == WORDS) for label in sorted(labels, key=len, reverse=True))
    found = rf"(?<![^\W_])(?P<label>{names})(?![^\W_])"
    if answer == WORDS:
        return re.compile(found)
    before, _, after = answer.partition(LABEL)
    ends = rf"{_MARKS}{_literal(after)}" if after.strip() else ""
    return re.compile(rf"(?i:{_literal(before)}){_MARKS}{found}(?i:{ends})")


def _name(label: str, alone: bool) -> str:
    """A label's words. A single letter is taken as it is written, any other label in either case."""
    if len(label) == 1:
        return label + (_ARTICLE if alone and label in "AI" else "") if label.isalnum() else re.escape(label)
    return "(?i:" + r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", label)) + ")"


def _key(text: str) -> str:
    return text if len(text) == 1 else re.sub(r"[\s_-]+", " ", text).casefold()


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())
