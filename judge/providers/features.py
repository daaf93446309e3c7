"""The optional features of chat completions, and the short questions that show which of them a server takes.

Each question carries one feature and nothing else that a server may refuse. So no question depends on the answer to
another one, and all of them can be sent together: a new server costs one round trip, whatever it refuses. Where fewer
calls are allowed at once than there are questions, those that an earlier answer has made unnecessary are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from judge.providers import chat, http, masks
from judge.types import Message, Reply, Request

CODES, ALTERNATIVES, PLAIN = "codes", "alternatives", "plain"
SAMPLING = ("temperature", "seed")
"""Parameters of a run that some servers refuse; the questions about them have their names."""
_MASK = "mask "
_ASK = "Which letter comes first in the alphabet?"
_LETTER = {"letter": {"type": "string", "enum": ["A", "B"]}}
_SCHEMA = {"type": "object", "properties": _LETTER, "required": ["letter"], "additionalProperties": False}
_JSON_TOKENS = 64


@dataclass(frozen=True, slots=True)
class FeatureQuestion:
    """A short call about one feature, which `name` says; `dialect` asks for that feature."""

    name: str
    request: Request
    dialect: chat.Dialect

    @property
    def mask(self) -> str | None:
        """The mask that the question is about, None = another feature."""
        return self.name.removeprefix(_MASK) if self.name.startswith(_MASK) else None


Answers = Mapping[str, Reply | None]
"""By the question's name: the reply, None = the server refuses the feature, or the question was not needed."""


def questions(
    model: str, dialect: chat.Dialect, with_formats: bool, tried: Sequence[str]
) -> list[FeatureQuestion]:
    """The questions to a server, the most important first.

    `with_formats`: also whether it takes response formats. `tried`: the masks that it may know, the best first.
    """
    letter = Message("user", f"{_ASK}\nAnswer with exactly one letter and nothing else.\nAnswer (A, B):")
    form = Message("user", f'{_ASK}\nAnswer with one JSON object and nothing else: {{"letter": "A" | "B"}}')
    hello = Message("user", masks.QUESTION)
    bare = Request(model, (letter,), 0, max_tokens=chat.CODE_TOKENS, temperature=None)
    coded = replace(bare, codes="AB")
    json = replace(bare, messages=(form,), schema=_SCHEMA, max_tokens=_JSON_TOKENS)
    masked = replace(bare, messages=(hello,), codes="".join(masks.CHOICES), max_tokens=masks.MOST_TOKENS)
    asked = [FeatureQuestion(CODES, coded, dialect)]
    if with_formats:
        asked += [FeatureQuestion(output, json, replace(dialect, output=output)) for output in chat.FORMATS]
    # With 0 and 1, which a server takes if it takes any value.
    asked += [
        FeatureQuestion(SAMPLING[0], replace(bare, temperature=0.0), dialect),
        FeatureQuestion(SAMPLING[1], replace(bare, seed=1), dialect),
    ]
    # A held answer shows without more alternatives, and some servers refuse more than 20.
    under_mask = replace(dialect, masked_logprobs=dialect.top_logprobs)
    asked += [FeatureQuestion(_MASK + mask, masked, replace(under_mask, masks=(mask,))) for mask in tried]
    if tried:
        many = replace(dialect, top_logprobs=dialect.masked_logprobs)
        asked.append(FeatureQuestion(ALTERNATIVES, coded, many))
    return [*asked, FeatureQuestion(PLAIN, bare, dialect)]


def is_needed(question: FeatureQuestion, asked: Sequence[FeatureQuestion], answers: Answers) -> bool:
    """Whether a question has something to add to the answers so far."""
    name = question.name
    if name in chat.FORMATS:
        return output(answers) == "plain"
    if name == PLAIN:
        # Only to tell a server that refuses every feature from one that refuses every call.
        return not any(answers.values())
    if name == CODES or name in SAMPLING:
        return True
    if CODES in answers and not has_tokens(answers):
        return False
    open_masks = [q for q in asked if q.mask and q.name not in answers]
    if name == ALTERNATIVES:
        return bool(open_masks) or mask(asked, answers) is not None
    return mask(asked, answers) is None


def has_tokens(answers: Answers) -> bool:
    """Whether log-probabilities come back."""
    reply = answers.get(CODES)
    return bool(reply and reply.tokens)


def output(answers: Answers) -> str:
    """The most exact response format with which JSON came back. An answer that was cut says nothing against it."""
    for name in chat.FORMATS:
        reply = answers.get(name)
        if reply and (reply.stop == "length" or isinstance(http.decoded(reply.text), dict)):
            return name
    return "plain"


def mask(asked: Sequence[FeatureQuestion], answers: Answers) -> str | None:
    """The first mask that held the answer to the choices, None = none did."""
    for question in asked:
        reply = answers.get(question.name)
        if question.mask and reply and reply.held:
            return question.mask
    return None
