"""Servers that hold an answer to the codes: how each is asked for it, and how what comes back is read.

A mask lets a model answer with nothing but one of the choices. Which field does that differs: llama.cpp takes a
`grammar`, vLLM `structured_outputs` (before 0.12 `guided_choice`), many a JSON schema with an enum, some only a bias on
single tokens, whose ids their `/tokenize` gives. Servers ignore fields that they do not know and answer 200, so that
only an answer which the model would not have given by itself shows that a mask holds.

The log-probabilities are from before the mask on some servers and from after it on others. Their ratios between the
codes are the model's own on both, so that they are shared out over the codes; what was outside is kept beside.
"""

import json
import re
from collections.abc import Mapping, Sequence

from judge.types import Json, TokenChoice

MASKS = ("grammar", "structured_outputs", "guided_choice", "json_schema", "logit_bias")
TOGETHER = ("grammar", "structured_outputs", "guided_choice")
"""Those that a server which knows none of them ignores, and that can be asked for in one call."""
QUESTION = "Say hello to me in one short sentence."
CHOICES = ("Q", "Z")
"""A greeting begins with neither."""
BIAS = 100
"""What OpenAI's API allows at most; more than any model's logits differ by."""
MOST_TOKENS = 32
_ANSWER = re.compile(r'\{\s*"answer"\s*:\s*"')


def fields(mask: str, choices: Sequence[str], ids: Mapping[str, int]) -> dict[str, Json]:
    """The fields of a request's body that ask for the mask; `ids` are the choices' tokens, for a bias."""
    listed = list(choices)
    if mask == "grammar":
        return {"grammar": "root ::= " + " | ".join(json.dumps(c, ensure_ascii=False) for c in listed)}
    if mask == "structured_outputs":
        return {"structured_outputs": {"choice": listed}}
    if mask == "guided_choice":
        return {"guided_choice": listed}
    if mask == "json_schema":
        form = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": listed}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        return {
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": form, "strict": True},
            }
        }
    return {"logit_bias": {str(ids[c]): BIAS for c in listed}}


def longest(mask: str) -> int:
    """The most tokens of a masked answer: a bias does not end it."""
    return 1 if mask == "logit_bias" else MOST_TOKENS


def held(
    mask: str, text: str, tokens: Sequence[TokenChoice] | None, choices: Sequence[str]
) -> tuple[str, TokenChoice] | None:
    """The choice that was answered and its position, alternatives cut to what they would have said there.

    None when the answer is none of the choices, or no position is known: then nothing held it.
    """
    if not tokens:
        return None
    whole = "".join(t.token for t in tokens)
    start = 0
    if mask == "json_schema":
        found = _ANSWER.search(whole)
        if found is None:
            return None
        start, end = found.end(), whole.find('"', found.end())
        said = whole[start : end if end >= 0 else len(whole)]
    else:
        said = text.strip()
        start = len(whole) - len(whole.lstrip())
    if said not in choices:
        return None
    at = 0
    for token in tokens:
        if at + len(token.token) > start:
            lead = token.token[: start - at]
            return said, _cut(token, lead)
        at += len(token.token)
    return None


def _cut(token: TokenChoice, lead: str) -> TokenChoice:
    """The position without what stands before the choice in its token, and what ends it; the others keep their mass."""

    def inner(text: str) -> str:
        rest = text[len(lead) :] if text.startswith(lead) else ""
        return rest.rstrip('"} \n')

    return TokenChoice(inner(token.token), [(inner(text), p) for text, p in token.alternatives])
