"""The steps of the search. Each step starts from the best recipe of the previous one, tries candidates, and returns the best."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from judge.improve import ladder
from judge.improve.bench import Bench
from judge.improve.outcome import Tried
from judge.improve.recipe import Recipe
from judge.improve.rewrite import MOST_SHOWN, Rewriter, Wrong, sha_of
from judge.labels import relation
from judge.providers.base import PairReader
from judge.store import label_rows
from judge.types import AnnotatorKind

T = TypeVar("T")
FEWEST = 10
"""Minimum number of questions in the first round of successive halving."""
MOST_LEARN = 100
"""Maximum number of learning units on which the current best judge is run to find its errors."""


LadderStep = Callable[[Bench, Tried], Awaitable[Tried]]
"""A step of the search: takes the current best candidate and returns the new best one.

Raises Halted if a run ends before its last unit.
"""


def steps(bench: Bench, rewriter: Rewriter | None) -> list[LadderStep]:
    """Return the steps of the search, cheapest first."""
    if isinstance(bench.flow.provider, PairReader):
        bench.outcome.notes.append(
            "this judge reads two texts and no prompt, so only its calibration can be improved"
        )
        return [calibrate]
    return [calibrate, ask_otherwise, *([] if rewriter is None else [partial(rewrite, rewriter)])]


async def calibrate(bench: Bench, best: Tried) -> Tried:
    """Calibrate the current best judge. This step needs no model call."""
    # If scores are equal, max() returns the first, so the earlier and cheaper candidate wins a tie.
    return max([best, *bench.try_calibrated("calibration", best)], key=lambda t: t.score)


async def ask_otherwise(bench: Bench, best: Tried) -> Tried:
    """Try answer modes, label orders, guidelines and examples, with and without calibration.

    The candidates are compared on the tuning questions by successive halving.
    """
    learn = {unit: bench.labels[unit] for unit in bench.units["learn"]}
    codes = bench.flow.provider.label_codes
    rungs = ladder.rungs(bench.store, bench.task, lambda: best.recipe.uncalibrated, codes, learn)
    for name, tried in rungs:

        async def score(recipe: Recipe, questions: int, name: str = name) -> float:
            candidate = await bench.score(name, recipe, questions)
            # Calibration costs nothing, so it is tried with each candidate.
            return max(t.score for t in [candidate, *bench.try_calibrated(name, candidate)])

        await halve(tried, len(bench.order), score)
        best = max([best, *bench.whole], key=lambda t: t.score)
    return best


async def rewrite(rewriter: Rewriter, bench: Bench, best: Tried) -> Tried:
    """Let a model rewrite the instructions, based on the errors of the best candidate on the learning questions."""
    # A rewritten text is never rendered as a template, so the judge would see its placeholders.
    if "{" in bench.task.constant:
        bench.outcome.notes.append("the instructions are a template, which the rewriter cannot change")
        return best
    # A run never judges its own examples, which are units of learn. Without examples, errors on all units of learn are found.
    plain = best.recipe.model_copy(update={"examples": None, "calibration": None})
    # Sorted by hash, so that a resumed search shows the rewriter the same errors and reuses its stored answer.
    units = sorted(bench.units["learn"], key=lambda u: hashlib.sha256(u.encode()).digest())[:MOST_LEARN]
    wrong = _wrong(bench, await bench.ask(plain, units, reserve=True), units)
    if not wrong:
        bench.outcome.notes.append(
            "the instructions were not rewritten, because the judge makes no error on the learning questions"
        )
        return best
    request = rewriter.request(bench.task, bench.field, wrong)
    sha = sha_of(request, rewriter.model)
    text = _find_stored_answer(bench, sha)
    if text is None:
        budget = bench.limits.compute_rewriter_budget(rewriter, bench.runs.values())
        if not budget.fits(budget.claim(request)):
            bench.outcome.notes.append(
                "the instructions were not rewritten, because the rest of the limit is reserved for the sealed test"
            )
            return best
        begun = time.monotonic()
        text, reason = await rewriter.ask(bench.task, request, budget, bench.limits.seconds_left)
        bench.pay(budget, time.monotonic() - begun)
        if text is None:
            bench.outcome.notes.append(reason)
            return best
    bench.rewrites[text] = sha
    recipe = best.recipe.model_copy(update={"calibration": None, "instructions": text})
    candidate = await bench.score("instructions rewritten", recipe, len(bench.order))
    return max([best, candidate, *bench.try_calibrated(candidate.rung, candidate)], key=lambda t: t.score)


def _wrong(bench: Bench, run: str, units: Sequence[str]) -> list[Wrong]:
    """Return learning units on which the run and the reference disagree, at most one per question.

    Each unit has the lead annotator's reason for the final label, if there is one.
    """
    conn = bench.store.conn
    labels = relation.values(conn, run, bench.field)
    # A unit without a judge's label is not an error to learn from.
    differ = [u for u in units if u in labels and labels[u] != bench.labels[u]]
    # At most one unit per question, because passages of a question are similar and would show the same error.
    first = list({bench.question[unit]: unit for unit in reversed(differ)}.values())[::-1][:MOST_SHOWN]
    inputs = ladder.inputs_of(bench.store, bench.task, first)
    kinds = label_rows.labellers(conn, bench.field)
    leads = [name for name, kind in kinds.items() if kind == AnnotatorKind.ADJUDICATED]
    notes = {u: " ".join(relation.rationale(conn, n, bench.field, u) for n in leads) for u in first}
    return [Wrong(inputs[u], labels[u], bench.labels[u], notes[u].strip()) for u in first if u in inputs]


def _find_stored_answer(bench: Bench, sha: str) -> str | None:
    """Return the rewriter's stored answer to exactly this request, or None."""
    query = "SELECT json_extract(options, '$.instructions') FROM runs WHERE json_extract(options, '$.rewritten') = ?"
    row = bench.store.conn.execute(query, [sha]).fetchone()
    return None if row is None else row[0]


# Successive halving: many candidates are run on few questions, the better half on twice as many, and the best two on all.


def step_sizes(questions: int, candidates: int) -> list[int]:
    """Return the number of questions in each round.

    The number doubles from round to round, and the last round has all questions.
    """
    sizes = [questions]
    while 2 ** len(sizes) < candidates and sizes[0] // 2 >= FEWEST:
        sizes.insert(0, sizes[0] // 2)
    return sizes


async def halve(
    candidates: Sequence[T], questions: int, score: Callable[[T, int], Awaitable[float]]
) -> list[tuple[T, float, int]]:
    """Return the candidates, best first, each with its last score and the number of questions used for this score.

    Candidates of the last round come first. This is algorithm 1 of Jamieson and Talwalkar (2016, arXiv 1502.07943).
    """
    remaining = list(enumerate(candidates))
    done: list[tuple[T, float, int]] = []
    sizes = step_sizes(questions, len(remaining))
    for at, size in enumerate(sizes):
        # If scores are equal, the earlier candidate wins, which is the cheaper one.
        scored = [(await score(candidate, size), -n, candidate) for n, candidate in remaining]
        scored.sort(key=lambda entry: entry[:2], reverse=True)
        # At least two candidates remain, so that the final comparison uses all questions.
        keep = len(scored) if at == len(sizes) - 1 else max(2, -(-len(scored) // 2))
        done = [(c, value, size) for value, _, c in scored[keep:]] + done
        if at == len(sizes) - 1:
            return [(c, value, size) for value, _, c in scored] + done
        surviving = {n for _, n, _ in scored[:keep]}
        remaining = [(n, c) for n, c in remaining if -n in surviving]
    return done
