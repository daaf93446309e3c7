"""The way to a better judge on planted worlds: found and proved where there is one, "none" where all are equal."""

import asyncio
import dataclasses
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from judge.document import html
from judge.errors import UsageError
from judge.improve import ladder
from judge.improve import recipe as recipes
from judge.improve.climb import halve, step_sizes
from judge.improve.improve import Improve
from judge.improve.outcome import Improved
from judge.improve.page import as_document, sentences
from judge.labels.scope import Scope, read_panel
from judge.prompts import load_task
from judge.providers import base
from judge.runner import Plan
from judge.runner.flow import Flow, Halted
from judge.store import Store, label_sources, runs
from judge.types import Message, Reply, Request, Usage
from tests.annotate.agreement_helpers import checked, judge
from tests.derive import worlds
from tests.derive.planted import Planted, numbers, shown
from tests.opened import opened
from tests.runner.helpers import HASTY

N = 300
TASK = load_task("stance")
GUIDE = "Guidelines:"


def world(path: Path, seed: int = 0) -> tuple[Store, Any]:
    """300 units in 60 questions, split in about 12 / 12 / 36."""
    path.write_bytes(_world(seed))
    return opened(Store.open(path)), worlds.draw(N, seed=seed)


@cache
def _world(seed: int) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "w.db"
        worlds.study(path, worlds.draw(N, seed=seed)).close()
        judge("split", "stance", "--seed", str(seed), "-d", path)
        return path.read_bytes()


def improve(store: Store, model: Planted, anyway: bool = False, **limits: Any) -> Improved:
    """The search with an open provider."""
    plan = Plan(TASK, "planted/model", patience=HASTY, **limits)

    async def go() -> Improved:
        return await Improve(store, Flow(store, model, plan), TASK, "stance", None).go(anyway)

    return asyncio.run(go())


def part(store: Store, name: str, each: int = 5) -> set[int]:
    """The numbers of the units of a part, `each` to a question."""
    rows = store.conn.execute("SELECT question_id FROM split_questions WHERE part = ?", [name])
    return {each * int(q.partition(":")[2]) + k for (q,) in rows for k in range(each)}


def used(model: Planted) -> int:
    """The tokens that the model counted."""
    return sum(sum(len(m.content) for m in r.messages) // 4 + 1 for r in model.seen)


def looks(store: Store) -> int:
    return int(store.conn.execute("SELECT count(*) FROM split_looks").fetchone()[0])


def test_steps_double_up_to_all_questions() -> None:
    assert step_sizes(40, 1) == [40] and step_sizes(40, 2) == [40]
    assert step_sizes(40, 8) == [10, 20, 40]
    # Never fewer than ten questions.
    assert step_sizes(12, 8) == [12]


def test_the_better_half_is_asked_about_more_and_the_first_stays_of_equals() -> None:
    asked: list[tuple[str, int]] = []

    async def score(name: str, questions: int) -> float:
        asked.append((name, questions))
        return {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.4, "e": 0.2}[name]

    found = asyncio.run(halve("abcde", 40, score))
    assert [name for name, _, _ in found] == ["b", "d", "c", "e", "a"]
    assert asked == [*((n, 10) for n in "abcde"), *((n, 20) for n in "bcd"), *((n, 40) for n in "bd")]


def test_guidelines_that_help_are_found_and_proved(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    model = Planted(truth, lambda r: 0.85 if GUIDE in shown(r) else 0.55)
    found = improve(store, model)
    assert found.winner is not None and found.winner.guidelines
    assert found.proof is not None and found.proof.part == "test" and looks(store) == 1
    assert found.difference is not None and found.difference[1] is not None
    # Planted: accuracy .85 against .55 of three labels is a kappa of .775 against .325.
    assert found.proved and 0.25 < found.difference[0] < 0.65
    assert found.level == 0.025
    assert any(text.startswith("improved on the sealed test (") for text in sentences(found))
    page = html.render(as_document(found))
    assert "guidelines shown" in page and "What was tried" in page
    assert (
        "improved on the sealed test" in page
        and f"Difference of kappa on the sealed test: {found.difference[0]:+.3f}, from" in page
    )
    # Three label orders are three calls, of which a unit takes all.
    whole = {
        t.recipe.words: t.tokens
        for t in found.tried
        if t.n_questions == len({q // 5 for q in part(store, "tune")})
    }
    three, one = whole["answers as words, 3 label orders averaged"], whole["answers as words"]
    assert three is not None and one is not None and three == pytest.approx(3 * one, rel=0.02)
    _only_tried_stands_in_no_report(store, found)


def _only_tried_stands_in_no_report(store: Store, found: Improved) -> None:
    assert found.winner is not None
    panel = read_panel(store, Scope("stance"))
    plain = {run for (run,) in store.conn.execute("SELECT run_id FROM runs")} - runs.read_tried(store.conn)
    # Today's task and the winner (and, where it is calibrated, the run that it was made from).
    assert set(panel.shown) == plain and len(plain) == 2 + (found.winner.calibration is not None)
    other = next(iter(runs.read_tried(store.conn)))
    assert len(read_panel(store, Scope("stance", runs=(other,))).judges) == 1


class Mute(Planted):
    """Answers nothing about every third unit where it is shown guidelines."""

    async def complete(self, request: Request) -> Reply:
        asked = numbers(request.messages[-1].content)
        if not asked or (
            GUIDE in shown(request) and asked[0] % 3 == 0
        ):  # without a unit it is asked once more
            return Reply("I would rather not.", usage=Usage(1, 1, 0))
        return await super().complete(request)


def test_units_without_a_label_count_against_a_way_of_asking(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    found = improve(store, Mute(truth, lambda r: 1.0 if GUIDE in shown(r) else 0.8))
    # With guidelines kappa is 1 on two thirds of the units: .67 of skill, against .7 without (.8 right of three labels).
    silent = [t for t in found.tried if t.recipe.guidelines]
    assert silent and all(t.kappa == 1.0 and t.score == t.coverage < 0.75 for t in silent)
    assert all(t.score == pytest.approx((t.kappa or 0.0) * t.coverage) for t in found.tried)


def test_a_bias_is_found_without_another_call(tmp_path: Path) -> None:
    """A judge that says 'neutral' nearly always: the calibration is what wins, and its run is honest on the test."""
    store, truth = world(tmp_path / "w.db")
    found = improve(store, Planted(truth, lambda r: 0.8, bias=8.0))
    assert found.winner is not None and found.winner.calibration is not None and found.proved
    run = next(c.run_id for c in found.proof.contenders if "bias(" in c.model)  # type: ignore[union-attr]
    fitted = {q for (q,) in store.conn.execute("SELECT question_id FROM fitted_on WHERE run_id = ?", [run])}
    tune = {f"w:{n // 5}" for n in part(store, "tune")}
    assert fitted == tune == set(found.winner.calibration.fitted.questions)


def test_no_question_of_tune_or_test_is_in_any_prompt_but_its_own(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    model = Planted(truth, lambda r: 0.85 if len(r.messages) > 2 else 0.55)
    found = improve(store, model)
    assert found.winner is not None and found.winner.examples and found.proved
    learn, tune, test = (part(store, name) for name in ("learn", "tune", "test"))
    taught = {n for request in model.seen for n in numbers(shown(request))}
    assert taught and taught <= learn
    asked = [n for request in model.seen for n in numbers(request.messages[-1].content)]
    assert set(asked) == tune | test
    # The sealed test was asked about last, after everything had been chosen.
    first = min(i for i, n in enumerate(asked) if n in test)
    assert all(n in test for n in asked[first:])
    # As many examples of each label, each of another question.
    labels = [example.answers["stance"] for example in found.winner.examples.shown]
    assert len({labels.count(label) for label in worlds.LABELS}) == 1
    assert len({example.item_id for example in found.winner.examples.shown}) == len(labels)


@pytest.mark.parametrize("seed", [1, 2])
def test_equal_candidates_come_to_none(seed: int, tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db", seed)
    found = improve(store, Planted(truth, lambda r: 0.7, seed=seed))
    assert not found.proved
    assert any(text.startswith("no improvement shown") for text in sentences(found))
    assert looks(store) == (0 if found.winner is None else 1)


def test_a_search_that_was_killed_goes_on_and_asks_nothing_twice(tmp_path: Path) -> None:
    def skill(request: Any) -> float:
        return 0.85 if GUIDE in shown(request) else 0.55

    store, truth = world(tmp_path / "a.db")
    whole = Planted(truth, skill)
    expected = improve(store, whole)
    store, truth = world(tmp_path / "b.db")
    calls = 0
    for most in (40, 150, 300):
        model = Planted(truth, skill)
        model.most = most
        with pytest.raises(BaseException):  # noqa: B017 (the interruption, or the run that was halted by it)
            improve(store, model)
        calls += len(model.seen)
        assert looks(store) == 0
    last = Planted(truth, skill)
    found = improve(store, last)
    assert calls + len(last.seen) <= len(whole.seen) + 3 * 64
    assert found.difference == expected.difference and found.winner == expected.winner
    assert looks(store) == 1
    # And again: nothing is asked, and the look is the one that was taken.
    again = Planted(truth, skill)
    assert improve(store, again).difference == expected.difference
    assert not again.seen and looks(store) == 1


def test_a_limit_leaves_room_for_the_test_or_opens_nothing(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")

    # A call takes about 230 tokens: tune has 65 units, and the test of two judges 2 x 175.
    model = Planted(truth, lambda r: 0.8, bias=8.0)
    with pytest.raises(Halted, match="limit of 1,000 tokens"):
        improve(store, model, max_tokens=1_000)
    assert used(model) <= 1_000 and looks(store) == 0
    model = Planted(truth, lambda r: 0.8, bias=8.0)
    found = improve(store, model, max_tokens=30_000)
    assert used(model) <= 30_000 and looks(store) == 0 and found.proof is None and found.winner is not None
    assert "the sealed test was not opened" in found.notes[0]
    model = Planted(truth, lambda r: 0.8, bias=8.0)
    found = improve(store, model, max_tokens=100_000)
    # What is left after a reserve for the test went into the ladder; the search says that it stopped early.
    assert used(model) <= 100_000 and found.proved and found.stopped is not None
    assert "of 100,000 tokens are reserved for the sealed test" in found.stopped


def test_a_limit_of_money_leaves_room_for_the_test_or_opens_nothing(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    # One dollar a million tokens, in and out: a call of about 230 tokens costs $0.00023, the test of two judges $0.08.
    prices = {"planted/model": {"input": 1.0, "output": 1.0}}

    model = Planted(truth, lambda r: 0.8, bias=8.0)
    with pytest.raises(Halted, match=r"limit of \$0\.001"):
        improve(store, model, max_cost=0.001, prices=prices)
    assert used(model) <= 1_000 and looks(store) == 0
    model = Planted(truth, lambda r: 0.8, bias=8.0)
    found = improve(store, model, max_cost=0.1, prices=prices)
    assert used(model) <= 100_000 and found.proved and found.stopped is not None
    assert "of $0.1 is reserved for the sealed test" in found.stopped
    assert found.cost == pytest.approx(used(model) / 1e6, abs=1e-9)
    with pytest.raises(UsageError, match="no price"):
        improve(store, Planted(truth, lambda r: 0.8), max_cost=0.1)


def test_examples_nearest_by_words_are_found_where_they_help(tmp_path: Path) -> None:
    """Passages of three topics; the model is better where the examples that it is shown are of the unit's own topic."""
    truth = worlds.draw(N)
    topics = ("glacier", "violin", "harbour")
    text = [f"passage number {u} of the world, on the {topics[u % 3]}" for u in range(N)]
    store = worlds.study(tmp_path / "w.db", truth, text=text, per_question=1)
    judge("split", "stance", "-d", store.path)

    def skill(request: Any) -> float:
        own = next(t for t in topics if t in request.messages[-1].content)
        shots = [m.content for m in request.messages[1:-1] if m.role == "user"]
        return 0.95 if shots and all(own in shot for shot in shots) else 0.5

    model = Planted(truth, skill)
    found = improve(store, model)
    assert found.winner is not None and found.winner.examples is not None and found.proved
    assert found.winner.examples.nearest == 1
    taught = {n for request in model.seen for n in numbers(shown(request))}
    assert taught and taught <= part(store, "learn", 1)
    again = Planted(truth, skill)
    assert improve(store, again).difference == found.difference and not again.seen


def test_no_more_examples_are_chosen_than_a_recipe_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, truth = world(tmp_path / "w.db")
    labels = {u: worlds.LABELS[k] for u, k in zip(worlds.units(N), truth.tolist(), strict=True)}
    monkeypatch.setattr(ladder, "MOST_EXAMPLES", 5)
    assert len(ladder.draw_balanced(store, TASK, labels, 1)) == 3
    assert ladder.draw_balanced(store, TASK, labels, 2) == []


class Pairs(Planted):
    """A judge that reads two texts: evidence and statement, and no prompt."""

    reads_pairs = True
    task, labels = "", ()

    def prepare_labels(self, task: str, labels: Any) -> None:
        """Any labels do."""
        self.labels = tuple(labels)

    async def complete(self, request: Any) -> Any:
        """The planted answer, its probabilities on the labels themselves."""
        evidence = next(m.content for m in request.messages if m.role == "evidence")
        asked = dataclasses.replace(
            request,
            messages=(Message("system", " ".join(self.labels)), Message("user", evidence)),
        )
        return await super().complete(asked)


def test_a_judge_of_pairs_is_calibrated_and_asked_in_no_other_way(tmp_path: Path) -> None:
    store, truth = world(tmp_path / "w.db")
    model = Pairs(truth, lambda r: 0.8, bias=8.0)
    found = improve(store, model)
    assert found.winner is not None and found.winner.calibration is not None and found.proved
    assert {t.rung for t in found.tried} == {"today", "calibration"}
    # Each unit of tune and test once.
    assert len(model.seen) == len(part(store, "tune")) + len(part(store, "test"))
    assert "reads two texts" in found.notes[0]


def of_people(path: Path) -> tuple[Store, Any]:
    """Two people beside the gold, each right on 70 %."""
    store, truth = world(path)
    rng = np.random.default_rng(3)
    for person in ("ann", "bob"):
        given = np.where(rng.random(N) < 0.7, truth, (truth + 1) % 3)
        pairs = zip(worlds.units(N), given.tolist(), strict=True)
        with store.transaction() as conn:
            conn.execute("INSERT INTO annotators VALUES (?, 'human', '{}')", [person])
            rows = [(u, "stance", person, worlds.LABELS[k], None) for u, k in pairs]
            label_sources.add_first(conn, rows, "items:pilot")
    return store, truth


def test_people_who_agree_no_better_come_first(tmp_path: Path) -> None:
    store, truth = of_people(tmp_path / "w.db")
    good = Planted(truth, lambda r: 0.95)
    refused = improve(store, good)
    assert refused.refused and refused.people is not None and refused.people.as_well
    # Only today's task was asked, on tune.
    assert len(good.seen) == len(part(store, "tune")) and looks(store) == 0
    said = "\n".join(sentences(refused))
    assert (
        "no candidate was tried" in said
        and "First improve the guidelines" in said
        and "support / refute: " in said
    )
    assert not improve(store, Planted(truth, lambda r: 0.95), anyway=True).refused
    store, truth = of_people(tmp_path / "other.db")
    bad = improve(store, Planted(truth, lambda r: 0.34, seed=5))
    assert bad.people is not None and not bad.people.as_well and not bad.refused


def test_the_command_writes_a_recipe_and_run_makes_it_a_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, truth = world(tmp_path / "w.db")
    model = Planted(truth, lambda r: 0.85 if GUIDE in shown(r) else 0.55, bias=2.0)
    monkeypatch.setattr(base, "get", lambda *_: model)
    monkeypatch.chdir(tmp_path)
    words = ("improve", "stance", "-m", "planted/model", "-d", store.path)
    found = checked(judge(*words, "-o", "page.html", "--json").stdout)
    assert found["improved"] and found["recipe"] == "stance.recipe.yaml" and found["test"]["look"] == 1
    assert "<h1>Improving stance.v2" in Path("page.html").read_text()
    written = recipes.read_recipe(Path("stance.recipe.yaml"))
    assert written.guidelines and written.made["look"] == 1
    before = len(model.seen)
    both = ("run", "stance", "-m", "planted/model", "--recipe", "stance.recipe.yaml", "-d", store.path)
    done = judge(*both)
    # The recipe's run has tune and test already: learn is what is left, without the five units of an item that is shown.
    orders = max(1, written.orders)
    left = len(part(store, "learn")) - 5 * (0 if written.examples is None else len(written.examples.shown))
    assert len(model.seen) - before == left * orders
    if written.calibration:
        run = done.stderr.split("calibrated by the recipe: run ")[1].split()[0]
        shown_run = judge("runs", "show", run, "-d", store.path).stdout
        assert "which are excluded from all scores" in shown_run
    refused = judge(*both, "--answers", "json", "--guidelines", code=2)
    assert "--answers, --guidelines: cannot be combined with --recipe" in refused.stderr
    other = judge("run", "relevance_graded", *both[2:], code=2)
    assert "this recipe was made for stance.v2" in other.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it must begin with 'recipe: 1'"),
        ("recipe: 1\nnonsense: 2\n", "field 'nonsense'"),
        ("recipe: 1\ntask: stance.v2\n", "field 'task_sha256': this key is missing"),
        ("recipe: [", "not a recipe"),
    ],
)
def test_a_file_that_is_no_recipe_is_named(text: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    path.write_text(text)
    store, _ = world(tmp_path / "w.db")
    done = judge("run", "stance", "-m", "scripted/hash", "--recipe", path, "-d", store.path, code=1)
    assert told in done.stderr and "r.yaml" in done.stderr


def test_a_task_that_is_not_split_says_how(tmp_path: Path) -> None:
    store = worlds.study(tmp_path / "w.db", worlds.draw(50))
    done = judge("improve", "stance", "-m", "scripted/hash", "-d", store.path, code=2)
    assert "stance has not been split; split it: judge split stance -d " in done.stderr
