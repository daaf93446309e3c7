"""Studies to run on, a provider that does what a test says, and what a run has left in the study."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from judge.prompts import load_task
from judge.providers import base
from judge.runner import Plan, RunReport, run_task
from judge.runner.requests import Sampling
from judge.runner.retry import Patience
from judge.store import Store
from judge.store.items import ImportInfo, add_items
from judge.types import Item, Passage, Reply, Request, Row, Vote, Where
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import LoopbackServer

STATUSES = ("ok", "unparsed", "refused", "truncated", "failed")
HASTY = Patience(base=0.002, longest=0.01, refused_for=0.0, outage=0.3)
"""The real policy with waits that a test has time for."""

Left = set[tuple[str, str | None, str, str | None, str]]
"""(unit, field, status, label, request hash)"""


def make_study(path: Path, texts: Sequence[str], gold: Sequence[Mapping[str, str]] = ()) -> Path:
    """A study with an item `t:N` and a passage `t:N/p` per text; `gold` has the labels of the items."""

    def fail(error: Exception) -> None:
        raise error

    rows = []
    for n, text in enumerate(texts):
        votes = [Vote(field, value) for field, value in (gold[n] if gold else {}).items()]
        item = Item(str(n), "t", claim="Tea is hot.", votes=votes, passages=[Passage(text, "p")])
        rows.append(Row(item, Where("test", n + 1)))
    with Store.open(path) as store:
        add_items(store, rows, ImportInfo("test", {}), [], fail)
    return path


@pytest.fixture
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A study with as many units as the module of the test says (`UNITS`)."""
    return make_study(tmp_path / "study.db", numbered(request.module.UNITS))


def numbered(count: int) -> list[str]:
    """Texts that differ."""
    return [f"Passage number {n}." for n in range(count)]


def plan(model: str = "test/model", task: str = "stance", **changes: Any) -> Plan:
    """A plan in JSON mode that does not wait long between tries."""
    given: dict[str, Any] = {"sampling": Sampling(answers="json"), "patience": HASTY, **changes}
    return Plan(load_task(task), model, **given)


async def run(db: Path, provider: base.Provider, run_plan: Plan | None = None, **options: Any) -> RunReport:
    """One run with an open provider; the report's counts add up."""
    with Store.open(db, create=False) as store:
        return checked(await run_task(store, run_plan or plan(), provider, **options))


@asynccontextmanager
async def served(
    server: LoopbackServer, timeout: float = 30.0, host: str = "127.0.0.1"
) -> AsyncIterator[base.Provider]:
    """The vendor's real provider for a loopback server under this name of the host; what `open` asked is forgotten."""
    vendor = "openai" if isinstance(server, OpenAIServer) else "anthropic"
    url = server.url.replace("127.0.0.1", host)
    provider = base.get(f"{vendor}/loopback", base.Settings(base_url=url, timeout=timeout))
    await provider.open()
    server.reset_counts()
    try:
        yield provider
    finally:
        await provider.close()


def checked(report: RunReport) -> RunReport:
    """The report, if every unit is in exactly one of its counts."""
    assert set(report.ended) <= set(STATUSES)
    assert sum(report.ended.values()) + report.reused + report.already_judged + report.pending == report.units
    assert report.pending >= 0
    return report


def left_in(db: Path) -> Left:
    """What the newest attempts say: (unit, field, status, label, request hash)."""
    query = """
        SELECT j.unit_id, l.field, j.status, l.value, j.request_sha
        FROM latest_judgements AS j LEFT JOIN labels AS l
        ON l.annotator_id = j.run_id AND l.unit_id = j.unit_id AND l.repeat = j.repeat
    """
    with Store.open(db, create=False) as store:
        return {tuple(row) for row in store.conn.execute(query)}


def attempts(db: Path) -> dict[str, list[str]]:
    """Unit -> the statuses of all its attempts, in order."""
    statuses: dict[str, list[str]] = {}
    for unit, status in select(
        db, "SELECT unit_id, status FROM judgements ORDER BY unit_id, repeat, attempt"
    ):
        statuses.setdefault(unit, []).append(status)
    return statuses


def select(db: Path, query: str) -> list[tuple[Any, ...]]:
    """Rows of the study."""
    with Store.open(db, create=False) as store:
        return [tuple(row) for row in store.conn.execute(query)]


def number_in(request: Request) -> int:
    """Which of the `numbered` texts a request shows."""
    shown = "\n".join(m.content for m in request.messages[request.prefix :])
    return int(shown.split("Passage number ")[1].split(".")[0])


def label(value: str = "support") -> Reply:
    """A good answer."""
    return Reply(json.dumps({"stance": value}))


class Fake(base.BaseProvider):
    """A provider that answers with what `answer` returns or raises for a request and its try number.

    `requests` holds every request in the order of arrival; `most` is the most that were open at once.
    """

    def __init__(
        self,
        answer: Callable[[Request, int], Reply] = lambda request, tries: label(),
        delay: float = 0.0,
        max_concurrency: int | None = None,
    ) -> None:
        self.answer, self.delay, self.max_concurrency = answer, delay, max_concurrency
        self.requests: list[Request] = []
        self.open_now = self.most = 0

    async def complete(self, request: Request) -> Reply:
        tries = sum(r.messages == request.messages for r in self.requests) + 1
        self.requests.append(request)
        self.open_now += 1
        self.most = max(self.most, self.open_now)
        try:
            await asyncio.sleep(self.delay)
            return self.answer(request, tries)
        finally:
            self.open_now -= 1
