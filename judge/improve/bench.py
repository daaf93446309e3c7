"""The bench, which runs candidates on the labelled questions of a split task and scores them."""

import hashlib
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from judge import derive
from judge.derive import Made, RunTable, Truth
from judge.errors import UsageError
from judge.improve import ladder
from judge.improve.outcome import Improved, Tried
from judge.improve.recipe import CalibrationFit, Recipe, RecipeCalibration, today
from judge.improve.rewrite import Rewriter
from judge.labels import relation, split
from judge.labels.reference import ReferenceLabels
from judge.prompts.load import Task
from judge.runner.budget import Budget, Opened, Spent
from judge.runner.flow import Flow, Halted
from judge.runner.plan import Plan
from judge.stats import MISSING, FloatArray, IntArray, Ratings, measures
from judge.stats.calibrate import Fit, cross_fitted, find_most_probable, fit_bias
from judge.stats.metrics import pair_kappa
from judge.store.derived import Fitted
from judge.store.runs import TRIED
from judge.store.study import Store
from judge.types import attributes

FOLDS = 5
FEWEST = 20
"""The minimum number of labelled tuning units for which calibration is tried."""
PURPOSE = "improve"


class Bench:
    """Runs recipes on units and scores the recipes on the tuning questions.

    All answers are stored, so that no answer is requested twice.

    `labels` maps units to reference labels, and `units` maps each part of the split to its labelled units. `order` lists
    the tuning questions in the order in which they are used. `outcome` collects the results.
    """

    def __init__(self, store: Store, flow: Flow, task: Task, field: str, word: str | None) -> None:
        """Read the split and the reference labels.

        Raises UsageError if the task is not split, or if it has too few reference labels.
        """
        self.store, self.flow, self.task, self.field = store, flow, task, field
        self.split = split.require_split(store, task)
        reference = ReferenceLabels(store, word or self.split.drawn.reference)
        self.word = reference.word
        labels = reference.labels(field, task.name)
        question = dict(store.conn.execute("SELECT unit_id, question_id FROM units"))
        self.labels = {u: v for u, v in labels.items() if v in task.domain(field) and u in question}
        self.question = question
        part = self.split.parts
        self.units = {
            name: sorted(u for u in self.labels if part.get(question[u]) == name)
            for name in ("learn", "tune", "test")
        }
        questions = {question[u] for u in self.units["tune"]}
        # Sorted by hash, so that a resumed search uses the same questions in the same order.
        self.order = sorted(questions, key=lambda q: hashlib.sha256(q.encode()).digest())
        if len(self.order) < 2 or not self.units["test"]:
            raise UsageError(
                f"{store.path}: only {len(self.order)} tuning questions and {len(self.units['test'])} units in the sealed test "
                f"have a label for '{field}' from {self.word}; these are too few to choose and test a judge, so label more units"
            )
        self.base = flow.plan
        self.first = today(task, field, self.base.sampling)
        """The recipe of the current task."""
        # The cost of the sealed test is reserved from the start, because a search without a final test would be useless.
        self.limits = SearchLimits(flow, len(self.units["test"]))
        self.outcome = Improved(task, field, self.word, flow.plan.model)
        self.runs: dict[str, str] = {}
        """Maps the text of a recipe to the id of its run."""
        self.rewrites: dict[str | None, str] = {}
        """Maps rewritten instructions to the hash of the request that produced them."""

    @property
    def whole(self) -> list[Tried]:
        """The candidates that were run on every tuning question."""
        return [t for t in self.outcome.tried if t.n_questions == len(self.order)]

    def pay(self, budget: Budget | Opened, seconds: float) -> None:
        """Subtract the tokens, cost and time of a call to the rewriter from the limits.

        The rewriter is the model that rewrites instructions.
        """
        self.limits.pay(budget, seconds)
        self.outcome.spent.update(budget.usage)

    async def ask(self, recipe: Recipe, units: Sequence[str], reserve: bool) -> str:
        """Run a recipe on these units, and return the id of the run.

        If `reserve` is True, the run leaves enough tokens and money for the sealed test.
        """
        plan = recipe.apply_to(self.base)
        self.flow.plan = self.limits.limit_plan(plan, self.runs.values(), reserve)
        # Runs of candidates are marked, so that reports leave them out. The run of the current task is not marked.
        first = recipe.uncalibrated == self.first
        extra = plan.extra if first else {**plan.extra, TRIED: PURPOSE}
        if recipe.instructions in self.rewrites:
            extra = {**extra, "rewritten": self.rewrites[recipe.instructions]}
        report = await self.flow.run(plan.task, ladder.select(self.store, units), extra)
        if report.interrupted:
            raise Halted(plan, report)
        self.runs[recipe.text()] = report.run_id
        return report.run_id

    async def score(self, name: str, recipe: Recipe, questions: int) -> Tried:
        """Run a recipe on the first `n_questions` tuning questions and return its score."""
        units = self._tune(questions)
        run = await self.ask(recipe, units, reserve=True)
        return self._record_trial(name, recipe, run, units, self._codes(run, units), questions)

    def _tune(self, questions: int) -> list[str]:
        """Return the labelled units of the first `n_questions` tuning questions."""
        chosen = set(self.order[:questions])
        return [u for u in self.units["tune"] if self.question[u] in chosen]

    def _codes(self, run: str, units: Sequence[str]) -> IntArray:
        by_unit = relation.values(self.store.conn, run, self.field)
        place = {label: k for k, label in enumerate(self.task.domain(self.field))}
        return np.array([place.get(by_unit.get(unit, ""), MISSING) for unit in units], dtype=np.int64)

    def _record_trial(
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
        # Kappa instead of accuracy, because a judge that never gives a rare label has a high accuracy.
        level = self.task.level(self.field)
        table = Ratings.from_codes(np.column_stack([codes, truth]), domain, ["judge", "reference"])
        [m] = measures(table, [pair_kappa(level)], level=level, pairwise=False, interval=None)
        # Otherwise, a candidate that gets no label for hard units would only be scored on easy units.
        coverage = float((codes != MISSING).mean())
        tokens = self.store.conn.execute(
            "SELECT 1.0 * sum(input_tokens + coalesce(output_tokens, 0)) / count(DISTINCT unit_id) FROM judgements "
            "WHERE run_id = ? AND reused = 0",
            [run],
        ).fetchone()[0]
        # Kappa is undefined if the judge gives the same label to all units, which shows no skill.
        made = Tried(
            name, recipe, run, (m.value or 0.0) * coverage, m.value, coverage, len(units), questions, tokens
        )
        self.outcome.tried.append(made)
        return made

    def try_calibrated(self, name: str, tried: Tried) -> list[Tried]:
        """Return a list with the bias-calibrated candidate, or an empty list if the candidate has no probabilities.

        The calibration is cross-fitted by question on the same units.
        """
        units = self._tune(tried.n_questions)
        fitting = self._fit(tried.run_id, units)
        if fitting is None:
            return []
        table, _, codes, fit, fitted = fitting
        unit_codes = np.array(
            [codes[table.places[u]] if u in table.places else MISSING for u in units], dtype=np.int64
        )
        recipe = tried.recipe.model_copy(update={"calibration": self._as_calibration(fit, fitted)})
        return [self._record_trial(name, recipe, tried.run_id, units, unit_codes, tried.n_questions)]

    def _fit(
        self, run: str, units: Sequence[str]
    ) -> tuple[RunTable, FloatArray, IntArray, Fit, Fitted] | None:
        """Calibrate a run on the reference labels of the given units.

        Return the run's table, the calibrated probabilities, the codes of the most probable labels, the fit, and a
        description of the labels that were used.

        Return None if the run has no probabilities, or if too few units or fewer than two questions can be used.
        """
        table = derive.read_runs(self.store, [run], self.field)
        labels = table.labels(self.field)
        p = labels.probabilities[0]
        truth = self._truth(table, units)
        usable = (truth.codes != MISSING) & (
            np.zeros(len(table.units), dtype=np.bool_) if p is None else ~np.isnan(p[:, 0])
        )
        numbers, _ = table.questions
        # Cross-fitting needs two questions, because a judge is never scored on questions that it was fitted on.
        if p is None or usable.sum() < FEWEST or len(np.unique(numbers[usable])) < 2:
            return None
        fold = truth.deal_folds(FOLDS, usable)
        after, fit = cross_fitted(p, truth.codes, fold, fit_bias)
        codes = find_most_probable(after, labels.codes[:, 0])
        return table, after, codes, fit, truth.describe_fit(truth.folds(fold), usable)

    def _truth(self, table: RunTable, units: Sequence[str]) -> Truth:
        domain = tuple(self.task.domain(self.field))
        codes = np.full(len(table.units), MISSING, dtype=np.int64)
        for unit in units:
            if unit in table.places:
                codes[table.places[unit]] = domain.index(self.labels[unit])
        return Truth(self.word, table, domain, codes)

    def _as_calibration(self, fit: Fit, fitted: Fitted) -> RecipeCalibration:
        domain = self.task.domain(self.field)
        facts = attributes(fitted, "reference", "units", "sha256")
        return RecipeCalibration(
            method="bias",
            temperature=round(fit.temperature, 6),
            bias={label: round(b, 6) for label, b in zip(domain, fit.bias, strict=True)},
            fitted=CalibrationFit(**facts, questions=sorted(fitted.folds)),
        )

    def store_calibrated(self, run: str, recipe: Recipe) -> str:
        """Fit the calibration on the tuning questions only, store the calibrated candidate as a run, and return its id."""
        # Fitted again, because the run has since judged the sealed test, whose probabilities must be calibrated, too.
        fitting = self._fit(run, self.units["tune"])
        assert fitting is not None and recipe.calibration is not None
        table, after, codes, _, fitted = fitting
        parameters = attributes(recipe.calibration, "temperature", "bias") | {"folds": FOLDS}
        made = {self.field: Made(codes, after)}
        run_id, _ = derive.keep(
            self.store, table, "calibrated", "bias", made, parameters=parameters, fitted=fitted
        )
        return run_id


class SearchLimits:
    """The limits of a search on tokens, cost (US dollars) and time.

    A part of the tokens and the cost is reserved for testing two judges on the sealed test.
    """

    def __init__(self, flow: Flow, n_test: int) -> None:
        self._flow, self._n_test = flow, n_test
        self._limit = flow.plan.max_tokens, flow.plan.max_cost
        self._max_time = flow.plan.max_time
        self._kept_back = (0, 0.0)
        """A description of the amount that the last run had to reserve for the sealed test."""
        self.paid = 0.0
        """The cost of the rewriter in US dollars."""

    def limit_plan(self, plan: Plan, runs: Collection[str], reserve: bool) -> Plan:
        """Return the plan with the remaining limits.

        If `reserve` is True, the expected cost of the sealed test is subtracted from the limits. This cost is estimated
        from `runs`.
        """
        # The run itself only sees the remaining limits, so its message about a limit must mention the reserve.
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
        """The timeout in seconds for a call to the rewriter; None means no limit."""
        plan = replace(self._flow.plan, max_time=self._max_time)
        return plan.subtract_reports(report for _, report in self._flow.reports).max_time

    def compute_rewriter_budget(self, rewriter: Rewriter, runs: Collection[str]) -> Budget:
        """Return the budget for a call to the rewriter, after the expected cost of the sealed test is subtracted."""
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
        """Subtract the cost of a call to the rewriter from the limits."""
        # A lost call may have been billed, so it counts at its maximum cost.
        if self._max_time is not None:
            self._max_time = max(0.0, self._max_time - seconds)
        self.paid += budget.spent.cost
        tokens, cost = self._limit
        self._limit = (
            None if tokens is None else max(0, tokens - budget.spent.tokens),
            None if cost is None else max(0.0, cost - budget.spent.cost),
        )

    def describe(self) -> str:
        """Describe the limits, and the amount that is reserved for the sealed test."""
        (tokens, cost), (of_tokens, of_cost) = self._limit, self._kept_back
        parts = (
            []
            if tokens is None
            else [f"about {of_tokens:,} of {tokens:,} tokens are reserved for the sealed test"]
        )
        parts += (
            [] if cost is None else [f"about ${of_cost:.4f} of ${cost:g} is reserved for the sealed test"]
        )
        return f" ({' and '.join(parts)})" if parts and (of_tokens or of_cost) else ""

    def _reserve(self, runs: Collection[str]) -> tuple[int, float]:
        """Estimate the tokens and US dollars that two judges need on the sealed test, from the cost per unit in `runs`."""
        if not runs:
            return 0, 0.0
        marks = ",".join("?" * len(runs))
        query = (
            "SELECT 1.0 * sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) / count(DISTINCT unit_id) AS t, "
            "sum(coalesce(cost, 0)) / count(DISTINCT unit_id) AS c FROM judgements "
            f"WHERE run_id IN ({marks}) AND reused = 0 GROUP BY run_id"
        )
        costs = self._flow.store.conn.execute(query, list(runs)).fetchall()
        # Two judges are run on the sealed test: the current task and the winner.
        n = 2 * self._n_test
        return int(n * max((t for t, _ in costs), default=0)), n * max((c for _, c in costs), default=0.0)
