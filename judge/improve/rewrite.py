"""Let a model rewrite a judge's instructions, based on the judge's errors and the lead annotator's notes on them.

The errors are on the learning questions. The rewriter never sees tuning questions or the sealed test. Its answer is
used as plain text and never as a template.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from judge.errors import ProviderError
from judge.improve.recipe import MOST_INSTRUCTIONS
from judge.parse import the_object
from judge.prompts.fence import DATA_NOTICE, fence, fence_code
from judge.prompts.load import Task, with_constant
from judge.prompts.render import as_text
from judge.providers.base import Provider
from judge.runner.budget import Budget, Opened
from judge.runner.prices import Price
from judge.store.study import canonical
from judge.types import Json, Message, Request

MOST_SHOWN = 12
"""Maximum number of errors in one prompt. Each is from a different question."""
# Maximum characters of an input that are shown. Otherwise, a few long passages would fill the prompt.
CLIPPED = 1_500
MOST_TOKENS = 2_000
SCHEMA = {
    "type": "object",
    "properties": {"instructions": {"type": "string"}},
    "required": ["instructions"],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Wrong:
    """A learning unit on which the judge and the reference disagree, with the lead annotator's note on the unit."""

    inputs: Mapping[str, Json]
    given: str
    right: str
    note: str = ""


@dataclass(frozen=True)
class Rewriter:
    """The model that rewrites instructions.

    `provider` has been opened, and `opened` contains the cost of opening it. `price` is None if it is
    unknown.
    """

    model: str
    provider: Provider
    price: Price | None = None
    opened: Opened | None = None

    def request(self, task: Task, field: str, wrong: Sequence[Wrong]) -> Request:
        """Return the request that asks the model for new instructions."""
        messages = (
            Message("system", f"{_ROLE}\n\n{DATA_NOTICE}"),
            Message("user", _describe_errors(task, field, wrong)),
        )
        return Request(self.model, messages, 1, SCHEMA, max_tokens=MOST_TOKENS)

    async def ask(
        self, task: Task, request: Request, budget: Budget, seconds: float | None = None
    ) -> tuple[str | None, str]:
        """Return the new instructions and an empty string, or None and the reason why there are no new instructions.

        The call is cancelled after `seconds`. The caller must have checked that `budget` is sufficient for the call.
        """
        claim = budget.claim(request)
        # The cost is reserved before the call, because a reply that is lost may have been billed.
        budget.reserve(claim)
        try:
            async with asyncio.timeout(seconds):
                reply = await self.provider.complete(request)
        except (ProviderError, TimeoutError) as e:
            budget.count_failure(claim, e)
            return None, f"the rewriter {self.model} did not answer: {str(e) or 'the time limit was reached'}"
        finally:
            budget.release(claim)
        budget.count_reply(claim, reply.usage)
        text, reason = _check_reply(task, reply.text)
        return text, "" if text else f"the answer from the rewriter {self.model} was rejected: {reason}"


def sha_of(request: Request, model: str) -> str:
    """Return the hash of a request. The stored answer to a request is looked up by this hash."""
    canonical_text = canonical([model, [[m.role, m.content] for m in request.messages]])
    return hashlib.sha256(canonical_text.encode()).hexdigest()[:32]


def _check_reply(task: Task, reply: str) -> tuple[str | None, str]:
    try:
        answer = the_object(reply)
    except ValueError as e:
        return None, str(e)
    text = answer.get("instructions")
    if not isinstance(text, str) or not text.strip():
        return None, "it contains no instructions"
    text = text.strip()
    if len(text) > MOST_INSTRUCTIONS:
        return None, f"the instructions are longer than {MOST_INSTRUCTIONS:,} characters"
    # The text becomes part of a template file, where these marks would be executed.
    if any(mark in text for mark in ("{{", "{%", "{#", "<!--")) or not text.replace("\n", "").isprintable():
        return None, "it contains template marks or control characters"
    if text == task.constant:
        return None, "it changes nothing"
    # Raises an error if the task is not valid with the new text, because such a task could not be written to a file later.
    with_constant(task, text, task.version + 1)
    return text, ""


_ROLE = """You improve the instructions of a judge: a model that is shown one unit at a time and gives it one label. You are given its
instructions as they are, the labels, the guidelines of the people who label too, and units that the judge got wrong. Write
better instructions: say what the judge seems to have misunderstood, in general words that hold for other units. Do not repeat
the units, do not name their subjects, do not change the labels or the form of the answer. Plain text, at most 300 words.
Answer with one JSON object and nothing else: {"instructions": "..."}"""


def _describe_errors(task: Task, field: str, wrong: Sequence[Wrong]) -> str:
    labels = "\n".join(
        f"- {label.value}" + (f": {label.meaning}" if label.meaning else "")
        for label in task.question(field).labels
    )
    parts = [f"The instructions:\n{task.constant}", f"The labels:\n{labels}"]
    if task.spec.guidelines.strip():
        parts.append(f"The guidelines for people:\n{task.spec.guidelines.strip()}")
    for number, error in enumerate(wrong, 1):
        shown = [
            _block(name, as_text(value) or "") for name, value in error.inputs.items() if value is not None
        ]
        if error.note:
            shown.append(_block("note", error.note))
        parts.append(
            "\n".join([f"Unit {number}: the judge said {error.given}, right is {error.right}.", *shown])
        )
    return "\n\n".join(parts)


def _block(name: str, text: str) -> str:
    clipped = text if len(text) <= CLIPPED else text[:CLIPPED] + " …"
    # The fence depends on the text alone, so that a resumed search sends the same request and finds its stored answer.
    digest = hashlib.sha256(f"rewrite\0{name}\0{clipped}".encode("utf-8", "surrogatepass")).digest()
    return fence(name, clipped, fence_code(digest))
