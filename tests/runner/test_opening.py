"""What is asked of a server before the first unit: when, how patiently, and what the study remembers of it."""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judge.errors import RateLimited, Unreachable, UsageError
from judge.providers import base
from judge.providers import openai as openai_provider
from judge.runner import RunReport, open_patiently, run_task
from judge.runner.dispatch import Dispatcher
from judge.runner.rate import MOST
from judge.runner.requests import Sampling
from judge.store import Store
from judge.store import runs as store_runs
from judge.store.selection import Selection
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import HASTY, plan, select

UNITS = 6
QUESTIONS = 11
"""Label probabilities, two response formats, two parameters, four masks, many alternatives, and a call without any of
these. There is no call for the fifth mask: it needs /tokenize, which the server does not have."""
FEW_QUESTIONS = 4
"""One at a time, because label probabilities do not come and the first format is taken: probabilities, that format, and
two parameters."""


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(record=True) as started:
        started.logprobs = "none"
        yield started


async def ask(
    db: Path,
    server: OpenAIServer,
    timeout: float = 30.0,
    options: dict[str, str] | None = None,
    **changes: Any,
) -> RunReport:
    """A whole run, opening included."""
    settings = base.Settings(base_url=server.url, timeout=timeout, options=options)
    provider = base.get("openai/loopback", settings)
    try:
        with Store.open(db, create=False) as store:
            run_plan = plan("openai/loopback", **{"patience": replace(HASTY, outage=30.0), **changes})
            return await run_task(store, await open_patiently(provider, run_plan, store=store), provider)
    finally:
        await provider.close()


def questions(server: OpenAIServer) -> int:
    """Requests that were about no unit."""
    return sum("Passage number" not in str(body) for body in server.bodies)


FAULTS = [[*first, kind] for kind in ("reset", "closed", "cut", "503", "not_json") for first in ([], [None])]


@pytest.mark.parametrize("faults", [*FAULTS, ["503"] * 20], ids=lambda faults: f"{len(faults)} {faults[-1]}")
async def test_a_fault_among_the_first_questions_is_tried_again(
    db: Path, server: OpenAIServer, faults: list[str | None]
) -> None:
    """The server is waited for, also through more faults than a unit has tries."""
    server.script(*faults)
    report = await ask(db, server)
    assert (report.ended, report.error) == ({"ok": UNITS}, None)


async def test_the_questions_obey_the_concurrency_too(db: Path, server: OpenAIServer) -> None:
    """A server with one slot may refuse the second of two calls."""
    server.delay = 0.05
    report = await ask(db, server, concurrency=1)
    assert (report.ended, questions(server), server.max_concurrency) == ({"ok": UNITS}, FEW_QUESTIONS, 1)


async def test_a_server_that_refuses_every_feature_costs_one_round_trip(
    db: Path, server: OpenAIServer
) -> None:
    """They were refused one after the other, in the questions and then by the units."""
    server.logprobs, server.formats, server.refuse = "refused", set(), {"temperature", "seed"}
    server.withhold(QUESTIONS)
    report = await ask(db, server, concurrency=100, sampling=Sampling(seed=3))
    assert report.ended == {"ok": UNITS}
    assert server.max_concurrency >= QUESTIONS, "all of them at once"
    assert server.requests == QUESTIONS + UNITS, "no unit was refused"


async def test_a_question_that_hangs_is_tried_again(db: Path, server: OpenAIServer) -> None:
    server.script(Fault("slow", seconds=600.0))
    # On a busy machine good answers may be late, too: they cost tries, and no unit.
    report = await ask(db, server, timeout=0.3, patience=replace(HASTY, tries=1000, outage=60.0))
    assert report.ended == {"ok": UNITS}


async def test_one_question_that_hangs_delays_nothing_for_a_whole_time_out(
    db: Path, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are answered, so it is sent again long before its time-out of ten minutes."""
    monkeypatch.setattr(openai_provider, "STRAGGLER_SECONDS", 0.1)
    server.script(Fault("slow", seconds=600.0))
    report = await ask(db, server, timeout=600.0)
    assert report.ended == {"ok": UNITS}
    assert questions(server) == QUESTIONS + 1


async def test_an_address_of_web_pages_is_not_waited_for(db: Path, server: OpenAIServer) -> None:
    """Whoever leaves /v1 out of an address gets a page with status 200, and waiting does not change that."""
    server.plan.when = lambda body, n: Fault("page")
    with pytest.raises(Unreachable, match="check the address"):
        await ask(db, server)
    # All questions but many alternatives and the fifth mask go out together; /tokenize is a page, too.
    assert server.requests <= QUESTIONS


async def test_a_web_page_in_the_middle_of_a_run_is_waited_out(db: Path, server: OpenAIServer) -> None:
    server.script(*[None] * (QUESTIONS + 2), "page", "page")
    report = await ask(db, server)
    assert (report.ended, report.error) == ({"ok": UNITS}, None)


async def test_patience_ends(db: Path, server: OpenAIServer) -> None:
    server.plan.when = lambda body, n: Fault("reset")
    with pytest.raises(Unreachable):
        await ask(db, server, patience=HASTY)
    assert server.requests > HASTY.tries


async def test_a_server_that_accepts_no_connection_is_not_waited_for(db: Path) -> None:
    async with OpenAIServer() as gone:
        pass
    with pytest.raises(Unreachable, match="cannot connect"):
        await ask(db, gone, patience=replace(HASTY, outage=3600.0))


async def test_a_server_that_the_study_knows_is_asked_about_units_alone(
    db: Path, server: OpenAIServer
) -> None:
    first = await ask(db, server)
    assert questions(server) == QUESTIONS
    server.reset_counts()
    other = await ask(db, server, sampling=Sampling(answers="json", temperature=0.7))
    assert other.run_id != first.run_id
    assert (server.requests, questions(server)) == (UNITS, 0)
    modes = select(
        db, "SELECT DISTINCT json_extract(provider, '$.format'), json_extract(options, '$.mode') FROM runs"
    )
    assert modes == [("json_schema", "json")], "it is asked as it was found to answer"


async def test_a_kill_does_not_lose_what_the_first_questions_found(db: Path, server: OpenAIServer) -> None:
    """It was stored only when the run ended."""

    def no_unit_is_answered(body: dict[str, Any], number: int) -> Fault | None:
        if "Passage number" not in str(body):
            return None
        unit_came.set()
        return Fault("slow", seconds=60.0)

    unit_came = asyncio.Event()
    server.plan.when = no_unit_is_answered
    command = ("run", "stance", "-m", "openai/loopback", "--base-url", server.url, "-d", str(db))
    killed = await asyncio.create_subprocess_exec(sys.executable, "-m", "judge", *command, stderr=DEVNULL)
    try:
        await asyncio.wait_for(unit_came.wait(), 60)
    finally:
        killed.kill()
        await killed.wait()
    server.plan.when = None
    server.reset_counts()
    report = await ask(db, server)
    assert (report.ended, questions(server)) == ({"ok": UNITS}, 0)


async def test_what_is_remembered_is_what_was_asked_with_these_options(
    db: Path, server: OpenAIServer
) -> None:
    await ask(db, server)
    server.reset_counts()
    report = await ask(db, server, options={"mask": "none"}, sampling=Sampling(answers="json", seed=1))
    # Without the questions about four masks and about many alternatives.
    assert (report.ended, questions(server)) == ({"ok": UNITS}, QUESTIONS - 5)


async def test_after_a_day_the_server_is_asked_again(db: Path, server: OpenAIServer) -> None:
    await ask(db, server)
    old = (datetime.now(UTC) - timedelta(days=1, minutes=1)).isoformat()
    with Store.open(db, create=False) as store, store.transaction() as conn:
        conn.execute(
            "UPDATE runs SET provider = json_set(provider, '$.servers.\"' || ? || '\".learnt_at', ?)",
            [server.url, old],
        )
    server.reset_counts()
    await ask(db, server, sampling=Sampling(answers="json", seed=1))
    assert questions(server) == QUESTIONS


NO_ENTRIES = (
    "null",
    "[1, 2]",
    '"text"',
    "{}",
    '{"at": null, "concurrency": 4}',
    '{"at": 5, "concurrency": 4, "learnt_at": "2026-01-01T00:00:00Z"}',
    '{"at": "2026-01-01T00:00:00Z", "concurrency": "many"}',
    '{"at": "2026-01-01T00:00:00Z", "concurrency": 7.5}',
    '{"at": "2026-01-01T00:00:00Z", "concurrency": [4]}',
    '{"at": "2026-01-01T00:00:00Z", "concurrency": true}',
    '{"at": "2026-01-01T00:00:00Z", "concurrency": -5}',
    '{"at": "2026-01-01T00:00:00Z", "learnt_at": 5}',
    '{"at": "2026-01-01T00:00:00Z", "later_version": 1}',
)
"""What a study from somebody else, or from another version, may have in the place of a server."""


async def test_a_study_with_nonsense_about_a_server_is_a_study_that_does_not_know_it(
    db: Path, server: OpenAIServer
) -> None:
    await ask(db, server)
    servers = [*(f'{{"{server.url}": {entry}}}' for entry in NO_ENTRIES), "null", "[1]", '"text"', "5"]
    await is_probed_again(db, server, servers)


async def test_a_run_that_is_repeated_at_another_address_forgets_nothing(
    db: Path, server: OpenAIServer
) -> None:
    await ask(db, server, concurrency=4)
    known = remembered(db, server)
    async with OpenAIServer(record=True) as other:
        other.logprobs = "none"
        await ask(db, other, concurrency=4)
    assert remembered(db, server) == known
    set_servers(db, "[1]")
    report = await ask(db, server)
    assert report.labelled == UNITS, "what somebody else wrote there is no obstacle"


async def test_no_claim_of_a_study_starts_more_calls_than_the_limit(db: Path, server: OpenAIServer) -> None:
    await ask(db, server)
    set_servers(db, f'{{"{server.url}": {{"at": "2026-01-01T00:00:00Z", "concurrency": 1{"0" * 15}}}}}')
    concurrency = remembered(db, server).concurrency
    assert concurrency == 10**15
    assert Dispatcher(None, known={"": concurrency}).limit == MOST


async def test_what_is_dated_in_the_future_is_not_known(db: Path, server: OpenAIServer) -> None:
    """The clock was wrong when it was written; otherwise it would never grow old, and hide what is found out now."""
    await ask(db, server)
    future = (datetime.now(UTC) + timedelta(days=400)).isoformat()
    entry = remembered(db, server)
    learnt = json.dumps({"at": entry.at, "learnt": entry.learnt, "learnt_at": future})
    both = json.dumps({"at": future, "concurrency": 77, "learnt": entry.learnt, "learnt_at": future})
    await is_probed_again(db, server, [f'{{"{server.url}": {entry}}}' for entry in (learnt, both)])
    assert remembered(db, server).concurrency != 77


async def test_an_impossible_dialect_is_asked_again(db: Path, server: OpenAIServer) -> None:
    """A study from somebody else must neither end the run nor choose the fields of its requests."""
    await ask(db, server)
    entry = remembered(db, server)
    learnt: dict[str, Any] = dict(entry.learnt)
    dialect = learnt["dialect"]
    wrong_learnt: list[Any] = [
        {},
        [],
        "text",
        {"dialect": 3},
        {"dialect": {"unknown": 1}},
        {**learnt, "label_codes": "yes"},
        {**learnt, "mask": "bogus", "label_codes": True},
        {**learnt, "mask": 7},
        {**learnt, "reports": {"a": 1}},
    ]
    wrong_dialects = [
        {"limit": "model"},
        {"output": "bogus"},
        {"swapped": 1},
        {"top_logprobs": "many"},
        {"top_logprobs": -1},
        {"masked_logprobs": None},
        {"dropped": 5},
        {"dropped": [5]},
        {"masks": 7},
        {"masks": ["bogus"]},
    ]
    wrong_learnt += [{**learnt, "dialect": {**dialect, **wrong}} for wrong in wrong_dialects]
    entries = [{"at": entry.at, "learnt": wrong, "learnt_at": entry.learnt_at} for wrong in wrong_learnt]
    await is_probed_again(db, server, [json.dumps({server.url: each}) for each in entries])


async def is_probed_again(db: Path, server: OpenAIServer, entries: list[str]) -> None:
    """Each of these notes of a study about its servers is ignored: the server is probed as an unknown one."""
    for seed, entry in enumerate(entries):
        set_servers(db, entry)
        server.reset_counts()
        report = await ask(db, server, sampling=Sampling(answers="json", seed=seed))
        assert (report.ended, questions(server)) == ({"ok": UNITS}, QUESTIONS), entry


def set_servers(db: Path, servers: str) -> None:
    """Replace what every run of the study has noted about its servers by this JSON."""
    with Store.open(db, create=False) as store, store.transaction() as conn:
        conn.execute("UPDATE runs SET provider = json_set(provider, '$.servers', json(?))", [servers])


async def test_a_resumed_run_notices_another_model_by_its_first_reply(db: Path, server: OpenAIServer) -> None:
    """Nothing is asked first, so that the reply to a unit is what tells; it gets no label."""
    server.reports = "weights-1"

    first = await ask(db, server, selection=Selection(limit=2))
    server.reports = "weights-2"
    server.reset_counts()
    second = await ask(db, server)
    assert second.run_id == first.run_id
    assert isinstance(second.error, UsageError)
    assert "the model 'weights-2', but the run has answers from weights-1" in str(second.error)
    assert questions(server) == 0
    assert select(db, "SELECT DISTINCT resolved_model FROM judgements WHERE status = 'ok'") == [
        ("weights-1",)
    ]
    # The reply of the other weights is kept without a label, because it is paid for.
    paid = "SELECT status, resolved_model, output_tokens > 0 FROM judgements WHERE status <> 'ok'"
    assert set(select(db, paid)) == {("failed", "weights-2", 1)}
    third = await ask(db, server, same_model=True)
    assert third.labelled == UNITS


async def test_a_server_that_comes_back_with_another_model_ends_the_run(
    db: Path, server: OpenAIServer
) -> None:
    server.reports = "weights-1"

    def restarted(body: dict[str, Any], number: int) -> Fault | None:
        # Questions and three units, one at a time; the next call gets no answer, and then the server has other weights.
        if number == FEW_QUESTIONS + 4:
            server.reports = "weights-2"
            return Fault("reset")
        return None

    server.plan.when = restarted
    report = await ask(db, server, concurrency=1)
    assert "the model 'weights-2', but the run has answers from weights-1" in str(report.error)
    assert select(db, "SELECT DISTINCT resolved_model FROM judgements WHERE status = 'ok'") == [
        ("weights-1",)
    ]
    # The reply of the other weights is kept without a label, because it is paid for.
    paid = "SELECT status, resolved_model, output_tokens > 0 FROM judgements WHERE status <> 'ok'"
    assert set(select(db, paid)) == {("failed", "weights-2", 1)}
    third = await ask(db, server, same_model=True)
    assert third.labelled == UNITS


async def test_another_model_at_a_known_address_is_asked_what_it_can_do(
    db: Path, server: OpenAIServer
) -> None:
    """Its answers to a new run count; what the study knew was of the other model, and is not used again."""
    server.reports = "weights-1"
    await ask(db, server)
    server.reports = "weights-2"
    second = await ask(db, server, sampling=Sampling(answers="json", seed=1))
    assert (second.ended, second.error) == ({"ok": UNITS}, None)
    server.reset_counts()
    third = await ask(db, server, sampling=Sampling(answers="json", seed=2))
    assert (third.ended, questions(server)) == ({"ok": UNITS}, QUESTIONS)


async def test_a_known_server_that_has_lost_its_tokens_gets_an_error_that_says_so(
    db: Path, server: OpenAIServer
) -> None:
    """A bias needs the labels' tokens from /tokenize, and another program may listen at the address by now."""
    await ask(db, server)
    entry = remembered(db, server)
    learnt: dict[str, Any] = dict(entry.learnt)
    biased = {**learnt, "mask": "logit_bias", "label_codes": True}
    biased["dialect"] = {**learnt["dialect"], "masks": ["logit_bias"], "top_logprobs": 20}
    of_server = {"at": entry.at, "learnt": biased, "learnt_at": entry.learnt_at}
    set_servers(db, json.dumps({server.url: of_server}))
    report = await ask(db, server, sampling=Sampling(answers="codes", seed=1))
    assert report.ended == {"failed": UNITS}
    reasons = select(db, "SELECT DISTINCT reason FROM judgements WHERE status = 'failed'")
    assert len(reasons) == 1 and "/tokenize" in reasons[0][0]


async def test_the_concurrency_that_was_sustained_is_remembered(db: Path, server: OpenAIServer) -> None:
    await ask(db, server, concurrency=4)
    known = remembered(db, server)
    assert known.concurrency == 4
    await ask(db, server, concurrency=2, sampling=Sampling(answers="json", seed=1))
    # Fewer calls at once, without any trouble, are no evidence against four.
    assert remembered(db, server).concurrency == 4


def remembered(db: Path, server: OpenAIServer) -> store_runs.KnownServer:
    with Store.open(db, create=False) as store:
        facts = {"vendor": "openai", "model": "loopback"}
        return store_runs.read_known_servers(store.conn, facts)[server.url]


async def test_the_seconds_of_a_run_begin_with_the_first_question(db: Path, server: OpenAIServer) -> None:
    server.delay = 0.2
    report = await ask(db, server)
    assert report.opened is not None and report.opened.seconds >= 0.2
    assert report.seconds >= report.opened.seconds + 0.2, "one round of questions and one of units"


async def test_a_server_that_refuses_most_questions_gets_more_of_them_in_a_round(
    db: Path, server: OpenAIServer
) -> None:
    """Each refusal ended the round and was followed by a pause of up to 8 s. With 90 % random refusals, the questions alone
    took six minutes."""
    server.script(None, *["429"] * (QUESTIONS - 1), *["429"] * 7)
    provider = base.get("openai/loopback", base.Settings(base_url=server.url))
    calls = []
    try:
        for _ in range(4):
            before = server.requests
            with pytest.raises(RateLimited):
                await provider.open()
            calls.append(server.requests - before)
        await provider.open()
    finally:
        await provider.close()
    # All together; one refusal; after a round without an answer two, and then four.
    assert calls == [QUESTIONS, 1, 2, 4]
