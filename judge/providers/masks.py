"""Write the request fields that restrict an answer to the choices (masks), and parse the answer.

Each kind of server has its own request field. llama.cpp has `grammar`, vLLM has `structured_outputs`
(`guided_choice` before version 0.12), and many servers accept a JSON schema with an enum. Some servers only
accept a bias on single tokens. Their endpoint `/tokenize` returns the ids of these tokens. Servers ignore
unknown fields and still return status 200. A mask is therefore considered to work only if the answer is one
that the model would not have given without the mask.

Some servers return log-probabilities computed before the mask is applied, and others return those computed
afterwards. In both cases, the ratios between the codes are those of the model, so the probabilities are
normalised over the codes. The probability mass outside the codes is stored separately.
"""

import json
import re
from collections.abc import Mapping, Sequence

from judge.types import Json, TokenChoice

MASKS = ("grammar", "structured_outputs", "guided_choice", "json_schema", "logit_bias")
QUESTION = "Say hello to me in one short sentence."
CHOICES = ("Q", "Z")
"""The choices in the probe: two letters that no greeting begins with."""
BIAS = 100
"""The largest bias that OpenAI's API accepts. It exceeds any difference between two logits of a model."""
MOST_TOKENS = 32
_ANSWER = re.compile(r'\{\s*"answer"\s*:\s*"')


def fields(mask: str, choices: Sequence[str], ids: Mapping[str, int]) -> dict[str, Json]:
    """Return the fields in the request body that request the mask.

    `ids` maps the choices to their token ids, which a logit bias needs.
    """
    listed = list(choices)
    # Servers ignore the fields of other servers and still answer 200, so each one needs its own field.
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
    """Return the maximum number of tokens in a masked answer.

    For a logit bias this is 1, because a bias, unlike the other masks, does not stop the model after the
    choice.
    """
    return 1 if mask == "logit_bias" else MOST_TOKENS


def find_choice(
    mask: str, text: str, tokens: Sequence[TokenChoice] | None, choices: Sequence[str]
) -> tuple[str, TokenChoice] | None:
    """Return the model's choice, and the token that has the probability of this choice.

    Any text around the choice is removed from the token and its alternatives. Return None if the answer is
    not one of the choices, so that the mask did not work, or if the server returned no token probabilities.
    """
    if not tokens:
        return None
    whole = "".join(t.token for t in tokens)
    start = 0
    if mask == "json_schema":
        opening = _ANSWER.search(whole)
        if opening is None:
            return None
        start, end = opening.end(), whole.find('"', opening.end())
        # A truncated answer has no closing quote.
        said = whole[start : end if end >= 0 else len(whole)]
    else:
        said = text.strip()
        start = len(whole) - len(whole.lstrip())
    if said not in choices:
        return None
    at = 0
    for token in tokens:
        # The first token of the choice carries its probability. Any text before it is JSON or white space.
        if at + len(token.token) > start:
            lead = token.token[: start - at]
            return said, _truncate_token(token, lead)
        at += len(token.token)
    return None


def _truncate_token(token: TokenChoice, lead: str) -> TokenChoice:
    """Return the token position without the text around the choice, such as quotation marks and braces.

    `lead` is the text before the choice. The probabilities do not change.
    """

    def inner(text: str) -> str:
        rest = text[len(lead) :] if text.startswith(lead) else ""
        return rest.rstrip('"} \n')

    return TokenChoice(inner(token.token), [(inner(text), p) for text, p in token.alternatives])
