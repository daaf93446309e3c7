"""Batches: drawn once, seeded, with the weights that lead from the sample back to the study."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from annotate.batch_plan import BatchPlan
from annotate.drawing.eligible import eligible, run_of, with_gold
from annotate.drawing.frame import Frame
from annotate.drawing.sample import (
    DrawnUnit,
    assign,
    draw,
    draw_questions,
    draw_queue,
    draw_rest,
    draw_uncertain,
    sequence,
    shuffled,
)
from annotate.drawing.seats import add_places, check_exposed
from annotate.store import ensure_human
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.store import Store
from judge.store.runs import keep_task
from judge.store.study import now
from judge.types import Json


@dataclass(slots=True)
class BatchMade:
    """A new batch in numbers."""

    batch: str
    task: str
    frame: int
    strata: dict[str, dict[str, Json]] = field(default_factory=dict)
    units: int = 0
    questions: int = 0
    training: int = 0
    attention: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def new_batch(store: Store, task: Task, plan: BatchPlan) -> BatchMade:
    """Draw a batch and hand it out, in one transaction. Raises UsageError or BadInput, keeping nothing."""
    plan.check()
    people = plan.people
    run = run_of(store, task, plan)
    made = BatchMade(plan.name, task.name, 0)
    with store.transaction() as conn:
        if conn.execute("SELECT 1 FROM batches WHERE batch = ?", [plan.name]).fetchone():
            raise UsageError(f"there is a batch '{plan.name}' already; take another name")
        keep_task(conn, task)
        ensure_human(conn, people)
        candidates = eligible(store, task, plan, run)
        training, attention = _checks(store, task, candidates, plan)
        # A check unit cannot be drawn, so it is no part of what the sample stands for: weights add up to the frame.
        candidates.leave_out([*training, *attention])
        made.frame = len(candidates)
        drawn = redraw(candidates, plan)
        _keep(conn, task, replace(plan, annotators=people, overlap=plan.each, run=run, frame=made.frame))
        conn.executemany(
            "INSERT INTO batch_units VALUES (?, ?, ?, ?, ?, ?)",
            [(plan.name, d.unit_id, "sample", d.stratum, d.probability, d.weight) for d in drawn]
            + [(plan.name, u, "training", None, None, None) for u in training]
            + [(plan.name, u, "attention", None, None, None) for u in attention],
        )
        shares = assign(drawn, people, plan.each, plan.seed, together=plan.by_question is not None)
        answer_of = {d.unit_id: d.answer for d in drawn if d.answer}
        for person in people:
            places = sequence(
                shares[person],
                person,
                plan.seed,
                training=training,
                attention=attention,
                repeats=plan.repeats,
                answer_of=answer_of,
            )
            add_places(conn, plan.name, person, places)
            made.positions[person] = len(places)
        units = {person: [u for block in shares[person] for u in block] + attention for person in people}
        made.notes += check_exposed(store, task, plan.name, units, allow=plan.allow_exposed)
    made.units, made.training, made.attention = len(drawn), len(training), len(attention)
    made.questions = len({d.question_id for d in drawn})
    made.strata = strata_of(drawn, candidates)
    return made


def _checks(store: Store, task: Task, frame: Frame, plan: BatchPlan) -> tuple[list[str], list[str]]:
    """The training and the attention units: some of those with a known answer."""
    wanted = round((plan.n or plan.by_question or 0) * plan.attention)
    known = with_gold(store, task, frame) if plan.training or plan.attention else []
    training = shuffled(known, plan.seed, "training")[: plan.training]
    if len(training) < plan.training:
        raise BadInput(
            f"--training gold:{plan.training}: only {len(training)} units that can be drawn have a gold label of "
            f"{', '.join(q.field for q in task.spec.questions)}"
        )
    left = set(known) - set(training)
    attention = shuffled(left, plan.seed, "attention")[:wanted]
    if len(attention) < wanted:
        raise BadInput(f"--attention: {wanted} units with a gold label are needed, {len(attention)} are left")
    return training, attention


def _keep(conn: sqlite3.Connection, task: Task, plan: BatchPlan) -> None:
    # What a route left was chosen by the judge's confidence, as a queue is: it speaks for itself only.
    purpose = "queue" if plan.queue or plan.from_route else "validation"
    shown = plan.run if plan.reveal else None
    conn.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, NULL, ?, NULL, 'kept')",
        [plan.name, task.name, purpose, plan.seed, plan.stored(), shown, now()],
    )


def redraw(candidates: Frame, plan: BatchPlan) -> list[DrawnUnit]:
    """The sample that the plan draws of these candidates: a larger `n` with the same seed holds the smaller sample."""
    if plan.queue:
        if not any(c.confidence is not None for c in candidates):
            raise UsageError(
                "--queue needs a run with stored distributions (a model that gives log-probabilities)"
            )
        return draw_queue(candidates, plan.n or 0)
    if plan.from_route:
        if not len(candidates):
            raise UsageError(f"--from-route {plan.from_route}: it left no unit that can be drawn")
        return draw_rest(candidates, plan.n or len(candidates), plan.seed)
    if plan.purpose == "ppi":
        if not any(c.confidence is not None for c in candidates):
            raise UsageError(
                "--for ppi needs a run with stored distributions (a model that gives log-probabilities)"
            )
        return draw_uncertain(candidates, plan.n or 0, plan.seed)
    if plan.by_question:
        return draw_questions(candidates, plan.by_question, plan.seed, n=plan.n)
    return draw(candidates, plan.n or 0, plan.seed, proportional=plan.proportional)


def strata_of(drawn: Sequence[DrawnUnit], frame: Frame) -> dict[str, dict[str, Json]]:
    """By stratum: how many units its frame holds, how many were drawn, for how many each stands (None: not one number)."""
    given: dict[str, list[float | None]] = {stratum: [] for stratum in frame.strata()}
    for d in drawn:
        given[d.stratum].append(None if d.weight is None else round(d.weight, 4))
    return {s: _stratum(n, given[s]) for s, n in sorted(frame.strata().items())}


def _stratum(frame: int, weights: Sequence[float | None]) -> dict[str, Json]:
    known = [w for w in weights if w is not None]
    low, high = min(known, default=None), max(known, default=None)
    weight = low if low == high else None
    return {"frame": frame, "drawn": len(weights), "weight": weight, "weight_low": low, "weight_high": high}
