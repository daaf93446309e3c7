"""The way from today's task to a proved recipe: baseline, refusal, ladder on tune, one look at the sealed test."""

from __future__ import annotations

from judge.improve.bench import Bench
from judge.improve.climb import steps
from judge.improve.found import Improved, Tried
from judge.improve.people import people_of
from judge.improve.proof import prove
from judge.improve.rewrite import Rewriter
from judge.prompts.load import Task
from judge.runner.flow import Flow, Halted
from judge.store.study import Store


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
