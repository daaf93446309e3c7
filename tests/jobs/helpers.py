"""Run files of requests as vLLM's `run-batch` does, take the steps of `judge run --batch` one by one, count their units."""

import asyncio
import json
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from judge.asking.run import complete_asking, prepare
from judge.errors import Unreachable
from judge.jobs import follow, post
from judge.jobs.offline import Offline
from judge.jobs.read import JobTally, read_results
from judge.jobs.write import Written, write_job
from judge.providers import base
from judge.run_options import RunOptions
from judge.runner import Plan
from judge.store import Store, jobs
from tests.loopback.batches_server import AnthropicBatchServer, Batching, OpenAIBatchServer
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import plan, select

MODEL = "openai/loopback"
Line = dict[str, Any]


def requests_in(*paths: Path) -> list[Line]:
    """The lines of files of requests."""
    return [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]


def job_of(written: Written) -> jobs.Job:
    """The job that was written."""
    assert written.job is not None
    return written.job


def answer_to(request: Line, status: int = 200) -> Line:
    """The line of results for one of requests: the loopback server's answer, which depends on the text alone."""
    out = OpenAIServer().answer(request["body"], "", None)
    response = {"status_code": status, "request_id": "r", "body": json.loads(out.body)}
    return {"id": "batch_req", "custom_id": request["custom_id"], "response": response, "error": None}


def write_lines(path: Path, rows: Iterable[Line | str]) -> Path:
    """Rows as JSON lines; a text is written as it is."""
    text = "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows)
    path.write_text(text, encoding="utf-8")
    return path


def run_files(written: Written, change: Callable[[Line], Line] = lambda line: line) -> list[Path]:
    """Answer every file of a job; the results lie beside it."""
    found = []
    for file in written.files:
        source = job_of(written).folder / file.file
        rows = [change(answer_to(request)) for request in requests_in(source)]
        found.append(write_lines(source.with_suffix(".out"), rows))
    return found


def write_offline(db: Path, asked: Plan | None = None, **options: Any) -> Written:
    """A job for a program of our own."""
    given = asked or plan(MODEL)
    provider = Offline(base.get(given.asked_as or given.model), given.sampling.answers in ("codes", "words"))
    with Store.open(db, create=False) as store:
        return write_job(store, given, provider, **options)


def answered_job(db: Path) -> tuple[Path, list[Line]]:
    """Write a job for a program of our own. Returns its folder, and the line of results for each of its requests."""
    folder = job_of(write_offline(db)).folder
    return folder, [answer_to(request) for request in requests_in(folder / "part-0001.jsonl")]


def read_files(db: Path, paths: list[Path], name: str = "last") -> JobTally:
    """Read results into the study."""
    with Store.open(db, create=False) as store:
        return read_results(store, jobs.find(store, name), paths)


def states(db: Path) -> dict[str, int]:
    """Units of all jobs by state."""
    return dict(select(db, "SELECT state, count(*) FROM job_requests GROUP BY 1"))


SERVERS: dict[str, type[Batching]] = {"openai": OpenAIBatchServer, "anthropic": AnthropicBatchServer}


def model_of(server: Batching) -> str:
    """The name of a model whose batches this server runs."""
    vendor = next(name for name, kind in SERVERS.items() if isinstance(server, kind))
    return f"{vendor}/loopback"


def of(server: Batching) -> list[str]:
    """The arguments of `judge run` for this server."""
    return ["stance", "-m", model_of(server), "--answers", "json", "--base-url", server.url]


def batch(server: Batching) -> list[str]:
    return ["run", *of(server), "--batch"]


def write_batch(db: Path, server: Batching, **options: Any) -> Written:
    """Write the pending requests of a run for the server's batches, and post nothing."""
    given = RunOptions(base_url=(server.url,), answers="json", **options)
    with Store.open(db, create=False) as store:
        asking = complete_asking(store, prepare("stance", model_of(server), given), given)

        async def opened() -> None:
            await asking.provider.open()
            await asking.provider.close()

        asyncio.run(opened())
        return write_job(store, asking.plan, asking.provider)


def submit(db: Path) -> post.PostReport:
    """Post the files of the newest job that are not posted yet."""
    with Store.open(db, create=False) as store:
        job = jobs.find(store, "last")
        with closing(follow.service_of(store.path, job)) as service:
            return post.submit(store, job, service)


def lose_post(db: Path, server: Batching, *, arrives: bool) -> None:
    """Write a batch whose post ends with a lost connection; `arrives`: whether the server begins the batch."""
    write_batch(db, server)
    server.lost_answers, server.not_sent = int(arrives), int(not arrives)
    with pytest.raises(Unreachable, match="connection lost"):
        submit(db)


def fetch(db: Path) -> list[Path]:
    """Download the results of the newest job, without reading them."""
    with Store.open(db, create=False) as store:
        job = jobs.find(store, "last")
        with closing(follow.service_of(store.path, job)) as service:
            follow.poll(store, job, service)
            return follow.fetch(store, job, service)
