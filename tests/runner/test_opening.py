"""What is asked of a server before the first unit: when, how patiently, and what the study remembers of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from judge.errors import Unreachable, UsageError
from judge.providers import base
from judge.runner import RunReport, open_patiently, run_task
from judge.runner.requests import Sampling
from judge.store import Store
from judge.store import runs as store_runs
from judge.store.selection import Selection
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import HASTY, make_study, numbered, plan, select

UNITS = 6


@pytest.fixture
async def server() -> AsyncIterator[OpenAIServer]:
    async with OpenAIServer(record=True) as started:
        started.logprobs = "none"
        yield started


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_study(tmp_path / "s.db", numbered(UNITS))


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
            asked = plan("openai/loopback", **{"patience": replace(HASTY, outage=30.0), **changes})
            return await run_task(store, await open_patiently(provider, asked, store=store), provider)
    finally:
        await provider.close()


def questions(server: OpenAIServer) -> int:
    """Requests that were about no unit."""
    return sum("Passage number" not in str(body) for body in server.bodies)


@pytest.mark.parametrize("kind", ["reset", "closed", "cut", "503", "not_json"])
@pytest.mark.parametrize("which", [0, 1])
async def test_a_fault_among_the_first_questions_is_tried_again(
    db: Path, server: OpenAIServer, kind: str, which: int
) -> None:
    server.script(*[None] * which, kind)
    report = await ask(db, server)
    assert (report.ended, report.error) == ({"ok": UNITS}, None)


async def test_a_question_that_hangs_is_tried_again(db: Path, server: OpenAIServer) -> None:
    server.script(Fault("slow", seconds=30.0))
    report = await ask(db, server, timeout=0.3)
    assert report.ended == {"ok": UNITS}


async def test_more_faults_than_a_unit_has_tries_are_waited_for(db: Path, server: OpenAIServer) -> None:
    server.script(*["503"] * 20)
    report = await ask(db, server)
    assert report.ended == {"ok": UNITS}


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
    assert questions(server) == 2, "label probabilities, and JSON"
    server.reset_counts()
    other = await ask(db, server, sampling=Sampling(answers="json", temperature=0.7))
    assert other.run_id != first.run_id
    assert (server.requests, questions(server)) == (UNITS, 0)
    modes = select(
        db, "SELECT DISTINCT json_extract(provider, '$.format'), json_extract(options, '$.mode') FROM runs"
    )
    assert modes == [("json_schema", "json")], "it is asked as it was found to answer"


async def test_what_is_remembered_is_what_was_asked_with_these_options(
    db: Path, server: OpenAIServer
) -> None:
    await ask(db, server)
    server.reset_counts()
    report = await ask(db, server, options={"mask": "none"}, sampling=Sampling(answers="json", seed=1))
    assert (report.ended, questions(server)) == ({"ok": UNITS}, 2)


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
    assert questions(server) == 2


async def test_what_does_not_fit_is_asked_again(db: Path, server: OpenAIServer) -> None:
    """Another version wrote it, or somebody's program."""
    await ask(db, server)
    for seed, wrong in enumerate(('{"dialect": {"unknown": 1}}', '{"dialect": 3}', "[]", "{}", '"text"')):
        with Store.open(db, create=False) as store, store.transaction() as conn:
            conn.execute(
                "UPDATE runs SET provider = json_set(provider, '$.servers.\"' || ? || '\".learnt', json(?))",
                [server.url, wrong],
            )
        server.reset_counts()
        report = await ask(db, server, sampling=Sampling(answers="json", seed=seed))
        assert (report.ended, questions(server)) == ({"ok": UNITS}, 2), wrong


async def test_a_resumed_run_notices_another_model_by_its_first_reply(db: Path, server: OpenAIServer) -> None:
    """Nothing is asked first, so that the reply to a unit is what tells; it is not kept."""
    server.reports = "weights-1"

    first = await ask(db, server, selection=Selection(limit=2))
    server.reports = "weights-2"
    server.reset_counts()
    second = await ask(db, server)
    assert second.run_id == first.run_id
    assert isinstance(second.error, UsageError)
    assert "answers as 'weights-2', where the run has answers of weights-1" in str(second.error)
    assert questions(server) == 0
    assert select(db, "SELECT DISTINCT resolved_model FROM judgements") == [("weights-1",)]
    third = await ask(db, server, same_model=True)
    assert third.labelled == UNITS


async def test_the_concurrency_that_was_sustained_is_remembered(db: Path, server: OpenAIServer) -> None:
    await ask(db, server, concurrency=4)
    known = remembered(db, server)
    assert known.concurrency == 4
    await ask(db, server, concurrency=2, sampling=Sampling(answers="json", seed=1))
    assert remembered(db, server).concurrency == 4, (
        "fewer at once without any trouble say nothing against four"
    )


def remembered(db: Path, server: OpenAIServer) -> store_runs.KnownServer:
    with Store.open(db, create=False) as store:
        facts = {"vendor": "openai", "model": "loopback"}
        return store_runs.known_servers(store.conn, facts)[server.url]


async def test_the_seconds_of_a_run_begin_with_the_first_question(db: Path, server: OpenAIServer) -> None:
    server.delay = 0.2
    report = await ask(db, server)
    assert report.opened is not None and report.opened.seconds >= 0.2
    assert report.seconds >= report.opened.seconds + 0.2, "one round of questions and one of units"
