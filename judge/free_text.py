"""Find the label in a free-text reply to a raw task.

A raw task is sent exactly as written in its file, so its prompt does not request one of our reply formats.

A pattern is literal text around the label. Only white space and a bounded number of punctuation marks can
repeat, so matching takes linear time for every task file.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from judge.parse import Parsed
from judge.prompts.load import Task
from judge.prompts.spec import LABEL, TEXT, WORDS
from judge.types import Answered, Status

_NEGATED = re.compile(
    r"(?:\b(?:not|never|no|cannot|without|neither|nor|(?:fail(?:s|ed)?|unable) to)|n['’]t)\s{1,3}(?:\w{1,15}\s{1,3})?$",
    re.IGNORECASE,
)
_BEFORE = 40
"""Number of characters before a label that are searched for a negation."""
_MARKS = r"[\s\"'“”‘’`*_(\[{]{0,32}"
"""Matches the punctuation marks that may separate a pattern from the label: `Answer: **(B)**`.

Their number is bounded. Otherwise a pattern that begins with a mark would take minutes on a reply of 25,000
marks, because the search would start again at each mark.
"""
_ARTICLE = r"(?!['’]|\s+(?!(?:is|or|and|because|since|seems|as)\b)[a-z])"
"""Excludes a capital A or I that is an ordinary word: "A book" and "I think" are not answers, but "A is
right" is an answer.
"""


def parse_free_text(task: Task, text: str, labels: Sequence[str]) -> Parsed:
    """Read the text of a complete reply to a raw task. `labels` contains the labels that the unit can have.

    A reply with two different labels, with a negated label, or without a label is not an answer.
    """
    question, answer = task.spec.questions[0], task.spec.answer
    if not question.labels:
        return _free(question.field, text.strip(), answer)
    given_labels: dict[str, str] = {}
    pattern = _pattern(tuple(labels), answer)
    for match in pattern.finditer(text):
        label = next(name for name in labels if _key(name) == _key(match["label"]))
        start = match.start("label")
        # With a pattern, the words before the label belong to the pattern and cannot negate it.
        if answer == WORDS and _NEGATED.search(text[max(0, start - _BEFORE) : start]):
            return Parsed(Status.UNPARSED, reason=f"'{label}' is negated in the reply: {text!r:.80}")
        given_labels[label] = label
    # "support or refute" is not an answer, and a label that is mentioned first is often only discussed.
    if len(given_labels) > 1:
        return Parsed(
            Status.UNPARSED,
            reason=f"{len(given_labels)} different labels in one reply: {', '.join(given_labels)}",
        )
    if not given_labels:
        where = "" if answer == WORDS else f" in the form '{answer}'"
        return Parsed(
            Status.UNPARSED,
            reason=f"the reply has none of the labels {', '.join(labels)}{where}: {text!r:.80}",
        )
    return Parsed(Status.OK, (Answered(question.field, next(iter(given_labels))),))


def _free(field: str, text: str, answer: str) -> Parsed:
    """Return the whole reply or, if the task has a pattern, the rest of the line after the pattern."""
    if answer:
        answers = list(dict.fromkeys(_find_texts(text, answer)))
        if len(answers) > 1:
            return Parsed(Status.UNPARSED, reason=f"{len(answers)} different answers in one reply")
        if not answers:
            return Parsed(
                Status.UNPARSED, reason=f"the reply has no answer in the form '{answer}': {text!r:.80}"
            )
        text = answers[0]
    if not text:
        return Parsed(Status.UNPARSED, reason=f"'{field}' is empty")
    return Parsed(Status.OK, (Answered(field, text),))


def _find_texts(text: str, answer: str) -> Iterator[str]:
    """Yield the texts in the place of `{text}` in the pattern. Each of them is on one line.

    The two ends of the pattern are searched for one after the other. A single regular expression would search for
    the end again at every character.
    """
    before, _, after = answer.partition(TEXT)
    opening = re.compile(_literal(before) or "^", re.IGNORECASE | re.MULTILINE)
    closing = re.compile(_literal(after) or "$", re.IGNORECASE | re.MULTILINE)
    at = 0
    while at <= len(text) and (begin := opening.search(text, at)) is not None:
        line_end = text.find("\n", begin.end())
        line_end = len(text) if line_end < 0 else line_end
        end = closing.search(text, begin.end(), line_end)
        if end is not None and (given := text[begin.end() : end.start()].strip()):
            yield given
        # An end without words matches an empty text, so the search goes on behind it.
        at = max(line_end if end is None else end.end(), begin.end() + 1)


@lru_cache(maxsize=256)
def _pattern(labels: tuple[str, ...], answer: str) -> re.Pattern[str]:
    # Longer labels come first, because "not supported" must not match as "supported".
    names = "|".join(_name(label, answer == WORDS) for label in sorted(labels, key=len, reverse=True))
    # Underscores may surround a label, because they are Markdown for emphasis: _refute_.
    pattern = rf"(?<![^\W_])(?P<label>{names})(?![^\W_])"
    if answer == WORDS:
        return re.compile(pattern)
    before, _, after = answer.partition(LABEL)
    ends = rf"{_MARKS}{_literal(after)}" if after.strip() else ""
    return re.compile(rf"(?i:{_literal(before)}){_MARKS}{pattern}(?i:{ends})")


def _name(label: str, alone: bool) -> str:
    """Return the regular expression for a label. A single letter is case-sensitive; any other label is not."""
    if len(label) == 1:
        return label + (_ARTICLE if alone and label in "AI" else "") if label.isalnum() else re.escape(label)
    return "(?i:" + r"[\s_-]+".join(re.escape(word) for word in re.split(r"[\s_-]+", label)) + ")"


def _key(text: str) -> str:
    return text if len(text) == 1 else re.sub(r"[\s_-]+", " ", text).casefold()


def _literal(text: str) -> str:
    return r"\s+".join(re.escape(word) for word in text.split())
