"""The plan and the report of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from judge.commands import command
from judge.errors import AdjudgeError, ProviderError
from judge.prompts.load import Task
from judge.runner.budget import Opened, Spent
from judge.runner.dispatch import Dispatcher
from judge.runner.prices import Price, find, require_price
from judge.runner.requests import Sampling
from judge.runner.retry import Patience
from judge.store.selection import Selection
from judge.types import Json, Status, attributes

STATUSES = tuple(map(str, Status))


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of a run: the units, the settings and the limits.

    `max_tokens` (input and output), `max_cost` (US dollars) and `max_time` (seconds) limit this invocation.
    `prices` contains the prices from the user's file, by model.
    """

    task: Task
    model: str
    selection: Selection = field(default_factory=Selection)
    sampling: Sampling = field(default_factory=Sampling)
    repeats: int = 1
    concurrency: int | None = None
    """Number of concurrent calls to each server, from the first call on; None = the rate controller decides."""
    retry: Collection[str] = ()
    max_tokens: int | None = None
    max_cost: float | None = None
    max_time: float | None = None
    prices: Mapping[str, Mapping[str, Json]] | None = None
    patience: Patience = field(default_factory=Patience)
    extra: Mapping[str, Json] = field(default_factory=dict)
    """Options that are part of the run's identity in addition to task, model and sampling, such as the
    context of generated answers.
    """
    fresh: bool = False
    """Whether every request is sent. If False, stored answers to identical requests are reused."""
    same_model: bool = False
    """Whether the model at another address counts as the same model even if it reports a different name."""
    asked_as: str | None = None
    """The model that the user typed, if `model` is a name from `--as`."""
    typed: Mapping[str, Json] = field(default_factory=dict)
    """Facts that a command needs to resume the run (see `judge.run_options.get_typed`)."""

    before: tuple[int, float] = (0, 0.0)
    """Tokens and US dollars that earlier invocations of the run used. They count against `max_tokens` and
    `max_cost`.
    """
    opened: Opened | None = None
    """The cost of opening the provider, which the report and the record of the first run include."""

    def price(self, facts: Mapping[str, Json]) -> Price | None:
        """Return the price of the model. `facts` are the facts that its provider reports.

        Raises UsageError if there is a cost limit but no price.
        """
        # Price lists have the name of the model, not the name that `--as` gave the judge.
        model = self.asked_as or self.model
        price = find(model, facts, self.prices)
        return price if self.max_cost is None else require_price(model, price)

    def subtract_reports(self, reports: Iterable[RunReport]) -> Plan:
        """Return the plan with its limits reduced by what these runs have used. The runs were made one after
        the other.
        """
        done = list(reports)
        # The first report after the opening already counts its cost.
        is_counted = any(report.opened is self.opened for report in done)
        left = self.subtract(*done)
        return replace(left, opened=None) if is_counted else left

    def subtract(self, *done: RunReport | Opened) -> Plan:
        """Return the plan with its limits reduced by what these runs and start-up probes have used."""
        tokens, cost, seconds = self.max_tokens, self.max_cost, self.max_time
        # Never below 0: a server can bill more than a call can cost, and so exceed what was left.
        return replace(
            self,
            max_tokens=None if tokens is None else max(0, tokens - sum(r.spent.tokens for r in done)),
            max_cost=None if cost is None else max(0.0, cost - sum(r.spent.cost for r in done)),
            max_time=None if seconds is None else max(0.0, seconds - sum(r.seconds for r in done)),
        )


@dataclass(slots=True)
class RunReport:
    """The state of a run.

    `ended` counts this invocation's units by status. These counts, `reused` (answered by an identical request),
    `already_judged` (by an earlier invocation of this run) and `pending` sum to `units`. In a run over millions of units, `units` is 0 until the
    units have been counted.
    """

    run_id: str
    resumed: bool
    units: int
    left_out: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    reused: int = 0
    already_judged: int = 0
    labelled: int = 0
    reserved: int = 0
    """Number of pending units that are in an open provider batch (`judge jobs show`)."""
    seconds: float = 0.0
    usage: Counter[str] = field(default_factory=Counter)
    spent: Spent = field(default_factory=Spent)
    opened: Opened | None = None
    """The part of `usage` and `spent` that was used to open the provider."""
    price: Price | None = None
    cuts: int = 0
    derived: Counter[str] = field(default_factory=Counter)
    """Maps each derived field to the number of answers for which the task's table had no row."""
    stopped: str | None = None
    error: AdjudgeError | None = None
    last_failure: ProviderError | None = None
    interrupted: bool = False
    notes: tuple[str, ...] = ()

    @property
    def done(self) -> int:
        """Number of units with a judgement, from this invocation or an earlier one."""
        return self.reused + self.already_judged + sum(self.ended.values())

    @property
    def pending(self) -> int:
        """Number of units without a judgement."""
        return self.units - self.done

    @property
    def ending(self) -> AdjudgeError | None:
        """The error that ended the run or, if no unit has a label, the last error from a provider."""
        # With some labels, the failures of single units are not the failure of the run.
        nothing = self.labelled == 0 and isinstance(self.last_failure, ProviderError)
        return self.error or (self.last_failure if nothing else None)

    def as_json(self, plan: Plan) -> dict[str, Json]:
        """Return the counts in their documented form: ok, unparsed, refused, truncated, failed, reused,
        already_judged and pending sum to units.

        `cost` is in US dollars. It is an upper bound if calls were lost or their tokens were not counted. It
        is None if there is no price and the server reported no cost. `reported_usd` is the sum of the costs
        that the server reported.
        """
        cost = None
        if self.price is not None or self.spent.reporting:
            cost = {
                "usd": round(self.spent.cost, 6),
                # Null and not 0, because a server that reports nothing is not free.
                "reported_usd": round(self.spent.reported, 6) if self.spent.reporting else None,
                "lost_calls": self.spent.lost,
                "uncounted_calls": self.spent.uncounted,
                "source": "the server" if self.price is None else self.price.source,
            }
        return {
            "run": self.run_id,
            "task": plan.task.name,
            "model": plan.model,
            "units": self.units,
            **{status: self.ended[status] for status in STATUSES},
            **attributes(self, "reused", "already_judged", "pending", "labelled", "left_out", "resumed"),
            "seconds": round(self.seconds, 3),
            "tokens": dict(self.usage),
            "cost": cost,
            "stopped": self.stopped,
        }

    def remarks(self, plan: Plan) -> list[str]:
        """Return remarks for the user that accompany the counts."""
        is_counted = self.price is not None or plan.max_tokens is not None
        said = [*self.notes, *self.spent.remarks(is_counted)]
        if self.left_out:
            lacking = ", ".join(plan.task.required_inputs)
            said.append(
                f"{self.left_out} units were left out: they lack one of {lacking}, or are few-shot examples"
            )
        if self.reserved:
            said.append(
                f"{self.reserved} units are in open batches and were not sent again; show the jobs: {command('judge jobs show')}"
            )
        return [*said, *underived(self.derived)]


def underived(missing: Mapping[str, int]) -> list[str]:
    """Return a remark for each derived field that some answers lack.

    `missing` maps each such field to the number of answers that lack it.
    """
    return [
        f"{n:,} answers have no '{name}', because the unit has no gold label for it or the task's table has no matching row"
        for name, n in missing.items()
    ]


@dataclass(slots=True)
class Live:
    """The state that a progress line shows. It is updated during the run."""

    report: RunReport
    dispatcher: Dispatcher
    started: float
    stalled: tuple[float, AdjudgeError] | None = None
    """The time of the first failed commit (`time.monotonic`) and its error. None if commits succeed."""


class RunDisplay(Protocol):
    """Shows the progress of a run: a progress line, a log, or a caller's own object."""

    def __call__(self, live: Live) -> None:
        """Show the run. This method is called at the beginning, after every commit, and twice a second."""

    def end(self) -> None:
        """Stop showing progress because the run has ended."""
