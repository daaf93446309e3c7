"""One run: what changes the meaning of an answer makes another one; where and how far it is asked does not."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import StudyError, UsageError
from judge.prompts import load_task
from judge.providers import base
from judge.providers.replicas import make_replicas
from judge.runner import Live, run_task
from judge.runner import server as model_server
from judge.runner.requests import Asker, Sampling
from judge.store import Store
from judge.store.selection import Selection
from judge.types import Json, Reply, Request, Unit
from tests.loopback.openai_server import OpenAIServer
from tests.runner.helpers import (
    Fake,
    attempts,
    label,
    number_in,
    plan,
    run,
    select,
    served,
)

UNITS = 12


async def test_another_port_with_the_same_model_goes_on_with_the_run(db: Path) -> None:
    async with OpenAIServer() as first, served(first) as provider:
        begun = await run(db, provider)
    async with OpenAIServer() as second, served(second) as provider:
        assert second.port != first.port
        again = await run(db, provider)
        assert (again.run_id, again.resumed, again.already_judged) == (begun.run_id, True, UNITS)
        assert second.requests == 0
        addresses = json.loads(select(db, "SELECT provider FROM runs")[0][0])["addresses"]
        assert addresses == {first.url: "loopback-2026-01-01", second.url: "loopback-2026-01-01"}


async def test_another_name_of_this_machine_is_the_same_address(db: Path) -> None:
    """Even of a server that does not name its model."""
    async with OpenAIServer() as server:
        server.reports = ""
        async with served(server) as provider:
            begun = await run(db, provider)
        async with served(server, host="localhost") as provider:
            again = await run(db, provider)
        assert (again.run_id, again.already_judged, server.requests) == (begun.run_id, UNITS, 0)


@pytest.mark.parametrize("reports", ["other-model", ""])
async def test_another_model_at_another_address_is_not_taken_for_the_same(db: Path, reports: str) -> None:
    async with OpenAIServer() as first, served(first) as provider:
        begun = await run(db, provider, plan())
    async with OpenAIServer() as second:
        second.reports = reports
        async with served(second) as provider:
            with pytest.raises(UsageError) as stopped:
                await run(db, provider)
            for word in (
                begun.run_id,
                first.url,
                second.url,
                "'loopback-2026-01-01'",
                "--same-model",
                "--as NAME",
            ):
                assert word in str(stopped.value)
            assert second.requests == 0
            assert select(db, "SELECT count(*) FROM runs") == [(1,)]
            named = await run(db, provider, plan("another judge", asked_as="openai/loopback"))
            assert (named.resumed, named.ended["ok"], second.requests) == (False, UNITS, UNITS)
            same = await run(db, provider, plan(same_model=True))
            assert (same.run_id, same.already_judged, same.labelled) == (begun.run_id, UNITS, UNITS)
        # What was accepted once is one of the run's addresses.
        async with served(second) as provider:
            assert (await run(db, provider)).already_judged == UNITS


async def test_the_same_address_with_another_model_behind_it_is_not_taken_for_the_same(db: Path) -> None:
    """A server that is started again with other weights answers at the old address."""
    half = Selection(where=f"item_id < 't:{UNITS // 2}'")
    async with OpenAIServer() as server:
        async with served(server) as provider:
            begun = await run(db, provider, plan(selection=half))
        server.reports = "other-weights"
        async with served(server) as provider:
            with pytest.raises(UsageError, match="now reports 'other-weights'") as stopped:
                await run(db, provider)
            assert begun.run_id in str(stopped.value) and "--same-model" in str(stopped.value)
            assert server.requests == 0
            same = await run(db, provider, plan(same_model=True))
            assert (same.run_id, same.labelled) == (begun.run_id, UNITS)
        async with served(server) as provider:  # accepted once
            assert (await run(db, provider)).already_judged == UNITS


async def test_an_alias_of_a_vendor_that_has_moved_on_stops_the_run(db: Path) -> None:
    class Vendor(Fake):
        def __init__(self, reports: str) -> None:
            super().__init__(lambda request, tries: replace(label(), resolved_model=reports))
            self.reports = reports

        def describe(self) -> Mapping[str, Json]:
            return {"base_url": "https://api.example.com/v1", "own_server": True, "reports": self.reports}

    begun = await run(db, Vendor("gpt-9-2026-01-01"), plan(selection=Selection(limit=2)))
    with pytest.raises(UsageError, match=r"'gpt-9-2026-01-01'.*now reports 'gpt-9-2026-09-09'.*--same-model"):
        await run(db, Vendor("gpt-9-2026-09-09"))
    again = await run(db, Vendor("gpt-9-2026-09-09"), plan(same_model=True))
    assert (again.run_id, again.labelled) == (begun.run_id, UNITS)


async def test_replicas_that_have_different_models_are_refused(db: Path) -> None:
    async with OpenAIServer() as first, OpenAIServer() as two:
        two.reports = "other-weights"
        provider = make_replicas("openai/loopback", base.Settings(base_url=first.url, replicas=(two.url,)))
        await provider.open()
        n_requests = first.requests + two.requests
        with pytest.raises(UsageError, match=r"--base-url: .*--same-model") as stopped:
            await run(db, provider)
        assert first.url in str(stopped.value) and "'other-weights'" in str(stopped.value)
        assert first.requests + two.requests == n_requests
        assert select(db, "SELECT count(*) FROM runs") == [(0,)]
        report = await run(db, provider, plan(same_model=True))
        await provider.close()
        assert report.labelled == UNITS
        addresses = json.loads(select(db, "SELECT provider FROM runs")[0][0])["addresses"]
        assert addresses == {first.url: "loopback-2026-01-01", two.url: "other-weights"}
        # One of them alone goes on.
        async with served(two) as alone:
            assert (await run(db, alone)).already_judged == UNITS


async def test_a_replica_that_comes_later_with_another_model_is_found_out(
    db: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not there when the run begins, so that nothing is known of its model before it answers."""
    monkeypatch.setattr(model_server, "FIRST_PROBE", 0.01)
    async with OpenAIServer() as first, OpenAIServer() as two:
        two.reports = "other-weights"
        await two.stop()
        provider = make_replicas("openai/loopback", base.Settings(base_url=first.url, replicas=(two.url,)))
        await provider.open()
        await two.start()
        first.delay = 0.01
        report = await run(db, provider)
        await provider.close()
        assert isinstance(report.error, UsageError)
        assert f"{two.url} reports the model 'other-weights'" in str(report.error)
        names = select(db, "SELECT DISTINCT resolved_model FROM judgements WHERE status = 'ok'")
        assert set(names) <= {("loopback-2026-01-01",)}, "no label of it is in the run"
        assert report.ended["ok"] < report.units


async def test_a_longer_limit_asks_the_truncated_ones_only(db: Path) -> None:
    def short(request: Request, tries: int) -> Reply:
        return Reply('{"sta', "length") if number_in(request) % 3 == 0 else label()

    begun = await run(db, Fake(short), plan(sampling=Sampling(answers="json", max_output_tokens=16)))
    assert (begun.ended["ok"], begun.ended["truncated"]) == (8, 4)
    longer = Sampling(answers="json", max_output_tokens=2048)
    nobody = Fake()
    again = await run(db, nobody, plan(sampling=longer))
    assert (again.run_id, nobody.requests, again.already_judged) == (begun.run_id, [], UNITS)
    fake = Fake()
    repaired = await run(db, fake, plan(sampling=longer, retry=["truncated"]))
    assert sorted(number_in(r) for r in fake.requests) == [0, 3, 6, 9]
    assert {r.max_tokens for r in fake.requests} == {2048}
    assert (repaired.run_id, repaired.labelled) == (begun.run_id, UNITS)
    assert attempts(db)["t:0/p"] == ["truncated", "ok"]
    limits = select(db, "SELECT attempt, max_output_tokens FROM judgements WHERE unit_id = 't:0/p'")
    assert limits == [(1, 16), (2, 2048)]


async def test_a_truncated_answer_is_no_answer_for_a_longer_limit(db: Path) -> None:
    """An identical request of another run: shared at the same limit, asked again at a longer one."""
    await run(
        db,
        Fake(lambda r, t: Reply("{", "length")),
        plan(sampling=Sampling(answers="json", max_output_tokens=9)),
    )
    same, longer = Fake(), Fake()
    await run(db, same, plan(sampling=Sampling(answers="json", max_output_tokens=9), extra={"system": "b"}))
    assert same.requests == []
    await run(
        db, longer, plan(sampling=Sampling(answers="json", max_output_tokens=10), extra={"system": "c"})
    )
    assert len(longer.requests) == UNITS


@pytest.mark.parametrize("at_first", [True, False])
async def test_a_probe_that_answers_differently_once_opens_no_second_run(db: Path, at_first: bool) -> None:
    def probed(label_codes: bool) -> Fake:
        fake = Fake(lambda request, tries: Reply("A") if request.codes else label())
        fake.label_codes = label_codes
        return fake

    run_plan = plan(sampling=Sampling(answers="auto"))
    half = await run(
        db, probed(at_first), plan(sampling=Sampling(answers="auto"), selection=Selection(limit=5))
    )
    assert half.labelled == 5
    other = probed(not at_first)
    rest = await run(db, other, run_plan)
    assert (rest.run_id, rest.labelled, len(other.requests)) == (half.run_id, UNITS, UNITS - 5)
    assert {r.codes is not None for r in other.requests} == {at_first}, "in the mode with which it began"
    assert "--answers codes" in rest.notes[0] or "--answers json" in rest.notes[0]
    # Asked for by name, the other mode is another run; left open, it is still the first one.
    named = await run(db, other, plan(sampling=Sampling(answers="json" if at_first else "codes")))
    assert not named.resumed
    assert (await run(db, probed(not at_first), run_plan)).run_id == half.run_id


async def test_each_attempt_says_where_and_with_which_limits_it_was_made(db: Path) -> None:
    async with OpenAIServer() as server, served(server, timeout=7.0) as provider:
        await run(db, provider, plan(sampling=Sampling(answers="json", max_output_tokens=99)))
        rows = select(db, "SELECT DISTINCT base_url, max_output_tokens, timeout FROM judgements")
        assert rows == [(server.url, 99, 7.0)]
        await run(db, provider, plan(extra={"system": "b"}))
        reused = select(db, "SELECT DISTINCT base_url, max_output_tokens FROM judgements WHERE reused")
        assert reused == [(None, None)], "an answer that was not asked for was asked nowhere"


async def test_what_the_server_refused_is_kept_when_it_is_learnt(db: Path) -> None:
    """A run that is killed says it, too: looked at after each commit, and there before the last one."""
    seen: list[int] = []
    async with OpenAIServer() as server:
        server.refuse, server.delay = {"seed"}, 0.1  # of 12 calls, one at a time: several commits
        async with served(server) as provider:
            with Store.open(db) as store:

                def watch(live: Live) -> None:
                    if json.loads(select(db, "SELECT provider FROM runs")[0][0])["left_out"] == ["seed"]:
                        seen.append(live.report.done)

                run_plan = plan(sampling=Sampling(answers="json", seed=3), concurrency=1)
                await run_task(store, run_plan, provider, watch)
    assert seen
    assert seen[0] < UNITS
    [(options,)] = select(db, "SELECT options FROM runs")
    assert json.loads(options)["seed"] == 3, "what was requested"


def test_the_lock_lies_beside_the_study(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes with temporary folders of their own (containers, users) see the same one."""
    link = tmp_path / "link.db"
    link.symlink_to(db)
    with Store.open(db) as first, Store.open(link) as other, first.run_lock("stance m"):
        monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))
        assert [p.suffix for p in tmp_path.glob("study.db.*.lock")] == [".lock"]
        with (
            pytest.raises(StudyError, match="another process is running stance m"),
            other.run_lock("stance m"),
        ):
            pass
        with other.run_lock("stance n"):
            pass
    assert list(tmp_path.glob("*.lock")) == [], "and goes with the run"
    with Store.open(db) as first, first.run_lock("stance m"):
        pass


def test_a_request_is_hashed_without_its_address_and_its_token_limit() -> None:
    """Written out: sha256 of the canonical JSON."""
    task, unit = load_task("stance"), Unit("u", {"claim": "Tea is hot.", "passage": "It is."}, {})
    asker = Asker(task, "m", Fake(), Sampling(answers="json", max_output_tokens=2048))
    request, record = asker.request(unit, 0)
    hashed = {
        "codes": None,
        "messages": [[m.role, m.content] for m in request.messages],
        "model": "m",
        "parameters": {"seed": None, "temperature": 0.0},
        "repeat": 0,
        "schema": request.schema,
        "version": 2,
    }
    text = json.dumps(hashed, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    assert record.request_sha == hashlib.sha256(text.encode()).hexdigest()
