"""The way from today's task to a proved recipe: baseline, refusal, ladder on tune, one look at the sealed test."""

from dataclasses import replace

import numpy as np

from judge.improve.bench import PURPOSE, Bench
from judge.improve.climb import steps
from judge.improve.found import Improved, Tried, people_of
from judge.improve.recipe import Recipe
from judge.improve.rewrite import Rewriter
from judge.labels.scope import Scope, read
from judge.prompts.load import Task
from judge.runner.flow import Flow, Halted
from judge.stats.parts import detectable
from judge.store.runs import adopt
from judge.store.splits import level_of
from judge.store.study import Store
from judge.suites import contest
from judge.suites.contest import Contest


class Improve:
    """One search. Everything asked for is in the study, so a search that was killed goes on with the same command."""

    def __init__(
        self,
        store: Store,
        flow: Flow,
        task: Task,
        field: str,
        word: str | None,
        rewriter: Rewriter | None = None,
    ) -> None:
        """Raises UsageError as `Bench` does."""
        self._bench, self._rewriter = Bench(store, flow, task, field, word), rewriter
        if rewriter is not None and rewriter.opened is not None:
            self._bench.pay(rewriter.opened, rewriter.opened.seconds)

    async def go(self, anyway: bool = False) -> Improved:
        """Search and prove. Raises Halted where a run ends before its last unit for another reason than a limit."""
        bench, found = self._bench, self._bench.found
        try:
            best = await bench.score("today", bench.first, len(bench.order))
            run = bench.runs[bench.first.text()]
            found.people = people_of(bench.store, bench.split, bench.task, bench.field, run)
            if found.people is not None and found.people.as_well and not anyway:
                found.refused = True
                return self._ended()
            for step in steps(bench, self._rewriter):
                best = await step.climb(bench, best)
        except Halted as halted:
            best = self._halted(halted)
        if best.recipe != bench.first:
            try:
                await prove(bench, best.recipe)
            except Halted as halted:
                self._halted(halted)
                found.notes.append("the sealed test was not opened: its units are not all judged")
        return self._ended()

    def _ended(self) -> Improved:
        found, paid = self._bench.found, self._bench.limits.paid
        reports = [report for _, report in self._bench.flow.reports]
        for report in reports:
            found.spent.update(report.usage)
        if any(report.price for report in reports) or paid:
            found.cost = sum(report.spent.cost for report in reports) + paid
        return found

    def _halted(self, halted: Halted) -> Tried:
        """The best so far, when a limit ended the search; everything else goes on up."""
        report, done = halted.report, self._bench.whole
        if report.interrupted or report.error is not None or report.stopped is None or not done:
            raise halted
        self._bench.found.stopped = report.stopped + self._bench.limits.told()
        return max(done, key=lambda t: t.score)


# The proof of a search: today's task and the winner on the sealed test, in one logged look.


async def prove(bench: Bench, winner: Recipe) -> None:
    """Both on the sealed test: all units are judged first, then one look is taken."""
    found = bench.found
    found.winner = winner
    runs = []
    for recipe in (bench.first, winner):
        plain = replace(recipe, calibration=None)
        run = await bench.ask(plain, [*bench.units["tune"], *bench.units["test"]], reserve=False)
        runs.append(run if recipe.calibration is None else bench.kept(run, recipe))
    panel = read(bench.store, Scope(bench.field, bench.task.name, runs=tuple(runs)), opened=True)
    proof = contest.compare(bench.store, panel, bench.word, split=bench.split, part="test", purpose=PURPOSE)
    duel = proof.duels[0]
    sign = 1.0 if proof.contenders[duel.first].run_id == runs[0] else -1.0
    d = duel.kappa.difference
    found.proof, found.level = proof, proof.level
    if d.value is None:
        found.notes.append("the difference on the sealed test is undefined")
        return
    ends = sorted((sign * d.low, sign * d.high)) if d.low is not None and d.high is not None else [None, None]
    found.difference = sign * d.value, ends[0], ends[1]
    found.needed = _needed(bench, proof)
    if found.proved:
        with bench.store.transaction() as conn:
            adopt(conn, bench.runs[replace(winner, calibration=None).text()])


def _needed(bench: Bench, proof: Contest) -> int | None:
    """Labelled test units at which the difference seen would be found with a chance of 80 % at the next look."""
    found = bench.found.difference
    if found is None or found[1] is None or found[2] is None or not found[0] > 0 or proof.n_clusters < 3:
        return None
    from scipy.special import stdtrit

    error = (found[2] - found[1]) / 2 / float(stdtrit(proof.n_clusters - 1, 1 - bench.found.level / 2))
    spread = error * proof.n_clusters**0.5
    least = detectable(spread, proof.n_clusters, level_of(len(bench.split.looks) + 1))
    return int(np.ceil(proof.n_shared * (least / found[0]) ** 2))
