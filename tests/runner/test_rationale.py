"""Reasoning before the verdict at run time: with letters two stored calls, the second conditional on the first."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from judge.prompts import load_task
from judge.prompts.render import THEN_ANSWER
from judge.providers.base import BaseProvider
from judge.runner import Plan, run_task
from judge.store import Store
from judge.types import Reply, Request, TokenChoice
from tests.answers.helpers import column
from tests.cli.helpers import checked
from tests.formats import write_jsonl
from tests.suites.helpers import Judge

STANCE = load_task("stance").thinking("before")


class Thinker(BaseProvider):
    """Reasons, then chooses by its reasoning; `reasons` are what it writes, `calls` what it was asked."""

    label_codes = True
    max_concurrency = 1

    def __init__(self, *reasons: Reply) -> None:
        self.reasons, self.calls = list(reasons), list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.calls.append(request)
        if request.codes is None:
            return self.reasons.pop(0)
        chosen = "B" if "speaks against" in request.messages[-2].content else "A"
        other = {"A": "B", "B": "A"}[chosen]
        tokens: Sequence[TokenChoice] = [TokenChoice(chosen, [(chosen, -0.105361), (other, -2.302585)])]
        return Reply(chosen, tokens=tokens)


@pytest.fixture
def study(judge: Judge, tmp_path: Path) -> None:
    rows = [{"id": n, "claim": f"Claim {n}.", "passages": [{"id": "p", "text": f"Text {n}."}]} for n in "abc"]
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "r.jsonl", rows), "--dataset", "d")


async def ran(provider: Thinker, **more: Any) -> Any:
    with Store.open("study.db", create=False) as store:
        return await run_task(store, Plan(STANCE, "m", concurrency=1, **more), provider)


async def test_two_calls_are_stored_and_the_letter_rests_on_the_reasoning(study: None) -> None:
    model = Thinker(Reply("It fits."), Reply("It speaks against it."), Reply("", stop="refusal"))
    report = await ran(model)
    assert (report.labelled, dict(report.ended)) == (2, {"ok": 2, "refused": 1})
    # Two calls for each of the first two units, one for the third, which was refused.
    assert sorted(call.codes or "" for call in model.calls) == ["", "", "", "ABC", "ABC"]
    second = next(call for call in model.calls if call.codes)
    assert [m.content for m in second.messages[-2:]] == ["It fits.", THEN_ANSWER]
    assert model.calls[0].messages[-1].content.endswith("Reasoning:")
    with Store.open("study.db", create=False) as store:
        labels = store.conn.execute("SELECT value, rationale, distribution FROM labels ORDER BY unit_id")
        stored = [(value, reason, json.loads(masses)) for value, reason, masses in labels]
        attempts = store.conn.execute(
            "SELECT unit_id, attempt, status, reply FROM judgements ORDER BY unit_id, attempt"
        ).fetchall()
        requests = store.conn.execute("SELECT count(*), count(unit_id) FROM requests").fetchone()
    assert [(value, why) for value, why, _ in stored] == [
        ("support", "It fits."),
        ("refute", "It speaks against it."),
    ]
    # exp(-0.105361) = 0.9 on the letter that follows from the reasoning.
    assert stored[1][2]["refute"] == pytest.approx(0.9, abs=1e-5)
    assert [tuple(row) for row in attempts] == [
        ("d:a/p", 1, "ok", "It fits."),
        ("d:a/p", 2, "ok", "A"),
        ("d:b/p", 1, "ok", "It speaks against it."),
        ("d:b/p", 2, "ok", "B"),
        ("d:c/p", 1, "refused", ""),
    ]
    assert tuple(requests) == (5, 5)
    # Again asks nothing; a run without reasoning is another one.
    again = Thinker()
    assert (await ran(again)).already_judged == 3 and not again.calls


async def test_reasoning_that_is_cut_or_empty_has_no_label(study: None) -> None:
    model = Thinker(Reply("It", stop="length"), Reply("  "), Reply("It fits."))
    report = await ran(model)
    assert dict(report.ended) == {"truncated": 1, "unparsed": 1, "ok": 1}
    # Asked again, the unit reasons anew.
    model = Thinker(Reply("It fits."), Reply("It fits."))
    report = await ran(model, retry=("truncated", "unparsed"))
    assert report.labelled == 3 and len(model.calls) == 4


async def test_an_identical_unit_takes_the_whole_answer(judge: Judge, study: None, tmp_path: Path) -> None:
    await ran(Thinker(*[Reply("It speaks against it.")] * 3))
    row = {"id": "a", "claim": "Claim a.", "passages": [{"id": "p", "text": "Text a."}]}
    judge("items", "import", "jsonl", write_jsonl(tmp_path / "s.jsonl", [row]), "--dataset", "e")
    model = Thinker()
    report = await ran(model)
    assert (report.labelled, model.calls) == (4, [])
    assert column("SELECT rationale FROM labels WHERE unit_id = 'e:a/p'") == ["It speaks against it."]


def test_the_rationale_is_part_of_the_runs_identity(judge: Judge, study: None) -> None:
    def run(*more: str) -> str:
        return str(checked(judge("run", "stance", "-m", "scripted/hash", *more, "--json").out, "run")["run"])

    plain, before, after = run(), run("--rationale", "before"), run("--rationale", "after")
    assert len({plain, before, after}) == 3
    # As the file says: the same run.
    assert run("--rationale", "none") == plain
    assert run("--rationale", "before") == before
    # With label probabilities: two calls a unit.
    first = ("-m", "scripted/first", "--option", "logprobs=1", "--rationale", "before", "--json")
    codes = checked(judge("run", "stance", *first).out, "run")["run"]
    assert column(f"SELECT count(*) FROM judgements WHERE run_id = '{codes}'") == [6]
    assert column(f"SELECT count(distribution) FROM labels WHERE annotator_id = '{codes}'") == [3]
    refused = judge(
        "run", "stance", "-m", "scripted/hash", "--rationale", "after", "--answers", "codes", code=2
    )
    assert "--answers json" in refused.err
    # What the study keeps of the task is the file, not what a run asked for.
    assert column("SELECT DISTINCT json_extract(front_matter, '$.rationale') FROM tasks") == ["none"]


def test_a_suite_thinks_first_and_takes_tasks_of_ones_own(judge: Judge, tmp_path: Path) -> None:
    rows = [{"pair_id": "p", "original": "So.", "counter": "Not so."}]
    judge("items", "import", "claim-pairs", write_jsonl(tmp_path / "c.jsonl", rows), "--dataset", "c")
    suite = ("suite", "confirmation", "-m", "scripted/hash", "--part", "answers", "--json")
    judge(*suite)
    done = checked(judge(*suite, "--rationale", "before").out, "score")
    assert "confirmation.v2 was run with --rationale before" in done["notes"]
    # The answers are the system's, and were there; only the verdict was asked again.
    assert column("SELECT count(*) FROM runs") == [3]
    plain = checked(judge(*suite, "--rationale", "none").out, "score")
    assert {run["run"] for run in plain["runs"]} != {run["run"] for run in done["runs"]}
    folder = tmp_path / "tasks"
    folder.mkdir()
    text = load_task("confirmation").text.replace("You are given a claim", "Here is a claim")
    (folder / "confirmation.v7.md").write_text(text, "utf-8")
    judge(*suite, "--rationale", "after", "--prompts", str(folder))
    assert "confirmation.v7" in column("SELECT task FROM runs")
