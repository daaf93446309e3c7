"""What a run would take: checked against what the run then takes."""

from pathlib import Path

import pytest

from judge.providers import base
from judge.runner.estimate import Throughput, estimate
from judge.runner.requests import Sampling
from judge.store import Store
from judge.types import Reply, Usage
from tests.loopback.anthropic_server import AnthropicServer
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import Fake, label, make_study, numbered, plan, run, select

UNITS = 50
FILE = {"test/model": {"input": 1.0, "output": 10.0, "batch": {"input": 0.5, "output": 5.0}}}
JSON = Sampling(answers="json", max_output_tokens=100)


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return make_study(tmp_path / "s.db", numbered(UNITS))


async def test_the_estimate_is_what_the_run_then_takes(db: Path) -> None:
    """The model counts four characters a token, as the estimate does, and takes 12 out of the 100."""
    asked = plan(sampling=JSON, prices=FILE, repeats=2)
    fake = Fake(
        lambda r, t: Reply(label().text, usage=Usage(sum(len(m.content) for m in r.messages) // 4, 12, 0))
    )
    with Store.open(db) as store:
        first = await estimate(store, asked, fake, Throughput(concurrency=10, latency=2.0))
        assert (first.units, first.calls, fake.requests) == (2 * UNITS, 2 * UNITS, [])
        assert select(db, "SELECT count(*) FROM runs") == [(0,)]
        # 100 calls of 2 s, 10 at once
        assert (first.seconds, first.most_output_tokens) == (20.0, 100 * 100)
    report = await run(db, fake, asked)
    took = report.usage["input_tokens"]
    assert 0.95 * took < first.input_tokens < 1.25 * took, "the schema of 160 characters is counted too"
    with Store.open(db) as store:
        done = await estimate(store, asked, fake, Throughput())
        assert (done.calls, done.online, done.seconds) == (0, 0.0, 0.0)
        more = await estimate(
            store, plan(sampling=JSON, prices=FILE, extra={"system": "b"}), fake, Throughput()
        )
    assert more.output_tokens == 12 * UNITS, "as measured"
    assert more.online == pytest.approx((more.input_tokens + 10 * more.output_tokens) / 1e6, rel=1e-3)
    assert more.batch is not None and more.online == pytest.approx(2 * more.batch)
    assert more.most is not None and more.most > more.online
    assert more.cached == more.online, "no vendor's cache keeps so short a beginning"


async def test_limits_of_the_account_decide_the_time(db: Path) -> None:
    with Store.open(db) as store:
        requests = await estimate(store, plan(), Fake(), Throughput(latency=1.0, requests_per_minute=5))
        tokens = await estimate(store, plan(), Fake(), Throughput(latency=1.0, tokens_per_minute=60))
    assert (requests.seconds, requests.bound_by) == (600.0, "5 requests a minute")
    assert tokens.seconds == tokens.input_tokens + tokens.output_tokens
    assert requests.online is None and requests.price is None


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_the_vendor_counts_the_tokens_of_some(db: Path, vendor: str) -> None:
    """The loopback servers count three characters a token: four thirds of the estimate."""
    server = OpenAIServer() if vendor == "openai" else AnthropicServer()
    async with server:
        provider = base.get(f"{vendor}/m", base.Settings(server.url))
        with Store.open(db) as store:
            asked = plan(f"{vendor}/m", sampling=JSON)
            alone = await estimate(store, asked, provider, Throughput())
            counted = await estimate(store, asked, provider, Throughput(), provider.count_tokens, 5)
        await provider.close()
        assert (len(server.counted), server.requests) == (5, 0)
        sent = server.counted[0]
        assert sent["model"] == "m"
        assert "max_tokens" not in sent
        assert ("input" if vendor == "openai" else "messages") in sent
        # The schema's 90 characters or so are in the estimate, and in these servers' counts not.
        assert 1.1 < counted.input_tokens / alone.input_tokens < 4 / 3
        assert "5 of them counted" in counted.basis[0]
