"""The complete search: score the current task, stop if a search is not worthwhile, try candidates, use the sealed test once."""

import numpy as np

from judge.improve import contest
from judge.improve.bench import PURPOSE, Bench
from judge.improve.climb import steps
from judge.improve.contest import Contest
from judge.improve.outcome import Improved, Tried, people_of
from judge.improve.recipe import Recipe
from judge.improve.rewrite import Rewriter
from judge.labels.scope import Scope, read_panel
from judge.prompts.load import Task
from judge.runner.flow import Flow, Halted
from judge.stats.parts import detectable
from judge.store.runs import adopt
from judge.store.splits import level_of
from judge.store.study import Store


class Improve:
    """A search for a better judge. All answers are stored, so an interrupted search is resumed by the same command."""

    def __init__(
        self,
        store: Store,
        flow: Flow,
        task: Task,
        field: str,
        word: str | None,
        rewriter: Rewriter | None = None,
    ) -> None:
        """Prepare the bench. Raises UsageError under the same conditions as `Bench`."""
        self._bench, self._rewriter = Bench(store, flow, task, field, word), rewriter
        if rewriter is not None and rewriter.opened is not None:
            self._bench.pay(rewriter.opened, rewriter.opened.seconds)

    async def go(self, anyway: bool = False) -> Improved:
        """Search, and test the winner on the sealed test. Raises Halted if a run ends early for a reason other than a limit."""
        bench, result = self._bench, self._bench.outcome
        try:
            best = await bench.score("today", bench.first, len(bench.order))
            run = bench.runs[bench.first.text()]
            result.people = people_of(bench.store, bench.split, bench.task, bench.field, run)
            # If people disagree with each other as much as with the judge, their labels cannot show which judge is better.
            if result.people is not None and result.people.as_well and not anyway:
                result.refused = True
                return self._finish()
            for step in steps(bench, self._rewriter):
                best = await step(bench, best)
        except Halted as halted:
            best = self._stop_search(halted)
        if best.recipe != bench.first:
            try:
                await prove(bench, best.recipe)
            except Halted as halted:
                self._stop_search(halted)
                result.notes.append(
                    "the sealed test was not opened, because some of its units have not been judged"
                )
        return self._finish()

    def _finish(self) -> Improved:
        result, paid = self._bench.outcome, self._bench.limits.paid
        reports = [report for _, report in self._bench.flow.reports]
        for report in reports:
            result.spent.update(report.usage)
        if any(report.price for report in reports) or paid:
            result.cost = sum(report.spent.cost for report in reports) + paid
        return result

    def _stop_search(self, halted: Halted) -> Tried:
        """Return the current best candidate if a limit ended the search. Otherwise, raise the exception again."""
        report, done = halted.report, self._bench.whole
        # A search that ends because of a limit has a result; after an error, the same command resumes the search.
        if report.interrupted or report.error is not None or report.stopped is None or not done:
            raise halted
        self._bench.outcome.stopped = report.stopped + self._bench.limits.describe()
        return max(done, key=lambda t: t.score)


# The proof: the current task and the winner are compared on the sealed test, in one logged look.


async def prove(bench: Bench, winner: Recipe) -> None:
    """Compare the winner with the current task on the sealed test."""
    result = bench.outcome
    result.winner = winner
    runs = []
    # All units are judged before the single look, so that an interrupted run does not use it up.
    for recipe in (bench.first, winner):
        run = await bench.ask(
            recipe.uncalibrated, [*bench.units["tune"], *bench.units["test"]], reserve=False
        )
        runs.append(run if recipe.calibration is None else bench.store_calibrated(run, recipe))
    # `opened`, because the comparison below logs the look before it computes a number.
    panel = read_panel(bench.store, Scope(bench.field, bench.task.name, runs=tuple(runs)), opened=True)
    proof = contest.compare(bench.store, panel, bench.word, split=bench.split, part="test", purpose=PURPOSE)
    duel = proof.duels[0]
    # The contest sorts its runs, so the winner may be the first of the pair.
    sign = 1.0 if proof.contenders[duel.first].run_id == runs[0] else -1.0
    d = duel.kappa.difference
    result.proof, result.level = proof, proof.level
    if d.value is None:
        result.notes.append("the difference on the sealed test is undefined")
        return
    ends = sorted((sign * d.low, sign * d.high)) if d.low is not None and d.high is not None else [None, None]
    result.difference = sign * d.value, ends[0], ends[1]
    result.needed = _count_needed_units(bench, proof)
    if result.proved:
        with bench.store.transaction() as conn:
            adopt(conn, bench.runs[winner.uncalibrated.text()])


def _count_needed_units(bench: Bench, proof: Contest) -> int | None:
    """Return the number of labelled test units that are needed to detect the observed difference.

    With this number, the next use of the sealed test, which has a stricter significance level, detects the difference
    with a probability of 80 %.

    Return None if no positive difference was observed, or if the number cannot be computed.
    """
    observed = bench.outcome.difference
    if (
        observed is None
        or observed[1] is None
        or observed[2] is None
        or not observed[0] > 0
        or proof.n_clusters < 3
    ):
        return None
    from scipy.special import stdtrit

    # The interval has the level of this look, and the next look is tested at half of it.
    error = (
        (observed[2] - observed[1]) / 2 / float(stdtrit(proof.n_clusters - 1, 1 - bench.outcome.level / 2))
    )
    spread = error * proof.n_clusters**0.5
    least = detectable(spread, proof.n_clusters, level_of(len(bench.split.looks) + 1))
    return int(np.ceil(proof.n_shared * (least / observed[0]) ** 2))
