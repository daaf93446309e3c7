"""A ledger of the server: whatever goes wrong, units, tokens and money agree with what the server has counted."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import KeyProblem, ProviderError, Rejected, ServerFault, UsageError
from judge.providers import base
from judge.runner import run as run_module
from judge.runner import server as model_server
from judge.runner.budget import Opened
from judge.runner.requests import Sampling
from judge.store.selection import Selection
from tests.loopback.faults import Fault
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Out
from tests.runner.helpers import attempts, plan, run, select, served

UNITS = 40
KEY = "sk-secret-0123456789"
PRICES = {"openai/loopback": {"input": 1.0, "output": 10.0}}


class Ledger(OpenAIServer):
    """Notes the tokens of every answer that it completes. `change` makes another answer for some requests."""

    def __init__(self, change: Callable[["Ledger", Out, int], Out] | None = None) -> None:
        super().__init__(record=True)
        self.change = change
        self.tokens = 0
        self.is_open = False
        """Whether the start-up probes are over, so that answers may be changed."""

    def respond(self, method: str, path: str, head: str, payload: bytes) -> Out:
        out = super().respond(method, path, head, payload)
        if method != "POST" or path != self.path:
            return out
        if self.change is not None and self.is_open:
            out = self.change(self, out, self.requests)
        if out.status == 200 and not out.close:
            try:
                usage = json.loads(out.body)["usage"]
            except (ValueError, KeyError):
                return out
            self.tokens += usage["prompt_tokens"] + usage["completion_tokens"]
        return out

    def reset_counts(self) -> None:
        super().reset_counts()
        self.tokens, self.is_open = 0, True


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_server, "FIRST_PROBE", 0.01)
    monkeypatch.setattr(model_server, "LAST_PROBE", 0.02)
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def body(out: Out, **changes: Any) -> Out:
    """The answer with other fields in its body."""
    return replace(out, body=json.dumps({**json.loads(out.body), **changes}).encode())


def choice(out: Out, **changes: Any) -> Out:
    first = json.loads(out.body)["choices"][0]
    return body(out, choices=[{**first, **changes}])


def check(db: Path, server: Ledger) -> None:
    """Every unit has one label or none, and the stored tokens are those that the server has counted."""
    several = "SELECT unit_id FROM labels GROUP BY unit_id, field HAVING count(*) > 1"
    assert select(db, several) == []
    labelled = (
        "SELECT DISTINCT unit_id FROM labels EXCEPT SELECT unit_id FROM latest_judgements WHERE status = 'ok'"
    )
    assert select(db, labelled) == []
    stored = select(db, "SELECT sum(input_tokens + output_tokens) FROM judgements")
    assert stored == [(server.tokens,)]
    assert KEY not in str(select(db, "SELECT * FROM judgements"))


async def judged(db: Path, server: Ledger, fault: str | None = None, **limits: Any) -> Any:
    asked = plan("openai/loopback", prices=PRICES, **{"concurrency": 4, **limits})
    async with server, served(server) as provider:
        if fault is not None:
            hit = {f"Passage number {n}." for n in (3, 13, 23)}

            def once(request: dict[str, Any], number: int) -> Fault | None:
                text = next((t for t in hit if t in str(request)), None)
                hit.discard(text or "")
                return None if text is None else Fault(fault)

            server.plan.when = once
        return await run(db, provider, asked)


def every_tenth(change: Callable[[Out], Out]) -> Callable[[Ledger, Out, int], Out]:
    return lambda server, out, number: change(out) if number % 10 == 0 else out


RETRIED = [
    "429", "500", "502", "503", "529", "408", "409", "reset", "closed", "cut", "truncated", "not_json", "page", "empty",
]  # fmt: skip
FINAL = ["wrong_label", "refusal", "filter", "length", "400", "413"]


@pytest.mark.parametrize("fault", RETRIED + FINAL)
async def test_a_fault_of_a_call(db: Path, fault: str) -> None:
    server = Ledger()
    report = await judged(db, server, fault)
    check(db, server)
    assert sum(report.ended.values()) == UNITS
    # What was lost may be billed, so it counts with its maximum; everything else counts exactly.
    assert report.spent.tokens >= server.tokens
    assert (report.spent.tokens == server.tokens) == (report.spent.lost == 0)
    if fault in RETRIED:
        assert report.ended == {"ok": UNITS}
        assert server.requests == UNITS + 3
    else:
        assert server.requests == UNITS + 3 * (fault == "wrong_label")


NO_ANSWERS: dict[str, Callable[[Out], Out]] = {
    "a key in the content": lambda out: choice(
        out, message={"content": json.dumps({"stance": "support", "note": KEY})}
    ),
    "a key in the fingerprint": lambda out: body(out, system_fingerprint=KEY),
    "a key after the answer": lambda out: choice(out, message={"content": f'{{"stance": "refute"}} {KEY}'}),
}


@pytest.mark.parametrize("change", NO_ANSWERS.values(), ids=NO_ANSWERS)
async def test_an_echoed_key_is_masked(db: Path, change: Callable[[Out], Out]) -> None:
    server = Ledger(every_tenth(change))
    report = await judged(db, server)
    check(db, server)
    assert report.ended == {"ok": UNITS} and report.spent.tokens == server.tokens


INCOMPLETE: dict[str, Callable[[Out], Out]] = {
    "an unknown finish reason": lambda out: choice(out, finish_reason="abort"),
    "no finish reason": lambda out: choice(out, finish_reason=None),
}


@pytest.mark.parametrize("change", INCOMPLETE.values(), ids=INCOMPLETE)
async def test_a_reply_that_is_not_said_to_be_complete(db: Path, change: Callable[[Out], Out]) -> None:
    server = Ledger(every_tenth(change))
    report = await judged(db, server)
    check(db, server)
    assert report.ended == {"ok": UNITS - 4, "truncated": 4} and report.spent.tokens == server.tokens


HOPELESS: dict[str, tuple[Callable[[Out], Out], type[Exception]]] = {
    "a redirect": (lambda out: Out(b"", 307, b"Location: http://127.0.0.1:9/\r\n"), Rejected),
    "202": (lambda out: Out(b"{}", 202), ServerFault),
    "204": (lambda out: Out(b"", 204), ServerFault),
    "more bytes than announced": (
        lambda out: replace(out, headers=b"X-A: b\r\n\r\n" + out.body + b"\x00\x00 extra"), ServerFault
    ),
    "a stream": (lambda out: replace(out, body=b"data: {}\n\ndata: [DONE]\n\n"), ServerFault),
    "several choices": (lambda out: body(out, choices=json.loads(out.body)["choices"] * 2), ServerFault),
    "a refused key in a 200": (
        lambda out: Out(b'{"error": {"type": "authentication_error", "message": "bad key"}}'), KeyProblem
    ),
    "another model": (lambda out: body(out, model="another"), UsageError),
}  # fmt: skip


@pytest.mark.parametrize(("change", "error"), HOPELESS.values(), ids=HOPELESS)
async def test_a_server_that_gives_no_more_answers_ends_the_run(
    db: Path, change: Callable[[Out], Out], error: type[Exception]
) -> None:
    """An hour of patience is for servers that are down: this would not end."""
    server = Ledger(lambda ledger, out, number: change(out) if number > 10 else out)
    patience = replace(plan().patience, outage=3600.0)
    report = await judged(db, server, patience=patience)
    assert isinstance(report.error, error) and isinstance(report.error, ProviderError | UsageError)
    assert report.ended["ok"] == 10
    assert report.ended["failed"] <= 4, "the units are not to blame"
    assert report.spent.tokens >= sum(
        t for (t,) in select(db, "SELECT input_tokens + output_tokens FROM judgements WHERE status = 'ok'")
    )


async def test_a_reply_of_another_model_is_paid_for_and_kept_without_a_label(db: Path) -> None:
    server = Ledger(lambda ledger, out, number: body(out, model="another") if number > 10 else out)
    report = await judged(db, server)
    assert isinstance(report.error, UsageError)
    check(db, server)
    kept = "SELECT DISTINCT status, resolved_model = 'another' FROM judgements ORDER BY status"
    assert select(db, kept) == [("failed", 1), ("ok", 0)]


async def test_the_probes_of_a_refused_run_are_counted(db: Path) -> None:
    """The second run finds another model at the address by its probes, and sends nothing else."""
    asked = plan("openai/loopback", selection=Selection(limit=3))
    async with Ledger() as server:
        async with served(server) as provider:
            await run(db, provider, asked)
        server.reports = "another"
        async with served(server) as provider:
            with pytest.raises(UsageError, match="now reports 'another'"):
                await run(db, provider, replace(asked, opened=Opened(calls=5)))
    [(facts,)] = select(db, "SELECT provider FROM runs")
    assert json.loads(facts)["probes"]["calls"] == 5


@pytest.mark.parametrize("limits", [{"max_tokens": 6_000}, {"max_cost": 0.03}], ids=["tokens", "cost"])
async def test_a_limit_before_a_repair_drops_no_paid_reply(db: Path, limits: dict[str, Any]) -> None:
    server = Ledger(lambda ledger, out, number: choice(out, message={"content": "It is hard to say."}))
    report = await judged(db, server, **limits)
    assert report.stopped is not None
    assert select(db, "SELECT count(*) FROM judgements") == [(server.requests,)]
    stored = select(db, "SELECT sum(input_tokens + output_tokens) FROM judgements")
    assert stored == [(server.tokens,)] and report.spent.tokens == server.tokens


async def test_a_limit_between_a_rationale_and_its_letter_drops_no_paid_reply(db: Path) -> None:
    server = Ledger()
    asked = plan("openai/loopback").task.thinking("before")
    sampling = Sampling(answers="codes", max_output_tokens=400)
    async with server, served(server) as provider:
        run_plan = replace(
            plan("openai/loopback", sampling=sampling, max_tokens=9_000, concurrency=4), task=asked
        )
        report = await run(db, provider, run_plan)
    assert report.stopped is not None
    assert select(db, "SELECT count(*) FROM judgements") == [(server.requests,)]
    assert report.ended["ok"] == sum(tried == ["ok", "ok"] for tried in attempts(db).values())
    assert report.spent.tokens == server.tokens


async def test_an_idle_connection_that_the_server_closed_is_retried_at_once(db: Path) -> None:
    """The server closes its connections when a request arrives on a used one, as at the end of its keep-alive."""
    server = Ledger()
    async with server, served(server) as provider:
        server.script(None, "closed", None, "closed")
        report = await run(db, provider, plan("openai/loopback", concurrency=1))
    assert report.ended == {"ok": UNITS} and report.spent.lost == 2
    assert report.cuts == 0


async def test_idle_connections_are_closed_before_the_announced_time() -> None:
    server = Ledger()
    server.extra_headers = {"Keep-Alive": "timeout=1, max=5"}
    async with server:
        provider = base.get("openai/loopback", base.Settings(base_url=server.url))
        await provider.open()
        connector = provider._wire._connector  # type: ignore[attr-defined]
        assert connector._keepalive_timeout == 0.5
        await provider.close()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("ALL_PROXY", "socks5h://127.0.0.1:9"),
        ("HTTP_PROXY", "socks5://user:secret@127.0.0.1:9"),
        ("http_proxy", "127.0.0.1:9"),
    ],
)
@pytest.mark.parametrize("vendor", ["openai", "azure"])
async def test_a_proxy_that_is_not_supported_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, vendor: str, variable: str, value: str
) -> None:
    for name in ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv(variable, value)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    options = {"api_version": "2024-10-21"} if vendor == "azure" else {}
    provider = base.get(
        f"{vendor}/m", base.Settings(base_url="http://models.example.com/v1", options=options)
    )
    with pytest.raises(UsageError) as refused:
        await provider.open()
        await provider.complete(None)  # type: ignore[arg-type]
    assert variable.lower() in str(refused.value).lower() and "secret" not in str(refused.value)
    await provider.close()
