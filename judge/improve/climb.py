"""The steps of the ladder as they are climbed: each computes candidates from the best recipe so far, and returns the best
after it."""

import hashlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from judge.improve import ladder
from judge.improve.bench import Bench
from judge.improve.found import Tried
from judge.improve.recipe import Recipe
from judge.improve.rewrite import MOST_SHOWN, Rewriter, Wrong, sha_of
from judge.labels import relation
from judge.providers.base import PairReader
from judge.types import AnnotatorKind

T = TypeVar("T")
FEWEST = 10
"""Questions of the first step of successive halving at least."""
MOST_LEARN = 100
"""Units of learn on which the best judge so far is asked what it gets wrong."""


class LadderStep(Protocol):
    """A step of the ladder."""

    async def climb(self, bench: Bench, best: Tried) -> Tried:
        """The best after it. Raises Halted where a run ends before its last unit."""
        ...


def steps(bench: Bench, rewriter: Rewriter | None) -> list[LadderStep]:
    """The ladder, cheapest first."""
    if isinstance(bench.flow.provider, PairReader):
        bench.found.notes.append(
            "this judge reads two texts and no prompt: nothing but calibration changes it"
        )
        return [Calibrating()]
    return [Calibrating(), AskingOtherwise(), *([] if rewriter is None else [Rewriting(rewriter)])]


class Calibrating:
    """The judge as it is asked, calibrated: no call."""

    async def climb(self, bench: Bench, best: Tried) -> Tried:
        """As `LadderStep.climb`."""
        return max([best, *bench.calibrated("calibration", best)], key=lambda t: t.score)


class AskingOtherwise:
    """Answer mode and label order, guidelines, examples: each rung halved on tune, calibrated or not."""

    async def climb(self, bench: Bench, best: Tried) -> Tried:
        """As `LadderStep.climb`."""
        learn = {unit: bench.labels[unit] for unit in bench.units["learn"]}
        plain, codes = replace(best.recipe, calibration=None), bench.flow.provider.label_codes
        rungs = ladder.rungs(bench.store, bench.task, plain, codes, learn)
        rung = next(rungs, None)
        while rung is not None:
            name = rung.name

            async def score(recipe: Recipe, questions: int, name: str = name) -> float:
                own = await bench.score(name, recipe, questions)
                return max(t.score for t in [own, *bench.calibrated(name, own)])

            await halve(rung.tried, len(bench.order), score)
            best = max([best, *bench.whole], key=lambda t: t.score)
            try:
                rung = rungs.send(replace(best.recipe, calibration=None))
            except StopIteration:
                rung = None
        return best


@dataclass(frozen=True)
class Rewriting:
    """Instructions that a model has rewritten from what the best so far gets wrong on learn."""

    rewriter: Rewriter
    name: str = "instructions rewritten"

    async def climb(self, bench: Bench, best: Tried) -> Tried:
        """As `LadderStep.climb`."""
        if "{" in bench.task.constant:
            bench.found.notes.append("the instructions are a template: no model rewrites them")
            return best
        # Examples are units of learn, which would not be asked about.
        plain = replace(best.recipe, examples=(), nearest=None, rule="", calibration=None)
        units = sorted(bench.units["learn"], key=lambda u: hashlib.sha256(u.encode()).digest())[:MOST_LEARN]
        wrong = self._wrong(bench, await bench.ask(plain, units, reserve=True), units)
        if not wrong:
            bench.found.notes.append("nothing to rewrite for: the judge is right on every unit of learn")
            return best
        request = self.rewriter.request(bench.task, bench.field, wrong)
        sha = sha_of(request, self.rewriter.model)
        text = _known(bench, sha)
        if text is None:
            budget = bench.limits.left(self.rewriter, bench.runs.values())
            if not budget.fits(budget.claim(request)):
                bench.found.notes.append(
                    "the rewriter was not asked: what is left of the limit is for the sealed test"
                )
                return best
            begun = time.monotonic()
            text, why = await self.rewriter.ask(bench.task, request, budget, bench.limits.seconds_left)
            bench.pay(budget, time.monotonic() - begun)
            if text is None:
                bench.found.notes.append(why)
                return best
        bench.rewrites[text] = sha
        recipe = replace(best.recipe, calibration=None, instructions=text)
        own = await bench.score(self.name, recipe, len(bench.order))
        return max([best, own, *bench.calibrated(own.rung, own)], key=lambda t: t.score)

    def _wrong(self, bench: Bench, run: str, units: Sequence[str]) -> list[Wrong]:
        """Units of learn on which the run and the reference differ, one of a question, with what a lead wrote there."""
        given = relation.values(bench.store.conn, run, bench.field)
        differ = [u for u in units if u in given and given[u] != bench.labels[u]]
        first = list({bench.question[unit]: unit for unit in reversed(differ)}.values())[::-1][:MOST_SHOWN]
        inputs = ladder.inputs_of(bench.store, bench.task, first)
        leads = [
            n
            for n, kind in relation.labellers(bench.store.conn, bench.field).items()
            if kind == AnnotatorKind.ADJUDICATED
        ]
        told = {
            u: " ".join(relation.rationale(bench.store.conn, n, bench.field, u) for n in leads) for u in first
        }
        return [Wrong(inputs[u], given[u], bench.labels[u], told[u].strip()) for u in first if u in inputs]


def _known(bench: Bench, sha: str) -> str | None:
    """What the rewriter answered to this very request before."""
    query = "SELECT json_extract(options, '$.instructions') FROM runs WHERE json_extract(options, '$.rewritten') = ?"
    row = bench.store.conn.execute(query, [sha]).fetchone()
    return None if row is None else row[0]


# Successive halving: many candidates are asked about little, the better half about more, the best two about all of it.


def step_sizes(questions: int, candidates: int) -> list[int]:
    """How many questions each step asks about: doubled as often as halving the candidates takes, up to all."""
    found = [questions]
    while 2 ** len(found) < candidates and found[0] // 2 >= FEWEST:
        found.insert(0, found[0] // 2)
    return found


async def halve(
    candidates: Sequence[T], questions: int, score: Callable[[T, int], Awaitable[float]]
) -> list[tuple[T, float, int]]:
    """Each candidate with its last score and on how many questions it was made, the best first (Jamieson and Talwalkar
    2016, arXiv 1502.07943, algorithm 1). Those that came to the last step stand before those that did not; of equal
    scores the one named first, so what is cheaper stays.
    """
    left = list(enumerate(candidates))
    done: list[tuple[T, float, int]] = []
    sizes = step_sizes(questions, len(left))
    for at, size in enumerate(sizes):
        scored = [(await score(candidate, size), -n, candidate) for n, candidate in left]
        scored.sort(key=lambda own: own[:2], reverse=True)
        keep = len(scored) if at == len(sizes) - 1 else max(2, -(-len(scored) // 2))
        done = [(c, value, size) for value, _, c in scored[keep:]] + done
        if at == len(sizes) - 1:
            return [(c, value, size) for value, _, c in scored] + done
        kept = {n for _, n, _ in scored[:keep]}
        left = [(n, c) for n, c in left if -n in kept]
    return done
