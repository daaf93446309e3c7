"""Identical requests are sent once, whether the first one is in flight, answered, or long stored."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import KeyProblem, ProviderError, Rejected, ServerFault
from judge.providers import base
from judge.runner import run as run_module
from judge.runner.requests import Asker, Sampling
from judge.types import Json, Reply, Request, Unit
from tests.runner.helpers import Fake, attempts, label, left_in, make_study, plan, run, select

COPIES = 12


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Twelve units with the same texts."""
    return make_study(tmp_path / "s.db", ["Passage number 7."] * COPIES)


@pytest.mark.parametrize("concurrency", [1, 4, 64])
@pytest.mark.parametrize("delay", [0.0, 0.05])
async def test_one_call_for_all_of_them(db: Path, concurrency: int, delay: float) -> None:
    fake = Fake(delay=delay)
    report = await run(db, fake, plan(concurrency=concurrency))
    assert len(fake.requests) == 1
    assert (report.ended, report.reused, report.labelled) == ({"ok": 1}, COPIES - 1, COPIES)
    rows = select(db, "SELECT reused, reply, request_sha, input_tokens, latency IS NULL FROM judgements")
    assert len({(reply, sha) for _, reply, sha, _, _ in rows}) == 1
    assert sorted(reused for reused, *_ in rows) == [0] + [1] * (COPIES - 1)
    # What was not asked cost nothing and took no time.
    assert {(tokens, no_latency) for reused, _, _, tokens, no_latency in rows if reused} == {(None, 1)}


async def test_repeats_are_not_identical(db: Path) -> None:
    fake = Fake()
    report = await run(db, fake, plan(repeats=3))
    assert sorted(r.repeat for r in fake.requests) == [0, 1, 2]
    assert (report.units, report.reused, report.labelled) == (3 * COPIES, 3 * (COPIES - 1), 3 * COPIES)
    assert select(db, "SELECT count(DISTINCT request_sha) FROM judgements") == [(3,)]


async def test_the_stored_answer_is_found_by_another_run(db: Path) -> None:
    """Answers generated for two systems are two runs that ask the same."""
    await run(db, Fake())
    fake = Fake()
    report = await run(db, fake, plan(extra={"system": "other"}))
    assert fake.requests == []
    assert (report.resumed, report.reused, report.labelled) == (False, COPIES, COPIES)
    assert select(db, "SELECT count(*) FROM labels WHERE annotator_id <> 'gold'") == [(2 * COPIES,)]


@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(answers="json", temperature=1.0),
        Sampling(answers="json", temperature=None),
        Sampling(answers="json", seed=1),
        Sampling(answers="json", label_order="reversed"),
        Sampling(answers="codes"),
    ],
    ids=str,
)
async def test_what_changes_the_request_is_asked_anew(db: Path, sampling: Sampling) -> None:
    await run(db, Fake())
    fake = Fake(lambda request, tries: Reply("A") if request.codes else label())
    report = await run(db, fake, plan(sampling=sampling))
    assert len(fake.requests) == 1
    assert not report.resumed


async def test_another_model_or_provider_option_is_asked_anew(db: Path) -> None:
    class Thinking(Fake):
        def describe(self) -> Mapping[str, Json]:
            return {"options": {"reasoning_effort": "high"}}

    await run(db, Fake())
    other = Fake()
    await run(db, other, plan("test/other"))
    assert len(other.requests) == 1
    thinking = Thinking()
    report = await run(db, thinking)
    assert len(thinking.requests) == 1
    assert not report.resumed
    again = Thinking()
    report = await run(db, again)
    assert (again.requests, report.resumed) == ([], True)


@pytest.mark.parametrize(("text", "stop"), [("?", "stop"), ("no", "refusal"), ("{", "length")])
async def test_answers_without_a_label_are_shared_too(db: Path, text: str, stop: str) -> None:
    """Asking the same again would cost the same and say the same; --retry asks again."""
    fake = Fake(lambda request, tries: Reply(text, stop))
    report = await run(db, fake, plan(concurrency=3))
    status = {"stop": "unparsed", "refusal": "refused", "length": "truncated"}[stop]
    assert len(fake.requests) == (2 if status == "unparsed" else 1), "with its one repair"
    assert (report.ended, report.reused, report.labelled) == ({status: 1}, COPIES - 1, 0)
    assert select(db, "SELECT DISTINCT status FROM latest_judgements") == [(status,)]


async def test_a_repaired_answer_is_shared_as_repaired(db: Path, tmp_path: Path) -> None:
    """In flight or stored makes no difference to what a unit ends up with."""

    def answer(request: Request, tries: int) -> Reply:
        return label("refute") if "could not be used" in request.messages[-1].content else Reply("hm")

    slow, quick = Fake(answer, delay=0.05), Fake(answer)
    await run(db, slow)
    other = make_study(tmp_path / "other.db", ["Passage number 7."] * COPIES)
    for n in range(1, COPIES + 1):  # one unit an invocation: every copy meets the stored answer
        await run(other, quick, plan(selection=replace(plan().selection, limit=n)))
    assert len(slow.requests) == len(quick.requests) == 2
    assert left_in(db) == left_in(other)
    assert attempts(db)["t:0/p"] == ["unparsed", "ok"]
    assert attempts(db)["t:1/p"] == ["ok"]


@pytest.mark.parametrize(("error", "calls"), [(ServerFault("HTTP 500"), 6), (Rejected("too long", 400), 1)])
async def test_a_failed_call_fails_its_copies_and_the_next_run_asks_once(
    db: Path, error: ProviderError, calls: int
) -> None:
    def broken(request: Request, tries: int) -> Reply:
        raise error

    fake = Fake(broken, delay=0.01)
    report = await run(db, fake)
    assert len(fake.requests) == calls, "one unit's tries, not one for each copy"
    assert report.ended == {"failed": COPIES}
    working = Fake(delay=0.01)
    again = await run(db, working)
    assert len(working.requests) == 1
    assert (again.ended, again.reused, again.labelled) == ({"ok": 1}, COPIES - 1, COPIES)


async def test_a_retry_takes_a_label_that_has_come_meanwhile_but_no_old_failure(db: Path) -> None:
    await run(db, Fake(lambda request, tries: Reply("?")))
    fake = Fake(delay=0.01)
    report = await run(db, fake, plan(retry=["unparsed"]))
    assert len(fake.requests) == 1, "the stored answer is what is being retried"
    assert report.labelled == COPIES


async def test_the_copies_of_a_call_that_is_stopped_stay_pending(db: Path) -> None:
    def refused(request: Request, tries: int) -> Reply:
        raise KeyProblem("refused")

    report = await run(db, Fake(refused, delay=0.02))
    assert (report.ended, report.reused, report.pending) == ({}, 0, COPIES)


async def test_copies_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one request is in flight only so many of its copies are read."""
    monkeypatch.setattr(run_module, "MOST_UNSAVED", 10)
    db = make_study(tmp_path / "many.db", ["Passage number 7."] * 100)
    rendered = 0
    real = Asker.request

    def request(self: Asker, unit: Unit, repeat: int) -> object:
        nonlocal rendered
        rendered += 1
        return real(self, unit, repeat)

    monkeypatch.setattr(Asker, "request", request)
    release = asyncio.Event()

    class Slow(Fake):
        async def complete(self, request: Request) -> Reply:
            await release.wait()
            return await super().complete(request)

    running = asyncio.create_task(run(db, Slow()))
    while rendered < run_module.AHEAD:
        await asyncio.sleep(0.001)
    for _ in range(100):  # time in which one more would be read
        await asyncio.sleep(0.001)
    assert rendered == run_module.AHEAD, "the 32 that are read ahead, of which 10 wait"
    release.set()
    assert (await running).labelled == 100


async def test_the_derived_label_is_that_of_the_own_gold(tmp_path: Path) -> None:
    """Two units with the same text and different gold share the answer, not what follows from it."""
    gold = [{"claim_verdict": "true"}, {"claim_verdict": "false"}, {}]
    db = make_study(tmp_path / "s.db", ["Passage number 1."] * 3, gold)
    fake = Fake(lambda request, tries: Reply('{"verdict": "true"}'))
    report = await run(db, fake, plan(task="raguard_exam"))
    assert len(fake.requests) == 1
    assert report.reused == 2
    roles = select(
        db, "SELECT unit_id, value, derived_from FROM labels WHERE field = 'raguard.role' ORDER BY unit_id"
    )
    # The judge says "true" of all: right for the true claim, wrong for the false one; without gold
    # nothing follows.
    assert roles == [("t:0/p", "supporting", "verdict"), ("t:1/p", "misleading", "verdict")]
    assert report.derived == {"raguard.role": 1}  # the one without gold
    assert "gold" not in str(fake.requests[0].messages).lower()


async def test_a_distribution_is_shared_with_its_label(db: Path) -> None:
    provider = base.get("scripted/hash", base.Settings(options={"logprobs": "1"}))
    report = await run(db, provider, plan("scripted/hash", sampling=Sampling()))
    assert report.reused == COPIES - 1
    await run(db, provider, plan("scripted/hash", sampling=Sampling(answers="codes")))  # now from the study
    rows = select(db, "SELECT DISTINCT value, distribution FROM labels WHERE annotator_id <> 'gold'")
    assert len(rows) == 1
    assert rows[0][1] is not None
