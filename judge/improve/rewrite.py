"""Instructions rewritten by a model, from what a judge got wrong on learn and what a lead wrote there.

Nothing of tune or test is in what the rewriter reads; what it writes is plain text to a judge, never a template.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import ProviderError
from judge.improve.recipe import MOST_INSTRUCTIONS
from judge.parse import the_object
from judge.prompts.fence import DATA_NOTICE, fence, fence_code, untrusted
from judge.prompts.load import Task, with_constant
from judge.prompts.render import as_text
from judge.providers.base import Provider
from judge.runner.budget import Budget, Opened
from judge.runner.prices import Price
from judge.store.study import canonical
from judge.types import Json, Message, Request

MOST_SHOWN = 12
"""Disagreements in one prompt, each of a question of its own."""
CLIPPED = 1_500
"""Characters of an input that are shown."""
MOST_TOKENS = 2_000
SCHEMA = {
    "type": "object",
    "properties": {"instructions": {"type": "string"}},
    "required": ["instructions"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Wrong:
    """A unit of learn on which judge and reference differ, and what a lead wrote about it."""

    inputs: Mapping[str, Json]
    given: str
    right: str
    note: str = ""


@dataclass(frozen=True)
class Rewriter:
    """The model that rewrites, its open provider, its price (None: unknown), and what opening it took."""

    model: str
    provider: Provider
    price: Price | None = None
    opened: Opened | None = None

    def request(self, task: Task, field: str, wrong: Sequence[Wrong]) -> Request:
        """What it is asked."""
        messages = (
            Message("system", f"{_ROLE}\n\n{DATA_NOTICE}"),
            Message("user", _told(task, field, wrong)),
        )
        return Request(self.model, messages, 1, SCHEMA, max_tokens=MOST_TOKENS)

    async def ask(
        self, task: Task, request: Request, budget: Budget, seconds: float | None = None
    ) -> tuple[str | None, str]:
        """The new instructions (None: none that can be used), and why there are none.

        `budget` has room for the call, which is given up after `seconds`.
        """
        claim = budget.claim(request)
        budget.hold(claim)
        try:
            async with asyncio.timeout(seconds):
                reply = await self.provider.complete(request)
        except (ProviderError, TimeoutError) as e:
            budget.failed(claim, e)
            return None, f"the rewriter {self.model} gave no answer: {str(e) or 'the time limit is reached'}"
        finally:
            budget.release(claim)
        budget.answered(claim, reply.usage)
        text, why = _checked(task, reply.text)
        return text, "" if text else f"what the rewriter {self.model} wrote is not used: {why}"


def sha_of(request: Request, model: str) -> str:
    """What finds the answer again in the study."""
    told = canonical([model, [[m.role, m.content] for m in request.messages]])
    return hashlib.sha256(told.encode()).hexdigest()[:32]


def _checked(task: Task, reply: str) -> tuple[str | None, str]:
    try:
        found = the_object(reply)
    except ValueError as e:
        return None, str(e)
    text = found.get("instructions")
    if not isinstance(text, str) or not text.strip():
        return None, "no instructions"
    text = text.strip()
    if len(text) > MOST_INSTRUCTIONS:
        return None, f"longer than {MOST_INSTRUCTIONS:,} characters"
    if any(mark in text for mark in ("{{", "{%", "{#", "<!--")) or not text.replace("\n", "").isprintable():
        return None, "it holds marks of a template or control characters"
    if text == task.constant:
        return None, "it changes nothing"
    with_constant(task, text, task.version + 1)
    return text, ""


_ROLE = """You improve the instructions of a judge: a model that is shown one unit at a time and gives it one label. You are given its
instructions as they are, the labels, the guidelines of the people who label too, and units that the judge got wrong. Write
better instructions: say what the judge seems to have misunderstood, in general words that hold for other units. Do not repeat
the units, do not name their subjects, do not change the labels or the form of the answer. Plain text, at most 300 words.
Answer with one JSON object and nothing else: {"instructions": "..."}"""


def _told(task: Task, field: str, wrong: Sequence[Wrong]) -> str:
    labels = "\n".join(
        f"- {label.value}" + (f": {label.meaning}" if label.meaning else "")
        for label in task.question(field).labels
    )
    parts = [f"The instructions:\n{task.constant}", f"The labels:\n{labels}"]
    if task.spec.guidelines.strip():
        parts.append(f"The guidelines for people:\n{task.spec.guidelines.strip()}")
    for number, one in enumerate(wrong, 1):
        shown = [
            _block(name, as_text(value) or "") for name, value in one.inputs.items() if value is not None
        ]
        if one.note:
            shown.append(_block("note", one.note))
        parts.append("\n".join([f"Unit {number}: the judge said {one.given}, right is {one.right}.", *shown]))
    return "\n\n".join(parts)


def _block(name: str, text: str) -> str:
    clipped = text if len(text) <= CLIPPED else text[:CLIPPED] + " …"
    digest = hashlib.sha256(f"rewrite\0{name}\0{clipped}".encode("utf-8", "surrogatepass")).digest()
    return fence(untrusted(name, clipped), fence_code(digest))
