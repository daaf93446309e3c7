"""Draw more units for a batch. The result is the same sample as if all units had been drawn at once."""

from collections.abc import Sequence
from dataclasses import replace

from annotate.batch_plan import BatchPlan
from annotate.drawing import places, seats
from annotate.drawing.batch import redraw, strata_of, strata_sizes
from annotate.drawing.eligible import eligible
from annotate.drawing.seats import Changed
from annotate.drawing.sequences import read_tested_judges, split_into_blocks
from annotate.sitting.desk import BatchInfo
from annotate.sitting.standing import is_stopped, people_of
from judge.commands import command
from judge.errors import UsageError
from judge.store import Store
from judge.store.study import dumps


def extend_batch(
    store: Store,
    name: str,
    *,
    to: int,
    people: Sequence[str] | None = None,
    allow_exposed: bool = False,
) -> Changed:
    """Draw more units until the batch has `to` units (or whole questions), from the same frame with the same seed.

    A batch that already has this size stays unchanged, so the command can be repeated. Raises UsageError if the
    frame has changed since the draw, or if another batch contains some of the units to add.
    """
    info = seats.open_batch(store, name)
    plan = info.plan
    if not plan.annotators:
        raise UsageError(f"batch '{name}' does not record how it was drawn; draw a new batch")
    # A larger draw for PPI is not a superset of the smaller one: its probabilities depend on the number of
    # units.
    if plan.purpose or plan.from_route:
        raise UsageError(
            f"batch '{name}' was drawn with --draw ppi or --draw route, so it cannot be extended; draw another batch"
        )
    if plan.looks == 1:
        raise UsageError(
            f"batch '{name}' was declared with a single look at its end (--looks 1), so it cannot be extended; for estimates, draw a new batch from the same frame"
        )
    larger = _larger(plan, to)
    done = Changed(name)
    if larger is None:
        return done
    with store.transaction() as conn:
        if people is None:
            people = [p for p in people_of(conn, name) if not is_stopped(conn, name, p)]
        others = [p for p in people if p not in people_of(conn, name)]
        if others:
            raise UsageError(
                f"{others[0]} is not in batch '{name}'; to assign units: {command('annotate batches assign', name, '--to', others[0])}"
            )
        for person in people:
            seats.require_active(conn, name, person)
        overlap = plan.overlap or len(people)
        if not people or overlap > len(people):
            raise UsageError(
                f"each unit of batch '{name}' needs {overlap} people, but there are {len(people)}"
                + _suggest_batch(store, info, larger, people)
            )
        checks = "SELECT unit_id FROM batch_units WHERE batch = ? AND role <> 'sample'"
        apart = [u for (u,) in conn.execute(checks, [name])]
        frame = eligible(store, info.task, plan, plan.run, name)
        frame.leave_out(apart)
        before = set(seats.sample_of(conn, name))
        try:
            again = {d.unit_id for d in redraw(frame, plan)}
        except UsageError:
            again = set()
        # The old sample is drawn again. If it differs, the frame has changed, and no weight of the larger
        # sample would be right.
        if again != before:
            raise UsageError(
                f"batch '{name}': the units from which it was drawn have changed (by an import, or by new labels of its run), "
                "so its weights would be wrong; draw a new batch"
            )
        drawn = redraw(frame, larger)
        if not before <= {d.unit_id for d in drawn}:
            raise UsageError(
                f"batch '{name}' cannot be extended by this number of units, because its strata would not stay in proportion; choose another number"
            )
        new = [d for d in drawn if d.unit_id not in before]
        _untaken(store, info, {d.unit_id for d in new})
        # All weights are written again: old and new units are one sample with one inclusion probability.
        conn.executemany(
            "INSERT INTO batch_units VALUES (?, ?, 'sample', ?, ?, ?) ON CONFLICT (batch, unit_id) "
            "DO UPDATE SET probability = excluded.probability, weight = excluded.weight",
            [(name, d.unit_id, d.stratum, d.probability, d.weight) for d in drawn],
        )
        # Units that were imported after the draw are now in the frame.
        drawn_now = replace(larger, frame=len(frame), strata=strata_sizes(frame, plan))
        conn.execute(
            "UPDATE batches SET options = json_set(options, '$.n', ?, '$.by_question', ?, '$.frame', ?, '$.strata', json(?), "
            "'$.draw_id', ?) WHERE batch = ?",
            [
                larger.n,
                larger.by_question,
                drawn_now.frame,
                dumps(drawn_now.strata),
                drawn_now.hash_draw(),
                name,
            ],
        )
        given: dict[str, list[str]] = {}
        for block in split_into_blocks(store, info.task, name, new):
            shares = places.assign(block, people, overlap, plan.seed, together=plan.by_question is not None)
            for person, some in shares.items():
                if some:
                    given.setdefault(person, []).extend(seats.seat(conn, info, person, some, checks=False))
        seats.log(conn, name, "extend", None, {"units": len(new), "sample": len(drawn)})
        seats.finish(store, info, given, done, allow_exposed)
    done.units, done.strata = len(new), strata_of(drawn, frame)
    return done


def _suggest_batch(store: Store, info: BatchInfo, larger: BatchPlan, people: Sequence[str]) -> str:
    """Return how to draw the additional units for these people as another batch, or "" if there are none.

    The other batch tests the same judges on the same frame, so that one verdict uses both batches.
    """
    if not people:
        return ""
    plan, tested = info.plan, read_tested_judges(store, info.batch)
    sizes = (
        ("--by-question", (larger.by_question or 0) - plan.by_question)
        if plan.by_question
        else ("-n", (larger.n or 0) - (plan.n or 0))
    )
    options = [*sizes, "--annotators", ",".join(people)]
    options += ["--judges", ",".join(tested)] if tested else []
    options += ["--where", plan.where] if plan.where else []
    drawn = command("annotate batches new NAME", info.task.task_id, *options)
    return f"; to draw these units as another batch: {drawn}"


def _larger(plan: BatchPlan, to: int) -> BatchPlan | None:
    """Return the plan for the larger sample, or None if the batch already has this many units. Raises
    UsageError if the batch has more units.
    """
    has, noun = (plan.by_question, "questions") if plan.by_question else (plan.n or 0, "units")
    if to < has:
        raise UsageError(f"--to {to}: batch '{plan.name}' already has {has} {noun}, which cannot be removed")
    if to == has:
        return None
    if not plan.by_question:
        return replace(plan, n=to)
    # The number of units per question stays the same.
    return replace(plan, by_question=to, n=None if plan.n is None else plan.n // plan.by_question * to)


def _untaken(store: Store, info: BatchInfo, units: set[str]) -> None:
    """Raise UsageError if a later batch with the same questions contains any of the units."""
    query = (
        "SELECT b.batch, count(*) FROM batch_units AS b WHERE b.unit_id IN (SELECT value FROM json_each(?)) AND b.batch <> ? "
        "AND EXISTS (SELECT 1 FROM batches AS o WHERE o.batch = b.batch AND o.task = ? "
        "AND o.rowid > (SELECT rowid FROM batches WHERE batch = ?)) GROUP BY b.batch"
    )
    values = [dumps(sorted(units)), info.batch, info.task.name, info.batch]
    row = store.conn.execute(query, values).fetchone()
    if row:
        raise UsageError(
            f"batch '{info.batch}': {row[1]} of the units to be added are already in batch '{row[0]}', which was drawn later; draw a new batch"
        )
