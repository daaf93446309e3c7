"""Both vendors' batches against loopback servers: late, partial, expired, unordered, cancelled, unknown at first."""

import asyncio
import json
import os
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from judge.asking.run import prepare
from judge.errors import BadInput, KeyProblem
from judge.jobs import follow, lines, post, whole
from judge.providers.base import Provider
from judge.run_options import RunOptions
from judge.store import Store, jobs
from tests.cli.helpers import Done, checked
from tests.jobs.helpers import SERVERS, batch, fetch, lose_post, of, requests_in, states, submit, write_batch
from tests.loopback.batches_server import Batching
from tests.loopback.wire import threaded
from tests.runner.helpers import left_in, make_study, numbered, select

UNITS = 12
Judge = Callable[..., Done]
Line = dict[str, Any]


async def open_and_close(provider: Provider) -> None:
    await provider.open()
    await provider.close()


def test_run_batch_leaves_what_live_calls_leave(
    server: Batching, db: Path, judge: Judge, tmp_path: Path
) -> None:
    server.late, server.early, server.unordered = 2, 2, True
    done = checked(judge(*batch(server), "--json").out, "run")
    assert (done["ok"], done["pending"], done["stopped"]) == (UNITS, 0, None)
    assert (server.created, set(server.paid.values())) == (1, {1})
    assert done["tokens"]["input_tokens"] > 0
    live = make_study(tmp_path / "live.db", numbered(UNITS))
    judge("run", *of(server), "-d", live)
    assert left_in(db) == left_in(live)
    assert select(db, "SELECT identity FROM runs") == select(live, "SELECT identity FROM runs")
    assert select(db, "SELECT DISTINCT base_url, latency FROM judgements") == [(server.url, None)]
    # All is judged: neither way asks anything more.
    calls = server.requests
    again = checked(judge(*batch(server), "--json").out, "run")
    assert (again["already_judged"], again["run"], server.created) == (UNITS, done["run"], 1)
    assert server.requests - calls < UNITS, "only the probes of open"


def test_the_steps_one_by_one(server: Batching, db: Path, judge: Judge) -> None:
    server.late = 1
    assert (write_batch(db, server).lines, server.created) == (UNITS, 0)
    submit(db)
    submit(db)
    assert server.created == 1
    # In flight: a live run asks nothing, and says why.
    calls = server.requests
    live = judge("run", *of(server), code=4)
    assert f"{UNITS} units are in open batches" in live.err
    assert server.requests - calls < UNITS, "only the probes of open"
    [row] = checked(judge("jobs", "show", "last", "--json").out, "jobs_status")["rows"]
    assert (row["state"], row["status"]) == ("submitted", "in_progress")
    assert all(path.is_file() for path in fetch(db))
    assert states(db) == {"open": UNITS}
    read = checked(judge("jobs", "read", "--json").out, "jobs_read")
    assert (read["ok"], read["open"]) == (UNITS, 0)
    [row] = checked(judge("jobs", "show", "last", "--json").out, "jobs_status")["rows"]
    assert row["state"] == "read"
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_all_ways_to_come_back(server: Batching, db: Path, judge: Judge) -> None:
    """ok, an error of the request's own, a busy server, cancelled, and no line at all, in turn."""
    kinds = ["ok", "error", "busy", "cancelled", "lost", "expired"]
    server.outcome = lambda line: kinds[int(line["custom_id"][:8], 16) % 6] if server.created == 1 else "ok"
    server.ends_as = "expired"
    done = checked(judge(*batch(server), "--json", code=4).out, "run")
    of_kind = Counter(kinds[int(name[:8], 16) % 6] for name in server.asked)
    assert done["failed"] == of_kind["error"] > 0
    assert done["ok"] == UNITS - of_kind["error"]
    assert {name: n for name, n in server.asked.items() if n == 2} == {
        name: 2 for name in server.asked if kinds[int(name[:8], 16) % 6] not in ("ok", "error")
    }
    assert set(server.paid.values()) == {1}
    assert "injected error" in str(select(db, "SELECT reason FROM judgements WHERE status = 'failed'"))
    # The failed ones are the next command's, as their second attempt.
    server.outcome = lambda line: "ok"
    done = checked(judge(*batch(server), "--json").out, "run")
    assert done["ok"] == of_kind["error"]


def test_a_provider_that_answers_nothing_is_not_asked_for_ever(
    server: Batching, db: Path, judge: Judge
) -> None:
    server.outcome = lambda line: "expired"
    done = judge(*batch(server), code=4)
    assert server.created == 1
    assert "the batches ended without an answer" in done.err
    assert f"{UNITS} requests were not processed" in done.err
    assert states(db) == {"released": UNITS}


def test_a_lost_answer_does_not_pay_twice(server: Batching, db: Path, judge: Judge) -> None:
    """The batch is begun, and nobody learns its id."""
    server.late = 2
    lose_post(db, server, arrives=True)
    assert select(db, "SELECT state, batch_id FROM job_parts") == [("posting", None)]
    assert "may have been posted" in judge("jobs", "cancel").err
    if isinstance(server, SERVERS["anthropic"]):
        # Whose it is shows when it has ended: until then it is waited for.
        assert "batch_1" in submit(db).unsure[0]
    done = checked(judge(*batch(server), "--json").out, "run")
    assert done["labelled"] == UNITS
    assert states(db) == {"answered": UNITS}
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_what_was_never_begun_is_posted_when_the_user_releases_it(
    server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    lose_post(db, server, arrives=False)
    # It may show in the list a moment later.
    report = submit(db)
    assert ("should list it within" in report.unsure[0], report.undecided) == (True, None)
    monkeypatch.setattr(post, "SETTLE_SECONDS", 0.0)
    assert "judge jobs cancel" in str(submit(db).undecided)
    assert server.created == 0
    judge("jobs", "cancel", "--release")
    judge(*batch(server))
    assert states(db) == {"answered": UNITS, "released": UNITS}
    assert (server.created, set(server.paid.values())) == (1, {1})


def test_batches_of_others_are_told_apart(
    server: Batching, db: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another study's batches on the same account, one in progress and some at their end."""
    monkeypatch.setattr(post, "SETTLE_SECONDS", 0.0)
    other = make_study(tmp_path / "other.db", ["Nothing of the kind.", "Nor this."])
    for n in range(4):
        judge("run", *of(server), "--batch", "--as", f"judge {n}", "-d", other)
    server.late = 10**6
    write_batch(other, server, asked_as="judge 5")
    submit(other)
    lose_post(db, server, arrives=False)
    report = submit(db)
    if isinstance(server, SERVERS["anthropic"]):
        assert "batch_5" in report.unsure[0]
        server.batches["batch_5"].late = 0
        server.retrieved(server.batches["batch_5"])
        report = submit(db)
    assert report.undecided is not None, "its own is not among them"
    judge("jobs", "cancel", "--release")
    server.late = 0
    judge(*batch(server))
    assert server.created == 6
    assert server.asked.keys() >= {
        r["custom_id"] for r in requests_in(*sorted(tmp_path.glob("study.jobs/*/part-0001.jsonl")))
    }


def test_a_refused_key_is_not_shown_and_nothing_is_lost(
    server: Batching, db: Path, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-secret-0123456789"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    write_batch(db, server)
    server.key = "another"
    with pytest.raises(KeyProblem) as caught:
        submit(db)
    assert key not in str(caught.value)
    server.key = key
    submit(db)
    judge("jobs", "read")
    assert states(db) == {"answered": UNITS}
    for path in [p for p in tmp_path.rglob("*") if p.is_file()]:
        assert key.encode() not in path.read_bytes(), path


def test_a_batch_that_is_stopped_keeps_what_was_done(server: Batching, db: Path, judge: Judge) -> None:
    server.late = 3
    write_batch(db, server)
    submit(db)
    assert "1 batches are being cancelled" in judge("jobs", "cancel").out
    assert states(db) == {"open": UNITS}, "what was done by then has results"
    while "open" in states(db):
        judge("jobs", "read", code=4)
    # The loopback server answers the first request, and cancels the rest.
    assert states(db) == {"answered": 1, "released": UNITS - 1}
    server.late = 0
    done = checked(judge(*batch(server), "--json").out, "run")
    assert (done["ok"], done["already_judged"]) == (UNITS - 1, 1)
    assert set(server.paid.values()) == {1}


def test_what_was_not_posted_is_given_back(server: Batching, db: Path, judge: Judge) -> None:
    write_batch(db, server)
    assert f"{UNITS} units returned to the run" in judge("jobs", "cancel").out
    submit(db)
    assert server.created == 0
    judge(*batch(server))
    assert set(server.paid.values()) == {1}


def test_a_file_that_was_changed_is_not_posted(server: Batching, db: Path, judge: Judge) -> None:
    job = write_batch(db, server).job
    assert job is not None
    path = job.folder / "part-0001.jsonl"
    path.write_text(path.read_text("utf-8") + "\n", encoding="utf-8")
    assert f"{path}: changed since it was written" in judge(*batch(server), code=1).err
    path.unlink()
    assert f"{path}: cannot be read" in judge(*batch(server), code=1).err
    assert (server.created, server.asked) == (0, Counter())


def test_more_than_a_provider_takes(server: Batching, db: Path, judge: Judge) -> None:
    server.takes = 5
    done = judge(*batch(server), code=3)
    assert "more than 5" in done.err
    assert not server.paid
    assert judge("jobs", "cancel", code=0).out
    assert states(db) == {"released": UNITS}


def test_several_files(server: Batching, db: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    for vendor in SERVERS:
        monkeypatch.setitem(lines.LIMITS, vendor, (5, 10**9))
    server.late = 1
    done = checked(judge(*batch(server), "--json").out, "run")
    assert (done["ok"], server.created) == (UNITS, 3)
    assert [len(b.lines) for b in server.batches.values()] == [5, 5, 2]
    assert set(server.paid.values()) == {1}


def test_limits_hold_before_posting(server: Batching, db: Path, judge: Judge) -> None:
    job = write_batch(db, server).job
    assert job is not None
    most = job.most_tokens
    # A job of an earlier command counts against the limit of this one.
    done = judge(*batch(server), "--max", f"{most - 1}tokens", code=4)
    assert "written with higher limits" in done.err
    assert server.created == 0
    judge("jobs", "cancel")
    # Room for the most that two requests can take, of which they use about a tenth.
    done = judge(*batch(server), "--max", f"{most // 6}tokens", "--json", code=4)
    told = checked(done.out, "run")
    used = sum(told["tokens"][n] for n in ("input_tokens", "output_tokens"))
    assert used <= most // 6
    # What was set aside and not used goes into further batches: the limit is on what is used.
    assert server.created > 1
    assert 2 < told["ok"] < UNITS
    assert "could exceed the limit" in told["stopped"]


def without_a_line(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("spoil", [Path.unlink, without_a_line])
def test_fetched_results_that_were_lost_are_fetched_again(
    server: Batching, db: Path, judge: Judge, spoil: Callable[[Path], None]
) -> None:
    write_batch(db, server)
    submit(db)
    [first, *_] = fetch(db)
    spoil(first)
    with Store.open(db, create=False) as store, pytest.raises(BadInput, match="judge jobs read") as caught:
        follow.read_fetched(store, jobs.find(store, "last"))
    assert caught.value.path == str(first)
    assert states(db) == {"open": UNITS}
    judge("jobs", "read")
    assert states(db) == {"answered": UNITS}
    before = left_in(db)
    judge("jobs", "read", "last", first)
    assert left_in(db) == before


def test_results_elsewhere_are_not_fetched_with_the_key(db: Path, judge: Judge) -> None:
    with threaded(SERVERS["anthropic"]()) as server:
        shown = server.shown
        server.shown = lambda b: {**shown(b), "results_url": "http://127.0.0.2/stolen"}  # type: ignore[method-assign]
        write_batch(db, server)
        submit(db)
        assert "on another server" in judge("jobs", "read", code=3).err


def test_money(server: Batching, db: Path, judge: Judge, tmp_path: Path) -> None:
    model = of(server)[2]
    prices = {model: {"input": 2.0, "output": 8.0, "batch": {"input": 1.0, "output": 4.0}}}
    (tmp_path / "prices.json").write_text(json.dumps(prices))
    done = checked(judge(*batch(server), "--prices", "prices.json", "--max", "1usd", "--json").out, "run")
    # The questions about the server are single calls, at twice the price.
    facts = checked(judge("runs", "show", "--json").out, "run_show")["provider"]
    probes = facts.get("probes") or {"input_tokens": 0, "output_tokens": 0}
    expected = sum(
        (done["tokens"][name] + probes[name]) * dollars / 1e6
        for name, dollars in (("input_tokens", 1.0), ("output_tokens", 4.0))
    )
    assert done["cost"]["usd"] == pytest.approx(expected, abs=1e-6)
    assert expected > 0


def test_a_missing_derived_label_is_reported_once(server: Batching, db: Path, judge: Judge) -> None:
    done = judge("run", "raguard_exam", *of(server)[1:], "--batch")
    assert done.err.count("'raguard.role'") == 1


def test_interrupted_while_it_waits(server: Batching, db: Path, judge: Judge) -> None:
    def interrupt(seconds: float) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("a signal is heard at once")

    server.late = 10**6
    options = RunOptions(base_url=(server.url,), answers="json")
    with Store.open(db, create=False) as store:
        asked = prepare("stance", of(server)[2], options)
        asyncio.run(open_and_close(asked.provider))
        report = whole.run_batches(store, asked.plan, asked.provider, whole.Waiting(0.01, sleep=interrupt))
    assert (report.interrupted, report.pending, report.reserved) == (True, UNITS, UNITS)
    # A limit of time ends the waiting as well, at once and not at the next poll.
    assert "the time limit" in judge(*batch(server), "--max", "1s", code=4).err
    for held in server.batches.values():
        held.late = 0
    done = checked(judge(*batch(server), "--json").out, "run")
    assert (done["ok"], server.created) == (UNITS, 1)


def test_a_server_without_batches(db: Path, judge: Judge) -> None:
    from tests.loopback.openai_server import OpenAIServer

    class Plain(SERVERS["openai"]):  # type: ignore[misc, name-defined]
        def respond(self, *args: Any) -> Any:
            return OpenAIServer.respond(self, *args)

    with threaded(Plain()) as server:
        assert "not found" in judge(*batch(server), code=3).err
    assert select(db, "SELECT state FROM job_parts") == [("written",)]


def test_a_provider_that_is_away_is_waited_for(server: Batching, db: Path, judge: Judge) -> None:
    write_batch(db, server)
    submit(db)
    real, calls = server.respond, Counter[str]()

    def flaky(method: str, path: str, head: str, payload: bytes) -> Any:
        calls[method] += 1
        if "batches/" in path and calls["GET"] % 7 == 3:
            out = real(method, path, head, payload)
            out.close = "reset"
            return out
        return real(method, path, head, payload)

    server.respond = flaky  # type: ignore[method-assign]
    done = checked(judge(*batch(server), "--json").out, "run")
    assert done["ok"] == UNITS


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        (["--base-url", "http://127.0.0.1:9/v1"], "--base-url"),
        (["--option", "header.x-team=env:TEAM"], "header.x-team"),
        (["--label-order", "2", "--answers", "codes"], "--label-order"),
    ],
)
def test_what_goes_with_single_calls_alone(db: Path, judge: Judge, extra: list[str], said: str) -> None:
    with threaded(SERVERS["openai"]()) as server:
        assert said in judge(*batch(server), *extra, code=2).err
        assert server.created == 0
