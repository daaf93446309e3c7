"""What runs in a worker, without Ray: blocks in, replies and errors out, whatever happens to the provider."""

import asyncio
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from judge import engines
from judge.asking.run import provider_of
from judge.engines import ray
from judge.engines.worker import Served, Worker, Workers
from judge.errors import KeyProblem, RateLimited, Rejected, Unreachable, UsageError
from judge.providers import base
from judge.providers.base import Settings
from judge.run_options import RunOptions
from judge.types import Message, Reply, Request
from tests.loopback.openai_server import OpenAIServer


def requests(n: int) -> list[Request]:
    return [Request("m", (Message("user", f"Unit {i}"),), 0, codes="AB", max_tokens=10) for i in range(n)]


async def answers(worker: Worker, block: list[Request], *rest: Any) -> tuple[dict[int, Any], list[Any]]:
    replies: dict[int, Any] = {}
    facts = []
    async for done, said in worker.answer(block, *rest):
        facts.append(said)
        for number, reply in done:
            assert number not in replies, "answered once"
            replies[number] = reply
    return replies, facts


async def test_every_request_of_a_block_has_one_answer() -> None:
    worker = Worker(Served("scripted/hash", Settings(options={"delay": "0.001"})))
    replies, _ = await answers(worker, requests(64))
    assert sorted(replies) == list(range(64))
    assert all(isinstance(reply, Reply) for reply in replies.values())
    assert await worker.close() == []


async def test_an_unknown_fault_is_about_its_request_alone() -> None:
    worker = Worker(Served("scripted/hash", Settings()))
    await worker.open()
    assert worker._provider is not None
    whole = worker._provider.complete

    async def complete(request: Request) -> Reply:
        if request.messages[0].content == "Unit 1":
            raise ZeroDivisionError
        if request.messages[0].content == "Unit 2":
            raise Rejected("no", 400)
        return await whole(request)

    worker._provider.complete = complete  # type: ignore[method-assign]
    replies, _ = await answers(worker, requests(4))
    assert [type(replies[n]).__name__ for n in range(4)] == ["Reply", "ServerFault", "Rejected", "Reply"]


def test_errors_pass_between_processes_with_what_they_know() -> None:
    for error in (
        Unreachable("gone", sent=False), Unreachable("late", timed_out=True), RateLimited("slow", 3.5), Rejected("no", 404),
    ):  # fmt: skip
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


async def test_a_provider_that_does_not_open_is_said_as_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    worker = Worker(Served("openai/x", Settings()))
    assert isinstance(await worker.open(), KeyProblem)
    replies, _ = await answers(worker, requests(3))
    assert [type(e) for e in replies.values()] == [KeyProblem] * 3


async def test_what_the_provider_learns_of_its_server_comes_back_with_the_replies() -> None:
    async with OpenAIServer() as server:
        worker = Worker(Served("openai/x", Settings(base_url=server.url)))
        opened = await worker.open()
        assert isinstance(opened, tuple) and opened[2]["base_url"] == server.url
        await worker.close()


COMMAND = f"{sys.executable} {Path(__file__).parent / 'small_server.py'} {{port}}"


async def test_a_worker_starts_its_own_server_and_ends_it() -> None:
    worker = Worker(Served("openai/own", Settings(), COMMAND))
    opened = await worker.open()
    assert isinstance(opened, tuple), opened
    replies, _ = await answers(worker, requests(3))
    assert [reply.text for reply in replies.values()] == ["A"] * 3
    server = worker._server
    assert server is not None and server.poll() is None
    await worker.close()
    assert server.poll() is not None


async def test_a_server_that_ends_at_once_is_said() -> None:
    worker = Worker(Served("openai/own", Settings(), f"{sys.executable} -c 'raise SystemExit(7)' {{port}}"))
    said = await asyncio.wait_for(worker.open(), 60)
    assert isinstance(said, Unreachable) and "exited with status 7 before it answered" in str(said)


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(UsageError, match="require --workers N"):
        provider_of("scripted/hash", RunOptions(worker_gpus=1.0))
    with pytest.raises(UsageError, match="--workers accepts only one --base-url"):
        engines.provider("openai/x", Settings(replicas=("http://127.0.0.1:1",)), Workers())
    with pytest.raises(UsageError, match="replaced with the server's port"):
        engines.provider("openai/x", Settings(), Workers(command="vllm serve x"))
    with pytest.raises(UsageError, match="no script 'nothing'"):
        engines.provider("scripted/nothing", Settings(), Workers())


def test_a_key_that_only_the_driver_has_is_not_asked_of_it_again() -> None:
    """The worker says that it is not set; whoever started the run has exported it."""
    alike = base.get("scripted/hash", Settings())
    remote = ray.Remote(2, Served("openai/m", Settings()), Workers(), alike)
    with pytest.raises(KeyProblem, match="worker 2: OPENAI_API_KEY is not set; keys are not sent"):
        remote._keep(KeyProblem("OPENAI_API_KEY is not set"))
