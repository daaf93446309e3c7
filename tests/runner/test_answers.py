"""Labels answered in their own words, in several label orders, with the guidelines told: what is asked and kept."""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judge.errors import UsageError
from judge.prompts import load_task
from judge.providers import base
from judge.providers.tokens import word_distribution
from judge.runner.modes import several_orders
from judge.runner.requests import Asker, Sampling
from judge.store import Store
from judge.types import Reply, Request, TokenChoice, Unit, Usage
from tests.cli.helpers import checked
from tests.runner.helpers import make_study, numbered, plan, run, select
from tests.suites.helpers import Judge

WORDS = Sampling(answers="words")
UNIT = Unit("u", {"claim": "Tea is hot.", "passage": "Tea is served hot."}, {})


class Leaning(base.BaseProvider):
    """Gives the first label shown .6 and a label of its own .3, so that only an average shows what it thinks."""

    label_codes = True
    max_concurrency = 1

    def __init__(self, favourite: str, *, silent: int | None = None) -> None:
        self.favourite, self.silent, self.calls = favourite, silent, list[Request]()

    async def complete(self, request: Request) -> Reply:
        self.calls.append(request)
        if self.silent == len(self.calls):
            return Reply("I cannot say.", tokens=[TokenChoice("I", [("I", math.log(0.9))])])
        assert request.words is not None
        masses = dict.fromkeys(request.words, 0.05)
        masses[request.words[0]] += 0.5
        masses[self.favourite] += 0.35
        return Reply(request.words[0], usage=Usage(100, 1), tokens=[tokens(masses)])


def tokens(masses: Mapping[str, float]) -> TokenChoice:
    return TokenChoice(next(iter(masses)), [(word, math.log(p)) for word, p in masses.items()])


def asker(sampling: Sampling = WORDS, task: str = "stance") -> Asker:
    provider = base.get("scripted/hash", base.Settings(options={"logprobs": "1"}))
    return Asker(load_task(task), "m", provider, sampling)


# --- words


def test_the_prompt_shows_the_labels_and_asks_for_one_of_them() -> None:
    request, _ = asker(replace(WORDS, label_order="reversed")).request(UNIT, 0)
    system = request.messages[0].content
    assert system.index("- neutral: ") < system.index("- refute: ") < system.index("- support: ")
    assert system.endswith("neutral, refute, support.")
    assert (request.words, request.codes, request.schema) == (("neutral", "refute", "support"), None, None)


def test_the_first_token_says_which_label_it_is() -> None:
    # support: .5 ("support") + .1 (" Sup"), refute .3 ("ref"), neutral .06; "the" .04 stands for nothing.
    reply = Reply(
        "support", tokens=[tokens({"support": 0.5, " Sup": 0.1, "ref": 0.3, "n": 0.06, "the": 0.04})]
    )
    (answer,) = asker().accept(reply).labels
    assert answer.value == "support"
    assert answer.distribution is not None
    assert answer.distribution.probabilities == pytest.approx(
        {"support": 0.6, "refute": 0.3, "neutral": 0.06}
    )
    assert answer.distribution.unassigned == pytest.approx(0.04)


def test_a_token_that_begins_two_labels_is_nobodys() -> None:
    # "re" begins both refute and relevant, "ref" only one of them.
    distribution, _ = word_distribution(
        [tokens({"re": 0.03, "ref": 0.6, "rel": 0.37})], ["refute", "relevant"]
    )
    assert distribution is not None
    assert distribution.probabilities == pytest.approx({"refute": 0.6, "relevant": 0.37})
    none, reason = word_distribution([tokens({"re": 0.3, "ref": 0.7})], ["refute", "relevant"])
    assert none is None
    assert "30.0 % of the probability" in (reason or "")


def test_a_label_without_probabilities_is_read_from_the_text() -> None:
    parsed = asker().accept(Reply(' "Refute".'))
    assert [(a.value, a.distribution) for a in parsed.labels] == [("refute", None)]
    assert "not one of the labels support, refute, neutral" in (asker().accept(Reply("perhaps")).reason or "")


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["mostly-true", "mostly-false"], "'mostly-true' and 'mostly-false'"),
        (["support", "supporting"], "'supporting' begins with 'support'"),
        (["True", "truelike"], "'truelike' begins with 'True'"),
    ],
)
def test_labels_that_begin_alike_are_refused(tmp_path: Path, labels: list[str], says: str) -> None:
    path = tmp_path / "own.v1.md"
    listed = ", ".join(f'{{value: "{label}"}}' for label in labels)
    path.write_text(
        f"---\ntitle: t\nunit: passage\ninputs: [passage]\nquestions:\n  - field: own\n    labels: [{listed}]\n"
        "---\nJudge.\n<!-- unit -->\n{{ passage }}\n{{ answer_cue }}\n"
    )
    with pytest.raises(UsageError, match=says):
        asker(task=str(path))


def test_words_and_codes_and_orders_are_runs_and_requests_of_their_own() -> None:
    kinds = [WORDS, Sampling(answers="codes"), replace(WORDS, orders=2), replace(WORDS, orders=3)]
    made = [asker(kind) for kind in kinds]
    assert len({a.request(UNIT, 0)[1].request_sha for a in made}) == len(kinds)
    assert [a.options.get("orders") for a in made] == [None, None, 2, 3]
    assert [a.options["mode"] for a in made] == ["words", "codes", "words", "words"]


async def test_a_model_without_probabilities_is_refused(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(1))
    silent = base.get("scripted/hash")
    for sampling, option in ((WORDS, "--answers words"), (Sampling(orders=2), "--label-order 2")):
        with pytest.raises(UsageError, match=f"{option} needs label probabilities.* test/model"):
            await run(db, silent, plan(sampling=sampling))
    with pytest.raises(UsageError, match="answers are JSON"):
        asker(Sampling(answers="json", orders=2))
    assert select(db, "SELECT count(*) FROM runs") == [(0,)]


# --- orders


def test_several_orders_show_each_label_at_each_place() -> None:
    three = several_orders(["a", "b", "c"], 3)
    assert three == [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]]
    assert several_orders(["a", "b", "c"], 2) == [["a", "b", "c"], ["c", "b", "a"]]
    assert several_orders(["a", "b"], 2) == [["a", "b"], ["b", "a"]]
    six = several_orders(["a", "b", "c"], 6)
    assert len({tuple(order) for order in six}) == 6
    assert several_orders(list("abcdef"), 3) == [list("abcdef"), list("cdefab"), list("efabcd")]
    for labels, orders, most in ((["a", "b"], 3, 2), (["a", "b", "c"], 7, 6)):
        with pytest.raises(UsageError, match=f"{len(labels)} labels allow at most {most} orders"):
            several_orders(labels, orders)


async def test_the_mean_over_orders_is_stored_with_what_each_order_gave(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(1))
    provider = Leaning("neutral")
    report = await run(db, provider, plan(sampling=replace(WORDS, orders=3)))
    assert report.ended == {"ok": 1}
    assert [r.words for r in provider.calls] == [
        ("support", "refute", "neutral"),
        ("refute", "neutral", "support"),
        ("neutral", "support", "refute"),
    ]
    # Each order gives its first label .55, neutral .4 (.9 where it is first) and the others .05: support and refute
    # have (.55 + .05 + .05) / 3, neutral (.4 + .4 + .9) / 3. One order alone would have said support.
    ((value, stored),) = select(db, "SELECT value, distribution FROM labels WHERE field = 'stance'")
    assert value == "neutral"
    assert json.loads(stored) == pytest.approx(
        {"support": 0.65 / 3, "refute": 0.65 / 3, "neutral": 1.7 / 3, "unassigned": 0.0}, abs=1e-9
    )
    rows = select(db, "SELECT attempt, status, reason, input_tokens FROM judgements ORDER BY attempt")
    assert [(attempt, status, tokens) for attempt, status, _, tokens in rows] == [
        (1, "ok", 100),
        (2, "ok", 100),
        (3, "ok", 100),
    ]
    assert rows[0][2] == 'label order 1 of 3: {"support": 0.55, "refute": 0.05, "neutral": 0.4}'
    assert rows[2][2].startswith("label order 3 of 3: ")
    assert report.usage["input_tokens"] == 300, "the cost of every order is counted"
    again = await run(db, provider, plan(sampling=replace(WORDS, orders=3)))
    assert (again.already_judged, len(provider.calls)) == (1, 3), "nothing is asked twice"


async def test_a_unit_has_no_label_when_one_order_has_no_probabilities(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", numbered(1))
    report = await run(db, Leaning("neutral", silent=2), plan(sampling=replace(WORDS, orders=3)))
    assert report.ended == {"unparsed": 1}
    statuses = select(db, "SELECT status, reason FROM judgements ORDER BY attempt")
    assert [s for s, _ in statuses] == ["ok", "unparsed"], "the third order is not asked"
    assert "label order 2 of 3" in statuses[1][1] or "not one of the labels" in statuses[1][1]
    assert select(db, "SELECT count(*) FROM labels WHERE field = 'stance'") == [(0,)]


async def test_identical_units_are_asked_once_over_all_orders(tmp_path: Path) -> None:
    db = make_study(tmp_path / "s.db", ["Same.", "Same."])
    provider = Leaning("refute")
    report = await run(db, provider, plan(sampling=replace(WORDS, orders=2)))
    assert (report.labelled, len(provider.calls)) == (2, 2)
    assert select(db, "SELECT DISTINCT value FROM labels WHERE field = 'stance'") == [("refute",)]


# --- guidelines


def test_guidelines_are_told_to_the_model_and_make_another_run() -> None:
    task = load_task("stance")
    provider = base.get("scripted/hash")
    guided = Asker(task.with_guidelines(), "m", provider, Sampling(answers="json"))
    plain = Asker(task, "m", provider, Sampling(answers="json"))
    system = guided.request(UNIT, 0)[0].messages[0].content
    assert "Guidelines:\nRead the claim first, then the whole passage." in system
    assert "Guidelines:" not in plain.request(UNIT, 0)[0].messages[0].content
    assert (guided.options["guidelines"], "guidelines" in plain.options) == ("shown", False)
    assert guided.request(UNIT, 0)[1].request_sha != plain.request(UNIT, 0)[1].request_sha


def test_the_options_of_judge_run(tmp_path: Path, judge: Judge) -> None:
    make_study(tmp_path / "study.db", numbered(3))
    words = ["run", "stance", "-m", "scripted/hash", "--option", "logprobs=1"]
    document = checked(
        judge(*words, "--answers", "words", "--label-order", "3", "--guidelines", "--json").out, "run"
    )
    assert (document["labelled"], document["ok"]) == (3, 3)
    with Store.open(tmp_path / "study.db") as store:
        ((options,),) = store.conn.execute("SELECT options FROM runs").fetchall()
    assert json.loads(options) | {"mode": "words", "orders": 3, "guidelines": "shown"} == json.loads(options)
    dry = checked(judge(*words, "--label-order", "2", "--estimate", "--json").out, "estimate")
    plain = checked(judge(*words, "--estimate", "--json").out, "estimate")
    assert dry["calls"] == 2 * plain["calls"]
    refused = judge("run", "stance", "-m", "scripted/hash", "--answers", "words", code=2)
    assert "needs label probabilities" in refused.err
    assert judge("run", "verdict", *words[2:], "--guidelines", "--label-order", "9", code=2).err
