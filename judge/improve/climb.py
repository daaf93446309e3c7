"""The steps of the ladder as they are climbed: each says what it asks from the best so far on, and gives the best after it."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from judge.improve import ladder
from judge.improve.bench import Bench
from judge.improve.found import Tried
from judge.improve.recipe import Recipe
from judge.improve.rewrite import MOST_SHOWN, Rewriter, Wrong, sha_of
from judge.improve.search import halve
from judge.labels import relation
from judge.providers.base import PairReader
from judge.types import AnnotatorKind

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
