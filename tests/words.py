"""How many words a sentence of the report has, names and commands counted as one each."""

from __future__ import annotations

import re

MOST = 66
COMMAND = re.compile(
    r"\b(?:annotate|judge) (?:batches|run|split|compare|conflicts|improve)\b(?: (?!or\b)[^\s.;,()]+(?: <> '[^']*')?)*"
)


def count(sentence: str) -> int:
    """Words of a sentence. A filter in brackets, a quoted name and a command to type are one word each."""
    text = re.sub(r"\(those with [^()]*\)", "FILTER", sentence)
    text = COMMAND.sub("COMMAND", text)
    return len(re.sub(r"'[^']*'", "NAME", text).split())
