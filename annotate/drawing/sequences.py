"""The units that a verdict may rest on: drawn with equal probability from one frame, over all batches, in the order drawn.

Units of batches that were drawn otherwise (equal parts of strata, by uncertainty, queues, routes) are in no sequence.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass
from itertools import pairwise

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import ALL
from annotate.drawing.sample import DrawnUnit, in_order
from judge.labels.batches import batch_rows
from judge.prompts.load import Task
from judge.stats.looks import PLACES
from judge.store import Store
from judge.store.export import stored_task

ALIKE = 1e-9
"""Probabilities that differ by less are the same."""


@dataclass(frozen=True)
class DrawnBatch:
    """One batch as it was drawn. `alike`: all units had the same probability; `decides`: a verdict may rest on it. `frame`
    names what it was drawn from."""

    name: str
    task: str
    created: str
    plan: BatchPlan
    units: tuple[DrawnUnit, ...]
    alike: bool
    decides: bool
    frame: tuple[object, ...]


@dataclass(frozen=True)
class DrawnSequence:
    """Units drawn with equal probability from one frame, in the order drawn.

    `frame` is the frame in words; `ends` are the places where a block may end, which are all units, or with whole questions
    the last unit of each; `complete` is the number of units, from the first on, that everybody has labelled or skipped;
    `end` is the largest number of units that there can be. `skipped` and `handed` are, for each unit, how many people skipped
    it, of how many who were handed it.
    """

    frame: str
    batches: tuple[DrawnBatch, ...]
    units: tuple[str, ...]
    ends: tuple[int, ...]
    complete: int
    end: int
    handed: tuple[int, ...]
    skipped: tuple[int, ...]

    @property
    def one_look(self) -> bool:
        """Whether one look at the end of the first batch was declared."""
        return self.batches[0].plan.looks == 1

    def place(self, wanted: int) -> int:
        """Where the block that reaches this number of units ends; the last unit where none does."""
        return next((end for end in self.ends if end >= wanted), len(self.units))

    def since(self, batch: int) -> int:
        """How many units were drawn before this one of its batches."""
        return sum(len(b.units) for b in self.batches[:batch])


def drawn_batches(store: Store, field: str) -> list[DrawnBatch]:
    """The batches that ask for a field, the oldest first."""
    rows = batch_rows(store, _BATCHES)
    found: list[DrawnBatch] = []
    for name, task, purpose, options, created, imports in rows:
        if field not in stored_task(store, task).fields:
            continue
        plan = BatchPlan.read(options)
        units = in_order(_units(store, name), plan)
        alike = _are_alike(units)
        own = (plan.where, plan.fresh, tuple(plan.left_out or ()), imports)
        # What another frame's batch took is not in this one's frame. Up to 0.2.0 nothing was that any batch had taken.
        apart = tuple(
            b.name
            for b in found
            if (b.alike or plan.left_out is None) and not (b.alike and b.frame[:4] == own)
        )
        found.append(
            DrawnBatch(
                name,
                task,
                created,
                plan,
                tuple(units),
                alike,
                alike and plan.is_even and purpose != "queue",
                (*own, apart),
            )
        )
    return found


_BATCHES = """
    SELECT b.batch, b.task, b.purpose, b.options, b.created,
           (SELECT count(*) FROM imports AS i WHERE i.imported_at <= b.created AND (
               coalesce(json_extract(i.counts, '$.items'), 0) + coalesce(json_extract(i.counts, '$.passages'), 0)
               + coalesce(json_extract(i.counts, '$.answers'), 0)) > 0)
    FROM batches AS b ORDER BY b.rowid
"""


def _units(store: Store, batch: str) -> list[DrawnUnit]:
    query = (
        "SELECT b.unit_id, u.question_id, b.stratum, b.probability FROM batch_units AS b JOIN units AS u USING (unit_id) "
        "WHERE b.batch = ? AND b.role = 'sample'"
    )
    return [DrawnUnit(u, q, s or ALL, p) for u, q, s, p in store.conn.execute(query, [batch])]


def _are_alike(units: Rows[DrawnUnit]) -> bool:
    """Whether all units have the same probability; not where one was not left to chance."""
    known = [d.probability for d in units if d.probability is not None]
    return bool(known) and len(known) == len(units) and max(known) - min(known) < ALIKE


def sequences(store: Store, field: str) -> list[DrawnSequence]:
    """The sequences of a field, the newest frame last."""
    groups: dict[tuple[object, ...], list[DrawnBatch]] = {}
    for batch in drawn_batches(store, field):
        if batch.decides:
            groups.setdefault(batch.frame, []).append(batch)
    return [_sequence(store, batches) for batches in groups.values()]


def sequence_of(store: Store, field: str, batch: str) -> DrawnSequence | None:
    """The sequence that a batch belongs to; None where it was not drawn with equal probability."""
    return next((s for s in sequences(store, field) if batch in (b.name for b in s.batches)), None)


def _sequence(store: Store, batches: list[DrawnBatch]) -> DrawnSequence:
    units = [(d, b) for b in batches for d in b.units]
    whole = [b.plan.by_question is not None for _, b in units]
    # With whole questions a block ends with the question; a question that ends here is not the next unit's.
    ends = tuple(
        i + 1
        for i, (d, _) in enumerate(units)
        if not whole[i] or i + 1 == len(units) or units[i + 1][0].question_id != d.question_id
    )
    seats = {b.name: _seats(store, b.name) for b in batches}
    of_unit = [seats[b.name].get(d.unit_id, (0, 0, 0)) for d, b in units]
    complete = next((i for i, (_, _, waiting) in enumerate(of_unit) if waiting), len(units))
    first, last = batches[0].plan, batches[-1].plan
    exhausted = last.frame and len(batches[-1].units) == last.frame
    return DrawnSequence(
        _words(batches[0]),
        tuple(batches),
        tuple(d.unit_id for d, _ in units),
        ends,
        complete,
        len(units) if exhausted else max(first.frame, len(units) + 1),
        tuple(handed for handed, _, _ in of_unit),
        tuple(skipped for _, skipped, _ in of_unit),
    )


def _words(batch: DrawnBatch) -> str:
    """The frame in words, as in "drawn with equal probability from 3,000 units"."""
    n, where, apart = batch.plan.frame, batch.plan.where, batch.frame[4]
    words = f"{n:,} units" if n else "the units of the study"
    if where:
        words += f" (those with {where})"
    if apart:
        words += f" (those that {', '.join(map(str, apart))} left)"  # type: ignore[call-overload]
    return words


def _seats(store: Store, batch: str) -> dict[str, tuple[int, int, int]]:
    """Unit of a batch -> how many people were handed it, how many skipped it, and for how many it waits.

    People whom a lead stopped are not waited for, and their labels do not count.
    """
    query = (
        "SELECT unit_id, count(*), sum(status = 'skipped'), sum(status = 'open') FROM assignments AS a WHERE batch = ? "
        "AND role = 'sample' AND NOT EXISTS (SELECT 1 FROM stopped AS s WHERE s.batch = a.batch AND "
        "s.annotator_id = a.annotator_id) GROUP BY unit_id"
    )
    return {unit: (n, skipped, open_) for unit, n, skipped, open_ in store.conn.execute(query, [batch])}


def in_blocks(store: Store, task: Task, batch: str, new: Rows[DrawnUnit]) -> list[list[DrawnUnit]]:
    """New units of a batch that is stored, cut where the verdict will be computed: everybody finishes a block before the next.

    So the first units drawn are the first labelled, whoever labels them. Units that no verdict rests on are one block.
    """
    found = sequence_of(store, task.spec.questions[0].field, batch)
    if found is None:
        return [list(new)]
    own = {d.unit_id: d for d in new}
    cuts = sorted({found.place(place) for place in PLACES})
    blocks: list[list[DrawnUnit]] = []
    for start, end in pairwise([0, *cuts, len(found.units)]):
        if some := [own[u] for u in found.units[start:end] if u in own]:
            blocks.append(some)
    return blocks
