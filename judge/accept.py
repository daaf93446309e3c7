"""Decide whether a reply counts as an answer: one rule for live calls, provider batches and files of results.

- The reply must be complete, according to its finish reason.
- Its text must read as one answer (`judge.parse`, `judge.free_text`).
- Probabilities count only if the text is the answer and nothing else.
- All replies of a run must come from the model that gave the run's first reply (`ModelNames`).

Keys are removed from replies before this module sees them (`judge.providers.keys`).
"""

from collections.abc import Callable, Collection
from dataclasses import replace

from judge.errors import OtherModel
from judge.parse import Parsed, after_reasoning
from judge.types import LabelDistribution, Reply, Status

COMPLETE, CUT, REFUSED = "stop", "length", "refusal"
"""The values of `Reply.stop` for complete replies, truncated replies and refusals."""
_MEANINGS = {
    COMPLETE: ("stop", "end_turn", "stop_sequence", "eos", "eos_token", "complete"),
    CUT: ("length", "max_tokens", "model_length", "model_context_window_exceeded"),
    REFUSED: ("refusal", "content_filter", "safety", "recitation", "prohibited_content"),
}
"""The finish reasons of OpenAI, Anthropic, Gemini, Mistral, TGI and other servers, by their meaning."""
_MEANING = {reason: meaning for meaning, reasons in _MEANINGS.items() for reason in reasons}
_CUT_REASONING = "the reply was cut off during the reasoning, before the answer: use --retry truncated with a larger --max-output-tokens"

Distribution = tuple[LabelDistribution | None, str | None]
"""The probabilities of the labels, or None and the reason why there are none."""


def classify_finish(reason: object) -> str:
    """Return the value of `Reply.stop` for a server's finish reason.

    An unknown reason is returned unchanged, and a missing one as "none". Neither means that a reply is complete.
    """
    text = reason if isinstance(reason, str) and reason else "none"
    return _MEANING.get(text.lower(), text[:40])


def accept(
    reply: Reply,
    read_answer: Callable[[str], Parsed],
    probabilities: Callable[[str], Distribution] | None = None,
) -> Parsed:
    """Return the labels of a reply, or the reason why it has none.

    `read_answer` reads the text without the model's reasoning. If it returns a label with a reason, the text contains
    more than the label, and probabilities do not count. `probabilities` returns the label probabilities if the
    reply has them. Its argument is the label in the text, and it returns no probabilities if they belong to a
    token that is not the beginning of that label. The result then has the most probable label: unlike the
    sampled token, it does not depend on the seed.
    """
    if reply.stop == REFUSED:
        return Parsed(Status.REFUSED, reason=reply.text[:300] or "the model refused")
    text = after_reasoning(reply.text)
    if text is None or (reply.stop == CUT and not text.strip()):
        return Parsed(Status.TRUNCATED, reason=_CUT_REASONING)
    if reply.stop == CUT:
        return Parsed(Status.TRUNCATED, reason="the reply was cut off at the token limit")
    if reply.stop != COMPLETE:
        # The missing part could change the answer.
        return Parsed(
            Status.TRUNCATED,
            reason=f"the server does not say that the reply is complete (finish reason: {reply.stop})",
        )
    parsed = read_answer(text)
    if parsed.status is not Status.OK or parsed.reason or probabilities is None:
        return parsed
    if text != reply.text:
        return replace(
            parsed, reason="the first token belongs to the reasoning, so there are no probabilities"
        )
    distribution, why_none = probabilities(parsed.labels[0].value)
    if distribution is None:
        return replace(parsed, reason=why_none)
    answer = replace(parsed.labels[0], value=distribution.argmax(), distribution=distribution)
    return Parsed(Status.OK, (answer,))


class ModelNames:
    """The model names that are accepted in the replies of a run.

    `names` contains the names in the run's earlier replies. The first reply from each address in `unnamed` adds
    its name, because the same model may have another name on another server.
    """

    def __init__(self, names: Collection[str], unnamed: Collection[str | None]) -> None:
        self.names, self.unnamed = set(names), set(unnamed)

    def check(self, reply: Reply, address: str | None) -> None:
        """Raise OtherModel if the reply comes from a model other than that of the run's first reply.

        A reply without a name is accepted, because many servers report none.
        """
        name = reply.resolved_model
        if not name:
            return
        if address in self.unnamed:
            self.unnamed.discard(address)
            self.names.add(name)
        elif name not in self.names:
            if not self.names:
                self.names.add(name)
                return
            raise OtherModel(
                f"{address or 'the provider'} reports the model '{name}', but the run has answers from "
                f"{', '.join(sorted(self.names))}; the new reply got no label. Add --same-model to resume the run, or "
                "--as NAME to start another run"
            )
