"""The optional features of chat completions, and the short probes that show which features a server supports.

Each probe uses one feature and nothing else that a server might reject, so no probe depends on the result of
another. All probes can be sent at the same time, so a new server costs only one round trip. If the number of
concurrent calls is limited, some probes have to wait. A probe that has waited is sent only if it is still
needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge.accept import CUT
from judge.providers import chat, http, masks
from judge.types import Message, Reply, Request

CODES, ALTERNATIVES, PLAIN = "codes", "alternatives", "plain"
SAMPLING = ("temperature", "seed")
"""Sampling parameters that some servers reject. The probes for them have the same names."""
_MASK = "mask "
_ASK = "Which letter comes first in the alphabet?"
_LETTER = {"letter": {"type": "string", "enum": ["A", "B"]}}
_SCHEMA = {"type": "object", "properties": _LETTER, "required": ["letter"], "additionalProperties": False}
_JSON_TOKENS = 64


@dataclass(frozen=True, slots=True)
class FeatureQuestion:
    """A probe that tests the feature `name`. `dialect` is a dialect that uses this feature."""

    name: str
    request: Request
    dialect: chat.Dialect

    @property
    def mask(self) -> str | None:
        """The mask that this probe tests, or None if it tests another feature."""
        return self.name.removeprefix(_MASK) if self.name.startswith(_MASK) else None


Answers = Mapping[str, Reply | None]
"""Maps each probe's name to its reply.

None means that the server rejects the feature, or that the probe was not needed.
"""


def questions(
    model: str, dialect: chat.Dialect, with_formats: bool, tried: Sequence[str]
) -> list[FeatureQuestion]:
    """Return the probes for a server, in order of importance.

    `with_formats` says whether to include probes for response formats. `tried` lists the masks to probe, in
    order of preference.
    """
    letter = Message("user", f"{_ASK}\nAnswer with exactly one letter and nothing else.\nAnswer (A, B):")
    form = Message("user", f'{_ASK}\nAnswer with one JSON object and nothing else: {{"letter": "A" | "B"}}')
    hello = Message("user", masks.QUESTION)
    bare = Request(model, (letter,), 0, max_tokens=chat.CODE_TOKENS, temperature=None)
    coded = replace(bare, codes="AB")
    json = replace(bare, messages=(form,), schema=_SCHEMA, max_tokens=_JSON_TOKENS)
    masked = replace(bare, messages=(hello,), codes="".join(masks.CHOICES), max_tokens=masks.MOST_TOKENS)
    listed = [FeatureQuestion(CODES, coded, dialect)]
    if with_formats:
        listed += [FeatureQuestion(output, json, replace(dialect, output=output)) for output in chat.FORMATS]
    # A server that accepts any value of these parameters accepts the values 0 and 1.
    listed += [
        FeatureQuestion(SAMPLING[0], replace(bare, temperature=0.0), dialect),
        FeatureQuestion(SAMPLING[1], replace(bare, seed=1), dialect),
    ]
    # A masked answer can be recognised without more alternatives, and some servers reject more than 20.
    under_mask = replace(dialect, masked_logprobs=dialect.top_logprobs)
    listed += [FeatureQuestion(_MASK + mask, masked, replace(under_mask, masks=(mask,))) for mask in tried]
    if tried:
        many = replace(dialect, top_logprobs=dialect.masked_logprobs)
        listed.append(FeatureQuestion(ALTERNATIVES, coded, many))
    return [*listed, FeatureQuestion(PLAIN, bare, dialect)]


def is_needed(question: FeatureQuestion, sent: Sequence[FeatureQuestion], answers: Answers) -> bool:
    """Return whether a probe can still provide new information, given the replies to earlier probes."""
    name = question.name
    if name in chat.FORMATS:
        return output(answers) == "plain"
    if name == PLAIN:
        # This probe only distinguishes a server that rejects every feature from one that rejects every call.
        return not any(answers.values())
    if name == CODES or name in SAMPLING:
        return True
    coded = answers.get(CODES)
    if CODES in answers and not (coded and coded.tokens):
        return False
    open_masks = [q for q in sent if q.mask and q.name not in answers]
    if name == ALTERNATIVES:
        return bool(open_masks) or mask(sent, answers) is not None
    return mask(sent, answers) is None


def output(answers: Answers) -> str:
    """Return the strictest response format that produced JSON. A truncated reply also counts as JSON."""
    for name in chat.FORMATS:
        reply = answers.get(name)
        if reply and (reply.stop == CUT or isinstance(http.decode_json(reply.text), dict)):
            return name
    return "plain"


def mask(sent: Sequence[FeatureQuestion], answers: Answers) -> str | None:
    """Return the first mask that restricted the answer to the choices, or None if no mask did."""
    for question in sent:
        reply = answers.get(question.name)
        if question.mask and reply and reply.masked:
            return question.mask
    return None
