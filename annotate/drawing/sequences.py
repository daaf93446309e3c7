"""Sequences of units that can be used for a verdict.

A sequence has the units of all batches that were drawn with equal probability from one frame.

Batches with unequal probabilities are not part of a sequence. These are batches with the same number of units
from each stratum, draws by uncertainty, queues of the least certain units, and units that a route left to
people.
"""

from collections.abc import Sequence as Rows
from dataclasses import dataclass, replace
from itertools import pairwise

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import ALL, Frame
from annotate.drawing.sample import DrawnUnit, restore_order
from judge.prompts.load import Task
from judge.stats.looks import LEVEL, PLACES, compute_spent, places_until
from judge.store import Store
from judge.store.export import read_stored_task

ALIKE = 1e-9
"""Probabilities that differ by less than this count as equal."""


@dataclass(frozen=True)
class DrawnBatch:
    """One batch, in the form in which it was drawn.

    `decides` is true if all units had the same probability, so that the batch can be used for a verdict.
    Batches with equal `frame` were drawn from the same units.
    """

    name: str
    task: str
    created: str
    closed: bool
    plan: BatchPlan
    units: tuple[DrawnUnit, ...]
    decides: bool
    frame: tuple[object, ...]


@dataclass(frozen=True)
class DrawnSequence:
    """Units that were drawn with equal probability from one frame, in the order of the draw.

    `frame` describes the frame in words. `ends` lists the positions at which a block may end. If whole
    questions were drawn, these are the positions of each question's last unit; otherwise, they are all
    positions.

    The first `complete` units need no more labels, because their annotators have labelled or skipped them.
    `end` is the largest number of units that the sequence can have.

    `covered` is true for each unit with at least two labels that were given after the draw. If the unit is
    assigned to only one annotator, one such label is enough.

    `closed` names the batch of the first incomplete unit, if that batch is closed. `later` names the first
    batch of a newer frame that shares units with this one.
    """

    frame: str
    batches: tuple[DrawnBatch, ...]
    units: tuple[str, ...]
    ends: tuple[int, ...]
    complete: int
    end: int
    covered: tuple[bool, ...]
    closed: str | None
    later: str | None = None

    @property
    def level(self) -> float:
        """The fraction of the significance level that verdicts on this sequence may use.

        It is less than 1 if another frame contains some of the same units, and verdicts on that frame have
        used part of the level.
        """
        return self.batches[0].plan.level

    @property
    def spent(self) -> float:
        """The fraction of the significance level that the completed looks (computations of the verdict) have used."""
        if self.one_look:
            return self.level if self.complete >= len(self.batches[0].units) else 0.0
        places = places_until(self.end)
        done = [
            spent
            for place, spent in zip(places, compute_spent(places, self.end), strict=True)
            if self.is_complete(place)
        ]
        return self.level * done[-1] / LEVEL if done else 0.0

    def is_complete(self, place: int) -> bool:
        """Return whether the first `place` units have been drawn and need no more labels.

        If whole questions were drawn, all units of the last question must be complete too.
        """
        return place <= self.place(place) <= self.complete

    @property
    def one_look(self) -> bool:
        """Whether the verdict is computed only once, at the end of the first batch."""
        return self.batches[0].plan.looks == 1

    def place(self, n: int) -> int:
        """Return the smallest number of units, at least n, after which a block may end.

        If there is no such number, return the number of all drawn units.
        """
        return next((end for end in self.ends if end >= n), len(self.units))

    def since(self, batch: int) -> int:
        """Return the number of units that were drawn before the batch with this index."""
        return sum(len(b.units) for b in self.batches[:batch])


def read_drawn_batches(store: Store, field: str) -> list[DrawnBatch]:
    """Return the batches whose task has a field, the oldest first."""
    rows = store.conn.execute(_BATCHES).fetchall()
    batches: list[DrawnBatch] = []
    for name, task, purpose, options, created, closed, imports in rows:
        if field not in read_stored_task(store, task).fields:
            continue
        plan = BatchPlan.from_json(options)
        units = tuple(restore_order(_units(store, name), plan))
        decides = _are_alike(units) and plan.is_even and purpose != "queue"
        frame: tuple[object, ...] = (plan.frame_id, *plan.shares)
        if plan.frame_id is None:
            # 0.2.0 stored no hash of the frame. Equal conditions on the same state of the study, with no other draw in
            # between, give the same frame.
            words = (plan.where, imports)
            frame = (*words, *(b.name for b in batches if b.frame[:2] != words))
        batches.append(DrawnBatch(name, task, created, closed is not None, plan, units, decides, frame))
    return batches


_BATCHES = """
    SELECT b.batch, b.task, b.purpose, b.options, b.created, b.closed,
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
    """Return whether all units have a probability, and all probabilities are the same."""
    known = [d.probability for d in units if d.probability is not None]
    return bool(known) and len(known) == len(units) and max(known) - min(known) < ALIKE


def sequences(store: Store, field: str) -> list[DrawnSequence]:
    """Return the sequences for a field, with the newest frame last."""
    groups: dict[tuple[object, ...], list[DrawnBatch]] = {}
    later: dict[str, str] = {}
    for batch in read_drawn_batches(store, field):
        if batch.decides:
            groups.setdefault(batch.frame, []).append(batch)
            for name in batch.plan.shares:
                later.setdefault(name, batch.name)
    return [
        replace(
            _sequence(store, batches), later=next((later[b.name] for b in batches if b.name in later), None)
        )
        for batches in groups.values()
    ]


def compute_shared_level(store: Store, field: str, frame: Frame) -> tuple[str, tuple[str, ...], float]:
    """Return (hash, batches, share) for a draw from this frame.

    `hash` identifies the frame, and `batches` are the batches of other frames that share units with it.
    `share` is the share of the significance level that verdicts on these batches have not used.

    `frame` must include the units that earlier batches drew from it.
    """
    # Without a shared level, a frame that differs by one unit would start the looks again, each time at 5 %.
    frame_id = frame.fingerprint()
    earlier = sequences(store, field)
    for same in earlier:
        first = same.batches[0].plan
        if first.frame_id == frame_id and same.later is None:
            return frame_id, tuple(first.shares), first.level
    # If another frame followed, an earlier sequence of the same frame also counts, so that returning to a frame
    # does not restart the looks.
    others = [s for s in earlier if frame.among(s.units)]
    names = tuple(b.name for s in others for b in s.batches)
    return frame_id, names, max(0.0, 1.0 - sum(s.spent for s in others))


def sequence_of(store: Store, field: str, batch: str) -> DrawnSequence | None:
    """Return the sequence of a batch, or None if its units have unequal probabilities."""
    return next((s for s in sequences(store, field) if batch in (b.name for b in s.batches)), None)


def _sequence(store: Store, batches: list[DrawnBatch]) -> DrawnSequence:
    # After a merge of two studies, a unit may be in two batches: it counts once, in the first.
    first_in: dict[str, str] = {}
    for b in batches:
        for d in b.units:
            first_in.setdefault(d.unit_id, b.name)
    units = [(d, b) for b in batches for d in b.units if first_in[d.unit_id] == b.name]
    whole = [b.plan.by_question is not None for _, b in units]
    # With whole questions, a block may end only at the last unit of a question.
    ends = tuple(
        i + 1
        for i, (d, _) in enumerate(units)
        if not whole[i] or i + 1 == len(units) or units[i + 1][0].question_id != d.question_id
    )
    by_unit: dict[tuple[str, str], list[DrawnSeat]] = {}
    for b in batches:
        for seat in seats_of(store, b.name):
            by_unit.setdefault((b.name, seat.unit), []).append(seat)
    of_unit = [by_unit.get((b.name, d.unit_id), []) for d, b in units]
    # A stopped annotator cannot label any more, so a look does not wait for that person.
    waiting = [any(seat.is_open and not seat.stopped for seat in seats) for seats in of_unit]
    complete = next((i for i, waits in enumerate(waiting) if waits), len(units))
    waited_for = units[complete][1] if complete < len(units) else None
    first, last = batches[0].plan, batches[-1].plan
    # The end of a frame is itself a look. Imports may have enlarged the frame, so the end lies beyond the drawn
    # units until all units are drawn.
    exhausted = last.frame and len(batches[-1].units) == last.frame
    return DrawnSequence(
        _words(batches[0]),
        tuple(batches),
        tuple(d.unit_id for d, _ in units),
        ends,
        complete,
        len(units) if exhausted else max(first.frame, len(units) + 1),
        tuple(
            sum(seat.counts and not seat.adopted for seat in seats) >= min(2, len(seats)) for seats in of_unit
        ),
        waited_for.name if waited_for is not None and waited_for.closed else None,
    )


def _words(batch: DrawnBatch) -> str:
    """Describe the frame in words, such as "3,000 units". The words follow "drawn with equal probability from"."""
    n, where = batch.plan.frame, batch.plan.where
    words = f"{n:,} units" if n else "the units of the study"
    # These words are short, because the sentence of a verdict may contain all of them and is limited to 60
    # words.
    labelled = [f"{len(batch.plan.left_out):,} labelled before"] if batch.plan.left_out else []
    without = ", ".join([*labelled, *(["earlier batches"] if batch.plan.shares else [])])
    return words + (f" (those with {where})" if where else "") + (f" (without {without})" if without else "")


@dataclass(frozen=True)
class DrawnSeat:
    """The assignment of one unit to one annotator.

    `counts` is true if the annotator labelled the unit and was not stopped by a lead. `adopted` is true if
    the label was given before the draw.
    """

    person: str
    unit: str
    is_open: bool
    stopped: bool
    counts: bool
    adopted: bool


def seats_of(store: Store, batch: str) -> list[DrawnSeat]:
    """Return the assignments of a batch's sample."""
    query = (
        "SELECT annotator_id, unit_id, status = 'open', s.batch IS NOT NULL, status = 'done' AND s.batch IS NULL, EXISTS "
        "(SELECT 1 FROM events AS e JOIN sessions AS n USING (session_id) WHERE (e.batch, e.annotator_id, e.position) = "
        "(a.batch, a.annotator_id, a.position) AND n.version GLOB '* adopt') FROM assignments AS a "
        "LEFT JOIN stopped AS s USING (batch, annotator_id) WHERE a.batch = ? AND a.role = 'sample'"
    )
    return [DrawnSeat(p, u, *map(bool, flags)) for p, u, *flags in store.conn.execute(query, [batch])]


def split_into_blocks(store: Store, task: Task, batch: str, new: Rows[DrawnUnit]) -> list[list[DrawnUnit]]:
    """Return the new units of a stored batch in blocks. The verdict is computed at the end of each block.

    If the batch cannot be used for a verdict, all units are in one block.
    """
    # Everybody finishes a block before the next one, so that the first units drawn are the first ones labelled.
    sequence = sequence_of(store, task.spec.questions[0].field, batch)
    if sequence is None:
        return [list(new)]
    by_id = {d.unit_id: d for d in new}
    cuts = sorted({sequence.place(place) for place in PLACES})
    blocks: list[list[DrawnUnit]] = []
    for start, end in pairwise([0, *cuts, len(sequence.units)]):
        if some := [by_id[u] for u in sequence.units[start:end] if u in by_id]:
            blocks.append(some)
    return blocks
