"""Find the label in a free-text reply. Such replies answer raw tasks, whose prompts do not request one of our
formats.

Patterns are literal text around the labels. Only white space and a bounded number of marks repeat, so the time is linear in
the reply, whatever a task file contains.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from judge.parse import Parsed, after_reasoning
from judge.prompts.load import Task
from judge.prompts.spec import LABEL, TEXT, WORDS
from judge.types import Answered, Reply, Status

_NEGATED = re.compile(
    r"(?:\b(?:not|never|no|cannot|without|neither|nor|(?:fail(?:s|ed)?|unable) to)|n['’]t)\s{1,3}(?:\w{1,15}\s{1,3})?$",
    re.IGNORECASE,
)
_BEFORE = 40
"""Number of characters before a label that are searched for a negation."""
_MARKS = r"[\s\"'“”‘’`*_(\[{]{0,32}"
"""Marks that may separate the words of a pattern and the label: `Answer: **(B)**`.

Their number is bounded. Otherwise a pattern that begins with a mark would search a reply of 25,000 marks from
each of them, which takes minutes.
"""
_ARTICLE = r"(?!['’]|\s+(?!(?:is|or|and|because|since|seems|as)\b)[a-z])"
"""Matches what follows a capital A or I that is an ordinary word: "A book" and "I think" are not answers, but
"A is right" is.
"""


def parse_free_text(task: Task, reply: Reply, labels: Sequence[str]) -> Parsed:
    """Parse the reply to a raw task. `labels` contains the labels that the unit can have.

    A reply with two different labels, with a negated label, or without a label is not an answer.
    """
    if reply.stop == "refusal":
        return Parsed(Status.REFUSED, reason=reply.text[:300] or "the model refused")
    text = after_reasoning(reply.text)
    # The part that is missing could have named another label.
    if text is None or reply.stop == "length":
        return Parsed(Status.TRUNCATED, reason="the reply was cut off at the token limit")
    question, answer = task.spec.questions[0], task.spec.answer
    if not question.labels:
        return _free(question.field, text.strip(), answer)
    given_labels: dict[str, str] = {}
    pattern = _pattern(tuple(labels), answer)
    for match in pattern.finditer(text):
        label = next(name for name in labels if _key(name) == _key(match["label"]))
        start = match.start("label")
        # With a pattern, the words before the label are those of the pattern.
        if answer == WORDS and _NEGATED.search(text[max(0, start - _BEFORE) : start]):
            return Parsed(Status.UNPARSED, reason=f"'{label}' is negated in the reply: {text!r:.80}")
        given_labels[label] = label
    # "support or refute" is no answer, and the first label that is mentioned is often only discussed.
    if len(given_labels) > 1:
        return Parsed(
            Status.UNPARSED,
            reason=f"{len(given_labels)} different labels in one reply: {', '.join(given_labels)}",
        )
    if not given_labels:
        where = "" if answer == WORDS else f" as '{answer}'"
        return Parsed(Status.UNPARSED, reason=f"none of the labels {', '.join(labels)}{where}: {text!r:.80}")
    return Parsed(Status.OK, (Answered(question.field, next(iter(given_labels))),))


def _free(field: str, text: str, answer: str) -> Parsed:
    """Return the complete reply or, if there is a pattern, the rest of the line after it."""
    if answer:
        before, _, after = answer.partition(TEXT)
        ends = _literal(after) if after.strip() else "$"
        lines = re.findall(rf"{_literal(before)}[^\S\n]*([^\n]*?){ends}", text, re.IGNORECASE | re.MULTILINE)
        answers = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
        if len(answers) > 1:
            return Parsed(Status.UNPARSED, reason=f"{len(answers)} different answers in one reply")
        if not answers:
            return Parsed(Status.UNPARSED, reason=f"no answer as '{answer}': {text!r:.80}")
        text = answers[0]
    if not text:
        return Parsed(Status.UNPARSED, reason=f"'{field}' is empty")
    return Parsed(Status.OK, (Answered(field, text),))


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...], answer: str) -> re.Pattern[str]:
    # The longest first: "not supported" must not match as "supported".
    names = "|".join(_name(label, answer == WORDS) for label in sorted(labels, key=len, reverse=True))
    # Underscores may surround a label, because they are Markdown for emphasis: _refute_.
    pattern = rf"(?<![^\W_])(?P<label>{names})(?![^\W_])"
    if answer == WORDS:
        return re.compile(pattern)
    before, _, after = answer.partition(LABEL)
    ends = rf"{_MARKS}{_literal(after)}" if after.strip() else ""
    return re.compile(rf"(?i:{_literal(before)}){_MARKS}{pattern}(?i:{ends})")


def _name(label: str, alone: bool) -> str:
    """Return a label's pattern. A single letter is matched with its case; any other label is matched in
    either case.
    """
    if len(label) == 1:
        return label + (_ARTICLE if alone and label in "AI" else "") if label.isalnum() else re.escape(label)
    return "(?i:" + r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", label)) + ")"


def _key(text: str) -> str:
    return text if len(text) == 1 else re.sub(r"[\s_-]+", " ", text).casefold()


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())
