"""Check quotes given as evidence for a label: a quote must occur, word for word, in the texts that the model
was shown.
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


def shown_passages(messages: Sequence[Message]) -> list[str]:
    """Return the passages in the last message that shows any. These are the unit's own; passages in examples
    come earlier.

    The model's own turns are ignored, whatever they imitate.
    """
    for message in reversed([message for message in messages if message.role == "user"]):
        if passages := [match[2] for match in _BLOCK.finditer(message.content)]:
            return passages
    return []


def is_quoted(quote: str, passages: Sequence[str]) -> bool:
    """Return whether the words of the quote are in one of the passages. Dots may stand for omitted words, but
    the order must be the same.

    Case, white space, and the kinds of quotation marks and dashes are ignored. An empty quote, or `none`, counts as correct.
    """
    # Models put a quote into quotation marks and leave out words in the middle.
    parts = [part for text in _ELLIPSIS.split(_plain(quote)) if (part := text.strip(_AROUND))]
    # The prompt allows `none` where no words of the passages decide.
    return parts in ([], ["none"]) or any(_in_order(parts, _plain(text)) for text in passages)


def _plain(text: str) -> str:
    return " ".join(text.translate(_ALIKE).casefold().split())


def _in_order(parts: Sequence[str], text: str) -> bool:
    start = 0
    for part in parts:
        at = text.find(part, start)
        if at < 0:
            return False
        start = at + len(part)
    return True
