"""Convert units to Label Studio tasks. A task contains the unit's id, its inputs as text and, on request, the
judge's labels.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from annotate.exchange.base import PLACE_KEY, UNIT_KEY
from annotate.exchange.label_studio.config import ConfigLayout
from annotate.exchange.label_studio.link import Key
from annotate.exchange.label_studio.sdk import Check
from annotate.exchange.units import ExchangeUnit, ExchangeUnits
from annotate.sitting.desk import BatchInfo
from judge.store import Store, label_rows
from judge.store.study import dumps
from judge.types import Json

Judged = Mapping[str, Mapping[str, tuple[str, float | None]]]
"""(label, probability) by unit and field."""


def data_of(layout: ConfigLayout, unit: ExchangeUnit, place: int | None = None) -> dict[str, Json]:
    """Return the `data` of a unit's task, which contains every input as text. The text is empty for an input
    that the unit lacks.
    """
    texts = {name: input_text(unit.inputs.get(name)) for name in layout.inputs}
    return {UNIT_KEY: unit.unit_id, **({} if place is None else {PLACE_KEY: place}), **texts}


def input_text(value: Any) -> str:
    """Return an input as the text to send. Options have their letters, and passages have their number, title,
    date and source.

    This text must not change, because a pull compares it character by character with the task on the server.
    """
    if value is None:
        return ""
    if isinstance(value, Mapping):
        return _as_sent("\n".join(f"{letter}. {text}" for letter, text in value.items()))
    if isinstance(value, list):
        passages = [_passage(n, v) if isinstance(v, Mapping) else str(v) for n, v in enumerate(value, 1)]
        return _as_sent(("\n\n" if any(isinstance(v, Mapping) for v in value) else "\n").join(passages))
    return _as_sent(str(value))


def _passage(number: int, passage: Mapping[str, str]) -> str:
    about = " · ".join(passage[key] for key in ("title", "date", "source") if passage.get(key))
    return f"[{number}] {about}\n{passage['text']}"


def _as_sent(text: str) -> str:
    """Replace characters that the server cannot store. The number of code points stays the same, because
    evidence refers to code points.
    """
    # Browsers join \r\n to one character, which would move every later offset of evidence. Databases reject
    # NUL.
    return text.replace("\r\n", " \n").replace("\r", "\n").replace("\x00", "\ufffd")


def prediction(
    layout: ConfigLayout, labels: Mapping[str, tuple[str, float | None]], model: str
) -> dict[str, Json]:
    """Return a judge's labels as one Label Studio prediction. `labels` maps each field to (label, probability).

    The score of the prediction is the lowest probability, or None if a probability is missing.
    """
    probabilities = [p for _, p in labels.values()]
    present = [p for p in probabilities if p is not None]
    return {
        "model_version": model,
        "score": round(min(present), 6) if present and len(present) == len(probabilities) else None,
        "result": [layout.region(field, value) for field, (value, _) in labels.items()],
    }


TASKS = 250
BYTES = 4_000_000
"""The largest number of tasks, and of bytes, in one import. A task with more bytes is sent alone."""


class Sent(NamedTuple):
    """One task to send. `place` is its position in the queue of the project's annotator, or None in a shared
    project.
    """

    key: Key
    place: int | None = None


def list_tasks(units: ExchangeUnits, person: str) -> list[Sent]:
    """Return every task of a project.

    A project for one person has one task for each position in the person's queue, in this order. A shared
    project has one task for each unit of the batch.
    """
    # A project for one person may have hidden repeats. In a shared project, a second task of a unit would not
    # be hidden.
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
    """Yield the tasks to send, after checking each task with Label Studio's own rules.

    The inputs are read through a connection that cannot read labels.
    """
    # The server accepts unknown choices and controls, so the check has to be ours.
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
    """Yield the tasks in pages of at most TASKS tasks and BYTES bytes."""
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


def read_judged(store: Store, info: BatchInfo, run: str) -> Judged:
    """Return the labels of a run in the form {unit: {field: (label, probability)}}.

    Labels that the task does not allow are left out.
    """
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
                probabilities: Any = json.loads(distribution) if distribution else {}
                out.setdefault(unit, {})[question.field] = (value, probabilities.get(value))
    return out
