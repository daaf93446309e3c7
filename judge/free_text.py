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
from judge.prompts.spec import ALONE, LABEL, TEXT, WORDS
from judge.types import Answered, Status

_NEGATED = re.compile(
    r"(?:\b(?:not|never|no|cannot|without|neither|nor|(?:fail(?:s|ed)?|unable) to)|n['’]t)\s{1,3}(?:\w{1,15}\s{1,3})?$",
    re.IGNORECASE,
)
_OPENING_OF_REST = 80
"""Number of characters after an answer that are searched for a hedge or a denial."""
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


_AROUND = " \t\r\n\"'“”‘’`*_#()[]{}<>.,:;!…$\\"
"""Punctuation and Markdown that may surround an answer."""
_TAG = re.compile(
    r"</?(?:b|i|em|strong|u|p|br|code|span|answer|verdict|label|final)>|\\boxed|\\text", re.IGNORECASE
)
"""Markup that does not change an answer. Any other element, such as <del>, may negate it."""
_THOUGHT = re.compile(r"\A\s{0,32}<think>.*?</think>", re.DOTALL | re.IGNORECASE)
_BULLET = re.compile(r"\s{0,32}(?:[-•]|\d{1,2}[.)])\s{1,8}")
_OPENINGS = re.compile(
    r"(?:(?:so|thus|therefore|yes|no|(?:based on|according to)\s[^,\n]{1,60}),\s{1,3})?(?:the\s{1,3}|this\s{1,3}|my\s{1,3})?(?:final\s{1,3}|correct\s{1,3}|right\s{1,3})?"
    r"(?:answer|verdict|claim|statement|label|choice|option|response|output|prediction|conclusion|it|this|that)"
    r"(?:[\s\"'`*_]{0,8}[:=]|\s[-–—]|\s{1,3}is\b|['’]s\b)?[\s\"'`*_:]{1,8}(?:option\s{1,3}|(?:therefore|indeed|clearly)\s{1,3}|that it is\s{1,3})?",
    re.IGNORECASE,
)
"""Matches the words that may come before an answer: "The claim is", "Answer:", "So, the final answer is option"."""
_SENTENCE_END = re.compile(
    r"(?<=[.!:;)\]*])\s{1,3}|\n|\s[-–—]\s|,?\s{1,3}(?=(?:because|since|based on|according to)\b)|,\s{1,3}(?=as\b)",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r"\W{0,8}(?:but|however|though|although|only|partly|mostly|unless|except)\b", re.IGNORECASE
)
_HEDGE = re.compile(
    r"\b(?:probably|possibly|maybe|perhaps|partially|partly|half|unsure|uncertain|not sure|i think|i believe|i guess)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(r"\A\W{0,8}(?:not|no)\b|\b(?:untrue|incorrect|wrong)\b", re.IGNORECASE)
"""Words that deny what was just said. They are looked for only after the label `true`: a claim that is false is wrong."""
_MARKED_LINE = re.compile(
    r"^\W{0,8}(?:final\s{1,3})?(?:answer|verdict)\W{0,8}[:=].*$", re.IGNORECASE | re.MULTILINE
)


def read_alone(text: str, labels: Sequence[str]) -> str | None:
    """Return the label that a text gives as its answer, or None if the text is not an answer.

    This is the rule for outputs of systems under test, whether they were imported or generated here. The first
    sentence, or a line that begins with "Answer:" or "Verdict:", must be only the label. Case, punctuation, Markdown and
    words such as "The claim is" do not matter. A negated label is not an answer, and neither is a text that
    names two labels. docs/answers-read.md has examples.
    """
    text = _TAG.sub(" ", _THOUGHT.sub("", text))
    answer = _only(text, labels)
    if answer is not None:
        return answer
    head, rest = _split_first(text)
    answer = _only(head, labels)
    if answer is None:
        lines = {_only(line, labels) for line in _MARKED_LINE.findall(text)}
        answer, rest = (lines.pop() if len(lines) == 1 else None), text
    if answer is None or _CONTRAST.match(rest) or _HEDGE.search(rest[:_OPENING_OF_REST]):
        return None
    if _key(answer).casefold() == "true" and _DENIAL.search(rest[:_OPENING_OF_REST]):
        return None
    # The rest may explain the answer, but a text that also names another label, or negates this one, is not clear.
    for match in _pattern(tuple(labels), WORDS).finditer(rest):
        before = rest[max(0, match.start("label") - _BEFORE) : match.start("label")]
        if _key(match["label"]) != _key(answer) or _NEGATED.search(before):
            return None
    return answer


def _only(text: str, labels: Sequence[str]) -> str | None:
    """Return the label if a text consists of nothing else than a label, after the words of `_OPENINGS`."""
    # A mark before the label may negate it, as in !true.
    bare = text.rstrip(_AROUND).lstrip(_AROUND.replace("!", ""))
    opening = _OPENINGS.match(bare)
    after = bare[opening.end() :].rstrip(_AROUND).lstrip(_AROUND.replace("!", "")) if opening else bare
    bullet = _BULLET.match(bare)
    for part in (bare, after, bare[bullet.end() :] if bullet else bare):
        # A single letter is compared without case too, because nothing else is in this text.
        for label in labels:
            if _key(label).casefold() == _key(part).casefold():
                return label
    return None


def _split_first(text: str) -> tuple[str, str]:
    """Return the first sentence or line of a text, and the rest."""
    text = text.strip()
    end = _SENTENCE_END.search(text)
    return (text, "") if end is None else (text[: end.start()], text[end.end() :])


def parse_free_text(task: Task, text: str, labels: Sequence[str]) -> Parsed:
    """Read the text of a complete reply to a raw task. `labels` contains the labels that the unit can have.

    A reply with two different labels, with a negated label, or without a label is not an answer.
    """
    question, answer = task.spec.questions[0], task.spec.answer
    if not question.labels:
        return _free(question.field, text.strip(), answer)
    if answer == ALONE:
        label = read_alone(text, labels)
        if label is None:
            return Parsed(
                Status.UNPARSED,
                reason=f"the reply is not one of the labels {', '.join(labels)}: {text!r:.80}",
            )
        return Parsed(Status.OK, (Answered(question.field, label),))
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
