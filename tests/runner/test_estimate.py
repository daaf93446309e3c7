"""What a run would take: checked against what the run then takes."""

from dataclasses import replace
from pathlib import Path

import pytest

from judge.prompts import load_task
from judge.providers import base
from judge.runner.estimate import estimate
from judge.runner.opening import open_patiently
from judge.runner.requests import Sampling
from judge.store import Store
from judge.types import Reply, Usage
from tests.loopback.faults import Fault, Rule
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import Fake, label, plan, run, select

UNITS = 50
FILE = {"test/model": {"input": 1.0, "output": 10.0, "batch": {"input": 0.5, "output": 5.0}}}
JSON = Sampling(answers="json", max_output_tokens=100)


async def test_the_estimate_is_what_the_run_then_takes(db: Path) -> None:
    """The model counts four characters a token, as the estimate does, and takes 12 out of the 100."""
    run_plan = plan(sampling=JSON, prices=FILE, repeats=2, concurrency=10)
    fake = Fake(
        lambda r, t: Reply(label().text, usage=Usage(sum(len(m.content) for m in r.messages) // 4, 12, 0))
    )
    with Store.open(db) as store:
        first = estimate(store, run_plan, fake)
        assert (first.units, first.calls, fake.requests) == (2 * UNITS, 2 * UNITS, [])
        assert select(db, "SELECT count(*) FROM runs") == [(0,)]
        assert first.seconds is None and "-n 20" in first.speed, "nothing was measured on this server"
        assert first.most_output_tokens == 2 * 100 * 100, "each may need a repair"
    report = await run(db, fake, run_plan)
    took = report.usage["input_tokens"]
    assert 0.95 * took < first.input_tokens < 1.25 * took, "the schema of 160 characters is counted too"
    with Store.open(db) as store:
        done = estimate(store, run_plan, fake)
        assert (done.calls, done.online, done.seconds) == (0, 0.0, 0.0)
        more = estimate(store, plan(sampling=JSON, prices=FILE, extra={"system": "b"}), fake)
    assert more.output_tokens == 12 * UNITS, "as measured"
    assert more.online == pytest.approx((more.input_tokens + 10 * more.output_tokens) / 1e6, rel=1e-3)
    assert more.batch is not None and more.online == pytest.approx(2 * more.batch)
    assert more.most is not None and more.most > more.online
    assert more.cached == more.online, "no vendor's cache keeps so short a beginning"


@pytest.mark.parametrize("rationale", ["none", "before"])
async def test_at_most_is_an_upper_bound_with_probes_repairs_and_second_calls(
    db: Path, rationale: str
) -> None:
    """The server bills the token limit for every call, and no reply is an answer."""
    async with OpenAIServer() as server:
        task = load_task("stance").thinking(rationale)
        sampling = Sampling(answers="codes", max_output_tokens=200)
        prices = {"openai/loopback": {"input": 1.0, "output": 10.0}}
        asked = replace(plan("openai/loopback", sampling=sampling, prices=prices), task=task)
        provider = base.get("openai/loopback", base.Settings(base_url=server.url))
        with Store.open(db) as store:
            forecast = estimate(store, asked, provider)
            asked = await open_patiently(provider, asked, store=store)
        server.reset_counts()
        server.plan.rules = [Rule(Fault("wrong_label"))]
        report = await run(db, provider, asked)
        await provider.close()
        # 50 units with a repair each. If the rationale comes first, each unit has three calls.
        calls = UNITS * (2 if rationale == "none" else 3)
        assert report.opened is not None and server.requests == calls
        assert report.ended == {"unparsed": UNITS}
    probes = 200 * report.opened.calls
    assert calls * 200 <= forecast.most_output_tokens <= calls * 200 + probes
    assert forecast.most is not None and forecast.most >= report.spent.cost
    # What a server bills that takes each call to its limit: 10 dollars for a million tokens.
    assert forecast.most >= calls * 200 * 10 / 1e6


async def test_the_time_comes_from_the_speed_of_this_servers_last_run(db: Path) -> None:
    """Ten calls at once of 0.2 s each: the rate of 50 calls is 50 a second, whatever paused in between."""
    run_plan = plan(sampling=JSON, prices=FILE, concurrency=10)
    await run(db, Fake(lambda r, t: label()), run_plan)
    with Store.open(db) as store:
        moments = "SELECT row_number() OVER (ORDER BY unit_id) - 1 AS n, unit_id AS id FROM judgements"
        # The last ten calls came an hour later, in a run that was resumed.
        store.conn.execute(
            f"""WITH m AS ({moments}) UPDATE judgements SET latency = 0.2, judged_at = (
            SELECT strftime('%Y-%m-%dT%H:%M:%fZ', 1700000000 + n / 10 * 0.2 + 3600 * (n >= 40), 'unixepoch')
            FROM m WHERE id = judgements.unit_id)"""
        )
        other = estimate(store, plan(sampling=JSON, extra={"system": "b"}), Fake(lambda r, t: label()))
    # 50 calls in five groups: four gaps of 0.2 s (the hour counts as one call), and 0.2 s of the first group.
    assert other.seconds == pytest.approx(other.calls / (50 / (4 * 0.2 + 0.2)), rel=1e-2)
    assert "50 calls a second" in other.speed
