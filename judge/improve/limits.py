"""The limits of a search: what is left of them, and what of that is set aside for the sealed test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from judge.improve.rewrite import Rewriter
from judge.runner.budget import Budget, Opened, Spent
from judge.runner.flow import Flow
from judge.runner.plan import Plan


class SearchLimits:
    """Tokens, dollars and seconds of a whole search, of which the sealed test of two judges takes its part first."""

    def __init__(self, flow: Flow, n_test: int) -> None:
        self._flow, self._n_test = flow, n_test
        self._limit = flow.plan.max_tokens, flow.plan.max_cost
        self._max_time = flow.plan.max_time
        self._kept_back = (0, 0.0)
        """Of the limit, what the last run left to the sealed test."""
        self.paid = 0.0
        """Dollars that the rewriter took."""

    def bounded(self, plan: Plan, runs: Collection[str], reserve: bool) -> Plan:
        """The plan within the limits; a reserve is kept for the sealed test, by what `runs` took."""
        self._kept_back = kept = self._reserve(runs) if reserve else (0, 0.0)
        tokens, cost = self._limit
        return replace(
            plan,
            max_tokens=None if tokens is None else max(0, tokens - kept[0]),
            max_cost=None if cost is None else max(0.0, cost - kept[1]),
            max_time=self._max_time,
        )

    @property
    def seconds_left(self) -> float | None:
        """How long a call of the rewriter may take; None = as long as it likes."""
        plan = replace(self._flow.plan, max_time=self._max_time)
        return plan.after(report for _, report in self._flow.reports).max_time

    def left(self, rewriter: Rewriter, runs: Collection[str]) -> Budget:
        """What a call of the rewriter may take: it leaves what the sealed test takes."""
        tokens, cost = self._limit
        kept_tokens, kept_cost = self._reserve(runs)
        used = sum(r.spent.tokens for _, r in self._flow.reports)
        spent = sum(r.spent.cost for _, r in self._flow.reports)
        return Budget(
            None if tokens is None else tokens - used - kept_tokens,
            None if cost is None else cost - spent - kept_cost,
            rewriter.price,
            Counter(),
            Spent(),
        )

    def pay(self, budget: Budget | Opened, seconds: float) -> None:
        """Take a call of the rewriter off the limits; one that was lost counts at its most."""
        if self._max_time is not None:
            self._max_time = max(0.0, self._max_time - seconds)
        self.paid += budget.spent.cost
        tokens, cost = self._limit
        self._limit = (
            None if tokens is None else max(0, tokens - budget.spent.tokens),
            None if cost is None else max(0.0, cost - budget.spent.cost),
        )

    def told(self) -> str:
        """What was asked for, and what of it is kept for the sealed test: the run itself knows only what is left."""
        (tokens, cost), (of_tokens, of_cost) = self._limit, self._kept_back
        told = [] if tokens is None else [f"of {tokens:,} tokens the sealed test takes about {of_tokens:,}"]
        told += [] if cost is None else [f"of ${cost:g} the sealed test takes about ${of_cost:.4f}"]
        return f" ({' and '.join(told)})" if told and (of_tokens or of_cost) else ""

    def _reserve(self, runs: Collection[str]) -> tuple[int, float]:
        """What the sealed test takes for two judges, by what a unit has taken so far."""
        if not runs:
            return 0, 0.0
        marks = ",".join("?" * len(runs))
        query = (
            "SELECT 1.0 * sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) / count(DISTINCT unit_id) AS t, "
            "sum(coalesce(cost, 0)) / count(DISTINCT unit_id) AS c FROM judgements "
            f"WHERE run_id IN ({marks}) AND reused = 0 GROUP BY run_id"
        )
        each = self._flow.store.conn.execute(query, list(runs)).fetchall()
        n = 2 * self._n_test
        return int(n * max((t for t, _ in each), default=0)), n * max((c for _, c in each), default=0.0)
