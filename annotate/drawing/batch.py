"""Batches: drawn once, seeded, with the weights that lead from the sample back to the study."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from annotate.drawing.frame import Frame
from annotate.drawing.sample import (
    Candidate,
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
from annotate.sitting import exposure
from annotate.sitting.views import PARTS
from annotate.store import ensure_human
from judge.errors import BadInput, UsageError
from judge.labels import relation
from judge.prompts.load import Task
from judge.store import Store
from judge.store.derived import stored
from judge.store.export import find_run, stored_task
from judge.store.inputs import column
from judge.store.label_rows import one
from judge.store.runs import keep_task
from judge.store.study import dumps, now
from judge.types import GOLD, Json

BINS = ((0.5, "below 0.5"), (0.8, "0.5 to 0.8"), (0.95, "0.8 to 0.95"), (math.inf, "0.95 and more"))


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What `annotate batches new` is asked for."""

    name: str
    annotators: Sequence[str]
    n: int | None = None
    by: str | None = None
    """label, dataset or confidence: what the strata are."""
    seed: int = 0
    overlap: int | None = None
    repeats: float = 0.0
    training: int = 0
    attention: float = 0.0
    by_question: int | None = None
    proportional: bool = False
    queue: bool = False
    reveal: bool = False
    run: str | None = None
    where: str | None = None
    pass_mark: float = 0.8
    from_route: str | None = None
    """A routed run: only the units that it left to people, all of them without `n`."""
    purpose: str | None = None
    """`ppi`: draw by the judge's uncertainty, with known probabilities, for corrected numbers."""
    allow_exposed: bool = False
    """Also people who were shown the known answer, or the judge, of these units."""


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
    people = list(dict.fromkeys(plan.annotators))
    overlap = plan.overlap or len(people)
    _check(plan, people, overlap)
    run = _run(store, task, plan)
    made = BatchMade(plan.name, task.name, 0)
    with store.transaction() as conn:
        if conn.execute("SELECT 1 FROM batches WHERE batch = ?", [plan.name]).fetchone():
            raise UsageError(f"there is a batch '{plan.name}' already; take another name")
        keep_task(conn, task)
        ensure_human(conn, people)
        candidates = eligible(store, task, plan, run)
        known = _known(store, task, candidates, plan)
        training = shuffled(known, plan.seed, "training")[: plan.training]
        if len(training) < plan.training:
            raise BadInput(
                f"--training gold:{plan.training}: only {len(training)} units that can be drawn have a gold label of "
                f"{', '.join(q.field for q in task.spec.questions)}"
            )
        attention_n = round((plan.n or plan.by_question or 0) * plan.attention)
        left = [u for u in known if u not in set(training)]
        attention = shuffled(left, plan.seed, "attention")[:attention_n]
        if len(attention) < attention_n:
            raise BadInput(
                f"--attention: {attention_n} units with a gold label are needed, {len(attention)} are left"
            )
        # A check unit cannot be drawn, so it is no part of what the sample stands for: weights add up to the frame.
        candidates.leave_out([*training, *attention])
        made.frame = len(candidates)
        drawn = redraw(candidates, plan)
        conn.execute(
            "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, NULL, ?, NULL, 'kept')",
            [
                plan.name,
                task.name,
                # What a route left was chosen by the judge's confidence, as a queue is: it speaks for itself only.
                "queue" if plan.queue or plan.from_route else "validation",
                plan.seed,
                dumps(
                    {
                        **asdict(plan),
                        "annotators": people,
                        "overlap": overlap,
                        "run": run,
                        "frame": made.frame,
                    }
                ),
                run if plan.reveal else None,
                now(),
            ],
        )
        conn.executemany(
            "INSERT INTO batch_units VALUES (?, ?, ?, ?, ?, ?)",
            [(plan.name, d.unit_id, "sample", d.stratum, d.probability, d.weight) for d in drawn]
            + [(plan.name, u, "training", None, None, None) for u in training]
            + [(plan.name, u, "attention", None, None, None) for u in attention],
        )
        shares = assign(drawn, people, overlap, plan.seed, together=plan.by_question is not None)
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
            conn.executemany(
                "INSERT INTO assignments (batch, annotator_id, position, unit_id, role, repeat) VALUES (?, ?, ?, ?, ?, ?)",
                [(plan.name, person, i, p.unit_id, p.role, p.repeat) for i, p in enumerate(places, 1)],
            )
            made.positions[person] = len(places)
        units = {
            person: [u for block in shares[person] for u in block] + list(attention) for person in people
        }
        made.notes += check_exposed(store, task, plan.name, units, allow=plan.allow_exposed)
    made.units, made.training, made.attention = len(drawn), len(training), len(attention)
    made.questions = len({d.question_id for d in drawn})
    made.strata = strata_of(drawn, candidates)
    return made


def check_exposed(
    store: Store, task: Task, batch: str, units: Mapping[str, Sequence[str]], *, allow: bool
) -> list[str]:
    """What to tell of people who have seen something of the units they get (person -> units) elsewhere.

    Raises UsageError where they know, or will know, the answers, unless that is allowed.
    """
    found = [
        one for person, own in units.items() for one in exposure.against(store, task, person, own, batch)
    ]
    refused = exposure.refusal(found)
    if refused and not allow:
        raise UsageError(refused)
    notes = [refused] if refused else []
    notes += exposure.warnings(found)
    if unknown := exposure.unknown_batches(store.conn):
        notes.append(
            f"what people saw in {', '.join(unknown)} is not known: drawn before exposures were kept"
        )
    return notes


def _check(plan: BatchPlan, people: Sequence[str], overlap: int) -> None:
    if not people:
        raise UsageError("--annotators: name at least one, as in --annotators alice,bob")
    if not 1 <= overlap <= len(people):
        raise UsageError(f"--overlap {overlap}: there are {len(people)} annotators")
    if plan.n is None and plan.by_question is None and plan.from_route is None:
        raise UsageError("say how many: -n UNITS, --by-question QUESTIONS, or both")
    if (plan.n is not None and plan.n < 1) or (plan.by_question is not None and plan.by_question < 1):
        raise UsageError("-n and --by-question must be 1 or more")
    if plan.by_question and plan.by in ("label", "confidence"):
        raise UsageError(
            f"--by-question keeps questions whole, and their units differ by {plan.by}: use --by dataset"
        )
    if plan.queue and (plan.by or plan.by_question):
        raise UsageError(
            "--queue takes the units the judge is least sure of; --by and --by-question do not apply"
        )
    if plan.from_route and (plan.by or plan.by_question or plan.queue or plan.purpose):
        raise UsageError(
            "--from-route takes the units that a route left; --by, --by-question, --queue and --for do not apply"
        )
    if plan.purpose == "ppi" and (plan.by or plan.by_question or plan.queue):
        raise UsageError(
            "--for ppi draws single units by the judge's uncertainty; --by, --by-question and --queue do not apply"
        )
    if plan.reveal and plan.repeats:
        raise UsageError(
            "--reveal with --repeats: who has seen the judge's label does not label that unit blind again"
        )
    if not plan.name.strip() or not plan.name.isprintable() or "/" in plan.name:
        raise UsageError(f"'{plan.name}' cannot be the name of a batch")


def _run(store: Store, task: Task, plan: BatchPlan) -> str | None:
    """The judge run that strata, queue, uncertainty or reveal need."""
    if plan.from_route and not plan.run:
        return None
    if not (plan.by in ("label", "confidence") or plan.queue or plan.reveal or plan.run or plan.purpose):
        return None
    if plan.run:
        found = find_run(store, plan.run)
        if not set(stored_task(store, found["task"]).fields) & {q.field for q in task.spec.questions}:
            raise UsageError(f"run {found['run_id']} ({found['task']}) did not answer what {task.name} asks")
        return str(found["run_id"])
    row = store.conn.execute(
        "SELECT run_id FROM runs WHERE task = ? AND derived_from IS NULL AND json_extract(options, '$.tried') IS NULL "
        "ORDER BY started DESC, run_id DESC LIMIT 1",
        [task.name],
    ).fetchone()
    if row is None:
        what = "--reveal" if plan.reveal else "--queue" if plan.queue else f"--by {plan.by}"
        what = "--for ppi" if plan.purpose else what
        raise UsageError(f"{what} needs a judge run of {task.name}: judge run {task.task_id} -m MODEL")
    return str(row[0])


def eligible(store: Store, task: Task, plan: BatchPlan, run: str | None, of: str | None = None) -> Frame:
    """Every unit with all inputs that no batch on the same questions holds yet, in study order.

    With the name of a batch that is there: as when that one was drawn, whatever came after it.
    """
    fields = {q.field for q in task.spec.questions}
    before = "" if of is None else " WHERE rowid < (SELECT rowid FROM batches WHERE batch = ?)"
    rows = store.conn.execute(
        f"SELECT batch, task FROM batches{before}", [] if of is None else [of]
    ).fetchall()
    taken = [b for b, name in rows if fields & {q.field for q in stored_task(store, name).spec.questions}]
    examples = [e.item_id for e in task.spec.examples if e.item_id]
    usable = " AND ".join(f"coalesce({column(task, n)}, '') <> ''" for n in task.required_inputs)
    first = task.spec.questions[0].field
    judged = "NULL, NULL"
    if run:
        judged = ", ".join(one(":run", ":field", "t.unit_id", column) for column in ("value", "distribution"))
    query = f"""
        SELECT t.unit_id, t.question_id, t.dataset, t.answer_id, t.n, {judged} FROM unit_texts AS t
        WHERE t.kind = :kind AND {usable} AND ({plan.where or "1"}
        ) AND t.item_id NOT IN (SELECT value FROM json_each(:examples))
        AND t.unit_id NOT IN (SELECT b.unit_id FROM batch_units AS b WHERE b.batch IN (SELECT value FROM json_each(:taken)))
        ORDER BY t.n
    """
    values = {
        "run": run,
        "field": first,
        "kind": task.spec.unit,
        "examples": dumps(examples),
        "taken": dumps(taken),
    }
    frame = Frame(store.conn)
    try:
        frame.fill(_candidates(store, task, plan, store.conn.execute(query, values)))
    except sqlite3.Error as e:
        if plan.where is None:
            raise
        raise UsageError(f"--where {plan.where!r}: {e}") from e
    return frame


def _candidates(store: Store, task: Task, plan: BatchPlan, found: sqlite3.Cursor) -> Iterator[Candidate]:
    left = routed_away(store, task, plan.from_route) if plan.from_route else None
    for unit, question, dataset, answer, place, value, distribution in found:
        if left is not None and unit not in left:
            continue
        confidence = None
        if distribution:
            masses = json.loads(distribution)
            confidence = max((m for k, m in masses.items() if k != "unassigned"), default=None)
        stratum = {"label": value, "dataset": dataset, "confidence": _bin(confidence)}.get(
            plan.by or "", "all"
        )
        part_of = answer if task.spec.unit in PARTS else None
        yield Candidate(unit, question, stratum or "no label", confidence, part_of, place)


def routed_away(store: Store, task: Task, name: str) -> set[str]:
    """The units that a routed run's judges were asked about and that it did not accept.

    Raises UsageError for a run that is none, or one of other questions.
    """
    run = find_run(store, name)
    made = stored(store.conn, run["run_id"])
    if made is None or made["kind"] != "routed":
        raise UsageError(
            f"--from-route {name}: run {run['run_id']} ({run['model']}) is no route: judge route {task.task_id}"
        )
    if not set(stored_task(store, run["task"]).fields) & {q.field for q in task.spec.questions}:
        raise UsageError(f"run {run['run_id']} ({run['task']}) did not answer what {task.name} asks")
    asked = relation.judged(store.conn, made["parents"][0]["run"])
    return asked - relation.judged(store.conn, run["run_id"])


def _bin(confidence: float | None) -> str:
    if confidence is None:
        return "no distribution"
    return next(name for limit, name in BINS if confidence < limit)


def redraw(candidates: Collection[Candidate], plan: BatchPlan) -> list[DrawnUnit]:
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


def _known(store: Store, task: Task, frame: Frame, plan: BatchPlan) -> list[str]:
    """Units with a gold label inside the domain for every question."""
    if not plan.training and not plan.attention:
        return []
    kept: set[str] | None = None
    for question in task.spec.questions:
        domain = task.domain(question.field)
        rows = relation.values(store.conn, GOLD, question.field)
        inside = {unit for unit, value in rows.items() if not domain or value in domain}
        kept = inside if kept is None else kept & inside
    return sorted(frame.among(kept or ()))


def strata_of(drawn: Sequence[DrawnUnit], frame: Frame) -> dict[str, dict[str, Json]]:
    """By stratum: how many units its frame holds, how many were drawn, for how many each stands."""
    out: dict[str, dict[str, Json]] = {}
    for stratum, units in frame.strata().items():
        out[stratum] = {"frame": units, "drawn": 0, "weight": None}
    for d in drawn:
        out[d.stratum]["drawn"] += 1
        out[d.stratum]["weight"] = None if d.weight is None else round(d.weight, 4)
    return dict(sorted(out.items()))
