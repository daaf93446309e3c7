"""The units of a batch, as a blind annotator sees them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

from annotate.drawing.sample import shuffle
from annotate.exchange.texts import InputsOfAnyTask
from annotate.sitting.blind import Blind, Seat
from annotate.sitting.desk import BatchInfo
from annotate.sitting.queue import LISTS, Queue
from annotate.sitting.standing import refuse_person
from judge.prompts.inputs import LIST_INPUTS
from judge.prompts.load import Task, find_tasks, load_task
from judge.store import Store
from judge.store.export import read_stored_task
from judge.store.inputs import column
from judge.store.study import dumps


@dataclass(frozen=True, slots=True)
class ExchangeUnit:
    """One unit to annotate elsewhere.

    `inputs` maps each input that the unit has, in the task's order, to its value. The value is text, a list of
    texts (`reference_answers`), or a map from letters to texts (`options`). Several passages are a list of
    {"title", "date", "source", "text"}, without empty keys.
    """

    unit_id: str
    inputs: dict[str, Any]


class ExchangeUnits:
    """The units of a batch, or of one person in a batch, without duplicates.

    The order is seeded and does not show which units are checks. Hidden repeats are left out. Raises
    UsageError if the person is not an annotator of the batch.
    """

    def __init__(self, store: Store, info: BatchInfo, person: str | None = None) -> None:
        self._store, self._info = store, info
        rows = store.conn.execute(
            "SELECT annotator_id, position, unit_id, repeat FROM assignments "
            "WHERE batch = ? AND role <> 'adjudication' ORDER BY annotator_id, position",
            [info.batch],
        ).fetchall()
        people = sorted({row[0] for row in rows})
        self.people = people if person is None else [person]
        if person is not None and person not in people:
            raise refuse_person(info.batch, person, people)
        self.seats: dict[int, tuple[str, int]] = {}
        """(unit, repeat) by position in the queue of `person`, including hidden repeats."""
        self.repeats = 0
        self._places: dict[str, tuple[str, int]] = {}
        for who, position, unit, repeat in rows:
            if person in (None, who):
                if person is not None:
                    self.seats[position] = (unit, repeat)
                # Two records of one unit in a file would show that it is a repeat.
                self.repeats += bool(repeat)
                if not repeat:
                    self._places.setdefault(unit, (who, position))
        # The order of the queue would show which units are checks.
        self.ids = shuffle(self._places, info.plan.seed, "export")

    def leave_out_adopted(self) -> int:
        """Leave out the units that all annotators had finished before the draw. Return how many units were left
        out.
        """
        query = """
            SELECT a.unit_id FROM assignments AS a WHERE a.batch = ? AND a.role = 'sample'
                AND a.annotator_id IN (SELECT value FROM json_each(?)) GROUP BY a.unit_id
                HAVING min(a.status = 'done' AND EXISTS (SELECT 1 FROM events AS e JOIN sessions AS s USING (session_id)
                    WHERE e.batch = a.batch AND e.annotator_id = a.annotator_id AND e.position = a.position
                    AND s.version GLOB '* adopt'))
        """
        rows = self._store.conn.execute(query, [self._info.batch, dumps(self.people)])
        finished = {unit for (unit,) in rows}
        before = len(self.ids)
        self.ids = [unit for unit in self.ids if unit not in finished]
        return before - len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)

    def __contains__(self, unit: str) -> bool:
        return unit in self._places

    def iterate_units(self) -> Iterator[ExchangeUnit]:
        """Yield every unit with its inputs."""
        with self.reader() as inputs_of:
            for unit in self.ids:
                yield ExchangeUnit(unit, inputs_of(unit))

    @contextmanager
    def reader(self) -> Iterator[Any]:
        """Yield a function that maps a unit's id to its inputs, or to None if the unit is not in the batch."""
        # The blind connection cannot read the judge, gold, `meta` or labels, so a file cannot contain anything
        # that a screen does not show.
        queues: dict[str, Queue] = {}
        opened: list[Blind] = []

        def inputs_of(unit: str) -> dict[str, Any] | None:
            if unit not in self._places:
                return None
            who, position = self._places[unit]
            # A blind connection can read the queue of only one person.
            if who not in queues:
                opened.append(Blind(self._store, Seat(self._info.batch, who, who, ""), self._info.task))
                queues[who] = Queue(self._info, opened[-1])
            queue = queues[who]
            return {
                n: _format_input(n, v) for n, v in queue.inputs(position).items() if v not in (None, "", [])
            }

        try:
            yield inputs_of
        finally:
            for blind in opened:
                blind.close()


def absent(store: Store, info: BatchInfo) -> frozenset[str]:
    """Return the task's optional inputs that are empty in every unit of a batch."""
    names = info.task.spec.optional_inputs
    if not names:
        return frozenset()
    columns = ", ".join(f"max(coalesce({column(info.task, n)}, '') NOT IN ('', '[]'))" for n in names)
    query = f"SELECT {columns} FROM unit_texts AS t WHERE t.unit_id IN (SELECT unit_id FROM assignments WHERE batch = ?)"
    present = store.conn.execute(query, [info.batch]).fetchone()
    return frozenset(name for name, is_present in zip(names, present, strict=True) if not is_present)


def inputs_of_task(store: Store, task: Task) -> Callable[[str], dict[str, Any] | None]:
    """Return a function that maps the id of any unit in the study to the unit's inputs under a task.

    The function returns None if the unit does not exist, or if the task labels units of a different kind.
    """
    names = task.input_names
    columns = ", ".join(f'{column(task, n)} AS "{n}"' for n in names)
    query = f"SELECT {columns} FROM unit_texts AS t WHERE t.unit_id = ? AND t.kind = ?"
    about = "SELECT title, date, source, text FROM passages WHERE passage_id = ?"

    def passage(passage_id: str) -> dict[str, str]:
        row = store.conn.execute(about, [passage_id]).fetchone()
        return {k: v for k, v in zip(PASSAGE_KEYS, row, strict=True) if v}

    def value_of(name: str, value: Any) -> Any:
        if not value or name not in (*LISTS, *LIST_INPUTS):
            return value
        decoded = json.loads(value)
        return [passage(text) for text in decoded] if name in LIST_INPUTS else decoded

    def inputs_of(unit: str) -> dict[str, Any] | None:
        row = store.conn.execute(query, [unit, task.spec.unit]).fetchone()
        if row is None:
            return None
        inputs = {n: value_of(n, v) for n, v in zip(names, row, strict=True)}
        return {n: v for n, v in inputs.items() if v not in (None, "", [])}

    return inputs_of


def inputs_of_any_task(store: Store) -> Callable[[str], InputsOfAnyTask]:
    """Return a function that maps a unit's id to the inputs that the unit has in any task.

    The tasks are those in the study and the built-in tasks.
    """
    names = [name for (name,) in store.conn.execute("SELECT task FROM tasks ORDER BY task")]
    shown: list[Callable[[str], dict[str, Any] | None]] = []
    known: set[tuple[Any, ...]] = set()
    for task in chain(
        (read_stored_task(store, n) for n in names), (load_task(n) for n in find_tasks() if n not in names)
    ):
        # Tasks that show the same inputs of the same units need not be compared twice.
        key = (task.spec.unit, *((n, column(task, n)) for n in task.input_names))
        if key not in known:
            known.add(key)
            shown.append(inputs_of_task(store, task))

    def each(unit: str) -> Iterator[dict[str, Any]]:
        for inputs_by_task in list(shown):
            if (inputs := inputs_by_task(unit)) is not None:
                if shown[0] is not inputs_by_task:
                    shown.remove(inputs_by_task)
                    shown.insert(0, inputs_by_task)
                yield inputs

    return lambda unit: InputsOfAnyTask(lambda: each(unit))


PASSAGE_KEYS = ("title", "date", "source", "text")
"""The keys of a passage in a list of passages."""


def _format_input(name: str, value: Any) -> Any:
    if name not in LIST_INPUTS:
        return value
    return [{k: v for k in PASSAGE_KEYS if (v := getattr(passage, k))} for passage in value]
