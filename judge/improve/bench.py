"""The bench on which candidates stand: the labelled questions of a split task, who is asked there, and how they score."""

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from judge import derive
from judge.derive import Made, RunTable, Truth
from judge.errors import UsageError
from judge.improve import ladder
from judge.improve.found import Improved, Tried
from judge.improve.recipe import Recipe, today
from judge.improve.rewrite import Rewriter
from judge.labels import relation, split
from judge.labels.reference import ReferenceLabels
from judge.labels.split import Split
from judge.prompts.load import Task
from judge.runner.budget import Budget, Opened, Spent
from judge.runner.flow import Flow, Halted
from judge.runner.plan import Plan
from judge.stats import MISSING, Ratings, measures
from judge.stats.calibrate import Fit, cross_fitted, fit_bias
from judge.stats.ratings import FloatArray, IntArray
from judge.store.derived import Fitted
from judge.store.runs import TRIED
from judge.store.study import Store
from judge.types import Json, attributes

FOLDS = 5
FEWEST = 20
"""Labelled tune units below which no calibration is tried."""
PURPOSE = "improve"


class Bench:
    """Asks recipes about units and scores them on tune; everything asked for is in the study, and asked for once.

    `labels`: unit -> the reference's label, `units`: part -> its labelled units, `order`: the questions of tune in the
    order in which they are used, `found`: what has been tried so far.
    """

    def __init__(self, store: Store, flow: Flow, task: Task, field: str, word: str | None) -> None:
        """Raises UsageError when the task is not split, or nobody's labels are there to hold judges against."""
        self.store, self.flow, self.task, self.field = store, flow, task, field
        self.split: Split = split.required(store, task)
        held = ReferenceLabels(store, word or self.split.drawn.reference)
        self.word = held.word
        labels = held.labels(field, task.name)
        question = dict(store.conn.execute("SELECT unit_id, question_id FROM units"))
        self.labels = {u: v for u, v in labels.items() if v in task.domain(field) and u in question}
        self.question = question
        part = self.split.parts
        self.units = {
            name: sorted(u for u in self.labels if part.get(question[u]) == name)
            for name in ("learn", "tune", "test")
        }
        questions = {question[u] for u in self.units["tune"]}
        self.order = sorted(questions, key=lambda q: hashlib.sha256(q.encode()).digest())
        if len(self.order) < 2 or not self.units["test"]:
            raise UsageError(
                f"{store.path}: {len(self.order)} questions of tune and {len(self.units['test'])} units of the test have a "
                f"label of '{field}' by {self.word}: too few to choose and to prove anything"
            )
        self.base = flow.plan
        self.first = today(task, field, self.base.sampling)
        """The task as it is asked today."""
        self.limits = SearchLimits(flow, len(self.units["test"]))
        self.found = Improved(task, field, self.word, flow.plan.model)
        self.runs: dict[str, str] = {}
        """Recipe's text -> the run that asked so."""
        self.rewrites: dict[str | None, str] = {}
        """Rewritten instructions -> the request that they answer."""

    @property
    def whole(self) -> list[Tried]:
        """What was tried on every question of tune."""
        return [t for t in self.found.tried if t.n_questions == len(self.order)]

    def pay(self, budget: Budget | Opened, seconds: float) -> None:
        """Take what the rewriter took off the limits."""
        self.limits.pay(budget, seconds)
        self.found.spent.update(budget.usage)

    async def ask(self, recipe: Recipe, units: Sequence[str], reserve: bool) -> str:
        """Ask about these units by a recipe; the run's id. A reserve is kept for the sealed test."""
        plan = recipe.applied(self.base)
        self.flow.plan = self.limits.bounded(plan, self.runs.values(), reserve)
        # What is only tried stands in no report; today's task is a run like any other.
        first = replace(recipe, calibration=None) == self.first
        extra = plan.extra if first else {**plan.extra, TRIED: PURPOSE}
        if recipe.instructions in self.rewrites:
            extra = {**extra, "rewritten": self.rewrites[recipe.instructions]}
        report = await self.flow.run(plan.task, ladder.select(self.store, units), extra)
        if report.interrupted:
            raise Halted(plan, report)
        self.runs[recipe.text()] = report.run_id
        return report.run_id

    async def score(self, name: str, recipe: Recipe, questions: int) -> Tried:
        chosen = set(self.order[:questions])
        units = [u for u in self.units["tune"] if self.question[u] in chosen]
        run = await self.ask(recipe, units, reserve=True)
        return self._noted(name, recipe, run, units, self._codes(run, units), questions)

    def _codes(self, run: str, units: Sequence[str]) -> IntArray:
        given = relation.values(self.store.conn, run, self.field)
        place = {label: k for k, label in enumerate(self.task.domain(self.field))}
        return np.array([place.get(given.get(unit, ""), MISSING) for unit in units], dtype=np.int64)

    def _noted(
        self,
        name: str,
        recipe: Recipe,
        run: str,
        units: Sequence[str],
        codes: IntArray,
        questions: int,
    ) -> Tried:
        domain = self.task.domain(self.field)
        truth = np.array([domain.index(self.labels[u]) for u in units])
        key = "cohen_kappa:quadratic" if self.task.level(self.field) == "ordinal" else "cohen_kappa"
        table = Ratings.from_codes(np.column_stack([codes, truth]), domain, ["judge", "reference"])
        [m] = measures(table, [key], level=self.task.level(self.field), pairwise=False, interval=None)
        coverage = float((codes != MISSING).mean())
        tokens = self.store.conn.execute(
            "SELECT 1.0 * sum(input_tokens + coalesce(output_tokens, 0)) / count(DISTINCT unit_id) FROM judgements "
            "WHERE run_id = ? AND reused = 0",
            [run],
        ).fetchone()[0]
        # Undefined is one label throughout: no skill.
        made = Tried(
            name, recipe, run, (m.value or 0.0) * coverage, m.value, coverage, len(units), questions, tokens
        )
        self.found.tried.append(made)
        return made

    def calibrated(self, name: str, tried: Tried) -> list[Tried]:
        """The same judge calibrated by bias, cross-fitted by question on the same units; none without probabilities."""
        chosen = set(self.order[: tried.n_questions])
        units = [u for u in self.units["tune"] if self.question[u] in chosen]
        fitting = self._fit(tried.run_id, units)
        if fitting is None:
            return []
        table, _, after, fit, fitted = fitting
        plain = table.labels(self.field).codes[:, 0]
        codes = np.where(np.isnan(after[:, 0]), plain, np.nan_to_num(after).argmax(axis=1))
        own = np.array(
            [codes[table.places[u]] if u in table.places else MISSING for u in units], dtype=np.int64
        )
        recipe = replace(tried.recipe, calibration=self._as_calibration(fit, fitted))
        return [self._noted(name, recipe, tried.run_id, units, own, tried.n_questions)]

    def _fit(self, run: str, units: Sequence[str]) -> tuple[RunTable, Truth, FloatArray, Fit, Fitted] | None:
        """A run's probabilities calibrated by these units' labels alone, and by which."""
        table = derive.read(self.store, [run], self.field)
        p = table.labels(self.field).probabilities[0]
        truth = self._truth(table, units)
        usable = (truth.codes != MISSING) & (
            np.zeros(len(table.units), dtype=np.bool_) if p is None else ~np.isnan(p[:, 0])
        )
        numbers, _ = table.questions
        if p is None or usable.sum() < FEWEST or len(np.unique(numbers[usable])) < 2:
            return None
        fold = truth.by_question(FOLDS, usable)
        after, fit = cross_fitted(p, truth.codes, fold, fit_bias)
        return table, truth, after, fit, truth.fitted(truth.folds(fold), usable)

    def _truth(self, table: RunTable, units: Sequence[str]) -> Truth:
        domain = tuple(self.task.domain(self.field))
        codes = np.full(len(table.units), MISSING, dtype=np.int64)
        for unit in units:
            if unit in table.places:
                codes[table.places[unit]] = domain.index(self.labels[unit])
        return Truth(self.word, table, domain, codes)

    def _as_calibration(self, fit: Fit, fitted: Fitted) -> Mapping[str, Json]:
        domain = self.task.domain(self.field)
        return {
            "method": "bias",
            "temperature": round(fit.temperature, 6),
            "bias": {label: round(b, 6) for label, b in zip(domain, fit.bias, strict=True)},
            "fitted": {
                **attributes(fitted, "reference", "units", "sha256"),
                "questions": sorted(fitted.folds),
            },
        }

    def kept(self, run: str, recipe: Recipe) -> str:
        """The calibrated judge as a run, fitted on tune alone."""
        fitting = self._fit(run, self.units["tune"])
        assert fitting is not None and recipe.calibration is not None
        table, _, after, _, fitted = fitting
        plain = table.labels(self.field).codes[:, 0]
        codes = np.where(np.isnan(after[:, 0]), plain, np.nan_to_num(after).argmax(axis=1))
        parameters = {name: recipe.calibration[name] for name in ("temperature", "bias")}
        made = {self.field: Made(codes, after)}
        parameters["folds"] = FOLDS
        return derive.keep(
            self.store, table, "calibrated", "bias", made, parameters=parameters, fitted=fitted
        )[0]


# The limits of a search: what is left of them, and what of that is set aside for the sealed test.


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
