"""OpenAI's decisions against a server on the loopback that speaks their wire format."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import KeyProblem, RateLimited, Rejected, ServerFault
from judge.providers.base import Settings, get, vendors
from judge.providers.tokens import label_distribution
from judge.runner.requests import Sampling
from judge.types import Usage
from tests.loopback.calls import LABELS, SCHEMA, ask, ask_code, running
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out
from tests.runner.helpers import make_study, numbered, plan, run, select


class Decisions(OpenAIServer):
    """The first choice has 0.7, the second 0.2, the rest the rest. `refuses`: it declines every question."""

    path = "/v1/decisions"
    refuses = False

    def __init__(self) -> None:
        super().__init__(record=True)

    def question(self, body: dict[str, Any]) -> str:
        return json.dumps(body)

    def answer(self, body: dict[str, Any], head: str, fault: Fault | None) -> Out:
        return Out(
            json.dumps(
                {
                    "model": "gpt-6-luna-2026-09-01",
                    "answers": [self._answer(q) for q in body["questions"]],
                    "usage": {
                        "input_tokens": 100,
                        "input_tokens_details": {"cached_tokens": 40, "cache_write_tokens": 5},
                        "output_tokens": 1,
                        "output_tokens_details": {"reasoning_tokens": 0},
                        "total_tokens": 101,
                    },
                }
            ).encode(),
            headers=b"x-request-id: req_7\r\n",
        )

    def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        assert question["type"] == "choice" and question["instructions"]
        if self.refuses:
            return {"type": "refusal", "name": question["name"]}
        values = [c["value"] for c in question["choices"]]
        assert len(set(values)) == len(values) >= 2
        masses = [0.7, 0.2, *[0.1 / max(1, len(values) - 2)] * (len(values) - 2)]
        listed = [{"value": v, "probability": p} for v, p in zip(values, masses, strict=True)]
        # Not in the order of the choices.
        shown = {"choice": values[0], "confidence": 0.7, "probabilities": listed[::-1]}
        return {"type": "choice", "name": question["name"], **shown}


def provider_of(server: Decisions, **options: str) -> Any:
    return get("openai-decisions/gpt-6-luna", Settings(base_url=server.url, options=options))


async def test_each_label_has_its_probability() -> None:
    async with (
        Decisions() as server,
        running(provider_of(server, **{"body.safety_identifier": '"u"'})) as provider,
    ):
        assert server.requests == 0
        reply = await provider.complete(ask_code())
    (body,) = server.bodies
    assert body["model"] == "gpt-6-luna"
    assert [m["role"] for m in body["input"]] == ["system", "user"]
    assert body["safety_identifier"] == "u"
    assert [c["value"] for c in body["questions"][0]["choices"]] == ["A", "B", "C"]
    assert not {"temperature", "seed", "max_tokens", "messages", "logprobs"} & set(body)
    distribution, reason = label_distribution(reply.tokens, "ABC", LABELS)
    assert reason is None and distribution is not None
    assert list(distribution.probabilities.values()) == pytest.approx([0.7, 0.2, 0.1])
    assert reply.usage == Usage(100, 1, 40, 5)
    assert reply.resolved_model == "gpt-6-luna-2026-09-01"


async def test_several_questions_are_one_request_each_with_its_choices() -> None:
    two = {"properties": {**SCHEMA["properties"], "sure": {"type": "string", "enum": ["yes", "no"]}}}  # type: ignore[dict-item]
    async with Decisions() as server:
        provider = provider_of(server)
        reply = await provider.complete(ask(schema=two))
        with pytest.raises(Rejected, match="'why' has none; use openai/"):
            await provider.complete(ask(schema={"properties": {"why": {"type": "string"}}}))
        with pytest.raises(Rejected, match="free text"):
            await provider.complete(replace(ask(), schema=None))
        await provider.close()
    assert json.loads(reply.text) == {"stance": "support", "sure": "yes"}
    assert server.requests == 1


async def test_refusals_and_errors() -> None:
    async with Decisions() as server:
        provider = provider_of(server)
        server.refuses = True
        assert (await provider.complete(ask_code())).stop == "refusal"
        server.refuses = False
        for fault, kind in (
            ("429", RateLimited),
            ("500", ServerFault),
            ("empty", ServerFault),
            ("401", KeyProblem),
        ):
            server.script(fault)
            with pytest.raises(kind):
                await provider.complete(ask_code())
        await provider.close()


async def test_a_run_has_distributions(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(3))
    async with Decisions() as server, running(provider_of(server)) as provider:
        for answers in ("auto", "words", "json"):
            report = await run(db, provider, plan("openai-decisions/m", sampling=Sampling(answers=answers)))
            assert report.ended == {"ok": 3}
    modes = select(
        db,
        "SELECT json_extract(r.options, '$.mode'), count(l.distribution) FROM runs AS r JOIN labels AS l "
        "ON l.annotator_id = r.run_id GROUP BY 1 ORDER BY 1",
    )
    assert modes == [("codes", 3), ("json", 0), ("words", 3)]
    assert "openai-decisions" in vendors()
