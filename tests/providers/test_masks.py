"""Servers that hold the answer to the labels: which way is found, what is read of it, and the run that keeps it."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import RateLimited, UsageError
from judge.providers import base, masks
from judge.providers.base import Settings
from judge.providers.openai import Provider
from judge.providers.replicas import make_replicas
from judge.providers.tokens import label_distribution
from judge.runner.requests import Sampling
from judge.types import TokenChoice
from tests.loopback.calls import LABELS, ask, ask_code, opened, running
from tests.loopback.faults import Fault
from tests.loopback.masked_server import BEFORE, MaskedServer
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import make_study, numbered, plan, run, select

SHARES = [p / sum(BEFORE) for p in BEFORE]  # 0.6, 0.3, 0.1
CODES = Sampling(answers="codes")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("strict", [False, True], ids=["ignores", "refuses"])
@pytest.mark.parametrize("mask", masks.MASKS)
async def test_each_mask_is_found_and_its_probabilities_shared_out(
    mask: str, strict: bool, after: bool
) -> None:
    """The same 0.18, 0.09 and 0.03 of the model's mass, whether they are told before the mask or after it."""
    async with MaskedServer(mask, after=after, strict=strict) as server, opened(server) as provider:
        assert provider.mask == mask
        assert provider.label_codes
        assert provider.describe()["mask"] == mask
        reply = await provider.complete(ask_code())
    assert reply.masked
    assert reply.text == "A"
    distribution, reason = label_distribution(reply.tokens or [], "ABC", LABELS, reply.masked)
    assert reason is None and distribution is not None
    assert list(distribution.probabilities.values()) == pytest.approx(SHARES)
    assert distribution.unassigned == 0.0
    # 0.5 on Hello, 0.1 on a blank and A (which no mask lets through), 0.08 on The and 0.02 on what is not listed.
    assert distribution.outside == pytest.approx(0.0 if after else 0.7, abs=1e-9)


async def test_a_server_that_ignores_the_fields_has_no_mask(openai_server: OpenAIServer) -> None:
    """It answers 200 to every one of them, as llama.cpp's does to those of vLLM."""
    async with running(Provider("m", Settings(base_url=openai_server.url))) as provider:
        assert provider.mask is None
        # Label probabilities, two response formats, two parameters, four masks, many alternatives, none of these; for
        # the fifth mask it has no /tokenize.
        assert openai_server.requests == 1 + 2 + 2 + 4 + 1 + 1
        openai_server.reset_counts()
        reply = await provider.complete(ask_code())
    assert not reply.masked
    assert not {"grammar", "structured_outputs", "guided_choice", "logit_bias"} & set(openai_server.bodies[0])


async def test_a_code_that_a_server_says_to_everything_is_no_mask() -> None:
    """Without log-probabilities at the code there is nothing to share out."""

    class Bare(MaskedServer):
        def _said(self, text, positions):  # type: ignore[no-untyped-def]
            out = super()._said(text, positions)
            document = json.loads(out.body)
            document["choices"][0]["logprobs"] = None
            return replace(out, body=json.dumps(document).encode())

    async with Bare("grammar") as server, opened(server) as provider:
        assert provider.mask is None


async def test_a_server_that_gives_fewer_alternatives_is_asked_for_fewer() -> None:
    async with MaskedServer("structured_outputs") as server:
        server.most = 20
        async with opened(server) as provider:
            assert provider.mask == "structured_outputs"
            await provider.complete(ask_code())
        assert server.bodies[-1]["top_logprobs"] == 20


async def test_tokens_are_asked_for_once() -> None:
    async with MaskedServer("logit_bias") as server, opened(server) as provider:
        for i in range(3):
            await provider.complete(ask_code(f"Claim {i}"))
    assert server.tokenized == ["Q", "Z", "A", "B", "C"]
    assert server.bodies[-1]["logit_bias"] == {"65": 100, "66": 100, "67": 100}
    assert server.bodies[-1]["max_tokens"] == 1


async def test_a_mask_can_be_named_or_refused() -> None:
    async with MaskedServer("grammar", "json_schema") as server:
        async with opened(server, options={"mask": "json_schema"}) as provider:
            assert provider.mask == "json_schema"
        async with opened(server, options={"mask": "none"}) as provider:
            assert provider.mask is None
            assert not (await provider.complete(ask_code())).masked
        with pytest.raises(UsageError, match=r"mask=guided_choice: .*mask=none"):
            async with opened(server, options={"mask": "guided_choice"}):
                pass
    with pytest.raises(UsageError, match=r"mask=grammer: .*auto, none, grammar"):
        Provider("m", Settings(base_url="http://127.0.0.1:9/v1", options={"mask": "grammer"}))


async def test_the_probes_go_on_where_a_busy_server_refused_them() -> None:
    async with MaskedServer("json_schema") as server:
        provider = Provider("m", Settings(base_url=server.url))
        for _ in range(12):
            # After each good answer one call is refused: two in a row never come through.
            server.plan.when = lambda body, n: Fault("429") if n % 2 == 0 else None
            try:
                await provider.open()
                break
            except RateLimited:
                continue
        await provider.close()
        assert provider.mask == "json_schema"


def position(**alternatives: float) -> list[TokenChoice]:
    masses = [(token.replace("_", " "), math.log(p)) for token, p in alternatives.items()]
    return [TokenChoice(masses[0][0], masses)]


def test_a_label_that_is_not_listed_has_little_or_the_answer_has_no_distribution() -> None:
    # C has at most what B has: 0.01 of 0.51 known, under 5 %.
    distribution, reason = label_distribution(position(A=0.5, B=0.01), "ABC", LABELS, masked=True)
    assert reason is None and distribution is not None
    assert list(distribution.probabilities.values()) == pytest.approx([0.5 / 0.51, 0.01 / 0.51, 0.0])
    # C has at most 0.1 beside 0.3: that is a quarter of the labels' mass.
    distribution, reason = label_distribution(position(A=0.2, B=0.1), "ABC", LABELS, masked=True)
    assert distribution is None and reason is not None and "neutral" in reason and "25.0 %" in reason
    # The list is all there is: nothing is left for C.
    distribution, _ = label_distribution(position(A=0.6, B=0.4), "ABC", LABELS, masked=True)
    assert distribution is not None and distribution.probabilities["neutral"] == 0.0
    distribution, reason = label_distribution(position(Hello=0.6, The=0.4), "ABC", LABELS, masked=True)
    assert distribution is None and reason == "no label is among the 2 most probable tokens"


async def test_a_run_keeps_its_mask(tmp_path: Path) -> None:
    """It is part of the run; a server that has another one, or none, does not go on with it under its name."""
    db = make_study(tmp_path / "s.db", numbered(6))
    run_plan = plan("openai/m", sampling=CODES)
    async with MaskedServer("grammar") as server, opened(server) as provider:
        await run(db, provider, replace(run_plan, selection=replace(run_plan.selection, limit=3)))
        server.knows = ()
        async with opened(server) as other:
            with pytest.raises(UsageError, match="mask=grammar"):
                await run(db, other, run_plan)
        server.knows = ("grammar", "structured_outputs")
        async with opened(server, options={"mask": "structured_outputs"}) as named:
            report = await run(db, named, run_plan)
            assert not report.resumed, "asked for by name, another mask is another run"
        async with opened(server) as again:
            assert (await run(db, again, run_plan)).resumed
    masked = select(db, "SELECT json_extract(options, '$.mask'), count(*) FROM runs GROUP BY 1 ORDER BY 1")
    assert masked == [("grammar", 1), ("structured_outputs", 1)]
    rows = select(db, "SELECT DISTINCT distribution FROM labels WHERE distribution IS NOT NULL")
    shares = [json.loads(d) for (d,) in rows]
    assert [list(s.values())[:3] for s in shares] == [pytest.approx(SHARES)]
    outside = select(db, "SELECT DISTINCT outside_mass FROM judgements")
    assert outside == [(pytest.approx(0.7),)]


async def test_an_answer_used_again_and_the_mean_of_orders_keep_what_was_outside(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", ["The same text."] * 2)
    async with MaskedServer("grammar") as server, opened(server) as provider:
        server.reset_counts()
        await run(db, provider, plan("openai/m", sampling=CODES))
        assert server.requests == 1
        await run(db, provider, plan("openai/m", sampling=replace(CODES, orders=2)))
    rows = select(db, "SELECT reused, outside_mass FROM judgements WHERE outside_mass IS NOT NULL ORDER BY 1")
    assert rows == [(r, pytest.approx(0.7)) for r in (0, 0, 1, 1)]


async def test_a_run_that_began_without_a_mask_goes_on_without(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(4))
    run_plan = plan("openai/m", sampling=CODES)
    async with MaskedServer("grammar") as server:
        server.knows = ()
        async with opened(server) as provider:
            first = await run(db, provider, replace(run_plan, selection=replace(run_plan.selection, limit=2)))
        server.knows = ("grammar",)
        async with opened(server) as provider:
            second = await run(db, provider, run_plan)
            assert provider.describe()["mask"] is None
    assert second.run_id == first.run_id
    assert any("without a mask" in note and "grammar" in note for note in second.notes)
    assert all("grammar" not in body for body in server.bodies if "Say hello" not in str(body))


async def test_words_are_held_too_but_not_by_a_bias(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(2))
    for number, (mask, expected) in enumerate({"guided_choice": "guided_choice", "logit_bias": None}.items()):
        async with MaskedServer(mask) as server, opened(server) as provider:
            run_plan = plan(f"openai/{number}", sampling=Sampling(answers="words"))
            await run(db, provider, run_plan)
        query = f"SELECT json_extract(options, '$.mask') FROM runs WHERE model = 'openai/{number}'"
        assert select(db, query) == [(expected,)]
        assert ("guided_choice" in server.bodies[-1]) == (expected is not None)
        assert "logit_bias" not in server.bodies[-1]


async def test_replicas_are_asked_with_a_mask_that_all_have() -> None:
    async with MaskedServer("grammar") as first, MaskedServer("grammar") as two:
        settings = Settings(base_url=first.url, replicas=(two.url,))
        async with running(make_replicas("openai/m", settings)) as provider:
            assert isinstance(provider, base.Masks)
            assert provider.mask == "grammar"
        two.knows = ("json_schema",)
        async with running(make_replicas("openai/m", settings)) as provider:
            assert isinstance(provider, base.Masks)
            assert provider.mask is None
            first.reset_counts()
            assert not (await provider.complete(ask_code())).masked
    assert "grammar" not in first.bodies[-1]


async def test_other_answers_are_not_held() -> None:
    async with MaskedServer("grammar") as server, opened(server) as provider:
        reply = await provider.complete(ask())
    assert not reply.masked
    assert "grammar" not in server.bodies[-1]
