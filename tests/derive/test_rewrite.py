"""Instructions that a model rewrites: from learn alone, as text and no template, proved like everything else."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from judge.errors import Rejected, ServerFault
from judge.improve import recipe as recipes
from judge.improve.improve import Improve
from judge.improve.outcome import Improved, clauses
from judge.improve.page import next_version, sentences
from judge.improve.rewrite import Rewriter
from judge.prompts import Mode, Renderer, load_task, parse_task
from judge.providers import base
from judge.runner import Plan
from judge.runner.budget import Budget, Opened, Spent
from judge.runner.flow import Flow, Halted
from judge.runner.prices import Price
from judge.store import Store
from judge.types import Reply, Request, Usage
from tests.annotate.agreement_helpers import checked, judge
from tests.derive.planted import Planted, numbers, shown
from tests.derive.test_improve import looks, part, used, world
from tests.runner.helpers import HASTY

TASK = load_task("stance")
BETTER = "LOOK TWICE before you say what the passage does to the claim."


class Writer(base.BaseProvider):
    """A model that answers every request with the same text, and remembers what it was shown."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.seen = list(replies), list[Request]()

    async def complete(self, request: Request) -> Reply:
        """The next text, the last one again and again."""
        self.seen.append(request)
        text = self.replies[min(len(self.seen), len(self.replies)) - 1]
        if text == "gone":
            raise Rejected("no such model")
        if text == "hangs":
            await asyncio.Event().wait()
        if text == "lost":
            raise ServerFault("the server broke while it wrote")
        return Reply(text, usage=Usage(1_000, 100, 0))


def skill(request: Any) -> float:
    return 0.9 if "LOOK TWICE" in shown(request) else 0.55


def improve(
    store: Store, model: Planted, writer: Writer, price: Price | None = None, **limits: Any
) -> Improved:
    plan = Plan(TASK, "planted/model", patience=HASTY, **limits)

    async def go() -> Improved:
        rewriter = Rewriter("vendor/writer", writer, price)
        return await Improve(store, Flow(store, model, plan), TASK, "stance", None, rewriter).go()

    return asyncio.run(go())


def answer(text: str) -> str:
    return json.dumps({"instructions": text})


def test_rewritten_instructions_that_help_are_proved_and_only_learn_is_read(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    model, writer = Planted(truth, skill), Writer(answer(BETTER))
    found = improve(store, model, writer)
    assert found.proved and found.winner is not None and found.winner.instructions == BETTER
    assert "instructions rewritten" in found.winner.words and looks(store) == 1
    [request] = writer.seen
    text = "\n".join(m.content for m in request.messages)
    read = set(numbers(text))
    assert read and read <= part(store, "learn")
    # One unit a question, and each fenced: what a passage says is no instruction.
    assert len({n // 5 for n in read}) == len(read) <= 12 and text.count("[[passage ") == len(read)
    assert TASK.constant in text and "neither" in text and TASK.spec.guidelines.strip() in text
    # What the rewriter took is counted beside what the judge took: 1,000 and 100 tokens.
    assert found.spent["input_tokens"] + found.spent["output_tokens"] == used(model) + 1_100
    # Again: nobody is asked, neither judge nor rewriter.
    later, again = Planted(truth, skill), Writer(answer("Something else."))
    same = improve(store, later, again)
    assert same.difference == found.difference and not later.seen and not again.seen and looks(store) == 1


def test_the_next_version_of_the_task_is_written_where_its_text_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, truth = world(tmp_path / "w.db")
    model, writer = Planted(truth, skill), Writer(answer(BETTER))
    monkeypatch.setattr(base, "get", lambda name, *_: writer if name.startswith("vendor/") else model)
    monkeypatch.chdir(tmp_path)
    words = ("improve", "stance", "-m", "planted/model", "--rewriter", "vendor/writer", "-d", store.path)
    done = judge(*words, "--json")
    found = checked(done.stdout)
    assert found["improved"] and found["recipe"] == "stance.recipe.yaml"
    assert any(text.endswith("stance.v3.md") for text in found["notes"])
    task = load_task("stance.v3.md")
    assert (
        task.name == "stance.v3"
        and task.constant == BETTER
        and task.spec == TASK.spec
        and task.unit == TASK.unit
    )
    # Both ask the same thing in the same words.
    written = recipes.read_recipe(Path("stance.recipe.yaml"))
    by_recipe = written.apply_to(Plan(TASK, "planted/model")).task
    own = Renderer(by_recipe, Mode.JSON).prefix[0].content
    assert own.startswith(BETTER) and own.partition("\n\n")[2] != ""
    before = len(model.seen)
    judge("run", "stance", "-m", "planted/model", "--recipe", "stance.recipe.yaml", "-d", store.path)
    assert len(model.seen) > before and all("LOOK TWICE" in shown(r) for r in model.seen[before:])
    # No version is written where only the way of asking changed.
    assert not Path("stance.v4.md").exists()


NO_USE = [
    ("I would rather not.", "no JSON object"),
    (answer(""), "no instructions"),
    (answer("{{ 7 * 7 }} {% for x in range(9) %}"), "template marks"),
    (answer("Above\n<!-- unit -->\n{ passage }"), "template marks"),
    (answer("x" * 8_001), "longer than 8,000"),
    (answer(TASK.constant), "changes nothing"),
    ("gone", "did not answer: no such model"),
]


def test_what_cannot_be_used_ends_the_rewriting_and_nothing_else(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    for reply, told in NO_USE:
        # What was judged for the search before is not asked again, but the rewriter is.
        writer = Writer(reply)
        found = improve(store, Planted(truth, skill), writer)
        assert writer.seen and any(told in note for note in found.notes), told
        assert len(found.tried) > 1 and all(t.recipe.instructions is None for t in found.tried)


def test_instructions_are_text_and_no_template() -> None:
    told = TASK.with_instructions("Say {{ title }} and {% raw %}.")
    assert Renderer(told, Mode.CODES).prefix[0].content.startswith("Say {{ title }} and {% raw %}.")
    assert told.overrides["instructions"].startswith("Say") and told.sha256 == TASK.sha256
    assert parse_task(TASK.text, "stance.v2.md").instructions is None


def test_the_rewriter_leaves_what_the_sealed_test_takes(tmp_path: Path) -> None:
    # Planted prices: a dollar for a token put in by the rewriter, so that no limit affords it.
    store, truth = world(tmp_path / "w.db")
    writer = Writer(answer(BETTER))
    dear = Price(1e6, 1e6, 1e6, 1e6, "planted")
    prices = {"planted/model": {"input": 1.0, "output": 1.0}}
    found = improve(store, Planted(truth, skill), writer, dear, max_cost=100.0, prices=prices)
    assert not writer.seen and any("reserved for the sealed test" in note for note in found.notes)


def test_a_lost_call_of_the_rewriter_counts_at_its_most(tmp_path: Path) -> None:
    # A dollar for a million tokens, in and out, of judge and rewriter.
    store, truth = world(tmp_path / "w.db")
    model, writer = Planted(truth, skill), Writer("lost")
    prices = {"planted/model": {"input": 1.0, "output": 1.0}}
    found = improve(store, model, writer, Price(1.0, 1.0, 1.0, 1.0, "planted"), max_cost=100.0, prices=prices)
    assert any("did not answer" in note for note in found.notes)
    [request] = writer.seen
    # One token a byte and 16 around each of two messages, 64 around the call, the schema, and the longest reply.
    texts = sum(len(m.content.encode()) + 16 for m in request.messages)
    most = 64 + texts + len(json.dumps(request.schema)) + request.max_tokens
    assert found.cost == pytest.approx((used(model) + most) / 1e6)


def test_the_time_of_the_rewriter_is_inside_the_limit(tmp_path: Path) -> None:
    """Opening it took the whole 9 s, so nothing is asked of anybody; a call that has no end is given up, and paid for."""
    store, truth = world(tmp_path / "w.db")
    model, writer = Planted(truth, skill), Writer("hangs")
    rewriter = Rewriter("vendor/writer", writer, None, Opened(seconds=9.0))
    plan = Plan(TASK, "planted/model", patience=HASTY, max_time=9.0)
    with pytest.raises(Halted):
        asyncio.run(Improve(store, Flow(store, model, plan), TASK, "stance", None, rewriter).go())
    assert not model.seen and not writer.seen
    budget = Budget(None, None, None, Counter(), Spent())
    request = rewriter.request(TASK, "stance", [])
    text, reason = asyncio.run(asyncio.wait_for(rewriter.ask(TASK, request, budget, 0.01), 30))
    assert text is None and "the time limit was reached" in reason and budget.spent.lost == 1


def test_the_meanings_and_clauses_of_the_labels_people_differ_on_are_found() -> None:
    named = "Mind the date.\n\n- **refute**: see the example.\n- **support**: no.\n\nSupporters are neutral."
    task = replace(TASK, spec=TASK.spec.model_copy(update={"guidelines": named}))
    found = clauses(task, "stance", [("refute", "neutral", 4), ("support", "refute", 1)])
    # Two meanings in the order of the labels, then a list entry and a paragraph.
    assert [text.split()[0].strip("-*:") for text in found] == ["refute", "neutral", "", "Supporters"]
    assert clauses(TASK, "stance", []) == []


def test_no_version_where_the_text_stays(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    found = improve(
        store, Planted(truth, lambda r: 0.85 if "Guidelines:" in shown(r) else 0.55), Writer(answer("Guess."))
    )
    assert found.proved and found.winner is not None and found.winner.instructions is None
    assert next_version(found, tmp_path) is None
    assert any("guidelines shown" in text for text in sentences(found))
