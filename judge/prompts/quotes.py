"""Check the quotes that a model gives as evidence for a label.

A quote must occur word for word in the passages that the model was shown.
"""

import re
from collections.abc import Sequence

from judge.prompts.inputs import SOURCES
from judge.types import Message

_BLOCK = re.compile(
    rf"^\[\[(?:{'|'.join(SOURCES)})(?::\S+)? (\w+)\]\]\n(.*?)\n\[\[/\1\]\]$", re.DOTALL | re.MULTILINE
)
_ELLIPSIS = re.compile(r"\s*(?:\[\s*)?(?:\.\.\.|…)(?:\s*\])?\s*")
# Models may change the kind of quotation marks and dashes when they copy a text.
_ALIKE = str.maketrans({"“": '"', "”": '"', "„": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})
_AROUND = " \"'`"


def find_shown_passages(messages: Sequence[Message]) -> list[str]:
    """Return the passages of the unit: those in the last user message that has passages.

    Passages in earlier messages belong to few-shot examples. The model's own turns are ignored, because they
    might imitate passages.
    """
    for message in reversed([message for message in messages if message.role == "user"]):
        if passages := [match[2] for match in _BLOCK.finditer(message.content)]:
            return passages
    return []


def is_quoted(quote: str, passages: Sequence[str]) -> bool:
    """Return whether one of the passages contains the words of the quote, in the same order.

    An ellipsis in the quote may stand for omitted words. Case, white space, and the kinds of quotation marks
    and dashes are ignored. An empty quote and `none` count as correct.
    """
    # Models put quotes in quotation marks and omit words in the middle.
    parts = [part for text in _ELLIPSIS.split(_normalise(quote)) if (part := text.strip(_AROUND))]
    # The prompt allows `none` if no words of the passages decide the label.
    return parts in ([], ["none"]) or any(_are_in_order(parts, _normalise(text)) for text in passages)


def _normalise(text: str) -> str:
    return " ".join(text.translate(_ALIKE).casefold().split())


def _are_in_order(parts: Sequence[str], text: str) -> bool:
    start = 0
    for part in parts:
        at = text.find(part, start)
        if at < 0:
            return False
        start = at + len(part)
    return True
