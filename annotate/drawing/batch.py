"""Draw a batch with known inclusion probabilities, and assign its units to annotators."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from annotate.batch_plan import BatchPlan
from annotate.drawing import places, sample, seats
from annotate.drawing.adopt import adopt, read_labelled_before
from annotate.drawing.eligible import (
    check_condition,
    find_newest_run,
    judge_run,
    list_earlier,
    run_of,
    with_gold,
    with_taken,
)
from annotate.drawing.frame import Frame
from annotate.drawing.sample import DrawnUnit
from annotate.drawing.sequences import read_drawn_batches, sequences_of, split_into_blocks
from annotate.guidelines import carry_guidelines
from annotate.near_duplicates import describe_near_duplicates
from annotate.store import ensure_human
from judge.errors import BadInput, UsageError
from judge.prompts.load import Task
from judge.run_options import repeat_command
from judge.store import Store
from judge.store.export import find_run
from judge.store.label_rows import count_unlabelled
from judge.store.runs import keep_task
from judge.store.study import get_time
from judge.types import Json

NOT_EVEN = (
    "the units of this batch are drawn with different probabilities. They serve as examples (of a rare label, or for "
    "calibration or training), and estimates from them are weighted. For a verdict, draw a batch without --draw"
)


@dataclass(slots=True)
class BatchMade:
    """The result of a draw, in numbers."""

    batch: str
    task: str
    frame: int
    strata: dict[str, dict[str, Json]] = field(default_factory=dict)
    units: int = 0
    questions: int = 0
    training: int = 0
    attention: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    """The number of units in each annotator's queue, without units that adopted labels have already finished."""
    judges: list[str] = field(default_factory=list)
    """The runs that the batch tests."""
    notes: list[str] = field(default_factory=list)


def new_batch(store: Store, task: Task, plan: BatchPlan) -> BatchMade:
    """Draw a batch and assign its units, in one transaction. If UsageError or BadInput is raised, nothing is
    stored.
    """
    plan.check()
    people = plan.people
    run = run_of(store, task, plan)
    check_condition(store, plan)
    made = BatchMade(plan.name, task.name, 0)
    with store.transaction() as conn:
        if conn.execute("SELECT 1 FROM batches WHERE batch = ?", [plan.name]).fetchone():
            raise UsageError(f"batch '{plan.name}' already exists; choose another name")
        keep_task(conn, task)
        ensure_human(conn, people)
        plan = replace(plan, left_out=read_labelled_before(conn, task, people) if plan.fresh else ())
        candidates, taken = with_taken(store, task, plan, run)
        judges = choose_judges(store, task, plan)
        frame_id = candidates.fingerprint() if plan.is_even else None
        # This comes after the hash is computed. Without the units that earlier batches drew, each batch would
        # seem to have a frame of its own.
        candidates.leave_out(taken)
        training, attention = _checks(store, task, candidates, plan)
        # A check unit cannot be drawn, so the sample does not represent it: the weights add up to the rest of the frame.
        candidates.leave_out([*training, *attention])
        made.frame = len(candidates)
        drawn = redraw(candidates, plan)
        plan = replace(
            plan,
            annotators=people,
            overlap=plan.each,
            run=run,
            frame=made.frame,
            strata=strata_sizes(candidates, plan),
            after=list_earlier(store, {q.field for q in task.spec.questions}, plan),
            frame_id=frame_id,
        )
        plan = replace(plan, draw_id=plan.hash_draw())
        _keep(conn, task, plan)
        carry_guidelines(conn, plan.name, task)
        conn.executemany("INSERT INTO batch_judges VALUES (?, ?)", [(plan.name, judge) for judge in judges])
        conn.executemany(
            "INSERT INTO batch_units VALUES (?, ?, ?, ?, ?, ?)",
            [(plan.name, d.unit_id, "sample", d.stratum, d.probability, d.weight) for d in drawn]
            + [(plan.name, u, "training", None, None, None) for u in training]
            + [(plan.name, u, "attention", None, None, None) for u in attention],
        )
        made.judges = judges
        made.notes += _verdict_notes(store, task, plan, judges)
        made.notes += _missing_notes(store, task, plan.name, judges)
        if repeated := describe_near_duplicates(store, [d.unit_id for d in drawn]):
            made.notes.append(repeated)
        blocks = split_into_blocks(store, task, plan.name, drawn)
        answer_of = {d.unit_id: d.answer for d in drawn if d.answer}
        units: dict[str, list[str]] = {person: list(attention) for person in people}
        for number, block in enumerate(blocks):
            shares = places.assign(block, people, plan.each, plan.seed, together=plan.by_question is not None)
            for person in people:
                # Training comes once, before everything else. The attention units are spread over the blocks.
                queue = places.sequence(
                    shares[person],
                    person,
                    plan.seed,
                    training=training if number == 0 else (),
                    attention=attention[number :: len(blocks)],
                    repeats=plan.repeats,
                    answer_of=answer_of,
                )
                seats.add_places(conn, plan.name, person, queue)
                made.positions[person] = made.positions.get(person, 0) + len(queue)
                units[person] += [u for some in shares[person] for u in some]
        assigned = {person: len(unit_ids) for person, unit_ids in units.items()}
        made.notes += _adopt(conn, task, plan, units)
        for person, n in assigned.items():
            # Units that adopted labels have finished stay in the queue, but need no work.
            made.positions[person] -= n - len(units[person])
        # The check is inside the transaction, so that an error leaves no batch behind.
        made.notes += seats.check_exposed(store, task, plan.name, units, allow=plan.allow_exposed)
    made.units, made.training, made.attention = len(drawn), len(training), len(attention)
    made.questions = len({d.question_id for d in drawn})
    made.strata = strata_of(drawn, candidates)
    return made


def _adopt(conn: sqlite3.Connection, task: Task, plan: BatchPlan, units: dict[str, list[str]]) -> list[str]:
    """Adopt the annotators' earlier labels, and return notes for the user.

    Units that need no further labels are removed from `units`.
    """
    notes = []
    if plan.left_out:
        notes.append(
            f"--fresh excludes {len(plan.left_out):,} units that these people have already labelled, so estimates apply only "
            "to the other units"
        )
    for person in units:
        before = set(read_labelled_before(conn, task, [person])) & set(units[person])
        if not before:
            continue
        adopted = adopt(conn, task, plan.name, person, before)
        units[person] = [u for u in units[person] if u not in adopted]
        notes.append(
            f"{person} had already labelled {len(before):,} of the drawn units. These labels are reused, "
            f"and {len(adopted):,} of the units are now complete. There is no verdict if more than a tenth of its units have reused labels; "
            "to draw other units instead, use --fresh"
        )
    return notes


def _checks(store: Store, task: Task, frame: Frame, plan: BatchPlan) -> tuple[list[str], list[str]]:
    """Return the training units and the attention units. Both are drawn from the units with a known answer."""
    n_attention = round((plan.n or plan.by_question or 0) * plan.attention)
    known = with_gold(store, task, frame) if plan.training or plan.attention else []
    training = sample.shuffle(known, plan.seed, "training")[: plan.training]
    if len(training) < plan.training:
        raise BadInput(
            f"--training {plan.training}: only {len(training)} units that can be drawn have a gold label for "
            f"{', '.join(q.field for q in task.spec.questions)}"
        )
    others = set(known) - set(training)
    attention = sample.shuffle(others, plan.seed, "attention")[:n_attention]
    if len(attention) < n_attention:
        raise BadInput(
            f"--attention: {n_attention} units with a gold label are needed, but only {len(attention)} are left"
        )
    return training, attention


def _keep(conn: sqlite3.Connection, task: Task, plan: BatchPlan) -> None:
    # The units that a route left were chosen by the judge's confidence, as in a queue: they represent no other units.
    purpose = "queue" if plan.queue or plan.from_route else "validation"
    shown = plan.run if plan.reveal else None
    conn.execute(
        "INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, NULL, ?, NULL, 'kept')",
        [plan.name, task.name, purpose, plan.seed, plan.to_stored(), shown, get_time()],
    )


def redraw(candidates: Frame, plan: BatchPlan) -> list[DrawnUnit]:
    """Draw the sample that a plan describes. With the same seed, a larger `n` gives a sample that includes the
    smaller one.
    """
    by_confidence = "least-sure" if plan.queue else "ppi" if plan.purpose == "ppi" else None
    if by_confidence and not any(c.confidence is not None for c in candidates):
        raise UsageError(
            f"--draw {by_confidence} needs a run with stored distributions (a model that returns log-probabilities)"
        )
    if plan.queue:
        return sample.draw_queue(candidates, plan.n or 0)
    if plan.from_route:
        if not len(candidates):
            raise UsageError(
                f"--draw route --run {plan.from_route}: the route left no unit that can be drawn"
            )
        return sample.draw_rest(candidates, plan.n or len(candidates), plan.seed)
    if plan.purpose == "ppi":
        return sample.draw_uncertain(candidates, plan.n or 0, plan.seed)
    if plan.by_question:
        return sample.draw_questions(
            candidates, plan.by_question, plan.seed, n=plan.n, equal=plan.equal_parts
        )
    return sample.draw(candidates, plan.n or 0, plan.seed, equal=plan.equal_parts)


def strata_sizes(candidates: Frame, plan: BatchPlan) -> dict[str, int]:
    """Return the size of each stratum. The sizes determine the order of a stratified draw. The result is empty
    if there are no strata.
    """
    if not plan.by or not plan.is_even:
        return {}
    if not plan.by_question:
        return dict(candidates.strata())
    return dict(Counter(stratum for _, stratum, _ in candidates.questions()))


MOST_JUDGES = 5
"""The largest number of judges that a batch tests. Error rates were simulated up to this number."""


def choose_judges(store: Store, task: Task, plan: BatchPlan) -> list[str]:
    """Return the runs that a new batch tests: those of --judges or, by default, the newest run of the task.

    The result is empty if the task has no run, or if the draw gives no verdict. Raises UsageError for too many
    judges, and for a run that answers other questions.
    """
    if plan.judges and not plan.is_even:
        raise UsageError(
            "--judges names the judges of a verdict, and --draw gives no verdict: omit one of them"
        )
    if len(set(plan.judges)) > MOST_JUDGES:
        raise UsageError(
            f"--judges: {len(set(plan.judges))} judges are too many; a batch tests at most {MOST_JUDGES}, because they share "
            "the significance level"
        )
    if plan.judges:
        return sorted({judge_run(store, task, name, "--judges") for name in plan.judges})
    newest = find_newest_run(store, task)
    return [newest] if newest is not None and plan.is_even else []


def _verdict_notes(store: Store, task: Task, plan: BatchPlan, judges: Sequence[str]) -> list[str]:
    """Return notes that say which judges the batch tests, or why its units cannot be used for a verdict."""
    of_judges = sequences_of(store, task.spec.questions[0].field, plan.name)
    if not plan.is_even or not of_judges:
        return [NOT_EVEN]
    for sequence in of_judges:
        first = sequence.batches[0].name
        if first == plan.name:
            continue
        if plan.looks == 1:
            raise UsageError(
                f"--looks 1 can be declared only for the first batch of a judge and a frame, but '{first}' was drawn before"
            )
        if sequence.one_look:
            return [
                f"batch '{first}' was declared with a single look at its end, so these units allow only estimates for the judges "
                "compared there; to test another judge, use --judges"
            ]
    notes = _frame_notes(store, task, plan)
    if not judges:
        return [
            *notes,
            "the task has no run yet; the first run that is made is the judge that this batch tests",
        ]
    names = [f"{find_run(store, run)['model']} ({run})" for run in judges]
    if plan.judges:
        return [
            *notes,
            f"this batch tests {', '.join(names)}; other judges get only estimates on these units",
        ]
    return [
        *notes,
        f"this batch tests {names[0]}, the newest run of the task; to test other judges instead, draw it with --judges",
    ]


def _missing_notes(store: Store, task: Task, name: str, judges: Sequence[str]) -> list[str]:
    """Return a note for each tested judge that lacks labels on drawn units, with the command that adds them."""
    drawn = "SELECT count(*) FROM batch_units WHERE batch = ? AND role = 'sample'"
    total = store.conn.execute(drawn, [name]).fetchone()[0]
    notes = []
    for run in judges:
        lacking = count_unlabelled(store.conn, name, run, task.spec.questions[0].field)
        if lacking:
            again = repeat_command(store, run, "--units-of", name)
            notes.append(
                f"{find_run(store, run)['model']} has no label for {lacking:,} of the {total:,} drawn units"
                + (f"; to label them: {again}" if again else "")
            )
    return notes


def _frame_notes(store: Store, task: Task, plan: BatchPlan) -> list[str]:
    """Return a note if another frame has batches for the same judge: the new batch does not continue their looks."""
    drawn = {b.name: b for b in read_drawn_batches(store, task.spec.questions[0].field)}
    new = drawn.pop(plan.name)
    others = [b for b in drawn.values() if b.decides and b.frame != new.frame and {*b.judges} & {*new.judges}]
    if not others:
        return []
    condition = f" (those with {plan.where})" if plan.where else ""
    return [
        f"this batch is drawn from another frame{condition} than {', '.join(repr(b.name) for b in others)}: it does not continue "
        "that verdict, but begins another study of the judge, with an error rate of 5 % of its own"
    ]


def strata_of(drawn: Sequence[DrawnUnit], frame: Frame) -> dict[str, dict[str, Json]]:
    """For each stratum, return the number of its units in the frame, the number of units drawn, and their
    weight (None if the weights differ).
    """
    sizes = frame.strata()
    strata: dict[str, dict[str, Json]] = {}
    for stratum in sorted(sizes):
        weights = [d.weight for d in drawn if d.stratum == stratum]
        # Weights are rounded, because weights that differ only in their last bits are equal.
        known = [round(weight, 4) for weight in weights if weight is not None]
        low, high = min(known, default=None), max(known, default=None)
        strata[stratum] = {"frame": sizes[stratum], "drawn": len(weights), "weight": low if low == high else None,
                           "weight_low": low, "weight_high": high}  # fmt: skip
    return strata
