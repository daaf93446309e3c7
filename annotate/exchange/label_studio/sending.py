"""What goes to the server: the tasks of some units, in pages that it takes, with the judge's labels if they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.exchange.label_studio.check import Check
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key
from annotate.exchange.label_studio.tasks import data_of, prediction
from annotate.exchange.units import ExchangeUnit, ExchangeUnits
from annotate.sitting.desk import BatchInfo
from judge.store import Store, label_rows
from judge.store.study import dumps
from judge.types import Json

TASKS = 250
BYTES = 4_000_000
"""One import holds at most so many tasks, and stays under this size unless one task is larger."""


class Sent(NamedTuple):
    """One task to send. `place` is its position in the queue of whose project it is."""

    key: Key
    place: int | None = None


def wanted(units: ExchangeUnits, person: str) -> list[Sent]:
    """Every task of a project: a person's whole queue in its order, hidden repeats too, or each unit once for all."""
    if person:
        return [Sent(key, place) for place, key in sorted(units.seats.items())]
    return [Sent((unit, 0)) for unit in units.ids]


def tasks_of(
    units: ExchangeUnits,
    layout: ConfigLayout,
    missing: Sequence[Sent],
    labels: Judged,
    model: str,
    check: Check,
) -> Iterator[tuple[Key, dict[str, Json]]]:
    """The tasks, read through the blind connection and checked by the vendor's own rules."""
    with units.reader() as inputs_of:
        for (unit, repeat), place in missing:
            task: dict[str, Json] = {"data": data_of(layout, ExchangeUnit(unit, inputs_of(unit)), place)}
            if unit in labels:
                made = prediction(layout, labels[unit], model)
                check.regions(made["result"])
                task["predictions"] = [made]
            else:
                check.task(task)
            yield (unit, repeat), task


def pages(tasks: Iterator[tuple[Key, dict[str, Json]]]) -> Iterator[list[tuple[Key, dict[str, Json]]]]:
    """The tasks in pages of TASKS and BYTES."""
    page: list[tuple[Key, dict[str, Json]]] = []
    size = 0
    for key, task in tasks:
        length = len(dumps(task))
        if page and (len(page) == TASKS or size + length > BYTES):
            yield page
            page, size = [], 0
        page.append((key, task))
        size += length
    if page:
        yield page


Judged = Mapping[str, Mapping[str, tuple[str, float | None]]]
"""Unit -> field -> (label, its probability)."""


def judged(store: Store, info: BatchInfo, run: str) -> Judged:
    """Unit -> field -> (label, its probability) of a run, for labels that the task has."""
    out: dict[str, dict[str, tuple[str, float | None]]] = {}
    for question in info.task.spec.questions:
        domain = info.task.domain(question.field)
        rows = store.conn.execute(
            f"SELECT l.unit_id, l.value, l.distribution FROM {label_rows.FIRST} JOIN batch_units AS b ON b.unit_id = l.unit_id "
            "WHERE b.batch = ? AND l.annotator_id = ? AND l.field = ?",
            [info.batch, run, question.field],
        )
        for unit, value, distribution in rows:
            if not domain or value in domain:
                chances: Any = json.loads(distribution) if distribution else {}
                out.setdefault(unit, {})[question.field] = (value, chances.get(value))
    return out


def model_of(store: Store, run: str) -> str:
    """The model of a run."""
    return str(store.conn.execute("SELECT model FROM runs WHERE run_id = ?", [run]).fetchone()[0])
