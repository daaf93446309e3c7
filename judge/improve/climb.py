"""The steps of the search.

Each step starts from the best recipe so far, tries candidates, and returns the best one.
"""

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
"""The least number of questions in the first round of successive halving."""
MOST_LEARN = 100
"""Maximum number of learn units on which the best judge so far is run to find its errors."""


LadderStep = Callable[[Bench, Tried], Awaitable[Tried]]
"""A step of the search returns the best candidate after it. Raises Halted if a run ends before its last unit."""


def steps(bench: Bench, rewriter: Rewriter | None) -> list[LadderStep]:
    """Return the steps, cheapest first."""
    if isinstance(bench.flow.provider, PairReader):
        bench.outcome.notes.append(
            "this judge reads two texts and no prompt, so only its calibration can be improved"
        )
        return [calibrate]
    return [calibrate, ask_otherwise, *([] if rewriter is None else [partial(rewrite, rewriter)])]


async def calibrate(bench: Bench, best: Tried) -> Tried:
    """Calibrate the judge as it is: no model call."""
    # Of equal scores max() returns the first, so the earlier and cheaper candidate wins a tie.
    return max([best, *bench.calibrated("calibration", best)], key=lambda t: t.score)


async def ask_otherwise(bench: Bench, best: Tried) -> Tried:
    """Try answer modes, label orders, guidelines and examples by successive halving on tune, with and without calibration."""
    learn = {unit: bench.labels[unit] for unit in bench.units["learn"]}
    codes = bench.flow.provider.label_codes
    rungs = ladder.rungs(bench.store, bench.task, lambda: best.recipe.uncalibrated, codes, learn)
    for name, tried in rungs:

        async def score(recipe: Recipe, questions: int, name: str = name) -> float:
            candidate = await bench.score(name, recipe, questions)
            # Calibration is free, so it is tried with each candidate.
            return max(t.score for t in [candidate, *bench.calibrated(name, candidate)])

        await halve(tried, len(bench.order), score)
        best = max([best, *bench.whole], key=lambda t: t.score)
    return best


async def rewrite(rewriter: Rewriter, bench: Bench, best: Tried) -> Tried:
    """Let a model rewrite the instructions, based on the errors of the best candidate on learn."""
    # A rewritten text is never rendered as a template, so its placeholders would reach the judge as they are.
    if "{" in bench.task.constant:
        bench.outcome.notes.append("the instructions are a template, which the rewriter cannot change")
        return best
    # A run never judges its own examples, and those are units of learn. Without them, all of learn can show errors.
    plain = best.recipe.model_copy(update={"examples": None, "calibration": None})
    # By hash, so that a resumed search shows the rewriter the same errors and reuses its stored answer.
    units = sorted(bench.units["learn"], key=lambda u: hashlib.sha256(u.encode()).digest())[:MOST_LEARN]
    wrong = _wrong(bench, await bench.ask(plain, units, reserve=True), units)
    if not wrong:
        bench.outcome.notes.append(
            "the instructions were not rewritten: the judge is right on every unit in learn"
        )
        return best
    request = rewriter.request(bench.task, bench.field, wrong)
    sha = sha_of(request, rewriter.model)
    text = _known(bench, sha)
    if text is None:
        budget = bench.limits.left(rewriter, bench.runs.values())
        if not budget.fits(budget.claim(request)):
            bench.outcome.notes.append(
                "the instructions were not rewritten: the rest of the limit is reserved for the sealed test"
            )
            return best
        begun = time.monotonic()
        text, why = await rewriter.ask(bench.task, request, budget, bench.limits.seconds_left)
        bench.pay(budget, time.monotonic() - begun)
        if text is None:
            bench.outcome.notes.append(why)
            return best
    bench.rewrites[text] = sha
    recipe = best.recipe.model_copy(update={"calibration": None, "instructions": text})
    candidate = await bench.score("instructions rewritten", recipe, len(bench.order))
    return max([best, candidate, *bench.calibrated(candidate.rung, candidate)], key=lambda t: t.score)


def _wrong(bench: Bench, run: str, units: Sequence[str]) -> list[Wrong]:
    """Return learn units on which the run differs from the reference, with the lead's notes."""
    conn = bench.store.conn
    labels = relation.values(conn, run, bench.field)
    # Where the judge gave no label there is no error to learn from.
    differ = [u for u in units if u in labels and labels[u] != bench.labels[u]]
    # One a question: passages of one question are alike, and would show the same error.
    first = list({bench.question[unit]: unit for unit in reversed(differ)}.values())[::-1][:MOST_SHOWN]
    inputs = ladder.inputs_of(bench.store, bench.task, first)
    kinds = label_rows.labellers(conn, bench.field)
    leads = [name for name, kind in kinds.items() if kind == AnnotatorKind.ADJUDICATED]
    notes = {u: " ".join(relation.rationale(conn, n, bench.field, u) for n in leads) for u in first}
    return [Wrong(inputs[u], labels[u], bench.labels[u], notes[u].strip()) for u in first if u in inputs]


def _known(bench: Bench, sha: str) -> str | None:
    """Return the rewriter's stored answer to exactly this request, or None."""
    query = "SELECT json_extract(options, '$.instructions') FROM runs WHERE json_extract(options, '$.rewritten') = ?"
    row = bench.store.conn.execute(query, [sha]).fetchone()
    return None if row is None else row[0]


# Successive halving: many candidates on few questions, the better half on twice as many, the best two on all.


def step_sizes(questions: int, candidates: int) -> list[int]:
    """Return the number of questions in each round: it doubles with each halving of the candidates, up to all questions."""
    sizes = [questions]
    while 2 ** len(sizes) < candidates and sizes[0] // 2 >= FEWEST:
        sizes.insert(0, sizes[0] // 2)
    return sizes


async def halve(
    candidates: Sequence[T], questions: int, score: Callable[[T, int], Awaitable[float]]
) -> list[tuple[T, float, int]]:
    """Return each candidate with its last score and the number of questions behind it, best first.

    Jamieson and Talwalkar 2016, arXiv 1502.07943, algorithm 1. Candidates of the last round come first.
    """
    remaining = list(enumerate(candidates))
    done: list[tuple[T, float, int]] = []
    sizes = step_sizes(questions, len(remaining))
    for at, size in enumerate(sizes):
        # Of equal scores the candidate named first wins, which is the cheaper one.
        scored = [(await score(candidate, size), -n, candidate) for n, candidate in remaining]
        scored.sort(key=lambda entry: entry[:2], reverse=True)
        # Two at least go on, so that the last comparison is one on all questions.
        keep = len(scored) if at == len(sizes) - 1 else max(2, -(-len(scored) // 2))
        done = [(c, value, size) for value, _, c in scored[keep:]] + done
        if at == len(sizes) - 1:
            return [(c, value, size) for value, _, c in scored] + done
        surviving = {n for _, n, _ in scored[:keep]}
        remaining = [(n, c) for n, c in remaining if -n in surviving]
    return done
