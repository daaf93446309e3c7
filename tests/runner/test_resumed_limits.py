"""A limit is the run's: what earlier commands used of it counts when the run is resumed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.helpers import Done, checked
from tests.loopback.openai_server import OpenAIServer
from tests.loopback.wire import Fault, threaded
from tests.runner.helpers import make_study, numbered

Judge = Callable[..., Done]


@pytest.fixture
def server(judge: Judge, tmp_path: Path) -> Iterator[OpenAIServer]:
    make_study(tmp_path / "study.db", numbered(40))
    with threaded(OpenAIServer()) as running:
        yield running


def words(server: OpenAIServer, *more: str) -> list[str]:
    model = ["-m", "openai/x", "--base-url", server.url, "--concurrency", "1", "--max-output-tokens", "16"]
    return ["run", "stance", *model, "--answers", "json", "--json", *more]


def tokens(study: Path) -> int:
    """All that the server counted for the run."""
    with closing(sqlite3.connect(study)) as conn:
        query = "SELECT sum(input_tokens) + sum(output_tokens) FROM judgements"
        units = conn.execute(query).fetchone()[0] or 0
        probes = json.loads(conn.execute("SELECT provider FROM runs").fetchone()[0]).get("probes") or {}
    return int(units + probes.get("input_tokens", 0) + probes.get("output_tokens", 0))


def test_the_same_command_again_spends_no_more(judge: Judge, server: OpenAIServer, tmp_path: Path) -> None:
    first = checked(judge(*words(server, "--max", "6000tokens"), code=4).out, "run")
    used = tokens(tmp_path / "study.db")
    assert 0 < first["labelled"] < 40 and 4_000 < used <= 6_000
    n_requests = server.requests
    for _ in range(3):
        done = judge(*words(server, "--max", "6000tokens"), code=4)
        assert f"the limit of 6,000 tokens ({used:,} were used by earlier commands)" in done.err
    assert server.requests == n_requests
    more = judge(*words(server, "--max", f"{used + 2_000}tokens"), code=4)
    assert "raise the limit that was reached" in more.err
    assert used < tokens(tmp_path / "study.db") <= used + 2_000
    assert checked(judge(*words(server)).out, "run")["labelled"] == 40


def test_money_counts_on_too(judge: Judge, server: OpenAIServer, tmp_path: Path) -> None:
    (tmp_path / "prices.json").write_text(json.dumps({"openai/x": {"input": 1.0, "output": 4.0}}))
    limit = words(server, "--prices", "prices.json", "--max", "0.006usd")
    judge(*limit, code=4)
    n_requests = server.requests
    done = judge(*limit, code=4)
    assert "the limit of $0.006 ($0.00" in done.err and "by earlier commands" in done.err
    assert server.requests == n_requests


def test_lost_calls_of_an_earlier_command_count(judge: Judge, server: OpenAIServer, tmp_path: Path) -> None:
    """The server worked on three calls and gave no answer: no judgement has their tokens."""
    judge(*words(server, "-n", "2"))
    known = tokens(tmp_path / "study.db")
    server.script(Fault("500"), Fault("500"), Fault("500"))
    judge(*words(server, "-n", "4"), code=None)
    with closing(sqlite3.connect(tmp_path / "study.db")) as conn:
        charged = json.loads(conn.execute("SELECT provider FROM runs").fetchone()[0])["spent"]["tokens"]
    assert charged > tokens(tmp_path / "study.db") > known
    done = judge(*words(server, "--max", f"{charged + 10}tokens"), code=4)
    assert f"({charged:,} were used by earlier commands)" in done.err


def test_the_run_of_another_model_has_its_own_limit(judge: Judge, server: OpenAIServer) -> None:
    judge(*words(server, "--max", "6000tokens"), code=4)
    other = judge(*words(server, "--max", "6000tokens", "--as", "other"), code=4)
    assert checked(other.out, "run")["labelled"] > 0
