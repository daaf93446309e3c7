"""Estimate the units, tokens, cost and duration of a run before it begins, without calling its server.

Input tokens are estimated from a random sample of the pending units, at four characters per token. The
number of output tokens is the mean over earlier replies. If there are none, it is estimated from the length
of an answer in the task's format. The duration comes from the speed of the last run on the same server, and is
unknown without one.
"""

import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from judge.prompts.load import Task
from judge.prompts.render import Mode
from judge.providers.base import Provider
from judge.runner.budget import Budget, Spent
from judge.runner.identity import matching_runs
from judge.runner.modes import mode_of
from judge.runner.plan import Plan
from judge.runner.prices import Price, find, free
from judge.runner.requests import CHARACTERS_PER_TOKEN, Asker
from judge.store import selection
from judge.store.study import Store
from judge.types import Request

MOST_BOUNDED = 20_000
"""Maximum number of calls for which all prompts are rendered to compute an upper bound of the cost."""
LATER_TURNS = 1000
"""Maximum number of tokens of the messages around a reply in a later call of a unit: at most 300 bytes of a
reason, the instructions, and the chat format.
"""
SAMPLE = 1000
"""Maximum number of prompts that are rendered. Their mean length is the estimate for all units."""
LEAST_CACHED = 1024
"""Minimum length in tokens of a constant prefix that the vendors' prompt caches accept."""
FREE_TEXT = 80
"""Estimated tokens of a rationale, or of an answer in free text."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The remaining work of a plan and its cost. Costs are in US dollars (None if no price is known); times
    are in seconds (None if this server has not labelled anything yet). `speed` says where the time comes from.

    `prefix_tokens` is the length of the constant part of each prompt. `basis` describes how token counts were
    estimated. `most_output_tokens` and `most` are upper bounds, which include repairs, second calls and the
    start-up probes, but no retries of calls that failed. `most` is None for more than MOST_BOUNDED calls.
    """

    units: int
    left_out: int
    calls: int
    input_tokens: int
    output_tokens: int
    prefix_tokens: int
    most_output_tokens: int
    online: float | None
    cached: float | None
    batch: float | None
    most: float | None
    price: Price | None
    seconds: float | None
    speed: str
    basis: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Measured:
    calls: int
    output: float


def estimate(store: Store, plan: Plan, provider: Provider) -> Forecast:
    """Estimate a plan without calling its server. Raises UsageError for the same reasons as `select`."""
    model = plan.asked_as or plan.model
    facts = provider.describe()
    units, left_out = selection.select(store, plan.task, plan.selection)
    # The newest one is the run that would be resumed.
    run = next(iter(matching_runs(store, plan, provider)), "")
    calls = (
        sum(
            n
            for repeat in range(plan.repeats)
            for status, n in selection.count_statuses(store, run, repeat).items()
            if status in ("pending", "failed", *plan.retry)
        )
        # Each label order takes a call of its own.
        * plan.sampling.orders
    )
    mode = mode_of(plan.task, provider, plan.sampling)
    asker = Asker(plan.task, plan.model, provider, plan.sampling, mode)
    price = find(model, facts, plan.prices) or free(model)
    bound_output, bound_cost = _find_upper_bounds(store, plan, run, asker, provider, price, calls)
    requests = _sample(store, plan, run, asker)
    plain = sum(_characters(r) for r in requests) / CHARACTERS_PER_TOKEN / max(1, len(requests))
    measured = _measure_replies(store.conn, plan)
    basis = [f"input: {len(requests)} prompts at {CHARACTERS_PER_TOKEN} characters per token"]
    out = (
        measured.output if measured else min(_answer_tokens(plan.task, mode), plan.sampling.max_output_tokens)
    )
    basis.append(
        f"output: {measured.calls} earlier replies" if measured
        else "output: an answer in the task's format; a model that reasons first uses more tokens, up to the limit"
    )  # fmt: skip
    rate, speed = _measure_speed(store.conn, plan, facts.get("base_url"))
    first = requests[0].messages[: requests[0].prefix] if requests else ()
    prefix = round(sum(len(m.content) for m in first) / CHARACTERS_PER_TOKEN)
    into, total_out = round(plain * calls), round(out * calls)
    batch = find(model, facts, plan.prices, batch=True)
    return Forecast(
        units=units * plan.repeats,
        left_out=left_out,
        calls=calls,
        input_tokens=into,
        output_tokens=total_out,
        prefix_tokens=prefix,
        most_output_tokens=bound_output,
        online=_cost(price, plain, out, calls),
        cached=_cost(price, plain, out, calls, prefix if prefix >= LEAST_CACHED else 0),
        batch=_cost(batch, plain, out, calls),
        most=bound_cost,
        price=price,
        seconds=0.0 if not calls else None if rate is None else calls / rate,
        speed=speed,
        basis=tuple(basis),
    )


def _find_upper_bounds(
    store: Store, plan: Plan, run: str, asker: Asker, provider: Provider, price: Price | None, calls: int
) -> tuple[int, float | None]:
    """Return upper bounds on the output tokens and on the cost of all calls that are left.

    The bound on the cost adds the reserves with which the run limits its budget. The selection must be the plan's.
    """
    probes: Sequence[Request] = getattr(provider, "list_probes", tuple)() if calls else ()
    per_unit = _count_most_calls(plan, asker)
    limit = plan.sampling.max_output_tokens
    # Each label order is a call of its own and already counted.
    output = calls * limit * per_unit + sum(probe.max_tokens for probe in probes)
    if price is None:
        return output, None
    if calls > MOST_BOUNDED:
        # A model that is free of charge costs nothing, however many calls there are.
        return output, None if price.get_upper_bound(1000, 1000) else 0.0
    budget = Budget(None, None, price, Counter(), Spent())
    cost = sum(budget.claim(probe).cost for probe in probes)
    for repeat in range(plan.repeats):
        for unit in selection.pending(store, plan.task, run, repeat, plan.retry):
            claim = budget.claim(asker.request(unit, repeat)[0])
            # A later call of the unit shows the reply of the call before it.
            into = claim.tokens - claim.output + limit + LATER_TURNS
            later = price.get_upper_bound(into, limit)
            cost += claim.cost * plan.sampling.orders + later * (per_unit - 1) * plan.sampling.orders
    return output, cost


def _count_most_calls(plan: Plan, asker: Asker) -> int:
    """Return the maximum number of calls for a unit and a label order."""
    if plan.sampling.orders > 1:
        return 1
    # With `--answers auto`, only the server can say whether a rationale is followed by a second call.
    reasons_first = asker.reasons_first or (plan.task.reasons_first and plan.sampling.answers == "auto")
    return 1 + reasons_first + asker.repairs


def _sample(store: Store, plan: Plan, run: str, asker: Asker) -> list[Request]:
    """Render the prompts for a random sample of the units that have not been judged yet."""
    chosen = plan.selection
    if chosen.limit is None:
        # Drawn at random, because the first units of a study may be shorter or longer than the others.
        drawn = 0 if chosen.sample_seed is None else chosen.sample_seed
        chosen = replace(chosen, sample_seed=drawn, limit=SAMPLE)
    selection.select(store, plan.task, chosen)
    units = selection.pending(store, plan.task, run, 0, plan.retry)
    return [asker.request(unit, 0)[0] for unit, _ in zip(units, range(SAMPLE), strict=False)]


def _characters(request: Request) -> int:
    schema = 0 if request.schema is None else len(json.dumps(request.schema))
    return sum(len(m.content) for m in request.messages) + schema


def _measure_replies(conn: sqlite3.Connection, plan: Plan) -> _Measured | None:
    """Return the mean number of output tokens per reply.

    The mean covers the first thousand calls in the newest run of this task with this model.
    """
    query = """
        SELECT count(*), avg(output_tokens) FROM (
            SELECT output_tokens FROM judgements
            WHERE run_id = (SELECT r.run_id FROM runs AS r WHERE r.task = ? AND r.model = ? AND EXISTS (
                SELECT 1 FROM judgements AS j WHERE j.run_id = r.run_id AND j.output_tokens IS NOT NULL)
                ORDER BY r.started DESC LIMIT 1)
            AND output_tokens IS NOT NULL LIMIT 1000)
    """
    calls, output = conn.execute(query, [plan.task.name, plan.model]).fetchone()
    return _Measured(calls, output) if calls else None


def _measure_speed(conn: sqlite3.Connection, plan: Plan, server: Any) -> tuple[float | None, str]:
    """Return the calls per second of the last run of this model on this server, and a sentence that names the run.

    A run of the same task is preferred, because the length of the replies decides the speed. A pause in the run
    counts as one call that took as long as its slowest one. Return None if there are fewer than two calls.
    """
    runs = """
        SELECT r.run_id, r.task FROM runs AS r
        WHERE r.model = ? AND json_extract(r.provider, '$.base_url') IS ?
            AND EXISTS (SELECT 1 FROM judgements AS j WHERE j.run_id = r.run_id AND j.latency IS NOT NULL)
        ORDER BY r.task = ? DESC, r.started DESC LIMIT 1
    """
    calls = """
        SELECT 86400 * julianday(judged_at), latency FROM judgements
        WHERE run_id = ? AND latency IS NOT NULL ORDER BY judged_at DESC LIMIT 1000
    """
    run = conn.execute(runs, [plan.model, server, plan.task.name]).fetchone()
    rows = conn.execute(calls, [run[0]]).fetchall() if run else []
    if len(rows) < 2:
        return None, "unknown: this server has no run yet, so judge 20 units first (-n 20)"
    times = [time for time, _ in rows]
    longest = max(latency for _, latency in rows)
    taken = sum(min(later - earlier, longest) for later, earlier in pairwise(times))
    # The first call has taken its own time before it was stored.
    taken += rows[-1][1]
    rate = len(rows) / taken if taken > 0 else None
    return rate, f"at {rate:.2g} calls a second, as in the run {run[0]} of {run[1]}" if rate else "unknown"


def _answer_tokens(task: Task, mode: Mode) -> float:
    """Estimate the number of tokens in an answer in the task's format: a letter, or JSON with the longest labels."""
    if mode is Mode.TEXT and not task.spec.questions[0].labels:
        return float(FREE_TEXT)
    if mode is not Mode.JSON:
        return 1.0 if mode is Mode.CODES else 3.0
    words = {
        q.field: max(task.domain(q.field), key=len, default="") if q.labels else ""
        for q in task.spec.questions
    }
    texts = sum(not q.labels for q in task.spec.questions) + (task.spec.rationale != "none")
    return len(json.dumps(words)) / CHARACTERS_PER_TOKEN + FREE_TEXT * texts


def _cost(price: Price | None, into: float, out: float, calls: int, cached: int = 0) -> float | None:
    """Return the cost of this many calls in US dollars."""
    if price is None:
        return None
    if price.exact is not None:
        # The price depends on the size of a call. All tokens together would be priced as one very large call.
        return calls * price.exact(round(into), round(out), min(cached, round(into)), 0)
    # The first call fills the cache and reads nothing from it.
    saved = min(cached, into) * (price.input - price.cached) * max(0, calls - 1)
    return (calls * (into * price.input + out * price.output) - saved) / 1e6
