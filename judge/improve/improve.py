"""The way from today's task to a proved recipe: baseline, refusal, ladder on tune, one look at the sealed test."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as default

import numpy as np

from judge import derive
from judge.derive import Made, RunTable, Truth
from judge.errors import UsageError
from judge.improve import ladder
from judge.improve.people import People, people_of
from judge.improve.recipe import Recipe, today
from judge.improve.rewrite import MOST_SHOWN, Rewriter, Wrong, sha_of
from judge.improve.search import halve
from judge.labels import relation, split
from judge.labels.held import Held
from judge.labels.scope import Scope, read
from judge.labels.split import Split
from judge.prompts.load import Task
from judge.providers.base import PairReader
from judge.runner.budget import Budget, Opened, Spent
from judge.runner.flow import Flow, Halted
from judge.stats import MISSING, Ratings, measures
from judge.stats.calibrate import Fit, cross_fitted, fit_bias
from judge.stats.parts import detectable
from judge.stats.ratings import FloatArray, IntArray
from judge.store.derived import Fitted
from judge.store.runs import TRIED, adopt
from judge.store.splits import level_of
from judge.store.study import Store
from judge.suites import contest
from judge.suites.contest import Contest
from judge.types import AnnotatorKind, Json

FOLDS = 5
FEWEST = 20
"""Labelled tune units below which no calibration is tried."""
PURPOSE = "improve"
MOST_LEARN = 100
"""Units of learn on which the best judge so far is asked what it gets wrong."""


@dataclass(frozen=True)
class Tried:
    """One candidate: its agreement with the reference (kappa times the share of units with a label; None: undefined) on
    so many questions of tune, and the tokens a unit takes (None: not known).
    """

    rung: str
    recipe: Recipe
    run_id: str
    score: float
    kappa: float | None
    coverage: float
    n_units: int
    n_questions: int
    tokens: float | None


@dataclass
class Improved:
    """What came out. `proof` is the comparison on the sealed test, None when nothing was opened."""

    task: Task
    field: str
    reference: str
    model: str
    tried: list[Tried] = default(default_factory=list)
    people: People | None = None
    refused: bool = False
    winner: Recipe | None = None
    proof: Contest | None = None
    level: float = 0.05
    difference: tuple[float, float | None, float | None] | None = None
    """On the sealed test: winner minus today, with its interval."""
    needed: int | None = None
    """How many labelled test units would show a difference like the one that was seen."""
    spent: Counter[str] = default(default_factory=Counter)
    cost: float | None = None
    stopped: str | None = None
    notes: list[str] = default(default_factory=list)

    @property
    def proved(self) -> bool:
        """The lower bound of the difference is above 0."""
        return self.difference is not None and self.difference[1] is not None and self.difference[1] > 0


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
        """Raises UsageError when the task is not split, or nobody's labels are there to hold judges against."""
        self.store, self.flow, self.task, self.field, self.rewriter = store, flow, task, field, rewriter
        self.split: Split = split.required(store, task)
        held = Held(store, word or self.split.drawn.reference)
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
        self.limit = flow.plan.max_tokens, flow.plan.max_cost
        self.found = Improved(task, field, self.word, flow.plan.model)
        self._runs: dict[str, str] = {}
        self._kept_back = (0, 0.0)
        """Tokens and dollars of the limit that the last run left to the sealed test."""
        self._rewrites: dict[str | None, str] = {}
        """Rewritten instructions -> the request that they answer."""
        self._paid = 0.0
        """Dollars that the rewriter took."""
        if rewriter is not None and rewriter.opened is not None:
            self._pay(rewriter.opened)

    async def go(self, anyway: bool = False) -> Improved:
        """Search and prove. Raises Halted where a run ends before its last unit for another reason than a limit."""
        found = self.found
        first = today(self.task, self.field, self.base.sampling)
        try:
            best = await self._score("today", first, len(self.order))
            found.people = people_of(self.store, self.split, self.task, self.field, self._runs[first.text()])
            if found.people is not None and found.people.as_well and not anyway:
                found.refused = True
                return self._ended()
            best = await self._climb(best, first)
        except Halted as halted:
            best = self._halted(halted, first)
        winner = best.recipe
        if winner != first:
            try:
                await self._prove(first, winner)
            except Halted as halted:
                self._halted(halted, first)
                found.notes.append("the sealed test was not opened: its units are not all judged")
        return self._ended()

    def _ended(self) -> Improved:
        reports = [report for _, report in self.flow.reports]
        for report in reports:
            self.found.spent.update(report.usage)
        if any(report.price for report in reports) or self._paid:
            self.found.cost = sum(report.spent.cost for report in reports) + self._paid
        return self.found

    def _halted(self, halted: Halted, first: Recipe) -> Tried:
        """The best so far, when a limit ended the search; everything else goes on up."""
        report = halted.report
        done = [t for t in self.found.tried if t.n_questions == len(self.order)]
        if report.interrupted or report.error is not None or report.stopped is None or not done:
            raise halted
        self.found.stopped = report.stopped + self._limits()
        return max(done, key=lambda t: t.score)

    async def _climb(self, best: Tried, first: Recipe) -> Tried:
        calibrated = self._calibrated("calibration", best)
        best = max([best, *calibrated], key=lambda t: t.score)
        if isinstance(self.flow.provider, PairReader):
            self.found.notes.append(
                "this judge reads two texts and no prompt: nothing but calibration changes it"
            )
            return best
        learn = {unit: self.labels[unit] for unit in self.units["learn"]}
        steps = ladder.rungs(
            self.store,
            self.task,
            replace(best.recipe, calibration=None),
            self.flow.provider.label_codes,
            learn,
        )
        step = next(steps, None)
        while step is not None:
            name = step.name

            async def score(recipe: Recipe, questions: int, name: str = name) -> float:
                own = await self._score(name, recipe, questions)
                return max(t.score for t in [own, *self._calibrated(name, own)])

            await halve(step.tried, len(self.order), score)
            whole = [t for t in self.found.tried if t.n_questions == len(self.order)]
            best = max([best, *whole], key=lambda t: t.score)
            try:
                step = steps.send(replace(best.recipe, calibration=None))
            except StopIteration:
                step = None
        return best if self.rewriter is None else await self._rewritten(best, self.rewriter)

    async def _rewritten(self, best: Tried, rewriter: Rewriter) -> Tried:
        """The best so far with instructions that a model has rewritten from what it got wrong on learn."""
        if "{" in self.task.constant:
            self.found.notes.append("the instructions are a template: no model rewrites them")
            return best
        # Examples are units of learn, which would not be asked about.
        plain = replace(best.recipe, examples=(), nearest=None, rule="", calibration=None)
        units = sorted(self.units["learn"], key=lambda u: hashlib.sha256(u.encode()).digest())[:MOST_LEARN]
        wrong = self._wrong(await self._ask(plain, units, reserve=True), units)
        if not wrong:
            self.found.notes.append("nothing to rewrite for: the judge is right on every unit of learn")
            return best
        request = rewriter.request(self.task, self.field, wrong)
        sha = sha_of(request, rewriter.model)
        text = self._known(sha)
        if text is None:
            budget = self._left(rewriter)
            if not budget.fits(budget.claim(request)):
                self.found.notes.append(
                    "the rewriter was not asked: what is left of the limit is for the sealed test"
                )
                return best
            text, why = await rewriter.ask(self.task, request, budget)
            self._pay(budget)
            if text is None:
                self.found.notes.append(why)
                return best
        self._rewrites[text] = sha
        recipe = replace(best.recipe, calibration=None, instructions=text)
        own = await self._score("instructions rewritten", recipe, len(self.order))
        return max([best, own, *self._calibrated(own.rung, own)], key=lambda t: t.score)

    def _wrong(self, run: str, units: Sequence[str]) -> list[Wrong]:
        """Units of learn on which the run and the reference differ, one of a question, with what a lead wrote there."""
        given = relation.values(self.store.conn, run, self.field)
        differ = [u for u in units if u in given and given[u] != self.labels[u]]
        first = list({self.question[unit]: unit for unit in reversed(differ)}.values())[::-1][:MOST_SHOWN]
        inputs = ladder.inputs_of(self.store, self.task, first)
        leads = [
            n
            for n, kind in relation.labellers(self.store.conn, self.field).items()
            if kind == AnnotatorKind.ADJUDICATED
        ]
        told = {
            u: " ".join(relation.rationale(self.store.conn, n, self.field, u) for n in leads) for u in first
        }
        return [Wrong(inputs[u], given[u], self.labels[u], told[u].strip()) for u in first if u in inputs]

    def _known(self, sha: str) -> str | None:
        """What the rewriter answered to this very request before."""
        query = "SELECT json_extract(options, '$.instructions') FROM runs WHERE json_extract(options, '$.rewritten') = ?"
        row = self.store.conn.execute(query, [sha]).fetchone()
        return None if row is None else row[0]

    def _left(self, rewriter: Rewriter) -> Budget:
        """What a call of the rewriter may take: it leaves what the sealed test takes."""
        tokens, cost = self.limit
        kept_tokens, kept_cost = self._reserve()
        used = sum(r.spent.tokens for _, r in self.flow.reports)
        spent = sum(r.spent.cost for _, r in self.flow.reports)
        return Budget(
            None if tokens is None else tokens - used - kept_tokens,
            None if cost is None else cost - spent - kept_cost,
            rewriter.price,
            Counter(),
            Spent(),
        )

    def _pay(self, budget: Budget | Opened) -> None:
        """Take a call of the rewriter off the limits; one that was lost counts at its most."""
        self.found.spent.update(budget.usage)
        self._paid += budget.spent.cost
        tokens, cost = self.limit
        self.limit = (
            None if tokens is None else max(0, tokens - budget.spent.tokens),
            None if cost is None else max(0.0, cost - budget.spent.cost),
        )

    async def _ask(self, recipe: Recipe, units: Sequence[str], reserve: bool) -> str:
        """Ask about these units by a recipe; the run's id. A reserve is kept for the sealed test."""
        plan = recipe.applied(self.base)
        self._kept_back = kept = self._reserve() if reserve else (0, 0.0)
        tokens, cost = self.limit
        self.flow.plan = replace(
            plan,
            max_tokens=None if tokens is None else max(0, tokens - kept[0]),
            max_cost=None if cost is None else max(0.0, cost - kept[1]),
        )
        # What is only tried stands in no report; today's task is a run like any other.
        first = replace(recipe, calibration=None) == today(self.task, self.field, self.base.sampling)
        extra = plan.extra if first else {**plan.extra, TRIED: PURPOSE}
        if recipe.instructions in self._rewrites:
            extra = {**extra, "rewritten": self._rewrites[recipe.instructions]}
        report = await self.flow.run(plan.task, ladder.select(self.store, units), extra)
        if report.interrupted:
            raise Halted(plan, report)
        self._runs[recipe.text()] = report.run_id
        return report.run_id

    def _limits(self) -> str:
        """What was asked for, and what of it is kept for the sealed test: the run itself knows only what is left."""
        (tokens, cost), (of_tokens, of_cost) = self.limit, self._kept_back
        told = [] if tokens is None else [f"of {tokens:,} tokens the sealed test takes about {of_tokens:,}"]
        told += [] if cost is None else [f"of ${cost:g} the sealed test takes about ${of_cost:.4f}"]
        return f" ({' and '.join(told)})" if told and (of_tokens or of_cost) else ""

    def _reserve(self) -> tuple[int, float]:
        """What the sealed test takes for two judges, by what a unit has taken so far."""
        runs = list(self._runs.values())
        if not runs:
            return 0, 0.0
        marks = ",".join("?" * len(runs))
        query = (
            "SELECT 1.0 * sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) / count(DISTINCT unit_id) AS t, "
            "sum(coalesce(cost, 0)) / count(DISTINCT unit_id) AS c FROM judgements "
            f"WHERE run_id IN ({marks}) AND reused = 0 GROUP BY run_id"
        )
        each = self.store.conn.execute(query, runs).fetchall()
        n = 2 * len(self.units["test"])
        return int(n * max((t for t, _ in each), default=0)), n * max((c for _, c in each), default=0.0)

    async def _score(self, name: str, recipe: Recipe, questions: int) -> Tried:
        chosen = set(self.order[:questions])
        units = [u for u in self.units["tune"] if self.question[u] in chosen]
        run = await self._ask(recipe, units, reserve=True)
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

    def _calibrated(self, name: str, tried: Tried) -> list[Tried]:
        """The same judge calibrated by bias, cross-fitted by question on the same units; none without probabilities."""
        chosen = set(self.order[: tried.n_questions])
        units = [u for u in self.units["tune"] if self.question[u] in chosen]
        fitting = self._fit(tried.run_id, units)
        if fitting is None:
            return []
        table, _, after, fit, fitted = fitting
        codes = np.where(np.isnan(after[:, 0]), MISSING, np.nan_to_num(after).argmax(axis=1))
        plain = table.labels(self.field).codes[:, 0]
        codes = np.where(codes == MISSING, plain, codes)
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
                "reference": fitted.reference,
                "units": fitted.units,
                "sha256": fitted.sha256,
                "questions": sorted(fitted.folds),
            },
        }

    async def _prove(self, first: Recipe, winner: Recipe) -> None:
        """Both on the sealed test: all units are judged first, then one look is taken."""
        found = self.found
        found.winner = winner
        runs = []
        for recipe in (first, winner):
            plain = replace(recipe, calibration=None)
            run = await self._ask(plain, [*self.units["tune"], *self.units["test"]], reserve=False)
            runs.append(run if recipe.calibration is None else self._kept(run, recipe))
        panel = read(self.store, Scope(self.field, self.task.name, runs=tuple(runs)), opened=True)
        purpose = self._purpose()
        known = [k for k in self.split.looks if k.purpose == purpose and set(k.runs) == set(runs)]
        proof = contest.compare(
            self.store,
            panel,
            self.word,
            split=self.split,
            part="test",
            purpose=purpose,
            look=known[-1] if known else None,
        )
        duel = proof.duels[0]
        sign = 1.0 if proof.contenders[duel.first].run_id == runs[0] else -1.0
        d = duel.kappa.difference
        found.proof, found.level = proof, proof.level
        if d.value is None:
            found.notes.append("the difference on the sealed test is undefined")
            return
        ends = (
            sorted((sign * d.low, sign * d.high))
            if d.low is not None and d.high is not None
            else [None, None]
        )
        found.difference = sign * d.value, ends[0], ends[1]
        found.needed = self._needed(proof)
        if found.proved:
            with self.store.transaction() as conn:
                adopt(conn, self._runs[replace(winner, calibration=None).text()])

    def _purpose(self) -> str:
        """What a look is for, with a hash of the labels that it holds judges against: other ones make another look."""
        lines = [self.field, self.word, *(f"{unit}\t{self.labels[unit]}" for unit in self.units["test"])]
        told = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
        return f"{PURPOSE} (labels {told})"

    def _kept(self, run: str, recipe: Recipe) -> str:
        """The calibrated judge as a run, fitted on tune alone."""
        fitting = self._fit(run, self.units["tune"])
        assert fitting is not None and recipe.calibration is not None
        table, _, after, _, fitted = fitting
        plain = table.labels(self.field).codes[:, 0]
        codes = np.where(np.isnan(after[:, 0]), plain, np.nan_to_num(after).argmax(axis=1))
        parameters = {name: recipe.calibration[name] for name in ("temperature", "bias")}
        run_id, _ = derive.keep(
            self.store,
            table,
            "calibrated",
            "bias",
            {self.field: Made(codes, after)},
            parameters={**parameters, "folds": FOLDS},
            fitted=fitted,
        )
        return run_id

    def _needed(self, proof: Contest) -> int | None:
        """Labelled test units at which the difference seen would be found with a chance of 80 % at the next look."""
        found = self.found.difference
        if found is None or found[1] is None or found[2] is None or not found[0] > 0 or proof.n_clusters < 3:
            return None
        from scipy.special import stdtrit

        error = (found[2] - found[1]) / 2 / float(stdtrit(proof.n_clusters - 1, 1 - self.found.level / 2))
        spread = error * proof.n_clusters**0.5
        least = detectable(spread, proof.n_clusters, level_of(len(self.split.looks) + 1))
        return int(np.ceil(proof.n_shared * (least / found[0]) ** 2))
