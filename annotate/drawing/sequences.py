"""Sequences of units that can be used for a verdict.

A sequence has the units of all batches that test the same judge and were drawn with equal probability from
one frame. Which judges a batch tests is stored with the batch when it is drawn.

Batches with unequal probabilities are not part of a sequence. These are batches with the same number of units
from each stratum, draws by uncertainty, queues of the least certain units, and units that a route left to
people.
"""

from collections.abc import Sequence as Rows
from dataclasses import dataclass
from itertools import pairwise

from annotate.batch_plan import BatchPlan
from annotate.drawing.frame import ALL
from annotate.drawing.sample import DrawnUnit, restore_order
from judge.prompts.load import Task
from judge.stats.looks import PLACES
from judge.store import Store
from judge.store.export import read_stored_task

ALIKE = 1e-9
"""Probabilities that differ by less than this count as equal."""


@dataclass(frozen=True)
class DrawnBatch:
    """One batch, in the form in which it was drawn.

    `decides` is true if all units had the same probability, so that the batch can be used for a verdict.
    Batches with equal `frame` were drawn from the same units. `judges` are the runs that the batch tests.
    """

    name: str
    task: str
    created: str
    closed: bool
    plan: BatchPlan
    units: tuple[DrawnUnit, ...]
    decides: bool
    frame: tuple[object, ...]
    judges: tuple[str, ...]


@dataclass(frozen=True)
class DrawnSequence:
    """Units that were drawn with equal probability from one frame for the same judge, in the order of the draw.

    `frame` describes the frame in words. `ends` lists the positions at which a block may end. If whole
    questions were drawn, these are the positions of each question's last unit; otherwise, they are all
    positions.

    The first `complete` units need no more labels, because their annotators have labelled or skipped them.
    `end` is the largest number of units that the sequence can have.

    `covered` is true for each unit with at least two labels that were given after the draw. If the unit is
    assigned to only one annotator, one such label is enough.

    `closed` names the batch of the first incomplete unit, if that batch is closed. `stopped` maps each stopped
    annotator to the largest number of units at which a look with this annotator's labels was possible (0 if
    none was). `corrected` is this number for a correction of a text of these units (0 if no look was possible before).
    """

    frame: str
    batches: tuple[DrawnBatch, ...]
    units: tuple[str, ...]
    ends: tuple[int, ...]
    complete: int
    end: int
    covered: tuple[bool, ...]
    closed: str | None
    stopped: dict[str, int]
    corrected: int

    @property
    def n_judges(self) -> int:
        """The number of judges that share the significance level: the largest number that a batch tests."""
        # With the largest number, no later batch can raise a judge's share of the level.
        return max(1, *(len(batch.judges) for batch in self.batches))

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
        frame: tuple[object, ...] = (plan.frame_id,)
        if plan.frame_id is None:
            # 0.2.0 stored no hash of the frame. Equal conditions on the same state of the study, with no other draw in
            # between, give the same frame.
            words = (plan.where, imports)
            frame = (*words, *(b.name for b in batches if b.frame[:2] != words))
        judges = read_tested_judges(store, name)
        batches.append(
            DrawnBatch(name, task, created, closed is not None, plan, units, decides, frame, judges)
        )
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


def read_tested_judges(store: Store, batch: str) -> tuple[str, ...]:
    """Return the runs that a batch tests.

    The draw stores them. If the task had no run then, the first run that is made later is stored, by a trigger
    of the table `runs`.
    """
    query = "SELECT run_id FROM batch_judges WHERE batch = ? ORDER BY run_id"
    return tuple(run for (run,) in store.conn.execute(query, [batch]))


def sequences(store: Store, batches: Rows[DrawnBatch]) -> list[DrawnSequence]:
    """Return the sequences that these batches form, with the newest frame last.

    The caller selects the batches that test one judge. Batches that no verdict can use are left out.
    """
    groups: dict[tuple[object, ...], list[DrawnBatch]] = {}
    for batch in batches:
        if batch.decides:
            groups.setdefault(batch.frame, []).append(batch)
    return [_sequence(store, group) for group in groups.values()]


def sequences_of(store: Store, field: str, batch: str) -> list[DrawnSequence]:
    """Return the sequence of a batch for each judge that the batch tests.

    If the batch has no judge yet, return its sequence with the other batches that have none. The result is
    empty if the batch's units have unequal probabilities.
    """
    drawn = read_drawn_batches(store, field)
    judges = next((b.judges for b in drawn if b.name == batch), ())
    selected = [[b for b in drawn if run in b.judges] for run in judges] or [
        [b for b in drawn if not b.judges]
    ]
    formed = [s for some in selected for s in sequences(store, some)]
    return [s for s in formed if batch in (b.name for b in s.batches)]


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
    stopped: dict[str, int] = {}
    for person, at in sorted({(s.person, s.stopped_at) for seats in of_unit for s in seats if s.stopped_at}):
        # Units that all their annotators had begun when the lead stopped this person: so far the lead could look.
        begun = (all(s.was_begun(at) for s in seats) for seats in of_unit[:complete])
        seen = next((i for i, was_begun in enumerate(begun) if not was_begun), complete)
        labelled = any(s.person == person and s.labelled for seats in of_unit[:seen] for s in seats)
        stopped[person] = max(stopped.get(person, 0), seen if labelled else 0)
    corrected = 0
    for place, at in _read_corrections(store, [d.unit_id for d, _ in units]):
        # The correction opens the unit again, so whether a unit is open now does not say whether it was labelled then.
        begun = (all(s.begun_at is not None and s.begun_at <= at for s in seats) for seats in of_unit)
        seen = next((i for i, was_begun in enumerate(begun) if not was_begun), len(units))
        corrected = max(corrected, seen if place < seen else 0)
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
        stopped,
        corrected,
    )


def _read_corrections(store: Store, units: Rows[str]) -> list[tuple[int, str]]:
    """Return (position in `units`, time) for each correction of a unit's text."""
    place = {unit: i for i, unit in enumerate(units)}
    rows = store.conn.execute("SELECT unit_id, at FROM corrected_units ORDER BY at").fetchall()
    return [(place[unit], at) for unit, at in rows if unit in place]


def _words(batch: DrawnBatch) -> str:
    """Describe the frame in words, such as "3,000 units". The words follow "drawn with equal probability from"."""
    n, where = batch.plan.frame, batch.plan.where
    words = f"{n:,} units" if n else "the units of the study"
    # These words are short, because the sentence of a verdict may contain all of them and is limited to 60
    # words.
    without = f" (without {len(batch.plan.left_out):,} labelled before)" if batch.plan.left_out else ""
    return words + (f" (those with {where})" if where else "") + without


@dataclass(frozen=True)
class DrawnSeat:
    """The assignment of one unit to one annotator.

    `labelled` is true if the annotator labelled the unit, and `adopted` if the label was given before the
    draw. `stopped_at` is the time at which a lead stopped the annotator, and `begun_at` the time of the first
    action on the unit.
    """

    person: str
    unit: str
    is_open: bool
    labelled: bool
    adopted: bool
    stopped_at: str | None
    begun_at: str | None

    @property
    def stopped(self) -> bool:
        """Whether a lead stopped the annotator."""
        return self.stopped_at is not None

    def was_begun(self, at: str) -> bool:
        """Return whether the annotator had worked on the unit by this time, and nothing is left to do."""
        return not self.is_open and self.begun_at is not None and self.begun_at <= at

    @property
    def counts(self) -> bool:
        """Whether the unit has a label from this annotator that may be used."""
        return self.labelled and not self.stopped


def seats_of(store: Store, batch: str) -> list[DrawnSeat]:
    """Return the assignments of a batch's sample."""
    query = """
        SELECT a.annotator_id, a.unit_id, a.status = 'open', a.status = 'done',
               coalesce(max(n.version GLOB '* adopt'), 0), s.at, min(e.at)
        FROM assignments AS a LEFT JOIN stopped AS s USING (batch, annotator_id)
        LEFT JOIN events AS e ON (e.batch, e.annotator_id, e.position) = (a.batch, a.annotator_id, a.position)
        LEFT JOIN sessions AS n ON n.session_id = e.session_id
        WHERE a.batch = ? AND a.role = 'sample' GROUP BY a.annotator_id, a.position ORDER BY a.annotator_id, a.position
    """
    rows = store.conn.execute(query, [batch])
    return [
        DrawnSeat(person, unit, bool(is_open), bool(done), bool(adopted), stopped, begun)
        for person, unit, is_open, done, adopted, stopped, begun in rows
    ]


def split_into_blocks(store: Store, task: Task, batch: str, new: Rows[DrawnUnit]) -> list[list[DrawnUnit]]:
    """Return the new units of a stored batch in blocks. The verdict is computed at the end of each block.

    If the batch cannot be used for a verdict, all units are in one block.
    """
    # Everybody finishes a block before the next one, so that the first units drawn are the first ones labelled.
    of_judges = sequences_of(store, task.spec.questions[0].field, batch)
    if not of_judges:
        return [list(new)]
    by_id = {d.unit_id: d for d in new}
    units = [unit for unit in of_judges[0].units if unit in by_id]
    # A block ends at the next look at each judge that the batch tests.
    ends = {u for s in of_judges for place in PLACES for u in s.units[: s.place(place)][-1:]}
    cuts = [i + 1 for i, unit in enumerate(units) if unit in ends]
    return [
        [by_id[u] for u in units[start:end]] for start, end in pairwise([0, *cuts, len(units)]) if start < end
    ]
