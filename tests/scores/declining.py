"""What can be read off an answer's text without a judge: that it is empty, that it declines.

A baseline, not a label: a judge that does no better than these phrases is not worth its calls.
"""

import re
from collections.abc import Iterable
from typing import Literal

import numpy as np

from judge.errors import BadInput
from judge.stats.ratings import FloatArray

Where = Literal["anywhere", "start"]

DECLINES = (
    r"i (?:do not|don't|dont) (?:know|have)",
    r"i(?: am|'m) (?:not sure|unable|not able|sorry)",
    r"i (?:cannot|can't|could not|couldn't) (?:answer|find|determine|provide|say)",
    r"(?:is|are|was|were) (?:not|n't) (?:present|provided|mentioned|given|stated|specified|available|found|enough|sufficient)",
    r"(?:does|do|did) (?:not|n't) (?:contain|provide|mention|give|state|specify|include|answer|directly answer|say)",
    r"(?:isn't|aren't|wasn't|weren't) (?:present|provided|mentioned|given|stated|specified|available|found|enough)",
    r"(?:doesn't|don't|didn't) (?:contain|provide|mention|give|state|specify|include|answer|say)",
    r"(?:no|not enough|insufficient) (?:information|context|evidence|answer)",
    r"none of the (?:contexts?|passages?|documents?)",
    r"(?:cannot|can't|can not) be (?:answered|determined|found)",
    r"unable to (?:answer|find|determine|provide|generate)",
    r"unanswerable",
)
"""What an answer that declines says, as regular expressions on lower-cased text."""

_DECLINES = re.compile("|".join(rf"\b(?:{phrase})\b" for phrase in DECLINES))
# How far into an answer its start reaches, in characters.
_START = 60


def normalised(text: str) -> str:
    """Lower case, straight apostrophes, single spaces: what the phrases are matched against."""
    return " ".join(text.replace("’", "'").lower().split())


def declines(texts: Iterable[str | None], where: Where = "start") -> FloatArray:
    """1 where an answer says that it does not answer, 0 where it does not say so, nan for None; empty texts decline.

    `anywhere`: one of DECLINES is in the text; `start`: one begins in its first 60 characters, so that an answer
    that goes on to say what it does not know is not counted.
    """
    if where not in ("anywhere", "start"):
        raise BadInput(f"unknown place '{where}'; there are anywhere and start")
    found = []
    for text in texts:
        if not isinstance(text, str):
            found.append(np.nan)
            continue
        plain = normalised(text)
        match = _DECLINES.search(plain)
        near = match is not None and (where == "anywhere" or match.start() < _START)
        found.append(float(near or not plain))
    return np.array(found, dtype=np.float64)
