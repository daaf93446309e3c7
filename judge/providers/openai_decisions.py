"""`openai-decisions/MODEL`: OpenAI's decisions endpoint, which returns choice probabilities and no text.

Wire format: https://platform.openai.com/docs/api-reference/decisions. For a task with one question, the
choices are its codes or, with `--answers words`, its labels. If a task has several questions, each of them is
sent as a separate choice question. Rationales, temperatures and seeds are not supported, and the endpoint is
not available in the Batch API.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from judge.accept import COMPLETE, REFUSED
from judge.errors import Rejected
from judge.providers import bill, chat, http, openai
from judge.providers.base import Needs
from judge.providers.tokens import with_masses
from judge.types import Json, Reply, Request, TokenChoice

NEEDS = Needs(examples="openai-decisions/gpt-6-luna (probabilities, no text)", key="OPENAI_API_KEY")
PATH = "/decisions"


class Provider(openai.Provider):
    """A model that is called through the decisions endpoint.

    Settings and errors are the same as for `openai`, but the options `mask` and `reasoning_effort` are not
    available.
    """

    vendor = "openai-decisions"
    known: Collection[str] = ()
    label_codes: bool = True

    async def open(self) -> None:
        """Look up the key. Raises KeyProblem if no key is set."""
        # No probe is needed, because the endpoint always returns probabilities.
        self._connect()

    async def complete(self, request: Request) -> Reply:
        """Send one request.

        Raises Rejected if a question has no fixed set of labels, and the same errors as `openai`.
        """
        wire = self._connect()
        answer = await wire.post(PATH, self.body(request))
        if answer.status == 200:
            try:
                return self.parse_answer(http.decode_json(answer.body), request, answer.headers)
            except ValueError as e:
                raise self._fault_in(wire, answer, e) from e
        said = wire.complaint(answer)
        refused = self.refusal(said)
        if refused is not None:
            return refused
        raise self._error(answer, said)

    def body(self, request: Request) -> bytes:
        """Return the request body. Raises Rejected if a question has no fixed set of labels."""
        turns = [{"role": m.role, "content": m.content} for m in request.messages]
        questions = [
            {
                "type": "choice",
                "name": name,
                # The prompt explains the labels already, and is the same for every provider.
                "instructions": f"Answer what the input asks for as {name}.",
                "choices": [{"value": value} for value in values],
            }
            for name, values in _choices(request).items()
        ]
        fields = {"model": self._name, "input": turns, "questions": questions}
        return json.dumps({**fields, **self._options.body}).encode()

    def parse_answer(self, body: Json, request: Request, headers: Mapping[str, str] | None = None) -> Reply:
        """Parse the JSON of a successful response.

        Raises a ValueError that says what is missing if the response is incomplete.
        """
        names = list(_choices(request))
        try:
            answers = dict(zip(names, body["answers"], strict=True))
            # The answers of a unit are stored together, so a refusal of one question counts as a refusal of all.
            refused = any(answer["type"] == "refusal" for answer in answers.values())
            chosen = {} if refused else {name: str(answer["choice"]) for name, answer in answers.items()}
            # With several questions there is no single choice whose probabilities could be the unit's.
            tokens = None if refused or not request.choices else [_token(answers[names[0]])]
            used = body.get("usage") or {}
            details = used.get("input_tokens_details") or {}
            counts = (used.get("input_tokens"), used.get("output_tokens"))
            usage = bill.usage(*counts, details.get("cached_tokens"), details.get("cache_write_tokens"))
        except (KeyError, TypeError, AttributeError, ValueError) as e:
            raise ValueError("does not have a decision for each question") from e
        text = chosen.get(names[0], "") if request.choices else json.dumps(chosen)
        return Reply(
            text="the model declined to decide" if refused else text,
            stop=REFUSED if refused else COMPLETE,
            usage=usage,
            resolved_model=http.name_of(body.get("model")),
            tokens=tokens,
            rate=chat.rate(headers or {}),
        )

    def list_probes(self) -> Sequence[Request]:
        """Return nothing, because `open` sends nothing."""
        return ()

    def describe(self) -> Mapping[str, Json]:
        """Return the same facts as `openai`.

        `format`, `mask` and `left_out` have this endpoint's values.
        """
        known = super().describe()
        return {**known, "format": "decisions", "mask": None, "left_out": ["temperature", "seed"]}


def _choices(request: Request) -> dict[str, list[str]]:
    """Return the choices for each question. Raises Rejected if a question has no fixed set of labels."""
    if request.choices:
        return {"answer": list(request.choices)}
    fields: Mapping[str, Any] = (request.schema or {}).get("properties", {})
    choices = {name: list(spec.get("enum") or ()) for name, spec in fields.items()}
    free = [name for name, values in choices.items() if len(values) < 2]
    if free or not choices:
        reason = f"'{free[0]}' has none" if free else "this task asks for free text"
        raise Rejected(
            f"OpenAI's decisions endpoint only supports questions with labels, and {reason}; use openai/ instead",
            400,
        )
    return choices


def _token(answer: Mapping[str, Any]) -> TokenChoice:
    """Return the probabilities of one decision as a token position."""
    listed = [(str(p["value"]), float(p["probability"])) for p in answer["probabilities"]]
    return with_masses(str(answer["choice"]), listed)
