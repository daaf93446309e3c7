"""A run's bookkeeping: what is counted when, budgets, full disks, and what a resumed run asks."""

import asyncio
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from judge.errors import (
    KeyProblem,
    ProviderError,
    RateLimited,
    Rejected,
    ServerFault,
    Unreachable,
    WriteFailed,
)
from judge.runner import Live, writer
from judge.runner import run as run_module
from judge.runner import server as model_server
from judge.runner.retry import Patience
from judge.types import Reply, Request, Usage
from tests.runner.helpers import (
    Fake,
    attempts,
    label,
    left_in,
    make_study,
    number_in,
    numbered,
    plan,
    run,
    select,
)
from tests.runner.test_writer import full_disk

UNITS = 40


# --- counting


async def test_progress_counts_what_is_in_the_file(db: Path) -> None:
    seen: list[tuple[int, int]] = []

    def watch(live: Live) -> None:
        stored = select(db, "SELECT count(*) FROM judgements")[0][0]
        seen.append((live.report.done, stored))

    await run(db, Fake(delay=0.002), plan(concurrency=4), watch=watch)
    assert seen[-1] == (UNITS, UNITS)
    assert all(counted <= stored for counted, stored in seen)
    assert len(seen) > 1


async def test_progress_moves_while_nothing_is_committed(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "TICK_SECONDS", 0.005)
    shown = 0
    enough = asyncio.Event()

    def watch(live: Live) -> None:
        nonlocal shown
        shown += 1
        if shown == 3:
            enough.set()

    class Waits(Fake):
        async def complete(self, request: Request) -> Reply:
            await enough.wait()
            return label()

    assert (await run(db, Waits(), watch=watch)).labelled == UNITS


async def test_resuming_asks_for_what_is_missing_in_any_order_of_limits(db: Path, tmp_path: Path) -> None:
    fake = Fake()
    for limit in (7, 3, 20, UNITS):
        await run(db, fake, plan(selection=replace(plan().selection, limit=limit)))
    assert sorted(number_in(r) for r in fake.requests) == list(range(UNITS)), "each once"
    whole = make_study(tmp_path / "whole.db", numbered(UNITS))
    await run(whole, Fake())
    assert left_in(db) == left_in(whole)


async def test_finished_is_noted_only_for_a_run_that_came_to_its_end(db: Path) -> None:
    await run(db, Fake(), plan(max_tokens=300))
    assert select(db, "SELECT finished FROM runs") == [(None,)]
    await run(db, Fake())
    assert select(db, "SELECT finished IS NOT NULL FROM runs") == [(1,)]


async def test_no_unit_fits(tmp_path: Path) -> None:
    report = await run(make_study(tmp_path / "s.db", []), Fake())
    assert (report.units, report.ended, report.labelled, report.error) == (0, {}, 0, None)


async def test_more_pages_than_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from judge.store import selection

    monkeypatch.setattr(selection, "PAGE", 7)
    db = make_study(tmp_path / "s.db", numbered(UNITS))
    first = Fake(lambda request, tries: Reply("", "refusal") if number_in(request) % 3 else label())
    assert (await run(db, first)).ended == {"ok": 14, "refused": 26}  # 0, 3 ... 39 are 14
    second = Fake()
    assert (await run(db, second, plan(retry=["refused"]))).ended == {"ok": 26}
    assert [number_in(r) for r in second.requests] == [n for n in range(UNITS) if n % 3]


async def test_a_model_with_a_limit_of_its_own(db: Path) -> None:
    fake = Fake(delay=0.001, max_concurrency=2)
    await run(db, fake, plan(concurrency=50))
    assert fake.most == 2


# --- token budgets


async def test_a_repair_is_within_the_budget_too(db: Path) -> None:
    fake = Fake(lambda request, tries: Reply("hm", usage=Usage(1500, 500)))
    report = await run(db, fake, plan(max_tokens=3000, concurrency=1))
    assert len(fake.requests) == 1, "2,000 are used, and the repair could take as many again"
    assert (report.ended, report.pending) == ({"failed": 1}, UNITS - 1)
    stored = select(db, "SELECT status, reply, input_tokens, output_tokens FROM judgements")
    assert stored == [("failed", "hm", 1500, 500)], (
        "the paid reply is kept, and the next run judges the unit again"
    )
    assert report.stopped == "another call could exceed the limit of 3,000 tokens"


# --- a study that cannot be written


async def test_a_full_disk_stops_the_sending_and_keeps_what_was_acknowledged(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reply = Reply(label().text + " " * 3000)
    fake = Fake(lambda request, tries: reply, delay=0.01)
    # However slow the disk: no more than so many replies wait for it, so that the last ones are not sent before.
    monkeypatch.setattr(run_module, "MOST_UNSAVED", 5)
    with full_disk(monkeypatch, more_pages=20):  # 80 kB, for 40 replies of 3 kB
        report = await run(db, fake, plan(concurrency=4))
    assert isinstance(report.error, WriteFailed)
    done = select(db, "SELECT count(*) FROM judgements")[0][0]
    assert 0 < report.ended["ok"] == done < UNITS, "exactly what was acknowledged is in the study"
    assert len(fake.requests) < UNITS, "and nothing more is sent"
    again = Fake(lambda request, tries: reply)
    assert (await run(db, again)).labelled == UNITS
    assert len(fake.requests) + len(again.requests) == UNITS, (
        "what was received and set aside is not asked again"
    )
    whole = make_study(tmp_path / "whole.db", numbered(UNITS))
    await run(whole, Fake())
    assert {row[:4] for row in left_in(db)} == {row[:4] for row in left_in(whole)}


async def test_replies_wait_for_a_slow_disk_and_sending_waits_for_them(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "MOST_UNSAVED", 5)
    fake = Fake()
    release = asyncio.Event()
    real = writer.Writer._acknowledge
    late: list[tuple[writer.Writer, list[writer.Attempts]]] = []

    def acknowledged(self: writer.Writer, batch: list[writer.Attempts]) -> None:
        if release.is_set():
            real(self, batch)
        else:
            late.append((self, batch))

    monkeypatch.setattr(writer.Writer, "_acknowledge", acknowledged)
    running = asyncio.create_task(run(db, fake, plan(concurrency=2)))
    for _ in range(100):
        await asyncio.sleep(0.001)
    # 5 unsaved, and what was in flight when the fifth came.
    assert 5 <= len(fake.requests) <= 7
    release.set()
    for w, batch in late:
        real(w, batch)
    assert (await running).labelled == UNITS


async def test_a_bug_ends_the_run_and_says_so(db: Path) -> None:
    def broken(request: Request, tries: int) -> Reply:
        if number_in(request) == 20:
            raise ZeroDivisionError("oops")
        return label()

    report = await run(db, Fake(broken), plan(concurrency=1))
    assert "unexpected ZeroDivisionError: oops" in str(report.error)
    assert 20 <= report.ended["ok"] <= 21, "one more may have got the slot that became free"


# --- any sequence of faults

GOOD = st.sampled_from(["ok", "ok", "ok", "garbage", "wrong", "refusal", "length"])
BAD = st.sampled_from(["429", "429 told", "500", "gone", "rejected", "404", "key"])
SCRIPTS = st.lists(st.lists(GOOD | BAD, max_size=4), min_size=1, max_size=12)
PARSED = {"ok": "ok", "garbage": "unparsed", "wrong": "unparsed", "refusal": "refused", "length": "truncated"}


def act(outcome: str) -> Reply:
    """Reply or raise as the word says."""
    replies = {
        "ok": label(),
        "garbage": Reply("It depends."),
        "wrong": label("perhaps"),
        "refusal": Reply("I cannot.", "refusal"),
        "length": Reply('{"stan', "length"),
    }
    errors: dict[str, ProviderError] = {
        "429": RateLimited("slow down"),
        "429 told": RateLimited("slow down", 0.001),
        "500": ServerFault("HTTP 500"),
        "gone": Unreachable("connection lost"),
        "rejected": Rejected("too long", 400),
        "404": Rejected("not found", 404),
        "key": KeyProblem("refused"),
    }
    if outcome in errors:
        raise errors[outcome]
    return replies[outcome]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(scripts=[["garbage", "429", "key"], [], [], [], [], ["garbage", "garbage"]], concurrency=2, seed=0)
@given(scripts=SCRIPTS, concurrency=st.integers(1, 4), seed=st.integers(0, 1000))
async def test_any_faults_leave_every_unit_in_one_status(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    scripts: list[list[str]],
    concurrency: int,
    seed: int,
) -> None:
    """Each unit has a script of its own; when it is used up, calls succeed."""
    monkeypatch.setattr(model_server, "FIRST_PROBE", 0.01)
    db = make_study(tmp_path_factory.mktemp("study") / "s.db", numbered(len(scripts)))
    left = [list(script) for script in scripts]

    def answer(request: Request, tries: int) -> Reply:
        script = left[number_in(request)]
        return act(script.pop(0) if script else "ok")

    patience = Patience(tries=3, rate_limit_tries=3, base=0.0, draw=random.Random(seed))
    run_plan = plan(concurrency=concurrency, patience=patience)
    stopped = False
    for _ in range(60):  # a run may stop early; the same command again gets on
        fake = Fake(answer)
        report = await run(db, fake, run_plan)
        stopped |= report.stopped is not None
        statuses = {unit: tried[-1] for unit, tried in attempts(db).items()}
        assert report.labelled == sum(s == "ok" for s in statuses.values())
        # Pending are those without a status and, when the run was stopped, failed ones not asked again.
        never = len(scripts) - len(statuses)
        assert never <= report.pending <= (never if report.error is None else len(scripts))
        if not report.pending and "failed" not in statuses.values():
            break
    assert len(statuses) == len(scripts)
    assert set(statuses.values()) <= {"ok", "unparsed", "refused", "truncated"}
    labelled = {row[0] for row in select(db, "SELECT unit_id FROM labels WHERE annotator_id <> 'gold'")}
    assert labelled == {unit for unit, status in statuses.items() if status == "ok"}
    for n, script in enumerate(scripts):
        status = statuses[f"t:{n}/p"]
        heard = [PARSED[word] for word in [*script, "ok", "ok"] if word in PARSED]
        assert status in heard
        if heard[0] != "unparsed":
            assert status == heard[0], "the first reply decides"
        elif not stopped and all(word in PARSED for word in script):
            # A run that stops between the two leaves the unit pending, and the next one asks it anew.
            assert status == heard[1], "or its one repair"
